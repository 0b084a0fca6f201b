# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Jobs of a run of chaos: started, waited for, and what they should have written.

A kind of job is a class in kinds.py, named by "kind" in the plan: start(), running(),
kill_client(), wait(), name(), and after the end finish(), then facts for the judge.
"""
import json
import subprocess
import tempfile
import threading
import time

from judge import compare, rest

GRACE_S = 2


def lines(job_id, count):
    return b"".join(b"%010u:%010u\n" % (job_id, n) for n in range(count))


def want(job):
    """Every byte the job writes."""
    out = lines(job["id"], job["lines"])
    return out + lines(job["id"] + 1000000, job["echo"]) if job["echo"] else out


class Job:
    """What all kinds are: a thread that runs programs, one at a time, and keeps what they said."""
    most = 1            # how often it may run
    killed_by_us = False
    hung = False

    def __init__(self, bed, job, marks):
        self.bed, self.job, self.marks = bed, job, marks
        self.process = None
        self.status = self.err = None  # None: it is not over
        self.output = compare(b"", want(job))
        self.bad = []       # complaints that only it can have
        self.waited = []    # what `iocom wait` said
        self.report = []    # of --status-fd
        self.began = self.ended = 0.0
        self.thread = threading.Thread(target=self._thread, daemon=True)

    def start(self):
        self.thread.start()

    def _thread(self):
        time.sleep(self.job["at"])
        self.began = time.time()
        status = self._run()
        self.ended = time.time()
        self.status = status

    def _words(self, *options):
        """Of the job's client; its report follows."""
        job = self.job
        words = [self.bed.tool("iocom"), "run", *options, *job["how"], "--class", "chaos",
                 "--grace", str(GRACE_S), "--", self.bed.tool("chaosjob"), self.marks,
                 str(job["id"]), str(job["lines"]), str(job["ms"])]
        return words + [word for word in ("echo", "child", "alone") if job.get(word)]

    def _client(self, options, take, feed=subprocess.DEVNULL):
        """Runs a client; TAKE has its standard output as a file.  Its exit status."""
        with tempfile.TemporaryFile() as report, tempfile.TemporaryFile() as err:
            self.process = self.bed.spawn(
                self.job["home"], self._words("--status-fd", str(report.fileno()), *options),
                stdin=feed, stdout=subprocess.PIPE, stderr=err, pass_fds=[report.fileno()])
            with self.process.stdout:
                take(self.process.stdout)
            status = self.process.wait()
            err.seek(0)
            self.err = err.read().decode(errors="replace").strip()
            report.seek(0)
            self.report = [json.loads(line) for line in report.read().splitlines()
                           if line.endswith(b"}")]
        return status

    def running(self):
        return self.process is not None and self.status is None and self.process.poll() is None

    def kill_client(self):
        """kill -9 of the client.  False: it had ended."""
        if not self.running():
            return False
        self.killed_by_us = True
        self.process.kill()
        return True

    def wait(self, until):
        self.thread.join(max(0.0, until - time.monotonic()))
        if not self.thread.is_alive():
            return
        self.hung = True
        if self.process:
            self.process.kill()
        self.thread.join(5)

    def finish(self):
        """All is mended, and every client has ended."""

    def names(self):
        """The ids it had in the cluster: none when it was never placed."""
        return list(dict.fromkeys(line["job"] for line in self.report if line.get("job")))

    def name(self):
        return (self.names() or [""])[-1]


class PipedJob(Job):
    """`iocom run` with its output in our pipe."""

    def _run(self):
        def take(stdout):
            self.output = compare(stdout.read(), want(self.job))

        with tempfile.TemporaryFile() as feed:
            if self.job["echo"]:
                feed.write(lines(self.job["id"] + 1000000, self.job["echo"]))
                feed.seek(0)
            return self._client([], take, feed)

    def finish(self):
        """Its client was killed: another one takes what that one left, and must go on there."""
        if self.killed_by_us and self.name():
            done = self.bed.run(self.job["home"], ["attach", self.name()])
            self.bad += rest(done.stdout.encode(), self.output.got, want(self.job))
