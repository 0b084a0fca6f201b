/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What the parts of the pool of `iocom batch` share.
 *
 *   batch_pool.c   workers, the main loop       batch_input.c   reading commands
 *   batch_say.c    outputs and their order      batch_log.c     the log, resuming from one
 *   batch_show.c   progress and summary         batch_status.c  a worker's node, or its refusal
 */
#ifndef IOCOM_BATCH_POOL_H
#define IOCOM_BATCH_POOL_H

#include <poll.h>

#include "balancer/batch/batch.h"

/* the most bytes of an output in memory; the excess goes to a file */
#define BATCH_TOGETHER_MAX (64u << 10)
#define BATCH_HELD_MAX	   (16u << 20) /* held for keep_order; beyond it we give no commands */
/* the most bytes in files; from half of it on we give no commands */
#define BATCH_FILED_MAX (1ull << 30)
#define BATCH_NODE_MAX	64
#define BATCH_WHYS_MAX	8 /* distinct refusals printed; the summary counts all */

/* What a command wrote on one of its outputs and we have not passed on yet. */
struct batch_text {
	struct queue last;
	int fd; /* file of the output before LAST; 0: none */
	uint64_t filed_bytes;
};

struct batch_command {
	struct batch_command *next;
	uint32_t sequence; /* its line number among all commands */
	uint32_t turn;	   /* its number among the running commands */
	char *line;
	struct batch_text text[2]; /* standard output and error */
};

struct batch_slot {
	pid_t pid;
	int to, from, status; /* -1: closed */
	struct queue out, in, told;
	struct batch_command *first, **last;
	unsigned count;
	uint64_t last_ns; /* duration of its last command; 0: none has ended */
	char node[BATCH_NODE_MAX];
	char *why; /* the reason it gave for its failure; NULL: it did not fail */
};

struct batch_show {
	bool summary, progress, drawn;
	bool terminal[2]; /* whether outputs 1 and 2 are the terminal with the progress line */
	bool midline;	  /* the last output on the terminal ended within a line */
	uint64_t began_ns, drawn_ns;
	int64_t size_bytes; /* size of the input; 0: unknown */
};

struct pool {
	const struct batch_options *options;
	struct batch_result *result;
	struct batch_slot *workers;
	struct pollfd *entries;
	struct queue input;
	bool input_ended;
	uint64_t input_bytes;	    /* bytes read so far */
	struct batch_command *back; /* commands given back, for another worker */
	uint32_t sequence, turn;
	unsigned alive;
	bool stopping; /* the workers have been told to end */
	bool mute;     /* nobody reads the outputs */
	int signals;   /* signalfd of the signals that end us */
	/* keep_order: commands that ended early, indexed by turn; size a power of two */
	struct batch_command **ring;
	size_t ring_size, held_bytes;
	uint64_t filed_bytes; /* bytes in files, for all outputs together */
	uint32_t next_turn;
	char *whys[BATCH_WHYS_MAX]; /* the distinct refusals, each printed once */
	struct batch_show show;
	uint8_t piece[2 * (BATCH_PIECE_MAX + BATCH_HEADER)];
};

void batch_command_free(struct pool *pool, struct batch_command *c);

/* --- batch_input.c --- */

/* Reads the available input.  Returns 0 or negative errno. */
int batch_read_input(struct pool *pool, struct iocom_err *err);
/* Returns whether a complete line is available. */
bool batch_has_line(const struct pool *pool);
/*
 * Puts the next command to give into *OUT, which the caller owns (NULL: none now).  Returns 0
 * or negative errno.
 */
int batch_next(struct pool *pool, struct batch_command **out, struct iocom_err *err);
/* Queues C, which no worker began, for another worker.  Takes C. */
void batch_take_back(struct pool *pool, struct batch_command *c);

/* --- batch_say.c --- */

/*
 * Handles DATA that C wrote on output I.  Returns 0; -EPIPE: nobody reads; -EINTR: a signal
 * came; negative errno.
 */
int batch_said(struct pool *pool, struct batch_command *c, int i, const void *data, size_t length,
	       struct iocom_err *err);
/* C has ended: passes its outputs on, now or when it is its turn.  Takes C.  Errors as above. */
int batch_over(struct pool *pool, struct batch_command *c, struct iocom_err *err);
void batch_text_free(struct pool *pool, struct batch_text *text);
/* Frees the commands that still wait for their turn. */
void batch_order_free(struct pool *pool);
/* Returns the signal that came, or 0. */
int batch_signal(struct pool *pool);

/* --- batch_log.c --- */

/*
 * Logs C.  STATUS, as a shell reports it, belongs to STATE "ended".  Returns 0 or negative
 * errno.
 */
int batch_log_line(const struct pool *pool, const struct batch_slot *w,
		   const struct batch_command *c, const char *state, int status, uint64_t wall_ns,
		   struct iocom_err *err);

/* --- batch_status.c --- */

/* Reads what `iocom run` has reported about W so far. */
void batch_status(struct pool *pool, struct batch_slot *w);
/* Prints why no node accepted W, unless the same reason was printed before. */
void batch_refused(struct pool *pool, struct batch_slot *w);
void batch_refused_free(struct pool *pool);

/* --- batch_show.c --- */

uint64_t batch_now_ns(void);
void batch_show_begin(struct pool *pool);
/* Draws the progress line if it is due or was erased. */
void batch_show_progress(struct pool *pool);
/* Erases the progress line before other output; batch_show_progress draws it again. */
void batch_show_clear(struct pool *pool);
/*
 * Call these before and after DATA is written to FD: they keep the progress line apart from
 * outputs on the same terminal.
 */
void batch_show_before(struct pool *pool, int fd);
void batch_show_wrote(struct pool *pool, int fd, const uint8_t *data, size_t length);
void batch_show_end(struct pool *pool);

#endif
