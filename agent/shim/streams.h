/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The job's stdio: between its three pipes and the client's stream.
 *
 * Output is read as far as there is room to keep it until the client has it, so
 * a stalled reader stops the job at its pipe, as at home, and a client that was
 * cut off finds the bytes it did not get.  A detached job's output goes to its
 * spool, which never stops it.  Input waits here, at most one window.  A side
 * that closes early is told to the other one.
 *
 * Of a job with a terminal, input and output are the master of a pty.  They end
 * together, when nothing of the job has the terminal open; it is hung up when they
 * are closed.  The end of the client's input is the terminal's ^D, which ends one read:
 * it is said again, as a pipe would, to whoever reads then.
 */
#ifndef IOCOM_SHIM_STREAMS_H
#define IOCOM_SHIM_STREAMS_H

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>

#include "user/resend_buffer.h"
#include "agent/shim/spool.h"
#include "user/wire.h"

struct streams {
	int fd[FRAME_STREAMS]; /* our ends of the pipes; -1 closed */
	bool grown[FRAME_STREAMS];
	struct resend_buffer
		kept[FRAME_STREAMS]; /* outputs: read, and not yet taken by the client */
	struct spool spool;	     /* where it is open: instead of them */
	int record;		     /* directory of the job's record, the shim's; -1 */
	/* By the stream's offsets, of the present client: */
	uint64_t sent[FRAME_STREAMS];  /* [0]: what came from it */
	uint64_t taken[FRAME_STREAMS]; /* what it took; [0]: what it may know we took */
	bool told[FRAME_STREAMS];      /* it knows that nothing more comes (or wants nothing) */
	bool gaps;		       /* it can be told of bytes that are not kept */
	/* The last such bytes that it was told of: they take nothing of its window. */
	struct streams_gap {
		uint64_t from, to;
	} gap[FRAME_STREAMS];
	struct queue input;
	uint64_t consumed; /* of the input, by the job */
	bool input_ended;
	bool tty;	     /* fd[0] and fd[1] are the master of the job's terminal */
	int ended_tty;	     /* its master when they ended: closed now it would kill the job; -1 */
	char last_input;     /* of a terminal: the last character; 0 none yet */
	uint64_t end_due_ms; /* of a terminal: its end is said again; 0 not yet said */
	unsigned end_pause_ms, end_times;
	uint64_t last_output_ms;
	const char *why; /* of -EPROTO: a sentence */
	uint8_t piece[FRAME_DATA_MAX];
};

void streams_init(struct streams *streams, const int fd[FRAME_STREAMS]);
void streams_deinit(struct streams *streams);
/*
 * The offsets of output STREAM that can still be sent: [first, end).  Between them bytes may be
 * missing (spool.h); a client without GAPS gets those before them only.
 */
uint64_t streams_first(const struct streams *streams, int stream);
uint64_t streams_end(const struct streams *streams, int stream, bool gaps);
/*
 * Another client, or the old one again: it has the outputs up to FROM, and up to TAKEN for good.
 * GAPS: as in attach_ask.
 */
void streams_attach(struct streams *streams, const uint64_t from[FRAME_STREAMS],
		    const uint64_t taken[FRAME_STREAMS], bool gaps);
/* Tells the client that its input leads nowhere, where that is so.  As wire_send. */
int streams_announce(struct streams *streams, struct wire *wire);
/* Three entries: what to wait for. */
void streams_poll(const struct streams *streams, struct pollfd entries[FRAME_STREAMS]);
/*
 * Moves what can be moved between the pipes and here; WIRE NULL: nobody is to be
 * told.  0, or negative errno: the stream to the client is broken (the pipes stay
 * as they are).
 */
int streams_move(struct streams *streams, struct wire *wire, uint64_t now_ms,
		 const struct pollfd entries[FRAME_STREAMS]);
/* Sends what the client has room for while the socket takes it.  As wire_send. */
int streams_send(struct streams *streams, struct wire *wire);
/* A frame of the client: DATA or CREDIT.  0; -EPROTO against the rules (`why`); as wire_send. */
int streams_take(struct streams *streams, struct wire *wire, uint8_t type, const uint8_t *payload,
		 uint32_t length);
/* Whether both outputs ended. */
bool streams_ended(const struct streams *streams);
/* Whether the client was sent all of them, and knows their ends. */
bool streams_sent(const struct streams *streams);
/* Whether it said that it took all. */
bool streams_taken(const struct streams *streams);
/* Whether we really wait for the job (and not for a client that does not read). */
bool streams_waiting(const struct streams *streams);
void streams_close(struct streams *streams, int stream);
/* When streams_end_again has something to do; UINT64_MAX never. */
uint64_t streams_end_due(const struct streams *streams);
/* The end of a terminal's input, for a job that reads on or took it for a key. */
void streams_end_again(struct streams *streams, uint64_t now_ms);
/* The master of the job's terminal, -1: there is none. */
int streams_tty(const struct streams *streams);
/* Writes what the client did not take, in the pipes too, to a spool in `record`. */
void streams_spill(struct streams *streams);

#endif
