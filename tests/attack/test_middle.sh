#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# A man in the middle of two agents changes, drops, repeats, exchanges, reflects, cuts and injects
# what they and a job's client send.  Never does a wrong byte come through, no job runs twice, and
# none that did not begin is said to have; what he breaks is a lost contact, and the client comes
# back.
set -uo pipefail
cd "$(dirname "$0")/../.."
. tests/lib/tap.sh
. tests/attack/lib.sh
munge_up alpha
munge_up beta alpha
mkdir -m 1777 "$DIR/marks"
mkdir "$DIR/middle"
coproc MIDDLE { python3 tests/attack/middle.py 127.0.0.2 7974 127.0.0.1 "$DIR/middle"; }
# Both are told that beta is where the man in the middle listens.
agent_up alpha 7970 --listen 127.0.0.1 --peers 127.0.0.2:7974
agent_up beta 7974 --listen 127.0.0.1 --address 127.0.0.2 --peers 127.0.0.1:7970 --min-uid 1
tap_true "two agents hear of each other" until_true 15 sees alpha 2
until_true 15 sees beta 2
seq 1 3000 >"$DIR/input"
truth() { seq 1 20000; cat "$DIR/input"; }
# A job with output and input enough for many records, and pauses between them.
job() {
	rm -f "$DIR/marks/now"
	{ sleep 0.3; head -n 1000 "$DIR/input"; sleep 0.1; tail -n +1001 "$DIR/input" | head -n 1000; sleep 0.1; tail -n +2001 "$DIR/input"; } |
		at alpha as $VICTIM "$iocom" run --node beta -- sh -c "echo ran >>$DIR/marks/now
			seq 1 5000; sleep 0.1; seq 5001 10000; sleep 0.1; seq 10001 20000; cat; exit 3" >"$DIR/out" 2>"$DIR/err"
	echo $?
}
ran() { [ ! -e "$DIR/marks/now" ] && echo 0 || wc -l <"$DIR/marks/now"; }
mode() { rm -f "$DIR/middle/made"; echo "$1" >"$DIR/middle/mode"; }
was_made() { grep -qx "$1" "$DIR/middle/made" 2>/dev/null; }

# --- streams that began ---
whole() { # WHAT MODE
	local status
	mode "stream $2"
	status=$(job)
	if was_made "stream $2" && [ "$status" = 3 ] && cmp -s "$DIR/out" <(truth) && [ "$(ran)" = 1 ]; then
		tap_ok "stream: $1"
		row "stream: $1" yes -
	else
		row "stream: $1" no -
		tap_fail "stream: $1" "made: $(cat "$DIR/middle/made" 2>&1); status $status; ran $(ran) times; $(head -c 300 "$DIR/err"); output: $(wc -l <"$DIR/out") lines"
	fi
}
tap_is "a job, untouched" "$(job) $(ran)" "3 1"
tap_true "... with all its output" cmp -s "$DIR/out" <(truth)
for way in down up; do
	whole "a bit changed, $way" flip-$way
	whole "a length changed, $way" length-$way
	whole "a record left out, $way" drop-$way
	whole "a record twice, $way" repeat-$way
	whole "two records exchanged, $way" swap-$way
	whole "a record of the other direction, $way" reflect-$way
	whole "a record of another connection, $way" splice-$way
	whole "a frame in clear, $way" clear-$way
	whole "cut inside a record, $way" cut-$way
	whole "cut between two records, $way" end-$way
done
tap_like "what was broken was a lost contact to the client" "$(cat "$DIR/err")" "contact with node beta was lost"

# --- the handshake: nothing is sent, and the job has not begun ---
refused() { # WHAT MODE
	local status
	mode "stream $2"
	status=$(job)
	if was_made "stream $2" && [ "$status" = 125 ] && [ "$(ran)" = 0 ] && grep -q "the job did not start" "$DIR/err"; then
		tap_ok "handshake: $1"
		row "handshake: $1" yes -
	else
		row "handshake: $1" no -
		tap_fail "handshake: $1" "made: $(cat "$DIR/middle/made" 2>&1); status $status; ran $(ran) times; $(head -c 300 "$DIR/err")"
	fi
}
refused "a bit of the client's message changed" hello
refused "an older version asked for" older
refused "the message of another job" again
refused "a bit of the target's message changed" welcome
refused "the target's message of another job" old-welcome
tap_is "afterwards a job runs" "$(job) $(ran)" "3 1"
echo replay >&"${MIDDLE[1]}"
read -r answer <&"${MIDDLE[0]}"
tap_like "a client's whole beginning once more: the target does not know the job any more, or speaks to nobody" "$answer" '^6963'
tap_is "... and nothing ran twice" "$(ran)" 1

# --- sessions of the two agents ---
session() { # WHAT MODE [COMMAND...]: which brings about what MODE changes
	local status
	mode "control $2"
	"${@:3}"
	status=$(job)
	until_true 20 was_made "control $2"
	if was_made "control $2" && [ "$(ran)" -le 1 ] && { [ "$status" = 125 ] || cmp -s "$DIR/out" <(truth); }; then
		tap_ok "session: $1 ($status)"
		row "session: $1" yes -
	else
		row "session: $1" no -
		tap_fail "session: $1" "made: $(cat "$DIR/middle/made" 2>&1); status $status; ran $(ran) times; $(head -c 300 "$DIR/err")"
	fi
	rm -f "$DIR/middle/mode"
	again() { [ "$(job) $(ran)" = "3 1" ]; }
	tap_true "... and a moment later all is well" until_true 20 again
}
session "a question changed" sealed-up
session "an answer changed" sealed-down
for half in hello-up welcome-down; do
	agent_down beta # a greeting is due
	session "$half changed" $half \
		agent_up beta 7974 --listen 127.0.0.1 --address 127.0.0.2 --peers 127.0.0.1:7970 --min-uid 1
done
exec {MIDDLE[1]}>&-
attack_done
