# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Who decides where a job runs: a policy of the agents, or a simple chooser of the benchmark's own,
which names the node (iocom run --node) and knows exactly which jobs run where.

The chooser ps-estimate knows, too, what each program needs.  It takes a node for two servers, its
processors and its disk, that each share themselves equally among the jobs there.  A job alone on a
node takes T = cpu_s / cores + disk_mb / speed and spends the share c of T computing, d = 1 - c at
the disk.  Two jobs with rests of R1 and R2 slow each other down while both run:

	delay of each = (c1 c2 + d1 d2) min(R1, R2)

exact for two jobs of one resource.  The node with the least sum of slowdowns is taken: the own
(T + delays) / (T at home), and each other job's delay / its T at its home.
"""
# The policies of balancer/rules/policy.c; the agents refuse some.
POLICIES = ["nlb", "cpu-re", "mem-re", "cm", "io", "io-re", "iocm-re", "iocm-re-hom", "iocm-pm",
            "wal", "wal-fc", "com", "bs", "zatti-binary", "zatti-real", "random", "threshold",
            "shortest", "cpu-pm", "mem-pm", "io-pm", "wal-pm", "least-delay"]
# With needs told by options, and with jobs of classes that never ran before.
VARIANTS = {f"{p}-{how}": p for p in ("iocm-re", "least-delay") for how in ("told", "first")}
SIMPLE = ["always-home", "random-node", "round-robin", "fewest-jobs", "fewest-per-speed",
          "ps-estimate"]
CORE = ["nlb", "cpu-re", "iocm-re", "fewest-jobs", "fewest-per-speed", "ps-estimate"]


def names(accepted):
    """All choosers, if the agents take the policies ACCEPTED."""
    return ([p for p in POLICIES if p in accepted] +
            [v for v, p in VARIANTS.items() if p in accepted] + SIMPLE)


def policy(name):
    """The agents' policy of a chooser; None: the benchmark chooses."""
    return VARIANTS.get(name, name if name in POLICIES else None)


class Node:
    """A node as the benchmark's choosers see it: its running jobs with what is left of them."""

    def __init__(self, name, cores, disk_mb_per_s, memory_mb):
        self.name, self.cores = name, cores
        self.disk_mb_per_s, self.memory_mb = disk_mb_per_s, memory_mb
        self.running = {}  # job number -> Running
        self.at = 0.0

    def alone_s(self, need):
        return need["cpu_s"] / self.cores + need["disk_mb"] / self.disk_mb_per_s

    def computing(self, need):
        """The share of its time alone that a job computes here."""
        alone = self.alone_s(need)
        return need["cpu_s"] / self.cores / alone if alone > 0 else 1.0

    def advance(self, now):
        """Lets the time since the last call pass: a job among others goes on more slowly."""
        passed, self.at = now - self.at, now
        jobs = list(self.running.values())
        cpu = sum(j.computing for j in jobs)
        disk = sum(1 - j.computing for j in jobs)
        for j in jobs:
            c, d = j.computing, 1 - j.computing
            stretch = c * (1 + cpu - c) + d * (1 + disk - d)
            j.left_s = max(0.0, j.left_s - passed / stretch)

    def begin(self, number, need, home_alone_s):
        self.running[number] = Running(self.alone_s(need), self.computing(need), home_alone_s,
                                       need["mem_mb"])

    def end(self, number):
        self.running.pop(number, None)

    def price(self, need, home_alone_s):
        """The sum of slowdowns that NEED here costs: its own and what it adds to the others."""
        alone, c = self.alone_s(need), self.computing(need)
        own, others = alone, 0.0
        for j in self.running.values():
            delay = (c * j.computing + (1 - c) * (1 - j.computing)) * min(alone, j.left_s)
            own += delay
            others += delay / j.home_alone_s
        return own / home_alone_s + others

    def has_room(self, need):
        return sum(j.mem_mb for j in self.running.values()) + need["mem_mb"] <= self.memory_mb


class Running:
    def __init__(self, left_s, computing, home_alone_s, mem_mb):
        self.left_s, self.computing = left_s, computing
        self.home_alone_s, self.mem_mb = home_alone_s, mem_mb


class Simple:
    """A simple chooser over NODES.  NEEDS: {program: {cpu_s, disk_mb, mem_mb}}."""

    def __init__(self, name, nodes, needs, rng):
        if name not in SIMPLE:
            raise ValueError(f"no chooser '{name}'")
        self.name, self.nodes, self.needs, self.rng = name, nodes, needs, rng
        self.turn = 0

    def least(self, job, value):
        """The node with the least value: home if it is one of them, else any of them."""
        values = [(value(n), n) for n in self.nodes]
        least = min(v for v, _ in values)
        best = [n for v, n in values if v <= least * (1 + 1e-9)]
        at_home = [n for n in best if n.name == job["home"]]
        return at_home[0] if at_home else self.rng.choice(best)

    def choose(self, job, now):
        """The name of the node for JOB, which counts as running there from NOW."""
        for n in self.nodes:
            n.advance(now)
        home = next(n for n in self.nodes if n.name == job["home"])
        need = self.needs[job["program"]]
        home_alone_s = home.alone_s(need)
        if self.name == "always-home":
            node = home
        elif self.name == "random-node":
            node = self.rng.choice(self.nodes)
        elif self.name == "round-robin":
            node = self.nodes[self.turn % len(self.nodes)]
            self.turn += 1
        elif self.name == "fewest-jobs":
            node = self.least(job, lambda n: len(n.running))
        elif self.name == "fewest-per-speed":
            # With the job itself, so that of two empty nodes the faster is taken.
            node = self.least(job, lambda n: (len(n.running) + 1) / n.disk_mb_per_s)
        else:
            roomy = [n for n in self.nodes if n.has_room(need)] or self.nodes
            prices = {n.name: n.price(need, home_alone_s) for n in roomy}
            node = self.least(job, lambda n: prices.get(n.name, float("inf")))
        node.begin(job["number"], need, home_alone_s)
        return node.name

    def ended(self, job, node_name, now):
        for n in self.nodes:
            n.advance(now)
            if n.name == node_name:
                n.end(job["number"])
