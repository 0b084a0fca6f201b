/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * An MPI program that counts what it sends: counting PATTERN BYTES ROUNDS.  It wraps the MPI calls
 * and counts the bytes of their buffers, without anything that the library adds; each rank prints
 * a line "from,to,bytes,messages" for each rank that it sent to.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define RANKS_MAX 64
#define BYTES_MAX (4 << 20)

static unsigned long long bytes[RANKS_MAX], messages[RANKS_MAX];
static char out[BYTES_MAX], in[BYTES_MAX];

static void count(int n, MPI_Datatype type, int to)
{
	int size;

	PMPI_Type_size(type, &size);
	bytes[to] += (unsigned long long)n * (unsigned long long)size;
	messages[to]++;
}

int MPI_Send(const void *data, int n, MPI_Datatype type, int to, int tag, MPI_Comm comm)
{
	count(n, type, to);
	return PMPI_Send(data, n, type, to, tag, comm);
}

int MPI_Sendrecv(const void *data, int n, MPI_Datatype type, int to, int tag, void *into, int room,
		 MPI_Datatype into_type, int from, int from_tag, MPI_Comm comm, MPI_Status *status)
{
	count(n, type, to);
	return PMPI_Sendrecv(data, n, type, to, tag, into, room, into_type, from, from_tag, comm,
			     status);
}

static void exchange(int to, int from, int size)
{
	MPI_Sendrecv(out, size, MPI_CHAR, to, 0, in, size, MPI_CHAR, from, 0, MPI_COMM_WORLD,
		     MPI_STATUS_IGNORE);
}

/* The slaves' results are four times as large as what they get. */
static void serve(int me, int n, int size)
{
	if (me) {
		MPI_Send(out, size, MPI_CHAR, 0, 0, MPI_COMM_WORLD);
		MPI_Recv(in, size / 4, MPI_CHAR, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	}
	for (int k = 1; !me && k < n; k++) {
		MPI_Recv(in, size, MPI_CHAR, k, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		MPI_Send(out, size / 4, MPI_CHAR, k, 0, MPI_COMM_WORLD);
	}
}

int main(int argc, char **argv)
{
	int me, n, size, rounds;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &me);
	MPI_Comm_size(MPI_COMM_WORLD, &n);
	size = argc == 4 ? atoi(argv[2]) : 0;
	rounds = argc == 4 ? atoi(argv[3]) : 0;
	if (size < 4 || size > BYTES_MAX || n > RANKS_MAX)
		MPI_Abort(MPI_COMM_WORLD, 2);
	for (int i = 0; i < rounds; i++) {
		usleep(10000);
		if (!strcmp(argv[1], "ring"))
			exchange((me + 1) % n, (me + n - 1) % n, size);
		else if (!strcmp(argv[1], "master"))
			serve(me, n, size);
		else
			for (int k = 1; k < n; k++)
				exchange((me + k) % n, (me + n - k) % n, size);
	}
	for (int k = 0; k < n; k++)
		if (bytes[k])
			printf("%d,%d,%llu,%llu\n", me, k, bytes[k], messages[k]);
	fflush(stdout); /* MPICH may hang below */
	MPI_Finalize();
	return 0;
}
