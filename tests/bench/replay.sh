#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# How long the replay of a batch log of 100,000 jobs takes with EASY backfill (goal: 10 s of one
# core), and how long wide Darshan jobs take.
#   bash tests/bench/replay.sh BUILD [JOBS]
set -euo pipefail
build=${1:?usage: replay.sh BUILD [JOBS]}
jobs=${2:-100000}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

# 512 processors, 92 % of them busy on average; a queue of hundreds of jobs comes and goes.
awk -v jobs="$jobs" 'BEGIN {
	srand(1)
	print "; MaxProcs: 512"
	for (i = 1; i <= jobs; i++) {
		procs = int(2 ^ int(8 * rand() * rand() + rand() * 2))
		run = int(30 * exp(6 * rand()))
		work += procs * run
		size[i] = procs; time[i] = run
	}
	gap = work / (512 * 0.92) / jobs
	for (i = 1; i <= jobs; i++) {
		t += -log(1 - rand()) * gap * (i % 2000 < 1000 ? 0.7 : 1.3)
		print i, int(t), 0, time[i], size[i], -1, -1, size[i], int(time[i] * (1 + 4 * rand())), -1, 1, i % 97, 1, 1, 1, -1, -1, -1
	}
}' >"$dir/log.swf"
awk 'BEGIN {
	srand(2)
	print "darshan_start_time,darshan_walltime,darshan_nprocs,darshan_app,darshan_tot_reads_posix,darshan_tot_writes_posix,darshan_tot_bytes_read_posix,darshan_tot_bytes_written_posix"
	for (i = 0; i < 30; i++) {
		n = 2 ^ int(9 + 8 * rand()); r = n * int(10 + 300 * rand())
		printf "%d,%.1f,%d,/x/app%d,%d,%d,%d,%d\n", i * 600, 100 + 3900 * rand(), n, i % 4, r, r, r * 65536, r * 262144
	}
}' >"$dir/wide.csv"

# NAME GOAL ARG... prints the processor time of one replay.
measure() {
	local name=$1 goal=$2 seconds TIMEFORMAT=%U
	shift 2
	seconds=$({ time "$build/iocom-sim" replay "$@" --jobs 1 --json >"$dir/out.json"; } 2>&1)
	printf '%-46s %8.2f s  goal %3d s  %s\n' "$name" "$seconds" "$goal" \
		"$(awk -v s="$seconds" -v g="$goal" 'BEGIN { print s <= g ? "met" : "MISSED" }')"
	jq -r '.results[] | "    \(.series): \(.measures.completed.mean) jobs, \(.measures.events.mean // 0) events, cpu busy \(100 * .measures.cpu_utilisation.mean | round) %"' "$dir/out.json"
}
measure "$jobs batch jobs, EASY, and what was recorded" 10 "$dir/log.swf" --policy bs
measure "30 Darshan jobs of up to 65,536 ranks, nlb" 10 "$dir/wide.csv" --policy nlb
measure "the same under cpu-re, which spreads each job" 10 "$dir/wide.csv" --policy cpu-re
