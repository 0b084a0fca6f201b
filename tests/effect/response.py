#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""bench-response: what iocom expects a job to take at a node, alone and beside one and two others,
held against what it takes.

The programs are those of bench-effect, and so are their inputs and profiles.  One job is submitted
to a quiet node; or first one or two others, then, SETTLE_S later, the one that is judged.  What is
expected of it is asked for right before, with each of MODELS: the policies' formulas differ.  Nodes
of different disks work side by side, each through its own list.
"""
import argparse
import json
import math
import os
import subprocess
import sys
import threading
import time

import bed as beds
import effect
import estimates
import plan
import programs
import report

# The policies whose formulas are compared: sharing (MODEL 2.10), and the published M/G/1 (2.4).
MODELS = ["least-delay", "iocm-re"]
NODES = [0, 2]  # of the layout heterogeneous: 20 and 12 MB/s
SETTLE_S = 2.0  # so long the others have run when the judged job comes: views show them
KINDS = {1: "alone", 2: "beside one", 3: "beside two"}


def lists(names, pairs, triples, rng):
    """What runs at a node: each program alone, then PAIRS and TRIPLES; the last one is judged.
    Each program is judged as often as any other, and nobody meets itself twice in a list."""
    out = [[name] for name in names]
    for count, size in ((pairs, 2), (triples, 3)):
        for i in range(count):
            judged = names[i % len(names)]
            others = rng.sample([n for n in names if n != judged], size - 1)
            out.append([*others, judged])
    rng.shuffle(out)
    return out


class Response:
    def __init__(self, args):
        self.args = args
        self.store = effect.Store(args.out)
        self.bench = effect.Bench(effect.parse(
            ["--build", args.build, "--out", args.out, "--set", args.set, "--seed", args.seed,
             "--scale", str(args.scale)]), self.store)
        self.rows, self.failed = self.store.read("response.json", []), []
        self.lock = threading.Lock()

    def expected(self, node, program, model):
        """What iocom expects PROGRAM to take at NODE, in s, if it is submitted there now."""
        done = self.bench.bed.on(node, "iocom", "place", "--json", f"--policy={model}",
                                 f"--node={node}", *self.bench.options(program), "--", "true")
        try:
            return json.loads(done.stdout)["expected"]["there_ms"] / 1e3
        except (ValueError, KeyError, TypeError):
            return None

    def start(self, node, program, number):
        command = self.bench.command(program, number % programs.VARIANTS,
                                     f"response-{program}-{number}")
        return beds.Job(self.bench.bed, node, [f"--node={node}", *self.bench.options(program)],
                        command)

    def one(self, node, together, number):
        """Runs one list; returns what was expected of the last program and what it took."""
        bed, usage = self.bench.bed, beds.Usage()
        speed = f"{bed.node(node)['disk_mb_per_s']:g}"
        bed.set_profiles(node, self.bench.profiles[speed])
        others = [self.start(node, p, number) for p in together[:-1]]
        if others:
            time.sleep(SETTLE_S)
        gone = [p for p, job in zip(together, others) if job.process.poll() is not None]
        expected = {m: self.expected(node, together[-1], m) for m in MODELS}
        done = self.start(node, together[-1], number).finish(effect.JOB_LIMIT_S)
        self.bench.judge(done, together[-1], number % programs.VARIANTS)
        for program, job in zip(together, others):
            other = job.finish(effect.JOB_LIMIT_S)
            self.bench.judge(other, program, number % programs.VARIANTS)
            done["wrong"] = done["wrong"] or other["wrong"]
        return dict(node=node, speed=speed, together=together, expected=expected, s=done["s"],
                    gone=gone, wrong=done["wrong"], foreign=usage.foreign())

    def work(self, node, todo):
        try:
            for number, together in enumerate(todo):
                if not self.bench.bed.quiet(effect.QUIET_S, node):
                    raise beds.Broken(f"{node} does not become quiet")
                row = self.one(node, together, number)
                with self.lock:
                    self.rows.append(row)
                    self.store.write("response.json", self.rows)
                effect.say(f"  {node} {', '.join(together)}: {row['s']:.2f} s, expected "
                           + ", ".join(f"{m} {v:.2f}" if v else f"{m} -"
                                       for m, v in row["expected"].items())
                           + (f", void: {row['wrong']}" if row["wrong"] else ""))
        except (beds.Broken, OSError, subprocess.SubprocessError) as error:
            self.failed.append(error)

    def run(self):
        self.bench.prepare()
        if self.rows:
            effect.say("all is measured")
            return
        self.bench.bed = beds.Bed(self.args.build)
        try:
            self.bench.bed.begin()
            self.bench.bring_up("heterogeneous")
            rng = estimates.generator(self.args.seed, "response")
            nodes = [self.bench.bed.nodes[i]["name"] for i in NODES]
            threads = [threading.Thread(target=self.work, args=(n, lists(
                self.bench.names, self.args.pairs, self.args.triples, rng))) for n in nodes]
            for t in threads:
                t.start()
            for t in threads:
                t.join()
            if self.failed:
                raise self.failed[0]
        finally:
            self.bench.take_down()


def row_of(name, model, ratios):
    """One line of the table: RATIOS are measured over expected times."""
    if not ratios:
        return [name, model, "0", "-", "-", "-", "-", "-"]
    return [name, model, str(len(ratios)), f"{estimates.quantile(ratios, 0.05):.2f}",
            f"{estimates.median(ratios):.2f}", f"{estimates.p95(ratios):.2f}",
            f"{100 * report.within(ratios, 1.25):.0f} %", f"{100 * report.within(ratios, 2.0):.0f} %"]


def ratios(rows, model, wanted):
    return [r["s"] / r["expected"][model] for r in rows
            if r["expected"].get(model) and not r["wrong"] and wanted(r)]


def running(row):
    """How many of a list ran when the last was judged: an other may have ended in SETTLE_S."""
    return len(row["together"]) - len(row.get("gone", []))


def text(rows):
    """The report: by how many run together, and by the program that is judged."""
    head = ["what", "formula of", "jobs", "measured / expected: 5th percentile", "median",
            "95th percentile", "within 1.25x", "within 2x"]
    names = sorted({r["together"][-1] for r in rows})
    out = ["# Expected and measured response\n", "Measured over expected time; 1 is right.\n"]
    parts = [[(kind, lambda r, n=n: running(r) == n) for n, kind in KINDS.items()],
             [(name, lambda r, n=name: r["together"][-1] == n) for name in names],
             [(f"at {s} MB/s", lambda r, s=s: r["speed"] == s)
              for s in sorted({r["speed"] for r in rows}, key=float)]]
    for part in parts:
        out.append(report.table(head, [row_of(name, m, ratios(rows, m, wanted))
                                       for name, wanted in part for m in MODELS]))
    wrong = [r for r in rows if r["wrong"]]
    if wrong:
        out.append("Void: " + "; ".join(f"{', '.join(r['together'])}: {r['wrong']}" for r in wrong)
                   + "\n")
    worst = sorted((r for r in rows if r["expected"].get(MODELS[0]) and not r["wrong"]),
                   key=lambda r: -abs(math.log(r["s"] / r["expected"][MODELS[0]])))[:10]
    out.append(f"The ten worst by {MODELS[0]}:\n")
    out.append(report.table(["node", "together, the last is judged", "expected s", "measured s"],
                            [[r["node"], ", ".join(r["together"]),
                              f"{r['expected'][MODELS[0]]:.2f}", f"{r['s']:.2f}"] for r in worst]))
    foreign = [r["foreign"] for r in rows]
    if foreign:
        out.append(f"Others took {100 * estimates.median(foreign):.1f} % of the machine (median), "
                   f"{100 * max(foreign):.1f} % at most; {100 * plan.FOREIGN_MAX:.0f} % are quiet.\n")
    return "\n".join(out)


def parse(argv):
    parser = argparse.ArgumentParser(prog="response.py", description=__doc__.split("\n", 1)[0])
    parser.add_argument("--build", default="build", help="the directory with the programs")
    parser.add_argument("--out", default="build/response", help="where results are kept")
    parser.add_argument("--set", default="main", help="main, holdout, or a list of programs")
    parser.add_argument("--seed", default="1")
    parser.add_argument("--scale", type=float, default=1.0, help="of the inputs' sizes")
    parser.add_argument("--pairs", type=int, default=20, help="lists of two at each node")
    parser.add_argument("--triples", type=int, default=20, help="lists of three at each node")
    parser.add_argument("--report", action="store_true", help="only make the report again")
    args = parser.parse_args(argv)
    args.build, args.out = os.path.abspath(args.build), os.path.abspath(args.out)
    return args


def main(argv):
    args = parse(argv)
    effect.on_signals(lambda *_: sys.exit(130))
    try:
        response = Response(args)
        if not args.report:
            response.run()
        made = text(response.rows)
        with open(response.store.path("report.md"), "w", encoding="utf-8") as f:
            f.write(made)
        effect.say(made)
    except (ValueError, beds.Broken, subprocess.CalledProcessError) as error:
        sys.exit(f"bench-response: {error}")


if __name__ == "__main__":
    main(sys.argv[1:])
