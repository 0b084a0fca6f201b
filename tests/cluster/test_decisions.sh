#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# Real jobs on four nodes (disks 20, 20, 10, 5 MB/s): each policy sends them where the measured
# loads tell it to. The evidence is the job's own `hostname`.
set -uo pipefail
cd "$(dirname "$0")/../.."
. tests/lib/tap.sh
. tests/lib/cluster.sh
cluster_up --nodes 4 --disk 20,20,10,5 --mem 1000

for n in n1 n2 n3 n4; do on $n "$WORK" make $DISK/data 64 & done
wait
tap_true "every node hears of every other" until_true 10 sees n1 4

# A job that reports where it ran, then does its real work there.
IO_NEED=(--io-rate 250 --io-size 64Ki --requests 300 --cpu-time 0.1 --mem 20M)
io_job() { on n1 iocom run --policy "$1" "${IO_NEED[@]}" -- sh -c "hostname; $WORK io $DISK/data 60 64 7"; }
mem_job() { on n1 iocom run --policy iocm-re --mem 400M --cpu-time 1 --io-rate 0 --requests 0 -- sh -c "hostname; $WORK mem 100 0.2"; }
cpu_job() { on n1 iocom run --policy "$1" --cpu-time 3 --mem 10M --io-rate 0 --requests 0 -- sh -c "hostname; $WORK cpu 0.2"; }
explain() { on n1 iocom explain last --json; }

idle() { field_below n1 n1 disk_utilisation 0.04 && field_below n1 n2 disk_utilisation 0.04 &&
	field_below n1 n1 run_queue 1.5 && field_below n1 n1 jobs 1; }
tap_true "all idle" until_true 20 idle
tap_is "idle: an I/O job runs at home" "$(io_job iocm-re)" n1
until_true 20 idle
tap_is "idle: a memory job runs at home" "$(mem_job)" n1
until_true 20 idle
tap_is "idle: a CPU job runs at home" "$(cpu_job iocm-re)" n1
until_true 20 idle

# Two real I/O jobs on n1.
load n1 iocom run --policy nlb "${IO_NEED[@]}" -- "$WORK" io $DISK/data 100 64 1
load n1 iocom run --policy nlb "${IO_NEED[@]}" -- "$WORK" io $DISK/data 100 64 2
tap_true "n2 learns that n1's disk is busy" until_true 15 field_above n2 n1 disk_utilisation 0.7
tap_true "n1 runs two jobs" until_true 5 field_above n1 n1 jobs 1.5
where=$(io_job iocm-re)
tap_like "n1's disk busy: IOCM-RE sends an I/O job to a lightly loaded node" "$where" '^n[23]$'
document=$(explain)
tap_is "explain names the node" "$(jq -r .place.node <<<"$document")" "$where"
tap_calc "explain: home's I/O load was measured (> 0.3 requests/ms with the job)" \
	"$(jq '[.place.plan.reasons[] | select(.criterion=="io-overloaded")][0].left' <<<"$document") > 0.3"
tap_calc "explain: the response criterion has both sides in ms" \
	"$(jq --arg n "$where" '[.place.plan.reasons[] | select(.criterion=="response" and .node==$n)][0] | .left > .right and .right > 0' <<<"$document" | sed 's/true/1/;s/false/0/')"
tap_calc "explain shows the vector it looked at: n1's disk over 70 % busy" \
	"$(jq '.place.nodes[] | select(.name=="n1").disk_utilisation' <<<"$document") > 0.7"
tap_like "explain for people" "$(on n1 iocom explain last)" "sends it from n1 to $where"
expected='.place | [.expected.there_ms, .expected.home_ms] as [$there, $home] |
	[.plan.reasons[] | select(.criterion == "response" and .node == $n)][0] |
	.left == $home and .right == $there'
tap_is "explain: what is expected is what the criterion compared" "$(jq --arg n "$where" "$expected" <<<"$document")" true
tap_like "and for people" "$(on n1 iocom explain last)" '^Expected: [0-9.]+ [a-z]+ there, [0-9.]+ [a-z]+ at home'
# A live decision saves its view: deciding again over that view, without an agent, gives the same.
for p in iocm-re io-re wal com shortest zatti-real iocm-pm; do
	live=$(on n1 iocom place --policy "$p" "${IO_NEED[@]}" --json --force --save-view "$SCRATCH/view.json" -- sh |
		jq -cS '.plan + {expected}')
	again=$("$IOCOM_BUILD/iocom" place --view "$SCRATCH/view.json" --policy "$p" --json | jq -cS .)
	tap_is "$p: decided again from its saved view" "$again" "$live"
done
tap_is "the view has all four nodes" "$(jq -c '[.nodes[].name] | sort' "$SCRATCH/view.json")" '["n1","n2","n3","n4"]'
tap_is "n1's disk busy: NLB leaves it on n1" "$(io_job nlb)" n1
on n1 mkdir -p $DISK/only-here
where=$(on n1 sh -c "cd $DISK/only-here && iocom run -v --policy iocm-re ${IO_NEED[*]} -- hostname" 2>"$SCRATCH/said")
tap_is "no other node has the working directory: it runs at home" "$where" n1
tap_like "explain: each refused it, and why" \
	"$(explain | jq -c '[.place.refused[] | .reason] | unique')" '^\["path-missing"\]$'
tap_like "run -v: the reason of the first" "$(cat "$SCRATCH/said")" \
	'at home, on n1: the nodes it chose refused \(n[234]: path-missing: .*only-here'
tap_is "where none refused, nothing of it" "$(on n1 iocom run -v --policy nlb -- true 2>&1 | grep -c refused)" 0
load_stop

# The load moves to n2: the decision follows it.
load n2 "$WORK" io $DISK/data 100 64 3
load n2 "$WORK" io $DISK/data 100 64 4
tap_true "n1 learns that n2's disk is busy" until_true 15 field_above n1 n2 disk_utilisation 0.7
until_true 15 field_below n1 n1 disk_utilisation 0.04
tap_is "load moved to n2: the same job now stays on n1" "$(io_job iocm-re)" n1
load_stop

# Memory: n1 uses most of its memory, so another job does not fit.
load n1 "$WORK" hold 700 300
tap_true "n1's memory is measured" until_true 15 field_above n1 n1 memory_requested_mb 700
tap_like "n1's memory over-committed: a memory job leaves" "$(mem_job)" '^n[234]$'
tap_calc "explain: memory with the job exceeds what n1 has" \
	"$(explain | jq '[.place.plan.reasons[] | select(.criterion=="mem-overloaded")][0] | .left > .right' | sed 's/true/1/;s/false/0/')"
pkill -f "work hold 700" 2>/dev/null
load_stop

# CPU: six busy tasks on n1.
until_true 15 field_below n1 n1 memory_requested_mb 300
for i in 1 2 3 4 5 6; do load n1 "$WORK" cpu 1; done
tap_true "n1's run queue is measured" until_true 20 field_above n1 n1 run_queue 4.5
tap_like "n1 CPU-busy: a CPU job leaves" "$(cpu_job iocm-re)" '^n[234]$'
tap_like "n1 CPU-busy: CPU-RE agrees" "$(cpu_job cpu-re)" '^n[234]$'
tap_is "n1 CPU-busy: NLB stays" "$(cpu_job nlb)" n1
load_stop

# A dead node: it gets no job after it was silent for three of its own periods.
about_n3() { on n1 iocom nodes --json | jq -c "$1"; }
tap_is "n3 lives: a job can be sent there" "$(on n1 iocom place --node n3 --json -- true | jq -r .node)" n3
kill -9 "$(cat "${IOCOM_TESTBED_DIR:-/run/${IOCOM_TESTBED_MARK:-iocom-testbed}}/n3/agent.pid")"
n3_is_dropped() { [ "$(about_n3 '[.dropped[].name]')" = '["n3"]' ]; }
tap_true "n3's agent is killed: n1 drops n3" until_true 20 n3_is_dropped
dead=$(about_n3 '{period: .period_ms, age: .dropped[0].age_ms, nodes: [.nodes[].name] | sort}')
tap_is "the others stay" "$(jq -c .nodes <<<"$dead")" '["n1","n2","n4"]'
tap_calc "not before three periods: a late bulletin is no death" "$(jq '.age > 3 * .period' <<<"$dead" | sed 's/true/1/;s/false/0/')"
echo "# | a dead node is excluded after $(jq '.age / .period * 10 | round / 10' <<<"$dead") periods (target 3 and the look)"
tap_like "nobody is sent to n3, and why is said" "$(on n1 iocom place --node n3 -- true 2>&1)" 'n3.*(silent|dropped|not alive|unknown)'
tap_done
