#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# Job streams between three nodes: nothing of a job crosses the network in clear, a job can be
# attached to from any node, and who listens at a node's port in place of its agent learns nothing.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=tests/lib/tap.sh disable=SC1091
. tests/lib/tap.sh
# shellcheck source=tests/lib/cluster.sh disable=SC1091
. tests/lib/cluster.sh
cluster_up --nodes 3 --disk 40,40,40
tap_true "every node hears of the others" until_true 10 sees n1 3
until_true 10 sees n3 3
at() { local node=$1; shift; timeout 60 "$TESTBED" exec "$node" -- "$@"; }
nobody_at() { timeout 60 "$TESTBED" exec "$1" --user nobody -- sh -c "cd / && $2"; }
detach() { at n1 iocom run --node "$1" --detach -- "${@:2}"; } # NODE COMMAND...

# --- from any node ---
for where in n1 n2; do
	job=$(detach $where sh -c "echo one; until [ -e $SCRATCH/go.$where ]; do sleep 0.05; done; echo two; exit 5" </dev/null)
	at n3 iocom attach "$job" </dev/null >"$SCRATCH/out" 2>"$SCRATCH/err" &
	follower=$!
	tap_true "a job of n1 at $where: a third node sees its output" until_true 10 grep -q one "$SCRATCH/out"
	: >"$SCRATCH/go.$where"
	wait $follower
	tap_is "... all of it, and its status" "$? $(tr '\n' ' ' <"$SCRATCH/out")" "5 one two "
	tap_is "... and after its end, what is kept" "$(at n3 iocom attach "$job" 2>&1 | tr '\n' ' '; echo "${PIPESTATUS[0]}")" "one two 5"
	tap_like "another user has no such job" "$(nobody_at n3 "iocom attach $job" 2>&1; echo $?)" "no job of yours"
done
tap_like "a job of no node" "$(at n3 iocom attach n9-0badcafe-1 2>&1)" "no job of yours"
tap_like "a job that its home does not know" "$(at n3 iocom attach n1-0badcafe-1 2>&1)" "no job of yours named n1-0badcafe-1 was submitted at node n1"
job=$(at n1 iocom run --node n2 -- true 2>&1; at n1 iocom jobs --here --all --json | jq -r '.jobs[0].job')
tap_like "a job that left no output: how it ended" "$(at n3 iocom attach "$job" 2>&1; echo $?)" "has ended with status 0"

# --- what the network sees ---
cat >"$SCRATCH/sniff.py" <<'P'
import select, socket, sys, time
s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
until = time.monotonic() + 60
with open(sys.argv[1], "wb") as kept:
    open(sys.argv[2], "w").close()
    while time.monotonic() < until and not select.select([sys.stdin], [], [], 0)[0]:
        if select.select([s], [], [], 0.1)[0]:
            kept.write(s.recv(65536))
P
mkfifo "$SCRATCH/stop-sniffing"
at n1 python3 "$SCRATCH/sniff.py" "$SCRATCH/seen" "$SCRATCH/sniffs" <"$SCRATCH/stop-sniffing" &
sniffer=$!
exec 8>"$SCRATCH/stop-sniffing"
until_true 10 test -e "$SCRATCH/sniffs"
tap_is "a job with a secret in its environment, its input and its command" \
	"$(echo of-its-input | at n1 iocom run --env SECRET=of-its-environment --node n2 -- \
		sh -c 'cat; echo $SECRET of-its-command' | tr '\n' ' ')" "of-its-input of-its-environment of-its-command "
exec 8>&-
wait $sniffer
tap_calc "its packets were recorded" "$(stat -c %s "$SCRATCH/seen") > 1000"
for secret in of-its-input of-its-environment of-its-command SECRET=; do
	tap_is "... and '$secret' is not in them" "$(grep -ac -- "$secret" "$SCRATCH/seen")" 0
done

# --- somebody who listens at the port while the agent is away ---
cat >"$SCRATCH/squat.py" <<'P'
import socket, struct, sys
s = socket.socket()
s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
s.bind(("10.77.0.2", 7702))
s.listen(8)
s.settimeout(15)
for i in range(3):
    c, _ = s.accept()
    c.settimeout(2)
    heard = b""
    try:
        head = c.recv(8, socket.MSG_WAITALL)
        heard = head + c.recv(struct.unpack(">I", head[4:])[0], socket.MSG_WAITALL)
        if i == 0:  # it refuses, welcomes, and then closes
            c.sendall(b"ic\1\3\0\0\0\7go away")
        elif i == 1:
            c.sendall(b"ic\2\x0f\0\0\0\x64" + bytes(100))
        if i < 2:
            while True:
                more = c.recv(65536)
                heard += more
                if not more:
                    break
    except OSError:
        pass
    c.close()
    with open(sys.argv[1], "ab") as kept:
        kept.write(heard)
P
agent=$(cat "${IOCOM_TESTBED_DIR:-/run/${IOCOM_TESTBED_MARK:-iocom-testbed}}/n2/agent.pid")
mapfile -d '' -t command <"/proc/$agent/cmdline"
mkfifo "$SCRATCH/input"
at n1 iocom run --grace 60 --node n2 -- sh -c 'echo up; read -r x; echo got-$x; exit 7' <"$SCRATCH/input" >"$SCRATCH/out" 2>"$SCRATCH/err" &
run=$!
exec 7>"$SCRATCH/input"
tap_true "a job runs" until_true 10 grep -q up "$SCRATCH/out"
kill -9 "$agent"
at n2 python3 "$SCRATCH/squat.py" "$SCRATCH/heard" &
squatter=$!
until_true 5 eval 'on n2 ss -ltn | grep -q 10.77.0.2:7702'
on n1 ss -K dst 10.77.0.2 dport = 7702 >/dev/null 2>&1
if wait $squatter && [ -s "$SCRATCH/heard" ]; then
	echo of-its-input >&7
	tap_is "its client asks the squatter three times, and says nothing but its first message" \
		"$(python3 -c 'import sys
data, n = open(sys.argv[1], "rb").read(), 0
while data:
    assert data[:4] == b"ic\2\x0e", data
    data, n = data[8 + int.from_bytes(data[4:8], "big"):], n + 1
print(n)' "$SCRATCH/heard")" 3
	"$TESTBED" exec n2 -- "${command[@]}" >"$SCRATCH/agent.log" 2>&1 &
	agent=$!
	exec 7>&-
	wait $run
	tap_is "when the agent is back the job goes on, and ends" "$? $(tr '\n' ' ' <"$SCRATCH/out")" "7 up got-of-its-input "
	tap_like "its client said that contact was lost" "$(cat "$SCRATCH/err")" "contact with node n2 was lost"
	kill -TERM $agent
	wait $agent
else
	exec 7>&-
	kill $run
	tap_ok "the kernel cannot close another's connection: no squatter # SKIP"
fi
tap_done
