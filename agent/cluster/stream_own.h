/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* What the files of the job streams share. */
#ifndef IOCOM_STREAM_OWN_H
#define IOCOM_STREAM_OWN_H

#include <stdbool.h>

#include "agent/cluster/stream.h"
#include "agent/gate/net_part.h"
#include "user/frame.h"

#define STREAM_SENTENCE 1024 /* most bytes of what stream_say says */

/* What the network part offers, until root has looked at it. */
struct stream_offer {
	struct stream_offer *next;
	bool renews; /* a renewal: no HELLO, no FD */
	uint64_t id;
	char from[IOCOM_ADDRESS_MAX];
	struct stream_hello hello; /* what the network part takes the bytes for */
	int fd;			   /* -1: none */
	size_t length;
	uint8_t first[STREAM_HELLO_MAX]; /* the payload of its first message */
};

/* A stream whose handshake is over: all is in records. */
struct stream {
	struct stream *next, **link;
	struct streams *streams;
	int fd;
	struct loop_fd entry;
	struct loop_timer timer;
	struct seal_question *opens; /* NULL: munged is not asked */
	/* the first frame, header and payload; LENGTH: of the payload */
	uint8_t *data;
	size_t room, have;
	uint32_t length;
	struct stream_secure secure;
	/* the record that comes: its head, and then its bytes behind the HAVE of `data` */
	uint8_t record[RECORD_HEAD];
	size_t record_head, record_have, record_length;
	bool refused;	  /* the sentence is sent; further input is discarded */
	size_t discarded; /* bytes, since it was refused */
	bool parked;	  /* strangers used up their part of the loop's time: nothing is read */
	char peer[IOCOM_ADDRESS_MAX]; /* as the network part says: for the log */
};

struct streams {
	const struct base *base;
	struct net_part *net;
	struct net_watch watch;
	struct seal *seal;
	struct stream_ports ports;
	struct loop_timer unpark;
	struct stream_offer *offers, **last_offer; /* they wait, the oldest first */
	size_t offered;
	struct stream *first;	/* the newest */
	size_t count, bytes;	/* bytes: the memory of all streams */
	struct noise_pair pair; /* for the next handshake, made when there is time */
	struct loop_timer pairs;
	uint64_t crowded_ns, overdue_ns, heavy_ns, scarce_ns,
		full_ns; /* when each was logged last */
};

/* --- stream.c --- */

/* Puts S, whose handshake is over, on its list, and lets it have STREAM_START_NS. */
void stream_enter(struct stream *s);
/* Takes S off its list, closes and frees it. */
void stream_free(struct stream *s);

/* --- stream_offer.c --- */

/* `received` of GATE_STREAM and GATE_RENEW. */
void stream_offered(void *streams, const struct gate_message *message, uint8_t *tail, size_t n,
		    const int *fds);
/* Looks at the offer that has waited longest, if any waits. */
void stream_offers_next(struct streams *streams);
/* Drops those that wait: nobody hears an answer. */
void stream_offers_drop(void *streams);
/* Sees to it that streams_unpark runs when strangers may have some of the loop's time again. */
void stream_wait(struct streams *streams);

/* --- stream_answer.c --- */

/*
 * Says why to the peer, and lets it read that for STREAM_LINGER_NS; this may free S.  The first one
 * logs it, too.
 */
void stream_refuse(struct stream *s, const char *why);
void stream_refuse_quietly(struct stream *s, const char *why);
/* Drops S for others: says so in one attempt, and frees S. */
void stream_cut(struct stream *s);
/* S's frame is here: has its credential opened, or refuses it; may free S. */
void stream_start(struct stream *s);

/* --- stream_secure.c --- */

/* `fire` of streams->pairs. */
void streams_make_pair(void *streams);
/*
 * Does the handshake that OFFER begins.  Returns NULL: S is welcomed, and has its keys; or why it
 * is refused.
 */
const char *stream_greet(struct stream *s, const struct stream_offer *offer);
/*
 * Takes the next bytes of S's frame from its records.  Returns 1: it has all of it; 0: more must
 * come; -1: S is gone, or was refused.
 */
int stream_take_sealed(struct stream *s);
/* Sends one small frame, sealed.  Returns whether the socket took it. */
bool stream_say(struct stream *s, uint8_t type, const void *payload, size_t length);

/* --- stream_read.c --- */

/* Returns 1: some bytes; 0: none now; -1: the stream is gone (and S freed). */
int stream_take(struct stream *s, uint8_t *at, size_t want, size_t *have);
/*
 * Makes room for MORE bytes behind the HAVE of S's data, within the bounds.  Returns 0, or -1: S is
 * gone, or was refused.
 */
int stream_reserve(struct stream *s, size_t more);

/* `ready`, `fire` of a stream. */
void stream_ready(void *s, uint32_t what);
void stream_overdue(void *s);
/* `fire` of streams->unpark. */
void streams_unpark(void *streams);

#endif
