#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""What a command on another node costs: iocom against its peers, interleaved in one run.

usage: bench.py BUILD [--what PART,...] [--rounds N] [--before DIR]

parts:
  latency  `iocom run --node b -- true`, warm; ssh, ssh over an open master, srun,
           fork+exec; and through an open worker of `iocom batch`
  cold     the first `iocom run` after both agents were started
  rate     launches a second of 1 and of 16 submitters, by `iocom run` and `iocom batch`
  stdio    bytes a second each way, and one byte there and back, against ssh
  memory   1,000 jobs at the same time: a shim, the agent
  channel  the secure channel alone: handshakes, messages, records (tests/bench/bench_channel.c)
  before   `iocom run -- true` and stdio of this build and of an earlier one, whose programs are
           in --before DIR, in turn: each has two agents of its own at the same two nodes

Two nodes on this machine (ground.py).  Needs root and munge; peers (`make deps WITH=peers`)
are compared with where they are installed.  Numbers of a busy machine
are no numbers: the load before the run is printed first.
"""

import argparse
import os
import signal
import statistics
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "..", "lib")]
from ground import ADDRESS, GROUP, Ground, Skip, quietly, until  # noqa: E402
from rollup import rollup_kib  # noqa: E402

PARTS = ["latency", "cold", "rate", "stdio", "memory", "channel", "before"]
RUN = ["iocom", "run", "--node", "b", "--"]
ECHO_PORT = 7790

# The targets.
GOAL_RUN_MS, GOAL_SSH, GOAL_SRUN, GOAL_ADDED_MS = 10, 25, 3, 1
GOAL_RATE, GOAL_STDIO, GOAL_SHIM_MIB = 1000, 1.3, 2
GOAL_HANDSHAKE_MS, GOAL_MESSAGE_US, GOAL_FASTER_MS = 0.3, 20, 1


def median(values):
    return statistics.median(values) if values else float("nan")


def percentile99(values):
    return sorted(values)[int(0.99 * (len(values) - 1))] if values else float("nan")


class Table:
    """Rows of the report: what, numbers, and where there is one the target."""

    def __init__(self):
        self.rows = []

    def add(self, what, text, target="", met=None):
        self.rows.append((what, text, target, "" if met is None else "met" if met else "MISSED"))

    def spread(self, what, values, unit="ms", target="", met=None):
        self.add(what, f"{median(values):.2f} {unit}, p99 {percentile99(values):.2f}", target, met)

    def show(self):
        print(f"\n{'':44} {'median / result':34} {'target':22}")
        for what, text, target, met in self.rows:
            print(f"{what:44} {text:34} {target:22} {met}".rstrip())


class Peers:
    """What can be compared with; who is missing is said, once."""

    def __init__(self, ground, table):
        self.commands = {}
        try:
            ssh, master = ground.sshd()
            self.commands["ssh"] = ssh
            self.commands["ssh over an open master"] = master
        except Skip as why:
            table.add("ssh", f"not compared: {why}")
        self.ground, self.table = ground, table

    def slurm(self):
        try:
            self.commands["srun"] = self.ground.slurm()
        except Skip as why:
            self.table.add("srun", f"not compared: {why}")


def in_turn(ground, rounds, commands):
    """ms of each command, by its index; a failure ends the run."""
    argv = [str(rounds)]
    for i, command in enumerate(commands):
        argv += (["---"] if i else []) + command
    times = [[] for _ in commands]
    for index, nanoseconds, status in ground.laps("a", *argv):
        if status != "0":
            raise Skip(f"'{' '.join(commands[int(index)])}' failed with {status}")
        times[int(index)].append(int(nanoseconds) / 1e6)
    return times


def part_latency(ground, peers, table, rounds):
    peers.slurm()
    names = list(peers.commands)
    commands = [RUN + ["true"], ["/bin/true"]] + [peers.commands[n] + ["true"] for n in names]
    in_turn(ground, 2, commands)
    # Peers are slow: fewer rounds of them, and iocom's own before, between and after.
    run, bare, slow = [], [], [[] for _ in names]
    for _ in range(4):
        times = in_turn(ground, max(1, rounds // 16), commands)
        for i in range(len(names)):
            slow[i] += times[2 + i]
        run += times[0]
        bare += times[1]
        times = in_turn(ground, max(1, rounds // 5), commands[:2])
        run += times[0]
        bare += times[1]
    ground.daemon("b", "echo", [f"{ground.build}/tests/tools/laps", "-s", str(ECHO_PORT)])
    until(5, lambda: quietly(lambda: ground.laps("a", "-r", ADDRESS["b"], str(ECHO_PORT), "1")),
          "the echo server")
    trip = [int(w[0]) / 1e6 for w in ground.laps("a", "-r", ADDRESS["b"], str(ECHO_PORT), "1000")]
    batch = [int(w[0]) / 1e6 for w in ground.laps(
        "a", "-e", "/bin/echo\n", str(rounds * 5), "iocom", "batch", "-j1", "--node", "b")][5:]
    echo = [t[0] for t in zip(*in_turn(ground, rounds, [["/bin/echo"]]))]
    table.spread("iocom run -- true, warm", run, "ms", f"<= {GOAL_RUN_MS} ms",
                 median(run) <= GOAL_RUN_MS)
    for name, values in zip(names, slow):
        goal = {"ssh": GOAL_SSH, "srun": GOAL_SRUN}.get(name)
        table.spread(name, values)
        ratio = median(values) / median(run)
        table.add(f"  {name} / iocom run", f"{ratio:.1f}", f">= {goal}" if goal else "",
                  ratio >= goal if goal else None)
    table.spread("fork+exec of /bin/true", bare)
    table.spread("one byte there and back, TCP", trip)
    added = median(run) - median(bare) - median(trip)
    table.add("added by iocom run to these two", f"{added:.2f} ms", f"<= {GOAL_ADDED_MS} ms",
              added <= GOAL_ADDED_MS)
    table.spread("a command of an open iocom batch", batch)
    added = median(batch) - median(echo) - median(trip)
    table.add("added by iocom batch", f"{added:.2f} ms", f"<= {GOAL_ADDED_MS} ms",
              added <= GOAL_ADDED_MS)


def part_cold(ground, _, table, __):
    times = []
    for _ in range(5):
        for node in ADDRESS:
            ground.end(ground.agents_up[node])
            quietly(lambda n=node: os.unlink(ground.path(n, "run", "iocom.sock")))
        ground.agents_up = ground.agents()
        times += in_turn(ground, 1, [RUN + ["true"]])[0]
    table.spread("iocom run -- true, first after both agents", times)


def rate_of(ground, *argv):
    """Launches a second of `laps -p`."""
    (words,) = ground.laps("a", "-p", *argv)
    if words[1] != "0":
        raise Skip(f"{words[1]} launches of {argv[1]} failed")
    return int(argv[1]) / float(words[0])


def batch_rate(ground, submitters, workers, commands):
    with open(ground.path("commands"), "w") as out:
        out.write("/bin/true\n" * commands)
    (words,) = ground.laps("a", "-p", str(submitters), str(submitters), "iocom", "batch",
                           f"-j{workers}", "--node", "b", ground.path("commands"))
    if words[1] != "0":
        raise Skip(f"{words[1]} of iocom batch failed")
    return submitters * commands / float(words[0])


def part_rate(ground, _, table, rounds):
    one, many, batch, batches = [], [], [], []
    for _ in range(3):
        one.append(rate_of(ground, "1", str(rounds), *RUN, "true"))
        many.append(rate_of(ground, "16", str(2 * rounds), *RUN, "true"))
        batch.append(batch_rate(ground, 1, 4, 30 * rounds))
        batches.append(batch_rate(ground, 16, 1, 3 * rounds))
    table.add("launches a second, 1 submitter, iocom run", f"{median(one):.0f}")
    table.add("launches a second, 16 submitters, iocom run", f"{median(many):.0f}")
    table.add("launches a second, 1 submitter, iocom batch", f"{median(batch):.0f}",
              f">= {GOAL_RATE}", median(batch) >= GOAL_RATE)
    table.add("launches a second, 16 submitters, iocom batch", f"{median(batches):.0f}",
              f">= {GOAL_RATE}", median(batches) >= GOAL_RATE)


def part_stdio(ground, peers, table, rounds):
    mib = 256
    ways = {"iocom run": RUN, **{n: peers.commands[n] for n in peers.commands if n != "srun"}}
    reads = [way + ["head", "-c", f"{mib}M", "/dev/zero"] for way in ways.values()]
    writes = [["sh", "-c", f"head -c {mib}M /dev/zero | \"$@\"", "sh", *way, "dd", "bs=64K",
               "of=/dev/null", "status=none"] for way in ways.values()]
    for what, commands in (("there to here", reads), ("here to there", writes)):
        speeds = [mib * 1.048576 / (median(t) / 1e3) for t in in_turn(ground, 3, commands)]
        table.add(f"{what}, iocom run", f"{speeds[0]:.0f} MB/s")
        for name, speed in list(zip(ways, speeds))[1:]:
            ratio = speeds[0] / speed
            table.add(f"  iocom run / {name} ({speed:.0f} MB/s)", f"{ratio:.1f}",
                      f">= {GOAL_STDIO}", ratio >= GOAL_STDIO)
    for name, way in ways.items():
        trips = ground.laps("a", "-e", "x", str(5 * rounds), *way, "cat")
        table.spread(f"a byte through cat, {name}", [int(w[0]) / 1e6 for w in trips[5:]])


def memory(pid):
    """Private MiB, PSS MiB, descriptors."""
    sizes = rollup_kib(pid)
    return ((sizes["Private_Clean"] + sizes["Private_Dirty"]) / 1024, sizes["Pss"] / 1024,
            len(os.listdir(f"/proc/{pid}/fd")))


def shims(ground):
    """Pids of the shims of node b that have a job: they live in a group of their own."""
    def has_job(pid):
        return quietly(lambda: open(f"/proc/{pid}/comm").read()) == "iocom-shim\n"

    for line in open("/proc/self/mounts"):
        _, point, kind = line.split()[:3]
        if kind == "cgroup2":
            return list(filter(has_job, quietly(lambda p=point: [int(x) for x in open(
                f"{p}/{GROUP}/b/shims/cgroup.procs")]) or []))
    return []


def part_memory(ground, _, table, __):
    jobs, wave = 1000, 50
    before = memory(ground.agents_up["b"].pid)
    submitters = []
    try:
        # Not all at once: what 1,000 jobs take is asked, not how long the last one waits.
        while len(submitters) * wave < jobs:
            submitters.append(ground.daemon(
                "a", "jobs", [f"{ground.build}/tests/tools/laps", "-p", str(wave), str(wave),
                              *RUN, "sleep", "1000"]))
            until(60, lambda: len(shims(ground)) >= len(submitters) * wave,
                  f"job {len(submitters) * wave}", ground.path("a", "jobs.out"))
        time.sleep(2)
        each = [m for m in (quietly(lambda p=p: memory(p)) for p in shims(ground)) if m]
        after = memory(ground.agents_up["b"].pid)
    finally:
        for submitter in submitters:
            quietly(lambda s=submitter: os.killpg(s.pid, signal.SIGTERM))
        until(120, lambda: not shims(ground), "the end of the jobs")
    private = median([m[0] for m in each])
    table.add("jobs at the same time", f"{len(each)}", f"{jobs}", len(each) >= jobs)
    table.add("a shim: private", f"{private:.2f} MiB", f"<= {GOAL_SHIM_MIB} MiB",
              private <= GOAL_SHIM_MIB)
    table.add("a shim: PSS, descriptors",
              f"{median([m[1] for m in each]):.2f} MiB, {median([m[2] for m in each]):.0f}")
    table.add("the agent before: private, descriptors", f"{before[0]:.1f} MiB, {before[2]}")
    table.add("the agent then: private, descriptors", f"{after[0]:.1f} MiB, {after[2]}")


def part_channel(ground, _, table, __):
    goals = {"handshake_stream_cpu": GOAL_HANDSHAKE_MS, "handshake_session_cpu": GOAL_HANDSHAKE_MS,
             "message_cpu": GOAL_MESSAGE_US}
    words = {"handshake_stream_cpu": "a stream's handshake, both sides, processor",
             "handshake_session_cpu": "two agents' greeting, both sides, processor",
             "session_wall": "two agents' greeting with munged",
             "message_cpu": "a message of 1 KiB sealed and opened",
             "munge_wall": "the same as a MUNGE credential",
             "record_mb_per_s": "records sealed and opened, one processor"}
    bench = os.path.join(ground.build, "tests/bench/bench_channel")
    for line in ground.on("a", bench, ground.munge("a")).splitlines():
        name, unit, middle, last = line.split()
        goal = goals.get(name)
        table.add(words[name], f"{float(middle):.3g} {unit}, p99 {float(last):.3g}",
                  f"<= {goal:g} {unit}" if goal else "", float(middle) <= goal if goal else None)


def part_before(ground, _, table, rounds):
    if not ground.before:
        raise Skip("which build was before?  --before DIR (make bench-remote BEFORE=DIR)")
    ground.agents_before = ground.agents(before=True)
    now, old = ([f"{build}/iocom", "run", "--run-dir", ground.path("a", run_dir), "--node", "b", "--"]
                for build, run_dir in ((ground.build, "run"), (ground.before, "run-before")))
    in_turn(ground, 5, [old + ["true"], now + ["true"]])
    times = [[], []]
    for pair in range(4):  # each build is first as often as second
        order = (old, now) if pair % 2 else (now, old)
        got = in_turn(ground, rounds, [way + ["true"] for way in order])
        times[0] += got[pair % 2]
        times[1] += got[1 - pair % 2]
    saved = [b - a for a, b in zip(*times)]
    table.spread("iocom run -- true, this build", times[0])
    table.spread("iocom run -- true, the build before", times[1])
    table.spread("  faster by, of pairs", saved, "ms", f">= {GOAL_FASTER_MS} ms",
                 median(saved) >= GOAL_FASTER_MS)
    mib = 256
    for what, command in (("there to here", ["head", "-c", f"{mib}M", "/dev/zero"]),):
        got = in_turn(ground, 5, [now + command, old + command])
        speeds = [mib * 1.048576 / (median(t) / 1e3) for t in got]
        table.add(f"{what}: this build, before", f"{speeds[0]:.0f}, {speeds[1]:.0f} MB/s")
    for process in ground.agents_before.values():
        ground.end(process)


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("\n\n")[1][7:])
    parser.add_argument("build")
    parser.add_argument("--what", default=",".join(PARTS))
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--before", default="")
    options = parser.parse_args()
    what = options.what.split(",")
    if "before" in what and not options.before and options.what == ",".join(PARTS):
        what.remove("before")
    unknown = [part for part in what if part not in PARTS]
    if unknown or options.rounds < 1:
        parser.error(f"no part {unknown}: there are {', '.join(PARTS)}" if unknown
                     else "--rounds takes a positive number")
    print(f"load {os.getloadavg()[0]:.2f}, {os.cpu_count()} processors, Linux {os.uname().release}")
    table, failed = Table(), 0
    try:
        ground = Ground(options.build, options.before)
        ground.agents_up = ground.agents()
        peers = Peers(ground, table)
    except Skip as why:
        print(f"bench-remote: {why}", file=sys.stderr)
        return 1
    for part in what:
        began = time.monotonic()
        try:
            globals()[f"part_{part}"](ground, peers, table, options.rounds)
        except (Skip, subprocess.CalledProcessError) as why:
            table.add(part, f"failed: {why}")
            print(getattr(why, "stderr", "") or "", file=sys.stderr)
            failed = 1
        print(f"{part}: {time.monotonic() - began:.0f} s", flush=True)
    ground.close()
    table.show()
    return failed


if __name__ == "__main__":
    sys.exit(main())
