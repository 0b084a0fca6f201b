#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""How right the learned needs of real programs are: `make bench-profiles`.

Each program of two lists (programs.py) runs RUNS times as a job of its own class on a node of the
testbed.  Around the jobs of TRUTH_ROUNDS it also runs under tests/tools/truth, once before and
once after, which measures by other means than iocom.  After 1, 3 and 10 runs the class's needs are
held against the truth, which is the median of the runs before: computation, bytes read from and
written to the disk, and peak memory.  A need is right if it is within 20 % of the truth (strict),
or off by no more than what is stated for tiny values (allowance).  A program is right if all its
needs are.

The median of the truths after the jobs is judged in the same way: that is what the score of a
learner without any error would be.  What it misses is the program's or the machine's own spread.

The disk's files leave the page cache before each run, and each program has run once before the
first: programs and libraries, which are on another disk, stay in the cache.  Then a class learns
from inputs of four sizes, and what it expects of a fourth, twice as large, is held against the
truth.
"""
import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys

from programs import MIB, first, make_inputs, second

RUNS = (1, 3, 10)
TRUTH_ROUNDS = (1, 2, 3, 6, 10)
TRUTHS = 3  # at least so many make a truth
PART = 0.2
NEEDS = ("cpu_ms", "read_mb", "written_mb", "memory_mb")
# What one reading of the machine is off by, whatever the program: ticks and start-up; a block of
# the journal and of an inode table.
ALLOWED = {"cpu_ms": 5.0, "read_mb": 0.3, "written_mb": 0.3, "memory_mb": 0.5}

EVICT = """
import os, sys
fd = os.open(sys.argv[1], os.O_RDONLY)
os.system("sync -f " + sys.argv[1])
for base, _, names in os.walk(sys.argv[1]):
    for name in names:
        try:
            f = os.open(os.path.join(base, name), os.O_RDONLY)
        except OSError:
            continue
        os.posix_fadvise(f, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(f)
"""


class Bed:
    """A node of the testbed; D is a directory on its disk, where all files of the programs are."""

    def __init__(self, testbed, tool):
        self.testbed, self.tool = testbed, tool
        self.d = self.read(["sh", "-c", "echo $IOCOM_TESTBED_DISK"]).strip() + "/profiles"
        # What a program keeps in temporary files is on the disk that the truth reads, too.
        self.env = dict(os.environ, TMPDIR=self.d, SQLITE_TMPDIR=self.d)

    def run(self, command, **kw):
        return subprocess.run([self.testbed, "exec", "n1", "--", *command], check=True, text=True, **kw)

    def read(self, command, **kw):
        return self.run(command, stdout=subprocess.PIPE, **kw).stdout

    def evict(self):
        self.run(["python3", "-c", EVICT, self.d])

    def truth(self, command):
        self.evict()
        seen = json.loads(self.read([self.tool, self.d, *command], env=self.env))
        if seen.pop("status"):
            sys.exit(f"profiles: {command} failed")
        return seen

    def job(self, name, command):
        self.evict()
        self.run(["iocom", "run", "--policy", "nlb", "--class", name, "--", *command],
                 stdout=subprocess.DEVNULL, env=self.env)

    def learned(self, name, size_mb=None):
        more = [] if size_mb is None else ["--input", f"{size_mb}M"]
        document = json.loads(self.read(["iocom", "profile", "show", name, "--json", *more]))
        needs = document["profiles"][0]["needs"]
        value = {n: needs[n]["value"] for n in NEEDS}
        value["read_mb"] += needs["fault_mb"]["value"]
        return value

    def jobs(self, name):
        """What its runs measured one by one, the newest first."""
        document = json.loads(self.read(["iocom", "profile", "export", "--class", name]))
        runs = [r["needs"] for r in document["profiles"][0]["recent"]]
        return [{n: r[n] + (r["fault_mb"] if n == "read_mb" else 0) for n in NEEDS} for r in runs]


def median(seen):
    return {n: statistics.median(s[n] for s in seen) for n in NEEDS}


def measure(bed, name, command, runs):
    """Runs one program; returns {runs: what is known then}."""
    before, after, known = [], [], {}
    for done in range(1, runs + 1):
        if done in TRUTH_ROUNDS:
            before.append(bed.truth(command))
        bed.job(name, command)
        if done in TRUTH_ROUNDS:
            after.append(bed.truth(command))
        if done in RUNS:
            known[done] = {"learned": bed.learned(name), "jobs": bed.jobs(name)}
    for done, what in known.items():
        n = max(TRUTHS, sum(r <= done for r in TRUTH_ROUNDS))
        what.update(truth=median(before[:n]), again=median(after[:n]), all=before[:n] + after[:n])
    return known


def off(need, value, truth):
    """(strictly right, right with the allowance, the text of the difference)"""
    difference = value - truth
    strict = abs(difference) <= PART * truth or difference == 0
    part = f"{100 * difference / truth:+.0f}%" if truth > 0 else ("0" if not difference else f"{difference:+.2g}")
    return strict, strict or abs(difference) <= ALLOWED[need], part


def judge(what, which):
    judged = {n: off(n, what[which][n], what["truth"][n]) for n in NEEDS}
    return judged, all(j[0] for j in judged.values()), all(j[1] for j in judged.values())


def reason(name, need, what):
    """Why a need is missed: where the learned value is among the runs of the truth."""
    seen = [s[need] for s in what["all"]]
    value, truth = what["learned"][need], what["truth"][need]
    if not off(need, what["again"][need], truth)[0]:
        why = "the truth misses itself"
    elif min(seen) <= value <= max(seen):
        why = "within the truth's own spread"
    else:
        why = "outside the truth's spread"
    jobs = [s[need] for s in what["jobs"]]
    return (f"    {name} {need}: learned {value:.3f} from {min(jobs):.3f} to {max(jobs):.3f}; "
            f"truth {truth:.3f}, again {what['again'][need]:.3f}, {len(seen)} runs {min(seen):.3f} to {max(seen):.3f}: {why}")


def table(title, rows, runs):
    print(f"\n{title}, after {runs} run{'s' if runs > 1 else ''} (truth, and the learned need's difference):")
    print(f"  {'PROGRAM':11} " + " ".join(f"{n:>20}" for n in NEEDS) + "  RIGHT   TRUTH AGAIN")
    sums = dict.fromkeys(("strict", "allowed", "again", "again_allowed", "needs_strict", "needs_allowed"), 0)
    reasons = []
    for name, what in rows:
        judged, strict, allowed = judge(what, "learned")
        _, again, again_allowed = judge(what, "again")
        for key, value in (("strict", strict), ("allowed", allowed), ("again", again), ("again_allowed", again_allowed),
                           ("needs_strict", sum(j[0] for j in judged.values())),
                           ("needs_allowed", sum(j[1] for j in judged.values()))):
            sums[key] += value
        reasons += [reason(name, n, what) for n, j in judged.items() if not j[0]]
        cells = " ".join(f"{what['truth'][n]:12.2f} {j[2]:>7}" for n, j in judged.items())
        print(f"  {name:11} {cells}  {'yes' if strict else 'allowed' if allowed else 'NO':7}"
              f" {'yes' if again else 'allowed' if again_allowed else 'NO'}")
    total = len(rows) * len(NEEDS)
    print(f"  within 20 %: {sums['strict']} of {len(rows)} programs ({sums['needs_strict']} of {total} needs); "
          f"with the allowances: {sums['allowed']} of {len(rows)} ({sums['needs_allowed']} of {total})\n"
          f"  truth against itself: {sums['again']} of {len(rows)} programs; "
          f"with the allowances: {sums['again_allowed']} of {len(rows)}")
    if reasons:
        print("  missed:\n" + "\n".join(reasons))
    return {"list": title, "runs": runs, "programs": len(rows), "needs": total, **sums}


def sizes(bed):
    """What sha256sum's class expects of an input that is twice as large as any it saw."""
    for n in (8, 16, 24, 32):
        bed.job("by-size", ["sha256sum", f"{bed.d}/size{n}"])
    what = {"learned": bed.learned("by-size", 64 * MIB / 1e6), "jobs": bed.jobs("by-size")}
    seen = [bed.truth(["sha256sum", f"{bed.d}/size64"]) for _ in range(2 * TRUTHS)]
    what.update(truth=median(seen[::2]), again=median(seen[1::2]), all=seen)
    return table("By the size of the input: sha256sum of 64 MiB", [("by-size", what)], 4)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--build", default="build")
    p.add_argument("--testbed", default="tests/testbed/testbed")
    p.add_argument("--programs", help="only these, with commas between")
    p.add_argument("--runs", type=int, default=max(RUNS), help="runs of each program")
    p.add_argument("--out", help="write the results to this file as JSON")
    args = p.parse_args()
    bed = Bed(args.testbed, os.path.abspath(f"{args.build}/tests/tools/truth"))
    bed.run(["mkdir", "-p", bed.d])
    bed.run([sys.executable, "-B", os.path.abspath(__file__), "--inputs", bed.d])
    lists = {}
    for title, programs in (("First list", first(bed.d)), ("Second list", second(bed.d))):
        lists[title] = {}
        for name, command in programs:
            if not shutil.which(command[0]) or (args.programs and name not in args.programs.split(",")):
                continue
            bed.truth(command)
            lists[title][name] = measure(bed, name, command, args.runs)
            print(f"  {name}: {args.runs} runs", file=sys.stderr)
    print(f"Allowances for tiny values: {', '.join(f'{n} {a}' for n, a in ALLOWED.items())}")
    results = []
    for done in RUNS:
        rows = {title: [(n, known[done]) for n, known in programs.items() if done in known]
                for title, programs in lists.items()}
        results += [table(title, r, done) for title, r in rows.items() if r]
    print()
    results.append(sizes(bed))
    if args.out:
        with open(args.out, "w", encoding="utf-8") as out:
            json.dump({"results": results, "lists": lists}, out, indent=1)


if __name__ == "__main__":
    if len(sys.argv) == 3 and sys.argv[1] == "--inputs":
        make_inputs(sys.argv[2])
    else:
        main()
