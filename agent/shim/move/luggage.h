/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What of a job that moves is not in its images: what its shim knows of its streams, and what waits
 * in the pipes between the two, which criu leaves to us.  It goes along as the file LUGGAGE_FILE.
 *
 * What is in a pipe is looked at and not taken: if the job does not move after all, its shim and
 * its pipes are as they were.
 */
#ifndef IOCOM_SHIM_MOVE_LUGGAGE_H
#define IOCOM_SHIM_MOVE_LUGGAGE_H

#include <msgpack.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/ioctl.h>

#include "agent/shim/move/criu.h"
#include "agent/shim/move/images.h"
#include "agent/shim/move/typed.h"
#include "iocom/err.h"
#include "user/frame.h"
#include "user/spec.h"

#define LUGGAGE_FILE	  "luggage"
#define LUGGAGE_PIPES	  4	     /* input, output, errors, and what init says (init.h) */
#define LUGGAGE_PIPE_MAX  (1u << 20) /* most bytes in a pipe */
#define LUGGAGE_MAX	  (16u << 20)
#define LUGGAGE_SPOOL_MAX 1024
#define LUGGAGE_SHOWN_MAX (64u << 10) /* most bytes of output in a terminal */

struct luggage_bytes {
	uint8_t *data; /* owned */
	size_t length;
};

struct luggage {
	char job[SPEC_JOB_MAX];
	char owner[SPEC_NONCE_MAX]; /* nonce of the client that may resume */
	uint64_t start_ns;	    /* when the job began, CLOCK_REALTIME */
	uint64_t ran_ms;	    /* since then, by the clock of the nodes where it ran */
	uint64_t moves;		    /* with this one */
	uint64_t grace_ms;	    /* how long it goes on without its client */
	/* CPU time so far, and of it the steps before the command. */
	uint64_t cpu_us, begin_us;
	bool detached, input_ended;
	/* Offsets in the input: received from the client, and taken by the job. */
	uint64_t received, consumed;
	/* Of a detached job: what its shim knows of the output on disk, whose files come as
	 * TRANSFER_RECORD (transfer.h).  Empty: there is none. */
	struct luggage_bytes spool;
	struct luggage_bytes input; /* received, and not in the pipe yet */
	struct luggage_pipe {
		bool open; /* at the shim's end */
		char name[CRIU_NAME_MAX];
		uint32_t room;
		struct luggage_bytes held;
	} pipes[LUGGAGE_PIPES];
	/* The job's terminal, which replaces the first three pipes.  Its modes and its foreground
	 * are criu's to keep. */
	struct luggage_tty {
		bool open;
		char name[CRIU_NAME_MAX]; /* as criu calls it: "tty[8803:1a]" */
		struct winsize size;
		bool lines;		     /* the job reads lines */
		bool nonblocking;	     /* at the job's end */
		char last;		     /* last character that came; 0: none yet */
		struct typed typed;	     /* and not read yet */
		struct luggage_bytes output; /* that the shim has not read yet */
	} tty;
	/* Output that the client has not confirmed, from the offset START. */
	struct luggage_kept {
		uint64_t start;
		struct luggage_bytes bytes;
	} kept[FRAME_STREAMS]; /* [0] is unused */
};

/*
 * Fills PIPE with what is in the pipe FD, of which this process has an end.  Returns 0 or negative
 * errno.
 */
int luggage_look(struct luggage_pipe *pipe, int fd);
/* Puts what PIPE holds into FD, the writing end of a new and empty pipe.  Returns as above. */
int luggage_fill(const struct luggage_pipe *pipe, int fd);

/* Writes the file.  Returns 0 or negative errno. */
int luggage_write(const struct luggage *luggage, const struct images *images);
/* Reads and removes it.  Returns 0, or negative errno with nothing to free. */
int luggage_read(struct luggage *luggage, const struct images *images, struct iocom_err *err);
/* Initialises BUFFER with the file's bytes. */
void luggage_pack(const struct luggage *luggage, msgpack_sbuffer *buffer);
/* Decodes LENGTH bytes.  Returns 0, -EBADMSG or -ENOMEM, and then there is nothing to free. */
int luggage_unpack(struct luggage *luggage, const void *data, size_t length);
void luggage_free(struct luggage *luggage);

#endif
