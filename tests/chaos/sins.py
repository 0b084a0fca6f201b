# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Does on purpose what a careless shim or agent might do: the judge must notice it.

Each of ALL is a context manager that yields the kind of complaint it must raise.
"""
import contextlib
import os
import subprocess

import judge
from bed import SPOOLS_MB, words_of
from events import wait_for


def first(bed):
    return next(iter(bed.nodes.values()))


def run_again(bed, facts, marks):
    """Runs the program of an ended job once more, without an order."""
    with bed.spawn(next(iter(bed.nodes)), [bed.tool("chaosjob"), marks, str(facts.id), "1", "0"],
                   stdout=subprocess.DEVNULL) as process:
        process.wait()


@contextlib.contextmanager
def orphan(bed, marks):
    node = first(bed)
    with open(f"{marks}.other", "w", encoding="utf-8"):
        pass
    p = subprocess.Popen(node.enter(f"{node.group}/exec", [
        bed.tool("chaosjob"), f"{marks}.other", "0", "1", "60000"]), stdout=subprocess.DEVNULL)
    q = subprocess.Popen(node.enter(f"{node.group}/exec", [
        bed.tool("chaosjob"), marks, "0", "1", "60000"]), stdout=subprocess.DEVNULL)
    try:
        wait_for(lambda: "chaosjob" in "".join(words_of(q.pid)[:1]), 5)
        yield "orphans"
    finally:
        for process in (p, q):
            process.kill()
            process.wait()
        os.unlink(f"{marks}.other")


@contextlib.contextmanager
def network(bed, _):
    """A network part that outlives its agent."""
    node = first(bed)
    p = subprocess.Popen(node.enter(f"{node.group}/exec", [
        "bash", "-c", "exec -a iocom-net sleep 600"]))
    try:
        wait_for(lambda: words_of(p.pid)[:1] == ["iocom-net"], 5)
        yield "orphans"
    finally:
        p.kill()
        p.wait()


@contextlib.contextmanager
def group(bed, _):
    path = f"{bed.roots[0]}/{first(bed).group}/jobs/n1-00000000-1"
    os.makedirs(path)
    try:
        yield "cgroups"
    finally:
        os.rmdir(path)


@contextlib.contextmanager
def mount(bed, _):
    node = first(bed)
    node.inside("mount", "-t", "tmpfs", "iocom-chaos", f"{node.dir}/munge")
    try:
        yield "mounts"
    finally:
        node.inside("umount", f"{node.dir}/munge")


@contextlib.contextmanager
def record(bed, _):
    node = first(bed)
    node.inside("mkdir", f"{node.dir}/state/jobs/n1-00000000-1")
    try:
        yield "files"
    finally:
        node.inside("rm", "-rf", f"{node.dir}/state/jobs/n1-00000000-1")


@contextlib.contextmanager
def spare_record(bed, _):
    """What a spare shim that is gone made in advance: no process has the largest number."""
    node = first(bed)
    node.inside("mkdir", f"{node.dir}/state/jobs/.spare-4194304")
    try:
        yield "files"
    finally:
        node.inside("rm", "-rf", f"{node.dir}/state/jobs/.spare-4194304")


@contextlib.contextmanager
def spool(bed, _):
    """Makes more output than a node keeps, as a sparse file."""
    node, record_of = first(bed), f"{first(bed).dir}/state/jobs/n1-00000000-2"
    node.inside("mkdir", record_of)
    try:
        node.inside("truncate", "-s", f"{SPOOLS_MB + 1}M", f"{record_of}/out")
        yield "spools"
    finally:
        node.inside("rm", "-rf", record_of)


@contextlib.contextmanager
def open_row(bed, _):
    """Makes a job that the target's journal shows as running for ever."""
    judge.sql(first(bed), "INSERT INTO target(job, state) VALUES('sin-1', 'running')")
    try:
        yield "rows"
    finally:
        judge.sql(first(bed), "DELETE FROM target WHERE job='sin-1'")


ALL = {"a process that goes on": orphan, "a network part that goes on": network,
       "a cgroup": group, "a mount": mount, "a record": record,
       "a record in advance": spare_record, "too much output": spool, "a row": open_row}
