#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Attacks on an agent that go on for a while: floods, storms, and connections that are held.

usage: flood.py UID WAY ARGUMENT...; the ways are the functions at the end.  As UID it attacks from
when it prints "begun" until the end of standard input, but no longer than LONGEST_S, and then
prints how much it sent.  PORT is the agent's base port at 127.0.0.1; SOURCES are this end's
addresses: 127.0.0.2, or 127.0.0.2-17 for 16 of them.
"""
import base64
import ctypes
import os
import random
import resource
import select
import signal
import socket
import struct
import sys
import threading
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from handmade import pack  # noqa: E402

LONGEST_S = 60
PATIENCE_S = 2  # for one connection that is to be held
OPEN_S = 5      # for all of them at one port
WAIT_S = 0.2  # a blocked call notices the end of the attack after this
BATCH_BYTES = 64 << 10
STORM_MOST = 20000  # connections of one storm
BULLETINS, CONTROL, JOBS = 0, 1, 2  # what listens at the base port plus this
# The greetings of nng's protocols, 8 bytes each.
PUB, SUB, REQ = (b"\0SP\0\0" + bytes([number, 0, 0]) for number in (0x20, 0x21, 0x30))
GREETINGS = {BULLETINS: SUB, CONTROL: REQ, JOBS: b""}
START = b"ic\2\4\0\0\x10\0"  # the head of a job's start
QUESTION = b"\x80\0\0\1"  # how nng numbers a question

over = threading.Event()
lock = threading.Lock()
sent = {"connections": 0, "messages": 0}


def count(what, n=1):
    with lock:
        sent[what] += n


def spread(sources):
    """The addresses of SOURCES."""
    first, _, last = sources.partition("-")
    net, low = first.rsplit(".", 1)
    return [f"{net}.{i}" for i in range(int(low), int(last or low) + 1)]


def connect(port, source, room=0, patience_s=WAIT_S):
    """Connects to PORT from the address SOURCE.  ROOM: bytes that may wait here unread."""
    s = socket.socket()
    try:
        s.settimeout(patience_s)
        if room:
            s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, room)
        s.bind((source, 0))
        s.connect(("127.0.0.1", port))
        s.settimeout(WAIT_S)
    except OSError:
        s.close()
        raise
    count("connections")
    return s


def reset(s):
    """Closes S at once: the kernel keeps nothing of it."""
    s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    s.close()


def push(s, data):
    """Sends all DATA; it may take as long as the attack."""
    left = memoryview(data)
    while left and not over.is_set():
        try:
            left = left[s.send(left):]
        except TimeoutError:
            pass


def framed(message):
    """MESSAGE as nng sends it over TCP."""
    return struct.pack(">Q", len(message)) + message


def batch(make):
    """Enough of what MAKE gives to fill BATCH_BYTES, and how many that are."""
    data, n = b"", 0
    while len(data) < BATCH_BYTES:
        data += make()
        n += 1
    return data, n


def junk(kind):
    body = os.urandom(16)
    return body if kind == JOBS else framed(QUESTION + body if kind == CONTROL else body)


def lookalike(kind):
    """It looks like a credential of MUNGE until munged has decoded it."""
    text = b"MUNGE:" + base64.b64encode(os.urandom(192)) + b":"
    return framed(QUESTION + text if kind == CONTROL else text)


def stream(port, source, kind, data, n):
    """Sends DATA, N messages, again and again, on a new connection when one is closed."""
    while not over.is_set():
        try:
            s = connect(port + kind, source)
        except OSError:
            over.wait(0.001)
            continue
        try:
            s.sendall(GREETINGS[kind])
            while not over.is_set():
                push(s, data)
                count("messages", n)
        except OSError:
            count("messages")
        reset(s)


def together(functions):
    """Runs each function in a thread of its own; the caller waits for the end."""
    for function in functions:
        threading.Thread(target=function, daemon=True).start()


def streams(port, sources, kind, make):
    data, n = batch(lambda: make(kind))
    together([lambda a=a: stream(port, a, kind, data, n) for a in spread(sources)])


def hold_until_over(sockets):
    """Keeps SOCKETS, so that the descriptors stay open."""
    over.wait()
    for s in sockets:
        reset(s)


# --- the ways -----------------------------------------------------------------------------


def way_junk(port, kind, sources):
    """16 bytes of junk, streamed."""
    streams(port, sources, kind, junk)


def way_lookalike(port, sources):
    streams(port, sources, CONTROL, lookalike)


def munge(where, payload):
    """A credential of the caller that only root may open."""
    library = ctypes.CDLL("libmunge.so.2")
    library.munge_ctx_create.restype = ctypes.c_void_p
    text = ctypes.c_char_p()
    context = ctypes.c_void_p(library.munge_ctx_create())
    library.munge_ctx_set(context, ctypes.c_int(8), ctypes.c_char_p(where.encode()))  # SOCKET
    library.munge_ctx_set(context, ctypes.c_int(9), ctypes.c_uint(0))  # UID_RESTRICTION
    if library.munge_encode(ctypes.byref(text), context, payload, len(payload)):
        sys.exit(f"flood.py: munged at {where} seals nothing")
    library.munge_ctx_destroy(context)
    return text.value


def question(name, job, number):
    """A question of an agent: to end a job that is nobody's."""
    body = pack({"uid": 0, "signal": 9})
    return pack({"v": 1, "type": "kill", "from": "mallory", "to": name, "job": job, "id": number,
                 "body": body})


def way_credentials(port, sources, where, name):
    """Questions in good credentials, but of a user."""
    texts = [munge(where, question(name, "mallory-0-1", random.getrandbits(60))) for _ in range(50)]
    data = b"".join(framed(QUESTION + text) for text in texts)
    together([lambda a=a: stream(port, a, CONTROL, data, len(texts)) for a in spread(sources)])


def way_publish(port):
    """A peer that the agent subscribes to publishes look-alikes of credentials."""
    data, n = batch(lambda: lookalike(BULLETINS))
    listener = socket.create_server(("127.0.0.1", port))

    def publish(s):
        s.settimeout(WAIT_S)
        try:
            s.sendall(PUB)
            while not over.is_set():
                push(s, data)
                count("messages", n)
        except OSError:
            pass
        reset(s)

    def serve():
        listener.settimeout(WAIT_S)
        while not over.is_set():
            try:
                s = listener.accept()[0]
            except TimeoutError:
                continue
            count("connections")
            together([lambda s=s: publish(s)])
        listener.close()

    together([serve])
    while not sent["messages"] and not over.is_set():  # the agent dials once in a second
        over.wait(0.01)


def opened(port, connections, sources, first, room=0):
    """Opens CONNECTIONS, sends the bytes FIRST on each, and returns those that the agent took."""
    addresses, held, end = spread(sources), [], time.monotonic() + OPEN_S
    for i in range(connections):
        if time.monotonic() > end:
            break
        try:
            s = connect(port, addresses[i % len(addresses)], room, PATIENCE_S)
            s.sendall(first)
            held.append(s)
        except OSError:
            pass
    return held


def way_slow(port, connections, sources):
    """On CONNECTIONS to each port, a byte of the greeting, or of a frame's head, a second."""
    held = [(s, (GREETINGS[kind] or START) + bytes(LONGEST_S)) for kind in (BULLETINS, CONTROL, JOBS)
            for s in opened(port + kind, connections, sources, b"")]

    def trickle():
        for i in range(LONGEST_S):
            for s, data in held:
                try:
                    s.send(data[i:i + 1])
                except OSError:
                    pass
            if over.wait(1):
                break
        hold_until_over([s for s, _ in held])

    together([trickle])


def way_half(port, connections, sources):
    """CONNECTIONS to each port that send half a greeting, or half a frame's head."""
    held = [s for kind in (BULLETINS, CONTROL, JOBS)
            for s in opened(port + kind, connections, sources, (GREETINGS[kind] or START)[:4])]
    together([lambda: hold_until_over(held)])


def way_deaf(port, connections, sources):
    """Subscribers that never read a bulletin."""
    held = opened(port, connections, sources, SUB, 2048)
    together([lambda: hold_until_over(held)])


def way_full(port, connections, sources):
    """CONNECTIONS to the bulletins' port, and as many to the control port, that greet and then say
    nothing."""
    held = [s for kind in (BULLETINS, CONTROL)
            for s in opened(port + kind, connections, sources, GREETINGS[kind])]
    together([lambda: hold_until_over(held)])


def way_ask(port, connections, sources, where, name):
    """Agents (it needs root) that ask a good question, then junk, and never read the answer."""
    held = opened(port + CONTROL, connections, sources, REQ, 2048)
    for s in held:
        text = munge(where, question(name, "mallory-0-1", random.getrandbits(60)))
        try:
            s.sendall(framed(QUESTION + text) + junk(CONTROL) * 100)
            count("messages", 101)
        except OSError:
            pass
    together([lambda: hold_until_over(held)])


def way_storm(where, source):
    """Connects and closes at once.  WHERE: a port, or the path of a socket."""
    def storm():
        while not over.is_set() and sent["connections"] < STORM_MOST:
            try:
                if isinstance(where, int):
                    reset(connect(where, source))
                else:
                    with socket.socket(socket.AF_UNIX) as s:
                        s.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", 1, 0))
                        s.connect(where)
                    count("connections")
            except OSError:
                over.wait(0.001)
    together([storm, storm])


def way_silent(where, connections, held_ms):
    """CONNECTIONS to a socket that say nothing.  After HELD_MS, or when one is closed, it is opened
    again."""
    def silence():
        while not over.is_set():
            with socket.socket(socket.AF_UNIX) as s:
                s.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", 1, 0))
                try:
                    s.connect(where)
                except OSError:
                    over.wait(0.01)
                    continue
                count("connections")
                end = time.monotonic() + held_ms / 1e3
                while not over.is_set() and time.monotonic() < end:
                    if select.select([s], [], [], min(WAIT_S, max(end - time.monotonic(), 0)))[0]:
                        break
    together([silence] * connections)
    while sent["connections"] < connections and not over.is_set():
        over.wait(0.01)


def way_stop(pid):
    """Stops the process PID and lets it continue at the end."""
    os.kill(pid, signal.SIGSTOP)

    def restore():
        over.wait()
        os.kill(pid, signal.SIGCONT)
    together([restore])


def way_all(port, sources, fake, where, name, local):
    """Everything at once that the network and a user can do."""
    for kind in (BULLETINS, CONTROL, JOBS):
        way_junk(port, kind, sources)
    way_lookalike(port, sources)
    way_credentials(port, sources, where, name)
    together([lambda: way_publish(fake)])
    way_slow(port, 50, sources)
    way_half(port, 100, sources)
    way_deaf(port, 60, sources)
    for at in (port, port + 1, port + 2, local):
        way_storm(at, spread(sources)[0])


def main():
    resource.setrlimit(resource.RLIMIT_NOFILE, (8192, 8192))
    sys.setswitchinterval(0.02)
    uid = int(sys.argv[1])
    if uid:
        os.setgroups([])
        os.setgid(uid)
        os.setuid(uid)
    signal.signal(signal.SIGTERM, lambda *_: over.set())
    arguments = [int(a) if a.isdigit() else a for a in sys.argv[3:]]
    globals()["way_" + sys.argv[2]](*arguments)
    print("begun", flush=True)
    end = time.monotonic() + LONGEST_S
    while not over.is_set() and time.monotonic() < end:
        if select.select([sys.stdin], [], [], WAIT_S)[0] and not os.read(0, 64):
            break
    over.set()
    for thread in threading.enumerate():
        if thread is not threading.current_thread():
            thread.join(2)
    print(f"{sent['connections']} connections, {sent['messages']} messages", flush=True)


main()
