#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# The program iocom-sim: its list and its errors; files appear whole or not at all, and only
# settings and seed determine their content.
set -uo pipefail
here=$(cd "$(dirname "$0")/../.." && pwd)
# shellcheck source=tests/lib/tap.sh disable=SC1091
. "$here/tests/lib/tap.sh"
build=${IOCOM_BUILD:-$here/build}
data=$here/tests/sim/data
dir=$(mktemp -d /tmp/iocom-sim-XXXXXX)
trap 'rm -rf "$dir"' EXIT
unset IOCOM_TRACES
cd "$dir" || exit 1
mkdir empty

sim() { timeout "${limit:-300}" "$build/iocom-sim" "$@" 2>"$dir/err"; }
# Lists the names of all files in a directory, hidden ones too.
inside() { find "$1" -mindepth 1 -printf '%P\n' 2>/dev/null | sort | tr '\n' ' '; }

# --- the list
ids="FC-ABS FC-3-DATA FC-THR FC-4.1 FC-4.2 FC-4.3 FC-5.1 FC-5.2 FC-5.3 FC-5.4 FC-5.5 FC-CONC FC-OVH
SLD-MET SLD-EX SLD-RE SLD-CMP SLD-PM SLD-APP SLD-CONC
ACM-ABS ACM-1 ACM-2 ACM-3 ACM-4 ACM-5 ACM-6 ACM-CPU ACM-7 ACM-8 ACM-9 ACM-10 ACM-11 ACM-12 ACM-13
ACM-14 ACM-15 ACM-16 ACM-17 ACM-18 ACM-19 ACM-20 ACM-21 ACM-22
COM-ABS COM-4a COM-4b COM-4c COM-5a COM-5b COM-5c COM-6a COM-6b COM-6c COM-7a COM-7b COM-7c COM-8a
COM-8b COM-9a COM-9b COM-10a COM-10b
ZAT-ABS ZAT-4.1-F3 ZAT-4.1-F4 ZAT-4.1-F5 ZAT-4.2-F6 ZAT-4.2-F7 ZAT-4.2-F8 ZAT-4.2-F9 ZAT-4.2-F10
ZAT-4.2-F11 ZAT-4.2-F12 ZAT-8 ZAT-9.1 ZAT-9.2 ZAT-9.3 ZAT-9.4.1 ZAT-9.4.1-F16 ZAT-9.4.1-F17
ZAT-9.4.1-F18 ZAT-9.4.2 ZAT-9.4.2-F19 ZAT-9.4.2-F20 ZAT-9.4.3 ZAT-9.4.4 ZAT-MEM"
out=$(sim --list)
tap_is "--list: 0" "$?" 0
listed=$(awk '$1 == "" { exit } NR > 1 { print $1 }' <<<"$out")
for paper in FC SLD ACM COM ZAT; do
	missing=$(tr ' ' '\n' <<<"$ids" | grep "^$paper-" | grep -vxFf <(printf '%s\n' "$listed"))
	tap_is "--list has every id of $paper" "$missing" ""
done
tap_is "no id is listed twice" "$(sort <<<"$listed" | uniq -di)" ""
tap_is "--list --json has the same ids" "$(sim --list --json | jq -r '.[].id')" "$listed"
tap_like "a policy is listed" "$out" '^  iocm-re +'
tap_like "a preset of workloads is listed" "$out" '^  acm-30 +'

# --- help
for command in "" run replay gossip figures params merge --list FC-5.2; do
	# shellcheck disable=SC2086 # no word for none
	out=$(sim $command --help)
	tap_like "${command:-iocom-sim} --help: 0, a usage" "$? $out" '^0 usage: iocom-sim'
	tap_is "and nothing on standard error" "$(cat err)" ""
done
sim >out
tap_is "no command: 2, on standard error" "$? $(wc -c <out) $(head -c 6 err)" "2 0 usage:"

# --- every option of a --help is in the manual page, and vice versa
scd=$(sed -n '/^# OPTIONS/,/^# EXIT/p; /^# SYNOPSIS/,/^# OPTIONS/p' "$here/sim/iocom-sim.1.scd" |
	sed '/^# EXIT/,$d')
helped=$(for command in "" run replay gossip figures params merge --list FC-5.2; do
	# shellcheck disable=SC2086 # no word for none
	sim $command --help
done | grep -oE -- '--[a-z-]+' | grep -vx -e --view | sort -u | tr '\n' ' ')
manual=$(grep -oE -- '\*--[a-z-]+' <<<"$scd" | tr -d '*' | sort -u | tr '\n' ' ')
tap_is "options of the helps and of the manual page are the same" \
	"$(tr ' ' '\n' <<<"$helped--version" | sort -u | tr '\n' ' ')" "$(sort -u <<<"$(tr ' ' '\n' <<<"$manual")" | tr '\n' ' ')"
tap_is "every parameter has a source" \
	"$(sim params --json | jq -r '.[] | select(.source == "").name')" ""
tap_is "options of a trace: those of params and of the manual page are the same" \
	"$(sim params | awk '/of a trace:$/ { getline; print }' | grep -oE 'load\.[a-z_]+' | sed 's/load\.//' | sort | tr '\n' ' ')" \
	"$(sed -n '/^# OPTIONS OF TRACES/,/^# EXAMPLES/p' "$here/sim/iocom-workload.5.scd" |
		grep -E '^(\[\[|\|) +\*' | grep -oE '\*[a-z_\\]+\*' | tr -dc 'a-z_\n' | sort | tr '\n' ' ')"

# --- wrong arguments: the exit code, one sentence, nothing is written
wrong() { # CODE SENTENCE ARGUMENT...
	local code=$1 sentence=$2
	shift 2
	(cd empty && sim "$@" >../out)
	tap_is "$*: $code" "$? '$(cat out)'" "$code ''"
	tap_like "and why" "$(head -n 1 err)" "$sentence"
	tap_is "and nothing is written" "$(inside empty)" ""
}
gen="gen:fc,jobs=20"
base=(run --workload "$gen" --nodes 6xfc --policy wal --seeds 1)
wrong 2 "there is no experiment 'FC-9'; .*--list" FC-9
wrong 2 "FC-4\.3 is not an experiment of its own: " FC-4.3
wrong 2 "there is no option '--nope'" FC-4.1 --nope
wrong 2 "--seeds needs a value" FC-4.1 --seeds
wrong 2 "--json takes no value" FC-4.1 --json=1
wrong 2 "this command does not take --workload" FC-4.1 --workload "$gen"
wrong 2 "there is no experiment 'FCX'" figures FC-4.1 FCX
wrong 2 'no parameter is named "w_ioo"; similar: w_io$' FC-4.1 --set w_ioo=1
wrong 2 'similar: cpu_load_runnable$' "${base[@]}" --set cpu_load_runable=1
wrong 2 "similar: w_io$" params --set w_ioo=1
wrong 2 "w_io: expected a number, found 'much'" "${base[@]}" --set w_io=much
wrong 2 "expected NAME=VALUE, found 'w_io'" "${base[@]}" --set w_io
wrong 2 "nodes.speed: machines have no such field" "${base[@]}" --set nodes.speed=2
wrong 2 "fidelity: expected fluid or request, found 'x'" "${base[@]}" --fidelity x
wrong 2 "priority_decay: the fluid level has no priorities; use fidelity request" \
	"${base[@]}" --set priority_decay=1
wrong 2 "priority_decay: the fluid" ZAT-9.4.1 --fidelity fluid
wrong 2 'probe: expected cc, io, cpu, nroff or imbalance, found "x"' \
	run --workload probe:x --nodes 2xvax --policy random
wrong 2 "probe: there is no key \"lokal\"" ZAT-9.4.1 --set load.lokal=1
wrong 1 "a probe needs two machines, a local and a remote one, not 3" \
	run --workload probe:cpu --nodes 3xvax --policy random
wrong 2 "--seeds: expected a whole number from 1 to 10000, found '0'" "${base[@]}" --seeds 0
wrong 2 "--jobs: expected a whole number .* found '-1'" "${base[@]}" --jobs -1
wrong 2 "--parallel: .* found '2x'" "${base[@]}" --parallel 2x
wrong 2 "--shard: expected I/N .* found '4/3'" "${base[@]}" --shard 4/3
for shard in 0/0 5/3 1/0 1/3x "1/ 3" 4294967297/4294967298; do
	wrong 2 "--shard: expected I/N .* found '$shard'" "${base[@]}" --shard "$shard"
done
wrong 2 "--seeds: .* found ' 3'" "${base[@]}" --seeds " 3"
wrong 2 "--out: expected a directory" "${base[@]}" --out ""
wrong 2 "nodes: cores must be 1 or more" "${base[@]}" --set nodes.cores=0.3
wrong 2 "nodes: fixed must be 0 ms or more" "${base[@]}" --set nodes.disk_fixed_ms=1e300
wrong 2 "cluster file /dev/zero, line 1: a row has at most" \
	run --workload "$gen" --nodes @/dev/zero --policy wal
wrong 2 "cannot read the cluster file /tmp: Is a directory" \
	run --workload "$gen" --nodes @/tmp --policy wal
wrong 2 "--trace: none of these experiments replays the process trace" \
	FC-4.1 --trace "$data/csd.csv"
wrong 2 'a workload has no option "jbos"; it has: ' replay "$data/csd.csv" --set load.jbos=1
wrong 2 "load.seed: use the seed of the run" replay "$data/csd.csv" --set load.seed=1
wrong 1 "pipe:1:1: expected a workload" replay /dev/null
wrong 1 "/dev/zero:1: expected a JSON object" merge m /dev/zero
wrong 1 "/tmp:1: Is a directory" merge m /tmp
wrong 2 "--sweep: expected NAME=V1,V2,..., found 'w_io'" "${base[@]}" --sweep w_io
wrong 2 "--measure: there is no 'speed'" "${base[@]}" --measure speed
wrong 2 "there is no policy 'walx'" run --workload "$gen" --nodes 6xfc --policy walx
wrong 2 "wal is given twice" run --workload "$gen" --nodes 6xfc --policy wal,wal
wrong 2 "--policy is missing" run --workload "$gen" --nodes 6xfc
wrong 2 "--nodes is missing" run --workload "$gen" --policy wal
wrong 2 "--workload is missing" run --nodes 6xfc --policy wal
wrong 2 'cluster "6xnope", character 3: no machine is named "nope"' \
	run --workload "$gen" --nodes 6xnope --policy wal
wrong 2 'cluster "0xfc", character 1: a count of 1 or more' \
	run --workload "$gen" --nodes 0xfc --policy wal
wrong 2 'column 5: expected a preset .* found "nope"' \
	run --workload gen:nope --nodes 6xfc --policy wal
wrong 2 'column 8: expected a key .* found "jbos"' \
	run --workload gen:fc,jbos=3 --nodes 6xfc --policy wal
# --- what changes nothing is an error
wrong 2 "--set fb_gain_w has no effect here: only policies with the feedback controller" \
	run --workload "$gen" --nodes 6xfc --policy nlb,wal --set fb_gain_w=2
wrong 2 "--set cm_memory_ratio has no effect here: only these policies read it: cm" \
	"${base[@]}" --set cm_memory_ratio=1
wrong 2 "--set load.barrier_ms has no effect here: no job of this workload depends on it" \
	"${base[@]}" --set load.barrier_ms=10
wrong 2 "--sweep load.share has no effect here" "${base[@]}" --sweep load.share=0.1,0.2
wrong 2 "--sweep sample_ms has no effect here: no time series is kept here" \
	run --workload "$gen" --nodes 6xfc --policy nlb --sweep sample_ms=1,2
wrong 2 "--set sample_ms has no effect here: no time series is kept here" \
	"${base[@]}" --set sample_ms=10 --record r
wrong 2 "--set w_io has no effect here: run sets it itself" \
	"${base[@]}" --set w_io=0.3 --sweep w_io=0.1,0.2
wrong 2 "--sweep: w_io is swept twice" "${base[@]}" --sweep w_io=0.1,0.2 --sweep w_io=0.3
wrong 2 "--set seed has no effect here: --seed gives" "${base[@]}" --set seed=3
wrong 2 "--set load.faults_per_ms has no effect here: FC-5.3 sets it itself" \
	FC-5.3 --set load.faults_per_ms=2
wrong 2 "--fidelity has no effect here: XCHECK sets it itself" XCHECK --fidelity fluid
wrong 2 "--set io_cost_test has no effect here" replay "$data/csd.csv" --policy nlb --set io_cost_test=0
wrong 2 "--set load.requested has no effect here: no job" replay "$data/csd.csv" --set load.requested=1
wrong 2 "--set: --workload and --nodes give" "${base[@]}" --set nodes=3xfc
wrong 2 "this command does not take --seeds" params --seeds 3
wrong 2 "--measure has no effect with --record" "${base[@]}" --measure slowdown --record r
wrong 2 "--seeds: --record and --export-view make one run" \
	run --workload "$gen" --nodes 6xfc --policy wal --seeds 2 --record r
wrong 1 "/none/t.csv" FC-THR --set workload=/none/t.csv --seeds 1
wrong 2 "take one policy and no sweep" run --workload "$gen" --nodes 6xfc --policy wal,nlb --record r
wrong 2 "--at-decision needs --export-view" "${base[@]}" --at-decision 3
wrong 1 "there were only 20 decisions" "${base[@]}" --export-view v.json --at-decision 21
wrong 1 "cannot open /none/t.swf: No such file" run --workload /none/t.swf --nodes 6xfc --policy wal
wrong 2 "no trace given" replay
wrong 1 "cannot open /none/t.swf: No such file" replay /none/t.swf
wrong 1 "cannot open /none/r: No such file" replay /none/r --check
wrong 1 "cannot open /none/t.csv: No such file" CSD --trace /none/t.csv --seeds 1
wrong 2 "expected DIR PART" merge m
wrong 2 "expected DIR PART.*directory to write to comes first, and '.*csd.csv' is none" merge "$data/csd.csv" "$data/csd.csv"
wrong 2 "expected DIR PART" merge "$data/csd.csv"
wrong 1 "cannot read /none/p: No such file" merge m /none/p
wrong 1 "csd.csv:1: expected " merge m "$data/csd.csv"
wrong 2 "unexpected 'x'" params x
gzip -c "$data/csd.csv" >cut.csv.gz
truncate -s -12 cut.csv.gz
wrong 1 "cut\.csv\.gz:[0-9]+:[0-9]+: expected the rest of the gzip data" replay ../cut.csv.gz
wrong 1 "cut\.csv\.gz:[0-9]+:[0-9]+: expected the rest of the gzip data" \
	run --workload ../cut.csv.gz --nodes 6xfc --policy wal --record r.rec --seeds 1
touch a-file
wrong 1 "cannot make directory .*a-file/out" "${base[@]}" --out ../a-file/out
wrong 1 "cannot write in directory /proc: " "${base[@]}" --out /proc
mkdir -p taken/run.svg
sim "${base[@]}" --out taken >out
tap_is "if one file cannot be replaced, no other is: 1" "$? $(inside taken)" "1 run.svg "
tap_like "and why" "$(cat err)" "cannot write taken/run\.svg: it is a directory"
for words in "--list" "--list --json" "--help" "run --help" params "params --json"; do
	# shellcheck disable=SC2086 # words
	sim $words >/dev/full
	tap_is "a full disk under $words: 1" "$?" 1
done
sim "${base[@]}" --out closed >&-
tap_is "standard output closed: 1, the files whole" "$? $(inside closed)" \
	"1 run.csv run.json $(command -v gnuplot >/dev/null && echo 'run.svg ')"

# --- what is there already is not replaced, unless one says so
earlier_work() { echo mine >"$1"; }
mkdir -p kept
for name in run.csv run.json run.svg; do
	earlier_work "kept/$name"
	sim "${base[@]}" --out kept >out
	tap_is "$name is there: 1, said before anything runs, and it stays" \
		"$? $(cat err) $(wc -c <out) $(inside kept)$(cat "kept/$name")" \
		"1 iocom-sim run: kept/$name is there already; --force replaces it 0 $name mine"
	rm "kept/$name"
done
earlier_work kept/run.csv
sim "${base[@]}" --force --out kept >out
tap_is "--force replaces it: 0" "$? $(grep -cx mine kept/run.csv)" "0 0"
earlier_work kept/replay.csv
sim replay "$data/csd.csv" --policy nlb --out kept >out
tap_is "replay: likewise" "$? $(cat kept/replay.csv)" "1 mine"
earlier_work kept/run.part-1-of-2.jsonl
sim "${base[@]}" --shard 1/2 --out kept >out
tap_is "a part: likewise" "$? $(cat kept/run.part-1-of-2.jsonl)" "1 mine"
earlier_work kept/r.rec
sim run --workload "$gen" --nodes 6xfc --policy wal --seeds 1 --record kept/r.rec
tap_is "--record: likewise" "$? $(cat kept/r.rec)" "1 mine"
sim run --workload "$gen" --nodes 6xfc --policy wal --seeds 1 --export-view kept/r.rec
tap_is "--export-view: likewise" "$? $(cat kept/r.rec) $(cat err)" \
	"1 mine iocom-sim run: kept/r.rec is there already; --force replaces it"
sim run --workload "$gen" --nodes 6xfc --policy wal --seeds 1 --force --export-view kept/r.rec
tap_is "with --force it is replaced" "$? $(jq -r .version kept/r.rec)" "0 1"
mkfifo kept/pipe
sim run --workload "$gen" --nodes 6xfc --policy wal --seeds 1 --force --record kept/pipe
tap_is "what is no file is not replaced, even so" "$? $(test -p kept/pipe && echo pipe)" "1 pipe"

# --- what is written
grid=(run --workload "gen:fc,jobs=40" --nodes 6xfc --policy "nlb,wal,feedback+io" --seeds 2
	--sweep "w_io=0.2,0.5")
sim "${grid[@]}" --jobs 2 --out whole >table
tap_is "a sweep: 0" "$?" 0
tap_like "the table has a row for each point" "$(cat table)" '^0\.5  '
tap_is "JSON has seeds, all points and series, parameters and the hash of the input" \
	"$(jq -c '[.version, .seeds, .first_seed, (.results | length), .facts.seeds,
	(.facts.input | test("^sha256:[0-9a-f]{64}$")), .facts["set nodes"],
	(.facts["parameters of the first run"] | test(" w_io=0.2 "))]' whole/run.json)" \
	'[1,2,1,6,"1..2",true,"6xfc",true]'
tap_is "the interval holds the mean" \
	"$(jq '[.results[].measures.slowdown | .low <= .mean and .mean <= .high] | all' whole/run.json)" true
# Prints how many different numbers of columns there are, and the number of rows.
columns() { # FILE
	grep -v '^#' "$1" | sed 's/"[^"]*"/text/g' |
		awk -F, '{ n[NF]++ } END { for (k in n) kinds++; print kinds, NR }'
}
tap_is "CSV: a row for each point and series, all with the same number of columns" \
	"$(columns whole/run.csv)" "1 7"
tap_like "CSV tells the input's hash" "$(cat whole/run.csv)" '^# input: sha256:[0-9a-f]{64}$'
tap_is "seeds in CSV and JSON are the same numbers" \
	"$(awk -F, '/^0\.5,wal,/ { print $5 }' whole/run.csv)" \
	"$(jq -r '.results[] | select(.point == "0.5" and .series == "wal").measures.slowdown.mean' whole/run.json)"
sim run --workload "$gen" --nodes 6xfc --policy wal,nlb --seeds 1 --sweep "w_io=0.2,0.5" \
	--sweep nodes.buffer_mb=60,110 --set sample_ms=500 --out several >table3
tap_is "two sweeps: a column for each swept setting" \
	"$? $(grep -v '^#' several/run.csv | cut -d , -f 1-3 | head -n 3 | tr '\n' ' ')" \
	"0 nodes.buffer_mb,w_io,series 60,0.2,wal 60,0.2,nlb "
tap_is "in each row" "$(columns several/run.csv)" "1 9"
tap_is "with sample_ms a time series is written" \
	"$(inside several) $(columns several/run.samples.csv | cut -d ' ' -f 1)" \
	"run.csv run.json run.samples.csv run.svg run.utilisation.svg  1"
tap_like "and said" "$(cat table3)" \
	'^written: several/run\.csv, \.json, \.svg, \.samples\.csv, \.utilisation\.svg$'
tap_like "the head says what the papers set otherwise" "$(cat table3)" \
	"^unlike the papers' configurations: page_fault_at_disk=1 "
sim run --workload "$gen" --nodes 6xfc --policy nlb --seeds 1 --out solo >table3
tap_is "but not what only other policies read" "$(grep -c information_period_ms table3)" 0
sim FC-THR --seeds 1 --out traced --set load.jobs=3 --set workload="$data/csd.csv" >table3
tap_like "a figure with a process trace: 0, and it says which part it used" "$? $(tr -s ' \n' ' ' <table3)" \
	"^0 FC-THR.* workload: generator fc, seed 1, 3 jobs; homes, gaps, computation: jobs 1-3 of 4, run 2 "

sim "${grid[@]}" --json >out
tap_is "--json: 0, the same as the file" "$? $(cmp out whole/run.json 2>&1)" "0 "
tap_is "--json alone writes no file" "$(find . -maxdepth 1 -name 'run.*')" ""
is_xml() { # FILE
	if command -v xmllint >/dev/null; then
		xmllint --noout "$1"
	else
		grep -q '</svg>' "$1"
	fi
}
if command -v gnuplot >/dev/null; then
	tap_true "SVG is XML" is_xml whole/run.svg
	tap_like "and holds the hash" "$(cat whole/run.svg)" 'input: sha256:'
	# What has no value at all: a plot of nothing, not an error.
	for sweep in "" "--sweep w_io=0.1,0.5" "--sweep load.arrivals=poisson,regular"; do
		# shellcheck disable=SC2086 # words
		sim "${base[@]}" $sweep --measure slowdown_kind_9 --force --out none >/dev/null
		tap_is "a measure without a value ${sweep:+($sweep)}: 0" "$? $(cat err)" "0 "
		tap_true "still XML" is_xml none/run.svg
	done
else
	tap_skip "SVG is XML" "no gnuplot here"
fi
mkdir nothing-on-path
PATH=$dir/nothing-on-path /usr/bin/timeout 60 "$build/iocom-sim" "${grid[@]}" --out bare >/dev/null 2>err
tap_is "without gnuplot: 0" "$?" 0
tap_like "and it says so" "$(cat err)" "no figures: gnuplot is not installed .*CSV and JSON are written"
tap_is "CSV and JSON are there" "$(inside bare)" "run.csv run.json "
cp -r whole earlier
touch earlier/run.svg earlier/mine.svg
PATH=$dir/nothing-on-path /usr/bin/timeout 60 "$build/iocom-sim" "${grid[@]}" --force --out earlier >/dev/null 2>err
tap_is "and the figure of an earlier run is gone, others are not" "$(inside earlier)" \
	"mine.svg run.csv run.json "
tap_is "and the same" "$(cat bare/run.csv bare/run.json | cksum)" "$(cat whole/run.csv whole/run.json | cksum)"

# --- the same bytes
same() { # DESCRIPTION DIRECTORY [THAN]
	local than=${3:-whole}
	tap_is "$1: the same CSV and JSON" \
		"$(cmp "$2/run.csv" "$than/run.csv" 2>&1)$(cmp "$2/run.json" "$than/run.json" 2>&1)" ""
}
sim "${grid[@]}" --jobs 1 --out one >/dev/null
same "one run at a time" one
sim "${grid[@]}" --parallel 1 --out threads1 >/dev/null
sim "${grid[@]}" --parallel 2 --out threads2 >/dev/null
same "two threads in a run" threads2 threads1
sim "${grid[@]}" --seed 7 --out other >/dev/null
tap_isnt "another seed: other numbers" "$(grep -v '^#' other/run.csv | cksum)" \
	"$(grep -v '^#' whole/run.csv | cksum)"
for i in 1 2 3; do
	sim "${grid[@]}" --shard "$i/3" --out parts >/dev/null
	tap_is "shard $i/3: 0" "$?" 0
done
tap_is "a part file each" "$(inside parts)" \
	"run.part-1-of-3.jsonl run.part-2-of-3.jsonl run.part-3-of-3.jsonl "
sim merge merged parts/*3-of-3* parts/*1-of-3* parts/*2-of-3* >table2
tap_is "merge, in any order: 0" "$?" 0
same "merged" merged
tap_is "and the same table" "$(grep -v ^written table2)" "$(grep -v ^written table)"
wrong 1 "shard 2 of 3 is missing" merge m ../parts/run.part-1-of-3.jsonl ../parts/run.part-3-of-3.jsonl
head -n 3 parts/run.part-2-of-3.jsonl >cut.jsonl
wrong 1 "cut\.jsonl:[0-9]+: " merge m ../parts/run.part-1-of-3.jsonl ../cut.jsonl \
	../parts/run.part-3-of-3.jsonl
for i in 1 2 3; do
	sed '1s/"id": *"run"/"id":"..\/evil"/' "parts/run.part-$i-of-3.jsonl" >"evil-$i.jsonl"
	sed '1s/"nodes": *"6xfc"/"nodes":"6xnope"/' "parts/run.part-$i-of-3.jsonl" >"nope-$i.jsonl"
done
wrong 1 "evil-1\.jsonl:1: expected sweeps; number 0 is damaged" merge m ../evil-{1,2,3}.jsonl
wrong 1 'no machine is named "nope"' merge m ../nope-{1,2,3}.jsonl
wrong 1 "shard 1 is given twice" merge m ../parts/run.part-1-of-3.jsonl ../parts/run.part-1-of-3.jsonl \
	../parts/run.part-3-of-3.jsonl

# --- a probe: its executions are part of the results too
study=(ZAT-9.4.1-F18 --seeds 2 --set load.jobs=20)
sim "${study[@]}" --out probe >table
tap_is "a probe's study: 0" "$? $(cat err)" "0 "
tap_is "it has 20 executions per seed, all rows with the same number of columns" \
	"$(columns probe/ZAT-9.4.1-F18.executions.csv)" "1 41"
for i in 1 2; do
	sim "${study[@]}" --shard "$i/2" --jobs 1 --out probe-parts
done
sim merge probe-merged probe-parts/*.jsonl >table2
tap_is "in shards: the same table, claims and files" \
	"$(diff <(grep -v ^written table) <(grep -v ^written table2) 2>&1)$(diff -r probe probe-merged 2>&1)" ""
cp probe-parts/*1-of-2* bad.jsonl
sed -i '0,/"rows":\[\[/s//"rows":[["x",/' bad.jsonl
wrong 1 "bad\.jsonl:[0-9]+: expected executions of 17 numbers" merge m ../bad.jsonl

# --- interrupted
interrupted() { # DESCRIPTION SIGNAL ARGUMENT...
	local what=$1 signal=$2 pid child tries=100 status
	shift 2
	mkdir cut
	# In the background a shell ignores SIGINT for its children: env gives it back.
	(cd cut && exec env --default-signal=INT timeout --foreground 60 "$build/iocom-sim" \
		run --workload gen:fc,jobs=20000000 --nodes 6xfc "$@" >../out 2>../err) &
	pid=$!
	until child=$(pgrep -P "$pid" iocom-sim) || [ $((tries -= 1)) -eq 0 ]; do
		sleep 0.1
	done
	sleep 1 # the runs are under way
	kill "-$signal" "$child"
	wait "$pid"
	status=$?
	tap_is "$what: 1, no output" "$status '$(cat out)'" "1 ''"
	tap_like "it says so" "$(cat err)" 'interrupted; nothing was written'
	tap_is "nothing is left" "$(inside cut)" ""
	rm -rf cut
}
interrupted "SIGINT" INT --policy nlb,wal --seeds 2 --out new
interrupted "SIGTERM under two threads" TERM --policy nlb --seeds 1 --parallel 2
interrupted "SIGINT while recording" INT --policy wal --seeds 1 --record r.rec --export-view v.json \
	--at-decision 2000000000

# --- a recording, and a view
sim run --workload gen:fc,jobs=40,io_per_ms=2 --nodes 6xfc --policy io-re --seeds 1 \
	--record r.rec.gz --export-view v.json --at-decision 30
tap_is "run --record --export-view: 0" "$?" 0
tap_is "the recording is gzip" "$(gzip -dc r.rec.gz | jq -s -c '[.[0].record, .[-1].record]')" '["header","end"]'
sim replay r.rec.gz --policy nlb,io-re --out replayed >out
tap_is "replay: 0" "$?" 0
tap_is "of all its jobs" "$(jq -c '[.results[].measures.completed.mean | round]' replayed/replay.json)" '[40,40]'
sim replay r.rec.gz --check --json >out
tap_is "replay --check: 0, each decision the same" \
	"$? $(jq -c '[.decisions, .placements_same, .plans_same]' out)" '0 [40,40,40]'
recorded=$(gzip -dc r.rec.gz | jq -c 'select(.record == "decision")' | sed -n 30p)
tap_is "iocom place --view decides as the simulator did" \
	"$(timeout 20 "$build/iocom" place --view v.json --policy io-re --json | jq -c '[.home, .node, .nodes, .tied]')" \
	"$(jq -c '.plan | [.home, .node, .nodes, .tied]' <<<"$recorded")"

sim run --workload gen:com,jobs=40,messages_per_ms=0.5 --nodes 6xcom --policy least-delay --seeds 1 \
	--record g.rec.gz
sim replay g.rec.gz --check --json >out
tap_is "so are jobs whose tasks are placed all at once" \
	"$(jq -c '[.decisions, .placements_same, .plans_same]' out)" '[40,40,40]'
tap_is "with what binds them" "$(gzip -dc g.rec.gz | jq -r 'select(.record == "decision") | .plan.gang.bound' | sort -u)" communication

# --- the output for people fits a screen, names the best policy and what the trace lacks
wide() { awk 'length > 80' "$1"; }
sim replay "$data/csd.csv" --policy nlb,cpu-re,iocm-re --force --out screen >out
tap_is "replay's table fits 80 columns" "$? $(wide out)" "0 "
tap_like "with the machines" "$(cat out)" '^machines: [0-9]+xhost'
tap_is "and no recommendation from one hour" "$(tail -n 1 out)" "nothing is told apart"
tap_like "unused disks are reported" "$(cat out)" '^No disk was used: the trace has no disk'
sim replay "$data/csd.csv" --policy nlb,cpu-re --set load.io_per_ms=0.1 --force --out screen >out
tap_is "used disks are not reported" "$(grep -c 'No disk was' out)" 0
sim replay "$data/log.swf" --set load.requested=yes --set load.tasks_max=1 --policy nlb --json >out
tap_like "every option of a trace can be set, and notes are told" \
	"$? $(jq -r .facts.workload out)" '^0 SWF job log .*, 4 jobs of 5 records used; left out: 1 never ran .* as requested'
sim replay "$data/darshan.csv" --policy nlb --force --out screen >out
tap_like "a Darshan log gets a machine for each process of its widest job" "$(cat out)" \
	"^machines: $(awk -F, 'NR > 1 { print $4 }' "$data/darshan.csv" | sort -n | tail -n 1)xhost"
for name in "$data/log.swf" - /dev/stdin; do
	sim replay "$name" --policy nlb,iocm-re --seeds 2 --json <"$data/log.swf" >"out-${name##*/}"
	tap_is "replay ${name##*/}: 0" "$?" 0
done
results() { jq -c .results "$1"; }
tap_is "from a pipe: the same numbers" "$(results out--)$(results out-stdin)" \
	"$(results out-log.swf)$(results out-log.swf)"
sim run --workload gen:acm-30,jobs=40 --nodes 32xacm --seeds 2 --sweep load.io_per_ms=0.1,0.5 \
	--policy nlb,cpu-re,mem-re,io-re,wal,iocm-re,iocm-pm,random --force --out screen >out
tap_is "a sweep of eight policies fits 80 columns" "$? $(wide out)" "0 "
tap_is "and has all of them" "$(grep -oE '(nlb|cpu-re|mem-re|io-re|wal|iocm-re|iocm-pm|random)( |$)' out |
	sort -u | wc -l)" 8

# Times so large that a double cannot count periods of a second.
printf '0 0 1e11 4 1e6 -1 r 0\n' >ages.txt
sim replay ages.txt --policy nlb,iocm-re --json >out
tap_is "a job of 10^20 ms ends" "$? $(jq -c '[.results[].measures.completed.mean | round]' out)" "0 [1,1]"

# --- the progress bar of a single run
if command -v script >/dev/null; then
	script -qec "$build/iocom-sim run --workload gen:fc,jobs=1200000 --nodes 6xfc --policy nlb --seeds 1 --json" \
		/dev/null >bar </dev/null
	tap_true "the bar shows parts of a run" \
		test "$(grep -aoE '[0-9]+ %  0/1 runs' bar | sort -u | wc -l)" -gt 1
else
	tap_skip "the bar shows parts of a run" "no script(1) here"
fi

# --- two runs at once write to one directory and never mix their files
for seed in 3 4; do
	sim "${base[@]}" --seed $seed --out both-$seed >/dev/null
done
for round in 1 2 3; do
	for seed in 3 4; do
		timeout 60 "$build/iocom-sim" "${base[@]}" --seed $seed --force --out both >/dev/null &
	done
	wait
	rm -rf fresh
	for seed in 3 4 5; do
		timeout 60 "$build/iocom-sim" "${base[@]}" --seed $seed --force --out fresh >/dev/null 2>>fresh-err &
	done
	wait
	tap_is "three at once make the directory" "$(cat fresh-err)" ""
	cmp -s both/run.csv both-3/run.csv && seed=3 || seed=4
	tap_is "two runs at once, round $round: all files of one" \
		"$(cmp both/run.csv "both-$seed/run.csv" 2>&1)$(cmp both/run.json "both-$seed/run.json" 2>&1)" ""
done
tap_is "nothing hidden is left of them" "$(find both -name '.*')" ""

# --- MessagePack is chosen by name and has the same content
sim run --workload gen:fc,jobs=40,io_per_ms=2 --nodes 6xfc --policy io-re --seeds 1 \
	--record r.msgpack.gz --export-view v.msgpack --at-decision 30
tap_is "run --record r.msgpack.gz: 0" "$?" 0
tap_true "no JSON is in the view" test "$(head -c 1 v.msgpack)" != "{"
tap_is "decisions on it are those on the JSON" \
	"$(timeout 20 "$build/iocom" place --view v.msgpack --policy io-re --json)" \
	"$(timeout 20 "$build/iocom" place --view v.json --policy io-re --json)"
for form in msgpack.gz rec.gz; do
	sim replay "r.$form" --check --json >"check-$form"
	sim replay "r.$form" --policy nlb,io-re --json >"replay-$form"
done
tap_is "its replay --check is that of the JSON" \
	"$(jq -c 'del(.recording, .file)' check-msgpack.gz)" "$(jq -c 'del(.recording, .file)' check-rec.gz)"
tap_is "and its replay" "$(results replay-msgpack.gz)" "$(results replay-rec.gz)"

# --- experiments
sim FC-4.1 --seeds 2 --set load.jobs=20 --out fc >out
tap_is "an experiment: 0" "$?" 0
tap_is "its claims are judged" \
	"$(jq -c '[(.claims | length > 0), ([.claims[].verdict] - ["holds", "exceeded", "contradicted", "undecided", "not tested"])]' fc/FC-4.1.json)" \
	'[true,[]]'
sim fc-4.1 --seeds 2 --set load.jobs=20 --json >out
tap_is "its id in any case: the same" "$? $(cmp out fc/FC-4.1.json 2>&1)" "0 "

# --- more seeds for undecided claims
sim SLD-RE --seeds 3 --set load.jobs=30 --json >out
undecided=$(jq '[.claims[] | select(.verdict == "undecided")] | length' out)
tap_true "some claim of few seeds is undecided" test "$undecided" -gt 0
tap_is "and says how many more would decide" \
	"$(jq '[.claims[] | select(.verdict == "undecided") | .more_seeds > 0] | all' out)" true
tap_is "its interval reaches beyond a bound" \
	"$(jq '[.claims[] | select(.verdict == "undecided") | .interval.low < (.bounds.low // -1e99) or
		.interval.high > (.bounds.high // 1e99)] | all' out)" true
tap_is "no reason is given for what is not known to fail" \
	"$(jq '[.claims[] | select(.verdict == "undecided") | has("why")] | any' out)" false
sim SLD-RE --seeds 3 --set load.jobs=30 --decide 700 --json >more
tap_is "--decide: 0" "$?" 0
tap_is "it makes no more runs than it may" \
	"$(jq -s '[.[] | [.results[].seeds] | add] | .[1] - .[0] | . > 0 and . <= 700' out more)" true
tap_true "some claim is decided that was not" \
	test "$(jq '[.claims[] | select(.verdict == "undecided")] | length' more)" -lt "$undecided"
tap_is "what was decided before stays" \
	"$(jq -s '[.[].claims[1] | [.verdict, .seeds]] | .[0] == .[1]' out more)" true
tap_is "a later look is stricter" "$(jq '[.claims[].alpha] | min < 0.05' more)" true
tap_like "and says what it did" "$(cat err)" 'decide: [1-9][0-9]* more runs in [1-9] looks? decided'
sim SLD-RE --seeds 3 --set load.jobs=30 --decide 700 --json --jobs 1 >again
tap_is "whatever the number of threads: the same" "$(cmp more again 2>&1)" ""
sim SLD-RE --seeds 3 --set load.jobs=30 --decide 1 --json >scant
tap_is "a budget that suffices for no claim is not spent" \
	"$(jq -s '[.[] | [.results[].seeds] | add] | .[0] == .[1]' out scant)" true
for bad in 0 -1 10x 5mm "" 9999999; do
	sim SLD-RE --decide "$bad" >out
	tap_is "--decide '$bad': 2" "$?" 2
done
tap_like "what it expects is said" "$(cat err)" "expected a number of runs"
sim SLD-RE --decide 5 --shard 1/2 >out
tap_is "not with a shard: 2" "$?" 2
tap_like "why" "$(cat err)" "needs all results"
sim run --decide 5 >out
tap_is "runs of one's own have no claims: 2" "$?" 2

# 10 s of processor time in all; a machine that is shared takes as many times longer.
limit=240 sim figures --seeds 2 --set load.jobs=4 --out figures >out
tap_is "figures: 0" "$? $(cat err)" "0 "
missing=$(for id in $listed; do grep -qF "id=\"$id\"" figures/index.html || echo "$id"; done)
tap_is "the page has every id" "$missing" ""
ours=$(jq -s '[.[] | ((.title | startswith("(ours)")) or (.id | test("^(READ|XCHECK)"))) as $ours |
	.claims[] | select($ours or (.claim | startswith("(ours)"))) | select(.calibrates | not)] |
	length' figures/*.json)
row=$(grep -oE '<tr data-paper="OURS">.*' figures/index.html | sed 's|</tr>.*||' |
	grep -oE 'data-verdict="[a-z ]+">(<a [^>]*>)?[0-9]+' | grep -oE '[0-9]+$')
tap_is "our own claims are counted separately" "$(awk '{ n += $1 } END { print n }' <<<"$row")" "$ours"
bad=$(for f in figures/*.csv; do
	[[ $(columns "$f") == "1 "* ]] || echo "$f"
done)
tap_is "all rows of a CSV have the same number of columns" "$bad" ""
tap_true "every JSON is one" jq -e '.facts.input' figures/*.json
if command -v gnuplot >/dev/null && command -v xmllint >/dev/null; then
	tap_true "every SVG is XML" xmllint --noout figures/*.svg
else
	tap_skip "every SVG is XML" "no gnuplot or no xmllint here"
fi
tap_is "claims name only series and points that exist" \
	"$(jq -r '.id as $id | .claims[] | select(.measured | test("^(not among the results|no such point)"))
	| "\($id): \(.claim): \(.measured)"' figures/*.json)" ""
tap_is "nothing hidden is left" "$(find figures -name '.*')" ""
tap_done
