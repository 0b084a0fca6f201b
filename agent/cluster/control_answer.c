/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Questions of other agents: each server takes one, has it opened, hands it to the handler, and
 * sends the answer, at once or later.
 */
#include "agent/cluster/control_own.h"

#include <errno.h>
#include <string.h>

static void server_called(void *arg)
{
	struct server *s = arg;

	loop_post(s->control->config.loop, &s->post);
}

static void server_receive(struct server *s)
{
	s->sending = false;
	nng_ctx_recv(s->ctx, s->aio);
}

static void answer_sealed(void *arg, struct seal_answer *a)
{
	struct server *s = arg;
	nng_msg *reply = control_sealed(a);

	s->seal = NULL;
	if (!reply) {
		log_write(s->control->config.log, LOG_L_WARNING, "cannot answer %s: %s",
			  s->head.from, a->err.text);
		server_receive(s);
		return;
	}
	s->sending = true;
	nng_aio_set_msg(s->aio, reply); /* nng's on success, ours on failure */
	nng_ctx_send(s->ctx, s->aio);
}

/* Seals and sends ANSWER to the question; sends nothing if RC is set or sealing fails. */
static void server_answer(struct server *s, int rc, const msgpack_sbuffer *body)
{
	struct control_head back = {.id = s->head.id, .type = "answer"};
	struct control *c = s->control;
	struct iocom_err err = {0};

	if (!rc) {
		strcpy(back.from, s->head.to);
		strcpy(back.to, s->head.from);
		strcpy(back.job, s->head.job);
		rc = control_seal(c, &back, body, answer_sealed, s, &s->seal, &err);
		if (rc)
			log_write(c->config.log, LOG_L_WARNING, "cannot answer %s: %s",
				  s->head.from, err.text);
	}
	if (rc)
		server_receive(s);
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

	c->config.counters->controls_refused++;
	log_provoked(c->config.log, LOG_L_WARNING, "refused a control message: %s", why);
	server_receive(s);
}

/* The question is opened. */
static void server_obey(void *arg, struct seal_answer *a)
{
	struct server *s = arg;
	struct control *c = s->control;
	struct iocom_err err = {0};
	msgpack_sbuffer body;
	struct control_opened o;
	int rc = control_open(c, a, &o, &err);

	s->seal = NULL;
	connection_limit_judge(c->guests, s->from, a->rc);
	if (rc) {
		server_refuse(s, err.text);
		return;
	}
	s->head = o.message.head;
	msgpack_sbuffer_init(&body);
	c->asked = s;
	rc = c->config.handler(c->config.arg, &s->head, &o.message.body.data, &body);
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
	control_opened_free(&o);
}

/* Has the question opened; what a connection sent that was cut since is not looked at. */
static void server_open(struct server *s, const nng_msg *msg)
{
	struct control *c = s->control;
	struct iocom_err err = {0};
	int rc;

	s->from = nng_msg_get_pipe(msg);
	c->config.counters->controls_received++;
	if (connection_limit_is_cut(c->guests, s->from)) {
		c->config.counters->controls_refused++;
		server_receive(s);
		return;
	}
	rc = seal_open_message(c->config.seal, SEAL_FOREIGN, nng_msg_body((nng_msg *)msg),
			       nng_msg_len(msg), false, server_obey, s, &s->seal, &err);
	if (rc) {
		connection_limit_judge(c->guests, s->from, rc);
		server_refuse(s, err.text);
	}
}

static void server_run(void *arg)
{
	struct server *s = arg;
	int e = nng_aio_result(s->aio);
	nng_msg *msg = nng_aio_get_msg(s->aio);

	if (s->sending) {
		if (e && msg)
			nng_msg_free(msg);
		if (e != NNG_ECLOSED)
			server_receive(s);
		return;
	}
	if (e) {
		if (e != NNG_ECLOSED && e != NNG_ECANCELED)
			server_receive(s);
		return;
	}
	nng_aio_set_msg(s->aio, NULL);
	server_open(s, msg);
	nng_msg_free(msg);
}

int control_answer_start(struct control *c)
{
	for (size_t i = 0; i < SERVERS; i++) {
		struct server *s = &c->servers[i];
		int e;

		s->control = c;
		s->post = (struct loop_post){.run = server_run, .arg = s};
		e = nng_aio_alloc(&s->aio, server_called, s);
		if (!e)
			e = nng_ctx_open(&s->ctx, c->rep);
		if (e)
			return e;
		server_receive(s);
	}
	return 0;
}

/* An aio that was stopped between receiving and its post still holds its message. */
static void aio_drop(nng_aio *aio)
{
	nng_msg *msg = nng_aio_result(aio) == 0 ? nng_aio_get_msg(aio) : NULL;

	if (msg)
		nng_msg_free(msg);
}

void control_answer_stop(struct control *c)
{
	for (size_t i = 0; i < SERVERS; i++) {
		struct server *s = &c->servers[i];

		if (!s->aio)
			continue;
		seal_forget(c->config.seal, s->seal);
		nng_aio_stop(s->aio);
		if (s->post.queued && !s->sending)
			aio_drop(s->aio);
		loop_unpost(c->config.loop, &s->post);
		nng_aio_free(s->aio);
	}
}
