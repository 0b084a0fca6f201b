#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# How fast the emulated cluster is beside what it was asked to be, on a quiet machine: disks,
# links, a share of the processors.  Prints a table; nothing of it is a test.
set -uo pipefail
cd "$(dirname "$0")/../../.." || exit 1
TESTBED=tests/testbed/testbed
DISK=/mnt/${IOCOM_TESTBED_MARK:-iocom-disk}
on() { local node=$1; shift; "$TESTBED" exec "$node" -- "$@"; }
row() { printf '%-36s %10s %10s %8.1f%%\n' "$1" "$2" "$3" "$(awk -v a="$2" -v m="$3" 'BEGIN { print (m / a - 1) * 100 }')"; }

[ "$(id -u)" -eq 0 ] || { echo "bench-testbed: needs root" >&2; exit 1; }
exec 9>"/run/lock/${IOCOM_TESTBED_MARK:-iocom-testbed}-user.lock"
flock -w 900 9 || exit 1
trap '"$TESTBED" down >/dev/null 2>&1' EXIT
trap 'exit 130' INT TERM
"$TESTBED" down >/dev/null 2>&1
# n5 has the fastest link, so that each other node's own is what its traffic meets.
"$TESTBED" up --nodes 5 --no-agents --disk 20,5,0 --cpu 0.25,0.25,0.25,1,1 --net 10mbit,20mbit,100mbit,1gbit,10gbit >/dev/null || exit 1

# MB/s, and the share of the time that the disk was busy.
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
print("%.2f %.2f" % (count * 65536 / took / 1e6, (busy() - b) / took))'
# Headers take 4 % of a link.
printf '%-36s %10s %10s %9s\n' what asked measured error
for node in n1:20 n2:5; do
	speed=${node#*:} node=${node%:*}
	began=$EPOCHREALTIME
	on "$node" dd if=/dev/zero of="$DISK/data" bs=1M count=4 oflag=direct 2>/dev/null
	row "$node: direct writes, MB/s" "$speed" "$(awk -v a="$began" -v b="$EPOCHREALTIME" 'BEGIN { printf "%.2f", 4.194304 / (b - a) }')"
	read -r rate busy < <(on "$node" python3 -c "$reads" "$DISK/data" 64 0)
	row "$node: direct reads, MB/s" "$speed" "$rate"
	row "$node: busy meanwhile" 1 "$busy"
done
read -r rate busy < <(on n1 python3 -c "$reads" "$DISK/data" 100 0.0065536)
row "n1: busy at half of its speed" 0.5 "$busy"
# What arrives in 2 s after the first 0.5 s, in Mbit/s.
arrives='
import socket, sys, time
s = socket.create_server(("", 7999)); print(flush=True); c = s.accept()[0]
def until(end, n=0):
    while time.time() < end: n += len(c.recv(1 << 20))
    return n
began = time.time(); until(began + 0.5); n = until(began + 2.5); print("%.2f" % (n * 8 / 2e6)); c.close()'
sends='
import socket, sys
c = socket.create_connection((sys.argv[1], 7999))
try:
    while True: c.sendall(bytes(1 << 18))
except OSError: pass'
link() { # FROM TO MBIT
	local rate
	rate=$(on "$2" python3 -c "$arrives" | {
		read -r _
		on "$1" python3 -c "$sends" "10.77.0.${2#n}"
		cat
	})
	row "link $1 to $2, Mbit/s" "$3" "$rate"
}
for node in n1:10 n2:20 n3:100 n4:1000; do
	link "${node%:*}" n5 "${node#*:}"
	link n5 "${node%:*}" "${node#*:}"
done
row "n1: cores" 0.25 "$(on n1 python3 -c '
import time
t, c = time.time(), time.process_time()
while time.time() - t < 1: pass
print("%.3f" % (time.process_time() - c))')"
