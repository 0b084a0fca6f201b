#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# Jobs that outlive their client, between two nodes: detached ones, attach, wait, kill, contact
# lost and found again; which users may attach, and which may not.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=tests/lib/tap.sh disable=SC1091
. tests/lib/tap.sh
# shellcheck source=tests/lib/cluster.sh disable=SC1091
. tests/lib/cluster.sh
cluster_up --nodes 2 --disk 40,40
tap_true "every node hears of the other" until_true 10 sees n1 2
nobody() { timeout 60 "$TESTBED" exec n1 --user nobody -- sh -c "cd / && $*"; }
n1() { timeout 60 "$TESTBED" exec n1 -- "$@"; }
detach() { n1 iocom run --node n2 --detach -- "$@"; }
# Prints the pid of the process that listens at a job's SOCKET.
supervisor_of() {
	python3 -c 'import socket as s, struct, sys
c = s.socket(s.AF_UNIX); c.connect(sys.argv[1])
print(struct.unpack("3i", c.getsockopt(s.SOL_SOCKET, s.SO_PEERCRED, 12))[0])' "$1"
}
RAW=$PWD/tests/cluster/attach_raw.py

# --- detached, and attached to from here ---
job=$(detach sh -c "echo one; until [ -e $SCRATCH/two ]; do sleep 0.05; done; echo two; echo err >&2; hostname; exit 5" </dev/null)
tap_is "run --detach prints the job's name and ends" "$? $job" "0 ${job%% *}"
runs() { n1 iocom jobs | grep -E "^$job +running "; }
until_true 10 runs # home learns it a moment later
tap_like "it runs at the other node" "$(n1 iocom jobs)" "^$job +running .* n2 "
n1 iocom attach "$job" >"$SCRATCH/one" 2>"$SCRATCH/err" &
one=$!
until_true 10 grep -q one "$SCRATCH/one"
: >"$SCRATCH/two"
wait $one
tap_is "attach: all of it, from the first byte" "$? $(tr '\n' ' ' <"$SCRATCH/one")" "5 one two n2 "
tap_is "its errors too" "$(cat "$SCRATCH/err")" err
tap_is "attach after the end, from byte 4" "$(n1 iocom attach --from 4 "$job" 2>/dev/null; echo $?)" "two
n2
5"
big=$(detach sh -c 'seq 200000; exit 6')
n1 iocom wait "$big" >/dev/null
for from in 0 600000 1200000; do
	tap_is "more than waits on its way, from byte $from: all of it" \
		"$(n1 iocom attach --from $from "$big" | cksum; echo "${PIPESTATUS[0]}")" \
		"$(seq 200000 | tail -c +$((from + 1)) | cksum; echo 6)"
done
tap_like "from a byte that never was: refused" "$(n1 iocom attach --from 400 "$job" 2>&1; echo $?)" "ends at 11"
tap_like "--from takes a number" "$(n1 iocom attach --from -3 "$job" 2>&1)" 'number of bytes'
tap_is "wait: its status" "$(n1 iocom wait "$job"; echo $?)" 5
tap_is "wait --json: what happened, where" \
	"$(n1 iocom wait --json "$job" | jq -c '[.state, .node, .status, .end_ns > .start_ns]')" \
	'["exited","n2",5,true]'
tap_like "wait for a job that is not: 125" "$(n1 iocom wait none-such 2>&1; echo $?)" "none-such.*at its home|125"
tap_is "a detached command that cannot be executed: 126, no job's name" \
	"$(detach /etc/passwd 2>/dev/null; echo $?)" 126

killed=$(detach sh -c 'echo kept; sleep 60')
n1 iocom attach "$killed" >"$SCRATCH/kept" 2>&1 &
until_true 10 grep -q kept "$SCRATCH/kept"
socket=$(on n2 sh -c 'echo $IOCOM_RUN_DIR')/jobs/$killed.sock
there=$(test -S "$socket"; echo $?)
kill -KILL "$(supervisor_of "$socket")"
tap_is "its supervisor is killed: lost" "$there $(n1 iocom wait "$killed"; echo $?)" "0 255"
tap_like "wait --json says why" "$(n1 iocom wait --json "$killed" | jq -r .text)" "supervisor was killed"
tap_like "its output is there, and why" "$(n1 iocom attach "$killed" 2>&1)" "^kept|supervisor was killed"
tap_true "its socket is not" until_true 10 test ! -e "$socket"

# --- signals ---
job=$(detach sh -c 'trap "exit 44" USR1; echo ready; while :; do sleep 0.05; done')
n1 iocom attach "$job" >"$SCRATCH/ready" 2>&1 &
tap_true "a job says that it awaits a signal" until_true 10 grep -q ready "$SCRATCH/ready"
n1 iocom kill -USR1 "$job"
tap_is "kill -USR1 of a job at the other node" "$? $(n1 iocom wait "$job"; echo $?)" "0 44"
tap_like "a signal that there is not: said, and 2" "$(n1 iocom kill -FROB "$job" 2>&1; echo $?)" "no signal 'FROB'"
last=$(detach sleep 71)
tap_is "kill takes last too" "$(n1 iocom kill -KILL last; n1 iocom wait "$last"; echo $?)" 137
tap_like "kill of one that has ended: 1" "$(n1 iocom kill "$job" 2>&1; echo $?)" "has ended"
there_kill() { timeout 60 "$TESTBED" exec n2 -- iocom kill "$@" 2>&1; echo $?; }
tap_is "asked at the node where it ran, too" "$(there_kill "$job")" "iocom kill: job $job has ended"$'\n'1
run0=$(detach sleep 600)
tap_is "kill -0 of one that runs there: 0" "$(n1 iocom kill -0 "$run0"; echo $?) $(there_kill -0 "$run0")" "0 0"
n1 iocom kill -9 "$run0"
tap_is "kill with no such signal: 2" "$(n1 iocom kill -NONE "$job" >/dev/null 2>&1; echo $?)" 2
first=$(detach sleep 600)
second=$(detach sleep 600)
n1 sh -c "iocom wait $first $second; echo \$? >$SCRATCH/waited" &
wait=$!
n1 iocom kill -s 9 "$first" "$second"
wait $wait
tap_is "wait for two that are killed: the last one's status" "$(cat "$SCRATCH/waited")" 137
tap_like "jobs --all: state, start, how it ended" "$(n1 iocom jobs --all)" \
	"^$second +killed .* [0-9]{2}:[0-9]{2}:[0-9]{2} .* signal KILL +sleep 600"

# --- a client that attached may leave ---
job=$(detach sh -c 'echo x; sleep 600')
"$TESTBED" exec n1 -- iocom attach "$job" >"$SCRATCH/look" &
look=$!
until_true 10 grep -q x "$SCRATCH/look"
kill -INT $look
wait $look
tap_is "Ctrl-C at attach ends the attach" "$?" 130
tap_like "and not the detached job" "$(n1 iocom jobs)" "^$job +running"

# --- only the job's user ---
tap_like "another user: no such job of his" "$(nobody iocom attach "$job" 2>&1; echo $?)" "no job of yours"
tap_like "nor to wait for" "$(nobody iocom wait "$job" 2>&1)" "no job of yours"
tap_like "nor to kill" "$(nobody iocom kill "$job" 2>&1)" "no job of yours"
kill_of() { nobody iocom kill "$1" 2>&1 | sed "s/$1/JOB/"; }
tap_is "in the words for one that is nobody's" "$(kill_of "$job")" "$(kill_of "${job%-*}-9999")"
kill_there() { timeout 60 "$TESTBED" exec n2 --user nobody -- sh -c "cd / && iocom kill $1" 2>&1 | sed "s/$1/JOB/"; }
tap_is "at the node where it runs, too" "$(kill_there "$job")" "$(kill_of "${job%-*}-9999")"
tap_like "which are these" "$(kill_there "$job")" "no job of yours named JOB runs"
raw() { nobody "python3 $RAW $*"; }
tap_like "at the target, by his own credential: refused" "$(raw network "$job" n2 attach)" "^3 no job of yours"
tap_like "over the local socket: refused" \
	"$(timeout 20 "$TESTBED" exec n2 --user nobody -- sh -c "python3 $RAW \$IOCOM_RUN_DIR/iocom.sock $job n2")" "^3 no job of yours"
root() { n1 python3 "$RAW" "$@"; }
tap_like "without a credential: refused" "$(root network "$job" n2 none)" "^3 .*needs a credential"
tap_like "with junk: refused" "$(root network "$job" n2 junk)" "^3 "
tap_like "with one made to start a job: refused" "$(root network "$job" n2 start)" "^3 .*another purpose"
tap_like "for another node: refused" "$(root network "$job" n1 attach)" "^3 .*meant for node n1"
tap_like "changed on the way: refused" "$(root network "$job" n2 attach 1 resume=00)" "^3 .*its hash differs"
tap_like "the same twice: taken once" "$(root network "$job" n2 attach 2 | tr '\n' ';')" "^5 ;3 .*replay"
tap_like "a job's name that is a path: refused" "$(root network "$job" n2 attach 1 job=../jobs)" "^3 .*malformed"
tap_like "for another job than its stream: refused" "$(root network "$job" n2 attach 1 job=n1-0-1)" \
	"^3 the stream is for job $job, the message for job n1-0-1"
# The key of no ticket at all is that of the job's own client, which nobody else has.
tap_like "with the key of a ticket, but without the ticket: refused" \
	"$(root network "$job" n2 attach 1 ticket)" "^3 .*no job for that key"
n1 iocom kill -9 "$job"

# --- contact lost ---
head -c 30000000 /dev/urandom >"$SCRATCH/in"
truth=$(sha256sum <"$SCRATCH/in")
cut_contact() { on n1 ss -K dst 10.77.0.2 dport = 7702 >/dev/null 2>&1; }
# The next part is sent when one before has come back, and contact was cut.
has() { [ "$(stat -c %s "$SCRATCH/out")" -ge "$1" ]; }
parts() {
	local i
	for i in 0 1 2 3; do
		until_true 10 test -e "$SCRATCH/part$i"
		tail -c "+$((i * 7500000 + 1))" "$SCRATCH/in" | head -c 7500000
	done
}
parts | "$TESTBED" exec n1 -- iocom run --node n2 -- cat 2>"$SCRATCH/cut" >"$SCRATCH/out" &
run=$!
for i in 0 1 2 3; do
	: >"$SCRATCH/part$i"
	until_true 10 has $((i * 7500000 + 1000000)) # on its way
	cut_contact
done
wait $run
tap_is "a run whose connection breaks goes on: status" "$?" 0
tap_is "and every byte is there once" "$(sha256sum <"$SCRATCH/out")" "$truth"
tap_like "it says so" "$(cat "$SCRATCH/cut")" 'contact with node n2 was lost'
"$TESTBED" exec n1 -- iocom run --node n2 --grace 0 -- sh -c 'echo r; sleep 30' >"$SCRATCH/g" 2>&1 &
run=$!
until_true 10 grep -q r "$SCRATCH/g"
cut_contact
wait $run
tap_is "without a grace contact is lost for good: 255" "$?" 255

# --- a client that lives ---
mkfifo "$SCRATCH/quiet"
exec 8<>"$SCRATCH/quiet" # nothing is ever written to it
"$TESTBED" exec n1 -- iocom run --node n2 -- sh -c 'echo l; read x; kill -TERM $$' <"$SCRATCH/quiet" >"$SCRATCH/l" 2>&1 8>&- &
run=$!
until_true 10 grep -q l "$SCRATCH/l"
tap_like "attach last does not take its job, and says where it is" "$(n1 iocom attach last 2>&1; echo $?)" \
	"is attached at 10.77.0.1; --take takes it from there"$'\n'125
tap_is "attach --take does" "$(n1 iocom attach --take last </dev/null >"$SCRATCH/taken"; echo $?)" 143
wait $run
tap_is "its client has lost it" "$?" 255
exec 8>&-
tap_like "attach to it now: how it ended" "$(n1 iocom attach last 2>&1; echo $?)" "has ended with status 143; .*--detach.*"$'\n'143
tap_like "another user has no such job" "$(raw network "$(n1 iocom jobs --here --all --json | jq -r '.jobs[0].job')" n2 attach)" "^3 no job of yours"

# --- a client that was killed ---
"$TESTBED" exec n1 -- iocom run --node n2 -- sh -c "seq 3; until [ -e $SCRATCH/gone ]; do sleep 0.05; done; seq 4 20; exit 9" >"$SCRATCH/k" &
run=$!
until_true 10 grep -q 3 "$SCRATCH/k"
kill -9 $run
wait $run 2>/dev/null
: >"$SCRATCH/gone"
tap_is "its job is taken over by attach last" "$(n1 iocom attach last | tail -n 1; n1 iocom wait last; echo $?)" "20
9"

# --- more than is kept: the beginning and the end ---
job=$(timeout 60 "$TESTBED" exec n1 -- iocom run --node n2 --detach -- sh -c 'echo first; head -c 80000000 /dev/zero; echo; echo last; echo failed >&2; exit 3')
n1 iocom wait "$job" >/dev/null
tap_is "its status is the job's, though bytes are missing" "$(n1 iocom attach "$job" 2>"$SCRATCH/err" | tr -d '\0' | tr '\n' ' '; echo "${PIPESTATUS[0]}")" "first  last 3"
tap_like "the gap is said, and the error is there" "$(cat "$SCRATCH/err")" "iocom attach: bytes [0-9]+ to [0-9]+ of the job's output were not kept \([0-9]+ bytes\)"$'\n'"failed"
tap_is "from a byte in the gap: the end" "$(n1 iocom attach --from 50000000 "$job" 2>/dev/null | tr -d '\0' | tr '\n' ' ')" " last "
# A reader of it that stands still, while the agent goes and comes.
"$TESTBED" exec n1 -- sh -c "iocom attach $job 2>/dev/null | (head -c 6 >$SCRATCH/first; until [ -e $SCRATCH/go ]; do sleep 0.1; done; cat) | tr -d '\\0'" >"$SCRATCH/still" &
still=$!
until_true 10 grep -q first "$SCRATCH/first"

# --- the agent restarts meanwhile ---
job=$(detach sh -c 'for i in $(seq 40); do echo $i; sleep 0.1; done; exit 6')
agent=$(cat "${IOCOM_TESTBED_DIR:-/run/${IOCOM_TESTBED_MARK:-iocom-testbed}}/n2/agent.pid")
mapfile -d '' -t command <"/proc/$agent/cmdline"
kill -9 "$agent"
tap_like "the target's agent is dead: attach says so" "$(n1 iocom attach "$job" 2>&1; echo $?)" \
	'no answer|cannot be reached|silent|closed the connection'
"$TESTBED" exec n2 -- "${command[@]}" >"$SCRATCH/agent.log" 2>&1 &
agent=$!
attached() { n1 iocom attach "$job" >"$SCRATCH/a" 2>"$SCRATCH/err"; [ $? -eq 6 ]; }
tap_true "a new agent finds the job: attach gives its status" until_true 20 attached
tap_is "and every line" "$(sha256sum <"$SCRATCH/a")" "$(seq 40 | sha256sum)"
tap_like "and who read an ended job's output before is counted" "$(cat "$SCRATCH/agent.log")" "1 client of an earlier agent reads"
: >"$SCRATCH/go"
wait $still
tap_is "who gets all of it" "$(cat "$SCRATCH/first" "$SCRATCH/still" | tr '\n' ' ')" "first  last "
knows() { n1 iocom wait "$job"; [ $? -eq 6 ]; }
until_true 10 knows
tap_is "and its home knows how it ended" "$(n1 iocom wait "$job"; echo $?)" 6
kill -TERM $agent
wait $agent
tap_done
