# shellcheck shell=bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# testbed down: finds everything by its fixed names, removes it in the reverse order of `up`, and
# says what it could not remove.

# Succeeds if the process named by a pid file lives and is one of ours.
running() { # PIDFILE
	local pid
	pid=$(slurp "$1")
	[[ $pid =~ ^[0-9]+$ ]] && grep -qs "/$MARK/" "/proc/$pid/cgroup" &&
		[[ $(slurp "/proc/$pid/stat") != *") Z "* ]]
}

# Prints what exists of a testbed, one thing a line.
down_remains() {
	our_mounts | sed 's/^/mount /'
	our_loops | sed 's/^/loop device /'
	cgroup_tops | sed 's/^/control group /'
}

# Prints the state directory of a testbed that is up, but not in $STATE.
down_elsewhere() {
	local point
	for point in $(our_mounts); do
		[ "$point" = "$STATE" ] || [ ! -s "$point/shape" ] || echo "$point"
	done
}

# The process that kills the testbed must not be inside it.
down_not_inside() {
	! grep -qs "/$MARK/" /proc/self/cgroup ||
		die "this shell runs on a node of the testbed: use one outside of it"
}

# Prints the processes in a node's network that left its control groups.
down_strays() {
	local net inode
	for net in $(our_mounts | grep -E '/net$'); do
		inode=$(stat -Lc %i "$net") || continue
		find /proc/[0-9]*/ns/net -lname "net:\\[$inode\\]" 2>/dev/null | cut -d/ -f3
	done
}

down_no_agents() {
	local node
	for node in $(cgroup_nodes); do
		cgroup_is_empty "$MARK/$node/agent" || return 1
	done
}

down_processes() {
	local node pid
	# The agents get a second to clean up.
	for node in $(cgroup_nodes); do
		cgroup_signal TERM "$MARK/$node/agent"
	done
	wait_until 10 down_no_agents
	for node in $(cgroup_nodes); do
		cgroup_kill "$MARK/$node"
	done
	for pid in $(down_strays); do
		[ "$pid" -eq $$ ] || kill -KILL "$pid" 2>/dev/null
	done
}

# Sync while the disks still work, at full speed, so that dirty pages are written quickly.
down_disks() {
	local file loop
	for file in $(our_mounts | grep -E '/ns/mnt$'); do
		[ ! -e "${file%/ns/mnt}/disk/speed" ] || echo 0 >"${file%/ns/mnt}/disk/speed"
		[ ! -e "${file%/ns/mnt}/disk/mount" ] ||
			timeout -k 1 60 nsenter "--mount=$file" umount "$DISK_DIR" 2>/dev/null
	done
	for loop in $(our_loops); do
		losetup --detach "$loop" 2>/dev/null
	done
	wait_until 20 down_no_loops
}
down_no_loops() { [ -z "$(our_loops)" ]; }

down_mounts() {
	local point
	for point in $(our_mounts | tac); do
		umount "$point" 2>/dev/null || umount --lazy "$point" 2>/dev/null
		rmdir "$point" 2>/dev/null
	done
	rmdir "$STATE" 2>/dev/null
	mountpoint -q "$DISK_DIR" || rmdir "$DISK_DIR" 2>/dev/null
	[ -z "$(our_mounts)" ]
}

down_all() {
	local remains
	down_processes
	down_disks
	cgroup_kill "$MARK"
	down_mounts
	# A loop device in a namespace that ended only now can be released here.
	for remains in $(our_loops); do
		losetup --detach "$remains" 2>/dev/null
	done
	wait_until 300 down_no_loops
	wait_until 300 cgroup_remove
	remains=$(down_remains)
	[ -z "$remains" ] && return
	printf 'testbed: could not remove:\n%s\n' "$remains" >&2
	return 1
}

down_main() {
	[ $# -eq 0 ] || usage_error "down takes no arguments"
	need_root down
	need_tools nsenter:util-linux losetup:mount flock:util-linux awk:mawk
	cgroup_find
	down_not_inside
	if [ -z "$(down_remains)" ]; then
		echo "testbed: nothing is up"
		return
	fi
	# Kills an `up` that is still at work, or its orphans: they are in the infra group.
	[ -s "$STATE/shape" ] || cgroup_kill "$MARK"
	take_lock 300
	down_all 9<&- || exit 1
	echo "testbed: down"
}
