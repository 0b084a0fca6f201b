#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# The accuracy tests can fail: with a part of the monitor switched off (enum ablate in
# bpf/records.h) the cases that need it fail, and others still pass.
set -uo pipefail
. tests/lib/tap.sh
build=${IOCOM_BUILD:?run by run-checks.sh}
export CMOCKA_MESSAGE_OUTPUT=TAP

[ "$(id -u)" = 0 ] || tap_skip_all "needs root"

# Runs PROGRAM without a part of the monitor; each test named in MUST has to fail.
without() { # PART BIT PROGRAM MUST...
	local part=$1 bit=$2 program=$3 log failed passed name missing=
	shift 3
	log=$(IOCOM_ABLATE=$bit timeout 200 "$build/tests/bpf/$program" 2>&1)
	case $log in
	*"# SKIP"*) tap_skip "without the $part" "$program was skipped"; return ;;
	esac
	failed=$(sed -n 's/^not ok [0-9]* - \(test_[a-z0-9_]*\).*/\1/p' <<<"$log")
	passed=$(grep -c '^ok [0-9]* - test_' <<<"$log")
	for name in "$@"; do
		[[ " ${failed//$'\n'/ } " == *" $name "* ]] || missing+=" $name"
	done
	echo "# |without the $part: $(wc -w <<<"$failed") tests of $program fail, $passed pass:" \
		"${failed//$'\n'/ }"
	if [ -z "$missing" ] && [ "$passed" -gt 0 ]; then
		tap_ok "without the $part: what needs it fails"
	else
		tap_fail "without the $part: what needs it fails" "did not fail:$missing; $passed passed"
	fi
}

without ledger 1 test_accuracy_writeback test_after_exit test_cowriters
without "fault classifier" 2 test_accuracy_io test_faults
without "exit folding" 4 test_monitor test_short_processes test_5ms_task
without "owners of bios held back" 8 test_accuracy_io test_limited_reads
tap_done
