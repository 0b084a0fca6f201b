/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Greets an agent's control port as another agent would, and asks questions in the session: one
 * message at a time, over a connection of its own, without nng (which would connect again after the
 * agent has cut the connection).  Only root with the cluster's MUNGE key can do this.
 */
#ifndef TEST_ASKER_H
#define TEST_ASKER_H

#include <msgpack.h>
#include <stdint.h>

#include "agent/cluster/control.h"
#include "agent/cluster/sessions.h"
#include "tests/lib/seals.h"

#define ASKER_MESSAGE_MAX (2u << 20)

struct asker {
	int fd; /* -1: not connected */
	struct greeting_self self;
	struct counters counters;
	struct seals seals;
	struct sessions *sessions;
	const struct session *session; /* NULL: not greeted */
	char to[IOCOM_NAME_MAX];
};

/* MUNGE: the socket of munged.  Returns 0; negative errno with the reason in ERR. */
int asker_new(struct asker *asker, const char *name, const char *to, const char *munge,
	      struct iocom_err *err);
void asker_free(struct asker *asker);
/* Connects to HOST:PORT (a control port) in place of the connection that was.  Returns 0, -errno.
 */
int asker_connect(struct asker *asker, const char *host, uint16_t port);
/*
 * Sends DATA and waits LIMIT_MS for the answer: its length, and the caller frees *ANSWER; 0: none
 * came; negative errno: the connection is gone.
 */
ssize_t asker_exchange(struct asker *asker, const void *data, size_t length, unsigned limit_ms,
		       uint8_t **answer);
/* Packs a HELLO of G with a true credential into OUT, which it initialises. */
int asker_hello(struct asker *asker, struct greeting *g, msgpack_sbuffer *out,
		struct iocom_err *err);
/* Greets: afterwards there is a session.  Returns 0; negative errno with the reason in ERR. */
int asker_greet(struct asker *asker, struct iocom_err *err);
/* Seals PLAIN, a message of control, in the session.  Initialises OUT. */
void asker_seal(struct asker *asker, const msgpack_sbuffer *plain, msgpack_sbuffer *out);
/* Opens a SEALED in place.  Returns 0 and what is in it, or negative errno. */
int asker_open(struct asker *asker, uint8_t *message, size_t length, const uint8_t **data,
	       size_t *n);

#endif
