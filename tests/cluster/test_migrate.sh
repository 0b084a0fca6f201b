#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# `iocom migrate` between two agents, by a real criu: jobs of root, whom these nodes let in.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1
. tests/lib/tap.sh
. tests/lib/pair.sh
CRIU=${IOCOM_CRIU:-$(bash tests/lib/criu.sh 2>/dev/null)} || tap_skip_all "there is no criu"
[ -n "$CRIU" ] || tap_skip_all "there is no criu"
pair_begin
pair_munged n1 && pair_munged n2 || tap_skip_all "munged does not start"
begin_agent() { pair_agent "$1" "$2" --criu "$CRIU" --allow-root yes; }
begin_agent n1 n2 && begin_agent n2 n1 || tap_skip_all "the agents do not start"
until_true 20 pair_sees n1 2 && until_true 20 pair_sees n2 2 || tap_skip_all "the agents do not see each other"

COUNT='i=0; while [ $i -lt '
cd / || exit 1
# Prints the name of a job that counts to N, from home NODE at NODE.
counts() { # HOME NODE N
	pair_on "$1" run --node "$2" --detach --migratable -- sh -c "i=0; while [ \$i -lt $3 ]; do echo \$i; i=\$((i + 1)); sleep 0.002; done; exit 7"
}
node_of() { pair_on "$1" jobs --json | jq -r --arg j "$2" '.jobs[] | select(.job == $j) | .node'; } # HOME JOB
whole() { # FILE N
	[ "$(tail -n 1 "$1")" -eq $(($2 - 1)) ] && awk '$1 != NR - 1 { exit 1 }' "$1"
}
: "$COUNT"

# --- from home and back ---
job=$(counts n1 n1 4000)
sleep 1
said=$(pair_on n1 migrate "$job" n2 2>&1)
tap_is "it moves" "$?" 0
tap_like "and says how long it was frozen" "$said" "^$job: moved from n1 to n2: frozen for [0-9]+ ms, [0-9.]+ MB$"
tap_is "home knows where it is" "$(node_of n1 "$job")" n2
said=$(pair_on n1 migrate --json "$job" n1 2>&1)
tap_is "and back, as JSON" "$(jq -r '[.from, .to, .state, .number] | @csv' <<<"$said")" '"n2","n1","resumed",2'
said=$(pair_on n1 migrate "$job" n2 2>&1)
tap_like "and there again" "$said" "moved from n1 to n2"
pair_on n1 wait "$job" >/dev/null 2>&1
tap_is "its own status" "$?" 7
pair_on n1 attach "$job" >"$PAIR/out" 2>"$PAIR/err"
tap_is "attach has the status, too" "$?" 7
tap_true "and each line of its output, once" whole "$PAIR/out" 4000
