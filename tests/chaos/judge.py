# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Judges how the jobs ended and what they left on the nodes.

verdict() judges one job from plain facts; leaks() compares two looks at a node; look()
takes one.  A complaint is a sentence; no complaint means that all promises were kept.
"""
import collections
import os

from bed import SPOOLS_MB

FAILED, UNKNOWN = 125, 255
TTL_S = 60  # life of a credential: clocks may differ by so much
ENDED = ("exited", "killed", "failed", "lost")

# status: the client's. output: compare()'s. code: the job's own exit status. reason: what the
# client said. marks: how often the job ran. row: home's listing, or None. bad: complaints that
# only its kind of job can have. waited: exit statuses of `iocom wait`. most: how often it may
# run. attempts: for a restartable job (restartable.py), or None.
Facts = collections.namedtuple(
    "Facts", "id name status output code reason marks row killed hung bad waited most attempts",
    defaults=((), (), 1, None))
Output = collections.namedtuple("Output", "beginning got of")


def compare(out, want):
    """Compares the output with every byte that it should have."""
    return Output(want.startswith(out), len(out), len(want))


def rest(out, got, want):
    """Complaints about OUT of a second client that attached: the first one had GOT bytes."""
    if want.find(out, 0, got + len(out)) < 0:
        return [f"attach gave {len(out)} bytes that do not go on from the {got} there were"]
    return []


def verdict(f):
    """Returns ("whole" | "refused" | "lost" | "client killed" | "broken", [complaint...])."""
    bad = [*f.bad, *waits(f), *attempts(f)]
    if f.marks > f.most:
        bad.append(f"ran {f.marks} times")
    if f.hung:
        bad.append("its client never ended")
    if not f.output.beginning:
        bad.append("the output is not a beginning of what it wrote")
    if f.killed:
        kind = "client killed"
    elif f.status == f.code and f.marks:
        kind = "whole"
        if f.output.got != f.output.of:
            bad.append(f"status {f.status}, but {f.output.got} of {f.output.of} bytes")
    elif f.status == FAILED:
        kind = "refused"
        if f.marks:
            bad.append("it ran, though its client said that it did not start")
    elif f.status == UNKNOWN:
        kind = "lost"
    else:
        kind = "broken"
        bad.append(f"status {f.status} (its own is {f.code}), ran {f.marks} times")
    if kind in ("refused", "lost") and not f.reason:
        bad.append(f"status {f.status} without a reason")
    return kind, [f"job {f.id} ({f.name or 'no id'}): {b}" for b in bad + listing(f, kind)]


def listing(f, kind):
    """Complaints about the job in `iocom jobs` of its home."""
    if not f.row:
        return ["its home does not list it"] if f.marks else []
    state, kind_of_exit, value = f.row["state"], f.row["exit_kind"], f.row["exit_value"]
    if state == "starting" and not f.marks:
        return []  # it was not placed: home calls it failed after two minutes
    if state not in ENDED:
        return [f"its home still lists it as {state}"]
    if kind == "whole" and (state, kind_of_exit, value) != ("exited", 0, f.code):
        return [f"whole, but its home lists it as {state} {value}"]
    if state in ("failed", "lost") and not f.row["text"]:
        return [f"its home lists it as {state} without a reason"]
    if kind == "refused" and state == "exited":
        return ["refused, but its home lists it as exited"]
    return []


def waits(f):
    """Complaints if `iocom wait` does not agree with its home's list."""
    if not f.row or f.row["state"] not in ENDED:
        return []
    expected = {0: f.row["exit_value"], 1: 128 + f.row["exit_value"], 2: f.row["exit_value"]}.get(
        f.row["exit_kind"], FAILED)
    if f.row["state"] == "lost":
        expected = UNKNOWN
    return [f"`iocom wait` said {status}, its home lists {expected}"
            for status in f.waited if status != expected]


def attempts(f):
    """Complaints about the attempts of a restartable job."""
    if not f.attempts:
        return []
    bad = [f"an attempt ran beside another one, {len(f.attempts.beside)} times"
           ] if f.attempts.beside else []
    return bad + [f"an attempt began {-gap:.3f} s before the last sign of the one before"
                  for gap in f.attempts.gaps if gap <= 0]


def settled(f):
    """Returns whether the listing is final for a job that is over."""
    return not listing(f, verdict(f)[0])


def deaths(facts, shims_killed, agents_died):
    """Complaints about supervisors and agents ({name: [last words]}) that we did not kill."""
    bad = [f"{name}: its agent was not ended by us; its last words: {words}"
           for name, died in agents_died.items() for words in died]
    lost = [f.name for f in facts if f.row and "supervisor was killed" in f.row["text"]]
    if len(lost) > shims_killed:
        bad.append(f"{len(lost)} supervisors were found dead, {shims_killed} were killed: "
                   f"{', '.join(lost[:10])}")
    return bad


# --- what is left on a node ---
Look = collections.namedtuple("Look", "orphans cgroups mounts files fds rows spools")


def is_spare(node, pid):
    """Returns whether PID is the spare shim of the node's own agent."""
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as f, open(f"/proc/{pid}/stat") as stat:
            parent = int(stat.read().rpartition(")")[2].split()[1])
            return f.read().startswith(b"iocom-spare\0") and parent == node.pid
    except OSError:
        return False


def orphans(bed, node, marks):
    """Returns the processes of jobs and their supervisors."""
    found = set()
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as f:
                words = f.read().split(b"\0")
            with open(f"/proc/{pid}/cgroup") as f:
                ours = f"/{node.group}/" in f.read()
        except OSError:
            continue
        if ours and (marks.encode() in words and words[0].endswith(b"chaosjob") or
                     words[0] == b"iocom-shim"):
            found.add(f"process {pid}: {b' '.join(words).decode(errors='replace')[:80]}")
    for pid in bed.pids_of(f"{node.group}/jobs") | bed.pids_of(f"{node.group}/shims"):
        if not is_spare(node, pid):
            found.add(f"process {pid} in {node.group}/jobs or shims")
    networks = node.networks()
    return found | {f"process {pid} of a network part, whose agent is not {node.name}'s"
                    for pid, parent in networks.items()
                    if parent != node.pid and networks.get(parent) != node.pid}


def cgroups(bed, node):
    found = set()
    for root in bed.roots:
        for at, names, _ in os.walk(f"{root}/{node.group}/jobs"):
            found.update(os.path.join(at, name) for name in names)
    return found


def mounts(node):
    """Returns all mounts of the node, and those of the machine that belong to the testbed."""
    points = collections.Counter()
    with open(f"/proc/{node.pid}/mountinfo") as f:
        points.update(line.split()[4] for line in f)
    with open("/proc/self/mountinfo") as f:
        points.update(p for p in (line.split()[4] for line in f) if p.startswith(node.bed.dir))
    return points


def seen_by(node, path):
    return f"/proc/{node.pid}/root{path}"


# Names of files that stay: SQLite's, locks, and the shims' note that no audit log is kept.
STAYING = ("-wal", "-shm", "-journal", ".lock", "/audit-off")
REPLAYS = 64  # lock files of shims that send kept output; they stay, locked or not


def is_place(path):
    at, name = os.path.split(path)
    return os.path.basename(at) == "replays" and name.isdigit() and int(name) < REPLAYS


def is_spare_record(node, path):
    """Returns whether PATH belongs to the record that the node's spare shim made in advance."""
    owners = [part[7:] for part in path.split("/") if part.startswith(".spare-")]
    return bool(owners) and owners[0].isdigit() and is_spare(node, int(owners[0]))


def files(node):
    found = set()
    for top in (f"{node.dir}/state", node.run_dir):
        for at, names, leaves in os.walk(seen_by(node, top)):
            leaves = [leaf for leaf in leaves if not is_place(os.path.join(at, leaf))]
            names = [name for name in names if name != "replays"]
            found.update(os.path.join(at, name).split("/root", 1)[1] for name in names + leaves)
    return {path for path in found if not is_spare_record(node, path)}


def spools(node):
    """Returns {job: bytes of its output kept on the disk}."""
    top, found = seen_by(node, f"{node.dir}/state/jobs"), {}
    for at, _, leaves in os.walk(top):
        for leaf in {"out", "err"} & set(leaves):
            try:
                size = os.stat(os.path.join(at, leaf)).st_size
            except OSError:
                continue  # removed just now
            found[os.path.basename(at)] = found.get(os.path.basename(at), 0) + size
    return found


def overfull(sizes, most):
    """Complaints about a node's kept outputs, which may be of MOST jobs."""
    total = sum(sizes.values())
    bad = [f"{total} bytes of output are kept, more than {SPOOLS_MB} MiB"
           ] if total > SPOOLS_MB << 20 else []
    return bad + ([f"output of {len(sizes)} jobs is kept, of more than {most}"
                   ] if len(sizes) > most else [])


def may_have_pruned(sizes):
    """Returns whether a node that keeps outputs of these SIZES may have had no room for more: what
    its running jobs may write is reserved, too, up to the rest."""
    return sum(sizes.values()) > SPOOLS_MB << 18


def fds(node):
    kinds = collections.Counter()
    for fd in os.listdir(f"/proc/{node.pid}/fd"):
        try:
            target = os.readlink(f"/proc/{node.pid}/fd/{fd}")
        except OSError:
            continue
        kinds[target.split(":")[0] if ":[" in target or target.startswith("anon") else target] += 1
    return kinds


# Run it in the node's mount namespace: through /proc/PID/root SQLite would open our own files.
SQL = """import sqlite3, sys
db = sqlite3.connect(sys.argv[1], timeout=5)
for statement in sys.argv[2:]:
    for row in db.execute(statement):
        print(row[0])
db.commit()"""
COUNTS = {
    "home": "home", "target": "target", "mark": "mark", "nonce": "nonce", "fact": "fact",
    "due": "target WHERE report_due",
    "open": "target WHERE state IN ('starting', 'running')",
}


def sql(node, *statements):
    """Returns the first columns of all rows that STATEMENTS give on the node's journal."""
    return node.inside("python3", "-c", SQL, f"{node.dir}/state/iocom.db",
                       *statements).splitlines()


def rows(node):
    """Returns the rows of the journal; "due" are reports that home has not acknowledged."""
    found = sql(node, *(f"SELECT count(*) FROM {what}" for what in COUNTS.values()))
    return {name: int(n) for name, n in zip(COUNTS, found)}


def look(bed, node, marks):
    return Look(orphans(bed, node, marks), cgroups(bed, node), mounts(node), files(node),
                fds(node), rows(node), spools(node))


def leaks(name, before, after, most, kept=frozenset()):
    """Returns {kind: [complaint...]} of one node.  MOST: rows that a table of its journal may
    have; KEPT: jobs whose records stay for clients (keep_jobs and keep_days bound them)."""
    found = {
        "orphans": sorted(after.orphans),
        "cgroups": sorted(after.cgroups),
        "mounts": [f"mounted {n} times more: {point}"
                   for point, n in (after.mounts - before.mounts).items()],
        "files": sorted(f for f in after.files - before.files
                        if not f.endswith(STAYING)
                        and not set(f.split("/")) & kept),
        "rows": [],
        "spools": overfull(after.spools, most),
    }
    for table in ("home", "target"):
        if after.rows[table] > most:
            found["rows"].append(f"{after.rows[table]} rows of {table}, more than {most}")
    if after.rows["mark"] > 4096 or after.rows["fact"] > 64:
        found["rows"].append(f"{after.rows['mark']} marks, {after.rows['fact']} facts")
    if after.rows["due"]:
        found["rows"].append(f"{after.rows['due']} reports that home has not acknowledged")
    if after.rows["open"]:
        found["rows"].append(f"{after.rows['open']} jobs that the journal believes to run")
    return {kind: [f"{name}: {c}" for c in list_] for kind, list_ in found.items()}


def fd_leaks(name, worn, fresh, slack=3):
    """Compares an agent that served all this with one that was started just now."""
    if sum(worn.values()) <= sum(fresh.values()) + slack:
        return []
    return [f"{name}: the agent has {sum(worn.values())} descriptors, a new one "
            f"{sum(fresh.values())}: {dict(worn - fresh)}"]
