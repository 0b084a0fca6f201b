#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# Every policy decides live, on real agents with their own measured loads: with a busy disk at home,
# and with a busy processor there, a job goes or stays as the policy's own criterion says, and the
# criterion shows it, also with the feedback controller (tests/cluster/test_feedback.sh). Zatti's
# thresholds and the hop count come from the settings.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1
. tests/lib/tap.sh
. tests/lib/cluster.sh
export AGENT_OPTIONS="--zatti-blocks-per-s 320 --zatti-queue 2 --zatti-queue-delta 1 --hop-max 2 --feedback on"
cluster_up --nodes 3 --disk 20 --mem 1000
for n in n1 n2 n3; do on $n "$WORK" make $DISK/data 64 & done
wait
tap_true "every node hears of every other" until_true 10 sees n1 3
still() {
	on n1 iocom nodes --json |
		jq -e '[.nodes[] | select(.name != "n1") | .disk_utilisation < 0.04 and .run_queue < 0.04 and .jobs == 0] | all' >/dev/null
}
tap_true "n2 and n3 are idle" until_true 20 still

IO_NEED=(--io-rate 250 --io-size 64Ki --requests 100 --cpu-time 0.02 --mem 20M)
CPU_NEED=(--cpu-time 0.3 --mem 10M --io-rate 0 --requests 0)
# The criterion of home, or one that compares all, decided under this policy.
by_criterion='[.policy == $p, ([.plan.reasons[] | select(.node == "n1" or $c == "io" or $c == "explicit-discrepancy") | .criterion] | index($c) != null)] | all'
# decides DESCRIPTION POLICY WHERE CRITERION NEED...: where a job would go, and by what. What n1 tells
# of its load is of one period, and a busy machine may starve n1's load of one: two more may say so.
decides() {
	local what=$1 policy=$2 where=$3 criterion=$4 plan node tries
	shift 4
	for tries in 1 2 3; do
		plan=$(on n1 iocom place --policy "$policy" --json "$@" -- sh)
		node=$(jq -r .plan.node <<<"$plan")
		[ "$where:$node" = away:n1 ] || break
		# Why it is not where it should be.
		jq -c '[.nodes[] | [.name, (.age_ms | floor), .disk_utilisation, .run_queue]], [.plan.reasons[] | [.criterion, .node, .left, .right, .holds]]' <<<"$plan" | sed 's/^/# | /'
		sleep 1
	done
	case $where in
	home) tap_is "$what, $policy: it stays" "$node" n1 ;;
	*) tap_like "$what, $policy: it leaves" "$node" '^n[23]$' ;;
	esac
	tap_is "$what, $policy: by $criterion at home" \
		"$(jq -r --arg c "$criterion" --arg p "$policy" "$by_criterion" <<<"$plan")" true
}
# runs DESCRIPTION POLICY NEED...: a job really leaves, and its target takes it.
runs() {
	local what=$1 policy=$2 work
	shift 2
	work="$WORK cpu 0.3"
	[ "$what" != disk ] || work="$WORK io $DISK/data 100 64 7"
	until_true 15 still
	tap_like "$what, $policy: a job runs elsewhere" \
		"$(on n1 iocom run --policy "$policy" "$@" -- sh -c "hostname; $work")" '^n[23]$'
}

load n1 iocom run --policy nlb "${IO_NEED[@]}" -- "$WORK" io $DISK/data 100 64 1
load n1 iocom run --policy nlb "${IO_NEED[@]}" -- "$WORK" io $DISK/data 100 64 2
tap_true "n1's disk is busy" until_true 15 field_above n1 n1 disk_utilisation 0.7
for p in io:explicit-discrepancy io-re:io-overloaded iocm-re:io-overloaded iocm-re-hom:io-present iocm-pm:io-overloaded \
	io-pm:io-overloaded wal:load-highest wal-pm:load-highest wal-fc:load-highest feedback+iocm-re:io-overloaded com:io-present zatti-binary:local-io zatti-real:local-io \
	least-delay:delay-home cm:cpu-imbalanced; do
	decides "disk" "${p%:*}" away "${p#*:}" "${IO_NEED[@]}"
done
for p in nlb:home cpu-re:cpu-overloaded mem-re:mem-overloaded cpu-pm:cpu-overloaded mem-pm:mem-overloaded \
	random:cpu-overloaded threshold:cpu-overloaded shortest:cpu-overloaded; do
	decides "disk" "${p%:*}" home "${p#*:}" "${IO_NEED[@]}"
done
for p in zatti-binary zatti-real iocm-re wal-fc; do runs disk $p "${IO_NEED[@]}"; done
right() { # POLICY CRITERION: the right side of the criterion at home
	on n1 iocom place --policy "$1" --json "${@:3}" -- sh |
		jq --arg c "$2" '[.plan.reasons[] | select(.node == "n1" and .criterion == $c)][0].right'
}
tap_is "zatti: the threshold of disk requests is the setting's" "$(right zatti-real local-io "${IO_NEED[@]}")" "320"
tap_is "the hop count, too" "$(right zatti-binary hops "${IO_NEED[@]}")" "2"
load_stop

for i in 1 2 3 4 5 6; do load n1 "$WORK" cpu 1; done
tap_true "n1's processor is busy" until_true 20 field_above n1 n1 run_queue 4.8
tap_true "and its disk no longer" until_true 20 field_below n1 n1 disk_utilisation 0.03
for p in cpu-re:cpu-overloaded mem-re:cpu-overloaded cm:cpu-imbalanced iocm-re:cpu-overloaded \
	iocm-re-hom:cpu-overloaded iocm-pm:cpu-overloaded com:cpu-overloaded random:cpu-overloaded \
	threshold:cpu-overloaded shortest:cpu-overloaded cpu-pm:cpu-overloaded mem-pm:cpu-overloaded wal:load-highest \
	wal-pm:load-highest wal-fc:load-highest zatti-binary:local-cpu zatti-real:local-cpu least-delay:delay-home bs:free-nodes; do
	decides "processor" "${p%:*}" away "${p#*:}" "${CPU_NEED[@]}"
done
for p in zatti-binary zatti-real cpu-re; do runs processor $p "${CPU_NEED[@]}"; done
decides "processor" nlb home home "${CPU_NEED[@]}"
tap_is "zatti: the threshold of the run queue is the setting's" "$(right zatti-real local-cpu "${CPU_NEED[@]}")" "2"
load_stop
tap_done
