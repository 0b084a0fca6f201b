#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# `iocom run -n`: one job of many independent tasks, from its start to its end, as one for all commands.
# shellcheck disable=SC2016 # the tasks' shells expand
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1
. tests/lib/tap.sh
. tests/lib/cluster.sh
cluster_up --nodes 3 --disk 20 --mem 1500
tap_true "every node hears of every other" until_true 10 sees n1 3
# With `exec` a background command is iocom itself, by its pid.
r() { exec timeout -k 5 60 "$TESTBED" exec n1 -- iocom run "$@"; }
u=$(($$ % 9000 + 1000)) # tells our sleeping tasks from those of another run
# Six tasks, two a node; SPREAD are options of it.
SPREAD=(-n 6 --per-node 2 --oversubscribe --mem 1M)
run() { (r "$@"); }
# status OPTION...: the exit status; what was printed is in $SCRATCH/o and $SCRATCH/e.
status() { run "$@" >"$SCRATCH/o" 2>"$SCRATCH/e" </dev/null; echo $?; }
out() { sort "$SCRATCH/o" | tr '\n' ' '; }
err() { cat "$SCRATCH/e"; }
running() { [ "$(pgrep -cf "^sleep $1\$")" -eq "$2" ]; }
jobs_json() { on "${1:-n1}" iocom jobs --all --limit 0 --json; }
row() { jobs_json "${2:-n1}" | jq -c --arg j "$1" '.jobs[] | select(.job==$j)'; }
last() { jobs_json | jq -r '[.jobs[] | select(.tasks >= 1)] | sort_by(.submit_ns) | last.job'; }
no_part_runs() { [ "$(for n in n1 n2 n3; do on $n iocom jobs --here --json; done |
	jq -s '[.[].jobs[] | select(.end_ns == 0 or .end_ns == null)] | length')" -eq 0 ]; }

# --- tasks and what they have ---
tap_is "six tasks, each with its number" \
	"$(status "${SPREAD[@]}" -- sh -c 'echo $IOCOM_TASK of $IOCOM_TASKS') $(out)" \
	"0 0 of 6 1 of 6 2 of 6 3 of 6 4 of 6 5 of 6 "
tap_is "nothing is said" "$(err)" ""
tap_is "two a node, on three nodes" "$(status "${SPREAD[@]}" -- hostname) $(out)" "0 n1 n1 n2 n2 n3 n3 "
tap_is "the local numbers" "$(status "${SPREAD[@]}" -- sh -c 'echo $(hostname) $IOCOM_LOCAL_TASK/$IOCOM_LOCAL_TASKS') $(out)" \
	"0 n1 0/2 n1 1/2 n2 0/2 n2 1/2 n3 0/2 n3 1/2 "
tap_is "one name for all" "$(status "${SPREAD[@]}" -- sh -c 'echo $IOCOM_GANG $IOCOM_NODES') $(sort -u "$SCRATCH/o" | wc -l)" "0 1"
tap_like "with all nodes" "$(head -n 1 "$SCRATCH/o")" '^n1-[0-9a-f]{8}-[0-9]+ (n[123],){2}n[123]$'
tap_is "directory and environment are ours" "$(cd "$SCRATCH" && X=y run -n 2 --oversubscribe -- sh -c 'echo $X $PWD' | sort -u)" "y $SCRATCH"
tap_is "--label: the task's number before each line of both outputs" \
	"$(status "${SPREAD[@]}" --label -- sh -c 'echo a; echo b >&2') $(out)$(sort "$SCRATCH/e" | tr '\n' ' ')" \
	"0 0: a 1: a 2: a 3: a 4: a 5: a 0: b 1: b 2: b 3: b 4: b 5: b "
tap_is "input goes to task 0, the others have none" \
	"$(echo hello | run "${SPREAD[@]}" --label -- wc -c | sort | tr '\n' ' ')" "0: 6 1: 0 2: 0 3: 0 4: 0 5: 0 "
tap_is "lines of many tasks are whole" \
	"$(run "${SPREAD[@]}" --label -- seq -f 'line %05g of many' 1000 | grep -cE '^[0-5]: line [0-9]{5} of many$')" 6000
tap_is "--on" "$(status -n 2 --oversubscribe --on n3 -- hostname) $(out)" "0 n3 n3 "
status "${SPREAD[@]}" -v -- true >/dev/null
tap_like "-v says where tasks go" "$(err | head -n 1)" '^iocom run: job n1-.*: 6 independent tasks: n[123]: [0-5](-[0-5]|,[0-5]), n'
tap_is "one task" "$(status -n 1 --oversubscribe -- echo x) $(out)" "0 x "
tap_is "the reader leaves: no failure is told" "$(run "${SPREAD[@]}" -- yes 2>"$SCRATCH/e" | head -n 1) $(err)" "y "

tap_is "1,000 tasks" "$(status -n 1000 --oversubscribe --mem 1M -- sh -c 'echo $IOCOM_TASK') $(sort -un "$SCRATCH/o" | wc -l)" "0 1000"
tap_is "--status-fd: placed, started, ended" \
	"$(run "${SPREAD[@]}" --status-fd 3 -- sleep 0.3 3>&1 | jq -rc '[.state, .status // empty, (.parts // .gang.parts // [] | length)]' | tr '\n' ' ')" \
	'["placed",0] ["started",3] ["exited",0,3] '

# --- how it ends ---
tap_is "the status of the task that failed" "$(status "${SPREAD[@]}" -- sh -c '[ $IOCOM_TASK -ne 3 ] || exit 7; exec sleep '"${u}1")" 7
tap_like "one sentence" "$(err)" '^iocom run: task 3 on n[123] ended with status 7; the others were ended$'
tap_is "which is all" "$(wc -l <"$SCRATCH/e")" 1
tap_true "the others are gone" until_true 10 running "${u}1" 0
tap_is "a signal" "$(status "${SPREAD[@]}" -- sh -c '[ $IOCOM_TASK -ne 5 ] || kill -9 $$; exec sleep '"${u}2")" 137
tap_like "is told" "$(err)" '^iocom run: task 5 on n[123] was ended by signal 9 \(KILL\); the others were ended$'
told() { on n1 iocom explain last | tr '\n' ' '; }
tap_is "wait says the same" "$(on n1 timeout 20 iocom wait last 2>/dev/null; echo $?)" 137
tap_like "explain, too: not a task that followed" "$(told)" 'task 5 on n[123] was ended by signal 9 \(KILL\); the others were ended'
tap_is "tasks that ignore TERM are killed" "$(status "${SPREAD[@]}" -- sh -c '[ $IOCOM_TASK -ne 1 ] || exit 3; trap "" TERM; while :; do sleep 0.1; done')" 3
tap_is "--keep-going: the others end by themselves" \
	"$(status "${SPREAD[@]}" --keep-going -- sh -c '[ $IOCOM_TASK -ne 0 ] || exit 4; sleep 0.5; echo $IOCOM_TASK') $(out)" "4 1 2 3 4 5 "
tap_like "and it is told" "$(err)" '^iocom run: task 0 on n[123] ended with status 4; the others went on$'
tap_is "a command that is not there" "$(status "${SPREAD[@]}" -- /no/such/command)" 127
(r "${SPREAD[@]}" -- sleep "${u}3" >"$SCRATCH/o" 2>"$SCRATCH/e" </dev/null) &
client=$!
tap_true "six sleep" until_true 10 running "${u}3" 6
kill -INT "$(pgrep -f "^iocom run -n 6 .* -- sleep ${u}3" | head -n 1)"
wait $client
tap_is "^C ends all, with its status, and nothing is said" "$? $(err)" "130 "
tap_true "and none is left" until_true 10 running "${u}3" 0
tap_like "explain blames no node" "$(on n1 timeout 20 iocom wait last 2>/dev/null; told)" 'it was ended by signal 2 \(INT\)'

# --- one job for all commands ---
gang=$(run "${SPREAD[@]}" --detach -- sleep "${u}4")
tap_like "--detach prints the name" "$gang" '^n1-[0-9a-f]{8}-[0-9]+$'
tap_true "its tasks run" until_true 10 running "${u}4" 6
is_running() { [ "$(row "$gang" | jq -r .state)" = running ]; }
tap_true "home knows that it runs" until_true 10 is_running
tap_is "jobs: one row" "$(jobs_json | jq -c --arg j "$gang" '[.jobs[] | select(.job | startswith($j))] | map([.state, .tasks, (.parts | length)])')" \
	'[["running",6,3]]'
tap_is "from another node, too" "$(row "$gang" n2 | jq -c '[.state, .tasks]')" '["running",6]'
tap_like "as a table" "$(on n1 iocom jobs --wide | grep "^$gang ")" ' n\[1-3\] .* 6 +sleep '"${u}4\$"
tap_is "--parts: one row more for each node" "$(on n1 iocom jobs --wide --parts | grep -c "^$gang\\.[012] ")" 3
tap_like "explain: where and why" "$(on n1 iocom explain "$gang")" 'places its 6 tasks on 3 nodes: n[123]: '
tap_is "and its parts" "$(on n1 iocom explain "$gang" | grep -c "^  $gang\\.[012] .* running ")" 3
tap_like "explain of a part: which job it is of" "$(on n1 iocom explain "$gang.1")" "^It is a part of job $gang, "
tap_is "complete offers the job, not its parts" "$(on n2 iocom complete running | grep -c "^$gang")" 1
tap_is "kill reaches all parts" "$(on n1 iocom kill "$gang" >"$SCRATCH/e" 2>&1; echo $?)" 0
tap_is "wait has its status" "$(on n1 timeout 20 iocom wait "$gang" 2>/dev/null; echo $?)" 143
tap_like "explain blames no node for it" "$(told)" 'it was ended by signal 15 \(TERM\)'
tap_true "none is left" until_true 10 running "${u}4" 0
# The client and home say the same of a job that is killed, whichever part ends first.
for i in 1 2 3; do
	(r "${SPREAD[@]}" -- sleep "${u}7" >"$SCRATCH/o" 2>"$SCRATCH/e" </dev/null) &
	client=$!
	until_true 10 running "${u}7" 6
	on n1 iocom kill -KILL "$(last)"
	wait $client
	got="$? $(on n1 timeout 20 iocom wait last 2>/dev/null; echo $?) $(wc -l <"$SCRATCH/e")"
	[ "$got" = "137 137 1" ] || break
done
tap_is "kill -KILL: the client's status is home's" "$got" "137 137 1"
tap_like "and its sentence" "$(err)" 'it was ended by signal 9 \(KILL\)$'
(r "${SPREAD[@]}" -- sh -c 'trap "" INT; echo; sleep '"${u}9" >"$SCRATCH/o" 2>"$SCRATCH/e" </dev/null) &
client=$!
all_echoed() { [ "$(wc -l <"$SCRATCH/o")" -eq 6 ]; }
until_true 10 all_echoed
pkill -INT -o -f "^iocom run -n 6 .* trap"
sleep 0.3
tap_is "tasks may ignore ^C" "$(pgrep -cf "^sleep ${u}9\$")" 6
pkill -INT -o -f "^iocom run -n 6 .* trap"
wait $client
tap_is "the second ends them, and home says the same" "$? $(on n1 timeout 20 iocom wait last 2>/dev/null; echo $?)" "130 130"
# Whenever ^C comes, nothing of the job goes on, and it is told as that.
is_there() { pgrep -f "^iocom run -n 6 .* -- sleep ${u}8" >/dev/null; }
for delay in 0 0.01 0.02 0.03 0.04 0.06 0.08 0.12; do
	before=$(last)
	(r "${SPREAD[@]}" -- sleep "${u}8" >"$SCRATCH/o" 2>"$SCRATCH/e" </dev/null) &
	client=$!
	for _ in {1..2000}; do is_there && break; done
	sleep $delay
	pkill -INT -o -f "^iocom run -n 6 .* -- sleep ${u}8"
	wait $client
	# Before it has a place it is no job, and the last one is that before.
	got=$?
	now=$(last)
	[ "$now" = "$before" ] || got="$got $(on n1 timeout 8 iocom wait "$now" >/dev/null 2>&1; echo $?)"
	case $got in "130 130" | 130) ;; *) break ;; esac
done
tap_like "^C while a job begins: it ends at once, as that" "$got" '^130( 130)?$'
tap_true "and nothing of it is left" until_true 5 no_part_runs
gang=$(run "${SPREAD[@]}" --detach --label -- sh -c 'echo out; sleep 0.3; [ $IOCOM_TASK -ne 2 ] || exit 5; sleep 60')
tap_is "wait: a detached gang that fails" "$(on n1 timeout 20 iocom wait "$gang"; echo $?)" 5
tap_is "attach: the output of all parts" "$(on n1 timeout 20 iocom attach "$gang" </dev/null 2>/dev/null | grep -c '^[0-5]: out$')" 6
tap_like "explain: which task failed first" "$(on n1 iocom explain "$gang" | tr '\n' ' ')" 'task 2 on n[123] ended with status 5; the others were ended'

(r "${SPREAD[@]}" -- sh -c 'echo before; until [ -e "$0" ]; do sleep 0.05; done; echo after' "$SCRATCH/go" >"$SCRATCH/o" 2>"$SCRATCH/e" </dev/null) &
client=$!
begun() { [ "$(wc -l <"$SCRATCH/o")" -eq 6 ]; }
tap_true "six tasks have printed" until_true 10 begun
gang=$(last)
tap_is "attach from another node: it has a client" "$(on n2 timeout 20 iocom attach "$gang" </dev/null >"$SCRATCH/a" 2>&1; echo $?) $(wc -l <"$SCRATCH/a")" "125 1"
(exec "$TESTBED" exec n2 -- timeout 20 iocom attach --take "$gang" >"$SCRATCH/a" 2>&1 </dev/null) &
taker=$!
wait $client
tap_is "attach --take: the first client leaves, the tasks go on" "$? $(err)" "255 iocom run: the job was attached to from elsewhere"
touch "$SCRATCH/go"
wait $taker
tap_is "and the second has all their output, and the status" "$?$(sort "$SCRATCH/a" | uniq -c | tr -s ' \n' ' ')" "0 6 after 6 before "
(r "${SPREAD[@]}" --grace 1 -- sleep "${u}6" >"$SCRATCH/o" 2>"$SCRATCH/e" </dev/null) &
client=$!
tap_true "six sleep once more" until_true 10 running "${u}6" 6
kill -9 "$(pgrep -f "^iocom run -n 6 .* -- sleep ${u}6" | head -n 1)"
wait $client 2>/dev/null
tap_true "kill -9 of the client: no task outlives the grace" until_true 15 running "${u}6" 0

# --- what does not fit ---
tap_is "more tasks than slots: refused" "$(status -n 4096 -- true)" 125
tap_like "with the numbers" "$(err)" '^iocom run: 4096 tasks do not fit: '
tap_is "in one sentence" "$(wc -l <"$SCRATCH/e")" 1
tap_is "a node that does not exist" "$(status -n 2 --on n1,n9 -- true) $(err | grep -c n9)" "125 1"
tap_like "place: where they would go" "$(on n1 iocom place "${SPREAD[@]}" --mpi --on all -- true)" 'places its 6 tasks on 3 nodes: '
tap_is "--on all: every node may be used" "$(status "${SPREAD[@]}" --on all -- true) $(row "$(last)" | jq '.parts | length')" "0 3"
tap_like "an option of mpirun: where its like is said" "$(status --host n1,n2 -n 2 -- true; err)" 'for options of srun and mpirun see iocom-run\(1\)'
for bad in "-n 0" "-n 5000" "-n x" "--mpi" "-n 2 -N n1" "-n 2 --mpi -N n1" "-n 2 --pty" "-n 2 --restartable" "-n 2 --data /etc/passwd" \
	"-n 2 --node n2" "-n 2 --keep-going --mpi" "-n 2 --mpi=no" "-n 2 --mpi" "-n 2 --per-node 0" "--per-node 2" "--on n1" "-n 2 --on n1,,n2"; do
	# shellcheck disable=SC2086 # words
	tap_is "$bad: refused in one sentence" "$(status $bad -- true) $(wc -l <"$SCRATCH/e")" "125 1"
done

# --- a part's client is killed ---
(r "${SPREAD[@]}" -- sleep "${u}6" >"$SCRATCH/o" 2>"$SCRATCH/e" </dev/null) &
client=$!
tap_true "six sleep for whom a part's client is killed" until_true 10 running "${u}6" 6
kill -9 "$(pgrep -f "^iocom run -n 6 .* -- sleep ${u}6" | tail -n 1)"
wait $client
tap_is "the job fails" "$?" 255
tap_like "with one sentence" "$(err)" '^iocom run: contact with n[123] was lost; the others were ended$'
tap_is "which is all" "$(wc -l <"$SCRATCH/e")" 1
tap_true "and no task is left" until_true 30 running "${u}6" 0

# --- a lost node ---
(r "${SPREAD[@]}" -- sleep "${u}5" >"$SCRATCH/o" 2>"$SCRATCH/e" </dev/null) &
client=$!
tap_true "six sleep again" until_true 10 running "${u}5" 6
# The supervisor of the part at n3 dies.
agent=$(<"${IOCOM_TESTBED_DIR:-/run/${IOCOM_TESTBED_MARK:-iocom-testbed}}/n3/agent.pid")
kill -9 "$(pgrep -P "$agent" -x iocom-shim | head -n 1)"
wait $client
tap_isnt "a part dies: the job fails" "$?" 0
tap_like "with one sentence" "$(err)" '^iocom run: .*n3.*; the others were ended$'
tap_true "nothing is left" until_true 30 running "${u}5" 0
tap_true "no node has a job" until_true 20 no_part_runs
tap_done
