#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# Services that exist but do not answer: a stopped munged, a name service that hangs. The agent
# goes on with all that needs neither. Two agents on this machine; no testbed.
set -uo pipefail
cd "$(dirname "$0")/../.."
. tests/lib/tap.sh
. tests/lib/pair.sh
pair_begin
hang_end() {
	kill -CONT "${PAIR_PID[munge-n1]:-}" 2>/dev/null
	pair_end
}
trap hang_end EXIT
pair_munged n1
pair_munged n2
chmod 1777 "$PAIR"
pair_agent n1 n2
pair_agent n2 n1
tap_true "two nodes" until_true 15 pair_sees n1 2
remote() { pair_user n1 run --node n2 -- true; }
tap_true "a job at the other node" until_true 15 remote
long=$(pair_user n1 run --detach --node n1 -- sleep 300)
runs() { pair_on n1 jobs --json | jq -e --arg j "$long" '.jobs[] | select(.job == $j and .state == "running")'; }
tap_true "a job here" until_true 15 runs

# --- munged is stopped, not dead ---
# libmunge waits 50 s for it, and so does the client below. A client that is answered before that
# one has ended was not delayed by it.
before=$(pair_count n1 seal_failures)
kill -STOP "${PAIR_PID[munge-n1]}"
munge -n -S "$PAIR/munge-n1/socket" >/dev/null 2>&1 &
waits=$! since=$SECONDS
# On a machine so slow that the client has given up nothing can be said of the order.
still_waits() { # DESCRIPTION
	local took=$((SECONDS - since))
	[ "$took" -lt 45 ] || { tap_skip "$1" "it took $took s to come here"; return; }
	tap_is "$1" "$(kill -0 "$waits" && echo waits)" waits
}
noticed() { [ "$(pair_count n1 seal_failures)" -gt "$before" ]; }
again() { # NODE PEER
	pair_stop "$1"
	rm -f "$PAIR/$1/run/iocom.sock"
	pair_agent "$1" "$2"
}
sleep 2 # after three periods, 0.9 s, a silent node is dropped
tap_true "munged is stopped: nodes that have greeted each other need it no more, and hear each other" pair_sees n1 2
again n2 n1
tap_true "a node begins anew and greets: the agent notices, counts it, and says so" until_true 30 noticed
still_waits "whoever asked munged waits still"
answered=0
for _ in 1 2 3 4 5; do
	pair_on n1 nodes --json >/dev/null && answered=$((answered + 1))
	pair_user n1 jobs --here >/dev/null && answered=$((answered + 1))
done
tap_is "questions are answered" "$answered" 10
tap_is "a job of this machine runs" "$(pair_user n1 run --node n1 -- echo here 2>&1)" here
tap_true "one that runs is ended" pair_user n1 kill "$long"
pair_user n1 wait "$long" >/dev/null 2>&1
tap_is "and its end is told" "$?" 143
still_waits "all before munged's caller was answered"
refused=$(remote 2>&1)
tap_like "a job elsewhere is not begun, for a reason" "$refused" 'munged does not answer|not heard|is silent'
tap_like "the journal of the agent has the sentence" "$(cat "$PAIR/n1/log")" 'munged does not answer at .*hangs or is stopped'
kill -CONT "${PAIR_PID[munge-n1]}"
wait "$waits"
tap_true "munged goes on: the other node is heard, and has jobs" until_true 30 remote

# --- the other node's munged ---
before=$(pair_count n2 seal_failures)
kill -STOP "${PAIR_PID[munge-n2]}"
noticed() { [ "$(pair_count n2 seal_failures)" -gt "$before" ]; }
again n1 n2
tap_true "the other node's munged is stopped: it notices when it is greeted" until_true 30 noticed
tap_is "this one's jobs run here" "$(pair_user n1 run --node n1 -- echo here 2>&1)" here
refused=$(remote 2>&1)
tap_is "and none there, said in a line" "$(grep -c . <<<"$refused")" 1
kill -CONT "${PAIR_PID[munge-n2]}"
tap_true "until it goes on" until_true 30 remote

# --- a name service that is silent ---
if ! ${CC:-gcc} -shared -fPIC -D_GNU_SOURCE -o "$PAIR/names.so" tests/cluster/hang_names.c; then
	tap_fail "the name service that hangs is built"
fi
: >"$PAIR/silent"
pair_stop n2
rm -f "$PAIR/n2/run/iocom.sock"
LD_PRELOAD=$PAIR/names.so HANG_NAMES=$PAIR/silent \
	ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}verify_asan_link_order=0 pair_agent n2 n1
tap_true "two nodes again" until_true 15 pair_sees n1 2
refused=$(remote 2>&1)
tap_like "who a user is cannot be asked: no job of his is let in" "$refused" 'name service there does not answer who uid 65534 is'
tap_calc "counted" "$(pair_count n2 names_failures) > 0"
tap_is "his job at that node itself runs" "$(pair_user n2 run --node n2 -- echo here 2>&1)" here
tap_is "lists are told, with numbers" \
	"$(pair_user n2 jobs --all --json | jq -r '[.jobs[] | select(.home == "n2") | .user] | unique | .[]')" 65534
rm "$PAIR/silent"
tap_true "it answers again: his job is let in" until_true 30 remote
: >"$PAIR/silent"
sleep 5.5 # ACCOUNTS_FRESH_S
before=$(pair_count n2 names_failures)
tap_true "silent once more: who was known just now still is" remote
tap_calc "though it was asked" "$(pair_count n2 names_failures) > $before"
rm "$PAIR/silent"
tap_is "no agent died" "$(kill -0 "${PAIR_PID[n1]}" && kill -0 "${PAIR_PID[n2]}" && echo both)" both
tap_done
