#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# This release and the next one in one cluster: n2 speaks one more version of the secure channel.
# They hear each other, and jobs go both ways; two of the next release speak the newer version.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=tests/lib/tap.sh disable=SC1091
. tests/lib/tap.sh
# shellcheck source=tests/lib/pair.sh disable=SC1091
. tests/lib/pair.sh
this=$IOCOM_BUILD next=$IOCOM_BUILD/tests/next
pair_begin
pair_munged n1
pair_munged n2
chmod 1777 "$PAIR"
of() { [ "$1" = n2 ] && echo "$next" || echo "$FIRST"; } # NODE: whose programs it has
with() { # NODE COMMAND...
	local IOCOM_BUILD
	IOCOM_BUILD=$(of "$1")
	"${@:2}"
}
up() {
	for node in n1 n2; do
		[ $node = n1 ] && peer=n2 || peer=n1
		IOCOM_BUILD=$(of $node)
		pair_agent $node $peer --log-level debug
	done
	IOCOM_BUILD=$this
	until_true 15 pair_sees n1 2 && until_true 15 pair_sees n2 2
}
down() {
	pair_stop n1
	pair_stop n2
	rm -f "$PAIR"/n[12]/run/iocom.sock
}
spoken() { grep -ohE 'session with node n[12], version [0-9]+' "$PAIR"/n[12]/log | sort -u | sed 's/.*version //' | sort -u | paste -sd,; }

# --- this release and the next ---
FIRST=$this
up # not in a subshell, which would lose the pids
tap_true "this release and the next hear each other" pair_sees n1 2
for from in n1 n2; do
	[ $from = n1 ] && to=n2 || to=n1
	tap_is "a job from $from to $to" \
		"$(echo in | with $from pair_user $from run --node $to -- sh -c 'cat; echo out; exit 3' 2>&1; echo $?)" "in
out
3"
	job=$(with $from pair_user $from run --detach --node $to -- sh -c 'echo one; sleep 600' </dev/null)
	with $from pair_user $from attach "$job" </dev/null >"$PAIR/attached" 2>&1 &
	attach=$!
	tap_true "attach from $from to a job at $to" until_true 10 grep -qx one "$PAIR/attached"
	tap_true "kill from $from" with $from pair_user $from kill "$job"
	wait $attach
	tap_is "and the job is over" "$?" 143
done
tap_is "they speak the version that both know" "$(spoken)" 1
down

# --- two of the next release ---
FIRST=$next
rm -f "$PAIR"/n[12]/log
up
tap_true "two of the next release hear each other" pair_sees n1 2
tap_is "a job" "$(with n1 pair_user n1 run --node n2 -- echo done 2>&1)" done
tap_is "they speak the newer version" "$(spoken)" 2
down
tap_true "all agents exited with 0" test ! -s "$PAIR/bad"
[ ! -s "$PAIR/bad" ] || sed 's/^/# /' "$PAIR/bad"
tap_done
