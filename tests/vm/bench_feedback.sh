#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# What the feedback controller does to a small mix of real jobs, on and off in turn, on pure cgroup v2:
# a node of 400 MiB with a disk of 20 MB/s and swap on it; jobs that churn memory that just fits, while
# others read files again and again. `IOCOM_VM_LIMIT=1500 IOCOM_VM_SECONDS=1600 bash tests/vm/guest.sh
# build trixie bench_feedback` prints the slowdown of each job (wall time over that alone), each round's mean, what the disk
# read and what was swapped in, which do not depend on how fast this machine is.
set -u
build=${IOCOM_BUILD:-/build}
work=/tests/tools/work
node=/sys/fs/cgroup/node
export IOCOM_RUN_DIR=/run/iocom
mkdir -p $node /etc/iocom
for file in one two big; do
	dd if=/dev/zero of=/var/tmp/$file bs=1M count="$([ $file = big ] && echo 150 || echo 40)" 2>/dev/null
done
dd if=/dev/zero of=/var/tmp/swap bs=1M count=400 2>/dev/null
chmod 600 /var/tmp/swap
mkswap /var/tmp/swap >/dev/null && swapon /var/tmp/swap
sync
disk=$(cat /sys/block/vda/dev)
for controller in memory io pids cpu; do echo "+$controller" >$node/cgroup.subtree_control; done
echo $((400 << 20)) >$node/memory.max
echo "$disk rbps=20971520 wbps=20971520" >$node/io.max
configure() {
	printf '[iocom]\nname = vm\nrun_dir = /run/iocom\nstate_dir = /var/lib/iocom\nscope = cgroup=node,disk=vda,mount=/var/tmp\n'
	printf 'disk_mb_per_s = 20\ndisk_fixed_ms = 1\nfeedback = %s\nfeedback_interval_s = 1\nfeedback_persist = 2\nfeedback_step = 0.1\n' "$1"
}
answers() { "$build/iocom" feedback >/dev/null 2>&1; }
configure off >/etc/iocom/iocom.conf
"$build/iocomd" --shim "$build/iocom-shim" 2>/tmp/bench.log &
agent=$!
until answers; do sleep 0.5; done
sectors() { awk '{ print $3 }' /sys/block/vda/stat; }
now() { awk '{ print int($1 * 100) }' /proc/uptime; }
# job NAME COMMAND...: its wall time in hundredths of a second, in the file NAME
job() {
	name=$1
	shift
	begun=$(now)
	"$build/iocom" run -n --policy nlb -- "$@"
	echo "$name $? $(($(now) - begun))" >>/tmp/took
}
again() { echo "for i in $(seq "$2" | tr '\n' ' '); do cat /var/tmp/$1 >/dev/null; done"; }
mix() {
	job churn $work churn 320 300 &
	one=$!
	sleep 2
	job one sh -c "$(again one 8)" &
	two=$!
	job two sh -c "$(again two 8)" &
	three=$!
	job big sh -c "$(again big 2)" &
	wait $one $two $three $!
}
cold() {
	echo 3 >/proc/sys/vm/drop_caches
	swapoff -a && swapon /var/tmp/swap
	sleep 2
}
alone() { # NAME COMMAND...
	cold
	job "$@"
}
: >/tmp/took
alone churn $work churn 320 300
for file in one two; do alone $file sh -c "$(again $file 8)"; done
alone big sh -c "$(again big 2)"
cp /tmp/took /tmp/alone
sed 's/^/# alone: /' /tmp/alone
for round in 1 2 3 4; do
	for mode in off on; do
		configure $mode >/etc/iocom/iocom.conf
		kill -HUP $agent
		cold
		: >/tmp/took
		read=$(sectors)
		swaps=$(awk '$1 == "pswpin" { print $2 }' /proc/vmstat)
		mix
		"$build/iocom" feedback | sed "s/^/# $mode: /" | grep -E "buffer|error"
		awk -v mode=$mode -v round=$round -v read=$((($(sectors) - read) / 2048)) -v swaps="$(($(awk '$1 == "pswpin" { print $2 }' /proc/vmstat) - swaps))" '
			NR == FNR { alone[$1] = $3; next }
			{ slow = $3 / alone[$1]; sum += slow; n++; text = text sprintf(" %s %.2f", $1, slow); bad += $2 != 0 }
			END { printf "# round %d %s: mean slowdown %.3f of %d jobs (%s ), %d failed, %d MiB read, %d pages swapped in\n", round, mode, sum / n, n, text, bad, read, swaps }' \
			/tmp/alone /tmp/took
	done
done
kill $agent
wait $agent
tail -n 5 /tmp/bench.log | sed 's/^/# log: /'
echo "ok 1 - four rounds each"
echo "1..1"
