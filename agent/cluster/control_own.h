/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* What the files of control share. */
#ifndef IOCOM_CONTROL_OWN_H
#define IOCOM_CONTROL_OWN_H

#include <stdbool.h>

#include "agent/cluster/control.h"
#include "agent/cluster/message.h"
#include "agent/gate/net_part.h"

#define SERVERS	    GATE_QUESTIONS_MAX /* questions answered at the same time */
#define MESSAGE_MAX GATE_CONTROL_MAX
/*
 * Messages of unknown sessions that are answered: all nodes of a large cluster at once when this
 * agent starts again.
 */
#define UNKNOWN_AT_ONCE 1024
#define UNKNOWN_PER_S	256
/* An answer to who has proven nothing waits so long to be taken: the others' questions wait, too.
 */
#define STRANGER_WAIT_MS 100

struct call;
struct exchange;
struct greet;

/* Bytes as they go over the network; DATA is malloc'ed, NULL: there is no memory. */
struct control_bytes {
	uint8_t *data;
	size_t length;
};

struct server {
	struct control *control;
	uint64_t from; /* the question's number at the gate; 0: this server is free */
	char where[IOCOM_ADDRESS_MAX]; /* the question came from there; "": not known */
	bool judged;		       /* the network part knows what its sender deserves */
	struct seal_question *seal;    /* munged is asked about a HELLO, or for the WELCOME */
	struct control_bytes hello;    /* while munged is asked about it */
	unsigned version;	       /* of the greeting */
	struct greeting greeting;
	uint64_t session;     /* in which the question came, and its answer goes */
	uint64_t ticket;      /* ticket of the deferred answer; 0: none */
	bool deferred, early; /* early: it came while the handler still ran */
	int early_rc;
	msgpack_sbuffer early_body;
	struct control_head head; /* the question's head */
};

struct control {
	struct control_config config;
	struct net_watch watch;
	struct sessions *sessions;
	struct server servers[SERVERS];
	struct server *asked; /* whose question a handler is answering */
	uint64_t tickets;
	struct call *calls;
	struct greet *greets;
	struct exchange *exchanges;
	uint64_t next_id, last_exchange;
	unsigned unknown; /* UNKNOWN answers that may still be sent */
	uint64_t unknown_ns;
};

/* --- control_message.c --- */

/* Returns the sealed message for SESSION; without DATA: no memory, or it is too long. */
struct control_bytes control_seal(struct control *c, const struct session *session,
				  const struct control_head *head, const msgpack_sbuffer *body);

/*
 * Opens BYTES, a SEALED of SESSION, in place, and checks that it is from the session's peer and for
 * us.  Returns 0: the caller frees M before BYTES; enum seal_refusal or negative errno with the
 * reason in ERR.
 */
int control_open(struct control *c, const struct session *session, uint8_t *bytes, size_t length,
		 struct message *m, struct iocom_err *err);

/* --- control.c --- */

/* Logs the complaint WHAT: WHY about SENDER ("": not known), as base_complain. */
void control_complain(const struct control *c, const char *sender, const char *what,
		      const char *why);
/* SENDER has done it right. */
void control_settle(const struct control *c, const char *sender);

/* --- control_answer.c --- */

/* Begins to take questions from the network part. */
void control_answer_start(struct control *c);
/* The network part is gone, or this is the end: frees what waits for questions. */
void control_answer_stop(struct control *c);

/* --- control_exchange.c: one question and its answer, as bytes --- */

/*
 * Gets the answer, borrowed (it may be changed); or RC != 0 and WHY; -ESTALE: the connection was
 * lost after SINCE_NS, and nothing was sent.
 */
typedef void (*exchange_answered)(void *arg, int rc, uint8_t *answer, size_t length,
				  const char *why);

/* Begins to take answers from the network part. */
void exchange_start(struct control *c);
/* Returns NULL without memory. */
struct exchange *exchange_new(struct control *c, const struct gate_place *at,
			      exchange_answered answered, void *arg);
/*
 * Sends these bytes, but over no connection that was lost after SINCE_NS (0: over any); ANSWERED
 * will be called.  If the network part starts again just now, they wait for it, at most
 * CONTROL_TIMEOUT_MS.  It may be used again afterwards.  Returns 0; negative errno with the reason
 * in ERR: ANSWERED is not called.
 */
int exchange_send(struct exchange *x, const void *data, size_t length, uint64_t since_ns,
		  struct iocom_err *err);
/* How far the question got that has just failed. */
bool exchange_connected(const struct exchange *x);
bool exchange_cut(const struct exchange *x);
void exchange_free(struct exchange *x); /* NULL is fine; ANSWERED is not called */
/* The network part is gone: all that have been sent get -ECONNRESET. */
void exchange_down(struct control *c);
/* It is there again: sends what waits for it. */
void exchange_up(struct control *c);

/* --- control_greet.c --- */

/*
 * Greets NODE ("": whoever is there) at AT, if that is not being done.  At its end
 * control_greeted is called.  Returns 0; negative errno with the reason in ERR.
 */
int control_greet(struct control *c, const char *node, const struct gate_place *at,
		  struct iocom_err *err);
/* Ends all greetings without a word. */
void control_greet_stop(struct control *c);

/* --- control_ask.c --- */

/* The greeting at URL is over: RC 0, or why there is no session. */
void control_greeted(struct control *c, const char *url, int rc, const char *why);
/* Ends all questions with -ECANCELED. */
void control_ask_cancel(struct control *c);

#endif
