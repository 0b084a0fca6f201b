#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""A man in the middle of two agents: middle.py ADDRESS PORT TARGET DIR

Listens at ADDRESS, ports PORT to PORT + 2, and passes everything on to TARGET, the same ports.
DIR/mode has the attack on the next job stream (PORT + 2) or session (PORT + 1); when it has been
made, the file is gone and DIR/made has its name.  Streams: up is from the client, down to it.
"""
import os
import socket
import struct
import sys
import threading

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from handmade import receive  # noqa: E402

ADDRESS, PORT, TARGET, DIR = sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4]
EARLIER = {}  # what was seen: "up", "down": a record; "hello", "welcome": a frame; "all": bytes


def mode_of(prefix):
    try:
        mode = open(f"{DIR}/mode").read().strip()
    except OSError:
        return ""
    return mode if mode.startswith(prefix) else ""


def made(mode):
    try:
        os.unlink(f"{DIR}/mode")
    except OSError:
        pass
    with open(f"{DIR}/made", "a") as out:
        out.write(mode + "\n")


def exactly(sock, n):
    data = receive(sock, n)
    if len(data) < n:
        raise EOFError
    return data


def flip(data, at=-1):
    changed = bytearray(data)
    changed[at] ^= 0x10
    return bytes(changed)


class Stop(Exception):
    pass


def frame(sock):
    head = exactly(sock, 8)
    if head[:2] != b"ic":
        return head
    return head + exactly(sock, struct.unpack(">I", head[4:])[0])


def record(sock):
    head = exactly(sock, 2)
    return head + exactly(sock, struct.unpack(">H", head)[0])


def pass_records(source, sink, way, state):
    """Moves records, and does to one of them what the mode asks for."""
    n, held = 0, None
    while True:
        one = record(source)
        n += 1
        mode = state["mode"]
        what, _, where = mode.partition("-")
        # Up the first record is the request; what is to be hit there is a job's input.
        if mode and where == way and n == (2 if way == "down" else 3) and not state["done"]:
            if what == "swap":
                held = one
                continue
            state["done"] = True
            made("stream " + mode)
            if what == "flip":
                one = flip(one)
            elif what == "length":
                one = flip(one, 1)
            elif what == "drop":
                continue
            elif what == "repeat":
                sink.sendall(one)
            elif what == "reflect":
                sink.sendall(EARLIER["up" if way == "down" else "down"])
                continue
            elif what == "splice":
                sink.sendall(EARLIER["old " + way])
                continue
            elif what == "clear":
                # It reads as the head of a long record: without an end everybody would wait.
                sink.sendall(b"ic\2\x09\0\0\0\5\0\0\0\0\0")
                raise Stop
            elif what == "cut":
                sink.sendall(one[:len(one) // 2])
                raise Stop
            elif what == "end":
                sink.sendall(one)
                raise Stop
        EARLIER[way] = one
        sink.sendall(one)
        if held:
            state["done"] = True
            made("stream " + mode)
            sink.sendall(held)
            held = None


def stream(client, target):
    state = {"mode": mode_of("stream ")[7:], "done": False}
    mode = state["mode"]
    hello = frame(client)
    if hello[3:4] != b"\x0e":  # a renewal, a probe
        target.sendall(hello)
        pump(target, client)
        return
    if mode == "hello":
        made("stream hello")
        hello = flip(hello)
    elif mode == "older":
        made("stream older")
        at = hello.index(b"\xa3min") + 4
        hello = hello[:at] + bytes([hello[at] - 1]) + hello[at + 1:]
    elif mode == "again":
        made("stream again")
        hello = EARLIER["hello"]
    target.sendall(hello)
    welcome = frame(target)
    if mode == "welcome":
        made("stream welcome")
        welcome = flip(welcome)
    elif mode == "old-welcome":
        made("stream old-welcome")
        welcome = EARLIER["welcome"]
    EARLIER["hello"], EARLIER["welcome"] = hello, welcome
    client.sendall(welcome)
    first = record(client)
    EARLIER["old up"] = EARLIER.get("up", first)
    EARLIER["old down"] = EARLIER.get("down", first)
    EARLIER["all"] = hello + first
    target.sendall(first)

    def down():
        try:
            pass_records(target, client, "down", state)
        except (Stop, EOFError, OSError):
            close(client, target)

    worker = threading.Thread(target=down, daemon=True)
    worker.start()
    pass_records_after_first(client, target, state)
    worker.join()


def pass_records_after_first(client, target, state):
    try:
        pass_records(client, target, "up", state)
    except EOFError:
        try:
            target.shutdown(socket.SHUT_WR)
        except OSError:
            pass
    except (Stop, OSError):
        close(client, target)


def message(sock):
    head = exactly(sock, 8)
    return head + exactly(sock, struct.unpack(">Q", head)[0])


def pass_messages(source, sink, way):
    """nng's REQ and REP: a header of 8 bytes, then messages with their lengths."""
    sink.sendall(exactly(source, 8))
    while True:
        one = message(source)
        kind = {1: "hello", 2: "welcome", 4: "sealed"}.get(one[12], "")
        mode = mode_of("control ")[8:]
        if kind and mode == f"{kind}-{way}":
            made("control " + mode)
            one = flip(one)
        sink.sendall(one)


def control(client, target):
    def down():
        try:
            pass_messages(target, client, "down")
        except (EOFError, OSError):
            close(client, target)

    threading.Thread(target=down, daemon=True).start()
    pass_messages(client, target, "up")


def pump(source, sink):
    while True:
        data = source.recv(65536)
        if not data:
            raise EOFError
        sink.sendall(data)


def plain(client, target):
    def down():
        try:
            pump(target, client)
        except (EOFError, OSError):
            close(client, target)

    threading.Thread(target=down, daemon=True).start()
    pump(client, target)


def close(*sockets):
    for one in sockets:
        try:
            one.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass


def serve(port, what):
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind((ADDRESS, port))
    listener.listen(64)

    def one(client):
        try:
            target = socket.create_connection((TARGET, port))
        except OSError:
            client.close()
            return
        try:
            what(client, target)
        except (EOFError, OSError, KeyError):
            pass
        close(client, target)
        client.close()
        target.close()

    while True:
        client, _ = listener.accept()
        threading.Thread(target=one, args=(client,), daemon=True).start()


def replay():
    """Sends the target again what the last client sent it, and tells what it answers."""
    sock = socket.create_connection((TARGET, PORT + 2))
    sock.settimeout(5)
    sock.sendall(EARLIER["all"])
    answers = b""
    try:
        while True:
            more = sock.recv(65536)
            if not more:
                break
            answers += more
    except OSError:
        pass
    return answers


def orders():
    """Lines on standard input: "replay"."""
    for line in sys.stdin:
        if line.strip() == "replay":
            print(replay()[:4].hex() or "nothing", flush=True)


for offset, what in ((0, plain), (1, control), (2, stream)):
    threading.Thread(target=serve, args=(PORT + offset, what), daemon=True).start()
orders()
