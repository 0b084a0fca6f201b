#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# Joining is explained: one agent, n1, has a peer of every kind that is not heard, and `nodes`,
# `doctor` and the log say of each what is wrong and what to do; two clusters that meet do not merge;
# an agent that stops says so; a complaint that comes again and again is not logged each time.
# Agents on this machine's loopback, each at an address of its own; no testbed.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=tests/lib/tap.sh disable=SC1091
. tests/lib/tap.sh
# shellcheck source=tests/lib/pair.sh disable=SC1091
. tests/lib/pair.sh
faketime=$(ls /usr/lib/*/faketime/libfaketimeMT.so.1 2>/dev/null | head -n 1)
[ -n "$faketime" ] || tap_skip_all "needs libfaketime"
pair_begin
P=$PAIR_PORT

# --- without an address to listen at ---
printf '[iocom]\nname = n9\npeers = 127.0.0.1:%s\nrun_dir = %s\n' "$P" "$PAIR/n9" >"$PAIR/conf"
chmod 644 "$PAIR/conf"
tap_is "an agent with peers and without listen does not start" \
	"$("$IOCOM_BUILD/iocomd" --config "$PAIR/conf" >"$PAIR/out" 2>&1; echo $?)" 1
tap_like "the sentence says what to set" "$(cat "$PAIR/out")" \
	'^iocomd: peers are named \(127\.0\.0\.1\), but no address to listen at.*set listen to the address'
tap_like "doctor says it, too" \
	"$("$IOCOM_BUILD/iocom" doctor --no-agent --config "$PAIR/conf" --json 2>/dev/null |
		jq -r '.checks[] | select(.check == "config") | .state + ": " + .says')" \
	'^broken: peers are named .*set listen'
tap_like "a cluster's name has plain characters" \
	"$("$IOCOM_BUILD/iocomd" --cluster 'a lab' 2>&1)" "expected a cluster's name of letters"

# --- the peers ---
# Sockets that are not agents: "full" has a queue without room, so that the kernel drops who comes;
# "mute" takes connections and says nothing; "other" answers that it does not understand.
cat >"$PAIR/strangers.py" <<'PY'
import select, socket, struct, sys
port, done = int(sys.argv[1]), sys.argv[2]
keep, others, listeners = [], [], []
for address in ("127.0.0.11", "127.0.0.12", "127.0.0.13"):
    for p in (port, port + 1, port + 2):
        s = socket.socket()
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        s.bind((address, p))
        if address == "127.0.0.11":
            s.listen(0)
            for _ in range(4):
                c = socket.socket()
                c.setblocking(False)
                try:
                    c.connect((address, p))
                except BlockingIOError:
                    pass
                keep.append(c)
            keep.append(s)
        else:
            s.listen(64)
            listeners.append(s)
open(done, "w").close()
while True:
    for s in select.select(listeners, [], [])[0]:
        c, _ = s.accept()
        if s.getsockname() == ("127.0.0.13", port + 2):
            c.recv(8, socket.MSG_WAITALL)
            why = b"speak\x1b version 9"
            c.sendall(b"ic\x01\x03" + struct.pack(">I", len(why)) + why)
            c.close()
        else:
            keep.append(c)
PY
python3 "$PAIR/strangers.py" "$P" "$PAIR/strangers.up" &
PAIR_PID[strangers]=$!
other_munged() { # NODE ENVIRONMENT...: with a key of its own
	local key
	(umask 077 && head -c 128 /dev/urandom >"$PAIR/key.$1" && cp "$PAIR/key" "$PAIR/key.kept" &&
		cat "$PAIR/key.$1" >"$PAIR/key")
	pair_munged "$@"
	cat "$PAIR/key.kept" >"$PAIR/key"
}
pair_munged n1
alone() { # ADDRESS: what an agent says that listens there and has another machine as peer
	"$IOCOM_BUILD/iocomd" --name n9 --listen "$1" --port "$P" --peers 192.0.2.7 \
		--run-dir "$PAIR/n9" --state-dir "$PAIR/n9" --munge-socket "$PAIR/munge-n1/socket" 2>&1
	echo "status $?"
}
for address in 127.0.0.1 localhost; do
	tap_like "an agent that its peers cannot reach does not start: $address" "$(alone $address)" \
		'^iocomd: the peer 192\.0\.2\.7 is another machine, but this node.s address is .*; set listen to .*'
done
tap_like "at an address of no device: where to find one" "$(alone 192.0.2.8)" \
	'^iocomd: cannot take job streams at 192\.0\.2\.8 .*; no network device .*`ip address`'
pair_munged n2
pair_munged n4 "LD_PRELOAD=$faketime" FAKETIME=+300s FAKETIME_DONT_FAKE_MONOTONIC=1
other_munged n3
until_true 10 test -e "$PAIR/strangers.up"
at() { # NODE NUMBER OPTIONS...: an agent at 127.0.0.NUMBER that has n1 as peer
	local node=$1 number=$2
	shift 2
	pair_agent "$node" n1 --listen "127.0.0.$number" --port "$P" "$@"
}
at n2 2
at n3 3
at n4 4
at n5 5 --name n1 --munge-socket "$PAIR/munge-n2/socket"
at n6 6 --cluster other --munge-socket "$PAIR/munge-n2/socket"

# n1 looks names up in files only: no name server is asked.
mkdir "$PAIR/bin"
printf 'passwd: files\ngroup: files\nhosts: files\n' >"$PAIR/nsswitch.conf"
cat >"$PAIR/bin/iocomd" <<W
#!/bin/sh
exec unshare -m sh -c 'mount --bind "$PAIR/nsswitch.conf" /etc/nsswitch.conf && exec "\$0" "\$@"' "$IOCOM_BUILD/iocomd" "\$@"
W
chmod 755 "$PAIR/bin/iocomd"
n1_up() { # PEERS
	local IOCOM_BUILD_BEFORE=$IOCOM_BUILD
	IOCOM_BUILD=$PAIR/bin
	pair_agent n1 n2 --peers "$1" --shim "$IOCOM_BUILD_BEFORE/iocom-shim"
	IOCOM_BUILD=$IOCOM_BUILD_BEFORE
}
all=127.0.0.2:$P
for k in 3 4 5 6 11 12 13 20; do all+=,127.0.0.$k:$P; done
n1_up "$all,no-such-node.lab:$P"

peer() { # ADDRESS JQ: of the peer at ADDRESS, as n1 tells
	pair_on n1 nodes --json | jq -r --arg p "$1:$P" ".peers[] | select(.peer == \$p) | $2"
}
state_is() { [ "$(peer "$1" .state)" = "$2" ]; }
advice() { # ADDRESS: what doctor says of it
	pair_on n1 doctor --json | jq -r --arg p "$1:$P" \
		'.checks[] | select(.check == "peers" and .peer.peer == $p) | "\(.state): \(.says); \(.advice)"'
}
# ADDRESS STATE REGEX-OF-WHY REGEX-OF-ADVICE REGEX-OF-A-LOG-LINE
explained() {
	tap_true "$1: $2" until_true 30 state_is "$1" "$2"
	tap_like "... with the reason" "$(peer "$1" .why)" "$3"
	tap_is "... is not heard" "$(peer "$1" .heard)" false
	tap_like "... doctor says what to do" "$(advice "$1")" "^degraded: $1:$P is not heard: $2.*; $4"
	tap_true "... in the log" until_true 20 grep -qE -- "$5" "$PAIR/n1/log"
}
tap_true "one of them is heard" until_true 20 state_is 127.0.0.2 heard
tap_is "... by its name" "$(peer 127.0.0.2 .node)" n2
explained 127.0.0.20 refused "^nothing listens at its port $((P + 2))\$" 'start iocomd there' \
	"the peer at 127.0.0.20 port $P is not heard: nothing listens"
explained 127.0.0.3 "key differs" 'key|credential' 'give both machines the same MUNGE key' \
	"(no session with the node at .*127.0.0.3|refused a greeting from 127.0.0.3)"
explained 127.0.0.4 "clock differs" '(299|30[0-9]|310) s (before|after)' 'synchronise the clocks' \
	'(299|30[0-9]|310) s (before|after) this machine'
explained 127.0.0.5 "same name" 'two nodes call themselves n1' 'give each node its own --name' \
	'two nodes call themselves n1'
explained 127.0.0.6 "other cluster" 'belongs to the cluster' 'set cluster to the same name' \
	'belongs to the cluster (other|without a name)'
explained 127.0.0.11 "timed out" "port $((P + 2)) within|control port" "see that it is up and that TCP ports $P to $((P + 2)) are open" \
	"the peer at 127.0.0.11 port $P is not heard: no connection to its port $((P + 2)) within"
explained 127.0.0.13 "other version" 'speak. version 9' 'install the same version' \
	'cannot speak to the peer at 127.0.0.13 .*speak\? version 9'
tap_true "127.0.0.12: no answer" until_true 30 state_is 127.0.0.12 "no answer"
tap_true "no-such-node.lab: name unknown" until_true 30 state_is no-such-node.lab "name unknown"
tap_true "... in the log" grep -q 'cannot find the node at no-such-node.lab' "$PAIR/n1/log"
tap_is "... and doctor counts those beyond eight" \
	"$(pair_on n1 doctor --json | jq -r '.checks[] | select(.check == "peers") | .says' | tail -n 1)" \
	"1 more peer is not heard"
list=$(pair_on n1 nodes --peers)
tap_is "nodes --peers has a row for each" "$(wc -l <<<"$list")" 11
tap_like "... of the one that is heard, too" "$list" "^127\.0\.0\.2:$P +heard +[0-9.]+ [a-z]+ +n2 "
text=$(pair_on n1 nodes)
tap_is "nodes names those that are not heard" "$(grep -c '^peer ' <<<"$text")" 9
tap_is "... in 80 columns" "$(awk 'length($0) > 80' <<<"$text")" ""
tap_like "... with the reason" "$text" "^peer 127\.0\.0\.20:$P: refused for [0-9.]+ [a-z]+: nothing listens"
tap_is "the escape of a stranger reaches no terminal" "$(grep -c $'\033' <<<"$text$list")" 0

# --- two clusters that meet do not merge ---
others() { pair_on "$1" nodes --json | jq -c '[.nodes[].name] | sort'; }
tap_is "n1 has no node of the other cluster" "$(others n1)" '["n1","n2"]'
tap_is "... nor has that any of n1's" "$(others n6)" '["n6"]'
tap_calc "... refused and counted" "$(pair_count n1 clusters_refused) > 0 && $(pair_count n6 clusters_refused) > 0"

# --- a complaint that comes again and again ---
failed=$(pair_count n1 sessions_failed)
more_failed() { [ "$(pair_count n1 sessions_failed)" -ge $((failed + 6)) ]; }
tap_true "greetings fail again and again" until_true 30 more_failed
# At most at once and after one minute, and three in a long wait; without a bound it were one a second.
tap_calc "the log has few lines for one cause" \
	"$(grep -c 'no session with the node at .*127.0.0.6' "$PAIR/n1/log") <= 3"
tap_is "no line of the log came from a stranger's escape" "$(grep -c $'\033' "$PAIR/n1/log")" 0

# --- the trouble is over ---
pair_stop n6
at n6 6 --munge-socket "$PAIR/munge-n2/socket"
tap_true "a peer that has joined this cluster is heard" until_true 30 state_is 127.0.0.6 heard
tap_is "... as a node" "$(others n1)" '["n1","n2","n6"]'

# --- silence told apart from death ---
# A busy machine may have kept one of them silent for a moment before.
left=$(pair_count n1 nodes_left) dropped=$(pair_count n1 nodes_dropped)
pair_stop n6
gone() { pair_on n1 nodes --json | jq -e '.dropped[] | select(.name == "n6" and .left)' >/dev/null; }
tap_true "an agent that stops says so" until_true 5 gone
tap_true "... its peer has left" until_true 5 state_is 127.0.0.6 left
tap_is "... it was not found silent" "$(pair_count n1 nodes_left) $(pair_count n1 nodes_dropped)" "$((left + 1)) $dropped"
tap_like "... a job for it is refused by that sentence" "$(pair_on n1 run --node n6 -- true 2>&1)" "node 'n6' is not heard since its agent said"
pair_stop n2 KILL
died() { state_is 127.0.0.2 silent || state_is 127.0.0.2 refused; }
tap_true "one that was killed is silent, or refuses" until_true 15 died
tap_is "... was heard" "$(peer 127.0.0.2 '.last_heard_s != null')" true
tap_is "... and has not left" "$(pair_count n1 nodes_left)" "$((left + 1))"
found_silent() { [ "$(pair_count n1 nodes_dropped)" -gt "$dropped" ]; }
tap_true "... but was found silent" until_true 15 found_silent

# --- two peers share a name ---
rm -f "$PAIR/n2/run/iocom.sock"
at n2 2
at n6 6 --name n2 --munge-socket "$PAIR/munge-n2/socket"
tap_true "two peers share a name" until_true 30 state_is 127.0.0.2 "same name"
tap_true "... both" until_true 10 state_is 127.0.0.6 "same name"
tap_like "... and which" "$(peer 127.0.0.6 .why)" "it calls itself n2, as the peer at 127.0.0.2 port $P does"
tap_true "... in the log" until_true 10 grep -q 'two nodes call themselves n2 (the peers at' "$PAIR/n1/log"
pair_stop n6
tap_true "one has left: the other one is heard" until_true 30 state_is 127.0.0.2 heard

kill "${PAIR_PID[strangers]}"
wait "${PAIR_PID[strangers]}" 2>/dev/null
unset 'PAIR_PID[strangers]'
for node in n1 n2 n3 n4 n5; do pair_stop $node; done
tap_true "all agents exited with 0" test ! -s "$PAIR/bad"
[ ! -s "$PAIR/bad" ] || sed 's/^/# /' "$PAIR/bad"
tap_done
