#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# iocom wait, kill, explain, jobs at an agent of its own that serves this machine: several
# jobs, jobs that are over, unknown or another's, Ctrl-C, and what each exit status says.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1
. tests/lib/tap.sh
# shellcheck source=tests/lib/agent.sh
. tests/lib/agent.sh
agent_up jobs

# The exit status; what it says is in $dir/out and $dir/err.
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
tap_like "said, with where to look" "$(cat "$dir/err")" 'iocom wait: no job of yours named no-such .*iocom jobs --all'
tap_is "and nothing for a machine to misread" "$(cat "$dir/out")" ""
tap_is "an unknown one before another: said, and the other waited for" \
	"$(status "$iocom" wait no-such "$three") $(grep -c no-such "$dir/err")" "3 1"
tap_is "another user's is none" "$(status setpriv --reuid=65534 --regid=65534 --clear-groups "$iocom" wait "$three")" 125
tap_is "no job: 125" "$(status "$iocom" wait)" 125
# A background command of a script ignores SIGINT, unless it is given back.
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
tap_like "said, with where to look" "$(cat "$dir/err")" 'no job of yours named no-such runs at node p1 or was submitted there.*iocom jobs --all'
long=$(detach sleep 300)
tap_is "of an ended one and another: 1" "$(status "$iocom" kill -KILL "$three" "$long")" 1
tap_is "the other one was killed" "$(status "$iocom" wait "$long")" 137
for bad in "" "-NONE $long" "-65 $long" "-s NONE $long" "-KILL" "--json $long" "-s"; do
	# shellcheck disable=SC2086 # words
	tap_is "kill $bad: 2" "$(status "$iocom" kill $bad)" 2
done

# --- explain, jobs ---
tap_is "explain" "$(status "$iocom" explain --json "$three") $(jq -r .job "$dir/out")" "0 $three"
tap_is "of an unknown one: 1" "$(status "$iocom" explain no-such)" 1
tap_like "said, with where to look" "$(cat "$dir/err")" 'iocom explain: .*no-such.*iocom jobs --all'
for bad in "explain" "explain a b" "explain --bogus a" "jobs a" "jobs --bogus"; do
	# shellcheck disable=SC2086 # words
	tap_is "$bad: 2" "$(status "$iocom" $bad)" 2
done
tap_is "jobs lists those that run" "$(status "$iocom" jobs --json) $(jq -c '[.jobs[].state]' "$dir/out")" "0 []"
tap_is "jobs --all: those that ended, too" \
	"$("$iocom" jobs --all --json | jq --arg a "$three" --arg b "$killed" '[.jobs[].job] | contains([$a, $b])')" true
for command in "wait $three" "kill $three" "explain $three" jobs; do
	# shellcheck disable=SC2086 # words
	tap_like "$command elsewhere: no agent" "$("$iocom" ${command%% *} --run-dir "$dir" $(cut -s -d ' ' -f 2 <<<"$command") 2>&1)" \
		"iocom ${command%% *}: no agent answers at $dir/"
done
tap_done
