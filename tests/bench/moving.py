#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Long jobs on a running testbed under IOCM-RE and under IOCM-PM, which moves them, too.

The shape is that of ACM-7: jobs that mostly read a disk, of very unequal lengths, submitted mostly
at one node.  Each pass is one seed under both policies, in turns first; the same jobs are run by
the simulator.  Printed: the ratio of the mean slowdowns of each pass, their geometric mean with its
95 % interval by bootstrap, what the simulator says, and, of the moves that were made, how long they
were expected to take from there on and how long it was.
"""
import argparse
import json
import math
import os
import random
import statistics
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "cluster"))
import mix  # noqa: E402

MB_PER_S = 20
CPU_S = {"short": 0.1, "middle": 0.2, "long": 0.5}
REQUESTS = {"short": 600, "middle": 2000, "long": 7000}  # 2, 7 and 23 s of an idle disk
WEIGHTS = {"short": 4, "middle": 3, "long": 2}
HOMES = {"n1": 6, "n2": 3, "n3": 1, "n4": 1, "n5": 1, "n6": 1}


def use_long_jobs():
    mix.KINDS.clear()
    for kind, requests in REQUESTS.items():
        needs = dict(io_rate=300, io_size=mix.KIB * 1024, requests=requests, cpu_time=CPU_S[kind], mem="20M")
        mix.KINDS[kind] = (WEIGHTS[kind], needs, ["io", mix.DISK + "/data", str(requests), str(mix.KIB), "SEED"])
    mix.HOMES.clear()
    mix.HOMES.update(HOMES)
    plain = mix.command

    def migratable(testbed, work, job, policy):
        argv = plain(testbed, work, job, policy)
        at = argv.index("run") + 1
        return argv[:at] + ["--migratable"] + argv[at:]
    mix.command = migratable


def iocom(testbed, node, *argv):
    done = subprocess.run([testbed, "exec", node, "--", "iocom", *argv], capture_output=True, text=True)
    return json.loads(done.stdout) if done.returncode == 0 else {}


def moves_of(testbed, names):
    """Of jobs {name: home}: (moves, stayed, [(expected ms, actual ms)] of the last move of each)."""
    made = stayed = 0
    outcomes = []
    for name, home in names.items():
        told = iocom(testbed, home, "explain", "--json", name)
        moves = told.get("moves", [])
        gone = [m for m in moves if m["state"] == "resumed"]
        made += len(gone)
        stayed += sum(m["state"] == "aborted" for m in moves)
        if gone and gone[-1].get("there_ms"):
            outcomes.append((gone[-1]["there_ms"] + gone[-1]["cost_ms"],
                             (told["record"]["end_ns"] - gone[-1]["decided_ns"]) / 1e6))
    return made, stayed, outcomes


def simulated(build, jobs):
    """The ratio of the mean slowdowns by the simulator, and each of them."""
    with tempfile.TemporaryDirectory() as directory:
        trace = os.path.join(directory, "trace")
        with open(trace, "w", encoding="ascii") as f:
            for j in jobs:
                cpu, requests = CPU_S[j["kind"]], REQUESTS[j["kind"]]
                print(j["at"], int(j["home"][1:]) - 1, cpu, 20, requests / (cpu * 1e3), -1, "r", 0, file=f)
        nodes = f"6xfc:disk_mb_per_s={MB_PER_S},disk_fixed_ms=0.1,ram_mb=1000,network_mb_per_s=125"
        done = subprocess.run(
            [os.path.join(build, "iocom-sim"), "run", "--workload", trace, "--nodes", nodes, "--policy",
             "iocm-re,iocm-pm", "--seeds", "1", "--json", "--set", f"load.request_kb={mix.KIB}", "--set",
             "load.request_sd_kb=0", "--set", "load.reaccess=0", "--set", "load.faults_per_ms=0",
             "--set", "migration_fixed_ms=400"],
            capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"moving: the simulator says: {done.stderr.strip()}")
        return json.loads(done.stdout)


def sim_means(document):
    return {r["policy"]: r["measures"]["slowdown"]["mean"] for r in document["results"]}


def interval(ratios, rng):
    logs = [math.log(r) for r in ratios]
    means = sorted(statistics.mean(rng.choices(logs, k=len(logs))) for _ in range(4000))
    return math.exp(statistics.mean(logs)), math.exp(means[100]), math.exp(means[3899])


def one_policy(args, jobs, policy, alone, seen):
    mix.quiet(args.testbed)
    results, span = mix.run_policy(args.testbed, args.work, jobs, policy)
    for r in results:
        if r["status"]:
            print(f"# failed: {r['kind']} from {r['home']}: status {r['status']}: {r['error']}")
        r["slowdown"] = r["ms"] / alone[(r["kind"], r["home"])]
    now = mix.placed(args.testbed)
    names = {name: home for name, (_, home, _) in now.items() if name not in seen}
    seen.update(now)
    return dict(mean=statistics.mean(r["slowdown"] for r in results), span=span,
                failed=sum(r["status"] != 0 for r in results), moves=moves_of(args.testbed, names))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--testbed", default="tests/testbed/testbed")
    parser.add_argument("--build", default="build")
    parser.add_argument("--passes", type=int, default=5)
    parser.add_argument("--jobs", type=int, default=30)
    parser.add_argument("--seconds", type=float, default=40, help="span of the arrivals")
    parser.add_argument("--out")
    args = parser.parse_args()
    args.work = os.path.abspath(os.path.join(args.build, "tests/tools/work"))
    use_long_jobs()
    alone = mix.measure_alone(args.testbed, args.work, 1)
    seen, ratios, said, outcomes, failed = dict(mix.placed(args.testbed)), [], [], [], 0
    print("pass  IOCM-RE  IOCM-PM   PM/RE  simulated PM/RE  moved  stayed", flush=True)
    for seed in range(1, args.passes + 1):
        jobs = mix.make_jobs(args.jobs, args.seconds, seed)
        order = ("iocm-re", "iocm-pm") if seed % 2 else ("iocm-pm", "iocm-re")
        got = {policy: one_policy(args, jobs, policy, alone, seen) for policy in order}
        sim = sim_means(simulated(args.build, jobs))
        ratios.append(got["iocm-pm"]["mean"] / got["iocm-re"]["mean"])
        said.append(sim["iocm-pm"] / sim["iocm-re"])
        made, stayed, results = got["iocm-pm"]["moves"]
        outcomes += results
        failed += got["iocm-re"]["failed"] + got["iocm-pm"]["failed"]
        print(f"{seed:4}  {got['iocm-re']['mean']:7.2f}  {got['iocm-pm']['mean']:7.2f}  {ratios[-1]:6.3f}"
              f"  {said[-1]:15.3f}  {made:5}  {stayed:6}", flush=True)
    mean, low, high = interval(ratios, random.Random(1))
    print(f"IOCM-PM / IOCM-RE, mean slowdown: {mean:.3f} (95 %: {low:.3f} to {high:.3f}); "
          f"the simulator: {math.exp(statistics.mean(map(math.log, said))):.3f}")
    if outcomes:
        ratio = sorted(actual / expected for expected, actual in outcomes)
        print(f"from the last move of a job to its end: {statistics.median(ratio):.2f} times what was expected"
              f" (median of {len(ratio)}; quartiles {ratio[len(ratio) // 4]:.2f} and {ratio[3 * len(ratio) // 4]:.2f})")
    if failed:
        print(f"{failed} jobs failed")
    if args.out:
        with open(args.out, "w", encoding="utf-8") as f:
            json.dump(dict(ratios=ratios, simulated=said, outcomes=outcomes), f)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
