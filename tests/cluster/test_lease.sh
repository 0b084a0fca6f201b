#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# Restartable jobs: a node that is cut off ends its job before another node runs it again; short
# cuts, restarts and absences of agents change nothing; and a job that was given up stays so.
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
# Runs COMMAND on NODE by exec: in the background, its pid is the command's own.
become() { # NODE COMMAND...
	local node=$1
	shift
	exec "$TESTBED" exec "$node" -- "$@"
}
# agent_kill keeps the agent's flags; agent_start starts it again with these and more.
agent_kill() { # NODE SIGNAL
	local pid
	pid=$(cat "$STATE/$1/agent.pid")
	mapfile -d '' -t FLAGS <"/proc/$pid/cmdline"
	kill "-$2" "$pid"
	while [ -d "/proc/$pid" ] && [[ $(cat "/proc/$pid/stat" 2>/dev/null) != *") Z "* ]]; do sleep 0.02; done
}
agent_start() { # NODE FLAG...
	local node=$1
	shift
	become "$node" setsid iocomd "${FLAGS[@]:1}" "$@" >>"$SCRATCH/agent.$node" 2>&1 9>&- &
	disown
	echo $! >"$STATE/$node/agent.pid"
}
counter() { # NODE COUNTER
	on "$1" iocom nodes --json | jq ".counters.$2"
}
answers() { on "$1" iocom nodes >/dev/null 2>&1; }

# Stamps with the machine's own clock; one for all nodes here.  The second attempt ends, and
# each when LOG.over is there.
cat >"$SCRATCH/job" <<'JOB'
#!/bin/sh
# job LOG STATUS BEATS-OF-THE-FIRST
stamp() { read -r up rest </proc/uptime; echo "$1 $(hostname) $up $2 $3" >>"$log"; }
log=$1
stamp start $$ $PPID
n=0
[ "$(grep -c start "$log")" -eq 1 ] || n=$(($3 - 5))
while [ $n -lt "$3" ] && [ ! -e "$log.over" ]; do
	stamp beat $$
	n=$((n + 1))
	sleep 0.1
done
stamp end $$
exit "$2"
JOB
chmod 755 "$SCRATCH/job"
run() { # NAME OPTION...: in the background; its status comes in NAME.status
	local name=$1
	shift
	(
		on n1 iocom run --json "$@" >"$SCRATCH/$name.out" 2>"$SCRATCH/$name.err" </dev/null
		echo $? >"$SCRATCH/$name.status"
	) &
}
log_of() { grep -s "^$2 " "$SCRATCH/$1.log"; }
starts() { log_of "$1" start | wc -l; }
started() { [ "$(starts "$1")" -ge "${2-1}" ]; }
finished() { [ -s "$SCRATCH/$1.status" ]; }
node_of() { log_of "$1" start | awk -v n="$2" 'NR == n { print $2 }'; }
stamp_of() { log_of "$1" start | awk -v n="$2" 'NR == n { print $3 }'; }
pid_of() { log_of "$1" start | awk -v n="$2" 'NR == n { print $4 }'; }
shim_of() { log_of "$1" start | awk -v n="$2" 'NR == n { print $5 }'; }
last_beat() { log_of "$1" beat | awk -v p="$(pid_of "$1" "$2")" '$4 == p { t = $3 } END { print t }'; }
job_id() { jq -R -r 'fromjson? | select(.state == "started") | .job' "$SCRATCH/$1.err" | sed -n "$2p"; }
state_of() { on n1 iocom jobs --all --json | jq -r --arg j "$1" '.jobs[] | select(.job == $j) | .state'; }
is_running() { [ -d "/proc/$1" ] && [[ $(cat "/proc/$1/stat" 2>/dev/null) != *") Z "* ]]; }
is_gone() { ! is_running "$1"; }
sees_node() { [ "$(field n1 "$1" alive)" = true ]; }

agent_kill n1 TERM
# Agents and supervisors that were away must be back within it, also on a busy machine.
LEASE_S=12
agent_start n1 --lease-s $LEASE_S
tap_true "an agent with a lease of $LEASE_S s" until_true 20 answers n1
tap_true "hears of the others" until_true 20 sees n1 3
for _ in 1 2 3 4 5 6; do load n1 "$WORK" cpu 1; done
tap_true "n1 is busy" until_true 20 field_above n1 n1 run_queue 4.5

# --- the same fault, once allowed to run again and once not ---
run once --node n2 -- "$SCRATCH/job" "$SCRATCH/once.log" 3 6000
run limit --node n2 --restarts 0 -- "$SCRATCH/job" "$SCRATCH/limit.log" 3 6000
run shim --node n2 --restartable -- "$SCRATCH/job" "$SCRATCH/shim.log" 4 6000
run own --node n3 --restartable -- "$SCRATCH/job" "$SCRATCH/own.log" 6 20
until_true 20 started shim && until_true 20 started once && until_true 20 started limit
kill -9 "$(shim_of once 1)" "$(shim_of limit 1)" "$(shim_of shim 1)"
until_true 20 finished once
tap_is "a supervisor killed: 255" "$(cat "$SCRATCH/once.status")" 255
until_true 30 finished limit
tap_is "with no restart left: 255" "$(cat "$SCRATCH/limit.status")" 255
tap_like "and the sentence says so" "$(cat "$SCRATCH/limit.err")" 'not run again \(--restarts 0\)'
until_true 30 finished shim
tap_is "restartable: run again, and its status" "$(cat "$SCRATCH/shim.status")" 4
tap_is "once more, no more" "$(starts shim)" 2
tap_is "the others were not" "$(starts once)$(starts limit)" 11
tap_calc "the first was over before the second began" "$(stamp_of shim 2) > $(last_beat shim 1)"
until_true 20 finished own
tap_is "a job that ends by itself has its own status" "$(cat "$SCRATCH/own.status")" 6
tap_is "and is not run again for it" "$(starts own)" 1

# --- detached: only a process in the background waits ---
cat >"$SCRATCH/told" <<'TOLD'
#!/bin/sh
echo "output of $$"
exec "${0%/*}/job" "$@"
TOLD
chmod 755 "$SCRATCH/told"
keepers() { pgrep -fc "^iocom run --detach .*$SCRATCH/$1[.]log"; }
no_keeper() { [ "$(keepers "$1")" -eq 0 ]; }
detach() { # NAME OPTION...
	local name=$1
	shift
	on n1 env SECRET=kept iocom run --detach --node n2 "$@" -- "$SCRATCH/told" "$SCRATCH/$name.log" 16 6000 </dev/null
}
det=$(detach det --restartable)
tap_is "detached and restartable: its name is printed, one process stays" "$? ${det%%-*} $(keepers det)" "0 n1 1"
none=$(detach none --restarts 0)
until_true 20 started det && until_true 20 started none
on n1 iocom wait "$det" >"$SCRATCH/det.wait" 2>&1 &
WAITER=$!
tap_is "its environment is in no file of the agents'" \
	"$(grep -rl SECRET=kept "$STATE"/n1/ "$STATE"/n2/ 2>/dev/null | wc -l)" 0
kill -9 "$(shim_of det 1)" "$(shim_of none 1)"
until_true 20 started det 2
on n1 iocom attach "$det" >"$SCRATCH/det.out" 2>"$SCRATCH/det.err" </dev/null
tap_is "lost, and run again: attach under its name gives the second's output and status" \
	"$? $(cat "$SCRATCH/det.out")" "16 output of $(pid_of det 2)"
tap_like "and says so" "$(cat "$SCRATCH/det.err")" "job $det was lost; attempt 2 of it is job n1-"
wait $WAITER
tap_is "so does wait, from before and afterwards" "$? $(on n1 iocom wait "$det" >/dev/null 2>&1; echo $?)" "16 16"
tap_is "once more, no more" "$(starts det)" 2
tap_true "the process in the background has gone" until_true 10 no_keeper det
tap_is "with no restart left it was lost" "$(on n1 iocom wait "$none" >/dev/null 2>&1; echo $?) $(starts none)" "255 1"
tap_true "and nothing stays for it" until_true 10 no_keeper none
det=$(detach stray --restartable)
until_true 20 started stray
on n1 iocom kill -KILL "$det"
tap_is "one that its owner killed is not run again" "$(on n1 iocom wait "$det" >/dev/null 2>&1; echo $?) $(starts stray)" "137 1"
tap_true "and nothing stays for it" until_true 10 no_keeper stray

# --- a node is cut off ---
run cut --policy cpu-re --restartable -- "$SCRATCH/job" "$SCRATCH/cut.log" 7 6000
run stay --node n1 --restartable -- "$SCRATCH/job" "$SCRATCH/stay.log" 9 250
until_true 20 started cut
T=$(node_of cut 1)
tap_isnt "a job on another node" "$T" n1
link "$T" down
sleep 2
link "$T" up
sleep 1
tap_is "a cut of 2 s: nothing happens" "$(starts cut)" 1
tap_true "and it runs" is_running "$(pid_of cut 1)"

# --- agents come and go, and a supervisor is late meanwhile ---
until_true 20 sees_node "$T" # after the cut
run late --node "$T" -- "$SCRATCH/job" "$SCRATCH/late.log" 11 6000
until_true 20 started late
SHIM=$(shim_of late 1)
late_state() { on "$T" iocom jobs --here --all --json | jq -r --arg j "$(job_id late 1)" '.jobs[] | select(.job == $j) | .state'; }
kill -STOP "$SHIM"
agent_kill "$T" KILL
killed=("${FLAGS[@]}")
agent_kill n1 KILL
agent_start n1
FLAGS=("${killed[@]}")
agent_start "$T"
until_true 20 answers n1 && until_true 20 answers "$T"
until_true 20 sees_node "$T"
tap_is "a stopped supervisor is late, not lost" "$(late_state)" late
tap_true "and its job runs" is_running "$(pid_of late 1)"
kill -CONT "$SHIM"
: >"$SCRATCH/late.log.over"
until_true 20 finished late
tap_is "it answers again: the job's own status" "$(cat "$SCRATCH/late.status"),$(late_state)" 11,exited
tap_is "both agents killed and started again: nothing happens" "$(starts cut)" 1
tap_true "and it runs" is_running "$(pid_of cut 1)"
renewed=$(counter n1 leases_renewed)
renews() { [ "$(counter n1 leases_renewed)" -ge $((renewed + $1)) ]; }
tap_true "its lease is renewed by the new ones" until_true 10 renews 1

# --- the target's agent is away for longer than a lease, and its margin ---
# A client that is stopped meanwhile, and reads nothing, is slow, not gone.
cat >"$SCRATCH/chat" <<'CHAT'
#!/bin/sh
# chat LOG TENTHS: writes more than fits, and says how much
read -r up rest </proc/uptime; echo "start $(hostname) $up $$ $PPID" >>"$1"
n=0
while [ $n -lt "$2" ]; do head -c 20000 /dev/zero; n=$((n + 1)); sleep 0.1; done
CHAT
chmod 755 "$SCRATCH/chat"
become n1 iocom run --node "$T" --grace 2 -- "$SCRATCH/chat" "$SCRATCH/slow.log" 60 2>"$SCRATCH/slow.err" </dev/null | wc -c >"$SCRATCH/slow.out" &
until_true 20 started slow
SLOW=$(on n1 pgrep -f "^iocom run --node $T --grace 2 ")
kill -STOP "$SLOW"
lost=$(counter n1 leases_lost) renewed=$(counter n1 leases_renewed)
agent_kill "$T" KILL
killed=("${FLAGS[@]}")
sleep $((LEASE_S + 3))
until_true 10 renews 3
tap_is "an agent away for longer than a lease: its job goes on, once" \
	"$(starts cut),$(counter n1 leases_lost)" "1,$lost"
tap_true "and it runs" is_running "$(pid_of cut 1)"
tap_true "its supervisor renewed the lease itself" renews 3
kill -CONT "$SLOW"
slow_ended() { [ -s "$SCRATCH/slow.out" ]; }
until_true 20 slow_ended
tap_is "a client stopped for $((LEASE_S + 3)) s, with a grace of 2 s: its output is whole" \
	"$(cat "$SCRATCH/slow.out" "$SCRATCH/slow.err")" 1200000
FLAGS=("${killed[@]}")
agent_start "$T"
until_true 20 answers "$T"
tap_true "the agent that comes finds it" until_true 20 sees_node "$T"
tap_is "it runs there" "$(on "$T" iocom jobs --all --json | jq -r --arg j "$(job_id cut 1)" '.jobs[] | select(.job == $j) | .state')" running

# --- now the cut; other jobs there hear of it soon ---
run idle --node "$T" --grace 60 -- "$SCRATCH/job" "$SCRATCH/idle.log" 13 200
(while sleep 0.2; do echo; done) | on n1 iocom run --node "$T" --grace 60 -- "$SCRATCH/chat" "$SCRATCH/busy.log" 600 >/dev/null 2>"$SCRATCH/busy.err" &
(while sleep 0.2; do echo; done) | on n1 iocom run --node "$T" --grace 2 -- "$SCRATCH/chat" "$SCRATCH/short.log" 600 >/dev/null 2>&1 &
run gone --node "$T" --restartable -- "$SCRATCH/job" "$SCRATCH/gone.log" 14 6000
until_true 20 started idle && until_true 20 started busy && until_true 20 started short && until_true 20 started gone
link "$T" down
read -r down _ </proc/uptime
since_down() { awk -v a="$down" '{ print $1 - a }' /proc/uptime; }
until_true 40 started cut 2
tap_is "cut for good: it is run again" "$(starts cut)" 2
tap_isnt "elsewhere" "$(node_of cut 2)" "$T"
tap_true "the first is gone" is_gone "$(pid_of cut 1)"
gap=$(awk -v a="$(last_beat cut 1)" -v b="$(stamp_of cut 2)" 'BEGIN { print b - a }')
echo "# |cut, last sign of the first after $(awk -v a="$down" -v b="$(last_beat cut 1)" 'BEGIN { print b - a }') s, the second began $gap s later"
tap_calc "it ended before the second began, by the margin" "$gap > 0.5"
noticed() { grep -q 'contact with node' "$SCRATCH/$1.err"; }
tap_true "a client without anything to send notices" until_true 15 noticed idle
idle_s=$(since_down)
tap_true "one that sends all the time does" until_true 15 noticed busy
busy_s=$(since_down)
tap_true "and so does a supervisor whose job writes all the time: its grace is over" until_true 15 is_gone "$(pid_of short 1)"
echo "# |cut, noticed after: idle client $idle_s s, sending client $busy_s s; supervisor, with a grace of 2 s: $(since_down) s"
tap_true "one that may run on that node only is waited for as long as another lease" until_true 40 finished gone
tap_is "and is not run again: 255" "$(cat "$SCRATCH/gone.status"),$(starts gone)" 255,1
tap_like "the sentence says so" "$(cat "$SCRATCH/gone.err")" "node $T did not come back within $LEASE_S s"
until_true 20 finished cut
tap_is "the status is the second's" "$(cat "$SCRATCH/cut.status")" 7
tap_like "it says what happened" "$(cat "$SCRATCH/cut.err")" "was lost with node $T; attempt 2 is job"
first=$(job_id cut 1)
tap_is "the first counts as lost at home" "$(state_of "$first")" lost
tap_is "the second as ended" "$(state_of "$(job_id cut 2)")" exited
link "$T" up
until_true 20 sees_node "$T"
until_true 40 finished idle
tap_is "the link is back: the job that waited is found, its status its own" "$(cat "$SCRATCH/idle.status"),$(starts idle)" 13,1
kill -9 "$(shim_of busy 1)"
port=$(on n1 iocom nodes --json | jq '.nodes[] | select(.name == "n1") | .port')

# --- what was given up stays so ---
# (What the cut node asked before it was cut off may come now, and is refused as well.)
refused() { grep -c "renewal refused: job $first has no lease" "$SCRATCH/agent.n1"; }
replays() { grep -Ec 'refused .*(replay|here before|decoded before)' "$SCRATCH/agent.n1"; }
calm() { # nothing came for 2 s
	before=$(refused) seen=$(replays)
	sleep 2
	[ "$before,$seen" = "$(refused),$(replays)" ]
}
until_true 20 calm
tap_is "a renewal of the first is refused, and its replay not even answered" \
	"$(on "$T" "$IOCOM_BUILD/tests/tools/renew" "$T" n1 10.77.0.1 "$port" "$first" 2 | paste -sd, -)" fenced,silence
tap_is "each logged once" "$(($(refused) - before)),$(($(replays) - seen))" 1,1
tap_is "a node that a job was not placed at cannot renew it" \
	"$(on n1 "$IOCOM_BUILD/tests/tools/renew" n9 n1 10.77.0.1 "$port" "$(job_id stay 1)" 1)" fenced

# --- a directory on a file system that hangs, at the target ---
mkdir "$SCRATCH/hang"
become "$T" "$IOCOM_BUILD/tests/tools/hang" "$SCRATCH/hang" >"$SCRATCH/ready" &
HANG=$!
until_true 10 grep -q ready "$SCRATCH/ready"
(cd "$SCRATCH/hang" && on n1 iocom run --node "$T" -- true) >"$SCRATCH/hang.out" 2>&1 &
HUNG=$!
sleep 0.3
tap_is "while it hangs another job runs there" "$(on n1 iocom run --node "$T" -- hostname)" "$T"
wait $HUNG
tap_is "the one that needs it is refused" "$?" 125
tap_like "and the directory named" "$(cat "$SCRATCH/hang.out")" "working directory $SCRATCH/hang: .*did not answer"
kill $HANG
wait $HANG
tap_is "afterwards it is not" "$(cd "$SCRATCH/hang" && on n1 iocom run --node "$T" -- hostname)" "$T"

# --- a stopped supervisor enforces nothing: its agent does ---
run stop --policy cpu-re --restartable -- "$SCRATCH/job" "$SCRATCH/stop.log" 8 6000
until_true 20 started stop
T=$(node_of stop 1)
run back --node "$T" --restartable -- "$SCRATCH/job" "$SCRATCH/back.log" 15 6000
until_true 20 started back
kill -STOP "$(shim_of stop 1)"
link "$T" down
until_true 40 started stop 2
tap_is "one that may run there only waits for its node" "$(starts back)" 1
link "$T" up
tap_calc "stopped supervisor, cut node: the job ended before the second began" \
	"$(stamp_of stop 2) > $(last_beat stop 1)"
tap_true "the first is gone" is_gone "$(pid_of stop 1)"
until_true 20 finished stop
tap_is "and the status is the second's" "$(cat "$SCRATCH/stop.status")" 8
kill -CONT "$(shim_of stop 1)"
until_true 20 sees_node "$T"
tap_is "what the first says when it wakes is not taken" "$(state_of "$(job_id stop 1)")" lost

until_true 25 finished back
[ "$(cat "$SCRATCH/back.status")" = 15 ] || sed "s/^/# /" "$SCRATCH/back.err"
tap_is "which came back: it is run again there, and the status is the second's" \
	"$(cat "$SCRATCH/back.status"),$(starts back),$(node_of back 2)" "15,2,$T"
tap_calc "when the first was over" "$(stamp_of back 2) > $(last_beat back 1)"
tap_calc "home counts what it gave up" "$(counter n1 jobs_restarted) >= 3"

# --- home is away for longer than a lease: the lease is not renewed, and the job is ended ---
run away --policy cpu-re --restartable -- "$SCRATCH/job" "$SCRATCH/away.log" 12 6000
until_true 20 started away
T=$(node_of away 1)
tap_isnt "a job on another node" "$T" n1
agent_kill n1 KILL
tap_true "home is away: it goes on for its lease" is_running "$(pid_of away 1)"
tap_true "and no longer" until_true 20 is_gone "$(pid_of away 1)"
agent_start n1
until_true 20 answers n1
until_true 40 started away 2
tap_calc "home is back: it is run again, the first was over" "$(stamp_of away 2) > $(last_beat away 1)"
until_true 20 finished away
tap_is "and the status is the second's" "$(cat "$SCRATCH/away.status"),$(starts away)" 12,2

until_true 30 finished stay
tap_is "a job at home lived through it all" "$(cat "$SCRATCH/stay.status"),$(starts stay)" 9,1
load_stop
tap_done
