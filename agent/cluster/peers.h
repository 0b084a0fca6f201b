/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The other agents: who is there (matrix.h), what they are told (bulletin.h), and questions to
 * them and from them.
 *
 * A party of this agent (home, guest) serves types of questions and asks them.  A question to
 * this node itself takes the same path, short-circuited: the same handler, in a transaction of
 * the journal as well, but without encoding and seal.
 *
 * A question of another node is obeyed once: the journal has its number, and what it changed,
 * before its answer leaves.
 */
#ifndef IOCOM_PEERS_H
#define IOCOM_PEERS_H

#include <stdint.h>

#include "agent/base/base.h"
#include "agent/cluster/bulletin.h"
#include "agent/cluster/control.h"
#include "agent/cluster/matrix.h"
#include "agent/cluster/peer_message.h"
#include "agent/cluster/skews.h"

struct journal;
struct probes;
struct tunnels;

/* A handler's result: it answers later, by peers_answer. */
#define PEERS_LATER 1
/*
 * Answers REQUEST, which is borrowed: 0 and ANSWER; PEERS_LATER; or negative errno: nothing is
 * answered.  What it wrote into the journal before an error stays, as the message's number does:
 * a handler writes only what may be written again.
 */
typedef int (*peers_handler)(void *arg, const struct peer_request *request, uint64_t ticket,
			     struct peer_answer *answer);
/*
 * What became of a question, once, from the loop: RC 0 and ANSWER (borrowed), or ANSWER NULL and
 * WHY: -ETIMEDOUT; -EBADMSG the answer is incomplete; -ECANCELED this agent is stopping; ...
 */
typedef void (*peers_answered)(void *arg, int rc, const struct peer_answer *answer,
			       const char *why);
/* The port by which a party asks; peers_ask has this form. */
typedef int (*peers_asker)(void *peers, const char *node, const char *address, uint16_t port,
			   const struct peer_request *request, peers_answered answered, void *arg,
			   struct iocom_err *err);

struct peers {
	const struct base *base;
	struct journal *journal;
	struct seal *seal; /* NULL: this machine only, as are the next three */
	struct bulletin *bulletin;
	struct control *control;
	struct probes *probes;	 /* of silent peers */
	struct tls *tls;	 /* NULL: without TLS */
	struct tunnels *tunnels; /* relays of job streams; NULL: this machine only */
	struct matrix matrix;
	struct skews skews;
	unsigned chores;	  /* seconds until nodes are greeted again, counted up */
	struct peers_call *calls; /* questions of this node that wait for their answers */
	uint64_t tickets;	  /* given to questions of this node to itself */
	struct {
		peers_handler handle; /* NULL: nobody serves it */
		void *arg;
	} handlers[PEER_TYPES];
};

/*
 * All begins here; nothing is heard or answered before the loop runs.  SEAL NULL: this machine
 * only.  Takes SEAL.  0 or negative errno with the sentence; peers_free is due in any case.
 */
int peers_start(struct peers *peers, const struct base *base, struct journal *journal,
		struct seal *seal, struct iocom_err *err);
/* Stops to hear, ask and answer: questions under way end with -ECANCELED. */
void peers_stop(struct peers *peers);
void peers_free(struct peers *peers);
/* Hears the configured peers from now on. */
void peers_dial(struct peers *peers);

/* HANDLER answers questions of TYPE. */
void peers_serve(struct peers *peers, enum peer_type type, peers_handler handler, void *arg);
/*
 * Asks NODE at ADDRESS and base PORT.  REQUEST is borrowed for the call.  0: ANSWERED is called,
 * for this node itself perhaps before this returns; else negative errno with the sentence
 * (-EHOSTUNREACH: this agent serves its own machine only), and it is not.
 */
int peers_ask(void *peers, const char *node, const char *address, uint16_t port,
	      const struct peer_request *request, peers_answered answered, void *arg,
	      struct iocom_err *err);
/* The answer to a question for which the handler said PEERS_LATER. */
void peers_answer(void *peers, uint64_t ticket, enum peer_type type,
		  const struct peer_answer *answer);
/* Nobody waits any more for the answers to what was asked with ARG. */
void peers_forget(struct peers *peers, const void *arg);

/* Tells OWN to the others, and drops those that are silent.  At the end of a period. */
void peers_publish(void *peers, const struct iocom_vector *own, uint64_t now_ns);
void peers_period(void *peers);
/* Once a second: greets new nodes, looks why silent ones are. */
void peers_chores(struct peers *peers);
/* True: munged on this machine does not answer, so that every node looks silent. */
bool peers_mute(const struct peers *peers);

#endif
