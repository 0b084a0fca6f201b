/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* See gossip.h. */
#include "balancer/gossip/gossip.h"

/* Mixes the bits of X; the constants are those of MurmurHash3's last step. */
static uint64_t gossip_mix(uint64_t x)
{
	x ^= x >> 33;
	x *= 0xff51afd7ed558ccdull;
	x ^= x >> 33;
	x *= 0xc4ceb9fe1a85ec53ull;
	return x ^ (x >> 33);
}

struct gossip_place gossip_place(const char *name)
{
	uint64_t hash = 0xcbf29ce484222325ull; /* FNV-1a */

	for (; *name; name++)
		hash = (hash ^ (unsigned char)*name) * 0x100000001b3ull;
	return (struct gossip_place){.slice = (uint32_t)gossip_mix(hash),
				     .keeps = (uint32_t)gossip_mix(hash + 1),
				     .draw = (uint32_t)gossip_mix(hash + 2)};
}

unsigned gossip_slices(size_t nodes)
{
	unsigned slices = 1;

	if (nodes <= GOSSIP_DIRECT)
		return 1;
	while (slices < GOSSIP_SLICES_MAX && (size_t)slices * GOSSIP_SLICE_NODES < nodes &&
	       (size_t)slices * slices < 2 * nodes)
		slices *= 2;
	return slices;
}

unsigned gossip_slices_kept(size_t nodes)
{
	return gossip_slices((size_t)((double)nodes / GOSSIP_LAG));
}

/* The plan as it is made. */
struct gossip_choice {
	const struct gossip_place *self;
	struct gossip_node *nodes;
	size_t n, chosen;
	unsigned slices;
	bool covered[GOSSIP_SLICES_MAX];
	/* The keepers of a slice that come first by lot, plus one: of all, and of those heard. */
	struct gossip_first {
		size_t best;
		uint32_t draw;
		bool tied;
	} first[GOSSIP_SLICES_MAX], heard[GOSSIP_SLICES_MAX];
	uint32_t turn;
};

static void gossip_choose(struct gossip_choice *c, struct gossip_node *node)
{
	if (!node->chosen)
		c->chosen++;
	node->chosen = true;
	if (node->alive && !node->mute)
		c->covered[node->place.keeps % c->slices] = true;
}

/* All that belong to the slice that this node keeps.  Other keepers of it are heard as well: they
 * may know of nodes that this one has never heard of. */
static void gossip_choose_own(struct gossip_choice *c, unsigned kept)
{
	for (size_t i = 0; i < c->n; i++)
		if (gossip_tells(c->self, &c->nodes[i].place, kept))
			gossip_choose(c, &c->nodes[i]);
}

/* Whether the node of such a DRAW comes before FIRST: those that were chosen before do, and are
 * given up only in SLICE's turn. */
static bool gossip_is_before(const struct gossip_choice *c, const struct gossip_first *first,
			     unsigned slice, uint32_t draw, bool tied)
{
	if (!first->best)
		return true;
	if (first->tied != tied && slice != c->turn % c->slices)
		return tied;
	return draw < first->draw;
}

static void gossip_draw(struct gossip_choice *c, size_t i)
{
	const struct gossip_node *node = &c->nodes[i];
	unsigned slice = node->place.keeps % c->slices;
	const struct gossip_first me = {
		.best = i + 1,
		.draw = (uint32_t)gossip_mix((uint64_t)c->self->draw << 32 | node->place.draw),
		.tied = node->tied};

	if (!node->alive || node->mute || c->covered[slice])
		return;
	if (gossip_is_before(c, &c->first[slice], slice, me.draw, me.tied))
		c->first[slice] = me;
	if (node->heard && (!c->heard[slice].best || me.draw < c->heard[slice].draw))
		c->heard[slice] = me;
}

/* For each slice that is not covered, the keeper that comes first, and until that is heard one that
 * is. */
static void gossip_choose_keepers(struct gossip_choice *c)
{
	for (size_t i = 0; i < c->n; i++)
		gossip_draw(c, i);
	for (unsigned slice = 0; slice < c->slices; slice++) {
		if (c->first[slice].best)
			gossip_choose(c, &c->nodes[c->first[slice].best - 1]);
		if (c->heard[slice].best)
			gossip_choose(c, &c->nodes[c->heard[slice].best - 1]);
	}
}

/* The nodes of slices that are still not covered; who is not alive is told of by nobody, later. */
static void gossip_choose_orphans(struct gossip_choice *c)
{
	bool orphans[GOSSIP_SLICES_MAX];

	for (unsigned slice = 0; slice < c->slices; slice++)
		orphans[slice] = !c->covered[slice];
	for (size_t i = 0; i < c->n; i++)
		if (orphans[c->nodes[i].place.slice % c->slices])
			gossip_choose(c, &c->nodes[i]);
}

size_t gossip_plan(const struct gossip_place *self, struct gossip_node *nodes, size_t n,
		   uint32_t turn)
{
	struct gossip_choice c = {.self = self, .nodes = nodes, .n = n, .turn = turn};
	size_t alive = 1;

	for (size_t i = 0; i < n; i++) {
		nodes[i].chosen = false;
		alive += nodes[i].alive;
	}
	c.slices = gossip_slices(alive);
	gossip_choose_own(&c, c.slices == 1 ? 1 : gossip_slices_kept(alive));
	if (c.slices > 1) {
		gossip_choose_keepers(&c);
		gossip_choose_orphans(&c);
	}
	return c.chosen;
}

/* --- ties ----------------------------------------------------------------------------- */

bool gossip_tie_is_mute(struct gossip_tie *tie, uint64_t now, uint64_t period)
{
	bool came = tie->heard_ns > tie->since_ns;
	uint64_t last = came ? tie->heard_ns : tie->since_ns;
	uint64_t patience = (came ? GOSSIP_MUTE_PERIODS : GOSSIP_MUTE_FIRST) * period;

	if (came && now - last <= patience)
		tie->mute_until_ns = 0;
	else if (tie->on && now - last > patience)
		tie->mute_until_ns = now + GOSSIP_MUTE_FOR * period;
	return now < tie->mute_until_ns;
}

bool gossip_tie_set(struct gossip_tie *tie, bool on, uint64_t now)
{
	if (tie->on == on)
		return false;
	tie->on = on;
	tie->since_ns = on ? now : 0;
	tie->heard_ns = 0;
	return true;
}

/* --- the freshest --------------------------------------------------------------------- */

static void gossip_swap(struct gossip_item *a, struct gossip_item *b)
{
	struct gossip_item other = *a;

	*a = *b;
	*b = other;
}

/* Quickselect (Hoare): afterwards none of the first MAX is older than any of the others. */
size_t gossip_freshest(struct gossip_item *items, size_t n, size_t max)
{
	ptrdiff_t low = 0, high = (ptrdiff_t)n - 1, last = (ptrdiff_t)max - 1;

	if (n <= max)
		return n;
	while (low < high && last >= 0) {
		uint64_t pivot = items[low + (high - low) / 2].heard_ns;
		ptrdiff_t i = low, j = high;

		while (i <= j) {
			while (items[i].heard_ns > pivot)
				i++;
			while (items[j].heard_ns < pivot)
				j--;
			if (i <= j)
				gossip_swap(&items[i++], &items[j--]);
		}
		if (last <= j)
			high = j;
		else if (last >= i)
			low = i;
		else
			break;
	}
	return max;
}
