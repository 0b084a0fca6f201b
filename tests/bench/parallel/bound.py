# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""A chooser of the benchmark's own that knows everything: each job's computation, who sends how much to
whom, and what has been started where.  It is no policy, but shows what a policy could gain.

A placement P of a job takes, at node n, the time of its computation there C(n) and of its port's busier
direction P(n), both beside what the others there have left, of which at most as much as its own comes
before it:

	response = max over n of  C(n) + min(C(n), left_cpu(n)) + P(n) + min(P(n), left_port(n))

The price of P is response / alone, and for each other job the time that it is delayed by in turn / its
alone.  Tried are: all tasks at one node, at two, and a node for each.
"""
import itertools

import mixplan


class Work:
    """What a job does at each node under a placement, in seconds alone."""

    def __init__(self, kind, sent, nodes, mb_per_s):
        self.cpu, self.port = {}, {}
        for node in nodes:
            self.cpu[node] = self.cpu.get(node, 0.0) + kind.cpu_s / mixplan.CORES
        for node in self.cpu:
            here = [t for t in range(kind.tasks) if nodes[t] == node]
            there = [t for t in range(kind.tasks) if nodes[t] != node]
            out = sum(sent[a][b] for a in here for b in there)
            back = sum(sent[a][b] for a in there for b in here)
            self.port[node] = max(out, back) / mb_per_s / 1e6
        self.alone_s = max(self.cpu[n] + self.port[n] for n in self.cpu)


class Running:
    def __init__(self, work, began, alone_s):
        self.work, self.began, self.alone_s = work, began, alone_s

    def left(self, now):
        """The share of its work that it has left, if nothing hinders it; never none."""
        return max(0.1, 1 - (now - self.began) / max(self.work.alone_s, 1e-9))


def price(work, alone_s, running, now):
    response, harm = 0.0, 0.0
    before = {n: [0.0, 0.0] for n in work.cpu}
    for other in running:
        share, delay = other.left(now), 0.0
        for n in work.cpu:
            if n not in other.work.cpu:
                continue
            cpu, port = other.work.cpu[n] * share, other.work.port[n] * share
            before[n][0] += cpu
            before[n][1] += port
            delay = max(delay, min(cpu, work.cpu[n]) + min(port, work.port[n]))
        harm += delay / other.alone_s
    for n in work.cpu:
        response = max(response, work.cpu[n] + min(work.cpu[n], before[n][0]) +
                       work.port[n] + min(work.port[n], before[n][1]))
    return response / alone_s + harm


def candidates(tasks, nodes, busy):
    """Placements, as lists of a node for each task.  BUSY(n) orders the nodes for the widest one."""
    for n in nodes:
        yield [n] * tasks
    if tasks > 2:
        for a, b in itertools.permutations(nodes, 2):
            half = (tasks + 1) // 2
            yield [a] * half + [b] * (tasks - half)
    if 1 < tasks <= len(nodes):
        yield sorted(nodes, key=busy)[:tasks]


def choose(kind, sent, nodes, running, mb_per_s, now):
    """(placement, its Work, the job's time alone at its best placement)"""
    def busy(n):
        return sum((r.work.cpu.get(n, 0.0) + r.work.port.get(n, 0.0)) * r.left(now) for r in running)

    tried = [(p, Work(kind, sent, p, mb_per_s)) for p in candidates(kind.tasks, nodes, busy)]
    alone_s = max(min(w.alone_s for _, w in tried), 1e-9)
    placed, work = min(tried, key=lambda t: price(t[1], alone_s, running, now))
    return placed, work, alone_s
