#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Tests what the mix of bench-parallel computes, beside values computed by hand.  No root, no cluster."""
import json
import math
import sys

import bound
import foretold
import mixplan
import mixreport
import mixstats
import ways

COUNT = {"n": 0, "failed": 0}


def check(what, got, expected):
    COUNT["n"] += 1
    ok = math.isclose(got, expected, rel_tol=1e-9, abs_tol=1e-12) \
        if isinstance(expected, float) and isinstance(got, float) else got == expected
    print(f"{'ok' if ok else 'not ok'} {COUNT['n']} - {what}")
    if not ok:
        COUNT["failed"] += 1
        print(f"# got:      {got!r}\n# expected: {expected!r}")


def test_stats():
    check("a slowdown is relative to the better placement", mixstats.slowdown(9.0, (6.0, 3.0)), 3.0)
    check("gain", mixstats.gain(3.0, 2.0), 0.5)
    check("reduction", mixstats.reduction(4.0, 3.0), 0.25)
    ratio, low, high = mixstats.interval_of_passes([(2.0, 4.0), (2.0, 4.0), (2.0, 4.0)])
    check("equal ratios: a point", (ratio, low, high), (0.5, 0.5, 0.5))
    # Logarithms -1, 0, 1: mean 0, deviation 1, half 4.303 / sqrt(3).
    ratio, low, high = mixstats.interval_of_passes([(math.exp(v), 1.0) for v in (-1, 0, 1)])
    check("the mean ratio of passes is geometric", ratio, 1.0)
    check("its interval is Student's", round(math.log(high), 3), round(4.303 / math.sqrt(3), 3))
    check("and lies even about it", round(low * high, 9), 1.0)
    check("one pass has no interval", math.isnan(mixstats.interval_of_passes([(1.0, 2.0)])[1]), True)
    check("no jobs, no ratio", math.isnan(mixstats.interval_of_jobs([])[0]), True)
    check("jobs: the ratio of means, not the mean of ratios",
          mixstats.interval_of_jobs([(1.0, 1.0), (2.0, 8.0)])[0], 3 / 9)
    ratio, low, high = mixstats.interval_of_jobs([(1.0, 2.0)] * 20)
    check("equal pairs: a point", (ratio, low, high), (0.5, 0.5, 0.5))
    noisy = [(1.0 + (i % 5) / 10, 2.0 + (i % 3) / 10) for i in range(30)]
    check("the same seed draws the same", mixstats.interval_of_jobs(noisy), mixstats.interval_of_jobs(noisy))
    ratio, low, high = mixstats.interval_of_jobs(noisy)
    check("the ratio is inside", low < ratio < high, True)
    # Under chance, 95 % intervals miss the truth in about 5 % of the cases.
    import random
    draw, missed = random.Random(3), 0
    for _ in range(60):
        pairs_ = [(draw.expovariate(1) + 1, draw.expovariate(1) + 1) for _ in range(40)]
        _, low, high = mixstats.interval_of_jobs(pairs_)
        missed += not low <= 1 <= high
    check("and it misses the truth seldom", missed <= 9, True)


def test_plan():
    nodes = [f"n{k}" for k in range(1, 7)]
    jobs = mixplan.jobs(1, 1, 21, nodes, 3.0)
    check("the same seed gives the same jobs", jobs, mixplan.jobs(1, 1, 21, nodes, 3.0))
    check("another repetition gives others", jobs != mixplan.jobs(1, 2, 21, nodes, 3.0), True)
    check("each kind is there as often", sorted(j["kind"] for j in jobs), sorted(list(mixplan.KINDS) * 3))
    check("times rise", all(a["at"] <= b["at"] for a, b in zip(jobs, jobs[1:])), True)
    many = mixplan.jobs(1, 1, 4000, nodes, 3.0)
    share = sum(j["home"] in mixplan.HOMES for j in many) / len(many)
    check("two homes have 70 %", 0.67 < share < 0.73, True)
    check("gaps have the mean asked for", 2.85 < many[-1]["at"] / 3999 < 3.15, True)
    check("each policy once, in another order", [sorted(mixplan.order(1, r, "abcde")) for r in (1, 2)],
          [list("abcde")] * 2)
    check("orders differ", len({tuple(mixplan.order(1, r, "abcde")) for r in range(1, 6)}) > 1, True)
    # 0 sends 1,000,000 to 1, which sends 250,000 back: 4 MB/s carry the busier way in 250 ms.
    check("R_COM is the busier direction", mixplan.task_com_ms([[0, 10**6], [250000, 0]], 4.0), [250.0, 250.0])
    # The check of MODEL 1.7: tasks 1, 2, 3 with 30, 10, 15 ms; 0 and 1 at A, 2 and 3 at B.
    check("(5) and (6)", mixplan.node_com_ms([99, 30, 10, 15], list("AABB")), {"A": 25.0, "B": 25.0})
    check("all with the master: no load", mixplan.node_com_ms([0, 30, 10], list("AAA")), {})


def test_ways():
    placed = {"state": "placed", "node": "n2", "placement": {"gang": {"job": "g", "parts": [
        {"node": "n2", "ranks": "0-1,4"}, {"node": "n5", "ranks": "2-3"}]}}}
    said = "iocom run: words\n" + json.dumps(placed) + "\n{broken\n"
    check("the tasks' nodes", ways.tasks_of(said, 5), ["n2", "n2", "n5", "n5", "n2"])
    check("a task that is not told", ways.tasks_of(said, 6)[5], "?")
    check("a single job's node", ways.where(said, "n1"), "n2")
    check("or its home", ways.where("words\n", "n1"), "n1")


def test_bound():
    nodes = [f"n{k}" for k in range(1, 7)]
    vortex, semi = mixplan.KINDS["vortex"], mixplan.KINDS["semiconductor"]
    to_all = [[0 if a == b else 30 * 131072 for b in range(4)] for a in range(4)]
    # 240 ms on 0.3 core; 3 times 3.93 MB leave each node at 2.5 MB/s.
    work = bound.Work(vortex, to_all, nodes[:4], 2.5)
    check("one a node: its computation", work.cpu["n1"], 0.24 / 0.3)
    check("and its port", work.port["n1"], 3 * 30 * 131072 / 2.5e6)
    packed = bound.Work(vortex, to_all, ["n1"] * 4, 2.5)
    check("all at one: no port", packed.port, {"n1": 0.0})
    check("and all computation", packed.alone_s, 4 * 0.24 / 0.3)
    half = bound.Work(vortex, to_all, ["n1", "n1", "n2", "n2"], 2.5)
    check("two and two: four pairs cross", half.port["n1"], 4 * 30 * 131072 / 2.5e6)
    few = [[0, 2 << 20, 0, 0], [0, 0, 2 << 20, 0], [0, 0, 0, 2 << 20], [2 << 20, 0, 0, 0]]
    check("slow links: all-to-all stays together", len(set(bound.choose(vortex, to_all, nodes, [], 2.5, 0)[0])), 1)
    check("fast links: it spreads", len(set(bound.choose(vortex, to_all, nodes, [], 125, 0)[0])), 4)
    check("little to say: it spreads", len(set(bound.choose(semi, few, nodes, [], 2.5, 0)[0])), 4)
    others = [bound.Running(bound.Work(vortex, to_all, [n] * 4, 2.5), 0.0, 3.2) for n in nodes[:5]]
    check("it goes where nobody is", bound.choose(vortex, to_all, nodes, others, 2.5, 0.1)[0], ["n6"] * 4)
    check("a job that should have ended has a tenth left", others[0].left(100.0), 0.1)
    cpu = mixplan.KINDS["cpu"]
    check("so do single jobs", bound.choose(cpu, [[0]], nodes, others, 2.5, 0.1)[0], ["n6"])


class FakeBed:
    disk = "/disk"


def test_commands():
    """What is asked of `iocom run`, without a cluster."""
    said = []

    class Heard(ways.Run):
        def do(self, node, argv, what):
            said.append((node, argv))
            return type("Done", (), dict(stdout="out", stderr=""))

    way = Heard(FakeBed(), "/build", "/tmp", 2.5)
    vortex, cpu = mixplan.KINDS["vortex"], mixplan.KINDS["cpu"]
    program = ["--", "/build/tests/apps/openmpi/vortex", "--compute", "8", "--bytes", "131072", "--messages", "1",
               "--phases", "30", "--wait", "sleep"]
    gang = ["iocom", "run", "-n", "4", "--mpi", "--oversubscribe", "--json"]
    way.run("n3", "com", vortex)
    check("a parallel job under a policy", said.pop(), ("n3", gang + ["--policy", "com"] + program))
    way.start_at(vortex, ["n1", "n2", "n3", "n4"])
    check("alone, a task a node", said.pop(), ("n1", gang + ["--on", "n1,n2,n3,n4", "--per-node", "1"] + program))
    way.start_at(vortex, ["n1"] * 4, ["--count", "c"])
    check("alone, all at one, counted", said.pop(),
          ("n1", gang + ["--on", "n1", "--per-node", "4"] + program + ["--count", "c"]))
    way.run("n2", "cpu-re", cpu)
    check("a job of one process says what it needs", said.pop(),
          ("n2", ["iocom", "run", "--json", "--policy", "cpu-re", "--cpu-time", "1.5", "--mem", "10M", "--",
                  "/build/tests/tools/work", "cpu", "1.5"]))


def made_result():
    """Two repetitions of two jobs: com takes half as long as io-re, which is the best baseline."""
    passes = []
    for repetition in (1, 2):
        for policy, factor in (("cpu-re", 4.0), ("mem-re", 3.0), ("io-re", 2.0), ("com", 1.0)):
            jobs = [dict(number=n, kind=k, home="n1", nodes=["n1", "n2"], at=float(n), s=factor * (n + 1),
                         slowdown=factor * (n + 1) / 2) for n, k in enumerate(("vortex", "render"))]
            passes.append(dict(mbit=20, repetition=repetition, policy=policy, jobs=jobs, took_s=9.0, foreign=0.1,
                               load=1.0, foretold=dict(turnaround_s=factor, slowdown=1.0)))
    return dict(seed=1, way="rsh", wait="sleep", policies=["cpu-re", "mem-re", "io-re", "com"], load_before=0.5,
                speeds=[dict(mbit=20, alone={}, passes=passes)])


def test_report():
    result = made_result()
    passes = result["speeds"][0]["passes"]
    check("the best baseline", mixreport.best(passes, result["policies"], "slowdown"), "io-re")
    check("pairs are of the same jobs", mixreport.pairs(passes, "com", "io-re", "s"),
          [(1.0, 2.0), (2.0, 4.0)] * 2)
    text = mixreport.text(result)
    for row in ("COM-aware: mean slowdown / io-re's          0.50  by jobs 0.50 to 0.50, by passes 0.50 to 0.50"
                "  goal <= 0.80, interval below 1: met",
                "simulator: best com, measured best com; 6 of 6 pairs of policies in the measured order",
                "COM-10: vortex         reduction of slowdown against cpu-re 75.0 %, mem-re 66.7 %, io-re 50.0 %",
                "COM-4: gain of slowdown over cpu-re 300.0 %, mem-re 200.0 %, io-re 100.0 %",
                "16 jobs, 0 failed or had a wrong result"):
        check(f"the report has: {row[:60]}", row in text, True)
    passes[3]["jobs"][0].update(wrong="it failed at once", s=0.01, slowdown=0.01)
    check("a job that failed counts under no policy", [mixreport.means(passes, p, "slowdown") for p in ("io-re", "com")],
          [(2.0 + 1.0 + 2.0) / 3, (1.0 + 0.5 + 1.0) / 3])
    check("in no pair", mixreport.pairs(passes, "com", "io-re", "s"), [(2.0, 4.0), (1.0, 2.0), (2.0, 4.0)])
    check("and in no pass", mixreport.pass_pairs(passes, "com", "io-re", "slowdown"), [(1.0, 2.0), (0.75, 1.5)])
    check("but it is told", "16 jobs, 1 failed" in mixreport.text(result), True)
    passes[3]["jobs"][0].update(s=1.0, slowdown=0.5)
    del passes[3]["jobs"][0]["wrong"]
    for p in passes:  # the goal is missed
        if p["policy"] == "com":
            for j in p["jobs"]:
                j["slowdown"] *= 1.8
    check("a missed goal", "interval below 1: missed" in mixreport.text(result), True)
    result["speeds"][0]["mbit"] = 1000
    check("another speed, another goal", "goal <= 1.05: met" in mixreport.text(result), True)
    result["speeds"][0]["mbit"] = 100
    check("a speed without a goal", "goal" in mixreport.text(result), False)
    for p in passes:
        if p["policy"] == "com":
            p["foretold"] = None
    row = next(line for line in mixreport.text(result).splitlines() if line.startswith("com "))
    check("a policy that is not simulated", row.split()[4], "-")
    passes[0]["foretold"] = "iocom-sim: no"
    check("no simulator: it says so", "simulator: none (iocom-sim: no)" in mixreport.text(result), True)


def test_foretold():
    nodes = ["n1", "n2"]
    sent = [[0, 2 * 10**6, 0, 0], [10**6, 0, 0, 0], [0] * 4, [0] * 4]
    job = dict(number=0, at=1.5, kind="molecular", home="n2", s=3.0, nodes=["n2", "n1", "n1", "n1"])
    rows = {"molecular": dict(sent=sent)}
    lines = [json.loads(line) for line in foretold.recording([job], nodes, 20, rows, 1).splitlines()]
    submit = next(line for line in lines if line["record"] == "submit")
    check("home by number", submit["home"], 1)
    # 30 phases of one message each in 300 ms; (2 + 2) MB of four tasks.
    check("the rate of messages", submit["messages_per_ms"], 0.1)
    check("and their size", submit["message_kb"], 1000 / 30)
    check("the end counts the lines", lines[-1]["lines"], len(lines))
    check("what a replay says", foretold.read({"results": [
        {"policy": "com", "measures": {"turnaround_s": {"mean": 2.0}, "slowdown": {"mean": 1.5}}},
        {"policy": "nlb", "measures": {"turnaround_s": {"mean": 9.0}, "slowdown": {"mean": 9.0}}}]}, ["com"]),
        {"com": dict(turnaround_s=2.0, slowdown=1.5)})
    return lines


for test in (test_stats, test_plan, test_bound, test_ways, test_commands, test_report, test_foretold):
    test()
print(f"1..{COUNT['n']}")
sys.exit(COUNT["failed"] != 0)
