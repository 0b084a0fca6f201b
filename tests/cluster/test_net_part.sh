#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# The network part, iocom-net: what it may do, that its death costs no job, and that it comes back
# from death, hangs and a program that is gone. n1 to n3 are the testbed's; beside them x1 to x3, at
# other ports, have users, programs and names of their own.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=tests/lib/tap.sh disable=SC1091
. tests/lib/tap.sh
# shellcheck source=tests/lib/cluster.sh disable=SC1091
. tests/lib/cluster.sh
cluster_up --nodes 3 --disk 0
STATE=${IOCOM_TESTBED_DIR:-/run/${IOCOM_TESTBED_MARK:-iocom-testbed}}
MARK=${IOCOM_TESTBED_MARK:-iocom-testbed}
SEED=${SEED:-$((SRANDOM % 32768))}
RANDOM=$SEED
echo "# the moments of the kills: SEED=$SEED"

at() { local node=$1; shift; timeout 90 "$TESTBED" exec "$node" -- "$@"; }
ms() { echo $((${EPOCHREALTIME//[.,]/} / 1000)); }
pause() { sleep "0.$(printf %03d $((RANDOM % $1)))"; } # MS: at random, shorter than this

# --- agents -----------------------------------------------------------------------------------
# n1 to n3 run in the testbed's directories, xK in ours, in the namespaces of nK.
dir_of() { case $1 in n*) echo "$STATE/$1" ;; *) echo "$SCRATCH/$1" ;; esac; }
agent_of() { cat "$(dir_of "$1")/agent.pid"; }
net_of() { pgrep -P "$(agent_of "$1")" -x iocom-net; }
names_of() { pgrep -P "$(net_of "$1")" -x iocom-names; }
ask() { local node=$1; shift; IOCOM_RUN_DIR=$(dir_of "$node")/run timeout 20 "$IOCOM_BUILD/iocom" "$@"; }
count() { ask "$1" nodes --json | jq ".counters.$2"; } # NODE COUNTER
hears() { ask "$1" nodes --json | jq -e --arg n "$2" '.nodes[] | select(.name == $n and .alive)'; }
all_hear() { sees n1 3 && sees n2 3 && sees n3 3; }
gone() { [ ! -d "/proc/$1" ] || [[ $(cat "/proc/$1/stat") == *") Z "* ]]; }
other_net() { local now; now=$(net_of "$1") && [ -n "$now" ] && [ "$now" != "$2" ]; } # NODE THAN
x_words() { # NAME: the words of its agent
	echo iocomd --name "$1" --listen "10.77.0.${1#?}" --port 7800 --period 0.5 --allow-root yes \
		--run-dir "$SCRATCH/$1/run" --state-dir "$SCRATCH/$1/state" --shim "$IOCOM_BUILD/iocom-shim" \
		--munge-socket "$STATE/n${1#?}/munge/socket" --scope "cgroup=$MARK/$1"
}
x_start() { # NAME OPTION...: its sentences are in its log
	local name=$1 root
	shift
	mkdir -p "$SCRATCH/$name"
	while read -r root; do
		mkdir -p "$root/$MARK/$name"
	done < <(awk '$3 == "cgroup2" || ($3 == "cgroup" && $4 ~ /memory|cpu|pids/) { print $2 }' /proc/mounts)
	# shellcheck disable=SC2046
	(
		# As the agent's unit does, if this is permitted.
		[ "$name" != x2 ] || echo -900 2>/dev/null >"/proc/$BASHPID/oom_score_adj"
		exec "$TESTBED" exec "n${name#?}" -- $(x_words "$name") "$@"
	) >>"$SCRATCH/$name/log" 2>&1 9>&- &
	disown
	echo $! >"$SCRATCH/$name/agent.pid"
}

# Kills the network parts of AGENTs (by their pid) at once, and runs COMMAND, if there is any. Prints
# how many ms later the last of them had new ones that listen at port 7700, how many ms COMMAND took,
# and what it said.
cat >"$SCRATCH/kill.py" <<'P'
import os, signal, subprocess, sys, time
def listener(agent):
    for line in open(f"/proc/{agent}/net/tcp"):
        f = line.split()
        if f[1].endswith(":1E14") and f[3] == "0A":
            return f[9]
def net(agent):
    return int(subprocess.run(["pgrep", "-P", agent, "-x", "iocom-net"], stdout=subprocess.PIPE).stdout)
agents, command = sys.argv[1:], None
if "--" in agents:
    agents, command = agents[:agents.index("--")], agents[agents.index("--") + 1:]
before, nets = [listener(a) for a in agents], [net(a) for a in agents]
took, said = 0, ""
began = time.monotonic()
for pid in nets:
    os.kill(pid, signal.SIGKILL)
if command:
    p = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                         stderr=subprocess.STDOUT, text=True)
while any(listener(a) in (None, b) for a, b in zip(agents, before)):
    assert time.monotonic() - began < 30, "it does not come back"
    time.sleep(0.002)
back = time.monotonic() - began
if command:
    said = p.communicate(timeout=60)[0].strip()
    took = time.monotonic() - began
print(int(back * 1000), int(took * 1000), said)
P
kill_nets() { # NODE... [-- COMMAND...]
	local -a agents=()
	while [ $# -gt 0 ] && [ "$1" != -- ]; do
		agents+=("$(agent_of "$1")")
		shift
	done
	python3 "$SCRATCH/kill.py" "${agents[@]}" "$@"
}

# --- hosts that x3 knows by name; of one the name server says nothing --------------------------
cp "$STATE/hosts" "$SCRATCH/hosts"
printf '10.77.0.1 one.iocom\n10.77.0.99 walker.iocom\n' >>"$SCRATCH/hosts"
printf 'nameserver 127.0.0.1\n' >"$SCRATCH/resolv.conf"
printf 'passwd: files\ngroup: files\nhosts: files dns\n' >"$SCRATCH/nsswitch.conf"
for file in hosts resolv.conf nsswitch.conf; do
	nsenter "--mount=$STATE/n3/ns/mnt" mount --bind "$SCRATCH/$file" "/etc/$file"
done
cat >"$SCRATCH/silent.py" <<'P'
import socket, sys
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind(("127.0.0.1", 53))
while True:
    asked = s.recv(512)
    with open(sys.argv[1], "ab") as kept:
        kept.write(asked)
P
"$TESTBED" exec n3 -- python3 "$SCRATCH/silent.py" "$SCRATCH/asked" 9>&- &
disown
mkdir "$SCRATCH/bin"
cp "$IOCOM_BUILD/iocom-net" "$SCRATCH/bin/"
x_start x1 --net-user daemon --net-program "$SCRATCH/bin/iocom-net" --metrics-listen 127.0.0.1
x_start x2
x_start x3 --peers silent.test,quiet.test,walker.iocom:7800,one.iocom:7800

# --- an agent that cannot start -----------------------------------------------------------------
# Each has directories of its own; what is said is in SCRATCH/f.NAME.
fails() { # NAME OPTION...
	local name=$1
	shift
	mkdir -p "$SCRATCH/$name"
	# shellcheck disable=SC2046
	on n1 timeout 60 iocomd --name n9 --listen 10.77.0.1 --port 7900 --run-dir "$SCRATCH/$name/run" \
		--state-dir "$SCRATCH/$name/state" --munge-socket "$STATE/n1/munge/socket" \
		--scope "cgroup=$MARK/x1" --shim "$IOCOM_BUILD/iocom-shim" "$@" >"$SCRATCH/f.$name" 2>&1
	echo "status $?" >>"$SCRATCH/f.$name"
}
program() { # NAME LINE...: a script
	printf '%s\n' '#!/bin/sh' "${@:2}" >"$SCRATCH/bin/$1"
	chmod 755 "$SCRATCH/bin/$1"
}
program mute 'exec sleep 60'
fails mute --net-program "$SCRATCH/bin/mute" &
mute=$!

# --- what it is -----------------------------------------------------------------------------------
until_true 15 all_hear
x_answer() { ask x1 nodes && ask x2 nodes && ask x3 nodes; }
tap_true "x1 to x3 have begun" until_true 15 x_answer
line() { awk -v k="$2:" '$1 == k { $1 = ""; print substr($0, 2) }' "/proc/$1/status"; } # PID KEY
confined() { # PID USER: its user, groups and capabilities, as one line
	local id key
	id=$(id -u "$2")
	[ "$(line "$1" Uid)" = "$id $id $id $id" ] || echo "Uid $(line "$1" Uid)"
	id=$(id -g "$2")
	[ "$(line "$1" Gid)" = "$id $id $id $id" ] || echo "Gid $(line "$1" Gid)"
	[ -z "$(line "$1" Groups)" ] || echo "Groups $(line "$1" Groups)"
	for key in CapInh CapPrm CapEff CapBnd CapAmb; do
		[ "$(line "$1" $key)" = 0000000000000000 ] || echo "$key $(line "$1" $key)"
	done
	[ "$(line "$1" NoNewPrivs)" = 1 ] || echo "NoNewPrivs $(line "$1" NoNewPrivs)"
}
name_of() { readlink "/proc/$1/ns/$2"; }
for node in n1 n2 n3 x1; do
	user=nobody
	! id iocom-net >/dev/null 2>&1 || user=iocom-net
	[ $node != x1 ] || user=daemon
	net=$(net_of $node) names=$(names_of $node) root=$(agent_of $node)
	tap_is "$node: iocom-net is $user and nothing else" "$(confined "$net" $user)" ""
	tap_is "... and so is its helper, iocom-names" "$(confined "$names" $user)" ""
	if nm "$IOCOM_BUILD/iocom-net" 2>/dev/null | grep __asan_init >/dev/null; then
		tap_skip "... a filter of system calls" "built with a sanitizer"
	else
		tap_is "... every thread has a filter of system calls, the helper has none" \
			"$(cat "/proc/$net"/task/*/status | awk '$1 == "Seccomp:" { print $2 }' | sort -u) $(line "$names" Seccomp)" "2 0"
	fi
	tap_is "... its root is empty" "$(ls -A "/proc/$net/root/")" ""
	for ns in mnt ipc uts cgroup; do
		tap_isnt "... its namespace $ns is its own" "$(name_of "$net" $ns)" "$(name_of "$root" $ns)"
	done
	tap_is "... the network's is the agent's" "$(name_of "$net" net)" "$(name_of "$root" net)"
	tap_is "... its descriptors are sockets, epoll, /dev/null and pipes" \
		"$(readlink "/proc/$net"/fd/* | grep -vE '^(socket:|pipe:|anon_inode:\[event(poll|fd)\]$|/dev/null$)' | sort -u)" ""
	tap_is "... the helper's are one socket, /dev/null and the log's pipe" \
		"$(readlink "/proc/$names"/fd/* | sed 's/:.*//' | grep -vx /dev/null | sort | uniq -c | awk '{ print $1, $2 }' | paste -sd ' ')" \
		"1 pipe 1 socket"
done
# The TCP sockets of process PID, as STATE:PORT, hexadecimal; 0A listens.
tcp_of() {
	readlink "/proc/$1"/fd/* | sed -n 's/^socket:\[\(.*\)\]$/\1/p' |
		awk 'NR == FNR { mine[$1]; next } $10 in mine { split($2, a, ":"); print $4 ":" a[2] }' \
			- "/proc/$1/net/tcp" | sort | paste -sd ' '
}
tap_is "iocomd has no TCP socket but the streams' listener (7702)" "$(tcp_of "$(agent_of n1)")" "0A:1E16"
tap_is "... and that of the metrics (7803), where they are asked for" "$(tcp_of "$(agent_of x1)")" "0A:1E7A 0A:1E7B"
tap_is "iocomd does not link what decodes the network's bytes" \
	"$(ldd "$IOCOM_BUILD/iocomd" | grep -E 'nng|microhttpd')" ""
if [ "$(cat "/proc/$(agent_of x2)/oom_score_adj")" = -900 ]; then
	tap_is "an agent that goes last when memory is short: its network part goes before it" \
		"$(cat "/proc/$(net_of x2)/oom_score_adj" "/proc/$(names_of x2)/oom_score_adj" | paste -sd ' ')" "-500 -500"
else
	tap_skip "the network part's share of memory shortage" "no right to lower the agent's"
fi

# --- by hand --------------------------------------------------------------------------------------
tap_is "iocom-net by hand: a sentence, and status 2" "$("$IOCOM_BUILD/iocom-net" 2>&1; echo $?)" \
	"iocom-net: this is the network part of the agent; iocomd starts it (see iocomd(8))
2"
tap_is "... also with arguments, without the gate" "$("$IOCOM_BUILD/iocom-net" 1 1 / 2>/dev/null 3<&-; echo $?)" 2
tap_is "its version is the agent's" "$("$IOCOM_BUILD/iocom-net" --version)" "$("$IOCOM_BUILD/iocomd" --version | sed s/iocomd/iocom-net/)"

# --- killed while jobs run ------------------------------------------------------------------------
JOB=$IOCOM_BUILD/tests/tools/chaosjob
WHILE=8000 # ms
started() { # HOME ID OPTION...: in the background; ID is its status, too
	local home=$1 id=$2
	shift 2
	at "$home" iocom run "$@" -- "$JOB" "$SCRATCH/marks" "$id" 20000 $WHILE \
		>"$SCRATCH/out.$id" 2>"$SCRATCH/err.$id" </dev/null
	echo $? >"$SCRATCH/status.$id"
}
feed() { for ((k = 0; k < 150; k++)); do seq $((k * 100)) $((k * 100 + 99)) && sleep 0.05; done; }
started n1 1 --node n2 &
one=$!
started n2 2 --node n1 &
two=$!
started n2 3 --node n2 &
three=$!
feed | at n1 iocom run --node n2 -- sh -c "echo 4 >>$SCRATCH/marks; cat; exit 4" >"$SCRATCH/out.4" 2>"$SCRATCH/err.4" &
four=$!
detached=$(at n1 iocom run --detach --node n2 -- "$JOB" "$SCRATCH/marks" 5 20000 $WHILE </dev/null)
again=$(at n1 iocom run --detach --restarts 3 --node n2 -- "$JOB" "$SCRATCH/marks" 6 20000 $WHILE </dev/null)
marked() { [ "$(sort -u "$SCRATCH/marks" | wc -l)" -eq 6 ]; }
tap_true "six jobs run" until_true 15 marked
kills1=0 kills2=0 bad='' seconds=0 backs=() firsts=()
for nodes in n1 n2 "n1 n2" n2 n1 "n1 n2" n1 n2; do
	pause 600
	# shellcheck disable=SC2086
	read -r back first said < <(kill_nets $nodes -- "$TESTBED" exec n1 -- iocom run --node n2 -- echo there)
	backs+=("$back") firsts+=("$first")
	[[ $nodes != *n1* ]] || kills1=$((kills1 + 1))
	[[ $nodes != *n2* ]] || kills2=$((kills2 + 1))
	[ "$said" != there ] || continue
	# What was under way to the one that was killed may fail; what is begun afterwards may not.
	seconds=$((seconds + 1))
	echo "# a job begun with the kill of $nodes: $said"
	said=$(at n1 iocom run --node n2 -- echo there 2>&1)
	[ "$said" = there ] || bad+="after a kill of $nodes: $said"$'\n'
done
tap_is "killed eight times, on one node or both: jobs can be begun at once" "$bad" ""
tap_calc "... most begin with the kill" "$seconds <= 3"
echo "# it listens again after ${backs[*]} ms, median $(printf '%s\n' "${backs[@]}" | median)"
echo "# a job begun with the kill has ended after ${firsts[*]} ms, median $(printf '%s\n' "${firsts[@]}" | median)"
wait $one $two $three
wait $four
status4=$?
for id in 1 2 3; do
	tap_is "job $id: its status, and no sentence" "$(cat "$SCRATCH/status.$id" "$SCRATCH/err.$id")" $id
	tap_true "... its output, byte by byte" cmp "$SCRATCH/out.$id" <("$JOB" /dev/null $id 20000 0)
done
tap_is "a job that copies its input: its status" "$status4 $(cat "$SCRATCH/err.4")" "4 "
tap_true "... its output, byte by byte" cmp "$SCRATCH/out.4" <(seq_all() { for ((k = 0; k < 150; k++)); do seq $((k * 100)) $((k * 100 + 99)); done; }; seq_all)
at n3 iocom attach "$detached" >"$SCRATCH/out.5" 2>"$SCRATCH/err.5" </dev/null
tap_is "a detached job: attached to from a third node, its status" "$? $(cat "$SCRATCH/err.5")" "5 "
tap_true "... its output, byte by byte" cmp "$SCRATCH/out.5" <("$JOB" /dev/null 5 20000 0)
at n1 iocom wait "$again" >/dev/null 2>&1
tap_is "a restartable job: its status" "$?" 6
tap_is "each ran once" "$(awk '{ print $1 }' "$SCRATCH/marks" | sort | paste -sd ' ')" "1 2 3 4 5 6"
tap_is "network_restarts counts the kills" "$(count n1 network_restarts) $(count n2 network_restarts)" "$kills1 $kills2"
tap_is "the agents' logs say so" "$(grep -c 'network part has ended, or is ended' "$STATE/n1/agent.log" "$STATE/n2/agent.log" | sed 's/.*://' | paste -sd ' ')" \
	"$kills1 $kills2"
tap_true "all nodes hear each other" until_true 15 all_hear
# A question that no other follows from; the other node's chores may begin a session beside it.
question() { # whether n1, killed and back, has asked n3 in the session that it had
	local before
	before=$(count n3 sessions_begun)
	kill_nets n1 >/dev/null
	kills1=$((kills1 + 1))
	[[ $(at n1 iocom attach n3-0badcafe-1 2>&1) == *"no job of yours"* ]] && [ "$(count n3 sessions_begun)" = "$before" ]
}
kept() { question || question || question; }
tap_true "its node's sessions are kept" kept
kills1=$(count n1 network_restarts) # those of tap_true's subshell, too

# --- killed while jobs begin ----------------------------------------------------------------------
killer() {
	until [ -e "$SCRATCH/killed" ]; do
		kill_nets n$((RANDOM % 2 + 1)) >/dev/null
		pause 250
	done
}
killer &
killing=$!
begin() { # ID
	at n1 iocom run --node n2 -- sh -c "echo $1 >>$SCRATCH/begun; echo out; exit 3" \
		>"$SCRATCH/begun.$1" 2>&1 </dev/null
	echo "$1 $?" >>"$SCRATCH/ended"
}
for id in $(seq 25); do
	begin "$id" &
	other=$!
	begin $((id + 100))
	wait $other
done
: >"$SCRATCH/killed"
wait $killing
touch "$SCRATCH/begun"
wrong=$(while read -r id status; do
	ran=$(grep -cx "$id" "$SCRATCH/begun") said=$(cat "$SCRATCH/begun.$id")
	case $status in
	3) [ "$ran $said" = "1 out" ] && continue ;;
	125) [ "$ran" = 0 ] && [[ $said == "iocom run: "* ]] && continue ;;
	esac
	echo "job $id: status $status, ran $ran times, said: $said"
done <"$SCRATCH/ended")
tap_is "fifty jobs begun between kills: each ran once, or not at all and says why" "$wrong" ""
tap_is "... fifty have ended" "$(wc -l <"$SCRATCH/ended")" 50
echo "# of fifty jobs begun between $(($(count n1 network_restarts) + $(count n2 network_restarts) - kills1 - kills2)) kills $(grep -c ' 3$' "$SCRATCH/ended") ran"
cat "$SCRATCH"/begun.* | grep -vx out | sort | uniq -c | sed 's/^/# said: /'

# --- it hangs ---------------------------------------------------------------------------------------
WHILE=13000
started n1 7 --node n2 &
seven=$!
until_true 10 grep -q '^7 ' "$SCRATCH/marks"
restarts=$(count n2 network_restarts) stopped=$(net_of n2) since=$(ms)
kill -STOP "$stopped"
tap_is "stopped: its node answers, and runs jobs of its own" "$(at n2 iocom run --node n2 -- echo here 2>&1)" here
tap_calc "... at once" "$(($(ms) - since)) < 5000"

# --- meanwhile: agents that cannot start -----------------------------------------------------------
program ends 'exit 0'
program foreign 'exit 0'
chown daemon "$SCRATCH/bin/foreign"
program closed 'exit 0'
chmod 644 "$SCRATCH/bin/closed"
fails gone --net-program "$SCRATCH/bin/gone"
fails foreign --net-program "$SCRATCH/bin/foreign"
fails closed --net-program "$SCRATCH/bin/closed"
fails ends --net-program "$SCRATCH/bin/ends"
fails nobody --net-user no-such-user
fails root --net-user root
refused() { # NAME REGEX: one line, which has this
	tap_like "... $1" "$(cat "$SCRATCH/f.$1")" "$2"
	tap_is "... in one line, and status 1" "$(grep -vc 'warning:' "$SCRATCH/f.$1") $(tail -n 1 "$SCRATCH/f.$1")" "2 status 1"
}
tap_ok "no agent starts with a network part that is ..."
refused gone "cannot start the network part $SCRATCH/bin/gone: No such file"
refused foreign "network part \(--net-program\): .*$SCRATCH/bin/foreign"
refused closed "cannot start the network part $SCRATCH/bin/closed: Permission denied"
refused ends "the network part \(iocom-net\) ended before it was ready"
refused nobody "there is no user no-such-user for the network part"
refused root "may not run as root"
for port in 7900 7901 7902; do
	"$TESTBED" exec n1 -- python3 -c 'import socket, sys
s = socket.socket()
s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
s.bind(("10.77.0.1", int(sys.argv[1])))
s.listen()
open(sys.argv[2], "w").close()
sys.stdin.read()' $port "$SCRATCH/holds.$port" < <(sleep 30) 9>&- &
	holder=$!
	until_true 10 test -e "$SCRATCH/holds.$port"
	fails $port
	tap_like "port $port is in use: the sentence names it" "$(cat "$SCRATCH/f.$port")" "$port.*in use"
	tap_like "... and the agent does not start" "$(cat "$SCRATCH/f.$port")" "status 1"
	kill $holder
	wait $holder 2>/dev/null
done
wait $mute
refused mute "the network part \(iocom-net\) was not ready within 10 s"

# --- hosts by their names ---------------------------------------------------------------------------
accepts() { # NODE NODE: what it hears of the other is new
	local was
	was=$(ask "$1" nodes --json | jq --arg n "$2" '.nodes[] | select(.name == $n) | .sequence')
	until_true 15 eval "[ \"\$(ask $1 nodes --json | jq '.nodes[] | select(.name == \"$2\") | .sequence')\" != '$was' ]"
}
tap_true "a host is found by its name" until_true 15 hears x3 x1
tap_true "... though the name server is silent about others" test -s "$SCRATCH/asked"
tap_is "... and one at an address where nobody is, is not heard" "$(hears x3 x2)" ""
since=$(ms)
moved=$(sed 's/^10.77.0.99 /10.77.0.2 /' "$SCRATCH/hosts")
echo "$moved" >"$SCRATCH/hosts" # the same file, for it is mounted

# --- the program is gone, and comes back -------------------------------------------------------------
page() { on n1 timeout 20 "$IOCOM_BUILD/tests/tools/scrape" 7803; }
tap_true "the page of metrics is served" page
dead=$(net_of x1)
kill -9 "$dead"
tap_like "... also to who asks right after a kill" "$(page)" 'iocom_'
tap_is "... by iocom-net alone: iocomd's threads" \
	"$(cat "/proc/$(agent_of x1)"/task/*/comm | grep -ci -e http -e MHD -e nng)" 0
tap_true "it is another" other_net x1 "$dead"
mv "$SCRATCH/bin/iocom-net" "$SCRATCH/bin/away"
kill -9 "$(net_of x1)"
again_and_again() { [ "$(grep -c "cannot start the network part $SCRATCH/bin/iocom-net: No such file" "$SCRATCH/x1/log")" -ge 3 ]; }
tap_true "its program is gone: the agent says so, and tries again" until_true 10 again_and_again
tap_is "... its own jobs run" "$(ask x1 run --node x1 -- echo here 2>&1)" here
mv "$SCRATCH/bin/away" "$SCRATCH/bin/iocom-net"
tap_true "the program is there again: so is the network part" until_true 10 other_net x1 "$dead"
tap_true "... its page" page
tap_true "... and other nodes hear its news" accepts x3 x1

# --- the helper dies, and the agent ---------------------------------------------------------------
dead=$(net_of x3)
kill -9 "$(names_of x3)"
tap_true "the helper is killed: both begin anew" until_true 10 other_net x3 "$dead"
tap_true "... and names are found" accepts x3 x1
dead=$(net_of x2) helper=$(names_of x2)
kill -9 "$(agent_of x2)"
tap_true "the agent is killed: its network part ends, too" until_true 5 gone "$dead"
tap_true "... and the helper" until_true 5 gone "$helper"
: >"$SCRATCH/x2/log"
x_start x2
tap_true "the next agent begins at once" until_true 15 ask x2 nodes
tap_is "... its ports are free" "$(grep -c 'in use' "$SCRATCH/x2/log")" 0

# --- what was waited for ----------------------------------------------------------------------------
tap_true "stopped: it was killed, and began anew" until_true 30 other_net n2 "$stopped"
tap_is "... its end is counted, once" "$(count n2 network_restarts)" $((restarts + 1))
tap_like "... and the log says why" "$(cat "$STATE/n2/agent.log")" "it did not answer in time"
wait $seven
tap_is "... the job that ran has its status" "$(cat "$SCRATCH/status.7" "$SCRATCH/err.7")" 7
tap_true "... and its output, byte by byte" cmp "$SCRATCH/out.7" <("$JOB" /dev/null 7 20000 0)
tap_true "... all nodes hear each other" until_true 15 all_hear
tap_is "... and jobs go there" "$(at n1 iocom run --node n2 -- echo there 2>&1)" there
tap_true "a host whose address has changed is found" until_true 60 hears x3 x2
echo "# found at its new address $(($(ms) - since)) ms after the change, at the latest"
[ "$TAP_FAILED" -eq 0 ] || tail -n 15 "$STATE"/n?/agent.log "$SCRATCH"/x?/log | sed 's/^/# | /'
tap_done
