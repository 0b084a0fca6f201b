/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What the halves of the pool of `iocom batch` share.
 *
 *   batch_pool.c   workers, the loop         batch_input.c   lines, those that are to run
 *   batch_say.c    outputs and their order   batch_log.c     the log, and going on from one
 *   batch_show.c   progress, the summary       batch_status.c  where a worker is, why not
 */
#ifndef IOCOM_BATCH_POOL_H
#define IOCOM_BATCH_POOL_H

#include <poll.h>

#include "balancer/batch/batch.h"

#define BATCH_TOGETHER_MAX (64u << 10) /* of an output in memory; more goes to a file */
#define BATCH_HELD_MAX	   (16u << 20) /* waits for its turn under keep_order; then none is given */
#define BATCH_FILED_MAX	   (1ull << 30) /* in files; half of it ends the giving, too */
#define BATCH_NODE_MAX	   64
#define BATCH_WHYS_MAX	   8 /* different sentences of refusals are said; of all, how many */

/* What a command said on one of its outputs and was not passed on. */
struct batch_text {
	struct queue last;
	int fd; /* of what came before that; 0: nothing */
	uint64_t filed_bytes;
};

struct batch_command {
	struct batch_command *next;
	uint32_t sequence; /* its place in the list */
	uint32_t turn;	   /* among those that are run */
	char *line;
	struct batch_text text[2]; /* standard output and error */
};

struct batch_slot {
	pid_t pid;
	int to, from, status; /* -1: closed */
	struct queue out, in, told;
	struct batch_command *first, **last;
	unsigned count;
	uint64_t last_ns; /* how long its last command took; 0: none ended */
	char node[BATCH_NODE_MAX];
	char *why; /* it failed so, by its own words; NULL: it did not */
};

struct batch_show {
	bool summary, progress, drawn;
	bool terminal[2]; /* what standard output and error show: where our line stands */
	bool midline;	  /* the last that a command wrote there was no whole line */
	uint64_t began_ns, drawn_ns;
	int64_t size_bytes; /* of the input; 0: not known */
};

struct pool {
	const struct batch_options *options;
	struct batch_result *result;
	struct batch_slot *workers;
	struct pollfd *entries;
	struct queue input;
	bool input_ended;
	uint64_t input_bytes;	    /* read so far */
	struct batch_command *back; /* for another worker */
	uint32_t sequence, turn;
	unsigned alive;
	bool stopping; /* the workers were told to end */
	bool mute;     /* nobody reads what commands say */
	int signals;   /* signalfd of those that end us */
	/* keep_order: those that are over before their turn, by turn; a power of two */
	struct batch_command **ring;
	size_t ring_size, held_bytes;
	uint64_t filed_bytes; /* of all texts */
	uint32_t next_turn;
	char *whys[BATCH_WHYS_MAX]; /* workers were refused so; each was said */
	struct batch_show show;
	uint8_t piece[2 * (BATCH_PIECE_MAX + BATCH_HEADER)];
};

void batch_command_free(struct pool *pool, struct batch_command *c);

/* --- batch_input.c --- */

/* What the input has now.  0 or negative errno. */
int batch_read_input(struct pool *pool, struct iocom_err *err);
/* Whether a line is at hand. */
bool batch_has_line(const struct pool *pool);
/* The next command to give.  0 with *OUT, the caller's (NULL: none now); negative errno. */
int batch_next(struct pool *pool, struct batch_command **out, struct iocom_err *err);
/* C, which no worker began, is to go to another.  Takes C. */
void batch_take_back(struct pool *pool, struct batch_command *c);

/* --- batch_say.c --- */

/* C said DATA on output I.  0; -EPIPE: nobody reads; -EINTR: a signal came; negative errno. */
int batch_said(struct pool *pool, struct batch_command *c, int i, const void *data, size_t length,
	       struct iocom_err *err);
/* C is over: what it said is passed on, now or when it is its turn.  Takes C.  As above. */
int batch_over(struct pool *pool, struct batch_command *c, struct iocom_err *err);
void batch_text_free(struct pool *pool, struct batch_text *text);
/* All that waits for a turn, which will not come. */
void batch_order_free(struct pool *pool);
/* A signal that came, or 0. */
int batch_signal(struct pool *pool);

/* --- batch_log.c --- */

/* STATE "ended" has STATUS, as a shell's.  0 or negative errno. */
int batch_log_line(const struct pool *pool, const struct batch_slot *w,
		   const struct batch_command *c, const char *state, int status, uint64_t wall_ns,
		   struct iocom_err *err);

/* --- batch_status.c --- */

/* What `iocom run` tells of W, as far as it is there. */
void batch_status(struct pool *pool, struct batch_slot *w);
/* Says why no node took W, where another was not refused in the same words. */
void batch_refused(struct pool *pool, struct batch_slot *w);
void batch_refused_free(struct pool *pool);

/* --- batch_show.c --- */

uint64_t batch_now_ns(void);
void batch_show_begin(struct pool *pool);
/* Draws the line of progress, where it is due, and where it was taken away. */
void batch_show_progress(struct pool *pool);
/* Takes it away, before something else is written; it comes back with the next turn. */
void batch_show_clear(struct pool *pool);
/* The same before output FD is written, where that is to be seen; and after its DATA. */
void batch_show_before(struct pool *pool, int fd);
void batch_show_wrote(struct pool *pool, int fd, const uint8_t *data, size_t length);
void batch_show_end(struct pool *pool);

#endif
