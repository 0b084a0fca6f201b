#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# A herd: 50 jobs at once from 5 nodes, each home deciding on vectors that are up to a period old. They
# spread as the rules intend and do not all run to the node that looked best: what a home has sent there
# counts at once, and the target judges again with its own fresh numbers. No node has more than its limit,
# and every job runs exactly once. Then the state of a job that a signal has stopped, seen from its home.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1
. tests/lib/tap.sh
. tests/lib/cluster.sh
JOBS_MAX=20 # of one user at a node, at a time
export AGENT_OPTIONS="--user-jobs-max $JOBS_MAX"
cluster_up --nodes 5 --disk 0 --mem 1000
command -v jq >/dev/null || tap_skip_all "no jq"
NEED=(--cpu-time 0.2 --io-rate 0 --requests 0 --mem 5M)
cp "$WORK" "$SCRATCH/work"
chmod 755 "$SCRATCH/work"
for n in 1 2 3 4 5; do tap_true "n$n hears of all five" until_true 15 sees "n$n" 5; done

as_user() { # NODE COMMAND...
	local node=$1
	shift
	"$TESTBED" exec "$node" --user nobody -- "$@"
}
# herd POLICY JOBS-OF-n1 ... JOBS-OF-n5: all at once; $SCRATCH/ran gets a line for each start and end.
herd() {
	local policy=$1 k i
	shift
	: >"$SCRATCH/ran" >"$SCRATCH/failed"
	chmod 666 "$SCRATCH/ran"
	cat >"$SCRATCH/job" <<J
echo "\$1 begins \$(hostname)" >>$SCRATCH/ran
$SCRATCH/work cpu 0.2
echo "\$1 ends \$(hostname)" >>$SCRATCH/ran
J
	for k in 1 2 3 4 5; do
		for i in $(seq "${!k}"); do
			as_user "n$k" iocom run --policy "$policy" "${NEED[@]}" -- sh "$SCRATCH/job" "n$k-$i" \
				</dev/null >/dev/null 2>>"$SCRATCH/failed" || echo "n$k-$i: $?" >>"$SCRATCH/failed" &
		done
	done
	wait
}
each() { awk '$2 == "begins" { n[$3]++ } END { for (i = 1; i <= 5; i++) printf "%d%s", n["n" i], i < 5 ? " " : "\n" }' "$SCRATCH/ran"; }
at_once() { awk '{ n[$3] += $2 == "begins" ? 1 : -1; if (n[$3] > most) most = n[$3] } END { print most }' "$SCRATCH/ran"; }
within() { awk -v low="$1" -v high="$2" '{ for (i = 1; i <= NF; i++) if ($i < low || $i > high) exit 1 }' <<<"$(each)"; }
calm() {
	on n1 iocom nodes --json | jq -e '[.nodes[] | .jobs == 0 and .run_queue < 0.3] | all' >/dev/null
}
judge() { # DESCRIPTION LEAST MOST: of jobs at a node
	tap_is "$1: all 50 jobs ended well" "$(cat "$SCRATCH/failed")" ""
	tap_is "$1: every job ran exactly once" \
		"$(grep -c ' begins ' "$SCRATCH/ran") $(awk '$2 == "begins" { print $1 }' "$SCRATCH/ran" | sort -u | wc -l) $(grep -c ' ends ' "$SCRATCH/ran")" "50 50 50"
	tap_true "$1: each node ran $2 to $3 of them ($(each))" within "$2" "$3"
	tap_true "$1: none had more than its limit at a time ($(at_once))" test "$(at_once)" -le $JOBS_MAX
}

herd least-delay 10 10 10 10 10
# A herd would be 20 and more at one node; how even it is depends on who gets the processors here.
judge "ten from each" 4 16
until_true 30 calm
herd least-delay 30 5 5 5 5
judge "thirty from one, five from each other" 0 18
until_true 30 calm
herd cpu-re 30 5 5 5 5
judge "the same by cpu-re, which moves what is above four tasks" 4 18

# --- a job that runs elsewhere is stopped and continued: its home knows ---
until_true 30 calm
job=$(on n1 iocom run --detach --node n2 -- sleep 300)
state_is() { [ "$(on n1 iocom jobs --json | jq -r --arg j "$job" '.jobs[] | select(.job == $j) | .state')" = "$1" ]; }
tap_true "a job of n1 runs at n2" until_true 10 state_is running
on n1 iocom kill -STOP "$job"
tap_true "it is stopped there: n1 shows it as stopped" until_true 10 state_is stopped
on n1 iocom kill -CONT "$job"
tap_true "it goes on: running" until_true 10 state_is running
on n1 iocom kill -KILL "$job"
tap_done
