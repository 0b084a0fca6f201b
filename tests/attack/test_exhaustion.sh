#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# What one user, or one machine without any right, can make an agent hold or wait for.
set -uo pipefail
cd "$(dirname "$0")/../.."
. tests/lib/tap.sh
. tests/attack/lib.sh
munge_up alpha
PORT=$(free_ports)
agent_up alpha "$PORT" --listen 127.0.0.1 --address 127.0.0.1 --begin-limit-s 15 # so long it hangs, while it is asked about
SOCKET=$DIR/alpha/run/iocom.sock
run() { at alpha as $VICTIM timeout 60 "$iocom" run --node alpha "$@" 2>&1; }
tap_is "a job of an ordinary user runs" "$(run id -u)" $VICTIM
# After many requests a user may have none left for a moment, and would be refused for that.
in_credit() { at alpha as "$1" "$iocom" nodes >/dev/null 2>&1; } # UID
resident_mb() { awk '/^VmRSS/ { print int($2 / 1024) }' "/proc/$AGENT_alpha/status"; }
before=$(resident_mb)

# Holds in the background until `let_go`; its output is in $DIR/held.
holds() { # UID WAY ARGUMENT...
	rm -f "$DIR/held" # of the holder before: the new one appears only when both ends of the fifo are open
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
holds $MALLORY starts $((PORT + 2)) 200 3 0
now=$(resident_mb)
tap_calc "200 long job starts from the network: none is held, without a key ($before -> $now MiB, $(sed 's/^held //' "$DIR/held") of 200 let)" \
	"$now < $before + 150 && $(sed 's/^held //' "$DIR/held") == 0"
tap_is "... others are served meanwhile" "$(run echo served)" served
judge "200 long job starts from the network" alpha 'refused a job stream from 127.0.0.1: this client has an older version' yes - 0
let_go
holds 0 starts "$SOCKET" 24 3 24
tap_is "root has no such bound" "$(cat "$DIR/held")" "held 24"
let_go

# --- names of no job, in each kind of question about a job ---
files() { find "$DIR/alpha/run" "$DIR/alpha/state" ! -name '*.db*' | sort; }
there=$(files)
for uid in $MALLORY 0; do
	until_true 10 in_credit "$uid"
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
row "long lists, asked for on 20 connections" yes -
tap_is "root may have as many as he wants" \
	"$(python3 tests/attack/hold.py 0 lists "$SOCKET" 20 1 "$AGENT_alpha" | cut -d ' ' -f 1)" 0

# --- a supervisor that waits for its user's program, and signals to it ---
until_true 10 in_credit $MALLORY # after the long lists
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
	until_true 10 in_credit $MALLORY
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
python3 tests/attack/hold.py 0 systemd "$DIR/systemd" >"$DIR/notes" &
PIDS+=($!)
until_true 20 test -S "$DIR/systemd"
AGENT_WRAPPER=(env "NOTIFY_SOCKET=$DIR/systemd" WATCHDOG_USEC=1000000)
agent_up alpha "$PORT" --listen 127.0.0.1 --address 127.0.0.1 --user-requests-per-s 0 \
	--metrics-listen 127.0.0.1:$((PORT + 3))
log_mark alpha
dropped=$(counter alpha clients_dropped)
# A busy machine may not have filled its memory after the 10 s for which a client may read nothing.
for _ in 1 2 3 4; do
	holds $MALLORY answers "$SOCKET" 30 16
	! log_has alpha || break
	let_go
done
tap_calc "some of the 30 are cut ($(cat "$DIR/held"))" "$(sed 's/^held //' "$DIR/held") < 30"
tap_calc "those are counted" "$(counter alpha clients_dropped) > $dropped"
tap_is "... others are served meanwhile" "$(run echo served)" served
judge "answers that one user does not read" alpha "dropped connections of uid $MALLORY: together they hold more than 64 MiB" yes - 10
let_go

# --- no descriptor left, while a connection waits at each listener ---
lowest_free() { # PID
	local fd=0
	while [ -L "/proc/$1/fd/$fd" ]; do fd=$((fd + 1)); done
	echo "$fd"
}
paused=$(counter alpha accepts_paused)
read -r share took < <(python3 tests/attack/hold.py 0 full "$AGENT_alpha" "$(lowest_free "$AGENT_alpha")" 2 "$SOCKET")
tap_calc "without descriptors the agent does not compute all the time ($share)" "$share < 0.3"
times=$(($(counter alpha accepts_paused) - paused))
tap_calc "its listener tries every 100 ms ($times times in $took ms)" "$times >= 1 && $times <= $took / 100 + 40"
tap_is "... and takes what waited when there are some again" "$(run echo served)" served
paused=$(counter alpha accepts_paused)
net=$(network_part alpha)
read -r share took < <(python3 tests/attack/hold.py "$(awk '/^Uid/ { print $2 }' "/proc/$net/status")" full "$net" "$(lowest_free "$net")" 2 $((PORT + 2)) $((PORT + 3)))
tap_calc "without descriptors the network part does not compute all the time ($share)" "$share < 0.3"
more_paused() { [ "$(counter alpha accepts_paused)" -gt "$paused" ]; }
tap_true "its listener of job streams counts that" until_true 5 more_paused
times=$(($(counter alpha accepts_paused) - paused))
tap_calc "... and tries every 100 ms ($times times in $took ms)" "$times <= $took / 100 + 40"
tap_is "... it was not started again" "$(counter alpha network_restarts)" 0
tap_is "... and take what waited when there are some again" "$(run echo served)" served
# --- the last 64 ---
limit=$(prlimit --pid "$AGENT_alpha" --nofile --output SOFT --noheadings)
prlimit --pid "$AGENT_alpha" --nofile=$(($(find "/proc/$AGENT_alpha/fd" | wc -l) + 40)):
tap_like "the last descriptors are not for everybody" "$(at alpha as $MALLORY "$iocom" nodes 2>&1)" "no descriptor left for you"
tap_calc "... they are for root, who sees it counted" "$(counter alpha descriptors_refused) >= 1"
prlimit --pid "$AGENT_alpha" --nofile="$limit":
tap_is "with descriptors again all are served" "$(run echo served)" served
row "no descriptor left" yes -

# --- systemd's watchdog, of 1 s ---
fed() { grep -cx WATCHDOG=1 "$DIR/notes"; }
fed_more() { [ "$(fed)" -gt "$1" ]; }
tap_is "systemd is told first that the agent is ready" "$(head -n 1 "$DIR/notes")" READY=1
tap_true "the watchdog is fed while the agent runs" until_true 20 fed_more "$(fed)"
kill -STOP "$AGENT_alpha"
until_true 20 grep -q '^State:.T' "/proc/$AGENT_alpha/status"
marked() { # MARK: it is read, and so is all that was said before it
	python3 tests/attack/hold.py 0 tell "$DIR/systemd" "$1" && until_true 20 grep -qx "$1" "$DIR/notes"
}
marked stopped
fed=$(fed)
sleep 1.2
marked later
tap_is "... and not while it is stopped" "$(fed)" "$fed"
kill -CONT "$AGENT_alpha"
tap_true "... and again when it goes on" until_true 20 fed_more "$fed"
attack_done
