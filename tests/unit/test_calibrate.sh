#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# `iocom calibrate`: what it prints, what it refuses, and that it leaves nothing.
set -uo pipefail
here=$(cd "$(dirname "$0")/../.." && pwd)
# shellcheck source=tests/lib/tap.sh disable=SC1091
. "$here/tests/lib/tap.sh"
build=${IOCOM_BUILD:-$here/build}
iocom=$build/iocom
dir=$(mktemp -d /var/tmp/iocom-calibrate-XXXXXX)
trap 'rm -rf "$dir"' EXIT
trap 'exit 130' INT TERM
quick=(--size 4Mi --seconds 0.05)

status() { # EXPECTED COMMAND...
	local expected=$1 rc
	shift
	"$@" >"$dir/out" 2>"$dir/err" </dev/null
	rc=$?
	tap_is "status $expected: ${*:2}" "$rc" "$expected"
}

status 0 "$iocom" calibrate --help
tap_like "help" "$(cat "$dir/out")" '^usage: iocom calibrate'
status 2 "$iocom" calibrate --size 4K
tap_like "a file that is too small" "$(cat "$dir/err")" "^iocom calibrate: --size takes 1Mi to 1000G bytes, for example 256Mi, not '4K'"
status 2 "$iocom" calibrate --size much
for bad in 0 -1 x 61 nan; do
	status 2 "$iocom" calibrate --seconds "$bad"
	tap_like "--seconds $bad" "$(cat "$dir/err")" "^iocom calibrate: --seconds takes a number above 0, at most 60, not '$bad'"
done
status 2 "$iocom" calibrate --reference 0
status 2 "$iocom" calibrate somewhere
tap_like "a word too many" "$(cat "$dir/err")" "unexpected 'somewhere'"
status 2 "$iocom" calibrate --fast
status 1 "$iocom" calibrate "${quick[@]}" --dir "$dir/nowhere"
tap_like "no such directory" "$(cat "$dir/err")" "^iocom calibrate: cannot look at $dir/nowhere: No such file or directory"
status 1 "$iocom" calibrate --seconds 0.05 --size 1000G --dir "$dir"
tap_like "more than there is room for" "$(cat "$dir/err")" 'MB free, and the file would take 1000000 MB: more than half of it \(--size\)'
if [ "$(stat -f -c %T /dev/shm 2>/dev/null)" = tmpfs ]; then
	status 1 "$iocom" calibrate "${quick[@]}" --dir /dev/shm
	tap_like "memory is no disk" "$(cat "$dir/err")" '^iocom calibrate: /dev/shm is in memory, not on a disk: name a directory'
else
	tap_skip "memory is no disk" "/dev/shm is no tmpfs"
fi
status 0 "$iocom" calibrate --no-disk --seconds 0.05
tap_like "only the processor" "$(cat "$dir/out")" '^Processor: score [0-9.]+$'
tap_like "and what to do with its score" "$(cat "$dir/out")" 'choose one machine as the reference, and say --reference [0-9.]+ on the others'

if ! dd if=/dev/zero of="$dir/probe" bs=4096 count=1 oflag=direct 2>/dev/null; then
	tap_skip "measuring a disk" "the file system of /var/tmp cannot pass the page cache"
	tap_done
	exit
fi
rm -f "$dir/probe"
status 0 "$iocom" calibrate "${quick[@]}" --dir "$dir" --reference 1e9 --json
tap_is "the document has all numbers, above 0" \
	"$(jq -r '[.cpu_score, .cpu_speed, .disk.read_mb_per_s, .disk.write_mb_per_s, .disk.streams_mb_per_s, .disk.small_ms, (.disk.small_reads[] | .per_s)] | all(. > 0)' "$dir/out")" true
tap_is "up to 32 reads at a time" "$(jq -c '[.disk.small_reads[].at_a_time]' "$dir/out")" "[1,2,4,8,16,32]"
tap_is "one at a time is what one read takes" \
	"$(jq -r '(.disk.small_reads[0].per_s * .disk.small_ms / 1e3 - 1) | fabs < 1e-6' "$dir/out")" true
tap_is "many at a time are at least one, and no more than small reads or streams" \
	"$(jq -r '.disk | .parallel >= 1 and (.parallel == 1 or .parallel <= .parallel_small + 1e-9 and
		.parallel <= .streams_mb_per_s / .read_mb_per_s + 1e-9)' "$dir/out")" true
tap_is "what is fixed is part of it" "$(jq -r '.disk.fixed_ms >= 0 and .disk.fixed_ms <= .disk.small_ms' "$dir/out")" true

# The lines are for the configuration as they are.
status 0 "$iocom" calibrate "${quick[@]}" --dir "$dir" --reference 100
{
	echo "[iocom]"
	grep -E '^[a-z_]+ = ' "$dir/out"
} >"$dir/iocom.conf"
tap_is "four lines for the configuration" "$(grep -c = "$dir/iocom.conf")" 4
chmod 600 "$dir/iocom.conf"
tap_like "and an agent takes them" \
	"$("$iocom" doctor --no-agent --config "$dir/iocom.conf" --json | jq -r '.checks[] | select(.check == "config") | .state')" '^ok$'
tap_is "nothing is left" "$(find "$dir" -type f -printf '%f\n' | sort | tr '\n' ' ')" "err iocom.conf out "
tap_done
