#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""What an agent costs that has nothing to do: emulated nodes hear each other and run no job.

Prints for each program of a node, as medians over the nodes, its part of one core, and its memory:
RSS, and PSS, which counts once what processes share.  Goals for all of them: 0.1 % and 16 MB.
"""
import argparse
import collections
import fcntl
import json
import os
import statistics
import subprocess
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from rollup import rollup_kib  # noqa: E402

MARK = os.environ.get("IOCOM_TESTBED_MARK", "iocom-testbed")
TESTBED = "tests/testbed/testbed"
GOAL_CORE, GOAL_MB = 0.1, 16
START_S = 15  # the start is not rest


def children(pid):
    with open(f"/proc/{pid}/task/{pid}/children") as f:
        return [int(child) for child in f.read().split()]


def programs(agent):
    """Returns the pids of AGENT and of all its descendants, with their names."""
    found, todo = {}, [agent]
    while todo:
        pid = todo.pop()
        with open(f"/proc/{pid}/comm") as f:
            found[pid] = f.read().strip()
        todo += children(pid)
    return found


def used_s(pid):
    """The scheduler's count for all threads: clock ticks are too coarse for 0.1 %."""
    total = 0
    for task in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{task}/schedstat") as f:
            total += int(f.read().split()[0])
    return total / 1e9


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--nodes", type=int, default=3)
    options.add_argument("--seconds", type=float, default=60)
    args = options.parse_args()
    if os.geteuid() != 0:
        sys.exit("bench-rest: needs root (network namespaces, eBPF): sudo make bench-rest")
    lock = open(f"/run/lock/{MARK}-user.lock", "w")  # one testbed of a name: its users take turns
    fcntl.flock(lock, fcntl.LOCK_EX)
    try:
        subprocess.run([TESTBED, "down"], stdout=subprocess.DEVNULL, check=False)
        subprocess.run([TESTBED, "up", "--nodes", str(args.nodes), "--disk", "0"], check=True,
                       stdout=subprocess.DEVNULL)
        status = json.loads(subprocess.check_output([TESTBED, "status", "--json"]))
        time.sleep(START_S)
        nodes = [programs(node["agent_pid"]) for node in status["nodes"]]
        before = {pid: used_s(pid) for node in nodes for pid in node}
        began = time.monotonic()
        time.sleep(args.seconds)
        took = time.monotonic() - began
        seen = collections.defaultdict(list)
        for node in nodes:
            for pid, name in node.items():
                try:
                    memory = rollup_kib(pid)
                except (FileNotFoundError, ProcessLookupError):
                    print(f"{name} {pid} has ended meanwhile, and is left out", file=sys.stderr)
                    continue
                seen[name].append(((used_s(pid) - before[pid]) / took * 100,
                                   memory["Rss"] * 1024 / 1e6, memory["Pss"] * 1024 / 1e6))
    finally:
        subprocess.run([TESTBED, "down"], stdout=subprocess.DEVNULL, check=False)
    print(f"{'program':12} {'core, %':>8} {'RSS, MB':>8} {'PSS, MB':>8}"
          f"   (at rest for {took:.0f} s, {args.nodes} nodes)")
    total = [0.0, 0.0, 0.0]
    for name, rows in sorted(seen.items()):
        row = [statistics.median(column) for column in zip(*rows)]
        total = [a + b for a, b in zip(total, row)]
        print(f"{name:12} {row[0]:8.3f} {row[1]:8.1f} {row[2]:8.1f}")
    print(f"{'together':12} {total[0]:8.3f} {total[1]:8.1f} {total[2]:8.1f}"
          f"   (goals {GOAL_CORE} %, {GOAL_MB} MB)")


if __name__ == "__main__":
    main()
