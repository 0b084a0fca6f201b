#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""What the monitor costs: with and without, in one run, interleaved.

usage: bench.py BUILD [--what PART,...] [--pairs N] [--seconds S]

parts:
  loss     throughput lost by applications while iocomd runs, beside none
  peers    the same for bpftrace, biotop, tcptop, atop and iotop where they run
  events   ns per event by program, from the kernel's BPF statistics
  agent    CPU and memory of iocomd at 0, 10,000 and 100,000 events a second
  sweep    one reading with 12,000 threads
  first    from start to the first reading

Needs root, fio and a loop device.  Numbers of a busy machine are no numbers: the
load before the run is printed first.
"""

import argparse
import atexit
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "lib"))
from rollup import rollup_kib  # noqa: E402

PARTS = ["loss", "peers", "events", "agent", "sweep", "first"]
TICKS = os.sysconf("SC_CLK_TCK")

# Rows 6 to 10 of the monitor's targets.
GOAL_BIO_NS, GOAL_TCP_NS, GOAL_LOSS = 100, 40, 2.0
GOAL_CORE, GOAL_MIB, GOAL_SWEEP_MS, GOAL_FIRST_MS = 0.5, 16, 10, 100


class Skip(Exception):
    """Something of this machine is missing; the sentence says what."""


def run(*argv, **options):
    return subprocess.run(argv, check=True, capture_output=True, text=True, **options).stdout


def median(values):
    return statistics.median(values) if values else float("nan")


def spread(values):
    """First and third quartile."""
    if len(values) < 2:
        return values[0], values[0]
    quartiles = statistics.quantiles(values, n=4, method="inclusive")
    return quartiles[0], quartiles[2]


class Ground:
    """A scratch directory and a disk in memory; both go when the program ends."""

    def __init__(self, build):
        if os.geteuid() != 0:
            raise Skip("needs root: eBPF programs, a loop device")
        self.build = os.path.abspath(build)
        self.drive = os.path.join(self.build, "tests/tools/drive")
        self.dir = tempfile.mkdtemp(prefix="iocom-bench-")
        self.loop = None
        atexit.register(self.close)
        for name in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(name, lambda *_: sys.exit(130))
        self.image = tempfile.mktemp(prefix="iocom-bench-", dir="/dev/shm")
        with open(self.image, "wb") as image:
            image.truncate(128 << 20)
        run("dd", "if=/dev/zero", f"of={self.image}", "bs=1M", "count=128", "conv=notrunc")
        self.loop = run("losetup", "--find", "--show", "--direct-io=off", self.image).strip()

    def close(self):
        if self.loop:
            subprocess.run(["losetup", "--detach", self.loop], check=False)
            self.loop = None
        if os.path.exists(self.image):
            os.unlink(self.image)
        shutil.rmtree(self.dir, ignore_errors=True)


class Agent:
    """iocomd of this machine alone, told by its own document."""

    def __init__(self, ground):
        self.ground = ground
        self.dir = tempfile.mkdtemp(dir=ground.dir)
        self.process = None

    def __enter__(self):
        for name in ("run", "state"):
            os.mkdir(os.path.join(self.dir, name))
        self.log = open(os.path.join(self.dir, "log"), "w")
        self.process = subprocess.Popen(
            [os.path.join(self.ground.build, "iocomd"), "--run-dir", self.dir + "/run",
             "--state-dir", self.dir + "/state", "--port", "17700"],
            stdout=self.log, stderr=subprocess.STDOUT)
        end = time.monotonic() + 20
        while time.monotonic() < end:
            try:
                self.document()
                return self
            except (subprocess.CalledProcessError, json.JSONDecodeError):
                if self.process.poll() is not None:
                    break
                time.sleep(0.1)
        text = open(os.path.join(self.dir, "log")).read()
        self.__exit__()
        raise Skip("iocomd does not start: " + text.strip()[-200:])

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(20)
        self.log.close()

    def document(self):
        """One reading of the agent, and with it the end of a period."""
        return json.loads(run(os.path.join(self.ground.build, "iocom"), "top", "--run-dir",
                              self.dir + "/run", "--json", "-n", "1"))

    def cpu_seconds(self):
        with open(f"/proc/{self.process.pid}/stat") as stat:
            fields = stat.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / TICKS

    def memory_mib(self):
        sizes = rollup_kib(self.process.pid)
        return sizes["Rss"] / 1024, sizes["Pss"] / 1024


class Peer:
    """Another tool that watches the same things, in a mount namespace with tracefs."""

    COMMANDS = {
        "bpftrace": ["bpftrace", "-e",
                     "tracepoint:block:block_bio_queue { @io[pid, comm] = sum(args->nr_sector); }"
                     " tracepoint:sock:sock_send_length { @send[pid, comm] = count(); }"
                     " tracepoint:sock:sock_recv_length { @recv[pid, comm] = count(); }"],
        "biotop": ["biotop-bpfcc", "-C", "1"],
        "tcptop": ["tcptop-bpfcc", "-C", "1"],
        "atop": ["atop", "-w", "FILE", "1"],
        "iotop": ["iotop-c", "-b", "-q", "-d", "1"],
    }

    def __init__(self, ground, name):
        self.ground, self.name = ground, name

    def __enter__(self):
        argv = [a.replace("FILE", os.path.join(self.ground.dir, "atop.raw"))
                for a in self.COMMANDS[self.name]]
        if not shutil.which(argv[0]):
            raise Skip(f"{self.name}: not installed")
        script = ("mount -t tracefs none /sys/kernel/tracing 2>/dev/null; "
                  "mount -t debugfs none /sys/kernel/debug 2>/dev/null; exec \"$@\"")
        self.log = open(os.path.join(self.ground.dir, self.name), "w")
        self.process = subprocess.Popen(
            ["unshare", "--mount", "sh", "-c", script, "sh", *argv],
            stdout=self.log, stderr=subprocess.STDOUT, start_new_session=True)
        time.sleep(3)
        if self.process.poll() is not None:
            words = open(os.path.join(self.ground.dir, self.name)).read().strip()
            raise Skip(f"{self.name}: does not run here: {words.splitlines()[-1] if words else ''}"[:110])
        return self

    def __exit__(self, *_):
        try:
            os.killpg(self.process.pid, signal.SIGTERM)
            self.process.wait(10)
        except ProcessLookupError:
            pass
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        self.log.close()


class Nobody:
    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass


class Empty:
    """Programs that do nothing, at the monitor's busiest hooks; CALLS: and the one that calls."""

    def __init__(self, ground, calls=False):
        self.ground, self.prefix = ground, "" if calls else "empty_"

    def __enter__(self):
        self.process = subprocess.Popen(
            [os.path.join(self.ground.build, "tests/tools/attach"),
             os.path.join(self.ground.build, "tests/bench/empty.bpf.o"), self.prefix],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        if self.process.stdout.readline().strip() != "ready":
            raise Skip("empty programs: " + self.process.stderr.read().strip()[-200:])
        return self

    def __exit__(self, *_):
        self.process.communicate()


def fio(ground, seconds):
    report = json.loads(run(
        "fio", "--name=bench", f"--filename={ground.loop}", "--direct=1", "--rw=randread",
        "--bs=4k", "--iodepth=32", "--ioengine=libaio", "--time_based", "--readonly",
        f"--runtime={seconds}", "--cpus_allowed=0", "--output-format=json", cwd=ground.dir))
    return report["jobs"][0]["read"]["iops"]


def driven(kind):
    return lambda ground, seconds: float(run(ground.drive, kind, str(seconds)).split()[-1])


WORK = {
    "fio 4k random reads, depth 32": (fio, "reads/s"),
    "TCP ping-pong, 64 bytes": (driven("pingpong"), "rounds/s"),
    "TCP stream": (driven("stream"), "bytes/s"),
    "page-fault storm": (driven("faults"), "faults/s"),
    "fork/exec storm": (driven("forks"), "starts/s"),
}


def compare(ground, watchers, work, pairs, seconds):
    """Interleaved: in each round nobody and every watcher, the order turned each time."""
    names = list(watchers)
    losses = {name: [] for name in names}
    base = []
    for n in range(pairs):
        order = ["nobody"] + names
        if n % 2:
            order.reverse()
        reached = {}
        for name in order:
            with (watchers[name]() if name != "nobody" else Nobody()):
                reached[name] = work(ground, seconds)
        base.append(reached["nobody"])
        for name in names:
            losses[name].append((1 - reached[name] / reached["nobody"]) * 100)
    return median(base), losses


def part_loss(ground, args):
    print(f"\nThroughput lost, %: medians of {args.pairs} interleaved rounds of {args.seconds} s"
          f" (goal {GOAL_LOSS} %);\n\"empty\": by programs that do nothing at the busiest hooks")
    print(f"  {'work':32} {'without':>14} {'':9} {'lost %':>8} {'quartiles':>16} {'empty':>7}"
          f" {'quartiles':>16}")
    for name, (work, unit) in WORK.items():
        base, losses = compare(ground, {"iocomd": lambda: Agent(ground),
                                        "empty": lambda: Empty(ground)}, work, args.pairs,
                               args.seconds)
        low, high = spread(losses["iocomd"])
        least, most = spread(losses["empty"])
        print(f"  {name:32} {base:14,.0f} {unit:9} {median(losses['iocomd']):8.2f}"
              f" {low:7.2f} .. {high:5.2f} {median(losses['empty']):7.2f}"
              f" {least:7.2f} .. {most:5.2f}", flush=True)


def part_peers(ground, args):
    watchers = {"iocomd": lambda: Agent(ground)}
    for name in Peer.COMMANDS:
        try:
            with Peer(ground, name):
                pass
            watchers[name] = lambda name=name: Peer(ground, name)
        except Skip as why:
            print(f"  not compared: {why}")
    print(f"\nBeside others, % lost: medians of {args.pairs} rounds, nobody and each in turn")
    print(f"  {'work':32}" + "".join(f"{name:>10}" for name in watchers))
    for name in list(WORK)[:2]:
        _, losses = compare(ground, watchers, WORK[name][0], args.pairs, args.seconds)
        print(f"  {name:32}" + "".join(f"{median(losses[w]):10.2f}" for w in watchers), flush=True)


def program_ids(pid):
    """Ids of the eBPF programs that this process holds: names are alike in two agents."""
    ids = set()
    for fd in os.listdir(f"/proc/{pid}/fdinfo"):
        try:
            with open(f"/proc/{pid}/fdinfo/{fd}") as info:
                ids |= {int(line.split()[1]) for line in info if line.startswith("prog_id:")}
        except FileNotFoundError:
            pass  # closed meanwhile
    return ids


def programs(watcher):
    """Run counts and times of the watcher's eBPF programs, by name."""
    ids = program_ids(watcher.process.pid)
    found = {program.get("name", "?"): (program.get("run_cnt", 0), program.get("run_time_ns", 0))
             for program in json.loads(run("bpftool", "--json", "prog", "list"))
             if program["id"] in ids}
    if not found:
        raise Skip(f"events: process {watcher.process.pid} holds no eBPF programs")
    return found


class Statistics:
    """The kernel's BPF statistics, on for as long as this lasts."""

    PATH = "/proc/sys/kernel/bpf_stats_enabled"

    def __enter__(self):
        self.before = open(self.PATH).read()
        open(self.PATH, "w").write("1")

    def __exit__(self, *_):
        open(self.PATH, "w").write(self.before)


def empty_programs(ground):
    """ns that the statistics show: for programs that do nothing, and for a helper's call."""
    with Empty(ground, calls=True) as empty, Statistics():
        fio(ground, 2)
        driven("pingpong")(ground, 2)
        shown = {name: ns / runs for name, (runs, ns) in programs(empty).items()
                 if name.startswith(("empty_", "calls_")) and runs}
    floor = {name: ns for name, ns in shown.items() if name.startswith("empty_")}
    if not floor or "calls_tcp" not in shown:
        raise Skip("events: the kernel tells no run times of programs")
    return floor, (shown["calls_tcp"] - floor["empty_tcp"]) / 10


EVENTS = {
    # event: (work, its program that runs once an event, programs that run for it)
    "bio queued": ("fio 4k random reads, depth 32", "bio_queue", ["bio_queue"]),
    "request completed": ("fio 4k random reads, depth 32", "rq_complete", ["rq_complete"]),
    "TCP send": ("TCP ping-pong, 64 bytes", "send_length", ["send_length"]),
    "TCP receive": ("TCP ping-pong, 64 bytes", "recv_length", ["recv_length", "rcv_space"]),
    "process ended": ("fork/exec storm", "process_exit", ["process_exit", "process_free"]),
}


def part_events(ground, args):
    floor, call = empty_programs(ground)
    shown = ", ".join(f"{name[6:]} {ns:.0f}" for name, ns in sorted(floor.items()))
    print(f"\nns per event by the kernel's statistics; of an empty program they show: {shown}")
    print(f"  {'event':20} {'ns':>7} {'less the empty':>15} {'goal':>6}  programs")
    print(f"a call of a helper takes {call:.1f} ns here")
    rest = min(floor.values())
    rows = {event: [] for event in EVENTS}
    for _ in range(max(3, args.pairs // 3)):
        with Agent(ground) as agent, Statistics():
            for work in sorted({event[0] for event in EVENTS.values()}):
                before = programs(agent)
                WORK[work][0](ground, args.seconds)
                after = programs(agent)
                for event, (of, counted, parts) in EVENTS.items():
                    count = after.get(counted, (0, 0))[0] - before.get(counted, (0, 0))[0]
                    if of == work and count:
                        rows[event].append((sum(after[p][1] - before[p][1] for p in parts
                                                if p in after) / count))
    for event, (_, _, parts) in EVENTS.items():
        goal = {"bio queued": GOAL_BIO_NS, "TCP send": GOAL_TCP_NS, "TCP receive": GOAL_TCP_NS}
        ns = median(rows[event])
        print(f"  {event:20} {ns:7.0f} {ns - rest * len(parts):15.0f} {goal.get(event, '-'):>6}"
              f"  {' + '.join(parts)}", flush=True)


def part_agent(ground, args):
    print(f"\niocomd, medians of 3 times 10 s (goals: {GOAL_CORE} % of a core at 10,000 events/s,"
          f" {GOAL_MIB} MiB)")
    print(f"  {'events/s':>9} {'reached':>9} {'agent %':>8} {'programs %':>11} {'RSS MiB':>8} {'PSS':>6}")
    for rate in (0, 10000, 100000):
        reached, cpu, kernel, memory = [], [], [], []
        for _ in range(3):
            with Agent(ground) as agent, Statistics():
                drives = [subprocess.Popen(
                    [ground.drive, "events", str(rate / 2), "12", ground.loop],
                    stdout=subprocess.PIPE, text=True) for _ in range(2 if rate else 0)]
                time.sleep(1)
                before, spent, began = programs(agent), agent.cpu_seconds(), time.monotonic()
                time.sleep(10)
                took = time.monotonic() - began
                after = programs(agent)
                cpu.append((agent.cpu_seconds() - spent) / took * 100)
                kernel.append(sum(ns - before.get(name, (0, 0))[1]
                                  for name, (_, ns) in after.items()) / took / 1e7)
                memory.append(agent.memory_mib())
                reached.append(sum(float(drive.communicate()[0]) for drive in drives))
        print(f"  {rate:9,} {median(reached):9,.0f} {median(cpu):8.2f} {median(kernel):11.2f}"
              f" {median([m[0] for m in memory]):8.1f} {median([m[1] for m in memory]):6.1f}",
              flush=True)


def part_sweep(ground, args):
    threads = subprocess.Popen([ground.drive, "threads", "12000", "60"], stdout=subprocess.PIPE,
                               text=True)
    try:
        if threads.stdout.readline().strip() != "ready":
            raise Skip("sweep: this machine does not give 12,000 threads")
        with Agent(ground) as agent:
            times = [agent.document()["cost"]["sweep_ms"] for _ in range(15)]
            rss, _ = agent.memory_mib()
    finally:
        threads.kill()
        threads.wait()
    print(f"\nOne reading with 12,000 threads: median {median(times):.2f} ms, best {min(times):.2f}"
          f" (goal {GOAL_SWEEP_MS}); agent {rss:.1f} MiB", flush=True)


def part_first(ground, args):
    rows = [tuple(map(float, run(os.path.join(ground.build, "tests/tools/firstsample")).split()))
            for _ in range(args.pairs)]
    totals = [a + b for a, b in rows]
    print(f"\nFirst reading after start: median {median(totals):.1f} ms, best {min(totals):.1f}"
          f" (goal {GOAL_FIRST_MS}); of it loading {median([a for a, _ in rows]):.1f}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("build")
    parser.add_argument("--what", default=",".join(PARTS), help="parts, comma between them")
    parser.add_argument("--pairs", type=int, default=9)
    parser.add_argument("--seconds", type=int, default=2, help="of each measurement")
    args = parser.parse_args()
    wanted = args.what.split(",")
    for name in wanted:
        if name not in PARTS:
            parser.error(f"no part {name}; there are {', '.join(PARTS)}")
    load = os.getloadavg()[0]
    kernel = os.uname().release
    print(f"Linux {kernel}, {os.cpu_count()} CPUs, load before {load:.2f}"
          f"{': BUSY, the numbers will not be worth much' if load > 0.5 else ''}")
    try:
        ground = Ground(args.build)
        for name in wanted:
            globals()["part_" + name](ground, args)
    except Skip as why:
        print(f"bench-monitor: {why}", file=sys.stderr)
        return 1
    except subprocess.CalledProcessError as why:
        print(f"bench-monitor: {' '.join(why.cmd)}: {why.stderr.strip()[-300:]}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
