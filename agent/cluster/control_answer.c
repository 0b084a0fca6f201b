/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Questions of other agents: each server has one, opens it, hands it to the handler, and sends the
 * answer, at once or later.  A HELLO is answered with a WELCOME when munged has said who made its
 * credential, and has sealed this node's.  The network part brings at most as many questions as
 * there are servers, and charges their senders for what proves to be wrong.
 */
#include "agent/cluster/control_own.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "user/channel/version.h"
#include "user/clock.h"

/* Tells the network part what the question's sender deserves: enum seal_refusal, -1: nothing. */
static void server_judge(struct server *s, int verdict)
{
	const struct gate_message m = {
		.type = GATE_REPLY,
		.reply = {.ticket = s->from, .verdict = verdict < 0 ? -1 : verdict}};

	s->judged = true;
	(void)net_part_send(s->control->config.net, &m, NULL, 0, NULL);
}

/*
 * Sends these bytes, or no answer if DATA is NULL, and is free again.  Whoever asks and does not
 * read holds a place at the network part up to WAIT_MS, and is cut then.
 */
static void server_send(struct server *s, const void *data, size_t length, unsigned wait_ms)
{
	const struct gate_message m = {.type = GATE_REPLY,
				       .reply = {.ticket = s->from,
						 .verdict = -1,
						 .judged = s->judged,
						 .last = true,
						 .wait_ms = wait_ms}};

	(void)net_part_send(s->control->config.net, &m, data, data ? length : 0, NULL);
	s->from = 0;
	s->judged = false;
}

static void server_finish(struct server *s)
{
	server_send(s, NULL, 0, 0);
}

/* The session of the question; NULL: it was dropped meanwhile. */
static const struct session *server_session(const struct server *s)
{
	uint8_t named[SESSION_UNKNOWN_LEN] = {0};

	memcpy(named + 1, &s->session, sizeof(s->session));
	return sessions_named(s->control->sessions, named, sizeof(named),
			      loop_boot_ns(s->control->config.loop));
}

/* Seals and sends ANSWER to the question; sends nothing if RC is set or sealing fails. */
static void server_answer(struct server *s, int rc, const msgpack_sbuffer *body)
{
	struct control *c = s->control;
	struct control_head back = {.id = s->head.id,
				    .type = "answer",
				    .at_ms = loop_real_ns(c->config.loop) / CLOCK_NS_PER_MS};
	const struct session *session = rc ? NULL : server_session(s);
	struct control_bytes sealed = {0};

	if (session) {
		strcpy(back.from, s->head.to);
		strcpy(back.to, s->head.from);
		strcpy(back.job, s->head.job);
		sealed = control_seal(c, session, &back, body);
	}
	if (!rc && !sealed.data)
		log_write(c->config.log, LOG_L_WARNING, "cannot answer %s: %s", s->head.from,
			  session ? "the answer is too long, or there is no memory"
				  : "its session is over");
	server_send(s, sealed.data, sealed.length, CONTROL_TIMEOUT_MS);
	free(sealed.data);
}

uint64_t control_defer(struct control *c)
{
	struct server *s = c->asked;

	if (s) {
		s->ticket = ++c->tickets;
		s->deferred = true;
	}
	return s ? s->ticket : 0;
}

static void control_take_back(struct server *s)
{
	s->ticket = 0;
	if (s->early)
		msgpack_sbuffer_destroy(&s->early_body);
	s->deferred = s->early = false;
}

void control_undefer(struct control *c)
{
	if (c && c->asked)
		control_take_back(c->asked);
}

static void hold_answer(struct server *s, int rc, const msgpack_sbuffer *body)
{
	s->early = true;
	s->early_rc = rc;
	msgpack_sbuffer_init(&s->early_body);
	if (!rc && msgpack_sbuffer_write(&s->early_body, body->data, body->size))
		s->early_rc = -ENOMEM;
}

void control_answer_later(struct control *c, uint64_t ticket, int rc, const msgpack_sbuffer *body)
{
	for (size_t i = 0; c && ticket && i < SERVERS; i++) {
		struct server *s = &c->servers[i];

		if (s->ticket != ticket)
			continue;
		s->ticket = 0;
		if (s == c->asked) /* what the handler still writes comes first */
			hold_answer(s, rc, body);
		else
			server_answer(s, rc, body);
		return;
	}
}

static void server_refuse(struct server *s, const char *why)
{
	struct control *c = s->control;
	char what[128];

	c->config.counters->controls_refused++;
	snprintf(what, sizeof(what), "refused a control message%s%s", *s->where ? " from " : "",
		 s->where);
	control_complain(c, s->where, what, why);
	server_finish(s);
}

/* --- greetings -------------------------------------------------------------------- */

static void server_hello_free(struct server *s)
{
	free(s->hello.data);
	s->hello = (struct control_bytes){0};
	greeting_end(&s->greeting);
}

/*
 * Tells the other side why, in clear, if root of this cluster has made its credential: its clock,
 * name or cluster differs.  Strangers get no answer.
 * What is wrong here (RC is negative, but for what greeting.h says) is for our own log.
 */
static void server_refuse_hello(struct server *s, int rc, enum peer_cause cause, const char *why,
				bool tell)
{
	bool own = rc < 0 && rc != -EACCES && rc != -EBADMSG && rc != -EPROTO;

	char what[128];
	struct control *c = s->control;
	msgpack_sbuffer out;

	server_hello_free(s);
	c->config.counters->controls_refused++;
	c->config.counters->clusters_refused += cause == PEER_C_CLUSTER;
	snprintf(what, sizeof(what), "refused a greeting%s%s", *s->where ? " from " : "", s->where);
	control_complain(c, s->where, what, why);
	if (!tell) {
		server_finish(s);
		return;
	}
	msgpack_sbuffer_init(&out);
	greeting_refuse(own ? PEER_C_MUTE : cause,
			own ? "it cannot ask its munged now; its log says why" : why, &out);
	server_send(s, out.data, out.size, STRANGER_WAIT_MS);
	msgpack_sbuffer_destroy(&out);
}

/* Munged has sealed the credential of the WELCOME. */
static void server_welcome(void *arg, struct seal_answer *a)
{
	struct server *s = arg;
	struct control *c = s->control;
	msgpack_sbuffer out;
	bool made;

	s->seal = NULL;
	if (a->rc) {
		server_refuse_hello(s, a->rc, PEER_C_MUTE, a->err.text, true);
		return;
	}
	msgpack_sbuffer_init(&out);
	made = !greeting_welcome(&s->greeting, a->text, &out);
	log_write(c->config.log, LOG_L_DEBUG, "session with node %s, version %u", s->greeting.node,
		  s->greeting.version);
	if (made && !sessions_add(c->sessions, &s->greeting, "", loop_boot_ns(c->config.loop)))
		made = false;
	server_hello_free(s);
	control_settle(c, s->where);
	server_send(s, made ? out.data : NULL, out.size, STRANGER_WAIT_MS);
	msgpack_sbuffer_destroy(&out);
}

/*
 * A HELLO whose clock differs only tells which node that is; one that somebody has kept tells
 * nothing about a node that speaks to us.
 */
static void server_tell_skew(const struct control *c, const struct seal_answer *a)
{
	char node[IOCOM_NAME_MAX];

	greeting_sender(a->data, a->length, node);
	if (*node && !sessions_find(c->sessions, node, "", loop_boot_ns(c->config.loop)))
		c->config.skewed(c->config.arg, node, a->ahead_s);
}

/* The kind of refusal: RC is munged's of the HELLO. */
static enum peer_cause server_cause(const struct server *s, int rc)
{
	return rc == SEAL_E_SKEW     ? PEER_C_CLOCK
	       : rc == SEAL_E_FORGED ? PEER_C_KEY
	       : rc		     ? PEER_C_NONE
				     : s->greeting.cause;
}

/* Whoever is at that address cannot greet this node, nor, most likely, be greeted. */
static void server_tell_refused(const struct server *s, const struct seal_answer *a,
				enum peer_cause cause, const char *why)
{
	const struct control *c = s->control;
	struct control_greeted told = {
		.cause = cause, .sure = true, .ahead_s = a->ahead_s, .why = why};

	if (!cause || !c->config.greeted)
		return;
	memcpy(told.at.address, s->where, sizeof(told.at.address));
	if (a->data)
		greeting_sender(a->data, a->length, told.node);
	c->config.greeted(c->config.arg, &told);
}

/* Munged has opened the credential of the HELLO. */
static void server_greeted(void *arg, struct seal_answer *a)
{
	struct server *s = arg;
	struct control *c = s->control;
	struct iocom_err err = a->err;
	msgpack_sbuffer credential;
	int rc = a->rc;

	s->seal = NULL;
	server_judge(s, rc);
	if (rc == SEAL_E_SKEW && a->data)
		server_tell_skew(c, a);
	msgpack_sbuffer_init(&credential);
	if (!rc)
		rc = greeting_accept(&s->greeting, &c->config.self, s->version, s->hello.data,
				     s->hello.length, a->data, a->length, &credential, &err);
	if (!rc)
		rc = seal_message(c->config.seal, credential.data, credential.size, server_welcome,
				  s, &s->seal, &err);
	msgpack_sbuffer_destroy(&credential);
	if (rc) {
		enum peer_cause cause = server_cause(s, a->rc);

		server_tell_refused(s, a, cause, err.text);
		server_refuse_hello(s, rc, cause, err.text, !a->rc || a->rc == SEAL_E_SKEW);
	}
}

/* Takes a HELLO, whose head the network part has read. */
static void server_hello(struct server *s, const struct gate_hello *hello, const uint8_t *bytes,
			 size_t length)
{
	struct control *c = s->control;
	struct iocom_err err = {0};
	int rc = 0;

	s->version = channel_version_choose(hello->least, hello->most);
	s->hello.data = malloc(length);
	if (!s->version || !s->hello.data)
		rc = iocom_err_set(&err, s->version ? -ENOMEM : -EPROTO,
				   s->version ? "out of memory" : "no version in common");
	if (!rc) {
		memcpy(s->hello.data, bytes, length);
		s->hello.length = length;
		rc = seal_open_message(c->config.seal, SEAL_FOREIGN,
				       s->hello.data + hello->credential, hello->credential_length,
				       server_greeted, s, &s->seal, &err);
	}
	if (rc) {
		server_judge(s, rc);
		server_refuse_hello(s, rc, PEER_C_NONE, err.text, false);
	}
}

/* --- questions -------------------------------------------------------------------- */

static void server_obey(struct server *s, const struct message *m)
{
	struct control *c = s->control;
	msgpack_sbuffer body;
	int rc;

	s->head = m->head;
	msgpack_sbuffer_init(&body);
	c->asked = s;
	rc = c->config.handler(c->config.arg, &s->head, &m->body.data, &body);
	c->asked = NULL;
	if (rc)
		control_take_back(s); /* a later answer is dropped */
	if (s->early)
		server_answer(s, s->early_rc, &s->early_body);
	else if (!s->deferred)
		server_answer(s, rc, &body);
	if (s->early)
		msgpack_sbuffer_destroy(&s->early_body);
	s->deferred = s->early = false;
	msgpack_sbuffer_destroy(&body);
}

/* Returns true if one more UNKNOWN may be sent: UNKNOWN_PER_S, and UNKNOWN_AT_ONCE at once. */
static bool unknown_allowed(struct control *c)
{
	uint64_t now = loop_boot_ns(c->config.loop);
	uint64_t more = (now - c->unknown_ns) * UNKNOWN_PER_S / CLOCK_NS_PER_S;

	if (!c->unknown_ns || more) {
		c->unknown = !c->unknown_ns || c->unknown + more > UNKNOWN_AT_ONCE
				     ? UNKNOWN_AT_ONCE
				     : c->unknown + (unsigned)more;
		c->unknown_ns = now;
	}
	if (!c->unknown)
		return false;
	c->unknown--;
	return true;
}

static void server_unknown(struct server *s, const uint8_t *message, bool proven)
{
	uint8_t out[SESSION_UNKNOWN_LEN];
	struct control *c = s->control;

	c->config.counters->sessions_unknown++;
	/* An honest node pays little, once; who sends many is cut off before others pay for it. */
	server_judge(s, SEAL_E_REPLAYED);
	/*
	 * Only who has spoken well on this connection is answered: a stranger who does not read, or
	 * leaves, would make nng close a connection while it sends (connection_cut.h).
	 */
	if (!proven || !unknown_allowed(c)) {
		server_refuse(s, "of an unknown session");
		return;
	}
	session_unknown(message, out);
	server_send(s, out, sizeof(out), STRANGER_WAIT_MS);
}

static void server_question(struct server *s, uint8_t *bytes, size_t length, bool proven)
{
	struct control *c = s->control;
	const struct session *session =
		sessions_named(c->sessions, bytes, length, loop_boot_ns(c->config.loop));
	struct iocom_err err = {0};
	struct message m;
	int rc;

	if (!session && length >= SESSION_OVERHEAD) {
		server_unknown(s, bytes, proven);
		return;
	}
	rc = session ? control_open(c, session, bytes, length, &m, &err)
		     : iocom_err_set(&err, SEAL_E_GARBAGE, "not a message of iocom");
	server_judge(s, rc);
	if (rc) {
		server_refuse(s, err.text);
		return;
	}
	s->session = session_id(session);
	server_obey(s, &m);
	message_free(&m);
}

/* --- the network part ------------------------------------------------------------- */

/* A server for question TICKET of the network part; NULL: it has brought too many. */
static struct server *server_for(struct control *c, uint64_t ticket, const char *where)
{
	for (size_t i = 0; ticket && i < SERVERS; i++) {
		struct server *s = &c->servers[i];

		if (s->from)
			continue;
		s->from = ticket;
		s->judged = false;
		snprintf(s->where, sizeof(s->where), "%s", where);
		return s;
	}
	c->config.counters->controls_refused++;
	return NULL;
}

static void server_hello_received(void *arg, const struct gate_message *m, uint8_t *tail, size_t n,
				  const int *fds)
{
	struct control *c = arg;
	struct server *s = server_for(c, m->hello.ticket, m->hello.from);

	(void)fds;
	if (s)
		server_hello(s, &m->hello, tail, n);
}

static void server_received(void *arg, const struct gate_message *m, uint8_t *tail, size_t n,
			    const int *fds)
{
	struct control *c = arg;
	struct server *s = server_for(c, m->question.ticket, m->question.from);

	(void)fds;
	if (s)
		server_question(s, tail, n, m->question.proven);
}

void control_answer_start(struct control *c)
{
	for (size_t i = 0; i < SERVERS; i++)
		c->servers[i].control = c;
	net_part_serve(c->config.net, GATE_HELLO, server_hello_received, c);
	net_part_serve(c->config.net, GATE_QUESTION, server_received, c);
}

void control_answer_stop(struct control *c)
{
	for (size_t i = 0; i < SERVERS; i++) {
		struct server *s = &c->servers[i];

		if (!s->from)
			continue;
		seal_forget(c->config.seal, s->seal);
		s->seal = NULL;
		server_hello_free(s);
		/* Whoever answers later has a ticket that is void. */
		s->ticket = s->from = 0;
	}
}
