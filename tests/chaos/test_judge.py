#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""The judge of chaos against facts made up for it: each promise, kept and broken."""
import sys

import judge
import plan

OUT = b"0123456789"
GOOD_ROW = dict(state="exited", exit_kind=0, exit_value=3, text="")


def facts(**changes):
    output = judge.compare(changes.pop("out", OUT), OUT)
    f = judge.Facts(3, "n1-1-1", 3, output, 3, "", 1, GOOD_ROW, False, False)
    return f._replace(**changes)


LOST = dict(status=255, out=OUT[:4], reason="contact lost", row=dict(GOOD_ROW, state="lost", text="killed"))
REFUSED = dict(status=125, out=b"", reason="no room", marks=0, row=None)
# what is changed, its kind, part of the complaint ("" none)
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
        status=-9, killed=True, rest=judge.rest(OUT[1:], 2, OUT),
        row=dict(GOOD_ROW, state="killed")), "client killed", ""),
    ("its client was killed, bytes are missing", dict(
        status=-9, killed=True, rest=judge.rest(OUT[3:], 2, OUT),
        row=dict(GOOD_ROW, state="killed")), "client killed", "do not go on"),
    ("its client was killed, other bytes came", dict(
        status=-9, killed=True, rest=judge.rest(b"else", 2, OUT),
        row=dict(GOOD_ROW, state="killed")), "client killed", "do not go on"),
    ("its client was killed, and it goes on", dict(
        status=-9, killed=True, row=dict(GOOD_ROW, state="running")), "client killed",
     "still lists it"),
]


def main():
    bad = 0
    for number, (name, changes, kind, part) in enumerate(CASES, 1):
        got, complaints = judge.verdict(facts(**dict(changes)))
        text = "; ".join(complaints)
        ok = got == kind and (part in text if part else not text)
        bad += not ok
        print(f"{'ok' if ok else 'not ok'} {number} - judge: {name}")
        if not ok:
            print(f"# got {got}: {text}")
    number = len(CASES) + 1
    nodes = ["n1", "n2", "n3"]
    same = plan.make(7, 30, nodes) == plan.make(7, 30, nodes)
    other = plan.make(7, 30, nodes) != plan.make(8, 30, nodes)
    bad += not (same and other)
    print(f"{'ok' if same and other else 'not ok'} {number} - a plan comes from its seed alone")
    worn, fresh = judge.collections.Counter(socket=30), judge.collections.Counter(socket=20)
    ok = bool(judge.fd_leaks("n1", worn, fresh)) and not judge.fd_leaks("n1", fresh, fresh)
    bad += not ok
    print(f"{'ok' if ok else 'not ok'} {number + 1} - descriptors that stay open are seen")
    killed = [facts(row=dict(GOOD_ROW, state="lost", text="the job's supervisor was killed; x"))]
    ok = (judge.deaths(killed, 0, {"n1": []}) and judge.deaths([], 1, {"n1": ["oh"]}) and
          not judge.deaths(killed, 1, {"n1": []}))
    bad += not ok
    print(f"{'ok' if ok else 'not ok'} {number + 2} - deaths that nobody caused are seen")
    print(f"1..{number + 2}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
