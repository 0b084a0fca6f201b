/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Bulletins: each period, and at once on a significant change, an agent publishes its own vector
 * and others that it knows (balancer/gossip/gossip.h says which), by nng's PUB; subscription.h
 * reads those of others.
 *
 *   { "v": 4, "from": NAME, "at": ms since 1970, "vectors": [ [age_ms, vector], ... ] }
 *
 * with its own vector first, sealed under the key of the sender's epoch (bulletin_seal.h), which it
 * gives to each subscriber in the session of the two agents.  A subscriber asks for the key when it
 * dials, and again when a bulletin of another epoch comes; that bulletin is lost.  Later versions
 * only add fields at the ends, so neighbouring ones understand each other.
 */
#ifndef IOCOM_NET_BULLETIN_H
#define IOCOM_NET_BULLETIN_H

#include <msgpack.h>
#include <stdint.h>

#include "agent/base/counters.h"
#include "iocom/err.h"
#include "user/log.h"
#include "agent/base/loop.h"
#include "agent/base/base.h"
#include "agent/gate/net_limits.h"
#include "agent/base/matrix.h"
#include "agent/base/peer_cause.h"
#include "agent/gate/gate_message.h"
#include "user/channel/bulletin_seal.h"

#define BULLETIN_VERSION     4 /* and all later ones */
#define BULLETIN_VECTORS_MAX 256
#define BULLETIN_VALUES_MAX  (64 * BULLETIN_VECTORS_MAX) /* a vector with its age has 42 */
#define BULLETIN_BYTES_MAX   (512u << 10)

/* Positive conditions of bulletin_unpack. */
#define BULLETIN_E_GARBAGE 1
#define BULLETIN_E_VERSION 2

/* One vector of a bulletin, AGE_NS old; DIRECT: its own node sent it. */
typedef void (*bulletin_each)(void *arg, const struct iocom_vector *v, uint64_t age_ns,
			      bool direct);

void bulletin_pack(msgpack_sbuffer *out, const struct iocom_vector *own, const struct matrix *m,
		   uint64_t now_ns, uint64_t at_ms);
/* What a bulletin says of itself. */
struct bulletin_sender {
	char from[IOCOM_NAME_MAX];
	uint64_t at_ms; /* its clock, CLOCK_REALTIME */
};
/* Whether the vectors of SENDER's bulletin are to be looked at. */
typedef bool (*bulletin_may)(void *arg, const struct bulletin_sender *sender);
/*
 * Returns 0 or BULLETIN_E_*.  BAD counts vectors out of range, which are skipped.  Fills SENDER,
 * and calls EACH for each vector if MAY (NULL: always) says so.
 */
int bulletin_unpack(const void *data, size_t length, struct bulletin_sender *sender, uint64_t *bad,
		    bulletin_may may, bulletin_each each, void *arg);

struct names;
struct net_bulletin;

struct net_bulletin_config {
	const struct base *base; /* all are borrowed */
	struct names *names;
	const char *listen;
	uint16_t port;
	bulletin_each each;
	void *arg;
	/* What is here was taken: EACH has been called for all of it. */
	void (*taken)(void *arg);
	/* Asks the node at AT for its key; net_bulletin_key follows. */
	void (*ask_key)(void *arg, const struct gate_place *at);
	/* Why the publisher AT is not heard; of those that were dialled. */
	void (*trouble)(void *arg, const struct gate_place *at, enum peer_cause cause,
			const char *why);
	/*
	 * A bulletin of NODE was refused because its clock is AHEAD_S seconds ahead (negative:
	 * behind).
	 */
	void (*skewed)(void *arg, const char *node, int64_t ahead_s);
};

/* Begins to listen.  Returns 0; -EADDRINUSE and others with the reason in ERR. */
int net_bulletin_new(struct net_bulletin **b, const struct net_bulletin_config *config,
		     struct iocom_err *err);
void net_bulletin_free(struct net_bulletin *b); /* NULL is fine */
/* Fills in what COUNTS says of this, and updates the counters of refused connections. */
void net_bulletin_count(struct net_bulletin *b, struct gate_counts *counts);
/* Where the bulletin comes from that `each` is being called for. */
const struct gate_place *net_bulletin_hearing(const struct net_bulletin *b);
/* The node whose bulletin is being taken, NULL: none is. */
const char *net_bulletin_teller(const struct net_bulletin *b);
/* Subscribes to a peer in the background; known addresses are skipped. */
void net_bulletin_dial(struct net_bulletin *b, const struct gate_place *at);
/* Hears it no longer. */
void net_bulletin_undial(struct net_bulletin *b, const struct gate_place *at);
/* Seals all further bulletins of this node with KEY. */
void net_bulletin_epoch(struct net_bulletin *b, const struct bulletin_key *key);
void net_bulletin_publish(struct net_bulletin *b, const struct iocom_vector *own,
			  const struct matrix *m);
/* A publisher has given its key; or it has not, and is asked again when a bulletin comes. */
void net_bulletin_key(struct net_bulletin *b, const struct gate_publisher *publisher);

#endif
