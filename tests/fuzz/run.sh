#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# Builds the libFuzzer targets of this folder with clang, ASan and UBSan and runs each for some
# seconds, from the samples and from what earlier runs found. FUZZ_JOBS run at a time (by default
# one more than there are processors, because some wait). Prints TAP. Usage: run.sh BUILD
# SECONDS[,SECONDS] [TARGET...|protocol]; the second number is for the targets that decode the
# protocol, and `protocol` means all of these. An input that breaks something stays in
# BUILD/crashes/TARGET-*; run it again with BUILD/fuzz/fuzz_TARGET FILE.
set -uo pipefail
build=$1
seconds=${2%,*}
protocol_seconds=${2#*,}
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
if [ ${#targets[@]} -eq 0 ] || [ "${targets[0]}" = protocol ]; then
	sources=(tests/fuzz/protocol/fuzz_*.c tests/fuzz/fuzz_*.c)
	[ ${#targets[@]} -eq 0 ] || sources=(tests/fuzz/protocol/fuzz_*.c)
	targets=()
	for source in "${sources[@]}"; do
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
mkdir -p "$build/crashes" "$build/log"

fuzz() { # TARGET
	local target=$1 time=$seconds n
	mkdir -p "$build/corpus/$target" "$build/seeds/$target"
	if [ -e "tests/fuzz/protocol/fuzz_$target.c" ]; then
		time=$protocol_seconds
		for n in {0..19}; do # these make their own samples
			"$build/fuzz/fuzz_$target" --sample "$n" >"$build/seeds/$target/own$n" || break
		done
	fi
	# leaks are found at the end of each input; no input may take 10 s
	ASAN_OPTIONS=detect_stack_use_after_return=0 "$build/fuzz/fuzz_$target" \
		-max_total_time="$time" -timeout=10 -rss_limit_mb=1500 -max_len=8192 \
		-print_final_stats=1 -verbosity=1 -artifact_prefix="$build/crashes/$target-" \
		"$build/corpus/$target" "$build/seeds/$target" >"$build/log/$target" 2>&1 </dev/null
}

pids=()
at_once=${FUZZ_JOBS:-$(($(nproc) + 1))}
for target in "${targets[@]}"; do
	while [ "$(jobs -rp | wc -l)" -ge "$at_once" ]; do wait -n; done
	fuzz "$target" &
	pids+=($!)
done
for i in "${!targets[@]}"; do
	target=${targets[i]} log=$build/log/${targets[i]}
	if wait "${pids[i]}"; then
		tap_ok "$target: nothing broken"
		runs=$(awk '/number_of_executed_units/ {print $2}' "$log")
		took=$(awk '/^Done / {print $5}' "$log")
		printf '# | %-10s %9s inputs in %s s, %s\n' "$target" "$runs" "$took" \
			"$(grep -oE 'cov: [0-9]+' "$log" | tail -n 1)"
	else
		tap_fail "$target: nothing broken" "$(tail -n 60 "$log")"
	fi
done
tap_done
