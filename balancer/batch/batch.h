/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * `iocom batch` runs many short commands through a few placed jobs.
 *
 *   batch --- iocom run --- (agent, shim) --- worker --- the commands, one after another
 *
 * A worker is a job like any other and runs as the user; the commands that it starts are
 * accounted, limited and killed with it.  Batch and worker exchange the messages below over
 * the job's standard input and output.  Batch gives a command to one worker, once.  When a
 * worker is lost, its unfinished commands are reported as lost; commands that a busy worker
 * gives back unstarted go to another worker.
 *
 * The files are batch_wire.c, batch_words.c, batch_worker.c and cmd_batch.c; batch_pool.h lists
 * the files of the pool.
 */
#ifndef IOCOM_BATCH_H
#define IOCOM_BATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "iocom/err.h"
#include "user/wire.h"

#define BATCH_LINE_MAX	  (128u << 10) /* the longest single argument that the kernel accepts */
#define BATCH_PIECE_MAX	  (32u << 10)  /* the most output that one message carries */
#define BATCH_DEPTH	  16	       /* the most commands that a worker holds at a time */
#define BATCH_WORKERS_MAX 1000
#define BATCH_HEADER	  9

/* --- batch_wire.c --- */

enum batch_kind {
	BATCH_COMMAND = 1, /* to the worker: a command line */
	BATCH_OUT,	   /* from the worker: a piece of standard output */
	BATCH_ERR,	   /* from the worker: a piece of standard error */
	BATCH_END,	   /* from the worker: wait status, nanoseconds */
	BATCH_BACK,	   /* from the worker: it did not begin this command */
};

struct batch_message {
	enum batch_kind kind;
	uint32_t sequence;
	const uint8_t *data; /* points into the reader's buffer */
	uint32_t length;
};

/* Appends a message.  Returns 0 or -ENOMEM. */
int batch_put(struct queue *queue, enum batch_kind kind, uint32_t sequence, const void *data,
	      size_t length);
int batch_put_end(struct queue *queue, uint32_t sequence, int status, uint64_t wall_ns);
/* Reads the first message of HAVE bytes.  Returns its size, 0 if it is incomplete, or -EPROTO. */
ssize_t batch_take(const uint8_t *data, size_t have, struct batch_message *message);
/* Reads the payload of a BATCH_END.  Returns 0 or -EPROTO. */
int batch_take_end(const struct batch_message *message, int *status, uint64_t *wall_ns);

/* --- batch_words.c --- */

/*
 * Splits LINE in place into WORDS (NULL at the end) if a shell would only split it too. Returns
 * the number of words, or 0 if LINE needs a shell; LINE is then unchanged.
 */
size_t batch_words(char *line, char **words, size_t max);

/* --- batch_worker.c --- */

/* Runs the commands that arrive on descriptor 0 until it ends.  Returns the exit code. */
int batch_worker(void);

/* --- batch_log.c --- */

/* The commands that had ended according to the log of an earlier run. */
struct batch_done;
/*
 * Reads all of LOG (PATH is for the error sentence), cuts off an incomplete last line and leaves
 * LOG positioned for appending.  Returns 0, or negative errno with the reason in ERR.
 */
int batch_done_read(FILE *log, const char *path, struct batch_done **out, struct iocom_err *err);
/*
 * Returns 1 if the command had ended before, 0 if not or if DONE is NULL, -EINVAL if the log
 * has another LINE under this number, or -ENOMEM.
 */
int batch_done_before(const struct batch_done *done, uint32_t sequence, const char *line,
		      struct iocom_err *err);
void batch_done_free(struct batch_done *done);

/* --- batch_pool.c --- */

struct batch_options {
	unsigned workers;
	char *const *argv;	 /* the worker's command line; NULL at the end */
	bool placed;		 /* argv is `iocom run`, which reports on descriptor 3 */
	bool keep_order;	 /* pass outputs on in the order of the list */
	bool quiet, verbose;	 /* never print a summary; always print one */
	int in;			 /* the input: one command a line */
	FILE *log;		 /* NULL: none */
	struct batch_done *done; /* what the log had; NULL: no earlier run */
};

struct batch_result {
	uint64_t commands, failed; /* commands that ended; those with another status than 0 */
	uint64_t lost;		   /* commands whose worker was lost: their outcome is unknown */
	uint64_t stopped;	   /* commands that were running when we ended everything */
	uint64_t left_out;	   /* commands skipped because the log has them as ended */
	unsigned refused;	   /* workers that no node accepted */
	int signal;		   /* the signal that ended the run, or 0 */
	bool rest;		   /* commands remained, but no worker */
	bool began;		   /* at least one command began */
};

/*
 * Runs all commands of OPTIONS' input.  Returns 0; -EPIPE if nobody reads the outputs; -EINTR
 * after a signal; or negative errno.  ERR has the sentence, except for -EINTR.
 */
int batch_pool(const struct batch_options *options, struct batch_result *result,
	       struct iocom_err *err);

#endif
