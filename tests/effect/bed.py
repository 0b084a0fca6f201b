# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""The emulated cluster under bench-effect: it comes up and goes, gets its inputs, starts each pass with
the same profiles, and says how much processor time others of this machine took."""
import concurrent.futures
import contextlib
import fcntl
import json
import os
import re
import signal
import sqlite3
import subprocess
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TESTBED = os.path.join(ROOT, "tests/testbed/testbed")
MARK = os.environ.setdefault("IOCOM_TESTBED_MARK", "iocom-effect")
HARNESS = MARK + "-harness"  # the control group of the benchmark itself
JOURNAL_S = 60  # how long to wait for the ends of jobs
KTHREAD = 0x00200000  # PF_KTHREAD


class Broken(Exception):
    """The cluster cannot do what the benchmark needs; the sentence says what."""


def unified():
    for line in open("/proc/self/mounts", encoding="utf-8"):
        _, point, kind = line.split()[:3]
        if kind == "cgroup2":
            return point
    raise Broken("no cgroup2 hierarchy is mounted")


def group_cpu_s(group):
    """Processor time of a control group and all below it; 0 if there is none."""
    try:
        with open(os.path.join(unified(), group, "cpu.stat"), encoding="ascii") as f:
            return int(dict(line.split() for line in f)["usage_usec"]) / 1e6
    except FileNotFoundError:
        return 0.0


def kernel_threads_s():
    """{pid and start: seconds} of the kernel's own threads: they carry the disks' requests."""
    tick, out = os.sysconf("SC_CLK_TCK"), {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as f:
                fields = f.read().rsplit(")", 1)[1].split()
        except (OSError, IndexError):
            continue
        if int(fields[6]) & KTHREAD:
            out[pid, fields[19]] = (int(fields[11]) + int(fields[12])) / tick
    return out


class Usage:
    """Processor time from its making on: `foreign` is the share of the machine that neither we nor
    kernel threads took: user, nice, system and stolen time of /proc/stat, minus ours."""

    def __init__(self):
        self.before = self.read()

    @staticmethod
    def read():
        with open("/proc/stat", encoding="ascii") as f:
            ticks = [int(v) for v in f.readline().split()[1:9]]
        user, nice, system, _, _, _, _, steal = ticks
        return dict(at=time.monotonic(), kernel=kernel_threads_s(),
                    busy=(user + nice + system + steal) / os.sysconf("SC_CLK_TCK"),
                    ours=group_cpu_s(MARK) + group_cpu_s(HARNESS))

    def foreign(self):
        a, b = self.before, self.read()
        kernel = sum(s - a["kernel"].get(thread, 0.0) for thread, s in b["kernel"].items())
        return foreign_share(b["busy"] - a["busy"], b["ours"] - a["ours"], kernel,
                             b["at"] - a["at"], os.cpu_count())


def foreign_share(busy_s, ours_s, kernel_s, wall_s, cpus):
    return max(0.0, busy_s - ours_s - kernel_s) / (wall_s * cpus)


class Bed:
    def __init__(self, build):
        self.env = dict(os.environ, IOCOM_BUILD=build)
        self.work = os.path.join(build, "tests/tools/work")
        if os.geteuid() != 0:
            raise Broken("needs root (network namespaces, eBPF)")
        for path, what in (("/sys/kernel/btf/vmlinux", "the kernel has no BTF"),
                           ("/dev/fuse", "no /dev/fuse for the emulated disks")):
            if not os.path.exists(path):
                raise Broken(what)
        # A machine has one testbed of each name, so two of its users take turns.
        self.lock = open(f"/run/lock/{MARK}-user.lock", "w", encoding="ascii")
        deadline = time.monotonic() + 900
        while True:
            try:
                fcntl.flock(self.lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise Broken(f"another test holds the testbed {MARK}") from None
                time.sleep(0.5)
        self.nodes, self.disk = [], None
        self.group = os.path.join(unified(), HARNESS)
        with open("/proc/self/cgroup", encoding="utf-8") as f:
            self.origin = unified() + next(l[3:].strip() for l in f if l.startswith("0::"))

    def begin(self):
        """Enters the benchmark's control group; close() leaves it."""
        os.makedirs(self.group, exist_ok=True)
        self.enter(self.group)

    @staticmethod
    def enter(group):
        with open(os.path.join(group, "cgroup.procs"), "w", encoding="ascii") as f:
            f.write(str(os.getpid()))

    def testbed(self, *argv):
        process = subprocess.Popen([TESTBED, *argv], env=self.env, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                   start_new_session=True)
        try:
            output, _ = process.communicate()
        except BaseException:
            # `up` that is told to end removes what it has made.
            process.terminate()
            process.communicate()
            raise
        if process.returncode:
            raise Broken(f"testbed {' '.join(argv)}: {output.strip()[-1500:]}")
        return output

    def up(self, disks, cores, memory_mb, disk_size_mb):
        """A cluster with one node for each of DISKS."""
        self.testbed("down")
        self.testbed("up", "--nodes", str(len(disks)), "--disk", ",".join(map(str, disks)),
                     "--cpu", str(cores), "--mem", str(memory_mb), "--disk-size", str(disk_size_mb))
        status = json.loads(self.testbed("status", "--json"))
        self.nodes, self.disk = status["nodes"], status["disk_dir"]

    def down(self):
        self.nodes = []
        self.testbed("down")

    def close(self):
        """Takes everything down, also after a failure."""
        try:
            self.down()
        finally:
            self.enter(self.origin)
            end = time.monotonic() + 10
            while os.path.isdir(self.group) and time.monotonic() < end:
                try:
                    os.rmdir(self.group)
                except OSError:
                    time.sleep(0.05)  # a child of ours that just ends
            self.lock.close()

    def node(self, name):
        return next(n for n in self.nodes if n["name"] == name)

    def argv(self, node, *command):
        return [TESTBED, "exec", node, "--", *command]

    def on(self, node, *command, **options):
        return subprocess.run(self.argv(node, *command), env=self.env, cwd="/", text=True,
                              stdin=subprocess.DEVNULL, capture_output=True,
                              start_new_session=True, **options)

    def each(self, function):
        """FUNCTION of every node's name, all at once; {name: result}."""
        names = [n["name"] for n in self.nodes]
        with concurrent.futures.ThreadPoolExecutor(len(names)) as pool:
            return dict(zip(names, pool.map(function, names)))

    def accepted(self, policies):
        """Those of POLICIES that the agents take."""
        first = self.nodes[0]["name"]
        return [p for p in policies
                if self.on(first, "iocom", "place", f"--policy={p}", "--", "true").returncode == 0]

    # --- disks and inputs --------------------------------------------------------

    def speed_file(self, name):
        return os.path.join(os.path.dirname(self.node(name)["run_dir"]), "disk/speed")

    def set_speed(self, name, mb_per_s):
        with open(self.speed_file(name), "w", encoding="ascii") as f:
            f.write(f"{mb_per_s}\n")

    def served_s(self, name):
        """How long the disk has served requests so far."""
        with open(self.speed_file(name) + ".served", encoding="ascii") as f:
            return int(f.read()) / 1e9

    def load_inputs(self, directory):
        """Replicates DIRECTORY to every disk, at full speed."""
        def load(name):
            self.set_speed(name, 0)
            done = self.on(name, "sh", "-c",
                           'cp -a "$1" "$2/inputs" && sync -f "$2" &&'
                           ' find "$2/inputs" -type f -exec "$3" cold {} + &&'
                           ' "$3" make "$2/probe" 24 && "$3" cold "$2/probe"',
                           "load", directory, self.disk, self.work)
            self.set_speed(name, self.node(name)["disk_mb_per_s"])
            return done
        for name, done in self.each(load).items():
            if done.returncode:
                raise Broken(f"{name}: its inputs cannot be copied: {done.stderr.strip()[-300:]}")

    def disk_mb_per_s(self, name):
        """Reads NAME's disk for about a second."""
        count = max(4, round(self.node(name)["disk_mb_per_s"] * 1e6 / (128 * 1024)))
        done = self.on(name, "env", "LC_ALL=C", "dd", f"if={self.disk}/probe", "of=/dev/null",
                       "bs=128k", f"count={count}", "iflag=direct")
        found = re.search(r"(\d+) bytes .* copied, ([0-9.e-]+) s", done.stderr)
        return int(found[1]) / 1e6 / float(found[2]) if found else 0.0

    def wrong_disks(self, tolerance):
        """The sentences about disks that are not as fast as they are set.  All are read at once; one
        that seems wrong is read again alone, since the readings disturb each other."""
        def wrong(name, mb_per_s):
            return abs(mb_per_s / self.node(name)["disk_mb_per_s"] - 1) > tolerance
        out = []
        for name, mb_per_s in self.each(self.disk_mb_per_s).items():
            if wrong(name, mb_per_s) and wrong(name, again := self.disk_mb_per_s(name)):
                out.append(f"{name}'s disk reads {again:.2f} MB/s instead of "
                           f"{self.node(name)['disk_mb_per_s']}")
        return out

    # --- equal beginnings ----------------------------------------------------------

    def quiet(self, seconds, only=None):
        """Waits until no node, or not ONLY, has a job or a busy disk; False if that takes too long."""
        end = time.monotonic() + seconds
        # To ask is a load, so it is not the first nodes that are asked, where most jobs come from.
        observer = self.nodes[-1]["name"]
        while True:
            done = self.on(observer, "iocom", "nodes", "--json")
            try:
                nodes = [n for n in json.loads(done.stdout)["nodes"]
                         if n["alive"] and only in (None, n["name"])]
            except (ValueError, KeyError):
                nodes = []
            if len(nodes) == (1 if only else len(self.nodes)) and \
                    all(n["jobs"] == 0 and n["disk_utilisation"] < 0.03 and n["run_queue"] < 0.5
                        for n in nodes):
                return True
            if time.monotonic() > end:
                return False
            time.sleep(0.5)

    def state(self, name, file):
        return os.path.join(os.path.dirname(self.node(name)["run_dir"]), "state", file)

    def database(self, name):
        return sqlite3.connect(self.state(name, "profile.db"), timeout=30, isolation_level=None)

    def profiles(self, name):
        """What NAME's agent learned of classes of jobs: {table: rows}, without the errors of its
        predictions."""
        db = self.database(name)
        try:
            return {t: [list(r) for r in db.execute(f"SELECT * FROM {t}")]
                    for t in ("profile", "behaviour", "run")}
        finally:
            db.close()

    def set_profiles(self, name, rows):
        """Puts ROWS, as profiles() returned them, in place of all that NAME's agent learned; the
        agent reads them from its database at each decision."""
        db = self.database(name)
        try:
            db.execute("BEGIN IMMEDIATE")
            for table, values in dict({"run": []}, **rows, pin=[], error=[], doubt=[]).items():
                db.execute(f"DELETE FROM {table}")
                if values:
                    marks = ",".join("?" * len(values[0]))
                    db.executemany(f"INSERT INTO {table} VALUES({marks})", values)
            db.execute("COMMIT")
        finally:
            db.close()

    def keep_journals(self, directory, since_ns):
        """Copies every agent's journal to DIRECTORY/NODE.db, with the jobs since SINCE_NS."""
        os.makedirs(directory, exist_ok=True)
        self.wait_for_ends()
        for node in self.nodes:
            copy_journal(self.state(node["name"], "iocom.db"),
                         os.path.join(directory, node["name"] + ".db"), since_ns)

    def wait_for_ends(self):
        """A client knows the end of its job before the job's home does."""
        end = time.monotonic() + JOURNAL_S
        for node in self.nodes:
            while unended(self.state(node["name"], "iocom.db")) and time.monotonic() < end:
                time.sleep(0.1)


def read_journal(path):
    """A journal that its agent may be writing."""
    return contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=30))


def unended(path):
    """How many of the jobs that were submitted there run still, as far as the journal knows."""
    with read_journal(path) as db:
        return db.execute("SELECT count(*) FROM home WHERE state IN ('starting','running')") \
            .fetchone()[0]


def copy_journal(source, target, since_ns):
    """Copies a journal without the jobs submitted before SINCE_NS."""
    if os.path.exists(target):
        os.unlink(target)
    with read_journal(source) as db, \
            contextlib.closing(sqlite3.connect(target, isolation_level=None)) as copy:
        db.backup(copy)
        copy.execute("PRAGMA journal_mode=DELETE")
        for table in ("home", "target"):
            copy.execute(f"DELETE FROM {table} WHERE submit_ns<?", (since_ns,))
        copy.execute("VACUUM")


class Job:
    """A job under way: `iocom run` in a session of its own, so that Ctrl-C reaches us only."""

    def __init__(self, bed, home, options, command):
        self.began = time.monotonic()
        self.process = subprocess.Popen(
            bed.argv(home, "iocom", "run", "--stdin", "none", "--json", *options, "--", *command), env=bed.env,
            cwd="/", stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            text=True, errors="replace", start_new_session=True)

    def finish(self, limit_s):
        """Waits; returns what is known: s, status, output, node, expected, errors."""
        try:
            output, errors = self.process.communicate(timeout=limit_s)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            output, errors = self.process.communicate()
            errors += f"\nthe job took more than {limit_s} s"
        return dict(events(errors), s=time.monotonic() - self.began,
                    status=self.process.returncode, output=output.strip())


def events(text):
    """What the lines of `iocom run --json` say; other lines are the job's standard error."""
    out, errors = dict(node=None, expected=None), []
    for line in text.splitlines():
        try:
            event = json.loads(line)
        except ValueError:
            event = None
        if not isinstance(event, dict) or "state" not in event:
            errors.append(line)
        elif event["state"] == "placed":
            out["node"] = event["node"]
            out["expected"] = event.get("placement", {}).get("expected")
        elif event["state"] in ("failed", "lost"):
            errors.append(event.get("text", event["state"]))
    return dict(out, errors="\n".join(errors)[-500:])
