# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""What bench-effect is to do: layouts, rates, passes in their order, and the jobs of a pass.

The jobs of a pass depend on the seed, the set, the layout, the rate and the repetition only, never
on the chooser; measured times enter as one factor that stretches the arrival times.
"""
from collections import namedtuple

import choosers
import estimates
import programs

CORES, MEMORY_MB = 0.3, 600
# MB/s of the nodes' disks.  `heldout` is for a last look: nothing may be tuned to it.
LAYOUTS = {
    "heterogeneous": [20, 20, 12, 12, 6, 4],
    "homogeneous": [12] * 6,
    "heldout": [8, 3, 16, 10, 16, 8],
}
# The share of what the cluster could carry.
RATES = {"low": 0.25, "middle": 0.45, "high": 0.65}
# A pass is void if others take more of the machine than this.  On a virtual machine that does
# nothing else, stolen time and its own services take 3 to 6 %.
FOREIGN_MAX = 0.1
# 70 % of all jobs are submitted at two nodes.
BUSY, BUSY_SHARE = (0, 2), 0.7

Cell = namedtuple("Cell", "layout rate")
Pass = namedtuple("Pass", "cell repetition chooser")
CORE_CELLS = [Cell("heterogeneous", "low"), Cell("heterogeneous", "middle"),
              Cell("heterogeneous", "high"), Cell("homogeneous", "middle")]


def cells(layouts, rates, full):
    """The cells: the core ones, all of them (FULL), or those that the lists name."""
    if not layouts and not rates and not full:
        return CORE_CELLS
    for names, known, what in ((layouts, LAYOUTS, "LAYOUTS"), (rates, RATES, "RATES")):
        wrong = [n for n in names or [] if n not in known]
        if wrong:
            raise ValueError(f"{what} takes {', '.join(known)}, not '{wrong[0]}'")
    return [Cell(l, r) for l in layouts or LAYOUTS for r in rates or RATES]


def passes(some_cells, names, repetitions, seed):
    """All passes in their order: layout by layout, since each needs a cluster of its own; within
    one, repetition by repetition, so that slow changes of the machine meet all choosers alike."""
    out = []
    for layout in dict.fromkeys(c.layout for c in some_cells):
        for repetition in range(1, repetitions + 1):
            for cell in (c for c in some_cells if c.layout == layout):
                order = list(names)
                estimates.generator(seed, "order", *cell, repetition).shuffle(order)
                out += [Pass(cell, repetition, name) for name in order]
    return out


def home(rng, nodes):
    """The index of a job's home node."""
    busy = [i for i in BUSY if i < nodes]
    others = [i for i in range(nodes) if i not in busy]
    return rng.choice(busy if not others or rng.random() < BUSY_SHARE else others)


def jobs(cell, repetition, count, names, nodes, seed, gap_s):
    """The jobs of a pass: number, at (s), program, variant, home ("n1")."""
    rng = estimates.generator(seed, "jobs", *cell, repetition, *sorted(names))
    weights = [programs.PROGRAMS[n][1] for n in names]
    seen, out = {}, []
    for number, at in enumerate(estimates.poisson_arrivals(rng, count)):
        program = rng.choices(names, weights)[0]
        variant = seen.get(program, 0) % programs.VARIANTS
        seen[program] = seen.get(program, 0) + 1
        out.append(dict(number=number, at=at * gap_s, program=program, variant=variant,
                        home=f"n{home(rng, nodes) + 1}"))
    return out


def chooser_names(text, accepted):
    """CHOOSERS: core, all, or a list.  ACCEPTED: the policies that the agents take."""
    known = choosers.names(accepted)
    if text == "core":
        return [n for n in choosers.CORE if n in known]
    if text == "all":
        return known
    names = text.split(",")
    wrong = [n for n in names if n not in known]
    if wrong or len(set(names)) < len(names):
        raise ValueError(f"CHOOSERS takes core, all, or a list of different ones of "
                         f"{', '.join(known)}; not '{text}'")
    return names
