# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Tests the judge of jobs that move with stand-ins: movejob runs here and commits one sin.

Moves, listings and exit statuses are made up beside it; each sin must be seen, and nothing else.
"""
import json
import os
import signal
import subprocess
import sys
import tempfile
import time

import move_judge

TOOL = os.path.join(os.environ.get("IOCOM_BUILD", "build"), "tests/tools/movejob")
LINES, US, AT = 60, 500, 20
GIVEN = b"".join(b"line %d\n" % n for n in range(500))


def a_move(number, state="resumed", why="", **changes):
    ends = ["n1", "n2"] if number % 2 else ["n2", "n1"]
    return dict(dict(zip(("from", "to"), ends), number=number, state=state, why=why, frozen_ms=40,
                     dump_ms=30, bytes=2500000), **changes)


MOVES = [a_move(1), a_move(2), a_move(3)]
ENDED = dict(state="exited", exit_kind=0, exit_value=7, node="n2", text="")
LOST = dict(ENDED, state="lost", exit_value=0, text="its supervisor was killed")


def run(directory, *words):
    """Runs a movejob to its end, as a job and its client, and returns its exit status."""
    with subprocess.Popen([TOOL, directory, str(LINES), str(US), *words], stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE) as process:
        try:
            for at in range(0, len(GIVEN), 1000):
                process.stdin.write(GIVEN[at:at + 1000])
                process.stdin.flush()
            process.stdin.close()
        except BrokenPipeError:
            pass
        out = process.stdout.read()
    with open(os.path.join(directory, "out"), "wb") as file:
        file.write(out)
    with open(os.path.join(directory, "input"), "wb") as file:
        file.write(GIVEN if "input" in words else b"")
    return process.returncode


def tried(*words, moves=tuple(MOVES), record=None, faults=(), cut=None, **changes):
    """Runs a movejob with WORDS, makes up the rest, and returns the verdict from its files."""
    with tempfile.TemporaryDirectory(prefix="iocom-judge-") as directory:
        status = run(directory, *words)
        facts = dict(job="n1-00000000-1", lines=LINES, faults=list(faults), client=status,
                     waited=status, hung=False, start="n1")
        explained = dict(record=record or dict(ENDED, exit_value=status), moves=list(moves))
        for name, what in ("facts.json", dict(facts, **changes)), ("explain.json", explained):
            with open(os.path.join(directory, name), "w", encoding="utf-8") as file:
                json.dump(what, file)
        for name in ("out", "trace") if cut is not None else ():
            path = os.path.join(directory, name)
            os.truncate(path, cut if cut > 0 else os.stat(path).st_size + cut)
        left = move_judge.left("n1-00000000-1", "iocom-judge-none", [directory])
        with open(os.path.join(directory, "left"), "w", encoding="utf-8") as file:
            file.writelines(f"{line}\n" for line in left)
        for line in left:
            os.kill(int(line.split()[1].rstrip(":")), signal.SIGKILL)
        return move_judge.judge(move_judge.read_case(directory))


def sin(name, **more):
    return lambda: tried("input", f"{name}={AT}", **more)


# what, how, the verdict, the only kind of sin, and part of its text
CASES = [
    ("an honest job", lambda: tried("input"), "whole", "", ""),
    ("an honest job without input", tried, "whole", "", ""),
    ("an honest job that never moved", lambda: tried(moves=[], record=dict(ENDED, node="n1")),
     "whole", "", ""),
    ("a line lost", sin("lost"), "broken", "lost", "line 20 was written, and not shown"),
    ("a line doubled", sin("doubled"), "broken", "doubled", "line 20 was written once"),
    ("two copies", sin("copy"), "broken", "second copy", "two copies wrote line 20"),
    ("a copy that went on early", sin("early"), "broken", "second copy", "line 20 ran twice"),
    ("a corrupted page", sin("memory"), "broken", "other", "! memory 20"),
    ("a file at another position", sin("file"), "broken", "other", "! file"),
    ("a child that counts otherwise", sin("child"), "broken", "other", "! child 20"),
    ("a byte of the input lost", lambda: tried("input", "input=0"), "broken", "other",
     "input is not a beginning"),
    ("its status lost", sin("status"), "broken", "other", "it is exited 0"),
    ("its client had another status", lambda: tried(client=255), "broken", "other", "said 255"),
    ("wait had another status", lambda: tried(waited=0), "broken", "other", "wait said 0"),
    ("a process left behind", sin("left"), "broken", "left behind", "process"),
    ("it never ends", lambda: tried(hung=True), "broken", "other", "did not end"),
    ("the last line is cut", lambda: tried(cut=-1), "broken", "lost", ""),
    ("lost with a fault", lambda: tried(record=LOST, faults=["shim"], cut=400), "lost", "", ""),
    ("killed with a fault, as its signal tells",
     lambda: tried(record=dict(LOST, state="killed", exit_kind=1, exit_value=9, text=""),
                   faults=["init"], cut=400), "lost", "", ""),
    ("lost without a fault", lambda: tried(record=LOST, cut=400), "broken", "other", "nobody"),
    ("lost, and only an agent was killed",
     lambda: tried(record=LOST, faults=["source-agent"], cut=400), "broken", "other", "nobody"),
    ("lost without a reason", lambda: tried(record=dict(LOST, text=""), faults=["shim"], cut=400),
     "broken", "other", "without a reason"),
    ("lost, and a line is missing before",
     lambda: tried("input", f"lost={AT}", record=LOST, faults=["shim"]), "broken", "lost",
     "though later ones were"),
    ("lost, and two copies ran",
     lambda: tried("input", f"early={AT}", record=LOST, faults=["shim"]), "broken",
     "second copy", "ran twice"),
    ("its home lists it as running", lambda: tried(record=dict(ENDED, state="running")),
     "broken", "other", "it is running"),
    ("its home does not know it", lambda: tried(record={"state": "unknown", "node": "n2"}),
     "broken", "other", "it is unknown"),
    ("a move that was aborted", lambda: tried(
        moves=[*MOVES, a_move(4, "aborted", "the mover died")]), "whole", "", ""),
    ("a move aborted without a reason", lambda: tried(moves=[*MOVES, a_move(4, "aborted")]),
     "broken", "other", "aborted without a reason"),
    ("a move that is never decided", lambda: tried(moves=[*MOVES, a_move(4, "asked")]),
     "broken", "other", "never decided"),
    ("a move from where it was not", lambda: tried(moves=[a_move(1), a_move(2), a_move(
        3, **{"from": "n2", "to": "n1"})]), "broken", "other", "the job was at n1"),
    ("two moves that both resumed it", lambda: tried(moves=[a_move(1), dict(a_move(1), number=2)],
                                                     record=dict(ENDED, node="n2")),
     "broken", "other", "the job was at n2"),
    ("it is listed where it is not", lambda: tried(record=dict(ENDED, node="n1")), "broken",
     "other", "lists it at n1"),
]


def left_files():
    """Yields (what, whether it holds) for files, control groups and sockets that are left."""
    job = "n1-00000000-2"
    with tempfile.TemporaryDirectory(prefix="iocom-judge-") as directory:
        own, run_dir = os.path.join(directory, "own"), os.path.join(directory, "run")
        os.makedirs(os.path.join(run_dir, "jobs"))
        os.makedirs(own)
        yield "nothing is left of nothing", not move_judge.left(job, directory, [own, run_dir])
        for name, path in (("a file of criu", os.path.join(own, "file.cr.1.ghost")),
                           ("a file of an agent", os.path.join(run_dir, "jobs", f"{job}.sock")),
                           ("images in memory", f"/dev/shm/iocom-{job}-{os.getpid()}")):
            with open(path, "w", encoding="utf-8"):
                pass
            found = move_judge.left(job, directory, [own, run_dir])
            os.unlink(path)
            yield f"{name} is seen", found == [f"file {path}"]


def more():
    case = move_judge.Case(None, b"", b"", b"", {"moves": [
        *MOVES, a_move(4, "aborted", "why"), a_move(5, frozen_ms=90)]}, [])
    verdict = move_judge.Verdict("whole", "", [move_judge.Sin("lost", "x")], 60)
    rows = dict(move_judge.table([case, case], [verdict, verdict]))
    yield "the table counts", (rows["moves resumed"], rows["  aborted: why"], rows["lines"],
                               rows["sins: lost"], rows["frozen, ms: median"],
                               rows["frozen, ms: longest"]) == (8, 2, 120, 2, 40, 90)
    yield from left_files()


def main():
    bad = number = 0
    began = time.monotonic()
    for name, how, kind, sort, part in CASES:
        got, number = how(), number + 1
        kinds = {s.kind for s in got.sins}
        ok = got.verdict == kind and kinds == ({sort} if sort else set()) and (
            not sort or any(part in s.text for s in got.sins))
        bad += not ok
        print(f"{'ok' if ok else 'not ok'} {number} - {name}: {kind}")
        if not ok:
            print(f"# got {got}"[:500])
    for name, ok in more():
        number += 1
        bad += not ok
        print(f"{'ok' if ok else 'not ok'} {number} - {name}")
    print(f"# {time.monotonic() - began:.1f} s\n1..{number}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
