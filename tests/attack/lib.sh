# shellcheck shell=bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# Agents to be attacked, each with its own munged, on this machine's loopback; all are removed at
# the end, also when the test fails. Source tap.sh first.

IOCOM_BUILD=${IOCOM_BUILD:-$PWD/build}
TOOLS=$IOCOM_BUILD/tests/tools
[ "$(id -u)" -eq 0 ] || tap_skip_all "needs root (eBPF, jobs of several users)"
[ -e /sys/kernel/btf/vmlinux ] || tap_skip_all "the kernel has no BTF"
[ -x /usr/sbin/munged ] || tap_skip_all "munged is not installed"
export LC_ALL=C
export ASAN_OPTIONS=detect_leaks=0 # only for the forgers
DIR=$(mktemp -d)
chmod 755 "$DIR"
# Users run it who may not enter the build directory.
iocom=$DIR/iocom
cp "$IOCOM_BUILD/iocom" "$iocom" || exit 1
VICTIM=65534 MALLORY=1 # nobody, daemon: every machine has them
PIDS=() AGENTS=()
AGENT_WRAPPER=() # words before the program, if a test sets them

ended() { ! kill -0 "$@" 2>/dev/null; } # PID...: all of them; without any, too
attack_end() {
	[ ${#PIDS[@]} -eq 0 ] || kill "${PIDS[@]}" 2>/dev/null
	until_true 10 ended "${PIDS[@]}" || kill -9 "${PIDS[@]}" 2>/dev/null
	wait
	rm -rf "$DIR"
}
trap attack_end EXIT
trap 'exit 130' INT TERM

munge_up() { # NAME [KEY OF]: socket in $DIR/NAME/munge
	local at=$DIR/$1
	mkdir -p "$at"
	if [ -n "${2-}" ]; then
		cp -p "$DIR/$2/key" "$at/key"
	else
		(umask 077 && head -c 128 /dev/urandom >"$at/key")
	fi
	munged --foreground --force --key-file="$at/key" --socket="$at/munge" --pid-file="$at/munge.pid" \
		--log-file="$at/munge.log" --seed-file="$at/seed" >/dev/null 2>&1 &
	PIDS+=($!)
	until_true 20 test -S "$at/munge"
}

# The log of agent NAME is $DIR/NAME/log, its run directory $DIR/NAME/run.
agent_up() { # NAME PORT OPTION...
	local at=$DIR/$1 name=$1 port=$2
	shift 2
	mkdir -p "$at"
	env -u ASAN_OPTIONS "${AGENT_WRAPPER[@]}" "$IOCOM_BUILD/iocomd" --name "$name" --port "$port" --run-dir "$at/run" --state-dir "$at/state" \
		--shim "$IOCOM_BUILD/iocom-shim" --munge-socket "$at/munge" --period 0.5 "$@" >>"$at/log" 2>&1 &
	eval "AGENT_$name=$!"
	PIDS+=($!)
	AGENTS+=("$name")
	until_true 30 test -S "$at/run/iocom.sock" || {
		tap_fail "agent $name starts" "$(cat "$at/log")"
		tap_done
		exit 1
	}
}
agent_down() { # NAME; the agent's exit status
	local pid="AGENT_$1" status
	kill "${!pid}"
	until_true 10 ended "${!pid}" || kill -9 "${!pid}" # which its status tells
	wait "${!pid}"
	status=$?
	rm -f "$DIR/$1/run/iocom.sock"
	return $status
}
at() { # NAME COMMAND...: as a client of that agent
	local name=$1
	shift
	IOCOM_RUN_DIR=$DIR/$name/run "$@"
}
as() { # UID COMMAND...: without groups, in /
	local uid=$1
	shift
	(cd / && exec setpriv --reuid "$uid" --regid "$uid" --clear-groups -- "$@")
}
network_part() { # NAME: the process that has its agent's sockets
	local agent=AGENT_$1
	pgrep -x -P "${!agent}" iocom-net
}
counter() { # NAME COUNTER
	at "$1" "$iocom" nodes --json | jq ".counters.$2"
}
sees() { # NAME COUNT
	[ "$(at "$1" "$iocom" nodes --json | jq '.nodes | length')" -eq "$2" ]
}

# --- the log, and the table ---
declare -A SEEN=()
TABLE=()
log_new() { # NAME: lines since log_mark, but for those of every day
	tail -n "+$((${SEEN[$1]:-0} + 1))" "$DIR/$1/log" | grep -vE ': node [a-z]+ at |no session with the node at|the peer at .* is not heard|counting restarts|lines suppressed'
}
log_mark() { SEEN[$1]=$(wc -l <"$DIR/$1/log"); } # NAME
log_has() { [ -n "$(log_new "$1")" ]; }

row() { # ATTACK REFUSED LOGGED
	TABLE+=("$(printf '%-52s %-8s %s' "$1" "$2" "$3")")
}

# What comes by the hundred is said once in so many seconds, however long it goes on: how many
# lines of agent NAME match PATTERN, or "close" when two of them are closer than SECONDS.  A
# second less, for an agent that was kept waiting between its decision and its line.
spaced() { # NAME PATTERN SECONDS
	log_new "$1" | grep -E -- "$2" | awk -v every="$3" '
		{ split(substr($1, 12), part, /[:Z]/)
		  now = part[1] * 3600 + part[2] * 60 + part[3]
		  if (NR > 1 && (now - last + 86400) % 86400 < every - 1) close_by = 1
		  last = now }
		END { print close_by ? "close" : NR }'
}

# Refused, and said exactly once in the log of agent NAME by a line that matches PATTERN.
# SECONDS: once in so many, of an attack that may take longer than that.
judge() { # ATTACK NAME PATTERN REFUSED(yes/no) WHAT-WAS-ANSWERED [SECONDS]
	local lines matching logged
	[ -z "$3" ] || until_true 20 log_has "$2"
	sleep 0.03 # a second line would come at once; and 25 a second are written at most
	lines=$(log_new "$2" | wc -l)
	matching=$(log_new "$2" | grep -cE -- "$3")
	if [ -z "$3" ]; then
		logged=$([ "$lines" -eq 0 ] && echo - || echo "$lines lines")
	elif [ "$lines" -eq "$matching" ] && [ "$lines" -gt 1 ] && [ -n "${6-}" ]; then
		logged=$([ "$(spaced "$2" "$3" "$6")" -ge "$lines" ] 2>/dev/null && echo once || echo "$lines lines")
	else
		logged=$([ "$lines" -eq 1 ] && [ "$matching" -eq 1 ] && echo once || echo "$lines lines")
	fi
	row "$1" "$4" "$logged"
	if [ "$4" = yes ] && { [ "$logged" = once ] || [ "$logged" = - ]; }; then
		tap_ok "$1"
	else
		tap_fail "$1" "refused: $4, answered: $5"$'\n'"logged (wanted: $3):"$'\n'"$(log_new "$2")"
	fi
}

# Runs an attack by a program that ends with 1 if it was refused.
attack() { # ATTACK NAME PATTERN COMMAND...
	local what=$1 name=$2 pattern=$3 out status refused=no
	shift 3
	log_mark "$name"
	out=$("$@" 2>&1)
	status=$?
	[ "$status" -ne 1 ] || refused=yes
	judge "$what" "$name" "$pattern" "$refused" "$out ($status)"
}

# For attacks that no agent sees: the kernel, or one of our programs, refuses them.
denied() { # ATTACK COMMAND...: it must fail
	local what=$1 out
	shift
	if out=$("$@" 2>&1); then
		row "$what" no -
		tap_fail "$what" "$out"
	else
		row "$what" yes -
		tap_ok "$what"
	fi
}

attack_done() {
	local name
	for name in $(printf '%s\n' "${AGENTS[@]}" | sort -u); do
		agent_down "$name"
		tap_is "agent $name ends as it should after all this" "$?" 0
	done
	printf '# | %-52s %-8s %s\n' attack refused logged
	printf '# | %s\n' "${TABLE[@]}"
	tap_done
}
