# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""How much memory a process has, for the benchmarks."""


def rollup_kib(pid):
    """Returns /proc/PID/smaps_rollup as {"Rss": KiB, "Pss": KiB, "Private_Dirty": KiB, ...}."""
    with open(f"/proc/{pid}/smaps_rollup") as rollup:
        next(rollup)  # the range of addresses
        return {line.split(":")[0]: int(line.split()[1]) for line in rollup}
