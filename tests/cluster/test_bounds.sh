#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# A full table of the agent can be seen: recorders up to their bound, the one that is refused, and
# where each number is shown.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1
. tests/lib/tap.sh
# shellcheck source=tests/lib/agent.sh
. tests/lib/agent.sh
pids=()
at_end() { [ ${#pids[@]} -eq 0 ] || kill "${pids[@]}" 2>/dev/null; }
agent_up bounds

bound() { "$iocom" nodes --json | jq -c '.bounds[] | select(.name == "recorders") | [.used, .max, .refused]'; }
doctor() { "$iocom" doctor --json >"$dir/json" 2>"$dir/err"; jq -r --arg c bounds '.checks[] | select(.check == $c) | "\(.state) \(.says)"' "$dir/json"; }
# jq has no bound of its own, so every field must be there.
tap_is "each bound says all of itself" \
	"$("$iocom" nodes --json | jq '[.bounds[] | select((has("used") and has("max") and has("counter") and has("refused") and has("turns")) | not)] | length')" 0
tap_is "each counter named there is one" \
	"$("$iocom" nodes --json | jq -c '. as $all | [.bounds[].counter | select(. != null) | select(. as $c | $all.counters | has($c) | not)]')" "[]"
tap_is "nobody records" "$(bound)" "[0,8,0]"
tap_like "doctor: nothing is nearly full" "$(doctor)" '^ok '
for i in 1 2 3 4 5 6 7 8; do
	"$iocom" record --out "$dir/record-$i" >/dev/null 2>&1 &
	pids+=($!)
done
full() { [ "$(bound)" = "[8,8,0]" ]; }
tap_true "as many as there may be" until_true 10 full
tap_like "one more is refused" "$(timeout 10 "$iocom" record --out "$dir/record-9" 2>&1)" '8 recorders are at work'
tap_is "and counted" "$(bound) $("$iocom" nodes --json | jq .counters.recorders_refused)" "[8,8,1] 1"
tap_like "doctor says what is full" "$(doctor)" '^degraded recorders 8 of 8'
kill "${pids[0]}"
left() { [ "$(bound)" = "[7,8,1]" ]; }
tap_true "one leaves: there is room again" until_true 10 left
tap_like "7 of 8 is not nearly full" "$(doctor)" '^ok '
tap_done
