#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# `iocom run -N`: many nodes in one command; and pdsh, which uses `iocom rsh` for many.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1
. tests/lib/tap.sh
. tests/lib/cluster.sh
cluster_up --nodes 3 --disk 0 --mem 1500
cluster_began=$SECONDS
tap_true "every node hears of every other" until_true 10 sees n1 3
# With `exec` a background command is iocom itself, by its pid.
r() { exec timeout -k 5 60 "$TESTBED" exec n1 -- iocom run "$@"; }
run() { (r "$@"); }
# status OPTION...: the exit status; what was printed is in $SCRATCH/o and $SCRATCH/e.
status() { run "$@" >"$SCRATCH/o" 2>"$SCRATCH/e" </dev/null; echo $?; }
out() { sort "$SCRATCH/o"; }
err() { cat "$SCRATCH/e"; }
ended() { ! pgrep -f "^sleep $1\$" >/dev/null; }
running() { [ "$(pgrep -cf "^sleep $1\$")" -eq "$2" ]; }

# --- lines and labels ---
tap_is "a list with a range: one job a node" "$(status -N 'n[1-3]' -- hostname) $(out | tr '\n' ' ')" \
	"0 n1: n1 n2: n2 n3: n3 "
tap_is "standard error is labelled there" "$(status -N n1,n2 -- sh -c 'echo x >&2') $(out)$(sort "$SCRATCH/e" | tr '\n' ' ')" \
	"0 n1: x n2: x "
tap_is "--no-label" "$(status -N n1,n2 --no-label -- echo x) $(out | tr '\n' ' ')" "0 x x "
tap_is "a line without its end is printed at the end, whole" \
	"$(status -N n1,n2 -- sh -c 'printf a; sleep 0.2; printf b') $(out | tr '\n' ' ')" "0 n1: ab n2: ab "
status -N 'n[1-3]' -- sh -c 'h=$(hostname); i=0; while [ $i -lt 3000 ]; do echo "$h line $i of many"; i=$((i+1)); done' >/dev/null
tap_is "9,000 lines: none mixed, none lost" \
	"$(grep -cE '^(n[1-3]): \1 line [0-9]+ of many$' "$SCRATCH/o") $(wc -l <"$SCRATCH/o")" "9000 9000"
tap_true "in the order of their node" bash -c 'for n in n1 n2 n3; do
	grep "^$n:" "$1" | cut -d" " -f4 | sort -nc || exit 1; done' - "$SCRATCH/o"
tap_is "a line longer than 1 MiB comes in pieces, nothing of it lost" \
	"$(status -N n1,n2 --no-label -- sh -c 'head -c 3000000 /dev/zero | tr "\0" x') $(tr -d '\n' <"$SCRATCH/o" | wc -c)" "0 6000000"
tap_like "and it is said" "$(err)" 'longer than 1048576 bytes were split in 4 places'
tap_is "bytes against truth, two nodes" \
	"$(run -N n2,n3 --no-label -- sh -c 'seq 1000000' | sort -n | cksum)" "$(seq 1000000 | sed p | cksum)"

# --- gathered ---
tap_is "--gather: the same output once, under all its nodes" \
	"$(status -N 'n[1-3]' --gather -- sh -c 'echo a; echo b') $(tr '\n' ' ' <"$SCRATCH/o")" \
	"0 --------------- n[1-3] (3) --------------- a b "
tap_is "other output apart, in the order of the list" \
	"$(status -N n3,n1,n2 --gather -- sh -c '[ "$(hostname)" = n1 ] && echo one || echo other') $(tr '\n' ' ' <"$SCRATCH/o")" \
	"0 --------------- n[2-3] (2) --------------- other --------------- n1 --------------- one "
tap_is "who prints nothing has no block" "$(status -N n1,n2 --gather -- sh -c '[ "$(hostname)" = n1 ] || echo x') $(tr '\n' ' ' <"$SCRATCH/o")" \
	"0 --------------- n2 --------------- x "
tap_is "more than memory is meant for comes in parts, nothing lost" \
	"$(status -N 'n[1-3]' --gather --no-label -- sh -c 'yes "lines of $(hostname)" | head -c 96000000') $(grep -c '^lines of n[1-3]$' "$SCRATCH/o")" \
	"0 24000000"
tap_like "and it is said" "$(err)" 'more than 256 MiB were gathered: [1-9]'
: >"$SCRATCH/o"

# --- which nodes ---
tap_is "all" "$(status -N all -- hostname) $(out | tr '\n' ' ')" "0 n1: n1 n2: n2 n3: n3 "
tap_is "a number: the best so many, different ones" \
	"$(status -N 2 -- hostname) $(cut -d: -f1 "$SCRATCH/o" | sort -u | wc -l)" "0 2"
tap_is "a number: all of them" "$(status -N 3 -- hostname) $(out | tr '\n' ' ')" "0 n1: n1 n2: n2 n3: n3 "
# Only some nodes have this directory: the others refuse, and another node is taken. n3 is busy, so
# a rule that counts tasks asks it last: of idle nodes either may be the best.
for _ in 1 2 3; do load n3 "$WORK" cpu 1; done
tap_true "n1 hears that n3 is busy" until_true 20 field_above n1 n3 run_queue 2
tap_true "and that n2 no longer is, with what ran before" until_true 20 field_below n1 n2 run_queue 0.5
mkdir "$SCRATCH/cwd"
for node in n1 n3; do on $node sh -c "mount -t tmpfs tmpfs $SCRATCH/cwd && mkdir $SCRATCH/cwd/some"; done
on n1 mkdir "$SCRATCH/cwd/one"
from() { "$TESTBED" exec n1 -- sh -c "cd $SCRATCH/cwd/$1 && iocom run $2" >"$SCRATCH/o" 2>"$SCRATCH/e" </dev/null; echo $?; }
tap_is "a number: a node that refuses is passed over" "$(from some '-N 2 --policy cpu-re -- hostname') $(out | tr '\n' ' ')" "0 n1: n1 n3: n3 "
tap_like "said with the reason" "$(err | tr '\n' ' ')" \
	'^n2: iocom run: node n2 refused the job \(path-missing\).* iocom run: n3 takes the place of n2 $'
tap_like "explain: not the user's choice" "$(on n1 iocom explain last)" '^-N chose n[13]; .* alone would have taken'
tap_is "a number: when all others refuse, that one failed" "$(from one '-N 2 --policy cpu-re -- hostname') $(out)" "125 n1: n1"
tap_like "by the last that was asked" "$(err)" '1 of 2 nodes failed: n3 not started \(125\)$'
tap_is "nodes by name: none is passed over" "$(from some '-N n1,n2 -- hostname') $(out)" "125 n1: n1"
tap_is "and all is no number: the one that refuses failed" "$(from some '-N all -- hostname') $(out | tr '\n' ' ')" "125 n1: n1 n3: n3 "
tap_is "a command that a node cannot find is no refusal" "$(status -N 2 -- /no/such/command) $(grep -c 'takes the place' "$SCRATCH/e")" "127 0"
tap_is "more than there are: refused, nothing runs" "$(status -N 4 -- hostname)$(out)" 125
tap_like "with the numbers" "$(err)" '4 nodes .* only 3'
for bad in "=an empty" "n1,,n2=an empty" "n[2-1]=backwards" "n[1-=without its" "n[1-x]=bad range" \
	"n1,n1=n1 is named twice" "n[1-3],n2=n2 is named twice" "0=1 to" "n 1=character"; do
	tap_is "-N '${bad%%=*}': refused" "$(status -N "${bad%%=*}" -- hostname)$(out)" 125
	tap_like "and why" "$(err)" "${bad#*=}"
done
tap_is "-N with --node: refused" "$(status -N n1 --node n2 -- true)" 125
tap_is "-N with --pty: refused" "$(status -N n1 --pty -- true)" 125
tap_is "--gather without -N: refused" "$(status --gather -- true)" 125
tap_is "--fanout 0: refused" "$(status -N n1 --fanout 0 -- true)" 125
tap_is "-N with -n: refused" "$(status -N n1 -n 2 -- true)" 125
tap_is "--stdin all without -N: refused" "$(status --stdin all -- true)" 125
tap_is "--stdin some: refused" "$(status -N n1 --stdin some -- true)" 125

# --- some fail ---
tap_is "an unknown node: 125, the others run" "$(status -N n1,nowhere,n2 -- hostname) $(out | tr '\n' ' ')" \
	"125 n1: n1 n2: n2 "
tap_like "said with its name, and why" "$(err)" "^nowhere: iocom run: node 'nowhere' is unknown"
tap_like "and in the sum" "$(err)" '^iocom run: 1 of 3 nodes failed: nowhere not started \(125\)$'
tap_is "the highest status counts" "$(status -N 'n[1-3]' -- sh -c 'exit $(hostname | tr -d n)')" 3
tap_like "each is told" "$(err)" '3 of 3 nodes failed: n1 exit 1; n2 exit 2; n3 exit 3$'
tap_is "all well: nothing is said" "$(status -N 'n[1-3]' -- true)$(err)" 0
tap_is "no such command: 127" "$(status -N n1,n2 -- no-such-command)" 127
tap_is "no agent: 125" "$(status --run-dir /nowhere -N n1,n2 -- true)" 125
tap_is "a writer to a full disk: 255" "$(run -N n1,n2 -- echo x 2>"$SCRATCH/e" >/dev/full; echo $?)" 255
tap_like "says so" "$(err)" 'No space left'
"$TESTBED" exec n1 -- sh -c 'iocom run -N all --no-label -- yes | head -n 2' >"$SCRATCH/o" 2>"$SCRATCH/e"
tap_is "the reader leaves: silent, as yes | head" "$(tr -d '\n' <"$SCRATCH/o")$(err)" yy
"$TESTBED" exec n1 -- sh -c 'iocom run -N all --no-label -- sh -c "[ \$(hostname) != n2 ] || exit 7; yes" | head -n 2' >"$SCRATCH/o" 2>"$SCRATCH/e"
tap_is "but for those that failed otherwise" "$(err)" 'iocom run: 1 of 3 nodes failed: n2 exit 7'
status -N n1,n2 -- sh -c 'kill -PIPE $$' >/dev/null
tap_like "and SIGPIPE where our reader stays" "$(err)" '2 of 2 nodes failed: n\[1-2\] killed by SIGPIPE$'
tap_is "--kill-on-fail: the others end, the status is the first's" \
	"$(status -N 'n[1-3]' --kill-on-fail -- sh -c ': >"$0.$(hostname)"; [ "$(hostname)" = n2 ] || exec sleep 3701
	until [ -e "$0.n1" ] && [ -e "$0.n3" ]; do sleep 0.1; done; exit 3' "$SCRATCH/there")" 3
tap_like "how each ended" "$(err)" 'n\[1,3\] killed by SIGTERM; n2 exit 3|n2 exit 3; n\[1,3\] killed by SIGTERM'
tap_true "nothing is left" until_true 5 ended 3701
tap_is "--kill-on-fail: those that had not begun do not" \
	"$(status -N 'n[1-3]' --kill-on-fail --fanout 1 -- sh -c 'hostname; exit 4') $(out)" "4 n1: n1"
tap_like "said so" "$(err)" 'n\[2-3\] not begun'
tap_is "without it they do" "$(status -N 'n[1-3]' --fanout 1 -- sh -c 'hostname; exit 4') $(out | wc -l)" "4 3"
status -N n1,n2 --json -- sh -c '[ "$(hostname)" = n1 ] || exit 9' >/dev/null
tap_is "--json: one line for all at the end" \
	"$(grep '^{' "$SCRATCH/e" | tail -n 1 | jq -c '[.state, .status, .failed, (.nodes[] | .node, .state, .status)]')" \
	'["all-ended",9,1,"n1","exited",0,"n2","exited",9]'
tap_is "few descriptors: fewer at a time, all run" \
	"$(ulimit -n 40; status -N 'n[1-3]' -- hostname; out | wc -l)" $'0\n3'

# --- input ---
tap_is "standard input is nobody's" "$(echo abc | run -N n1,n2 -- wc -c | sort | tr '\n' ' ')" "n1: 0 n2: 0 "
head -c 20000000 /dev/urandom >"$SCRATCH/in"
truth=$(sha256sum <"$SCRATCH/in")
tap_is "--stdin all: each has all of it" "$(run -N 'n[1-3]' --stdin all --gather --no-label -- sha256sum <"$SCRATCH/in")" "$truth"
tap_is "a node that reads nothing stops no other" \
	"$(run -N 'n[1-3]' --stdin all --no-label -- sh -c '[ "$(hostname)" = n1 ] || sha256sum' <"$SCRATCH/in" | sort -u)" "$truth"
tap_is "more nodes than run at a time: refused" "$(status -N 'n[1-3]' --stdin all --fanout 2 -- cat)" 125
rm -f "$SCRATCH/in"

# --- things die ---
(r -N 'n[1-3]' -- sleep 3702) >"$SCRATCH/o" 2>"$SCRATCH/e" &
until_true 10 running 3702 3
client=$(pgrep -f '^iocom run -N n\[1-3\] -- sleep 3702' | head -n 1)
kill -9 "$(pgrep -f '^sleep 3702$' | head -n 1)"
tap_true "a job is killed in the middle: the others go on" until_true 10 running 3702 2
kill -INT "$client"
wait $!
tap_is "Ctrl-C ends the others, the highest status is its own" "$? $(ended 3702 && echo ended)" "137 ended"
tap_like "who ended how" "$(err)" '3 of 3 nodes failed: .*killed by SIGKILL'
tap_like "and" "$(err)" 'killed by SIGINT'

# Like a terminal: to the whole process group.
setsid "$TESTBED" exec n1 -- iocom run -N 'n[1-3]' --no-label -- \
	sh -c 'trap "echo INT; exit 7" INT; echo ready; while :; do sleep 0.1; done' >"$SCRATCH/o" 2>"$SCRATCH/e" &
ready() { [ "$(grep -c ready "$SCRATCH/o")" -eq 3 ]; }
until_true 10 ready
kill -INT -- -$!
wait $!
tap_is "Ctrl-C at a terminal comes to each job, once" "$? $(grep -c INT "$SCRATCH/o")" "7 3"

(r --grace 1 -N 'n[1-3]' -- sleep 3703) >"$SCRATCH/o" 2>"$SCRATCH/e" &
until_true 10 running 3703 3
client=$(pgrep -f '^iocom run --grace 1 -N n\[1-3\] -- sleep 3703' | head -n 1)
kill -9 "$(pgrep -P "$client" | head -n 1)"
tap_true "the client of one node is killed: its job ends, two go on" until_true 10 running 3703 2
kill -9 "$client"
wait $! 2>/dev/null
clients_gone() { ! pgrep -f -- '--grace 1 -N n\[1-3\] -- sleep 3703'; }
tap_true "kill -9 of the program: its clients go with it" until_true 5 clients_gone
tap_true "and no job outlives the grace" until_true 10 ended 3703

(r -N n2,n3 -- sh -c 'echo $$; exec sleep 3704') >"$SCRATCH/o" 2>"$SCRATCH/e" &
until_true 10 running 3704 2
agent=$(<"${IOCOM_TESTBED_DIR:-/run/${IOCOM_TESTBED_MARK:-iocom-testbed}}/n2/agent.pid")
kill -9 "$(pgrep -P "$agent" -x iocom-shim | head -n 1)"
tap_true "the supervisor of one is killed: its client says so" until_true 10 grep -q '^n2: .*contact' "$SCRATCH/e"
client=$(pgrep -f '^iocom run -N n2,n3 -- sh -c echo' | head -n 1)
kill -TERM "$client"
wait $!
tap_is "and the status is 255, outcome unknown" "$?" 255
tap_true "no job is left" until_true 10 ended 3704
tap_is "a reader that leaves ends all of them" \
	"$(timeout -k 5 30 "$TESTBED" exec n1 -- sh -c 'iocom run -N n1,n2,n3 --no-label -- yes 2>/dev/null | head -n 1')" y

# --- pdsh ---
if command -v pdsh >/dev/null; then
	tap_is "pdsh by its exec module" \
		"$(on n1 timeout -k 5 30 pdsh -R exec -w 'n[1-3]' iocom rsh %h hostname | sort | tr '\n' ' ')" "n1: n1 n2: n2 n3: n3 "
	tap_is "its exit status comes through: -S" "$(on n1 timeout -k 5 30 pdsh -S -R exec -w n2 iocom rsh %h exit 7 >/dev/null 2>&1; echo $?)" 7
else
	tap_skip "pdsh" "not installed"
fi
echo "# | test_multi: $((SECONDS - cluster_began)) s with the cluster"
tap_done
