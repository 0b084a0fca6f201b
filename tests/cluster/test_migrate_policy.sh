#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# Jobs that move without anybody's asking: by a policy that migrates, and when a node's owner sends
# them away.  A real criu moves jobs of root, whom these nodes let in.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1
. tests/lib/tap.sh
. tests/lib/pair.sh
pair_criu || tap_skip_all "there is no criu"
pair_begin
pair_munged n1 && pair_munged n2 || tap_skip_all "munged does not start"
# n1 keeps what is submitted there, so that its load is what policies that migrate are for.
pair_mover n1 --hop-max 0 --cpu-threshold 1 --moves-pause-s 4 && pair_mover n2 --moves-pause-s 4 ||
	tap_skip_all "the agents do not start"
until_true 20 pair_meet || tap_skip_all "the agents do not see each other"

cd / || exit 1
# Prints the name of a job with POLICY at n1 that computes until FILE is there, and then ends with 7.
computes() { # POLICY FILE OPTION...
	pair_on n1 run --policy "$1" --detach --cpu-time 900 "${@:3}" -- \
		sh -c 'while [ ! -e "$0" ]; do i=0; while [ $i -lt 20000 ]; do i=$((i + 1)); done; done; exit 7' "$2"
}
waits() { IOCOM_RUN_DIR=$PAIR/n1/run timeout 200 "$IOCOM_BUILD/iocom" wait "$1" >/dev/null 2>&1; } # JOB
node_of() { pair_on n1 jobs --json | jq -r --arg j "$1" '.jobs[] | select(.job == $j) | .node'; } # JOB
explained() { pair_on n1 explain "$1" | tr -s ' \n' ' '; } # JOB: in one line
is_at() { [ "$(node_of "$1")" = "$2" ]; } # JOB NODE

# --- by a policy ---
jobs=()
for policy in iocm-re iocm-re iocm-pm; do jobs+=("$(computes $policy "$PAIR/go" --migratable)"); done
jobs+=("$(computes iocm-pm "$PAIR/go")")
tap_true "of four jobs, the one that can move and whose policy moves jobs leaves" until_true 30 is_at "${jobs[2]}" n2
tap_true "it is counted" [ "$(pair_count n1 policy_moves)" -ge 1 ]
explained=$(explained "${jobs[2]}")
tap_like "explain says by which policy, and what that expected" "$explained" \
	'It moved from n1 to n2, by iocm-pm, which expected [0-9.]+ (s|min|h|ks)?.* more at n1, .* at n2 and .* for the move: frozen for'
tap_is "as JSON, too" "$(pair_on n1 explain --json "${jobs[2]}" | jq -r '.moves[0] | .cause, (.here_ms > .there_ms + .cost_ms)' | paste -sd ' ')" "iocm-pm true"
sleep 6
tap_is "the others stay" "$(for i in 0 1 3; do node_of "${jobs[i]}"; done | paste -sd ' ')" "n1 n1 n1"
tap_true "and so does it: there is nothing to gain" is_at "${jobs[2]}" n2
touch "$PAIR/go"
waits "${jobs[2]}"
tap_is "it ends with its own status" "$?" 7
tap_like "and explain says how long it took from there on" "$(pair_on n1 explain "${jobs[2]}")" 'From then on it took'
for i in 0 1 3; do waits "${jobs[i]}"; done

# --- by an owner ---
owner() { pair_on n2 owner "$@"; }
guest=$(pair_on n1 run --node n2 --detach --migratable -- sh -c 'i=0; while [ $i -lt 900 ]; do echo $i; i=$((i + 1)); sleep 0.01; done; exit 7')
other=$(pair_on n1 run --node n2 --detach -- sh -c 'trap "exit 5" TERM; while :; do sleep 0.05; done')
until_true 10 is_at "$other" n2
sleep 0.5
owner close >/dev/null
owner --grace 20 expel >/dev/null 2>"$PAIR/owner"
tap_is "the owner of n2 sends all guests away" "$? $(cat "$PAIR/owner")" "0 "
tap_true "the one that can move goes on at n1" until_true 15 is_at "$guest" n1
tap_like "explain says why" "$(explained "$guest")" "It moved from n2 to n1, because the node's owner sent it away: frozen for"
waits "$other"
tap_is "the one that cannot is told to end" "$?" 5
waits "$guest"
tap_is "the first one has its own status" "$?" 7
pair_on n1 attach "$guest" >"$PAIR/out" 2>/dev/null
tap_true "and each line of its output" awk 'NR - 1 != $1 { exit 1 } END { exit NR != 900 }' "$PAIR/out"
tap_like "nobody is let in there" "$(pair_on n1 run --node n2 -- true 2>&1)" "owner"

# --- an owner, and no place to go ---
owner open >/dev/null
guest=$(pair_on n1 run --node n2 --detach --migratable -- bash -c 'exec 3</dev/udp/127.0.0.1/9; trap "exit 6" TERM; while :; do sleep 0.05; done')
until_true 10 is_at "$guest" n2
sleep 0.5
owner --grace 10 expel "$guest" >/dev/null 2>&1
waits "$guest"
tap_is "one that has a socket is told to end, before its grace is over" "$?" 6
tap_like "after its move was tried" "$(explained "$guest")" "It stayed at n2 and did not move to n1, because the node's owner sent it away: it has .*network"
tap_is "no agent complained" "$(grep -hE ' (error|critical):' "$PAIR"/n?/log | head -n 3)" ""
pair_stop n1
pair_stop n2
tap_is "both agents stop well" "$(cat "$PAIR/bad" 2>/dev/null)" ""
tap_done
