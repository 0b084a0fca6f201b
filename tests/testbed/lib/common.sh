# shellcheck shell=bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# Functions that every command of the testbed uses.

die() {
	printf 'testbed: %s\n' "$*" >&2
	exit 1
}

usage_error() {
	printf 'testbed: %s; see testbed --help\n' "$*" >&2
	exit 2
}

need_root() {
	[ "$EUID" -eq 0 ] || die "$1 needs root (namespaces, control groups, mounts): use sudo"
}

# Each tool with the Debian package that has it.
need_tools() {
	local pair
	for pair in "$@"; do
		command -v "${pair%%:*}" >/dev/null ||
			die "${pair%%:*} is not installed: apt-get install ${pair##*:}"
	done
}

node_address() { echo "10.77.0.${1#n}"; }

# wait_until TENTHS COMMAND...: repeats the command until it succeeds; fails after TENTHS of a
# second.
wait_until() {
	local tries=$(($1 * 5))
	shift
	until "$@"; do
		[ $((tries -= 1)) -gt 0 ] || return 1
		sleep 0.02
	done
}

# Reads the first line of a file without starting a process.
slurp() {
	local line=""
	{ read -r line <"$1"; } 2>/dev/null
	printf '%s' "$line"
}

# shape KEY: a value of the running testbed ("" if there is none or it is half up).
shape() {
	local line
	[ -r "$STATE/shape" ] || return 0
	while read -r line; do
		[ "${line%%=*}" != "$1" ] || printf '%s' "${line#*=}"
	done <"$STATE/shape"
}

# One `up` or `down` at a time on this machine.  Daemons must not inherit fd 9.
take_lock() { # SECONDS
	exec 9</sys/fs/cgroup || die "no /sys/fs/cgroup on this machine: mount the control groups"
	flock -w "$1" 9 || die "another testbed command is still at work: try again when it has ended"
}

# Prints the mount points of this testbed, the deepest last: each tmpfs of ours and all below it.
our_mounts() {
	awk -v mark="$MARK" '
		{ point[NR] = $5; for (i = 7; i <= NF; i++) if ($i == "-") break
		  if ($(i + 1) == "tmpfs" && $(i + 2) == mark) base[$5] = 1 }
		END { for (n = 1; n <= NR; n++) for (b in base)
			if (point[n] == b || index(point[n], b "/") == 1) { print point[n]; break } }
	' /proc/self/mountinfo
}

# Prints the loop devices whose backing file is one of our disks, as /dev/loopN.
our_loops() {
	local file
	for file in /sys/block/loop*/loop/backing_file; do
		[[ $(slurp "$file") != */$MARK-n* ]] || echo "/dev/$(basename "${file%/loop/backing_file}")"
	done
}
