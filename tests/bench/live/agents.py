# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Hundreds of agents with synthetic loads on this machine, each in a network namespace of its own.

One bridge joins them; a second one parts the cluster. All share one munged. Needs root.
"""
import json
import os
import shutil
import signal
import subprocess
import tempfile
import time

NETWORK = "10.78"
PEERS = 3
START_AT_ONCE = 5
MUNGED_FOR = 8  # agents: on a real cluster each has its own


def sh(*command, check=True):
    return subprocess.run(command, check=check, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True).stdout


def children(pid):
    try:
        with open(f"/proc/{pid}/task/{pid}/children") as f:
            return [int(child) for child in f.read().split()]
    except FileNotFoundError:
        return []


def family(pid):
    found, todo = [], [pid]
    while todo:
        pid = todo.pop()
        found.append(pid)
        todo += children(pid)
    return found


def used_s(pid):
    """The scheduler's count for all threads: clock ticks are too coarse."""
    total = 0
    try:
        for task in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{task}/schedstat") as f:
                total += int(f.read().split()[0])
    except FileNotFoundError:
        pass
    return total / 1e9


def pss_mb(pid):
    try:
        with open(f"/proc/{pid}/smaps_rollup") as f:
            return sum(int(line.split()[1]) for line in f if line.startswith("Pss:")) / 1024
    except (FileNotFoundError, ProcessLookupError):
        return 0


class Agent:
    def __init__(self, cluster, number):
        self.cluster = cluster
        self.number = number
        self.name = f"s{number}"
        self.netns = f"{cluster.mark}{number}"
        self.address = f"{NETWORK}.{number // 250}.{number % 250 + 1}"
        self.directory = os.path.join(cluster.directory, self.name)
        self.process = None

    def make(self):
        c, veth = self.cluster, f"{self.cluster.mark}v{self.number}"
        sh("ip", "netns", "add", self.netns)
        sh("ip", "link", "add", veth, "type", "veth", "peer", "name", "eth0", "netns", self.netns)
        sh("ip", "link", "set", veth, "master", c.bridges[0], "up")
        sh("ip", "-n", self.netns, "addr", "add", f"{self.address}/16", "dev", "eth0")
        sh("ip", "-n", self.netns, "link", "set", "eth0", "up")
        sh("ip", "-n", self.netns, "link", "set", "lo", "up")
        os.makedirs(self.directory)
        with open(os.path.join(self.directory, "load.json"), "w") as f:
            json.dump(self.load(), f)

    def load(self):
        """Each has another one, which changes every few seconds."""
        steps = [dict(seconds=2 + (self.number * 7 + i * 3) % 11,
                      run_queue=(self.number + i * 5) % 6 / 2, cpu=(self.number + i * 5) % 6 / 3,
                      memory_used_mb=1000 + 100 * ((self.number + i) % 20),
                      disk_requests_per_s=10 * ((self.number * 3 + i) % 12), disk_service_ms=3,
                      disk_mb_per_s=(self.number * 3 + i) % 12) for i in range(4)]
        return dict(cores=4, memory_mb=8000, loads=steps)

    def join(self, bridge):
        sh("ip", "link", "set", f"{self.cluster.mark}v{self.number}", "master", bridge)

    def start(self):
        c = self.cluster
        peers = ",".join(a.address for a in c.agents[:PEERS] if a is not self)
        log = open(os.path.join(self.directory, "log"), "a")
        self.process = subprocess.Popen(
            ["ip", "netns", "exec", self.netns, os.path.join(c.build, "iocomd"),
             "--name", self.name, "--listen", self.address, "--peers", peers,
             "--munge-socket", c.munge(self.number), "--synthetic", os.path.join(self.directory, "load.json"),
             "--run-dir", os.path.join(self.directory, "run"),
             "--state-dir", os.path.join(self.directory, "state")],
            stdout=log, stderr=log, start_new_session=True)

    def ask(self, *words):
        out = subprocess.run(
            [os.path.join(self.cluster.build, "iocom"), words[0], "--run-dir",
             os.path.join(self.directory, "run"), *words[1:]],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        return out.stdout

    def nodes(self):
        """Returns the other nodes that count as there: name -> age in ms."""
        try:
            nodes = json.loads(self.ask("nodes", "--json"))["nodes"]
        except (ValueError, KeyError):
            return {}
        return {n["name"]: n["age_ms"] for n in nodes if n["name"] != self.name and n.get("alive", True)}

    def kill(self):
        for pid in family(self.process.pid):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        self.process.wait()
        self.process = None

    def end(self):
        if self.process:
            self.process.terminate()


class Neighbours:
    """Room for the ARP entries of all namespaces: the kernel has one bound for all."""
    PATH = "/proc/sys/net/ipv4/neigh/default/gc_thresh"

    def __init__(self, wanted):
        self.were = {}
        for i in (3, 2, 1):
            with open(f"{self.PATH}{i}") as f:
                self.were[i] = f.read()
            if int(self.were[i]) < wanted:
                self._write(i, str(wanted))

    def _write(self, i, value):
        with open(f"{self.PATH}{i}", "w") as f:
            f.write(value)

    def restore(self):
        for i in (1, 2, 3):
            self._write(i, self.were[i])


class Cluster:
    def __init__(self, nodes, build, mark="iocs"):
        self.mark = mark
        self.build = os.path.abspath(build)
        self.directory = tempfile.mkdtemp(prefix=f"{mark}-")
        os.chmod(self.directory, 0o755)
        self.bridges = [f"{mark}-a", f"{mark}-b"]
        self.agents = [Agent(self, i) for i in range(nodes)]
        self.mungeds = []
        self.neighbours = None

    def munge(self, number):
        return os.path.join(self.directory, f"munge{number // MUNGED_FOR}", "socket")

    def up(self):
        self.neighbours = Neighbours(2 * len(self.agents) ** 2)
        for bridge in self.bridges:
            sh("ip", "link", "add", bridge, "type", "bridge")
            sh("ip", "link", "set", bridge, "up")
        key = os.urandom(128)
        for number in range(0, len(self.agents), MUNGED_FOR):
            self._start_munged(self.munge(number), key)
        for agent in self.agents:
            agent.make()
        for i, agent in enumerate(self.agents):
            agent.start()
            if i % START_AT_ONCE == START_AT_ONCE - 1:
                time.sleep(0.5)

    def _start_munged(self, socket, secret):
        directory = os.path.dirname(socket)
        os.makedirs(directory)
        key = os.path.join(directory, "key")
        with open(key, "wb") as f:
            f.write(secret)
        os.chmod(key, 0o400)
        self.mungeds.append(subprocess.Popen(
            ["munged", "--foreground", "--force", "--num-threads=2", f"--key-file={key}",
             f"--socket={socket}", f"--pid-file={directory}/pid", f"--log-file={directory}/log",
             f"--seed-file={directory}/seed"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
        for _ in range(100):
            if os.path.exists(socket):
                return
            time.sleep(0.05)
        raise SystemExit("munged does not start")

    def part(self):
        for agent in self.agents[1::2]:
            agent.join(self.bridges[1])

    def unite(self):
        for agent in self.agents[1::2]:
            agent.join(self.bridges[0])

    def used_s(self):
        return sum(used_s(pid) for a in self.agents if a.process for pid in family(a.process.pid))

    def pss_mb(self):
        return sum(pss_mb(pid) for a in self.agents if a.process for pid in family(a.process.pid))

    def down(self):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # agents that are left would burden the machine
        for agent in self.agents:
            agent.end()
        until = time.monotonic() + 20
        for agent in self.agents:
            if agent.process:
                try:
                    agent.process.wait(max(0, until - time.monotonic()))
                except subprocess.TimeoutExpired:
                    agent.kill()
            # A namespace outlives its name while the kernel still has connections there.
            sh("ip", "link", "del", f"{self.mark}v{agent.number}", check=False)
            sh("ip", "netns", "del", agent.netns, check=False)
        for munged in self.mungeds:
            munged.terminate()
        for munged in self.mungeds:
            munged.wait()
        for bridge in self.bridges:
            sh("ip", "link", "del", bridge, check=False)
        if self.neighbours:
            self.neighbours.restore()
        shutil.rmtree(self.directory, ignore_errors=True)
