#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# `iocom run` between two nodes: streams, statuses, identity, bad input, agents that end and
# start, and bytes compared with truth through the agents.
set -uo pipefail
cd "$(dirname "$0")/../.."
. tests/lib/tap.sh
. tests/lib/cluster.sh
cluster_up --nodes 3 --disk 40,40,0 --mem 1500
STATE=${IOCOM_TESTBED_DIR:-/run/${IOCOM_TESTBED_MARK:-iocom-testbed}}
tap_true "every node hears of every other" until_true 10 sees n1 3
r() { on n1 iocom run --node n2 "$@"; }
status() { "$@" >/dev/null 2>&1; echo $?; }

# --- streams ---
head -c 100000000 /dev/urandom >"$SCRATCH/in"
truth=$(sha256sum <"$SCRATCH/in")
tap_is "100 MB through stdin and stdout" "$(r -- cat <"$SCRATCH/in" | sha256sum)" "$truth"
tap_is "100 MB through stdin and stderr" "$(r -- sh -c 'cat >&2' <"$SCRATCH/in" 2>&1 >/dev/null | sha256sum)" "$truth"
tap_is "both at once" "$(r -- sh -c 'tee /dev/stderr' <"$SCRATCH/in" 2>"$SCRATCH/err" | sha256sum; sha256sum <"$SCRATCH/err")" "$truth
$truth"
rm -f "$SCRATCH/err" "$SCRATCH/in"
tap_is "empty stdin is end of file" "$(r -- wc -c </dev/null)" 0
tap_is "--stdin none: nothing of ours" "$(echo x | r --stdin none -- wc -c)" 0
tap_is "-n is a number of tasks: who means no input hears of --stdin none" \
	"$(r -n -- wc -c >"$SCRATCH/o" 2>&1; echo $?) $(grep -c -- '-n wants a number of tasks.* use --stdin none$' "$SCRATCH/o")" "125 1"
tap_is "a loop that reads: all of its lines" "$(seq 3 | on n1 sh -c 'while read -r i; do iocom run --stdin none --node n2 -- echo "$i"; done' | tr -d '\n')" 123
tap_is "without it the job takes them" "$(seq 3 | on n1 sh -c 'while read -r i; do iocom run --node n2 -- cat; done' | tr -d '\n')" 23
tap_is "--stdin none with --pty: refused" "$(r --stdin none --pty -- true >"$SCRATCH/o" 2>&1; echo $?)" 125
tap_like "and why" "$(cat "$SCRATCH/o")" '--pty needs an input'
tap_is "a reader that leaves ends the job" "$(timeout 20 "$TESTBED" exec n1 -- sh -c 'iocom run --node n2 -- yes | head -n 1')" y

# --- statuses ---
tap_is "exit 0" "$(status r -- true)" 0
tap_is "exit 3" "$(status r -- sh -c 'exit 3')" 3
tap_is "a path that exists nowhere: 127" "$(status on n1 iocom run -- /no/such/command)" 127
tap_is "no such command by name: 127" "$(status r -- no-such-command-here)" 127
tap_is "a path that is not at the node that was named: 127, too" "$(status r -- /no/such/command)" 127
tap_is "not executable: 126" "$(status r -- /etc/passwd)" 126
mkdir -p "$SCRATCH/bin/shut"
echo x >"$SCRATCH/bin/plain"
path() { on n1 sh -c "run=\$(command -v iocom); PATH=\$1:/usr/bin:/bin; shift; exec \$run run \"\$@\"" - "$@"; }
tap_is "on PATH and not executable: 126, here and there" \
	"$(status path "$SCRATCH/bin" -- plain) $(status path "$SCRATCH/bin" --node n2 -- plain)" "126 126"
user_path() { "$TESTBED" exec n1 --user nobody -- sh -c "run=\$(command -v iocom); PATH=$SCRATCH/bin/shut:/root:/usr/bin:/bin; exec \$run run $*"; }
chmod 0 "$SCRATCH/bin/shut"
tap_is "a directory of PATH that one may not search: 127, here and there" \
	"$(status user_path -- no-such-command-here) $(status user_path --node n2 -- no-such-command-here)" "127 127"
tap_is "death by SIGKILL: 137" "$(status r -- sh -c 'kill -9 $$')" 137
r -- sh -c 'trap "echo got TERM; exit 7" TERM; echo ready; while :; do sleep 0.1; done' >"$SCRATCH/sig" &
until_true 10 grep -q ready "$SCRATCH/sig"
pkill -TERM -f 'iocom run --node n2 -- sh -c trap'
wait $!
tap_is "SIGTERM is forwarded, and its status comes back" "$?" 7
tap_like "the job's handler ran" "$(cat "$SCRATCH/sig")" 'got TERM'

# --- many ends at once: home hears of several in one message, and gives each its own ---
on n1 sh -c 'for i in $(seq 24); do iocom run --node n2 -- sh -c "exit $((100 + i))" & done; wait'
ends() { on n1 iocom jobs --all --json | jq -c '[.. | objects | select(.state? == "exited") | .exit_value | select(. > 100 and . < 125)] | sort'; }
all_ends() { [ "$(ends)" = "$(seq 101 124 | jq -sc .)" ]; }
tap_true "home knows how each of 24 ended" until_true 10 all_ends

# --- the same process, on the other node ---
tap_is "it ran on n2" "$(r -- hostname)" n2
user() { "$TESTBED" exec n1 --user nobody -- sh -c "cd $DISK && umask 027 && ulimit -Sn 2000 && ulimit -Hn 3000 && $*"; }
here=$(user 'id; umask; pwd; echo $FOO; ulimit -Sn; ulimit -Hn' 2>&1)
there=$(FOO= user 'iocom run --node n2 -- sh -c "id; umask; pwd; echo \$FOO; ulimit -Sn; ulimit -Hn"' 2>&1)
tap_is "identity, umask, directory, limits as at home" "$there" "$here"
tap_is "environment goes along" "$(FOO='a b' r -- sh -c 'echo "$FOO"')" 'a b'
tap_is "--env none" "$(FOO=x r --env none -- sh -c 'echo "[$FOO]"')" '[]'
tap_is "--env LIST" "$(FOO=x BAR=y r --env BAR -- sh -c 'echo "[$FOO$BAR]"')" '[y]'

# --- admission ---
on n1 mkdir -p $DISK/only-here
cd_run() { on n1 sh -c "cd $DISK/only-here && iocom run $* -- hostname"; }
tap_is "directory missing at the target: refused" "$(cd_run --node n2 2>"$SCRATCH/e"; echo $?)" 125
tap_like "the sentence names the directory" "$(cat "$SCRATCH/e")" "only-here"
refused=$(on n1 iocom jobs --here --all --json | jq -r '.jobs[0] | "\(.job) \(.state)"')
tap_like "jobs lists it" "$refused" ' failed$'
tap_is "and the node that was asked for" "$(on n1 iocom jobs --here --all --json | jq -r '.jobs[0].node')" n2
tap_like "explain: who refused it, when, why; and what was decided" \
	"$(on n1 iocom explain "${refused% *}" | tr '\n' ' ')" \
	'did not run \(20[0-9-]+ [0-9:]+\): node n2 refused the job \(path-missing\): .*only-here.*You asked for n2; least-delay would have taken n.*n2: path-missing: '
tap_is "explain --json" "$(on n1 iocom explain --json last | jq -c '[.record.state, .place.failed, .place.forced, .place.refused[0].node, (.place.plan.reasons | length > 0)]')" \
	'["failed",true,true,"n2",true]'
tap_is "and of a job that ran there is no such thing" "$(r -- true; on n1 iocom explain --json last | jq -c '[.place.node, .place.failed, .place.refused]')" \
	'["n2",null,[]]'
tap_like "another user's is nobody's to explain" "$("$TESTBED" exec n1 --user nobody -- iocom explain "${refused% *}" 2>&1)" 'no job of yours named'
tap_like "at the node where it ran: its home tells" \
	"$(on n2 iocom explain "$(on n2 iocom jobs --here --all --json | jq -r '[.jobs[] | select(.home=="n1")][0].job')" 2>&1)" \
	'^You asked for n2; least-delay would have taken'

# --- jobs that do not fit ---
tap_is "more memory than the named node has: taken all the same" "$(r --mem 1Ti -- hostname)" n2
explained=$(on n1 iocom explain last)
tap_like "explain says so" "$(tr '\n' ' ' <<<"$explained")" 'n2 was asked for by name: it has no room for the job.s memory \([0-9]+ \+ 1099512 > 1500 MB\), and is taken all the same'
tap_is "and does not call it refused" "$(grep -cE '^ *n2: mem-fits' <<<"$explained")" 0
tap_is "it fits nowhere and no node is named: home" "$(on n1 iocom run -v --mem 1Ti -- hostname 2>"$SCRATCH/e")" n1
tap_like "-v says why" "$(cat "$SCRATCH/e")" 'job n1-[^ ]*: .*at home, on n1: no other node has room for its memory'
tap_is "bs with nodes enough for no one: home" \
	"$(on n1 iocom run -v --policy bs --mem 1Ti -- hostname 2>"$SCRATCH/e")" n1
tap_like "-v says that there is no queue" "$(cat "$SCRATCH/e")" 'bs would make it wait, .*there is no queue: it runs at home, on n1\.( Expected: [0-9].* at home\.)?$'
for i in 1 2 3; do r -- true; done
tap_is "jobs --all: the newest" "$(on n1 iocom jobs --all --limit 2 | awk '$2 == "exited"' | wc -l)" 2
tap_like "and how many more" "$(on n1 iocom jobs --all --limit 2)" 'and [0-9]+ older \(--limit 0: all\)'
tap_is "--limit 0: all" "$(grep -cE 'older \(--limit' <<<"$(on n1 iocom jobs --all --limit 0)")" 0
tap_is "--json has all where no limit is given" "$(on n1 iocom jobs --all --limit 2 --json | jq '[.jobs[] | select(.end_ns > 0)] | length') $(on n1 iocom jobs --all --json | jq '.jobs | length > 2')" "2 true"
tap_is "a limit that is none: 2" "$(status on n1 iocom jobs --all --limit few)" 2
r -- true "$(printf 'x%.0s' {1..300})"
tap_is "a terminal's width is enough for a command" \
	"$(on n1 script -qec 'stty cols 150; iocom jobs --all --limit 1' /dev/null | tr -d '\r' | awk 'length > 150' | wc -l)" 0
tap_like "else it is whole" "$(on n1 iocom jobs --all --limit 1)" 'true x{200}'

# --- bad input ---
tap_is "unknown node: 125" "$(on n1 iocom run --node nowhere -- true 2>"$SCRATCH/e"; echo $?)" 125
tap_like "the sentence names it" "$(cat "$SCRATCH/e")" nowhere
tap_is "unknown policy: 125" "$(on n1 iocom run --policy best -- true 2>"$SCRATCH/e"; echo $?)" 125
tap_like "the sentence names it" "$(cat "$SCRATCH/e")" best
tap_like "and the known ones" "$(cat "$SCRATCH/e")" 'known: .*nlb.*iocm-re'
tap_is "but none that the agent refuses" "$(grep -cE 'feedback|wal-fc' <<<"$(cat "$SCRATCH/e")")" 0
tap_is "place: unknown policy: 1" "$(status on n1 iocom place --policy best -- true)" 1
tap_is "run without a command: 125" "$(status on n1 iocom run)" 125
tap_is "run with an unknown option: 125" "$(status on n1 iocom run --wrong -- true)" 125
tap_is "nodes with an unknown option: 2" "$(status on n1 iocom nodes --wrong)" 2
tap_is "unknown command: 2" "$(status on n1 iocom frobnicate)" 2
tap_is "no agent: run says so, 125" "$(IOCOM_RUN_DIR=/nowhere "$IOCOM_BUILD/iocom" run -- true 2>"$SCRATCH/e"; echo $?)" 125
tap_like "and what to do" "$(cat "$SCRATCH/e")" 'iocomd'
tap_is "no agent: nodes, 1" "$(IOCOM_RUN_DIR=/nowhere status "$IOCOM_BUILD/iocom" nodes)" 1
tap_is "explain of an unknown job: 1" "$(status on n1 iocom explain no-such-job)" 1
MUNGE=$(on n1 sh -c 'echo "$IOCOM_MUNGE_SOCKET"')
agent() { "$TESTBED" exec n1 -- iocomd --run-dir "$SCRATCH/run" --state-dir "$SCRATCH/state" --port 7800 "$@" 2>&1; }
tap_like "port in use" "$(agent --listen 10.77.0.1 --port 7700 --peers 10.77.0.9 --munge-socket "$MUNGE")" '77(00|01|02).*(in use|uses)'
tap_like "no munged" "$(agent --listen 10.77.0.1 --peers 10.77.0.2 --munge-socket /nowhere/sock)" 'munge'
printf '[iocom]\nperiod = 1\nlisten 10.77.0.1\n' >"$SCRATCH/c.conf"
tap_like "malformed configuration: file and line" "$(agent --config "$SCRATCH/c.conf")" 'c\.conf:3'
printf '[iocom]\nperoid = 1\n' >"$SCRATCH/c.conf"
tap_like "unknown key: file, line, key" "$(agent --config "$SCRATCH/c.conf")" 'c\.conf:2.*peroid'
tap_is "usage error of the agent: 2" "$(status agent --wrong)" 2
tap_like "not root" "$("$TESTBED" exec n1 --user nobody -- iocomd --run-dir /tmp/x --state-dir /tmp/y 2>&1)" 'root'
tap_like "kernel without BTF: said, and what to do" "$(unshare -m sh -c "mount -t tmpfs none /sys/kernel/btf &&
	$IOCOM_BUILD/iocomd --run-dir $SCRATCH/b --state-dir $SCRATCH/b" 2>&1)" 'BTF'
tap_like "top without BTF: the same" "$(unshare -m sh -c "mount -t tmpfs none /sys/kernel/btf &&
	$IOCOM_BUILD/iocom top --direct -b -n 1" 2>&1)" 'BTF'
tap_like "a node without disks is in the matrix" "$(field n1 n3 disks)" '^0$'
tap_is "a job without I/O runs there" "$(on n1 iocom run --node n3 -- hostname)" n3

# --- garbage and other versions on every port ---
for port in 7700 7701 7702; do
	on n2 bash -c "exec 3<>/dev/tcp/10.77.0.1/$port; head -c 4096 /dev/urandom >&3; printf 'ic\\003\\001\\0\\0\\0\\0' >&3" 2>/dev/null
done
on n2 bash -c 'exec 3<>/dev/tcp/10.77.0.1/7702; printf "ic\003\004\0\0\0\0" >&3; timeout 6 cat <&3' >"$SCRATCH/v" 2>/dev/null
tap_is "n1's agent survives garbage" "$(on n2 iocom run --node n1 -- hostname)" n1

# --- journal on a full disk (an agent of its own, this machine only) ---
mkdir -p "$SCRATCH/full" "$SCRATCH/solo"
own_cgroups() { find /sys/fs/cgroup -maxdepth 2 -type d -name iocom; }
before=$(own_cgroups)
mount -t tmpfs -o size=1200k tmpfs "$SCRATCH/full"
"$IOCOM_BUILD/iocomd" --name solo --run-dir "$SCRATCH/solo" --state-dir "$SCRATCH/full/state" \
	--shim "$IOCOM_BUILD/iocom-shim" --port 7900 >"$SCRATCH/solo.log" 2>&1 &
solo=$!
solo_run() { IOCOM_RUN_DIR=$SCRATCH/solo "$IOCOM_BUILD/iocom" run -- "$@"; }
tap_true "an agent of its own starts" until_true 10 test -S "$SCRATCH/solo/iocom.sock"
tap_is "and runs a job" "$(solo_run echo ran)" ran
tap_like "what ended a moment ago is listed as ended" \
	"$(IOCOM_RUN_DIR=$SCRATCH/solo "$IOCOM_BUILD/iocom" jobs --all)" 'exited .* 0  .*echo ran'
tap_like "a second agent on the same journal is refused" \
	"$("$IOCOM_BUILD/iocomd" --run-dir "$SCRATCH/second" --state-dir "$SCRATCH/full/state" 2>&1)" \
	'another iocomd .*--state-dir'
tap_is "place: a command that is nowhere" "$(status on n1 iocom place -- no-such-command-here)" 1
tap_like "place: --node is said to be the user's choice" "$(on n1 iocom place --node n2 -- true)" \
	'You asked for n2; least-delay would have taken'
solo_profile() { IOCOM_RUN_DIR=$SCRATCH/solo "$IOCOM_BUILD/iocom" profile "$@"; }
solo_run dd if=/dev/zero of="$SCRATCH/learn" bs=1M count=32 conv=fsync status=none
tap_is "what a class needs is learned from one run" \
	"$(solo_profile --json dd | jq -c '.profiles | map([.class, .runs, .wall_ms > 0])')" '[["dd",1,true]]'
tap_true "its shares sum to 1" test "$(solo_profile --json dd |
	jq '.profiles[0].last_run.shares | (.cpu + .com + .disk - 1) | fabs < 1e-9')" = true
tap_like "the table names its phases" "$(solo_profile dd)" '^ +1 +(cpu|disk|idle) '
tap_is "the next placement starts from it" \
	"$(IOCOM_RUN_DIR=$SCRATCH/solo "$IOCOM_BUILD/iocom" place --json --class dd -- true | jq -r '(.need // .place.need).requests.source')" profile
tap_is "a class is forgotten" "$(status solo_profile --forget dd)" 0
tap_is "and is unknown then" "$(status solo_profile dd)$(status solo_profile --forget dd)" 11
tap_is "--forget names a class" "$(status solo_profile --forget)" 2
rm -f "$SCRATCH/learn"
head -c 2M /dev/zero >"$SCRATCH/full/fill" 2>/dev/null
out=$(solo_run touch "$SCRATCH/half-done" 2>&1)
tap_is "full disk under the journal: 125" "$?" 125
tap_like "the sentence says why" "$out" '[Nn]o space|full'
tap_true "nothing half-done" test ! -e "$SCRATCH/half-done"
rm "$SCRATCH/full/fill"
tap_is "room again: jobs run again" "$(solo_run echo again)" again
solo_jobs() { IOCOM_RUN_DIR=$SCRATCH/solo "$IOCOM_BUILD/iocom" jobs --all --json | jq -c '.jobs[0]'; }
solo_state() { [ "$(solo_jobs | jq -r .state)" = "$1" ]; }
solo_run sh -c "echo up; while [ ! -e $SCRATCH/go ]; do sleep 0.05; done; exit 3" >"$SCRATCH/up" &
run=$!
until_true 10 grep -q up "$SCRATCH/up"
one_record() { [ "$(find "$SCRATCH/full/state/jobs" -mindepth 1 -maxdepth 1 | wc -l)" = 1 ]; }
until_true 10 one_record # the ends of the jobs before are in the journal
head -c 2M /dev/zero >"$SCRATCH/full/fill" 2>/dev/null
: >"$SCRATCH/go"
wait $run
tap_is "the disk fills while a job runs: its status comes back" "$?" 3
sleep 0.3 # the journal cannot take its end
tap_is "what it wrote stays while the journal cannot take it" "$(find "$SCRATCH/full/state/jobs" -name exit | wc -l)" 1
rm "$SCRATCH/full/fill"
tap_true "room again: the journal has its end" until_true 10 solo_state exited
tap_is "with its status" "$(solo_jobs | jq .exit_value)" 3
tap_is "and its record is gone" "$(ls "$SCRATCH/full/state/jobs")" ""
solo_run sleep 30 2>"$SCRATCH/killed" &
run=$!
until_true 10 solo_state running
pkill -KILL -P $solo -x iocom-shim
wait $run
tap_is "its supervisor killed: 255" "$?" 255
tap_like "its home knows why, and the client says it" "$(cat "$SCRATCH/killed")" "^iocom run: the job's supervisor was killed"
tap_true "the job is lost" until_true 10 solo_state lost
tap_like "and says why" "$(IOCOM_RUN_DIR=$SCRATCH/solo "$IOCOM_BUILD/iocom" jobs --all)" 'supervisor was killed'
# Agents that never live for long must prune their journal, too.
solo_count() { IOCOM_RUN_DIR=$SCRATCH/solo "$IOCOM_BUILD/iocom" jobs --all --json | jq '.jobs | length'; }
solo_keeps() { [ "$(solo_count)" -le "$1" ]; }
tap_calc "more jobs than shall be kept" "$(solo_count) > 3"
kill -KILL $solo
wait $solo 2>/dev/null
"$IOCOM_BUILD/iocomd" --name solo --run-dir "$SCRATCH/solo" --state-dir "$SCRATCH/full/state" \
	--shim "$IOCOM_BUILD/iocom-shim" --port 7900 --keep-jobs 3 >"$SCRATCH/solo.log" 2>&1 &
solo=$!
until_true 10 solo_keeps 1000
tap_calc "a new agent forgets none at once" "$(solo_count) > 3"
tap_true "but within seconds all but the newest" until_true 20 solo_keeps 3
tap_is "which stay" "$(solo_count)" 3
kill -TERM $solo
wait $solo
tap_is "SIGTERM ends the agent with 0" "$?" 0
if [ -n "$before" ]; then
	tap_skip "and it leaves no cgroup behind" "another agent uses iocom/ on this machine"
else
	tap_is "and it leaves no cgroup behind" "$(own_cgroups)" ""
fi
umount "$SCRATCH/full"

# --- bytes compared with truth, through the agents ---
on n1 "$WORK" make $DISK/data 64
bytes() { # NODE JOB FIELD
	"$TESTBED" exec "$1" -- iocom top -b -n 1 -d 0.3 --json | jq --arg j "$2" "[.jobs[] | select(.job==\$j) | .$3] | add // 0"
}
job_of() { on n1 iocom jobs --here --all --json | jq -r '.jobs | sort_by(.submit_ns) | last | .job'; }
on n1 iocom run --policy nlb -- "$WORK" io $DISK/data 1024 64 1
job=$(job_of)
got=$(bytes n1 "$job" explicit_read_bytes)
tap_calc "64 MiB O_DIRECT by a job: within 1 % ($got)" "$got >= 67108864*0.99 && $got <= 67108864*1.01"
on n2 iocom run --policy nlb --class server -- python3 -c '
import socket
s = socket.create_server(("10.77.0.2", 9000)); c, _ = s.accept(); n = 0
while True:
    d = c.recv(1 << 16)
    if not d: break
    n += len(d)
print(n)' >"$SCRATCH/server" &
server=$!
on n1 iocom run --policy nlb --class client -- python3 -c '
import socket, time
for i in range(100):
    try: c = socket.create_connection(("10.77.0.2", 9000)); break
    except OSError: time.sleep(0.1)
for i in range(1024): c.sendall(b"x" * 65536)
c.close()'
wait $server
job=$(job_of)
got=$(bytes n1 "$job" sent_bytes)
tap_is "the server received all" "$(cat "$SCRATCH/server")" 67108864
tap_calc "64 MiB sent over TCP to the other node: within 1 % ($got)" "$got >= 67108864*0.99 && $got <= 67108864*1.01"
got=$("$TESTBED" exec n2 -- iocom top -b -n 1 -d 0.3 --json | jq '[.jobs[] | select(.job | test("^n2-")) | .received_bytes] | max')
tap_calc "64 MiB received by the other node's job: within 1 % ($got)" "$got >= 67108864*0.99 && $got <= 67108864*1.01"
# Wait for enough lines: on a busy machine twenty starts take a while.
on n1 iocom top -b -n 240 -d 0.5 --json >"$SCRATCH/top" &
top=$!
lines() { [ "$(wc -l <"$SCRATCH/top")" -ge "$1" ]; }
until_true 20 lines 1
# (The leak check of a sanitized build would fork a helper of the same name.)
for i in $(seq 20); do ASAN_OPTIONS=detect_leaks=0 on n1 "$WORK" cpu 0.01; done
until_true 20 lines $(($(wc -l <"$SCRATCH/top") + 2))
kill $top
wait $top
tap_is "processes that ended between two lines: each once, marked exited" \
	"$(jq -s '[.[].tasks[] | select(.comm=="work" and .exited)] | length' "$SCRATCH/top")" 20
tap_calc "and with the CPU time they used" \
	"$(jq -s '[.[].tasks[] | select(.comm=="work" and .exited) | .cpu_ms] | min' "$SCRATCH/top") >= 10"
tap_is "an ordinary user sees only his own tasks" "$("$TESTBED" exec n1 --user nobody -- iocom top -b -n 1 -d 0.3 --json | jq '[.tasks[] | select(.uid != 65534)] | length')" 0

# --- agents end and start ---
agent=$(cat "$STATE/n3/agent.pid")
kill -STOP "$agent"
tap_is "an agent that does not answer: 125" "$(on n1 iocom run --node n3 -- true 2>"$SCRATCH/e"; echo $?)" 125
kill -CONT "$agent"
# On a slow machine the node is dropped before it can be asked.
tap_like "who did not, for how long, and what to look at" "$(cat "$SCRATCH/e")" \
	"^iocom run: node (n3 did not answer within 2 s \(is iocomd running there\? last heard [0-9.]+ s ago\)$|'n3' is silent for [0-9]+ s: .*is iocomd running there)"
tap_true "it is back" until_true 10 sees n1 3
tap_is "and runs jobs" "$(on n1 iocom run --node n3 -- hostname)" n3
r -- sh -c "seq 2; until [ -e $SCRATCH/left ]; do sleep 0.05; done; seq 3 12; exit 5" >"$SCRATCH/long" &
run=$!
until_true 10 grep -q 2 "$SCRATCH/long"
agent=$(cat "$STATE/n2/agent.pid")
kill -TERM "$agent"
agent_left() { [ ! -d "/proc/$agent" ] || [[ $(cat "/proc/$agent/stat") == *") Z "* ]]; }
until_true 10 agent_left
: >"$SCRATCH/left"
wait $run
tap_is "SIGTERM to n2's agent leaves its job alone: status" "$?" 5
tap_is "and its output is whole" "$(tail -n 1 "$SCRATCH/long")" 12
tap_true "n1 drops the node that stops" until_true 8 sees n1 2
tap_like "and says since when" "$(on n1 iocom nodes)" 'n2: its agent stopped [0-9.]+ s ago'
tap_done
