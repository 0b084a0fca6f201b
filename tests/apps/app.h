/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What the five mini-applications have in common.  Each is a parallel program of N phases (MODEL
 * 5.10): in every phase all ranks compute, exchange messages in the manner of the application, and
 * write to their disk, as much as the options say.  What is computed is small, exact and in
 * integers, so that the result is the same for any number of ranks, wherever they run; the time is
 * spent by computing for as long as was asked.
 *
 * All that a rank sends goes through app_exchange, app_sum and app_send, which count it: bytes of
 * the program's own messages, without what MPI and TCP add.  MPI_Init and MPI_Finalize are not
 * counted.
 */
#ifndef IOCOM_TESTS_APP_H
#define IOCOM_TESTS_APP_H

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct app {
	const char *name;
	/* from the options */
	double compute_ms; /* processor time of a rank in a phase */
	size_t bytes;	   /* of a message */
	long messages;	   /* to each partner in a phase */
	long phases;
	size_t disk_bytes; /* that a rank writes in a phase */
	uint64_t seed;
	bool verify; /* check each message's content, and the result against a run of one rank */
	bool spin;   /* wait for messages by polling without sleep */
	const char *count;    /* each rank writes to COUNT.RANK what it sent */
	const char *disk_dir; /* where it writes to its disk */
	/* the rank */
	int rank, ranks;
	bool alone; /* calculates what the result must be: no messages, no time spent */
	uint64_t *sent_bytes, *sent_messages; /* to each rank */
	double cpu_ms, com_ms, disk_ms;	      /* wall time in each, over all phases */
	uint64_t rounds;		      /* exchanges so far: part of each message's content */
	int disk;			      /* a file without a name; -1: none yet */
	size_t disk_at;
};

/* What is sent to a rank, or received from it.  Nothing is sent to rank -1. */
struct app_part {
	int rank;
	void *data; /* its own part of the first message */
	size_t size;
};

/* Calculates the result of APP->phases phases. */
typedef uint64_t app_run(struct app *app);

/* Runs the application and prints its result.  Returns the exit status. */
int app_main(int argc, char **argv, const char *name, const char *shape, app_run *run);
/* Prints the reason and ends all ranks. */
void app_die(struct app *app, const char *format, ...)
	__attribute__((format(printf, 2, 3), noreturn));
void *app_zeros(struct app *app, size_t count, size_t size);

/* A well mixed number of two. */
uint64_t app_mix(uint64_t a, uint64_t b);
/* The first of COUNT items that belongs to RANK; rank RANKS has the end. */
size_t app_first(const struct app *app, size_t count, int rank);

/* Uses MS of processor time. */
void app_compute(struct app *app, double ms);
/* Writes the phase's bytes to the disk. */
void app_write(struct app *app);
/*
 * Sends OUT to their ranks and receives IN from theirs: APP->messages messages each, of APP->bytes
 * or what the data need, if that is more.  Both sides must name the same sizes.
 */
void app_exchange(struct app *app, const struct app_part *out, int nout, const struct app_part *in,
		  int nin);
/* The sums of all ranks' VALUES, modulo 2^64, at all ranks. */
void app_sum(struct app *app, uint64_t *values, int count);

/* For patterns of another kind: the bytes that a message with SIZE bytes of data has ... */
size_t app_padded(const struct app *app, size_t size);
/* ... its padding, made and checked (MESSAGE is one of FROM to TO, its KEY known to both) ... */
void app_fill(struct app *app, void *message, size_t size, int from, int to, uint64_t key);
void app_check(struct app *app, const void *message, size_t size, int from, int to, uint64_t key);
/* ... its way, counted, and the wait for it. */
void app_send(struct app *app, const void *message, size_t bytes, int to, int tag,
	      MPI_Request *request);
void app_wait(struct app *app, int count, MPI_Request *requests, MPI_Status *statuses);

#endif
