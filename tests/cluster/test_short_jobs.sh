#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# Three nodes alike, and jobs of milliseconds on all of them: what their start took there and here
# moves no long job; where long jobs take longer, that is learned.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=tests/lib/tap.sh disable=SC1091
. tests/lib/tap.sh
# shellcheck source=tests/lib/cluster.sh disable=SC1091
. tests/lib/cluster.sh
cluster_up --nodes 3 --disk 0
for n in n1 n2 n3; do tap_true "$n hears of the others" until_true 15 sees $n 3; done

ended() { on n1 iocom jobs --here --json | jq -e '.jobs == []' >/dev/null; }
# Nothing runs anywhere, and nothing is left of what ran in what the nodes say.
quiet() {
	on n1 iocom nodes --json | jq -e '[.nodes[] | select(.alive)] |
		length == 3 and all(.jobs == 0 and .load < 0.1)' >/dev/null
}
corrections() { on n1 iocom profile --json | jq -c --arg c "$1" '[.profiles[] | select(.class == $c)][0].corrections'; }
place() { on n1 iocom place --policy least-delay --json "$@"; }

for _ in 1 2 3 4 5 6 7; do on n1 iocom run -N all --class tiny -- true; done
until_true 30 ended
tap_is "every node ran tiny jobs" "$(on n1 iocom jobs --all --json | jq -c '[.jobs[] | select(.state == "exited") | .node] | group_by(.) | map([.[0], length])')" \
	'[["n1",7],["n2",7],["n3",7]]'
tap_is "they are known" "$(on n1 iocom profile --json | jq '[.profiles[] | select(.class == "tiny")][0].runs > 2')" true
tap_is "they correct nothing" "$(corrections tiny)" null
tap_true "all is quiet" until_true 60 quiet
# Asking is work at n1, too, which the next answer may see: so it is asked once a second.
stays() {
	sleep 1
	answer=$(place --class tiny --cpu-time 2 -- true)
	[ "$(jq -r .plan.node <<<"$answer")" = n1 ]
}
until_true 30 stays
tap_is "a long job of the class stays at home" "$(jq -r .plan.node <<<"$answer")" n1
tap_is "no factors" "$(jq -c '.expected | [.there_factor, .home_factor]' <<<"$answer")" '[1,1]'
tap_is "and none is told" "$(on n1 iocom place --class tiny --cpu-time 2 -- true | grep -c 'corrected by')" 0
answer=$(place --class tiny --cpu-time 0 -- true)
tap_is "a job without any work stays" "$(jq -r .plan.node <<<"$answer")" n1
tap_is "something is known of it" "$(on n1 iocom place --class tiny --cpu-time 0 -- true | tr '\n' ' ' | grep -c 'nothing is known of')" 0
on n1 iocom run --node n2 --class tiny -- true
tap_is "its user chose the node, no policy" "$(on n1 iocom jobs --all --limit 1 --json | jq -r '.jobs[0] | [.node, .policy] | @json')" '["n2","node"]'
until_true 30 ended
on n1 iocom run -N 2 --policy cpu-re --class tiny -- true
until_true 30 ended
tap_is "of two nodes by number, the policy" "$(on n1 iocom jobs --all --limit 2 --json | jq -c '[.jobs[].policy]')" '["cpu-re","cpu-re"]'

# --- a node where long jobs take four times as long
steady() { on n1 iocom run --class steady --node "$1" -- sh -c "$WORK cpu 0.4; sleep $2"; }
steady n1 0
until_true 30 ended
for _ in 1 2 3 4; do
	steady n1 0
	steady n3 1.2
done
until_true 30 ended
tap_is "both nodes' jobs teach" "$(corrections steady | jq -c '[.nodes[] | [.node, .jobs]]')" '[["n1",4],["n3",4]]'
tap_true "n3 is slower for them" jq -e '(.nodes | map({(.node): .factor}) | add) | .n3 > 1.5 and .n3 > 1.3 * .n1' <<<"$(corrections steady)"
tap_like "the next prediction says so" "$(on n1 iocom place --class steady --node n3 -- true | tr '\n' ' ')" 'corrected by a factor of [0-9.]+ there'
tap_done
