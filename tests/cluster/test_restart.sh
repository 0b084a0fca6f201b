#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# An agent is killed under load and started again: its counters begin anew, it says how long
# nothing was counted, and no document has a negative number.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1
. tests/lib/tap.sh
BUILD=${IOCOM_BUILD:-$PWD/build}
[ "$(id -u)" -eq 0 ] || tap_skip_all "needs root (eBPF)"
[ -e /sys/kernel/btf/vmlinux ] || tap_skip_all "the kernel has no BTF"
SCRATCH=$(mktemp -d /var/tmp/iocom-restart-XXXXXX)
AGENT='' LOAD=''
# shellcheck disable=SC2317 # the trap calls it
finish() {
	: >"$SCRATCH/stop"
	[ -z "$AGENT" ] || kill -9 "$AGENT" 2>/dev/null
	[ -z "$LOAD" ] || wait "$LOAD"
	wait
	rm -rf "$SCRATCH"
}
trap finish EXIT
trap 'exit 130' INT TERM

agent_start() {
	"$BUILD/iocomd" --run-dir "$SCRATCH/run" --state-dir "$SCRATCH/state" --period 0.5 \
		--shim "$BUILD/iocom-shim" --munge-socket /nowhere >"$SCRATCH/log" 2>&1 </dev/null &
	AGENT=$!
	until_true 20 "$BUILD/iocom" nodes --run-dir "$SCRATCH/run" && return
	tap_fail "the agent starts" "$(tail -n 5 "$SCRATCH/log")"
	tap_done
	exit 1
}
agent_end() { # SIGNAL
	kill "-$1" "$AGENT"
	wait "$AGENT" 2>/dev/null
	AGENT=''
}
top_json() { # COUNT
	timeout 60 "$BUILD/iocom" top --json -n "$1" -d 0.5 --run-dir "$SCRATCH/run"
}
# Reads documents: LAST is the last one; NEGATIVE lists every number below 0 except residuals.
negative() {
	jq -c 'paths(numbers) as $p | select(getpath($p) < 0 and ($p | last) != "residual_bytes") | $p' "$1"
}
load_bytes() { # FILE: what the load read, as the last document says
	tail -n 1 "$1" | jq "[.tasks[] | select(.pid == $LOAD) | .explicit_read_bytes] | add // 0"
}

"$BUILD/tests/tools/work" make "$SCRATCH/file" 16 || exit 1
WORK_STOP=$SCRATCH/stop "$BUILD/tests/tools/work" io "$SCRATCH/file" 50 64 1 &
LOAD=$!

agent_start
top_json 6 >"$SCRATCH/first"
tap_is "the first agent knows of no gap" "$(tail -n 1 "$SCRATCH/first" | jq .gap_ns)" 0
first=$(load_bytes "$SCRATCH/first")
tap_calc "it counts the load" "$first > 0"
agent_end KILL
killed=$(awk '{ print $1 }' /proc/uptime)
sleep 2
agent_start
started=$(awk '{ print $1 }' /proc/uptime)
tap_like "the next one says so in its log" "$(cat "$SCRATCH/log")" 'nothing was counted for [0-9.]+ s'
top_json 4 >"$SCRATCH/second"
gap=$(tail -n 1 "$SCRATCH/second" | jq '.gap_ns / 1e9')
# The gap goes from the last reading, at most a period and a half before the kill, to the first
# event.
echo "# |killed, started again: gap stated $gap s, without an agent $(awk -v a="$killed" -v b="$started" 'BEGIN { print b - a }') s"
tap_calc "the gap is at least the time without an agent's life" "$gap >= 2"
tap_calc "and no longer than what passed" "$gap <= $started - $killed + 10"
second=$(load_bytes "$SCRATCH/second")
span=$(tail -n 1 "$SCRATCH/second" | jq '(.time_ns - .since_ns) / 1e9')
uptime=$(awk '{ print $1 }' /proc/uptime)
tap_calc "counting began after the kill" "$span > 0 && $span < $uptime - $killed"
tap_calc "the load is counted again" "$second > 0"
truth=$(awk '/^read_bytes/ { print $2 }' "/proc/$LOAD/io")
tap_calc "from 0: both agents together less than all it read" "$first + $second < $truth"
tap_is "no number is negative before" "$(negative "$SCRATCH/first")" ""
tap_is "nor after" "$(negative "$SCRATCH/second")" ""

agent_end TERM
agent_start
top_json 2 >"$SCRATCH/third"
gap=$(tail -n 1 "$SCRATCH/third" | jq '.gap_ns / 1e9')
tap_calc "a stopped agent's gap is stated, too" "$gap > 0 && $gap < 60"
agent_end TERM
tap_done
