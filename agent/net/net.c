/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * See net.h.  Root's messages come from the gate and go to the part that they are for; what the
 * parts have for root they send themselves.  Of the vectors that are heard, most are known already,
 * because all nodes relay: only newer ones go to root.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "agent/net/names.h"
#include "agent/net/net_own.h"
#include "user/clock.h"

#define SETUP_MS     10000		  /* root sends it before it starts this program */
#define PINGED_NS    (CLOCK_NS_PER_S / 2) /* a vector after so long stands for a ping */
#define COUNTS_EVERY 5			  /* pings: counts are sent also if nothing has changed */
/* The sockets of a network part that was killed may be open for a moment. */
#define IN_USE_TIMES 25
#define IN_USE_NS    (20 * 1000000l)

/* --- counts ----------------------------------------------------------------------------- */

static void net_count(struct net *net, struct gate_counts *counts)
{
	struct net_http_counts pages = {0};

	*counts = (struct gate_counts){0};
	net_bulletin_count(net->bulletin, counts);
	net_control_count(net->control, counts);
	counts->streams = (uint32_t)net_streams_count(net->streams);
	if (net->http)
		net_http_served(net->http, &pages);
	counts->pages_answered = pages.answered;
	counts->pages_refused = pages.refused;
	counts->pages_cut = pages.cut;
	net->counters.network_refused = gate_refused(net->gate);
	counts->counters = net->counters;
	counts->hosts = (uint32_t)names_waiting(net->config.names);
	counts->log_suppressed = net->log.suppressed;
}

static void net_tell_counts(struct net *net)
{
	struct gate_message m = {.type = GATE_COUNTS};

	net_count(net, &m.counts);
	if (net->pings % COUNTS_EVERY && !memcmp(&net->told, &m.counts, sizeof(net->told)))
		return;
	if (!gate_send(net->gate, &m, NULL, 0, NULL))
		net->told = m.counts;
}

/* --- what is heard ------------------------------------------------------------------ */

/* Tells root of what was heard, in one message. */
static void net_tell_heard(void *arg)
{
	struct net *net = arg;
	struct gate_message m = {.type = GATE_VECTOR, .vector = net->heard[0]};

	if (!net->nheard)
		return;
	/* If it cannot take them: newer ones come in a period. */
	(void)gate_send(net->gate, &m, &net->heard[1], (net->nheard - 1) * sizeof(net->heard[0]),
			NULL);
	net->nheard = 0;
	net->told_vector = true;
	if (net->counts_wait)
		net_tell_counts(net);
	net->counts_wait = false;
}

static void net_heard(void *arg, const struct iocom_vector *v, uint64_t age_ns, bool direct)
{
	struct net *net = arg;
	struct gate_vector *heard = &net->heard[net->nheard];
	const char *teller = net_bulletin_teller(net->bulletin);
	uint64_t now = loop_boot_ns(net->config.loop);

	/* Nobody fills everybody's matrix with nodes that are none. */
	if (!direct && teller && !matrix_may_tell(&net->matrix, teller, v->name, now)) {
		net->counters.vectors_refused_full++;
		return;
	}
	switch (matrix_hear(&net->matrix, v, age_ns, direct, now)) {
	case 0:
	case MATRIX_E_LEFT:
		break;
	case MATRIX_E_OWN: /* perhaps another node uses this one's name, which root logs */
		if (direct)
			break;
		return;
	case MATRIX_E_OLD:
		net->counters.vectors_refused_old += direct;
		return;
	case MATRIX_E_FULL:
		net->counters.vectors_refused_full++;
		return;
	default:
		return;
	}
	memset(heard, 0, sizeof(*heard));
	*heard = (struct gate_vector){.vector = *v, .age_ns = age_ns, .direct = direct};
	if (direct && net_bulletin_hearing(net->bulletin))
		heard->at = *net_bulletin_hearing(net->bulletin);
	if (++net->nheard == GATE_VECTORS)
		net_tell_heard(net);
}

static void net_skewed(void *arg, const char *node, int64_t ahead_s)
{
	struct net *net = arg;
	struct gate_message m = {.type = GATE_SKEWED, .skewed = {.ahead_s = ahead_s}};

	snprintf(m.skewed.node, sizeof(m.skewed.node), "%s", node);
	(void)gate_send(net->gate, &m, NULL, 0, NULL);
}

static void net_in_trouble(void *arg, const struct gate_place *at, enum peer_cause cause,
			   const char *why)
{
	struct net *net = arg;
	const struct gate_message m = {.type = GATE_TROUBLE,
				       .trouble = {.at = *at, .cause = cause}};

	(void)gate_send(net->gate, &m, why, strnlen(why, GATE_SENTENCE_MAX), NULL);
}

static void net_ask_key(void *arg, const struct gate_place *at)
{
	struct net *net = arg;
	const struct gate_message m = {.type = GATE_ASK_KEY, .place = *at};

	(void)gate_send(net->gate, &m, NULL, 0, NULL);
}

/* --- the page of metrics -------------------------------------------------------------- */

/* Called by the server's thread. */
static void net_want_page(void *arg)
{
	struct net *net = arg;

	loop_post(net->config.loop, &net->want_page);
}

static void net_ask_page(void *arg)
{
	struct net *net = arg;
	const struct gate_message m = {.type = GATE_WANT_PAGE};

	(void)gate_send(net->gate, &m, NULL, 0, NULL);
}

static void net_page(struct net *net, int fd)
{
	int rc = -EPIPE;

	if (net->http)
		rc = net_http_show_fd(net->http, fd);
	else
		close(fd);
	if (rc)
		log_write(&net->log, LOG_L_WARNING, "cannot show the page of metrics: %s",
			  strerror(-rc));
}

/* --- pings ------------------------------------------------------------------------------ */

/*
 * Root asks about once a second, by a ping or by a vector that is to be published.  A question of
 * no number needs no answer if root has heard of a vector since the last one.  As then the next
 * vector is not far, the counts wait for it, though not beyond the next question: root need not
 * wake for them alone.  What is done about once a second is done now, so that this loop wakes less,
 * too.
 */
static void net_pinged(struct net *net, struct gate_id id)
{
	const struct gate_message pong = {.type = GATE_PONG, .id = id};
	bool waited = net->counts_wait, needless = net->told_vector && !id.id;

	net->pinged_ns = loop_boot_ns(net->config.loop);
	net->counts_wait = net->is_open && needless && !waited;
	if (net->is_open && !net->counts_wait)
		net_tell_counts(net);
	if (net->probes)
		net_probes_run(net->probes);
	net->pings++;
	net->told_vector = false;
	if (!needless)
		(void)gate_send(net->gate, &pong, NULL, 0, NULL);
}

/* --- root's messages ---------------------------------------------------------------------- */

static void net_publish(struct net *net, const struct iocom_vector *own)
{
	matrix_expire(&net->matrix, loop_boot_ns(net->config.loop));
	net_bulletin_publish(net->bulletin, own, &net->matrix);
	if (loop_boot_ns(net->config.loop) - net->pinged_ns >= PINGED_NS)
		net_pinged(net, (struct gate_id){0});
}

/* Messages to the parts of a node that has peers. */
static void net_obey_networked(struct net *net, const struct gate_message *m, const uint8_t *tail,
			       size_t n)
{
	switch (m->type) {
	case GATE_PEER:
		net_probes_add(net->probes, &m->place);
		break;
	case GATE_DIAL:
		net_bulletin_dial(net->bulletin, &m->place);
		break;
	case GATE_UNDIAL:
		net_bulletin_undial(net->bulletin, &m->place);
		break;
	case GATE_EPOCH:
		net_bulletin_epoch(net->bulletin, &m->epoch);
		break;
	case GATE_PUBLISH:
		net_publish(net, &m->publish);
		break;
	case GATE_PUBLISHER_KEY:
		net_bulletin_key(net->bulletin, &m->publisher);
		break;
	case GATE_ASK:
		net_control_ask(net->control, &m->ask, tail, n);
		break;
	case GATE_FORGET:
		net_control_forget(net->control, m->id.id);
		break;
	case GATE_REPLY:
		net_control_reply(net->control, &m->reply, tail, n);
		break;
	case GATE_STREAM_OVER:
		if (net->streams)
			net_streams_over(net->streams, &m->stream_over, tail, n);
		break;
	case GATE_RENEWED:
		if (net->streams)
			net_streams_renewed(net->streams, &m->renewed, tail, n);
		break;
	default:
		break;
	}
}

static void net_received(void *arg, const struct gate_message *m, uint8_t *tail, size_t n,
			 const int *fds)
{
	struct net *net = arg;

	switch (m->type) {
	case GATE_SETUP: /* the first message, and never again */
		if (net->is_set_up)
			break;
		net->is_set_up = true;
		net->setup = m->setup;
		net->streams_fd = m->setup.streams ? fds[0] : -1;
		net->http_fd = m->setup.http ? fds[m->setup.streams] : -1;
		return;
	case GATE_PING:
		net_pinged(net, m->id);
		return;
	case GATE_PAGE:
		net_page(net, fds[0]);
		return;
	default:
		break;
	}
	for (size_t i = 0; i < gate_fds_of(m); i++)
		close(fds[i]);
	if (net->control)
		net_obey_networked(net, m, tail, n);
}

static void net_broken(void *arg, const char *why)
{
	struct net *net = arg;

	(void)why; /* root is gone: nobody is left to be told */
	if (net->config.over)
		net->config.over(net->config.arg);
}

/* --- set-up ----------------------------------------------------------------------------------- */

static int net_listen(struct net *net, struct iocom_err *err)
{
	const struct net_bulletin_config bulletin = {.base = &net->base,
						     .names = net->config.names,
						     .listen = net->setup.listen,
						     .port = net->setup.port,
						     .each = net_heard,
						     .taken = net_tell_heard,
						     .arg = net,
						     .ask_key = net_ask_key,
						     .trouble = net_in_trouble,
						     .skewed = net_skewed};
	const struct net_control_config control = {.base = &net->base,
						   .gate = net->gate,
						   .names = net->config.names,
						   .listen = net->setup.listen,
						   .port = net->setup.port};
	int rc = 0;

	if (!net->bulletin)
		rc = net_bulletin_new(&net->bulletin, &bulletin, err);
	return rc ? rc : net_control_new(&net->control, &control, err);
}

static int net_open_networked(struct net *net, struct iocom_err *err)
{
	const struct net_probes_config probes = {.base = &net->base,
						 .names = net->config.names,
						 .matrix = &net->matrix,
						 .trouble = net_in_trouble,
						 .arg = net};
	const struct timespec pause = {.tv_nsec = IN_USE_NS};
	int rc = net_listen(net, err);

	for (int i = 0; rc == -EADDRINUSE && i < IN_USE_TIMES; i++) {
		nanosleep(&pause, NULL);
		rc = net_listen(net, err);
	}
	if (!rc)
		rc = net_probes_new(&net->probes, &probes, err);
	if (rc || !net->setup.streams)
		return rc;
	rc = net_streams_new(&net->streams, &net->base, net->gate, net->streams_fd, err);
	net->streams_fd = -1;
	return rc;
}

static int net_open(struct net *net, struct iocom_err *err)
{
	int rc = net->setup.networked ? net_open_networked(net, err) : 0;

	if (!rc && net->setup.http) {
		const struct net_http_config http = {
			.listener = net->http_fd, .want = net_want_page, .arg = net};

		rc = net_http_new(&net->http, &http, err);
		net->http_fd = -1;
	}
	if (!rc && net->config.ready)
		rc = net->config.ready(net->config.arg, err);
	return rc;
}

static int net_set_up(struct net *net, struct iocom_err *err)
{
	int rc = gate_wait(net->gate, SETUP_MS);

	if (rc || !net->is_set_up)
		return iocom_err_set(err, rc ? rc : -EBADMSG,
				     "the network part was not set up: iocomd starts this program");
	net->log.level = (enum log_level)net->setup.log_level;
	net->log.systemd = net->setup.systemd;
	net->base.boot_id = net->setup.boot_id;
	matrix_init(&net->matrix, net->setup.name);
	rc = net_open(net, err);
	net->is_open = !rc;
	return rc;
}

static void net_tell_ready(struct net *net, int rc, const struct iocom_err *err)
{
	const struct gate_message m = {.type = GATE_READY, .ready = {.rc = rc}};
	size_t n = rc ? strnlen(err->text, GATE_SENTENCE_MAX) : 0;

	(void)gate_send(net->gate, &m, err->text, n, NULL);
}

int net_new(struct net **out, const struct net_config *config, struct iocom_err *err)
{
	struct net *net = calloc(1, sizeof(*net));
	const struct gate_config gate = {.loop = config->loop,
					 .side = GATE_TO_NET,
					 .fd = config->fd,
					 .received = net_received,
					 .broken = net_broken,
					 .arg = net};
	int rc;

	*out = NULL;
	if (!net) {
		close(config->fd);
		return iocom_err_set(err, -ENOMEM, "out of memory");
	}
	net->config = *config;
	net->streams_fd = net->http_fd = -1;
	log_init(&net->log, "iocom-net");
	loop_share_init(&net->shares, config->loop);
	net->base = (struct base){.loop = config->loop,
				  .log = &net->log,
				  .counters = &net->counters,
				  .complaints = &net->complaints,
				  .shares = &net->shares};
	net->want_page = (struct loop_post){.run = net_ask_page, .arg = net};
	rc = gate_new(&net->gate, &gate, err);
	if (!rc) {
		rc = net_set_up(net, err);
		net_tell_ready(net, rc, err);
	}
	if (rc) {
		net_free(net);
		return rc;
	}
	*out = net;
	return 0;
}

void net_free(struct net *net)
{
	if (!net)
		return;
	net_http_free(net->http);
	loop_unpost(net->config.loop, &net->want_page);
	net_probes_free(net->probes);
	net_streams_free(net->streams);
	net_control_free(net->control);
	net_bulletin_free(net->bulletin);
	if (net->streams_fd >= 0)
		close(net->streams_fd);
	if (net->http_fd >= 0)
		close(net->http_fd);
	gate_free(net->gate);
	matrix_fini(&net->matrix);
	free(net);
}
