/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* See net_probe.h. */
#include "agent/net/net_probe.h"

#include <errno.h>
#include <nng/nng.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/tcp_url.h"
#include "agent/net/names.h"
#include "agent/net/net_error.h"
#include "user/clock.h"
#include "user/frame.h"

enum probe_stage { PROBE_LOOKS_UP, PROBE_DIALS, PROBE_ASKS, PROBE_READS };

struct probe {
	struct net_probes *probes;
	struct gate_place at;
	bool busy; /* it is being asked */
	nng_stream_dialer *dialer;
	nng_stream *stream;
	nng_aio *aio;
	struct loop_post post;
	enum probe_stage stage; /* what is waited for */
	uint64_t next_ns;
	unsigned wait_s;
	uint8_t question[FRAME_HEADER];
	uint8_t answer[FRAME_HEADER + 600];
	size_t have;
	char said[400]; /* the sentence that the log has already */
};

struct net_probes {
	const struct base *base;
	struct names *names;
	struct net_probes_config config;
	size_t n;
	struct probe list[SETTINGS_PEERS_MAX];
};

static bool probe_heard(const struct matrix *m, const struct gate_place *at)
{
	for (size_t i = 0; i < m->count; i++) {
		const struct matrix_entry *e = matrix_at(m, i);

		if (e->alive && gate_place_is(at, e->vector.address, e->vector.port))
			return true;
	}
	return false;
}

/* Shutdown is as in net_control.c: stop the aio, then remove the post, then free. */
static void probe_stop(struct probe *p)
{
	names_forget(p->probes->names, p);
	p->busy = false;
	if (!p->dialer)
		return;
	nng_stream_dialer_close(p->dialer);
	if (p->stream)
		nng_stream_close(p->stream);
	if (p->aio) {
		nng_aio_stop(p->aio);
		loop_unpost(p->probes->base->loop, &p->post);
		if (p->stage == PROBE_DIALS && !nng_aio_result(p->aio))
			p->stream = nng_aio_get_output(p->aio, 0); /* nobody took it yet */
		nng_aio_free(p->aio);
	}
	nng_stream_free(p->stream);
	nng_stream_dialer_free(p->dialer);
	p->dialer = NULL;
	p->stream = NULL;
	p->aio = NULL;
}

static void probe_tell(const struct probe *p, enum peer_cause cause, const char *why)
{
	if (p->probes->config.trouble)
		p->probes->config.trouble(p->probes->config.arg, &p->at, cause, why);
}

/* The connection failed with E of nng, or ended well (0), or the peer said nothing. */
static void probe_tell_end(const struct probe *p, int e)
{
	char why[160];

	if (e == NNG_ECONNREFUSED)
		snprintf(why, sizeof(why), "nothing listens at its port %u", p->at.port + 2u);
	else if (e == NNG_ETIMEDOUT && p->stage == PROBE_DIALS)
		snprintf(why, sizeof(why), "no connection to its port %u within %d s",
			 p->at.port + 2u, NET_PROBE_LIMIT_S);
	else if (e && p->stage == PROBE_DIALS)
		snprintf(why, sizeof(why), "no connection to its port %u: %s", p->at.port + 2u,
			 nng_strerror(e));
	else if (e == NNG_ETIMEDOUT)
		snprintf(why, sizeof(why), "it takes connections at port %u, but says nothing",
			 p->at.port + 2u);
	else
		*why = 0;
	probe_tell(p,
		   !*why		     ? PEER_C_NONE
		   : e == NNG_ECONNREFUSED   ? PEER_C_REFUSED
		   : p->stage != PROBE_DIALS ? PEER_C_MUTE
		   : e == NNG_ETIMEDOUT	     ? PEER_C_TIMED_OUT
					     : PEER_C_UNREACHABLE,
		   why);
}

static void probe_report(struct probe *p)
{
	const struct base *base = p->probes->base;
	const uint8_t *payload;
	uint32_t length;
	size_t consumed, n = 0;
	uint8_t type;
	char text[sizeof(p->said)];

	if (frame_parse(p->answer, p->have, sizeof(p->answer) - FRAME_HEADER, &type, &payload,
			&length, &consumed) ||
	    type != FRAME_ERROR)
		return;
	for (; n < length && n + 1 < sizeof(text); n++)
		text[n] = (char)(payload[n] >= ' ' && payload[n] < 0x7f ? payload[n] : '?');
	text[n] = 0;
	p->next_ns = loop_boot_ns(p->probes->base->loop) + NET_PROBE_SAID_S * CLOCK_NS_PER_S;
	probe_tell(p, PEER_C_VERSION, text);
	if (!strcmp(text, p->said))
		return;
	strcpy(p->said, text);
	base->counters->peers_refused++;
	log_write(base->log, LOG_L_ERROR, "cannot speak to the peer at %s port %u: it says: %s",
		  p->at.address, p->at.port, text);
}

/* Sends or receives up to N bytes at DATA. */
static void probe_move(struct probe *p, enum probe_stage stage, uint8_t *data, size_t n)
{
	nng_iov iov = {.iov_buf = data, .iov_len = n};

	p->stage = stage;
	nng_aio_set_iov(p->aio, 1, &iov);
	if (stage == PROBE_ASKS)
		nng_stream_send(p->stream, p->aio);
	else
		nng_stream_recv(p->stream, p->aio);
}

static void probe_run(void *arg)
{
	struct probe *p = arg;
	int e = nng_aio_result(p->aio);

	if (!e && p->stage == PROBE_READS)
		p->have += nng_aio_count(p->aio);
	if (!e && p->stage == PROBE_DIALS) {
		p->stream = nng_aio_get_output(p->aio, 0);
		frame_header(p->question, FRAME_REQUEST, 0);
		probe_move(p, PROBE_ASKS, p->question, sizeof(p->question));
	} else if (!e && p->have < sizeof(p->answer)) {
		probe_move(p, PROBE_READS, p->answer + p->have, sizeof(p->answer) - p->have);
	} else { /* it has ended, or cannot be reached */
		probe_tell_end(p, e);
		probe_stop(p);
		probe_report(p);
	}
}

static void probe_called(void *arg)
{
	struct probe *p = arg;

	loop_post(p->probes->base->loop, &p->post);
}

/* Where the peer is: connects to it there. */
static void probe_found(void *arg, const struct names_answer *answer)
{
	struct probe *p = arg;
	struct iocom_err err = {0};
	char url[128];
	int e;

	if (!answer->n) {
		p->probes->base->counters->hosts_unresolved++;
		probe_tell(p, PEER_C_NAME, answer->why);
		probe_stop(p);
		return;
	}
	p->stage = PROBE_DIALS;
	p->post = (struct loop_post){.run = probe_run, .arg = p};
	tcp_url(url, sizeof(url), answer->addresses[0], p->at.port + 2u);
	e = nng_stream_dialer_alloc(&p->dialer, url);
	if (!e)
		e = nng_aio_alloc(&p->aio, probe_called, p);
	if (e) {
		probe_stop(p);
		net_error(e, "probe", url, 0, &err);
		log_write(p->probes->base->log, LOG_L_WARNING, "%s", err.text);
		return;
	}
	nng_aio_set_timeout(p->aio, NET_PROBE_LIMIT_S * 1000);
	nng_stream_dialer_dial(p->dialer, p->aio);
}

static void probe_ask(struct probe *p)
{
	p->busy = true;
	p->have = 0;
	p->stage = PROBE_LOOKS_UP;
	if (!names_ask(p->probes->names, p->at.address, probe_found, p))
		return;
	p->probes->base->counters->hosts_unresolved++;
	probe_stop(p);
}

void net_probes_run(struct net_probes *probes)
{
	uint64_t now = loop_boot_ns(probes->base->loop);

	for (size_t i = 0; i < probes->n; i++) {
		struct probe *p = &probes->list[i];

		if (p->busy || now < p->next_ns)
			continue;
		if (probe_heard(probes->config.matrix, &p->at)) {
			p->said[0] = 0;
			p->wait_s = NET_PROBE_FIRST_S;
			p->next_ns = now + p->wait_s * CLOCK_NS_PER_S;
			continue;
		}
		p->wait_s = 2 * p->wait_s < NET_PROBE_AGAIN_S ? 2 * p->wait_s : NET_PROBE_AGAIN_S;
		p->next_ns = now + p->wait_s * CLOCK_NS_PER_S;
		probe_ask(p);
		return;
	}
}

void net_probes_add(struct net_probes *probes, const struct gate_place *at)
{
	if (probes->n == SETTINGS_PEERS_MAX)
		return;
	probes->list[probes->n++] = (struct probe){
		.probes = probes,
		.at = *at,
		.wait_s = NET_PROBE_FIRST_S,
		.next_ns = loop_boot_ns(probes->base->loop) + NET_PROBE_FIRST_S * CLOCK_NS_PER_S,
	};
}

int net_probes_new(struct net_probes **out, const struct net_probes_config *config,
		   struct iocom_err *err)
{
	struct net_probes *probes = calloc(1, sizeof(*probes));

	*out = probes;
	if (!probes)
		return iocom_err_set(err, -ENOMEM, "out of memory");
	probes->config = *config;
	probes->base = config->base;
	probes->names = config->names;
	return 0;
}

void net_probes_free(struct net_probes *probes)
{
	for (size_t i = 0; probes && i < probes->n; i++)
		probe_stop(&probes->list[i]);
	free(probes);
}
