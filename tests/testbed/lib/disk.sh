# shellcheck shell=bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# A node's disk: nbdkit (disk.c: one request at a time, bytes / speed each) -> nbdfuse
# -> loop device with direct I/O (no second page cache) -> ext4.

# Builds the plugin here, so that the testbed needs nothing from `make`.
disk_build() {
	local source=$ROOT/tests/testbed/disk.c cc
	DISK_PLUGIN=$BUILD/tests/testbed-disk.so
	[ "$DISK_PLUGIN" -nt "$source" ] && return
	read -ra cc <<<"${CC:-gcc}" # one or more words, as in make
	need_tools "${cc[0]}:gcc"
	[ -e /usr/include/nbdkit-plugin.h ] ||
		die "nbdkit-plugin.h is not installed: apt-get install nbdkit-plugin-dev"
	mkdir -p "$BUILD/tests"
	if ! "${cc[@]}" -O2 -std=gnu17 -Wall -Wextra -Werror -D_GNU_SOURCE -fPIC -shared \
		-o "$DISK_PLUGIN.$$" "$source" || ! mv "$DISK_PLUGIN.$$" "$DISK_PLUGIN"; then
		rm -f "$DISK_PLUGIN.$$"
		die "cannot build $DISK_PLUGIN"
	fi
}

# Sets up a single server with a queue: at most one request is in the driver, so that the time
# from issue to completion is the service time at any queue depth. BFQ's strict mode does that;
# small budgets let readers and writers alternate. Without BFQ up to four requests are in flight,
# and the time in the driver includes their queueing.
disk_queue() { # loopN
	local queue=/sys/block/$1/queue
	if { echo bfq >"$queue/scheduler"; } 2>/dev/null; then
		echo 1 >"$queue/iosched/strict_guarantees"
		echo 0 >"$queue/iosched/slice_idle"
		echo 0 >"$queue/iosched/low_latency"
		echo 256 >"$queue/iosched/max_budget"
	else
		{ echo mq-deadline >"$queue/scheduler"; } 2>/dev/null
		{ echo 4 >"$queue/nr_requests"; } 2>/dev/null
	fi
	echo 128 >"$queue/max_sectors_kb"
}

disk_serve() { # NODE DIRECTORY
	local log=$2/log
	nbdkit -U "$2/socket" -P "$2/nbdkit.pid" -t 1 "$DISK_PLUGIN" \
		"size=$((DISK_SIZE_MB * 1000000 / 4096 * 4096))" "speed-file=$2/speed" </dev/null >>"$log" 2>&1 ||
		die "$1: nbdkit did not start: $(tail -n 1 "$log")"
	setsid nbdfuse -C 1 -P "$2/nbdfuse.pid" "$2/mount/$MARK-$1" --unix "$2/socket" \
		</dev/null >>"$log" 2>&1 &
	wait_until 300 test -s "$2/mount/$MARK-$1" || die "$1: nbdfuse did not start: $(tail -n 1 "$log")"
}

# The shortest of five readings of 32 requests of BYTES, in ns a request.
disk_read_ns() { # LOOP BYTES
	local from least=0 ns
	for _ in 1 2 3 4 5; do
		from=$(date +%s%N)
		dd "if=$1" of=/dev/null "bs=$2" count=32 iflag=direct 2>/dev/null || return 1
		ns=$((($(date +%s%N) - from) / 32))
		[ "$least" -gt 0 ] && [ "$ns" -ge "$least" ] || least=$ns
	done
	echo "$least"
}

# Measures how long a request is under way outside the disk: the part that all have, and that of
# each byte (disk.c). At a speed of 100 MB/s, because a disk that never sleeps is quicker to answer.
disk_turnaround() { # DIRECTORY LOOP
	local small large
	echo 100 >"$1/speed"
	small=$(disk_read_ns "$2" 4096) && large=$(disk_read_ns "$2" 131072) || return 1
	awk -v small="$small" -v large="$large" 'BEGIN {
		small -= 4096 * 10; large -= 131072 * 10
		slope = (large - small) / (131072 - 4096); if (slope < 0) slope = 0
		print int(small - slope * 4096), slope }' >"$1/speed.turnaround"
	echo 0 >"$1/speed"
}

# Makes the disk at full speed, mounts it in the node, then slows it down.
disk_up() { # NODE MB_PER_S
	local dir=$STATE/$1/disk loop
	mkdir -p "$dir/mount"
	echo 0 >"$dir/speed"
	disk_serve "$1" "$dir"
	loop=$(losetup --find --show --direct-io=on "$dir/mount/$MARK-$1" 2>>"$dir/log") ||
		die "$1: no loop device is to be had ($(tail -n 1 "$dir/log")): detach one, see losetup -a"
	[ "$(slurp "/sys/block/${loop#/dev/}/loop/dio")" = 1 ] ||
		die "$1: the kernel refuses direct I/O on $loop: its disk would be cached twice"
	disk_queue "${loop#/dev/}"
	disk_turnaround "$dir" "$loop" || die "$1: its disk cannot be read: $(tail -n 1 "$dir/log")"
	mkfs.ext4 -q -F -m 0 -N 16384 -J size=4 -E nodiscard,lazy_itable_init=0,lazy_journal_init=0 \
		"$loop" >>"$dir/log" 2>&1 || die "$1: mkfs.ext4 $loop failed: $(tail -n 1 "$dir/log")"
	# shellcheck disable=SC2016
	nsenter "--mount=$STATE/$1/ns/mnt" sh -c '
		mount -t ext4 -o noatime "$0" "$1" && rmdir "$1/lost+found" && chmod 1777 "$1" && sync -f "$1"' \
		"$loop" "$DISK_DIR" >>"$dir/log" 2>&1 || die "$1: cannot mount $loop: $(tail -n 1 "$dir/log")"
	echo "$2" >"$dir/speed"
	echo "${loop#/dev/}" >"$dir/loop"
}
