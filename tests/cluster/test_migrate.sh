#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# `iocom migrate` between two agents, by a real criu: jobs of root, whom these nodes let in.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1
HERE=$PWD
. tests/lib/tap.sh
. tests/lib/pair.sh
pair_criu || tap_skip_all "there is no criu"
pair_begin
pair_movers || tap_skip_all "the agents do not start, or do not see each other"

cd / || exit 1
# Prints the name of a job that counts to N, from home NODE at NODE.
counts() { # HOME NODE N
	pair_on "$1" run --node "$2" --detach --migratable -- sh -c "i=0; while [ \$i -lt $3 ]; do echo \$i; i=\$((i + 1)); sleep 0.01; done; exit 7"
}
waits() { IOCOM_RUN_DIR=$PAIR/$1/run timeout 200 "$IOCOM_BUILD/iocom" wait "$2" >/dev/null 2>&1; } # HOME JOB
node_of() { pair_on "$1" jobs --json | jq -r --arg j "$2" '.jobs[] | select(.job == $j) | .node'; } # HOME JOB
whole() { # FILE N
	[ "$(tail -n 1 "$1")" -eq $(($2 - 1)) ] && awk '$1 != NR - 1 { exit 1 }' "$1"
}

# --- from home and back ---
job=$(counts n1 n1 600)
sleep 1
said=$(pair_on n1 migrate "$job" n2 2>&1)
tap_is "it moves" "$?" 0
tap_like "and says how long it was frozen" "$said" "^$job: moved from n1 to n2: frozen for [0-9]+ ms, [0-9.]+ MB$"
tap_is "home knows where it is" "$(node_of n1 "$job")" n2
said=$(pair_on n1 migrate --json "$job" n1 2>&1)
tap_is "and back, as JSON" "$(jq -r '[.from, .to, .state, .number] | @csv' <<<"$said")" '"n2","n1","resumed",2'
said=$(pair_on n1 migrate "$job" 2>&1)
tap_like "and there again, which its policy chooses" "$said" "moved from n1 to n2"
start_of() { pair_on n1 jobs --all --json | jq -r --arg j "$1" '.jobs[] | select(.job == $j) | .start_ns'; } # JOB
began=$(start_of "$job")
waits n1 "$job"
tap_is "its own status" "$?" 7
tap_is "it began where it was first" "$(start_of "$job")" "$began"
pair_on n1 attach "$job" >"$PAIR/out" 2>"$PAIR/err"
tap_is "attach has the status, too" "$?" 7
tap_true "and each line of its output, once" whole "$PAIR/out" 600

# --- a client follows ---
input() { for i in $(seq 0 199); do echo "$i"; sleep 0.04; done; }
input | IOCOM_RUN_DIR=$PAIR/n1/run timeout 200 "$IOCOM_BUILD/iocom" run --node n1 --migratable --status-fd 3 -- sh -c 'while read -r x; do echo "$x"; done; exit 9' >"$PAIR/out" 2>"$PAIR/err" 3>"$PAIR/status" &
client=$!
started() { grep -q '"started"' "$PAIR/status"; }
until_true 20 started
job=$(jq -r 'select(.job) | .job' "$PAIR/status" | head -n 1)
sleep 0.5
for to in n2 n1 n2; do
	tap_like "an attached job moves to $to" "$(pair_on n1 migrate "$job" $to 2>&1)" "to $to: frozen for"
	sleep 0.5
done
wait $client
tap_is "its client has the status" $? 9
tap_true "and all of the output" whole "$PAIR/out" 200
tap_is "and was told nothing" "$(cat "$PAIR/err")" ""
explained=$(pair_on n1 explain "$job")
tap_is "explain lists the moves" "$(grep -cE '^It moved from n[12] to n[12]: frozen for [0-9.]+ m?s, [0-9.]+ MB\.$' <<<"$explained")" 3

# --- a worker of a batch, between its commands and in one ---
for i in $(seq 0 39); do echo "echo $i; sleep 0.1"; done >"$PAIR/list"
IOCOM_RUN_DIR=$PAIR/n1/run timeout 200 "$IOCOM_BUILD/iocom" batch -q -k -j 1 --node n1 --migratable "$PAIR/list" >"$PAIR/out" 2>"$PAIR/err" </dev/null &
client=$!
worker() { pair_on n1 jobs --json | jq -r '.jobs[] | select(.state == "running" and (.command | contains("worker"))) | .job'; }
has_worker() { [ -n "$(worker)" ]; }
until_true 20 has_worker
job=$(worker)
for to in n2 n1; do
	sleep 0.5
	tap_like "a worker moves to $to" "$(pair_on n1 migrate "$job" $to 2>&1)" "to $to: frozen for"
done
wait $client
tap_is "its commands have ended well" $? 0
tap_true "each once" whole "$PAIR/out" 40
tap_is "and nothing was said" "$(cat "$PAIR/err")" ""
tap_like "a worker here does not move" "$(pair_on n1 batch --here --migratable "$PAIR/list" 2>&1)" "^iocom batch: --migratable does not go with --here$"

# --- a restartable job takes its lease along ---
leased() { # N: counts to N, from home n1 at n1
	IOCOM_RUN_DIR=$PAIR/n1/run timeout 200 "$IOCOM_BUILD/iocom" run --policy nlb --restartable --migratable --status-fd 3 -- sh -c "i=0; while [ \$i -lt $1 ]; do echo \$i; i=\$((i + 1)); sleep 0.01; done; exit 7" >"$PAIR/out" 2>"$PAIR/err" 3>"$PAIR/status" </dev/null &
	client=$!
	until_true 20 started
	job=$(jq -r 'select(.job) | .job' "$PAIR/status" | head -n 1)
}
renewed() { pair_on n1 nodes --json | jq -r '.counters.leases_renewed'; }
leased 1200
before=$(renewed)
for to in n2 n1 n2; do
	sleep 0.5
	tap_like "a restartable job moves to $to" "$(pair_on n1 migrate "$job" $to 2>&1)" "to $to: frozen for"
done
wait $client
tap_is "it outlives its lease" $? 7
tap_true "in one attempt" whole "$PAIR/out" 1200
tap_is "and its client was told nothing" "$(cat "$PAIR/err")" ""
tap_true "its lease was renewed where it was" test "$(renewed)" -ge $((before + 4))
leased 500
tap_like "one that is lost where it moved" "$(pair_on n1 migrate "$job" n2 2>&1)" "moved from n1 to n2"
pair_stop n2 KILL
while read -r root; do
	# shellcheck disable=SC2046
	kill -9 $(find "$root/$PAIR_SCOPE/n2" -name cgroup.procs -exec cat {} + 2>/dev/null) 2>/dev/null
done < <(pair_groups)
wait $client
tap_is "runs again" $? 7
tap_like "elsewhere, as attempt 2" "$(cat "$PAIR/err")" "job $job was lost with node n2; attempt 2 is job .* at node n1"
tap_is "from its start, to its end" "$(grep -cx 0 "$PAIR/out") $(tail -n 1 "$PAIR/out")" "2 499"
pair_mover n2
until_true 20 pair_meet

# --- from another home, and what is refused: it goes on where it is ---
job=$(counts n2 n1 100000)
sleep 0.3
tap_like "asked at another node than its home" "$(pair_on n1 migrate "$job" n2 2>&1)" "moved from n1 to n2"
refused() { # WHAT, NODE, REGEX
	local said
	said=$(pair_on n2 migrate "$job" "$2" 2>&1)
	tap_like "$1" "$? $said" "^1 iocom migrate: .*($3)"
}
refused "where it is already" n2 "is at node n2 already"
refused "an unknown node" n9 "node n9 is unknown here; .iocom nodes. lists the known ones"
tap_like "it was not lost by that" "$(pair_on n1 migrate "$job" n1 2>&1)" "moved from n2 to n1"
tap_like "another user's" "$(pair_user n2 migrate "$job" n2 2>&1)" "no job of yours named"
pair_on n2 kill "$job" >/dev/null
said=$(pair_on n2 migrate 2>&1)
tap_like "wrong usage" "$? $said" "^2 iocom migrate: name one job, and at most one node"
waits n2 "$job"
refused "one that has ended" n2 "has ended"
job=$(pair_on n1 run --node n1 --detach -- sleep 1000)
tap_like "one without --migratable" "$(pair_on n1 migrate "$job" n2 2>&1)" "not started with --migratable"
tap_is "goes on" "$(pair_on n1 jobs --json | jq -r --arg j "$job" '.jobs[] | select(.job == $j) | .state')" running
pair_on n1 kill "$job" >/dev/null
job=$(pair_on n1 run --node n1 --detach --migratable -- python3 -c 'import socket,sys,time; s=socket.socket(); s.bind(("127.0.0.1",0)); s.listen(1); open(sys.argv[1],"w"); time.sleep(1000)' "$PAIR/ready")
until_true 30 test -e "$PAIR/ready"
tap_like "one with a socket" "$(pair_on n1 migrate "$job" n2 2>&1)" "goes on at node n1: it has .*network"
tap_is "goes on, too" "$(pair_on n1 jobs --json | jq -r --arg j "$job" '.jobs[] | select(.job == $j) | .state + .node')" runningn1
tap_like "explain says why it stayed" "$(pair_on n1 explain "$job")" "It stayed at n1 and did not move to n2: it has .*network"
pair_on n1 kill "$job" >/dev/null

# --- terminals ---
while IFS= read -r line; do
	case $line in
	"ok "*) tap_ok "${line#ok }" ;;
	*) tap_fail "${line#not ok }" ;;
	esac
done < <(timeout 500 python3 "$HERE/tests/cluster/migrate_terminal.py" "$IOCOM_BUILD/iocom" "$PAIR/n1/run" 2>&1 || echo "not ok the user at a terminal")
job=$(pair_on n1 run --node n1 --detach --migratable --pty -- sh -c 'i=0; while [ $i -lt 400 ]; do echo $i; i=$((i + 1)); sleep 0.01; done; exit 7')
sleep 0.5
tap_like "a terminal that nobody is attached to" "$(pair_on n1 migrate "$job" n2 2>&1)" "moved from n1 to n2"
waits n1 "$job"
tap_is "with its status" "$?" 7
pair_on n1 attach "$job" 2>/dev/null | tr -d '\r' >"$PAIR/out"
tap_true "and all of its output" whole "$PAIR/out" 400

# --- both agents start again while a job runs where it came ---
job=$(counts n1 n1 900)
sleep 0.3
pair_on n1 migrate "$job" n2 >/dev/null 2>&1
for node in n1 n2; do
	pair_stop $node
	pair_mover $node
done
until_true 20 pair_meet
tap_like "it moves back after new agents have begun" "$(pair_on n1 migrate "$job" n1 2>&1)" "moved from n2 to n1"
waits n1 "$job"
tap_is "with its status" "$?" 7
pair_on n1 attach "$job" >"$PAIR/out" 2>/dev/null
tap_true "and all of its output" whole "$PAIR/out" 900

# --- nothing is left ---
left() { find /sys/fs/cgroup -path "*$PAIR_SCOPE*" -path '*jobs/*' -type d -name '*-*' | grep -v 'user@' | head -n 3; }
none_left() { [ -z "$(left)" ]; }
until_true 10 none_left
tap_is "no control group of a job is left" "$(left)" ""
tap_is "no agent complained" "$(grep -hE ' (error|critical):' "$PAIR"/n?/log | head -n 3)" ""
pair_stop n1
pair_stop n2
tap_is "both agents stop well" "$(cat "$PAIR/bad" 2>/dev/null)" ""
tap_done
