# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""A node whose clock is wrong for a while.

libfaketime fakes CLOCK_REALTIME of the node's munged (which dates and judges all credentials)
and of its agent (log, journal, age of kept output) as if it had been set before they started,
and the times of files that they read.  It does not fake CLOCK_BOOTTIME and _MONOTONIC, which
no administrator sets either, nor the kernel's clock: supervisors, jobs, clients and files on
the disk have the right time.  No clock jumps under a running agent.
"""
import re
import subprocess
import time

import judge

CALM_S = 6        # time without an event after which a node knows the others
NEAR_S = 30       # reported seconds may differ by this because messages wait
LAST_S = 45
CLOCK = re.compile(r"([0-9]+) s (before|after|ahead|behind)")
UP, WHOLE, STATUS = "up\n", "whole\n", 7


def said(text):
    """Returns by how many seconds a clock differs according to a refusal, or None."""
    found = CLOCK.search(text)
    return int(found[1]) if found else None


def judge_start(status, text, ahead_s, calm):
    """Judges a start with a clock AHEAD_S ahead: (whether it is right, complaint).  CALM:
    there can be no other reason."""
    number, beyond = said(text), abs(ahead_s) > judge.TTL_S
    if status == 0:
        bad = f"a start was obeyed though clocks differ by {ahead_s} s" if beyond else ""
        return not beyond, bad
    if beyond and number is not None:
        near = abs(number - abs(ahead_s)) <= NEAR_S
        return near, "" if near else f"clocks differ by {ahead_s} s, said was: {text}"
    # The message about a wrong clock stays until the node is heard again.
    return False, f"clocks differ by {ahead_s} s, nothing else is wrong: {text}" if calm else ""


def probe(events, node, ahead_s):
    """Starts jobs on NODE from the others until one behaves as it must; returns whether one did.
    Raises."""
    began = time.monotonic()
    others = [n for n in events.bed.nodes.values() if n is not node]
    while time.monotonic() < began + LAST_S:
        for other in others:
            since = events.calm_since[other.name]
            calm = since is not None and time.monotonic() > max(since, began) + CALM_S
            done = events.bed.run(other.name, ["run", "--node", node.name, "--class", "probe", "--",
                                               "true"])
            calm = calm and since == events.calm_since[other.name]
            good, bad = judge_start(done.returncode, done.stderr.strip(), ahead_s, calm)
            if bad:
                raise RuntimeError(f"{other.name}: {bad}")
            if good:
                return True
        time.sleep(0.3)
    return False


class Running:
    """A job submitted at the node itself, which runs all the time."""

    def __init__(self, node):
        script = f"echo up; sleep 2; echo whole; exit {STATUS}"
        self.process = node.bed.spawn(
            node.name, [node.bed.tool("iocom"), "run", "--node", node.name, "--class", "probe",
                        "--", "sh", "-c", script], stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.up = self.process.stdout.readline()

    def end(self):
        rest = self.process.communicate(timeout=LAST_S)[0]
        if (self.up, rest, self.process.returncode) != (UP, WHOLE, STATUS):
            raise RuntimeError(f"a job that ran meanwhile: status {self.process.returncode}, "
                               f"{self.up + rest!r}")


def set_clock(node, ahead_s):
    node.end_agent()
    node.kill_munged()
    node.start_munged(ahead_s)
    return node.start_agent(ahead_s)


def skew(events, node, ahead_s):
    """Returns False if no other node could ask, so that nothing is proven."""
    running = Running(node)
    try:
        set_clock(node, ahead_s)
        shown = probe(events, node, ahead_s)
    finally:
        node.reattached.append(set_clock(node, 0))
        running.end()
    again = probe(events, node, 0)
    return dict(ahead=ahead_s) if shown and again else False
