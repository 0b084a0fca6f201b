/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * `iocom run`, the client's side of one job: describe the process, reach the
 * target, move its stdio, return its status.  One file each:
 * run_spec.c, run_connect.c, run_stream.c (with run_output.c, run_reattach.c and run_tty.c),
 * run_report.c.
 */
#ifndef IOCOM_RUN_H
#define IOCOM_RUN_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "user/attach.h"
#include "iocom/err.h"
#include "balancer/run/run_tty.h"
#include "balancer/view/placement.h"
#include "user/spec.h"
#include "user/wire.h"

#define RUN_FAILED  125 /* iocom failed before the job started */
#define RUN_UNKNOWN 255 /* contact lost: nobody here knows how the job ended */

/* --- cmd_run.c --- */

/*
 * `iocom run` with ARGV; its exit status.  FAILED: iocom's own, no command ran.  With HOME
 * the job begins in that directory, and in "/" where the node has none such, which is said.
 */
int run_main(int argc, char **argv, const char *home, bool *failed);

/* --- run_spec.c --- */

/* Which of 0, 1, 2 were closed, as a mask; fills them with /dev/null.  Call first. */
uint32_t run_closed_descriptors(void);
/* Whether this is how `iocom batch` starts a worker. */
bool run_is_worker(char *const *command);
/*
 * Fills SPEC (from zero) with this process as it is: umask, soft limits,
 * environment by RULE ("all", "none", or NAME,NAME=VALUE,...).  COMMAND, CWD and
 * EXECUTABLE are copied.  0, -EINVAL, -ENOMEM.
 */
int run_spec_fill(struct spec *spec, char *const *command, const char *cwd, const char *executable,
		  const char *env_rule, struct iocom_err *err);
/* 0; 126 or 127 with a shell's sentence when EXECUTABLE cannot be run here. */
int run_executable_check(const char *command, const char *executable, struct iocom_err *err);
/* Whether RULE is one of run_spec_fill.  0 or -EINVAL with the sentence. */
int run_env_check(const char *rule, struct iocom_err *err);

/* --- run_connect.c --- */

struct run_target {
	const char *run_dir; /* of the agent of this machine */
	const char *address; /* "" means this machine: its agent's own socket */
	unsigned port;
	bool tls;		  /* ... through a relay of this machine's agent */
	const char *munge_socket; /* NULL: the default one */
};

#define RUN_CONNECT_MS 5000

/* Connects and sends FRAME_START for SPEC.  The stream in FD.  0 or negative errno. */
int run_connect(const struct run_target *target, const struct spec *spec, int *fd,
		struct iocom_err *err);
/* The same with FRAME_ATTACH for ASK. */
int run_connect_attach(const struct run_target *target, const struct attach_ask *ask, int *fd,
		       struct iocom_err *err);

/* --- run_output.c: one of the client's own outputs --- */

enum run_output_mode {
	RUN_OUTPUT_WHOLE,  /* regular files and devices: a write takes all and does not wait */
	RUN_OUTPUT_AGAIN,  /* opened once more, non-blocking, without touching the shared flags */
	RUN_OUTPUT_SOCKET, /* MSG_DONTWAIT */
	RUN_OUTPUT_SMALL,  /* a pipe of another user: at most PIPE_BUF at a time */
};

struct run_output {
	int fd;	   /* as given */
	int again; /* RUN_OUTPUT_AGAIN's own descriptor, else -1 */
	enum run_output_mode mode;
	struct queue queue;
	bool ended;    /* the job closed it */
	bool closed;   /* our reader went away, or we finished it */
	bool unwanted; /* ... and that was said */
	/* Offsets: what came; what the job was told that left us, also when asked for again. */
	uint64_t received, taken, asked;
	uint64_t gap_from, gap_to; /* the last bytes that were not kept there: they never come */
	int error;		   /* why output was lost, when not because the reader left */
};

/* The offset up to which all has left us; words of our own may wait among it. */
static inline uint64_t run_output_left(const struct run_output *output)
{
	uint64_t waits = output->queue.length, behind = output->received - output->gap_to;

	/* What waits from before a gap is counted from there. */
	if (waits > behind) {
		waits -= behind;
		return output->gap_from > waits ? output->gap_from - waits : 0;
	}
	return output->received - waits;
}
void run_output_init(struct run_output *output, int fd);
void run_output_deinit(struct run_output *output);
/* Descriptor to poll for POLLOUT; -1 when nothing waits. */
int run_output_poll(const struct run_output *output);
/*
 * Writes what waits and then DATA; keeps the rest.  Bytes written now, or
 * -EPIPE when nobody reads any more (and `error` when something else failed).
 */
ssize_t run_output_write(struct run_output *output, const void *data, size_t length);
/* Gives up FD, so that a reader sees the end of file now. */
void run_output_finish(struct run_output *output);

/* --- run_stream.c --- */

enum run_state { RUN_STARTED = 1, RUN_EXITED, RUN_REFUSED, RUN_LOST };

struct run_result {
	enum run_state state;
	uint8_t kind; /* of FRAME_EXIT */
	uint32_t value;
	uint64_t pid;
	int signal;	  /* abandoned before the job started, by this signal */
	int output_error; /* errno of an own output that lost bytes */
	bool left;	  /* by the user; a detached job goes on, others are hung up (RUN_LOST) */
	char text[512];
};

struct run_stream_options {
	int stdio[3];	     /* -1: no input; output that nobody wants */
	bool signals;	     /* forward signals of this process (changes its signal mask) */
	struct run_tty *tty; /* the job has a terminal, and this is ours; NULL: pipes */
	bool look;	     /* at a job that runs; whether it has a terminal it says itself */
	int patience_s;	     /* with a peer that is silent; 0: as wire.h says */
	bool leave;	     /* the job once it started: a detached one */
	void (*started)(void *arg, const struct run_result *result); /* may be NULL */
	/*
	 * Contact was lost: a new connection on which ASK went, or negative errno.
	 * NULL: it is not asked for again.
	 */
	int (*again)(void *arg, const struct attach_ask *ask);
	uint32_t again_ms; /* for so long */
	/* The bytes [FROM, TO) of output STREAM are not kept there; what comes next is behind
	 * them.  NULL: none may be missing. */
	void (*gap)(void *arg, int stream, uint64_t from, uint64_t to);
	const struct attach_ask *self; /* job, node, and the nonce of this connection in `resume` */
	void *arg;
};

/* Takes FD.  Moves everything until the job is over.  The exit code for `iocom run`. */
int run_stream(const struct run_stream_options *options, int fd, struct run_result *result);

/* The exit code of `iocom run` for RESULT. */
int run_exit_code(const struct run_result *result);

/* --- run_home.c --- */

/*
 * RESULT is RUN_LOST: its text becomes what home, the agent at RUN_DIR (NULL: the usual), has
 * heard of JOB's end within 2 s; RUN_EXITED where nothing of it ran.  The exit code.
 */
int run_home(const char *run_dir, const char *job, struct run_result *result);

/* --- run_background.c: detached ones --- */

/* Goes to the background.  0 there; 1 in the program that was called, JOB is on its way. */
int run_background(const char *name, const char *job);

/* --- run_again.c: restartable jobs --- */

#define RUN_AGAIN_S 300	 /* an agent that does not answer is asked for so long */
#define RUN_KEEP_MS 3000 /* ... and how often for whom nobody waits */

/* Whether a restartable job that came to RESULT is asked about at home. */
bool run_may_restart(const struct run_result *result);
/*
 * Asks home by ASK, each LEAST_MS at most, until it says what is to become of the attempt
 * that was lost, or that nobody looks at.  0: ANSWER
 * is the placement of the next (the caller's to free); 1: it had ended, RESULT says how; negative
 * errno with the sentence.
 */
int run_again(int (*ask)(void *arg, struct placement *answer, struct iocom_err *err), void *arg,
	      uint64_t least_ms, struct run_result *result, struct placement *answer,
	      struct iocom_err *err);

/* --- run_report.c: --status-fd, one JSON object a line --- */

struct run_report {
	int fd;			/* -1: none */
	const char *job, *node; /* "" while unknown */
	bool brief;		/* "placed" without the placement */
};

/* Takes LINE, and writes it with a newline; where nobody reads, nothing happens. */
void run_report_print(int fd, json_t *line);

void run_report_placed(const struct run_report *report, const struct placement *answer);
void run_report_started(const struct run_report *report, uint64_t pid);
/* STATE "exited", "failed" or "lost"; STATUS is what `iocom run` returns. */
void run_report_end(const struct run_report *report, const char *state,
		    const struct run_result *result, int status, const char *text);

#endif
