#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# bench-effect in short: 20 jobs of three programs on four nodes, with and without balancing, on
# whatever machine this is.  n1 has a slow disk and a third of the jobs, so without balancing its
# queue grows: only that order is asserted, and that every job printed the known result.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1
. tests/lib/tap.sh
[ "$(id -u)" -eq 0 ] || tap_skip_all "needs root (network namespaces, eBPF)"
[ -e /sys/kernel/btf/vmlinux ] || tap_skip_all "the kernel has no BTF"
[ -c /dev/fuse ] || tap_skip_all "no /dev/fuse for the emulated disks"
build=${IOCOM_BUILD:-$PWD/build}
export IOCOM_TESTBED_MARK=${IOCOM_TESTBED_MARK:-iocom-effect}
scratch=$(mktemp -d /var/tmp/iocom-effect-XXXXXX)
trap 'rm -rf "$scratch"' EXIT
# shellcheck disable=SC2054
bench=(python3 -B tests/effect/effect.py --build "$build" --set grep,sort,mmap --disks 2,20,20,20
	--scale 0.2 --jobs 20 --passes 1 --alone-runs 1 --retries 0 --layouts homogeneous --rates high
	--choosers nlb,fewest-jobs --with-void --journals --out "$scratch/out")
left() { # what remains of the cluster
	tests/testbed/testbed status
	find /sys/fs/cgroup -maxdepth 2 -type d \( -name "$IOCOM_TESTBED_MARK" -o -name "$IOCOM_TESTBED_MARK-harness" \)
}

if ! "${bench[@]}" >"$scratch/log" 2>&1 </dev/null; then
	tap_fail "the benchmark runs" "$(tail -n 20 "$scratch/log")"
	tap_done
	exit
fi
tap_ok "the benchmark runs"
of() { jq -r "$2" "$scratch/out/passes/homogeneous-high-01-$1.1.json"; }
for chooser in nlb fewest-jobs; do
	tap_is "$chooser: all 20 jobs printed the known result" \
		"$(of $chooser '[.jobs[] | select(.wrong == "" and .status == 0)] | length')" 20
done
tap_is "NLB sends none away" "$(of nlb '[.jobs[] | select(.node != .home)] | length')" 0
tap_calc "fewest-jobs sends some away" "$(of fewest-jobs '[.jobs[] | select(.node != .home)] | length') > 0"
same='[.jobs[] | [.number, .at, .program, .variant, .home]] | tostring'
tap_is "both had the same jobs" "$(of nlb "$same")" "$(of fewest-jobs "$same")"
mean() { of "$1" '[.jobs[] | .s / .alone_s] | add / length | . * 100 | round / 100'; }
echo "# | mean slowdown: nlb $(mean nlb), fewest-jobs $(mean fewest-jobs)"
tap_calc "NLB is slower than fewest-jobs: $(mean nlb) above $(mean fewest-jobs)" "$(mean nlb) > $(mean fewest-jobs)"
tap_like "the report has both" "$(cat "$scratch/out/report.md")" '^\| fewest-jobs \| 1 \|'
# What NLB's jobs were expected to take is known, for each program and with its correction.
tap_is "nlb: most jobs have an expectation" "$(of nlb '[.jobs[] | select(.expected.there_ms > 0 and .expected.there_factor > 0)] | length >= 15')" true
for row in nlb fewest-jobs grep sort mmap all; do
	tap_like "the report has the predictions: $row" "$(cat "$scratch/out/report.md")" "^\\| $row \\| corrected \\| [0-9]+ \\|"
done
tap_like "and those of the rules alone" "$(cat "$scratch/out/report.md")" '^\| nlb \| rules alone \| [0-9]+ \|'
kept() { # CHOOSER SQL: the sum over all journals of its pass
	for db in "$scratch/out/journals/homogeneous-high-01-$1.1"/n?.db; do sqlite3 "$db" "$2"; done | awk '{ s += $1 } END { print s + 0 }'
}
for chooser in nlb fewest-jobs; do
	tap_is "$chooser: the journals have its 20 jobs, each with the time that it took" \
		"$(kept $chooser "SELECT count(*) FROM home WHERE wall_ms>0") $(kept $chooser "SELECT count(*) FROM home")" "20 20"
done
tap_is "nothing is left of the cluster" "$(left)" "no testbed is up"

# The passes are there: nothing runs again.
tap_like "a second run finds all passes" "$("${bench[@]}" 2>&1 </dev/null)" "^all passes are there"
tap_like "another seed needs another OUT" "$("${bench[@]}" --seed 2 2>&1 </dev/null)" "seed: 1 there, 2 wanted"

# Ctrl-C while the cluster is up.
rm "$scratch/out/passes/homogeneous-high-01-nlb.1.json"
"${bench[@]}" >"$scratch/interrupted" 2>&1 </dev/null &
pid=$!
until_true 60 grep -q "passes to run" "$scratch/interrupted"
kill -INT $pid
wait $pid
tap_is "Ctrl-C ends it" $? 130
tap_is "and nothing is left" "$(left)" "no testbed is up"
tap_done
