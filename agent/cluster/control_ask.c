/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Questions to other agents, and the connections that they take. */
#include "agent/cluster/control_own.h"

#include <errno.h>
#include <nng/protocol/reqrep0/req.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RECONNECT_MS	 50
#define RECONNECT_MAX_MS 1000

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
	char url[128];
	struct seal_question *seal; /* munged is asked: NULL, or the question's or answer's seal */
	nng_ctx ctx;
	nng_aio *aio;
	struct loop_post post;
	bool receiving;
	struct control_head head;
	control_answer answer; /* NULL: forgotten */
	void *arg;
};

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
	seal_forget(c->config.seal, call->seal);
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

static void call_refuse(struct call *call, int rc, struct iocom_err *err)
{
	call->control->config.counters->controls_refused++;
	iocom_err_prefix(err, "%s answered, but", call->url);
	call_fail(call, rc > 0 ? -EACCES : rc, err->text);
}

/* The answer is opened. */
static void call_opened(void *arg, struct seal_answer *a)
{
	struct call *call = arg;
	struct iocom_err err = {0};
	control_answer answer = call->answer;
	void *answer_arg = call->arg;
	struct control_opened o;
	const struct control_head *head = &o.message.head;
	int rc = control_open(call->control, a, &o, &err);

	call->seal = NULL;
	if (!rc && (strcmp(head->type, "answer") || head->id != call->head.id ||
		    strcmp(head->job, call->head.job) || strcmp(head->from, call->head.to))) {
		rc = iocom_err_set(&err, -EACCES, "the answer belongs to another question");
		control_opened_free(&o);
	}
	if (rc) {
		call_refuse(call, rc, &err);
		return;
	}
	call_free(call);
	if (answer)
		answer(answer_arg, 0, &o.message.body.data, "");
	control_opened_free(&o);
}

static void call_run(void *arg)
{
	struct call *call = arg;
	int e = nng_aio_result(call->aio), rc;
	struct iocom_err err = {0};
	nng_msg *msg;

	if (e) {
		rc = control_nng_error(e, "ask", call->url, &err);
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
	rc = seal_open_message(call->control->config.seal, SEAL_OWN, nng_msg_body(msg),
			       nng_msg_len(msg), false, call_opened, call, &call->seal, &err);
	nng_msg_free(msg);
	if (rc)
		call_refuse(call, rc, &err);
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

static void call_sealed(void *arg, struct seal_answer *a)
{
	struct call *call = arg;
	nng_msg *msg = control_sealed(a);

	call->seal = NULL;
	if (!msg) {
		call_fail(call, a->rc, a->err.text);
		return;
	}
	nng_aio_set_timeout(call->aio, CONTROL_TIMEOUT_MS);
	nng_aio_set_msg(call->aio, msg); /* nng's on success, ours on failure */
	nng_ctx_send(call->ctx, call->aio);
}

static int call_connect(struct call *call, struct iocom_err *err)
{
	struct control *c = call->control;
	int e = 0;

	call->peer = peer_get(c, call->url, &e);
	if (call->peer) {
		call->peer->calls++;
		call->peer->used = ++c->clock;
		e = nng_ctx_open(&call->ctx, call->peer->socket);
	}
	if (!e)
		e = nng_aio_alloc(&call->aio, call_called, call);
	if (!e)
		nng_ctx_set_ms(call->ctx, NNG_OPT_REQ_RESENDTIME, NNG_DURATION_INFINITE);
	return control_nng_error(e, "ask", call->url, err);
}

int control_ask(struct control *c, const char *node, const char *address, uint16_t port,
		const char *type, const char *job, const msgpack_sbuffer *body,
		control_answer answer, void *arg, struct iocom_err *err)
{
	struct call *call = calloc(1, sizeof(*call));
	int rc;

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
	control_url(call->url, sizeof(call->url), address, port + 1u);
	rc = call_connect(call, err);
	if (!rc)
		rc = control_seal(c, &call->head, body, call_sealed, call, &call->seal, err);
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

void control_ask_disconnect(struct control *c)
{
	while (c->npeers)
		peer_close(c, 0);
}
