#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# `iocom place --view`: decisions on files, without any agent; `iocom sim` and `iocom replay` find
# the simulator.
set -uo pipefail
here=$(cd "$(dirname "$0")/../.." && pwd)
# shellcheck source=tests/lib/tap.sh disable=SC1091
. "$here/tests/lib/tap.sh"
build=${IOCOM_BUILD:-$here/build}
iocom=$build/iocom
data=$here/tests/unit/data
dir=$(mktemp -d /tmp/iocom-view-XXXXXX)
trap 'rm -rf "$dir"' EXIT
# It must not ask any agent.
export IOCOM_RUN_DIR=$dir/nothing-here

place() { timeout 60 "$iocom" place "$@" 2>"$dir/err"; }

# --- decisions
out=$(place --view "$data/view_example.json" --json)
tap_is "the example: 0" "$?" 0
tap_is "one node: it stays" "$(jq -c '[.policy, .home, .node, .nodes, .tied, .migrate]' <<<"$out")" \
	'["least-delay","n1","n1",["n1"],["n1"],[]]'
tap_is "each reason has all fields" \
	"$(jq -c '[.reasons[] | keys] | unique' <<<"$out")" \
	'[["criterion","holds","left","node","relation","right","source","text","unit"]]'
tap_is "standard input gives the same" "$(place --view - --json <"$data/view_example.json")" "$out"

policies="nlb cpu-re mem-re cm io io-re iocm-re iocm-re-hom iocm-pm wal wal-fc com bs zatti-binary
zatti-real random threshold shortest cpu-pm mem-pm io-pm wal-pm least-delay"
for p in $policies; do
	out=$(place --view "$data/view_four.json" --policy "$p" --json)
	tap_is "$p: 0, its name, and a node for each task unless queued" \
		"$? $(jq -c '[.policy, (.nodes | length) + (if .queued then 2 else 0 end)]' <<<"$out")" \
		"0 [\"$p\",2]"
	tap_is "$p: upper case is accepted" "$(place --view "$data/view_four.json" --policy "${p^^}" --json)" "$out"
	tap_is "FEEDBACK+$p" \
		"$(place --view "$data/view_four.json" --policy "FEEDBACK+$p" --json | jq -c .nodes)" \
		"$(jq -c .nodes <<<"$out")"
done
out=$(place --view "$data/view_four.json" --policy io-pm --json)
tap_is "io-pm: running tasks of home move" "$(jq -c '[.migrate[] | [.node, .task, .to]]' <<<"$out")" \
	'[["n1",0,"n3"],["n1",1,"n2"]]'
tap_is "each move has its value" "$(jq -c '[.migrate[].cost_effectiveness > 0] | unique' <<<"$out")" '[true]'
tap_is "the closed node is refused" "$(jq -c .refused_counts.accepts <<<"$out")" 1

# --- text for people
out=$(place --view "$data/view_four.json" --policy io-pm)
tap_is "without --json: 0" "$?" 0
tap_like "it shows the deciding policy" "$out" '^io-pm sends it from n1 to n3 \(response: 231\.8 > 67\.6 s\)\.$'
tap_like "it shows where the tasks go" "$out" '^Its 2 tasks run on: n3 \(1\), n2 \(1\)$'
tap_like "it shows the moves" "$out" '^Then task 0 of n1 should move to n3\.$'
tap_like "it shows both sides of a test" "$out" '^ +n1 +io-overloaded +[0-9]+ +>= +[0-9]+ +requests/s +yes$'
tap_like "it shows the refused nodes" "$out" '^  n4: accepts: 0 >= 1 .*does not hold$'
tap_like "bs waits" "$(place --view "$data/view_four.json" --policy bs)" '^bs makes it wait'

# --- what is expected; 10 requests and 1 s of computation cost 3.3 s at home, 1.3 s at n2
two() { # JOB
	printf '{"params":{"closed_loop_bound":0},"nodes":[%s,{}],"job":%s}' \
		'{"advertised":{"cpu":2,"io_per_ms":0.04,"memory_mb":8}}' "$1"
}
job='"cpu_ms":1000,"io_per_ms":0.01,"memory_mb":4,"reaccess":0'
expected() { place --view - --policy iocm-re-hom --json | jq -c '[.node, (.expected // {})[]] |
	map(numbers |= (. * 10 | round / 10))'; }
tap_is "expected there and at home" "$(two "{$job}" | expected)" '["n2",1254.4,3320.4,1,1]'
tap_is "corrections change it, and the decision" \
	"$(two "{$job,\"corrections\":{\"n1\":0.5,\"n2\":2}}" | expected)" '["n1",1660.2,1660.2,0.5,0.5]'
tap_is "one factor for all nodes" "$(two "{$job,\"correction\":2}" | expected)" '["n2",2408.9,6640.9,2,2]'
tap_is "not with prediction_feedback off" \
	"$(two "{$job,\"correction\":2}" | sed 's/"params":{/&"prediction_feedback":0,/' | expected)" \
	'["n2",1254.4,3320.4,1,1]'
tap_is "nothing is expected of a job of which nothing is known" "$(two '{"memory_mb":4}' | expected)" '["n1"]'
tap_is "nor of one that waits" \
	"$(place --view "$data/view_four.json" --policy bs --json | jq -c '[.queued, .expected]')" '[true,null]'
tap_like "in words" "$(two "{$job}" | place --view - --policy iocm-re-hom)" '^Expected: 1\.3 s there, 3\.3 s at home\.$'
tap_like "corrected" "$(two "{$job,\"correction\":2}" | place --view - --policy iocm-re-hom | paste -sd ' ')" \
	' Expected: 2\.4 s there, 6\.6 s at home \(corrected by a factor of 2 there, 2 at home\)\. '

# --- wrong files: 1, nothing on standard output, the file and the path of the field
wrong() { # DESCRIPTION TEXT EXPECTED
	local out
	printf '%s' "$2" >"$dir/bad.json"
	out=$(place --view "$dir/bad.json" --json)
	tap_is "$1: 1, no answer" "$? '$out'" "1 ''"
	tap_like "$1: the sentence has the place" "$(cat "$dir/err")" "^iocom place: $dir/bad.json$3"
}
wrong "no JSON" 'nothing' ":1:1: .*near 'nothing'"
wrong "an empty file" '' ":1:1: "
wrong "NaN" '{"nodes":[{"ram_mb":NaN}],"job":{}}' ":1:21: nodes\[0\]\.ram_mb: invalid token near 'NaN'"
wrong "negative" '{"nodes":[{"tasks":[{"io_per_ms":-1}]}],"job":{}}' \
	":1:34: nodes\[0\]\.tasks\[0\]\.io_per_ms: expected a number that is not negative, found -1"
wrong "an unknown field" '{"nodes":[{"speed":1}],"job":{}}' ":1:20: nodes\[0\]\.speed: unknown field"
wrong "an unknown parameter" '{"params":{"speed":1},"nodes":[{}],"job":{}}' ":1:20: params\.speed: "
wrong "an index out of range" '{"home":3,"nodes":[{}],"job":{}}' ":1:9: home: .*0 to 0, found 3"
wrong "a correction beyond its bounds" '{"nodes":[{}],"job":{"corrections":{"n1":9000}}}' \
	":1:42: job\.corrections\.n1: expected a factor from 0\.25 to 1024, found 9000"
wrong "a name twice" '{"nodes":[{"name":"a"},{"name":"a"}],"job":{}}' ":1:32: nodes\[1\]\.name: .*nodes\[0\]"
wrong "a wrong type" '{"nodes":[{"ram_mb":"640"}],"job":{}}' ":1:21: nodes\[0\]\.ram_mb: expected a number, found \"640\""
wrong "a key twice" '{"nodes":[{}],"job":{},"job":{}}' ":1:24: duplicate object key near '\"job\"'"
wrong "too deep" "$(printf '[%.0s' {1..5000})" ":1:[0-9]+: .*maximum parsing depth reached"
wrong "no job" '{"nodes":[{}]}' ":1:1: job: expected an object, found nothing"
wrong "loads beyond all bounds" '{"nodes":[{"tasks":[{"memory_mb":1e308},{"memory_mb":1e308}]}],"job":{}}' \
	": nodes\[0\]: its loads are out of the range of the rules"
truncate -s 129000000 "$dir/bad.json"
place --view "$dir/bad.json" >/dev/null
tap_is "too large: 1" "$?" 1
tap_like "and how large it may be" "$(cat "$dir/err")" "bad.json: larger than 128 MB, the most that is read"
place --view "$dir/missing.json" >/dev/null
tap_is "no such file: 1" "$?" 1
tap_like "and it names the file" "$(cat "$dir/err")" "cannot read $dir/missing.json: No such file"
place --view "$data/view_four.json" --json >/dev/full
tap_is "a full disk under the answer: 1" "$?" 1

# --- usage
for bad in "--policy iocm --view $data/view_four.json" "--view $data/view_four.json -- true" \
	"--view $data/view_four.json --mem 5M" "--view $data/view_four.json --save-view x" "--view"; do
	# shellcheck disable=SC2086 # words
	place $bad >"$dir/out"
	tap_is "usage: ${bad//"$data/"/}: 2" "$? $(wc -c <"$dir/out")" "2 0"
	tap_isnt "and a sentence" "$(cat "$dir/err")" ""
done
tap_like "--help names it" "$("$iocom" place --help)" '^  --view FILE '

# --- the simulator's commands
mkdir "$dir/bin" "$dir/path"
cp "$iocom" "$dir/bin/iocom"
sim() { PATH=$dir/path:$PATH timeout 60 "$dir/bin/iocom" "$@" 2>"$dir/err"; }
fake() { # FILE WORD
	printf '#!/bin/sh\necho %s "$@"\nexit 7\n' "$2" >"$1"
	chmod +x "$1"
}
if PATH=$dir/path:$PATH command -v iocom-sim >/dev/null; then
	tap_skip "no simulator" "one is installed on this machine"
else
	sim sim --help
	tap_is "no simulator: 1" "$?" 1
	tap_like "and why" "$(cat "$dir/err")" 'iocom sim: the simulator is not installed'
	fake "$dir/path/iocom-sim" path
	tap_is "the simulator is found on PATH" "$(sim sim FC-5.2 --seeds 3; echo $?)" $'path FC-5.2 --seeds 3\n7'
fi
fake "$dir/bin/iocom-sim" beside
tap_is "the one beside iocom comes first" "$(sim sim FC-5.2 'a b'; echo $?)" $'beside FC-5.2 a b\n7'
tap_is "replay" "$(sim replay x.rec --policy wal)" "beside replay x.rec --policy wal"
tap_is "replay --help" "$(sim help replay)" "beside replay --help"
printf 'no program' >"$dir/bin/iocom-sim"
chmod -x "$dir/bin/iocom-sim"
sim sim
tap_is "a simulator that cannot be started: 1" "$?" 1
tap_like "and why" "$(cat "$dir/err")" 'iocom sim: cannot start iocom-sim: Permission denied'
tap_done
