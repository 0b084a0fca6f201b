#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""A mix of parallel jobs under five policies, at several link speeds.

usage: mix.py --build DIR [--out DIR] [--short] [--net MBIT,...] [--repetitions N] [--jobs N]
              [--policies P,...] [--way run|rsh] [--spin] [--gap S] [--seed S]
       mix.py --report MIX.JSON   prints the tables of an earlier run again

Six emulated nodes (0.3 core, a disk of 12 MB/s, links of the given speed).  Each kind of job runs
alone, one task a node and all at one node: the better of the two is what its slowdown is relative
to.  Then each repetition has jobs of its own, the same under each policy, whose order changes.
All results are checked: a job with another result than alone is a failure of the benchmark.

The row `bound` is no policy: a chooser of the benchmark that knows everything (bound.py).

Without --short: 10, 20, 100 and 1,000 Mbit/s, three repetitions, about 90 minutes; --short: 20 Mbit/s,
one repetition, 7 minutes.  Numbers of a busy machine are no numbers: what others took of its processors
stands beside them.
"""
import argparse
import concurrent.futures
import json
import os
import shutil
import signal
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE]
sys.path.append(os.path.join(HERE, "..", "..", "effect"))
os.environ.setdefault("IOCOM_TESTBED_MARK", "iocom-parallel")
import bed as effect_bed  # noqa: E402
import foretold  # noqa: E402
import mixplan  # noqa: E402
import mixreport  # noqa: E402
import mixstats  # noqa: E402
import ways  # noqa: E402

NODES = 6
MEMORY_MB = 600
POLICIES = ["cpu-re", "mem-re", "io-re", "com", "least-delay", "bound"]


class Bed(effect_bed.Bed):
    def up(self, mbit):
        self.testbed("down")
        self.testbed("up", "--nodes", str(NODES), "--disk", str(mixplan.DISK_MB_PER_S), "--disk-size", "128",
                     "--cpu", str(mixplan.CORES), "--mem", str(MEMORY_MB), "--net", f"{mbit}mbit")
        status = json.loads(self.testbed("status", "--json"))
        self.nodes, self.disk = status["nodes"], status["disk_dir"]
        self.each(lambda n: self.on(n, self.work, "make", f"{self.disk}/data", "48"))

    def names(self):
        return [n["name"] for n in self.nodes]


def say(text):
    print(f"{time.strftime('%H:%M:%S')} {text}", flush=True)


def counts(prefix, tasks):
    """The matrix of bytes that the ranks wrote by --count."""
    sent = [[0] * tasks for _ in range(tasks)]
    for rank in range(tasks):
        with open(f"{prefix}.{rank}", encoding="ascii") as f:
            for line in f:
                words = line.split()
                if words[0] != "times":
                    sent[int(words[0])][int(words[1])] = int(words[2])
    return sent


def alone(bed, way, scratch):
    """{kind: {spread_s, packed_s, result, sent}}: each kind alone."""
    out, names = {}, bed.names()
    for kind in mixplan.KINDS.values():
        row, results = {}, set()
        for how, nodes in (("spread_s", names[:kind.tasks]), ("packed_s", names[:1] * kind.tasks)):
            if how == "packed_s" and not kind.parallel:
                row[how] = row["spread_s"]
                continue
            prefix = os.path.join(scratch, f"count.{kind.name}")
            began = time.monotonic()
            said = way.start_at(kind, nodes, ["--count", prefix] if kind.parallel else [])
            row[how] = time.monotonic() - began
            results.add(said.strip())
        if kind.parallel and len(results) != 1:
            raise effect_bed.Broken(f"{kind.name} has two results: {sorted(results)}")
        row["result"] = results.pop()
        row["sent"] = counts(prefix, kind.tasks) if kind.parallel else [[0]]
        way.learn(kind, row["sent"])
        say(f"  alone: {kind.name:14} {row['spread_s']:6.2f} s one task a node"
            + (f", {row['packed_s']:6.2f} s all at one" if kind.parallel else ""))
        out[kind.name] = row
    return out


def one_pass(way, jobs, policy, alone_rows):
    """Runs JOBS under POLICY, each at its time; adds what became of them."""
    began = time.monotonic()

    def do(job):
        kind = mixplan.KINDS[job["kind"]]
        start = time.monotonic()
        row = dict(job, late_s=start - began - job["at"])
        try:
            said, row["nodes"] = way.run(job["home"], policy, kind)
            if kind.parallel and said.strip() != alone_rows[kind.name]["result"]:
                row["wrong"] = f"it said {said.strip()[-200:]!r}"
        except Exception as error:  # each job's failure is a row of the report
            row.update(nodes=[], wrong=str(error) or type(error).__name__)
        row["s"] = time.monotonic() - start
        return row

    with concurrent.futures.ThreadPoolExecutor(len(jobs)) as pool:
        waiting = []
        for job in jobs:
            time.sleep(max(0.0, began + job["at"] - time.monotonic()))
            waiting.append(pool.submit(do, job))
        return [w.result() for w in waiting]


def speed(bed, options, mbit, scratch):
    """All passes at one link speed."""
    say(f"{mbit} Mbit/s: the cluster comes up")
    bed.up(mbit)
    way = (ways.Run if options.way == "run" else ways.Rsh)(bed, bed.env["IOCOM_BUILD"], scratch, mbit / 8,
                                                           options.spin)
    rows, passes = alone(bed, way, scratch), []
    for repetition in range(1, options.repetitions + 1):
        jobs = mixplan.jobs(options.seed, repetition, options.jobs, bed.names(), options.gap)
        for policy in mixplan.order(options.seed, repetition, options.policies):
            usage = effect_bed.Usage()
            began = time.monotonic()
            done = one_pass(way, jobs, policy, rows)
            took, foreign = time.monotonic() - began, usage.foreign()
            wrong = [j for j in done if "wrong" in j]
            for job in done:
                base = rows[job["kind"]]
                job["slowdown"] = mixstats.slowdown(job["s"], (base["spread_s"], base["packed_s"]))
            passes.append(dict(mbit=mbit, repetition=repetition, policy=policy, jobs=done, took_s=took,
                               foreign=foreign, load=os.getloadavg()[0]))
            say(f"  {repetition}/{options.repetitions} {policy:12} mean slowdown "
                f"{mixstats.mean([j['slowdown'] for j in done if 'wrong' not in j]):5.2f}, {took:4.0f} s, others "
                f"{100 * foreign:.0f} %" + (f", FAILED: {len(wrong)}" if wrong else ""))
            for job in wrong:
                say(f"    {job['kind']} from {job['home']}: {job['wrong']}")
    foretold.add(bed.env["IOCOM_BUILD"], scratch, options, mbit, rows, passes)
    return dict(mbit=mbit, alone=rows, passes=passes)


def minutes(options):
    """How long it takes, by what was seen: jobs go on for half a minute, each alone for seven seconds."""
    one = options.jobs * options.gap + 15
    return sum(100 + options.repetitions * len(options.policies) * one * (2 if mbit < 20 else 1)
               for mbit in options.net) / 60


def options_of(argv):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--build", default="build")
    parser.add_argument("--report")
    parser.add_argument("--out")
    parser.add_argument("--short", action="store_true")
    parser.add_argument("--net")
    parser.add_argument("--repetitions", type=int)
    parser.add_argument("--jobs", type=int)
    parser.add_argument("--policies", default=",".join(POLICIES))
    parser.add_argument("--way", choices=["run", "rsh"])
    parser.add_argument("--spin", action="store_true")
    parser.add_argument("--gap", type=float, default=2.0)
    parser.add_argument("--seed", type=int, default=1)
    o = parser.parse_args(argv)
    o.net = [int(n) for n in (o.net or ("20" if o.short else "10,20,100,1000")).split(",")]
    o.repetitions = o.repetitions or (1 if o.short else 3)
    o.jobs = o.jobs or (14 if o.short else 21)
    o.policies = o.policies.split(",")
    o.build = os.path.abspath(o.build)
    o.out = os.path.abspath(o.out or os.path.join(o.build, "parallel"))
    o.way = o.way or ("run" if ways.has_run(o.build) else "rsh")
    return o


def main(argv):
    options = options_of(argv)
    if options.report:
        with open(options.report, encoding="utf-8") as f:
            print(mixreport.text(json.load(f)), end="")
        return 0
    if not shutil.which("mpirun") or not os.path.exists(f"{options.build}/tests/apps/openmpi/vortex"):
        print("mix: Open MPI is not installed (make deps)", file=sys.stderr)
        return 1
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: sys.exit(130))
    try:
        bed = Bed(options.build)
    except effect_bed.Broken as error:
        print(f"mix: {error}", file=sys.stderr)
        return 1
    os.makedirs(options.out, exist_ok=True)
    scratch = tempfile.mkdtemp(prefix="iocom-parallel-", dir="/var/tmp")
    result = dict(seed=options.seed, way=options.way, wait="spin" if options.spin else "sleep",
                  policies=options.policies, load_before=os.getloadavg()[0], speeds=[])
    say(f"{options.jobs} jobs, {options.repetitions} repetitions of {len(options.policies)} policies, "
        f"{'iocom run --mpi' if options.way == 'run' else ways.Rsh.name}; load {result['load_before']:.1f}; "
        f"about {minutes(options):.0f} minutes")
    try:
        bed.begin()
        for mbit in options.net:
            result["speeds"].append(speed(bed, options, mbit, scratch))
            with open(os.path.join(options.out, "mix.json"), "w", encoding="utf-8") as f:
                json.dump(result, f, indent=1)
    except effect_bed.Broken as error:
        print(f"mix: {error}", file=sys.stderr)
        return 1
    finally:
        bed.close()
        shutil.rmtree(scratch, ignore_errors=True)
    text = mixreport.text(result)
    with open(os.path.join(options.out, "mix.txt"), "w", encoding="utf-8") as f:
        f.write(text)
    print(text, end="")
    return 1 if any("wrong" in j for s in result["speeds"] for p in s["passes"] for j in p["jobs"]) else 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(130)
