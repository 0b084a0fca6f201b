#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# The emulated cluster itself: isolation, disk and link speeds, limits, clean-up after
# crashes, bad input.  Needs no agent.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1
. tests/lib/tap.sh
TESTBED=$PWD/tests/testbed/testbed
STATE=${IOCOM_TESTBED_DIR:-/run/iocom-testbed}
SCRATCH=$(mktemp -d)
chmod 755 "$SCRATCH"

[ "$(id -u)" -eq 0 ] || tap_skip_all "needs root (namespaces, control groups)"
[ -c /dev/fuse ] || tap_skip_all "no /dev/fuse for the emulated disks"
# shellcheck disable=SC2317 # the trap calls it
finish() {
	"$TESTBED" down >/dev/null 2>&1
	rm -rf "$SCRATCH"
}
exec 9>/run/lock/iocom-testbed-user.lock # a machine has one testbed, so tests take turns
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
	grep -E 'iocom-testbed|iocom-disk' /proc/self/mountinfo
	losetup -a | grep iocom-testbed
	ls -d /sys/fs/cgroup/{,*/}iocom-testbed "$STATE" /mnt/iocom-disk 2>/dev/null
	ip -o link | grep iocom-
	pgrep -af "$STATE/|^sleep 987"
}
says() { # COMMAND...: its output and exit status in one line
	local out status
	out=$("$@" 2>&1)
	status=$?
	printf '%s [%d]' "$out" "$status"
}
# Python for a node: O_DIRECT reads of 64 KiB with optional pacing; it prints the seconds, and the
# share of them in which the disk was busy.
reads='
import mmap, os, sys, time
path, count, gap = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
disk = os.path.basename(os.popen("df --output=source " + path).read().split()[-1])
def busy(): return int(open("/sys/block/%s/stat" % disk).read().split()[9]) / 1000
fd, buf = os.open(path, os.O_RDONLY | os.O_DIRECT), mmap.mmap(-1, 65536)
began, b = time.time(), busy()
for i in range(count):
    os.preadv(fd, [buf], i % 64 * 65536)
    if gap: time.sleep(max(0, began + (i + 1) * gap - time.time()))
took = time.time() - began
print("%.3f %.2f" % (took, (busy() - b) / took))'

out=$(says "$TESTBED" up --nodes 2 --no-agents --disk 20,5 --cpu 0.25 --mem 1000,100 --net 100mbit)
tap_like "up" "$out" '2 nodes up in .* \[0\]$'
tap_like "up again: says so" "$(says "$TESTBED" up --nodes 2 --no-agents --disk 20,5 --cpu 0.25 --mem 1000,100 --net 100mbit)" 'already up.*\[0\]$'
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
	tap_is "same path, another disk" "$(on n1 cat /mnt/iocom-disk/who) $(on n2 cat /mnt/iocom-disk/who)" "one two"
	tap_is "the disk is not seen outside" "$(ls -A /mnt/iocom-disk)" ""
	tap_is "in its control group" "$(on n1 grep -c ':/iocom-testbed/n1/exec$' /proc/self/cgroup)" \
		"$(find /sys/fs/cgroup -maxdepth 2 -type d -name iocom-testbed | wc -l)"
	tap_true "control groups are visible on a node" on n1 sh -c 'test -n "$(find /sys/fs/cgroup -maxdepth 2 -name iocom-testbed)"'
	tap_is "environment" "$(on n2 sh -c 'echo "$IOCOM_TESTBED_DISK $IOCOM_RUN_DIR ${PATH%%:*}"')" \
		"/mnt/iocom-disk $STATE/n2/run $STATE/programs"
	tap_is "munge across the nodes" "$(on n1 sh -c 'munge -n -S $IOCOM_MUNGE_SOCKET' | on n2 sh -c 'unmunge -S $IOCOM_MUNGE_SOCKET' | sed -n 's/^ENCODE_HOST: *//p')" "n1 (10.77.0.1)"
	tap_is "an ordinary user writes to the disk" "$("$TESTBED" exec n1 --user nobody -- sh -c 'id -un; echo x >$IOCOM_TESTBED_DISK/nobody && echo written' | paste -sd' ')" "nobody written"
}

# exec becomes the command itself.
tap_is "working directory, stdin, stdout" "$(cd "$SCRATCH" && echo text | on n1 sh -c 'pwd; cat' | paste -sd' ')" "$SCRATCH text"
on n1 sh -c 'exit 3'
tap_is "exit status" $? 3
on n1 /nowhere/at-all 2>/dev/null
tap_is "no such command: 127" $? 127
on n1 sleep 30 &
pid=$!
sleep 0.3
kill -TERM $pid
wait $pid 2>/dev/null
tap_is "a signal reaches the command" $? 143

# Disks: 4 MiB at 20 and 5 MB/s; not faster, not much slower, busy all the time.
for node in n1:20 n2:5; do
	speed=${node#*:} node=${node%:*}
	began=$EPOCHREALTIME
	on "$node" dd if=/dev/zero of=/mnt/iocom-disk/data bs=1M count=4 oflag=direct 2>/dev/null
	wrote=$(awk -v a="$began" -v b="$EPOCHREALTIME" 'BEGIN { print b - a }')
	read -r took busy < <(on "$node" python3 -c "$reads" /mnt/iocom-disk/data 64 0)
	expected=$(awk -v s="$speed" 'BEGIN { print 4.194304 / s }')
	tap_calc "$node: direct reads at $speed MB/s (took $took s of $expected)" "$took > 0.9 * $expected && $took < 1.3 * $expected"
	tap_calc "$node: direct writes at $speed MB/s (took $wrote s)" "$wrote > 0.9 * $expected && $wrote < 1.3 * $expected + 0.3"
	tap_calc "$node: the disk was busy meanwhile ($busy)" "$busy > 0.8"
done
read -r took busy < <(on n1 python3 -c "$reads" /mnt/iocom-disk/data 100 0.00655)
tap_calc "asked for half of its speed, the disk is half busy ($busy)" "$busy > 0.35 && $busy < 0.7"
on n1 python3 -c "$reads" /mnt/iocom-disk/data 64 0 >"$SCRATCH/a" &
pid=$!
read -r took busy < <(on n1 python3 -c "$reads" /mnt/iocom-disk/data 64 0)
wait $pid
tap_calc "two readers share the disk ($took s, $(cut -d' ' -f1 "$SCRATCH/a") s)" \
	"$took > 0.34 && $(cut -d' ' -f1 "$SCRATCH/a") > 0.34 && $took < 0.65"
disk=$("$TESTBED" status --json | jq -r '.nodes[0].disk')
sectors() { awk '{ print $3 }' "/sys/block/$disk/stat"; }
before=$(sectors)
on n1 dd of=/mnt/iocom-disk/data oflag=nocache conv=notrunc,fdatasync count=0 2>/dev/null
on n1 cat /mnt/iocom-disk/data >/dev/null
tap_calc "a buffered read reaches the disk: $(($(sectors) - before)) sectors of 8192" "$(sectors) - $before >= 8192"

# Link: 4 MB at 100 Mbit/s takes 0.32 s.
on n2 python3 -c '
import socket
s = socket.create_server(("10.77.0.2", 7999)); c = s.accept()[0]
while c.recv(65536): pass
c.send(b"x")' &
sleep 0.3
took=$(on n1 python3 -c '
import socket, time
c = socket.create_connection(("10.77.0.2", 7999)); t = time.time()
c.sendall(bytes(4000000)); c.shutdown(socket.SHUT_WR); c.recv(1); print("%.3f" % (time.time() - t))')
tap_calc "4 MB over a link of 100 Mbit/s took $took s" "$took > 0.28 && $took < 0.6"

# Limits.
on n1 sh -c 'head -c 150000000 /dev/zero | tail -c 150000000' | wc -c >"$SCRATCH/n1"
on n2 sh -c 'head -c 150000000 /dev/zero | tail -c 150000000' 2>/dev/null | wc -c >"$SCRATCH/n2"
tap_is "150 MB fit into 1000 MB and not into 100 MB" "$(cat "$SCRATCH/n1") $(cat "$SCRATCH/n2")" "150000000 0"
cpu=$(on n1 python3 -c '
import time
t, c = time.time(), time.process_time()
while time.time() - t < 1: pass
print(time.process_time() - c)')
tap_calc "0.25 cores: $cpu s of CPU in one second" "$cpu > 0.05 && $cpu < 0.33"

# Bad input.
tap_like "unknown node" "$(says on n9 true)" "no node 'n9': there are n1 to n2 \[1\]$"
tap_like "unknown user" "$(says "$TESTBED" exec n1 --user nobodyatall -- true)" "no user 'nobodyatall'.* \[1\]$"
tap_like "down from a node" "$(says on n1 "$TESTBED" down)" 'runs on a node.* \[1\]$'

# Crashes: the disks die under a writer, a process leaves its group, the state is lost.
on n1 dd if=/dev/zero of=/mnt/iocom-disk/much bs=1M count=60 2>/dev/null &
on n2 sh -c 'echo $$ >/sys/fs/cgroup/unified/cgroup.procs || echo $$ >/sys/fs/cgroup/cgroup.procs; exec sleep 987' 2>/dev/null &
sleep 0.5
kill -9 "$(cat "$STATE/n1/disk/nbdkit.pid")" "$(cat "$STATE/n2/disk/nbdfuse.pid")" "$(cat "$STATE/n2/munge/pid")"
tap_like "up over a damaged testbed: refused" "$(says "$TESTBED" up --nodes 2 --no-agents --disk 20,5 --cpu 0.25 --mem 1000,100 --net 100mbit)" \
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
	"--nodes 1 --net fast" "--nodes 1 --disk 5," "--disk 5" "--nodes 1 --colour red" "--nodes"; do
	# shellcheck disable=SC2086
	tap_like "usage: up $bad" "$(says "$TESTBED" up $bad)" '^testbed: up: .*; see testbed --help \[2\]$'
done
mkdir -p "$SCRATCH/tests" && cp -r tests/testbed "$SCRATCH/tests" # every user can read it there
tap_like "not root" "$(says setpriv --reuid 65534 --regid 65534 --clear-groups "$SCRATCH/tests/testbed/testbed" up --nodes 1)" 'needs root .*sudo \[1\]$'
tap_true "shellcheck" shellcheck -x tests/testbed/testbed tests/testbed/lib/*.sh tests/testbed/test_testbed.sh
tap_done
