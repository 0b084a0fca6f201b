#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Chaos on a testbed that is up: jobs under kills, cuts and full disks, then a judgement.

Everything comes from --seed; --plan FILE replays the plan in a log instead.  The log has
one JSON object a line: the plan, the events as they happened, the jobs, the complaints.
"""
import argparse
import collections
import json
import statistics
import sys
import threading
import time

import judge
import plan as plans
import sins
from bed import KEEP_JOBS, Bed
from events import Events
from jobs import KINDS

END_S = 60       # for the last clients to end, after all is mended
SETTLE_S = 25    # for the listings to be final
LIST_EVERY = 20  # rounds: before a journal forgets a job
MOST_ROWS = KEEP_JOBS + 400  # what a minute brings between two prunings


class Log:
    def __init__(self, path):
        self.file = open(path, "w", encoding="utf-8")
        self.lock = threading.Lock()

    def __call__(self, entry):
        with self.lock:
            self.file.write(json.dumps(entry) + "\n")
            self.file.flush()


def read_plan(path):
    with open(path, encoding="utf-8") as f:
        return json.loads(f.readline())["plan"]


def run(bed, plan, marks, log):
    """All rounds.  The jobs, and what was done."""
    jobs, over = [], []
    events = Events(bed, lambda: [j for j in jobs if j.running()], log)
    for number, turn in enumerate(plan):
        began = time.monotonic()
        for job in turn["jobs"]:
            jobs.append(KINDS[job["kind"]](bed, job, marks))
            jobs[-1].start()
        time.sleep(0.4 * turn["seconds"])
        # An event that takes long holds the plan up only where two wait behind it.
        while events.queues[turn["event"]["node"]].unfinished_tasks > 2:
            time.sleep(0.05)
        events.put(turn["event"])
        time.sleep(max(0.0, turn["seconds"] - (time.monotonic() - began)))
        # Nobody starts more than the nodes can run.
        while sum(j.status is None for j in jobs) > 40:
            time.sleep(0.1)
        if number % LIST_EVERY == LIST_EVERY - 1:
            for node in bed.nodes.values():
                node.jobs()
        if number % 50 == 49:
            print(f"# round {number + 1}: {sum(j.status is None for j in jobs)} jobs under way",
                  file=sys.stderr, flush=True)
    limit = time.monotonic() + 120
    while events.waiting() and time.monotonic() < limit:
        time.sleep(0.1)
    events.finish()
    until = time.monotonic() + END_S
    for job in jobs:
        job.wait(until)
    return jobs, events


def count_marks(path):
    with open(path, encoding="utf-8") as f:
        return collections.Counter(int(line.split()[0]) for line in f)


def facts_of(jobs, marks, listings):
    counts = count_marks(marks)
    for job in jobs:
        spec = job.job
        yield judge.Facts(spec["id"], job.name(), job.status, job.output, spec["id"] % 8,
                          job.err, counts[spec["id"]], listings[spec["home"]].get(job.name()),
                          job.killed_by_us, job.hung, job.rest)


def settle(bed, jobs, marks, seconds):
    """Until the listings are final and nothing of a job is left, or the time is up."""
    limit = time.monotonic() + seconds
    while True:
        listings = {name: node.jobs() for name, node in bed.nodes.items()}
        facts = list(facts_of(jobs, marks, listings))
        done = all(judge.settled(f) for f in facts) and not any(
            judge.orphans(bed, n, marks) or judge.rows(n)["due"] or judge.rows(n)["open"]
            for n in bed.nodes.values())
        if done or time.monotonic() >= limit:
            return facts
        time.sleep(0.5)


def attach_all(jobs):
    """Whose client was killed: another one comes for what is kept."""
    for job in jobs:
        if job.killed_by_us and job.name():
            job.attach()


def look_all(bed, marks):
    return {name: judge.look(bed, node, marks) for name, node in bed.nodes.items()}


def fresh_fds(bed):
    """Descriptors of agents that have done nothing yet: the ones before have ended."""
    for node in bed.nodes.values():
        node.start_agent()
    bed.wait_heard(20)
    time.sleep(1)
    return {name: judge.fds(node) for name, node in bed.nodes.items()}


def judge_all(bed, facts, before, marks):
    """[(kind, complaint)], verdicts by kind, descriptors of the agents that served."""
    verdicts, complaints = collections.Counter(), []
    for f in facts:
        kind, bad = judge.verdict(f)
        verdicts[kind] += 1
        complaints += [("twice" if "times" in b and f.marks > 1 else "jobs", b) for b in bad]
    after = look_all(bed, marks)
    # Whose client did not say that it had all: its record is for another one.
    kept = [f.name for f in facts if f.name and (f.killed or f.status == judge.UNKNOWN)]
    for name in bed.nodes:
        for kind, bad in judge.leaks(name, before[name], after[name], MOST_ROWS, kept).items():
            complaints += [(kind, b) for b in bad]
    return complaints, verdicts, {name: a.fds for name, a in after.items()}


def percentile(values, p):
    return sorted(values)[min(len(values) - 1, int(p * len(values)))] if values else 0.0


def print_table(args, plan, events, verdicts, complaints, bed, seconds):
    kinds = collections.Counter(kind for kind, _ in complaints)
    times = [t for n in bed.nodes.values() for t in n.reattached]
    counts = ", ".join(f"{k} {n}" for k, n in sorted(events.counts.items()))
    missed = sum(events.missed.values())
    print(f"# |chaos: {len(plan)} rounds, seed {args.seed}, {len(bed.nodes)} nodes, {seconds:.0f} s")
    print(f"# |  events            {sum(events.counts.values())} ({missed} found nothing to hit)")
    print(f"# |                    {counts}")
    print(f"# |  jobs              {sum(verdicts.values())}: whole {verdicts['whole']}, client killed "
          f"{verdicts['client killed']}, refused with reason {verdicts['refused']}, "
          f"lost with reason {verdicts['lost']}, broken {verdicts['broken']}")
    print(f"# |  twice             {kinds['twice']}")
    print(f"# |  orphans           {kinds['orphans']}")
    print("# |  leaks             " + ", ".join(
        f"{k} {kinds[k]}" for k in ("cgroups", "mounts", "fds", "files", "rows")))
    if times:
        print(f"# |  agent reattached  {len(times)} times: median {statistics.median(times):.2f} s, "
              f"p99 {percentile(times, 0.99):.2f} s, longest {max(times):.2f} s")


def self_test(bed, facts, before, marks, log):
    """Each sin is committed on the living testbed, and must be found: [what was missed]."""
    missed = []
    once = next((f for f in facts if f.marks == 1), None)
    if once:
        sins.run_again(bed, once, marks)
        again = judge.verdict(once._replace(marks=count_marks(marks)[once.id]))[1]
        if not any("ran 2 times" in complaint for complaint in again):
            missed.append(f"job {once.id} was run again, and nobody complains")
    for name, sin in sins.ALL.items():
        with sin(bed, marks) as expected:
            found = {}
            for node, now in look_all(bed, marks).items():
                for kind, bad in judge.leaks(node, before[node], now, MOST_ROWS).items():
                    found.setdefault(kind, []).extend(bad)
            log({"sin": name, "found": found})
            if not found.get(expected):
                missed.append(f"{name}: no complaint of kind {expected}")
    return missed


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--testbed", required=True)
    parser.add_argument("--build", required=True)
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--plan", help="replay the plan of this log")
    parser.add_argument("--log", required=True)
    parser.add_argument("--marks", required=True, help="the file in which jobs leave marks")
    args = parser.parse_args()
    bed = Bed(args.testbed, args.build)
    plan = read_plan(args.plan) if args.plan else plans.make(args.seed, args.rounds,
                                                             sorted(bed.nodes))
    log = Log(args.log)
    log(dict(seed=args.seed, plan=plan))
    open(args.marks, "w", encoding="utf-8").close()
    for node in bed.nodes.values():
        node.small_state()
    for node in bed.nodes.values():
        node.start_agent()
    if not bed.wait_heard(30):
        print("not ok 1 - the nodes hear each other")
        return 1
    before, began = look_all(bed, args.marks), time.monotonic()
    jobs, events = run(bed, plan, args.marks, log)
    for node in bed.nodes.values():
        if node.found_dead():
            node.start_agent()
    settle(bed, jobs, args.marks, SETTLE_S)
    attach_all(jobs)
    facts = settle(bed, jobs, args.marks, SETTLE_S)
    complaints, verdicts, worn = judge_all(bed, facts, before, args.marks)
    for node in bed.nodes.values():
        node.end_agent()  # counts one that was dead before
    complaints += [("events", f) for f in events.failures]
    complaints += [("deaths", d) for d in judge.deaths(
        facts, events.shims_killed, {n.name: n.deaths for n in bed.nodes.values()})]
    seconds = time.monotonic() - began
    fresh = fresh_fds(bed)
    for name in bed.nodes:
        complaints += [("fds", c) for c in judge.fd_leaks(name, worn[name], fresh[name])]
    for job, f in zip(jobs, facts):
        log(dict(job=job.job, name=f.name, status=f.status, output=f.output, marks=f.marks,
                 reason=f.reason, row=f.row, began=job.began, ended=job.ended,
                 verdict=judge.verdict(f)[0]))
    for kind, complaint in complaints:
        log(dict(complaint=complaint, kind=kind))
    print_table(args, plan, events, verdicts, complaints, bed, seconds)
    return report(args, complaints, verdicts, self_test(bed, facts, before, args.marks, log))


def report(args, complaints, verdicts, missed):
    """TAP."""
    number = 0
    for what, kinds in (("every job ran at most once", {"twice"}),
                        ("every output is whole, or the job is reported with the reason",
                         {"jobs"}),
                        ("no process of a job is left", {"orphans"}),
                        ("no cgroup, mount, descriptor, file is left", {"cgroups", "mounts", "fds",
                                                                       "files"}),
                        ("the journals hold what they must and no more", {"rows"}),
                        ("nothing died but what was killed", {"deaths"}),
                        ("every event was done and mended", {"events"})):
        bad = [c for kind, c in complaints if kind in kinds]
        number += 1
        print(f"{'not ok' if bad else 'ok'} {number} - {what}")
        for complaint in bad[:20]:
            print(f"# {complaint}")
    number += 1
    print(f"{'ok' if verdicts['whole'] else 'not ok'} {number} - some jobs are whole")
    number += 1
    print(f"{'not ok' if missed else 'ok'} {number} - what is left behind on purpose is found")
    for m in missed:
        print(f"# {m}")
    print(f"1..{number}")
    if complaints or missed:
        print(f"# replay: make chaos SEED={args.seed} ROUNDS={args.rounds}, or PLAN={args.log}")
    return 1 if complaints or missed or not verdicts["whole"] else 0


if __name__ == "__main__":
    sys.exit(main())
