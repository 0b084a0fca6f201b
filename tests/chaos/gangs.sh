#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# Chaos among parallel jobs (gangs.py): ROUNDS kills of parts from SEED, by `iocom run --mpi`, or
# WAY=rsh: by mpirun over `iocom rsh`.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1
. tests/lib/tap.sh
export IOCOM_TESTBED_MARK=${IOCOM_TESTBED_MARK:-iocom-gangs} PYTHONDONTWRITEBYTECODE=1
. tests/lib/cluster.sh
if ! command -v mpirun >/dev/null || [ ! -x "$IOCOM_BUILD/tests/apps/openmpi/molecular" ]; then
	tap_skip_all "no Open MPI (make deps)"
fi
if [ -z "${WAY-}" ]; then
	"$IOCOM_BUILD/iocom" run --help | grep -e '--mpi' >/dev/null ||
		tap_skip_all "this build's iocom run starts no MPI programs; WAY=rsh: mpirun over iocom rsh"
	WAY=run
fi
LOG=${CHAOS_LOG:-$IOCOM_BUILD/log/gangs.jsonl}
mkdir -p "$(dirname "$LOG")"
cluster_up --nodes 3 --disk 20 --cpu 1
python3 tests/chaos/gangs.py --testbed "$TESTBED" --build "$IOCOM_BUILD" --rounds "${ROUNDS:-50}" \
	--seed "${SEED:-1}" --log "$LOG" --scratch "$SCRATCH" --way "$WAY"
status=$?
[ "$status" -eq 0 ] || cluster_keep_logs "$LOG"
exit "$status"
