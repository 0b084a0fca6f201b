#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# Chaos on a testbed of its own: ROUNDS rounds of jobs and of faults that may kill them, from SEED
# (chaos.py, plan.py); PLAN=LOG replays the plan of a log.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1
. tests/lib/tap.sh
export IOCOM_TESTBED_MARK=${IOCOM_TESTBED_MARK:-iocom-chaos} PYTHONDONTWRITEBYTECODE=1
. tests/lib/cluster.sh
LOG=${CHAOS_LOG:-$IOCOM_BUILD/log/chaos.jsonl}
mkdir -p "$(dirname "$LOG")"
# Replaying an old log must not overwrite it.
[ "${PLAN-}" != "$LOG" ] || { cp "$LOG" "$LOG.replayed" && PLAN=$LOG.replayed; }
cluster_up --nodes 3 --disk 0 --cpu 1
# libfaketime leaves what it shares between processes when one is killed.
chaos_end() {
	local shared
	cluster_down
	for shared in /dev/shm/*faketime*_*; do
		[ ! -e "$shared" ] || [ -e "/proc/${shared##*_}" ] || rm -f "$shared"
	done
}
trap chaos_end EXIT
python3 tests/chaos/chaos.py --testbed "$TESTBED" --build "$IOCOM_BUILD" --rounds "${ROUNDS:-50}" \
	--seed "${SEED:-1}" --log "$LOG" --marks "$SCRATCH/marks" ${PLAN:+--plan "$PLAN"}
status=$?
[ "$status" -eq 0 ] || cluster_keep_logs "$LOG"
exit "$status"
