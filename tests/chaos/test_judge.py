#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Tests the judge of chaos with made-up facts: each promise, kept and broken."""
import sys

import detached
import judge
import plan
import restartable
import skew

OUT = b"0123456789"
GOOD_ROW = dict(state="exited", exit_kind=0, exit_value=3, text="")


def facts(**changes):
    output = judge.compare(changes.pop("out", OUT), OUT)
    f = judge.Facts(3, "n1-1-1", 3, output, 3, "", 1, GOOD_ROW, False, False)
    return f._replace(**changes)


def tried(*words):
    """Returns the attempts of job 3 from "WHAT SECONDS [PID]"."""
    text = "".join("3 {2} {1}000000000 {0}\n".format(*word.split(), 99) for word in words)
    return restartable.read_attempts(text)[3]


UNKEPT = "iocom attach: bytes 3 to 7 of the job's output were not kept (4 bytes)"
LOST = dict(status=255, out=OUT[:4], reason="contact lost",
            row=dict(GOOD_ROW, state="lost", text="killed"))
REFUSED = dict(status=125, out=b"", reason="no room", marks=0, row=None)
# what is changed, its kind, part of the complaint ("": none)
CASES = [
    ("all well", {}, "whole", ""),
    ("it ran twice", dict(marks=2), "whole", "ran 2 times"),
    ("a byte is missing", dict(out=OUT[:-1]), "whole", "9 of 10 bytes"),
    ("a byte is wrong", dict(out=b"0123x56789"), "whole", "not a beginning"),
    ("bytes come twice", dict(out=OUT + OUT), "whole", "not a beginning"),
    ("success that never ran", dict(marks=0), "broken", "ran 0 times"),
    ("another status", dict(status=137), "broken", "status 137"),
    ("lost with a reason", LOST, "lost", ""),
    ("lost without a word", dict(LOST, reason=""), "lost", "without a reason"),
    ("lost, and never ended at home", dict(LOST, row=dict(GOOD_ROW, state="running")), "lost",
     "still lists it as running"),
    ("refused with a reason", REFUSED, "refused", ""),
    ("refused without a word", dict(REFUSED, reason=""), "refused", "without a reason"),
    ("refused, and it ran", dict(REFUSED, marks=1, row=GOOD_ROW), "refused", "did not start"),
    ("lost, and its home does not say why", dict(LOST, row=dict(GOOD_ROW, state="lost")), "lost",
     "as lost without a reason"),
    ("whole, listed as lost", dict(row=dict(GOOD_ROW, state="lost")), "whole", "as lost"),
    ("whole, not listed", dict(row=None), "whole", "does not list it"),
    ("its client hangs", dict(hung=True), "whole", "never ended"),
    ("its client was killed", dict(status=-9, killed=True, out=OUT[:2],
                                   row=dict(GOOD_ROW, state="killed")), "client killed", ""),
    ("its client was killed, another had the rest", dict(
        status=-9, killed=True, bad=judge.rest(OUT[1:], 2, OUT),
        row=dict(GOOD_ROW, state="killed")), "client killed", ""),
    ("its client was killed, bytes are missing", dict(
        status=-9, killed=True, bad=judge.rest(OUT[3:], 2, OUT),
        row=dict(GOOD_ROW, state="killed")), "client killed", "do not go on"),
    ("its client was killed, other bytes came", dict(
        status=-9, killed=True, bad=judge.rest(b"else", 2, OUT),
        row=dict(GOOD_ROW, state="killed")), "client killed", "do not go on"),
    ("its client was killed, and it goes on", dict(
        status=-9, killed=True, row=dict(GOOD_ROW, state="running")), "client killed",
     "still lists it"),
    ("a detached job, waited for", dict(waited=[3, 3]), "whole", ""),
    ("a detached job, waited for in vain", dict(waited=[3, 125]), "whole", "said 125"),
    ("waited for, by another status", dict(waited=[0]), "whole", "lists 3"),
    ("a lost job, waited for", dict(LOST, waited=[255]), "lost", ""),
    ("a lost job, and wait calls it well", dict(LOST, waited=[3]), "lost", "lists 255"),
    ("a killed job, waited for", dict(status=-9, killed=True, waited=[137], row=dict(
        GOOD_ROW, state="killed", exit_kind=1, exit_value=9)), "client killed", ""),
    ("another client had other bytes", dict(bad=["attach gave others"]), "whole", "others"),
    ("attempts one after another", dict(marks=3, most=4, attempts=tried(
        "begin 10", "beat 11", "begin 12", "beat 13", "begin 20")), "whole", ""),
    ("more attempts than asked for", dict(marks=5, most=4, attempts=tried("begin 10")), "whole",
     "ran 5 times"),
    ("two attempts at a time", dict(marks=2, most=4, attempts=tried("begin 10", "beside 11")),
     "whole", "beside another one"),
    ("an attempt that lives on", dict(marks=2, most=4, attempts=tried(
        "begin 10 1", "begin 12 2", "beat 13 1")), "whole", "beside another one"),
    ("an attempt before the end of another", dict(marks=2, most=4, attempts=tried(
        "begin 10", "beat 12", "begin 12")), "whole", "before the last sign"),
]
# The outcome of a start: status, text, difference of the clocks, whether nothing else is wrong;
# then the verdict and part of the complaint.
SKEWS = [
    ("within: obeyed", (0, "", 20, True), True, ""),
    ("within: refused for it", (125, "made 20 s before", 20, True), False, "nothing else is wrong"),
    ("within: refused for what was", (125, "made 301 s before", 0, False), False, ""),
    ("within: nobody is there", (125, "no agent answers", 20, False), False, ""),
    ("within: silent, though nothing was done", (125, "silent", 20, True), False, "silent"),
    ("beyond: refused with the number", (125, "made 301 s before this", -300, True), True, ""),
    ("beyond: another number", (125, "made 12 s before this", -300, True), False, "said was"),
    ("beyond: obeyed", (0, "", -300, False), False, "was obeyed"),
    ("beyond: refused, nobody knows why", (125, "silent", -300, True), False, "silent"),
    ("beyond: something else, too", (125, "silent", -300, False), False, ""),
]


def more():
    """Yields (what, whether it holds) for everything else."""
    for name, args, good, part in SKEWS:
        got, bad = skew.judge_start(*args)
        yield f"clocks, {name}", got == good and (part in bad if part else not bad)
    nodes = ["n1", "n2", "n3"]
    yield "a plan comes from its seed alone", \
        plan.make(7, 30, nodes) == plan.make(7, 30, nodes) != plan.make(8, 30, nodes)
    worn, fresh = judge.collections.Counter(socket=30), judge.collections.Counter(socket=20)
    yield "descriptors that stay open are seen", \
        judge.fd_leaks("n1", worn, fresh) and not judge.fd_leaks("n1", fresh, fresh)
    killed = [facts(row=dict(GOOD_ROW, state="lost", text="the job's supervisor was killed; x"))]
    yield "deaths that nobody caused are seen", \
        judge.deaths(killed, 0, {"n1": []}) and judge.deaths([], 1, {"n1": ["oh"]}) and \
        not judge.deaths(killed, 1, {"n1": []})
    missing = detached.gaps(f"{UNKEPT}\nand no more")
    yield "what is said not to be kept is read", \
        missing == [(3, 7)] and not detached.gaps("contact lost")
    yield "who reads goes on behind it, and before it when he did not come so far", \
        detached.reach(0, 5, missing) == (9, missing) and \
        detached.reach(1, 1, missing) == (2, []) and detached.reach(7, 3, missing) == (10, [])
    yield "other bytes than those are seen", \
        judge.compare(b"012789", detached.kept(b"0123456789", missing)).beginning and \
        not judge.compare(b"012678", detached.kept(b"0123456789", missing)).beginning
    yield "a place of a sender is no file left, others are", \
        judge.is_place("/run/replays/63") and not judge.is_place("/run/replays/64") and \
        not judge.is_place("/run/jobs/1") and not judge.is_place("/run/replays/x")
    yield "output beyond its bounds is seen", \
        judge.overfull({"a": 17 << 20}, 9) and judge.overfull({"a": 1, "b": 1}, 1) and \
        not judge.overfull({"a": 16 << 20}, 9)
    yield "outputs are missed only where a node had no room", \
        judge.may_have_pruned({"a": 3 << 20, "b": 2 << 20}) and \
        not judge.may_have_pruned({"a": 3 << 20})
    job = dict(id=3, lines=2, echo=0)
    whole = restartable.want(job)
    parts = restartable.pieces(whole[:30] + whole[:25] + whole, job)
    yield "output of attempts is cut where each began", parts == [whole[:30], whole[:25], whole]
    yield "and of one that wrote nothing", restartable.pieces(b"", job) == [b""]


def main():
    bad = number = 0
    for name, changes, kind, part in CASES:
        got, complaints = judge.verdict(facts(**dict(changes)))
        text, number = "; ".join(complaints), number + 1
        ok = got == kind and (part in text if part else not text)
        bad += not ok
        print(f"{'ok' if ok else 'not ok'} {number} - judge: {name}")
        if not ok:
            print(f"# got {got}: {text}")
    for name, ok in more():
        number += 1
        bad += not ok
        print(f"{'ok' if ok else 'not ok'} {number} - {name}")
    print(f"1..{number}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
