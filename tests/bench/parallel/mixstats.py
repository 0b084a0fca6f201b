# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""The statistics of the mix: ratios of means over the same jobs under two policies."""
import math
import random

# 97.5 % quantiles of Student's t, by degrees of freedom; then the normal one.
STUDENT = {1: 12.706, 2: 4.303, 3: 3.182, 4: 2.776, 5: 2.571, 6: 2.447, 7: 2.365, 8: 2.306, 9: 2.262}
NORMAL = 1.96
RESAMPLES = 4000


def mean(values):
    return sum(values) / len(values) if values else float("nan")


def interval_of_passes(pairs):
    """The mean ratio of PAIRS (one a pass: the means under two policies) and its 95 % interval, by
    Student's t on the logarithms; with one pass there is none."""
    logs = [math.log(a / b) for a, b in pairs]
    center = mean(logs)
    if len(logs) < 2:
        return math.exp(center), float("nan"), float("nan")
    spread = math.sqrt(sum((v - center) ** 2 for v in logs) / (len(logs) - 1) / len(logs))
    half = STUDENT.get(len(logs) - 1, NORMAL) * spread
    return math.exp(center), math.exp(center - half), math.exp(center + half)


def interval_of_jobs(pairs, seed=1):
    """The ratio of the means of PAIRS (one a job: its slowdowns under two policies) and its 95 %
    interval by a bootstrap that draws jobs, each with both numbers.  Jobs of one pass influence each
    other, so that the interval is rather too narrow: the passes' own is the other bound."""
    if not pairs:
        return (float("nan"),) * 3
    made, draw = [], random.Random(seed)
    for _ in range(RESAMPLES):
        drawn = draw.choices(pairs, k=len(pairs))
        made.append(sum(a for a, _ in drawn) / sum(b for _, b in drawn))
    made.sort()
    return (sum(a for a, _ in pairs) / sum(b for _, b in pairs),
            made[int(0.025 * RESAMPLES)], made[int(0.975 * RESAMPLES) - 1])


def slowdown(took_s, alone_s):
    """How much longer a job took than at the better of its placements, alone."""
    return took_s / min(alone_s)


def gain(base, new):
    """MODEL 6.0: base/new - 1."""
    return base / new - 1


def reduction(base, new):
    """MODEL 6.0: 1 - new/base."""
    return 1 - new / base
