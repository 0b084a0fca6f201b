/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Moves data between the job's three pipes and the client's stream.
 *
 * We read output only while there is room to keep it until the client has it. So a stalled
 * reader stops the job at its pipe, as on the home node, and a client that was cut off can get
 * the bytes it missed. A detached job's output goes to its spool, which never stops the job. At
 * most one window of input waits here. If one side closes early, the other is told.
 *
 * With a terminal, input and output are the master of a pty. They end together, when nothing of
 * the job has the terminal open; closing both hangs the terminal up. The end of the client's
 * input becomes the terminal's ^D, which ends only one read. So we repeat it for later readers,
 * because a pipe would also show them its end.
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
	int fd[FRAME_STREAMS]; /* our ends of the pipes; -1: closed */
	bool grown[FRAME_STREAMS];
	struct resend_buffer
		kept[FRAME_STREAMS]; /* output that we read and the client has not taken */
	struct spool spool;	     /* if open, it replaces `kept` */
	int record; /* directory of the job's record, which the shim owns; -1: none */
	/* Offsets in the streams, for the present client: */
	uint64_t sent[FRAME_STREAMS];  /* [0]: received from the client */
	uint64_t taken[FRAME_STREAMS]; /* taken by the client; [0]: by us, as the client knows */
	bool told[FRAME_STREAMS]; /* the client knows that nothing more comes, or wants nothing */
	bool gaps;		  /* the client understands gaps */
	/* The last gap the client was told of; it uses none of the client's window. */
	struct streams_gap {
		uint64_t from, to;
	} gap[FRAME_STREAMS];
	struct queue input;
	uint64_t consumed; /* input that the job took */
	bool input_ended;
	bool tty;	     /* fd[0] and fd[1] are the master of the job's terminal */
	struct queue held;   /* output taken from a terminal before, which comes first */
	int ended_tty;	     /* the master after the outputs ended: to close it kills the job; -1 */
	char last_input;     /* last character of a terminal's input; 0: none yet */
	uint64_t end_due_ms; /* when a terminal's end of input is repeated; 0: not sent yet */
	unsigned end_pause_ms, end_times;
	uint64_t last_output_ms;
	const char *why; /* the sentence for -EPROTO */
	uint8_t piece[FRAME_DATA_MAX];
};

void streams_init(struct streams *streams, const int fd[FRAME_STREAMS]);
void streams_deinit(struct streams *streams);
/*
 * Return the range of offsets of output STREAM that can still be sent: [first, end). Bytes in it
 * may be missing (spool.h); a client without GAPS gets only those before the first gap.
 */
uint64_t streams_first(const struct streams *streams, int stream);
uint64_t streams_end(const struct streams *streams, int stream, bool gaps);
/*
 * Starts with a new client, or with the former one again. It has received the outputs up to
 * FROM, and confirmed them up to TAKEN. GAPS is as in attach_ask.
 */
void streams_attach(struct streams *streams, const uint64_t from[FRAME_STREAMS],
		    const uint64_t taken[FRAME_STREAMS], bool gaps);
/* If the client's input leads nowhere, tells the client so. Returns as wire_send. */
int streams_announce(struct streams *streams, struct wire *wire);
/* Fills three entries with the events to wait for. */
void streams_poll(const struct streams *streams, struct pollfd entries[FRAME_STREAMS]);
/*
 * Moves what it can between the pipes and our buffers. With WIRE NULL no client is told. Returns
 * 0, or negative errno: the stream to the client is broken (the pipes stay open).
 */
int streams_move(struct streams *streams, struct wire *wire, uint64_t now_ms,
		 const struct pollfd entries[FRAME_STREAMS]);
/* Sends as much as the client has room for and the socket takes. Returns as wire_send. */
int streams_send(struct streams *streams, struct wire *wire);
/*
 * Takes a client's DATA or CREDIT frame. Returns 0; -EPROTO: it breaks the rules, and `why` says
 * how; or as wire_send.
 */
int streams_take(struct streams *streams, struct wire *wire, uint8_t type, const uint8_t *payload,
		 uint32_t length);
/* Returns true if both outputs ended. */
bool streams_ended(const struct streams *streams);
/* Returns true if the client was sent both outputs and their ends. */
bool streams_sent(const struct streams *streams);
/* Returns true if the client confirmed all output. */
bool streams_taken(const struct streams *streams);
/* Returns true if we wait for the job, and not for a client that does not read. */
bool streams_waiting(const struct streams *streams);
void streams_close(struct streams *streams, int stream);
/*
 * Takes what waits in the terminal of a job that is frozen: it is `held` and goes the way of all
 * output later.  Returns 0, or negative errno with what was taken so far.
 */
int streams_hold(struct streams *streams);
/* Returns whether some of it can go on now, for which no descriptor becomes ready. */
bool streams_holds(const struct streams *streams);
/* Returns when to call streams_end_again; UINT64_MAX: never. */
uint64_t streams_end_due(const struct streams *streams);
/* Repeats the end of a terminal's input for a job that reads on, or took ^D for a key. */
void streams_end_again(struct streams *streams, uint64_t now_ms);
/* Returns the master of the job's terminal; -1: none. */
int streams_tty(const struct streams *streams);
/*
 * Writes what the client did not take, also what is in the pipes, to a spool in `record`: at most
 * MAX bytes. What is more is counted as lost.
 */
void streams_spill(struct streams *streams, uint64_t max);

#endif
