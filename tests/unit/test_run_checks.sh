#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# What the runner of all checks makes of failures, in a tree with one test: whether it runs a
# failed one again, and what it says at the end.
set -u
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=tests/lib/tap.sh
. tests/lib/tap.sh
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
mkdir -p "$dir/tests/lib" "$dir/tests/attack" "$dir/tests/fuzz"
cp tests/lib/run-checks.sh tests/lib/accuracy-table.sh tests/lib/tap.sh "$dir/tests/lib/"
chmod -R a+rX "$dir"
touch "$dir/README.md"

# Fails as often as $dir/failures says.
cat >"$dir/tests/attack/test_liveness.sh" <<'EOF'
left=$(cat failures)
echo $((left - 1)) >failures
[ "$left" -le 0 ] && { echo "ok 1 - lives"; exit 0; }
echo "ERROR: late by 7 ms"
echo "not ok 1 - lives"
echo "# expected nothing"
exit 1
EOF
mkdir -p "$dir/tests/fuzz"
cp "$dir/tests/attack/test_liveness.sh" "$dir/tests/fuzz/run.sh"

checks() { # FAILURES AGAIN PART; prints the exit status
	echo "$1" >"$dir/failures"
	(cd "$dir" && AGAIN=$2 env -u IOCOM_SANITIZED bash tests/lib/run-checks.sh build "$3") >"$dir/out" 2>&1
	echo $?
}
ending() { tail -n 1 "$dir/out"; }
named() { grep -E "^(FAILED|UNSTEADY)" "$dir/out"; }

said="attack/test_liveness.sh: not ok 1 - lives; ERROR: late by 7 ms; # expected nothing; "
tap_is "a test that passes passes" "$(checks 0 1 liveness)" 0
tap_is "... and the last line counts it" "$(ending)" "1 passed, 0 failed, 0 skipped"
tap_is "a failure is a failure" "$(checks 1 "" liveness)" 1
tap_is "... and is named with what the test said" "$(named)" "FAILED $said"
tap_is "... and the last line counts it, too" "$(ending)" "0 passed, 1 failed, 0 skipped"
tap_is "AGAIN=1 runs it once more, and that counts" "$(checks 1 1 liveness)" 0
tap_is "... and names the first failure" "$(named)" "UNSTEADY $said"
tap_is "... which the last line does not count" "$(ending)" "1 passed, 0 failed, 0 skipped"
tap_like "... and keeps its output" "$(cat "$dir/build/log/attack_test_liveness.sh.first.log")" "late by 7 ms"
tap_is "who fails twice has failed" "$(checks 2 1 liveness)" 1
tap_is "... once" "$(ending)" "0 passed, 1 failed, 0 skipped"
tap_is "what needs no real machine runs once" "$(checks 1 1 fuzz)" 1

# The sanitizers' build is one of the parts; its tests are told which build they are to use.
mkdir -p "$dir/tests/unit"
printf 'tests:\n\t@true\n' >"$dir/Makefile"
cat >"$dir/tests/unit/test_build.sh" <<'EOF'
[ -z "${IOCOM_SANITIZED-}" ] || { echo "not ok 1 - ${IOCOM_BUILD##*/}"; exit 1; }
echo "ok 1 - plain"
EOF
tap_is "a test that only sanitizers fail fails" "$(checks 0 "" asan)" 1
tap_is "... and is named as theirs, with the build" "$(named)" "FAILED asan/unit/test_build.sh: not ok 1 - asan; "
tap_is "... beside the build itself" "$(ending)" "1 passed, 1 failed, 0 skipped"
tap_is "it passes otherwise" "$(checks 0 "" unit)" 0
tap_done
