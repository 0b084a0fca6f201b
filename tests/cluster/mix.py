#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""A mix of real jobs under several policies on a running testbed.

Every job is a process that really reads the disk, computes or holds memory.
Slowdown = turn-around time in the mix / turn-around time alone on its home
node (MODEL 1.1), both measured with the same command.  Arrivals, homes and
kinds come from the seed alone, so every policy gets the same jobs.
"""
import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import threading
import time

DISK = "/mnt/" + os.environ.get("IOCOM_TESTBED_MARK", "iocom-disk")
KIB = 64
# name: weight, declared needs, command
KINDS = {
    "io-small": (5, dict(io_rate=300, io_size=KIB * 1024, requests=700, cpu_time=0.1, mem="20M"),
                 ["io", DISK + "/data", "700", str(KIB), "SEED"]),
    "io-large": (4, dict(io_rate=300, io_size=KIB * 1024, requests=1500, cpu_time=0.2, mem="20M"),
                 ["io", DISK + "/data", "1500", str(KIB), "SEED"]),
    "cpu": (3, dict(io_rate=0, requests=0, cpu_time=1.2, mem="10M"), ["cpu", "1.2"]),
    "mem": (2, dict(io_rate=0, requests=0, cpu_time=0.4, mem="250M"), ["mem", "230", "0.4"]),
}
HOMES = {"n1": 7, "n2": 2, "n3": 1, "n4": 1}


def make_jobs(count, seconds, seed):
    rng = random.Random(seed)
    at, jobs = 0.0, []
    for number in range(count):
        at += rng.expovariate(count / seconds)
        kind = rng.choices(list(KINDS), [k[0] for k in KINDS.values()])[0]
        home = rng.choices(list(HOMES), list(HOMES.values()))[0]
        jobs.append(dict(number=number, at=at, kind=kind, home=home))
    return jobs


def command(testbed, work, job, policy):
    _, needs, argv = KINDS[job["kind"]]
    options = [f"--{k.replace('_', '-')}={v}" for k, v in needs.items()]
    argv = [str(job["number"] + 1) if a == "SEED" else a for a in argv]
    return [testbed, "exec", job["home"], "--", "iocom", "run", f"--policy={policy}", *options,
            f"--class=mix-{job['kind']}", "--", work, *argv]


def run_one(testbed, work, job, policy, out):
    began = time.monotonic()
    done = subprocess.run(command(testbed, work, job, policy), stdin=subprocess.DEVNULL,
                          capture_output=True, text=True)
    out.append(dict(job, ms=(time.monotonic() - began) * 1000, status=done.returncode,
                    error=done.stderr.strip()))


def measure_alone(testbed, work, repeat):
    """Returns the median turn-around times alone: kinds run one after the other, nodes side by
    side (each has a disk and a CPU share of its own)."""
    alone = {}
    for kind in KINDS:
        for _ in range(repeat):
            results, threads = [], []
            for number, home in enumerate(HOMES):
                job = dict(number=number, kind=kind, home=home)
                thread = threading.Thread(target=run_one,
                                          args=(testbed, work, job, "nlb", results))
                thread.start()
                threads.append(thread)
            for thread in threads:
                thread.join()
            for r in results:
                if r["status"]:
                    sys.exit(f"mix: {kind} alone on {r['home']} failed: {r['error']}")
                alone.setdefault((kind, r["home"]), []).append(r["ms"])
    return {key: statistics.median(v) for key, v in alone.items()}


def quiet(testbed, seconds=40):
    """Waits until no node has a job or a busy disk, so that policies start equal."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        out = subprocess.run([testbed, "exec", "n1", "--", "iocom", "nodes", "--json"],
                             capture_output=True, text=True).stdout
        nodes = json.loads(out)["nodes"]
        if all(n["jobs"] == 0 and n["disk_utilisation"] < 0.03 and n["run_queue"] < 0.5
               for n in nodes):
            return
        time.sleep(0.5)


def run_policy(testbed, work, jobs, policy):
    results, threads = [], []
    began = time.monotonic()
    for job in jobs:
        time.sleep(max(0, job["at"] - (time.monotonic() - began)))
        thread = threading.Thread(target=run_one, args=(testbed, work, job, policy, results))
        thread.start()
        threads.append(thread)
    for thread in threads:
        thread.join()
    return results, time.monotonic() - began


def run_only(args, jobs):
    failed = 0
    for policy in args.policies.split(","):
        for r in run_policy(args.testbed, args.work, jobs, policy)[0]:
            if r["status"]:
                failed += 1
                print(f"# failed: {r['kind']} from {r['home']}: {r['status']}: {r['error']}")
    return 1 if failed else 0


def placed(testbed):
    """Where each home's jobs ran, from the agents' own journals: name -> class, home, node."""
    jobs = {}
    for home in HOMES:
        out = subprocess.run([testbed, "exec", home, "--", "iocom", "jobs", "--here",
                              "--all", "--json"],
                             capture_output=True, text=True).stdout
        jobs.update((j["job"], (j["class"], j["home"], j["node"]))
                    for j in json.loads(out)["jobs"] if j["home"] == home)
    return jobs


def disk_s(testbed, jobs):
    """What JOBS ask of each node's disk, in seconds at its speed.  No clock is in it."""
    out = subprocess.run([testbed, "status", "--json"], capture_output=True, text=True).stdout
    mb_per_s = {n["name"]: n["disk_mb_per_s"] for n in json.loads(out)["nodes"]}
    seconds = dict.fromkeys(mb_per_s, 0.0)
    for name, _, node in jobs:
        requests = KINDS[name.removeprefix("mix-")][1]["requests"]
        seconds[node] += requests * KIB * 1024 / 1e6 / mb_per_s[node]
    return seconds


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--testbed", default="tests/testbed/testbed")
    parser.add_argument("--work", default=os.path.abspath("build/tests/tools/work"))
    parser.add_argument("--jobs", type=int, default=40)
    parser.add_argument("--seconds", type=float, default=45, help="span of the arrivals")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--policies", default="nlb,cpu-re,iocm-re")
    parser.add_argument("--homes", help="where jobs are submitted, with weights: n1=7,n2=2")
    parser.add_argument("--run-only", action="store_true",
                        help="only run the jobs; exit 1 when one fails")
    parser.add_argument("--out", help="write all numbers to this JSON file")
    args = parser.parse_args()
    if args.homes:
        HOMES.clear()
        HOMES.update((h, int(w)) for h, w in (p.split("=") for p in args.homes.split(",")))
    jobs = make_jobs(args.jobs, args.seconds, args.seed)
    if args.run_only:
        sys.exit(run_only(args, jobs))
    alone = measure_alone(args.testbed, args.work, 3)
    summary, before = {}, placed(args.testbed)
    print(f"# | {args.jobs} jobs, seed {args.seed}, arrivals over {args.seconds:.0f} s: " +
          ", ".join(f"{sum(j['kind'] == k for j in jobs)} {k}" for k in KINDS))
    print("# | policy    mean slowdown  median     p95   io jobs  cpu jobs  mem jobs  moved  busiest disk  makespan")
    for policy in args.policies.split(","):
        quiet(args.testbed)
        results, span = run_policy(args.testbed, args.work, jobs, policy)
        failed = [r for r in results if r["status"]]
        for r in results:
            r["slowdown"] = r["ms"] / alone[(r["kind"], r["home"])]
        slow = sorted(r["slowdown"] for r in results)
        now = placed(args.testbed)
        new = [now[job] for job in now.keys() - before.keys()]
        disks = disk_s(args.testbed, new)

        def mean_of(prefix):
            values = [r["slowdown"] for r in results if r["kind"].startswith(prefix)]
            return statistics.mean(values) if values else float("nan")
        summary[policy] = dict(mean=statistics.mean(slow), median=statistics.median(slow),
                               p95=slow[int(0.95 * (len(slow) - 1))], failed=len(failed),
                               io=mean_of("io"), cpu=mean_of("cpu"), mem=mean_of("mem"),
                               moved=sum(home != node for _, home, node in new), disk_s=disks,
                               makespan_s=span, jobs=results)
        before = now
        s = summary[policy]
        print(f"# | {policy:9} {s['mean']:13.2f} {s['median']:7.2f} {s['p95']:7.2f} {s['io']:9.2f}"
              f" {s['cpu']:9.2f} {s['mem']:9.2f} {s['moved']:6d} {max(disks.values()):12.1f}s {span:8.0f}s", flush=True)
        for r in failed:
            print(f"# failed: {r['kind']} from {r['home']}: status {r['status']}: {r['error']}")
    if args.out:
        with open(args.out, "w", encoding="utf-8") as f:
            json.dump(dict(policies=summary, alone_ms={f"{k}@{h}": v for (k, h), v in alone.items()}),
                      f, indent=1)


if __name__ == "__main__":
    main()
