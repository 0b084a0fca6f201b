# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""The statistics of bench-effect.

Data are passes; a pass is a list of values, one a job (or of pairs).  An interval comes from a
bootstrap in two steps: passes are drawn with replacement, then jobs within each drawn pass.
"""
import math
import random


def mean(values):
    return math.fsum(values) / len(values)


def geometric_mean(values):
    return math.exp(math.fsum(math.log(v) for v in values) / len(values))


def quantile(values, q):
    """Linear interpolation between the closest ranks, as numpy's default: q of 0 is the least."""
    ordered = sorted(values)
    at = q * (len(ordered) - 1)
    low = math.floor(at)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (at - low)


def median(values):
    return quantile(values, 0.5)


def p95(values):
    return quantile(values, 0.95)


def bootstrap(passes, statistics, rng, rounds=1000, share=0.95):
    """Returns for each of STATISTICS (functions of a flat list) (value, low, high); the values are
    those of all passes together.  No passes, or only empty ones: an empty list."""
    passes = [p for p in passes if p]
    if not passes:
        return []
    flat = [v for p in passes for v in p]
    drawn = [[] for _ in statistics]
    for _ in range(rounds):
        sample = []
        for p in rng.choices(passes, k=len(passes)):
            sample += rng.choices(p, k=len(p))
        for row, statistic in zip(drawn, statistics):
            row.append(statistic(sample))
    tail = (1 - share) / 2
    return [(statistic(flat), quantile(row, tail), quantile(row, 1 - tail))
            for row, statistic in zip(drawn, statistics)]


def paired_ratios(ours, theirs):
    """OURS and THEIRS: {(pass, job): slowdown}.  Returns the ratios of the jobs that both have, as
    one list a pass."""
    passes = {}
    for (number, job), value in sorted(ours.items()):
        if (number, job) in theirs:
            passes.setdefault(number, []).append(value / theirs[number, job])
    return list(passes.values())


def poisson_arrivals(rng, count):
    """Arrival times of a Poisson process with a mean gap of 1; the first gap counts."""
    at, times = 0.0, []
    for _ in range(count):
        at += rng.expovariate(1.0)
        times.append(at)
    return times


def mean_gap_s(needs, weights, cores, disks_mb_per_s, share):
    """The mean time between arrivals at which jobs ask for SHARE of what the cluster's scarcer
    resource could carry.  NEEDS: {program: {cpu_s, disk_mb}}; WEIGHTS: {program: weight}."""
    total = sum(weights.values())
    cpu_s = sum(needs[p]["cpu_s"] * w for p, w in weights.items()) / total
    disk_mb = sum(needs[p]["disk_mb"] * w for p, w in weights.items()) / total
    return max(cpu_s / sum(cores), disk_mb / sum(disks_mb_per_s)) / share


def generator(*words):
    """A random generator whose seed is these words: the same on every machine."""
    return random.Random("/".join(str(w) for w in words))
