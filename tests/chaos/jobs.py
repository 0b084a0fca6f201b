# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Jobs of a run of chaos: started, waited for, and what they should have written.

A kind of job is a class in KINDS, named by "kind" in the plan: start(), running(),
kill_client(), wait(), name(), and after the end attach(), status, err, output,
killed_by_us, hung, rest.
"""
import json
import os
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


class PipedJob:
    """`iocom run` with its output in our pipe, in a thread of its own."""

    def __init__(self, bed, job, marks):
        self.bed, self.job, self.marks = bed, job, marks
        self.process = None
        self.killed_by_us = False
        self.hung = False
        self.status = self.err = self.rest = None
        self.output = compare(b"", want(job))
        self.report = []  # of --status-fd
        self.began = self.ended = 0.0
        self.thread = threading.Thread(target=self._run, daemon=True)

    def start(self):
        self.thread.start()

    def _command(self, report):
        job = self.job
        words = [self.bed.tool("iocom"), "run", *job["how"], "--class", "chaos", "--grace",
                 str(GRACE_S), "--status-fd", str(report), "--", self.bed.tool("chaosjob"),
                 self.marks, str(job["id"]), str(job["lines"]), str(job["ms"])]
        words += ["echo"] if job["echo"] else []
        words += ["child"] if job["child"] else []
        return words

    def _run(self):
        time.sleep(self.job["at"])
        with tempfile.TemporaryFile() as feed, tempfile.TemporaryFile() as report, \
                tempfile.TemporaryFile() as err:
            if self.job["echo"]:
                feed.write(lines(self.job["id"] + 1000000, self.job["echo"]))
                feed.seek(0)
            self.began = time.time()
            self.process = self.bed.spawn(
                self.job["home"], self._command(report.fileno()), stdin=feed,
                stdout=subprocess.PIPE, stderr=err, pass_fds=[report.fileno()])
            self.output = compare(self.process.stdout.read(), want(self.job))
            self.process.stdout.close()
            status = self.process.wait()
            self.ended = time.time()
            err.seek(0)
            self.err = err.read().decode(errors="replace").strip()
            report.seek(0)
            self.report = [json.loads(line) for line in report.read().splitlines()
                           if line.endswith(b"}")]
            self.status = status

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
            os.kill(self.process.pid, 9)
        self.thread.join(5)

    def attach(self):
        """Another client takes what the first one left: it must go on where that ended."""
        done = self.bed.run(self.job["home"], ["attach", self.name()])
        self.rest = rest(done.stdout.encode(), self.output.got, want(self.job))

    def name(self):
        """The job's id of the cluster, "" when it was never placed."""
        return next((line["job"] for line in self.report if line.get("job")), "")


KINDS = {"piped": PipedJob}
