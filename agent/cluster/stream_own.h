/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* What the files of the job streams share. */
#ifndef IOCOM_STREAM_OWN_H
#define IOCOM_STREAM_OWN_H

#include <stdbool.h>

#include "agent/base/acceptor.h"
#include "agent/cluster/address_limit.h"
#include "agent/cluster/stream.h"
#include "user/frame.h"

struct stream {
	struct stream *next, **link;
	struct streams *streams;
	int fd;
	struct loop_fd entry;
	struct loop_timer timer;
	struct seal_question *opens; /* NULL: munged is not asked */
	uint8_t header[FRAME_HEADER];
	size_t header_have;
	uint8_t *data;
	size_t room, have;
	uint32_t length;
	int source;
	bool wrapped;	  /* the stream is behind TLS or is a renewal: no byte has come yet */
	bool refused;	  /* the sentence is sent; further input is discarded */
	size_t discarded; /* bytes, since it was refused */
	bool parked;	  /* strangers used up their part of the loop's time: nothing is read */
	char peer[64];
};

struct streams {
	const struct base *base;
	struct seal *seal;
	const struct tunnels *tunnels; /* NULL: no TLS */
	struct stream_ports ports;
	int fd;
	struct acceptor acceptor;
	struct loop_timer unpark;
	struct stream *first; /* the newest */
	size_t count, bytes;  /* bytes: the memory of all streams */
	struct address_limit sources;
	uint64_t crowded_ns, overdue_ns, heavy_ns, scarce_ns; /* when each was logged last */
};

/* --- stream_answer.c --- */

/* Takes S off its list, closes and frees it. */
void stream_free(struct stream *s);
/*
 * Says why to the peer, and lets it read that for STREAM_LINGER_NS; this may free S.  The first one
 * logs it, too.
 */
void stream_refuse(struct stream *s, const char *why);
void stream_refuse_quietly(struct stream *s, const char *why);
/* Drops S for others: says so in one attempt, and frees S. */
void stream_cut(struct stream *s);
/* S's first frame is here: obeys it, has its credential opened, or refuses it; may free S. */
void stream_start(struct stream *s);
/*
 * Returns true if a frequent message, last logged at *SAID_NS, may be logged again: such messages
 * must not hide the rest.
 */
bool stream_is_time(uint64_t *said_ns);

/* --- stream_read.c --- */

/* `ready`, `fire` of a stream. */
void stream_ready(void *s, uint32_t what);
void stream_overdue(void *s);
/* `fire` of streams->unpark. */
void streams_unpark(void *streams);

#endif
