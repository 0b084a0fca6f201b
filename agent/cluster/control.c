/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Control between agents; see control.h.
 *
 * Threads: nng's callbacks only post to the loop.  Each aio has at most one operation, so one post
 * entry per aio is enough.  Shutdown closes the sockets, stops the aios (no callback runs after
 * that), removes the posts from the queue, then frees the memory.
 */
#include "agent/cluster/control.h"

#include <errno.h>
#include <nng/nng.h>
#include <nng/protocol/reqrep0/rep.h>
#include <nng/protocol/reqrep0/req.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "agent/cluster/connection_limit.h"
#include "agent/cluster/message.h"

#define SERVERS		 16 /* questions answered at the same time */
#define MESSAGE_MAX	 (256u << 10)
#define RECONNECT_MS	 50
#define RECONNECT_MAX_MS 1000

struct server {
	struct control *control;
	nng_ctx ctx;
	nng_aio *aio;
	struct loop_post post;
	bool sending;
	uint64_t ticket;      /* ticket of the deferred answer; 0: none */
	bool deferred, early; /* early: it came while the handler still ran */
	int early_rc;
	msgpack_sbuffer early_body;
	struct control_head head; /* the question's head */
};

struct peer {
	char url[128];
	nng_socket socket;
	uint64_t used; /* larger means later */
	unsigned calls;
};

struct call {
	struct call *next;
	struct control *control;
	struct peer *peer;
	nng_ctx ctx;
	nng_aio *aio;
	struct loop_post post;
	bool receiving;
	struct control_head head;
	control_answer answer; /* NULL: forgotten */
	void *arg;
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

void control_url(char *out, size_t size, const char *address, unsigned port)
{
	bool v6 = strchr(address, ':') && *address != '[';

	snprintf(out, size, v6 ? "tcp://[%s]:%u" : "tcp://%s:%u", address, port);
}

int control_nng_error(int e, const char *what, const char *url, struct iocom_err *err)
{
	switch (e) {
	case 0:
		return 0;
	case NNG_EADDRINUSE:
		return iocom_err_set(err, -EADDRINUSE,
				     "cannot %s %s: the port is in use, perhaps by another iocomd; "
				     "find its owner with `ss -ltnp`, or choose --port",
				     what, url);
	case NNG_EADDRINVAL:
		return iocom_err_set(err, -EADDRNOTAVAIL,
				     "cannot %s %s: no such address on this machine; see --listen",
				     what, url);
	case NNG_ENOMEM:
		return iocom_err_set(err, -ENOMEM, "out of memory");
	case NNG_ETIMEDOUT:
		return iocom_err_set(err, -ETIMEDOUT,
				     "no answer within %g s from %s (is iocomd running there?)",
				     CONTROL_TIMEOUT_MS / 1e3, url);
	case NNG_ECANCELED:
	case NNG_ECLOSED:
		return iocom_err_set(err, -ECANCELED, "the agent is stopping");
	default:
		return iocom_err_set(err, -EIO, "cannot %s %s: %s", what, url, nng_strerror(e));
	}
}

/* --- messages --------------------------------------------------------------- */

static int pack_message(struct control *c, const struct control_head *head,
			const msgpack_sbuffer *body, nng_msg **out, struct iocom_err *err)
{
	msgpack_sbuffer buffer;
	char *credential = NULL;
	int rc;

	message_pack(head, body, &buffer);
	rc = seal_message(c->config.seal, buffer.data, buffer.size, &credential, err);
	msgpack_sbuffer_destroy(&buffer);
	if (rc) {
		c->config.counters->seal_failures++;
		return rc;
	}
	if (nng_msg_alloc(out, 0) || nng_msg_append(*out, credential, strlen(credential)))
		rc = iocom_err_set(err, -ENOMEM, "out of memory");
	free(credential);
	return rc;
}

struct opened {
	void *data;
	struct message message;
};

static void opened_free(struct opened *o)
{
	message_free(&o->message);
	free(o->data);
}

/* Opens the seal and checks that the message is for us.  On success the caller frees O. */
static int open_message(struct control *c, nng_msg *msg, struct opened *o, struct iocom_err *err)
{
	const struct control_head *head = &o->message.head;
	size_t length;
	int rc;

	*o = (struct opened){0};
	rc = seal_open_message(c->config.seal, nng_msg_body(msg), nng_msg_len(msg), 0, &o->data,
			       &length, err);
	c->config.counters->seal_failures += rc == -EHOSTDOWN;
	if (rc) {
		free(o->data);
		return rc;
	}
	rc = message_unpack(&o->message, o->data, length, err);
	if (rc) {
		free(o->data);
		return rc;
	}
	if (strcmp(head->to, c->config.name))
		rc = iocom_err_set(err, -EACCES, "it is for node '%s', not for this one", head->to);
	else if (!strcmp(head->from,
			 c->config.name)) /* home's own jobs are admitted without checks */
		rc = iocom_err_set(err, -EACCES, "it claims to come from this node itself");
	if (rc)
		opened_free(o);
	return rc;
}

/* --- answering -------------------------------------------------------------- */

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

/* Sends ANSWER to HEAD's question; sends nothing if RC is set or sending fails. */
static void server_answer(struct server *s, const struct control_head *head, int rc,
			  const msgpack_sbuffer *body)
{
	struct control_head back = {.id = head->id, .type = "answer"};
	struct control *c = s->control;
	struct iocom_err err = {0};
	nng_msg *reply = NULL;

	if (!rc) {
		strcpy(back.from, head->to);
		strcpy(back.to, head->from);
		strcpy(back.job, head->job);
		rc = pack_message(c, &back, body, &reply, &err);
		if (rc)
			log_write(c->config.log, LOG_L_WARNING, "cannot answer %s: %s", head->from,
				  err.text);
	}
	if (rc) {
		server_receive(s);
		return;
	}
	s->sending = true;
	nng_aio_set_msg(s->aio, reply); /* nng's on success, ours on failure */
	nng_ctx_send(s->ctx, s->aio);
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
			server_answer(s, &s->head, rc, body);
		return;
	}
}

static void answer_message(struct server *s, nng_msg *msg)
{
	struct control *c = s->control;
	struct iocom_err err = {0};
	msgpack_sbuffer body;
	struct opened o;
	int rc = open_message(c, msg, &o, &err);

	c->config.counters->controls_received++;
	if (rc) {
		c->config.counters->controls_refused++;
		log_provoked(c->config.log, LOG_L_WARNING, "refused a control message: %s",
			     err.text);
		server_receive(s);
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
		server_answer(s, &s->head, s->early_rc, &s->early_body);
	else if (!s->deferred)
		server_answer(s, &s->head, rc, &body);
	if (s->early)
		msgpack_sbuffer_destroy(&s->early_body);
	s->deferred = s->early = false;
	msgpack_sbuffer_destroy(&body);
	opened_free(&o);
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
	answer_message(s, msg);
	nng_msg_free(msg);
}

static int servers_start(struct control *c)
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

int control_new(struct control **out, const struct control_config *config, struct iocom_err *err)
{
	struct control *c = calloc(1, sizeof(*c));
	char url[128];
	int e;

	if (!c)
		return iocom_err_set(err, -ENOMEM, "out of memory");
	c->config = *config;
	if (getrandom(&c->next_id, sizeof(c->next_id), 0) < 0)
		c->next_id = 1;
	control_url(url, sizeof(url), config->listen, config->port + 1u);
	e = nng_rep0_open(&c->rep);
	if (!e) {
		c->listening = true;
		nng_socket_set_size(c->rep, NNG_OPT_RECVMAXSZ, MESSAGE_MAX);
		e = connection_limit_new(&c->guests, c->rep, CONNECTION_LIMIT_MAX,
					 CONNECTION_LIMIT_OF_ONE);
	}
	if (!e)
		e = tls_listen(c->config.tls, c->rep, url);
	if (!e)
		e = servers_start(c);
	if (e) {
		control_free(c);
		return control_nng_error(e, "listen for agents at", url, err);
	}
	*out = c;
	return 0;
}

void control_count(struct control *c)
{
	c->config.counters->guests_refused += connection_limit_refused(c->guests);
}

/* --- asking ----------------------------------------------------------------- */

static void call_called(void *arg)
{
	struct call *call = arg;

	loop_post(call->control->config.loop, &call->post);
}

static void call_free(struct call *call)
{
	struct control *c = call->control;

	for (struct call **p = &c->calls; *p; p = &(*p)->next) {
		if (*p == call) {
			*p = call->next;
			break;
		}
	}
	if (call->peer) {
		call->peer->calls--;
		nng_ctx_close(call->ctx);
	}
	if (call->aio) {
		nng_aio_stop(call->aio);
		loop_unpost(c->config.loop, &call->post);
		/* We own the message: a question not sent, or an answer nobody took. */
		if (nng_aio_get_msg(call->aio))
			nng_msg_free(nng_aio_get_msg(call->aio));
		nng_aio_free(call->aio);
	}
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
		answer(arg, rc, NULL, why);
}

static void call_answered(struct call *call, nng_msg *msg)
{
	const struct control_head *head;
	struct iocom_err err = {0};
	struct opened o;
	control_answer answer = call->answer;
	void *arg = call->arg;
	int rc = open_message(call->control, msg, &o, &err);

	head = &o.message.head;
	if (!rc && (strcmp(head->type, "answer") || head->id != call->head.id ||
		    strcmp(head->job, call->head.job) || strcmp(head->from, call->head.to))) {
		rc = iocom_err_set(&err, -EACCES, "the answer belongs to another question");
		opened_free(&o);
	}
	nng_msg_free(msg);
	if (rc) {
		call->control->config.counters->controls_refused++;
		iocom_err_prefix(&err, "%s answered, but", call->peer->url);
		call_fail(call, rc > 0 ? -EACCES : rc, err.text);
		return;
	}
	call_free(call);
	if (answer)
		answer(arg, 0, &o.message.body.data, "");
	opened_free(&o);
}

static void call_run(void *arg)
{
	struct call *call = arg;
	int e = nng_aio_result(call->aio);
	struct iocom_err err = {0};
	nng_msg *msg;

	if (e) {
		int rc = control_nng_error(e, "ask", call->peer->url, &err);

		call_fail(call, rc, err.text);
		return;
	}
	if (!call->receiving) {
		call->receiving = true;
		nng_aio_set_msg(call->aio, NULL); /* nng took it */
		nng_ctx_recv(call->ctx, call->aio);
		return;
	}
	msg = nng_aio_get_msg(call->aio);
	nng_aio_set_msg(call->aio, NULL);
	call_answered(call, msg);
}

static void peer_close(struct control *c, size_t i)
{
	nng_close(c->peers[i]->socket);
	free(c->peers[i]);
	c->peers[i] = c->peers[--c->npeers];
}

/* The connection to URL, kept open; a new one replaces the longest unused. */
static struct peer *peer_get(struct control *c, const char *url, int *e)
{
	struct peer *p;
	size_t oldest = CONTROL_PEERS_MAX;

	for (size_t i = 0; i < c->npeers; i++) {
		if (!strcmp(c->peers[i]->url, url))
			return c->peers[i];
		if (!c->peers[i]->calls &&
		    (oldest == CONTROL_PEERS_MAX || c->peers[i]->used < c->peers[oldest]->used))
			oldest = i;
	}
	if (c->npeers == CONTROL_PEERS_MAX) {
		if (oldest == CONTROL_PEERS_MAX) {
			c->config.counters->control_peers_full++;
			*e = NNG_EAGAIN;
			return NULL;
		}
		peer_close(c, oldest);
	}
	p = calloc(1, sizeof(*p));
	*e = p ? nng_req0_open(&p->socket) : NNG_ENOMEM;
	if (*e) {
		free(p);
		return NULL;
	}
	snprintf(p->url, sizeof(p->url), "%s", url);
	nng_socket_set_size(p->socket, NNG_OPT_RECVMAXSZ, MESSAGE_MAX);
	nng_socket_set_ms(p->socket, NNG_OPT_RECONNMINT, RECONNECT_MS);
	nng_socket_set_ms(p->socket, NNG_OPT_RECONNMAXT, RECONNECT_MAX_MS);
	nng_socket_set_ms(p->socket, NNG_OPT_REQ_RESENDTIME, NNG_DURATION_INFINITE);
	*e = tls_dial(c->config.tls, p->socket, url);
	if (*e) {
		nng_close(p->socket);
		free(p);
		return NULL;
	}
	c->peers[c->npeers++] = p;
	return p;
}

int control_ask(struct control *c, const char *node, const char *address, uint16_t port,
		const char *type, const char *job, const msgpack_sbuffer *body,
		control_answer answer, void *arg, struct iocom_err *err)
{
	struct call *call = calloc(1, sizeof(*call));
	nng_msg *msg = NULL;
	char url[128];
	int e = 0, rc;

	if (!call)
		return iocom_err_set(err, -ENOMEM, "out of memory");
	call->control = c;
	call->answer = answer;
	call->arg = arg;
	call->head.id = c->next_id++;
	snprintf(call->head.type, sizeof(call->head.type), "%s", type);
	snprintf(call->head.from, sizeof(call->head.from), "%s", c->config.name);
	snprintf(call->head.to, sizeof(call->head.to), "%s", node);
	snprintf(call->head.job, sizeof(call->head.job), "%s", job);
	call->post = (struct loop_post){.run = call_run, .arg = call};
	call->next = c->calls;
	c->calls = call;
	control_url(url, sizeof(url), address, port + 1u);
	rc = pack_message(c, &call->head, body, &msg, err);
	if (rc)
		goto fail;
	call->peer = peer_get(c, url, &e);
	if (call->peer) {
		call->peer->calls++;
		call->peer->used = ++c->clock;
		e = nng_ctx_open(&call->ctx, call->peer->socket);
	}
	if (!e)
		e = nng_aio_alloc(&call->aio, call_called, call);
	if (e) {
		rc = control_nng_error(e, "ask", url, err);
		goto fail;
	}
	nng_ctx_set_ms(call->ctx, NNG_OPT_REQ_RESENDTIME, NNG_DURATION_INFINITE);
	nng_aio_set_timeout(call->aio, CONTROL_TIMEOUT_MS);
	nng_aio_set_msg(call->aio, msg); /* nng's on success, ours on failure */
	nng_ctx_send(call->ctx, call->aio);
	return 0;
fail:
	if (msg)
		nng_msg_free(msg);
	call_free(call);
	return rc;
}

void control_forget(struct control *c, const void *arg)
{
	for (struct call *call = c->calls; call; call = call->next)
		if (call->arg == arg)
			call->answer = NULL;
}

/* An aio that was stopped between receiving and its post still holds its message. */
static void aio_drop(nng_aio *aio)
{
	nng_msg *msg = nng_aio_result(aio) == 0 ? nng_aio_get_msg(aio) : NULL;

	if (msg)
		nng_msg_free(msg);
}

size_t control_guests(const struct control *c)
{
	return c ? connection_limit_count(c->guests) : 0;
}

size_t control_peers(const struct control *c)
{
	return c ? c->npeers : 0;
}

void control_free(struct control *c)
{
	if (!c)
		return;
	while (c->calls)
		call_fail(c->calls, -ECANCELED, "the agent is stopping");
	if (c->listening)
		nng_close(c->rep);
	for (size_t i = 0; i < SERVERS; i++) {
		struct server *s = &c->servers[i];

		if (!s->aio)
			continue;
		nng_aio_stop(s->aio);
		if (s->post.queued && !s->sending)
			aio_drop(s->aio);
		loop_unpost(c->config.loop, &s->post);
		nng_aio_free(s->aio);
	}
	while (c->npeers)
		peer_close(c, 0);
	connection_limit_free(c->guests);
	free(c);
}
