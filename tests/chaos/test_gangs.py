#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Tests what the chaos among parallel jobs accepts: a judge that accepts everything proves nothing."""
import collections
import sys

import gangs

RIGHT = "00000000deadbeef"
FAILED = "iocom run: rank 3 on n2 was killed by signal 9 (KILL)\n"


def row(**other):
    return dict(dict(kind="rank", ended=True, struck=True, status=137, out="", err=FAILED, left=[]), **other)


def well(**other):
    return row(status=0, out=f"molecular: ranks 6 phases 400 result {RIGHT}\n", err="", **other)


def cases():
    """Yields (what, row, way, how many complaints)."""
    yield "a killed rank, and one message", row(), "run", 0
    yield "two messages", row(err=FAILED + FAILED), "run", 1
    yield "a message that goes on in a second line", row(err=FAILED + "  what to do\n"), "run", 0
    yield "no message", row(err=""), "run", 1
    yield "words of the program's own, and one message", row(err="oops\n" + FAILED), "run", 0
    yield "mpirun says more", row(err="----\nsomething\n----\n"), "rsh", 0
    yield "mpirun says nothing", row(err=" \n"), "rsh", 1
    yield "it hangs", row(ended=False, status=-9), "run", 1
    yield "it hangs, and ranks are left", row(ended=False, status=-9, left=["rank 7"]), "run", 2
    yield "a rank is left", row(left=["rank 7"]), "run", 1
    yield "a shim is left of a job that ended well", well(kind="agent", left=["shim 7"]), "run", 1
    yield "a rank was killed, and all is well?", well(), "run", 1
    yield "a shim was killed, and all is well?", well(kind="shim"), "run", 1
    yield "the job had ended before", well(struck=False), "run", 0
    yield "an agent was killed, and the job went on", well(kind="agent"), "run", 0
    yield "a link was cut, and the job went on", well(kind="link"), "run", 0
    yield "but with another result", dict(well(kind="link"), out="result 1\n"), "run", 1
    yield "a link was cut, and the job failed", row(kind="link"), "run", 0


def main():
    number = failed = 0

    def check(what, holds, said=""):
        nonlocal number, failed
        number += 1
        failed += not holds
        print(f"{'ok' if holds else 'not ok'} {number} - {what}" + ("" if holds else f"\n# {said}"))

    for what, made, way, count in cases():
        wrong = gangs.judge(made, way, RIGHT)
        check(what, len(wrong) == count, wrong)
    events = gangs.plan(1, 50, ["n1", "n2", "n3"])
    check("each kind is killed ten times", set(collections.Counter(e["kind"] for e in events).values()) == {10},
          events)
    check("at each node", {e["node"] for e in events} == {"n1", "n2", "n3"}, events)
    check("a seed gives one plan", events == gangs.plan(1, 50, ["n1", "n2", "n3"]))
    check("another gives another", events != gangs.plan(2, 50, ["n1", "n2", "n3"]))
    print(f"1..{number}")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
