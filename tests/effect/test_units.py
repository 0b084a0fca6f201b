#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Tests what bench-effect computes, beside values computed by hand, and runs each of its programs once
on small inputs.  No root, no cluster."""
import contextlib
import io
import os
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile

import bed
import choosers
import effect
import estimates
import plan
import programs
import report
import replayed
import response

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ.get("IOCOM_BUILD", os.path.join(ROOT, "build"))
COUNT = {"n": 0, "failed": 0}


def check(what, got, expected):
    COUNT["n"] += 1
    ok = abs(got - expected) < 1e-9 if isinstance(expected, float) and isinstance(got, float) \
        else got == expected
    print(f"{'ok' if ok else 'not ok'} {COUNT['n']} - {what}")
    if not ok:
        COUNT["failed"] += 1
        print(f"# got:      {got!r}\n# expected: {expected!r}")


def skip(what, reason):
    COUNT["n"] += 1
    print(f"ok {COUNT['n']} - {what} # SKIP {reason}")


def sentence(function, *args):
    """What FUNCTION complains of; "" if it does not."""
    try:
        function(*args)
    except ValueError as error:
        return str(error)
    return ""


def test_response():
    names = ["a", "b", "c"]
    made = response.lists(names, 6, 3, estimates.generator("response"))
    check("each program runs alone once", sorted(l for l in made if len(l) == 1),
          [["a"], ["b"], ["c"]])
    check("pairs and triples", [sum(len(l) == n for l in made) for n in (2, 3)], [6, 3])
    check("each is judged as often", [sum(l[-1] == n for l in made) for n in names], [4, 4, 4])
    check("nobody meets itself", all(len(set(l)) == len(l) for l in made), True)
    rows = [dict(node="n1", speed="20", together=["c", "a"], gone=["c"], s=4.0, wrong="",
                 foreign=0.02, expected={"least-delay": 4.0, "iocm-re": 2.0}),
            dict(node="n1", speed="20", together=["b", "a"], gone=[], s=9.0, wrong="", foreign=0.04,
                 expected={"least-delay": 6.0, "iocm-re": None}),
            dict(node="n1", speed="20", together=["c", "a"], gone=[], s=9.0, wrong="status 1", foreign=0.0,
                 expected={"least-delay": 1.0, "iocm-re": 1.0})]
    check("ratios of those that ended well", response.ratios(rows, "least-delay", lambda r: True),
          [1.0, 1.5])
    text = response.text(rows)
    check("a row by the number of jobs", "| beside one | least-delay | 1 | 1.50 | 1.50 | 1.50 "
          "| 0 % | 100 % |" in text, True)
    check("who has gone does not count", "| alone | least-delay | 1 | 1.00 |" in text, True)
    check("a row without expectations", "| beside one | iocm-re | 0 |" in text, True)
    check("what is void is said", "Void: c, a: status 1" in text, True)


def test_replayed():
    def replay(same, own, there, lost=0, void=False):
        return dict(placements_same_percent=same, complete=True, lines_lost=lost, void=void,
                    times=dict(slowdown_difference_percent=own),
                    times_where_they_ran=dict(slowdown_difference_percent=there))
    passes = [dict(chooser="io-re", replayed=replay(100.0, -4.0, 1.0)),
              dict(chooser="io-re", replayed=replay(97.5, 9.0, -2.0)),
              dict(chooser="io-re", replayed=None),
              dict(chooser="io-re", replayed=replay(90.0, 80.0, 80.0, lost=1)),
              dict(chooser="io-re", replayed=replay(90.0, 80.0, 80.0, void=True)),
              dict(chooser="fewest-jobs", replayed=replay(None, 50.0, None))]
    check("passes beside their replay; a simple chooser cannot be simulated", replayed.rows(passes),
          [["fewest-jobs", "1", "0", "-", "-", "-"],
           ["io-re", "2", "2", "97.5", "+2.5 (-4.0 to +9.0)", "-0.5 (-2.0 to +1.0)"]])
    check("without recordings there is no table", replayed.rows([dict(chooser="io-re")]), [])
    with tempfile.TemporaryDirectory() as directory:
        check("what cannot be joined is not compared",
              [replayed.check("/nowhere", files, os.path.join(directory, "all.jsonl"))
               for files in ([], [os.path.join(directory, "n1.jsonl.gz")])], [None, None])


def test_statistics():
    check("the mean", estimates.mean([1, 2, 4]), 7 / 3)
    check("the geometric mean", estimates.geometric_mean([1, 2, 4]), 2.0)
    check("the median of an even number", estimates.median([4, 1, 3, 2]), 2.5)
    check("the 95th percentile of 1 to 21", estimates.p95(list(range(1, 22))), 20.0)
    check("a percentile between two ranks", estimates.quantile([10, 20], 0.25), 12.5)
    check("a percentile of one value", estimates.p95([7]), 7)
    rng = estimates.generator("test")
    check("no spread, no interval", estimates.bootstrap([[2, 2], [2]], [estimates.mean], rng),
          [(2.0, 2.0, 2.0)])
    # The means of two drawn passes are 1, 2 or 3, with probabilities 1/4, 1/2, 1/4.
    check("passes are drawn", estimates.bootstrap([[1], [3]], [estimates.mean], rng),
          [(2.0, 1.0, 3.0)])
    check("jobs within a pass are drawn", estimates.bootstrap([[1, 3]], [estimates.mean], rng),
          [(2.0, 1.0, 3.0)])
    # Passes of unlike sizes: the value is that of all jobs.
    check("each job counts alike", estimates.bootstrap([[1], [4, 4]], [estimates.mean], rng)[0][0],
          3.0)
    check("no passes", estimates.bootstrap([[]], [estimates.mean], rng), [])
    ours = {(1, 0): 2.0, (1, 1): 6.0, (2, 0): 3.0}
    theirs = {(1, 0): 4.0, (2, 0): 3.0, (2, 5): 1.0}
    check("only jobs that both have are paired", estimates.paired_ratios(ours, theirs),
          [[0.5], [1.0]])


def test_generator():
    # Mean 2 CPU s at 4 cores: 0.5 s; mean 5 MB at 20 MB/s: 0.25 s.  Half of that load: twice.
    needs = {"a": dict(cpu_s=1, disk_mb=10), "b": dict(cpu_s=3, disk_mb=0)}
    check("the gap of the scarcer resource",
          estimates.mean_gap_s(needs, {"a": 1, "b": 1}, [2, 2], [10, 10], 0.5), 1.0)
    check("weights count", estimates.mean_gap_s(needs, {"a": 4, "b": 0}, [2, 2], [5, 5], 1.0), 1.0)
    times = estimates.poisson_arrivals(estimates.generator("poisson"), 20000)
    gaps = [b - a for a, b in zip([0.0] + times, times)]
    check("mean gap 1", round(estimates.mean(gaps), 1), 1.0)
    check("exponential gaps: 1/e are above the mean",
          round(sum(g > 1 for g in gaps) / len(gaps), 2), 0.37)
    cell, names = plan.Cell("heterogeneous", "low"), programs.of_set("main")
    jobs = plan.jobs(cell, 1, 4000, names, 6, "1", 1.0)
    check("the same words, the same jobs", plan.jobs(cell, 1, 4000, names, 6, "1", 1.0), jobs)
    check("another repetition, other jobs", plan.jobs(cell, 2, 4000, names, 6, "1", 1.0) != jobs, True)
    stretched = plan.jobs(cell, 1, 4000, names, 6, "1", 2.0)
    check("the gap only stretches time", [dict(j, at=j["at"] / 2) for j in stretched], jobs)
    busy = sum(j["home"] in ("n1", "n3") for j in jobs) / len(jobs)
    check("70 % come from two nodes", round(busy, 1), 0.7)
    check("every node is a home", {j["home"] for j in jobs}, {f"n{i}" for i in range(1, 7)})
    greps = [j["variant"] for j in jobs if j["program"] == "grep"]
    check("one program's jobs take turns in its inputs", greps[:4], [0, 1, 0, 1])
    # grep has weight 4 of 30
    check("the mix", round(len(greps) / len(jobs), 2), 0.13)


def test_plan():
    some = plan.cells(["homogeneous", "heterogeneous"], ["low", "high"], False)
    order = plan.passes(some, ["nlb", "io", "wal"], 2, "1")
    check("every pass once", (len(order), len(set(order))), (24, 24))
    check("one layout after the other", [p.cell.layout for p in order],
          ["homogeneous"] * 12 + ["heterogeneous"] * 12)
    check("repetitions are interleaved", [p.repetition for p in order[:12]], [1] * 6 + [2] * 6)
    check("all choosers of a cell follow each other",
          [{p.chooser for p in order[i:i + 3]} for i in range(0, 24, 3)],
          [{"nlb", "io", "wal"}] * 8)
    check("the core", plan.cells(None, None, False), plan.CORE_CELLS)
    check("the held-out layout is not in the core", any(c.layout == "heldout" for c in plan.CORE_CELLS),
          False)
    check("all cells", len(plan.cells(None, None, True)), 9)
    check("an unknown layout", "LAYOUTS takes" in sentence(plan.cells, ["round"], None, False), True)
    check("an unknown rate", "RATES takes" in sentence(plan.cells, None, ["fast"], False), True)
    check("an unknown chooser", "CHOOSERS takes" in sentence(plan.chooser_names, "nlb,best", ["nlb"]),
          True)
    check("a chooser named twice", "CHOOSERS takes" in sentence(plan.chooser_names, "nlb,nlb", ["nlb"]),
          True)
    check("a policy that agents refuse", "CHOOSERS takes" in
          sentence(plan.chooser_names, "wal-fc", ["nlb"]), True)
    check("an unknown program", "SET takes" in sentence(programs.of_set, "grep,quake"), True)
    with open(os.path.join(ROOT, "balancer/rules/policy.c"), encoding="utf-8") as f:
        table = re.findall(r'\[RULES_\w+\] =\s*\{"([^"]+)"', f.read())
    check("all policies of the rules are known", choosers.POLICIES, table)
    check("the sets are disjoint and whole", (len(programs.of_set("main")), len(programs.of_set(
        "holdout"))), (10, 8))


def test_choosers():
    need = dict(cpu_s=1.0, disk_mb=10.0, mem_mb=10)
    node = choosers.Node("n1", 0.5, 10.0, 600)
    check("2 s computing and 1 s of disk", node.alone_s(need), 3.0)
    check("an empty node costs the job alone", node.price(need, 3.0), 1.0)
    check("a slow home makes it cheap", node.price(need, 6.0), 0.5)
    node.begin(1, need, 3.0)
    # (2/3 2/3 + 1/3 1/3) 3 s = 5/3 s of delay for each: (3 + 5/3) / 3 + 5/3 / 3
    check("a like job delays and is delayed", node.price(need, 3.0), 19 / 9)
    node.advance(1.5)
    check("alone it goes on at full speed", node.running[1].left_s, 1.5)
    check("half a rest, half a delay", node.price(need, 3.0), (3 + 5 / 6) / 3 + 5 / 18)
    cpu = dict(cpu_s=2.0, disk_mb=0.0, mem_mb=10)
    node = choosers.Node("n1", 0.5, 10.0, 600)
    node.begin(1, cpu, 4.0)
    node.begin(2, cpu, 4.0)
    node.advance(2.0)
    check("two share a processor", [j.left_s for j in node.running.values()], [3.0, 3.0])
    check("a disk job does not disturb them",
          node.price(dict(cpu_s=0.0, disk_mb=10.0, mem_mb=10), 1.0), 1.0)
    check("room in memory", (node.has_room(dict(mem_mb=580)), node.has_room(dict(mem_mb=581))),
          (True, False))

    def chosen(name, count, homes=("n1",), disks=(20.0, 20.0, 5.0)):
        nodes = [choosers.Node(f"n{i + 1}", 0.5, d, 600) for i, d in enumerate(disks)]
        chooser = choosers.Simple(name, nodes, {"p": need}, estimates.generator("choice"))
        return [chooser.choose(dict(number=i, program="p", home=homes[i % len(homes)]), 0.0)
                for i in range(count)]
    check("always home", chosen("always-home", 3, ("n2", "n3")), ["n2", "n3", "n2"])
    check("round robin", chosen("round-robin", 4), ["n1", "n2", "n3", "n1"])
    check("fewest jobs: home first, then the others", (chosen("fewest-jobs", 3)[0],
          sorted(chosen("fewest-jobs", 3))), ("n1", ["n1", "n2", "n3"]))
    # 1/20 1/20, then 2/20 2/20 2/20 2/20 ... before 1/5
    check("fewest jobs per speed", sorted(chosen("fewest-per-speed", 6)), ["n1"] * 3 + ["n2"] * 3)
    check("random takes all nodes", set(chosen("random-node", 50)), {"n1", "n2", "n3"})
    # At n1: 2.5 s alone; the empty n2 is as good, n3 takes 4 s: 1.6 is less than 1 + delays.
    check("estimates: home, its equal, then the slow one", chosen("ps-estimate", 3), ["n1", "n2", "n3"])
    nodes = [choosers.Node("n1", 0.5, 20.0, 600), choosers.Node("n2", 0.5, 20.0, 600)]
    chooser = choosers.Simple("fewest-jobs", nodes, {"p": need}, estimates.generator("choice"))
    first, second = (dict(number=i, program="p", home="n1") for i in (1, 2))
    chooser.choose(first, 0.0)
    chooser.ended(first, "n1", 1.0)
    check("an ended job does not count", chooser.choose(second, 2.0), "n1")
    check("an unknown chooser is refused", "no chooser" in sentence(
        choosers.Simple, "best", [], {}, None), True)
    check("variants are policies with options", [choosers.policy(n) for n in (
        "iocm-re-told", "wal", "fewest-jobs")], ["iocm-re", "wal", None])


def job(number, s, alone_s=1.0, home="n1", node="n1", wrong="", expected=None, program="grep"):
    return dict(number=number, at=0.0, program=program, variant=0, home=home, node=node, s=s,
                alone_s=alone_s, status=0, wrong=wrong, late_s=0.0, expected=expected)


def one_pass(chooser, repetition, jobs, void=()):
    return dict(layout="homogeneous", rate="low", repetition=repetition, chooser=chooser,
                foreign=0.0, void=list(void), makespan_s=10.0, jobs=jobs)


def test_void():
    check("what others took", bed.foreign_share(10.0, 7.0, 1.0, 10.0, 2), 0.1)
    check("never below nothing", bed.foreign_share(5.0, 7.0, 0.0, 10.0, 2), 0.0)
    good = [job(0, 1.0)]
    check("a good pass", effect.void_reasons(0.05, good), [])
    check("a busy machine", effect.void_reasons(0.101, good), ["others took 10.1% of the machine"])
    check("a failed job", effect.void_reasons(0.0, good + [job(1, 1.0, wrong="status 1: x")]),
          ["1 jobs failed, the first: grep from n1: status 1: x"])
    check("a late job", effect.void_reasons(0.0, [dict(job(0, 1.0), late_s=2.0)]),
          ["a job was submitted 2.0 s late"])
    first, second = one_pass("nlb", 1, good, ["x"]), one_pass("nlb", 1, [job(0, 3.0)])
    check("the valid attempt counts", report.chosen([first, second], False), [second])
    check("also before a void one", report.chosen([second, first], True), [second])
    check("void ones do not count", report.chosen([first], False), [])
    check("unless they are asked for", report.chosen([first], True), [first])
    bench = effect.Bench.__new__(effect.Bench)
    bench.expected = {"grep": ["7", "8"]}
    wrongs = []
    for status, output, variant in ((0, "7", 0), (0, "7", 1), (3, "7", 0)):
        done = dict(status=status, output=output, errors="bad")
        bench.judge(done, "grep", variant)
        wrongs.append(done["wrong"])
    check("outputs are verified", wrongs, ["", "it printed '7', not '8'", "status 3: bad"])
    text = ('noise\n{"state":"placed","node":"n2","placement":{"expected":{"there_ms":5}}}\n'
            '{"state":"lost","text":"gone"}\n')
    check("events of a job", bed.events(text), dict(node="n2", expected=dict(there_ms=5),
                                                    errors="noise\ngone"))
    check("a job that was not placed", bed.events("refused"), dict(node=None, expected=None,
                                                                   errors="refused"))


def test_report():
    nlb = [one_pass("nlb", 1, [job(0, 4.0), job(1, 2.0, 2.0)])]
    ours = [one_pass("iocm-re", 1, [job(0, 1.0, node="n2"), job(1, 4.0, 2.0)])]
    check("slowdowns", report.slowdowns(nlb), {(1, 0): 4.0, (1, 1): 1.0})
    check("a failed job has none", report.slowdowns([one_pass("nlb", 1, [job(0, 1.0, wrong="x")])]), {})
    check("jobs moved", report.moved(ours), (1, 2))
    check("stayed", report.stayed(ours), {(1, 1): 2.0})
    found = report.summaries(nlb + ours)["homogeneous", "low"]
    check("in the order of the policies", list(found), ["nlb", "iocm-re"])
    check("mean slowdowns", [found[n]["numbers"][0][0] for n in found], [2.5, 1.5])
    # geometric mean of 1/4 and 2/1: sqrt(1/2)
    check("ratio to nlb", found["iocm-re"]["ratios"]["nlb"].split()[0], "0.71")
    check("harm to the job that stayed", found["iocm-re"]["harm"], "2.00 [2.00, 2.00]")
    check("no fewest-jobs, no ratio", found["nlb"]["ratios"]["fewest-jobs"], "-")
    with tempfile.TemporaryDirectory() as directory:
        store = effect.Store(directory)
        store.write("plan.json", dict(set="main", seed="1", jobs=2, scale=1.0))
        p = plan.Pass(plan.Cell("homogeneous", "low"), 1, "nlb")
        check("no attempts yet", store.attempts(p), [])
        store.write(store.name(p, 1), one_pass("nlb", 1, nlb[0]["jobs"], ["a | b"]))
        store.write(store.name(p, 2), nlb[0])
        check("attempts are found again", [len(a["void"]) for a in store.attempts(p)], [1, 0])
        bench = effect.Bench.__new__(effect.Bench)
        bench.store, bench.args = store, effect.parse(["--retries", "1"])
        other = plan.Pass(p.cell, 2, "nlb")
        check("a valid pass is not run again", bench.wanting([p, other]), [other])
        store.write(store.name(other, 1), one_pass("nlb", 2, nlb[0]["jobs"], ["x"]))
        check("a void one is repeated", bench.wanting([p, other]), [other])
        bench.args.retries = 0
        check("as often as told", bench.wanting([p, other]), [])
        text = report.write(store)
        check("the table has the row", "| nlb | 1 | 2.50 [1.00, 4.00] |" in text, True)
        check("void passes are listed", "| homogeneous | low | 1 | nlb | a \\| b |" in text, True)
        check("times alone are not known to be void", "no slowdown is right" in text, False)
        store.write("alone.json", {"12": {"grep": dict(s=1.0, cpu_s=0.1, disk_mb=9.0, foreign=0.11)}})
        check("times alone may be void", "no slowdown is right" in report.write(store), True)
        if shutil.which("gnuplot"):
            check("a figure", os.path.getsize(store.path("effect.png")) > 1000, True)
        else:
            skip("a figure", "gnuplot is not installed")
        check("other settings are refused", "another benchmark's results" in sentence(
            bench.check_plan, dict(set="main", seed="2", jobs=2, scale=1.0)), True)
        check("nothing to report", "No valid pass" in report.write(effect.Store(directory + "/new")),
              True)


def test_predictions():
    def done(s, there_ms, factor=None, **more):
        return job(0, s, expected=dict(there_ms=there_ms, home_ms=1.0, **(
            {} if factor is None else {"there_factor": factor, "home_factor": 9.0})), **more)

    # io: 0.5, 1, 1.25, 2.5, 4; the rules alone: 1, 0.5, 2.5 and two that do not say.
    first = one_pass("io", 1, [done(1.0, 2000.0, 2.0), done(1.0, 1000.0, 0.5), job(1, 9.0),
                               done(2.5, 2000.0, 2.0), done(9.0, 1.0, wrong="failed")])
    second = one_pass("io", 2, [done(5.0, 2000.0), done(4.0, 1000.0, program="sort"),
                                done(4.0, 0.0)])
    passes = [first, second, one_pass("nlb", 1, [job(0, 1.0)])]
    check("measured / expected, pass by pass", report.predictions(passes),
          [[("io", "grep", 0.5), ("io", "grep", 1.0), ("io", "grep", 1.25)],
           [("io", "grep", 2.5), ("io", "sort", 4.0)], []])
    check("without the correction", report.predictions(passes, False),
          [[("io", "grep", 1.0), ("io", "grep", 0.5), ("io", "grep", 2.5)], [], []])
    check("within a factor, both ways", [report.within([0.5, 0.8, 1.0, 1.25, 2.1], f)
                                         for f in (1.25, 2)], [0.6, 0.8])
    found = report.prediction_summaries(passes)
    check("choosers that expected anything", list(found["chooser"]), ["io", "all"])
    check("programs", list(found["program"]), ["grep", "sort", "all"])
    io_re = found["chooser"]["io"]["corrected"]
    check("jobs", io_re["jobs"], 5)
    # 0.5 1 1.25 2.5 4: at 0.05 x 4 = 0.2 of the way to the second, at 0.8 of the last one
    check("5th percentile", round(io_re["p5"], 9), 0.6)
    check("95th percentile", round(io_re["p95"], 9), 3.7)
    check("median", io_re["median"][0], 1.25)
    check("its interval is within the values, and wide",
          0.5 <= io_re["median"][1] < 1.25 < io_re["median"][2] <= 4, True)
    check("within 1.25 and 2", (io_re["within_1_25"], io_re["within_2"]), (0.4, 0.6))
    alone = found["program"]["grep"]["rules alone"]
    check("the rules alone", (alone["jobs"], alone["median"][0]), (3, 1.0))
    check("no factors, no row", found["program"]["sort"]["rules alone"], None)
    same = report.prediction([[2.0], [2.0, 2.0]], estimates.generator("same"))
    check("no spread, no interval", same["median"], (2.0, 2.0, 2.0))
    # Two passes of one value each: the medians of two draws are 1, 2, or 3.
    two = report.prediction([[1.0], [3.0]], estimates.generator("two"))
    check("the interval is over passes", two["median"], (2.0, 1.0, 3.0))
    text = "".join(report.prediction_section(found))
    check("a row of the table", "| sort | corrected | 1 | 4.00 | 4.00 [4.00, 4.00] | 4.00 | 0 % | 0 % |"
          in text, True)
    check("rows of both kinds", (text.count("| io | corrected | 5 |"),
                                 text.count("| io | rules alone | 3 |")), (1, 1))
    check("nothing expected", report.prediction_section(report.prediction_summaries(
        [one_pass("nlb", 1, [job(0, 1.0)])])), ["Nothing was expected of any job.\n"])


def test_kept():
    with tempfile.TemporaryDirectory() as directory:
        source, target = f"{directory}/iocom.db", f"{directory}/kept.db"
        db = sqlite3.connect(source, isolation_level=None)
        db.execute("PRAGMA journal_mode=WAL")  # as an agent has it, and holds it open
        for table in ("home", "target"):
            db.execute(f"CREATE TABLE {table}(job TEXT, submit_ns INTEGER, state TEXT)")
            db.executemany(f"INSERT INTO {table} VALUES(?,?,?)", [
                ("old", 9, "exited"), ("new", 10, "killed"), ("newer", 11, "lost")])
        check("all have ended", bed.unended(source), 0)
        db.execute("INSERT INTO home VALUES('late',12,'starting'),('later',13,'running')")
        check("two run still", bed.unended(source), 2)
        db.execute("DELETE FROM home WHERE submit_ns>11")
        for _ in range(2):  # the second time over the first copy
            bed.copy_journal(source, target, 10)
        db.close()
        copy = sqlite3.connect(target)
        check("a pass's own jobs are kept",
              [copy.execute(f"SELECT job FROM {t} ORDER BY 1").fetchall() for t in ("home", "target")],
              [[("new",), ("newer",)]] * 2)
        copy.close()
        check("in one file", sorted(os.listdir(directory)), ["iocom.db", "kept.db"])
        bench = effect.Bench.__new__(effect.Bench)
        bench.store, kept = effect.Store(directory), []
        bench.bed = bed.Bed.__new__(bed.Bed)
        bench.bed.keep_journals = lambda *args: kept.append(args)
        p = plan.Pass(plan.Cell("homogeneous", "low"), 1, "nlb")
        for argv in ([], ["--journals"]):
            bench.args = effect.parse(argv)
            bench.keep(p, one_pass("nlb", 1, []), 7)
        check("each attempt's journals have a directory, when asked for", kept,
              [(f"{directory}/journals/homogeneous-low-01-nlb.2", 7)])
        check("the passes are written", len(bench.store.attempts(p)), 2)


def test_usage():
    for argv in (["--jobs", "0"], ["--scale", "9"], ["--disks", "0,1"], ["--passes", "x"]):
        with contextlib.redirect_stderr(io.StringIO()):
            try:
                effect.parse(argv)
                status = 0
            except SystemExit as end:
                status = end.code
        check(f"{' '.join(argv)} is refused", status, 2)
    done = subprocess.run([sys.executable, "-B", effect.__file__, "--choosers", "best", "--out",
                           "/nonexistent/x"], capture_output=True, text=True)
    check("a wrong chooser ends it at once", (done.returncode, done.stderr.split(":")[0]),
          (1, "bench-effect"))


def test_programs():
    work = os.path.join(BUILD, "tests/tools/work")
    with tempfile.TemporaryDirectory(dir="/var/tmp") as directory:
        os.chmod(directory, 0o755)
        os.makedirs(f"{directory}/here")

        def run(name, data):
            done = subprocess.run(["sh", os.path.join(ROOT, "tests/effect/job.sh"), work, name, data,
                                   f"{directory}/job"], capture_output=True, text=True,
                                  cwd=f"{directory}/here")
            return done.stdout.strip() if done.returncode == 0 else done.stderr
        for name, (_, _, tools, maker, _, _) in programs.PROGRAMS.items():
            what = f"{name} prints the known result"
            lacking = [t for t in tools if not shutil.which(t)]
            if lacking:
                skip(what, f"{lacking[0]} is not installed")
                continue
            if name == "postgres" and os.geteuid() != 0:
                skip(what, "needs root, to become the user postgres")
                continue
            data = os.path.join(directory, name)
            os.makedirs(data)
            try:
                expected = maker(data, estimates.generator("test", name), 0.02)
            except programs.Missing as missing:
                skip(what, str(missing))
                continue
            check(what, run(name, data), expected)
        check("nothing is left behind", (os.path.exists(f"{directory}/job"),
                                         os.listdir(f"{directory}/here")), (False, []))
        with open(f"{directory}/sort/text", "r+b") as f:
            f.write(b"X")
        maker = programs.sort_inputs
        os.makedirs(f"{directory}/fresh")
        check("a changed byte is noticed", run("sort", f"{directory}/sort") ==
              maker(f"{directory}/fresh", estimates.generator("test", "sort"), 0.02), False)
        check("an unknown program", "no program" in run("quake", f"{directory}/sort"), True)


test_response()
test_replayed()
test_statistics()
test_generator()
test_plan()
test_choosers()
test_void()
test_report()
test_predictions()
test_kept()
test_usage()
test_programs()
print(f"1..{COUNT['n']}")
sys.exit(1 if COUNT["failed"] else 0)
