/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * See bulletin.h.  A network part that starts again gets the key anew, and the places to dial by
 * the next plan (hearing.h); it asks for the publishers' keys itself.
 */
#include "agent/cluster/bulletin.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "user/clock.h"

struct bulletin {
	struct bulletin_config config;
	struct net_watch watch;
	struct bulletin_key own;
	uint64_t own_since_ns;
	struct gate_place dialed[BULLETIN_DIALED_MAX]; /* sorted */
	size_t ndialed;
	unsigned asking; /* for keys */
};

static void bulletin_tell_epoch(struct bulletin *b)
{
	const struct gate_message m = {.type = GATE_EPOCH, .epoch = b->own};

	(void)net_part_send(b->config.net, &m, NULL, 0, NULL);
}

/* TYPE: GATE_DIAL or GATE_UNDIAL. */
static void bulletin_tell_place(struct bulletin *b, enum gate_type type,
				const struct gate_place *at)
{
	const struct gate_message m = {.type = type, .place = *at};

	(void)net_part_send(b->config.net, &m, NULL, 0, NULL);
}

static void bulletin_up(void *arg)
{
	bulletin_tell_epoch(arg);
}

static void bulletin_down(void *arg)
{
	struct bulletin *b = arg;

	b->ndialed = 0;
}

static void bulletin_tell_key(struct bulletin *b, const struct gate_place *at, const char *from,
			      const struct bulletin_key *key)
{
	struct gate_message m = {.type = GATE_PUBLISHER_KEY, .publisher = {.at = *at}};

	m.publisher.given = key != NULL;
	if (key) {
		m.publisher.key = *key;
		snprintf(m.publisher.node, sizeof(m.publisher.node), "%s", from);
	}
	(void)net_part_send(b->config.net, &m, NULL, 0, NULL);
	explicit_bzero(&m, sizeof(m));
}

static void bulletin_asked_key(void *arg, const struct gate_message *m, uint8_t *tail, size_t n,
			       const int *fds)
{
	struct bulletin *b = arg;

	(void)tail;
	(void)n;
	(void)fds;
	if (b->asking >= BULLETIN_KEYS_MAX) {
		b->config.counters->keys_refused++;
		bulletin_tell_key(b, &m->place, "", NULL);
		return;
	}
	b->asking++;
	b->config.ask_key(b->config.arg, &m->place);
}

static void bulletin_new_epoch(struct bulletin *b)
{
	bulletin_epoch(&b->own);
	b->own_since_ns = loop_boot_ns(b->config.loop);
}

int bulletin_new(struct bulletin **out, const struct bulletin_config *config, struct iocom_err *err)
{
	struct bulletin *b = calloc(1, sizeof(*b));

	if (!b)
		return iocom_err_set(err, -ENOMEM, "out of memory");
	b->config = *config;
	bulletin_new_epoch(b);
	net_part_serve(config->net, GATE_ASK_KEY, bulletin_asked_key, b);
	b->watch = (struct net_watch){.up = bulletin_up, .down = bulletin_down, .arg = b};
	net_part_watch(config->net, &b->watch);
	*out = b;
	return 0;
}

void bulletin_free(struct bulletin *b)
{
	if (!b)
		return;
	net_part_unwatch(b->config.net, &b->watch);
	net_part_serve(b->config.net, GATE_ASK_KEY, NULL, NULL);
	explicit_bzero(b, sizeof(*b));
	free(b);
}

static int bulletin_by_place(const void *a, const void *b)
{
	const struct gate_place *x = a, *y = b;

	return x->port != y->port ? (x->port < y->port ? -1 : 1) : strcmp(x->address, y->address);
}

static size_t bulletin_unique(struct gate_place *places, size_t n)
{
	size_t kept = 0;

	qsort(places, n, sizeof(*places), bulletin_by_place);
	for (size_t i = 0; i < n; i++)
		if (!kept || bulletin_by_place(&places[kept - 1], &places[i]))
			places[kept++] = places[i];
	return kept;
}

/* Tells of those of the N in LIST that are not among the M in OTHERS; both are sorted. */
static void bulletin_tell_change(struct bulletin *b, enum gate_type type,
				 const struct gate_place *list, size_t n,
				 const struct gate_place *others, size_t m)
{
	for (size_t i = 0; i < n; i++)
		if (!m || !bsearch(&list[i], others, m, sizeof(*others), bulletin_by_place))
			bulletin_tell_place(b, type, &list[i]);
}

void bulletin_want(struct bulletin *b, struct gate_place *places, size_t n)
{
	if (!net_part_is_up(b->config.net))
		return;
	n = bulletin_unique(places, n);
	if (n > BULLETIN_DIALED_MAX)
		n = BULLETIN_DIALED_MAX;
	bulletin_tell_change(b, GATE_UNDIAL, b->dialed, b->ndialed, places, n);
	bulletin_tell_change(b, GATE_DIAL, places, n, b->dialed, b->ndialed);
	memcpy(b->dialed, places, n * sizeof(*places));
	b->ndialed = n;
}

void bulletin_dial(struct bulletin *b, const struct gate_place *at)
{
	struct gate_place places[BULLETIN_DIALED_MAX + 1];

	memcpy(places, b->dialed, b->ndialed * sizeof(*places));
	places[b->ndialed] = *at;
	bulletin_want(b, places, b->ndialed + 1);
}

/*
 * The number of each bulletin is used up here, whether or not the network part sends it: a key that
 * is given away names the next one.
 */
void bulletin_publish(struct bulletin *b, const struct iocom_vector *own)
{
	struct gate_message m = {.type = GATE_PUBLISH, .publish = *own};

	if (loop_boot_ns(b->config.loop) - b->own_since_ns >= BULLETIN_EPOCH_S * CLOCK_NS_PER_S) {
		bulletin_new_epoch(b);
		bulletin_tell_epoch(b);
	}
	if (!net_part_send(b->config.net, &m, NULL, 0, NULL))
		b->own.next++;
}

size_t bulletin_asking(const struct bulletin *b)
{
	return b ? b->asking : 0;
}

void bulletin_own_key(const struct bulletin *b, struct bulletin_key *key)
{
	*key = b->own;
}

void bulletin_key(struct bulletin *b, const struct gate_place *at, const char *from,
		  const struct bulletin_key *key)
{
	b->asking--;
	bulletin_tell_key(b, at, from, key);
}
