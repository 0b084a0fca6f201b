#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# How long jobs of several sizes are frozen when they move between two agents of this machine, by a
# real criu: medians of MOVES moves each.  The agents talk over loopback, sealed; what a slower link
# adds is bytes / its speed.  The goal is 150 ms for 16 MB.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1
. tests/lib/tap.sh
. tests/lib/pair.sh
MOVES=${MOVES:-9} SIZES=${SIZES:-1 16 64 256 512}
pair_criu || exit 1
pair_begin
pair_movers || exit 1
median() { sort -n | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'; }
printf '%8s %8s %10s %10s %12s %14s\n' "job MB" "moves" "sent MB" "frozen ms" "to save ms" "of 150 ms"
for mb in $SIZES; do
	job=$(pair_on n1 run --node n1 --detach --migratable --mem "${mb}M" -- python3 -c "
import os, time
x = os.urandom($mb * 1000000)
while True: time.sleep(0.01)")
	sleep $((1 + mb / 256))
	: >"$PAIR/moves"
	for ((i = 0; i < MOVES; i++)); do
		to=n$((2 - i % 2))
		pair_on n1 migrate --json "$job" $to >>"$PAIR/moves" || exit 1
		sleep 0.2
	done
	pair_on n1 kill -KILL "$job"
	frozen=$(jq .frozen_ms "$PAIR/moves" | median)
	printf '%8d %8d %10.1f %10d %12d %14s\n' "$mb" "$MOVES" \
		"$(jq '.bytes / 1e6' "$PAIR/moves" | median)" "$frozen" "$(jq .dump_ms "$PAIR/moves" | median)" \
		"$([ "$mb" -eq 16 ] && awk -v f="$frozen" 'BEGIN { printf "%.2f", f / 150 }')"
done
