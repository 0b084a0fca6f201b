#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# What the runner of all checks makes of failures, in a tree of tests that do nothing else: whether it
# runs a failed one again, what it says at the end, and that it runs each test once.
set -u
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=tests/lib/tap.sh
. tests/lib/tap.sh
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
unset IOCOM_CHECK_UNTIL
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

checks() { # FAILURES AGAIN PART...; prints the exit status
	echo "$1" >"$dir/failures"
	(cd "$dir" && AGAIN=$2 env -u IOCOM_SANITIZED bash tests/lib/run-checks.sh build "${@:3}") >"$dir/out" 2>&1
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

# An end that is near: what can be left out is, the rest gets what time there is.
until_in() { export IOCOM_CHECK_UNTIL=$(($(date +%s) + $1)); }
mkdir -p "$dir/tests/effect"
echo 'print("ok 1 - stub")' >"$dir/tests/effect/test_units.py"
until_in 30
tap_is "a part that can be left out is, when time is short" "$(checks 0 1 effect)" 0
tap_is "... and counts as skipped" "$(ending)" "0 passed, 0 failed, 1 skipped"
tap_like "... and is listed with the reason" "$(cat "$dir/out")" '^LEFT OUT effect: it would take some [0-9]+ s here, and (29|30) s are left for all$'
tap_is "one that cannot be left out runs" "$(checks 0 1 liveness)" 0
tap_is "a failed test that has no time to run again has failed" "$(checks 1 1 liveness)" 1
tap_like "... and says so" "$(named)" "FAILED attack/test_liveness.sh: it failed at first, and no time is left to run it again"
until_in 3600
tap_is "with time enough the part runs" "$(checks 0 1 effect)" 0
tap_is "... and counts" "$(ending)" "1 passed, 0 failed, 0 skipped"
until_in 1
sleeper="$dir/tests/attack/test_liveness.sh"
cp "$sleeper" "$dir/liveness"
echo 'sleep 60; echo "ok 1 - slept"' >"$sleeper"
tap_is "a test that would last longer than the whole is ended" "$(checks 0 "" liveness)" 1
tap_like "... and says why" "$(cat "$dir/out")" "attack/test_liveness.sh: over its budget"
cp "$dir/liveness" "$sleeper"
unset IOCOM_CHECK_UNTIL

# The sanitizers' build is one of the parts; its tests are told which build they are to use.
mkdir -p "$dir/tests/unit"
printf 'tests:\n\t@true\n' >"$dir/Makefile"
# The daily run has its compiled tests only: here scripts stand for them.
mkdir -p "$dir"/build/{,asan/}tests/{unit,shim}
compiled() { # NAME: a test in both builds, from standard input
	: >"$dir/tests/$1.c"
	{ echo '#!/bin/bash' && cat; } | tee "$dir/build/tests/$1" >"$dir/build/asan/tests/$1"
	chmod 755 "$dir"/build/{,asan/}tests/"$1"
}
compiled unit/test_build <<'EOF'
[ -z "${IOCOM_SANITIZED-}" ] || { echo "not ok 1 - ${IOCOM_BUILD##*/}"; exit 1; }
echo "ok 1 - plain"
EOF
tap_is "a test that only sanitizers fail fails" "$(checks 0 "" asan)" 1
tap_is "... and is named as theirs, with the build" "$(named)" "FAILED asan/unit/test_build: not ok 1 - asan; "
tap_is "... beside the build itself" "$(ending)" "1 passed, 1 failed, 0 skipped"
tap_is "it passes otherwise" "$(checks 0 "" unit)" 0

# All daily parts: what computes runs beside what waits, and counts as if it did not.
mkdir -p "$dir"/tests/{shim,chaos,effect,cluster,vm}
for stub in lib/check-layers.sh lib/check-hardening.sh lib/check-names.sh lib/lint.sh vm/fetch.sh; do
	: >"$dir/tests/$stub"
done
for stub in lib/check-circles.py lib/check-model.py chaos/test_judge.py chaos/test_bed.py \
	chaos/test_gangs.py chaos/test_move_judge.py effect/test_units.py; do
	echo 'print("ok 1 - stub")' >"$dir/tests/$stub"
done
for stub in chaos/chaos.sh chaos/gangs.sh chaos/moves.sh chaos/moving.sh fuzz/run.sh cluster/test_run.sh cluster/test_decisions.sh \
	attack/test_liveness.sh vm/guest.sh vm/nfs.sh; do
	echo 'echo "ok 1 - stub"' >"$dir/tests/$stub"
done
echo 'echo "ok 1 - stub"' | compiled unit/test_build
echo 'echo "ok 1 - stub"' | compiled shim/test_beside
echo 'suites=(one)' >"$dir/tests/vm/suites.sh"
printf 'tests format-check:\n\t@true\n' >"$dir/Makefile"
# This one ends when one of the other lane has run.
cat >"$dir/tests/attack/test_meets.sh" <<'EOF'
for ((i = 0; i < 600; i++)); do
	[ ! -e met ] || { echo "ok 1 - met"; exit 0; }
	sleep 0.1
done
echo "not ok 1 - met"
EOF
echo 'touch met; echo "ok 1 - here"' >"$dir/tests/unit/test_meets.sh"
tap_is "all parts pass, some beside each other" "$(checks 0 "" all vm)" 0
once() { grep -cE "^  $1 +1 passed, 0 failed" "$dir/out"; }
each=(check-layers unit/test_meets.sh fuzz asan-build asan/unit/test_build shim/test_beside
	vm/fetch vm/one vm/nfs cluster/test_run.sh attack/test_meets.sh chaos/chaos.sh attack/test_liveness.sh
	cluster/test_decisions.sh effect/units)
for name in "${each[@]}"; do tap_is "... $name once" "$(once "$name")" 1; done
tap_is "... and the last line counts each" "$(ending)" "$(awk '
	/^  .* passed, / { for (i = 1; i < NF; i++) if ($(i + 1) == "passed,") n += $i }
	END { print n " passed, 0 failed, 0 skipped" }' "$dir/out")"
tap_like "... and tells the seconds of each" "$(cat "$dir/out")" \
	'seconds a part: cluster [0-9]+, .*\(static [0-9]+, .*vm [0-9]+ beside\), liveness [0-9]+, .*again [0-9]+$'

# One of the tests beside fails, as often as $dir/failures says.
compiled shim/test_beside <<'EOF'
left=$(cat failures)
echo $((left - 1)) >failures
[ "$left" -le 0 ] && { echo "ok 1 - stub"; exit 0; }
echo "not ok 1 - late"
EOF
said="shim/test_beside: not ok 1 - late; "
tap_is "one that fails beside others runs again at the end" "$(checks 1 1 all)" 0
tap_is "... and is named" "$(named)" "UNSTEADY $said"
tap_is "one that fails twice has failed" "$(checks 2 1 all)" 1
tap_is "... and is named" "$(named)" "UNSTEADY $said
FAILED $said"
tap_like "... and counted" "$(ending)" '^[0-9]+ passed, 1 failed, 0 skipped$'
echo 'echo "ok 1 - stub"' | compiled shim/test_beside

# The shell that runs those beside is killed: what it would have found is not known.
cat >"$dir/tests/fuzz/run.sh" <<'EOF'
above() { ps -o ppid= -p "$1" | tr -d ' '; }
lane=$PPID # timeout, below the shell of one test, below the lane's
kill -9 "$(above "$(above "$lane")")"
EOF
tap_is "a lane that dies is a failure" "$(checks 0 "" all)" 1
tap_is "... and is named" "$(named)" "FAILED lane b: ended early"
tap_done
