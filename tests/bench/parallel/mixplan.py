# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""The jobs of the mix: five parallel applications (tests/apps) and two of one process, which compute
or read their disk.  Seed and repetition give kinds, homes and times of arrival; nothing else does."""
import random

CORES = 0.3       # of a node
DISK_MB_PER_S = 12
HOMES = {"n1": 0.35, "n3": 0.35}  # the other nodes share the rest
BLOCK_KB = 128


class Kind:
    def __init__(self, name, tasks, compute_ms=0.0, kib=0, messages=1, phases=1, cpu_s=0.0, disk_mb=0):
        self.name, self.tasks, self.compute_ms, self.kib = name, tasks, compute_ms, kib
        self.messages, self.phases = messages, phases
        self.cpu_s = cpu_s if cpu_s else compute_ms * phases / 1e3  # of one task
        self.disk_mb = disk_mb

    @property
    def parallel(self):
        return self.tasks > 1

    def argv(self, build, disk):
        """The program with its arguments; MPI is not started here."""
        work = f"{build}/tests/tools/work"
        if self.name == "cpu":
            return [work, "cpu", f"{self.cpu_s:g}"]
        if self.name == "disk":
            return [work, "io", f"{disk}/data", str(int(self.disk_mb * 1000 // BLOCK_KB)), "128", "7"]
        return [f"{build}/tests/apps/openmpi/{self.name}", "--compute", f"{self.compute_ms:g}",
                "--bytes", str(self.kib << 10), "--messages", str(self.messages),
                "--phases", str(self.phases)]


KINDS = {k.name: k for k in (
    Kind("render", 5, compute_ms=40, kib=128, phases=8),
    Kind("molecular", 4, compute_ms=10, kib=256, phases=30),
    Kind("semiconductor", 4, compute_ms=40, kib=512, phases=16),
    Kind("reaction", 4, compute_ms=10, kib=256, phases=30),
    Kind("vortex", 4, compute_ms=8, kib=128, phases=30),
    Kind("cpu", 1, cpu_s=1.5),
    Kind("disk", 1, cpu_s=0.05, disk_mb=40))}
PARALLEL = [k for k, v in KINDS.items() if v.parallel]


def jobs(seed, repetition, count, nodes, gap_s):
    """[{number, at, kind, home}]: a deck of all kinds is dealt again and again, so that each is there
    nearly as often; gaps are exponential."""
    draw = random.Random(f"{seed} {repetition}")
    weights = [HOMES.get(n, (1 - sum(HOMES.values())) / max(1, len(nodes) - len(HOMES))) for n in nodes]
    out, deck, at = [], [], 0.0
    for number in range(count):
        if not deck:
            deck = list(KINDS)
            draw.shuffle(deck)
        out.append(dict(number=number, at=round(at, 3), kind=deck.pop(),
                        home=draw.choices(nodes, weights)[0]))
        at += draw.expovariate(1 / gap_s)
    return out


def order(seed, repetition, policies):
    """The policies of a repetition in an order of its own."""
    out = list(policies)
    random.Random(f"order {seed} {repetition}").shuffle(out)
    return out


# --- communication loads, MODEL 1.7 ------------------------------------------------------


def task_com_ms(sent, mb_per_s):
    """R_COM of each task: SENT[a][b] bytes go from a to b; a link carries as much each way at the same
    time, so that the busier direction counts."""
    tasks = len(sent)
    out = []
    for t in range(tasks):
        away = sum(sent[t])
        here = sum(sent[other][t] for other in range(tasks))
        out.append(max(away, here) / mb_per_s / 1e3)
    return out


def node_com_ms(com_ms, nodes):
    """(5) and (6): {node: L_COM} of one job whose task T, with R_COM of COM_MS[T], is on NODES[T]."""
    load, master = {}, nodes[0]
    for r_com, node in list(zip(com_ms, nodes))[1:]:
        if node != master:
            load[node] = load.get(node, 0.0) + r_com
            load[master] = load.get(master, 0.0) + r_com
    return load
