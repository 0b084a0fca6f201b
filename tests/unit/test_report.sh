#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# iocom report without an agent: its options, and the reports of several nodes in one
# (tests/unit/test_gain.c has the numbers, tests/cluster/test_job_commands.sh an agent).
set -uo pipefail
here=$(cd "$(dirname "$0")/../.." && pwd)
# shellcheck source=tests/lib/tap.sh disable=SC1091
. "$here/tests/lib/tap.sh"
iocom=${IOCOM_BUILD:-$here/build}/iocom
dir=$(mktemp -d /tmp/iocom-report-XXXXXX)
trap 'rm -rf "$dir"' EXIT
export IOCOM_RUN_DIR=$dir/none LC_ALL=C TZ=UTC

# Prints the exit status and what was said.
ends() {
	timeout 60 "$iocom" report "$@" >"$dir/out" 2>"$dir/err" </dev/null
	echo "$? $(head -n 1 "$dir/err")"
}

# --- options ---
when='^2 iocom report: --since takes 7d, 24h, 90m or a date in the past'
for bad in "" 7 d 7w -1d 1e400d 7dd nand infd 99999999d 2026-13-01 2026-06-31 2026-05-17x 2999-01-01 "2026-05-17 25:00" \
	1969-12-31; do
	tap_like "--since '$bad': 2" "$(ends --since "$bad")" "$when"
done
for good in 7d 24h 90m 0.5d 0m 2001-02-03 "2001-02-03 04:05" "2001-02-03 04:05:06"; do
	tap_like "--since '$good' is accepted" "$(ends --since "$good")" '^1 iocom report: no agent answers'
done
tap_is "an argument: 2" "$(ends x)" "2 iocom report: takes no argument 'x' without --merge"
tap_is "--all and --user: 2" "$(ends --all --user root)" "2 iocom report: --all and --user exclude each other"
tap_is "--jobs alone: 2" "$(ends --jobs)" "2 iocom report: --jobs needs --json"
tap_is "--merge alone: 2" "$(ends --merge)" "2 iocom report: --merge needs at least one file"
for other in "--since 7d" --all "--user root"; do
	# shellcheck disable=SC2086 # words
	tap_like "--merge $other: 2" "$(ends --merge $other file)" '^2 iocom report: --merge takes all jobs of its files'
done
tap_like "an unknown policy: 1" "$(ends --policy best)" "^1 iocom report: there is no policy 'best'"
tap_like "a known one, in any case" "$(ends --policy IOCM-re)" '^1 iocom report: no agent answers'
tap_like "an unknown user: 1" "$(ends --user no-such-user)" "^1 iocom report: there is no user 'no-such-user'"
tap_like "no user number: 1" "$(ends --user 4294967295)" "^1 iocom report: there is no user"
tap_like "a user by number" "$(ends --user 65534)" '^1 iocom report: no agent answers'

# --- reports of several nodes ---
# made NODE JOBS...: a report of NODE; a job is THERE:WALL:EXPECTED:HOW-MANY (THERE -: it stayed)
made() {
	python3 - "$@" <<'END'
import itertools, json, sys
jobs, number = [], itertools.count()
for word in sys.argv[2:]:
    there, wall, expected, count = word.split(":")
    jobs += [dict(job=f"{sys.argv[1]}-0-{next(number)}", policy="iocm-re", user="ada", **{"class": "sort"}, basis="profile",
                  node=sys.argv[1] if there == "-" else there, balanced=True, moved=there != "-", exit_kind=0, exit_value=0,
                  took_ms=float(wall), expected_ms=float(expected), expected_home_ms=float(expected))
             for _ in range(int(count))]
print(json.dumps(dict(version=1, homes=[sys.argv[1]], jobs=jobs)))
END
}
made n1 -:1000:1000:10 n3:400:1000:5 >"$dir/n1"
made n2 -:1000:1000:10 n3:600:1000:1 n4:900:1000:6 >"$dir/n2"
of() { jq -c "$1" "$dir/out"; }
tap_is "one report" "$(ends --merge "$dir/n1" --json)" "0 "
tap_is "ten stayed, five took 2 s in place of 5 s: 3 s" \
	"$(of '[.homes, .total.jobs, .total.left, .total.verdict, .total.home_ms, .total.gain_ms, .total.low_ms, .total.high_ms]')" \
	'[["n1"],15,5,"told",5000,3000,3000,3000]'
tap_is "no jobs without --jobs" "$(of '.jobs')" null
tap_is "two reports" "$(ends --merge "$dir/n1" "$dir/n2" --json --jobs)" "0 "
tap_is "of both nodes" "$(of '[.homes, .total.jobs, .total.left, .total.gain_ms, (.jobs | length)]')" '[["n1","n2"],32,12,4000,32]'
tap_is "by node, the longest first" "$(of '[.by_node[] | .name + " " + .verdict]')" \
	'["n1 few left","n2 few left","n4 told","n3 told"]'
cp "$dir/out" "$dir/both"
tap_is "what it wrote can be merged, too" "$(ends --merge "$dir/both" --json) $(of '[.homes, .total.gain_ms]')" \
	'0  [["n1","n2"],4000]'
tap_is "a job in several files counts once" \
	"$(ends --merge "$dir/n1" "$dir/both" "$dir/n2" "$dir/n1" --json --jobs) $(of '[.total.jobs, .total.gain_ms, (.jobs | length)]')" "0  [32,4000,32]"
tap_is "only one node's" "$(ends --merge "$dir/n1" "$dir/n2" --node n4 --json) $(of '[.total.jobs, .total.gain_ms, .predictions.median]')" \
	"0  [6,600,0.9]"
tap_is "a policy that placed none" "$(ends --merge "$dir/n1" --policy nlb) $(wc -l <"$dir/out")" "0  2"
ends --merge "$dir/n1" >"$dir/rc"
tap_like "for people: the gain" "$(cat "$dir/out")" '^Gain: saved 3\.0 s, 60 % \(3\.0 s to 3\.0 s\)\.$'
tap_like "whose jobs" "$(head -n 1 "$dir/out")" '^Jobs submitted at node n1: 15 have ended, iocom sent 5 of them to other nodes\.$'
tap_like "how good predictions were" "$(cat "$dir/out")" \
	'^Predictions: 15 jobs took 1\.00 times the expected time .*'
tap_like "a table by node" "$(cat "$dir/out")" '^n3 +5 +5 +2\.0 s +5 +2\.0 s +saved 3\.0 s, 60 %'
tap_like "nobody left, no gain" "$(cat "$dir/out")" '^n1 +10 +0 +10\.0 s +0 +- +-$'
made n1 -:1:1:10 n3:400:1000:4 >"$dir/few"
ends --merge "$dir/few" >"$dir/rc"
tap_like "too few left" "$(cat "$dir/out")" '^Gain: cannot be told: 4 judged, 5 needed\.$'
tap_like "also in a table" "$(cat "$dir/out")" '^n3 +4 +4 +1\.6 s +4 +1\.6 s +cannot be told: 4 judged, 5 needed$'
made n1 -:1:1:10 >"$dir/few"
ends --merge "$dir/few" >"$dir/rc"
tap_like "none left" "$(cat "$dir/out")" '^Gain: none, no job left home\.$'
made n1 n3:400:1000:5 >"$dir/few"
ends --merge "$dir/few" >"$dir/rc"
tap_like "nobody stayed: it cannot be told" "$(cat "$dir/out")" '^Gain: cannot be told: too few jobs stayed at home\.$'
tap_is "and there is no number" "$(ends --merge "$dir/few" --json) $(of '[.total.gain_ms, .total.low_ms]')" "0  [null,null]"
made n1 -:500:1000:10 -:1500:1000:10 n3:990:1000:20 >"$dir/unsure"
ends --merge "$dir/unsure" >"$dir/rc"
tap_like "an interval with 0 in it" "$(cat "$dir/out")" '^Gain: cannot be told: from -[0-9.]+ s to [0-9.]+ s\.$'
tap_is "has no number either" "$(ends --merge "$dir/unsure" --json) $(of '[.total.gain_ms, .total.verdict, .total.low_ms < 0]')" \
	'0  [null,"unsure",true]'
made n1 n3:2000:1000:6 -:1000:1000:10 >"$dir/loss"
ends --merge "$dir/loss" >"$dir/rc"
tap_like "a loss is told" "$(cat "$dir/out")" '^Gain: lost 6\.0 s, 100 % \(6\.0 s to 6\.0 s\)\.$'
made n1 >"$dir/none"
tap_is "no job at all" "$(ends --merge "$dir/none") $(head -n 1 "$dir/out")" \
	"0  Jobs submitted at node n1: none has ended."
made n1 -:1:1:1 >"$dir/one"
tap_is "one job, which stayed" "$(ends --merge "$dir/one") $(head -n 1 "$dir/out")" \
	"0  Jobs submitted at node n1: 1 has ended, iocom did not send it away."
tap_like "and one prediction" "$(cat "$dir/out")" '^Predictions: 1 job took '
tap_like "one stayed" "$(cat "$dir/out")" '^  At home, the 1 job that stayed took 1\.00 times the expected time \(median\)\.$'
made n1 n3:1:1:1 >"$dir/one"
tap_is "one job, which left" "$(ends --merge "$dir/one") $(head -n 1 "$dir/out")" \
	"0  Jobs submitted at node n1: 1 has ended, iocom sent it to another node."
tap_is "what is counted is said" "$(ends --merge "$dir/n1" --policy iocm-re --node n1) $(head -n 2 "$dir/out" | paste -sd ' ' | tr -s ' ')" \
	"0  Jobs submitted at node n1, only those placed by iocm-re and run at n1: 10 have ended, iocom sent none of them away."
tap_is "it fits 80 columns" "$(awk 'length > 80' "$dir/out")" ""
tap_is "a node where none ran" "$(ends --merge "$dir/n1" --node n9) $(head -n 1 "$dir/out")" \
	"0  Jobs submitted at node n1, only those run at n9: none has ended."
ends --merge "$dir/n1" --node $'n\033[2J' >"$dir/rc"
tap_is "a name from the command line does not control the terminal" "$(grep -c $'\033' "$dir/out")" 0
jq '.jobs |= map(.basis = "nothing")' "$dir/n1" >"$dir/unknown"
ends --merge "$dir/unknown" >"$dir/rc"
tap_like "unknown needs are counted" "$(cat "$dir/out")" '^ +15 of which nothing was known \(the first runs of a class\)$'
tap_like "under their title" "$(cat "$dir/out")" '^Jobs not judged:$'
tap_like "and predict nothing" "$(cat "$dir/out")" '^Predictions: nothing was expected of any of these jobs\.$'
jq '.homes = ["a\u001b[2J", 7] | .jobs[0].node = "b\u001b[2J"' "$dir/n1" >"$dir/strange"
tap_is "names do not control the terminal" "$(ends --merge "$dir/strange") $(grep -c $'\033' "$dir/out")" "0  0"
{
	made n1 -:1:1:9999
	made n2 -:2:1:2
} >"$dir/many"
jq -s '{homes: ["n1"], jobs: (.[0].jobs + .[1].jobs)}' "$dir/many" >"$dir/much"
tap_is "too many jobs: the first ones" "$(ends --merge "$dir/much" --json) $(of '[.cut, .total.jobs, .total.time_ms]')" \
	"0  [true,10000,10001]"
tap_like "which is said" "$(ends --merge "$dir/much") $(cat "$dir/out")" 'Only the newest 10000 are counted'

# --- files that are none ---
tap_like "no file" "$(ends --merge "$dir/n9")" "^1 iocom report: cannot read the report $dir/n9: .*No such file"
echo '{"homes":' >"$dir/bad"
tap_like "no JSON" "$(ends --merge "$dir/bad")" "^1 iocom report: cannot read the report $dir/bad: "
for wrong in '[]' '{}' '{"jobs": 3}' '{"jobs": [3]}' '{"jobs": [{"node": "n1"}]}'; do
	echo "$wrong" >"$dir/bad"
	tap_like "no report: $wrong" "$(ends --merge "$dir/n1" "$dir/bad")" \
		"^1 iocom report: cannot read the report $dir/bad: .* \\(was it made with --json --jobs\\?\\)"
done
"$iocom" report --merge "$dir/n1" >/dev/full 2>"$dir/err"
tap_like "an output that cannot be written: 1" "$? $(cat "$dir/err")" '^1 iocom: cannot write the output'
tap_done
