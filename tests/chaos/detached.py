# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Detached jobs: one client starts them, others read and are killed, the next ones continue."""
import os
import re
import subprocess
import tempfile
import threading
import time

import judge
from jobs import Job, want

AGAIN_S = 8    # how long to try to attach again while agents may be down
FINAL_S = 1    # the same at the end, when no agent is down
LATER_S = 0.3  # between two tries, and longer each time
FORGOTTEN = "its output is not kept"
NOT_KEPT = re.compile("bytes ([0-9]+) to ([0-9]+) of the job's output were not kept")
END_S = 10     # for clients that attach or wait after the end


def gaps(text):
    """Returns the gaps that attach reported: [(first byte not kept, next kept byte), ...]."""
    return [(int(a), int(b)) for a, b in NOT_KEPT.findall(text)]


def reach(start, length, missing):
    """Returns where a reader that began at START and got LENGTH bytes is, and what it missed."""
    passed = []
    for first, after in sorted(missing):
        if first < start or first - start > length:
            break
        length -= first - start
        start = after
        passed.append((first, after))
    return start + length, passed


def kept(whole, missing):
    """Returns WHOLE without the MISSING bytes."""
    out, at = b"", 0
    for first, after in sorted(missing):
        out += whole[at:first]
        at = after
    return out + whole[at:]


class DetachedJob(Job):
    """`iocom run --detach`, then `iocom attach` until one has the job's own status.

    Its first client is never killed, but clients that attach are.
    """

    def __init__(self, bed, job, marks):
        super().__init__(bed, job, marks)
        self.out = bytearray()
        self.at = 0        # offset of the next byte of the job's output
        self.missing = []  # missing bytes, as in `gaps`
        self.cuts = list(job["cuts"])  # byte counts at which the reader is killed
        self.started = False
        self.waiter = None

    def _run(self):
        said = []
        status = self._client(["--detach"], lambda stdout: said.append(stdout.read().decode()))
        if status:
            return status
        self.started = True
        if said[0].strip() != self.name():
            self.bad.append(f"--detach printed {said[0]!r}")
        if self.job["wait"]:
            self.waiter = self._spawn(["wait", self.name()], stdout=subprocess.DEVNULL,
                                      stderr=subprocess.DEVNULL)
        time.sleep(self.job["later"])
        return self._follow(AGAIN_S)

    def _spawn(self, words, **options):
        return self.bed.spawn(self.job["home"], [self.bed.tool("iocom"), *words],
                              stdin=subprocess.DEVNULL, **options)

    def running(self):
        return self.started and super().running()

    def kill_client(self):
        if not self.running():
            return False
        self.process.kill()
        return True

    def _follow(self, seconds):
        """Runs one client after another; returns the exit status of the last one."""
        limit, pause = time.monotonic() + seconds, LATER_S
        while True:
            before = len(self.out)
            status = self._attach(["--from", str(self.at)] if self.at else [], self.out)
            self.at, passed = reach(self.at, len(self.out) - before, gaps(self.err))
            self.missing += passed
            self.output = judge.compare(bytes(self.out), kept(want(self.job), self.missing))
            if status == self.job["id"] % 8 and self.missing:
                self._all_told()
                return judge.UNKNOWN  # it ended so, but no client has all of its output
            if status == self.job["id"] % 8 and FORGOTTEN in self.err and self._may_be_pruned():
                return judge.UNKNOWN  # likewise: the rest was pruned before a client had it
            # A client that we killed said nothing, so another one must.
            if status == self.job["id"] % 8 or time.monotonic() >= limit and status != -9:
                # The client that attaches did not start, but the job did.
                return judge.UNKNOWN if status == judge.FAILED else status
            if status != -9:
                time.sleep(pause)
                pause *= 1.5

    def _all_told(self):
        whole = len(want(self.job))
        if self.at != whole or self.output.got != self.output.of:
            self.bad.append(f"of {whole} bytes {self.output.got} came, and {self.missing} are said "
                            "not to be kept")

    def _attach(self, options, out):
        with tempfile.TemporaryFile() as err:
            self.process = self._spawn(["attach", *options, self.name()], stdout=subprocess.PIPE,
                                       stderr=err)
            end = threading.Timer(END_S, self._too_long) if self.status is not None else None
            if end:
                end.start()
            with self.process.stdout as pipe:
                while data := os.read(pipe.fileno(), 65536):
                    out += data
                    if out is self.out and self.cuts and len(out) >= self.cuts[0]:
                        del self.cuts[0]
                        self.process.kill()
            status = self.process.wait()
            if end:
                end.cancel()
            err.seek(0)
            self.err = err.read().decode(errors="replace").strip()
        return status

    def _too_long(self):
        self.bad.append("`iocom attach` does not end")
        self.process.kill()

    def finish(self):
        if not self.started:
            return
        if self.status == judge.UNKNOWN and not self.missing:
            self.status = self._follow(FINAL_S)
        if self.status == self.job["id"] % 8:
            self._again(int(self.job["tail"] * len(self.out)))
        if self.waiter:
            self._waited(self.waiter, (judge.FAILED,))  # its agent was killed
        self._waited(self._spawn(["wait", self.name()], stdout=subprocess.DEVNULL,
                                 stderr=subprocess.DEVNULL), ())

    def _again(self, at):
        """Checks that other clients get the kept output, too, from any byte on."""
        tail = bytearray()
        status = self._attach(["--from", str(at)], tail)
        if FORGOTTEN in self.err and status == self.status and self._may_be_pruned():
            return
        if status != self.status or tail != kept(want(self.job), [(0, at), *gaps(self.err)]):
            self.bad.append(f"attach --from {at} gave {len(tail)} bytes of "
                            f"{len(self.out) - at}, or others, and status {status}: {self.err}")

    def _may_be_pruned(self):
        row = self.bed.nodes[self.job["home"]].jobs().get(self.name())
        return row and judge.may_have_pruned(judge.spools(self.bed.nodes[row["node"]]))

    def _waited(self, waiter, may):
        try:
            status = waiter.wait(END_S)
        except subprocess.TimeoutExpired:
            waiter.kill()
            waiter.wait()
            self.bad.append("`iocom wait` does not end")
            return
        if status not in may:
            self.waited.append(status)
