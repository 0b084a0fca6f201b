#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# Compares the manual pages with the programs: every option of a help, every field of the JSON of
# `iocom top` and every column of `iocom record --csv` must be in its page. Also: a program says
# so if its output cannot be written.
set -uo pipefail
here=$(cd "$(dirname "$0")/../.." && pwd)
# shellcheck source=tests/lib/tap.sh disable=SC1091
. "$here/tests/lib/tap.sh"
build=${IOCOM_BUILD:-$here/build}
dir=$(mktemp -d /tmp/iocom-manual-XXXXXX)
trap 'rm -rf "$dir"' EXIT
export IOCOM_RUN_DIR=$dir/none

# Words in bold, without the backslashes of scdoc.
words() { sed 's/\\//g' "$here/$1" | grep -oE '\*-?-?[A-Za-z0-9_-]+' | tr -d '*' | sort -u; }
options() { grep -oE -- '(^|[^A-Za-z0-9-])--[a-z][a-z-]*' | grep -oE -- '--[a-z-]+' | sort -u; }
missing() { comm -23 - "$dir/words" | tr '\n' ' '; } # from standard input

for page in top:top.1 run:run.1 rsh:rsh.1 batch:batch.1 doctor:doctor.1 nodes:.1 explain:.1 jobs:.1 report:.1 attach:.1 wait:.1 kill:.1 owner:owner.1 feedback:.1 profile:.1 record:.1; do
	command=${page%%:*}
	file=balancer/iocom-${page#*:}
	{
		options <"$here/${file/-./.}.scd"
		echo --run-dir # for all commands: iocom(1), ENVIRONMENT
	} | sort -u >"$dir/words"
	tap_is "iocom $command: its options are in the manual page" \
		"$("$build/iocom" "$command" --help | options | missing)" ""
done
words agent/iocomd.8.scd >"$dir/words"
tap_is "iocomd: its options are in the manual page" \
	"$("$build/iocomd" --help | options | missing)" ""
"$build/iocomd" --help | options >"$dir/words"
tap_is "iocomd: the manual page has no others" "$(sed -n '/^# OPTIONS/,/^# METRICS/p' \
	"$here/agent/iocomd.8.scd" | grep -E '^\*-' | options | missing)" ""

"$build/iocom" top --bogus 2>"$dir/err"
tap_is "a wrong option: the error has the command's whole name" "$? $(head -n 1 "$dir/err")" \
	"2 iocom top: unrecognized option '--bogus'"

mapfile -t commands < <("$build/iocom" --help | sed -n '/^commands:/,/^$/s/^  \([a-z]*\) .*/\1/p' |
	grep -vxE 'sim|replay') # those ask iocom-sim
tap_true "there are commands" test "${#commands[@]}" -gt 10
# A longer line is broken anywhere by a terminal, and a longer error moves the mistake out of sight.
too_wide() { awk -v command="$1" 'length > 80 { print command ": " $0 }'; }
tap_is "help: no line is longer than 80 columns" "$({
	"$build/iocom" --help | too_wide iocom
	"$build/iocomd" --help | too_wide iocomd
	for command in "${commands[@]}"; do
		"$build/iocom" "$command" --help | too_wide "$command"
	done
} 2>&1)" ""
tap_is "a wrong option: the mistake, and where the options are listed" "$(
	for command in "${commands[@]}"; do
		"$build/iocom" "$command" --bogus 2>"$dir/err"
		[ "$(sed -n 1p "$dir/err")" = "iocom $command: unrecognized option '--bogus'" ] &&
			[ "$(sed -n '2,$p' "$dir/err" | grep -c -- "iocom $command --help")" -eq 1 ] &&
			[ "$(wc -l <"$dir/err")" -eq 2 ] || echo "$command: $(cat "$dir/err")"
	done
)" ""

if [ "$(id -u)" -ne 0 ]; then
	tap_skip "fields of the JSON" "needs root"
	tap_done
fi
"$build/iocom" top --direct --json -n 2 -d 0.1 | tail -n 1 >"$dir/json"
words balancer/iocom-top.1.scd >"$dir/words"
# Fields may have _per_s added; cost.classifier is in the page by its whole name.
tap_is "iocom top --json: its fields are in the manual page" \
	"$(jq -r '[.. | objects | keys[]] | unique[]' "$dir/json" | sed 's/_per_s$//' |
		grep -vx classifier | sort -u | comm -23 - <(sed 's/_per_s$//' "$dir/words" | sort -u) |
		tr '\n' ' ')" ""
tr -c 'a-zA-Z0-9_' '\n' <"$here/balancer/iocom-csv.5.scd" | sort -u >"$dir/words"
for kind in node disks programs maps; do
	"$build/iocom" record --csv $kind --direct --seconds 1 --delay 0.5 --out "$dir/$kind.csv" \
		2>/dev/null
	tap_is "iocom record --csv $kind: its columns are in the manual page" \
		"$(head -n 1 "$dir/$kind.csv" | tr ',' '\n' | sed 's/_per_s$//' | sort -u |
			comm -23 - <(sed 's/_per_s$//' "$dir/words" | sort -u) | tr '\n' ' ')" ""
done
for command in doctor "doctor --json" "top --direct -b -n 1"; do
	# shellcheck disable=SC2086 # words
	"$build/iocom" $command >/dev/full 2>"$dir/err"
	tap_like "$command: a full disk is reported" "$? $(cat "$dir/err")" \
		'^1 iocom.*: cannot write the output: No space left on device$'
done
tap_done
