#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# The emulated cluster itself: isolation, disk and link speeds, limits, clean-up after
# crashes, bad input.  Needs no agent.
# A busy machine makes everything slower and nothing faster.  So no clock says that something is
# not too slow: the disk tells what it charged; how fast it all is, `make bench-testbed` measures.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1
. tests/lib/tap.sh
TESTBED=$PWD/tests/testbed/testbed
MARK=${IOCOM_TESTBED_MARK:-iocom-testbed}
STATE=${IOCOM_TESTBED_DIR:-/run/$MARK}
DISK=/mnt/${IOCOM_TESTBED_MARK:-iocom-disk}
SLEEP=987.$$
SCRATCH=$(mktemp -d)
chmod 755 "$SCRATCH"

[ "$(id -u)" -eq 0 ] || tap_skip_all "needs root (namespaces, control groups)"
[ -c /dev/fuse ] || tap_skip_all "no /dev/fuse for the emulated disks"
# shellcheck disable=SC2317 # the trap calls it
finish() {
	"$TESTBED" down >/dev/null 2>&1
	rm -rf "$SCRATCH"
}
exec 9>"/run/lock/$MARK-user.lock" # one testbed a machine: tests take turns
flock -w 900 9 || tap_skip_all "another test holds the testbed"
trap finish EXIT
trap 'exit 130' INT TERM
"$TESTBED" down >/dev/null 2>&1

on() { # NODE COMMAND...
	local node=$1
	shift
	"$TESTBED" exec "$node" -- "$@"
}
# Prints what a testbed leaves on the machine, without asking its own status command.
remains() {
	grep -E " ($STATE|$DISK)[ /]| $MARK " /proc/self/mountinfo
	losetup -a | grep -- "/$MARK-n"
	ls -d /sys/fs/cgroup/{,*/}"$MARK" "$STATE" "$DISK" 2>/dev/null
	ip -o link | grep iocom-
	pgrep -af "$STATE/|^sleep $SLEEP"
}
says() { # COMMAND...: its output and exit status in one line
	local out status
	out=$("$@" 2>&1)
	status=$?
	printf '%s [%d]' "$out" "$status"
}
# What a node's disk has charged so far, and how long it was busy, in ms.
charged() { awk '{ printf "%.3f", $1 / 1e6 }' "$STATE/$1/disk/speed.served"; }
busy() { awk '{ print $10 }' "/sys/block/$(cat "$STATE/$1/disk/loop")/stat"; }
# Python on a node: COUNT O_DIRECT reads of 64 KiB, GAP seconds apart; prints the ms they took.
reads='
import mmap, os, sys, time
path, count, gap = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
fd, buf = os.open(path, os.O_RDONLY | os.O_DIRECT), mmap.mmap(-1, 65536)
began = time.time()
for i in range(count):
    os.preadv(fd, [buf], i % 64 * 65536)
    if gap: time.sleep(max(0, began + (i + 1) * gap - time.time()))
print("%.1f" % ((time.time() - began) * 1e3))'
# Two readers: one reads 64 blocks while the other reads.  Prints how many the other read
# meanwhile, and the ms that took.
shares='
import mmap, os, sys, time
path = sys.argv[1]
done = mmap.mmap(-1, 4096)
def read(i):
    os.preadv(fd, [buf], i % 64 * 65536)
def blocks(): return int.from_bytes(done[:8], "little")
other = os.fork()
fd, buf = os.open(path, os.O_RDONLY | os.O_DIRECT), mmap.mmap(-1, 65536)
if other == 0:
    while True:
        read(blocks())
        done[:8] = (blocks() + 1).to_bytes(8, "little")
while not blocks(): time.sleep(0.001)
began, first = time.time(), blocks()
for i in range(64): read(i)
print(blocks() - first, "%.1f" % ((time.time() - began) * 1e3))
os.kill(other, 9)'
running() { pgrep -f "^sleep $SLEEP$"; }

out=$(says "$TESTBED" up --nodes 2 --no-agents --disk 20,5 --cpu 0.25 --mem 1000,100 --net 100mbit,200mbit)
tap_like "up" "$out" '2 nodes up in .* \[0\]$'
tap_like "up again: says so" "$(says "$TESTBED" up --nodes 2 --no-agents --disk 20,5 --cpu 0.25 --mem 1000,100 --net 100mbit,200mbit)" 'already up.*\[0\]$'
tap_like "up in another shape: refused" "$(says "$TESTBED" up --nodes 3 --no-agents)" 'another shape.*testbed down first \[1\]$'
tap_is "status --json" "$("$TESTBED" status --json | jq -c '[.up, (.nodes[] | .name, .disk_mb_per_s, .memory_mb, .munged)]')" \
	'[true,"n1",20,1000,"running","n2",5,100,"running"]'
tap_like "status for people" "$("$TESTBED" status)" 'n2 +10\.77\.0\.2 .* 5 +0\.25 +100 +none +running'

# A node is a machine of its own.
tap_is "hostname" "$(on n1 hostname)$(on n2 hostname)" n1n2
tap_is "its own address only" "$(on n2 ip -o -4 addr show eth0 | awk '{print $4}')" 10.77.0.2/24
tap_true "n1 reaches n2 by name" on n1 ping -c 1 -W 2 -q n2
# shellcheck disable=SC2016
{
	on n1 sh -c 'echo one >$IOCOM_TESTBED_DISK/who'
	on n2 sh -c 'echo two >$IOCOM_TESTBED_DISK/who'
	tap_is "same path, another disk" "$(on n1 cat "$DISK/who") $(on n2 cat "$DISK/who")" "one two"
	tap_is "the disk is not seen outside" "$(ls -A "$DISK")" ""
	tap_is "in its control group" "$(on n1 grep -c ":/$MARK/n1/exec$" /proc/self/cgroup)" \
		"$(find /sys/fs/cgroup -maxdepth 2 -type d -name "$MARK" | wc -l)"
	tap_true "control groups are visible on a node" on n1 sh -c 'test -n "$(find /sys/fs/cgroup -maxdepth 2 -name "$0")"' "$MARK"
	tap_is "environment" "$(on n2 sh -c 'echo "$IOCOM_TESTBED_DISK $IOCOM_RUN_DIR ${PATH%%:*}"')" \
		"$DISK $STATE/n2/run $STATE/programs"
	tap_is "munge across the nodes" "$(on n1 sh -c 'munge -n -S $IOCOM_MUNGE_SOCKET' | on n2 sh -c 'unmunge -S $IOCOM_MUNGE_SOCKET' | sed -n 's/^ENCODE_HOST: *//p')" "n1 (10.77.0.1)"
	tap_is "an ordinary user writes to the disk" "$("$TESTBED" exec n1 --user nobody -- sh -c 'id -un; echo x >$IOCOM_TESTBED_DISK/nobody && echo written' | paste -sd' ')" "nobody written"
}

# exec becomes the command itself.
tap_is "working directory, stdin, stdout" "$(cd "$SCRATCH" && echo text | on n1 sh -c 'pwd; cat' | paste -sd' ')" "$SCRATCH text"
on n1 sh -c 'exit 3'
tap_is "exit status" $? 3
on n1 /nowhere/at-all 2>/dev/null
tap_is "no such command: 127" $? 127
on n1 sleep "$SLEEP" &
pid=$!
until_true 60 running
kill -TERM $pid
wait $pid 2>/dev/null
tap_is "a signal reaches the command" $? 143

# Disks: 4 MiB at 20 and 5 MB/s.  Each is charged for what its bytes take, and nobody has them
# sooner; the block device is busy as long.
# ms; a block or two of the file system's own may come on top.
is_near() { awk -v a="$1" -v b="$2" 'BEGIN { exit !(a - b < 2 && b - a < 0.01) }'; }
for node in n1:20 n2:5; do
	speed=${node#*:} node=${node%:*}
	expected=$(awk -v s="$speed" 'BEGIN { print 4194.304 / s }')
	before=$(charged "$node") began=$EPOCHREALTIME
	on "$node" dd if=/dev/zero of="$DISK/data" bs=1M count=4 oflag=direct conv=fsync 2>/dev/null
	wrote=$(awk -v a="$began" -v b="$EPOCHREALTIME" 'BEGIN { print (b - a) * 1e3 }')
	# The file system's own blocks come on top.
	tap_calc "$node: direct writes at $speed MB/s ($wrote ms of $expected)" \
		"$wrote > 0.98 * $expected && $(charged "$node") - $before >= $expected - 0.01 && $(charged "$node") - $before < 1.3 * $expected"
	on "$node" sync -f "$DISK"
	before=$(charged "$node") was_busy=$(busy "$node")
	took=$(on "$node" python3 -c "$reads" "$DISK/data" 64 0)
	tap_true "$node: direct reads are charged at $speed MB/s" is_near "$(awk -v a="$before" -v b="$(charged "$node")" 'BEGIN { print b - a }')" "$expected"
	tap_calc "$node: and take so long ($took ms of $expected)" "$took > 0.98 * $expected"
	tap_calc "$node: the disk was busy meanwhile ($(($(busy "$node") - was_busy)) ms)" "$(busy "$node") - $was_busy > 0.9 * $expected"
	measured=$(on "$node" iocom calibrate --dir "$DISK" --size 2Mi --seconds 0.3 --json | jq .disk.read_mb_per_s)
	tap_calc "$node: iocom calibrate finds its speed ($measured of $speed MB/s)" "$measured > 0.7 * $speed && $measured < 1.1 * $speed"
done
# A bucket of tokens would be full again after each pause, and the disk idle.  The disk's time busy
# is counted in ticks, longer than a block takes here: on a busy machine a fifth is not seen.
before=$(charged n1) was_busy=$(busy n1)
took=$(on n1 python3 -c "$reads" "$DISK/data" 100 0.00655)
tap_calc "asked for half of its speed, the disk is as busy for each block ($(($(busy n1) - was_busy)) ms of $took)" \
	"$(charged n1) - $before > 327.6 && $(charged n1) - $before < 329.7 && $(busy n1) - $was_busy > 0.6 * 327.68 && $took > 650"
read -r other took < <(on n1 python3 -c "$shares" "$DISK/data")
tap_calc "two readers share the disk (64 blocks and $other in $took ms)" \
	"$other >= 8 && $took > 0.98 * 3.2768 * (64 + $other - 1)"
disk=$("$TESTBED" status --json | jq -r '.nodes[0].disk')
sectors() { awk '{ print $3 }' "/sys/block/$disk/stat"; }
before=$(sectors)
on n1 dd of="$DISK/data" oflag=nocache conv=notrunc,fdatasync count=0 2>/dev/null
on n1 cat "$DISK/data" >/dev/null
tap_calc "a buffered read reaches the disk: $(($(sectors) - before)) sectors of 8192" "$(sectors) - $before >= 8192"

# Link: 4 MB at 100 Mbit/s take 0.32 s; 2 ms of it may be ahead.
on n2 python3 -c '
import socket, sys
s = socket.create_server(("10.77.0.2", 7999)); open(sys.argv[1], "w"); c = s.accept()[0]
while c.recv(65536): pass
c.send(b"x")' "$SCRATCH/listens" &
until_true 60 test -e "$SCRATCH/listens"
took=$(on n1 python3 -c '
import socket, time
c = socket.create_connection(("10.77.0.2", 7999)); t = time.time()
c.sendall(bytes(4000000)); c.shutdown(socket.SHUT_WR); c.recv(1); print("%.3f" % (time.time() - t))')
tap_calc "4 MB over a link of 100 Mbit/s take $took s, not less" "$took > 0.28"
tap_like "and it is shaped to that each way" "$(on n1 tc qdisc show dev eth0) $(on n2 tc qdisc show dev eth0)" \
	' rate 100Mbit .* rate 200Mbit '

# Limits.
on n1 sh -c 'head -c 150000000 /dev/zero | tail -c 150000000' | wc -c >"$SCRATCH/n1"
on n2 sh -c 'head -c 150000000 /dev/zero | tail -c 150000000' 2>/dev/null | wc -c >"$SCRATCH/n2"
tap_is "150 MB fit into 1000 MB and not into 100 MB" "$(cat "$SCRATCH/n1") $(cat "$SCRATCH/n2")" "150000000 0"
# It is throttled, and used no more than its share: a period of 20 ms may be counted twice.
tap_is "0.25 cores are the quota" "$(cat /sys/fs/cgroup/{,*/}"$MARK"/n1/cpu.{cfs_quota_us,cfs_period_us,max} 2>/dev/null | tr '\n' ' ')" "5000 20000 "
throttled() { cat /sys/fs/cgroup/{,*/}"$MARK"/n1/cpu.stat 2>/dev/null | awk '$1 == "nr_throttled" { n += $2 } END { print n + 0 }'; }
held=$(throttled)
read -r cpu wall < <(on n1 python3 -c '
import time
t, c = time.time(), time.process_time()
while time.time() - t < 1: pass
print("%.3f %.3f" % (time.process_time() - c, time.time() - t))')
tap_calc "$cpu s of CPU in $wall s" "$cpu < 0.25 * $wall + 0.03"
burns() { on n1 timeout 0.3 sh -c 'while :; do :; done'; [ "$(throttled)" -gt "$held" ]; }
tap_true "who wants more is throttled" until_true 60 burns

# Bad input.
tap_like "unknown node" "$(says on n9 true)" "no node 'n9': there are n1 to n2 \[1\]$"
tap_like "unknown user" "$(says "$TESTBED" exec n1 --user nobodyatall -- true)" "no user 'nobodyatall'.* \[1\]$"
tap_like "down from a node" "$(says on n1 "$TESTBED" down)" 'runs on a node.* \[1\]$'

# Crashes: the disks die under a writer, a process leaves its group, the state is gone.
before=$(charged n1)
on n1 dd if=/dev/zero of="$DISK/much" bs=1M count=60 oflag=direct 2>/dev/null &
# shellcheck disable=SC2016
on n2 sh -c 'echo $$ >/sys/fs/cgroup/unified/cgroup.procs || echo $$ >/sys/fs/cgroup/cgroup.procs; exec sleep "$0"' "$SLEEP" 2>/dev/null &
writes() { [ "$(charged n1)" != "$before" ]; }
until_true 60 writes
until_true 60 running
kill -9 "$(cat "$STATE/n1/disk/nbdkit.pid")" "$(cat "$STATE/n2/disk/nbdfuse.pid")" "$(cat "$STATE/n2/munge/pid")"
tap_like "up over a damaged testbed: refused" "$(says "$TESTBED" up --nodes 2 --no-agents --disk 20,5 --cpu 0.25 --mem 1000,100 --net 100mbit,200mbit)" \
	"damaged \(n1's disk is gone, n2's munged is gone\): .* \[1\]$"
rm -f "$STATE/shape"
tap_like "down after kill -9 and without its state file" "$(says "$TESTBED" down)" 'testbed: down \[0\]$'
wait 2>/dev/null
tap_is "nothing is left" "$(remains)" ""
tap_like "down again" "$(says "$TESTBED" down)" 'nothing is up \[0\]$'
tap_like "status when down" "$(says "$TESTBED" status)" 'no testbed is up \[0\]$'

for moment in 0.04 0.08 0.13; do
	"$TESTBED" up --nodes 2 --no-agents >/dev/null 2>&1 &
	pid=$!
	sleep $moment
	kill -9 $pid 2>/dev/null
	wait $pid 2>/dev/null
	"$TESTBED" down >/dev/null 2>&1
	tap_is "up killed after $moment s, then down: nothing is left" "$(remains)" ""
done

mkdir "$SCRATCH/bin"
printf '#!/bin/sh\necho "losetup: cannot find an unused loop device" >&2\nexit 1\n' >"$SCRATCH/bin/losetup"
chmod 755 "$SCRATCH/bin/losetup"
tap_like "no loop device left" "$(PATH=$SCRATCH/bin:$PATH says "$TESTBED" up --nodes 1 --no-agents)" 'no loop device is to be had .*\[1\]$'
tap_is "a failed up leaves nothing" "$(remains)" ""
tap_like "no agent to start" "$(IOCOM_BUILD=$SCRATCH says "$TESTBED" up --nodes 1 --disk 0)" 'no .*/iocomd and iocom-shim: run make.* \[1\]$'
tap_like "exec when down" "$(says on n1 true)" 'no testbed is up.* \[1\]$'
for bad in "--nodes 0" "--nodes x" "--nodes 2 --disk 20,x" "--nodes 1 --disk 5,5" "--nodes 1 --mem 0" "--nodes 1 --cpu -1" \
	"--nodes 1 --net fast" "--nodes 2 --net 1gbit,fast" "--nodes 1 --net 1gbit,1gbit" "--nodes 1 --disk 5," "--disk 5" "--nodes 1 --colour red" "--nodes"; do
	# shellcheck disable=SC2086
	tap_like "usage: up $bad" "$(says "$TESTBED" up $bad)" '^testbed: up: .*; see testbed --help \[2\]$'
done
mkdir -p "$SCRATCH/tests" && cp -r tests/testbed "$SCRATCH/tests" # every user can read it there
tap_like "not root" "$(says setpriv --reuid 65534 --regid 65534 --clear-groups "$SCRATCH/tests/testbed/testbed" up --nodes 1)" 'needs root .*sudo \[1\]$'
tap_true "shellcheck" shellcheck -x tests/testbed/testbed tests/testbed/lib/*.sh tests/testbed/test_testbed.sh
tap_done
