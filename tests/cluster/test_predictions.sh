#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# Predictions are held to account by real agents: what `iocom explain` says of jobs that ended, run,
# or were never seen before; the numbers in JSON; and that corrections come and go with the class.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1
. tests/lib/tap.sh
. tests/lib/cluster.sh
cluster_up --nodes 2 --disk 20,20

tap_true "the nodes hear of each other" until_true 20 sees n1 2

job() { on n1 iocom run --policy nlb "$@"; }
work() { job "$@" -- "$WORK" cpu 0.7; }
explain() { on n1 iocom explain last "$@"; }
# Lines are wrapped at 80 columns: prints the sentences of what was expected and of what it took.
expected() { on n1 iocom explain "${1:-last}" | sed '/^The job needs/,$d' | tr '\n' ' ' | grep -oE 'Expected: .*\.'; } # [JOB]
record() { explain --json | jq -r ".record$1"; }
predictions() { on n1 iocom nodes --json | jq "$1"; }
corrections() { on n1 iocom profile --json | jq -c '[.profiles[] | select(.class == "steady")][0].corrections'; }
# All jobs of n1, whose home may hear of an end later than the job's client does.
ended() { on n1 iocom jobs --here --json | jq -e '.jobs == []' >/dev/null; }

# --- a class never seen
work --class steady
until_true 30 ended
tap_like "a first run: nothing was expected" "$(expected)" \
	'^Expected: nothing, because nothing was known of what the job needs; it took [0-9]'
tap_is "JSON has null, and says why" "$(record ' | [.expected_ms, .expected_home_ms, .basis] | @json')" '[null,null,"nothing"]'
tap_calc "it was measured" "$(record .took_ms) > 300"
tap_is "no prediction, no error" "$(predictions '.predictions | length')" 0
tap_is "nothing is corrected" "$(corrections)" null

# --- a class that is known
for _ in 1 2 3; do work --class steady; done
until_true 30 ended
tap_like "expected, and took" "$(expected)" '^Expected: [0-9.]+ m?s at home.*; it took [0-9.]+ m?s(, [0-9.]+ times what it takes alone)?\.( Known of its class .*)?$'
tap_is "once" "$(explain | grep -ci expected:)" 1
tap_is "learned from earlier runs, and iocom's choice" "$(record ' | [.basis, .balanced] | @json')" '["profile",true]'
tap_calc "JSON has what was expected" "$(record .expected_ms) > 100"
tap_is "at home, where it ran, the same was expected" "$(record '| .expected_ms == .expected_home_ms')" true
tap_calc "the response is not shorter than the run" "$(record '| .took_ms - (.end_ns - .start_ns) / 1e6') > -10"
tap_is "iocom jobs has the same" "$(on n1 iocom jobs --all --json | jq '.jobs[0].took_ms')" "$(record .took_ms)"
tap_is "errors by node and policy" "$(predictions '[.predictions[] | [.node, .policy, .jobs]] | tostring')" \
	'"[[\"n1\",\"nlb\",3]]"'
tap_is "shares and a ratio" \
	"$(predictions '.predictions[0] | .ratio > 0 and .within_1_25 <= .within_2 and .within_2 <= 1')" true
tap_is "corrections: all three jobs, within their bounds" \
	"$(corrections | jq -c '[.jobs, .nodes[0].node, .nodes[0].jobs, (.factor >= 0.25 and .factor <= 4)]')" '[3,"n1",3,true]'
tap_like "for people" "$(on n1 iocom profile steady)" '^3 jobs took [0-9.]+ times what was expected before correction'

# --- jobs that say nothing of predictions
job --class steady --node n2 -- "$WORK" cpu 0.3
tap_is "a node that the user named was not iocom's choice" "$(record .balanced)" false
job --class steady -- sh -c 'exit 3'
until_true 30 ended
tap_like "a failure ends with its status" "$(expected)" '^Expected: .*; it took [0-9.]+ m?s(, [0-9.]+ times what it takes alone)? and ended with status 3\.( Known of its class .*)?$'
job --class steady --cpu-time 50 -- "$WORK" cpu 0.1
until_true 30 ended
tap_is "needs by options" "$(record .basis)" both
tap_is "neither a failure nor options taught anything" "$(corrections | jq -c '[.nodes[] | [.node, .jobs]]')" \
	'[["n1",3],["n2",1]]'

# --- one that runs
name=$(job --class steady --detach -- "$WORK" cpu 60)
tap_like "a job that runs: so far" "$(expected "$name")" '^Expected: [0-9.]+ m?s at home.*; it has taken [0-9.]+ m?s so far\.( Known of its class .*)?$'
on n1 iocom kill "$name" >/dev/null
until_true 30 ended
tap_like "a killed one ended by a signal" "$(expected "$name")" '; it took [0-9.]+ m?s(, [0-9.]+ times what it takes alone)? and ended by signal TERM\.( Known of its class .*)?$'
tap_is "a killed one has a time, and teaches nothing" "$(corrections | jq .jobs)" 4

on n1 iocom profile --forget steady
tap_is "forgotten: its corrections, too" "$(corrections)" null
tap_done
