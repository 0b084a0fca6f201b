#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# Boots one kernel and prints the outcome as TAP: `guest.sh BUILD SUITE [PART-OF-A-NAME]`. It
# needs no help by the hardware (qemu translates), no root and no network. A machine that hangs is
# killed after IOCOM_VM_SECONDS (default 1200) and counts as failed.  IOCOM_VM_LONG=1 runs what takes
# minutes, too; IOCOM_VM_LIMIT: seconds for each program (default 150).
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1
build=$1 suite=$2 only=${3:-}
dir=build/vm/$suite
seconds=${IOCOM_VM_SECONDS:-1200}
# shellcheck source=tests/vm/suites.sh
. tests/vm/suites.sh

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
bash tests/vm/initramfs.sh "$build" "$dir" "$work/initramfs" || {
	echo "not ok 1 - an initramfs for $suite"
	exit 1
}
truncate -s 4G "$work/disk"
emulator=(qemu-system-x86_64)
if [ -d build/vm/emulator ]; then
	unpacked=build/vm/emulator/usr
	emulator=("$unpacked/bin/qemu-system-x86_64" -L "$unpacked/share/seabios"
		-L "$unpacked/share/qemu")
fi
# Without la57 the machine walks one level of page tables less.
timeout --kill-after=5 "$seconds" "${emulator[@]}" -accel tcg,thread=multi -cpu max,la57=off \
	-smp 2 -m "${IOCOM_VM_MEMORY:-2G}" \
	-nodefaults -display none -no-reboot -kernel "$dir/vmlinuz" -initrd "$work/initramfs" \
	-append "console=ttyS0 panic=-1 quiet iocom_expect=${expected[$suite]} iocom_only=$only \
iocom_jobs=${jobs_in[$suite]} iocom_long=${IOCOM_VM_LONG:-} \
iocom_limit=${IOCOM_VM_LIMIT:-150} iocom_rounds=${IOCOM_VM_ROUNDS:-5} iocom_mb=${IOCOM_VM_MB:-512} iocom_kb=${IOCOM_VM_KB:-200}" \
	-serial "file:$dir/console" -serial "file:$work/output" -monitor none \
	-drive "file=$work/disk,if=virtio,format=raw,cache=unsafe,discard=unmap" </dev/null >"$work/qemu" 2>&1
status=$?
tr -d '\r' <"$work/output" >"$dir/output"
printf "# |booted and run in %d s\n" "$SECONDS"
# Makes one TAP of all programs: each result gets its program's name, and a program that died
# without a failed result counts as one.
awk -v seconds="$seconds" -v status="$status" '
/^@@ begin / { name = $3; results = failed = 0; next }
/^@@ end / {
	if ($4 != 0 && !failed)
		print "not ok " ++n " - " name ($4 == 124 ? " took too long" : " ended with " $4)
	else if (!results)
		print "not ok " ++n " - " name " told no result"
	name = ""
	next
}
/^@@ done/ { finished = 1; next }
/^@@ / { print "not ok " ++n " -" substr($0, 3); next }
/^1\.\.0 # SKIP/ { print "ok " ++n " - " name substr($0, 5); results++; next }
/^(ok|not ok) / {
	failing = /^not ok/ && !/# SKIP/
	sub(/^(not )?ok [0-9]*( - )?/, "")
	print (failing ? "not ok " : "ok ") ++n " - " name ": " $0
	results++
	failed += failing
	next
}
/^1\.\.[0-9]/ { next }
{ print }
END {
	if (!finished)
		print "not ok " ++n " - the machine " (status == 124 ? "hung: killed after " seconds " s" \
			: "stopped (qemu ended with " status ")") (name ? " in " name : "")
	print "1.." n + 0
}' "$dir/output" | tee "$work/tap"
if [ "$(grep -c '^@@ done' "$dir/output")" -eq 0 ]; then
	sed 's/^/# qemu: /' "$work/qemu"
	tail -n 30 "$dir/console" | tr -d '\r' | sed 's/^/# console: /'
fi
! grep -q '^not ok' "$work/tap"
