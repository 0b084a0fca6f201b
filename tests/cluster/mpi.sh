#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# Open MPI with `iocom rsh` as its remote shell (make check WITH=mpi).
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1
. tests/lib/tap.sh
. tests/lib/cluster.sh
if ! command -v mpirun >/dev/null || ! command -v mpicc >/dev/null; then
	tap_skip_all "no Open MPI (make check WITH=mpi)"
fi
cluster_up --nodes 3 --disk 0 --mem 1500
tap_true "every node hears of every other" until_true 10 sees n1 3
cat >"$SCRATCH/hello.c" <<'END'
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
int main(int argc, char **argv)
{
	int rank, sum, mine;
	char host[64];

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	gethostname(host, sizeof(host));
	mine = 1 << rank;
	MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	printf("%s rank %d sum %d\n", host, rank, sum);
	fflush(stdout);
	if (argc > 1 && rank == 1)
		exit(5);
	if (argc > 1)
		sleep(3705);
	MPI_Finalize();
	return 0;
}
END
mpicc -o "$SCRATCH/hello" "$SCRATCH/hello.c"
# Use the whole name: Open MPI's own daemons look for the agent again on the fresh environment's
# PATH, which has only installed programs.
agent="$(on n1 sh -c 'command -v iocom') rsh"
mpi() { timeout -k 5 40 "$TESTBED" exec n1 -- mpirun --allow-run-as-root --mca plm_rsh_agent "$agent" "$@"; }
tap_is "Open MPI: ranks on three nodes speak to each other" \
	"$(mpi --host n1,n2,n3 "$SCRATCH/hello" 2>"$SCRATCH/e" | sort | tr '\n' ';')" \
	"n1 rank 0 sum 7;n2 rank 1 sum 7;n3 rank 2 sum 7;"
tap_is "its daemons were jobs here" "$(on n1 iocom jobs --all --json |
	jq -r '[.jobs[] | select(.command | test("orted")) | .node] | sort | join(" ")')" "n2 n3"
mpi --host n1,n2,n3 "$SCRATCH/hello" fail >"$SCRATCH/o" 2>"$SCRATCH/e"
tap_is "a rank that fails ends them all, with its status" "$?" 5
tap_true "and none is left" bash -c '! pgrep -f "^$1" >/dev/null' - "$SCRATCH/hello"
mpi --host n1,nowhere "$SCRATCH/hello" >"$SCRATCH/o" 2>&1
tap_isnt "a host that is no node: it fails" "$?" 0
tap_done
