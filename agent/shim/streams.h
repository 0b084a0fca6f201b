/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The job's stdio: between its three pipes and the client's stream.
 *
 * Output is read only as far as the client gave credit and the socket takes it,
 * so a stalled reader stops the job at its pipe, as at home.  Input waits here,
 * at most one window.  A side that closes early is told to the other one.
 *
 * Of a job with a terminal, input and output are the master of a pty.  They end
 * together, when nothing of the job has the terminal open; it is hung up when they
 * are closed.  The end of the client's input is the terminal's ^D.
 */
#ifndef IOCOM_SHIM_STREAMS_H
#define IOCOM_SHIM_STREAMS_H

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>

#include "wire.h"

struct streams {
	int fd[FRAME_STREAMS]; /* our ends of the pipes; -1 closed */
	bool grown[FRAME_STREAMS];
	uint32_t credit[FRAME_STREAMS]; /* what may still be sent; [0]: what may still come */
	struct queue input;
	bool input_ended;
	bool tty;	     /* fd[0] and fd[1] are the master of the job's terminal */
	int ended_tty;	     /* its master when they ended: closed now it would kill the job; -1 */
	char last_input;     /* of a terminal: the last character; 0 none yet */
	uint32_t input_owed; /* consumed, and not yet given back as credit */
	uint64_t last_output_ms;
	uint8_t piece[FRAME_DATA_MAX];
};

void streams_init(struct streams *streams, const int fd[FRAME_STREAMS]);
void streams_deinit(struct streams *streams);
/* Tells the client which of its streams lead nowhere.  As wire_send. */
int streams_announce(struct streams *streams, struct wire *wire);
/* Three entries: what to wait for.  FLOW false: the client is gone, outputs wait. */
void streams_poll(const struct streams *streams, const struct wire *wire, bool flow,
		  struct pollfd entries[FRAME_STREAMS]);
/*
 * Moves what can be moved.  0, or negative errno: the stream to the client is
 * broken (the pipes stay as they are).
 */
int streams_move(struct streams *streams, struct wire *wire, uint64_t now_ms,
		 const struct pollfd entries[FRAME_STREAMS]);
/* A frame of the client: DATA or CREDIT.  0; -EPROTO against the rules; as wire_send. */
int streams_take(struct streams *streams, struct wire *wire, uint8_t type, const uint8_t *payload,
		 uint32_t length);
/* Whether both outputs ended. */
bool streams_ended(const struct streams *streams);
/* Whether we really wait for the job (and not for a client that does not read). */
bool streams_waiting(const struct streams *streams, const struct wire *wire);
void streams_close(struct streams *streams, int stream);
/* The master of the job's terminal, -1: there is none. */
int streams_tty(const struct streams *streams);

#endif
