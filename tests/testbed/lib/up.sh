# shellcheck shell=bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# testbed up

NODES="" NET=1gbit DISK_SIZE_MB=1024 AGENTS=yes
DISKS=() CPUS=() MEMS=() NETS=()

# fill NAME LIST PATTERN WHAT: splits LIST into the array NAME, one value a node.
fill() {
	local -n values=$1
	local value
	IFS=, read -ra values <<<"$2"
	[[ -n $2 && $2 != *, ]] || usage_error "$4"
	[ ${#values[@]} -le "$NODES" ] || usage_error "$4: ${#values[@]} values for $NODES nodes"
	for value in "${values[@]}"; do
		[[ $value =~ ^($3)$ ]] || usage_error "$4, not '$value'"
	done
	while [ ${#values[@]} -lt "$NODES" ]; do
		values+=("${values[-1]}")
	done
}

up_parse() {
	local disk=20 cpu="" mem=1000 option value
	local number='0*[1-9][0-9]{0,6}(\.[0-9]{1,6})?|0*\.0*[1-9][0-9]*|0+\.0*[1-9][0-9]{0,5}'
	while [ $# -gt 0 ]; do
		option=${1%%=*}
		case $option in
		--no-agents)
			AGENTS=no
			shift
			continue
			;;
		-h | --help) usage && exit 0 ;;
		--nodes | --disk | --cpu | --mem | --net | --disk-size) ;;
		*) usage_error "up: unknown option '$1'" ;;
		esac
		if [ "$option" != "$1" ]; then
			value=${1#*=}
			shift
		else
			[ $# -ge 2 ] || usage_error "up: $1 needs a value"
			value=$2
			shift 2
		fi
		case $option in
		--nodes) NODES=$value ;;
		--disk) disk=$value ;;
		--cpu) cpu=$value ;;
		--mem) mem=$value ;;
		--net) NET=$value ;;
		--disk-size) DISK_SIZE_MB=$value ;;
		esac
	done
	[ -n "$NODES" ] || usage_error "up: --nodes N is missing"
	if [[ ! $NODES =~ ^[1-9][0-9]?$ ]] || [ "$NODES" -gt 64 ]; then
		usage_error "up: --nodes takes a number from 1 to 64, not '$NODES'"
	fi
	if [[ ! $DISK_SIZE_MB =~ ^[1-9][0-9]{1,6}$ ]] || [ "$DISK_SIZE_MB" -lt 32 ]; then
		usage_error "up: --disk-size takes megabytes, at least 32, not '$DISK_SIZE_MB'"
	fi
	fill NETS "$NET" '[^,]*' "up: --net takes a rate such as 100mbit or 1gbit (100kbit to 100gbit)"
	for value in "${NETS[@]}"; do
		[ -n "$(net_bits "$value")" ] ||
			usage_error "up: --net takes a rate such as 100mbit or 1gbit (100kbit to 100gbit), not '$value'"
	done
	: "${cpu:=$(awk -v n="$NODES" -v c="$(nproc)" 'BEGIN { q = 0.9 * c / n; printf "%.3g", q < 1 ? q : 1 }')}"
	fill DISKS "$disk" "$number|0" "up: --disk takes MB/s"
	fill CPUS "$cpu" "$number" "up: --cpu takes cores"
	fill MEMS "$mem" '[1-9][0-9]{0,6}' "up: --mem takes megabytes"
	[[ ${PERIOD:-1} =~ ^($number)$ ]] || usage_error "up: PERIOD takes seconds, not '$PERIOD'"
}

# One value if all links are alike, as a caller of `status` may read it.
up_nets() {
	local one
	one=$(printf '%s\n' "${NETS[@]}" | sort -u)
	[[ $one != *$'\n'* ]] || one=$(IFS=, && echo "${NETS[*]}")
	echo "$one"
}
up_shape() {
	printf '%s\n' "nodes=$NODES" "disk=$(IFS=, && echo "${DISKS[*]}")" "cpu=$(IFS=, && echo "${CPUS[*]}")" \
		"mem=$(IFS=, && echo "${MEMS[*]}")" "net=$(up_nets)" "disk-size=$DISK_SIZE_MB" "agents=$AGENTS" \
		"period=${PERIOD:-1}"
}

# Checks for everything that could be missing before it makes anything.
up_check() {
	local kernel
	need_root up
	[[ $STATE == /* && $STATE != *[[:space:]\"\'\\]* ]] || die "IOCOM_TESTBED_DIR must be an absolute path without spaces: '$STATE'"
	need_tools ip:iproute2 tc:iproute2 nsenter:util-linux unshare:util-linux losetup:mount flock:util-linux \
		munged:munge awk:mawk
	if [[ ${DISKS[*]} =~ [1-9] ]]; then
		need_tools nbdkit:nbdkit nbdfuse:libnbd-bin mkfs.ext4:e2fsprogs
		for kernel in fuse loop bfq; do
			modprobe -q "$kernel" 2>/dev/null
		done
		[ -c /dev/fuse ] || die "no /dev/fuse for the emulated disks: load the fuse module, or use --disk 0"
		[ -c /dev/loop-control ] || die "no /dev/loop-control for the emulated disks: load the loop module, or use --disk 0"
		disk_build
	fi
	if [ "$AGENTS" = yes ] && { [ ! -x "$BUILD/iocomd" ] || [ ! -x "$BUILD/iocom-shim" ]; }; then
		die "no $BUILD/iocomd and iocom-shim: run make, or use --no-agents"
	fi
}

# Prints what is damaged in a running testbed, as a sentence; nothing if it is whole.
up_damage() {
	local k dir
	for k in $(seq "$NODES"); do
		dir=$STATE/n$k
		if ! running "$dir/munge/pid"; then
			echo "n$k's munged is gone"
		elif [ -s "$dir/disk/loop" ] && ! { running "$dir/disk/nbdkit.pid" && running "$dir/disk/nbdfuse.pid"; }; then
			echo "n$k's disk is gone"
		elif [ "$AGENTS" = yes ] && ! running "$dir/agent.pid"; then
			echo "n$k's agent is gone"
		fi
	done
}

# Returns 0 if it is up as wanted, and 1 if there is none now. Exits if it is up with other
# options.
up_already() {
	local damage
	[ -n "$(down_remains)" ] || return 1
	damage=$(down_elsewhere)
	[ -z "$damage" ] || die "a testbed with state directory $damage is up: run $SELF down first"
	if [ ! -s "$STATE/shape" ]; then
		echo "testbed: removing the remains of an interrupted testbed"
		down_all || exit 1
		return 1
	fi
	[ "$(cat "$STATE/shape")" = "$(up_shape)" ] ||
		die "a testbed of another shape is up ($(paste -sd' ' "$STATE/shape")): run $SELF down first"
	damage=$(up_damage)
	[ -z "$damage" ] || die "a testbed is up but damaged ($(paste -sd';' <<<"$damage" | sed 's/;/, /g')): run $SELF down first"
}

up_state() {
	local k
	mkdir -p "$STATE" || die "cannot make $STATE"
	[ -z "$(ls -A "$STATE")" ] || die "$STATE is not empty and not a testbed's: remove it, or set IOCOM_TESTBED_DIR"
	# Private, because a mount namespace's file cannot be bound on a shared mount.
	if ! mount -t tmpfs -o mode=0755,size=512m "$MARK" "$STATE" || ! mount --make-private "$STATE"; then
		die "cannot mount a tmpfs on $STATE"
	fi
	mkdir -p "$DISK_DIR" || die "cannot make $DISK_DIR"
	(umask 077 && head -c 128 /dev/urandom >"$STATE/munge.key" && chmod 400 "$STATE/munge.key") ||
		die "cannot write $STATE/munge.key"
	{
		echo "127.0.0.1 localhost"
		for k in $(seq "$NODES"); do
			echo "$(node_address "n$k") n$k"
		done
	} >"$STATE/hosts"
}

# in_parallel COMMAND: runs `COMMAND k` for every node at once; fails if one fails.
in_parallel() {
	local k pid failed=0
	local -a pids=()
	for k in $(seq "$NODES"); do
		"$1" "$k" &
		pids+=($!)
	done
	for pid in "${pids[@]}"; do
		wait "$pid" || failed=1
	done
	return $failed
}
up_node() { node_up "n$1" "${DISKS[$1 - 1]}" "${CPUS[$1 - 1]}" "${MEMS[$1 - 1]}" "$(net_bits "${NETS[$1 - 1]}")"; }
up_agent() { agent_up "n$1" "${DISKS[$1 - 1]}" "$(net_bits "${NETS[$1 - 1]}")"; }
up_heard() {
	wait_until 600 agent_hears_all "n$1" ||
		echo "testbed: n$1 has not heard of every other node yet" >&2
}

up_failed() {
	local status=$?
	trap '' INT TERM HUP
	trap - EXIT
	cgroup_leave
	down_all
	exit $((status == 0 ? 1 : status))
}

up_all() {
	umask 022
	trap up_failed EXIT
	trap 'exit 130' INT TERM HUP
	cgroup_remember
	cgroup_setup "$NODES"
	cgroup_enter "$MARK/infra" || die "cannot enter the control groups of $MARK"
	up_state
	bridge_up
	in_parallel up_node || exit 1
	if [ "$AGENTS" != no ]; then
		in_parallel up_agent || exit 1
		in_parallel up_heard
	fi
	{ up_shape >"$STATE/shape.new" && mv "$STATE/shape.new" "$STATE/shape"; } || die "cannot write $STATE/shape"
	cgroup_leave
	trap - EXIT INT TERM HUP
}

# The daemons outlive their caller, so they must not hold its pipes open.
close_inherited() {
	local fd
	for fd in "/proc/$$/fd"/*; do
		fd=${fd##*/}
		[ "$fd" -le 2 ] || [ "$fd" -ge 255 ] || eval "exec $fd<&-"
	done
}

up_main() {
	local LC_ALL=C began
	began=$EPOCHREALTIME
	close_inherited
	up_parse "$@"
	up_check
	cgroup_find
	down_not_inside
	take_lock 300
	if up_already; then
		echo "testbed: already up with this shape ($NODES nodes)"
		return
	fi
	up_all 9<&-
	echo "testbed: $NODES nodes up in $(awk -v a="$began" -v b="$EPOCHREALTIME" 'BEGIN { printf "%.1f", b - a }') s (n1 to n$NODES; $SELF exec n1 -- COMMAND)"
}
