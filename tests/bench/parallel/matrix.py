#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Who of a parallel job sent how much to whom: as measured in the kernel, beside what its ranks counted.

usage: matrix.py --build DIR [--short]

Each of the five applications as one job of 8 ranks on 4 emulated nodes, by `iocom run --mpi`; then
`iocom profile --matrix`.  Only pairs over links count, because ranks of a node share memory.  The ranks
count the bytes of their messages; TCP carries the MPI's headers, too, so the measured bytes are never
fewer.  MPICH's UCX takes nodes of one kernel for one machine and may hang at its end when it is told to
use TCP: such a job is ended when all is sent.
"""
import argparse
import csv
import io
import json
import os
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.append(os.path.join(HERE, "..", "..", "effect"))
os.environ.setdefault("IOCOM_TESTBED_MARK", "iocom-matrix")
import bed as effect_bed  # noqa: E402

NODES, RANKS, GOAL = 4, 8, 1.0
APPS = ["render", "molecular", "semiconductor", "reaction", "vortex"]
LEAST = 100_000  # of smaller pairs the headers are a large part
TCP = ["env", "UCX_TLS=tcp,self", "UCX_NET_DEVICES=eth0"]


class Bed(effect_bed.Bed):
    def up(self):
        self.testbed("down")
        self.testbed("up", "--nodes", str(NODES), "--disk", "20", "--mem", "2000")

    def do(self, *argv, limit=120):
        return subprocess.run(["timeout", "-k", "5", str(limit), *self.argv("n1", *argv)], env=self.env, cwd="/",
                              stdin=subprocess.DEVNULL, text=True, capture_output=True, start_new_session=True)


def counted(prefix):
    """{(from, to): bytes} that the ranks counted."""
    found = {}
    for rank in range(RANKS):
        with open(f"{prefix}.{rank}", encoding="ascii") as f:
            for line in f:
                words = line.split()
                if words[0] != "times":
                    found[int(words[0]), int(words[1])] = int(words[2])
    return found


def measured(bed, iocom):
    jobs = json.loads(bed.do(iocom, "jobs", "--all", "--limit", "0", "--json").stdout)["jobs"]
    last = max((j for j in jobs if j.get("tasks", 0) >= 1), key=lambda j: j["submit_ns"])["job"]
    done = bed.do(iocom, "profile", "--matrix", "--json", last)
    pattern = json.loads(done.stdout)["pattern"]["name"]
    table = bed.do(iocom, "profile", "--matrix", "--csv", last).stdout
    rows = csv.DictReader(io.StringIO(table))
    return pattern, {(int(r["from"]), int(r["to"])): int(r["bytes"]) for r in rows if int(r["bytes"]) > 0}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", required=True)
    parser.add_argument("--short", action="store_true", help="Open MPI only")
    options = parser.parse_args()
    build = os.path.abspath(options.build)
    folder = tempfile.mkdtemp(prefix="iocom-matrix-", dir="/var/tmp")
    bed, failed = Bed(build), 0
    try:
        bed.up()
        print(f"{'MPI':9}{'application':15}{'pairs':>6}{'counted':>10}{'in all':>9}{'worst':>9}  pattern   "
              f"goal: 0 to {GOAL:g} %")
        for mpi in ("openmpi",) if options.short else ("openmpi", "mpich"):
            if not shutil.which(f"mpicc.{mpi}"):
                print(f"{mpi:9}not installed")
                continue
            for app in APPS:
                prefix = f"{folder}/{mpi}.{app}"
                bed.do(*(TCP if mpi == "mpich" else []), f"{build}/iocom", "run", "--mpi", "-n", str(RANKS), "--per-node",
                       str(RANKS // NODES), "--oversubscribe", "--", f"{build}/tests/apps/{mpi}/{app}", "--bytes",
                       "200000", "--phases", "10", "--compute", "10", "--count", prefix,
                       limit=20 if mpi == "mpich" else 120)
                try:
                    truth = counted(prefix)
                    pattern, seen = measured(bed, f"{build}/iocom")
                except (OSError, ValueError, KeyError) as why:
                    print(f"{mpi:9}{app:15}failed: {why}")
                    failed += 1
                    continue
                pairs = [p for p in truth if truth[p] >= LEAST and p in seen]
                off = [100 * (seen[p] - truth[p]) / truth[p] for p in pairs] or [float("nan")]
                whole = sum(truth[p] for p in pairs)
                mean = 100 * (sum(seen[p] for p in pairs) - whole) / max(whole, 1)
                worst = max(off, key=abs)
                failed += not all(0 <= o <= GOAL for o in off)
                print(f"{mpi:9}{app:15}{len(pairs):6}{whole / 1e6:7.1f} MB{mean:+8.3f}%{worst:+8.3f}%  {pattern}",
                      flush=True)
    finally:
        bed.testbed("down")
        shutil.rmtree(folder, ignore_errors=True)
    print("met" if not failed else f"missed: {failed} rows")
    return 0


if __name__ == "__main__":
    sys.exit(main())
