#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Tests the driver of chaos with made-up agents: a killed one may take a while to end."""
import ctypes
import fcntl
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

import bed

SOCKET = "iocom.sock"
EXIT = 60 if os.uname().machine == "x86_64" else 93  # the system call that ends one thread


def agent(directory, how):
    """Allows one agent per directory, like iocomd.  HOW "headless": its first thread has ended."""
    lock = open(f"{directory}/lock", "w", encoding="utf-8")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        sys.exit("another one already runs")
    time.sleep(0.1)
    if os.path.exists(f"{directory}/{SOCKET}"):
        os.unlink(f"{directory}/{SOCKET}")
    with socket.socket(socket.AF_UNIX) as s:
        s.bind(f"{directory}/{SOCKET}")
        s.listen()
        if how == "headless":
            threading.Thread(target=time.sleep, args=(60,)).start()
            ctypes.CDLL(None).syscall(EXIT, 0)
        time.sleep(60)


def node_in(directory):
    node = bed.Node.__new__(bed.Node)
    node.name, node.dir, node.run_dir, node.group = "n1", directory, directory, ""
    node.agent_words = [sys.executable, "-B", __file__, directory, "plain"]
    node.enter = lambda group, words: words
    node.child, node.pid, node.late, node.deaths = None, 0, 0, []
    return node


def listening(directory):
    with socket.socket(socket.AF_UNIX) as s:
        return not s.connect_ex(f"{directory}/{SOCKET}")


def cases(directory):
    """Yields (what, whether it holds)."""
    node = node_in(directory)
    old = subprocess.Popen([*node.agent_words[:-1], "headless"])
    try:
        while bed.stat_of(old.pid)[0] != "Z":
            time.sleep(0.01)
        yield "one whose first thread alone has ended lives, and answers", \
            bed.alive(old.pid) and listening(directory)
        node.child, node.pid = old, old.pid
        yield "it is its own answer that counts", node.answers()
        end = threading.Timer(1, old.kill)
        end.start()
        node.start_agent()
        end.join()
        yield "an agent that starts beside it is not taken for the one that answers", \
            node.late > 0 and node.pid != old.pid and not node.found_dead() and not node.deaths
        node.end_agent()
        yield "one that was ended is gone, and not noted as dead before", \
            not bed.alive(node.pid) and not node.deaths
        yield "one that ended by itself is noted", node.found_dead() and len(node.deaths) == 1
    finally:
        for process in (old, node.child):
            process.kill()
            process.wait()


def main():
    if len(sys.argv) == 3:
        return agent(*sys.argv[1:])
    number = bad = 0
    with tempfile.TemporaryDirectory() as directory:
        for what, holds in cases(directory):
            number += 1
            bad += not holds
            print(f"{'ok' if holds else 'not ok'} {number} - bed: {what}")
    print(f"1..{number}")
    return 1 if bad else 0


if __name__ == "__main__":
    signal.alarm(60)
    sys.exit(main())
