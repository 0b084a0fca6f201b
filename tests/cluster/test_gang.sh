#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# Parallel jobs as their agents see them: slots, claims that cross, and clients, tasks, agents and
# nodes that die.  No part outlives its gang, and no lease is left.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1
. tests/lib/tap.sh
. tests/lib/cluster.sh
export PERIOD=0.5
cluster_up --nodes 3 --disk 0 --mem 1500
STATE=${IOCOM_TESTBED_DIR:-/run/${IOCOM_TESTBED_MARK:-iocom-testbed}}

link() { # NODE up|down
	nsenter "--net=$STATE/bridge/net" ip link set "iocom-$1" "$2"
}
agent_kill() { # NODE SIGNAL
	local pid
	pid=$(cat "$STATE/$1/agent.pid")
	mapfile -d '' -t FLAGS <"/proc/$pid/cmdline"
	kill "-$2" "$pid"
	while [ -d "/proc/$pid" ] && [[ $(cat "/proc/$pid/stat" 2>/dev/null) != *") Z "* ]]; do sleep 0.02; done
}
become() { # NODE COMMAND...
	local node=$1
	shift
	exec "$TESTBED" exec "$node" -- "$@"
}
agent_start() { # NODE FLAG...
	local node=$1
	shift
	become "$node" setsid iocomd "${FLAGS[@]:1}" "$@" >>"$SCRATCH/agent.$node" 2>&1 9>&- &
	disown
	echo $! >"$STATE/$node/agent.pid"
}
answers() { on "$1" iocom nodes >/dev/null 2>&1; }
jobs_json() { on "${1-n1}" iocom jobs --all --json; }
gang_of() { jobs_json | jq -c --arg j "$1" ".jobs[] | select(.job==\$j) | $2"; }
is_state() { [ "$(gang_of "$1" .state)" = "\"$2\"" ]; }
# The tasks of a gang are sleeps of a time of its own.
tasks() { pgrep -fxc "sleep $1"; }
are() { [ "$(tasks "$1")" -eq "$2" ]; }
are_at() { [ "$(pids_at "$1" "$2" | wc -l)" -eq "$3" ]; }
pids_at() { # NODE TIME
	local pid
	for pid in $(pgrep -fx "sleep $2"); do
		[ "$(readlink "/proc/$pid/ns/net")" = "$(readlink "/proc/$(cat "$STATE/$1/agent.pid")/ns/net")" ] && echo "$pid"
	done
}
# All slots of all nodes are free, as each node says itself.
free_all() {
	local n
	for n in n1 n2 n3; do
		on $n iocom nodes --json | jq -e --arg n $n '.nodes[] | select(.name==$n) | .slots_free == .slots' >/dev/null || return 1
	done
}
hears_slots() { # COUNT: n1 and n2 know of so many free slots
	local n
	for n in n1 n2; do
		[ "$(on $n iocom nodes --json | jq '[.nodes[].slots_free] | add')" -eq "$1" ] || return 1
	done
}
detach() { # OPTION...: prints the gang's name
	on n1 iocom run --detach "$@" </dev/null
}

# --- slots ---
for n in n1 n2 n3; do
	agent_kill $n TERM
	agent_start $n --slots 4
done
tap_true "agents with 4 slots" until_true 20 answers n1
tap_true "hear of each other" until_true 20 sees n1 3
tap_true "and of all slots" until_true 20 hears_slots 12
"$TESTBED" exec n1 -- iocom record --out "$SCRATCH/rec.jsonl" 2>"$SCRATCH/rec.log" &
recorder=$!
tap_true "n1 records" until_true 10 sh -c "ls $SCRATCH/.rec.jsonl.* >/dev/null 2>&1"
gang=$(detach -n 10 -- sleep 4001)
tap_like "a gang of 10" "$gang" '^n1-[0-9a-f]{8}-[0-9]+$'
tap_true "its tasks run" until_true 20 are 4001 10
tap_true "2 slots are left" until_true 10 hears_slots 2
tap_like "3 tasks do not fit" "$(on n2 iocom run -n 3 -- true 2>&1 </dev/null)" \
	'^iocom run: 3 tasks do not fit: 3 nodes have 2 free slots; see --oversubscribe$'
tap_is "2 do, and so do 3 that oversubscribe" \
	"$(on n2 iocom run -n 2 -- echo x </dev/null)$(on n3 iocom run -n 3 --oversubscribe -- echo x </dev/null)" \
	$'x\nxx\nx\nx'
tap_is "jobs: one row with its parts" "$(gang_of "$gang" '[.state, .tasks, .nodes, (.parts | map(.tasks) | add)]')" '["running",10,3,10]'
tap_is "its user's last job" "$(on n1 iocom explain last --json | jq -r .job)" "$gang"
tap_is "kill" "$(on n1 iocom kill "$gang" 2>&1; on n1 timeout 20 iocom wait "$gang" 2>/dev/null; echo $?)" 143
tap_true "none is left" until_true 10 are 4001 0
tap_like "the gang's own words" "$(gang_of "$gang" .text)" 'it was ended by signal 15 \(TERM\)'
tap_true "all slots are free" until_true 10 free_all
on n1 iocom run -n 12 -- true </dev/null
kill -INT $recorder
wait $recorder
tap_like "the recording has its decisions, which come out the same again" \
	"$("$IOCOM_BUILD/iocom" replay "$SCRATCH/rec.jsonl" --check 2>&1 | grep ^placements)" ' 2 of 2 decisions, .* 100.0 %'

# --- claims that cross: n1 and n2 both want all slots at the same moment, again and again ---
pair() { # NODE
	on "$1" iocom run -n 12 -- true >/dev/null 2>"$SCRATCH/cross.$1" </dev/null
	echo $? >>"$SCRATCH/crossed"
	sed -n '/./p' "$SCRATCH/cross.$1" >>"$SCRATCH/cross.err"
}
: >"$SCRATCH/cross.err"
for _ in $(seq 5); do
	pair n1 &
	one=$!
	pair n2
	wait $one
done
tap_is "each of 10 has all or nothing" "$(grep -cvE '^(0|125)$' "$SCRATCH/crossed")" 0
tap_isnt "some had all" "$(grep -c '^0$' "$SCRATCH/crossed")" 0
echo "# $(grep -c "^0$" "$SCRATCH/crossed") of 10 had all"
tap_is "one sentence for each that had nothing" "$(wc -l <"$SCRATCH/cross.err")" "$(grep -c '^125$' "$SCRATCH/crossed")"
tap_is "with the slots that it found" "$(grep -vcE 'do not fit|found no nodes in' "$SCRATCH/cross.err")" 0
tap_true "no lease is left" until_true 15 free_all
tap_is "no gang is under way" "$(for n in n1 n2; do on $n iocom nodes --json | jq '.bounds[] | select(.name=="gangs") | .used'; done | tr '\n' ' ')" "0 0 "

# --- kills at random: a task, what starts the tasks, its supervisor, or the client ---
# KILLS=50 for a longer look.
random_pid() { # WHAT: one of the processes of the gang of $time
	case $1 in
	task) pgrep -fx "sleep $time" ;;
	launcher) pgrep -f "iocom-tasks .* sleep $time\$" ;;
	shim) pgrep -f "iocom-tasks .* sleep $time\$" | xargs -r -n 1 ps -o ppid= -p ;;
	client) pgrep -fx "iocom run -n 12 -- sleep $time" ;;
	esac | shuf -n 1 | tr -d ' '
}
victims=(task launcher shim client)
for i in $(seq "${KILLS-4}"); do
	time=$((4100 + i))
	what=${victims[i % 4]}
	(on n1 iocom run -n 12 -- sleep $time >"$SCRATCH/kill.out" 2>"$SCRATCH/kill.err" </dev/null) &
	client=$!
	until_true 20 are $time 12 || tap_fail "kill $i: 12 tasks of sleep $time" "$(cat "$SCRATCH/kill.err")"
	kill -9 "$(random_pid "$what")"
	wait $client
	status=$?
	until_true 20 are $time 0 || tap_fail "kill $i of a $what: tasks are left"
	until_true 20 free_all || tap_fail "kill $i of a $what: slots are left"
	[ "$status" -ne 0 ] || tap_fail "kill $i of a $what: status 0"
	[ "$what" = client ] || [ "$(wc -l <"$SCRATCH/kill.err")" -eq 1 ] ||
		tap_fail "kill $i of a $what: not one sentence" "$(cat "$SCRATCH/kill.err")"
done
tap_is "after ${KILLS-4} kills nobody runs" "$(pgrep -fc '^sleep 41')" 0
tap_is "and no gang is under way" "$(on n1 iocom nodes --json | jq '.bounds[] | select(.name=="gangs") | .used')" 0

# --- its home's agent is killed ---
gang=$(detach -n 12 -- sleep 4002)
tap_true "12 tasks run" until_true 20 are 4002 12
agent_kill n1 KILL
agent_start n1
tap_true "home's agent is killed and starts again" until_true 20 answers n1
tap_true "hears of the others" until_true 20 sees n1 3
tap_is "the gang goes on" "$(gang_of "$gang" .state) $(tasks 4002)" '"running" 12'
agent_kill n1 KILL
kill -9 "$(pids_at n2 4002 | head -n 1)"
tap_true "a task dies while home has no agent: its part ends" until_true 10 are_at n2 4002 0
agent_start n1
tap_true "when home is back all others end" until_true 30 are 4002 0
tap_is "with the status of that task" "$(on n1 timeout 20 iocom wait "$gang" 2>/dev/null; echo $?)" 137
tap_like "and its part's name" "$(gang_of "$gang" .text)" 'task [0-9] on n2 was ended by signal 9 \(KILL\); the others were ended'

# --- another node's agent is killed: nothing happens ---
tap_true "hears of the others again" until_true 20 sees n1 3
tap_true "all slots are free again" until_true 15 hears_slots 12
gang=$(detach -n 12 -- sleep 4003)
tap_true "12 tasks of another gang" until_true 20 are 4003 12
agent_kill n2 KILL
agent_start n2
tap_true "n2's agent is killed and starts again" until_true 20 answers n2
tap_true "and is heard" until_true 20 sees n1 3
tap_is "all tasks run" "$(gang_of "$gang" .state) $(tasks 4003)" '"running" 12'

# --- a node is cut off: the gang is lost, and no part of it comes back with the node ---
link n3 down
tap_true "n3 is cut off: the others end" until_true 40 are 4003 4
tap_true "the gang is lost" until_true 10 is_state "$gang" lost
tap_like "and its sentence names the node" "$(gang_of "$gang" .text)" '^"node n3 with its part n1-.* is lost: it has been silent for more than 15 s; the others were ended"$'
tap_is "so wait says 255" "$(on n1 timeout 20 iocom wait "$gang" 2>/dev/null; echo $?)" 255
link n3 up
tap_true "n3 is back: its part ends" until_true 40 are 4003 0
tap_true "all slots are free at last" until_true 20 free_all
tap_done
