#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# How long a job that changes its memory is frozen when it moves, with and without sending its memory
# while it runs (moves_precopy), between two agents of a test machine whose kernel tracks dirty pages.
# An ordinary user's job goes to and fro, with and without in turn; `make bench-precopy` prints the
# medians.  In the end the job looks at all of its memory.  From the kernel's command line: iocom_mb (the
# job's size), iocom_kb (what it changes in a second), iocom_rounds (pairs).
#
# What counts is how fast it changes beside how fast it is sent.  The goal is for 5 MB/s over 1 Gbit/s,
# 4 or 5 in a hundred; in an emulated machine about 4.5 MB/s are sealed, sent and opened, and 200 kB/s
# are as much of that.  The table says what it was.  What pre-copy cannot shorten is the restore at the
# target, which reads all of the memory from the images while the job is frozen; emulated, and on a busy
# machine, that is most of what is left.
set -u
build=${IOCOM_BUILD:-/build}
criu=/criu/criu
dir=/tmp/migrate
groups=/sys/fs/cgroup/migrate
limit=700
# shellcheck source=tests/vm/movers.sh
. /tests/vm/movers.sh
word() { sed -n "s/.* iocom_$1=\([0-9]*\).*/\1/p" /proc/cmdline; }
mb=$(word mb) kb=$(word kb) pairs=$(word rounds)
precopy() { # yes|no: both agents read it
	mkdir -p /etc/iocom
	printf '[iocom]\nmoves_precopy = %s\n' "$1" >/etc/iocom/iocom.conf
	# shellcheck disable=SC2086
	kill -HUP $pids
	sleep 1
}
number() { sed -n "s/.*\"$1\": *\([0-9]*\).*/\1/p" $dir/moved | head -n 1; }
mkdir -p /etc/iocom
printf '[iocom]\n' >/etc/iocom/iocom.conf
agent n1 20000 20005
agent n2 20005 20000
soon 120 both_know || {
	echo "not ok 1 - two agents hear of each other"
	exit 1
}
job=$(on n1 anna run --node n1 --detach --migratable -- /tests/tools/dirty "$mb" "$kb")
sleep $((10 + mb / 16)) # until its memory is filled
at=n1
move() { # yes|no
	precopy "$1"
	to=n2
	[ $at = n1 ] || to=n1
	tries=0
	until on n1 anna migrate --json "$job" $to >$dir/moved 2>&1; do
		sed 's/^/# /' $dir/moved
		tries=$((tries + 1))
		[ $tries -lt 3 ] || return 1
		sleep 10
	done
	at=$to
	echo "$1 $(number frozen_ms) $(number dump_ms) $(number bytes)" | tee -a $dir/moves | sed 's/^/# /'
	sleep 5
}
: >$dir/moves
for pair in $(seq "$pairs"); do
	if [ $((pair % 2)) -eq 1 ]; then
		{ move no && move yes; } || break
	else
		{ move yes && move no; } || break
	fi
done
grep -h "held to move" $dir/n?/log | sed 's/^/# /'
on n1 anna kill -TERM "$job" >/dev/null
on n1 anna attach "$job" >$dir/out 2>&1
tail -n 3 $dir/out | sed 's/^/# job: /'
awk -v mb="$mb" -v kb="$kb" '
	function median(mode, i, j, t) {
		for (i = 1; i <= n[mode]; i++) for (j = i + 1; j <= n[mode]; j++)
			if (at[mode, j] < at[mode, i]) { t = at[mode, i]; at[mode, i] = at[mode, j]; at[mode, j] = t }
		return at[mode, int((n[mode] + 1) / 2)]
	}
	{ at[$1, ++n[$1]] = $2 }
	$1 == "no" { bytes += $4; ms += $2 - $3 }
	END {
		if (ms) printf "# it is sent with %.1f MB/s, and changes %.1f MB/s: %.1f %% of that\n", bytes / ms / 1e3, kb / 1e3, 100 * kb * ms / bytes
		if (!n["yes"] || !n["no"]) exit 1
		yes = median("yes"); no = median("no")
		printf "# %8s %6s %18s %18s %8s %6s\n", "job MB", "pairs", "frozen ms without", "with pre-copy", "ratio", "goal"
		printf "# %8d %6d %18d %18d %8.3f %6.2f\n", mb, n["yes"], no, yes, yes / no, 0.2
	}' $dir/moves || echo "not ok 1 - it moves in both ways"
if grep -q '^whole$' $dir/out; then echo "ok 1 - it moved $(wc -l <$dir/moves) times, and its memory is whole"; else
	echo "not ok 1 - its memory is whole"
	tail -n 5 $dir/n?/log | sed 's/^/# log: /'
fi
# shellcheck disable=SC2086
kill $pids
wait
kill "$(cat $dir/munge/pid)"
echo "1..1"
