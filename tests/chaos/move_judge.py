# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Judges jobs that moved, from what they wrote, what their home says and what is left of them.

  move_judge.py left JOB SCOPE DIR...   lists what is left of JOB: one line each
  move_judge.py judge DIR...            judges the job of each directory, a line each
  move_judge.py table DIR...            likewise, and prints a table of all of them

A directory has facts.json (see Facts), trace (which the job writes itself, see movejob.c), out
(what its clients got), input (what it was given), explain.json (`iocom explain --json`) and left
(what `left` listed).
"""
import collections
import glob
import json
import os
import sys

STATUS = 7  # of movejob
HASH_BEGIN, HASH_PRIME, WORD = 0xcbf29ce484222325, 0x100000001b3, (1 << 64) - 1
# Killing these kills what runs the job, or what is about to, or damages it (criu works inside its
# processes): then it may be lost, with a reason.
MORTAL = ("shim", "init", "target-shim", "mover")
KINDS = ("lost", "doubled", "second copy", "left behind", "other")

# job: its name. lines: how many it writes. faults: what was killed meanwhile. client, waited: the
# exit statuses of its client and of `iocom wait`, or None. hung: somebody waited in vain.
Facts = collections.namedtuple("Facts", "job lines faults client waited hung start")
Case = collections.namedtuple("Case", "facts trace out given explained left")
Sin = collections.namedtuple("Sin", "kind text")
Verdict = collections.namedtuple("Verdict", "verdict reason sins lines")


def hash_bytes(value, data):
    for byte in data:
        value = (value ^ byte) * HASH_PRIME & WORD
    return value


def read_bytes(path):
    try:
        with open(path, "rb") as file:
            return file.read()
    except FileNotFoundError:
        return b""


def read_case(directory):
    def at(name):
        return os.path.join(directory, name)
    facts = Facts(**json.loads(read_bytes(at("facts.json"))))
    explained = json.loads(read_bytes(at("explain.json")) or b"{}")
    return Case(facts, read_bytes(at("trace")), read_bytes(at("out")), read_bytes(at("input")),
                explained, read_bytes(at("left")).decode().splitlines())


# --- lines --------------------------------------------------------------------------------------

def split(data):
    """Returns (whole lines, the beginning of one that is not whole)."""
    *whole, rest = data.decode(errors="replace").split("\n")
    return whole, rest


def numbers(lines):
    """Counts the lines by their first word; the job's own complaints are none."""
    return collections.Counter(line.split(" ")[0] for line in lines if not line.startswith("!"))


class Seen:
    """Hashes of the beginnings of what a job was given."""
    def __init__(self, given):
        self.hashes = [HASH_BEGIN]
        for byte in given:
            self.hashes.append(hash_bytes(self.hashes[-1], bytes([byte])))

    def is_beginning(self, count, value):
        return count < len(self.hashes) and self.hashes[count] == value


def wrong_words(lines, given):
    """Returns a complaint about the first line that does not follow from those before it."""
    seen, value = Seen(given), HASH_BEGIN
    for at, line in enumerate(line for line in lines if not line.startswith("!")):
        try:
            number, said, count, sight = line.split(" ")
            said, count, sight = int(said, 16), int(count), int(sight, 16)
            if number != "end":
                words = (int(number), count, sight)
                value = hash_bytes(value, b"".join(w.to_bytes(8, "little") for w in words))
        except ValueError:
            return f"line {at} is none: {line[:80]!r}"
        if said != value:
            return f"line {at} does not follow from those before it: {line!r}"
        if not seen.is_beginning(count, sight):
            return f"line {at}: its input is not a beginning of what it was given: {line!r}"
    return ""


def compare(case, ended):
    """Yields the sins of output and trace; ENDED: the job came to its end."""
    out, rest = split(case.out)
    trace, trace_rest = split(case.trace)
    got, wrote = numbers(out), numbers(trace)
    twice_out = {n for n in got if got[n] > 1}
    twice = {n for n in wrote if wrote[n] > 1}
    for n in sorted(twice_out & twice):
        yield Sin("second copy", f"two copies wrote line {n}")
    for n in sorted(twice - twice_out):
        yield Sin("second copy", f"line {n} ran twice, and was shown once")
    for n in sorted(twice_out - twice):
        yield Sin("doubled", f"line {n} was written once, and shown twice")
    want = [str(n) for n in range(case.facts.lines)] + ["end"]
    if not ended:
        want = want[:len(wrote)]
    for n in want:
        if n not in wrote:
            yield Sin("lost", f"line {n} is not in its own file")
        elif ended and n not in got:
            yield Sin("lost", f"line {n} was written, and not shown")
    for n in [str(n) for n in range(len(got))] if not ended else []:
        if n not in got and n in want and n != "end":
            yield Sin("lost", f"line {n} was not shown, though later ones were")
    for n in sorted((set(got) - set(wrote)) | (set(wrote) - set(want))):
        yield Sin("other", f"line {n!r} was never written")
    if ended and (rest or trace_rest):
        yield Sin("lost", f"a part of a line is missing behind {(rest or trace_rest)[:80]!r}")
    for line in trace:
        if line.startswith("!"):
            yield Sin("other", f"the job complains: {line}")
    for name, lines, counted in ("output", out, got), ("file", trace, wrote):
        # Otherwise a line is missing or doubled, which has been said.
        wrong = list(counted) == want[:len(counted)] and wrong_words(lines, case.given)
        if wrong and max(counted.values()) == 1:
            yield Sin("other", f"{name}: {wrong}")


# --- what its home says -------------------------------------------------------------------------

def moves_of(case):
    return case.explained.get("moves") or []


def check_moves(case):
    """Yields the sins of the moves: each is decided, and begins where the last one ended."""
    at = case.facts.start
    for n, move in enumerate(moves_of(case), 1):
        if move["number"] != n:
            yield Sin("other", f"move {n} has number {move['number']}")
        if move["state"] not in ("resumed", "aborted"):
            yield Sin("other", f"move {n} was never decided: it is {move['state']}")
        if move["state"] == "aborted" and not move.get("why"):
            yield Sin("other", f"move {n} was aborted without a reason")
        if move["from"] != at:
            yield Sin("other", f"move {n} began at {move['from']}, and the job was at {at}")
        at = move["to"] if move["state"] == "resumed" else at
    record = case.explained.get("record")
    if record and record["node"] != at:
        yield Sin("other", f"its home lists it at {record['node']}, and it was at {at}")


def check_end(case):
    """Returns (whether the job came to its end, the reason of its loss or "", [sin...])."""
    facts, record = case.facts, case.explained.get("record")
    if not record:
        return False, "", [Sin("other", "its home does not know it")]
    state, text = record["state"], record.get("text") or ""
    if state == "exited" and record["exit_value"] == STATUS:
        said = [(who, s) for who, s in (("its client", facts.client), ("iocom wait", facts.waited))
                if s not in (None, STATUS)]
        return True, "", [Sin("other", f"{who} said {s}, and its status is {STATUS}")
                          for who, s in said]
    if state in ("lost", "killed"):
        sins = []
        if not any(fault in MORTAL for fault in facts.faults):
            sins.append(Sin("other", f"it is {state} ({text}), and nobody killed what ran it"))
        if not text and not (state == "killed" and record["exit_value"]):
            sins.append(Sin("other", f"it is {state} without a reason"))
        return False, text or f"{state} by signal {record['exit_value']}", sins
    return False, "", [Sin("other", f"it is {state} {record.get('exit_value')} ({text})")]


def judge(case):
    """Returns the verdict: whole, lost (with the reason), or broken (with the sins)."""
    ended, reason, sins = check_end(case)
    sins += [*compare(case, ended or not reason), *check_moves(case)]
    if case.facts.hung:
        sins.append(Sin("other", "it did not end in time"))
    sins += [Sin("left behind", line) for line in case.left]
    lines = len(numbers(split(case.out)[0]))
    return Verdict("broken" if sins else "whole" if ended else "lost", reason, sins, lines)


# --- what is left -------------------------------------------------------------------------------

def left_processes(job, scope, directories):
    """Yields those that name a directory of the job, or are in a control group of it."""
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            words = read_bytes(f"/proc/{pid}/cmdline").decode(errors="replace").split("\0")
            groups = read_bytes(f"/proc/{pid}/cgroup").decode(errors="replace").splitlines()
        except OSError:
            continue
        mine = words[0].endswith("movejob") and any(d in words for d in directories)
        held = any(scope in group and any(part in (job, f"{job}.move")
                                          for part in group.split("/")) for group in groups)
        if mine or held:
            yield f"process {pid}: {' '.join(words)[:80]}"


def left(job, scope, directories):
    """Lists what is left of JOB in the control groups SCOPE and in DIRECTORIES: the first one is
    its own, the others are the agents' run directories."""
    found = list(left_processes(job, scope, directories))
    for root, names, _ in os.walk("/sys/fs/cgroup"):
        found += [f"control group {root}/{name}" for name in names
                  if scope in root and name in (job, f"{job}.move")]
    for directory in directories:
        found += [f"file {path}" for path in
                  glob.glob(f"{glob.escape(directory)}/**/*.cr.*.ghost", recursive=True)]
    for directory in [*directories[1:], "/dev/shm"]:
        found += [f"file {path}" for path in
                  glob.glob(f"{glob.escape(directory)}/**/*{job}*", recursive=True)]
    for line in read_bytes("/proc/net/unix").decode(errors="replace").splitlines():
        if f"/{job}." in line and any(d in line for d in directories):
            found.append(f"socket {line.split()[-1]}")
    for line in read_bytes("/proc/self/mountinfo").decode(errors="replace").splitlines():
        if any(d in line for d in directories) or f"/{job}" in line:
            found.append(f"mount {line.split()[4]}")
    return sorted(set(found))


# --- the table ----------------------------------------------------------------------------------

def middle(values, share):
    values = sorted(values)
    return values[min(len(values) - 1, int(len(values) * share))] if values else 0


def table(cases, verdicts):
    """Yields the rows: (what, number)."""
    moves = [m for case in cases for m in moves_of(case)]
    resumed = [m for m in moves if m["state"] == "resumed"]
    sins = collections.Counter(s.kind for v in verdicts for s in v.sins)
    whole = collections.Counter(v.verdict for v in verdicts)
    yield "jobs", len(cases)
    yield "jobs whole", whole["whole"]
    yield "jobs lost by a fault", whole["lost"]
    yield "jobs broken", whole["broken"]
    yield "moves listed", len(moves)
    yield "moves resumed", len(resumed)
    why = collections.Counter(m.get("why", "") for m in moves if m["state"] == "aborted")
    for reason, count in why.most_common():
        yield f"  aborted: {reason[:58]}", count
    yield "lines", sum(v.lines for v in verdicts)
    for kind in KINDS:
        yield f"sins: {kind}", sins[kind]
    frozen = [m["frozen_ms"] for m in resumed]
    for name, share in ("median", 0.5), ("90 %", 0.9), ("longest", 1.0):
        yield f"frozen, ms: {name}", middle(frozen, share)
    yield "sent, MB", round(sum(m["bytes"] for m in resumed) / 1e6, 1)


def main():
    what, *words = sys.argv[1:] or ["help"]
    if what == "left":
        for line in left(words[0], words[1], words[2:]):
            print(line)
        return 0
    if what not in ("judge", "table"):
        print(__doc__)
        return 2
    cases = [read_case(d) for d in words]
    verdicts = [judge(case) for case in cases]
    for case, v in zip(cases, verdicts) if what == "judge" else ():
        print(f"{v.verdict}: job {case.facts.job}, {v.lines} lines, {len(moves_of(case))} moves"
              + (f", {v.reason}" if v.reason else ""))
        for sin in v.sins[:20]:
            print(f"  {sin.kind}: {sin.text}")
    for row in table(cases, verdicts) if what == "table" else ():
        print(f"{row[0]}\t{row[1]}")
    return 0 if all(v.verdict != "broken" for v in verdicts) else 1


if __name__ == "__main__":
    sys.exit(main())
