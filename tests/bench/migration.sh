#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# How long jobs of SIZES (MB) are frozen when they move between two agents of this machine, by a real
# criu: medians of MOVES moves each, there and back.
#   migration.sh loopback   the agents talk over loopback, sealed.  The goal is 150 ms for 16 MB
#   migration.sh link       two emulated nodes with 1 Gbit/s between them, which needs 8 ms a MB.  The
#                           goal is 1.3 times that for each MB that a job has more than the smallest
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1
# criu keeps in /run what it knows about the kernel, and asks anew each time if that is on a disk.
# Nearly everywhere it is not.
if [ "$(stat -f -c %T /run)" != tmpfs ]; then
	# shellcheck disable=SC2016
	exec unshare -m sh -c 'mount -t tmpfs -o mode=755 tmpfs /run && mkdir /run/lock && exec bash "$@"' sh \
		"tests/bench/$(basename "$0")" "$@"
fi
. tests/lib/tap.sh
BED=${1:-loopback} MOVES=${MOVES:-9} LINK_MS=8
case $BED in
loopback)
	SIZES=${SIZES:-1 16 64 256 512}
	. tests/lib/pair.sh
	pair_criu || exit 1
	pair_begin
	pair_movers || exit 1
	FILES=$PAIR
	asked() { pair_on n1 "$@"; }
	;;
link)
	SIZES=${LINK_SIZES:-16 128 256 512}
	export IOCOM_TESTBED_MARK=${IOCOM_TESTBED_MARK:-iocom-link}
	. tests/lib/cluster.sh
	CRIU=${IOCOM_CRIU:-$(bash tests/lib/criu.sh)} || exit 1
	AGENT_OPTIONS="--criu $CRIU --allow-root yes" cluster_up --nodes 2 --disk 0 --mem 3000 --net 1gbit
	until_true 20 sees n1 2 || exit 1
	FILES=$SCRATCH
	asked() { on n1 iocom "$@"; }
	;;
*)
	echo "usage: migration.sh loopback|link" >&2
	exit 2
	;;
esac
printf '%8s %8s %10s %10s %12s %14s\n' "job MB" "moves" "sent MB" "frozen ms" "to save ms" "of 150 ms"
for mb in $SIZES; do
	job=$(asked run --node n1 --detach --migratable --mem "${mb}M" -- python3 -c "
import os, time
x = os.urandom($mb * 1000000)
while True: time.sleep(0.01)")
	sleep $((1 + mb / 256))
	: >"$FILES/moves"
	for ((i = 0; i < MOVES; i++)); do
		asked migrate --json "$job" n$((2 - i % 2)) >>"$FILES/moves" || exit 1
		sleep 0.2
	done
	asked kill -KILL "$job"
	frozen=$(jq .frozen_ms "$FILES/moves" | median)
	sent=$(jq '.bytes / 1e6' "$FILES/moves" | median)
	echo "$sent $frozen" >>"$FILES/frozen"
	printf '%8d %8d %10.1f %10d %12d %14s\n' "$mb" "$MOVES" "$sent" "$frozen" \
		"$(jq .dump_ms "$FILES/moves" | median)" \
		"$([ "$mb" -eq 16 ] && awk -v f="$frozen" 'BEGIN { printf "%.2f", f / 150 }')"
done
[ "$BED" = loopback ] || awk -v link="$LINK_MS" '
	NR == 1 { mb = $1; ms = $2 }
	END {
		slope = ($2 - ms) / ($1 - mb)
		printf "%.1f ms a MB, the link alone %d: %.2f times that (goal 1.3)\n", slope, link, slope / link
	}' "$FILES/frozen"
