#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Measures how alive an agent is, as another user sees it.

usage: pulse.py UID SOCKET PID SECONDS ASKED PORT

As UID it asks "nodes" ASKED times in SECONDS, each time on a connection of its own, and prints

    ANSWERED TICKS_PER_S LATE_MS MEDIAN_MS WORST_MS CPU_PERCENT NEWCOMER_MS

ANSWERED: how many of ASKED were answered within LIMIT_S; it ends at the first that is not.
TICKS_PER_S: of the agent's loop.  LATE_MS: the greatest delay of a tick in the last minute.
MEDIAN_MS, WORST_MS: of the answers.  CPU_PERCENT: of the process PID, of one core.  NEWCOMER_MS:
how long a machine of an address of its own, which then subscribes to the bulletins at PORT, waits
for the first; "-": more than NEWCOMER_S.
"""
import json
import os
import socket
import statistics
import struct
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from handmade import pack  # noqa: E402

LIMIT_S = 5
NEWCOMER_S = 2
NEWCOMER = "127.0.0.40"
REQUEST, DOCUMENT = 1, 2


def receive(s, n, end):
    data = b""
    while len(data) < n:
        s.settimeout(max(end - time.monotonic(), 0.001))
        piece = s.recv(n - len(data))
        if not piece:
            raise OSError("closed")
        data += piece
    return data


def nodes(where):
    """The agent's document; raises OSError if it does not come in time."""
    end = time.monotonic() + LIMIT_S
    packed = pack({"op": "nodes"})
    with socket.socket(socket.AF_UNIX) as s:
        # It waits for room in the agent's backlog, as the CLI does; with settimeout it would not.
        s.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", LIMIT_S, 0))
        s.connect(where)
        s.sendall(b"ic" + bytes([1, REQUEST]) + struct.pack(">I", len(packed)) + packed)
        head = receive(s, 8, end)
        text = receive(s, struct.unpack(">I", head[4:])[0], end)
    if head[3] != DOCUMENT:
        raise OSError(text.decode())
    return json.loads(text)


def newcomer(port):
    began = time.monotonic()
    end = began + NEWCOMER_S
    try:
        with socket.socket() as s:
            s.settimeout(NEWCOMER_S)
            s.bind((NEWCOMER, 0))
            s.connect(("127.0.0.1", port))
            s.sendall(b"\0SP\0\0\x21\0\0")  # a subscriber's greeting in nng's protocol
            receive(s, 8 + 8 + 1, end)  # the answer, a bulletin's length, its first byte
    except OSError:
        return "-"
    return round((time.monotonic() - began) * 1e3)


def processor_s(pids):
    ticks = 0
    for pid in pids:
        with open(f"/proc/{pid}/stat") as f:
            fields = f.read().rsplit(")", 1)[1].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def main():
    uid, where, pids, seconds, asked, port = sys.argv[1:]
    uid, pids, seconds, asked = int(uid), pids.split(","), float(seconds), int(asked)
    os.setgroups([])
    os.setgid(uid)
    os.setuid(uid)
    took_ms, seen = [], []
    began, before_s = time.monotonic(), processor_s(pids)
    for i in range(asked):
        time.sleep(max(began + seconds * i / (asked - 1) - time.monotonic(), 0))
        at = time.monotonic()
        try:
            document = nodes(where)
        except OSError as e:
            print(f"pulse.py: no answer to question {i + 1}: {e}", file=sys.stderr)
            took_ms.append((time.monotonic() - at) * 1e3)
            break
        took_ms.append((time.monotonic() - at) * 1e3)
        seen.append((time.monotonic(), document["counters"]["ticks"],
                     document["counters"]["tick_late_ms"]))
    spent_s, spent_cpu_s = time.monotonic() - began, processor_s(pids) - before_s
    ticks = late_ms = 0
    if len(seen) > 1:
        ticks = (seen[-1][1] - seen[0][1]) / (seen[-1][0] - seen[0][0])
        late_ms = seen[-1][2]
    print(len(seen), "%.2f" % ticks, late_ms, "%.1f" % statistics.median(took_ms),
          "%.1f" % max(took_ms), round(100 * spent_cpu_s / spent_s), newcomer(int(port)))


main()
