#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# Another compiler, or a build without optimisation, gives the same results to the last bit.
set -uo pipefail
# shellcheck source=tests/lib/tap.sh
source tests/lib/tap.sh
build=${IOCOM_BUILD:-$PWD/build}
[ -z "${IOCOM_SANITIZED-}" ] || tap_skip_all "the sanitizers change nothing about it"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

digest() { # DIRECTORY COMPILER FLAGS
	env -u MAKEFLAGS CC="$2" CFLAGS="$3" make --no-print-directory -j2 BUILD="$scratch/$1" \
		"$scratch/$1/tests/sim/test_digest" >"$scratch/$1.log" 2>&1 &&
		"$scratch/$1/tests/sim/test_digest" print
}

same() { # COMPILER FLAGS
	local what="$1 $2 does the same as this build" theirs
	if ! command -v "$1" >/dev/null; then
		tap_skip "$what" "no $1 here"
		return
	fi
	theirs=$(digest "$1$2" "$1" "$2") || theirs="failed: $(tail -n 5 "$scratch/$1$2.log")"
	tap_is "$what" "$theirs" "$ours"
}

ours=$("$build/tests/sim/test_digest" print) || tap_skip_all "test_digest is not built"
same clang -O2
same gcc -O0
tap_done
