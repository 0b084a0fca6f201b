/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The other agents: which there are (matrix.h), what we publish to them (bulletin.h), and questions
 * to them and from them.
 *
 * Home and guest, the parties of this agent, ask questions and serve them.  A question to this node
 * itself runs the same handler, also in a journal transaction, but is not encoded or sealed.
 *
 * Another node's question is obeyed once: its number and its effects are in the journal before its
 * answer leaves.
 */
#ifndef IOCOM_PEERS_H
#define IOCOM_PEERS_H

#include <stdint.h>

#include "agent/base/base.h"
#include "agent/cluster/bulletin.h"
#include "agent/cluster/control.h"
#include "agent/cluster/hearing.h"
#include "agent/base/matrix.h"
#include "agent/cluster/peer_message.h"
#include "agent/cluster/peer_state.h"
#include "agent/cluster/skews.h"

struct journal;

/* A handler's result: it will answer later, by peers_answer. */
#define PEERS_LATER 1
/*
 * Answers REQUEST, which is borrowed: 0 and ANSWER; PEERS_LATER; or negative errno: nothing is
 * answered.  What it wrote into the journal before an error stays, as the message's number does:
 * a handler writes only what may be written again.
 */
typedef int (*peers_handler)(void *arg, const struct peer_request *request, uint64_t ticket,
			     struct peer_answer *answer);
/*
 * Gets the result of a question once, from the loop: RC 0 and ANSWER (borrowed), or ANSWER NULL and
 * WHY: -ETIMEDOUT; -EBADMSG the answer is incomplete; -ECANCELED this agent is stopping; and
 * others.
 */
typedef void (*peers_answered)(void *arg, int rc, const struct peer_answer *answer,
			       const char *why);
/* The port through which a party asks; peers_ask has this type. */
typedef int (*peers_asker)(void *peers, const char *node, const char *address, uint16_t port,
			   const struct peer_request *request, peers_answered answered, void *arg,
			   struct iocom_err *err);

struct peers {
	const struct base *base;
	struct journal *journal;
	struct seal *seal; /* NULL: this agent serves its own machine only; so are the next two */
	struct bulletin *bulletin;
	struct control *control;
	struct net_part *net;
	struct net_watch watch;
	struct matrix matrix;
	struct loop_timer expire; /* a node is about to have been silent for too long */
	struct hearing hearing;
	struct skews skews;
	struct peer_states states; /* of the configured peers */
	unsigned chores;	   /* calls of peers_chores since the last new node */
	struct peers_call *calls;  /* this node's unanswered questions */
	struct peers_held *held;   /* answers to other nodes that wait for the disk */
	uint64_t tickets;	   /* last ticket of a question to ourselves */
	struct {
		peers_handler handle; /* NULL: no party serves this type */
		void *arg;
	} handlers[PEER_TYPES];
};

/*
 * Starts all parts; nothing is heard or answered before the loop runs.  SEAL NULL: this machine
 * only.  Takes SEAL; NET is borrowed, and needed if there is a SEAL.  Returns 0 or negative errno
 * with the reason in ERR; call peers_free in any case.
 */
int peers_start(struct peers *peers, const struct base *base, struct journal *journal,
		struct seal *seal, struct net_part *net, struct iocom_err *err);
/* Stops hearing, asking and answering: open questions end with -ECANCELED. */
void peers_stop(struct peers *peers);
void peers_free(struct peers *peers);
/* Begins to subscribe to other nodes, and has silent configured ones probed. */
void peers_dial(struct peers *peers);

/* Registers HANDLER for questions of TYPE. */
void peers_serve(struct peers *peers, enum peer_type type, peers_handler handler, void *arg);
/*
 * Asks NODE at ADDRESS and base PORT.  Borrows REQUEST for the call.  Returns 0: ANSWERED is
 * called, perhaps before this returns if NODE is this node; negative errno with the reason in ERR
 * (-EHOSTUNREACH: this agent serves its own machine only): ANSWERED is not called.
 */
int peers_ask(void *peers, const char *node, const char *address, uint16_t port,
	      const struct peer_request *request, peers_answered answered, void *arg,
	      struct iocom_err *err);
/* Answers a question for which the handler returned PEERS_LATER. */
void peers_answer(void *peers, uint64_t ticket, enum peer_type type,
		  const struct peer_answer *answer);
/* Drops the answers to questions that were asked with ARG. */
void peers_forget(struct peers *peers, const void *arg);

/*
 * peers_publish sends OWN to the other nodes; peers_period drops silent nodes at the end of a
 * period.
 */
void peers_publish(void *peers, const struct iocom_vector *own, uint64_t now_ns);
void peers_period(void *peers);
/* Once a second: greets new nodes. */
void peers_chores(struct peers *peers);
/* Returns true if munged on this machine does not answer, so that every node looks silent. */
bool peers_mute(const struct peers *peers);

#endif
