# shellcheck shell=bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# Control groups: the same relative path in the cgroup2 hierarchy and, on hybrid
# machines, in the v1 hierarchies of memory, cpu, cpuacct and pids.

CG_V2=""     # mount point of cgroup2
CG_ROOTS=()  # all hierarchies in use, cgroup2 first
CG_ALL=()    # every hierarchy: an agent that a test starts makes its groups in all of them
CG_MEMORY="" # where memory limits go: a v1 mount point, or CG_V2
CG_CPU=""

cgroup_find() {
	local line super point controller
	local -a fields
	while read -r line; do
		super=${line##* - }
		read -ra fields <<<"$line"
		point=${fields[4]}
		case $super in
		cgroup2\ *) [ -n "$CG_V2" ] || CG_V2=$point ;;
		cgroup\ *)
			CG_ALL+=("$point")
			for controller in memory cpu cpuacct pids; do
				[[ ,${super##* }, == *,$controller,* ]] || continue
				[ "$controller" != memory ] || CG_MEMORY=$point
				[ "$controller" != cpu ] || CG_CPU=$point
				[[ " ${CG_ROOTS[*]-} " == *" $point "* ]] || CG_ROOTS+=("$point")
			done
			;;
		esac
	done <<<"$(cat /proc/self/mountinfo)" # in one read: a mount may change lines in between
	[ -n "$CG_V2" ] || die "no cgroup2 hierarchy is mounted: mount -t cgroup2 none /sys/fs/cgroup/unified"
	CG_ROOTS=("$CG_V2" ${CG_ROOTS[@]+"${CG_ROOTS[@]}"})
	CG_ALL=("$CG_V2" ${CG_ALL[@]+"${CG_ALL[@]}"})
	: "${CG_MEMORY:=$CG_V2}" "${CG_CPU:=$CG_V2}"
}

# Moves the calling (sub)shell into the group PATH of every hierarchy.
cgroup_enter() {
	local root
	for root in "${CG_ROOTS[@]}"; do
		{ echo "$BASHPID" >"$root/$1/cgroup.procs"; } 2>/dev/null || return 1
	done
}

# Moves back to the groups where we started. `up` itself works inside the infra group, so that
# `down` finds it and its children after a crash.
CG_ORIGIN=()
cgroup_remember() {
	local line root controllers
	while IFS=: read -r _ controllers line; do
		for root in "${CG_ROOTS[@]}"; do
			if [ -z "$controllers" ]; then
				[ "$root" != "$CG_V2" ] || CG_ORIGIN+=("$root$line")
			elif [ "$root" != "$CG_V2" ] && [[ ,$controllers, == *,${root##*/},* || ${root##*/} == "$controllers" ]]; then
				CG_ORIGIN+=("$root$line")
			fi
		done
	done </proc/self/cgroup
}
cgroup_leave() {
	local group
	for group in "${CG_ROOTS[@]}" ${CG_ORIGIN[@]+"${CG_ORIGIN[@]}"}; do
		{ echo "$$" >"$group/cgroup.procs"; } 2>/dev/null
	done
}

# Offers memory, cpu and pids to the children of a v2 group, if v2 has them.
cgroup_offer() { # DIRECTORY
	local controller
	for controller in memory cpu pids; do
		[[ " $(slurp "$1/cgroup.controllers") " != *" $controller "* ]] ||
			{ echo "+$controller" >"$1/cgroup.subtree_control"; } 2>/dev/null || return 1
	done
}

cgroup_write() { # FILE VALUE
	{ echo "$2" >"$1"; } 2>/dev/null || die "cannot write $2 to $1: $(strerror "$1" "$2")"
}
strerror() { { echo "$2" >"$1"; } 2>&1 | sed 's/.*: //'; }

# Makes the testbed's own group with infra/ in it.
cgroup_setup() { # NODES
	local root
	for root in "${CG_ROOTS[@]}"; do
		mkdir -p "$root/$MARK/infra" || die "cannot make control groups in $root"
		if [ -e "$root/$MARK/memory.use_hierarchy" ] && [ "$(slurp "$root/$MARK/memory.use_hierarchy")" != 1 ]; then
			cgroup_write "$root/$MARK/memory.use_hierarchy" 1
		fi
	done
	if ! cgroup_offer "$CG_V2" || ! cgroup_offer "$CG_V2/$MARK"; then
		die "cgroup2 at $CG_V2 does not give its controllers away: run the testbed outside of a container"
	fi
	[ -e "$CG_MEMORY/$MARK/infra/memory.limit_in_bytes" ] || [ -e "$CG_MEMORY/$MARK/infra/memory.max" ] ||
		die "the kernel has no memory control groups: boot it with cgroup_enable=memory"
	# The disks must not wait for other programs of the machine or for the jobs.
	if [ -e "$CG_CPU/$MARK/cpu.shares" ]; then
		cgroup_write "$CG_CPU/$MARK/cpu.shares" $((1024 * ($1 + 4)))
		cgroup_write "$CG_CPU/$MARK/infra/cpu.shares" 8192
	elif [ -e "$CG_CPU/$MARK/cpu.weight" ]; then
		cgroup_write "$CG_CPU/$MARK/cpu.weight" $((100 * ($1 + 4) > 10000 ? 10000 : 100 * ($1 + 4)))
		cgroup_write "$CG_CPU/$MARK/infra/cpu.weight" 800
	fi
}

# Makes a node's groups with its limits, which the whole node shares.
cgroup_node() { # NODE CORES MEGABYTES
	local root child quota period=20000
	for root in "${CG_ROOTS[@]}"; do
		mkdir -p "$root/$MARK/$1" || die "cannot make control groups in $root"
	done
	cgroup_offer "$CG_V2/$MARK/$1" || die "cannot enable controllers in $CG_V2/$MARK/$1"
	for root in "${CG_ROOTS[@]}"; do
		for child in agent exec jobs; do
			mkdir -p "$root/$MARK/$1/$child" || die "cannot make control groups in $root"
		done
	done
	if [ -e "$CG_MEMORY/$MARK/$1/memory.limit_in_bytes" ]; then
		cgroup_write "$CG_MEMORY/$MARK/$1/memory.limit_in_bytes" $(($3 * 1000000))
	else
		cgroup_write "$CG_MEMORY/$MARK/$1/memory.max" $(($3 * 1000000))
	fi
	quota=$(awk -v c="$2" -v p=$period 'BEGIN { q = int(c * p + 0.5); print q < 1000 ? 1000 : q }')
	if [ -e "$CG_CPU/$MARK/$1/cpu.cfs_quota_us" ]; then
		cgroup_write "$CG_CPU/$MARK/$1/cpu.cfs_period_us" $period
		cgroup_write "$CG_CPU/$MARK/$1/cpu.cfs_quota_us" "$quota"
	elif [ -e "$CG_CPU/$MARK/$1/cpu.max" ]; then
		cgroup_write "$CG_CPU/$MARK/$1/cpu.max" "$quota $period"
	else
		die "the kernel has no CPU quota (CONFIG_CFS_BANDWIDTH)"
	fi
}

# Prints the names of the nodes that have a group anywhere.
cgroup_nodes() {
	local root
	for root in "${CG_ROOTS[@]}"; do
		[ ! -d "$root/$MARK" ] || find "$root/$MARK" -mindepth 1 -maxdepth 1 -name 'n[0-9]*' -printf '%f\n'
	done | sort -u
}

# Prints our top groups that exist, one a line.
cgroup_tops() {
	local root
	for root in "${CG_ALL[@]}"; do
		[ ! -d "$root/$MARK" ] || echo "$root/$MARK"
	done
}

# Prints the processes in the group PATH and below, in any hierarchy.
cgroup_pids() { # PATH
	local root
	for root in "${CG_ALL[@]}"; do
		[ ! -d "$root/$1" ] || find "$root/$1" -name cgroup.procs -exec cat {} + 2>/dev/null
	done | sort -un
}

cgroup_is_empty() { [ -z "$(cgroup_pids "$1")" ]; }

cgroup_signal() { # SIGNAL PATH
	local pid
	for pid in $(cgroup_pids "$2"); do
		[ "$pid" -le 1 ] || [ "$pid" -eq $$ ] || kill "-$1" "$pid" 2>/dev/null
	done
}

# Kills until no process is left: the next round catches a fork between two rounds.
cgroup_kill() { # PATH
	local tries=3000
	until cgroup_is_empty "$1"; do
		{ echo 1 >"$CG_V2/$1/cgroup.kill"; } 2>/dev/null
		cgroup_signal KILL "$1"
		[ $((tries -= 1)) -gt 0 ] || return 1
		sleep 0.02
	done
}

cgroup_remove() {
	local root
	for root in "${CG_ALL[@]}"; do
		[ ! -d "$root/$MARK" ] || find "$root/$MARK" -depth -type d -exec rmdir {} + 2>/dev/null
	done
	[ -z "$(cgroup_tops)" ]
}
