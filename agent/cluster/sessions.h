/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Sessions between this agent and others: what greeting.h's handshake has established.  Each
 * protects questions and answers of both agents, with one key per direction:
 *
 *   SEALED   kind u8 | session u64 BE | number u64 BE | Noise transport message; the first 17
 *            bytes are authenticated with it, and the number is its nonce
 *   UNKNOWN  kind u8 | session u64 BE: the answerer does not know this session (in clear; at most
 *            it makes the asker greet again; only on a connection where something sealed came)
 *
 * Messages may overtake each other, so the receiver keeps a window of numbers that it has seen
 * (Noise, section 11.4).  A session is greeted anew after an hour, and is good for a second one if
 * that does not succeed, because munged is away, for example.  Both sides may greet at the same
 * time: then there are two, each side sends in its newest that works, and both receive in either.
 * A session that the other side began counts as confirmed with the first message that opens: until
 * then it may be a repeated HELLO, and nothing is sent in it.
 */
#ifndef IOCOM_SESSIONS_H
#define IOCOM_SESSIONS_H

#include <msgpack.h>
#include <stdbool.h>
#include <stdint.h>

#include "agent/base/counters.h"
#include "agent/cluster/greeting.h"

#define SESSIONS_MAX	    2048 /* two for each node of a large cluster */
#define SESSIONS_OF_ONE	    4	 /* of one node */
#define SESSION_FRESH_S	    3600 /* then a new one is begun */
#define SESSION_LIFE_S	    7200 /* then it is void */
#define SESSION_RETRY_S	    30	 /* between attempts to begin the next one */
#define SESSION_HEAD	    17	 /* before the sealed part */
#define SESSION_OVERHEAD    (SESSION_HEAD + NOISE_TAG)
#define SESSION_WINDOW	    1024 /* a message may be overtaken by that many less one */
#define SESSION_UNKNOWN_LEN 9

struct sessions;
struct session;

/* Both are borrowed.  Returns NULL without memory. */
struct sessions *sessions_new(const struct greeting_self *self, struct counters *counters);
void sessions_free(struct sessions *sessions); /* NULL is fine */
size_t sessions_count(const struct sessions *sessions);
const struct greeting_self *sessions_self(const struct sessions *sessions);

/*
 * Takes the keys of a complete handshake and erases G.  URL: where the asker reached the node; "":
 * the other side asked.  Returns the session, or NULL without memory.
 */
const struct session *sessions_add(struct sessions *sessions, struct greeting *g, const char *url,
				   uint64_t now_ns);
/*
 * The session to send in: the newest that is confirmed, not in doubt and not void.  NODE "":
 * whoever is at URL. NULL: there is none.
 */
const struct session *sessions_find(const struct sessions *sessions, const char *node,
				    const char *url, uint64_t now_ns);
/* The session that SEALED or UNKNOWN, of LENGTH bytes, names; NULL: none, or it is void. */
const struct session *sessions_named(const struct sessions *sessions, const void *message,
				     size_t length, uint64_t now_ns);
/*
 * The other side does not know SESSION: drops it, and those of that node that are older, which it
 * has forgotten, too, if it has started again.
 */
void sessions_drop_until(struct sessions *sessions, const struct session *session);
/*
 * The other side may have forgotten SESSION and those of that node that are older: nothing is sent
 * in them until a message opens in one.  It may also have forgotten none, and go on in them.
 */
void sessions_doubt_until(struct sessions *sessions, const struct session *session);
/* Drops what is void. */
void sessions_expire(struct sessions *sessions, uint64_t now_ns);

uint64_t session_id(const struct session *session);
const char *session_node(const struct session *session);
bool session_is_stale(const struct session *session, uint64_t now_ns); /* older than an hour */
/* Returns true if SESSION's successor may be tried now: at most every SESSION_RETRY_S. */
bool session_may_greet(struct sessions *sessions, const struct session *session, uint64_t now_ns);
bool session_is_confirmed(const struct session *session);
uint64_t session_age_ns(const struct session *session, uint64_t now_ns);

/*
 * Seals DATA into OUT, which has room for LENGTH + SESSION_OVERHEAD bytes.  SESSION is one of these
 * SESSIONS.
 */
void session_seal(struct sessions *sessions, const struct session *session, const void *data,
		  size_t length, uint8_t *out);
/*
 * Opens a SEALED of SESSION in place.  Returns 0: *DATA, of *N bytes, is in MESSAGE; -EBADMSG: not
 * made by the peer in this session; -EALREADY: it was here before.
 */
int session_open(struct sessions *sessions, const struct session *session, uint8_t *message,
		 size_t length, const uint8_t **data, size_t *n);
/* Writes the UNKNOWN that answers the SEALED at MESSAGE. */
void session_unknown(const void *message, uint8_t out[SESSION_UNKNOWN_LEN]);

#endif
