/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * `iocom batch`: many short commands through few placed jobs.
 *
 *   batch --- iocom run --- (agent, shim) --- worker --- the commands, one after another
 *
 * A worker is a job like any other, run as the user; what it starts is accounted, limited
 * and killed with it.  Batch and worker speak the messages below over the job's standard
 * input and output.  A command is given to one worker, once: what a lost worker had is
 * reported as lost, what a busy worker gives back untouched goes to another.
 *
 * One file each: batch_wire.c, batch_words.c, batch_worker.c, cmd_batch.c; the pool is
 * batch_pool.h's.
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

#define BATCH_LINE_MAX	  (128u << 10) /* what the kernel takes as one argument */
#define BATCH_PIECE_MAX	  (32u << 10)  /* of an output, in one message */
#define BATCH_DEPTH	  16	       /* commands that a worker has at most */
#define BATCH_WORKERS_MAX 1000
#define BATCH_HEADER	  9

/* --- batch_wire.c --- */

enum batch_kind {
	BATCH_COMMAND = 1, /* to the worker: a line */
	BATCH_OUT,	   /* from it: a piece of standard output */
	BATCH_ERR,	   /* ... of standard error */
	BATCH_END,	   /* wait status, nanoseconds */
	BATCH_BACK,	   /* not begun; it is to go to another */
};

struct batch_message {
	enum batch_kind kind;
	uint32_t sequence;
	const uint8_t *data; /* in the reader's buffer */
	uint32_t length;
};

/* Appends a message.  0 or -ENOMEM. */
int batch_put(struct queue *queue, enum batch_kind kind, uint32_t sequence, const void *data,
	      size_t length);
int batch_put_end(struct queue *queue, uint32_t sequence, int status, uint64_t wall_ns);
/* The first message of HAVE bytes.  Its size; 0: not whole yet; -EPROTO. */
ssize_t batch_take(const uint8_t *data, size_t have, struct batch_message *message);
/* Of a BATCH_END.  0 or -EPROTO. */
int batch_take_end(const struct batch_message *message, int *status, uint64_t *wall_ns);

/* --- batch_words.c --- */

/*
 * Splits LINE, which it changes, into WORDS (NULL at the end) where a shell would do no
 * more than that.  The number of words; 0: a shell must read it, and LINE is as it was.
 */
size_t batch_words(char *line, char **words, size_t max);

/* --- batch_worker.c --- */

/* Runs what comes on descriptor 0 until its end.  The exit code. */
int batch_worker(void);

/* --- batch_log.c --- */

/* Commands that had ended before, by a log. */
struct batch_done;
/*
 * Reads all of LOG (PATH, for the sentence), cuts off a last line that has no end, and leaves
 * it to be written on.  0; negative errno with the sentence.
 */
int batch_done_read(FILE *log, const char *path, struct batch_done **out, struct iocom_err *err);
/* 1: it had; 0: not, or DONE is NULL; -EINVAL: it is another LINE there; -ENOMEM. */
int batch_done_before(const struct batch_done *done, uint32_t sequence, const char *line,
		      struct iocom_err *err);
void batch_done_free(struct batch_done *done);

/* --- batch_pool.c --- */

struct batch_options {
	unsigned workers;
	char *const *argv;	 /* of a worker; NULL at the end */
	bool placed;		 /* it is `iocom run`, and tells where on descriptor 3 */
	bool keep_order;	 /* of the outputs: the list's */
	bool quiet, verbose;	 /* no summary ever; always one */
	int in;			 /* a command a line */
	FILE *log;		 /* NULL: none */
	struct batch_done *done; /* what the log had; NULL: nothing */
};

struct batch_result {
	uint64_t commands, failed; /* that ended; of them, with a status that is not 0 */
	uint64_t lost;		   /* their worker was lost: nobody knows how they went */
	uint64_t stopped;	   /* begun when all was ended */
	uint64_t left_out;	   /* they had ended before */
	unsigned refused;	   /* workers that no node took */
	int signal;		   /* that ended all, or 0 */
	bool rest;		   /* no worker was left for what remained */
	bool began;		   /* a command did */
};

/*
 * Runs all of OPTIONS' input.  0; -EPIPE: nobody reads what commands say; -EINTR: a signal
 * came; negative errno.  ERR has the sentence, not for -EINTR.
 */
int batch_pool(const struct batch_options *options, struct batch_result *result,
	       struct iocom_err *err);

#endif
