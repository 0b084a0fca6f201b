# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Passes that are recorded and replayed: does the simulator, under the same policy, come to the times
that were measured, and do the rules decide the same again?"""
import json
import os
import shutil
import signal
import subprocess
import time

import choosers
import estimates

BEGIN_S = 20  # how long to wait for the first lines of a recording
END_S = 20


class Recorders:
    """`iocom record` on every node of BED, into DIRECTORY, from the making on until stop()."""

    def __init__(self, bed, directory):
        self.directory = directory
        shutil.rmtree(directory, ignore_errors=True)
        os.makedirs(directory)
        self.files = [os.path.join(directory, n["name"] + ".jsonl.gz") for n in bed.nodes]
        self.running = [subprocess.Popen(
            bed.argv(n["name"], "iocom", "record", "--out", f), env=bed.env, cwd="/",
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            start_new_session=True) for n, f in zip(bed.nodes, self.files)]
        end = time.monotonic() + BEGIN_S
        while not self.begun() and time.monotonic() < end:
            time.sleep(0.2)

    def begun(self):
        """True if every node's first lines are in its file, which has no name yet."""
        return sum(os.path.getsize(os.path.join(self.directory, f)) > 0
                   for f in os.listdir(self.directory)) == len(self.files)

    def stop(self):
        """Ends the recordings; returns their files, of which some may not be there."""
        for p in self.running:
            p.send_signal(signal.SIGINT)
        for p in self.running:
            try:
                p.wait(END_S)
            except subprocess.TimeoutExpired:
                os.killpg(p.pid, signal.SIGKILL)
                p.wait()
        return self.files


def check(build, files, merged):
    """Joins FILES, one a node, to MERGED and returns what `iocom replay --check` says of it; None:
    nothing, or a file is missing."""
    iocom = os.path.join(build, "iocom")
    if not all(map(os.path.exists, files)):
        return None
    try:
        subprocess.run([iocom, "record", "--merge", merged, "--force", *files],
                       capture_output=True, check=True)
        # Its exit status says whether the goals are met.
        done = subprocess.run([iocom, "replay", merged, "--check", "--json"], capture_output=True,
                              text=True)
        said = json.loads(done.stdout)
    except (OSError, ValueError, subprocess.CalledProcessError):
        return None
    return {k: said.get(k) for k in ("decisions", "placements_same_percent", "lines_lost", "complete",
                                     "void", "others", "jobs_ended", "times",
                                     "times_where_they_ran")}


def differences(passes, which):
    """Simulated against measured mean slowdown of each pass, in per cent."""
    return [d for d in (p["replayed"].get(which, {}).get("slowdown_difference_percent")
                        for p in passes) if d is not None]


def cell(values):
    """"median (least to most)"."""
    if not values:
        return "-"
    return f"{estimates.median(values):+.1f} ({min(values):+.1f} to {max(values):+.1f})"


HEAD = ["chooser", "passes", "void", "decisions the same, at least, %",
        "simulated / measured slowdown, %", "the same, each job where it ran, %"]


def usable(replay):
    """True if times can be compared: nothing was lost, and nobody else took too much."""
    return replay["complete"] and not replay["lines_lost"] and not replay["void"]


def rows(passes):
    """The table of the passes that were recorded: the simulator cannot choose as the simple
    choosers do, so of theirs only the times where the jobs ran are compared."""
    out = []
    recorded = [p for p in passes if p.get("replayed")]
    for name in sorted({p["chooser"] for p in recorded}):
        all_mine = [p for p in recorded if p["chooser"] == name]
        mine = [p for p in all_mine if usable(p["replayed"])]
        same = [p["replayed"]["placements_same_percent"] for p in mine
                if p["replayed"]["placements_same_percent"] is not None]
        own = differences(mine, "times") if choosers.policy(name) else []
        out.append([name, str(len(mine)), str(len(all_mine) - len(mine)), f"{min(same):.1f}" if same else "-", cell(own),
                    cell(differences(mine, "times_where_they_ran"))])
    return out
