#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""A client that makes an agent hold memory or wait, or names impossible jobs.

usage: hold.py UID WAY ARGUMENT...; the ways are the functions at the end.  Most hold what they
have until the end of standard input.
"""
import fcntl
import os
import resource
import select
import signal
import socket
import struct
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from handmade import pack  # noqa: E402

REQUEST, ERROR, START, ATTACH = 1, 3, 4, 11


def frame(kind, length, payload=b""):
    return b"ic" + bytes([1 if kind <= ERROR else 2, kind]) + struct.pack(">I", length) + payload


def request(**fields):
    packed = pack(fields)
    return frame(REQUEST, len(packed), packed)


def connect(where):
    """Connects to WHERE, a socket's path or a port of this machine."""
    if where.startswith("/"):
        s = socket.socket(socket.AF_UNIX)
        s.connect(where)
    else:
        s = socket.socket()
        s.connect(("127.0.0.1", int(where)))
    return s


def offer(s, data, patience_s=20):
    """Sends what is taken; False when the agent closed."""
    s.settimeout(patience_s)
    try:
        s.sendall(data)
    except TimeoutError:
        pass
    except OSError:
        return False
    return True


def hold(text):
    print(text, flush=True)
    sys.stdin.read()


def starts(where, count, mib, most):
    """COUNT job starts of 4 MiB each, of which MIB have come; how many of them are let, as soon
    as that is MOST at the most."""
    held = []
    for _ in range(count):  # each speaks at once: a silent one is refused for that, after a while
        s = connect(where)
        held.append(s)
        offer(s, frame(START, (4 << 20) - 1) + bytes((mib << 20) - 16))
    until = time.monotonic() + 20
    while True:
        let = sum(1 for s in held if not select.select([s], [], [], 0)[0])
        if let <= most or time.monotonic() > until:
            break
        time.sleep(0.05)
    hold(f"held {let}")


def answers(where, count, each):
    """COUNT connections ask EACH times for all jobs and read nothing; prints how many stay."""
    held = [connect(where) for _ in range(count)]
    for _ in range(each):
        for s in held:
            offer(s, request(op="jobs", all=True), 0.5)  # it takes none while we read none
    # What is unread hides the end: only that the other side hung up is told.
    poll = select.poll()
    for s in held:
        poll.register(s, 0)
    gone = set()
    for _ in range(40):
        gone |= {fd for fd, what in poll.poll(500) if what & select.POLLHUP}
        if gone:
            break
    hold(f"held {len(held) - len(gone)}")


def processor_s(pid):
    fields = open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def lists(where, count, seconds, pid):
    """COUNT connections ask for all jobs, read the list and ask again, for SECONDS.  Prints
    how many were refused, and for what part of the time PID used the processor."""
    asking = [connect(where) for _ in range(count)]
    refused, before_s, began = 0, processor_s(pid), time.monotonic()
    while time.monotonic() < began + seconds:
        for s in asking:
            s.sendall(request(op="jobs", all=True))
        for s in asking:
            head = s.recv(8, socket.MSG_WAITALL)
            s.recv(struct.unpack(">I", head[4:])[0], socket.MSG_WAITALL)
            refused += head[3] == ERROR
        time.sleep(0.05)
    print(refused, "%.2f" % ((processor_s(pid) - before_s) / (time.monotonic() - began)))


def first(where, job):
    """Sends a signal for JOB, then another user's question: which answer comes first?"""
    ours, others = connect(where), connect(where)
    ours.sendall(request(op="kill", job=job, signal=10))
    others.sendall(request(op="status"))
    stirred = select.select([ours, others], [], [], 20)[0]
    print("both" if len(stirred) == 2 else "the signal" if ours in stirred
          else "the question" if stirred else "none")


def lease(path):
    """Opening PATH waits until this program gives up its lease."""
    signal.signal(signal.SIGIO, signal.SIG_IGN)
    fd = os.open(path, os.O_RDONLY)
    fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_WRLCK)
    hold("leased")


NAMES = ["", ".", "..", "../../../../etc/passwd", "/etc/passwd", "a/b", "n1-1\0-2", "\0", "\n", "-",
         "last/..", "x" * 95, "x" * 96, "x" * 4096, "%s%n", "' OR 1=1 --", "n1-1-99999999999999999999"]


def names(where, node):
    """Asks each question with names of no job; prints how many got a sentence back, but for one
    that only says that the user asks too often."""
    asked = refused = 0
    for name in NAMES:
        ask = dict(v=2, job=name, node=node, nonce="0" * 32, resume="", out=0, err=0, out_taken=0,
                   err_taken=0)
        packed = pack(dict(ask=pack(ask)))
        questions = [request(op=op, job=name, signal=9)
                     for op in ("kill", "explain", "wait", "attach")]
        for question in questions + [frame(ATTACH, len(packed), packed)]:
            with connect(where) as s:
                s.settimeout(20)
                s.sendall(question)
                head = s.recv(8, socket.MSG_WAITALL)
                asked += 1
                if len(head) == 8 and head[3] == ERROR:
                    said = s.recv(struct.unpack(">I", head[4:])[0], socket.MSG_WAITALL)
                    refused += b"user_requests_per_s" not in said
    print(f"{refused} of {asked}")


def full(pid, lowest, seconds, *wheres):
    """Leaves process PID, whose LOWEST free descriptor the caller looked up, none for SECONDS in
    which a connection waits at each of WHERES; prints the part of them that the process computed,
    and the milliseconds."""
    pid = int(pid)
    limit = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    # No lower: poll() fails with a limit below the number that it is to watch.
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (int(lowest), limit[1]))
    try:
        waiting = [connect(str(where)) for where in wheres]
        began, used = time.monotonic(), processor_s(pid)
        time.sleep(seconds)
        took, used = time.monotonic() - began, processor_s(pid) - used
    finally:
        resource.prlimit(pid, resource.RLIMIT_NOFILE, limit)
    print(f"{used / took:.2f} {took * 1000:.0f}")
    for s in waiting:
        s.close()


def systemd(path):
    """Stands for systemd: prints each message that comes to the socket PATH."""
    s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    s.bind(path)
    while True:
        print(s.recv(4096).decode(), flush=True)


def tell(path, text):
    """Says TEXT to the socket PATH, behind all that was said there before."""
    socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).sendto(str(text).encode(), path)


ways = {"full": full, "systemd": systemd, "tell": tell, "starts": starts, "answers": answers,
        "first": first, "lease": lease, "names": names, "lists": lists}
uid = int(sys.argv[1])
os.setgroups([])
os.setgid(uid)
os.setuid(uid)
ways[sys.argv[2]](*(int(a) if a.isdigit() and i else a for i, a in enumerate(sys.argv[3:])))
