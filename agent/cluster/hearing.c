/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* See hearing.h. */
#include "agent/cluster/hearing.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "balancer/gossip/gossip.h"
#include "user/clock.h"

/* A plan as it is made. */
struct hearing_work {
	struct hearing *h;
	uint64_t now;
	struct gossip_node *nodes;
	struct matrix_entry **entries; /* of `nodes` */
	size_t n, alive, begins;       /* begins: dialled, and not heard yet */
	struct gate_place *places;
	size_t nplaces;
};

static uint64_t hearing_period_ns(const struct matrix_entry *e)
{
	return e->vector.period_ms * CLOCK_NS_PER_MS;
}

/* Returns true if E may be planned for: it is there, or was until lately. */
static bool hearing_counts(const struct matrix_entry *e, uint64_t now)
{
	return e->vector.address[0] && !e->doubted &&
	       (e->alive || (!e->left && matrix_age_ns(e, now) <= HEARING_LOST_NS));
}

static void hearing_look(struct hearing_work *w)
{
	for (size_t i = 0; i < w->h->matrix->count; i++) {
		struct matrix_entry *e = w->h->matrix->entries[i];
		bool mute;

		if (!hearing_counts(e, w->now)) {
			(void)gossip_tie_set(&e->tie, false, w->now);
			continue;
		}
		mute = gossip_tie_is_mute(&e->tie, w->now, hearing_period_ns(e));
		w->alive += e->alive;
		w->begins += e->alive && e->tie.on && !mute && !gossip_tie_brings(&e->tie);
		w->entries[w->n] = e;
		w->nodes[w->n++] =
			(struct gossip_node){.place = e->place,
					     .alive = e->alive,
					     .mute = mute,
					     .tied = e->tie.on && !mute,
					     .heard = gossip_tie_brings(&e->tie) && !mute};
	}
}

static void hearing_add(struct hearing_work *w, const char *address, uint16_t port)
{
	struct gate_place *at = &w->places[w->nplaces++];

	*at = (struct gate_place){.port = port};
	snprintf(at->address, sizeof(at->address), "%s", address);
}

/*
 * Whether E, which is chosen, may be dialled now.  Each that is must be greeted, by both munged: if
 * a large cluster starts at once, or parts, the greetings of all nodes must not come at once.
 */
static bool hearing_may_begin(struct hearing_work *w, const struct matrix_entry *e)
{
	if (e->tie.on || !e->alive || w->alive < GOSSIP_DIRECT)
		return true;
	return w->begins++ < HEARING_BEGINS;
}

static void hearing_choose(struct hearing_work *w)
{
	const struct gossip_place *self = &w->h->matrix->place;

	(void)gossip_plan(self, w->nodes, w->n, w->h->turn++);
	for (size_t k = 0; k < w->n; k++) {
		size_t i = (k + self->draw) % w->n; /* each begins with others */
		struct matrix_entry *e = w->entries[i];
		bool on = w->nodes[i].chosen && hearing_may_begin(w, e);

		(void)gossip_tie_set(&e->tie, on, w->now);
		if (on)
			hearing_add(w, e->vector.address, e->vector.port);
	}
}

static void hearing_add_configured(struct hearing_work *w)
{
	const struct peer_states *states = w->h->states;

	for (size_t i = 0; i < states->count; i++) {
		const struct peer_state *p = &states->all[i];
		const struct matrix_entry *e = *p->node ? matrix_find(w->h->matrix, p->node) : NULL;

		if (w->alive < GOSSIP_DIRECT || !e || !e->alive || e->doubted)
			hearing_add(w, p->at.address, p->at.port);
	}
}

/* Returns true if others know of who asked, or it was never heard. */
static bool hearing_is_over(const struct hearing *h, const struct hearing_asked *asked,
			    uint64_t now)
{
	const struct matrix_entry *e = matrix_find(h->matrix, asked->node);

	return now >= asked->until_ns ||
	       (e && e->alive && !e->doubted &&
		now - e->turned_ns >= HEARING_ASKED_PERIODS * hearing_period_ns(e));
}

static void hearing_add_asked(struct hearing_work *w)
{
	struct hearing *h = w->h;
	size_t kept = 0;

	for (size_t i = 0; i < h->nasked; i++) {
		if (hearing_is_over(h, &h->asked[i], w->now))
			continue;
		hearing_add(w, h->asked[i].at.address, h->asked[i].at.port);
		h->asked[kept++] = h->asked[i];
	}
	h->nasked = kept;
}

/* Who comes first if not all can be dialled: 0 brings something, 1 may, 2 does not. */
static int hearing_rank(const struct matrix_entry *e, uint64_t now)
{
	return now < e->tie.mute_until_ns ? 2 : e->tie.heard_ns ? 0 : 1;
}

/*
 * Somebody tells of more nodes in this one's slice than can be dialled, and perhaps of none that
 * are: configured peers and who asked come first, then those that are heard.
 */
static void hearing_bound(struct hearing_work *w)
{
	size_t tied = 0;

	if (w->nplaces <= BULLETIN_DIALED_MAX)
		return;
	for (size_t i = 0; i < w->n; i++)
		tied += w->entries[i]->tie.on;
	w->nplaces -= tied;
	memmove(w->places, w->places + tied, w->nplaces * sizeof(*w->places));
	for (int rank = 0; rank <= 2; rank++)
		for (size_t i = 0; i < w->n && w->nplaces < BULLETIN_DIALED_MAX; i++) {
			const struct matrix_entry *e = w->entries[i];

			if (e->tie.on && hearing_rank(e, w->now) == rank)
				hearing_add(w, e->vector.address, e->vector.port);
		}
}

void hearing_plan(struct hearing *h)
{
	struct hearing_work w = {.h = h, .now = loop_boot_ns(h->base->loop)};
	size_t room = h->matrix->count + 1;

	if (!h->bulletin || !h->dials)
		return;
	w.nodes = malloc(room * sizeof(*w.nodes));
	w.entries = malloc(room * sizeof(*w.entries));
	w.places = malloc((room + SETTINGS_PEERS_MAX + HEARING_ASKED_MAX) * sizeof(*w.places));
	if (w.nodes && w.entries && w.places) {
		hearing_look(&w);
		hearing_choose(&w);
		hearing_add_configured(&w);
		hearing_add_asked(&w);
		hearing_bound(&w);
		bulletin_want(h->bulletin, w.places, w.nplaces);
	}
	free(w.nodes);
	free(w.entries);
	free(w.places);
}

void hearing_ask(struct hearing *h, const char *name, const struct gate_place *at)
{
	const uint64_t until = loop_boot_ns(h->base->loop) + HEARING_ASKED_NS;
	const struct matrix_entry *e = matrix_find(h->matrix, name);

	if (e && e->alive && !e->doubted && h->matrix->count > GOSSIP_DIRECT)
		return;
	for (size_t i = 0; i < h->nasked; i++)
		if (gate_place_is(&h->asked[i].at, at->address, at->port)) {
			h->asked[i].until_ns = until;
			return;
		}
	if (h->nasked == HEARING_ASKED_MAX) {
		h->base->counters->hellos_refused++;
		return;
	}
	h->asked[h->nasked] = (struct hearing_asked){.at = *at, .until_ns = until};
	snprintf(h->asked[h->nasked++].node, IOCOM_NAME_MAX, "%s", name);
	bulletin_dial(h->bulletin, at);
}

void hearing_heard(struct hearing *h, const char *name)
{
	struct matrix_entry *e = matrix_entry_of(h->matrix, name);

	if (e)
		e->tie.heard_ns = loop_boot_ns(h->base->loop);
}

void hearing_joined(struct hearing *h)
{
	if (h->matrix->count <= GOSSIP_DIRECT)
		hearing_plan(h);
}

void hearing_lost(struct hearing *h)
{
	for (size_t i = 0; i < h->matrix->count; i++)
		(void)gossip_tie_set(&h->matrix->entries[i]->tie, false,
				     loop_boot_ns(h->base->loop));
}
