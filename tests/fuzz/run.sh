#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# Builds the libFuzzer targets of this folder with clang, ASan and UBSan and runs each for
# some seconds from the samples and from what earlier runs found.  TAP.
# Usage: run.sh BUILD SECONDS [TARGET...].  An input that breaks something stays in
# BUILD/crashes/TARGET-*; run it again with BUILD/fuzz/fuzz_TARGET FILE.
set -uo pipefail
build=$1
seconds=$2
shift 2
clang=${CLANG:-clang}
# shellcheck source=tests/lib/tap.sh
. tests/lib/tap.sh

probe=$(mktemp)
trap 'rm -f "$probe"' EXIT
if ! command -v "$clang" >/dev/null; then
	tap_skip_all "no $clang: libFuzzer is part of it"
elif ! echo 'int LLVMFuzzerTestOneInput(const char *d, long n) { return !d && n; }' |
	"$clang" -fsanitize=fuzzer,address -x c - -o "$probe" 2>/dev/null; then
	tap_skip_all "$clang has no libFuzzer (Debian: libclang-rt-14-dev)"
fi

targets=("$@")
if [ ${#targets[@]} -eq 0 ]; then
	for source in tests/fuzz/fuzz_*.c tests/fuzz/protocol/fuzz_*.c; do
		name=$(basename "$source" .c)
		targets+=("${name#fuzz_}")
	done
fi
if ! make --no-print-directory -j"$(nproc)" BUILD="$build" CC="$clang" \
	SANITIZE=fuzzer-no-link,address,undefined "${targets[@]/#/$build/fuzz/fuzz_}"; then
	tap_fail "the fuzz targets build"
	tap_done
	exit 1
fi

rm -rf "$build/seeds"
bash tests/fuzz/seeds.sh "$build/seeds"
mkdir -p "$build/crashes"
for target in "${targets[@]}"; do
	mkdir -p "$build/corpus/$target" "$build/seeds/$target"
	for n in 0 1 2 3; do # the protocol's targets make their own
		[ -e "tests/fuzz/protocol/fuzz_$target.c" ] &&
			"$build/fuzz/fuzz_$target" --sample "$n" >"$build/seeds/$target/own$n" || break
	done
	# leaks are found at the end of each input; 10 s is far more than any may take
	if out=$(ASAN_OPTIONS=detect_stack_use_after_return=0 "$build/fuzz/fuzz_$target" \
		-max_total_time="$seconds" -timeout=10 -rss_limit_mb=1500 -max_len=8192 \
		-print_final_stats=1 -verbosity=1 -artifact_prefix="$build/crashes/$target-" \
		"$build/corpus/$target" "$build/seeds/$target" 2>&1 </dev/null); then
		tap_ok "$target: nothing broken"
		runs=$(awk '/number_of_executed_units/ {print $2}' <<<"$out")
		cover=$(grep -oE 'cov: [0-9]+' <<<"$out" | tail -n 1)
		printf '# | %-10s %9s inputs in %s s, %s\n' "$target" "$runs" "$seconds" "$cover"
	else
		tap_fail "$target: nothing broken" "$(tail -n 60 <<<"$out")"
	fi
done
tap_done
