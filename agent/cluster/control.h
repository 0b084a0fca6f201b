/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Control: questions from agent to agent (nng REQ/REP on base port + 1; the network part has the
 * sockets, net_part.h).  Two agents greet each
 * other once an hour (greeting.h); everything else goes sealed in that session (sessions.h), bound
 * to its target, type, job and a number of its own, which the answer repeats.  nng does not resend,
 * every request is idempotent by job, and because of its number no agent obeys it twice
 * (peer_requests.c).
 *
 *   { "type", "from", "to", "job", "id", "at": ms since 1970, "body": bytes of a map }
 *
 * A message whose time is more than SEAL_TTL_S from the receiver's is refused: so none takes effect
 * late, and none after the journal has forgotten its number.
 *
 * A question waits until there is a session.  If the answerer does not know the session (it has
 * started again), the asker greets anew and asks once more.
 */
#ifndef IOCOM_CONTROL_H
#define IOCOM_CONTROL_H

#include <msgpack.h>
#include <stdint.h>

#include "agent/base/counters.h"
#include "iocom/err.h"
#include "iocom/vector.h"
#include "user/log.h"
#include "agent/base/loop.h"
#include "agent/cluster/seal.h"
#include "agent/cluster/sessions.h"
#include "agent/gate/gate_message.h"
#include "user/spec.h"

#define CONTROL_TIMEOUT_MS 2000
#define CONTROL_BODY_MAX   (248u << 10)

struct control;
struct net_part;

struct control_head {
	char type[16];
	char from[IOCOM_NAME_MAX], to[IOCOM_NAME_MAX];
	char job[SPEC_JOB_MAX];
	uint64_t id;
	uint64_t at_ms; /* the sender's clock when it was first sent (CLOCK_REALTIME) */
};

/*
 * Answers a question.  BODY is borrowed; the answer's map goes into ANSWER.  Returns 0, or negative
 * errno: no answer is sent.
 */
typedef int (*control_handler)(void *arg, const struct control_head *head,
			       const msgpack_object *body, msgpack_sbuffer *answer);
/*
 * A handler calls it to answer later, through control_answer_later with this ticket; what it puts
 * into ANSWER is not sent.  Returns 0 if no handler is running.
 */
uint64_t control_defer(struct control *control);
/* A handler calls it to void its ticket: what it puts into ANSWER is sent after all. */
void control_undefer(struct control *control);
/*
 * Sends a deferred answer; RC and ANSWER are as a handler's.  While the handler still runs, the
 * answer is held until it returns 0, and dropped if it returns an error: the journal has the
 * question before its answer is known.  A ticket of a freed control is void.
 */
void control_answer_later(struct control *control, uint64_t ticket, int rc,
			  const msgpack_sbuffer *answer);
/*
 * Gets the answer of node FROM, or RC != 0 with WHY (-ETIMEDOUT and others) and BODY NULL.  Called
 * once, from the loop.
 */
typedef void (*control_answer)(void *arg, int rc, const char *from, const msgpack_object *body,
			       const char *why);

/*
 * The greeting of a peer, or one that came from there and was refused: then AT has no port, and the
 * address ("": not known) is that of the connection.
 */
struct control_greeted {
	struct gate_place at;
	enum peer_cause cause;	   /* PEER_C_NONE: there is a session with NODE */
	char node[IOCOM_NAME_MAX]; /* "": not known */
	uint64_t boot_id;	   /* NODE's, of a session */
	bool sure;		   /* else another reason is possible */
	int64_t ahead_s;	   /* PEER_C_CLOCK, 0: not known */
	const char *why;
};

struct control_config {
	struct loop *loop; /* all members are borrowed */
	struct seal *seal;
	struct logger *log;
	struct counters *counters;
	struct net_part *net;
	struct greeting_self self; /* copied */
	control_handler handler;
	void *arg;
	struct complaints *complaints; /* NULL: each is logged */
	/* NODE's HELLO was refused: its clock is AHEAD_S seconds ahead (negative: behind). */
	void (*skewed)(void *arg, const char *node, int64_t ahead_s);
	/* What became of a greeting; NULL: nobody wants to know. */
	void (*greeted)(void *arg, const struct control_greeted *greeted);
};

/* Returns 0 or -ENOMEM with the reason in ERR. */
int control_new(struct control **control, const struct control_config *config,
		struct iocom_err *err);
size_t control_sessions(const struct control *control); /* sessions with other agents; NULL: 0 */
/* Answers pending questions with -ECANCELED. */
void control_free(struct control *control);
/* Once a period: drops void sessions. */
void control_expire(struct control *control);
/*
 * Asks NODE, or "" whoever is there, at ADDRESS, base PORT.  Copies BODY.  Returns 0; negative
 * errno: ANSWER is not called.
 */
int control_ask(struct control *control, const char *node, const char *address, uint16_t port,
		const char *type, const char *job, const msgpack_sbuffer *body,
		control_answer answer, void *arg, struct iocom_err *err);
/* ARG is gone: its answers are dropped. */
void control_forget(struct control *control, const void *arg);

#endif
