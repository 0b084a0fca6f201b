/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* An MPI program whose ranks add up their numbers, and whose rank 1 then ends as it is told. */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "";
	int rank, ranks, sum;
	char line[64];

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	if (!*how)
		printf("%d of %d sum %d\n", rank, ranks, sum);
	fflush(stdout);
	if (!strcmp(how, "read") && fgets(line, sizeof(line), stdin))
		printf("%d read %s", rank, line);
	if (!strcmp(how, "wait"))
		pause();
	if (rank == 1 && !strcmp(how, "abort"))
		MPI_Abort(MPI_COMM_WORLD, 3);
	if (rank == 1 && !strcmp(how, "exit"))
		exit(0);
	if (rank == 1 && !strcmp(how, "status"))
		exit(7);
	if (rank == 1 && !strcmp(how, "kill"))
		kill(getpid(), SIGKILL);
	if (rank == 1 && !strcmp(how, "crash"))
		raise(SIGSEGV);
	if (*how)
		MPI_Barrier(MPI_COMM_WORLD);
	MPI_Finalize();
	return 0;
}
