#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# Power cuts at random moments: each job's name and end that somebody was told is known afterwards
# (power.py). CUTS=100 SEED=1 for a long run: `make power`.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1
# A mount namespace of its own: the state directories and the boot's id are mounts.
[ -n "${POWER_INSIDE-}" ] || [ "$(id -u)" -ne 0 ] ||
	exec env POWER_INSIDE=yes unshare --mount --propagation private bash "$0" "$@"
. tests/lib/tap.sh
. tests/lib/pair.sh
for tool in mkfs.ext4 losetup; do
	command -v "$tool" >/dev/null || tap_skip_all "no $tool"
done
losetup -f >/dev/null 2>&1 || tap_skip_all "no loop devices"
CUTS=${CUTS:-5}
SEED=${SEED:-1}
pair_begin
for node in n1 n2; do # not by tap_true: its subshell would keep the pids to itself
	pair_munged "$node" || { tap_fail "munged for $node" "$(cat "$PAIR/munge-$node/out")"; tap_done; exit 1; }
done
if timeout $((60 + CUTS * 30)) python3 -B tests/cluster/power.py "$PAIR" "$IOCOM_BUILD" \
	"$PAIR_PORT" "$PAIR_SCOPE" "$CUTS" "$SEED" >"$PAIR/out" 2>&1; then
	tap_ok "what was told is known after $CUTS power cuts"
else
	tap_fail "what was told is known after $CUTS power cuts (SEED=$SEED)" \
		"$(cat "$PAIR/out"; tail -n 15 "$PAIR"/n?/log)"
fi
grep '^# |' "$PAIR/out"
tap_done
