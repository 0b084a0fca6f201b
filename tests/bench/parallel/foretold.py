# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""What the simulator expects of the recorded mix: each repetition's jobs are written as a recording
(iocom-recording(5)) and replayed under the same policies.

What the simulator cannot know of these jobs: their slaves send to the master only, so that a task's
messages are R_COM of MODEL 5.10 at this link's speed; caps on processors are a slower processor; and
no time to start a job."""
import json
import os
import subprocess

import mixplan

REFERENCE_MIPS = 1000.0


def submit(job, number, nodes, row):
    kind = mixplan.KINDS[job["kind"]]
    sent = row["sent"]
    cpu_ms = kind.cpu_s * 1e3
    requests = kind.disk_mb * 1e3 / mixplan.BLOCK_KB
    # The mean of the tasks' bytes, in the busier direction.
    kb = sum(mixplan.task_com_ms(sent, 1.0)) / len(sent) if kind.parallel else 0.0
    messages = kind.phases * kind.messages
    return dict(record="submit", time_ms=job["at"] * 1e3, job=f"j{number}", home=nodes.index(job["home"]),
                tasks=kind.tasks, cpu_ms=cpu_ms, io_per_ms=requests / cpu_ms, request_kb=mixplan.BLOCK_KB,
                request_sd_kb=0.0, reaccess=1.0, requests=requests, implicit_share=0.0, memory_mb=10.0,
                faults_per_ms=0.0, initial_mb=0.0, write_fraction=0.0,
                barrier_ms=cpu_ms / kind.phases if kind.parallel else 0.0,
                messages_per_ms=messages / cpu_ms if kind.parallel else 0.0,
                message_kb=kb / messages if kind.parallel else 0.0) | {"class": kind.name}


def recording(jobs, nodes, mbit, rows, seed):
    """The lines of a recording that offers JOBS to NODES."""
    lines = [dict(record="header", version=1, live=False, program="bench-parallel", cluster=f"{len(nodes)} nodes",
                  source="mix", hash="", node="", start_ns=0, policy="nlb", seed=seed, period_ms=0.0,
                  notice_ms=0.0, rates="computation", reference_mips=REFERENCE_MIPS,
                  network_mb_per_s=mbit / 8, params={},
                  units=dict(time="ms", rate="1/ms", memory="MB", request="KB", bandwidth="MB/s"))]
    for n, name in enumerate(nodes):
        lines.append(dict(record="node", time_ms=0.0, node=n, name=name, ram_mb=600.0, buffer_mb=0.0,
                          cpu_mips=mixplan.CORES * REFERENCE_MIPS, burst_mips=0.0, cores=1.0, disk_fixed_ms=0.0,
                          disk_mb_per_s=float(mixplan.DISK_MB_PER_S), disk_parallel=0.0,
                          request_kb=float(mixplan.BLOCK_KB), request_sd_kb=0.0, network_mb_per_s=mbit / 8))
    happened = [submit(job, number, nodes, rows[job["kind"]]) for number, job in enumerate(jobs)]
    for number, job in enumerate(jobs):
        node = nodes.index(job["nodes"][0]) if job["nodes"] and job["nodes"][0] in nodes else 0
        happened.append(dict(record="finish", time_ms=(job["at"] + job["s"]) * 1e3, job=f"j{number}", node=node,
                             start_ms=job["at"] * 1e3, moves=0, exit=0, alone_ms=0.0, slowdown=0.0))
    lines += sorted(happened, key=lambda line: line["time_ms"])
    last = lines[-1]["time_ms"]
    lines.append(dict(record="end", time_ms=last, lines=len(lines) + 1, dropped=0))
    return "".join(json.dumps(line) + "\n" for line in lines)


def replay(build, path, policies):
    """{policy: {turnaround_s, slowdown: beside alone at home}}, or why there is none, as a sentence."""
    done = subprocess.run([f"{build}/iocom-sim", "replay", path, "--policy", ",".join(policies), "--json",
                           "--set", "local_messages_free=1", "--set", "port_contention=1"],
                          capture_output=True, text=True)
    if done.returncode:
        return done.stderr.strip()[-300:]
    return read(json.loads(done.stdout), policies)


def read(said, policies):
    """The means of a replay's document."""
    return {r["policy"]: dict(turnaround_s=r["measures"]["turnaround_s"]["mean"],
                              slowdown=r["measures"]["slowdown"]["mean"])
            for r in said.get("results", []) if r["policy"] in policies}


def add(build, scratch, options, mbit, rows, passes):
    """Adds to each pass what the simulator foretells for it; keeps the recordings in options.out."""
    for repetition in sorted({p["repetition"] for p in passes}):
        mine = [p for p in passes if p["repetition"] == repetition]
        nodes = sorted({j["home"] for p in mine for j in p["jobs"]} | {f"n{k}" for k in range(1, 7)})
        path = os.path.join(options.out, f"mix-{mbit}-{repetition}.jsonl")
        with open(path, "w", encoding="utf-8") as f:
            f.write(recording(mine[0]["jobs"], nodes, mbit, rows, options.seed))
        told = replay(build, path, [p["policy"] for p in mine if p["policy"] != "bound"])
        for p in mine:
            p["foretold"] = told.get(p["policy"]) if isinstance(told, dict) else told
