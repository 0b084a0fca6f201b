#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# Keys of the agent and of other users, which a job tries to find in its session keyring, in all
# ways to start a job; and agents whose kernel refuses keys.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1
. tests/lib/tap.sh
. tests/attack/lib.sh
keys=$DIR/keys
cp "$TOOLS/keys" "$keys" || exit 1
"$keys" ring s >/dev/null || tap_skip_all "this kernel has no keys"
PORT=$(free_ports)
NONE='no: Required key not available'
job() { at alpha as "$@"; } # UID COMMAND...
# A job's search for a key, which must answer EXPECTED.
search() { # ATTACK GOT EXPECTED
	tap_is "$1" "$2" "$3"
	row "$1" "$([ "$2" = "$3" ] && echo yes || echo no)" -
}
munge_up alpha
AGENT_WRAPPER=("$keys" under iocom-test-agent secret)
agent_up alpha "$PORT" --listen 127.0.0.1 --address 127.0.0.1 --min-uid 1 --allow-root yes

# --- the agent's ---
tap_is "the agent's keys are found where they are" \
	"$("$keys" under iocom-test-agent secret "$keys" find iocom-test-agent)" secret
# The first two jobs have a new shim and a spare one.
for way in "run --" "run --node alpha --" "run --pty --" "run --restartable --"; do
	# shellcheck disable=SC2086
	search "iocom ${way% --}: a key of the agent" \
		"$(job $VICTIM "$iocom" $way "$keys" find iocom-test-agent 2>&1 | tr -d '\r')" "$NONE"
done
# With root's login shell; the others have none.
search "iocom rsh by root: a key of the agent" \
	"$(at alpha "$iocom" rsh alpha "$keys" find iocom-test-agent 2>&1 </dev/null)" "$NONE"

# --- another user's ---
mkdir -m 1777 "$DIR/marks"
job $VICTIM "$iocom" run -- sh -c "'$keys' add s iocom-test-a hidden >'$DIR/marks/new' &&
	mv '$DIR/marks/new' '$DIR/marks/key'; '$keys' find iocom-test-a; cat >/dev/null" \
	< <(until_true 60 test -e "$DIR/marks/looked") >"$DIR/victim" 2>&1 &
victim=$!
until_true 30 test -e "$DIR/marks/key"
looks="'$keys' find iocom-test-a; '$keys' read $(cat "$DIR/marks/key")"
search "job: a key of another user's job" \
	"$(job $MALLORY "$iocom" run -- sh -c "$looks" 2>&1)" "$NONE"$'\n'"no: Permission denied"
search "job: a key of the same user's other job" \
	"$(job $VICTIM "$iocom" run -- sh -c "'$keys' find iocom-test-a" 2>&1)" "$NONE"
touch "$DIR/marks/looked"
wait $victim
tap_is "that job itself did" "$(cat "$DIR/victim")" hidden

# --- kernels that refuse ---
agent_down alpha
AGENT_WRAPPER=("$keys" refuse keyctl)
agent_up alpha "$PORT" --listen 127.0.0.1 --address 127.0.0.1
tap_true "the agent says that no job will start" until_true 20 \
	grep -q "error: a filter of system calls refuses keyctl, but not add_key" "$DIR/alpha/log"
tap_like "a job that could not leave the agent's keyring does not start" \
	"$(job $VICTIM "$iocom" run -- echo ran 2>&1)" "^iocom run: cannot give the job a session keyring of its own"
agent_down alpha
AGENT_WRAPPER=("$keys" refuse all)
agent_up alpha "$PORT" --listen 127.0.0.1 --address 127.0.0.1
tap_true "the agent says that jobs have no keys" until_true 20 \
	grep -q "warning: the kernel, or a filter of system calls, refuses keys" "$DIR/alpha/log"
tap_is "a job that can use no key starts" "$(job $VICTIM "$iocom" run -- echo ran 2>&1)" ran
attack_done
