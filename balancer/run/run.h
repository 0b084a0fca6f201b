/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The client's side of one job of `iocom run`: it describes the process, reaches the target,
 * moves the job's stdio and returns its status.  The files are run_spec.c, run_connect.c,
 * run_stream.c (with run_output.c, run_reattach.c and run_tty.c) and run_report.c.
 */
#ifndef IOCOM_RUN_H
#define IOCOM_RUN_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "user/attach.h"
#include "iocom/err.h"
#include "balancer/run/run_data.h"
#include "balancer/run/run_tty.h"
#include "balancer/view/placement.h"
#include "user/channel/stream_hello.h"
#include "user/spec.h"
#include "user/wire.h"

#define RUN_FAILED  125 /* iocom failed before the job started */
#define RUN_UNKNOWN 255 /* contact lost: the job's outcome is unknown here */

/* --- cmd_run.c --- */

/*
 * Runs `iocom run` with ARGV and returns its exit status.  FAILED: iocom failed and no command
 * ran.  With HOME the job begins in that directory, or, after a message, in "/" if the node has
 * no such directory.
 */
int run_main(int argc, char **argv, const char *home, bool *failed);

/* --- run_spec.c --- */

/*
 * Returns which of 0, 1, 2 were closed, as a mask, and fills them with /dev/null.  Call it
 * first.
 */
uint32_t run_closed_descriptors(void);
/* Returns whether COMMAND is a worker as `iocom batch` starts it. */
bool run_is_worker(char *const *command);
/*
 * Fills SPEC (zero before) from this process: umask, soft limits, environment by RULE ("all",
 * "none", or NAME,NAME=VALUE,...).  Copies COMMAND, CWD and EXECUTABLE.  Returns 0, -EINVAL or
 * -ENOMEM.
 */
int run_spec_fill(struct spec *spec, char *const *command, const char *cwd, const char *executable,
		  const char *env_rule, struct iocom_err *err);
/* Returns 0, or 126 or 127 with a shell's sentence if EXECUTABLE cannot run here. */
int run_executable_check(const char *command, const char *executable, struct iocom_err *err);
/* Checks that RULE is valid for run_spec_fill.  Returns 0 or -EINVAL with the reason in ERR. */
int run_env_check(const char *rule, struct iocom_err *err);

/* --- run_connect.c --- */

struct run_target {
	const char *run_dir; /* the run directory of this machine's agent */
	const char *address; /* "" means this machine, by its agent's local socket */
	unsigned port;
	const char *munge_socket; /* NULL: the default one */
	/* For another machine: the key of the stream; TICKET says which key, "" is the starter's */
	uint8_t key[SECRET_KEY];
	const char *ticket;
	struct noise_pair *pair; /* made before, for the first handshake; NULL: none */
};

/* For the connection and the proof that the target is there, together. */
#define RUN_CONNECT_MS 5000

/*
 * Takes the KEY of a target on another machine from an answer of the agent, in hex.  Returns 0 or
 * -EPROTO.
 */
int run_target_key(struct run_target *target, const char *key, struct iocom_err *err);
/*
 * Connects and sends FRAME_START for SPEC; FD gets the stream.  To another machine it is sealed,
 * and RECORDS gets its keys: nothing of SPEC is sent before the target has proven that it is the
 * one that SPEC names (run_handshake.c).  Returns 0 or negative errno.
 */
int run_connect(const struct run_target *target, const struct spec *spec, int *fd,
		struct records *records, struct iocom_err *err);
/* Does the same with FRAME_ATTACH for ASK. */
int run_connect_attach(const struct run_target *target, const struct attach_ask *ask, int *fd,
		       struct records *records, struct iocom_err *err);
/* Returns RECORDS, or NULL for a target on this machine, whose stream is in clear. */
static inline const struct records *run_target_records(const struct run_target *target,
						       const struct records *records)
{
	return *target->address ? records : NULL;
}

/* --- run_handshake.c --- */

/*
 * Does the handshake of a stream to NODE on the connected FD until UNTIL_MS (run_now_ms); RECORDS
 * gets the keys.  Returns 0; negative errno with the sentence in ERR: nothing but names was sent.
 */
int run_handshake(const struct run_target *target, int fd, const struct stream_hello *hello,
		  uint64_t until_ms, struct records *records, struct iocom_err *err);
/*
 * The same in two steps, so that the client can do something while the target computes.  After a
 * run_handshake_begin that returns 0 comes run_handshake_end, or noise_end(&shake->noise).
 */
struct run_handshake {
	const struct run_target *target;
	const struct stream_hello *hello;
	int fd;
	int sent;      /* the result of sending */
	bool wordless; /* afterwards: the other end has closed, and said nothing */
	struct noise noise;
};
int run_handshake_begin(struct run_handshake *shake, const struct run_target *target, int fd,
			const struct stream_hello *hello, struct iocom_err *err);
int run_handshake_end(struct run_handshake *shake, uint64_t until_ms, struct records *records,
		      struct iocom_err *err);

/* --- run_output.c: one of the client's own outputs --- */

enum run_output_mode {
	RUN_OUTPUT_WHOLE, /* regular files and devices: a write never waits */
	/* a pipe or terminal reopened non-blocking, so that the shared flags stay as they are */
	RUN_OUTPUT_AGAIN,
	RUN_OUTPUT_SOCKET, /* MSG_DONTWAIT */
	RUN_OUTPUT_SMALL,  /* another user's pipe: write at most PIPE_BUF at a time */
};

struct run_output {
	int fd;	   /* the descriptor as we got it */
	int again; /* RUN_OUTPUT_AGAIN's own descriptor, else -1 */
	enum run_output_mode mode;
	struct queue queue;
	bool ended;    /* the job closed it */
	bool closed;   /* our reader left, or we finished it */
	bool unwanted; /* the job was told that we closed it */
	/*
	 * Offsets of the bytes received, of the bytes that we confirmed to the job as written, and
	 * of the bytes that a repeated attach request confirmed.
	 */
	uint64_t received, taken, asked;
	uint64_t gap_from, gap_to; /* the last bytes that the node did not keep: they never come */
	int error;		   /* why output was lost, if not because the reader left */
	struct run_modes *modes;   /* follows what is written to a terminal; NULL: nobody does */
};

/* The offset up to which all is written; our own messages may be queued among the output. */
static inline uint64_t run_output_left(const struct run_output *output)
{
	uint64_t waits = output->queue.length, behind = output->received - output->gap_to;

	/* Queued bytes from before a gap have their offsets before it. */
	if (waits > behind) {
		waits -= behind;
		return output->gap_from > waits ? output->gap_from - waits : 0;
	}
	return output->received - waits;
}
void run_output_init(struct run_output *output, int fd);
void run_output_deinit(struct run_output *output);
/* Descriptor to poll for POLLOUT; -1: nothing is queued. */
int run_output_poll(const struct run_output *output);
/*
 * Writes the queue, then DATA, and keeps the rest.  Returns the bytes written now, or -EPIPE
 * when nobody reads any more (with `error` set if something else failed).
 */
ssize_t run_output_write(struct run_output *output, const void *data, size_t length);
/* Gives up FD, so that its reader sees the end of file now. */
void run_output_finish(struct run_output *output);

/* --- run_stream.c --- */

enum run_state { RUN_STARTED = 1, RUN_EXITED, RUN_REFUSED, RUN_LOST };

struct run_result {
	enum run_state state;
	uint8_t kind; /* the kind of FRAME_EXIT */
	uint32_t value;
	uint64_t pid;
	int signal;	  /* the signal that made us give up before the job started */
	int output_error; /* errno of one of our outputs that lost bytes */
	/* the user left: a detached job goes on, another job is hung up (RUN_LOST) */
	bool left;
	char text[512];
};

/* A part's way to the main process: a SOCK_SEQPACKET socket, packets as in gang_watch.h. */
struct run_channel {
	int fd;		      /* -1: the main process has closed it */
	uint8_t *kept;	      /* a message for the launcher that could not be sent yet; malloc'ed */
	uint32_t kept_length; /* 0: there is none */
};

struct run_stream_options {
	int stdio[3];	     /* -1: there is no input, or nobody wants this output */
	bool signals;	     /* forward signals of this process (changes its signal mask) */
	struct run_tty *tty; /* our terminal if the job has one; NULL: pipes */
	/* attach to a running job, which says itself whether it has a terminal */
	bool look;
	int patience_s; /* seconds to wait for a silent peer; 0: as in wire.h */
	bool leave;	/* leave the job once it has started, because it is detached */
	bool deaf;	/* take no output: all of it is kept for a later client */
	void (*started)(void *arg, const struct run_result *result); /* may be NULL */
	const struct records *records; /* the stream's keys; NULL: it is in clear */
	/*
	 * Called when contact is lost: returns a new connection on which it sent ASK, with its
	 * RECORDS if the stream is SECURE, or negative errno.  The job may be at another node than
	 * before.  NULL: we do not try again.
	 */
	int (*again)(void *arg, const struct attach_ask *ask, struct records *records,
		     bool *secure);
	uint32_t again_ms; /* keep trying for this long */
	/*
	 * Called when the node did not keep the bytes [FROM, TO) of output STREAM, before the
	 * bytes that follow them.  NULL: a gap is an error.
	 */
	void (*gap)(void *arg, int stream, uint64_t from, uint64_t to);
	/* the job, the node, and in `resume` the nonce of this connection */
	const struct attach_ask *self;
	struct run_data *data; /* what goes along with the job; NULL: nothing */
	/* A part of a gang: packets to and from its client's main process; NULL: it is none. */
	struct run_channel *channel;
	void *arg;
};

/* Takes FD.  Moves everything until the job is over.  Returns the exit code of `iocom run`. */
int run_stream(const struct run_stream_options *options, int fd, struct run_result *result);

/* The exit code of `iocom run` for RESULT. */
int run_exit_code(const struct run_result *result);

/* --- run_home.c --- */

/*
 * Sends REQUEST to the agent at RUN_DIR (NULL: the default).  Returns its answer; NULL: there is
 * none within 2 s.
 */
json_t *run_home_ask(const char *run_dir, const msgpack_sbuffer *request);
/*
 * RESULT is RUN_LOST.  Asks home, the agent at RUN_DIR (NULL: the default), within 2 s how JOB
 * ended and puts the answer into RESULT's text; RUN_EXITED if the job never ran.  Returns the
 * exit code.
 */
int run_home(const char *run_dir, const char *job, struct run_result *result);
/*
 * Returns whether home knows how JOB, a gang whose parts have ended, or some of them, did: it waits
 * a little for that.  STATUS and TEXT get how and why.  LOST: contact with a part was lost, and of
 * that home only knows what it has seen itself.
 */
bool run_home_ends(const char *run_dir, const char *job, bool lost, int *status, char *text,
		   size_t size);
/*
 * Gives up the gang JOB as by SIGNAL, or with STATUS and the sentence WHY (not ""): what has begun
 * of it ends, and so does what begins later.
 */
void run_home_give_up(const char *run_dir, const char *job, int signal, int status,
		      const char *why);

/* --- run_background.c: detached jobs --- */

/*
 * Goes to the background.  Returns 0 in the background process, and 1 in the calling program, whose
 * JOB is on its way.
 */
int run_background(const char *name, const char *job);

/* --- run_again.c: restartable jobs --- */

#define RUN_AGAIN_S 300	 /* how long we ask an agent that does not answer */
#define RUN_KEEP_MS 3000 /* how often we ask in the background, where nobody waits */

/* Returns whether to ask home about a restartable job that ended with RESULT. */
bool run_may_restart(const struct run_result *result);
/*
 * Asks home by ASK, at most every LEAST_MS, what becomes of the lost attempt, until home has
 * decided or does not answer for too long.  Returns 0: ANSWER places the next attempt; 1: the job
 * had ended, RESULT says how; negative errno with the reason in ERR.  The caller frees ANSWER in
 * any case.
 */
int run_again(int (*ask)(void *arg, struct placement *answer, struct iocom_err *err), void *arg,
	      uint64_t least_ms, struct run_result *result, struct placement *answer,
	      struct iocom_err *err);

/*
 * run_stream closes its outputs at the end: OPTIONS get copies for a further attempt, and the time
 * within which home is asked about this one, whose lease lasts LEASE_MS; 0: it has none where it
 * began.  MOVES: it may be found where it moved.
 */
void run_again_keep_outputs(struct run_stream_options *options, int lease_ms, bool moves);
void run_again_drop_outputs(const struct run_stream_options *options);

/* --- run_report.c: --status-fd, one JSON object a line --- */

struct run_report {
	int fd;			/* -1: none */
	const char *job, *node; /* "" while unknown */
	bool brief;		/* print "placed" without the placement */
};

/* Takes LINE and writes it with a newline; does nothing if nobody reads. */
void run_report_print(int fd, json_t *line);

void run_report_placed(const struct run_report *report, const struct placement *answer);
/* The job's data is there. */
void run_report_staged(const struct run_report *report, const struct run_data *data);
void run_report_started(const struct run_report *report, uint64_t pid);
/* STATE "exited", "failed" or "lost"; STATUS is what `iocom run` returns. */
void run_report_end(const struct run_report *report, const char *state,
		    const struct run_result *result, int status, const char *text);

#endif
