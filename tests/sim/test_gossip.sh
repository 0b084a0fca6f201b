#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# iocom-sim gossip: what it calculates of small clusters, its table, its JSON and its errors.
set -uo pipefail
here=$(cd "$(dirname "$0")/../.." && pwd)
# shellcheck source=tests/lib/tap.sh disable=SC1091
. "$here/tests/lib/tap.sh"
build=${IOCOM_BUILD:-$here/build}
dir=$(mktemp -d /tmp/iocom-gossip-XXXXXX)
trap 'rm -rf "$dir"' EXIT
cd "$dir" || exit 1

gossip() { timeout 120 "$build/iocom-sim" gossip "$@" 2>"$dir/err"; }
value() { jq -r "$1" <<<"$json"; }
# worst PLAN NODES SCENARIO MEASURE
worst() {
	value ".results[] | select(.plan == \"$1\" and .nodes == $2 and .scenario == \"$3\").worst.$4"
}

# --- wrong arguments: 2, one sentence
wrong() { # SENTENCE ARGUMENT...
	local sentence=$1
	shift
	gossip "$@" >out
	tap_is "$*: 2" "$? '$(cat out)'" "2 ''"
	tap_like "and why" "$(head -n 1 err)" "^iocom-sim gossip: $sentence"
}
wrong "there is no option '--nope'" --nope
wrong "--nodes needs a value" --nodes
wrong "--json takes no value" --json=1
wrong "unexpected '200'" 200
for n in 1 16385 x "" 10,,20 -5 4294967298; do
	wrong "--nodes: expected a whole number from 2 to 16384, found '(1|16385|x||-5|4294967298)'" --nodes "$n"
done
wrong "--nodes: at most 16 sizes" --nodes 2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18
wrong "--scenario: expected steady, dead, cut or flap, found 'dea'" --scenario steady,dea
wrong "--scenario: expected .* found ''" --scenario ""
wrong "--plan: expected slices or freshest, found 'slicess'" --plan slicess
wrong "--periods: expected a whole number from 1 to 10000, found '0'" --periods 0
wrong "--seeds: expected a whole number from 1 to 100, found '101'" --seeds 101
wrong "--seed: .* found '-1'" --seed -1
wrong "--dead: expected a number from 0 to 0.9, found '1'" --dead 1
wrong "--dead: .* found '1%'" --dead 1%
wrong "--flapping: .* found 'nan'" --flapping nan
wrong "--flapping: .* found ''" --flapping ""
wrong "--up: expected a number from 1 to 10000, found '0.5'" --up 0.5
wrong "--down: .* found '1e9'" --down 1e9
wrong "--cut: .* found '0'" --cut 0
wrong "--silent: expected a whole number from 1 to 30, found '31'" --silent 31
wrong "--peers: expected a whole number from 1 to 64, found '0'" --peers 0
wrong "--vector-bytes: .* found '0'" --vector-bytes 0
wrong "--hear: .* found '0'" --hear 0
wrong "--relay: .* found 'all'" --relay all
wrong "--relay has no effect here: only the plan freshest reads it" --relay 3
wrong "--hear has no effect here: only the plan freshest reads it" --plan slices --hear 3
wrong "--dead has no effect here: only the scenario dead reads it" --scenario steady,cut --dead 0.5
wrong "--up has no effect here: only the scenario flap reads it" --scenario dead --up 3
# What cannot be is found before anything is calculated.
wrong "scenario dead: 3 nodes with 3 configured peers" --nodes 16000,3 --scenario steady,dead
if [ -z "${IOCOM_SANITIZED-}" ]; then # the sanitizers need more room than any limit that helps here
	(ulimit -v 400000 && gossip --nodes 16000 >out)
	tap_is "too large for the memory: 1" "$? $(cat out)" "1 "
	tap_like "and why" "$(cat err)" "^iocom-sim gossip: no memory for 16000 nodes \(1.0 GB\)"
fi
timeout -s INT 1 "$build/iocom-sim" gossip --nodes 3000 --periods 10000 >out 2>err
tap_is "interrupted: 1, nothing is printed" "$(cat out) $(cat err)" " iocom-sim gossip: interrupted"
gossip --nodes 5 --periods 1 >/dev/full
tap_is "no room for the output: 1" "$? $(cat err)" "1 iocom-sim gossip: cannot write the output"

# --- what is calculated
json=$(gossip --nodes 20,100 --plan slices,freshest --seeds 3 --json)
tap_is "2 sizes, 2 plans, 4 scenarios, 3 seeds" "$? $(value '.results | length') $(value '.results[0].runs | length')" "0 16 3"
tap_is "each run is there with its seed" "$(value '[.results[].runs[].seed] | unique | join(" ")')" "1 2 3"
for n in 20 100; do
	for s in steady dead cut flap; do
		tap_calc "$n nodes, $s: fresh" "$(worst slices $n $s age_mean_periods) <= 2 &&
			$(worst slices $n $s age_p99_periods) <= 3"
	done
	tap_calc "$n nodes, steady: nobody counts as gone" "$(worst slices $n steady wrongly_gone) == 0"
	tap_calc "$n nodes: the dead are excluded in time" \
		"$(worst slices $n dead excluded_after_periods) > 2 &&
		$(worst slices $n dead excluded_after_periods) <= 3"
	tap_calc "$n nodes: a cut heals in time" "$(worst slices $n cut healed_after_periods) <= 5"
done
tap_is "20 nodes hear all others" "$(worst slices 20 steady hears_nodes)" "19"
tap_calc "100 nodes hear far fewer than all" "$(worst slices 100 steady hears_nodes) < 40"
tap_is "each period brings news of each node, once" \
	"$(value '[.results[] | select(.plan == "slices" and .scenario == "steady").runs[] |
		.vectors_news_per_period] | unique | map(round) | join(" ")')" "19 99"
tap_calc "all that others tell beside that is less than that once more" \
	"$(worst slices 100 steady vectors_per_period) < 2 * 99"
tap_is "what ends nothing has no end" "$(worst slices 100 flap healed_after_periods)" null
tap_is "medians are of the seeds" \
	"$(value '[.results[] | ([.runs[].age_mean_periods] | sort | .[1]) == .median.age_mean_periods] | all')" true
tap_is "worst values are of the seeds" \
	"$(value '[.results[] | ([.runs[].sent_bytes_per_period_most] | max) == .worst.sent_bytes_per_period_most] | all')" true
tap_is "goals: three of each scenario, one more of dead and cut" \
	"$(value '[.goals[] | select(.plan == "slices" and .nodes == 100).goal] | group_by(.) | map("\(.[0]) \(length)") | join(", ")')" \
	"age_mean 4, age_p99 4, excluded 1, healed 1, received 4"
tap_is "and all of slices are met" "$(value '[.goals[] | select(.plan == "slices").met] | unique | join(" ")')" true

again=$(gossip --nodes 100 --plan slices --seed 2 --json)
tap_is "a seed gives the same numbers, whatever runs beside it" \
	"$(jq -c '.results[].runs[0]' <<<"$again")" \
	"$(jq -c '.results[] | select(.nodes == 100 and .plan == "slices").runs[1]' <<<"$json")"

# --- options change what they say
base=(--nodes 60 --periods 20 --json)
json=$(gossip "${base[@]}" --scenario dead --dead 0.5 --silent 6)
tap_calc "--silent: nodes are excluded later" "$(worst slices 60 dead excluded_after_periods) > 3 &&
	$(worst slices 60 dead excluded_after_periods) <= 6"
tap_calc "--dead: half of them are heard no more" "$(worst slices 60 dead vectors_news_per_period) < 40"
json=$(gossip "${base[@]}" --scenario steady --vector-bytes 1000)
tap_calc "--vector-bytes" "$(worst slices 60 steady received_bytes_per_period) > 1000 * $(worst slices 60 steady vectors_per_period)"
json=$(gossip "${base[@]}" --scenario steady --plan freshest --hear 5 --relay 60)
tap_calc "--hear" "$(worst freshest 60 steady hears_nodes) >= 5 && $(worst freshest 60 steady hears_nodes) < 5.5"
json=$(gossip "${base[@]}" --scenario steady --plan freshest --relay 10)
bulletins=$(worst freshest 60 steady bulletins_per_period)
tap_calc "--relay: 11 vectors a bulletin, fewer from one that knows of fewer" \
	"$(worst freshest 60 steady vectors_per_period) > 10.5 * $bulletins &&
	$(worst freshest 60 steady vectors_per_period) < 11.001 * $bulletins"
json=$(gossip "${base[@]}" --scenario cut --cut 2 --silent 6)
tap_is "--cut: of two periods nobody takes notice" "$(worst slices 60 cut healed_after_periods)" "0"
# A pair of halves that forgets each other would never meet again but for the configured peers.
json=$(gossip "${base[@]}" --scenario cut --cut 700 --peers 1)
tap_calc "--cut: of 700 periods heals as well" "$(worst slices 60 cut healed_after_periods) <= 20"
json=$(gossip "${base[@]}" --scenario flap --flapping 0)
none=$(worst slices 60 flap dials_per_period)
json=$(gossip "${base[@]}" --scenario flap --flapping 0.5 --up 5 --down 5)
tap_calc "--flapping: subscriptions change" "$none == 0 && $(worst slices 60 flap dials_per_period) > 0"

# --- the table
out=$(gossip --nodes 2,1001 --peers 1 --periods 2 --scenario steady,cut --cut 4 --seeds 2)
tap_is "0; on a file no progress is shown" "$? $(cat err)" "0 "
tap_is "no line is wider than 80 columns" "$(awk 'length > 80' <<<"$out")" ""
tap_like "1,001 nodes" "$out" '^1,001 nodes, plan slices, 2 periods, medians of 2 seeds$'
tap_like "a row of medians" "$out" '^steady +[0-9.]+ +[0-9.]+ +[0-9.]+ +0.000( +[0-9.]+)+ +-$'
tap_like "and one of the worst" "$out" '^  worst +[0-9.]+ '
tap_like "a goal" "$out" '^  met +age of what a node knows, p99 +<= +9 periods [0-9.]+ \((steady|cut)\)$'
tap_like "none of that size: what holds" "$out" '^What holds at 1,001 nodes of the goals for 1,000 '
tap_like "what the columns mean" "$out" '^hears +nodes that a node hears directly$'
tap_is "iocom sim gossip is the same" "$("$build/iocom" sim gossip --nodes 2,1001 --peers 1 --periods 2 \
	--scenario steady,cut --cut 4 --seeds 2)" "$out"
tap_done
