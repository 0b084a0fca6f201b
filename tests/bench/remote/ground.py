# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Two nodes for bench-remote: a and b, each a network namespace with one address, one
munged and, where asked, an agent, an sshd, a slurmd.  They share the kernel, the users
and the files; their wire is a veth pair without a shaper.

Namespaces live as long as a process of ours, so that nothing is left when it dies; what
stays by name, the control groups, is removed at the next start.
"""

import atexit
import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

GROUP = "iocom-bench"
ADDRESS = {"a": "10.88.0.1", "b": "10.88.0.2"}
PORT = 7700


class Skip(Exception):
    """Something of this machine is missing; the sentence says what."""


def run(*argv, **options):
    return subprocess.run(argv, check=True, capture_output=True, text=True, **options).stdout


def until(seconds, check, what, log=None):
    """Polls CHECK; fails with what stands in LOG."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if check():
            return
        time.sleep(0.02)
    words = open(log).read()[-400:] if log and os.path.exists(log) else ""
    raise Skip(f"{what} does not start within {seconds} s: {words.strip()}")


def quietly(check):
    try:
        return check()
    except (subprocess.CalledProcessError, OSError, ValueError):
        return None


def groups():
    """The control groups of ours, in each hierarchy, deepest first."""
    found = []
    for line in open("/proc/self/mounts"):
        _, point, kind = line.split()[:3]
        if kind in ("cgroup", "cgroup2") and os.path.isdir(f"{point}/{GROUP}"):
            found += [d for d, _, _ in os.walk(f"{point}/{GROUP}", topdown=False)]
    return found


class Ground:
    def __init__(self, build, before=""):
        if os.geteuid() != 0:
            raise Skip("needs root: namespaces, eBPF programs")
        for tool in ("ip", "nsenter", "unshare", "munged"):
            if not shutil.which(tool):
                raise Skip(f"{tool} is not installed")
        self.build = os.path.abspath(build)
        self.before = before and os.path.abspath(before)  # an earlier build's programs
        self.lock = open("/run/lock/iocom-bench.lock", "w")
        fcntl.flock(self.lock, fcntl.LOCK_EX)
        self.processes, self.holders, self.undo = [], {}, []
        # Not below /tmp where that is memory: the journals are to be on a disk.
        self.dir = tempfile.mkdtemp(prefix="iocom-bench-", dir="/var/tmp")
        os.chmod(self.dir, 0o755)
        atexit.register(self.close)
        for name in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(name, lambda *_: sys.exit(130))
        self.clean_groups()
        self.make_groups()
        self.make_nodes()

    # --- the machine -----------------------------------------------------------

    def clean_groups(self):
        end = time.monotonic() + 10
        while groups() and time.monotonic() < end:
            for directory in groups():
                for pid in quietly(lambda d=directory: open(d + "/cgroup.procs").read().split()) or []:
                    quietly(lambda p=pid: os.kill(int(p), signal.SIGKILL))
                quietly(lambda d=directory: os.rmdir(d))
            time.sleep(0.02)

    def make_groups(self):
        unified = [line.split()[1] for line in open("/proc/self/mounts")
                   if line.split()[2] == "cgroup2"]
        if not unified:
            raise Skip("no cgroup2 is mounted")
        for node in ADDRESS:
            os.makedirs(f"{unified[0]}/{GROUP}/{node}")
            os.makedirs(f"{unified[0]}/{GROUP}/{node}-before")

    def make_nodes(self):
        for node in ADDRESS:
            self.holders[node] = subprocess.Popen(["unshare", "--net", "sleep", "infinity"])
        own = os.stat("/proc/self/ns/net").st_ino
        until(5, lambda: all(os.stat(f"/proc/{p.pid}/ns/net").st_ino != own
                             for p in self.holders.values()), "a network namespace")
        self.on("a", "ip", "link", "add", "eth0", "type", "veth", "peer", "name", "eth0", "netns",
                str(self.holders["b"].pid))
        for node, address in ADDRESS.items():
            self.on(node, "ip", "link", "set", "lo", "up")
            self.on(node, "ip", "address", "add", address + "/24", "dev", "eth0")
            self.on(node, "ip", "link", "set", "eth0", "up")
            os.makedirs(self.path(node))
        key = self.path("munge.key")
        with open(os.open(key, os.O_CREAT | os.O_WRONLY, 0o400), "wb") as out:
            out.write(os.urandom(128))
        for node in ADDRESS:
            self.daemon(node, "munged", ["munged", "--foreground", "--force", "--key-file=" + key,
                                         "--socket=" + self.munge(node),
                                         "--pid-file=" + self.path(node, "munge.pid"),
                                         "--seed-file=" + self.path(node, "munge.seed"),
                                         "--log-file=" + self.path(node, "munge.log"),
                                         "--num-threads=2", "--origin=" + ADDRESS[node]])
            until(10, lambda n=node: os.path.exists(self.munge(n)), "munged",
                  self.path(node, "munged.out"))

    def path(self, *parts):
        return os.path.join(self.dir, *parts)

    def munge(self, node):
        return self.path(node, "munge.socket")

    def enter(self, node, *argv):
        return ["nsenter", f"--net=/proc/{self.holders[node].pid}/ns/net", *argv]

    def environment(self, node):
        return dict(os.environ, IOCOM_RUN_DIR=self.path(node, "run"),
                    IOCOM_MUNGE_SOCKET=self.munge(node),
                    SLURM_CONF=self.path("slurm.conf"),
                    PATH=self.build + ":/usr/sbin:/usr/bin:/sbin:/bin")

    def laps(self, node, *argv, **options):
        """What the stopwatch prints, as words a line."""
        out = self.on(node, os.path.join(self.build, "tests/tools/laps"), *argv, **options)
        return [line.split() for line in out.splitlines()]

    def on(self, node, *argv, **options):
        """Output of a command at NODE."""
        return run(*self.enter(node, *argv), env=self.environment(node), cwd="/", **options)

    def daemon(self, node, name, argv, **options):
        log = open(self.path(node, name + ".out"), "a")
        process = subprocess.Popen(self.enter(node, *argv), stdin=subprocess.DEVNULL, stdout=log,
                                   stderr=log, env=self.environment(node), cwd="/",
                                   start_new_session=True, **options)
        self.processes.append(process)
        return process

    def end(self, process):
        if process.poll() is None:
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        if process in self.processes:
            self.processes.remove(process)

    def close(self):
        for action in reversed(self.undo):
            quietly(action)
        self.undo = []
        for process in reversed(list(self.processes)):
            self.end(process)
        for holder in self.holders.values():
            holder.kill()
            holder.wait()
        self.holders = {}
        self.clean_groups()
        shutil.rmtree(self.dir, ignore_errors=True)

    # --- iocom -----------------------------------------------------------------

    def agent(self, node, before=False):
        other = ADDRESS["b" if node == "a" else "a"]
        build, mark, port = (self.before, "-before", PORT + 50) if before else (self.build, "", PORT)
        process = self.daemon(node, "iocomd" + mark, [
            f"{build}/iocomd", "--name", node, "--listen", ADDRESS[node], "--port", str(port),
            "--peers", f"{other}:{port}", "--run-dir", self.path(node, "run" + mark), "--state-dir",
            self.path(node, "state" + mark), "--munge-socket", self.munge(node), "--scope",
            f"cgroup={GROUP}/{node}{mark}", "--allow-root", "yes", "--shim", f"{build}/iocom-shim"])
        until(20, lambda: os.path.exists(self.path(node, "run" + mark, "iocom.sock")), "iocomd",
              self.path(node, f"iocomd{mark}.out"))
        return process

    def sees(self, node, before=False):
        run_dir = self.path(node, "run-before" if before else "run")
        nodes = quietly(lambda: json.loads(self.on(
            node, f"{self.before if before else self.build}/iocom", "nodes", "--run-dir", run_dir,
            "--json"))["nodes"])
        return sum(1 for n in nodes or [] if n["alive"])

    def agents(self, before=False):
        """Both; until each knows the other."""
        both = {node: self.agent(node, before) for node in ADDRESS}
        until(20, lambda: all(self.sees(n, before) == len(ADDRESS) for n in ADDRESS),
              "the cluster", self.path("a", "iocomd.out"))
        return both

    # --- peers -----------------------------------------------------------------

    def sshd(self):
        """An sshd at b, with keys made for this run; argv of ssh to it, and over a master."""
        if not (shutil.which("sshd") or os.path.exists("/usr/sbin/sshd")):
            raise Skip("sshd is not installed (openssh-server)")
        os.makedirs("/run/sshd", mode=0o755, exist_ok=True)
        for key in ("host", "user"):
            run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", self.path(key))
        with open(self.path("sshd_config"), "w") as out:
            out.write(f"ListenAddress {ADDRESS['b']}:22\nHostKey {self.path('host')}\n"
                      f"AuthorizedKeysFile {self.path('user.pub')}\nPidFile none\nUsePAM no\n"
                      "StrictModes no\nPermitRootLogin prohibit-password\nMaxStartups 100\n"
                      "PrintMotd no\nUseDNS no\n")
        with open(self.path("known"), "w") as out:
            out.write(f"{ADDRESS['b']} {open(self.path('host.pub')).read()}")
        common = ["ssh", "-F", "none", "-i", self.path("user"), "-o", "BatchMode=yes", "-o",
                  "UserKnownHostsFile=" + self.path("known"), "-o", "IdentitiesOnly=yes"]
        self.daemon("b", "sshd", ["/usr/sbin/sshd", "-D", "-e", "-f", self.path("sshd_config")])
        ssh = [*common, ADDRESS["b"]]
        until(10, lambda: quietly(lambda: self.on("a", *ssh, "true")) is not None, "sshd",
              self.path("b", "sshd.out"))
        over = ["-o", "ControlPath=" + self.path("master")]
        self.daemon("a", "master", [*common, *over, "-o", "ControlMaster=yes", "-N", ADDRESS["b"]])
        until(10, lambda: os.path.exists(self.path("master")), "the master of ssh",
              self.path("a", "master.out"))
        return ssh, [*common, *over, ADDRESS["b"]]

    def slurm(self):
        """slurmctld at a, slurmd at b; argv of srun."""
        for tool in ("srun", "slurmctld", "slurmd"):
            if not shutil.which(tool, path="/usr/sbin:/usr/bin"):
                raise Skip(f"{tool} is not installed (slurmctld, slurmd, slurm-client)")
        host = os.uname().nodename.split(".")[0]
        for directory in ("slurmctld", "slurmd"):
            os.makedirs(self.path(directory))
        with open(self.path("slurm.conf"), "w") as out:
            out.write(f"""ClusterName=bench
SlurmctldHost={host}({ADDRESS['a']})
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={self.munge('a')}
CredType=cred/munge
StateSaveLocation={self.path('slurmctld')}
SlurmdSpoolDir={self.path('slurmd')}
SlurmctldPidFile={self.path('slurmctld.pid')}
SlurmdPidFile={self.path('slurmd.pid')}
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
ReturnToService=2
SchedulerType=sched/builtin
SelectType=select/cons_tres
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SlurmctldDebug=error
SlurmdDebug=error
SlurmdParameters=config_overrides
NodeName=b NodeAddr={ADDRESS['b']} NodeHostname={host} CPUs=64 State=UNKNOWN
PartitionName=bench Nodes=b Default=YES MaxTime=INFINITE State=UP OverSubscribe=FORCE:64
""")
        conf = self.path("slurm.conf")
        self.daemon("a", "slurmctld", ["slurmctld", "-D", "-f", conf])
        self.daemon("b", "slurmd", ["slurmd", "-D", "-N", "b", "-f", conf])
        srun = ["srun", "-Q", "-n1"]
        until(40, lambda: quietly(lambda: self.on("a", *srun, "true", timeout=20)) is not None,
              "Slurm", self.path("b", "slurmd.out"))
        return srun
