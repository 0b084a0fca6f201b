#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# Jobs that move while something is killed, at each step: before they are saved, before they are
# restored, and when both nodes hold them.  A job writes numbered lines to its output and to a file;
# a second copy, a lost or doubled line, or a copy that ran too early shows there.  It must end with
# its status, or be told lost or killed, with the reason, where what ran it was killed.
# CASES="STEP:WHAT ..." (default: all); prints TAP and a table.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1
. tests/lib/tap.sh
. tests/lib/pair.sh
pair_criu || tap_skip_all "there is no criu"
pair_begin
HOOKS=$PAIR/hooks
mkdir -p "$HOOKS"
cat >"$PAIR/criu" <<END
#!/bin/sh
[ ! -x $HOOKS/\$1 ] || $HOOKS/\$1
exec $PAIR_CRIU "\$@"
END
chmod 755 "$PAIR/criu"
PAIR_CRIU=$PAIR/criu
pair_movers || tap_skip_all "the agents do not start, or do not see each other"

LINES_MAX=${LINES_MAX:-1500} cases=0
# STEP is a hook of criu: what happens there, once.
hook() { # dump|restore COMMAND
	printf '#!/bin/bash\nrm -f "%s"\n%s\n' "$HOOKS/$1" "$2" >"$HOOKS/new" && chmod 755 "$HOOKS/new" && mv "$HOOKS/new" "$HOOKS/$1"
}
fault() { # WHAT JOB: who is killed
	case $1 in
	source-agent) kill -9 "${PAIR_PID[n1]}" ;;
	target-agent) kill -9 "${PAIR_PID[n2]}" ;;
	source-shim) xargs -r kill -9 <"$PAIR/shim-n1" ;;
	target-shim) shims_new | xargs -r kill -9 ;;
	mover) pair_group_kill n1 "$2.move" ;;
	source-init) pair_init n1 "$2" | xargs -r kill -9 ;;
	target-all) pair_group_kill n2 "$2" ;;
	esac 2>/dev/null
}
# Those at n2 are not the one at n1.
shims_new() { pair_shims "$job" | grep -vxF "$(cat "$PAIR/shim-n1")"; }

whole() { [ "$(wc -l <"$1")" -eq "$LINES_MAX" ] && awk '$1 != NR - 1 { exit 1 }' "$1"; }
growing() { awk '$1 != NR - 1 { exit 1 }' "$1"; } # no line is missing or doubled so far

ended() { pair_on n1 explain --json "$1" | jq -r '.record.state | select(. != "running" and . != "moving")'; } # JOB

try_case() { # STEP WHAT
	local step=$1 what=$2 state said verdict
	rm -f "$HOOKS"/*
	((++cases))
	trace=$PAIR/trace-$cases-$step-$what
	job=$(pair_on n1 run --node n1 --detach --migratable -- sh -c "i=0; while [ \$i -lt $LINES_MAX ]; do echo \$i; echo \$i >>$trace; i=\$((i + 1)); sleep 0.002; done; exit 7")
	until_true 10 test -s "$trace"
	pair_shims "$job" >"$PAIR/shim-n1"
	case $step in
	dump) hook dump "touch $HOOKS/reached; sleep 0.7" ;;
	restore) hook restore "touch $HOOKS/reached; sleep 0.7" ;;
	held) hook restore "kill -STOP ${PAIR_PID[n1]}; touch $HOOKS/reached" ;;
	esac
	pair_on n1 migrate "$job" n2 >"$PAIR/said" 2>&1 &
	[ "$step" = none ] || until_true 20 test -e "$HOOKS/reached"
	[ "$step" != held ] || sleep 1.2
	fault "$what" "$job"
	[ "$step" != held ] || { sleep 0.3; kill -CONT "${PAIR_PID[n1]}" 2>/dev/null; }
	wait $! 2>/dev/null
	sleep 0.3
	pair_again || echo "# the agents do not come back"
	# It may move there later, whatever became of this attempt.
	if [ "${what%%-*}-$(pair_on n1 explain --json "$job" | jq -r '.moves[-1].state')" = target-aborted ]; then
		pair_on n1 migrate "$job" n2 >"$PAIR/said" 2>&1 || [ -n "$(ended "$job")" ] ||
			tap_fail "$step, $what killed: it moves there later" "$(cat "$PAIR/said")"
	fi
	timeout 90 env IOCOM_RUN_DIR="$PAIR/n1/run" "$IOCOM_BUILD/iocom" wait "$job" >/dev/null 2>&1
	status=$?
	explained=$(pair_on n1 explain --json "$job")
	said=$(jq -r '.record | "\(.state)@\(.node) \(.text // "")"' <<<"$explained")
	state=${said%%@*}
	moved=$(jq -r '.moves[-1].state' <<<"$explained")
	sleep 0.2
	if ! growing "$trace"; then
		verdict="BROKEN: lines of its file are missing or doubled"
	elif [ "$state" = exited ] && [ "$status" -eq 7 ] && whole "$trace"; then
		verdict=whole
		pair_on n1 attach "$job" >"$PAIR/out" 2>/dev/null
		whole "$PAIR/out" || verdict="BROKEN: its output is not whole"
	elif [ "$state" = lost ] || [ "$state" = killed ]; then
		verdict=$state
	else
		verdict="BROKEN: $said, status $status"
	fi
	[ -z "$(pgrep -f "trace-$cases-$step-$what")" ] || verdict="BROKEN: a copy is left"
	printf '# |%-8s %-13s %-8s %-8s %s\n' "$step" "$what" "$moved" "$verdict" "${said#*@}" | cut -c1-150
	case $verdict in
	whole) tap_true "$step, $what killed: it goes on, whole ($moved)" true ;;
	lost | killed) # only where what ran it was killed
		tap_like "$step, $what killed: it is told $verdict" "$what" "^(source-init|source-shim|target-all|target-shim|mover)$" ;;
	*) tap_is "$step, $what killed" "$verdict" "whole, or told" ;;
	esac
}

all=""
for step in dump restore held; do
	for what in source-agent target-agent source-shim target-shim mover source-init target-all; do
		[ "$step-$what" = dump-target-all ] || all+="$step:$what "
	done
done
for one in none:nothing ${CASES:-$all}; do try_case "${one%:*}" "${one#*:}"; done
left() { find /sys/fs/cgroup -path "*$PAIR_SCOPE*" -path '*jobs/*' -type d -name 'n1-*' | head -n 3; }
none_left() { [ -z "$(left)" ]; }
until_true 15 none_left
tap_is "no control group of a job is left" "$(left)" ""
tap_done
