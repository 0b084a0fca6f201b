#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# A batch log is replayed as batch: beside what it recorded, with EASY backfill, intervals over its
# weeks, effects on users and classes, and a last line that recommends or says why not.  Of every
# trace it is told which part was used.
set -uo pipefail
here=$(cd "$(dirname "$0")/../.." && pwd)
# shellcheck source=tests/lib/tap.sh disable=SC1091
. "$here/tests/lib/tap.sh"
build=${IOCOM_BUILD:-$here/build}
data=$here/tests/sim/data
dir=$(mktemp -d /tmp/iocom-replay-XXXXXX)
trap 'rm -rf "$dir"' EXIT
unset IOCOM_TRACES
cd "$dir" || exit 1

replay() { timeout 120 "$build/iocom-sim" replay "$@" 2>"$dir/err"; }

# JOBS jobs over WEEKS weeks on 8 processors, four users; two jobs never ran, one is too wide.
log() { # JOBS WEEKS
	awk -v jobs="$1" -v weeks="$2" '
		function random() { seed = (seed * 1103515245 + 12345) % 2147483648; return seed / 2147483648 }
		BEGIN {
			seed = 7
			print "; MaxNodes: 8\n; MaxProcs: 8"
			for (i = 1; i <= jobs; i++) {
				t = int(i * weeks * 604800 / (jobs + 1))
				short = random() < 0.7
				run = int(short ? 5 + 600 * random() : 60000 * random())
				procs = 1 + int(8 * random() ^ 3)
				wait = int(20000 * random())
				if (i == 5 || i == 6) run = -1
				if (i == 7) procs = 9
				print i, t, wait, run, procs, run, -1, procs, i == 9 ? -1 : int(run * (1 + 2 * random())), \
					-1, 1, 1 + i % 4, 1, 1, 1, -1, -1, -1
			}
		}'
}
log 700 12 >log.swf

replay log.swf --policy bs,bs-fcfs --out out >text
tap_is "replay: 0" "$? $(cat err)" "0 "
json=out/replay.json
tap_is "what was recorded is the first row, by default" \
	"$(jq -c '[.results[].series]' "$json")" '["recorded","bs","bs-fcfs"]'
expected=$(awk '!/^;/ && $4 >= 0 && $5 <= 8 { n++; w += $3; t += $3 + $4
		b = ($3 + $4) / ($4 > 10 ? $4 : 10); s += b > 1 ? b : 1 }
	END { printf "%d %.6g %.6g %.6g", n, w / n, t / n, s / n }' log.swf)
tap_is "with the means of the log's own fields" \
	"$(jq -r '.results[0].measures | "\(.completed.mean) \(.wait_s.mean) \(.turnaround_s.mean) \(.bounded_slowdown.mean)"' "$json" |
		awk '{ printf "%d %.6g %.6g %.6g", $1, $2, $3, $4 }')" "$expected"
tap_is "every policy ends the same jobs" \
	"$(jq -c '[.results[].measures.completed.mean] | unique | length' "$json")" 1
tap_is "EASY waits less than first come first served" \
	"$(jq '.results[1].measures.wait_s.mean < .results[2].measures.wait_s.mean' "$json")" true
tap_is "the machine has the log's processors" "$(jq -r '.facts["set nodes"]' "$json")" "8xhost:cores=1"
tap_is "which part was used, and why not the rest" "$(jq -c .used "$json")" \
	'{"records":700,"jobs":697,"left_out":{"no_job":2,"too_wide":1}}'
tap_like "in words" "$(tr '\n' ' ' <text | tr -s ' ')" \
	'697 jobs of 700 records used; left out: 2 never ran or hold no work, 1 need more processors than there are; 1 records request no time'
tap_is "12 weeks give an interval around each mean" \
	"$(jq -c '[.replay.weeks, .replay.intervals_over_weeks, ([.results[].measures.bounded_slowdown |
		.low < .mean and .mean < .high] | all)]' "$json")" '[12,true,true]'
tap_like "the number of blocks is told" "$(cat text)" 'block bootstrap over the 12 weeks of the log'
tap_like "the bound of the slowdown is told" "$(cat text)" 'the longer of run time and 10 s'
tap_is "classes hold all jobs" "$(jq '[.replay.points[0].effects.bs.classes[].jobs] | add' "$json")" 697
tap_is "users are compared with what was recorded" \
	"$(jq -c '.replay.points[0].effects.bs.users | [.against, .users, (.better + .worse <= 4)]' "$json")" \
	'["recorded",4,true]'
tap_is "each week, user and class has its row" \
	"$(grep -v '^#' out/replay.groups.csv | awk -F, '$2 == "bs" { n[$3] += $5 } END { print n["week"], n["user"], n["class"] }')" \
	"697 697 697"
tap_is "the busy processors over time are there, recorded and simulated" \
	"$(grep -v '^#' out/replay.samples.csv | awk -F, 'NR > 1 && $4 > 0 { n[$2]++ } END { print (n["recorded"] > 20), (n["bs"] > 20) }')" "1 1"
if command -v gnuplot >/dev/null; then
	tap_true "and drawn" grep "processors busy" out/replay.utilisation.svg
else
	tap_skip "and drawn" "gnuplot is not installed"
fi
tap_is "no line is wider than 80 columns" "$(grep -v '^written:' text | awk 'length > 80')" ""
tap_like "the last line recommends, or says that nothing is told apart" "$(tail -n 1 text)" \
	'^(recommended: bs(-fcfs)?|nothing is (told apart|recommended: .*))$'
tap_is "as the JSON does" "$(jq -r '.replay.points[0].verdict' "$json")" "$(tail -n 1 text)"

# --- a log whose answer is certain: each hour a wide job and narrow ones that can pass it
awk 'BEGIN { print "; MaxProcs: 8"
	for (i = 0; i < 12 * 168; i += 6) {
		t = i * 3600
		print ++n, t, 90000, 7200, 5, 1, -1, 5, 7200, -1, 1, 1, 1, 1, 1, -1, -1, -1
		print ++n, t + 1, 90000, 7200, 8, 1, -1, 8, 7200, -1, 1, 2, 1, 1, 1, -1, -1, -1
		for (k = 0; k < 3; k++)
			print ++n, t + 2 + k, 90000, 600, 3, 1, -1, 3, 600, -1, 1, 3, 1, 1, 1, -1, -1, -1
	} }' >certain.swf
replay certain.swf --json >certain.json
tap_is "a certain answer is recommended" \
	"$(jq -c '.replay.points[0] | [.recommended, .verdict]' certain.json)" '["bs","recommended: bs"]'
replay certain.swf --policy bs,bs-fcfs --set load.to_s=3000000 --out short >text
tap_like "too few weeks are told" "$(cat text)" 'no intervals: jobs arrive in 5 weeks, and 8 are needed'
tap_is "and nothing is recommended" "$(tail -n 1 text)" "nothing is told apart"

# --- hardware
replay log.swf --policy bs --sweep nodes=8,16 --out sweep >text
tap_is "--sweep nodes: 0" "$? $(cat err)" "0 "
tap_is "points are numbers of machines" "$(jq -c '[.results[] | select(.series == "bs") | .x]' sweep/replay.json)" '[8,16]'
tap_is "more machines, less waiting; all jobs fit into 16" \
	"$(jq -c '[.results[] | select(.series == "bs").measures] |
		[.[1].wait_s.mean < .[0].wait_s.mean, .[0].completed.mean, .[1].completed.mean]' sweep/replay.json)" '[true,697,698]'
tap_is "what a point brings, compared with the first" \
	"$(jq -c '.replay.points | [.[0].than_first, (.[1].than_first | keys), (.[1].than_first.bs |
		(.change < 0 and .low < .change and .change < .high), .ended_first, .ended, .users)]' sweep/replay.json)" \
	'[null,["bs"],true,697,698,4]'
tap_is "is the ratio of the means" "$(jq '[.results[] | select(.series == "bs").measures.bounded_slowdown.mean] as [$a, $b] |
	.replay.points[1].than_first.bs.change - ($b / $a - 1) | fabs < 1e-6' sweep/replay.json)" true
tap_like "and the last sentence" "$(tail -n 3 text | tr '\n' ' ' | tr -s ' ')" \
	'bs, nodes=16 rather than 8: mean bounded slowdown [0-9]+ % \[[0-9]+, [0-9]+\] less; of 4 users with 10 jobs or more, [0-4] are better and [0-4] worse off by more than 10 %; these are not the same jobs: 698 ended, not 697 $'
tap_is "what other machines recorded recommends nothing at a point" \
	"$(jq -c '[.replay.points[].recommended]' sweep/replay.json)" '[null,null]'
if command -v gnuplot >/dev/null; then
	tap_is "the figure has what was recorded once" \
		"$(grep -o '>recorded[^<]*' sweep/replay.utilisation.svg)" ">recorded"
else
	tap_skip "the figure has what was recorded once" "gnuplot is not installed"
fi
tap_is "a sweep's lines are no wider than 80 columns" "$(grep -v '^written:' text | awk 'length > 80')" ""
tap_is "and explain only what the table shows" "$(grep -c -e '^wait ' -e '^turnaround ' -e '^slowdown p95' text)" 0
replay certain.swf --sweep nodes=8,9 --json >certain-sweep.json
tap_is "policies are compared with each other at each point" \
	"$(jq -c '[.replay.points[].recommended]' certain-sweep.json)" '["bs","bs"]'
replay log.swf --policy iocm-re --set load.io_per_ms=0.001 --set load.jobs_max=60 \
	--sweep nodes.disk_mb_per_s=20,80 --json >disks.json
tap_is "disks can be swept" "$? $(jq -c '[.results[] | select(.series == "iocm-re") |
	.measures.disk_utilisation.mean] | .[0] > .[1]' disks.json)" "0 true"
replay log.swf --policy bs --nodes 4xhost+4xhost --sweep nodes=4,8 >/dev/null
tap_like "a number of which kind?" "$? $(cat err)" '^2 .*not of one kind'
replay log.swf --policy bs --sweep nodes.disks=1 >/dev/null
tap_like "an unknown field is an error" "$? $(cat err)" '^2 .*machines have no such field'

# --- parts give the same bytes
for shard in 1 2 3; do
	replay log.swf --shard "$shard/3" --out parts
done
timeout 60 "$build/iocom-sim" merge joined parts/*.jsonl >merged 2>"$dir/err"
tap_is "merge: 0" "$? $(cat err)" "0 "
tap_is "parts joined are the whole" "$(cmp out/replay.json joined/replay.json 2>&1)$(cmp out/replay.groups.csv joined/replay.groups.csv 2>&1)" ""
tap_is "and end with the same line" "$(tail -n 1 merged)" "$(jq -r '.replay.points[0].verdict' "$json")"

# --- errors, and other traces
replay log.swf --parallel 2 >/dev/null
tap_like "--parallel has no effect here" "$? $(cat err)" '^2 .*one thread'
replay log.swf --check --sweep nodes=1,2 >/dev/null
tap_like "--check has no sweep" "$? $(cat err)" '^2 .*--check takes no --sweep'
replay log.swf --measure luck >/dev/null
tap_like "an unknown measure" "$? $(cat err)" "^2 .*there is no 'luck'"
# The recorded row reads no parameter of a policy: it does not make such a setting one with an effect.
replay log.swf --policy bs --set com_decision=2 >/dev/null
tap_like "a setting that nothing reads" "$? $(cat err)" '^2 .*com_decision has no effect here: only these policies read it: com'
replay log.swf --policy bs --sweep w_io=0.2,0.4 >/dev/null
tap_like "nor may it be swept" "$? $(cat err)" '^2 .*w_io has no effect here'
replay log.swf --policy bs --set warmup_ms=60000 --json >/dev/null
tap_is "both read the time to leave out" "$? $(cat err)" "0 "
replay log.swf --policy bs --sweep nodes=8,16,8 >/dev/null
tap_like "a value that is swept twice" "$? $(cat err)" '^2 .*--sweep: nodes=8xhost:cores=1 is given twice'
replay log.swf --policy bs --json --sweep nodes=8,16,81 >/dev/null
tap_is "but one may begin like another" "$? $(cat err)" "0 "
tap_is "the papers' settings are named for policies that share, not for a batch queue" \
	"$(for p in bs nlb; do replay log.swf --policy "$p" --set load.jobs_max=50 --out "unlike-$p" | grep -c '^unlike'; done | xargs)" "0 1"
replay log.swf --policy '' >/dev/null
tap_like "no policy at all" "$? $(cat err)" '^2 .*--policy: expected A,B'
printf '; MaxProcs: 8\n1 0 5 100 16 1 -1 16 100 -1 1 1 1 1 1 -1 -1 -1\n2 9 5 -1 4 1 -1 4 100 -1 1 1 1 1 1 -1 -1 -1\n' >none.swf
replay none.swf >/dev/null
tap_like "why no job is used" "$? $(cat err)" '^1 .*none of its 2 records is used: 1 never ran or hold no work, 1 need more processors'
for procs in -1 -5 0 4000000000 99999999999999999999 none; do
	printf '; MaxProcs: %s\n1 0 5 100 4 1 -1 4 100 -1 1 1 1 1 1 -1 -1 -1\n' "$procs" >header.swf
	replay header.swf --policy bs --json | jq -r '.facts["set nodes"]'
done >sizes
tap_is "a header without a number of processors: as many as the widest job" "$(sort sizes | uniq -c | xargs)" "6 4xhost:cores=1"
# A name may hold anything: it neither controls the terminal nor breaks a figure.
name=$(printf '\033[31m<b>"\\&\a.swf')
cp log.swf "$name"
replay "$name" --policy bs --set load.jobs_max=50 --out named >text
tap_is "a hostile name: 0" "$? $(cat err)" "0 "
tap_is "no control character is printed" "$(LC_ALL=C grep -c '[[:cntrl:]]' text)" 0
tap_like "the name is there" "$(head -n 1 text)" '^replay: [?]\[31m<b>"\\&[?].swf$'
if command -v gnuplot >/dev/null; then
	tap_is "figures are XML" "$(python3 -c 'import sys, xml.dom.minidom
for f in sys.argv[1:]: xml.dom.minidom.parse(f)' named/*.svg 2>&1)" ""
else
	tap_skip "figures are XML" "gnuplot is not installed"
fi
replay "no$name" >/dev/null
tap_is "nor in an error" "$? $(LC_ALL=C grep -c '[[:cntrl:]]' err)" "1 0"
# Recorded jobs overlap: more processors were busy than there are, and the axis shows it.
awk 'BEGIN { print "; MaxProcs: 8"; for (i = 0; i < 40; i++) print i, i * 3600, 0, 7000, 8, 1, -1, 8, 7000, -1, 1, 1, 1, 1, 1, -1, -1, -1 }' >over.swf
replay over.swf --policy bs --out over >/dev/null
if command -v gnuplot >/dev/null; then
	tap_true "the axis of busy processors goes beyond 1 if a log does" grep '>2</' over/replay.utilisation.svg
else
	tap_skip "the axis of busy processors goes beyond 1 if a log does" "gnuplot is not installed"
fi
replay log.swf --policy bs --set sample_ms=0.001 >/dev/null
tap_like "a time series without bounds" "$? $(cat err)" '^1 .*sample_ms=0.001 gives a time series of more than 1000000 points'
timeout 60 "$build/iocom-sim" run --workload "$data/csd.csv" --nodes 6xhost --policy nlb --seeds 1 \
	--set sample_ms=0.001 --out series >/dev/null 2>err
tap_like "in a simulated run, too" "$? $(cat err)" '^1 .*sample_ms=0.001 gives a time series of more than 1000000 points'
replay "$data/recording.jsonl" --json >own.json
tap_is "iocom's own policy is compared by default" "$(jq '[.results[].series] | index("least-delay") != null' own.json)" true
replay "$data/recording.jsonl" --policy nlb,cpu-re --json >own.json
tap_is "where no policy changes anything, none is named" "$(jq -r '.replay.points[0].advice' own.json)" \
	"mean slowdown is the same under all policies"
replay "$data/recording.jsonl" --policy nlb --sweep nodes=2,4 --out same >text
tap_like "nor does a point that changes nothing bring a percentage" "$(tail -n 1 text)" ': mean slowdown the same$'
replay "$data/csd.csv" --policy recorded,nlb >/dev/null
tap_like "only batch logs recorded an outcome" "$? $(cat err)" '^1 .*only the log of a batch system'
timeout 60 "$build/iocom-sim" run --workload log.swf --nodes 8xhost --policy recorded 2>"$dir/err" >/dev/null
tap_like "run knows no recorded outcome" "$? $(cat err)" "^2 .*no policy 'recorded'"
sed 's/^\([0-9]* [0-9]*\) [0-9]*/\1 -1/' log.swf >no-waits.swf
replay no-waits.swf --policy bs --json >no-waits.json
tap_is "a log without waits has no recorded row" "$? $(jq -c '[.results[].series]' no-waits.json)" '0 ["bs"]'
replay log.swf --set load.batch=no --policy nlb --json >plain.json
tap_is "load.batch=no replays it like other traces" \
	"$? $(jq -c '[.results[].series, .replay.batch]' plain.json)" '0 ["nlb",false]'
replay "$data/csd.csv" --policy nlb --out csd >text
tap_is "of the process trace one run is used" "$? $(jq -c .used csd/replay.json)" \
	"0 $(awk -F, 'NR > 1 { run = int($1 / 60); if (NR == 2) first = run; n++; used += run == first }
		END { printf "{\"records\":%d,\"jobs\":%d,\"left_out\":{\"other_run\":%d}}", n, used, n - used }' "$data/csd.csv")"
tap_like "and the text says so" "$(tr '\n' ' ' <text | tr -s ' ')" 'are of other runs \(load.run=N takes another\)'

# --- ranks that end together: work by their number, not by its square (that took ten minutes)
{
	head -n 1 "$data/darshan.csv"
	awk -F, -v OFS=, 'NR == 2 { $4 = 400000; print }' "$data/darshan.csv"
} >wide.csv
replay wide.csv --nodes 2xhost --policy nlb --json >wide.json
tap_is "a job of 400,000 ranks ends" "$? $(jq -c '[.results[].measures | .completed.mean, .unfinished.mean]' wide.json)" "0 [1,0]"

tap_done
