/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* See probe.h. */
#include "agent/cluster/probe.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "user/clock.h"
#include "user/frame.h"
#include "agent/cluster/tunnel.h"

struct probe {
	struct probes *probes;
	const struct settings_peer *peer;
	int fd; /* the answer comes here; -1: no probe is under way */
	struct loop_fd entry;
	uint64_t next_ns;
	unsigned wait_s;
	uint8_t answer[FRAME_HEADER + 600];
	size_t have;
	char said[400]; /* the sentence that the log has already */
};

struct probes {
	const struct base *base;
	const struct matrix *matrix;
	const struct tunnels *tunnels;
	size_t n;
	struct probe list[];
};

static bool probe_heard(const struct matrix *m, const struct settings_peer *peer)
{
	for (size_t i = 0; i < m->count; i++) {
		const struct matrix_entry *e = matrix_at(m, i);

		if (e->alive && e->vector.port == peer->port &&
		    !strcmp(e->vector.address, peer->address))
			return true;
	}
	return false;
}

static void probe_stop(struct probe *p)
{
	if (p->fd < 0)
		return;
	loop_remove(p->probes->base->loop, &p->entry);
	close(p->fd);
	p->fd = -1;
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
	p->next_ns = clock_boot_ns() + PROBE_SAID_S * CLOCK_NS_PER_S;
	if (!strcmp(text, p->said))
		return;
	strcpy(p->said, text);
	base->counters->peers_refused++;
	log_write(base->log, LOG_L_ERROR, "cannot speak to the peer at %s port %u: %s",
		  p->peer->address, p->peer->port, text);
}

static void probe_ready(void *arg, uint32_t what)
{
	struct probe *p = arg;
	ssize_t n = recv(p->fd, p->answer + p->have, sizeof(p->answer) - p->have, MSG_DONTWAIT);

	(void)what;
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n > 0) {
		p->have += (size_t)n;
		return;
	}
	probe_stop(p);
	probe_report(p);
}

static void probe_ask(struct probe *p)
{
	const struct base *base = p->probes->base;
	struct iocom_err err = {0};

	p->have = 0;
	if (tunnel_ask(p->probes->tunnels, p->peer, &p->fd, &err)) {
		log_write(base->log, LOG_L_WARNING, "%s", err.text);
		return;
	}
	p->entry = (struct loop_fd){.fd = p->fd, .ready = probe_ready, .arg = p};
	if (loop_add(base->loop, &p->entry, EPOLLIN)) {
		close(p->fd);
		p->fd = -1;
	}
}

void probes_run(struct probes *probes)
{
	uint64_t now = clock_boot_ns();

	for (size_t i = 0; i < probes->n; i++) {
		struct probe *p = &probes->list[i];

		if (p->fd >= 0 || now < p->next_ns)
			continue;
		if (probe_heard(probes->matrix, p->peer)) {
			p->said[0] = 0;
			p->wait_s = PROBE_FIRST_S;
			p->next_ns = now + p->wait_s * CLOCK_NS_PER_S;
			continue;
		}
		p->wait_s = 2 * p->wait_s < PROBE_AGAIN_S ? 2 * p->wait_s : PROBE_AGAIN_S;
		p->next_ns = now + p->wait_s * CLOCK_NS_PER_S;
		probe_ask(p);
		return;
	}
}

int probes_new(struct probes **out, const struct base *base, const struct matrix *matrix,
	       const struct tunnels *tunnels, struct iocom_err *err)
{
	const struct settings *set = base->set;
	struct probes *probes = calloc(1, sizeof(*probes) + set->npeers * sizeof(struct probe));

	if (!probes)
		return iocom_err_set(err, -ENOMEM, "out of memory");
	probes->base = base;
	probes->matrix = matrix;
	probes->tunnels = tunnels;
	for (size_t i = 0; i < set->npeers; i++) {
		const struct settings_peer *peer = &set->peers[i];

		if (settings_is_self(set, peer))
			continue;
		probes->list[probes->n++] = (struct probe){
			.probes = probes,
			.peer = peer,
			.fd = -1,
			.wait_s = PROBE_FIRST_S,
			.next_ns = clock_boot_ns() + PROBE_FIRST_S * CLOCK_NS_PER_S,
		};
	}
	*out = probes;
	return 0;
}

void probes_free(struct probes *probes)
{
	for (size_t i = 0; probes && i < probes->n; i++)
		probe_stop(&probes->list[i]);
	free(probes);
}
