#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# What the feedback controller does to a small mix of real jobs, off, dry-run and on in turn, on pure cgroup
# v2; and with two other settings: small (feedback_max = 0.2, about what the mix leaves for the cache, so that
# the bounds bind) and early (feedback_faults_per_ms = 5, the papers' rate of faults, so that the buffer shrinks
# before there are any). A node of 400 MiB with a disk of 20 MB/s and swap on it; one job churns memory that
# just fits, while others read files again and again. `make bench-feedback` prints the slowdown of each job
# (wall time over the lesser of two alone), each round's mean, what the disk read and what was swapped in; what
# the controller saw and did meanwhile; and in the end each mode's mean and its difference from off, round by
# round, with the 95 % interval of Student's t. What the disk reads depends less on how fast this machine is.
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
	case $1 in
	small) set -- on 'feedback_max = 0.2' ;;
	early) set -- on 'feedback_faults_per_ms = 5' ;;
	esac
	printf 'disk_mb_per_s = 20\ndisk_fixed_ms = 1\nfeedback = %s\nfeedback_interval_s = 1\nfeedback_persist = 2\nfeedback_step = 0.1\n%s\n' "$1" "${2:-}"
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
	"$build/iocom" run --stdin none --policy nlb -- "$@"
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
for again in 1 2; do # the first one warms the emulator up, too
	alone churn $work churn 320 300
	for file in one two; do alone $file sh -c "$(again $file 8)"; done
	alone big sh -c "$(again big 2)"
done
awk '!($1 in least) || $3 < least[$1] { least[$1] = $3 } END { for (job in least) print job, 0, least[job] }' /tmp/took >/tmp/alone
sed 's/^/# alone: /' /tmp/alone
# What the controller sees and does, once a second.
watch() {
	while sleep 1; do
		"$build/iocom" feedback --json 2>/dev/null | tr -d ' \n' >/tmp/seen.one
		sed -n 's/.*"applied_mb":\([0-9.]*\).*/buffer \1/p' /tmp/seen.one
		sed -n 's/.*"held":\([0-9]*\),.*/held \1/p' /tmp/seen.one
		echo "would $(grep -o '"state":"wouldbeheld"' /tmp/seen.one | wc -l)"
		# bounds that bind: less than a tenth above what their group uses
		tr '{' '\n' </tmp/seen.one | sed -n 's/.*"memory_bytes":\([0-9]*\),.*"bound_bytes":\([0-9]*\),.*/\1 \2/p' |
			awk '$2 < 1.1 * $1 { n++ } END { print "tight", n + 0 }'
	done >/tmp/seen
}
seen() { # what watch wrote, in one line
	awk '$1 == "buffer" && (!n++ || $2 + 0 < least) { least = $2 + 0 }
		$2 + 0 > most[$1] { most[$1] = $2 + 0 }
		END { printf "least buffer %.0f MB; at most %d jobs held, %d would be, %d where the bound is near", least, most["held"], most["would"], most["tight"] }' /tmp/seen
}
: >/tmp/rounds
rounds=$(sed -n 's/.*iocom_rounds=\([0-9]*\).*/\1/p' /proc/cmdline)
rounds=${rounds:-5}
for round in $(seq $rounds); do
	modes= # each round begins with another one
	for i in 0 1 2 3 4; do
		case $(((round + i) % 5)) in
		0) modes="$modes off" ;;
		1) modes="$modes dry-run" ;;
		2) modes="$modes on" ;;
		3) modes="$modes small" ;;
		4) modes="$modes early" ;;
		esac
	done
	for mode in $modes; do
		configure "$mode" >/etc/iocom/iocom.conf
		kill -HUP $agent
		cold
		: >/tmp/took
		: >/tmp/seen
		watch &
		watcher=$!
		read=$(sectors)
		swaps=$(awk '$1 == "pswpin" { print $2 }' /proc/vmstat)
		mix
		kill $watcher
		wait $watcher 2>/dev/null
		[ $mode = off ] || echo "# $mode: $(seen)"
		awk -v mode=$mode -v round="$round" -v read=$((($(sectors) - read) / 2048)) -v swaps="$(($(awk '$1 == "pswpin" { print $2 }' /proc/vmstat) - swaps))" '
			NR == FNR { alone[$1] = $3; next }
			{ slow = $3 / alone[$1]; sum += slow; n++; text = text sprintf(" %s %.2f", $1, slow); bad += $2 != 0 }
			END { printf "# round %d %s: mean slowdown %.3f of %d jobs (%s ), %d failed, %d MiB read, %d pages swapped in\n", round, mode, sum / n, n, text, bad, read, swaps
				print round, mode, sum / n, read, swaps >>"/tmp/rounds" }' \
			/tmp/alone /tmp/took
	done
done
kill $agent
wait $agent
tail -n 5 /tmp/bench.log | sed 's/^/# log: /'
# The same machine changes from round to round, so each round is compared with itself.
awk -v n=$rounds '
	function mean(mode, what, sum, i) { for (i = 1; i <= n; i++) sum += at[i, mode, what]; return sum / n }
	function root(x, r, i) { # this awk has no sqrt
		r = x > 1 ? x : 1
		for (i = 0; x > 0 && i < 200; i++) r = (r + x / r) / 2
		return x > 0 ? r : 0
	}
	function half(mode, what, sum, squares, i, d) {
		for (i = 1; i <= n; i++) { d = at[i, mode, what] - at[i, "off", what]; sum += d; squares += d * d }
		return t * root((squares - sum * sum / n) / (n - 1) / n)
	}
	{ at[$1, $2, 1] = $3; at[$1, $2, 2] = $4; at[$1, $2, 3] = $5 }
	END {
		split("12.706 4.303 3.182 2.776 2.571 2.447 2.365", student, " ")
		t = n < 9 ? student[n - 1] : 2.306
		split("off dry-run on small early", order, " ")
		printf "# %-8s %9s %22s %9s %22s %8s\n", "", "slowdown", "less off (95 %)", "MiB read", "less off (95 %)", "swapped"
		for (m = 1; m <= 5; m++) {
			mode = order[m]
			printf "# %-8s %9.3f", mode, mean(mode, 1)
			if (mode == "off") printf " %22s", "-"
			else printf " %+12.3f +- %6.3f", mean(mode, 1) - mean("off", 1), half(mode, 1)
			printf " %9.0f", mean(mode, 2)
			if (mode == "off") printf " %22s", "-"
			else printf " %+12.0f +- %6.0f", mean(mode, 2) - mean("off", 2), half(mode, 2)
			printf " %8.0f\n", mean(mode, 3)
		}
	}' /tmp/rounds
[ "$(wc -l </tmp/rounds)" = $((5 * rounds)) ] || echo "not ok 1 - $rounds rounds of five modes"
[ "$(wc -l </tmp/rounds)" != $((5 * rounds)) ] || echo "ok 1 - $rounds rounds of five modes"
echo "1..1"
