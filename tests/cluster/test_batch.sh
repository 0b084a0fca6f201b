#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# `iocom batch` over two nodes: workers are placed, each command runs once, even if a worker dies,
# and nothing is left behind.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1
. tests/lib/tap.sh
. tests/lib/cluster.sh
cluster_up --nodes 2 --disk 0
tap_true "every node hears of every other" until_true 10 sees n1 2
status() { "$@" >"$SCRATCH/out" 2>"$SCRATCH/err"; echo $?; }
batch() { timeout 60 "$TESTBED" exec n1 -- iocom batch "$@"; }
nodes() { jq -r .node "$SCRATCH/log" | sort -u | paste -sd ' '; }

seq 300 | sed "s|.*|mkdir $SCRATCH/once-&|" >"$SCRATCH/commands"
tap_is "300 commands on another node" \
	"$(status batch --node n2 -j 2 --log "$SCRATCH/log" "$SCRATCH/commands")" 0
tap_is "each ran, once" "$(find "$SCRATCH" -name 'once-*' | wc -l)" 300
tap_is "there" "$(nodes)" n2
tap_is "they are two jobs, of a class of their own" \
	"$(on n1 iocom jobs --all --json | jq '[.jobs[]?, .[]?] | map(objects | select(.class? == "batch")) | length')" 2
tap_is "with the list's name" \
	"$(for n in n1 n2; do on $n iocom jobs --all --json | jq -r '[.jobs[]?, .[]?] | map(objects | select(.class? == "batch"))[].command'; done | sort -u)" \
	"iocom batch $SCRATCH/commands, a worker"
printf 'hostname\n' >"$SCRATCH/commands"
tap_is "its output comes back" "$(batch --node n2 -j 1 "$SCRATCH/commands")" n2
# shellcheck disable=SC2016
printf '%s\n' "echo begun >>$SCRATCH/begun; kill -KILL \$PPID; sleep 5" >"$SCRATCH/commands"
seq 20 | sed 's/.*/true/' >>"$SCRATCH/commands"
tap_is "a worker is killed: its command is lost, the rest runs" \
	"$(status batch --node n2 -j 2 --force --log "$SCRATCH/log" "$SCRATCH/commands") $(jq -s 'map(select(.state == "ended")) | length' "$SCRATCH/log")" "255 20"
tap_is "and is not run again" "$(wc -l <"$SCRATCH/begun")" 1
tap_is "no worker is admitted: 125" \
	"$(status "$TESTBED" exec n1 --user games -- iocom batch --node n2 -j 2 "$SCRATCH/commands")" 125
tap_like "why" "$(cat "$SCRATCH/err")" 'min_uid'
tap_is "once for both, by the batch's own name" "$(grep -c min_uid "$SCRATCH/err") $(grep -vc '^iocom batch: ' "$SCRATCH/err")" "1 0"
tap_is "and nothing began" "$(wc -l <"$SCRATCH/begun")" 1
on n1 iocom run --node n1 -- true
printf '%s\n' 'seq 300000' "sleep 98.$$" >"$SCRATCH/commands"
sleeping() { ps -eo args | grep -c "^sleep 98\.$$\$"; } # all nodes share this machine's processes
ended() { [ "$(sleeping)" = 0 ]; }
begun() { [ "$(sleeping)" = 1 ]; }
batch --node n2 -j 2 "$SCRATCH/commands" 2>"$SCRATCH/err" | head -n 1 >"$SCRATCH/out"
tap_is "its reader leaves: as yes | head" "${PIPESTATUS[0]} $(cat "$SCRATCH/out" "$SCRATCH/err")" "141 1"
tap_true "and what ran on the other node is ended" until_true 10 ended
sed -i 's/seq.*/true/' "$SCRATCH/commands"
"$TESTBED" exec n1 -- sh -c "echo \$\$ >$SCRATCH/pid; exec iocom batch --node n2 -j 2 --force --log $SCRATCH/log $SCRATCH/commands" 2>"$SCRATCH/err" &
tap_true "a list stands at a long command" until_true 10 begun
worker=$(on n1 iocom jobs --here --json | jq -r '.jobs[0].job')
for take in "" --take; do
	# shellcheck disable=SC2086 # none or one
	tap_like "attach $take to its worker: refused" "$(on n1 iocom attach $take "$worker" 2>&1; echo $?)" \
		"iocom attach: job $worker is a worker of iocom batch, whose output is the batch's own"$'\n'125
done
tap_is "no worker is anybody's last job" "$(on n1 iocom wait last; echo $?) $(on n1 iocom explain last --json | jq -r .place.node)" "0 n1"
kill -TERM "$(cat "$SCRATCH/pid")"
wait $!
tap_is "a signal ends it" "$?" 143
tap_is "and the log says so" "$(jq -r .state "$SCRATCH/log" | paste -sd ' ')" "ended stopped"
tap_true "and it is over there, too" until_true 10 ended
tap_true "no job is left" until_true 10 \
	sh -c "[ \"\$('$TESTBED' exec n2 -- iocom jobs --json | jq '[.jobs[]?, .[]?] | map(objects | select(.state? == \"running\")) | length')\" = 0 ]"
tap_done
