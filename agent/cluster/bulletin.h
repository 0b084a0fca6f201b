/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * This node's bulletins, as root sees them: it has the key of the epoch and gives it to subscribers
 * (bulletin_seal.h); the network part has that key, too, and sends what it is told to
 * (agent/net/net_bulletin.h).
 */
#ifndef IOCOM_BULLETIN_H
#define IOCOM_BULLETIN_H

#include <stdint.h>

#include "agent/base/counters.h"
#include "agent/base/loop.h"
#include "agent/gate/net_limits.h"
#include "agent/gate/net_part.h"
#include "user/channel/bulletin_seal.h"

/*
 * Questions for keys without an answer.  More wait for munged and for answers that may never come
 * than any cluster needs: each of 256 publishers is asked again later.
 */
#define BULLETIN_KEYS_MAX 128

struct bulletin;

struct bulletin_config {
	struct loop *loop; /* both are borrowed */
	struct net_part *net;
	struct counters *counters;
	/* Asks the node at AT for its key; bulletin_key follows. */
	void (*ask_key)(void *arg, const struct gate_place *at);
	void *arg;
};

/* Returns 0 or -ENOMEM with the reason in ERR. */
int bulletin_new(struct bulletin **b, const struct bulletin_config *config, struct iocom_err *err);
void bulletin_free(struct bulletin *b); /* NULL is fine */
/*
 * Subscribes to the nodes at N PLACES, as far as BULLETIN_DIALED_MAX goes, and to no others.  Sorts
 * PLACES.
 */
void bulletin_want(struct bulletin *b, struct gate_place *places, size_t n);
/* Subscribes to one more, until bulletin_want. */
void bulletin_dial(struct bulletin *b, const struct gate_place *at);
void bulletin_publish(struct bulletin *b, const struct iocom_vector *own);
/* Keys that publishers have been asked for and not given yet; NULL: 0. */
size_t bulletin_asking(const struct bulletin *b);
/* The key of this node's bulletins, for a subscriber. */
void bulletin_own_key(const struct bulletin *b, struct bulletin_key *key);
/* Node FROM, at AT, has given its KEY; or it has not (NULL).  Once after each ask_key. */
void bulletin_key(struct bulletin *b, const struct gate_place *at, const char *from,
		  const struct bulletin_key *key);

#endif
