/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * See bulletin.h.  A network part that starts again gets the key, and all places to dial, anew; it
 * asks for the publishers' keys itself.  What only the last one had heard of may have been a lie,
 * and is forgotten with it.
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
	struct dialed {
		struct gate_place at;
		bool heard; /* nobody but the network part says that there is a node */
	} dialed[BULLETIN_DIALED_MAX];
	size_t ndialed;
	unsigned asking; /* for keys */
};

static void bulletin_tell_epoch(struct bulletin *b)
{
	const struct gate_message m = {.type = GATE_EPOCH, .epoch = b->own};

	(void)net_part_send(b->config.net, &m, NULL, 0, NULL);
}

static void bulletin_tell_dial(struct bulletin *b, const struct gate_place *at)
{
	const struct gate_message m = {.type = GATE_DIAL, .place = *at};

	(void)net_part_send(b->config.net, &m, NULL, 0, NULL);
}

static void bulletin_up(void *arg)
{
	struct bulletin *b = arg;

	bulletin_tell_epoch(b);
	for (size_t i = 0; i < b->ndialed; i++)
		bulletin_tell_dial(b, &b->dialed[i].at);
}

static void bulletin_down(void *arg)
{
	struct bulletin *b = arg;
	size_t kept = 0;

	for (size_t i = 0; i < b->ndialed; i++)
		if (!b->dialed[i].heard)
			b->dialed[kept++] = b->dialed[i];
	b->ndialed = kept;
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

static void bulletin_dial_at(struct bulletin *b, const char *address, uint16_t port, bool heard)
{
	struct dialed new = {.at = {.port = port}, .heard = heard};

	snprintf(new.at.address, sizeof(new.at.address), "%s", address);
	for (size_t i = 0; i < b->ndialed; i++) {
		struct dialed *d = &b->dialed[i];

		if (d->at.port != port || strcmp(d->at.address, new.at.address) != 0)
			continue;
		d->heard = d->heard && heard;
		return;
	}
	if (b->ndialed == BULLETIN_DIALED_MAX) /* we know the others from relayed vectors */
		return;
	b->dialed[b->ndialed++] = new;
	bulletin_tell_dial(b, &new.at);
}

void bulletin_dial(struct bulletin *b, const char *address, uint16_t port)
{
	bulletin_dial_at(b, address, port, false);
}

void bulletin_dial_heard(struct bulletin *b, const char *address, uint16_t port)
{
	bulletin_dial_at(b, address, port, true);
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
