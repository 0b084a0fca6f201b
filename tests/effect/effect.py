#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""bench-effect: whether placement by iocom helps real applications; README.md says what it does.

Everything that was measured is kept in the directory --out, one file a pass, so that an interrupted
run goes on where it was and a report can be made again (--report).
"""
import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time

import bed as beds
import choosers
import estimates
import plan
import programs
import replayed
import report

DISK_TOLERANCE = 0.1
JOB_LIMIT_S = 300
QUIET_S = 40
DISK_SIZE_MB = 1024
VERSION = 2               # of the files in --out


def say(text):
    print(text, flush=True)


def clock(seconds):
    return f"{int(seconds) // 60}:{int(seconds) % 60:02d}"


def on_signals(handler):
    for name in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(name, handler)


class Store:
    """The directory of the results."""

    def __init__(self, directory):
        self.directory = directory
        os.makedirs(self.path("passes"), exist_ok=True)

    def path(self, *parts):
        return os.path.join(self.directory, *parts)

    def read(self, name, default=None):
        try:
            with open(self.path(name), encoding="utf-8") as f:
                return json.load(f)
        except FileNotFoundError:
            return default

    def write(self, name, value):
        with open(self.path(name + ".new"), "w", encoding="utf-8") as f:
            json.dump(value, f, indent=1)
        os.replace(self.path(name + ".new"), self.path(name))

    @staticmethod
    def name(p, attempt):
        return f"passes/{p.cell.layout}-{p.cell.rate}-{p.repetition:02d}-{p.chooser}.{attempt}.json"

    def attempts(self, p):
        """The attempts at a pass, the first first."""
        out = []
        while (one := self.read(self.name(p, len(out) + 1))) is not None:
            out.append(one)
        return out

    def all(self):
        out = []
        for name in sorted(os.listdir(self.path("passes"))):
            if name.endswith(".json"):
                out.append(self.read("passes/" + name))
        return out


class Bench:
    def __init__(self, args, store):
        self.args, self.store = args, store
        self.bed, self.layout, self.accepted = None, None, None
        self.names, self.expected = [], {}
        self.alone = store.read("alone.json", {})
        self.profiles = store.read("profiles.json", {})
        self.gaps = store.read("gaps.json", {})

    # --- before the passes -----------------------------------------------------------

    def check_plan(self, wanted):
        """Results of other settings must not be mixed with ours."""
        found = self.store.read("plan.json")
        if found is not None and found != wanted:
            differ = [f"{k}: {found.get(k)} there, {wanted.get(k)} wanted"
                      for k in wanted if found.get(k) != wanted[k]]
            raise ValueError(f"{self.store.directory} holds another benchmark's results "
                             f"({'; '.join(differ)}): choose another OUT")
        self.store.write("plan.json", wanted)

    def prepare(self):
        """Makes the inputs; programs that this machine lacks are left out, with a sentence."""
        directory = self.store.path("inputs")
        known = self.store.read("inputs/expected.json")
        wanted = programs.of_set(self.args.set)
        if known is None:
            shutil.rmtree(directory, ignore_errors=True)
            known = dict(lines={}, skipped={})
            for name in wanted:
                try:
                    known["lines"][name] = self.prepare_one(directory, name)
                except programs.Missing as missing:
                    known["skipped"][name] = str(missing)
                    shutil.rmtree(os.path.join(directory, name), ignore_errors=True)
            self.store.write("inputs/expected.json", known)
        for name, reason in known["skipped"].items():
            say(f"skipped: {name}: {reason}")
        self.expected = known["lines"]
        self.names = [n for n in wanted if n in self.expected]
        if not self.names:
            raise ValueError("no program of the set can run on this machine")

    def prepare_one(self, directory, name):
        _, _, tools, maker, _, _ = programs.PROGRAMS[name]
        lacking = [t for t in tools if not shutil.which(t)]
        if lacking:
            raise programs.Missing(f"{lacking[0]} is not installed (make deps WITH=effect)")
        lines = []
        for variant in range(programs.VARIANTS):
            where = os.path.join(directory, name, str(variant))
            os.makedirs(where)
            rng = estimates.generator(self.args.seed, "inputs", name, variant)
            lines.append(maker(where, rng, self.args.scale))
        return lines

    def bring_up(self, layout):
        if self.layout == layout:
            return
        disks = self.args.disks or plan.LAYOUTS[layout]
        say(f"layout {layout}: {len(disks)} nodes, disks of {', '.join(map(str, disks))} MB/s")
        self.bed.up(disks, plan.CORES, plan.MEMORY_MB, DISK_SIZE_MB)
        self.layout = layout
        self.bed.load_inputs(self.store.path("inputs"))
        if not self.bed.quiet(QUIET_S):
            say("the cluster does not become quiet: going on")
        self.measure_alone()

    def command(self, program, variant, name):
        disk = self.bed.disk
        return ["sh", os.path.join(beds.ROOT, "tests/effect/job.sh"), self.bed.work, program,
                f"{disk}/inputs/{program}/{variant}", f"{disk}/job-{name}"]

    def options(self, program):
        """A class for each set of inputs' size: what was learned stays true."""
        return ["--class", f"effect-{program}"]

    def one_alone(self, node, program, run):
        before = beds.group_cpu_s(node["cgroup"]), self.bed.served_s(node["name"])
        job = beds.Job(self.bed, node["name"], ["--policy=nlb", *self.options(program)],
                       self.command(program, run % programs.VARIANTS, f"alone-{program}-{run}"))
        done = job.finish(JOB_LIMIT_S)
        self.judge(done, program, run % programs.VARIANTS)
        if done["wrong"]:
            raise beds.Broken(f"{program} alone on {node['name']}: {done['wrong']}")
        return dict(s=done["s"], cpu_s=beds.group_cpu_s(node["cgroup"]) - before[0],
                    disk_mb=(self.bed.served_s(node["name"]) - before[1]) * node["disk_mb_per_s"])

    def measure_alone(self):
        """Median times alone for each speed of disk, and with that the profiles.  Nodes of one
        speed are equal, so one of each is measured, two at a time."""
        speeds = {}
        for node in self.bed.nodes:
            speeds.setdefault(f"{node['disk_mb_per_s']:g}", node)
        todo = [n for s, n in speeds.items() if any(p not in self.alone.get(s, {})
                                                    for p in self.names)]
        for pair in (todo[i:i + 2] for i in range(0, len(todo), 2)):
            for _ in range(self.args.retries + 1):
                if self.measure_pair(pair) <= plan.FOREIGN_MAX:
                    break
            self.store.write("profiles.json", self.profiles)
            self.store.write("alone.json", self.alone)

    def measure_pair(self, pair):
        """Measures at the nodes of PAIR side by side; returns what others took of the machine."""
        say(f"  alone on {' and '.join(n['name'] for n in pair)}: "
            f"{len(self.names)} programs, {self.args.alone_runs + 1} times each")
        usage, failed = beds.Usage(), []
        threads = [threading.Thread(target=self.alone_on, args=(n, failed)) for n in pair]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        if failed:
            raise failed[0]
        foreign = usage.foreign()
        if foreign > plan.FOREIGN_MAX:
            say(f"  void: others took {foreign:.0%} of the machine while this was measured")
        for node in pair:
            speed = f"{node['disk_mb_per_s']:g}"
            for one in self.alone[speed].values():
                one["foreign"] = foreign
            self.profiles[speed] = self.bed.profiles(node["name"])
        return foreign

    def alone_on(self, node, failed):
        out = {}
        try:
            for program in self.names:
                runs = [self.one_alone(node, program, r) for r in range(self.args.alone_runs + 1)][1:]
                out[program] = {k: estimates.median([r[k] for r in runs]) for k in runs[0]}
        except (beds.Broken, OSError) as error:
            failed.append(error)
        self.alone[f"{node['disk_mb_per_s']:g}"] = out

    def alone_s(self, node_name, program):
        return self.alone[f"{self.bed.node(node_name)['disk_mb_per_s']:g}"][program]["s"]

    def needs(self):
        """What each program needs, from the runs alone: medians over the nodes' speeds."""
        speeds = {f"{n['disk_mb_per_s']:g}" for n in self.bed.nodes}
        return {p: dict(cpu_s=estimates.median([self.alone[s][p]["cpu_s"] for s in speeds]),
                        disk_mb=estimates.median([self.alone[s][p]["disk_mb"] for s in speeds]),
                        mem_mb=programs.PROGRAMS[p][4]) for p in self.names}

    def gap_s(self, cell):
        """The mean gap between arrivals, the same for all passes of a cell."""
        key = f"{cell.layout}-{cell.rate}"
        if key not in self.gaps:
            self.gaps[key] = estimates.mean_gap_s(
                self.needs(), {p: programs.PROGRAMS[p][1] for p in self.names},
                [n["cpu_cores"] for n in self.bed.nodes],
                [n["disk_mb_per_s"] for n in self.bed.nodes], plan.RATES[cell.rate])
            self.store.write("gaps.json", self.gaps)
        return self.gaps[key]

    # --- one pass ----------------------------------------------------------------------

    def judge(self, done, program, variant):
        """Sets `wrong`: why a job did not do what it should; "": it did."""
        if done["status"]:
            done["wrong"] = f"status {done['status']}: {done['errors']}"
        elif done["output"] != self.expected[program][variant]:
            done["wrong"] = (f"it printed '{done['output'][:80]}', not "
                             f"'{self.expected[program][variant]}'")
        else:
            done["wrong"] = ""

    def told(self, job):
        """The needs as options, as a user who knows the program would tell them."""
        need = self.needs()[job["program"]]
        size = programs.PROGRAMS[job["program"]][5]
        requests = max(1, round(need["disk_mb"] * 1e6 / size))
        return [f"--requests={requests}", f"--io-size={size}", f"--cpu-time={need['cpu_s']:.3f}",
                f"--io-rate={requests / self.alone_s(job['home'], job['program']):.2f}",
                f"--mem={need['mem_mb']}M"]

    def begin_equal(self, p):
        """Each pass begins with a quiet cluster and the same profiles; what speaks against it."""
        void = [] if self.bed.quiet(QUIET_S) else ["the cluster did not become quiet"]
        for node in self.bed.nodes:
            speed = f"{node['disk_mb_per_s']:g}"
            rows = dict(profile=[], behaviour=[]) if p.chooser.endswith("-first") \
                else self.profiles[speed]
            self.bed.set_profiles(node["name"], rows)
        return void + self.bed.wrong_disks(DISK_TOLERANCE)

    def place(self, p, job, simple):
        """The options of `iocom run` that place JOB."""
        policy = choosers.policy(p.chooser)
        if policy is None:
            return [f"--node={simple.choose(job, time.monotonic())}"]
        return [f"--policy={policy}", *(self.told(job) if p.chooser.endswith("-told") else [])]

    def run_pass(self, p):
        jobs = plan.jobs(p.cell, p.repetition, self.args.jobs, self.names, len(self.bed.nodes),
                         self.args.seed, self.gap_s(p.cell))
        nodes = [choosers.Node(n["name"], n["cpu_cores"], n["disk_mb_per_s"], n["memory_mb"])
                 for n in self.bed.nodes]
        simple = None if choosers.policy(p.chooser) else choosers.Simple(
            p.chooser, nodes, self.needs(), estimates.generator(self.args.seed, "choice", *p.cell,
                                                                p.repetition, p.chooser))
        void = self.begin_equal(p)
        recorders = replayed.Recorders(self.bed, self.store.path(self.directory(p, "recordings"))) \
            if self.args.recordings else None
        usage, began, lock, threads = beds.Usage(), time.monotonic(), threading.Lock(), []

        def finish(job, running, node):
            done = running.finish(JOB_LIMIT_S)
            self.judge(done, job["program"], job["variant"])
            if simple:
                with lock:
                    simple.ended(job, node, time.monotonic())
            job.update(done, late_s=running.began - began - job["at"],
                       alone_s=self.alone_s(job["home"], job["program"]))

        for job in jobs:
            time.sleep(max(0, job["at"] - (time.monotonic() - began)))
            with lock:
                options = self.place(p, job, simple)
            node = options[0].removeprefix("--node=")
            running = beds.Job(self.bed, job["home"], [*options, *self.options(job["program"])],
                               self.command(job["program"], job["variant"],
                                            f"{p.chooser}-{job['number']}"))
            threads.append(threading.Thread(target=finish, args=(job, running, node)))
            threads[-1].start()
        for t in threads:
            t.join()
        makespan_s = time.monotonic() - began
        foreign = usage.foreign()
        void += void_reasons(foreign, jobs)
        replay = self.replay(recorders) if recorders else None
        return dict(layout=p.cell.layout, rate=p.cell.rate, repetition=p.repetition,
                    chooser=p.chooser, foreign=foreign, void=void, makespan_s=makespan_s,
                    replayed=replay, jobs=[slim(j) for j in jobs])

    def replay(self, recorders):
        """Ends the recordings and returns what the simulator makes of them."""
        self.bed.wait_for_ends()
        return replayed.check(self.args.build, recorders.stop(),
                              recorders.directory + ".jsonl.gz")

    # --- all passes --------------------------------------------------------------------

    def wanting(self, todo):
        """The passes that are still to be run: without a valid attempt and with attempts left."""
        out = []
        for p in todo:
            before = self.store.attempts(p)
            if not any(not a["void"] for a in before) and len(before) <= self.args.retries:
                out.append(p)
        return out

    def run(self):
        args = self.args
        self.check_plan(dict(version=VERSION, set=args.set, jobs=args.jobs, seed=args.seed,
                             scale=args.scale, disks=args.disks,
                             recordings=args.recordings))
        self.prepare()
        wanted_cells = plan.cells(args.layouts, args.rates, args.full)
        accepted = self.store.read("accepted.json")
        if accepted is not None and not self.wanting(self.plan(wanted_cells, accepted)):
            say("all passes are there")
            return
        self.bed = beds.Bed(args.build)
        try:
            self.bed.begin()
            self.bring_up(wanted_cells[0].layout)
            accepted = self.bed.accepted(choosers.POLICIES)
            self.store.write("accepted.json", accepted)
            todo = self.plan(wanted_cells, accepted)
            say(f"{len({p.chooser for p in todo})} choosers, {len(wanted_cells)} cells, "
                f"{args.passes} repetitions: {len(todo)} passes of {args.jobs} jobs")
            self.run_all(todo)
        finally:
            self.take_down()

    def take_down(self):
        # A second signal must not interrupt the cleaning.
        on_signals(signal.SIG_IGN)
        self.bed.close()

    def plan(self, wanted_cells, accepted):
        """All passes, if the agents take the policies ACCEPTED."""
        names = plan.chooser_names("all" if self.args.full and self.args.choosers == "core"
                                   else self.args.choosers, accepted)
        return plan.passes(wanted_cells, names, self.args.passes, self.args.seed)

    def run_all(self, todo):
        while left := self.wanting(todo):
            began, spent = time.monotonic(), {}
            for done, p in enumerate(left):
                self.bring_up(p.cell.layout)
                start = time.monotonic()
                if not done:
                    say(f"{len(left)} passes to run, about "
                        f"{clock(sum(self.guess(q) for q in left))} min")
                    began = start
                began_ns = time.time_ns()
                one = self.run_pass(p)
                self.keep(p, one, began_ns)
                spent.setdefault(p.cell, []).append(time.monotonic() - start)
                rest = sum(estimates.mean(spent[q.cell]) if q.cell in spent else self.guess(q)
                           for q in left[done + 1:])
                slow = [j["s"] / j["alone_s"] for j in one["jobs"]]
                say(f"{clock(time.monotonic() - began)} {done + 1}/{len(left)} {p.cell.layout} "
                    f"{p.cell.rate} #{p.repetition} {p.chooser}: slowdown "
                    f"{estimates.mean(slow):.2f}, {one['makespan_s']:.0f} s"
                    f"{', void: ' + '; '.join(one['void']) if one['void'] else ''}"
                    f" (left: {clock(rest)} min)")

    def keep(self, p, one, began_ns):
        """Writes a pass down, the journals first: a pass that is there is not run again."""
        if self.args.journals:
            self.bed.keep_journals(self.store.path(self.directory(p, "journals")), began_ns)
        self.store.write(self.name(p), one)

    def name(self, p):
        """The file of P's next attempt."""
        return Store.name(p, len(self.store.attempts(p)) + 1)

    def directory(self, p, kind):
        """Where files of KIND of P's next attempt are kept."""
        return self.name(p).removesuffix(".json").replace("passes/", kind + "/", 1)

    def guess(self, p):
        """How long a pass may take, in s, before one of its cell was measured."""
        gap = self.gaps.get(f"{p.cell.layout}-{p.cell.rate}")
        if gap is None:
            known = next(iter(self.gaps.items()), None)
            gap = known[1] * plan.RATES[known[0].rsplit("-", 1)[1]] / plan.RATES[p.cell.rate] \
                if known else self.gap_s(p.cell)
        return self.args.jobs * gap + 15


def void_reasons(foreign, jobs):
    """The rule, fixed before anything is measured, besides the disks' speeds."""
    out = []
    if foreign > plan.FOREIGN_MAX:
        out.append(f"others took {foreign:.1%} of the machine")
    wrong = [j for j in jobs if j["wrong"]]
    if wrong:
        out.append(f"{len(wrong)} jobs failed, the first: {wrong[0]['program']} from "
                   f"{wrong[0]['home']}: {wrong[0]['wrong']}")
    late = max(j["late_s"] for j in jobs)
    if late > 1:
        out.append(f"a job was submitted {late:.1f} s late")
    return out


def slim(job):
    """What is kept of a job; of the decision: what it expected, None if nothing."""
    keep = ("number", "at", "program", "variant", "home", "node", "s", "alone_s", "status", "wrong",
            "late_s", "expected")
    return {k: job[k] for k in keep}


def positive(text):
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"a number of 1 or more is wanted, not '{text}'")
    return value


def comma_list(text):
    return text.split(",") if text else None


def parse(argv):
    parser = argparse.ArgumentParser(prog="effect.py", description=__doc__.split("\n", 1)[0])
    parser.add_argument("--build", default="build", help="the directory with the programs")
    parser.add_argument("--out", default="build/effect", help="where results are kept")
    parser.add_argument("--choosers", default="core", help="core, all, or a comma list")
    parser.add_argument("--jobs", type=positive, default=40, help="jobs of a pass")
    parser.add_argument("--passes", type=positive, default=5, help="repetitions")
    parser.add_argument("--layouts", type=comma_list, help=",".join(plan.LAYOUTS))
    parser.add_argument("--rates", type=comma_list, help=",".join(plan.RATES))
    parser.add_argument("--set", default="main", help="main, holdout, or a list of programs")
    parser.add_argument("--seed", default="1")
    parser.add_argument("--scale", type=float, default=1.0, help="of the inputs' sizes")
    parser.add_argument("--disks", type=lambda t: [float(v) for v in t.split(",")],
                        help="MB/s of the nodes' disks in place of the layouts' (for tests)")
    parser.add_argument("--retries", type=int, default=1, help="how often a void pass is repeated")
    parser.add_argument("--alone-runs", type=positive, default=3,
                        help="how often each program is measured alone, after one uncounted run")
    parser.add_argument("--journals", action="store_true",
                        help="keep the agents' journals of each pass")
    parser.add_argument("--recordings", action="store_true",
                        help="record each pass, replay it and compare (iocom replay --check)")
    parser.add_argument("--full", action="store_true", help="all choosers, layouts and rates")
    parser.add_argument("--report", action="store_true", help="only make the report again")
    parser.add_argument("--with-void", action="store_true",
                        help="let void passes into the tables: shows that it works, no more")
    args = parser.parse_args(argv)
    args.build, args.out = os.path.abspath(args.build), os.path.abspath(args.out)
    if not 0 < args.scale <= 2:
        parser.error(f"--scale takes a number above 0, at most 2, not {args.scale:g}")
    if args.disks and (min(args.disks) <= 0 or len(args.disks) > 16):
        parser.error("--disks takes up to 16 speeds above 0")
    return args


def main(argv):
    args = parse(argv)
    on_signals(lambda *_: sys.exit(130))
    try:
        programs.of_set(args.set)
        plan.cells(args.layouts, args.rates, args.full)
        if args.choosers not in ("core", "all"):
            plan.chooser_names(args.choosers, choosers.POLICIES)
        store = Store(args.out)
        if not args.report:
            Bench(args, store).run()
        say(report.write(store, args.with_void))
    except (ValueError, beds.Broken, subprocess.CalledProcessError) as error:
        sys.exit(f"bench-effect: {error}")


if __name__ == "__main__":
    main(sys.argv[1:])
