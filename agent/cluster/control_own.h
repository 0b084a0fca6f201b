/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* What the files of control share. */
#ifndef IOCOM_CONTROL_OWN_H
#define IOCOM_CONTROL_OWN_H

#include <nng/nng.h>
#include <stdbool.h>

#include "agent/cluster/connection_limit.h"
#include "agent/cluster/control.h"
#include "agent/cluster/message.h"

#define SERVERS	    16 /* questions answered at the same time */
#define MESSAGE_MAX (256u << 10)

struct call;
struct peer;

struct server {
	struct control *control;
	nng_ctx ctx;
	nng_aio *aio;
	struct loop_post post;
	struct seal_question *seal; /* munged is asked: NULL, or the question's or answer's seal */
	nng_pipe from;		    /* where the question came from */
	bool sending;
	uint64_t ticket;      /* ticket of the deferred answer; 0: none */
	bool deferred, early; /* early: it came while the handler still ran */
	int early_rc;
	msgpack_sbuffer early_body;
	struct control_head head; /* the question's head */
};

struct control {
	struct control_config config;
	nng_socket rep;
	struct connection_limit *guests;
	bool listening;
	struct server servers[SERVERS];
	struct server *asked; /* whose question a handler is answering */
	uint64_t tickets;
	struct peer *peers[CONTROL_PEERS_MAX];
	size_t npeers;
	struct call *calls;
	uint64_t next_id, clock;
};

/* --- control_message.c --- */

/* Asks for the seal of a message; see seal_message. */
int control_seal(struct control *c, const struct control_head *head, const msgpack_sbuffer *body,
		 seal_answered answered, void *arg, struct seal_question **question,
		 struct iocom_err *err);
/* Returns the message with the seal in A; NULL: there is none, for A's reason. */
nng_msg *control_sealed(struct seal_answer *a);

struct control_opened {
	void *data;
	struct message message;
};

/*
 * Takes the opened message and checks that it is for us.  Returns 0, and the caller frees O; or
 * why not, with the reason in ERR.
 */
int control_open(struct control *c, struct seal_answer *a, struct control_opened *o,
		 struct iocom_err *err);
void control_opened_free(struct control_opened *o);

/* --- control_answer.c --- */

/* Begins to take questions.  Returns 0 or nng's error. */
int control_answer_start(struct control *c);
/* C->rep is closed: frees what waits for questions. */
void control_answer_stop(struct control *c);

/* --- control_ask.c --- */

/* Ends all questions with -ECANCELED. */
void control_ask_cancel(struct control *c);
/* Closes the connections to peers, of which no question is left. */
void control_ask_disconnect(struct control *c);

#endif
