# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""The testbed under chaos: its nodes, whose agents and munged are started and killed.

An agent and a munged are started again with the same command line as the testbed used.
"""
import glob
import json
import os
import signal
import socket
import struct
import subprocess
import time

STATE_MB = 32    # the file system of a node's state directory
KEEP_JOBS = 300  # finished jobs in a node's journal; pruned once a minute
SPOOL_MB = 2     # output kept of a detached job
SPOOLS_MB = 16   # output kept of all jobs of a node
LEASE_S = 5
WORDS = ["--keep-jobs", str(KEEP_JOBS), "--spool-mb", str(SPOOL_MB), "--spool-total-mb",
         str(SPOOLS_MB), "--lease-s", str(LEASE_S)]


def faked(ahead_s):
    """Words before a program, so that its CLOCK_REALTIME is AHEAD_S seconds ahead."""
    found = glob.glob("/usr/lib/*/faketime/libfaketimeMT.so.1")
    if not ahead_s:
        return []
    if not found:
        raise RuntimeError("libfaketime is not installed")
    return ["env", f"LD_PRELOAD={found[0]}", f"FAKETIME={ahead_s:+d}s",
            "FAKETIME_DONT_FAKE_MONOTONIC=1"]


def words_of(pid):
    with open(f"/proc/{pid}/cmdline", "rb") as f:
        return [w.decode() for w in f.read().split(b"\0")[:-1]]


def stat_of(pid):
    """Returns state, parent and further fields of /proc/PID/stat."""
    with open(f"/proc/{pid}/stat") as f:
        return f.read().rsplit(")", 1)[1].split()


def alive(pid):
    """Returns whether a thread of process PID is not a zombie. The last such thread releases
    locks and sockets; /proc/PID/stat shows only the state of the first one."""
    try:
        threads = os.listdir(f"/proc/{pid}/task")
    except OSError:
        return False
    for thread in threads:
        try:
            if stat_of(f"{pid}/task/{thread}")[0] not in "ZX":
                return True
        except OSError:
            pass
    return False


def cgroup_roots():
    """Returns the mount points of cgroup2 and of the v1 hierarchies that the testbed uses."""
    roots = []
    with open("/proc/self/mountinfo") as f:
        for line in f:
            left, right = line.split(" - ")
            kind, _, options = right.split()
            if kind == "cgroup2" or (kind == "cgroup" and
                                     {"memory", "cpu", "cpuacct", "pids"} & set(options.split(","))):
                roots.append(left.split()[4])
    return roots


class Node:
    def __init__(self, bed, row):
        self.bed, self.name = bed, row["name"]
        self.run_dir, self.group = row["run_dir"], row["cgroup"]
        self.dir = os.path.dirname(self.run_dir)
        self.pid = row["agent_pid"]
        self.agent_words = words_of(self.pid) + WORDS
        self.munge_socket = row["munge_socket"]
        self.munged_words = words_of(self.munged_pid())
        self.child = None
        self.reattached = []  # seconds from the start of a new agent until it answers
        self.late = 0         # starts that were refused (a full disk), and tried again
        self.deaths = []      # last words of agents that were dead before we killed them
        self.overfull = []    # complaints about its kept output, while it worked
        self.listed = {}      # its last list of jobs: it forgets the oldest

    def munged_pid(self):
        with open(f"{self.dir}/munge/pid") as f:
            return int(f.read())

    def enter(self, group, words):
        """Words that put a process into the node's namespaces and GROUP of its cgroups."""
        procs = " ".join(f"{root}/{group}/cgroup.procs" for root in self.bed.roots
                         if os.path.isdir(f"{root}/{group}"))
        ns = f"{self.dir}/ns"
        return ["sh", "-c", f'for p in {procs}; do echo $$ >"$p"; done 2>/dev/null; exec "$@"',
                "sh", "nsenter", f"--net={ns}/net", f"--mount={ns}/mnt", f"--uts={ns}/uts",
                *words]

    # --- the agent ---
    def start_agent(self, ahead_s=0):
        """Starts agents until one answers; returns how long that one took."""
        limit = time.monotonic() + 60
        while time.monotonic() < limit:
            with open(f"{self.dir}/agent.log", "ab") as log:
                began = time.monotonic()
                self.child = subprocess.Popen(
                    self.enter(f"{self.group}/agent", faked(ahead_s) + self.agent_words),
                    stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
            while self.child.poll() is None and time.monotonic() < limit:
                if self.answers():
                    self.pid = self.child.pid
                    with open(f"{self.dir}/agent.pid", "w") as f:
                        f.write(f"{self.pid}\n")
                    return time.monotonic() - began
                time.sleep(0.002)
            self.late += 1
            time.sleep(0.2)
        raise RuntimeError(f"{self.name}: no agent starts; see {self.dir}/agent.log")

    def answers(self):
        """Returns whether our child answers, and not an earlier agent that has not ended yet:
        a second agent would end at once."""
        with socket.socket(socket.AF_UNIX) as s:
            try:
                s.connect(f"{self.run_dir}/iocom.sock")
                who = s.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
                return struct.unpack("3i", who)[0] == self.child.pid
            except OSError:
                return False

    def found_dead(self):
        """Returns whether the agent ended without our doing, and notes that."""
        if self.child:
            self.child.poll()
        if alive(self.pid):
            return False
        with open(f"{self.dir}/agent.log", errors="replace", encoding="utf-8") as log:
            self.deaths.append((log.read().splitlines() or ["nothing"])[-1])
        return True

    def end_agent(self, number=signal.SIGKILL):
        self.found_dead()
        try:
            os.kill(self.pid, number)
        except ProcessLookupError:
            pass
        while alive(self.pid):
            if self.child:
                self.child.poll()
            time.sleep(0.002)

    def signal_agent(self, number):
        try:
            os.kill(self.pid, number)
        except ProcessLookupError:
            pass

    def network(self):
        """Returns the agent's network part, or None: it starts again just now."""
        return next((pid for pid, parent in self.networks().items()
                     if parent == self.pid and alive(pid)), None)

    def networks(self):
        """Returns {process: parent} of network parts and their helpers."""
        found = {}
        for pid in self.bed.pids_of(f"{self.group}/agent") | self.bed.pids_of(f"{self.group}/exec"):
            try:
                if words_of(pid)[:1] == ["iocom-net"]:
                    found[pid] = int(stat_of(pid)[1])
            except OSError:
                pass
        return found

    # --- supervisors ---
    def shims(self):
        """Returns the supervisors, without job processes, which are copies of them until exec."""
        parents = {}
        for pid in self.bed.pids_of(f"{self.group}/shims"):
            try:
                if words_of(pid)[0] == "iocom-shim":
                    parents[pid] = int(stat_of(pid)[1])
            except (OSError, IndexError):
                pass
        return sorted(pid for pid, parent in parents.items() if parent not in parents)

    # --- munged ---
    def kill_munged(self):
        pid = self.munged_pid()
        os.kill(pid, signal.SIGKILL)
        while alive(pid):
            time.sleep(0.002)

    def start_munged(self, ahead_s=0):
        words = faked(ahead_s) + self.munged_words
        subprocess.run(self.enter(f"{self.bed.mark}/infra", words), check=True,
                       stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL, start_new_session=True)

    # --- link and disk ---
    def link(self, state):
        subprocess.run(["nsenter", f"--net={self.bed.dir}/bridge/net", "ip", "link", "set",
                        f"iocom-{self.name}", state], check=True)

    def inside(self, *words):
        return subprocess.run(["nsenter", f"--mount={self.dir}/ns/mnt", *words], check=True,
                              capture_output=True, text=True).stdout

    def small_state(self):
        """Ends the agent and makes its state directory a small file system."""
        self.end_agent()
        self.inside("mount", "-t", "tmpfs", "-o", f"size={STATE_MB}m,mode=0700", "iocom-chaos",
                    f"{self.dir}/state")

    def fill(self):
        self.inside("sh", "-c", f"head -c {STATE_MB}M /dev/zero >'{self.dir}/state/fill'; true")

    def empty(self):
        self.inside("rm", "-f", f"{self.dir}/state/fill")

    # --- what the node says ---
    def jobs(self):
        """Returns all its jobs as {id: row}, also those that it has forgotten since."""
        done = self.bed.run(self.name, ["jobs", "--here", "--all", "--json"])
        if not done.returncode:
            self.listed.update((job["job"], job) for job in json.loads(done.stdout)["jobs"])
        return self.listed

    def others(self):
        done = self.bed.run(self.name, ["nodes", "--json"])
        return 0 if done.returncode else len(json.loads(done.stdout)["nodes"])


class Bed:
    def __init__(self, testbed, build):
        self.build = build
        done = subprocess.run([testbed, "status", "--json"], capture_output=True, text=True,
                              check=True)
        status = json.loads(done.stdout)
        self.dir = status["state_dir"]
        self.mark = status["nodes"][0]["cgroup"].split("/")[0]
        self.roots = cgroup_roots()
        self.nodes = {row["name"]: Node(self, row) for row in status["nodes"]}

    def tool(self, name):
        return f"{self.build}/tests/tools/{name}" if name != "iocom" else f"{self.build}/iocom"

    def spawn(self, node, words, **options):
        n = self.nodes[node]
        env = dict(os.environ, IOCOM_RUN_DIR=n.run_dir, IOCOM_MUNGE_SOCKET=n.munge_socket)
        return subprocess.Popen(n.enter(f"{n.group}/exec", words), env=env, cwd="/",
                                start_new_session=True, **options)

    def run(self, node, words):
        with self.spawn(node, [self.tool("iocom"), *words], stdin=subprocess.DEVNULL,
                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as p:
            try:
                out, err = p.communicate(timeout=30)
            except subprocess.TimeoutExpired:
                p.kill()
                out, err = p.communicate()
            return subprocess.CompletedProcess(words, p.returncode, out, err)

    def pids_of(self, group):
        """Returns the processes in GROUP and below, in any hierarchy."""
        pids = set()
        for root in self.roots:
            for at, _, _ in os.walk(f"{root}/{group}"):
                try:
                    with open(f"{at}/cgroup.procs") as f:
                        pids.update(int(line) for line in f)
                except OSError:
                    pass
        return pids

    def wait_heard(self, seconds):
        """Waits until every node hears every other one."""
        limit = time.monotonic() + seconds
        while time.monotonic() < limit:
            if all(n.others() == len(self.nodes) for n in self.nodes.values()):
                return True
            time.sleep(0.3)
        return False
