#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# What cannot move, and nodes that cannot take it: each is one sentence, and the job runs on where
# it was, with all that it had.  A real criu, and one that a test can change (root's jobs).
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1
. tests/lib/tap.sh
. tests/lib/pair.sh
pair_criu || tap_skip_all "there is no criu"
CRIU=$PAIR_CRIU
pair_begin
pair_munged n1 && pair_munged n2 || tap_skip_all "munged does not start"
# The target's criu: what $PAIR/there/WORD says is done before the real one does WORD.
mkdir "$PAIR/there"
cat >"$PAIR/criu" <<END
#!/bin/sh
[ ! -x "$PAIR/there/\$1" ] || . "$PAIR/there/\$1"
exec $CRIU "\$@"
END
chmod 755 "$PAIR/criu"
there() { printf '%s\n' "$2" >"$PAIR/there/$1" && chmod 755 "$PAIR/there/$1"; } # WORD SCRIPT
pair_mover n1 && PAIR_CRIU=$PAIR/criu pair_mover n2 || tap_skip_all "the agents do not start"
until_true 20 pair_meet || tap_skip_all "the agents do not see each other"

cd / || exit 1
# A job that does something (Python) and then says each 10 ms how often it has been round.
begin() { # PYTHON
	rm -f "$PAIR/rounds" "$PAIR/ready"
	pair_on n1 run --node n1 --detach --migratable -- python3 -c "
import time, sys
$1
open('$PAIR/ready', 'w').close()
out = open('$PAIR/rounds', 'a', buffering=1)
i = 0
while True:
    print(i, file=out)
    i += 1
    time.sleep(0.01)
"
}
rounds() { wc -l <"$PAIR/rounds" 2>/dev/null; }
goes_on() { # it runs at n1, and has missed no round
	local before
	[ "$(pair_on n1 jobs --json | jq -r --arg j "$job" '.jobs[] | select(.job == $j) | .state + "@" + .node')" = running@n1 ] || return
	before=$(rounds)
	until_true 10 eval '[ "$(rounds)" -gt '"$((before + 5))"' ]' || return
	awk '$1 != NR - 1 { exit 1 }' "$PAIR/rounds"
}
refuses() { # WHAT PYTHON PATTERN
	local said
	job=$(begin "$2")
	if ! until_true 20 test -e "$PAIR/ready"; then
		tap_fail "$1" "it does not start: $(pair_on n1 attach "$job" 2>&1 | tail -n 3)"
		return
	fi
	said=$(pair_on n1 migrate "$job" n2 2>&1)
	tap_like "$1" "$? $(grep -c . <<<"$said") $said" "^1 1 iocom migrate: $job: it goes on at node n1: .*($3)"
	tap_true "... it goes on there" goes_on
	pair_on n1 kill -KILL "$job" >/dev/null
}

# --- what it has ---
refuses "a deleted file" "f = open('$PAIR/gone', 'w+'); import os; os.unlink('$PAIR/gone')" 'deleted'
refuses "a mapping of a deleted file" "import mmap, os
f = open('$PAIR/gone', 'wb+'); f.truncate(8192); m = mmap.mmap(f.fileno(), 8192); f.close(); os.unlink('$PAIR/gone')" 'deleted'
refuses "a device" "f = open('/dev/fuse', 'rb+', buffering=0)" 'device'
refuses "a socket to another program" "import socket; s = socket.socket(socket.AF_UNIX); s.bind('$PAIR/sock')" 'socket'
refuses "a listener" "import socket; s = socket.create_server(('127.0.0.1', 0))" 'network'
refuses "a named pipe" "import os; os.mkfifo('$PAIR/fifo'); f = os.open('$PAIR/fifo', os.O_RDWR)" 'named pipe'
refuses "an io_uring" "import ctypes; fd = ctypes.CDLL(None, use_errno=True).syscall(425, 4, ctypes.create_string_buffer(120)); assert fd >= 0" 'io_uring'
refuses "namespaces of its own" "import ctypes; assert ctypes.CDLL(None).unshare(0x04000000) == 0" 'namespace'

# A debugger of the node has it.
job=$(begin "")
until_true 20 test -e "$PAIR/ready"
python3 -c 'import ctypes, os, sys, time
libc, pid = ctypes.CDLL(None), int(sys.argv[1])
assert libc.ptrace(16, pid, 0, 0) == 0
os.waitpid(pid, 0x40000000)
libc.ptrace(7, pid, 0, 0)
print(flush=True)
time.sleep(1000)' "$(pgrep -f "$PAIR/rounds" | xargs -I{} grep -lx python3 /proc/{}/comm | cut -d/ -f3)" >"$PAIR/traces" &
tracer=$!
until_true 20 test -s "$PAIR/traces"
tap_like "a process that is traced" "$(pair_on n1 migrate "$job" n2 2>&1)" "it goes on at node n1: .*(traced|debugger|could not be stopped)"
kill -9 $tracer
wait $tracer 2>/dev/null
tap_true "... it goes on there" goes_on
pair_on n1 kill -KILL "$job" >/dev/null

# --- the node there ---
plain=""
there --version "echo 'Version: 3.17.1'; exit 0"
refuses "a criu that is too old" "$plain" 'criu 3\.17 is too old: 4\.0 is the oldest'
there --version "echo 'I am somebody else'; exit 0"
refuses "a program that is no criu" "$plain" 'does not say its version as criu does'
rm -f "$PAIR/there/--version"
mv "$PAIR/criu" "$PAIR/criu.away"
refuses "no criu" "$plain" "there is no criu at"
mv "$PAIR/criu.away" "$PAIR/criu"
there restore "rm -f '$PAIR/here-only'"
refuses "a file that is not there" "open('$PAIR/here-only', 'w').write('x'); f = open('$PAIR/here-only')" 'here-only'
there restore "echo more >>'$PAIR/changed'"
refuses "a file that is another there" "open('$PAIR/changed', 'w').write('x'); f = open('$PAIR/changed')" 'changed'
there restore "exit 1"
refuses "a criu that fails" "$plain" 'criu could not restore it'
there restore "kill -9 \$\$"
refuses "a criu that is killed" "$plain" 'criu'
rm -f "$PAIR/there/restore"

# --- two at once, and one that ends meanwhile ---
job=$(begin "")
until_true 20 test -e "$PAIR/ready"
there restore "touch '$PAIR/reached'; sleep 1"
pair_on n1 migrate "$job" n2 >"$PAIR/first" 2>&1 &
first=$!
until_true 20 test -e "$PAIR/reached"
said=$(pair_on n1 migrate "$job" n2 2>&1)
tap_like "a second move of one job" "$? $said" "^1 iocom migrate: .*on its way already"
state_of() { pair_on n1 jobs --json | jq -r --arg j "$1" '.jobs[] | select(.job == $j) | .state'; } # JOB
tap_is "meanwhile it is listed as moving" "$(state_of "$job")" moving
wait $first
tap_is "the first one goes on" "$?" 0
runs_again() { [ "$(state_of "$job")" = running ]; }
tap_true "then as running" until_true 10 runs_again
tap_true "and the job has missed no round" awk '$1 != NR - 1 { exit 1 }' "$PAIR/rounds"
rm -f "$PAIR/there/restore" "$PAIR/reached"
pair_on n1 kill -KILL "$job" >/dev/null
job=$(begin "")
until_true 20 test -e "$PAIR/ready"
there --version "touch '$PAIR/reached'; sleep 1; exec $CRIU --version"
pair_on n1 migrate "$job" n2 >"$PAIR/first" 2>&1 &
first=$!
until_true 20 test -e "$PAIR/reached"
pair_on n1 kill -KILL "$job" >/dev/null
wait $first
tap_like "one that is killed meanwhile" "$? $(cat "$PAIR/first")" "^1 iocom migrate: .*(has ended|it goes on at node n1)"
IOCOM_RUN_DIR=$PAIR/n1/run timeout 60 "$IOCOM_BUILD/iocom" wait "$job" >/dev/null 2>&1
tap_is "and its end is told" "$?" 137

# --- a target whose processor can do less, as its /proc says ---
newest=$(grep -m 1 -E '^(flags|Features)' /proc/cpuinfo | tr ' ' '\n' | grep -xE 'avx2|sse4_2|crc32|aes' | head -n 1)
sed "s/ $newest / /g; s/ $newest\$//" /proc/cpuinfo >"$PAIR/cpuinfo"
mkdir "$PAIR/older"
ln -s "$IOCOM_BUILD"/* "$PAIR/older/"
rm "$PAIR/older/iocomd"
printf '#!/bin/sh\nexec unshare -m sh -c '\''mount --bind "$0" /proc/cpuinfo && exec "$@"'\'' %s "%s" "$@"\n' "$PAIR/cpuinfo" \
	"$IOCOM_BUILD/iocomd" >"$PAIR/older/iocomd"
chmod 755 "$PAIR/older/iocomd"
pair_stop n2
IOCOM_BUILD=$PAIR/older pair_mover n2
until_true 20 pair_meet
refuses "a processor that can do less" "$plain" "node n2 cannot take it: its processor lacks what the job may use: $newest"
pair_stop n2
pair_mover n2
until_true 20 pair_meet

left() { find /sys/fs/cgroup -path "*$PAIR_SCOPE*" -path '*jobs/*' -type d -name 'n1-*' | head -n 3; }
none_left() { [ -z "$(left)" ]; }
until_true 15 none_left
tap_is "no control group of a job is left" "$(left)" ""
tap_is "no agent complained" "$(grep -hE ' (error|critical):' "$PAIR"/n?/log | head -n 3)" ""
pair_stop n1
pair_stop n2
tap_is "both agents stop well" "$(cat "$PAIR/bad" 2>/dev/null)" ""
tap_done
