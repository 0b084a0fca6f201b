# shellcheck shell=bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# Two agents, n1 and n2, on this machine's loopback, each with its own munged (with the same key),
# without the testbed. Source tap.sh first; call pair_begin, then pair_agent for each.

IOCOM_BUILD=${IOCOM_BUILD:-$PWD/build}
PAIR_SCOPE=iocom-pair-$$
declare -A PAIR_PID=()
declare -A PAIR_PROGRAMS=() # of a node: where its programs are, if not in IOCOM_BUILD

pair_begin() {
	[ "$(id -u)" -eq 0 ] || tap_skip_all "needs root (eBPF, other users)"
	[ -e /sys/kernel/btf/vmlinux ] || tap_skip_all "the kernel has no BTF"
	PAIR=$(mktemp -d /tmp/iocom-pair-XXXXXX)
	chmod 755 "$PAIR"
	trap pair_end EXIT
	trap 'exit 130' INT TERM
	(umask 077 && head -c 128 /dev/urandom >"$PAIR/key")
	PAIR_PORT=$(free_ports)
}

# Mounts for the control groups of the two: cgroup2, and v1 if there is any.
pair_groups() { awk '$3 == "cgroup2" || ($3 == "cgroup" && $4 ~ /memory|cpu|pids/) { print $2 }' /proc/mounts; }

pair_stop() { # NAME [SIGNAL]
	local pid=${PAIR_PID[$1]-}
	[ -n "$pid" ] || return 0
	kill -"${2:-TERM}" "$pid" 2>/dev/null
	wait "$pid" 2>/dev/null
	# An agent must exit with 0 when it is told to stop; the test checks this file at its end.
	[ $? -eq 0 ] || [ -n "${2-}" ] || [ "${1#munge}" != "$1" ] || tail -n 20 "$PAIR/$1/log" >>"$PAIR/bad"
	unset "PAIR_PID[$1]"
}

pair_empty() { # GROUP: removes it; what a job left is killed
	local pids
	pids=$(find "$1" -name cgroup.procs -exec cat {} + 2>/dev/null)
	# shellcheck disable=SC2086
	[ -z "$pids" ] || kill -9 $pids 2>/dev/null
	find "$1" -depth -type d -exec rmdir {} + 2>/dev/null
	[ ! -d "$1" ]
}

pair_end() {
	local name root
	# The agents first: "n..." is behind "munge-n...".
	for name in $(printf '%s\n' "${!PAIR_PID[@]}" | sort -r); do pair_stop "$name"; done
	while read -r root; do
		[ ! -d "$root/$PAIR_SCOPE" ] || until_true 5 pair_empty "$root/$PAIR_SCOPE"
	done < <(pair_groups)
	rm -rf "$PAIR"
}

pair_munged() { # NODE [ENVIRONMENT...]
	local node=$1 dir=$PAIR/munge-$1
	shift
	mkdir -p "$dir"
	chmod 755 "$dir"
	env "$@" munged --foreground --force "--key-file=$PAIR/key" "--socket=$dir/socket" \
		"--pid-file=$dir/pid" "--log-file=$dir/log" "--seed-file=$dir/seed" >"$dir/out" 2>&1 &
	PAIR_PID[munge-$node]=$!
	until_true 10 test -S "$dir/socket"
}

pair_port() { [ "$1" = n1 ] && echo "$PAIR_PORT" || echo $((PAIR_PORT + 5)); }

pair_agent() { # NODE PEER OPTIONS...
	local node=$1 peer=$2 dir=$PAIR/$1 root programs=${PAIR_PROGRAMS[$1]-$IOCOM_BUILD}
	shift 2
	mkdir -p "$dir"
	while read -r root; do mkdir -p "$root/$PAIR_SCOPE/$node"; done < <(pair_groups)
	"$programs/iocomd" --name "$node" --listen 127.0.0.1 --port "$(pair_port "$node")" \
		--peers "127.0.0.1:$(pair_port "$peer")" --run-dir "$dir/run" --state-dir "$dir/state" \
		--munge-socket "$PAIR/munge-$node/socket" --scope "cgroup=$PAIR_SCOPE/$node" --period 0.3 \
		--shim "$programs/iocom-shim" "$@" >"$dir/log" 2>&1 &
	PAIR_PID[$node]=$!
	until_true 15 test -S "$dir/run/iocom.sock"
}

# --- jobs that move ---
# Sets PAIR_CRIU, the criu to move jobs with, or fails.
pair_criu() {
	PAIR_CRIU=${IOCOM_CRIU:-$(bash tests/lib/criu.sh 2>/dev/null)}
	[ -n "$PAIR_CRIU" ]
}
pair_other() { [ "$1" = n1 ] && echo n2 || echo n1; }
pair_mover() { # NODE [OPTION...]
	local node=$1
	shift
	pair_agent "$node" "$(pair_other "$node")" --criu "$PAIR_CRIU" --allow-root yes --lease-s 5 "$@"
}
pair_meet() { pair_sees n1 2 && pair_sees n2 2; }
# Begins two agents that move jobs of root to each other.
pair_movers() {
	pair_munged n1 && pair_munged n2 && pair_mover n1 && pair_mover n2 && until_true 20 pair_meet
}
pair_again() { # agents that were killed start again
	local node
	for node in n1 n2; do
		kill -0 "${PAIR_PID[$node]-}" 2>/dev/null && continue
		wait "${PAIR_PID[$node]-}" 2>/dev/null
		pair_mover "$node"
	done
	until_true 30 pair_meet
}
# The control group of JOB (JOB.move: of its mover) at NODE.
pair_group() { # NODE JOB
	find /sys/fs/cgroup -path "*$PAIR_SCOPE/$1/*/$2" -type d 2>/dev/null |
		grep -v '/memory/\|/pids/\|/cpu' | head -n 1
}
pair_group_kill() { # NODE JOB
	local group
	group=$(pair_group "$1" "$2")
	[ -z "$group" ] || echo 1 >"$group/cgroup.kill"
}
# The first process in the job's own pid namespace.
pair_init() { # NODE JOB
	local group pid
	group=$(pair_group "$1" "$2")
	[ -n "$group" ] || return 0
	while read -r pid; do
		grep -q 'NSpid.*	1$' "/proc/$pid/status" 2>/dev/null && echo "$pid"
	done <"$group/cgroup.procs"
}
# Who has the job's control socket: its shims, at both nodes.
pair_shims() { # JOB
	ss -xlpH 2>/dev/null | grep -F "$1.sock" | grep -oE 'pid=[0-9]+' | cut -d= -f2 | sort -u
}

pair_on() { # NODE IOCOM-ARGUMENTS...
	local node=$1
	shift
	IOCOM_RUN_DIR=$PAIR/$node/run timeout 60 "$IOCOM_BUILD/iocom" "$@"
}

# NODE hears of COUNT nodes, and of those that run as they run now: an agent that was started again
# is still in the list as it was before.
pair_sees() { # NODE COUNT
	local seen other now before
	seen=$(pair_on "$1" nodes --json) && [ "$(jq '.nodes | length' <<<"$seen")" -eq "$2" ] || return
	for other in "${!PAIR_PID[@]}"; do
		now=$(IOCOM_RUN_DIR=$PAIR/$other/run timeout 5 "$IOCOM_BUILD/iocom" nodes --json 2>/dev/null |
			pair_boot "$other")
		before=$(pair_boot "$other" <<<"$seen")
		[ -z "$now" ] || [ -z "$before" ] || [ "$now" = "$before" ] || return
	done
}
pair_boot() { jq -r --arg n "$1" '.nodes[] | select(.name == $n) | .boot_id'; } # NODE, of a listing
pair_count() { pair_on "$1" nodes --json | jq -r --arg c "$2" '.counters[$c]'; }     # NODE COUNTER

pair_user() { # NODE IOCOM-ARGUMENTS...: as nobody
	local node=$1
	shift
	IOCOM_RUN_DIR=$PAIR/$node/run timeout 60 setpriv --reuid 65534 --regid 65534 --clear-groups \
		sh -c 'cd / && exec "$@"' sh "$IOCOM_BUILD/iocom" "$@"
}
