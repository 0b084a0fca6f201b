#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Parallel jobs of which a part is killed: a rank, a launcher, a shim, an agent, a node's link.

In each round one MPI program runs on all nodes; at a moment from the seed one victim is killed
(agents start again, links come back).  It must hold, whatever was killed:

  - the job's client ends in LIMIT_S seconds: nothing hangs
  - no rank, launcher or shim of the job is left LEFT_S seconds later
  - it ended well, with the right result; or it failed, and said so in one message
  - a killed rank, launcher or shim is a failure of the job

Way `run` is `iocom run --mpi`; way `rsh`, for a build without it, mpirun over `iocom rsh`, whose
messages are many and Open MPI's own: there any will do.
"""
import argparse
import glob
import json
import os
import random
import signal
import subprocess
import sys
import time

import bed

LIMIT_S = 60   # for a job to end after the kill; alone it takes about 8 s
START_S = 60   # for all ranks to run
LEFT_S = 20
KINDS = ["rank", "launcher", "shim", "agent", "link"]
FATAL = {"rank", "launcher", "shim"}
PER_NODE = 2
LAUNCHERS = {"run": ("iocom-tasks", "iocom-pmix"), "rsh": ("orted",)}


def plan(seed, rounds, nodes):
    """[{round, kind, node, delay_s, down_s}]: each kind as often, in an order from the seed."""
    draw, deck, out = random.Random(f"gangs {seed}"), [], []
    for number in range(1, rounds + 1):
        if not deck:
            deck = list(KINDS)
            draw.shuffle(deck)
        out.append(dict(round=number, kind=deck.pop(), node=draw.choice(nodes),
                        delay_s=round(draw.uniform(0, 3), 3), down_s=round(draw.uniform(0.5, 8), 3)))
    return out


def messages(way, said):
    """How many messages for people SAID has: `iocom run` begins each with its name, and goes on with
    blanks; of mpirun any text is one."""
    if way == "run":
        return sum(line.startswith("iocom") for line in said.splitlines())
    return int(bool(said.strip()))


def judge(row, way, expected):
    """What is wrong with a round, as sentences.  ROW: kind, ended (false: it hung), status, out, err,
    struck (the victim was there while all ranks ran), left (processes that remain)."""
    wrong = []
    if not row["ended"]:
        wrong.append(f"the job hangs {LIMIT_S} s after the kill")
    if row["left"]:
        wrong.append("left: " + ", ".join(row["left"]))
    if not row["ended"]:
        return wrong
    if row["status"] == 0:
        if expected not in row["out"]:
            wrong.append(f"it ended well with another result: {row['out'].strip()[-200:]!r}")
        if row["kind"] in FATAL and row["struck"]:
            wrong.append(f"a {row['kind']} was killed, and the job ended well")
    else:
        count = messages(way, row["err"])
        if count != 1:
            wrong.append(f"it failed with {count} messages: {row['err'].strip()[-300:]!r}")
    return wrong


def processes():
    """{pid: (program's path, words)} of all processes that can be read."""
    out = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            out[int(pid)] = os.readlink(f"/proc/{pid}/exe"), bed.words_of(pid)
        except OSError:
            continue
    return out


class Gangs:
    def __init__(self, options):
        self.options = options
        self.bed = bed.Bed(options.testbed, options.build)
        self.app = os.path.realpath(f"{options.build}/tests/apps/openmpi/molecular")
        self.names = sorted(self.bed.nodes)
        self.tasks = PER_NODE * len(self.names)
        self.draw = random.Random(f"victims {options.seed}")
        self.hosts = os.path.join(options.scratch, "hosts")
        with open(self.hosts, "w", encoding="ascii") as f:
            f.writelines(f"{n}\n" * PER_NODE for n in self.names)

    def command(self, number):
        # About 8 s; the seed tells this job's ranks from those of other tests.
        return [self.app, "--compute", "3", "--bytes", "2000", "--phases", "400", "--seed",
                str(self.options.seed * 100000 + number)]

    def expected(self, number):
        words = self.command(number)
        words[words.index("--compute") + 1] = "0"
        done = subprocess.run(words, capture_output=True, text=True, check=True, cwd="/tmp",
                              env=dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1",
                                       OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1"))
        return done.stdout.split("result ")[1].strip()

    def start(self, number):
        if self.options.way == "run":
            words = [self.bed.tool("iocom"), "run", "-n", str(self.tasks), "--mpi", "--per-node",
                     str(PER_NODE), "--oversubscribe", "--", *self.command(number)]
        else:
            iocom = os.path.join(self.bed.dir, "programs/iocom")
            words = ["env", "OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1", "mpirun", "-np",
                     str(self.tasks), "--mca", "plm_rsh_agent", f"{iocom} rsh", "--mca", "rmaps", "seq",
                     "--hostfile", self.hosts, "--bind-to", "none", "--mca", "btl", "tcp,self,vader", "--mca",
                     "btl_tcp_if_include", "eth0", "--mca", "oob_tcp_if_include", "eth0",
                     *self.command(number)]
        return self.bed.spawn(self.names[0], words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True)

    # --- the job's processes ---
    def ranks(self, number):
        seed = self.command(number)[-1]
        return [pid for pid, (path, words) in processes().items()
                if path == self.app and words[-1:] == [seed] and bed.alive(pid)]

    def launchers(self, node=None):
        wanted = LAUNCHERS[self.options.way]
        inside = self.bed.pids_of(self.bed.nodes[node].group if node else self.bed.mark)
        return [pid for pid, (path, _) in processes().items()
                if os.path.basename(path) in wanted and pid in inside and bed.alive(pid)]

    def shims(self):
        return [pid for n in self.bed.nodes.values() for pid in n.shims()]

    def left(self, number):
        return ([f"rank {pid}" for pid in self.ranks(number)] +
                [f"launcher {pid}" for pid in self.launchers()] + [f"shim {pid}" for pid in self.shims()])

    # --- one round ---
    def victim(self, event, number):
        """Kills; returns whether there was something to kill."""
        node = self.bed.nodes[event["node"]]
        if event["kind"] == "agent":
            node.end_agent()
            return True
        if event["kind"] == "link":
            node.link("down")
            return True
        found = {"rank": lambda: self.ranks(number), "shim": self.shims,
                 "launcher": self.launchers}[event["kind"]]()
        if not found:
            return False
        try:
            os.kill(self.draw.choice(sorted(found)), signal.SIGKILL)
        except ProcessLookupError:
            return False
        return True

    def repair(self, event):
        node = self.bed.nodes[event["node"]]
        if event["kind"] == "agent":
            node.start_agent()
        if event["kind"] == "link":
            time.sleep(event["down_s"])
            node.link("up")

    def round(self, event):
        number = event["round"]
        expected = self.expected(number)
        client = self.start(number)
        row = dict(event, ended=True, struck=False)
        limit = time.monotonic() + START_S
        while len(self.ranks(number)) < self.tasks and client.poll() is None and time.monotonic() < limit:
            time.sleep(0.05)
        row["began"] = len(self.ranks(number))
        time.sleep(event["delay_s"])
        # A victim of a job that has just ended proves nothing.
        whole = len(self.ranks(number)) == self.tasks
        row["struck"] = self.victim(event, number) and whole
        began = time.monotonic()
        self.repair(event)
        try:
            row["out"], row["err"] = client.communicate(timeout=LIMIT_S)
        except subprocess.TimeoutExpired:
            row["ended"] = False
            row["left"] = self.left(number)
            os.killpg(client.pid, signal.SIGKILL)
            row["out"], row["err"] = client.communicate()
        row["status"] = client.returncode
        row["end_s"] = round(time.monotonic() - began, 2)
        limit = time.monotonic() + LEFT_S
        while self.left(number) and time.monotonic() < limit:
            time.sleep(0.1)
        row["left"] = self.left(number)
        row["left_s"] = round(time.monotonic() - began - row["end_s"], 2)
        for pid in self.ranks(number):  # the next round begins without them
            os.kill(pid, signal.SIGKILL)
        self.bed.wait_heard(30)
        row["wrong"] = judge(row, self.options.way, expected)
        if row["began"] < self.tasks and not row["wrong"]:
            row["wrong"] = [f"only {row['began']} of {self.tasks} ranks ran within {START_S} s: "
                            f"{row['err'].strip()[-300:]!r}"]
        return row


def leftovers():
    """Session directories and shared memory of MPI programs at nodes that no process has open."""
    found = set(glob.glob("/tmp/ompi.n[0-9]*") + glob.glob("/dev/shm/vader_segment.n[0-9]*"))
    for maps in glob.glob("/proc/[0-9]*/maps"):
        try:
            with open(maps, encoding="utf-8", errors="replace") as f:
                found -= {line.split(None, 5)[5].strip() for line in f if "vader_segment" in line}
        except OSError:
            continue
    return found


def main():
    parser = argparse.ArgumentParser()
    for name in ("testbed", "build", "scratch", "log"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--way", choices=["run", "rsh"], required=True)
    options = parser.parse_args()
    gangs = Gangs(options)
    before = leftovers()
    failed, counts, ends = 0, {}, []
    with open(options.log, "w", encoding="utf-8") as log:
        for event in plan(options.seed, options.rounds, gangs.names):
            row = gangs.round(event)
            log.write(json.dumps(row) + "\n")
            log.flush()
            counts.setdefault(event["kind"], []).append(row["struck"])
            ends.append(row["end_s"])
            what = (f"round {event['round']}: {event['kind']} at {event['node']}, status {row['status']} "
                    f"{row['end_s']} s after, gone {row['left_s']} s later")
            print(f"{'not ok' if row['wrong'] else 'ok'} {event['round']} - {what}", flush=True)
            for sentence in row["wrong"]:
                print(f"# {sentence}", flush=True)
            failed += bool(row["wrong"])
    print("# killed while all ranks ran: " +
          ", ".join(f"{kind} {sum(hit)} of {len(hit)}" for kind, hit in sorted(counts.items())))
    print(f"# jobs ended {max(ends):.1f} s after the kill at most, {sum(ends) / len(ends):.1f} s on average")
    left = sorted(leftovers() - before)
    if options.way == "run":
        print(f"{'not ok' if left else 'ok'} {options.rounds + 1} - no session directory or shared memory is left")
        for path in left[:8]:
            print(f"# {path}")
    else:
        print(f"ok {options.rounds + 1} - what killed ranks leave # SKIP mpirun cannot know it: {len(left)} files")
        for path in filter(os.path.isfile, left):
            os.unlink(path)
    print(f"1..{options.rounds + 1}")
    return 1 if failed or (left and options.way == "run") else 0


if __name__ == "__main__":
    sys.exit(main())
