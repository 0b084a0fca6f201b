# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Restartable jobs: run again when their node is lost, and never twice at a time."""
import collections

import judge
from jobs import Job, lines, want

# From MARKS.attempts: how often it began, how often beside another attempt, and the seconds
# between the last beat of an attempt and the beginning of the next.
Attempts = collections.namedtuple("Attempts", "began beside gaps")


def read_attempts(text):
    """Returns {job: Attempts} from the file that chaosjob's `alone` writes."""
    found, last, latest = {}, {}, {}
    for line in text.splitlines():
        job, pid, ns, what = line.split()
        entry = found.setdefault(int(job), Attempts([], [], []))
        if what == "beat":
            if latest.get(job) != pid:  # an earlier one still lives
                entry.beside.append(int(ns))
        else:
            if job in last:
                entry.gaps.append((int(ns) - last[job]) / 1e9)
            (entry.began if what == "begin" else entry.beside).append(int(ns))
            latest[job] = pid
        last[job] = int(ns)
    return found


def pieces(out, job):
    """Cuts OUT where an attempt began."""
    first = lines(job["id"], 1)
    cuts, at = [], out.find(first)
    while at >= 0:
        cuts.append(at)
        at = out.find(first, at + 1)
    return [out[a:b] for a, b in zip(cuts, cuts[1:] + [len(out)])] if cuts else [out]


class RestartableJob(Job):
    """`iocom run --restartable`: each attempt writes everything again."""

    def __init__(self, bed, job, marks):
        super().__init__(bed, job, marks)
        self.most = 1 + job["restarts"]

    def _run(self):
        return self._client(["--restartable", "--restarts", str(self.job["restarts"])],
                            lambda stdout: self._take(stdout.read()))

    def _take(self, out):
        parts = [judge.compare(part, want(self.job)) for part in pieces(out, self.job)]
        self.output = parts[-1]._replace(beginning=all(part.beginning for part in parts))
        self.shown = len(parts)

    def finish(self):
        if self.status == self.job["id"] % 8 and "may be cut" in (self.err or ""):
            self.status = judge.UNKNOWN  # home knows the status, no client has all of the output
