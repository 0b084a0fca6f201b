#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""A large cluster on this machine: agents with synthetic loads, each in a network namespace.

Prints how old what they know of each other is, what they cost together, how fast dead nodes are
excluded and how fast a parted cluster heals, and how long a decision takes.  Goals are for 200
agents.  Needs root; 200 agents take about 10 minutes and 1 GB.
"""
import argparse
import os
import signal
import statistics
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from agents import Cluster, family, used_s  # noqa: E402

PERIOD_MS = 1000
SAMPLED = 8
LIMIT = 120  # seconds: agents that do not find each other by then would only burden the machine


def say(what, value, goal=None, met=None):
    verdict = "" if goal is None else f"   goal {goal}: {'met' if met else 'missed'}"
    print(f"  {what:<44} {value}{verdict}", flush=True)


class Live:
    def __init__(self, cluster):
        self.cluster = cluster

    def sampled(self):
        up = [a for a in self.cluster.agents if a.process]
        return up[::max(1, len(up) // SAMPLED)]

    def known(self, agents, wanted):
        """Returns True if each of AGENTS knows exactly the nodes that are WANTED of it."""
        return all(set(a.nodes()) == wanted - {a.name} for a in agents)

    def wait(self, condition, limit):
        since = time.monotonic()
        while time.monotonic() - since < limit:
            if condition():
                return time.monotonic() - since
            time.sleep(0.1)
        return None

    def names(self, agents):
        return {a.name for a in agents}

    def join(self, limit):
        up = self.names(self.cluster.agents)
        return self.wait(lambda: self.known(self.sampled(), up), limit)

    def ages(self, rounds=5):
        found = []
        for _ in range(rounds):
            for agent in self.sampled():
                found += [age / PERIOD_MS for age in agent.nodes().values()]
            time.sleep(0.3)
        return sorted(found)

    def cost(self, seconds):
        """Cores of all together, and by program in % of a core for each agent."""
        pids = {}
        for agent in self.cluster.agents:
            for pid in family(agent.process.pid):
                with open(f"/proc/{pid}/comm") as f:
                    pids[pid] = f.read().strip()
        before = {pid: used_s(pid) for pid in pids}
        since = time.monotonic()
        time.sleep(seconds)
        took = time.monotonic() - since
        by = {}
        for pid, name in pids.items():
            by[name] = by.get(name, 0) + (used_s(pid) - before[pid]) / took
        return sum(by.values()), {n: 100 * v / len(self.cluster.agents) for n, v in by.items()}

    def kill(self, part):
        agents = self.cluster.agents
        dead = agents[-max(1, int(part * len(agents))):]
        for agent in dead:
            agent.kill()
        up = self.names(agents) - self.names(dead)
        took = self.wait(lambda: self.known(self.sampled(), up), 60)
        for agent in dead:
            agent.start()
        return took

    def cut(self, seconds):
        halves = [self.cluster.agents[0::2], self.cluster.agents[1::2]]
        self.cluster.part()
        time.sleep(seconds)
        parted = all(set(a.nodes()) <= self.names(half) for half in halves for a in half[:2])
        since = time.monotonic()
        self.cluster.unite()
        up = self.names(self.cluster.agents)
        healed = self.wait(lambda: self.known(self.sampled(), up), LIMIT)
        return parted, time.monotonic() - since if healed is not None else None

    def places(self, runs):
        agent, took = self.cluster.agents[len(self.cluster.agents) // 2], []
        for _ in range(runs):
            since = time.monotonic()
            agent.ask("place", "--cpu-time", "1", "--", "true")
            took.append(1000 * (time.monotonic() - since))
        return sorted(took)


def measure(live, args):
    joined = live.join(LIMIT)
    if joined is None:
        counts = [len(a.nodes()) for a in live.sampled()]
        sys.exit(f"bench-live: after {LIMIT} s the agents know {counts} others")
    say("all know all, after the last one's start", f"{joined:.1f} s")
    time.sleep(args.settle)
    ages = live.ages()
    mean, p99 = statistics.mean(ages), ages[int(0.99 * len(ages))]
    say("age of what a node knows, mean", f"{mean:.2f} periods", "<= 2", mean <= 2)
    say("the same, p99; greatest", f"{p99:.2f}; {ages[-1]:.2f} periods")
    cores, by = live.cost(args.seconds)
    say("all agents together", f"{cores:.3f} cores", "<= 0.5", cores <= 0.5)
    for name, part in sorted(by.items()):
        say(f"  {name}, each", f"{part:.3f} % of a core")
    say("memory of all (PSS)", f"{live.cluster.pss_mb():.0f} MB")
    took = live.places(50)
    median = statistics.median(took)
    say("iocom place, median; p98", f"{median:.2f}; {took[-1]:.2f} ms", "<= 3 ms", median <= 3)
    gone = live.kill(0.02)
    say("dead nodes are excluded everywhere after", f"{gone:.1f} periods" if gone else "never", "<= 3",
        gone is not None and gone <= 3)
    if live.join(LIMIT) is None:
        sys.exit(f"bench-live: those that were killed are not known again within {LIMIT} s")
    parted, healed = live.cut(30)
    if not parted:
        say("the cluster was not parted", "the next line says nothing")
    say("parted for 30 s: all know all again after", f"{healed:.1f} periods" if healed else "never", "<= 5",
        healed is not None and healed <= 5)


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--nodes", type=int, default=200)
    options.add_argument("--seconds", type=float, default=30)
    options.add_argument("--settle", type=float, default=15)
    options.add_argument("--build", default=os.environ.get("IOCOM_BUILD", "build"))
    args = options.parse_args()
    if os.geteuid() != 0:
        sys.exit("bench-live: needs root (network namespaces): sudo make bench-live")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    cluster = Cluster(args.nodes, args.build)
    print(f"{args.nodes} agents with synthetic loads, a period of 1 s, {os.cpu_count()} processors:")
    try:
        cluster.up()
        measure(Live(cluster), args)
    finally:
        cluster.down()


if __name__ == "__main__":
    main()
