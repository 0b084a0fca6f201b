#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# Which users and nodes are accepted, and who listens where: ports, a user's bounds, PAM, a munged
# that dies and comes back, clocks that differ, TLS on both sides, on one side, with another CA.
# Two agents on this machine; no testbed.
set -uo pipefail
cd "$(dirname "$0")/../.."
. tests/lib/tap.sh
. tests/lib/pair.sh
pair_begin

listens() { # NODE: its TCP sockets, addresses only
	ss -ltnpH | grep -F "pid=${PAIR_PID[$1]}," | awk '{ print $4 }' | sort | tr '\n' ' '
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
alone --peers "127.0.0.1:$((PAIR_PORT + 5))"
p=$PAIR_PORT
tap_is "with peers, and no address given: loopback" "$(listens n1)" \
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
tap_true "two jobs of a user, as many as are allowed" until_true 10 two_up
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
	IOCOM_MUNGE_SOCKET=$PAIR/munge-n1/socket python3 tests/cluster/attach_raw.py \
		"127.0.0.1:$(($(pair_port n2) + 2))" "$1" n2 attach
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
tap_like "the sentence names munged" "$(cat "$PAIR/err")" 'munged'
tap_true "other nodes are not believed any more" until_true 10 silent
tap_is "a start there is refused" "$(status pair_user n1 run --node n2 -- true)" 125
tap_like "by the sentence that names munged, not the other node" "$(cat "$PAIR/err")" \
	"munged does not answer on this machine.*systemctl start munge"
tap_is "a job of this machine runs" "$(pair_user n1 run -- id -u 2>&1)" 65534
: >"$PAIR/over"
wait "$long"
tap_is "the job that ran goes on to its end, status and output" "$? $(tr '\n' ' ' <"$PAIR/long")" "0 up whole "
agent=${PAIR_PID[n1]}
pair_munged n1
tap_true "munged is back: heard again" until_true 15 pair_sees n1 2
tap_is "and starts go there, by the same agent" "$(status pair_user n1 run --node n2 -- true) ${PAIR_PID[n1]}" "0 $agent"

# --- clocks differ ---
faketime=$(ls /usr/lib/*/faketime/libfaketimeMT.so.1 2>/dev/null | head -n 1)
told_skew() { # before|after
	[ "$(status pair_user n1 run --node n2 -- true)" -eq 125 ] &&
		grep -Eq "not believed: its messages are made (29[0-9]|30[0-9]|31[0-9]) s $1 this" "$PAIR/err"
}
for shift in -300 +300; do
	pair_stop munge-n2
	rm -f "$PAIR/munge-n2/socket"
	pair_munged n2 "LD_PRELOAD=$faketime" "FAKETIME=${shift}s" FAKETIME_DONT_FAKE_MONOTONIC=1
	: >"$PAIR/n1/log"
	word=$([ "$shift" = -300 ] && echo before || echo after)
	tap_true "a clock $shift s off: said, with the number" until_true 10 log_like n1 \
		"refused a bulletin: made (29[0-9]|30[0-9]|31[0-9]) s $word this machine"
	tap_true "... and whoever asks for that node is told" until_true 10 told_skew "$word"
done
tap_calc "... and counted" "$(pair_count n1 bulletins_refused_skew) >= 2"
pair_stop munge-n2
rm -f "$PAIR/munge-n2/socket"
pair_munged n2
tap_true "clocks agree: heard again" until_true 15 pair_sees n1 2

# --- TLS ---
keys() { # AUTHORITY NODE...
	local ca=$1 new="-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2" n
	shift
	# shellcheck disable=SC2086
	openssl req -x509 $new -subj "/CN=$ca" -keyout "$ca.key" -out "$ca.pem"
	for n; do
		# shellcheck disable=SC2086
		openssl req $new -subj "/CN=$n" -keyout "$n.key" -out "$n.csr"
		openssl x509 -req -in "$n.csr" -CA "$ca.pem" -CAkey "$ca.key" -CAcreateserial -days 2 -out "$n.pem"
	done
}
(cd "$PAIR" && keys ca n1 n2 && keys other x2 && chmod 600 ./*.key) >/dev/null 2>&1
tls() { echo "--tls-certificate $PAIR/$1.pem --tls-key $PAIR/$1.key --tls-ca $PAIR/$2.pem"; }
# shellcheck disable=SC2046
restart $(tls n1 ca) -- $(tls n2 ca)
tap_true "TLS on both: they hear each other" until_true 15 pair_sees n1 2
tap_is "a job, its streams and its status" "$(
	printf 'in' | pair_user n1 run --node n2 -- sh -c 'cat; echo out; echo err >&2; exit 7' 2>"$PAIR/err"
	echo "$? $(cat "$PAIR/err")"
)" "inout
7 err"
head -c 3000000 /dev/urandom >"$PAIR/in"
tap_is "3 MB there and back" "$(pair_user n1 run --node n2 -- cat <"$PAIR/in" | sha256sum)" "$(sha256sum <"$PAIR/in")"
rm -f "$PAIR/long" # that of the job before
FOO=secret pair_user n1 run --node n2 -- sh -c 'echo up; read -r line; echo "$line $FOO"; exit 3' \
	< <(until_true 10 test -e "$PAIR/go"; echo on) >"$PAIR/long" 2>&1 &
long=$!
until_true 10 grep -q up "$PAIR/long"
relays() { pgrep -x iocom-relay | while read -r q; do tr '\0' ' ' <"/proc/$q/cmdline" | grep -F "$PAIR"; done 2>/dev/null | wc -l; }
relays_are() { [ "$(relays)" -eq "$1" ]; }
tap_true "a relay at each end, those of the jobs before have gone" until_true 25 relays_are 2
pair_stop n1 KILL
pair_stop n2 KILL
# shellcheck disable=SC2046
pair_agent n1 n2 --lease-s 5 $(tls n1 ca)
# shellcheck disable=SC2046
pair_agent n2 n1 $(tls n2 ca)
: >"$PAIR/go"
wait "$long"
tap_is "both agents killed and started again cut no stream" "$? $(tr '\n' ' ' <"$PAIR/long")" "3 up on secret "
no_relays() { [ "$(relays)" -eq 0 ]; }
tap_true "no relay is left" until_true 10 no_relays
tap_is "whoever speaks plainly to the job port is told" "$(
	exec 3<>"/dev/tcp/127.0.0.1/$((PAIR_PORT + 7))"
	printf 'ic\001\004\0\0\0\0' >&3
	timeout 60 cat <&3 | grep -ac 'encrypted job streams only'
)" 1
tap_true "... and the node logs it" until_true 5 log_like n2 'refused a job stream from 127.0.0.1: it speaks without TLS'
until_true 15 pair_sees n1 2
renewals=$(pair_count n1 leases_renewed) # of the job before
pair_user n1 run --json --restartable --node n2 -- sleep 300 >/dev/null 2>"$PAIR/leased" </dev/null &
leased=$!
renewed() { [ "$(pair_count n1 leases_renewed)" -gt "$renewals" ]; }
tap_true "a lease is renewed where there is TLS" until_true 12 renewed
job=$(jq -R -r 'fromjson? | select(.state == "started") | .job' "$PAIR/leased")
tap_like "by the shim, without TLS: its first number is used" "$(
	"$IOCOM_BUILD/tests/tools/forge_renew" none $((PAIR_PORT + 2)) "$PAIR/n1/state/iocom.db" "$job" 1
)" 'refused: .*a replay'
pair_user n1 kill -KILL "$job" >/dev/null 2>&1
wait $leased
tap_is "a tunnel to a node that nobody knows is refused" "$(python3 - "$PAIR/n1/run/iocom.sock" <<'P'
import socket, struct, sys
s = socket.socket(socket.AF_UNIX)
s.connect(sys.argv[1])
body = b"\x82\xa2op\xa6tunnel\xa4node\xa7nowhere"
s.sendall(b"ic\x01\x01" + struct.pack(">I", len(body)) + body)
print(s.recv(1000)[8:].decode())
P
)" "node nowhere is not known here"

# shellcheck disable=SC2046
restart $(tls n1 ca) --
tap_true "TLS here, none there: said here" until_true 15 log_like n1 'peer at .* it speaks without TLS, this node with'
tap_true "... and there" until_true 15 log_like n2 'peer at .*takes encrypted job streams only'
tap_is "they do not hear each other" "$(pair_on n1 nodes --json | jq '.nodes | length')" 1
# shellcheck disable=SC2046
restart $(tls n1 ca) -- $(tls x2 other)
tap_true "another CA: refused, said here" until_true 20 log_like n1 'peer at .*not one of the CA in tls_ca'
tap_true "... and there" until_true 15 log_like n2 'peer at .*not one of the CA in tls_ca'
tap_is "once" "$(grep -c 'cannot speak to the peer' "$PAIR/n1/log")" 1
tap_is "counted" "$(pair_count n1 peers_refused)" 1
pair_stop n1
pair_stop n2
refuses() { timeout 20 "$IOCOM_BUILD/iocomd" --listen 127.0.0.1 --port "$PAIR_PORT" --run-dir "$PAIR/alone/run" \
	--state-dir "$PAIR/alone/state" --munge-socket "$PAIR/munge-n1/socket" \
	--shim "$IOCOM_BUILD/iocom-shim" "$@" 2>&1; }
tap_like "a certificate without its key" "$(refuses --tls-certificate "$PAIR/n1.pem")" 'together; one of them is missing'
tap_like "no such file" "$(refuses --tls-certificate "$PAIR/n1.pem" --tls-key "$PAIR/no.key" --tls-ca "$PAIR/ca.pem")" \
	'tls_key .*no\.key: No such file'
tap_like "a key of another certificate" \
	"$(refuses --tls-certificate "$PAIR/n2.pem" --tls-key "$PAIR/n1.key" --tls-ca "$PAIR/ca.pem")" 'do not belong together'
chmod 644 "$PAIR/n1.key"
# shellcheck disable=SC2046
tap_like "a key that everybody can read" "$(refuses $(tls n1 ca))" 'belongs to root alone: chmod 600'
tap_is "all agents ended well" "$(cat "$PAIR/bad" 2>&1)" "cat: $PAIR/bad: No such file or directory"
tap_done
