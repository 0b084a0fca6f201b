#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Ranks that talk by TCP and count what they send.

ranks.py PORT PATTERN BYTES ROUNDS STOP OUT FIRST HOST...   starts the ranks of this node: HOST is
the address of each rank in order, FIRST the address of this node's ranks.  A rank writes a line
"from,to,bytes,messages" to OUT/RANK for each rank that it sent to, when all is sent, and ends when
the file STOP is there.  Messages are send calls, as the kernel counts them.
"""
import os
import socket
import sys
import time


def peers(pattern, me, n):
    if pattern == "ring":
        return [(me + 1) % n]
    if pattern == "master":
        return [0] if me else list(range(1, n))
    return [r for r in range(n) if r != me]


def connect(host, port):
    while True:
        try:
            return socket.create_connection((host, port))
        except OSError:
            time.sleep(0.05)


def take(sock, size):
    while size:
        got = len(sock.recv(min(size, 1 << 16)))
        if not got:
            sys.exit("the other end is gone")
        size -= got


def give(sock, size, sums):
    data = b"x" * size
    while data:
        sent = sock.send(data)
        sums[0] += sent
        sums[1] += 1
        data = data[sent:]


def rank(me, port, pattern, size, rounds, stop, out, hosts):
    n = len(hosts)
    listener = socket.create_server((hosts[me], port + me), backlog=n)
    to = peers(pattern, me, n)
    froms = [r for r in range(n) if me in peers(pattern, r, n)]
    outgoing = {r: connect(hosts[r], port + r) for r in to}
    sums = {r: [0, 0] for r in to}
    incoming = {}
    for r, sock in outgoing.items():
        give(sock, 4, sums[r])
    for _ in froms:
        sock = listener.accept()[0]
        take(sock, 4)
        incoming[len(incoming)] = sock
    for _ in range(rounds):
        for r, sock in outgoing.items():
            give(sock, size, sums[r])
        for sock in incoming.values():
            take(sock, size)
        time.sleep(0.01)
    with open(f"{out}/{me}.part", "w", encoding="ascii") as file:
        for r in to:
            file.write(f"{me},{r},{sums[r][0]},{sums[r][1]}\n")
    os.rename(f"{out}/{me}.part", f"{out}/{me}")
    while not os.path.exists(stop):
        time.sleep(0.05)


def main():
    if os.environ.get("IOCOM_TASK"):
        port, pattern, size, rounds, stop, out, _, *hosts = sys.argv[1:]
        rank(int(os.environ["IOCOM_TASK"]), int(port), pattern, int(size), int(rounds), stop, out,
             hosts)
        return 0
    first, *hosts = sys.argv[7:]
    pids = [os.posix_spawn(sys.executable, [sys.executable, *sys.argv],
                           {**os.environ, "IOCOM_TASK": str(r)})
            for r, host in enumerate(hosts) if host == first]
    return max(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids)


if __name__ == "__main__":
    sys.exit(main())
