#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Power cuts: whatever somebody was told must be known after each of them.

  power.py DIR BUILD PORT SCOPE CUTS SEED

Two agents, n1 and n2, have their state on an ext4 file system each, in a loop device.  Clients
submit detached jobs, wait for them and list them, all the time, and what they are told is noted.
A cut at a random moment stops the file system of one node, or of both, as a power cut does
(EXT4_IOC_SHUTDOWN without a flush: what no fsync has written is gone), kills the node's agent and
all its processes, and removes what lives in memory (the run directory, the boot's id, cgroups).
Then the file system is mounted again, and the agent starts.

The facts, each noted with the node that told it:

  named   a job's name: the node lists the job for ever
  ended   a job's end: the node lists the same end for ever
  detached   the job began: it ends as it must, or is lost if a cut hit the node that it ran on
"""
import fcntl
import json
import os
import random
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import threading
import time

SHUTDOWN = 0x8004587D  # _IOR('X', 125, __u32)
NO_FLUSH = 2
WAIT_S = 30
CLIENTS = 3  # of each kind and node
IMAGE_MB = 48
LISTED_MAX = 2000  # jobs that a listing has at most (JOBS_LISTED_MAX)


def wait_for(what, true, seconds=WAIT_S):
    end = time.monotonic() + seconds
    while not true():
        if time.monotonic() > end:
            raise SystemExit(f"power.py: waited {seconds} s for {what}")
        time.sleep(0.02)


def cgroup_mounts():
    with open("/proc/mounts", encoding="utf-8") as mounts:
        rows = [line.split() for line in mounts]
    return [
        r[1] for r in rows
        if r[2] == "cgroup2" or (r[2] == "cgroup" and re.search("memory|cpu", r[3]))
    ]


class Node:
    def __init__(self, bed, name, port, peer):
        self.bed, self.name, self.port, self.peer = bed, name, port, peer
        self.dir = f"{bed.dir}/{name}"
        self.image = f"{bed.dir}/{name}.img"
        self.state, self.run = f"{self.dir}/state", f"{self.dir}/run"
        self.agent = None
        self.cuts = 0
        os.makedirs(self.state)
        with open(self.image, "wb") as image:
            image.truncate(IMAGE_MB << 20)
        subprocess.run(["mkfs.ext4", "-q", "-F", self.image], check=True)

    def groups(self):
        return [f"{root}/{self.bed.scope}/{self.name}" for root in cgroup_mounts()]

    def mount(self):
        # commit: nothing reaches the disk by itself while the test runs
        subprocess.run(["mount", "-o", "loop,commit=300", self.image, self.state], check=True)

    def start(self):
        for group in self.groups():
            os.makedirs(group, exist_ok=True)
        with open(f"{self.dir}/log", "ab") as log:
            self.agent = subprocess.Popen(
                [f"{self.bed.build}/iocomd", "--name", self.name, "--listen", "127.0.0.1",
                 "--port", str(self.port), "--peers", f"127.0.0.1:{self.peer}",
                 "--run-dir", self.run, "--state-dir", self.state,
                 "--munge-socket", f"{self.bed.dir}/munge-{self.name}/socket",
                 "--scope", f"cgroup={self.bed.scope}/{self.name}", "--period", "0.3",
                 "--allow-root", "yes", "--shim", f"{self.bed.build}/iocom-shim"],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def serves(self):
        if self.agent.poll() is not None:
            raise SystemExit(f"power.py: the agent of {self.name} ended, see {self.dir}/log")
        with socket.socket(socket.AF_UNIX) as s:
            return s.connect_ex(f"{self.run}/iocom.sock") == 0

    def sees(self, count):
        nodes = json.loads(self.iocom("nodes", "--json").stdout or "{}").get("nodes", [])
        return len(nodes) == count

    def iocom(self, *words, **options):
        options = {"capture_output": True, "text": True, "timeout": 2 * WAIT_S} | options
        return subprocess.run([f"{self.bed.build}/iocom", *words], env=self.environment(),
                              check=False, stdin=subprocess.DEVNULL, **options)

    def environment(self):
        return os.environ | {"IOCOM_RUN_DIR": self.run}

    def jobs(self):
        done = self.iocom("jobs", "--here", "--all", "--json")
        if done.returncode:
            raise SystemExit(f"power.py: {self.name} does not list its jobs: {done.stderr}")
        return {j["job"]: j for j in json.loads(done.stdout)["jobs"]}

    def knows(self, job):
        """Asks for one job: a listing has the newest ones only."""
        return self.iocom("wait", "--json", job).stdout.startswith("{")

    def cut(self):
        """The moment itself: from here on nothing more reaches the disk."""
        self.cuts += 1
        fd = os.open(self.state, os.O_RDONLY | os.O_DIRECTORY)
        fcntl.ioctl(fd, SHUTDOWN, struct.pack("I", NO_FLUSH))
        os.close(fd)
        self.agent.send_signal(signal.SIGKILL)

    def processes(self):
        found = []
        for group in self.groups():
            for path, _, _ in os.walk(group):
                try:
                    with open(f"{path}/cgroup.procs", encoding="ascii") as procs:
                        found += [int(pid) for pid in procs.read().split()]
                except OSError:
                    pass
        return found

    def empty(self):
        for pid in self.processes():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        gone = True
        for group in self.groups():
            for path, _, _ in os.walk(group, topdown=False):
                try:
                    os.rmdir(path)
                except OSError:
                    gone = False
        return gone

    def unmount(self):
        done = subprocess.run(["umount", self.state], capture_output=True, check=False)
        return done.returncode == 0

    def clear(self):
        """After a cut: nothing that was in memory is left."""
        self.agent.wait()
        wait_for(f"the end of {self.name}'s processes", self.empty)
        wait_for(f"umount {self.state}", self.unmount)
        shutil.rmtree(self.run, ignore_errors=True)

    def stop(self):
        if self.agent and self.agent.poll() is None:
            self.agent.kill()
            self.agent.wait()
        wait_for(f"the end of {self.name}'s processes", self.empty)
        if os.path.ismount(self.state):
            wait_for(f"umount {self.state}", self.unmount)


class Facts:
    def __init__(self):
        self.lock = threading.Lock()
        self.named = {}  # (node, job): who said so
        self.ended = {}  # (node, job): (state, kind, value)
        self.detached = {}  # job: (home, status to come)
        self.nodes = {}  # job: the node it was placed at
        self.cuts = {}  # job: how often that node had been cut
        self.bad = []

    def name(self, node, job, what):
        with self.lock:
            self.named.setdefault((node.name, job), what)

    def end(self, node, row, what):
        key = (node.name, row["job"])
        end = (row["state"], row["exit_kind"], row["exit_value"])
        with self.lock:
            self.named.setdefault(key, what)
            if self.ended.setdefault(key, end) != end:
                self.bad.append(f"{node.name} told of job {key[1]}: {self.ended[key]}, "
                                f"then by {what}: {end}")

    def rows(self, node, rows, what):
        for row in rows:
            if row["state"] in ("starting", "running"):
                self.name(node, row["job"], what)
            else:
                self.end(node, row, what)


class Bed:
    def __init__(self, directory, build, port, scope, seed):
        self.dir, self.build, self.scope = directory, build, scope
        self.random = random.Random(seed)
        self.facts = Facts()
        self.nodes = [Node(self, "n1", port, port + 5), Node(self, "n2", port + 5, port)]
        self.boot = f"{directory}/boot_id"
        self.stopping = threading.Event()
        self.clients = set()  # processes of clients, killed after a cut
        self.lock = threading.Lock()
        self.told = 0  # names and ends of this round

    def new_boot(self):
        with open(self.boot, "w", encoding="ascii") as boot:
            boot.write("%08x-%04x-4000-8000-000000000000\n"
                       % (random.getrandbits(32), random.getrandbits(16)))

    # --- clients ---

    def client(self, node, *words):
        """Runs a client; what it said, even if it was killed meanwhile."""
        with self.lock:
            if self.stopping.is_set():
                return "", ""
            process = subprocess.Popen([f"{self.build}/iocom", *words], env=node.environment(),
                                       text=True, stdin=subprocess.DEVNULL,
                                       stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            self.clients.add(process)
        out, err = process.communicate()
        with self.lock:
            self.clients.discard(process)
        return out, err

    def submit(self, node, rng):
        target = rng.choice(self.nodes)
        status = rng.randrange(8)
        before = target.cuts
        out, _ = self.client(node, "run", "--detach", "--node", target.name, "--", "sh", "-c",
                             f"exit {status}")
        if not out.endswith("\n"):
            return
        job = out.strip()
        with self.facts.lock:
            self.facts.detached[job] = (node, status)
            self.facts.nodes[job] = target
            self.facts.cuts[job] = before
        self.facts.name(node, job, "run --detach")
        self.told += 1
        if rng.random() < 0.5:
            self.wait(node, job)

    def wait(self, node, job):
        out, _ = self.client(node, "wait", "--json", job)
        for line in out.splitlines(True):
            if line.endswith("\n"):
                self.facts.end(node, json.loads(line), "wait")
                self.told += 1

    def named(self, node, rng):
        target = rng.choice(self.nodes)
        _, err = self.client(node, "run", "--verbose", "--node", target.name, "--", "true")
        found = re.search(r"^iocom run: job (\S+): .*\n", err, re.M)
        if found:
            self.facts.name(node, found[1], "run --verbose")

    def listing(self, node, _):
        out, _ = self.client(node, "jobs", "--here", "--all", "--json")
        if out.endswith("\n"):
            self.facts.rows(node, json.loads(out)["jobs"], "jobs")
        time.sleep(0.05)

    def attached(self, node, rng):
        """Those wait for no disk; they let commits of all kinds be under way."""
        self.client(node, "run", "--node", rng.choice(self.nodes).name, "--", "true")

    def client_thread(self, node, what, seed):
        rng = random.Random(seed)
        while not self.stopping.is_set():
            what(node, rng)

    def dismiss(self):
        """All clients end, and no other begins."""
        self.stopping.set()
        with self.lock:
            for process in self.clients:
                process.kill()

    # --- a round ---

    def round(self, number):
        self.stopping.clear()
        self.told = 0
        threads = [
            threading.Thread(target=self.client_thread, args=(node, what, self.random.random()))
            for node in self.nodes
            for what in [self.submit] * CLIENTS + [self.named, self.listing, self.attached]
        ]
        victims = [self.nodes, self.nodes[:1], self.nodes[1:]][number % 3]
        enough = self.random.randrange(1, 25)
        later = self.random.random() * 0.05
        for thread in threads:
            thread.start()
        wait_for("clients that are told anything", lambda: self.told >= enough, 2 * WAIT_S)
        time.sleep(later)
        for node in victims:
            node.cut()
        self.dismiss()
        for thread in threads:
            thread.join()
        for node in victims:
            node.clear()
            node.mount()
        self.new_boot()
        for node in victims:
            node.start()
        self.ready()
        return "+".join(node.name for node in victims)

    def ready(self):
        for node in self.nodes:
            wait_for(f"{node.name}'s socket", node.serves)
        for node in self.nodes:
            wait_for(f"{node.name} to see both", lambda node=node: node.sees(2))

    def check(self):
        """Compares what was told with what the nodes say now; the new listings are told, too."""
        facts = self.facts
        for node in self.nodes:
            rows = node.jobs()
            missing = [job for name, job in facts.named if name == node.name and job not in rows]
            if len(rows) >= LISTED_MAX:
                some = self.random.sample(missing, min(20, len(missing)))
                missing = [job for job in some if not node.knows(job)]
            for job in missing:
                what = facts.named[node.name, job]
                facts.bad.append(f"{node.name} does not know job {job}, which {what} told")
            facts.rows(node, rows.values(), "jobs after a cut")
            for (name, job), end in facts.ended.items():
                state = rows[job]["state"] if name == node.name and job in rows else ""
                if state in ("starting", "running"):
                    facts.bad.append(f"{name} calls job {job} {state}, whose end was told: {end}")

    def over(self):
        """Every detached job that was told has the end that it must have."""
        facts = self.facts
        open_jobs = set(facts.detached)
        rows = {}

        def all_ended():
            for node in self.nodes:
                rows.update({(node.name, job): row for job, row in node.jobs().items()})
            for job in list(open_jobs):
                row = rows.get((facts.detached[job][0].name, job))
                if not row or row["state"] not in ("starting", "running"):
                    open_jobs.discard(job)
            return not open_jobs

        try:
            wait_for("the jobs' ends", all_ended, 60)
        except SystemExit:
            for job in sorted(open_jobs):
                facts.bad.append(f"job {job} at {facts.nodes[job].name} began and never ends")
        for job, (home, status) in facts.detached.items():
            row = rows.get((home.name, job))
            if not row or job in open_jobs:
                continue  # told above
            cut = facts.nodes[job].cuts > facts.cuts[job]
            if row["state"] == "exited" and row["exit_value"] == status:
                continue
            if not (row["state"] == "lost" and cut):
                facts.bad.append(f"job {job} began and must have exited with {status}; "
                                 f"{home.name} says {row['state']} {row['exit_kind']} "
                                 f"{row['exit_value']}: {row.get('text')}")


def main():
    directory, build, port, scope, cuts, seed = sys.argv[1:]
    cuts, seed = int(cuts), int(seed)
    bed = Bed(directory, build, int(port), scope, seed)
    bad = 0
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # it tidies up
    try:
        bed.new_boot()
        subprocess.run(["mount", "--bind", bed.boot, "/proc/sys/kernel/random/boot_id"], check=True)
        for node in bed.nodes:
            node.mount()
            node.start()
        bed.ready()
        kinds = {}
        for number in range(1, cuts + 1):
            kind = bed.round(number)
            kinds[kind] = kinds.get(kind, 0) + 1
            bed.check()
            if len(bed.facts.bad) > bad:
                print(f"# cut {number} ({kind}):")
                for line in bed.facts.bad[bad:bad + 20]:
                    print(f"#   {line}")
                bad = len(bed.facts.bad)
        bed.over()
        for line in bed.facts.bad[bad:bad + 20]:
            print(f"# at the end: {line}")
        counts = ", ".join(f"{k}: {n}" for k, n in sorted(kinds.items()))
        print(f"# |{cuts} power cuts, seed {seed} ({counts}):"
              f" {len(bed.facts.named)} names and {len(bed.facts.ended)} ends told,"
              f" {len(bed.facts.bad)} of them wrong afterwards")
    finally:
        bed.dismiss()
        for node in bed.nodes:
            node.stop()
        subprocess.run(["umount", "/proc/sys/kernel/random/boot_id"], check=False)
    return 1 if bed.facts.bad else 0


if __name__ == "__main__":
    sys.exit(main())
