#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# `iocom batch` over two nodes: workers are placed, each command runs once, also when a
# worker dies; nothing is left.
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
printf 'hostname\n' >"$SCRATCH/commands"
tap_is "its output comes back" "$(batch --node n2 -j 1 "$SCRATCH/commands")" n2
# shellcheck disable=SC2016
printf '%s\n' "echo begun >>$SCRATCH/begun; kill -KILL \$PPID; sleep 5" >"$SCRATCH/commands"
seq 20 | sed 's/.*/true/' >>"$SCRATCH/commands"
tap_is "a worker is killed: its command is lost, the rest runs" \
	"$(status batch --node n2 -j 2 --log "$SCRATCH/log" "$SCRATCH/commands") $(jq -s 'map(select(.state == "ended")) | length' "$SCRATCH/log")" "255 20"
tap_is "and is not run again" "$(wc -l <"$SCRATCH/begun")" 1
tap_is "no worker is admitted: 125" \
	"$(status "$TESTBED" exec n1 --user games -- iocom batch --node n2 -j 2 "$SCRATCH/commands")" 125
tap_like "why" "$(cat "$SCRATCH/err")" 'min_uid'
tap_is "and nothing began" "$(wc -l <"$SCRATCH/begun")" 1
tap_true "no job is left" until_true 10 \
	sh -c "[ \"\$('$TESTBED' exec n2 -- iocom jobs --json | jq '[.jobs[]?, .[]?] | map(objects | select(.state? == \"running\")) | length')\" = 0 ]"
tap_done
