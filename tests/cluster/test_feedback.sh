#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# The feedback controller of a running agent: wal-fc is refused without it and decided by its weight
# with it, the weight is (4.9) of the slowdowns that `iocom jobs` shows, also after kill -9; what
# it says where no memory controller is; dry-run; and, with the memory controller that this machine has,
# that originals are back after a reload, a stop and kill -9. tests/vm has the same on pure cgroup v2.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1
. tests/lib/tap.sh
BUILD=${IOCOM_BUILD:-$PWD/build}
[ "$(id -u)" -eq 0 ] || tap_skip_all "needs root (eBPF)"
[ -e /sys/kernel/btf/vmlinux ] || tap_skip_all "the kernel has no BTF"
SCRATCH=$(mktemp -d /var/tmp/iocom-feedback-XXXXXX)
chmod 755 "$SCRATCH"
export IOCOM_RUN_DIR=$SCRATCH/run
PATH=$BUILD:$PATH
AGENT=''
# shellcheck disable=SC2317 # the trap calls it
finish() {
	: >"$SCRATCH/over"
	[ -z "$AGENT" ] || kill "$AGENT" 2>/dev/null
	wait
	rm -rf "$SCRATCH"
}
trap finish EXIT
trap 'exit 130' INT TERM

conf() { # MODE SETTING...
	{
		printf '[iocom]\nrun_dir = %s/run\nstate_dir = %s/state\nmunge_socket = /nowhere\nname = fb\n' "$SCRATCH" "$SCRATCH"
		printf 'feedback = %s\nfeedback_interval_s = 1\nfeedback_persist = 1\n' "$1"
		shift
		[ $# -eq 0 ] || printf '%s\n' "$@"
	} >"$SCRATCH/conf.new"
	chmod 600 "$SCRATCH/conf.new" && mv "$SCRATCH/conf.new" "$SCRATCH/conf"
}
answers() { iocom feedback >/dev/null 2>&1; }
begin() { # COMMAND...: before iocomd
	"$@" "$BUILD/iocomd" --config "$SCRATCH/conf" --shim "$BUILD/iocom-shim" >>"$SCRATCH/log" 2>&1 </dev/null &
	AGENT=$!
	until_true 20 answers && return
	tap_fail "the agent starts" "$(tail -n 5 "$SCRATCH/log")"
	tap_done
	exit 1
}
end() { # SIGNAL
	kill "-$1" "$AGENT"
	wait "$AGENT" 2>/dev/null
	AGENT=''
}
reload() { # MODE SETTING...
	conf "$@"
	kill -HUP "$AGENT"
}
shows() { iocom feedback | grep -E -- "$1" >/dev/null; }
weight() { iocom feedback --json | jq -r ".weight.$1"; }

# --- off ---
conf off
begin env
tap_is "off: the listing says so" "$(iocom feedback)" "feedback off (feedback = dry-run shows what it would do)"
tap_like "wal-fc is refused, with a sentence" "$(iocom run --stdin none --policy wal-fc -- true 2>&1)" \
	"'wal-fc' needs the feedback controller, which is off on this node .*take 'wal'"
conf dry-run
kill -HUP "$AGENT"
tap_true "a reload switches to dry-run" until_true 10 shows '^feedback dry-run, predictive'
tap_like "which does not do for wal-fc" "$(iocom run --stdin none --policy wal-fc -- true 2>&1)" "only calculates on this node"
conf off "policy = wal-fc"
tap_like "nor may the policy of all jobs need it" "$("$BUILD/iocomd" --config "$SCRATCH/conf" 2>&1)" "'wal-fc' needs the feedback controller"
end TERM

# --- weights, without a memory controller ---
learning=("feedback_controller = published" "feedback_history = 1" "feedback_gain_w = 0.1" "policy = wal-fc")
conf on "${learning[@]}"
v2=$(awk '$3 == "cgroup2" { print $2; exit }' /proc/self/mounts)
if grep -w memory "$v2/cgroup.controllers" >/dev/null; then
	tap_skip "the sentence without a memory controller" "cgroup v2 has one here"
	begin env
else
	# Its own mounts have no v1 memory hierarchy.
	# shellcheck disable=SC2016
	begin env unshare --mount sh -c 'awk "\$3 == \"cgroup\" && \$4 ~ /(^|,)memory(,|$)/ { print \$2 }" /proc/self/mounts |
		while read -r at; do umount "$at"; done; exec "$@"' sh
	tap_like "without a memory controller the listing says so" "$(iocom feedback | tr -s '\n ' ' ')" \
		"only weights are controlled: this kernel has no memory controller for the groups of jobs \(neither memory.high of cgroup v2 nor memory.soft_limit_in_bytes of v1\)"
	tap_like "and the log" "$(cat "$SCRATCH/log")" "feedback: on, published; only weights are controlled"
fi
for share in 1 3 2; do # as many at a time: slowdowns that differ
	running=()
	for _ in $(seq $share); do
		iocom run --stdin none -- "$BUILD/tests/tools/work" cpu 0.2 &
		running+=($!)
	done
	wait "${running[@]}"
done
iocom run --stdin none -- sh -c 'exit 3' # teaches nothing
ended() { [ "$(weight jobs)" = 6 ]; }
tap_true "it has learnt of each job that exited with 0" until_true 10 ended
# In the order of submission.
slowdowns() { iocom jobs --all --limit 0 --json | jq -r '.jobs | map(select(.exit_value == 0 and .slowdown != null)) | sort_by(.submit_ns) | .[].slowdown'; }
tap_is "they have a slowdown" "$(slowdowns | wc -l)" 6
tap_calc "the last one is the controller's" "$(weight slowdown) > 0.9"
w=$(weight w_io)
tap_isnt "the weight has moved" "$(printf '%.6f' "$w")" 0.500000
tap_is "a job that names no policy is decided by wal-fc" "$(iocom place --json -- true | jq -r .policy)" wal-fc
iocom place --save-view "$SCRATCH/view" -- true >/dev/null
tap_is "its decision is by that weight, and so is the saved view" "$(jq --argjson w "$w" '(.params.w_io - $w | fabs) < 1e-9' "$SCRATCH/view")" true
tap_is "for wal it is the setting" "$(iocom place --policy wal --save-view "$SCRATCH/wal" -- true >/dev/null; jq -r '.params.w_io // 0.5' "$SCRATCH/wal")" 0.5
end KILL
begin env
tap_is "after kill -9 it is learnt again from the journal" "$(weight recalled)" 6
recalled=$(weight w_io)
# W moves by G_w (1 - S_u / S_{u-1}) sgn within 0..1; a step that is cut turns the sign.
tap_is "by the formula" "$(printf '%.6f' "$recalled")" \
	"$(slowdowns | awk 'NR > 1 { by = 0.1 * (1 - $1 / before) * sign
			if (by) sign = by > 0 ? 1 : -1
			moved = w + by; w = moved < 0 ? 0 : moved > 1 ? 1 : moved
			if (w != moved) sign = -sign }
		BEGIN { w = 0.5; sign = 1 } { before = $1 } END { printf "%.6f", w }')"
end TERM

# --- the buffer, with the memory controller that there is ---
bounded_by() { # prints the file of JOB's bound
	awk '$3 ~ /^cgroup2?$/ { print $2 }' /proc/self/mounts | while read -r at; do
		for file in memory.high memory.soft_limit_in_bytes; do
			[ ! -e "$at/iocom/jobs/user@0/$1/$file" ] || echo "$at/iocom/jobs/user@0/$1/$file"
		done
	done | head -n 1
}
conf dry-run "feedback_max = 0.002" "feedback_min = 0.002"
begin env
# The cache belongs to the group that reads first.
"$BUILD/tests/tools/work" make "$SCRATCH/data" 64 && "$BUILD/tests/tools/work" cold "$SCRATCH/data"
job=$(iocom run --detach --stdin none -- sh -c 'until [ -e '"$SCRATCH"'/over ]; do cat '"$SCRATCH"'/data >/dev/null; sleep 0.1; done')
file=$(bounded_by "$job")
if [ -z "$file" ]; then
	tap_skip "the bound of a job's group" "no memory controller here"
	tap_done
	exit
fi
original=$(cat "$file")
is() { [ "$(cat "$file")" = "$1" ]; }
isnt() { ! is "$1"; }
if ! until_true 15 shows 'would be held'; then
	tap_skip "the bound of a job's group" "its group shows no page cache here"
	tap_done
	exit
fi
tap_is "dry-run shows the job, and changes nothing" "$(cat "$file")" "$original"
tap_true "nor is anything written down" [ ! -e "$SCRATCH/state/feedback.originals" ]
narrow=("feedback_max = 0.002" "feedback_min = 0.002")
reload on "${narrow[@]}"
tap_true "on: its group is bounded" until_true 15 isnt "$original"
tap_is "and its original written down" "$(awk -v job="/$job" 'index($2, job) { print $4 }' "$SCRATCH/state/feedback.originals")" "$original"
tap_true "the listing says that it is held" until_true 5 shows "$job .* held"
tap_is "another user sees no jobs of others" "$(setpriv --reuid 65534 --regid 65534 --clear-groups "$BUILD/iocom" feedback --json | jq '.groups | length')" 0
end KILL
tap_true "kill -9: it still is" isnt "$original"
restore() { iocomd --config "$SCRATCH/conf" --feedback-restore yes 2>&1; }
tap_like "without another agent: iocomd --feedback-restore" "$(restore)" "^groups of jobs: 1 got the original bound of memory back"
tap_is "the original is back" "$(cat "$file")" "$original"
tap_like "twice is once" "$(restore)" "^nothing to give back"
begin env
tap_true "held again" until_true 15 isnt "$original"
tap_like "it refuses while an agent runs" "$(said=$(restore); echo "$? $said")" "^1 iocomd: an iocomd runs on "
end KILL
conf off
begin env
tap_is "the next start: the original is back" "$(cat "$file")" "$original"
tap_true "and nothing is left written down" [ ! -e "$SCRATCH/state/feedback.originals" ]
reload on "${narrow[@]}"
tap_true "on again" until_true 15 isnt "$original"
reload off
tap_true "off: the original is back" until_true 10 is "$original"
reload on "${narrow[@]}"
tap_true "and on" until_true 15 isnt "$original"
end TERM
tap_is "stopped: the original is back" "$(cat "$file")" "$original"
begin env
: >"$SCRATCH/over"
tap_is "the job never noticed" "$(timeout 20 iocom wait "$job" >/dev/null; echo $?)" 0
end TERM
tap_done
