# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""How a job of the mix is placed and started.

Way `run`: `iocom run --mpi` does both, by what it has measured of earlier runs.  Way `rsh`, for a
build that cannot: `iocom place --view` decides on the live view of the job's home, into which the true
communication loads were written, and mpirun starts the ranks there over `iocom rsh`.
Jobs of one process are submitted to `iocom run` either way."""
import json
import os
import shutil
import subprocess
import threading
import time

import bound
import mixplan

MPI = ["--bind-to", "none", "--mca", "btl", "tcp,self,vader", "--mca", "btl_tcp_if_include", "eth0",
       "--mca", "oob_tcp_if_include", "eth0", "--mca", "mpi_yield_when_idle", "1"]
LIMIT_S = 300
# The policies that are told who sends whom how much; com has its sums, L_COM and R_COM.
SEES_PAIRS = {"least-delay"}


class Failed(Exception):
    """A job that could not be placed, or that failed; the sentence says how."""


def has_run(build):
    """Whether this build's `iocom run` starts MPI programs."""
    said = subprocess.run([f"{build}/iocom", "run", "--help"], capture_output=True, text=True)
    return "--mpi" in said.stdout


class Way:
    def __init__(self, bed, build, scratch, mb_per_s, spin=False):
        self.bed, self.build, self.scratch, self.mb_per_s = bed, build, scratch, mb_per_s
        self.wait = ["--wait", "spin" if spin else "sleep"]
        self.com_ms = {}   # kind -> R_COM of its tasks
        self.sent = {}     # kind -> bytes from each task to each
        self.known = {}    # id -> what the chooser `bound` knows of a running job
        self.running = {}  # id -> {node: L_COM}
        self.carried = {}  # id -> {node: MB/s over its port, if the job is not held up}
        self.lock, self.serial = threading.Lock(), 0

    def unique(self):
        with self.lock:
            self.serial += 1
            return self.serial

    def learn(self, kind, sent):
        self.sent[kind.name] = sent
        self.com_ms[kind.name] = mixplan.task_com_ms(sent, self.mb_per_s)

    def begin(self, key, kind, nodes):
        with self.lock:
            self.running[key] = mixplan.node_com_ms(self.com_ms.get(kind.name, [0.0] * kind.tasks), nodes)
            if kind.name in self.sent:
                work = bound.Work(kind, self.sent[kind.name], nodes, self.mb_per_s)
                self.carried[key] = {n: self.mb_per_s * s / work.alone_s for n, s in work.port.items()}

    def end(self, key):
        with self.lock:
            self.running.pop(key, None)
            self.carried.pop(key, None)

    def busy(self):
        """{node: MB/s that running jobs carry over its port}, never more than it can."""
        total = {}
        with self.lock:
            for job in self.carried.values():
                for node, rate in job.items():
                    total[node] = min(self.mb_per_s, total.get(node, 0.0) + rate)
        return total

    def pairs(self, kind):
        """Who of KIND's tasks sends whom how much, as a view has it; a message has at most 64 KiB."""
        return [[a, b, sent, sent // 65536 + 1] for a, row in enumerate(self.sent.get(kind.name, []))
                for b, sent in enumerate(row) if sent]

    def bounded(self, kind):
        """Runs KIND where the chooser that knows everything puts it; all jobs of its pass are its own."""
        key, now = self.unique(), time.monotonic()
        with self.lock:
            nodes, work, alone_s = bound.choose(kind, self.sent[kind.name], [n["name"] for n in self.bed.nodes],
                                                list(self.known.values()), self.mb_per_s, now)
            self.known[key] = bound.Running(work, now, alone_s)
        try:
            return self.start_at(kind, nodes), nodes
        finally:
            with self.lock:
                del self.known[key]

    def command(self, kind):
        argv = kind.argv(self.build, self.bed.disk)
        return argv + self.wait if kind.parallel else argv

    def do(self, node, argv, what):
        done = subprocess.run(self.bed.argv(node, *argv), env=self.bed.env, cwd="/", text=True,
                              stdin=subprocess.DEVNULL, capture_output=True, start_new_session=True,
                              timeout=LIMIT_S)
        if done.returncode:
            raise Failed(f"{what}: status {done.returncode}: {done.stderr.strip()[-400:]}")
        return done

    def start_at(self, kind, nodes, extra=()):
        """Runs KIND with its tasks on NODES, as the baselines need it; what it printed."""
        if not kind.parallel:
            return self.do(nodes[0], ["iocom", "run", "--node", nodes[0], "--", *self.command(kind)],
                           kind.name).stdout
        return self.mpirun(nodes[0], kind, nodes, extra)

    def mpirun(self, home, kind, nodes, extra=()):
        # Its own directory for sessions: two that begin at once fail where they share one.
        sessions = os.path.join(self.scratch, f"mpirun.{self.unique()}")
        os.mkdir(sessions)
        hosts = os.path.join(sessions, "hosts")
        with open(hosts, "w", encoding="ascii") as f:
            f.writelines(n + "\n" for n in nodes)
        agent = os.path.join(os.path.dirname(self.bed.node(home)["run_dir"]), "..", "programs/iocom")
        argv = ["env", "OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1", "mpirun", "-np",
                str(kind.tasks), "--mca", "plm_rsh_agent", f"{os.path.abspath(agent)} rsh", "--mca",
                "rmaps", "seq", "--mca", "orte_tmpdir_base", sessions, "--hostfile", hosts,
                *MPI, *self.command(kind), *extra]
        try:
            return self.do(home, argv, kind.name).stdout
        finally:
            shutil.rmtree(sessions, ignore_errors=True)


class Rsh(Way):
    name = "mpirun over iocom rsh, placed by iocom place --view"

    def view(self, home, policy, kind):
        """The live view of HOME with the job and the true communication loads."""
        path = os.path.join(self.scratch, f"view.{self.unique()}")
        self.do(home, ["iocom", "place", "--policy", policy, "--save-view", path, "--", "true"], "place")
        with open(path, encoding="utf-8") as f:
            view = json.load(f)
        load = {}
        with self.lock:
            for job in self.running.values():
                for node, ms in job.items():
                    load[node] = load.get(node, 0.0) + ms
        for node in view["nodes"]:
            node["advertised"]["com_ms"] = load.get(node["name"], 0.0)
        com = self.com_ms.get(kind.name, [0.0] * kind.tasks)
        view["job"] = dict(cpu_ms=kind.cpu_s * 1e3, memory_mb=20, tasks=kind.tasks, io_per_ms=0,
                           requests=0, com_ms=[0.0] + com[1:])
        if policy in SEES_PAIRS:
            busy = self.busy()
            for node in view["nodes"]:
                node["network_mb_per_s"] = self.mb_per_s
                node["port"] = dict(busy_mb_per_s=busy.get(node["name"], 0.0), round_trip_ms=0.2)
            view["job"]["pairs"] = self.pairs(kind)
        with open(path, "w", encoding="utf-8") as f:
            json.dump(view, f)
        return path

    def run(self, home, policy, kind):
        """(output, nodes of its tasks)"""
        if policy == "bound":
            return self.bounded(kind)
        if not kind.parallel:
            return self.single(home, policy, kind)
        path = self.view(home, policy, kind)
        said = subprocess.run([f"{self.build}/iocom", "place", "--view", path, "--policy", policy, "--json"],
                              capture_output=True, text=True)
        if said.returncode:
            raise Failed(f"place --view: {said.stderr.strip()}")
        os.unlink(path)
        nodes, key = json.loads(said.stdout)["nodes"], self.unique()
        self.begin(key, kind, nodes)
        try:
            return self.mpirun(home, kind, nodes), nodes
        finally:
            self.end(key)

    def single(self, home, policy, kind):
        need = ["--cpu-time", f"{kind.cpu_s:g}", "--mem", "10M"]
        if kind.disk_mb:
            need += ["--io", f"{kind.disk_mb}M", "--io-size", f"{mixplan.BLOCK_KB}K"]
        done = self.do(home, ["iocom", "run", "--json", "--policy", policy, *need, "--",
                              *self.command(kind)], kind.name)
        return done.stdout, [where(done.stderr, home)]


class Run(Rsh):
    name = "iocom run --mpi"

    def gang(self, home, kind, options, extra=()):
        """Each node here has one processor, so that its slots must not limit a policy."""
        return self.do(home, ["iocom", "run", "-n", str(kind.tasks), "--mpi", "--oversubscribe", "--json",
                              *options, "--", *self.command(kind), *extra], kind.name)

    def start_at(self, kind, nodes, extra=()):
        """The baselines start as the jobs do, and teach the agents what such a job needs."""
        if not kind.parallel:
            return super().start_at(kind, nodes, extra)
        there = sorted(set(nodes))
        return self.gang(nodes[0], kind, ["--on", ",".join(there), "--per-node",
                                          str(-(-kind.tasks // len(there)))], extra).stdout

    def run(self, home, policy, kind):
        if policy == "bound":
            return self.bounded(kind)
        if not kind.parallel:
            return self.single(home, policy, kind)
        done = self.gang(home, kind, ["--policy", policy])
        return done.stdout, tasks_of(done.stderr, kind.tasks)


def events(said):
    """The objects that `iocom run --json` wrote among other lines."""
    for line in said.splitlines():
        if line.startswith("{"):
            try:
                yield json.loads(line)
            except ValueError:
                continue


def where(said, home):
    """The node of a job of one process."""
    return next((e["node"] for e in events(said) if e.get("state") == "placed" and e.get("node")), home)


def numbers(ranges):
    """0-3,8 -> 0 1 2 3 8"""
    for part in filter(None, ranges.split(",")):
        first, _, last = part.partition("-")
        yield from range(int(first), int(last or first) + 1)


def parts_of(value):
    """The parts of a gang, wherever they are in what was said."""
    if isinstance(value, dict):
        if isinstance(value.get("parts"), list):
            return value["parts"]
        value = list(value.values())
    for inner in value if isinstance(value, list) else ():
        found = parts_of(inner)
        if found:
            return found
    return None


def tasks_of(said, tasks):
    """The nodes of all tasks of a gang."""
    nodes = ["?"] * tasks
    for event in events(said):
        for part in parts_of(event) or ():
            for rank in numbers(str(part.get("ranks", ""))):
                if rank < tasks:
                    nodes[rank] = part.get("node", "?")
    return nodes
