#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# An upgrade while jobs run: upgrade.sh BUILD REV builds REV below BUILD and installs it, starts
# jobs (piped, detached, at a terminal, restartable) between two of its agents, installs this
# build in its place, restarts the agents, and lets the jobs end. Then it does the same the other
# way round, where jobs may be lost, but never without a sentence.
set -uo pipefail
build=$(realpath "$1")
rev=$2
cd "$(dirname "$0")/../.."
. tests/lib/tap.sh
. tests/lib/pair.sh
short=$(git rev-parse --short "$rev^{commit}") || exit 2
from=$build/upgrade/$short
if [ ! -x "$from/build/iocom" ]; then
	mkdir -p "$from"
	if ! { git archive "$short" | tar -x -C "$from" && make -C "$from" -j"$(nproc)" BUILD=build all; } >"$from.log" 2>&1; then
		tap_fail "$short builds" "$(tail -n 5 "$from.log")"
		tap_done
		exit 1
	fi
fi
pair_begin
pair_munged n1
pair_munged n2
chmod 1777 "$PAIR"
mkdir "$PAIR/bin"

# As a package does it: it replaces the files, and running programs keep the old ones.
install_from() { # DIRECTORY
	local p
	for p in iocom iocomd iocom-net iocom-shim iocom-relay; do
		[ ! -e "$1/$p" ] || { cp "$1/$p" "$PAIR/bin/.$p" && mv -f "$PAIR/bin/.$p" "$PAIR/bin/$p"; }
	done
}
IOCOM_BUILD=$PAIR/bin
agents_up() {
	pair_agent n1 n2 && pair_agent n2 n1 && until_true 15 pair_sees n1 2 && until_true 15 pair_sees n2 2
}
agents_down() {
	pair_stop n1
	pair_stop n2
	rm -f "$PAIR"/n[12]/run/iocom.sock
}

# A job's script: it writes lines, waits until all is changed, writes more, and ends.
cat >"$PAIR/job" <<'J'
#!/bin/sh
trap "echo $1 >>$PAIR/signalled" USR1
trap '' TERM
seq 1 4000
: >"$PAIR/up.$1"
while [ ! -e "$PAIR/go" ]; do sleep 0.1; done
[ "$1" != piped ] || sha256sum
seq 4001 8000
exit "$2"
J
chmod 755 "$PAIR/job"
export PAIR
head -c 3000000 /dev/urandom >"$PAIR/input"
user_run() { # OPTION... -- KIND STATUS
	local options=()
	while [ "$1" != -- ]; do options+=("$1") && shift; done
	IOCOM_RUN_DIR=$PAIR/n1/run timeout 120 setpriv --reuid 65534 --regid 65534 --clear-groups \
		sh -c 'cd / && exec "$@"' sh "$PAIR/bin/iocom" run --node n2 "${options[@]}" -- "$PAIR/job" "$2" "$3"
}
knows() { "$PAIR/bin/iocom" run --help 2>&1 | grep -c -- "$1"; } # OPTION
declare -A PID=() STATUS=([piped]=3 [detached]=4 [pty]=5 [restartable]=6)
start_jobs() {
	PID=()
	rm -f "$PAIR"/up.* "$PAIR"/go "$PAIR/signalled" "$PAIR"/out.* "$PAIR"/err.*
	: >"$PAIR/signalled"
	chmod 666 "$PAIR/signalled"
	{ head -c 1000000 "$PAIR/input"; until [ -e "$PAIR/go" ]; do sleep 0.1; done; tail -c +1000001 "$PAIR/input"; } |
		user_run -- piped 3 >"$PAIR/out.piped" 2>"$PAIR/err.piped" &
	PID[piped]=$!
	if [ "$(knows --detach)" -gt 0 ]; then
		user_run --detach -- detached 4 >"$PAIR/detached" 2>"$PAIR/err.detached"
		PID[detached]=0
	fi
	if [ "$(knows --pty)" -gt 0 ]; then
		export -f user_run
		script -qefc "bash -c 'user_run --pty -- pty 5'" /dev/null </dev/null >"$PAIR/out.pty" 2>"$PAIR/err.pty" &
		PID[pty]=$!
	fi
	if [ "$(knows --restartable)" -gt 0 ]; then
		user_run --restartable -- restartable 6 >"$PAIR/out.restartable" 2>"$PAIR/err.restartable" &
		PID[restartable]=$!
	fi
	for kind in "${!PID[@]}"; do
		tap_true "$1: a $kind job runs" until_true 20 test -e "$PAIR/up.$kind"
	done
}

# A job that an older version started sends its output in clear, so it shows that to no other node.
ATTACHED_AT=n1
attach_detached() {
	pair_user "$ATTACHED_AT" attach "$(cat "$PAIR/detached")" </dev/null >"$PAIR/out.detached" 2>"$PAIR/err.detached"
}
# Returns 0 if another node may attach to the job: then it shows something, and does not end.
attach_alone() {
	timeout 2 setpriv --reuid 65534 --regid 65534 --clear-groups env IOCOM_RUN_DIR="$PAIR/n1/run" \
		sh -c 'cd / && exec "$@"' sh "$PAIR/bin/iocom" attach "$(cat "$PAIR/detached")" \
		</dev/null >"$PAIR/out.detached" 2>"$PAIR/err.detached"
	[ $? -eq 124 ]
}
# Takes the rest of a job and how it ended: $PAIR/out.KIND, $PAIR/err.KIND, RC.
finish() { # KIND
	if [ "$1" = detached ]; then
		attach_detached
	else
		wait "${PID[$1]}"
	fi
	RC=$?
}
truth() { # KIND
	seq 1 4000
	[ "$1" != piped ] || sha256sum <"$PAIR/input"
	seq 4001 8000
}
whole() { tr -d '\r' <"$PAIR/out.$1" | cmp -s - <(truth "$1"); } # KIND

# All jobs must go on, or (LOSSES=may) be lost with a sentence.
judge_jobs() { # WHAT LOSSES
	local kind lost
	for kind in "${!PID[@]}"; do
		finish "$kind"
		if [ "$RC" = "${STATUS[$kind]}" ] && whole "$kind"; then
			tap_ok "$1: the $kind job ends with all of its output and its status"
			continue
		fi
		lost=$(tr -d '\r' <"$PAIR/err.$kind"; [ "$kind" != pty ] || tail -n 3 "$PAIR/out.pty")
		if [ "$2" = may ] && grep -q iocom <<<"$lost" && [[ $RC =~ ^(2|125|255)$ ]]; then
			tap_ok "$1: the $kind job is lost, and a sentence says so"
			sed "s/^/# | $1: /" <<<"$lost"
		else
			tap_fail "$1: the $kind job" "status $RC, wanted ${STATUS[$kind]}; $lost; output: $(wc -l <"$PAIR/out.$kind") lines"
		fi
	done
}

clean() { # NODE: none of its groups has a process
	local root
	while read -r root; do
		[ -z "$(find "$root/$PAIR_SCOPE/$1/jobs" -name cgroup.procs -exec cat {} + 2>/dev/null)" ] || return 1
	done < <(pair_groups)
}

change() { # WHAT FROM TO LOSSES
	local said rc
	install_from "$2"
	agents_up # not in a subshell, which would lose the pids
	tap_true "$1: the agents of the first build run" pair_sees n1 2
	start_jobs "$1"
	install_from "$3"
	said=$(pair_user n1 run --node n2 -- echo between 2>&1)
	tap_like "$1: a job while the files are new and the agents old runs, or says why not" "$said" '^between$|iocom'
	[ "$said" = between ] || echo "# | $1: between: $said"
	agents_down
	agents_up
	if [ "$4" = may ] && ! pair_sees n1 2; then
		tap_like "$1: the agents do not start, and say why" "$(tail -n 3 "$PAIR"/n[12]/log)" 'iocomd: .*(version|later|newer)'
	else
		tap_true "$1: the agents of the second build run" pair_sees n1 2
	fi
	if [ "$4" = none ]; then
		tap_is "$1: the second build lists the jobs of the first" \
			"$(pair_user n1 jobs --json | jq '[.jobs[] | select(.state == "running")] | length')" "${#PID[@]}"
		tap_true "$1: it sends a signal to one of them" pair_user n1 kill -USR1 "$(pair_user n1 jobs --json |
			jq -r '.jobs[] | select(.state == "running" and (.command | test("piped"))) | .job')"
		tap_true "$1: and the job gets it" until_true 5 test -s "$PAIR/signalled"
	fi
	ATTACHED_AT=n1
	if [ "$4" = none ] && [ -n "${PID[detached]:-}" ] && ! attach_alone; then
		tap_like "$1: a detached job of the first build is not attached to from another node" \
			"$(cat "$PAIR/err.detached")" "started by an older version of iocom, which sent its streams in clear: attach to it at node n2"
		ATTACHED_AT=n2
	fi
	touch "$PAIR/go"
	judge_jobs "$1" "$4"
	[ "$4" = may ] || tap_is "$1: a new job runs" "$(pair_user n1 run --node n2 -- echo new 2>&1)" new
	for node in n1 n2; do tap_true "$1: no job leaves anything at $node" until_true 10 clean $node; done
	agents_down
}

change "$short to this" "$from/build" "$build" none
change "this to $short" "$build" "$from/build" may
tap_true "all agents exited with 0" test ! -s "$PAIR/bad"
[ ! -s "$PAIR/bad" ] || sed 's/^/# /' "$PAIR/bad"
tap_done
