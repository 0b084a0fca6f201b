/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * See net_control.h; net_exchange.c asks.
 *
 * Threads: nng's callbacks only post to the loop.  Each aio has at most one operation, so one post
 * entry per aio is enough.  Shutdown closes the sockets, stops the aios (no callback runs after
 * that), removes the posts from the queue, then frees the memory.
 */
#include "agent/net/net_control_own.h"

#include <errno.h>
#include <nng/protocol/reqrep0/rep.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/complaints.h"
#include "agent/base/peer_cause.h"
#include "agent/base/tcp_url.h"
#include "agent/gate/greeting_head.h"
#include "agent/base/seal_refusal.h"
#include "agent/net/connection_cut.h"
#include "agent/net/net_error.h"

static void net_server_called(void *arg)
{
	struct net_server *s = arg;

	loop_post(s->control->config.base->loop, &s->post);
}

static void net_server_receive(struct net_server *s)
{
	s->sending = false;
	s->ticket = 0;
	nng_aio_set_timeout(s->aio, NNG_DURATION_INFINITE);
	nng_ctx_recv(s->ctx, s->aio);
}

static void net_server_refuse(struct net_server *s, const char *why, int verdict)
{
	const struct base *base = s->control->config.base;

	connection_limit_judge(s->control->guests, s->from, verdict);
	base->counters->controls_refused++;
	base_complain(base, s->address, "refused a control message%s%s: %s",
		      *s->address ? " from " : "", s->address, why);
	net_server_receive(s);
}

/* Gives the question to root, which answers by its ticket. */
static void net_server_bring(struct net_server *s, struct gate_message *m, const void *data,
			     size_t length)
{
	struct net_control *c = s->control;

	s->ticket = ++c->tickets;
	if (m->type == GATE_HELLO) {
		m->hello.ticket = s->ticket;
		memcpy(m->hello.from, s->address, sizeof(m->hello.from));
	} else {
		m->question.ticket = s->ticket;
		memcpy(m->question.from, s->address, sizeof(m->question.from));
		m->question.proven = connection_limit_is_proven(c->guests, s->from);
	}
	if (gate_send(c->config.gate, m, data, length, NULL)) {
		c->config.base->counters->controls_refused++;
		net_server_receive(s);
	}
}

/* It may be a configured peer, which cannot be heard then. */
static void net_server_tell_version(const struct net_server *s, const char *why)
{
	struct gate_message m = {.type = GATE_TROUBLE, .trouble = {.cause = PEER_C_VERSION}};

	memcpy(m.trouble.at.address, s->address, sizeof(m.trouble.at.address));
	if (*s->address)
		(void)gate_send(s->control->config.gate, &m, why, strnlen(why, GATE_SENTENCE_MAX),
				NULL);
}

static void net_server_hello(struct net_server *s, const uint8_t *data, size_t length)
{
	struct gate_message m = {.type = GATE_HELLO};
	struct greeting_head head;
	struct iocom_err err = {0};
	int rc = greeting_heard(&head, data, length, &err);

	if (rc == -EPROTO)
		net_server_tell_version(s, err.text);
	if (rc) { /* a node of another version pays little */
		net_server_refuse(s, err.text, rc == -EBADMSG ? SEAL_E_GARBAGE : SEAL_E_REPLAYED);
		return;
	}
	m.hello.least = head.least;
	m.hello.most = head.most;
	m.hello.credential = (uint32_t)(head.credential - (const char *)data);
	m.hello.credential_length = (uint32_t)head.length;
	net_server_bring(s, &m, data, length);
}

/* What a connection sent that was cut since is not looked at. */
static void net_server_take(struct net_server *s, const nng_msg *msg)
{
	static const char older[] = "MUNGE:"; /* how messages began before there were sessions */
	struct gate_message question = {.type = GATE_QUESTION};
	struct net_control *c = s->control;
	const uint8_t *at = nng_msg_body((nng_msg *)msg);
	size_t n = nng_msg_len(msg);

	c->config.base->counters->controls_received++;
	if (connection_limit_is_cut(c->guests, s->from)) {
		c->config.base->counters->controls_refused++;
		net_server_receive(s);
	} else if (n && at[0] == SESSION_HELLO) {
		net_server_hello(s, at, n);
	} else if (n && at[0] == SESSION_SEALED) {
		net_server_bring(s, &question, at, n);
	} else {
		net_server_refuse(s,
				  n > sizeof(older) && !memcmp(at, older, sizeof(older) - 1)
					  ? "its node runs an older version of iocom; install the "
					    "same version on all nodes"
					  : "not a message of iocom",
				  SEAL_E_GARBAGE);
	}
}

static void net_server_sent(struct net_server *s, int e)
{
	nng_msg *msg = nng_aio_get_msg(s->aio);

	if (e && msg) /* nng did not take it */
		nng_msg_free(msg);
	nng_aio_set_msg(s->aio, NULL);
	if (e == NNG_ETIMEDOUT)
		connection_limit_judge(s->control->guests, s->from, SEAL_E_GARBAGE);
	if (e != NNG_ECLOSED)
		net_server_receive(s);
}

static void net_server_run(void *arg)
{
	struct net_server *s = arg;
	int e = nng_aio_result(s->aio);
	nng_msg *msg;

	if (s->sending) {
		net_server_sent(s, e);
		return;
	}
	if (e) {
		if (e != NNG_ECLOSED && e != NNG_ECANCELED)
			net_server_receive(s);
		return;
	}
	msg = nng_aio_get_msg(s->aio);
	nng_aio_set_msg(s->aio, NULL);
	s->from = nng_msg_get_pipe(msg);
	connection_address(s->from, s->address);
	net_server_take(s, msg);
	nng_msg_free(msg);
}

/*
 * Whoever asks and does not read holds this server up to WAIT_MS, and is cut then.  Nothing is sent
 * on a connection that was cut: nng would close it, of which connection_cut.h warns.
 */
static void net_server_answer(struct net_server *s, const void *answer, size_t length,
			      uint32_t wait_ms)
{
	nng_msg *msg;

	s->ticket = 0;
	if (!length || connection_limit_is_cut(s->control->guests, s->from) ||
	    nng_msg_alloc(&msg, length)) {
		net_server_receive(s);
		return;
	}
	memcpy(nng_msg_body(msg), answer, length);
	s->sending = true;
	nng_aio_set_timeout(s->aio, (nng_duration)wait_ms);
	nng_aio_set_msg(s->aio, msg); /* nng's on success, ours on failure */
	nng_ctx_send(s->ctx, s->aio);
}

void net_control_reply(struct net_control *c, const struct gate_reply *reply, const void *answer,
		       size_t length)
{
	for (size_t i = 0; c && i < GATE_QUESTIONS_MAX; i++) {
		struct net_server *s = &c->servers[i];

		if (!s->ticket || s->ticket != reply->ticket)
			continue;
		if (!reply->judged)
			connection_limit_judge(c->guests, s->from, reply->verdict);
		if (reply->last)
			net_server_answer(s, answer, length, reply->wait_ms);
		return;
	}
}

static int net_control_serve(struct net_control *c)
{
	for (size_t i = 0; i < GATE_QUESTIONS_MAX; i++) {
		struct net_server *s = &c->servers[i];
		int e;

		s->control = c;
		s->post = (struct loop_post){.run = net_server_run, .arg = s};
		e = nng_aio_alloc(&s->aio, net_server_called, s);
		if (!e)
			e = nng_ctx_open(&s->ctx, c->rep);
		if (e)
			return e;
		net_server_receive(s);
	}
	return 0;
}

int net_control_new(struct net_control **out, const struct net_control_config *config,
		    struct iocom_err *err)
{
	const struct connection_limit_bounds bounds = {
		.max = CONNECTION_LIMIT_MAX, .max_of_one = CONNECTION_LIMIT_OF_ONE, .yield = true};
	struct net_control *c = calloc(1, sizeof(*c));
	char url[128];
	int e;

	*out = NULL;
	if (!c)
		return iocom_err_set(err, -ENOMEM, "out of memory");
	c->config = *config;
	tcp_url(url, sizeof(url), config->listen, config->port + 1u);
	e = nng_rep0_open(&c->rep);
	if (!e) {
		c->listening = true;
		nng_socket_set_size(c->rep, NNG_OPT_RECVMAXSZ, GATE_CONTROL_MAX);
		e = connection_limit_new(&c->guests, c->rep, &bounds);
	}
	if (!e)
		e = nng_listen(c->rep, url, NULL, 0);
	if (!e)
		e = net_control_serve(c);
	if (e) {
		net_control_free(c);
		return net_error(e, "listen for agents at", url, 0, err);
	}
	*out = c;
	return 0;
}

void net_control_count(struct net_control *c, struct gate_counts *counts)
{
	if (!c)
		return;
	connection_limit_count_into(c->guests, c->config.base->counters);
	counts->control_guests = (uint32_t)connection_limit_count(c->guests);
	counts->control_payers = (uint32_t)connection_limit_payers(c->guests);
	counts->control_peers = (uint32_t)c->npeers;
}

static void net_server_stop(struct net_server *s)
{
	if (!s->aio)
		return;
	nng_aio_stop(s->aio);
	/* A message that was received, and whose post has not run, or that was not sent. */
	if (s->post.queued && (!s->sending || nng_aio_result(s->aio)) && nng_aio_get_msg(s->aio))
		nng_msg_free(nng_aio_get_msg(s->aio));
	loop_unpost(s->control->config.base->loop, &s->post);
	nng_aio_free(s->aio);
}

void net_control_free(struct net_control *c)
{
	if (!c)
		return;
	net_exchange_stop(c);
	if (c->listening)
		nng_close(c->rep);
	for (size_t i = 0; i < GATE_QUESTIONS_MAX; i++)
		net_server_stop(&c->servers[i]);
	connection_limit_free(c->guests);
	free(c);
}
