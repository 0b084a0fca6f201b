# shellcheck shell=bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# TAP for shell tests: source it, call the checks, end with `tap_done`. Expected values are
# arguments, so a failing check prints both sides.

TAP_N=0
TAP_FAILED=0

tap_ok() { # DESCRIPTION
	TAP_N=$((TAP_N + 1))
	echo "ok $TAP_N - $1"
}

tap_fail() { # DESCRIPTION [DETAIL]
	TAP_N=$((TAP_N + 1))
	TAP_FAILED=$((TAP_FAILED + 1))
	echo "not ok $TAP_N - $1"
	[ -z "${2-}" ] || printf '%s\n' "$2" | sed 's/^/# /'
}

tap_skip() { # DESCRIPTION REASON
	TAP_N=$((TAP_N + 1))
	echo "ok $TAP_N - $1 # SKIP $2"
}

tap_is() { # DESCRIPTION GOT EXPECTED
	if [ "$2" = "$3" ]; then
		tap_ok "$1"
	else
		tap_fail "$1" "got:      $2"$'\n'"expected: $3"
	fi
}

tap_isnt() { # DESCRIPTION GOT UNEXPECTED
	if [ "$2" != "$3" ] && [ -n "$2" ]; then tap_ok "$1"; else tap_fail "$1" "got: '$2'"; fi
}

tap_like() { # DESCRIPTION GOT REGEX
	# Not a pipe: grep -q ends at the first match, and SIGPIPE would kill a writer of more
	# lines.
	if grep -qE -- "$3" <<<"$2"; then
		tap_ok "$1"
	else
		tap_fail "$1" "got:      $2"$'\n'"expected to match: $3"
	fi
}

# tap_true DESCRIPTION COMMAND...: passes if the command succeeds.
tap_true() {
	local what=$1 out
	shift
	if out=$("$@" 2>&1); then tap_ok "$what"; else tap_fail "$what" "$out"; fi
}

# tap_calc DESCRIPTION EXPRESSION: an awk condition on numbers, which is printed if false.
tap_calc() {
	if awk "BEGIN { exit !($2) }" </dev/null; then tap_ok "$1"; else tap_fail "$1" "false: $2"; fi
}

tap_skip_all() { # REASON
	echo "1..0 # SKIP $1"
	exit 0
}

tap_done() {
	echo "1..$TAP_N"
	[ "$TAP_FAILED" -eq 0 ]
}

# until_true SECONDS COMMAND...: polls; its success is the outcome.  SECONDS are ample on a quiet
# machine; a busy one has as much again five times over, for the end of it is a hang.
until_true() {
	local end=$((SECONDS + $1 * 6))
	shift
	while ! "$@" >/dev/null 2>&1; do
		[ "$SECONDS" -lt "$end" ] || { echo "# waited in vain for: $*" >&2; return 1; }
		sleep 0.1
	done
}

# The first of ten TCP ports that nobody listens at: tests that run at a time have other ones.
free_ports() {
	local block=$(($$ % 1000)) used
	used=$(ss -ltnH | awk '{ sub(/.*:/, "", $4); print int($4 / 10) }')
	while grep -qx "$((2000 + block))" <<<"$used"; do block=$(((block + 1) % 1000)); done
	echo $((20000 + block * 10))
}

# The median of numbers on standard input, one a line.
median() { sort -n | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'; }
