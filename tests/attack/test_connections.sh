#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# Malformed frames, each bound exceeded by one, many slow connections, and sockets tried by users
# who may not use them.
set -uo pipefail
cd "$(dirname "$0")/../.."
. tests/lib/tap.sh
. tests/attack/lib.sh
munge_up alpha
munge_up beta alpha
agent_up alpha 7930 --listen 127.0.0.1 --peers 127.0.0.1:7934 --user-jobs-max 300
agent_up beta 7934 --listen 127.0.0.1 --peers 127.0.0.1:7930
until_true 10 sees alpha 2
until_true 10 sees beta 2
SOCKET=$DIR/alpha/run/iocom.sock
run() { at alpha as $VICTIM "$iocom" run --node beta -- "$@"; }
tap_is "a job of an ordinary user runs" "$(run id -u)" $VICTIM

# --- frames ---
refused() { # HOW WHERE [UID]: 1 when the agent answers with its reason, or hangs up
	local out
	out=$("$TOOLS/forge_frame" "$@")
	echo "$out"
	[[ $out != refused:* && $out != closed ]]
}
tcp() { attack "job port: $1" alpha "${3-refused a job stream}" refused "$2" 7932; } # ATTACK HOW [PATTERN]
own() { attack "own socket: $1" alpha "${3-of uid $MALLORY: }" refused "$2" "$SOCKET" $MALLORY; }
tcp "4 KiB of random bytes" random 'job streams only'
tcp "another version" version 'another version of iocom'
tcp "a frame longer than any, by one byte" frame-long 'job streams only'
tcp "a frame of another kind" type 'begins with a handshake'
tcp "a frame of no kind" type-unknown 'begins with a handshake'
# A start in clear is not decoded: what is in it matters only at the node's own socket, and where the
# client has proven that home gave it the job's key.
tcp "an empty start" empty 'in clear'
tcp "four billion entries in five bytes" claim 'in clear'
tcp "lists in lists, a million deep" deep 'in clear'
tcp "4 MiB of small numbers" numbers 'in clear'
tcp "a job of 3 MiB of small numbers" spec-numbers 'in clear'
tcp "a start without a job" no-spec 'in clear'
tcp "a job of nonsense" spec-nonsense 'in clear'
tcp "a job longer than any, by one byte" spec-long 'in clear'
tcp "one argument too many" argv-many 'in clear'
tcp "no arguments" argv-none 'in clear'
tcp "a directory too long" cwd-long 'in clear'
tcp "a relative directory" cwd-relative 'in clear'
tcp "an executable too long" executable-long 'in clear'
tcp "umask of ten bits" umask-wide 'in clear'
tcp "a fourth descriptor closed" closed-wide 'in clear'
tcp "a limit that is none" limit-unknown 'in clear'
tcp "a soft limit above its hard limit" limit-soft 'in clear'
tcp "job ../../etc/cron.d/x" job-dots 'in clear'
tcp "job a/b" job-slash 'in clear'
tcp "a job with a NUL" job-nul 'in clear'
tcp "a job's name too long, by one byte" job-long 'in clear'
tcp "a job with a line end, a line of its own in the log" job-line 'in clear'
own "4 KiB of random bytes" random
own "another version" version
own "a frame longer than any, by one byte" frame-long
own "a request longer than any, by one byte" request-long
own "a frame of another kind" type
own "an empty start" empty
own "lists in lists, a million deep" deep
own "four billion entries in five bytes" claim
own "4 MiB of small numbers" numbers
own "a job of nonsense" spec-nonsense
own "job ../../etc/cron.d/x" job-dots
own "a job with a line end" job-line
own "a request without a name" no-op ''
own "a request that is none" op-unknown ''
tap_is "jobs run as before" "$(run id -u)" $VICTIM

# --- slow connections: far more than there is room for, each sends a byte a second ---
before=$(counter beta streams_refused)
log_mark beta
"$TOOLS/forge_frame" slow 7936 1100 7 >"$DIR/slow" &
slow=$!
PIDS+=($slow)
for port in 7934 7935; do # bulletins and control, which nng serves
	"$TOOLS/forge_frame" slow $port 1100 7 >"$DIR/slow.$port" &
	PIDS+=($!)
	until_true 60 grep -q open "$DIR/slow.$port"
done
until_true 60 grep -q open "$DIR/slow"
good=0
for _ in 1 2 3 4 5 6 7 8 9 10; do
	[ "$(run echo served)" = served ] && good=$((good + 1))
done
tap_is "ten jobs of others run while 1,100 connections to each port are slow" "$good" 10
wait $slow
cut=$(($(counter beta streams_refused) - before))
tap_calc "all slow ones were cut, and counted ($(tail -n 1 "$DIR/slow"); counted $cut)" "$cut >= 1100"
crowded=$(spaced beta 'have not begun, most of them from 127.0.0.66' 5)
tap_like "the crowd was logged, not each of it" "$crowded" '^[1-9][0-9]*$'
late=$(spaced beta 'did not come within 5 s' 5)
tap_like "nor each that came late" "$late" '^[1-9][0-9]*$'
row "slow-loris: 3,300 connections, a byte a second" yes "$([ "$crowded" != close ] && echo once)"
mkfifo "$DIR/hold"
log_mark alpha
"$TOOLS/forge_frame" crowd "$SOCKET" 600 $MALLORY <"$DIR/hold" >"$DIR/own" &
PIDS+=($!)
exec 7>"$DIR/hold"
until_true 60 grep -q . "$DIR/own"
tap_is "one user's 600 connections to the agent's socket: 240 are let in" "$(cat "$DIR/own")" 360
tap_is "others are served meanwhile" "$(run echo served)" served
judge "600 connections of one user to the agent's socket" alpha "no room for a connection of uid $MALLORY" yes - 10
exec 7>&-
tap_calc "those sent away are counted" "$(counter alpha clients_refused) == 360"

# --- leases that are asked for and never used ---
hoard() { # 1 when it is refused more
	"$TOOLS/forge_start" hoard "$DIR/alpha/run" alpha $MALLORY "$1"
}
tap_true "a user may ask for 300 places (user_jobs_max)" hoard 300
attack "a user asks for one more place" alpha 'has 300 jobs there, the limit' hoard 1
tap_is "others have theirs" "$(at alpha as $VICTIM "$iocom" run --node alpha -- echo served)" served

# --- the sockets and directories, tried by users who may not use them ---
at alpha as $VICTIM "$iocom" run --node beta -- sleep 777 >/dev/null 2>&1 &
job_running() { at beta "$iocom" jobs --json | jq -r '.jobs[] | select(.state=="running" and (.command | test("sleep 777"))) | .job' | grep .; }
until_true 10 job_running
JOB=$(job_running)
shim=$DIR/beta/run/jobs/$JOB.sock
tap_true "a job's control socket is there" test -S "$shim"
tap_is "and root's alone, in a directory of root's alone" "$(stat -c '%a %u' "$shim" "$DIR/beta/run/jobs" | tr '\n' ' ')" "600 0 700 0 "
reach() { "$TOOLS/forge_frame" connect "$shim" "$1"; }
tap_true "root reaches it" reach 0
denied "a user connects to another's job" reach $MALLORY
denied "its owner connects to it" reach $VICTIM
denied "a user lists the jobs' sockets" as $MALLORY ls "$DIR/beta/run/jobs"
denied "a user lists the state directory" as $MALLORY ls "$DIR/beta/state"
denied "a user reads the journal" as $MALLORY cat "$DIR/beta/state/iocom.db"
denied "a user replaces the agent's socket" as $MALLORY mv "$SOCKET" "$SOCKET.old"
denied "a user makes a file beside it" as $MALLORY touch "$DIR/alpha/run/x"
denied "a user signals the agent" as $MALLORY kill -0 "$AGENT_alpha"
mallory() { at "$1" as $MALLORY "$iocom" "${@:2}"; } # AGENT ARGUMENT...
strike() { # AGENT UID: SIGKILL to the job, through that agent
	local out
	out=$("$TOOLS/forge_frame" "kill:$JOB" "$DIR/$1/run/iocom.sock" "$2")
	echo "$out"
	[[ $out == answered* ]]
}
attack "a user signals another's job, at its home" alpha "refused uid $MALLORY to signal job $JOB" strike alpha $MALLORY
attack "a user signals another's job, where it runs" beta "refused uid $MALLORY to signal job $JOB" strike beta $MALLORY
tap_is "it runs on" "$(job_running)" "$JOB"
attack "a user asks why another's job is where it is" alpha "refused uid $MALLORY to explain job $JOB" mallory alpha explain "$JOB"
tap_true "its owner learns it" at alpha as $VICTIM "$iocom" explain "$JOB"
tap_is "a user does not see another's job" \
	"$(mallory beta jobs --all --json | jq "[.jobs[] | select(.uid != $MALLORY)] | length")" 0
claimed() { # asks for the list as root: 1 if another user's job is not in it
	local out
	out=$("$TOOLS/forge_frame" uid-claimed "$DIR/beta/run/iocom.sock" "$1")
	[[ $out == answered* && $out == *"$JOB"* ]]
}
tap_true "root's list has the job" claimed 0
attack "a user says he is uid 0 and lists all jobs" beta '' claimed $MALLORY
tap_is "nor its tasks" "$(mallory beta top -b -n 1 -d 0.3 --json | jq "[.tasks[] | select(.uid != $MALLORY)] | length")" 0
tap_is "root sees it" "$(at beta "$iocom" jobs --json | jq "[.jobs[] | select(.uid == $VICTIM)] | length")" 1
tap_true "its owner signals it" strike alpha $VICTIM
tap_true "and it ends" until_true 10 eval '! job_running'
attack_done
