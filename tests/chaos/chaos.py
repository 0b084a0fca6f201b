#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Chaos on a running testbed: jobs under kills, cuts, full disks and wrong clocks are judged.

Everything comes from --seed; --plan FILE replays the plan in a log instead.  The log has
one JSON object a line: the plan, the events as they happened, the jobs, the complaints.
"""
import argparse
import collections
import concurrent.futures
import json
import re
import statistics
import sys
import threading
import time

import judge
import plan as plans
import sins
from bed import KEEP_JOBS, Bed
from events import Events
from kinds import KINDS
from restartable import read_attempts

END_S = 60       # for the last clients to end after all repairs
SETTLE_S = 25    # for the listings to be final
HEARD_S = 60     # for every node to hear every other one
REASONS = 12     # lines of the table
SIN_TRIES = 3    # an agent may clean up before the judge looks
LIST_EVERY = 20  # rounds, so that no journal forgets a job before
MOST_ROWS = KEEP_JOBS + 400  # plus what a minute adds between two prunings
TWICE = re.compile("ran [0-9]+ times|beside another|before the last sign")
VERDICTS = ("whole", "client killed", "refused", "lost", "broken")


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
    """Runs all rounds; returns the jobs and the events."""
    jobs, over = [], []
    events = Events(bed, lambda: [j for j in jobs if j.running()], log)
    for number, turn in enumerate(plan):
        began = time.monotonic()
        for job in turn["jobs"]:
            jobs.append(KINDS[job["kind"]](bed, job, marks))
            jobs[-1].start()
        time.sleep(0.4 * turn["seconds"])
        # A long event delays the plan only if two more wait behind it.
        while events.queues[turn["event"]["node"]].unfinished_tasks > 2:
            time.sleep(0.05)
        events.put(turn["event"])
        time.sleep(max(0.0, turn["seconds"] - (time.monotonic() - began)))
        # Start no more jobs than the nodes can run.
        while sum(j.status is None for j in jobs) > 40:
            time.sleep(0.1)
        for node in bed.nodes.values():
            node.overfull = node.overfull or judge.overfull(judge.spools(node), MOST_ROWS)
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


def tried(marks):
    """Returns what restartable jobs noted about their attempts."""
    try:
        with open(f"{marks}.attempts", encoding="utf-8") as f:
            return read_attempts(f.read())
    except FileNotFoundError:
        return {}


def facts_of(jobs, marks, listings):
    counts, attempts = count_marks(marks), tried(marks)
    for job in jobs:
        spec = job.job
        yield judge.Facts(spec["id"], job.name(), job.status, job.output, spec["id"] % 8,
                          job.err, counts[spec["id"]], listings[spec["home"]].get(job.name()),
                          job.killed_by_us, job.hung, job.bad, job.waited, job.most,
                          attempts.get(spec["id"]))


def settle(bed, jobs, marks, seconds):
    """Waits until the listings are final and no job has left anything, or the time is up."""
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


def finish_all(jobs):
    """Attaches once more, to get the rest of a killed client's output or a detached job's.

    Only to jobs that the journals still have for certain: the others may be forgotten.
    """
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda job: job.finish(), jobs[-KEEP_JOBS:]))


def look_all(bed, marks):
    return {name: judge.look(bed, node, marks) for name, node in bed.nodes.items()}


def fresh_fds(bed):
    """Starts new agents after the others ended; returns their descriptors before any work."""
    for node in bed.nodes.values():
        node.start_agent()
    bed.wait_heard(HEARD_S)
    time.sleep(1)
    return {name: judge.fds(node) for name, node in bed.nodes.items()}


def judge_all(bed, jobs, facts, before, marks):
    """Returns [(kind, complaint)], verdicts by kind of job, the used agents' descriptors."""
    verdicts, complaints = collections.defaultdict(collections.Counter), []
    for job, f in zip(jobs, facts):
        kind, bad = judge.verdict(f)
        verdicts[job.job["kind"]][kind] += 1
        complaints += [("twice" if TWICE.search(b) else "jobs", b) for b in bad]
    after = look_all(bed, marks)
    # If the client did not confirm that it had everything, the record is kept for another client.
    kept = {name for job, f in zip(jobs, facts) for name in job.names()
            if f.killed or f.status == judge.UNKNOWN or job.job["kind"] != "piped"}
    for name in bed.nodes:
        complaints += [("spools", f"{name}: {c}") for c in bed.nodes[name].overfull]
        for kind, bad in judge.leaks(name, before[name], after[name], MOST_ROWS, kept).items():
            complaints += [(kind, b) for b in bad]
    return complaints, verdicts, {name: a.fds for name, a in after.items()}


def reasons_of(facts):
    """Returns {(verdict, sentence): how often}, without names and numbers."""
    found = collections.Counter()
    for f in facts:
        what = judge.verdict(f)[0]
        if what in ("lost", "refused"):
            said = re.sub(r"^iocom [a-z]+: ", "", f.reason.splitlines()[-1] if f.reason else "")
            said = re.sub(r"[a-z0-9]+-[0-9a-f]{8}-[0-9]+", "JOB", said)
            said = re.sub(r"'?\bn[1-9]\b'?", "NODE", re.sub(r"[0-9.]{2,}|/[^ ]+", "_", said))
            found[what, said[:90]] += 1
    return found


def percentile(values, p):
    return sorted(values)[min(len(values) - 1, int(p * len(values)))] if values else 0.0


def print_table(args, plan, events, verdicts, facts, complaints, bed, seconds):
    kinds = collections.Counter(kind for kind, _ in complaints)
    times = [t for n in bed.nodes.values() for t in n.reattached]
    counts = ", ".join(f"{k} {n}" for k, n in sorted(events.counts.items()))
    missed = sum(events.missed.values())
    print(f"# |chaos: {len(plan)} rounds, seed {args.seed}, {len(bed.nodes)} nodes, "
          f"{seconds:.0f} s")
    print(f"# |  events            {sum(events.counts.values())} ({missed} found nothing to hit)")
    print(f"# |                    {counts}")
    print("# |  jobs              " + "".join(f"{what:>15}" for what in ("all", *VERDICTS)))
    for kind, of in sorted(verdicts.items()):
        print(f"# |    {kind:<16}" + "".join(
            f"{n:>15}" for n in (sum(of.values()), *(of[what] for what in VERDICTS))))
    for (what, why), n in reasons_of(facts).most_common(REASONS):
        print(f"# |  {what + ' with':<17} {n} times: {why}")
    gaps = [gap for f in facts if f.attempts for gap in f.attempts.gaps]
    if gaps:
        print(f"# |  run again         {len(gaps)} times, the next at least {min(gaps):.2f} s "
              "after the last sign of the one before")
    print(f"# |  twice             {kinds['twice']}")
    print(f"# |  orphans           {kinds['orphans']}")
    print("# |  leaks             " + ", ".join(
        f"{k} {kinds[k]}" for k in ("cgroups", "mounts", "fds", "files", "rows", "spools")))
    if times:
        print(f"# |  agent reattached  {len(times)} times: "
              f"median {statistics.median(times):.2f} s, p99 {percentile(times, 0.99):.2f} s, "
              f"longest {max(times):.2f} s")


def self_test(bed, facts, before, marks, log):
    """Commits each sin on the running testbed; returns those that the judge missed."""
    missed = []
    once = next((f for f in facts if f.marks == 1), None)
    if once:
        sins.run_again(bed, once, marks)
        again = judge.verdict(once._replace(marks=count_marks(marks)[once.id]))[1]
        if not any("ran 2 times" in complaint for complaint in again):
            missed.append(f"job {once.id} was run again, and nobody complains")
    for name, sin in sins.ALL.items():
        for _ in range(SIN_TRIES):
            with sin(bed, marks) as expected:
                found = {}
                for node, now in look_all(bed, marks).items():
                    for kind, bad in judge.leaks(node, before[node], now, MOST_ROWS).items():
                        found.setdefault(kind, []).extend(bad)
            log({"sin": name, "found": found})
            if found.get(expected):
                break
        else:
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
    if not bed.wait_heard(HEARD_S):
        print("not ok 1 - the nodes hear each other")
        return 1
    before, began = look_all(bed, args.marks), time.monotonic()
    jobs, events = run(bed, plan, args.marks, log)
    for node in bed.nodes.values():
        if node.found_dead():
            node.start_agent()
    settle(bed, jobs, args.marks, SETTLE_S)
    # A client that attaches before its node has heard of the job's node is sent away.
    if not bed.wait_heard(HEARD_S):
        events.failures.append(f"{HEARD_S} s after all repairs the nodes do not hear each other")
    finish_all(jobs)
    facts = settle(bed, jobs, args.marks, SETTLE_S)
    complaints, verdicts, worn = judge_all(bed, jobs, facts, before, args.marks)
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
        log(dict(job=job.job, names=job.names(), status=f.status, output=f.output, marks=f.marks,
                 waited=f.waited, attempts=f.attempts,
                 reason=f.reason, row=f.row, began=job.began, ended=job.ended,
                 verdict=judge.verdict(f)[0]))
    for kind, complaint in complaints:
        log(dict(complaint=complaint, kind=kind))
    print_table(args, plan, events, verdicts, facts, complaints, bed, seconds)
    return report(args, complaints, verdicts, self_test(bed, facts, before, args.marks, log))


def report(args, complaints, verdicts, missed):
    """Prints TAP."""
    number = 0
    for what, kinds in (("every job ran at most once", {"twice"}),
                        ("every output is whole, or the job is reported with the reason",
                         {"jobs"}),
                        ("no process of a job is left", {"orphans"}),
                        ("no cgroup, mount, descriptor, file is left", {"cgroups", "mounts", "fds",
                                                                       "files"}),
                        ("what is kept of outputs stays in its bounds", {"spools"}),
                        ("the journals hold what they must and no more", {"rows"}),
                        ("nothing died but what was killed", {"deaths"}),
                        ("every event was done and mended", {"events"})):
        bad = [c for kind, c in complaints if kind in kinds]
        number += 1
        print(f"{'not ok' if bad else 'ok'} {number} - {what}")
        for complaint in bad[:20]:
            print(f"# {complaint}")
    for kind in KINDS:
        number += 1
        whole = verdicts[kind]["whole"] or not verdicts[kind]
        print(f"{'ok' if whole else 'not ok'} {number} - some {kind} jobs are whole")
        if not whole:
            complaints = [*complaints, ("jobs", f"no {kind} job is whole")]
    number += 1
    print(f"{'not ok' if missed else 'ok'} {number} - what is left behind on purpose is found")
    for m in missed:
        print(f"# {m}")
    print(f"1..{number}")
    if complaints or missed:
        print(f"# replay: make chaos SEED={args.seed} ROUNDS={args.rounds}, or PLAN={args.log}")
    return 1 if complaints or missed else 0


if __name__ == "__main__":
    sys.exit(main())
