/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Control: questions from agent to agent (nng REQ/REP on base port + 1), each sealed and bound to
 * its target, type, job and a number of its own; the answer repeats them. nng does not resend,
 * every request is idempotent by job, and because of its number no agent obeys it twice
 * (peer_requests.c): a recorded credential is useless.
 *
 *   { "v", "type", "from", "to", "job", "id", "body": bytes of a map }
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
#include "agent/cluster/tls.h"
#include "user/spec.h"

#define CONTROL_VERSION	   1
#define CONTROL_TIMEOUT_MS 2000

#define CONTROL_PEERS_MAX  128 /* connections kept open; a new one replaces the longest unused */

struct control;

struct control_head {
	char type[16];
	char from[IOCOM_NAME_MAX], to[IOCOM_NAME_MAX];
	char job[SPEC_JOB_MAX];
	uint64_t id;
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
 * Gets the answer, or RC != 0 with WHY (-ETIMEDOUT and others) and BODY NULL.  Called once, from
 * the loop.
 */
typedef void (*control_answer)(void *arg, int rc, const msgpack_object *body, const char *why);

struct control_config {
	struct loop *loop; /* all members are borrowed */
	struct seal *seal;
	struct logger *log;
	struct counters *counters;
	const char *name, *listen;
	uint16_t port; /* the base port */
	control_handler handler;
	void *arg;
	const struct tls *tls; /* NULL: no TLS */
};

/* Begins to listen.  Returns 0; -EADDRINUSE and others with the reason in ERR. */
int control_new(struct control **control, const struct control_config *config,
		struct iocom_err *err);
/* control_free answers pending questions with -ECANCELED. */
size_t control_guests(const struct control *control); /* agents connected to us; NULL: 0 */
/* Addresses from which messages came whose seals failed (address_budget.h); NULL: 0. */
size_t control_payers(const struct control *control);
size_t control_peers(const struct control *control); /* agents we are connected to; NULL: 0 */
void control_free(struct control *control);
/* Updates the counter of refused connections. */
void control_count(struct control *control);
/*
 * Asks NODE at ADDRESS, base PORT.  Copies BODY.  Returns 0; negative errno: ANSWER is not called.
 */
int control_ask(struct control *control, const char *node, const char *address, uint16_t port,
		const char *type, const char *job, const msgpack_sbuffer *body,
		control_answer answer, void *arg, struct iocom_err *err);
/* ARG is gone: its answers are dropped. */
void control_forget(struct control *control, const void *arg);

/* "tcp://ADDRESS:PORT"; brackets for IPv6. */
void control_url(char *out, size_t size, const char *address, unsigned port);
/* Turns an nng error into a sentence and an errno. */
int control_nng_error(int nng_rc, const char *what, const char *url, struct iocom_err *err);

#endif
