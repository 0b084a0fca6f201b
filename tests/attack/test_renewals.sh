#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# Forged renewals of a restartable job's lease, sent to its home node.
set -uo pipefail
cd "$(dirname "$0")/../.."
. tests/lib/tap.sh
. tests/attack/lib.sh
munge_up alpha
munge_up beta alpha
agent_up alpha 7940 --listen 127.0.0.1 --peers 127.0.0.1:7944 --lease-s 600
agent_up beta 7944 --listen 127.0.0.1 --peers 127.0.0.1:7940
until_true 10 sees alpha 2
until_true 10 sees beta 2
JOURNAL=$DIR/alpha/state/iocom.db
tap_is "home's journal is root's alone" "$(stat -c '%a %u' "$JOURNAL")" "600 0"

# Kills the processes of jobs that a failed test leaves behind.
JOBS=()
trap '[ ${#JOBS[@]} -eq 0 ] || kill -9 "${JOBS[@]}" 2>/dev/null; attack_end' EXIT

# Starts two attempts with a lease; their supervisors first ask after 150 s.
begin() { # NAME SECONDS
	at alpha as $VICTIM "$iocom" run --json --restartable --node beta -- sleep "$2" \
		>/dev/null 2>"$DIR/$1" </dev/null &
	PIDS+=($!)
	until_true 10 grep -q '"started"' "$DIR/$1"
	JOBS+=("$(jq -R -r 'fromjson? | select(.state == "started") | .pid' "$DIR/$1")")
	jq -R -r 'fromjson? | select(.state == "started") | .job' "$DIR/$1"
}
ONE='' TWO=''
begin one 781 >"$DIR/id" && ONE=$(cat "$DIR/id")
begin two 782 >"$DIR/id" && TWO=$(cat "$DIR/id")
forge() { # HOW [NUMBER [OTHER]]
	"$TOOLS/forge_renew" "$1" 7942 "$JOURNAL" "$ONE" "${@:2}"
}
forged() { # ATTACK PATTERN HOW [NUMBER [OTHER]]
	attack "renewal: $1" alpha "$2" forge "${@:3}"
}
SIGNED="not signed by the supervisor of job $ONE"
forged "one byte of its signature changed" "$SIGNED" mac 1
forged "signed with another secret" "$SIGNED" secret 1
forged "signed with the secret of another attempt" "$SIGNED" other 1 "$TWO"
forged "its number changed" "$SIGNED" number 1
forged "made for another attempt" "not signed by the supervisor of job $TWO" job 1 "$TWO"
forged "for a job that never was" 'never had a lease here' job 1 alpha-0-0
# (The answer's last byte may be a letter, which is a valid job's name.)
forged "home's own answer, as a question" 'renewal refused: (it is malformed|job . never had)' answer 1
forged "no job" 'renewal refused: it is malformed' short 1
forged "longer than any, by one byte" 'the lease renewal is too long' long 1
forged "4 GB" 'job streams only' huge 1
forged "job ../../x" 'renewal refused: it is malformed' dots 1
forged "a job with a line end" 'renewal refused: it is malformed' line 1
forged "a byte a second" 'did not come within 5 s' slow 1
tap_is "none of them renewed anything" "$(counter alpha leases_renewed)" 0
tap_true "each was counted" [ "$(counter alpha leases_refused)" -ge 9 ]
tap_is "one as it should be is renewed" "$(forge none 3)" renewed
forged "the same once more" 'number 3 for job .* replay' none 3
forged "an earlier number" 'number 2 for job .* replay' none 2
tap_is "a later one is renewed" "$(forge none 4),$(counter alpha leases_renewed)" renewed,2
before=$(counter alpha leases_refused)
agent_down alpha
agent_up alpha 7940 --listen 127.0.0.1 --peers 127.0.0.1:7944 --lease-s 600
forged "an earlier number, shown to a new agent" 'number 4 for job .* replay' none 4
tap_is "a later one is renewed there" "$(forge none 5)" renewed
until_true 10 sees alpha 2
at alpha "$iocom" kill "$ONE" "$TWO" >/dev/null 2>&1
over() { [ "$(at alpha "$iocom" jobs --all --json | jq --arg j "$ONE" '[.jobs[] | select(.job == $j and .state != "running")] | length')" -eq 1 ]; }
tap_true "the job is ended" until_true 10 over
forged "of a job that is over" 'has no lease any more' none 6
attack_done
