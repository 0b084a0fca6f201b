#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""A cluster that is too large for everybody to hear everybody, small enough for each check: TAP."""
import json
import os
import signal
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from agents import Cluster  # noqa: E402
from live import Live  # noqa: E402

NODES = 26
done = 0


def tap(what, good, why=""):
    global done
    done += 1
    print(f"{'ok' if good else 'not ok'} {done} - {what}", flush=True)
    if not good:
        print("\n".join(f"# {line}" for line in str(why).splitlines()), flush=True)


def dialled(agent):
    rows = json.loads(agent.ask("nodes", "--json"))["bounds"]
    return next(row["used"] for row in rows if row["name"] == "nodes_dialled")


def counts(live):
    return [len(a.nodes()) for a in live.sampled()]


def loads(cluster):
    """A node's load is what its file says; its vector is smoothed, so it lies between the entries'."""
    target = cluster.agents[5]
    steps = [step["memory_used_mb"] for step in target.load()["loads"]]
    nodes = json.loads(cluster.agents[0].ask("nodes", "--json"))["nodes"]
    row = next(n for n in nodes if n["name"] == target.name)
    tap("its memory is what its file says", row["memory_requested_mb"] in steps, row)
    tap("and its cores and disk", (row["cores"], row["disks"]) == (4, 1), row)


def bad_file(cluster):
    path = os.path.join(cluster.directory, "bad.json")
    with open(path, "w") as f:
        f.write('{"loads": [{"seconds": 1, "cpu": -1}]}')
    out = subprocess.run([os.path.join(cluster.build, "iocomd"), "--synthetic", path,
                          "--run-dir", os.path.join(cluster.directory, "bad"),
                          "--state-dir", os.path.join(cluster.directory, "bad-state")],
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    tap("a file with nonsense is refused", out.returncode == 1 and "load 1: cpu is no number" in out.stdout,
        out.stdout)


def check(cluster):
    live = Live(cluster)
    tap(f"{NODES} agents know each other", live.join(120) is not None, counts(live))
    loads(cluster)
    bad_file(cluster)
    # The first plan of each was made while it knew few others.
    few = live.wait(lambda: max(dialled(a) for a in live.sampled()) < NODES - 1, 60)
    tap("nobody hears all others directly", few is not None, [dialled(a) for a in live.sampled()])
    tap("they still know each other", live.join(60) is not None, counts(live))
    ages = live.ages(3)
    tap("half of what they know is younger than two periods", ages[len(ages) // 2] < 2, ages[::20])
    tap("nearly all is younger than three", ages[int(0.95 * len(ages))] < 3, ages[::20])
    gone = live.kill(0.1)
    tap("nodes that died are known to be gone", gone is not None, counts(live))
    tap("and known again when they are back", live.join(120) is not None, counts(live))
    parted, healed = live.cut(8)
    tap("a cut parts the cluster", parted, counts(live))
    tap("and it heals", healed is not None, counts(live))


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    cluster = Cluster(NODES, os.environ.get("IOCOM_BUILD", "build"), mark="ioct")
    try:
        cluster.up()
        check(cluster)
    finally:
        cluster.down()
    print(f"1..{done}")


main()
