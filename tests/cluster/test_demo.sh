#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# `make demo` under any name of the testbed: it ends well, its decision is the one it announces, and
# the commands that it prints are commands.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1
. tests/lib/tap.sh
[ "$(id -u)" -eq 0 ] || tap_skip_all "needs root (network namespaces, eBPF)"
[ -e /sys/kernel/btf/vmlinux ] || tap_skip_all "the kernel has no BTF"
[ -c /dev/fuse ] || tap_skip_all "no /dev/fuse for the emulated disks"
dir=$(mktemp -d)
mark=${IOCOM_TESTBED_MARK:-iocom-testbed}
down() { tests/testbed/testbed down >/dev/null 2>&1; rm -rf "$dir"; }
trap down EXIT
trap 'exit 130' INT TERM

IOCOM_TESTBED_MARK=$mark timeout 120 tests/testbed/demo >"$dir/out" 2>"$dir/err"
tap_is "the demo ends well" "$? $(grep -v "^iocom run: job " "$dir/err")" "0 "
tap_like "its job leaves the busy node" "$(cat "$dir/out")" 'It ran on n2, in [0-9]+ ms'
tap_like "all six steps are shown" "$(cat "$dir/out")" '6\. Cleaning up.*'
tap_true "nothing stays behind" grep -q '^no testbed is up$' "$dir/out"
printed=$(sed -n 's/^n1\$ iocom run .* -- //p' "$dir/out" | cut -d ' ' -f 1)
tap_true "the job's program, as printed, is one ($printed)" test -x "$printed"
again=$(sed -n 's/^   To go on: sudo //p' "$dir/out")
exec 9>"/run/lock/$mark-user.lock"
flock -w 900 9
bash -c "$again" >"$dir/up" 2>&1
tap_like "the command that is named at the end brings the nodes up" "$(cat "$dir/up")" '3 nodes up'
command=$(sed -n 's/.*(n1 to n3; \(.*\) -- COMMAND)$/\1/p' "$dir/up")
tap_is "and what that one names runs a command there ($command)" "$(bash -c "$command -- hostname" 2>&1)" n1
tap_done
