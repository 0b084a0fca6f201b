/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Questions to other agents:
 *
 *   there is a session -> sealed, sent, answered, opened
 *   there is none      -> waits for the greeting -> sealed, ...
 *   the answerer does not know the session
 *                      -> dropped, greeted anew -> sealed, ... once
 *   the connection was lost since
 *                      -> in doubt, greeted anew -> sealed, ... once
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/tcp_url.h"
#include "agent/cluster/control_own.h"
#include "user/clock.h"

struct call {
	struct call *next;
	struct control *control;
	struct gate_place at;
	char url[128];
	struct exchange *exchange;
	bool waits; /* for a greeting */
	bool again; /* it was sent a second time */
	uint64_t session;
	struct control_head head; /* head.to "": not known yet */
	msgpack_sbuffer body;
	control_answer answer; /* NULL: forgotten */
	void *arg;
};

static void call_free(struct call *call)
{
	struct control *c = call->control;

	for (struct call **p = &c->calls; *p; p = &(*p)->next) {
		if (*p == call) {
			*p = call->next;
			break;
		}
	}
	exchange_free(call->exchange);
	if (call->body.data) /* the secret of a job may be in it */
		explicit_bzero(call->body.data, call->body.size);
	msgpack_sbuffer_destroy(&call->body);
	free(call);
}

static void call_fail(struct call *call, int rc, const char *why)
{
	control_answer answer = call->answer;
	void *arg = call->arg;

	if (rc == -ETIMEDOUT)
		call->control->config.counters->controls_unanswered++;
	call_free(call);
	if (answer)
		answer(arg, rc, NULL, NULL, why);
}

static void call_refuse(struct call *call, int rc, struct iocom_err *err)
{
	call->control->config.counters->controls_refused++;
	iocom_err_prefix(err, "%s answered, but", call->url);
	call_fail(call, rc > 0 ? -EACCES : rc, err->text);
}

static void call_go(struct call *call);

/* Once, CALL is sent in another session. */
static void call_once_more(struct call *call)
{
	if (call->again) {
		call_fail(call, -ECONNRESET, "the node forgot the session twice");
		return;
	}
	call->again = true;
	call_go(call);
}

/*
 * The answerer does not know the session that MESSAGE names: it has started again, or dropped it
 * for others.
 */
static void call_unknown(struct call *call, const uint8_t *message, size_t length)
{
	struct control *c = call->control;
	const struct session *s =
		sessions_named(c->sessions, message, length, loop_boot_ns(c->config.loop));

	if (s)
		sessions_drop_until(c->sessions, s);
	call_once_more(call);
}

/* Opens the answer. */
static void call_open(struct call *call, uint8_t *bytes, size_t length)
{
	struct control *c = call->control;
	const struct session *s =
		sessions_named(c->sessions, bytes, length, loop_boot_ns(c->config.loop));
	control_answer answer = call->answer;
	void *arg = call->arg;
	const struct control_head *head;
	struct iocom_err err = {0};
	struct message m;
	int rc;

	if (s && session_id(s) != call->session)
		s = NULL;
	rc = s ? control_open(c, s, bytes, length, &m, &err)
	       : iocom_err_set(&err, -EACCES, "not in the session that was asked in");
	head = &m.head;
	if (!rc && (strcmp(head->type, "answer") || head->id != call->head.id ||
		    strcmp(head->job, call->head.job))) {
		rc = iocom_err_set(&err, -EACCES, "the answer belongs to another question");
		message_free(&m);
	}
	if (rc) {
		call_refuse(call, rc, &err);
		return;
	}
	call_free(call);
	if (answer)
		answer(arg, 0, m.head.from, &m.body.data, "");
	message_free(&m);
}

/*
 * No answer: the node may have forgotten the session, and be too busy to say so.  A new greeting is
 * tried beside it, unless the next question goes in another session anyway.  That depends on
 * whether it is for a node or for whoever is at an address.
 */
static void call_doubt(struct call *call, int rc)
{
	struct control *c = call->control;
	uint64_t now = loop_boot_ns(c->config.loop);
	const struct session *s = sessions_find(c->sessions, call->head.to, call->url, now);

	if (!s || session_id(s) != call->session)
		s = sessions_find(c->sessions, "", call->url, now);
	if (rc == -ETIMEDOUT && s && session_id(s) == call->session &&
	    session_may_greet(c->sessions, s, now))
		(void)control_greet(c, call->head.to, &call->at, NULL);
}

/*
 * The connection was lost since the session began: the node may have started again and know no
 * session from before; or its network part has, and it goes on in them.  A greeting takes a
 * millisecond, a wrong guess seconds.
 */
static void call_lost(struct call *call)
{
	struct control *c = call->control;
	uint8_t named[SESSION_UNKNOWN_LEN] = {SESSION_UNKNOWN};
	const struct session *s;

	memcpy(named + 1, &call->session, sizeof(call->session));
	s = sessions_named(c->sessions, named, sizeof(named), loop_boot_ns(c->config.loop));
	if (s)
		sessions_doubt_until(c->sessions, s);
	call_once_more(call);
}

static void call_answered(void *arg, int rc, uint8_t *answer, size_t length, const char *why)
{
	struct call *call = arg;

	if (rc == -ESTALE) {
		call_lost(call);
	} else if (rc) {
		call_doubt(call, rc);
		call_fail(call, rc, why);
	} else if (length == SESSION_UNKNOWN_LEN && answer[0] == SESSION_UNKNOWN &&
		   !memcmp(answer + 1, &call->session, sizeof(call->session))) {
		call->control->config.counters->sessions_unknown++;
		call_unknown(call, answer, length);
	} else {
		call_open(call, answer, length);
	}
}

static int call_send(struct call *call, const struct session *session, uint64_t now,
		     struct iocom_err *err)
{
	struct control *c = call->control;
	struct control_bytes sealed;
	int rc;

	snprintf(call->head.to, sizeof(call->head.to), "%s", session_node(session));
	call->session = session_id(session);
	if (!call->exchange)
		call->exchange = exchange_new(c, &call->at, call_answered, call);
	if (!call->exchange)
		return iocom_err_set(err, -ENOMEM, "out of memory");
	sealed = control_seal(c, session, &call->head, &call->body);
	if (!sealed.data)
		return iocom_err_set(err, -ENOMEM, "out of memory");
	rc = exchange_send(call->exchange, sealed.data, sealed.length,
			   now - session_age_ns(session, now), err);
	free(sealed.data);
	return rc;
}

/* Sends CALL in a session, or lets it wait for one.  Returns 0 or negative errno. */
static int call_begin(struct call *call, struct iocom_err *err)
{
	struct control *c = call->control;
	uint64_t now = loop_boot_ns(c->config.loop);
	const struct session *s = sessions_find(c->sessions, call->head.to, call->url, now);
	int rc = 0;

	if (!s)
		rc = control_greet(c, call->head.to, &call->at, err);
	else if (session_is_stale(s, now) && session_may_greet(c->sessions, s, now))
		(void)control_greet(c, call->head.to, &call->at, NULL);
	if (s)
		return call_send(call, s, now, err);
	call->waits = rc == 0;
	return rc;
}

static void call_go(struct call *call)
{
	struct iocom_err err = {0};
	int rc = call_begin(call, &err);

	if (rc)
		call_fail(call, rc, err.text);
}

/* Continues CALL, whose address was greeted; this may free it. */
static void call_resume(struct call *call, int rc, const char *why)
{
	struct control *c = call->control;
	struct iocom_err err = {0};

	call->waits = false;
	if (!rc &&
	    !sessions_find(c->sessions, call->head.to, call->url, loop_boot_ns(c->config.loop))) {
		rc = iocom_err_set(&err, -EACCES, "another node than %s answers at %s",
				   call->head.to, call->url);
		why = err.text;
	}
	if (rc)
		call_fail(call, rc, why);
	else
		call_go(call);
}

void control_greeted(struct control *c, const char *url, int rc, const char *why)
{
	struct call *call = c->calls;

	char what[160];

	snprintf(what, sizeof(what), "no session with the node at %s", url);
	if (rc)
		control_complain(c, url, what, why);
	else
		control_settle(c, url);
	/* A call's end may begin others: look from the start again. */
	while (call) {
		if (call->waits && !strcmp(call->url, url)) {
			call_resume(call, rc, why);
			call = c->calls;
		} else {
			call = call->next;
		}
	}
}

static struct call *control_call_new(struct control *c, const char *node, const char *type,
				     const char *job, const msgpack_sbuffer *body)
{
	struct call *call = calloc(1, sizeof(*call));

	if (!call)
		return NULL;
	call->control = c;
	call->head.id = c->next_id++;
	call->head.at_ms = loop_real_ns(c->config.loop) / CLOCK_NS_PER_MS;
	snprintf(call->head.type, sizeof(call->head.type), "%s", type);
	snprintf(call->head.from, sizeof(call->head.from), "%s", c->config.self.name);
	snprintf(call->head.to, sizeof(call->head.to), "%s", node);
	snprintf(call->head.job, sizeof(call->head.job), "%s", job);
	if (msgpack_sbuffer_write(&call->body, body->data, body->size)) {
		free(call);
		return NULL;
	}
	call->next = c->calls;
	c->calls = call;
	return call;
}

int control_ask(struct control *c, const char *node, const char *address, uint16_t port,
		const char *type, const char *job, const msgpack_sbuffer *body,
		control_answer answer, void *arg, struct iocom_err *err)
{
	struct call *call;
	int rc;

	if (body->size > CONTROL_BODY_MAX)
		return iocom_err_set(err, -EMSGSIZE, "the message is too long: %zu bytes",
				     body->size);
	call = control_call_new(c, node, type, job, body);
	if (!call)
		return iocom_err_set(err, -ENOMEM, "out of memory");
	call->answer = answer;
	call->arg = arg;
	snprintf(call->at.address, sizeof(call->at.address), "%s", address);
	call->at.port = port;
	tcp_url(call->url, sizeof(call->url), address, port + 1u);
	rc = call_begin(call, err);
	if (rc)
		call_free(call);
	return rc;
}

void control_forget(struct control *c, const void *arg)
{
	for (struct call *call = c->calls; call; call = call->next)
		if (call->arg == arg)
			call->answer = NULL;
}

void control_ask_cancel(struct control *c)
{
	while (c->calls)
		call_fail(c->calls, -ECANCELED, "the agent is stopping");
}
