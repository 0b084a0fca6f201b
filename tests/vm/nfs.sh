#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# A cluster of three virtual machines, an NFS server and two of its clients, all with iocomd, and the
# outcome as TAP: `nfs.sh BUILD SUITE`. The machines are linked by sockets of the host: the server has
# a network card to each client, and bridges them. It needs no help by the hardware, no root and no
# network. The server's disk reads 20 MB/s. Machines that hang are
# killed after IOCOM_VM_SECONDS (default 600).
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1
build=$1 suite=$2
dir=build/vm/$suite
seconds=${IOCOM_VM_SECONDS:-600}
work=$(mktemp -d)
machines=()
trap 'kill "${machines[@]}" 2>/dev/null; wait; rm -rf "$work"' EXIT
trap 'exit 1' INT TERM
bash tests/vm/initramfs.sh "$build" "$dir" "$work/initramfs" nfs || {
	echo "not ok 1 - an initramfs for $suite"
	exit 1
}
emulator=(qemu-system-x86_64)
if [ -d build/vm/emulator ]; then
	unpacked=build/vm/emulator/usr
	emulator=("$unpacked/bin/qemu-system-x86_64" -L "$unpacked/share/seabios"
		-L "$unpacked/share/qemu")
fi
key=$(od -An -tx1 -N32 /dev/urandom | tr -d ' \n')
boot() { # NODE DISK-OPTIONS NETWORK-ARGUMENT...
	local node=$1 disk=$2
	shift 2
	truncate -s 1G "$work/$node.disk"
	timeout --kill-after=5 "$seconds" "${emulator[@]}" -accel tcg,thread=multi -cpu max,la57=off \
		-smp 1 -m 768M -nodefaults -display none -no-reboot -kernel "$dir/vmlinuz" \
		-initrd "$work/initramfs" -append "console=ttyS0 panic=-1 quiet iocom_expect=measures \
iocom_node=$node iocom_key=$key iocom_limit=$seconds iocom_gone=${IOCOM_VM_GONE:-}" \
		-serial "file:$dir/nfs.$node.console" -serial "file:$work/$node.output" -monitor none \
		-drive "file=$work/$node.disk,if=virtio,format=raw,cache=unsafe$disk" \
		"$@" </dev/null >"$work/$node.qemu" 2>&1 &
	machines+=($!)
}
link() { # NUMBER on|off MAC: one end of it; on: the end that waits for the other
	printf '%s\n' -netdev "stream,id=net$1,server=$2,addr.type=unix,addr.path=$work/link$1" \
		-device "virtio-net-pci,netdev=net$1,mac=52:54:00:09:00:$3,romfile="
}
mapfile -t first < <(link 0 on 01)
mapfile -t second < <(link 1 on 02)
boot server ,throttling.bps-read=20000000 "${first[@]}" "${second[@]}"
for ((i = 0; i < 300; i++)); do
	[ ! -S "$work/link0" ] || [ ! -S "$work/link1" ] || break
	sleep 0.2
done
mapfile -t first < <(link 0 off 11)
boot client1 "" "${first[@]}"
mapfile -t second < <(link 1 off 21)
boot client2 "" "${second[@]}"
wait "${machines[@]}"
printf "# |booted and run in %d s\n" "$SECONDS"
# Makes one TAP of all machines; one that did not come to its end counts as failed.
for node in client1 server client2; do
	tr -d '\r' <"$work/$node.output" >"$dir/nfs.$node.output"
done
(cd "$dir" && awk '
FNR == 1 { machines++ }
/^@@ end / && $4 != 0 { print "not ok " ++n " - " $3 ($4 == 124 ? " took too long" : " ended with " $4) }
/^@@ done/ { finished++; next }
/^@@ no / { print "not ok " ++n " -" substr($0, 3) " in " FILENAME }
/^@@ / || /^1\.\./ { next }
/^(ok|not ok) / { sub(/ok [0-9]* - /, "ok " ++n " - ") }
{ print }
END {
	if (finished != 3)
		print "not ok " ++n " - " finished + 0 " of 3 machines came to their end"
	print "1.." n + 0
}' nfs.client1.output nfs.server.output nfs.client2.output) | tee "$work/tap"
if ! grep -q '^@@ done' "$dir"/nfs.client1.output; then
	sed 's/^/# qemu: /' "$work"/*.qemu
	tail -n 20 "$dir"/nfs.*.console | tr -d '\r' | sed 's/^/# console: /'
fi
! grep -q '^not ok' "$work/tap"
