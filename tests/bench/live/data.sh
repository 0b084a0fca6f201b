#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# A job with MB (200) of input, whose home is busy: where it is sent, and what it takes here and
# there, in seconds (times that differ by less than a tenth count as the same), and what of its input the node had
# already. Run by `make bench-live`.
set -uo pipefail
cd "$(dirname "$0")/../../.." || exit 1
. tests/lib/tap.sh
. tests/lib/cluster.sh
MB=${MB:-200}
KEPT=/mnt/${IOCOM_TESTBED_MARK:-iocom-disk}
[ "$KEPT" != /mnt/iocom-testbed ] || KEPT=/mnt/iocom-disk
AGENT_OPTIONS="--data-dir $KEPT/data --data-cache-mb 1000" cluster_up --nodes 2 --disk 80 --disk-size 1200 --mem 1500
until_true 20 sees n1 2 || exit 1
export XDG_CACHE_HOME=$SCRATCH
on n1 sh -c "mkdir -p $KEPT/w && head -c ${MB}000000 /dev/urandom >$KEPT/w/in && sync"
sleep 0.1
load n1 "$WORK" cpu 1
busy() { field_above n1 n1 run_queue 0.8; }
until_true 20 busy || exit 1
job() { # VERB CPU OPTION...
	local verb=$1 cpu=$2
	shift 2
	on n1 sh -c "cd $KEPT/w && exec iocom $verb $* --class bench-data --requests 0 --cpu-time $cpu --data in -- sh -c '[ \$(wc -c <in) = ${MB}000000 ] && $WORK cpu $cpu'"
}
seconds() { # COMMAND...
	local begin=$EPOCHREALTIME
	"$@" >/dev/null 2>"$SCRATCH/e" || { echo "failed: $(cat "$SCRATCH/e")" && return; }
	awk -v a="$begin" -v b="$EPOCHREALTIME" 'BEGIN { printf "%.1f", b - a }'
}
row() { # NAME CPU
	local goes home there right data
	goes=$(job place "$2" --json --policy least-delay | jq -r .node)
	: >"$SCRATCH/status"
	there=$(seconds job run "$2" --node n2 --status-fd 7 7>"$SCRATCH/status")
	data=$(jq -r 'select(.state == "staged") | .data | "copied \(.copied_bytes / 1e6) MB, found \(.found_bytes / 1e6)"' "$SCRATCH/status")
	home=$(seconds job run "$2" --policy nlb)
	right=$(awk -v h="$home" -v t="$there" -v g="$goes" 'BEGIN { d = h > t ? h - t : t - h; print d < 0.1 * (h > t ? h : t) ? "as soon" : (t < h) == (g == "n2") ? "sooner" : "LATER" }')
	printf '%-34s %8s s %8s s   goes to %s: %s; there it %s\n' "$1" "$home" "$there" "$goes" "$right" "$data"
}
printf '\n%s MB of input; home computes for somebody else; 1 Gbit/s, disks of 80 MB/s\n' "$MB"
printf '%-34s %10s %10s\n' "job" "at home" "at n2"
row "1 s of computation, nothing there" 1
on n2 sh -c "rm -rf $KEPT/data/*/cache"
rm -rf "$SCRATCH/iocom"
row "30 s of computation, nothing there" 30
row "1 s again: its data is there" 1
load_stop
