/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Frames: the form of messages on a stream socket, between the CLI and an agent (unix socket)
 * and between the CLI and a shim (TCP or unix socket).
 *
 *   magic 'i' 'c' | version u8 | type u8 | length u32 big-endian | payload
 *
 * A descriptor has one reader and one writer. Every length is checked before memory is reserved,
 * and a peer that sends garbage or another version is told apart from one that closed.
 */
#ifndef IOCOM_FRAME_H
#define IOCOM_FRAME_H

#include <stddef.h>
#include <stdint.h>

#include "iocom/err.h"

#define FRAME_VERSION	  2 /* version of the job streams; local messages still use 1 */
#define FRAME_HEADER	  8
#define FRAME_PAYLOAD_MAX (4u << 20) /* a request with its environment */
/* What a node says in FRAME_MOVE where a job is to go: it is ready; or it refuses, and a sentence.
 */
#define FRAME_MOVE_BEGIN   'g'
#define FRAME_MOVE_REFUSED 'n'
#define FRAME_DATA_MAX	   (64u << 10) /* one piece of stdio */
#define FRAME_DOCUMENT_MAX (64u << 20) /* a FRAME_JSON with some 90,000 tasks */

enum frame_type {
	/* CLI -> agent */
	FRAME_REQUEST = 1, /* MessagePack map, key "op" */
	/* agent -> CLI */
	FRAME_JSON = 2,	 /* the document that --json prints, UTF-8 */
	FRAME_ERROR = 3, /* a sentence, UTF-8 */
	/* CLI -> target's agent, first frame on a job stream, after the handshake */
	FRAME_START = 4, /* MessagePack map: credential, then the spec (user/spec.h) */
	/* shim <-> CLI, on the job stream */
	FRAME_STARTED = 5, /* MessagePack map: job, pid */
	FRAME_DATA = 6,	   /* u8 stream (0 in, 1 out, 2 err), u64 BE offset of the first byte, then
			      bytes; no bytes: the stream ended or its reader wants no more */
	FRAME_CREDIT = 7,  /* u8 stream, u64 BE: the sender may send up to this offset; the receiver
			      took all bytes more than FRAME_WINDOW below it */
	FRAME_SIGNAL = 8,  /* u8 signal number */
	FRAME_EXIT = 9,	   /* u8 kind (0 exited, 1 signalled, 2 exec failed, 3 iocom failed), u32 BE
			      value, then a sentence if something failed. The CLI sends it back empty:
			      it knows the end, so nothing must be kept for it */
	FRAME_WINSIZE = 10, /* CLI -> shim: the terminal's size (user/terminal.h) */
	/* CLI -> target's agent, first frame on a stream to a running or ended job */
	FRAME_ATTACH = 11, /* MessagePack map: credential, then the request (user/attach.h) */
	/* shim -> home's agent on a connection of its own, and the answer (user/renewal.h) */
	FRAME_RENEW = 12,
	FRAME_RENEWED = 13,
	/* client <-> target's agent, in clear: the handshake of a job stream over TCP, which has
	 * all other frames of the stream inside records (user/channel/stream_hello.h) */
	FRAME_HELLO = 14,
	FRAME_WELCOME = 15,
	/* shim <-> CLI: bytes of the messages with which a job's data goes along
	 * (user/data_stage.h); none from the shim: it is the client's turn */
	FRAME_STAGE = 16,
	/* shim <-> CLI: one message between a gang's launcher and its client (user/gang_plan.h) */
	FRAME_GANG = 17,
	/* shim -> shim of another node: a job that moves (agent/shim/move/transfer.h) */
	FRAME_MOVE = 18,
};

#define FRAME_STREAMS	3
#define FRAME_WINDOW	(512u << 10) /* most bytes of a stream in flight */
#define FRAME_DATA_HEAD 9	     /* length of the head of FRAME_DATA */

/* Positive conditions of frame_read and frame_parse. */
#define FRAME_E_EOF	1 /* the peer closed between frames */
#define FRAME_E_GARBAGE 2 /* not our protocol, or a length over the bound */
#define FRAME_E_VERSION 3 /* our protocol, another version */
#define FRAME_E_CUT	4 /* the peer closed inside a frame */
#define FRAME_E_MORE	5 /* (frame_parse) the frame is not complete yet */

struct frame {
	uint8_t type;
	uint32_t length;
	uint8_t *payload; /* owned by the frame; a NUL follows its `length` bytes */
};

void frame_free(struct frame *frame);
/* Reads a frame; blocks. Returns 0, negative errno, or FRAME_E_*; ERR says what to do. */
int frame_read(int fd, struct frame *frame, uint32_t max, struct iocom_err *err);
/* Writes a whole frame; blocks. Returns 0 or negative errno, without SIGPIPE on sockets. */
int frame_write(int fd, uint8_t type, const void *payload, uint32_t length);
/* Writes a frame of two pieces (a small head and the data) without copying. */
int frame_write2(int fd, uint8_t type, const void *head, uint32_t head_length, const void *data,
		 uint32_t length);

/* Fills the 8 bytes of a header. */
void frame_header(uint8_t out[FRAME_HEADER], uint8_t type, uint32_t length);
/*
 * Parses the start of BUFFER, for event loops. Returns 0 for a whole frame and sets TYPE,
 * PAYLOAD (borrowed from BUFFER), LENGTH and CONSUMED; else FRAME_E_MORE, FRAME_E_GARBAGE or
 * FRAME_E_VERSION.
 */
int frame_parse(const uint8_t *buffer, size_t have, uint32_t max, uint8_t *type,
		const uint8_t **payload, uint32_t *length, size_t *consumed);

#endif
