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
CRIU=${IOCOM_CRIU:-$(bash tests/lib/criu.sh 2>/dev/null)} || tap_skip_all "there is no criu"
[ -n "$CRIU" ] || tap_skip_all "there is no criu"
pair_begin
pair_munged n1 && pair_munged n2 || tap_skip_all "munged does not start"
HOOKS=$PAIR/hooks
mkdir -p "$HOOKS"
cat >"$PAIR/criu" <<END
#!/bin/sh
[ ! -x $HOOKS/\$1 ] || $HOOKS/\$1
exec $CRIU "\$@"
END
chmod 755 "$PAIR/criu"
other() { [ "$1" = n1 ] && echo n2 || echo n1; }
begin_agent() { pair_agent "$1" "$(other "$1")" --criu "$PAIR/criu" --allow-root yes; }
begin_agent n1 && begin_agent n2 || tap_skip_all "the agents do not start"
sees() { pair_sees n1 2 && pair_sees n2 2; }
until_true 20 sees || tap_skip_all "the agents do not see each other"

LINES_MAX=${LINES_MAX:-1500} cases=0
# The job's control group at NODE, and the first process in its own pid namespace.
group_of() { find /sys/fs/cgroup -path "*$PAIR_SCOPE/$1/*/$2" -type d 2>/dev/null | grep -v '/memory/\|/pids/\|/cpu' | head -n 1; } # NODE NAME
init_of() { [ -z "$(group_of "$1" "$2")" ] || grep -h . "$(group_of "$1" "$2")/cgroup.procs" | while read -r p; do
	grep -q 'NSpid.*	1$' "/proc/$p/status" 2>/dev/null && echo "$p"; done; }

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
	mover) g=$(group_of n1 "$2.move"); [ -z "$g" ] || echo 1 >"$g/cgroup.kill" ;;
	source-init) init_of n1 "$2" | xargs -r kill -9 ;;
	target-all) g=$(group_of n2 "$2"); [ -z "$g" ] || echo 1 >"$g/cgroup.kill" ;;
	esac 2>/dev/null
}
# Who has the job's control socket: its shims.  Those at n2 are not the one at n1.
shims_new() { ss -xlpH 2>/dev/null | grep -F "$job.sock" | grep -oE 'pid=[0-9]+' | cut -d= -f2 | sort -u | grep -vxF "$(cat "$PAIR/shim-n1")"; }
holder() { ss -xlpH 2>/dev/null | grep -F "$1.sock" | grep -oE 'pid=[0-9]+' | cut -d= -f2 | sort -u; }

again() { # agents that were killed start again
	local node
	for node in n1 n2; do
		kill -0 "${PAIR_PID[$node]}" 2>/dev/null && continue
		wait "${PAIR_PID[$node]}" 2>/dev/null
		begin_agent "$node"
	done
	until_true 30 sees
}
whole() { [ "$(wc -l <"$1")" -eq "$LINES_MAX" ] && awk '$1 != NR - 1 { exit 1 }' "$1"; }
growing() { awk '$1 != NR - 1 { exit 1 }' "$1"; } # no line is missing or doubled so far

try_case() { # STEP WHAT
	local step=$1 what=$2 state said verdict
	rm -f "$HOOKS"/*
	((++cases))
	trace=$PAIR/trace-$cases-$step-$what
	job=$(pair_on n1 run --node n1 --detach --migratable -- sh -c "i=0; while [ \$i -lt $LINES_MAX ]; do echo \$i; echo \$i >>$trace; i=\$((i + 1)); sleep 0.002; done; exit 7")
	until_true 10 test -s "$trace"
	holder "$job" >"$PAIR/shim-n1"
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
	again || echo "# the agents do not come back"
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
