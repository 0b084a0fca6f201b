#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# A cluster of three virtual machines, an NFS server and two of its clients, all with iocomd, and the
# outcome as TAP: `nfs.sh BUILD SUITE`. The machines are linked by sockets of the host: the server has
# a network card to each client, and bridges them. It needs no help by the hardware, no root and no
# network. Machines that hang are killed after IOCOM_VM_SECONDS (default 420).
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1
build=$1 suite=$2
dir=build/vm/$suite
seconds=${IOCOM_VM_SECONDS:-420}
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
boot() { # NODE NETWORK-ARGUMENT...
	local node=$1
	shift
	truncate -s 1G "$work/$node.disk"
	timeout --kill-after=5 "$seconds" "${emulator[@]}" -accel tcg,thread=multi -cpu max,la57=off \
		-smp 1 -m 768M -nodefaults -display none -no-reboot -kernel "$dir/vmlinuz" \
		-initrd "$work/initramfs" -append "console=ttyS0 panic=-1 quiet iocom_expect=measures \
iocom_node=$node iocom_key=$key iocom_limit=$seconds" \
		-serial "file:$dir/nfs.$node.console" -serial "file:$work/$node.output" -monitor none \
		-drive "file=$work/$node.disk,if=virtio,format=raw,cache=unsafe,discard=unmap" \
		"$@" </dev/null >"$work/$node.qemu" 2>&1 &
	machines+=($!)
}
link() { # NUMBER SERVER MAC
	printf '%s\n' -netdev "stream,id=net$1,server=$2,addr.type=unix,addr.path=$work/link$1" \
		-device "virtio-net-pci,netdev=net$1,mac=52:54:00:09:00:$3,romfile="
}
mapfile -t first < <(link 0 on 01)
mapfile -t second < <(link 1 on 02)
boot server "${first[@]}" "${second[@]}"
until [ -S "$work/link0" ] && [ -S "$work/link1" ]; do sleep 0.2; done
mapfile -t first < <(link 0 off 11)
boot client1 "${first[@]}"
mapfile -t second < <(link 1 off 21)
boot client2 "${second[@]}"
wait
cat "$work"/*.output "$work"/*.qemu
