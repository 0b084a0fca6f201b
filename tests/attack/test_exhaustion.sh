#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# What one user, or one machine without any right, can make an agent hold or wait for.
set -uo pipefail
cd "$(dirname "$0")/../.."
. tests/lib/tap.sh
. tests/attack/lib.sh
munge_up alpha
agent_up alpha 7961 --listen 127.0.0.1 --address 127.0.0.1 --begin-limit-s 15 # so long it hangs, while it is asked about
SOCKET=$DIR/alpha/run/iocom.sock
run() { at alpha as $VICTIM timeout 60 "$iocom" run --node alpha "$@" 2>&1; }
tap_is "a job of an ordinary user runs" "$(run id -u)" $VICTIM
resident_mb() { awk '/^VmRSS/ { print int($2 / 1024) }' "/proc/$AGENT_alpha/status"; }
before=$(resident_mb)

# Holds in the background until `let_go`; its output is in $DIR/held.
holds() { # UID WAY ARGUMENT...
	mkfifo "$DIR/hold"
	python3 tests/attack/hold.py "$@" <"$DIR/hold" >"$DIR/held" 2>&1 &
	HOLDER=$!
	PIDS+=("$HOLDER")
	exec 7>"$DIR/hold"
	until_true 60 grep -q . "$DIR/held"
}
let_go() {
	exec 7>&-
	wait "$HOLDER"
	rm -f "$DIR/hold"
}

# --- memory: 200 start messages of 4 MiB that lack their end ---
bounded() { # WHAT LOG SECONDS-BETWEEN-LINES
	local held now
	held=$(sed 's/^held //' "$DIR/held") now=$(resident_mb)
	tap_calc "$1: the agent holds 64 MiB, not 600 ($before -> $now MiB, $held of 200 let)" \
		"$now < $before + 150 && $held >= 1 && $held <= 70"
	tap_is "... others are served meanwhile" "$(run echo served)" served
	judge "$1" alpha "$2" yes - "$3"
}
log_mark alpha
holds $MALLORY starts "$SOCKET" 200 3 70
bounded "one user's 200 long job starts" "dropped connections of uid $MALLORY: together they hold more than 64 MiB" 10
let_go
log_mark alpha
holds $MALLORY starts 7963 200 3 70
bounded "200 long job starts from the network" 'incomplete start messages fill 64 MiB; .* from 127.0.0.1' 5
let_go
holds 0 starts "$SOCKET" 40 3 40
tap_is "root has no such bound" "$(cat "$DIR/held")" "held 40"
let_go

# --- names of no job, in each kind of question about a job ---
files() { find "$DIR/alpha/run" "$DIR/alpha/state" ! -name '*.db*' | sort; }
there=$(files)
for uid in $MALLORY 0; do
	log_mark alpha
	tap_is "jobs of 17 odd names, in 5 questions of uid $uid: each is refused" \
		"$(python3 tests/attack/hold.py $uid names "$SOCKET" alpha)" "85 of 85"
	tap_is "no control character is in the log" "$(log_new alpha | grep -c $'[\x01-\x08\x0b-\x1f\x7f]')" 0
done
tap_is "no file was made or removed" "$(files)" "$there"
tap_is "others are served" "$(run echo served)" served
row "names of jobs: paths, NUL, 4 KiB, SQL" yes -

# --- long lists ---
"$TOOLS/forge_start" hoard "$DIR/alpha/run" alpha $MALLORY 1000 >/dev/null
tap_calc "a user has 1,000 jobs to list" "$(at alpha as $MALLORY "$iocom" jobs --all --json | jq '.jobs | length') >= 1000"
read -r refused share < <(python3 tests/attack/hold.py $MALLORY lists "$SOCKET" 20 4 "$AGENT_alpha")
tap_calc "long lists on 20 connections take a quarter of the agent's time ($share; $refused refused)" "$share < 0.65"
row "long lists, asked for on 100 connections" yes -
tap_is "root may have as many as he wants" \
	"$(python3 tests/attack/hold.py 0 lists "$SOCKET" 20 1 "$AGENT_alpha" | cut -d ' ' -f 1)" 0

# --- a supervisor that waits for its user's program, and signals to it ---
install -m 755 /bin/true "$DIR/leased"
chown $MALLORY "$DIR/leased"
holds $MALLORY lease "$DIR/leased"
at alpha as $MALLORY "$iocom" run --node alpha -- "$DIR/leased" >"$DIR/stuck" 2>&1 &
stuck=$!
listed() { at alpha "$iocom" jobs --json | jq -re '.jobs[] | select(.command | test("leased")) | .job'; }
until_true 10 listed >/dev/null
job=$(listed)
order=
for _ in 1 2 3 4 5 6 7 8 9 10; do # so late may a busy machine look that 250 ms are nothing
	order=$(python3 tests/attack/hold.py $MALLORY first "$SOCKET" "$job")
	[ "$order" = "the question" ] && break
done
tap_is "who signals it keeps nobody else waiting" "$order" "the question"
row "signals for a supervisor that hangs" "$([ "$order" = "the question" ] && echo yes || echo no)" -
tap_is "other jobs of the user's run" "$(at alpha as $MALLORY "$iocom" run --node alpha -- echo ran)" ran
wait $stuck
tap_is "the job that does not begin is refused" "$?" 125
tap_like "with the reason" "$(cat "$DIR/stuck")" "did not begin on node alpha within 15000 ms: .*$DIR/leased does not answer"
let_go
tap_is "when its program answers it runs" "$(at alpha as $MALLORY "$iocom" run --node alpha -- "$DIR/leased"; echo $?)" 0
# --- answers that nobody reads: 30 connections, 16 lists of 1,000 jobs each, and no other bound ---
agent_down alpha
agent_up alpha 7961 --listen 127.0.0.1 --address 127.0.0.1 --user-requests-per-s 0
log_mark alpha
dropped=$(counter alpha clients_dropped)
holds $MALLORY answers "$SOCKET" 30 16
tap_calc "some of the 30 are cut ($(cat "$DIR/held"))" "$(sed 's/^held //' "$DIR/held") < 30"
tap_calc "those are counted" "$(counter alpha clients_dropped) > $dropped"
tap_is "... others are served meanwhile" "$(run echo served)" served
judge "answers that one user does not read" alpha "dropped connections of uid $MALLORY: together they hold more than 64 MiB" yes - 10
let_go
attack_done
