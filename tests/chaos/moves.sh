#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# Jobs that move while something goes wrong, at each step: while they are saved (dump), before they
# are restored (restore), and when both nodes hold them (held).  A process is killed, the network
# between the nodes is cut, the disk of one is full, or the node where the job goes lies (lie).  A job
# writes numbered lines to its output and to a file; a second copy, a lost or doubled line, or a copy
# that ran too early shows there.  It must end with its status, or be told lost or killed, with the
# reason, where what ran it was killed, or lied.
# CASES="STEP:WHAT ..." (default: all); prints TAP and a table.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1
. tests/lib/tap.sh
. tests/lib/pair.sh
pair_criu || tap_skip_all "there is no criu"
# A network and mounts of its own: they are cut and filled, and end with it.
[ -n "${MOVES_APART-}" ] || exec unshare --net --mount env MOVES_APART=1 bash "$0"
ip link set lo up
pair_begin
trap 'umount -l "$PAIR"/n?/state 2>/dev/null; pair_end' EXIT
HOOKS=$PAIR/hooks LIE=$PAIR/n2/run/lie
export IOCOM_LIE=$LIE
mkdir -p "$HOOKS"
cat >"$PAIR/criu" <<END
#!/bin/sh
[ ! -x $HOOKS/\$1 ] || $HOOKS/\$1 || exit 0
exec $PAIR_CRIU "\$@"
END
chmod 755 "$PAIR/criu"
PAIR_CRIU=$PAIR/criu
for node in n1 n2; do
	mkdir -p "$PAIR/$node/state"
	mount -t tmpfs -o size=24m,mode=755 state "$PAIR/$node/state" || tap_skip_all "cannot mount"
done
pair_movers || tap_skip_all "the agents do not start, or do not see each other"

LINES_MAX=${LINES_MAX:-1500} cases=0 LONG_S=${LONG_S:-40}
# STEP is a hook of criu: what happens there, once.
hook() { # dump|restore COMMAND
	printf '#!/bin/bash\nrm -f "%s"\n%s\n' "$HOOKS/$1" "$2" >"$HOOKS/new" && chmod 755 "$HOOKS/new" && mv "$HOOKS/new" "$HOOKS/$1"
}
state_of() { [ "$1" = disk-source ] && echo "$PAIR/n1/state" || echo "$PAIR/n2/state"; } # WHAT
fault() { # WHAT JOB: what goes wrong
	case $1 in
	source-agent) kill -9 "${PAIR_PID[n1]}" ;;
	target-agent) kill -9 "${PAIR_PID[n2]}" ;;
	source-shim) xargs -r kill -9 <"$PAIR/shim-n1" ;;
	target-shim) shims_new | xargs -r kill -9 ;;
	target-both) kill -9 "${PAIR_PID[n2]}" && shims_new | xargs -r kill -9 ;;
	mover) pair_group_kill n1 "$2.move" ;;
	source-init) pair_init n1 "$2" | xargs -r kill -9 ;;
	target-all) pair_group_kill n2 "$2" ;;
	client-migrate) kill -9 "$migrate" ;;
	client-*) kill -9 "$client" ;;
	link-*) tc qdisc add dev lo root blackhole ;;
	disk-*) cat /dev/zero >"$(state_of "$1")/fill" ;;
	esac 2>/dev/null
}
mend() { # WHAT
	case $1 in
	link-short) sleep 2 ;;
	link-long) sleep "$LONG_S" ;;
	disk-*) sleep 4 ;;
	esac
	case $1 in
	link-*) tc qdisc del dev lo root ;;
	disk-*) rm -f "$(state_of "$1")/fill" ;;
	esac
}
# Those at n2 are not the one at n1.
shims_new() { pair_shims "$job" | grep -vxF "$(cat "$PAIR/shim-n1")"; }

whole() { [ "$(wc -l <"$1")" -eq "$LINES_MAX" ] && awk '$1 != NR - 1 { exit 1 }' "$1"; }
growing() { awk '$1 != NR - 1 { exit 1 }' "$1"; } # no line is missing or doubled so far

ended() { pair_on n1 explain --json "$1" | jq -r '.record.state | select(. != "running" and . != "moving")'; } # JOB

# JOB's client, which is killed, is in $client; `run` has one from the start.
begin_job() { # WHAT
	local line="i=0; while [ \$i -lt $LINES_MAX ]; do echo \$i; echo \$i >>$trace; i=\$((i + 1)); sleep 0.002; done; exit 7"
	if [ "$1" = client-run ]; then
		IOCOM_RUN_DIR=$PAIR/n1/run "$IOCOM_BUILD/iocom" run --node n1 --migratable --grace 30 -- sh -c "$line" >"$PAIR/client" 2>&1 &
		client=$!
	else
		job=$(pair_on n1 run --node n1 --detach --migratable -- sh -c "$line")
	fi
	until_true 10 test -s "$trace"
	[ "$1" != client-run ] || job=$(pair_on n1 jobs --json | jq -r '[.jobs[] | select(.state == "running")][0].job')
	[ "$1" = client-attach ] || return 0
	IOCOM_RUN_DIR=$PAIR/n1/run "$IOCOM_BUILD/iocom" attach "$job" >"$PAIR/client" 2>&1 &
	client=$!
	until_true 10 test -s "$PAIR/client"
}
prepare() { # STEP WHAT: what happens at the step
	case $1 in
	dump) hook dump "touch $HOOKS/reached; sleep 0.7" ;;
	restore) hook restore "touch $HOOKS/reached; sleep 0.7" ;;
	held) hook restore "kill -STOP ${PAIR_PID[n1]}; touch $HOOKS/reached" ;;
	lie) # what its criu says is not so, or what its shim or agent says
		case $2 in
		criu-done) hook restore "exit 1" ;;
		criu-ready) hook restore "CRTOOLS_SCRIPT_ACTION=pre-resume CRTOOLS_INIT_PID=\$\$ \$(tr '\\0' '\\n' </proc/\$PPID/cmdline | grep iocom-hold); exit 1" ;;
		former) # there must have been one
			hook restore "exit 1"
			pair_on n1 migrate "$job" n2 >"$PAIR/said" 2>&1
			echo "$2" >"$LIE"
			;;
		*) echo "$2" >"$LIE" ;;
		esac
		;;
	esac
}
# The node where jobs go has other programs where it lies.
set_target() { # STEP
	local want=$IOCOM_BUILD
	[ "$1" != lie ] || want=$IOCOM_BUILD/tests/liar
	[ "$want" != "${PAIR_PROGRAMS[n2]-$IOCOM_BUILD}" ] || return 0
	PAIR_PROGRAMS[n2]=$want
	pair_stop n2
	pair_again
}
# A client that was lost comes back: it gets what there is from then on.
come_back() { # WHAT
	[ "$1" = client-run ] || return 0
	until_true 5 follow || tap_fail "its client does not come back" "$(tail -n 3 "$PAIR/again.err")"
}
follow() {
	timeout 60 env IOCOM_RUN_DIR="$PAIR/n1/run" "$IOCOM_BUILD/iocom" attach "$job" >"$PAIR/again" 2>"$PAIR/again.err"
	[ $? -eq 7 ]
}
output_whole() { # WHAT: of its client, or told how much the disk did not take
	if [ "$1" = client-run ]; then
		[ "$(tail -n 1 "$PAIR/again")" = $((LINES_MAX - 1)) ] && awk 'NR > 1 && $1 != last + 1 { exit 1 } { last = $1 }' "$PAIR/again"
		return
	fi
	pair_on n1 attach "$job" >"$PAIR/out" 2>"$PAIR/out.err"
	whole "$PAIR/out" || { [ "${1%-*}" = disk ] && grep -q "not kept\|dropped\|lost" "$PAIR/out.err"; }
}
verdict_of() { # WHAT
	if ! growing "$trace"; then
		echo "BROKEN: lines of its file are missing or doubled"
	elif [ "$state" = exited ] && [ "$status" -eq 7 ] && whole "$trace"; then
		output_whole "$1" && echo whole || echo "BROKEN: its output is not whole"
	elif [ "$state" = lost ] || [ "$state" = killed ]; then
		echo "$state"
	else
		echo "BROKEN: $said, status $status"
	fi
}
# Where it may be lost: what ran it was killed, or said that it ran it.  Elsewhere it goes on, and
# where nothing was killed it is known how the move ended.
expected() { # STEP WHAT
	case $1-$2 in
	lie-claims | lie-early | lie-silent) echo "resumed (lost|killed)" ;;
	lie-*) echo "aborted whole" ;;
	*-source-init | *-source-shim | *-target-all | *-target-shim | *-target-both | *-mover) echo "[a-z]+ (whole|lost|killed)" ;;
	*-client-* | *-link-short | *-disk-source | held-link-long | held-disk-target) echo "resumed whole" ;;
	*-link-long | *-disk-target) echo "aborted whole" ;;
	*) echo "[a-z]+ whole" ;;
	esac
}
# It may move there later, whatever became of this attempt.
move_again() { # STEP WHAT
	case $1:$2 in
	*:target-* | *:link-* | *:disk-* | lie:*) ;;
	*) return ;;
	esac
	[ "$moved" = aborted ] || return
	# Both nodes may still be ending what there is of the attempt.
	until_true 3 moves_there || tap_fail "$1, $2: it moves there later" "$(cat "$PAIR/said")"
}
moves_there() { pair_on n1 migrate "$job" n2 >"$PAIR/said" 2>&1 || [ -n "$(ended "$job")" ]; }

try_case() { # STEP WHAT
	local step=$1 what=$2 state said verdict moved begun took client="" migrate
	rm -f "$HOOKS"/* "$LIE"
	((++cases))
	trace=$PAIR/trace-$cases-$step-$what
	set_target "$step"
	begin_job "$what"
	pair_shims "$job" >"$PAIR/shim-n1"
	prepare "$step" "$what"
	begun=${EPOCHREALTIME/./}
	IOCOM_RUN_DIR=$PAIR/n1/run "$IOCOM_BUILD/iocom" migrate "$job" n2 >"$PAIR/said" 2>&1 &
	migrate=$!
	case $step in
	none | lie) ;;
	*) until_true 20 test -e "$HOOKS/reached" ;;
	esac
	[ "$step" != held ] || sleep 1.2
	fault "$what" "$job"
	[ "$step" != held ] || { sleep 0.3; kill -CONT "${PAIR_PID[n1]}" 2>/dev/null; }
	mend "$what"
	come_back "$what"
	wait "$migrate" 2>/dev/null
	took=$(((${EPOCHREALTIME/./} - begun) / 100000))
	sleep 0.3
	pair_again || echo "# the agents do not come back"
	until_true 30 decided
	rm -f "$LIE"
	[ "$what" != mute ] || shims_new | xargs -r kill -9
	moved=$(move_state)
	reason=$(pair_on n1 explain --json "$job" | jq -r '.moves[-1] | .text // .why // ""')
	move_again "$step" "$what"
	timeout 120 env IOCOM_RUN_DIR="$PAIR/n1/run" "$IOCOM_BUILD/iocom" wait "$job" >/dev/null 2>&1
	status=$?
	said=$(pair_on n1 explain --json "$job" | jq -r '.record | "\(.state)@\(.node) \(.text // "")"')
	state=${said%%@*}
	sleep 0.2
	verdict=$(verdict_of "$what")
	[ -z "$(pgrep -f "$trace")" ] || verdict="BROKEN: a copy is left"
	printf '# |%-8s %-14s %-8s %3d.%d %-8s %s\n' "$step" "$what" "$moved" $((took / 10)) $((took % 10)) "$verdict" "${said#*@} $reason" | cut -c1-180
	tap_like "$step, $what: as it must be" "$moved $verdict" "^$(expected "$step" "$what")$"
}
move_state() { pair_on n1 explain --json "$job" | jq -r '.moves[-1].state'; }
decided() { [ "$(move_state)" != asked ]; }

all=""
for step in dump restore held; do
	for what in source-agent target-agent source-shim target-shim mover source-init target-all target-both \
		client-run client-attach client-migrate link-short link-long disk-source disk-target; do
		[ "$step-$what" = dump-target-all ] || all+="$step:$what "
	done
done
for what in criu-done criu-ready claims silent early mute next former source; do all+="lie:$what "; done
for one in none:nothing ${CASES:-$all}; do try_case "${one%:*}" "${one#*:}"; done
left() { find /sys/fs/cgroup -path "*$PAIR_SCOPE*" -path '*jobs/*' -type d -name 'n1-*' | head -n 3; }
none_left() { [ -z "$(left)" ]; }
until_true 15 none_left
tap_is "no control group of a job is left" "$(left)" ""
tap_done
