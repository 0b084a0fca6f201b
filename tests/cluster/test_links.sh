#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# `nodes --links` tells what the kernel counted of connections to another node: of the agents alone,
# and then of a program that sends a known number of bytes.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=tests/lib/tap.sh disable=SC1091
. tests/lib/tap.sh
# shellcheck source=tests/lib/pair.sh disable=SC1091
. tests/lib/pair.sh
pair_begin
for node in n1 n2; do # not by tap_true: its subshell would keep the pids to itself
	pair_munged "$node" || { tap_fail "munged for $node" "$(cat "$PAIR/munge-$node/out")"; tap_done; exit 1; }
done
pair_agent n1 n2 || tap_fail "n1 starts" "$(cat "$PAIR/n1/log")"
pair_agent n2 n1 || tap_fail "n2 starts" "$(cat "$PAIR/n2/log")"
nodes() { "$IOCOM_BUILD/iocom" nodes --run-dir "$PAIR/n1/run" "$@"; }
link() { nodes --json | jq -r --arg field "$1" '.links[] | select(.node == "n2") | .[$field]'; }
known() { [ -n "$(link round_trip_ms | grep -vx null)" ]; }
tap_true "the agents' own connections show the round trip" until_true 15 known
tap_is "the source is told" "$(link source)" tcp
tap_like "the address" "$(link address)" '^127\.0\.0\.1$'
tap_calc "there are connections" "$(link connections) > 0"
tap_calc "the round trip is no guess" "$(link round_trip_ms) > 0 && $(link round_trip_ms) < 1000"
# 64 MB, while a look sees the connection before and after it.
python3 - "$PAIR/go" <<'PY' &
import os, socket, sys, threading, time
listener = socket.create_server(("127.0.0.1", 0))
client = socket.create_connection(listener.getsockname())
server = listener.accept()[0]
def drain():
    while server.recv(1 << 20):
        pass
threading.Thread(target=drain).start()
until = time.time() + 60
while not os.path.exists(sys.argv[1]) and time.time() < until:
    time.sleep(0.05)
block = bytes(1 << 20)
for _ in range(64):
    client.sendall(block)
while not os.path.exists(sys.argv[1] + ".end") and time.time() < until:
    time.sleep(0.05)
client.close()
PY
sender=$!
before=$(link connections)
more() { [ "$(link connections)" -ge "$before" ]; }
until_true 5 more
sequence() { nodes --json | jq -r '.nodes[] | select(.self) | .sequence'; }
first=$(sequence)
later() { [ "$(sequence)" -ge $((first + 3)) ]; }
until_true 10 later
touch "$PAIR/go"
carried() { jq -en "$(link at_least_mb_per_s) > 1" >/dev/null; }
tap_true "what the link carried is told as its least rate" until_true 15 carried
touch "$PAIR/go.end"
wait "$sender"
# 64 MB within a period of 0.3 s, and the agents' few bytes: nothing carried more.
tap_calc "never more than was carried" "$(link at_least_mb_per_s) <= 2 * 68 / 0.25"
tap_like "the table has it, with units" "$(nodes --links | head -n 1)" 'RTT ms.*NOW MB/s.*AT LEAST MB/s.*TCP MB/s'
tap_like "and the node" "$(nodes --links)" $'\nn2 '
tap_done
