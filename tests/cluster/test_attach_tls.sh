#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# Jobs that outlive their client, with TLS between the nodes: attach, from any byte, wait, kill,
# and streams that are cut under the relays. Two agents on loopback.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1
. tests/lib/tap.sh
. tests/lib/pair.sh
command -v openssl >/dev/null || tap_skip_all "no openssl"
pair_begin
keys() ( # makes an authority, and a pair for each node
	cd "$PAIR" || exit 1
	new="-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2"
	# shellcheck disable=SC2086
	openssl req -x509 $new -subj "/CN=ca" -keyout ca.key -out ca.pem
	for n in n1 n2; do
		# shellcheck disable=SC2086
		openssl req $new -subj "/CN=$n" -keyout "$n.key" -out "$n.csr"
		openssl x509 -req -in "$n.csr" -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -out "$n.pem"
	done
	chmod 600 ./*.key
) >/dev/null 2>&1
keys
user=daemon # the relays' user: any but nobody
tls() { echo "--tls-certificate $PAIR/$1.pem --tls-key $PAIR/$1.key --tls-ca $PAIR/ca.pem --relay-user $user"; }
pair_munged n1
pair_munged n2
# shellcheck disable=SC2046
pair_agent n1 n2 $(tls n1)
# shellcheck disable=SC2046
pair_agent n2 n1 $(tls n2)
tap_true "TLS on both: they hear each other" until_true 15 pair_sees n1 2
n1() { pair_user n1 "$@"; }
detach() { n1 run --node n2 --detach -- "$@" </dev/null; }
# Prints the relays of these two agents.
relays() { pgrep -x iocom-relay | while read -r q; do ! grep -aqF "$PAIR" "/proc/$q/cmdline" || echo "$q"; done 2>/dev/null; }
no_relays() { [ -z "$(relays)" ]; }

# --- attach, wait, kill ---
job=$(detach sh -c "echo one; while [ ! -e $PAIR/go ]; do sleep 0.05; done; echo two; echo err >&2; exit 5")
tap_like "a detached job's name" "$job" '^n1-'
until_true 10 sh -c "IOCOM_RUN_DIR=$PAIR/n1/run '$IOCOM_BUILD/iocom' jobs | grep -q '^$job '"
n1 attach "$job" >"$PAIR/out" 2>"$PAIR/err" &
client=$!
until_true 10 grep -q one "$PAIR/out"
tap_is "its relays run as the user that was named" \
	"$(relays | while read -r q; do stat -c %U "/proc/$q/status"; grep -c "^Uid:.$(id -u $user)" "/proc/$q/status"; done | sort -u | tr '\n' ' ')" \
	"1 root "
: >"$PAIR/go"
wait "$client"
tap_is "attach: the output, the errors, the status" "$? $(tr '\n' ' ' <"$PAIR/out")$(cat "$PAIR/err")" "5 one two err"
tap_is "after the end, from byte 4" "$(n1 attach --from 4 "$job" 2>/dev/null; echo $?)" $'two\n5'
tap_like "from a byte that never was: refused" "$(n1 attach --from 400 "$job" 2>&1; echo $?)" "ends at 8"
tap_is "wait: its status" "$(n1 wait "$job"; echo $?)" 5
job=$(detach sh -c 'trap "exit 44" USR1; echo ready; while :; do sleep 0.05; done')
n1 attach "$job" >"$PAIR/ready" 2>&1 &
client=$!
tap_true "a job says that it awaits a signal" until_true 10 grep -q ready "$PAIR/ready"
tap_is "kill -USR1" "$(n1 kill -USR1 "$job"; n1 wait "$job"; echo $?)" 44
wait "$client"
tap_is "who looks has its status too" "$?" 44
tap_like "kill of one that has ended: 1" "$(n1 kill "$job" 2>&1; echo $?)" "has ended"
job=$(detach sleep 600)
tap_like "another's job is nobody's to attach to" "$(
	IOCOM_RUN_DIR=$PAIR/n1/run timeout 20 setpriv --reuid 2 --regid 2 --clear-groups "$IOCOM_BUILD/iocom" attach "$job" 2>&1; echo $?
)" "no job of yours"
n1 kill -9 "$job"

# --- the stream is cut under the relays ---
head -c 12000000 /dev/urandom >"$PAIR/in"
truth=$(sha256sum <"$PAIR/in")
# The next third is sent when the one before has come back, and the stream is cut.
has() { [ "$(stat -c %s "$PAIR/whole")" -ge "$1" ]; }
third() { tail -c "+$(($1 * 4000000 + 1))" "$PAIR/in" | head -c 4000000; }
(third 0; until_true 10 test -e "$PAIR/cut1"; third 1; until_true 10 test -e "$PAIR/cut2"; third 2) |
	n1 run --node n2 -- cat 2>"$PAIR/cut" >"$PAIR/whole" &
run=$!
until_true 10 has 4000000
ss -K "dport = $((PAIR_PORT + 7))" >/dev/null 2>&1 # of n2's job port, whoever is connected
: >"$PAIR/cut1"
until_true 10 has 8000000
relays | xargs -r kill -KILL
: >"$PAIR/cut2"
wait "$run"
tap_is "a run whose connection breaks, and whose relays are killed, goes on" "$?" 0
tap_is "and every byte is there once" "$(sha256sum <"$PAIR/whole")" "$truth"
tap_like "it says so" "$(cat "$PAIR/cut")" 'contact with node n2 was lost'
n1 run --node n2 --grace 0 -- sh -c 'echo up; sleep 30' >"$PAIR/up" 2>&1 &
run=$!
until_true 10 grep -q up "$PAIR/up"
relays | xargs -r kill -KILL
wait "$run"
tap_is "without a grace contact is lost for good: 255" "$?" 255
rm "$PAIR/go"
job=$(detach sh -c "seq 15; until [ -e $PAIR/go ]; do sleep 0.05; done; seq 16 30; exit 6")
n1 attach "$job" >"$PAIR/lines" 2>/dev/null &
client=$!
until_true 10 grep -q 15 "$PAIR/lines"
relays | xargs -r kill -KILL
: >"$PAIR/go"
wait "$client"
tap_is "an attach, too: its status and every line once" "$? $(sha256sum <"$PAIR/lines")" "6 $(seq 30 | sha256sum)"
tap_true "no relay is left" until_true 25 no_relays
pair_stop n1
tap_like "a relay user that is not: refused at the start" "$(timeout 10 "$IOCOM_BUILD/iocomd" --listen 127.0.0.1 \
	--port "$PAIR_PORT" --run-dir "$PAIR/alone/run" --state-dir "$PAIR/alone/state" --munge-socket "$PAIR/munge-n1/socket" \
	--shim "$IOCOM_BUILD/iocom-shim" $(user=no-such-user tls n1) 2>&1)" "relay_user: there is no user 'no-such-user'"
tap_like "and root" "$(timeout 10 "$IOCOM_BUILD/iocomd" --listen 127.0.0.1 \
	--port "$PAIR_PORT" --run-dir "$PAIR/alone/run" --state-dir "$PAIR/alone/state" --munge-socket "$PAIR/munge-n1/socket" \
	--shim "$IOCOM_BUILD/iocom-shim" $(user=root tls n1) 2>&1)" "relay_user: 'root' is root"
pair_stop n2
tap_is "all agents ended well" "$(cat "$PAIR/bad" 2>&1)" "cat: $PAIR/bad: No such file or directory"
tap_done
