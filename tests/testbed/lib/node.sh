# shellcheck shell=bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# A node's namespaces, link, munged and agent.

# Prints the bits per second of a tc rate, or nothing if it is not a rate.
net_bits() { # RATE
	awk -v r="${1,,}" 'BEGIN {
		if (!match(r, /^[0-9]+(\.[0-9]+)?/)) exit
		n = substr(r, 1, RLENGTH); u = substr(r, RLENGTH + 1)
		f["bit"] = f[""] = 1; f["kbit"] = 1e3; f["mbit"] = 1e6; f["gbit"] = 1e9
		f["bps"] = 8; f["kbps"] = 8e3; f["mbps"] = 8e6; f["gbps"] = 8e9
		if (u in f && n * f[u] >= 1e5 && n * f[u] <= 1e11) printf "%.0f", n * f[u] }'
}

# The bridge is in a namespace of its own, so the machine's network does not change.
bridge_up() {
	mkdir -p "$STATE/bridge"
	: >"$STATE/bridge/net"
	unshare "--net=$STATE/bridge/net" sh -c '
		ip link set lo up && ip link add iocom-br type bridge stp_state 0 forward_delay 0 mcast_snooping 0 &&
		ip link set iocom-br addrgenmode none up' || die "cannot make a bridge: is the kernel's bridge module there?"
}

# Limits the link by a token bucket in each direction. Its depth is 2 ms, but at least one 64 KiB
# segment of TCP; its queue is 50 ms, but at least 256 KiB.
link_up() { # NODE BITS_PER_S
	local dir=$STATE/$1 bits=$2 burst limit shaper
	burst=$((bits / 8 / 500))
	limit=$((bits / 8 / 20))
	[ "$burst" -ge 131072 ] || burst=131072
	[ "$limit" -ge 262144 ] || limit=262144
	shaper="root tbf rate ${bits}bit burst $burst limit $limit"
	nsenter "--net=$STATE/bridge/net" sh -c "
		ip link add iocom-$1 type veth peer name eth0 netns $dir/ns/net &&
		ip link set iocom-$1 addrgenmode none && ip link set iocom-$1 master iocom-br up &&
		tc qdisc add dev iocom-$1 $shaper" || die "$1: cannot make its network link"
	nsenter "--net=$dir/ns/net" sh -c "
		ip link set eth0 addrgenmode none && ip address add $(node_address "$1")/24 dev eth0 &&
		ip link set eth0 up && tc qdisc add dev eth0 $shaper" || die "$1: cannot make its network link"
}

namespaces_up() { # NODE
	local dir=$STATE/$1/ns
	mkdir -p "$dir" "$STATE/programs"
	: >"$dir/net"
	: >"$dir/mnt"
	: >"$dir/uts"
	# shellcheck disable=SC2016
	unshare "--net=$dir/net" "--mount=$dir/mnt" "--uts=$dir/uts" --propagation private sh -c '
		echo "$0" >/proc/sys/kernel/hostname && ip link set lo up &&
		{ [ ! -d "$2" ] || mount --bind "$2" "$1/programs"; } &&
		{ [ ! -e /etc/hosts ] || mount --bind "$1/hosts" /etc/hosts; }' "$1" "$STATE" "$BUILD" ||
		die "$1: cannot make its namespaces"
}

munged_up() { # NODE
	local dir=$STATE/$1/munge
	mkdir -p "$dir"
	if ! nsenter "--net=$STATE/$1/ns/net" "--mount=$STATE/$1/ns/mnt" "--uts=$STATE/$1/ns/uts" \
		munged "--key-file=$STATE/munge.key" "--socket=$dir/socket" "--pid-file=$dir/pid" \
		"--seed-file=$dir/seed" "--log-file=$dir/log" --num-threads=2 \
		"--origin=$(node_address "$1")" </dev/null >"$dir/out" 2>&1 ||
		! wait_until 300 test -S "$dir/socket"; then
		die "$1: munged did not start: $(tail -qn 1 "$dir/out" "$dir/log" 2>/dev/null)"
	fi
}

# Succeeds if process PID listens on the unix socket PATH.
listens() { # PID PATH
	awk -v path="$2" '$4 == "00010000" && $8 == path { found = 1 } END { exit !found }' \
		"/proc/$1/net/unix" 2>/dev/null
}

agent_answers() { # PID PATH: also true when it died: then there is nothing to wait for
	listens "$1" "$2" || [ ! -d "/proc/$1" ] || [[ $(slurp "/proc/$1/stat") == *") Z "* ]]
}

# The agent learns the CPU quota from its control group: --cpu-speed stays 1. Root is the same
# person on every node here, so root's jobs are accepted.
agent_up() { # NODE MB_PER_S BITS_PER_S
	local dir=$STATE/$1 scope=cgroup=$MARK/$1 peers pid
	local -a flags=() more
	peers=$(for k in $(seq "$NODES"); do [ "n$k" = "$1" ] || node_address "n$k"; done | paste -sd, -)
	[ -z "$peers" ] || flags+=(--peers "$peers")
	if [ -s "$dir/disk/loop" ]; then
		scope+=,disk=$(slurp "$dir/disk/loop"),mount=$DISK_DIR
		flags+=(--disk-mb-per-s "$2")
	fi
	# More options for the agents, as one text of words.
	read -ra more <<<"${AGENT_OPTIONS-}"
	flags+=("${more[@]}")
	(
		cgroup_enter "$MARK/$1/agent" || exit 1
		exec setsid nsenter "--net=$dir/ns/net" "--mount=$dir/ns/mnt" "--uts=$dir/ns/uts" \
			"$BUILD/iocomd" --name "$1" --listen "$(node_address "$1")" --port "$PORT" \
			--period "${PERIOD:-1}" --run-dir "$dir/run" --state-dir "$dir/state" \
			--munge-socket "$dir/munge/socket" --scope "$scope" --allow-root yes \
			--network-mb-per-s "$(awk -v b="$3" 'BEGIN { print b / 8e6 }')" \
			--shim "$BUILD/iocom-shim" "${flags[@]}" </dev/null >"$dir/agent.log" 2>&1
	) &
	pid=$!
	echo "$pid" >"$dir/agent.pid"
	wait_until 600 agent_answers "$pid" "$dir/run/iocom.sock"
	listens "$pid" "$dir/run/iocom.sock" && return
	tail -n 15 "$dir/agent.log" | sed "s/^/  $1: /" >&2
	die "$1: its agent does not answer on $dir/run/iocom.sock; above is the end of its log"
}

node_up() { # NODE MB_PER_S CORES MEGABYTES BITS_PER_S
	mkdir -p "$STATE/$1/run"
	mkdir -p "$STATE/$1/state"
	chmod 700 "$STATE/$1/state"
	cgroup_node "$1" "$3" "$4"
	namespaces_up "$1"
	link_up "$1" "$5"
	munged_up "$1"
	[ "$2" = 0 ] || disk_up "$1" "$2"
}

agent_hears_all() { # NODE: whether its matrix has every node
	[ "$("$BUILD/iocom" nodes --json --run-dir "$STATE/$1/run" 2>/dev/null |
		grep -o '"alive":true' | wc -l)" -ge "$NODES" ]
}
