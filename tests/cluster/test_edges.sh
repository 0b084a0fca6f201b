#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# Something dies or fills up between two steps: munged between a request and its start, an agent
# between accepting a job and its supervisor, the disk below a detached job's output; and two
# agents start at the same moment. Two agents on this machine; no testbed.
set -uo pipefail
cd "$(dirname "$0")/../.."
. tests/lib/tap.sh
. tests/lib/pair.sh
pair_begin
edges_end() {
	kill "${BETWEEN:-}" 2>/dev/null
	pair_stop n2
	umount "$PAIR/n2/state" 2>/dev/null
	pair_end
}
trap edges_end EXIT
pair_munged n1
pair_munged n2
chmod 1777 "$PAIR"
ran() { cat "$PAIR/ran" 2>/dev/null | wc -l; }
job() { pair_user n1 run --node n2 -- sh -c "echo ran >>$PAIR/ran"; }

# --- munged dies between the request and the start ---
# n1's agent and its users talk to munge_between.py; n2's munged is real.
mkdir "$PAIR/between" # root alone may write in the directory of the socket
python3 tests/cluster/munge_between.py "$PAIR/between/socket" "$PAIR/munge-n1/socket" "$PAIR" &
BETWEEN=$!
until_true 10 test -S "$PAIR/between/socket"
pair_agent n1 n2 --munge-socket "$PAIR/between/socket"
mkdir -p "$PAIR/n2/state"
mount -t tmpfs -o size=6m,mode=700 iocom-edges "$PAIR/n2/state"
pair_agent n2 n1
tap_true "two nodes" until_true 15 pair_sees n1 2
begin() { # a job that waits for its credential
	rm -f "$PAIR"/{asks,ask,has,give}
	: >"$PAIR/hold"
	job >"$PAIR/out" 2>"$PAIR/err" &
	HELD=$!
	until_true 10 test -e "$PAIR/asks"
}
go_on() { # NAME...
	local name
	for name in "$@"; do : >"$PAIR/$name"; done
	wait "$HELD"
	RC=$?
	rm -f "$PAIR/hold"
}
begin
go_on ask give
tap_is "a held credential is as good: the job runs" "$RC $(ran)" "0 1"
begin
pair_stop munge-n1
rm -f "$PAIR/munge-n1/socket"
go_on ask give
tap_is "n1's munged dies before the start is sealed: 125, nothing runs" "$RC $(ran)" "125 1"
tap_like "the sentence names munged" "$(cat "$PAIR/err")" 'munged does not answer at .*/between'
pair_munged n1
begin
: >"$PAIR/ask"
until_true 10 test -e "$PAIR/has"
pair_stop munge-n2
rm -f "$PAIR/munge-n2/socket"
go_on give
tap_is "n2's munged dies before the start arrives: 125, nothing runs" "$RC $(ran)" "125 1"
tap_like "the sentence names munged there" "$(cat "$PAIR/err")" 'munged does not answer at .*/munge-n2/socket'
pair_munged n2
tap_true "with both there again" until_true 15 pair_sees n1 2
again() { job 2>/dev/null; }
tap_true "a job runs" until_true 15 again
tap_is "once" "$(ran)" 2

# --- the disk is full below a detached job's output ---
detach() { # MIB STATUS: the job's name
	pair_user n1 run --detach --node n2 -- sh -c "head -c $1000000 /dev/zero | tr '\0' x; exit $2" 2>&1
}
kept() { pair_user "${2:-n1}" attach "$1" 2>"$PAIR/err" >"$PAIR/out"; RC=$?; } # JOB [NODE]
small=$(detach 1 5)
kept "$small"
[ "$RC" = 5 ] || sed 's/^/# | /' <(echo "$small") "$PAIR/err"
tap_is "a detached job with room: all it wrote, and its status" "$RC $(wc -c <"$PAIR/out")" "5 1000000"
big=$(detach 30 6)
tap_is "one that fills the disk goes on to its own end" "$(pair_user n1 wait "$big" >/dev/null 2>&1; echo $?)" 6
kept "$big"
tap_is "a credential that cannot be noted as used is not obeyed" "$RC $(wc -c <"$PAIR/out")" "125 0"
tap_like "which is said" "$(cat "$PAIR/err")" 'disk is full; free space'
kept "$big" n2
n=$(wc -c <"$PAIR/out")
tap_calc "at its own node what was kept is sent ($n bytes), and its status ($RC)" "$RC == 6 && $n > 1000000 && $n < 7000000"
tap_is "which is the beginning of what it wrote" "$(head -c "$n" /dev/zero | tr '\0' x | cmp - "$PAIR/out" 2>&1)" ""
tap_like "what is missing is counted" "$(cat "$PAIR/err")" "bytes $n to 30000000 of the job's output were not kept \($((30000000 - n)) bytes\)"
refused=$(pair_user n1 run --node n2 -- echo never 2>&1)
tap_like "while it is full a further job is refused, with the reason" "$refused" 'full|free space'
rm -rf "$PAIR/n2/state/jobs/$big"
until_true 10 job
tap_true "with room again a job runs" until_true 10 job

# --- an agent is killed between accepting a job and its supervisor's beginning ---
cat >"$PAIR/late-shim" <<J
#!/bin/bash
echo \$\$ >>"$PAIR/late"
until [ -e "$PAIR/begin" ]; do sleep 0.05; done
exec -a iocom-shim "$IOCOM_BUILD/iocom-shim" "\$@"
J
chmod 755 "$PAIR/late-shim"
accepted() { pair_on n2 jobs --json | jq -re '.jobs[] | select(.state == "starting") | .job'; }
state_of() { pair_on "$1" jobs --all --json | jq -r --arg j "$2" '.jobs[] | select(.job == $j) | .state + ": " + .text'; }
has_state() { [[ $(state_of "$1" "$2") == $3 ]]; }
late_job() { # sets held and name; the agent has restarted by then
	pair_stop n2
	rm -f "$PAIR/n2/run/iocom.sock" "$PAIR/late" "$PAIR/begin"
	pair_agent n2 n1 --shim "$PAIR/late-shim"
	until_true 15 pair_sees n1 2
	before=$(ran)
	job >"$PAIR/out" 2>"$PAIR/err" &
	held=$!
	until_true 15 test -e "$PAIR/late"
	until_true 10 accepted >/dev/null
	name=$(accepted)
	pair_stop n2 KILL
	rm -f "$PAIR/n2/run/iocom.sock"
	pair_agent n2 n1
}
late_job
tap_like "the next agent does not bury it" "$(state_of n2 "$name")" '^(starting|running|late): $'
: >"$PAIR/begin"
wait $held
tap_is "the late supervisor runs it, once" "$? $(ran)" "0 $((before + 1))"
tap_true "and its agent knows" until_true 10 has_state n2 "$name" 'exited: *'

late_job
# Like a supervisor that was killed between making the job's cgroup and writing its record.
# So is one that an older agent made, which is not below its user's.
groups=$(awk '$3 == "cgroup2" { print $2; exit }' /proc/mounts)/$PAIR_SCOPE/n2/jobs
mkdir -p "$groups/user@65534/$name" "$groups/$name"
# Kill the spare that has the order, and the next one, which ended with its agent or waits as
# well.
while read -r pid; do kill -KILL "$pid" 2>/dev/null; done <"$PAIR/late"
wait $held
rc=$?
tap_true "one that is killed before: it never began, which is not lost" \
	until_true 10 has_state n1 "$name" 'failed: it never began*'
tap_is "nothing ran" "$(ran)" "$before"
tap_is "its cgroup is gone, and its user's" "$(find "$groups" -name "$name" -o -name 'user@*')" ""
tap_like "the client is told ($rc)" "$(cat "$PAIR/err")" "it never began"
tap_is "with the status of what did not start" "$rc" 125
tap_true "a new job runs" until_true 15 job
tap_is "once" "$(ran)" "$((before + 1))"

# --- two agents at the same moment ---
pair_stop n1
pair_stop n2
twin() { # LOG RUN-DIRECTORY
	"$IOCOM_BUILD/iocomd" --name n1 --run-dir "$2" --state-dir "$PAIR/twins" --shim "$IOCOM_BUILD/iocom-shim" >"$1" 2>&1 &
}
wins=0 said=0
for round in 1 2 3 4; do
	rm -rf "$PAIR"/run[12]
	other=$PAIR/run$((round % 2 + 1)) # once with one run directory, once with two
	twin "$PAIR/log1" "$PAIR/run1"
	one=$!
	twin "$PAIR/log2" "$other"
	two=$!
	wait -n "$one" "$two"
	rc=$?
	if kill -0 "$one" 2>/dev/null; then alive=$one log=$PAIR/log2 run=$PAIR/run1; else alive=$two log=$PAIR/log1 run=$other; fi
	[ "$rc" -eq 0 ] || said=$((said + $(grep -c 'another iocomd already runs on' "$log")))
	until_true 15 test -S "$run/iocom.sock"
	[ "$(IOCOM_RUN_DIR=$run timeout 20 "$IOCOM_BUILD/iocom" run -- echo served 2>&1)" = served ] && wins=$((wins + 1))
	kill "$alive"
	wait "$alive"
done
tap_is "of two agents on one journal one serves, the other says why not" "$wins $said" "4 4"
tap_done
