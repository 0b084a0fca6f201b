#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# iocom wait, kill, explain and jobs with the test's own agent for this machine: several jobs,
# jobs that are over, unknown or another user's, Ctrl-C, and what each exit status means.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1
. tests/lib/tap.sh
# shellcheck source=tests/lib/agent.sh
. tests/lib/agent.sh
agent_up jobs

# Prints the exit status; the command's output is in $dir/out and $dir/err.
status() { timeout 20 "$@" >"$dir/out" 2>"$dir/err" </dev/null; echo $?; }
detach() { "$iocom" run --detach -- "$@"; }
state() { "$iocom" jobs --all --json | jq -r --arg j "$1" '.jobs[] | select(.job == $j) | .state'; }
three=$(detach sh -c 'exit 3')
killed=$(detach sh -c 'kill -KILL $$')
long=$(detach sleep 300)

# --- wait ---
tap_is "wait: how it ended" "$(status "$iocom" wait "$three")" 3
tap_is "by a signal: 128 and more" "$(status "$iocom" wait "$killed")" 137
tap_is "several: that of the one named last" \
	"$(status "$iocom" wait "$killed" "$three") $(status "$iocom" wait "$three" "$killed")" "3 137"
tap_is "--json: an object and a line for each" \
	"$(status "$iocom" wait --json "$three" "$killed") $(jq -c '[.job, .state, .status]' "$dir/out" | paste -sd ' ')" \
	"137 [\"$three\",\"exited\",3] [\"$killed\",\"killed\",137]"
tap_is "an unknown one: 125" "$(status "$iocom" wait --json no-such)" 125
tap_like "said, with where to look" "$(cat "$dir/err")" "iocom wait: 'no-such' is no job's name; .*iocom jobs --all"
tap_is "and nothing for a machine to misread" "$(cat "$dir/out")" ""
tap_is "an unknown one before another: said, and the other waited for" \
	"$(status "$iocom" wait no-such "$three") $(grep -c no-such "$dir/err")" "3 1"
tap_is "another user's is none" "$(status setpriv --reuid=65534 --regid=65534 --clear-groups "$iocom" wait "$three")" 125
tap_is "no job: 125" "$(status "$iocom" wait)" 125
# A script's background command ignores SIGINT unless the default is restored.
env --default-signal=INT "$iocom" wait "$long" 2>"$dir/err" &
pid=$!
waits() { [ -n "$(ls "/proc/$pid/fd/3" 2>/dev/null)" ]; }
until_true 10 waits
kill -INT $pid
wait $pid
tap_is "Ctrl-C ends the waiting" "$?" 130
tap_is "and not the job" "$(state "$long")" running
(sleep 0.3; "$iocom" kill "$long") &
tap_is "it waits until the end" "$(status "$iocom" wait "$long")" 143
tap_is "wait for one whose output cannot be written: 125" \
	"$("$iocom" wait --json "$three" 2>"$dir/err" >/dev/full; echo $?)" 125

# --- kill ---
tap_is "kill of one that has ended: 1" "$(status "$iocom" kill "$three")" 1
tap_like "said" "$(cat "$dir/err")" "iocom kill: job $three has ended"
tap_is "of an unknown one: 1" "$(status "$iocom" kill no-such)" 1
tap_like "said, with where to look" "$(cat "$dir/err")" "iocom kill: 'no-such' is no job's name; .*iocom jobs --all"
tap_is "of none that was submitted here: 1" "$(status "$iocom" kill p1-0badcafe-1)" 1
tap_like "said, with where to look" "$(cat "$dir/err")" 'no job of yours named p1-0badcafe-1 runs at node p1 or was submitted there; .*iocom jobs --all'
tap_is "of a node that is not known: 1" "$(status "$iocom" kill p7-3)" 1
tap_like "said" "$(cat "$dir/err")" 'no job of yours has the number 3 at node p7, which is not known here; .*iocom jobs --all'
long=$(detach sleep 300)
tap_is "of an ended one and another: 1" "$(status "$iocom" kill -KILL "$three" "$long")" 1
tap_is "the other one was killed" "$(status "$iocom" wait "$long")" 137
for bad in "" "-NONE $long" "-65 $long" "-s NONE $long" "-KILL" "--json $long" "-s"; do
	# shellcheck disable=SC2086 # words
	tap_is "kill $bad: 2" "$(status "$iocom" kill $bad)" 2
done

long=$(detach sleep 300)
runs() { [ "$(state "$long")" = running ]; }
tap_is "kill -0 of one that runs: 0" "$(status "$iocom" kill -0 "$long") $(until_true 10 runs; echo $?)" "0 0"
tap_is "and of one that has ended: 1" "$(status "$iocom" kill -s 0 "$three") $(grep -c 'has ended' "$dir/err")" "1 1"
tap_is "kill -l lists the signals" "$(status "$iocom" kill -l) $(grep -cE '^( 1 HUP| 9 KILL|15 TERM)$' "$dir/out")" "0 3"
tap_is "where they cannot be written: 1" "$("$iocom" kill -l 2>"$dir/err" >/dev/full; echo $?)" 1

# --- the agent restarts ---
(timeout 60 "$iocom" wait "$three" last 2>"$dir/waits"; echo $? >"$dir/waited") &
waiter=$!
# One line per view; after the first one the command waits for changes.
timeout 60 "$iocom" nodes --json --watch=0.2 2>"$dir/watches" >"$dir/views" &
watch=$!
views() { [ "$(grep -c '"nodes"' "$dir/views")" -gt "$1" ]; }
tap_true "nodes --watch shows views" until_true 10 views 2
agent_stop
until_true 10 grep -q 'agent is away' "$dir/watches"
until_true 10 grep -q 'agent is away' "$dir/waits"
"$iocom" wait "$long" 2>"$dir/err"
tap_is "wait where no agent has been: at once 125" "$? $(grep -c 'no agent answers' "$dir/err")" "125 1"
before=$(grep -c '"nodes"' "$dir/views")
agent_start
tap_true "nodes --watch goes on" until_true 10 views "$before"
kill $watch
wait $watch
tap_is "and had said why it stood" "$(grep -c '^iocom nodes: the agent is away' "$dir/watches")" 1
"$iocom" run -- true # no longer the last one
until_true 10 "$iocom" kill "$long"
wait $waiter
tap_is "wait goes on, for the job that was the last one" "$(cat "$dir/waited")" 143
tap_is "and said once why it stood" "$(cat "$dir/waits")" "iocom wait: the agent is away; asking again for 30 s"

# --- attach: a foreground job with its client, without one, ended ---
mkfifo "$dir/quiet"
exec 8<>"$dir/quiet" # nothing is ever written to it
"$iocom" run -- sh -c 'echo there; read x; exit 3' >"$dir/there" 2>"$dir/lost" <"$dir/quiet" 8>&- &
client=$!
until_true 10 grep -q there "$dir/there"
front=$("$iocom" jobs --json | jq -r '.jobs[0].job')
tap_is "attach to a job that has its client: refused" "$(status "$iocom" attach last)" 125
tap_like "said, and how to have it" "$(cat "$dir/err")" "iocom attach: job $front is attached already; --take takes it from there"
tap_is "its client has it still" "$(kill -0 $client; echo $?) $(state "$front")" "0 running"
tap_is "--take has it" "$(status "$iocom" attach --take last)" 3
wait $client
tap_is "from the other one, which says so" "$? $(cat "$dir/lost")" "255 iocom run: the job was attached to from elsewhere"
tap_is "attach to it when it has ended: its status" "$(status "$iocom" attach "$front")" 3
tap_like "said, with what would have kept its output" "$(cat "$dir/err")" "job $front has ended with status 3; its output is not kept \\(run --detach"
tap_is "of another user: no such job" "$(status setpriv --reuid=65534 --regid=65534 --clear-groups "$iocom" attach "$front")" 125
"$iocom" run -- sh -c 'kill -TERM $$'
tap_is "one that a signal ended, just now" "$(status "$iocom" attach last) $(grep -c 'ended with status 143' "$dir/err")" "143 1"

# --- output that is lost ---
full() { "$iocom" "$@" 2>"$dir/err" >/dev/full; echo "$? $(grep -c 'output of the job was lost: No space' "$dir/err")"; }
for end in 'exit 0' 'exit 3' 'kill -KILL $$'; do
	tap_is "run >/dev/full of a job that does $end: 255" "$(full run -- sh -c "echo x; sleep 0.1; $end")" "255 1"
done
job=$(detach sh -c 'echo x; exit 3')
tap_is "attach >/dev/full: 255" "$(full attach "$job")" "255 1"
tap_is "run >/dev/full of one that writes nothing: its own status" "$(full run -- sh -c 'exit 3')" "3 0"

# --- jobs: names of any language, jobs that a signal has stopped ---
ln -s /bin/sleep "$dir/größe-日本"
named=$("$iocom" run --detach --class 'Größe' -- "$dir/größe-日本" 300)
evil=$("$iocom" run --detach -- sh -c 'exec sleep 300' $'x\e[2J\u202ey\xff')
tap_like "jobs: a name beyond ASCII is kept" "$("$iocom" jobs)" "^$named +(starting|running) .* $dir/größe-日本 300$"
tap_is "and in JSON, with its class" "$("$iocom" jobs --json | jq -r --arg j "$named" '.jobs[] | select(.job == $j) | .class, .command')" \
	"Größe"$'\n'"$dir/größe-日本 300"
tap_like "what is not printable is not: control characters, turned directions, invalid bytes" \
	"$("$iocom" jobs)" "^$evil +(starting|running) .* sh -c exec sleep 300 x\?\[2J\?y\?$"
is_in_state() { [ "$(state "$1")" = "$2" ]; }
"$iocom" kill -STOP "$named"
tap_true "a job that a signal has stopped is shown as stopped" until_true 10 is_in_state "$named" stopped
tap_like "in the table, too" "$("$iocom" jobs)" "^$named +stopped "
tap_is "and the others are not" "$(state "$evil")" running
"$iocom" kill -CONT "$named"
tap_true "it goes on: running" until_true 10 is_in_state "$named" running
"$iocom" kill -TSTP "$named"
tap_true "as ^Z does it: stopped" until_true 10 is_in_state "$named" stopped
"$iocom" kill -KILL "$named" "$evil"
tap_is "it is killed: over" "$(status "$iocom" wait "$named") $(state "$named")" "137 killed"

# --- explain, jobs ---
tap_is "explain" "$(status "$iocom" explain --json "$three") $(jq -r .job "$dir/out")" "0 $three"
"$iocom" run --comment 'nightly build' -- true
tap_like "explain: the user's words" "$("$iocom" explain last)" 'Comment: nightly build'
tap_is "explain --json: likewise" "$("$iocom" explain --json last | jq -r .place.comment)" "nightly build"
tap_is "place --comment" "$("$iocom" place --json --comment 'why there?' -- true | jq -r .comment)" "why there?"
tap_is "a comment of two lines: 125" "$(status "$iocom" run --comment $'a\nb' -- true) $(grep -c 'takes one line' "$dir/err")" "125 1"
tap_is "of an unknown one: 1" "$(status "$iocom" explain no-such)" 1
tap_like "said, with where to look" "$(cat "$dir/err")" 'iocom explain: .*no-such.*iocom jobs --all'
echo mine >"$dir/view"
tap_is "place --save-view: a file that is there stays: 1" \
	"$(status "$iocom" place --save-view "$dir/view" -- true) $(cat "$dir/view") $(cat "$dir/err")" \
	"1 mine iocom place: $dir/view is there already; --force replaces it"
tap_is "--force replaces it" "$(status "$iocom" place --force --save-view "$dir/view" -- true) $(jq .version "$dir/view")" "0 1"
tap_is "and goes with it only: 2" "$(status "$iocom" place --force -- true)" 2
# --- slowdown: how many times longer than alone ---
clients=()
for _ in 1 2; do
	"$iocom" run -- taskset -c 0 "$build/tests/tools/work" cpu 0.4 &
	clients+=($!)
done
wait "${clients[@]}"
slowdowns() { "$iocom" jobs --all --json | jq -c '[.jobs[] | select(.class == "work") | .slowdown]'; }
tap_true "two jobs that share a processor took longer than alone ($(slowdowns))" \
	jq -e 'length == 2 and (map(. != null and . > 1.2 and . < 20) | all)' <<<"$(slowdowns)"
tap_like "explain says it" "$("$iocom" explain last | tr -s '\n ' ' ')" 'it took [0-9.]+ m?s, [0-9.]+ times what it takes alone'
tap_is "report --json has it" "$("$iocom" report --json | jq '.slowdown | .jobs >= 2 and .mean > 1 and .p95 >= .median')" true
tap_like "report, too" "$("$iocom" report)" '^Slowdown: [0-9]+ jobs took [0-9.]+ times what they take alone'
sleeper=$(detach sleep 0.3)
"$iocom" wait "$sleeper"
tap_is "one that waits for a timer has none" \
	"$("$iocom" jobs --all --json | jq --arg j "$sleeper" '.jobs[] | select(.job == $j) | .slowdown')" null

# --- a stated need that no node can meet ---
tap_is "run --mem 50G: it runs" "$(status "$iocom" run --mem 50T -- sh -c 'exit 3')" 3
tap_like "and standard error says which need, the largest that a node offers, and where it goes" "$(cat "$dir/err")" \
	'^iocom run: job p1-[^ ]*: no node has the 50 TB of memory that the job needs as stated: the largest, p1, has [0-9.]+ [MG]B; it goes to p1, its home all the same$'
tap_like "explain says it" "$("$iocom" explain last | tr -s '\n ' ' ')" 'Warning: no node has the 50 TB of memory'
tap_is "explain --json" "$("$iocom" explain --json last | jq -c '.place.unmet[] | [.need, .wanted >= 5e7, .most < .wanted, .node]')" \
	'["memory_mb",true,true,"p1"]'
tap_like "place says it" "$("$iocom" place --mem 50T -- true)" '^Warning: no node has the 50 TB of memory'
tap_is "place --json" "$("$iocom" place --json --mem 50T --io-rate 5 -- true | jq -c '[.unmet[].need]')" '["memory_mb","io_per_s"]'
tap_like "a node without a disk for stated I/O" "$("$iocom" run --io-rate 5 -- true 2>&1)" \
	'no node has a disk for the 5 requests/s'
tap_is "what can be met: no warning, nothing in JSON" \
	"$("$iocom" run --mem 20M -- true 2>&1)$("$iocom" place --json --mem 20M -- true | jq -c .unmet)" null
tap_is "what is not stated: none, whatever was learned" "$("$iocom" run -- true 2>&1)" ""

for bad in "explain" "explain a b" "explain --bogus a" "jobs a" "jobs --bogus"; do
	# shellcheck disable=SC2086 # words
	tap_is "$bad: 2" "$(status "$iocom" $bad)" 2
done
idle() { "$iocom" jobs --json | jq -e '.jobs == []' >/dev/null; }
until_true 10 idle
tap_is "jobs lists those that run" "$(status "$iocom" jobs --json) $(jq -c '[.jobs[].state]' "$dir/out")" "0 []"
tap_is "jobs --all: those that ended, too" \
	"$("$iocom" jobs --all --json | jq --arg a "$three" --arg b "$killed" '[.jobs[].job] | contains([$a, $b])')" true
tap_is "report: the jobs that ended here, with the time that they took" \
	"$(status "$iocom" report --json --jobs) $(jq -c --arg a "$three" '[.homes, (.jobs[] | select(.job == $a) | .node, .exit_value, .took_ms > 0)]' "$dir/out")" \
	'0 [["p1"],"p1",3,true]'
tap_is "all that jobs lists" "$(jq '.total.jobs' "$dir/out")" "$("$iocom" jobs --all --json | jq '.jobs | length')"
sleep 1.1 # it counts whole seconds
tap_is "none in the last 0 minutes" "$(status "$iocom" report --json --since 0m) $(jq .total.jobs "$dir/out")" "0 0"
tap_is "none of another user" "$(status "$iocom" report --json --user 65534) $(jq .total.jobs "$dir/out")" "0 0"
as_nobody="setpriv --reuid=65534 --regid=65534 --clear-groups"
tap_is "another user has none" "$(status $as_nobody "$iocom" report --json) $(jq .total.jobs "$dir/out")" "0 0"
tap_is "and may not ask for ours: 1" "$(status $as_nobody "$iocom" report --all) $(cat "$dir/err")" \
	"1 iocom report: only root may ask for the jobs of others"
for command in "wait $three" "kill $three" "explain $three" jobs report; do
	# shellcheck disable=SC2086 # words
	tap_like "$command elsewhere: no agent" "$("$iocom" ${command%% *} --run-dir "$dir" $(cut -s -d ' ' -f 2 <<<"$command") 2>&1)" \
		"iocom ${command%% *}: no agent answers at $dir/"
done
tap_done
