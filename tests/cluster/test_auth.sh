#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# Which users and nodes are accepted, and who listens where: ports, a user's bounds, PAM, a munged
# that dies and comes back, clocks that differ, agents that die, a peer that does not understand, a
# configuration of an older version.
# Two agents on this machine; no testbed.
set -uo pipefail
cd "$(dirname "$0")/../.."
. tests/lib/tap.sh
. tests/lib/pair.sh
pair_begin

listens() { # NODE: TCP sockets of its agent and its network part, addresses only
	local pids=("${PAIR_PID[$1]}") patterns
	mapfile -t -O 1 pids < <(pgrep -x -P "${PAIR_PID[$1]}" iocom-net)
	patterns=$(printf 'pid=%s,\n' "${pids[@]}")
	ss -ltnpH | grep -F "$patterns" | awk '{ print $4 }' | sort | tr '\n' ' '
}
status() { "$@" >"$PAIR/out" 2>"$PAIR/err"; echo $?; }
log_like() { grep -qE -- "$2" "$PAIR/$1/log"; } # NODE REGEX
restart() { # N1-OPTIONS -- N2-OPTIONS
	local one=()
	pair_stop n1
	pair_stop n2
	while [ "${1---}" != -- ]; do one+=("$1") && shift; done
	shift
	pair_agent n1 n2 "${one[@]}"
	pair_agent n2 n1 "$@"
}

# --- who listens where ---
mkdir -p "$PAIR/alone"
ln -s alone "$PAIR/n1"
alone() { # OPTIONS: an agent without peers
	"$IOCOM_BUILD/iocomd" --name n1 --port "$PAIR_PORT" --run-dir "$PAIR/alone/run" \
		--state-dir "$PAIR/alone/state" --shim "$IOCOM_BUILD/iocom-shim" \
		--munge-socket "$PAIR/munge-n1/socket" "$@" >"$PAIR/alone/log" 2>&1 &
	PAIR_PID[n1]=$!
	until_true 15 test -S "$PAIR/alone/run/iocom.sock"
}
# Not in a subshell, which would lose the pids.
pair_munged n1
pair_munged n2
tap_true "a munged a node" test -S "$PAIR/munge-n1/socket" -a -S "$PAIR/munge-n2/socket"
alone
tap_is "by default nothing listens on the network" "$(listens n1)" ""
tap_is "only the local socket" "$(ss -lxpH | grep -F "pid=${PAIR_PID[n1]}," | awk '{ print $5 }')" \
	"$PAIR/alone/run/iocom.sock"
pair_stop n1
alone --listen 127.0.0.1 --peers "127.0.0.1:$((PAIR_PORT + 5))"
p=$PAIR_PORT
tap_is "with peers: at the address given" "$(listens n1)" \
	"127.0.0.1:$p 127.0.0.1:$((p + 1)) 127.0.0.1:$((p + 2)) "
pair_stop n1
alone --listen 0.0.0.0 --address 127.0.0.1
tap_is "everywhere where everywhere was asked for" "$(listens n1)" \
	"0.0.0.0:$p 0.0.0.0:$((p + 1)) 0.0.0.0:$((p + 2)) "
pair_stop n1

rm "$PAIR/n1"

# --- bounds of a user ---
restart --user-requests-per-s 20 -- --user-jobs-max 2 --spool-mb 4 --spool-total-mb 8 --pam-dir "$PAIR/pam.d"
tap_true "two nodes" until_true 15 pair_sees n1 2
tap_is "a user's job runs on the other node" "$(pair_user n1 run --node n2 -- id -u 2>&1)" 65534
mkfifo "$PAIR/hold"
chmod 666 "$PAIR/hold"
held=()
exec 8<>"$PAIR/hold"
for _ in 1 2; do
	pair_user n1 run --node n2 -- sh -c 'echo up; read -r line' <"$PAIR/hold" >>"$PAIR/up" 2>&1 8>&- &
	held+=($!)
	sleep 0.3
done
two_up() { [ "$(grep -c up "$PAIR/up")" -eq 2 ]; }
tap_true "two jobs of a user, as many as are allowed" until_true 30 two_up
tap_is "the third is refused" "$(status pair_user n1 run --node n2 -- true)" 125
tap_like "the sentence names the limit" "$(cat "$PAIR/err")" '2 jobs there, the limit per user \(user_jobs_max\)'
tap_is "... and it is counted" "$(pair_count n2 jobs_refused_limit)" 1
tap_is "it runs elsewhere" "$(status pair_user n1 run --node n1 -- true)" 0
tap_is "at home the bound is the same" "$(status pair_user n2 run --node n2 -- true)" 125
tap_is "root is exempt" "$(status pair_on n2 run --node n2 -- true)" 0
exec 8>&- # ends their input
wait "${held[@]}"
tap_is "when they ended there is room again" "$(until_true 10 pair_user n1 run --node n2 -- true; echo $?)" 0

# Their clients do not read: the jobs are over, their supervisors not.
stall() { # N: one detached job, looked at by who reads its first line and no more
	pair_user n2 run --detach --node n2 -- \
		sh -c "echo here; until [ -e $PAIR/fill.$1 ]; do sleep 0.05; done; head -c 900000 /dev/zero" >/dev/null 2>&1
	{
		pair_user n2 attach last 2>/dev/null
		:
	} | {
		read -r _
		: >"$PAIR/looks.$1"
		exec sleep 777
	} &
	stalled+=($!)
	until_true 10 test -e "$PAIR/looks.$1"
	: >"$PAIR/fill.$1"
}
stalled=()
stall 1
stall 2
ended() { [ "$(pair_on n2 jobs --all --json | jq '[.jobs[] | select(.state == "running")] | length')" -eq 0 ]; }
tap_true "two jobs of a user end while their clients do not read" until_true 15 ended
sleep 0.3
tap_is "a third is refused" "$(status pair_user n1 run --node n2 -- true)" 125
tap_like "the sentence says why" "$(cat "$PAIR/err")" 'over and whose clients do not read'
kill "${stalled[@]}"
tap_true "when they are gone there is room again" until_true 10 pair_user n1 run --node n2 -- true

# --- attaching to another user's job ---
nonces() { # rows of attach messages in n2's journal
	python3 -c 'import sqlite3, sys
print(sqlite3.connect("file:%s?mode=ro" % sys.argv[1], uri=True).execute(
    "SELECT count(*) FROM nonce WHERE length(sender) = 16").fetchone()[0])' "$PAIR/n2/state/iocom.db"
}
attach_raw() { # JOB
	IOCOM_MUNGE_SOCKET=$PAIR/munge-n1/socket IOCOM_RUN_DIR=$PAIR/n1/run \
		python3 tests/cluster/attach_raw.py network "$1" n2 attach
}
job=$(pair_user n2 run --detach --node n2 -- true 2>/dev/null)
pair_user n2 attach "$job" >/dev/null 2>&1
before=$(nonces)
tap_like "a job that is not there" "$(attach_raw n2-1-1)" '^3 no job of yours'
tap_is "... leaves nothing in the journal" "$(nonces)" "$before"
tap_like "one that is" "$(attach_raw "$job")" '^5 '
tap_is "... and is kept in mind" "$(nonces)" $((before + 1))

# --- the room for output: a few running jobs do not take it all ---
kept=$(pair_user n2 run --detach --node n2 -- echo kept 2>/dev/null)
pair_user n2 attach "$kept" >/dev/null 2>&1
many=()
for i in 1 2 3 4; do many+=("$(pair_on n2 run --detach --node n2 -- sh -c "echo out$i; sleep 77" 2>/dev/null)"); done
tap_is "what another's job left is kept" "$(pair_user n2 attach "$kept" 2>&1)" kept
pair_stop n2
pair_agent n2 n1 --user-jobs-max 2 --spool-mb 4 --spool-total-mb 8 --pam-dir "$PAIR/pam.d"
tap_is "... by an agent that finds the jobs running, too" "$(pair_user n2 attach "$kept" 2>&1)" kept
for i in "${many[@]}"; do pair_on n2 kill -s KILL "$i"; done >/dev/null 2>&1
tap_is "and the last of many has room" "$(pair_on n2 attach "${many[3]}" 2>/dev/null)" out4

# 60 requests on as many connections, all there before the first is asked; how many were
# refused, and the seconds from the first question to the last answer.
cat >"$PAIR/burst" <<'P'
import socket, struct, sys, time
held = []
for _ in range(60):
    s = socket.socket(socket.AF_UNIX)
    s.connect(sys.argv[1])
    held.append(s)
body = b"\x81\xa2op\xa6status"
began = time.monotonic()
for s in held:
    s.sendall(b"ic\x01\x01" + struct.pack(">I", len(body)) + body)
refused = 0
for s in held:
    head = s.recv(8, socket.MSG_WAITALL)
    refused += b"user_requests_per_s" in s.recv(struct.unpack(">I", head[4:])[0], socket.MSG_WAITALL)
print(refused, "%.3f" % (time.monotonic() - began))
P
burst() { setpriv --reuid "$1" --regid "$1" --clear-groups /usr/bin/python3 - "$PAIR/n1/run/iocom.sock" <"$PAIR/burst"; } # UID
read -r refused took < <(burst 65534)
tap_calc "of 60 requests at once the first 20 are served, and 20 a second (60 in $took s)" \
	"$refused >= 39 - 20 * $took && $refused <= 41"
tap_calc "which some had to be refused for" "$refused > 0"
tap_calc "... and counted" "$(pair_count n1 requests_refused_rate) >= $refused"
sleep 2 # after one second no debt is left, after another one the user has a whole second's share
tap_is "two seconds later the user is served again" "$(status pair_user n1 nodes)" 0
tap_is "root may ask as often as it wants" "$(burst 0 | cut -d ' ' -f 1)" 0

# --- the audit log ---
audit=$("$IOCOM_BUILD/iocom" doctor --json --run-dir /nowhere | jq -r '.checks[] | select(.check == "audit") | .says')
case $audit in
off*) tap_true "audit is off: the agent logs it once" test "$(grep -c 'jobs leave no audit records' "$PAIR/n1/log")" -ge 1 ;;
*) tap_is "audit is on: the agent logs nothing" "$(grep -c 'jobs leave no audit records' "$PAIR/n1/log")" 0 ;;
esac

# --- PAM ---
mkdir -p "$PAIR/pam.d"
chmod 755 "$PAIR/pam.d"
# n2 began anew above: n1 is to have heard.
until_true 20 pair_user n1 run --node n2 -- true
tap_is "pam = auto: no service file, no PAM" "$(status pair_user n1 run --node n2 -- true)" 0
printf 'account required pam_deny.so\nsession required pam_permit.so\n' >"$PAIR/pam.d/iocom"
tap_is "an account that PAM refuses" "$(status pair_user n1 run --node n2 -- true)" 125
tap_like "the sentence says so" "$(cat "$PAIR/err")" 'node n2 does not let user nobody in: .*PAM'
tap_is "a job of the same machine too" "$(status pair_user n2 run --node n2 -- true)" 125
# However soon the refusal comes, the client learns the module's own words.
printf 'auth required pam_permit.so\naccount optional pam_echo.so closed on %%u\naccount required pam_deny.so\n' \
	>"$PAIR/pam.d/iocom"
told=0
for how in "" --detach "" --detach --pty "" --detach ""; do
	for node in n1 n2; do
		# shellcheck disable=SC2086 # no option, or one
		status pair_user $node run $how --node n2 -- true >/dev/null
		! grep -q "user nobody in: closed on nobody (its PAM service" "$PAIR/err" || told=$((told + 1))
	done
done
tap_is "16 refusals at once, 16 times the module's words" "$told" 16
printf 'account required pam_permit.so\nsession required pam_permit.so\n' >"$PAIR/pam.d/iocom"
tap_is "a service file without an auth line" "$(status pair_user n1 run --node n2 -- true)" 125
tap_like "the sentence says what to add" "$(cat "$PAIR/err")" 'no auth line.*auth required pam_permit.so'
echo 'auth required pam_permit.so' >>"$PAIR/pam.d/iocom"
tap_is "one that it lets in" "$(status pair_user n1 run --node n2 -- true)" 0
ln -sf nowhere "$PAIR/pam.d/iocom"
tap_is "pam = auto: a link that leads nowhere lets nobody in" "$(status pair_user n1 run --node n2 -- true)" 125
rm -r "$PAIR/pam.d"
restart -- --pam on --pam-dir "$PAIR/pam.d"
until_true 15 pair_sees n1 2
tap_is "pam = on: without a service file nobody is let in" "$(status pair_user n1 run --node n2 -- true)" 125
tap_like "its name is said" "$(cat "$PAIR/err")" "$PAIR/pam.d/iocom"
restart -- --pam off
until_true 15 pair_sees n1 2

# --- munged dies ---
pair_user n1 run --node n2 -- sh -c "echo up; until [ -e $PAIR/over ]; do sleep 0.05; done; echo whole" >"$PAIR/long" 2>&1 &
long=$!
until_true 10 grep -q up "$PAIR/long"
pair_stop munge-n1 KILL
rm -f "$PAIR/munge-n1/socket"
silent() { [ "$(pair_on n1 nodes --json | jq '.nodes | length')" -eq 1 ]; }
tap_is "a start on another node is refused at once" "$(status pair_user n1 run --node n2 -- true)" 125
tap_like "the sentence names munged" "$(cat "$PAIR/err")" 'munged does not answer.*systemctl start munge'
sleep 2 # after three periods, 0.9 s, a silent node is dropped
# Agents prove themselves once an hour: what they have agreed on then needs no munged.
tap_true "the agents go on hearing each other" pair_sees n1 2
tap_true "... in both directions" pair_sees n2 2
tap_is "a job of this machine runs" "$(pair_user n1 run -- id -u 2>&1)" 65534
: >"$PAIR/over"
wait "$long"
tap_is "the job that ran goes on to its end, status and output" "$? $(tr '\n' ' ' <"$PAIR/long")" "0 up whole "
pair_stop n2
pair_agent n2 n1 --pam off
tap_true "a node that has started again has nothing agreed on: it is not believed" until_true 10 silent
tap_is "a start there is refused" "$(status pair_user n1 run --node n2 -- true)" 125
# This agent learns of munged's death when it next greets.
names_munged() {
	[ "$(status pair_user n1 run --node n2 -- true)" -eq 125 ] &&
		grep -q "munged does not answer on this machine.*systemctl start munge" "$PAIR/err"
}
tap_true "by the sentence that names munged, not the other node" until_true 10 names_munged
agent=${PAIR_PID[n1]}
pair_munged n1
tap_true "munged is back: heard again" until_true 15 pair_sees n1 2
tap_is "and starts go there, by the same agent" "$(status pair_user n1 run --node n2 -- true) ${PAIR_PID[n1]}" "0 $agent"

# --- clocks differ ---
# A bulletin names its sender's clock; without a session a greeting does.
faketime=$(ls /usr/lib/*/faketime/libfaketimeMT.so.1 2>/dev/null | head -n 1)
shifted=("LD_PRELOAD=$faketime" "FAKETIME_TIMESTAMP_FILE=$PAIR/shift" FAKETIME_CACHE_DURATION=1
	FAKETIME_DONT_FAKE_MONOTONIC=1)
shift_clock() { echo "$1s" >"$PAIR/shift.new" && mv "$PAIR/shift.new" "$PAIR/shift"; } # of n2
shifted_n2() {
	pair_stop n2
	rm -f "$PAIR/n2/run/iocom.sock"
	export "${shifted[@]}"
	pair_agent n2 n1 --pam off
	unset LD_PRELOAD FAKETIME_TIMESTAMP_FILE FAKETIME_CACHE_DURATION FAKETIME_DONT_FAKE_MONOTONIC
}
told_skew() { # before|after
	[ "$(status pair_user n1 run --node n2 -- true)" -eq 125 ] &&
		grep -Eq "not believed: its messages are made (29[0-9]|30[0-9]|31[0-9]) s $1 this" "$PAIR/err"
}
shift_clock +0
pair_stop munge-n2
rm -f "$PAIR/munge-n2/socket"
pair_munged n2 "${shifted[@]}"
shifted_n2
for shift in -300 +300; do
	tap_true "clocks agree" until_true 15 pair_sees n1 2
	: >"$PAIR/n1/log"
	word=$([ "$shift" = -300 ] && echo before || echo after)
	shift_clock "$shift"
	tap_true "a clock is set to be $shift s off: said, with the number" until_true 10 log_like n1 \
		"refused a bulletin of node n2: made (29[0-9]|30[0-9]|31[0-9]) s $word this machine"
	tap_true "... and whoever asks for that node is told" until_true 10 told_skew "$word"
	: >"$PAIR/n1/log"
	shifted_n2
	tap_true "an agent starts with it: its greeting is refused, with the number" until_true 10 log_like n1 \
		"refused a greeting from 127.0.0.1: made (29[0-9]|30[0-9]|31[0-9]) s $word this machine"
	tap_true "... and whoever asks for that node is told, too" until_true 10 told_skew "$word"
	shift_clock +0
done
tap_calc "... and counted" "$(pair_count n1 bulletins_refused_skew) >= 2"
pair_stop munge-n2
rm -f "$PAIR/munge-n2/socket"
pair_munged n2
tap_true "clocks agree: heard again" until_true 15 pair_sees n1 2

# --- both agents die while a job runs ---
restart --
tap_true "two agents" until_true 15 pair_sees n1 2
rm -f "$PAIR/long" # that of the job before
FOO=secret pair_user n1 run --node n2 -- sh -c 'echo up; read -r line; echo "$line $FOO"; exit 3' \
	< <(until_true 10 test -e "$PAIR/go"; echo on) >"$PAIR/long" 2>&1 &
long=$!
until_true 10 grep -q up "$PAIR/long"
pair_stop n1 KILL
pair_stop n2 KILL
# The settings of TLS, as an older version's configuration has them.
printf '[iocom]\ntls_certificate = /n1.pem\ntls_key = /n1.key\ntls_ca = /ca.pem\nrelay_user = root\n' >"$PAIR/old.conf"
pair_agent n1 n2 --lease-s 5 --config "$PAIR/old.conf"
pair_agent n2 n1
: >"$PAIR/go"
wait "$long"
tap_is "both agents killed and started again cut no stream" "$? $(tr '\n' ' ' <"$PAIR/long")" "3 up on secret "
tap_true "an agent with an older version's configuration says what it does not use" until_true 15 log_like n1 \
	"warning: tls_certificate \\(line 2 of $PAIR/old.conf\\), tls_key \\(line 3\\), tls_ca \\(line 4\\), relay_user \\(line 5\\) are not used"
until_true 15 pair_sees n1 2
tap_is "once" "$(grep -c 'tls_' "$PAIR/n1/log")" 1
tap_is "one with a configuration of today does not" "$(grep -c 'not used' "$PAIR/n2/log")" 0
renewals=$(pair_count n1 leases_renewed) # of the job before
pair_user n1 run --json --restartable --node n2 -- sleep 300 >/dev/null 2>"$PAIR/leased" </dev/null &
leased=$!
renewed() { [ "$(pair_count n1 leases_renewed)" -gt "$renewals" ]; }
tap_true "a lease is renewed" until_true 12 renewed
job=$(jq -R -r 'fromjson? | select(.state == "started") | .job' "$PAIR/leased")
tap_like "by the shim: its first number is used" "$(
	"$IOCOM_BUILD/tests/tools/forge_renew" none $((PAIR_PORT + 2)) "$PAIR/n1/state/iocom.db" "$job" 1
)" 'refused: .*a replay'
pair_user n1 kill -KILL "$job" >/dev/null 2>&1
wait $leased

# --- a peer that answers, but does not understand ---
pair_stop n1
pair_stop n2
cat >"$PAIR/stranger" <<'P'
import socket, struct, sys
s = socket.create_server(("127.0.0.1", int(sys.argv[1])))
open(sys.argv[2], "w").close()
while True:
    c, _ = s.accept()
    asked = c.recv(8, socket.MSG_WAITALL)
    why = b"first learn \x1b my language"
    c.sendall(b"ic\x01\x03" + struct.pack(">I", len(why)) + why)
    c.close()
    with open(sys.argv[2], "a") as f:
        print(asked.hex(), file=f)
P
python3 "$PAIR/stranger" $((PAIR_PORT + 7)) "$PAIR/asked" &
stranger=$!
until_true 10 test -e "$PAIR/asked"
pair_agent n1 n2
tap_true "a silent peer is asked, and what it says is logged" until_true 15 log_like n1 \
	"cannot speak to the peer at 127.0.0.1 port $(pair_port n2): it says: first learn \\? my language\$"
tap_is "by an empty request" "$(sort -u "$PAIR/asked")" "6963010100000000"
tap_is "once" "$(grep -c 'cannot speak to the peer' "$PAIR/n1/log")" 1
peers_refused() { [ "$(pair_count n1 peers_refused)" -eq 1 ]; }
tap_true "counted" until_true 5 peers_refused
kill "$stranger"
wait "$stranger" 2>/dev/null
pair_stop n1
pair_agent n1 n2
pair_agent n2 n1
tap_true "a peer that understands is heard" until_true 15 pair_sees n1 2
sleep 3
tap_is "... and nothing is said of it" "$(cat "$PAIR/n1/log" "$PAIR/n2/log" | grep -c 'cannot speak\|refused a job stream')" 0
pair_stop n1
pair_stop n2
tap_is "all agents ended well" "$(cat "$PAIR/bad" 2>&1)" "cat: $PAIR/bad: No such file or directory"
tap_done
