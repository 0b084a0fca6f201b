# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Jobs of a run of chaos: starts them, waits for them, and knows what they should write.

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
    """Returns every byte that the job writes."""
    out = lines(job["id"], job["lines"])
    return out + lines(job["id"] + 1000000, job["echo"]) if job["echo"] else out


class Job:
    """All kinds: a thread that runs programs one at a time and keeps their sentences."""
    most = 1            # how often it may run
    killed_by_us = False
    hung = False

    def __init__(self, bed, job, marks):
        self.bed, self.job, self.marks = bed, job, marks
        self.process = None
        self.status = self.err = None  # None: it is not over yet
        self.output = compare(b"", want(job))
        self.bad = []       # complaints of this kind of job only
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
        """Returns the command line of the job's client."""
        job = self.job
        words = [self.bed.tool("iocom"), "run", *options, *job["how"], "--class", "chaos",
                 "--grace", str(GRACE_S), "--", self.bed.tool("chaosjob"), self.marks,
                 str(job["id"]), str(job["lines"]), str(job["ms"])]
        return words + [word for word in ("echo", "child", "alone") if job.get(word)]

    def _client(self, options, take, feed=subprocess.DEVNULL):
        """Runs a client; TAKE gets its standard output as a file.  Returns its exit status."""
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
        """Kills the client with -9; returns False if it had ended."""
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
        """Called when everything is repaired and every client has ended."""

    def names(self):
        """Returns the ids that it had in the cluster; none if it was never placed."""
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
        """If its client was killed, another one takes the rest and must continue there."""
        if self.killed_by_us and self.name():
            done = self.bed.run(self.job["home"], ["attach", self.name()])
            self.bad += rest(done.stdout.encode(), self.output.got, want(self.job))
