#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""How long it takes to start 16 ranks on 4 nodes, until all have left MPI_Init and ended.

usage: start.py --build DIR [--pairs N] [--ranks N] [--short]

The same program, which only adds up the ranks' numbers, by `iocom run --mpi` and by mpirun over ssh
(each node has an sshd with keys made for this run), interleaved; medians, and their ratio.  For Open
MPI, and for MPICH by Hydra.  Nodes are emulated: they share this machine's processors and files, so
that what all ranks do in MPI_Init, the same either way, is a large part.  A second row starts `true` as
16 tasks instead: that is the launchers' own part.
"""
import argparse
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.append(os.path.join(HERE, "..", "..", "effect"))
os.environ.setdefault("IOCOM_TESTBED_MARK", "iocom-start")
import bed as effect_bed  # noqa: E402

NODES = 4
GOAL = 3.0
LIMIT_S = 60


class Failed(Exception):
    """A start that did not work; the sentence says how."""


class Bed(effect_bed.Bed):
    def up(self):
        self.testbed("down")
        self.testbed("up", "--nodes", str(NODES), "--disk", "20", "--mem", "2000")


def need(program):
    path = shutil.which(program) or (f"/usr/sbin/{program}" if os.path.exists(f"/usr/sbin/{program}") else None)
    if not path:
        sys.exit(f"start.py: {program} is not installed (make deps WITH=peers)")
    return path


def keys(folder):
    """Files of an sshd that lets root in by one key, and the words of ssh for it."""
    for name in ("host", "user"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", f"{folder}/{name}"], check=True)
    shutil.copy(f"{folder}/user.pub", f"{folder}/authorized")
    with open(f"{folder}/sshd_config", "w") as out:
        out.write(f"Port 22\nHostKey {folder}/host\nAuthorizedKeysFile {folder}/authorized\nPidFile none\n"
                  "StrictModes no\nPermitRootLogin yes\nUsePAM no\nMaxStartups 100\n")
    return ["ssh", "-F", "none", "-i", f"{folder}/user", "-o", "BatchMode=yes", "-o", "StrictHostKeyChecking=no",
            "-o", "UserKnownHostsFile=/dev/null", "-o", "LogLevel=ERROR"]


def timed(bed, argv, ranks):
    began = time.monotonic()
    done = subprocess.run(bed.argv("n1", *argv), env=bed.env, cwd="/", stdin=subprocess.DEVNULL, text=True,
                          capture_output=True, timeout=LIMIT_S, start_new_session=True)
    took = time.monotonic() - began
    told = sum(line.endswith(f" of {ranks} sum {ranks * (ranks - 1) // 2}") for line in done.stdout.splitlines())
    if done.returncode or (told != ranks and argv[-1] != "true"):
        raise Failed(f"{' '.join(argv[:2])} ended with {done.returncode}, and {told} of {ranks} ranks told: "
                     f"{(done.stdout + done.stderr).strip()[-400:]}")
    return took


def wrapper(folder, ssh):
    path = f"{folder}/ssh"
    with open(path, "w") as out:
        out.write("#!/bin/sh\nexec " + " ".join(ssh) + ' "$@"\n')
    os.chmod(path, 0o755)
    return path


def ways(mpi, program, ranks, iocom, ssh):
    each = -(-ranks // NODES)
    hosts = ",".join(f"10.77.0.{k + 1}:{each}" for k in range(NODES))
    kind = {"openmpi": "--mpi=pmix", "mpich": "--mpi=pmi1"}[mpi]
    ours = [iocom, "run", kind, "-n", str(ranks), "--per-node", str(each), "--oversubscribe", "--", program]
    if mpi == "openmpi":
        return ours, [need("mpirun.openmpi"), "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "--mca",
                      "plm_rsh_agent", ssh, "--mca", "oob_tcp_if_include", "10.77.0.0/24", "--mca",
                      "btl_tcp_if_include", "10.77.0.0/24", "--host", hosts, "-n", str(ranks), program]
    return ours, [need("mpirun.mpich"), "-launcher", "ssh", "-launcher-exec", ssh, "-iface", "eth0", "-hosts", hosts,
                  "-n", str(ranks), program]


def compare(bed, row, commands, ranks, pairs):
    """Prints the medians of both COMMANDS."""
    took = ([], [])
    for command in commands:  # both are warm
        timed(bed, command, ranks)
    for pair in range(pairs):
        for way in ((0, 1), (1, 0))[pair % 2]:
            took[way].append(timed(bed, commands[way], ranks))
    a, b = (statistics.median(t) for t in took)
    print(f"{row:10}{a * 1e3:9.0f} ms{b * 1e3:9.0f} ms{b / a:8.1f}   {'met' if b / a >= GOAL else 'missed'}",
          flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", required=True)
    parser.add_argument("--pairs", type=int, default=15)
    parser.add_argument("--ranks", type=int, default=16)
    parser.add_argument("--short", action="store_true", help="five pairs")
    options = parser.parse_args()
    pairs = 5 if options.short else options.pairs
    build = os.path.abspath(options.build)
    folder = tempfile.mkdtemp(prefix="iocom-start-", dir="/var/tmp")
    os.chmod(folder, 0o755)
    bed, daemons = Bed(build), []
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(130))
    try:
        ssh = wrapper(folder, keys(folder))
        bed.up()
        os.makedirs("/run/sshd", mode=0o755, exist_ok=True)
        for k in range(NODES):
            daemons.append(subprocess.Popen(
                bed.argv(f"n{k + 1}", need("sshd"), "-D", "-e", "-f", f"{folder}/sshd_config"), env=bed.env,
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                start_new_session=True))
        time.sleep(1)
        print(f"{options.ranks} ranks on {NODES} nodes, medians of {pairs} interleaved pairs")
        print(f"{'MPI':10}{'iocom run':>12}{'mpirun/ssh':>12}{'ratio':>8}   goal {GOAL:g}")
        for mpi in ("openmpi", "mpich"):
            if not shutil.which(f"mpicc.{mpi}"):
                print(f"{mpi:10}not installed")
                continue
            program = f"{folder}/ends.{mpi}"
            subprocess.run([f"mpicc.{mpi}", "-o", program, "tests/cluster/ends.c"], check=True)
            for row, what in ((mpi, program), ("  true", "true")):
                compare(bed, row, ways(mpi, what, options.ranks, f"{build}/iocom", ssh), options.ranks, pairs)
    except (Failed, subprocess.TimeoutExpired) as why:
        print(f"start.py: {why}", file=sys.stderr)
        return 1
    finally:
        for daemon in daemons:
            try:
                os.killpg(daemon.pid, signal.SIGTERM)
            except ProcessLookupError:
                pass
        bed.testbed("down")
        shutil.rmtree(folder, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
