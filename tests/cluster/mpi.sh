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
# The mini-applications have the results that tests/unit/test_apps.sh has of one machine, wherever ranks are.
printf '%s\n' n1 n1 n2 n3 >"$SCRATCH/hosts"
got=''
for app in render molecular semiconductor reaction vortex; do
	got+=$(mpi -np 4 --mca rmaps seq --hostfile "$SCRATCH/hosts" --bind-to none --mca btl tcp,self,vader \
		"$IOCOM_BUILD/tests/apps/openmpi/$app" --compute 0.2 --bytes 300000 --messages 2 --phases 6 --verify 2>"$SCRATCH/e" |
		sed 's/.*result //; s/$/;/')
done
tap_is "five applications on three nodes: messages as they were sent, and the results of one node" "$got" \
	"f4c9b454f5601dc6 verified;f55322b4aa7bebd5 verified;2afb1a93d6ae7c61 verified;cb4ebffdf6bca5b4 verified;6d9dcd9f7665e20a verified;"
mpi --host n1,n2,n3 "$SCRATCH/hello" fail >"$SCRATCH/o" 2>"$SCRATCH/e"
tap_is "a rank that fails ends them all, with its status" "$?" 5
tap_true "and none is left" bash -c '! pgrep -f "^$1" >/dev/null' - "$SCRATCH/hello"
mpi --host n1,nowhere "$SCRATCH/hello" >"$SCRATCH/o" 2>&1
tap_isnt "a host that is no node: it fails" "$?" 0
# --- the user's mpirun, where home says: iocom run --mpi=rsh ---
# rsh_run MPI OPTION...: four ranks of an application, two a node.
rsh_run() {
	local mpi=$1
	shift
	timeout -k 5 40 "$TESTBED" exec n1 -- env OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_btl=tcp,self,vader \
		iocom run -n 4 --per-node 2 --oversubscribe --mpi=rsh "$@" -- "$IOCOM_BUILD/tests/apps/$mpi/render" \
		--compute 0.2 --bytes 300000 --messages 2 --phases 6 --verify 2>"$SCRATCH/e"
}
for kind in openmpi mpich; do
	if [ ! -x "$IOCOM_BUILD/tests/apps/$kind/render" ]; then
		tap_skip "--mpi=rsh starts a program of $kind" "it is not installed"
		continue
	fi
	tap_is "--mpi=rsh starts a program of $kind" "$(rsh_run $kind -v | sed 's/.*result //')" "f4c9b454f5601dc6 verified"
	tap_like "on the nodes that home chose" "$(cat "$SCRATCH/e")" '^iocom run: mpi[a-z.]* starts 4 ranks by iocom rsh: n[123]: [0-3](-[0-3]|,[0-3])?, n[123]: '
	tap_is "--on, by $kind" "$(rsh_run $kind -v --on n2,n3 | sed 's/.*result //') $(grep -c 'n1:' "$SCRATCH/e")" "f4c9b454f5601dc6 verified 0"
done
tap_is "--mpi=rsh without an mpirun" "$("$TESTBED" exec n1 -- env PATH=/nowhere "$IOCOM_BUILD/iocom" run -n 2 --oversubscribe --mpi=rsh -- "$SCRATCH/hello" 2>"$SCRATCH/e"; echo $?)" 125
tap_like "says so" "$(cat "$SCRATCH/e")" '^iocom run: .*/hello is a program of Open MPI, and there is no mpirun of Open MPI in PATH$'
# --- what --mpi says of a program ---
says() { # OPTION PROGRAM PATTERN
	tap_like "--mpi${1:+=$1} $(basename "$2"): refused" "$("$TESTBED" exec n1 -- iocom run -n 2 --oversubscribe "--mpi${1:+=$1}" -- "$2" 2>&1; echo "$?")" "^iocom run: .*$3.*"$'\n125$'
}
says '' /bin/true 'is no MPI program: '
says '' mpirun 'mpirun starts ranks itself: name the program in its place'
if [ -x "$IOCOM_BUILD/tests/apps/mpich/render" ]; then
	says pmix "$IOCOM_BUILD/tests/apps/mpich/render" 'was built for MPICH \(libmpich'
fi
says pmi1 "$SCRATCH/hello" 'was built for Open MPI or PMIx \(libmpi'
tap_done
