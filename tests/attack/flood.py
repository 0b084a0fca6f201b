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
PUB, SUB, REQ, REP = (b"\0SP\0\0" + bytes([number, 0, 0]) for number in (0x20, 0x21, 0x30, 0x31))
GREETINGS = {BULLETINS: SUB, CONTROL: REQ, JOBS: b""}
START = b"ic\2\x0e\0\0\4\0"  # the head of the longest message that begins a job's stream
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


def credential():
    """It looks like one of MUNGE until munged has decoded it."""
    return b"MUNGE:" + base64.b64encode(os.urandom(192)) + b":"


def hello(text, versions=(1, 1)):
    """A HELLO (agent/cluster/greeting.h) with the credential TEXT; its Noise message is rubbish."""
    head = pack({"min": versions[0], "max": versions[1], "cred": text.decode()})
    return framed(QUESTION + b"\1" + struct.pack(">H", len(head)) + head + os.urandom(48))


def welcome():
    return b"\2" + os.urandom(48 + 200)


def unknown_session():
    """A SEALED (agent/cluster/sessions.h) of a session that nobody has."""
    return framed(QUESTION + b"\4" + os.urandom(8 + 8 + 200))


def unknown_epoch():
    """A bulletin (user/channel/bulletin_seal.h) of an epoch that nobody has begun."""
    return framed(b"iB\1\7mallory" + os.urandom(8 + 8 + 300))


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


def way_hello(port, sources):
    """HELLOs whose credentials only munged can tell from good ones."""
    streams(port, sources, CONTROL, lambda _: hello(credential()))


def way_unknown(port, sources):
    """Messages of sessions that the agent does not know, to which it has an answer."""
    streams(port, sources, CONTROL, lambda _: unknown_session())


def way_versions(port, sources):
    """HELLOs of versions to come, which are refused with a sentence."""
    streams(port, sources, CONTROL, lambda _: hello(credential(), (99, 99)))


def way_unread(port, connections, sources, what):
    """CONNECTIONS that ask what has an answer for a stranger, and never read it."""
    data, n = batch(unknown_session if what == "unknown" else
                    lambda: hello(credential(), (99, 99)))

    def ask(source):
        while not over.is_set():
            try:
                s = connect(port + CONTROL, source, 2048, PATIENCE_S)
            except OSError:
                over.wait(0.01)
                continue
            try:
                s.sendall(REQ)
                while not over.is_set():
                    push(s, data)
                    count("messages", n)
            except OSError:
                pass
            reset(s)
    addresses = spread(sources)
    together([lambda a=addresses[i % len(addresses)]: ask(a) for i in range(connections)])


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


def claim(name):
    """What the credential of a HELLO to node NAME says."""
    return pack({"type": "hello", "cluster": "", "from": "mallory", "to": name, "boot_id": 1,
                 "psk": os.urandom(32)})


def way_credentials(port, sources, where, name):
    """Greetings in good credentials, but of a user."""
    texts = [munge(where, claim(name)) for _ in range(50)]
    data = b"".join(hello(text) for text in texts)
    together([lambda a=a: stream(port, a, CONTROL, data, len(texts)) for a in spread(sources)])


def serve_on(port, each):
    """Accepts connections at PORT and calls EACH for each, in a thread of its own."""
    listener = socket.create_server(("127.0.0.1", port))

    def one(s):
        s.settimeout(WAIT_S)
        try:
            each(s)
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
            together([lambda s=s: one(s)])
        listener.close()

    together([serve])


def publish_at(port, make):
    """What a peer that the agent subscribes to publishes is what MAKE gives."""
    data, n = batch(make)

    def publish(s):
        s.sendall(PUB)
        while not over.is_set():
            push(s, data)
            count("messages", n)

    serve_on(port, publish)
    while not sent["messages"] and not over.is_set():  # the agent dials once in a second
        over.wait(0.01)


def way_publish(port):
    """A peer that the agent subscribes to publishes look-alikes of credentials."""
    publish_at(port, lambda: framed(credential()))


def way_epochs(port):
    """It publishes what may be bulletins, of epochs whose keys the agent does not have."""
    publish_at(port, unknown_epoch)


def way_welcome(port, sources, fake):
    """WELCOMEs that nobody asked for; and at FAKE, where the agent asks, many for each HELLO."""
    def answer(s):
        s.sendall(REP)
        while not over.is_set():
            try:
                asked = s.recv(8 + 4096)
            except TimeoutError:
                continue
            if not asked:
                return
            if len(asked) > 12:
                push(s, b"".join(framed(asked[8:12] + welcome()) for _ in range(1000)))
                count("messages", 1000)

    serve_on(fake + CONTROL, answer)
    streams(port, sources, CONTROL, lambda _: framed(QUESTION + welcome()))


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
    """Agents (it needs root) that greet in good credentials, then send junk, and never read the
    answer."""
    held = opened(port + CONTROL, connections, sources, REQ, 2048)
    for s in held:
        try:
            s.sendall(hello(munge(where, claim(name))) + junk(CONTROL) * 100)
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
    way_hello(port, sources)
    way_unknown(port, sources)
    way_versions(port, sources)
    way_credentials(port, sources, where, name)
    way_welcome(port, sources, fake)
    together([lambda: way_epochs(fake)])
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
