/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Questions of root to other agents, and the connections that they take; see net_control.h. */
#include <errno.h>
#include <nng/nng.h>
#include <nng/protocol/reqrep0/req.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/tcp_url.h"
#include "agent/net/names.h"
#include "agent/net/net_control_own.h"
#include "agent/net/net_error.h"
#include "user/clock.h"

#define RECONNECT_MS	 50
#define RECONNECT_MAX_MS 1000

struct net_peer {
	struct net_control *control;
	char url[128];
	struct gate_place at;
	nng_socket socket;
	bool dialled;
	bool named;    /* its address was looked up */
	bool stale;    /* it did not answer: its name may have another address now */
	uint64_t used; /* larger means later */
	unsigned exchanges;
	/* When a connection to it was made, and lost, last; 0: never. */
	atomic_uint_least64_t made_ns, lost_ns;
};

struct net_exchange {
	struct net_exchange *next;
	struct net_control *control;
	struct net_peer *peer;
	uint64_t id;
	uint32_t limit_ms;
	uint64_t asked_ns;
	nng_ctx ctx;
	nng_aio *aio;
	struct loop_post post;
	bool receiving;
};

/* --- connections -------------------------------------------------------------------- */

static void net_peer_close(struct net_control *c, size_t i)
{
	names_forget(c->config.names, c->peers[i]);
	nng_close(c->peers[i]->socket);
	free(c->peers[i]);
	c->peers[i] = c->peers[--c->npeers];
}

/* Called by a thread of nng. */
static void net_peer_changed(nng_pipe pipe, nng_pipe_ev event, void *arg)
{
	struct net_peer *p = arg;

	(void)pipe;
	*(event == NNG_PIPE_EV_ADD_POST ? &p->made_ns : &p->lost_ns) = clock_boot_ns();
}

/* There is a connection now, or was one since SINCE_NS. */
static bool net_peer_met(const struct net_peer *p, uint64_t since_ns)
{
	uint64_t made = p->made_ns, lost = p->lost_ns;

	return made && (made > lost || made >= since_ns || lost >= since_ns);
}

/* The host's address is known: what is asked waits in the socket until it is connected. */
static void net_peer_found(void *arg, const struct names_answer *answer)
{
	struct net_peer *p = arg;
	char url[128];

	p->control->config.base->counters->hosts_unresolved += !answer->n;
	if (!answer->n)
		return; /* questions run out of time; the name is looked up again for the next */
	tcp_url(url, sizeof(url), answer->addresses[0], p->at.port + 1u);
	p->named = strcmp(answer->addresses[0], p->at.address) != 0;
	p->dialled = !nng_dial(p->socket, url, NULL, NNG_FLAG_NONBLOCK);
}

static int net_peer_open(struct net_control *c, const struct gate_place *at, const char *url,
			 struct net_peer **out)
{
	struct net_peer *p = calloc(1, sizeof(*p));
	int e = p ? nng_req0_open(&p->socket) : NNG_ENOMEM;

	if (e) {
		free(p);
		return e;
	}
	p->control = c;
	p->at = *at;
	snprintf(p->url, sizeof(p->url), "%s", url);
	nng_socket_set_size(p->socket, NNG_OPT_RECVMAXSZ, GATE_CONTROL_MAX);
	nng_socket_set_ms(p->socket, NNG_OPT_RECONNMINT, RECONNECT_MS);
	nng_socket_set_ms(p->socket, NNG_OPT_RECONNMAXT, RECONNECT_MAX_MS);
	nng_socket_set_ms(p->socket, NNG_OPT_REQ_RESENDTIME, NNG_DURATION_INFINITE);
	e = nng_pipe_notify(p->socket, NNG_PIPE_EV_ADD_POST, net_peer_changed, p);
	if (!e)
		e = nng_pipe_notify(p->socket, NNG_PIPE_EV_REM_POST, net_peer_changed, p);
	if (e) {
		nng_close(p->socket);
		free(p);
		return e;
	}
	c->peers[c->npeers++] = p;
	*out = p;
	return 0;
}

/* Finds the connection to URL; AT of PEERS where a new one may go. */
static struct net_peer *net_peer_find(struct net_control *c, const char *url, size_t *oldest)
{
	*oldest = NET_CONTROL_PEERS_MAX;
	for (size_t i = 0; i < c->npeers; i++) {
		if (!strcmp(c->peers[i]->url, url))
			return c->peers[i];
		if (!c->peers[i]->exchanges && (*oldest == NET_CONTROL_PEERS_MAX ||
						c->peers[i]->used < c->peers[*oldest]->used))
			*oldest = i;
	}
	return NULL;
}

static size_t net_peer_index(const struct net_control *c, const struct net_peer *p)
{
	size_t i = 0;

	while (c->peers[i] != p)
		i++;
	return i;
}

/* The connection to AT, kept open; a new one replaces the longest unused. */
static int net_peer_get(struct net_control *c, const struct gate_place *at, struct net_peer **out)
{
	char url[128];
	size_t oldest;
	int e = 0;

	tcp_url(url, sizeof(url), at->address, at->port + 1u);
	*out = net_peer_find(c, url, &oldest);
	if (*out && (*out)->stale && !(*out)->exchanges) {
		net_peer_close(c, net_peer_index(c, *out));
		*out = NULL;
	}
	if (!*out && c->npeers == NET_CONTROL_PEERS_MAX) {
		if (oldest == NET_CONTROL_PEERS_MAX) {
			c->config.base->counters->control_peers_full++;
			return NNG_EAGAIN;
		}
		net_peer_close(c, oldest);
	}
	if (!*out)
		e = net_peer_open(c, at, url, out);
	if (e || (*out)->dialled || !names_ask(c->config.names, at->address, net_peer_found, *out))
		return e;
	c->config.base->counters->hosts_unresolved++;
	return NNG_EUNREACHABLE;
}

/* --- questions ---------------------------------------------------------------------- */

static void net_exchange_free(struct net_exchange *x)
{
	struct net_control *c = x->control;

	for (struct net_exchange **p = &c->exchanges; *p; p = &(*p)->next) {
		if (*p != x)
			continue;
		*p = x->next;
		break;
	}
	if (x->peer) {
		x->peer->exchanges--;
		nng_ctx_close(x->ctx);
	}
	if (x->aio) {
		nng_aio_stop(x->aio);
		loop_unpost(c->config.base->loop, &x->post);
		/* We own the message: a question not sent, or an answer nobody took. */
		if (nng_aio_get_msg(x->aio))
			nng_msg_free(nng_aio_get_msg(x->aio));
		nng_aio_free(x->aio);
	}
	free(x);
}

static void net_exchange_tell(struct net_control *c, const struct gate_answered *answered,
			      const void *data, size_t length)
{
	const struct gate_message m = {.type = GATE_ANSWERED, .answered = *answered};
	int rc = answered->rc;

	if (rc && length > GATE_SENTENCE_MAX)
		length = GATE_SENTENCE_MAX;
	/* Root takes an answer that does not come for the end of this part: its queue is full. */
	if (gate_send(c->config.gate, &m, data, length, NULL))
		log_write(c->config.base->log, LOG_L_ERROR,
			  "an answer is lost: root takes nothing");
}

static void net_exchange_fail(struct net_control *c, struct gate_answered *answered, int nng_rc,
			      const char *url, uint32_t limit_ms)
{
	struct iocom_err err = {0};

	answered->rc = net_error(nng_rc, "ask", url, limit_ms, &err);
	net_exchange_tell(c, answered, err.text, strlen(err.text));
}

static void net_exchange_called(void *arg)
{
	struct net_exchange *x = arg;

	loop_post(x->control->config.base->loop, &x->post);
}

static void net_exchange_run(void *arg)
{
	struct net_exchange *x = arg;
	struct gate_answered answered = {.id = x->id};
	int e = nng_aio_result(x->aio);
	nng_msg *msg;

	if (e) {
		answered.connected = net_peer_met(x->peer, x->asked_ns);
		answered.cut =
			answered.connected && x->receiving && x->peer->lost_ns >= x->asked_ns;
		x->peer->stale = x->peer->named && e == NNG_ETIMEDOUT;
		if (!x->receiving && nng_aio_get_msg(x->aio)) /* nng did not take it */
			nng_msg_free(nng_aio_get_msg(x->aio));
		nng_aio_set_msg(x->aio, NULL);
		net_exchange_fail(x->control, &answered, e, x->peer->url, x->limit_ms);
		net_exchange_free(x);
		return;
	}
	msg = nng_aio_get_msg(x->aio);
	if (x->receiving) {
		if (nng_msg_len(msg))
			net_exchange_tell(x->control, &answered, nng_msg_body(msg),
					  nng_msg_len(msg));
		else
			net_exchange_fail(x->control, &answered, NNG_EPROTO, x->peer->url, 0);
		net_exchange_free(x); /* and the message */
		return;
	}
	nng_aio_set_msg(x->aio, NULL);
	x->receiving = true; /* nng has taken the question */
	nng_ctx_recv(x->ctx, x->aio);
}

static int net_exchange_open(struct net_exchange *x)
{
	int e = nng_ctx_open(&x->ctx, x->peer->socket);

	if (e) {
		x->peer = NULL;
		return e;
	}
	x->peer->exchanges++;
	x->peer->used = ++x->control->clock;
	nng_ctx_set_ms(x->ctx, NNG_OPT_REQ_RESENDTIME, NNG_DURATION_INFINITE);
	return nng_aio_alloc(&x->aio, net_exchange_called, x);
}

static int net_exchange_send(struct net_exchange *x, const void *question, size_t length)
{
	nng_msg *msg;
	int e = nng_msg_alloc(&msg, length);

	if (e)
		return e;
	memcpy(nng_msg_body(msg), question, length);
	nng_aio_set_timeout(x->aio, (nng_duration)x->limit_ms);
	nng_aio_set_msg(x->aio, msg); /* nng's on success, ours on failure */
	nng_ctx_send(x->ctx, x->aio);
	return 0;
}

void net_control_ask(struct net_control *c, const struct gate_ask *ask, const void *question,
		     size_t length)
{
	struct gate_answered answered = {.id = ask->id};
	struct net_exchange *x = calloc(1, sizeof(*x));
	int e = x ? net_peer_get(c, &ask->at, &x->peer) : NNG_ENOMEM;

	if (e) {
		net_exchange_fail(c, &answered, e, ask->at.address, ask->limit_ms);
		free(x);
		return;
	}
	if (ask->since_ns && x->peer->lost_ns > ask->since_ns) {
		static const char lost[] = "the connection was lost";

		answered.rc = -ESTALE;
		net_exchange_tell(c, &answered, lost, sizeof(lost) - 1);
		free(x);
		return;
	}
	x->control = c;
	x->id = ask->id;
	x->limit_ms = ask->limit_ms;
	x->asked_ns = clock_boot_ns();
	x->post = (struct loop_post){.run = net_exchange_run, .arg = x};
	x->next = c->exchanges;
	c->exchanges = x;
	e = net_exchange_open(x);
	if (!e)
		e = net_exchange_send(x, question, length);
	if (e) {
		net_exchange_fail(c, &answered, e, ask->at.address, ask->limit_ms);
		net_exchange_free(x);
	}
}

void net_control_forget(struct net_control *c, uint64_t id)
{
	for (struct net_exchange *x = c->exchanges; x; x = x->next) {
		if (x->id != id)
			continue;
		net_exchange_free(x);
		return;
	}
}

void net_exchange_stop(struct net_control *c)
{
	while (c->exchanges)
		net_exchange_free(c->exchanges);
	while (c->npeers)
		net_peer_close(c, 0);
}
