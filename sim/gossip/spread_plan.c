/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Who hears whom: balancer/gossip/'s plan, or the one that it is compared with; see spread.h. */
#include "sim/gossip/spread.h"

#define ASKED_PERIODS  30u
#define AGAIN_PERIODS  32u /* a plan is made again at least so often: nodes are forgotten */
#define ROTATE_PERIODS 30u /* GOSSIP_FRESHEST: after so many one subscription is given up */
#define TRIES	       64u /* to draw a node that is not heard yet */

void spread_hello(struct spread *s, uint32_t self, uint32_t now)
{
	for (uint32_t p = 0; p < s->setup->peers && p < s->n; p++) {
		uint32_t at = s->by_number[p];
		struct spread_node *peer = &s->nodes[at];
		struct spread_tie *tie;

		if (at == self || !peer->up || !spread_is_alive(s, self, at, now) ||
		    (s->parted && peer->other_half != s->nodes[self].other_half) ||
		    spread_is_alive(s, at, self, now))
			continue;
		spread_tie_set(s, at, self, true, now);
		peer->replan = true;
		tie = spread_tie_find(peer, self);
		if (tie)
			tie->asked_until = now + ASKED_PERIODS * SPREAD_PERIOD_MS;
	}
}

/* When a bulletin came last by TIE, which is on. */
static uint64_t spread_heard_ns(const struct spread *s, uint32_t self, struct spread_tie *tie)
{
	const struct spread_node *other = &s->nodes[tie->who];

	if (tie->ear >= other->nears || other->ears[tie->ear].who != self)
		for (tie->ear = 0; tie->ear + 1 < other->nears; tie->ear++)
			if (other->ears[tie->ear].who == self)
				break;
	return other->ears[tie->ear].heard * SPREAD_NS_PER_MS;
}

/* Looks which nodes that SELF hears bring nothing. */
static void spread_check_ties(struct spread *s, uint32_t self, uint32_t now)
{
	struct spread_node *node = &s->nodes[self];
	const uint32_t *made = spread_row(s, self);

	node->mute = 0;
	for (size_t i = 0; i < node->nties; i++) {
		struct spread_tie *tie = &node->ties[i];
		bool mute;

		if (tie->tie.on)
			tie->tie.heard_ns = spread_heard_ns(s, self, tie);
		mute = made[tie->who] && gossip_tie_is_mute(&tie->tie, now * SPREAD_NS_PER_MS,
							    SPREAD_PERIOD_MS * SPREAD_NS_PER_MS);
		if (mute != tie->mute || (tie->asked_until && now >= tie->asked_until))
			node->replan = true;
		if (now >= tie->asked_until)
			tie->asked_until = 0;
		tie->mute = mute;
		node->mute += mute || tie->asked_until;
	}
}

/* Returns true if a node that is not alive is to be heard all the same: when it comes. */
static bool spread_is_awaited(const struct spread *s, const struct spread_tie *tie)
{
	return s->nodes[tie->who].peer || tie->asked_until;
}

/* Looks for slices that none of the N nodes in the plan keeps. */
static void spread_find_orphans(const struct spread *s, struct spread_node *node, size_t n)
{
	gossip_keepers_init(&node->keepers, &node->place, node->alive);
	for (size_t i = 0; i < n; i++)
		if (s->plan[i].alive)
			gossip_keepers_add(&node->keepers, &s->plan[i].place);
	node->orphans = false;
	for (size_t i = 0; i < n && !node->orphans; i++)
		node->orphans = gossip_is_orphan(&node->keepers, &s->plan[i].place);
}

static void spread_plan_slices(struct spread *s, uint32_t self, uint32_t now)
{
	struct spread_node *node = &s->nodes[self];
	const uint32_t *made = spread_row(s, self);
	const struct spread_tie *tie;
	size_t n = 0, at = 0;

	for (uint32_t j = 0; j < s->n; j++) {
		if (j == self || now - made[j] > SPREAD_LOST * SPREAD_PERIOD_MS)
			continue;
		while (at < node->nties && node->ties[at].who < j)
			at++;
		s->told[n] = j;
		tie = at < node->nties && node->ties[at].who == j ? &node->ties[at] : NULL;
		s->plan[n++] = (struct gossip_node){.place = s->nodes[j].place,
						    .alive = now - made[j] <= s->silent_ms,
						    .mute = tie && tie->mute,
						    .tied = tie && tie->tie.on && !tie->mute,
						    .heard = tie && gossip_tie_brings(&tie->tie) &&
							     !tie->mute};
	}
	spread_find_orphans(s, node, n);
	(void)gossip_plan(&node->place, s->plan, n, now / SPREAD_PERIOD_MS + node->number);
	for (size_t i = 0; i < n; i++)
		if (s->plan[i].chosen)
			spread_tie_set(s, self, s->told[i], true, now);
	for (size_t i = 0, at = 0; i < n; i++) { /* both are in the order of the nodes */
		while (at < node->nties && node->ties[at].who < s->told[i])
			at++;
		if (at == node->nties)
			break;
		if (node->ties[at].who == s->told[i] && !s->plan[i].chosen)
			spread_tie_set(s, self, s->told[i],
				       !s->plan[i].alive && spread_is_awaited(s, &node->ties[at]),
				       now);
	}
}

/* Gives up who brings nothing, and one in turn; hears others, drawn from all that it has heard of,
 * instead. */
static void spread_plan_freshest(struct spread *s, uint32_t self, uint32_t now)
{
	struct spread_node *node = &s->nodes[self];
	bool rotate = (now / SPREAD_PERIOD_MS + node->number) % ROTATE_PERIODS == 0;
	const uint32_t *made = spread_row(s, self);
	size_t oldest = 0;

	for (size_t i = 0; i < node->nties; i++) {
		struct spread_tie *tie = &node->ties[i];

		if (tie->mute)
			spread_tie_set(s, self, tie->who, false, now);
		if (tie->tie.on && (!node->ties[oldest].tie.on ||
				    tie->tie.since_ns < node->ties[oldest].tie.since_ns))
			oldest = i;
	}
	if (rotate && node->on >= s->setup->hear)
		spread_tie_set(s, self, node->ties[oldest].who, false, now);
	for (uint32_t i = 0; i < TRIES && node->on < s->setup->hear; i++) {
		uint32_t j = (uint32_t)sim_random_integer(&s->random, 0, s->n - 1);
		const struct spread_tie *tie = spread_tie_find(node, j);

		if (j != self && now - made[j] <= SPREAD_LOST * SPREAD_PERIOD_MS &&
		    (!tie || (!tie->mute && !tie->tie.on)))
			spread_tie_set(s, self, j, true, now);
	}
}

/* The configured peers that are not there (GOSSIP_FRESHEST: not known) are dialled until they are.
 */
static void spread_plan_peers(struct spread *s, uint32_t self, uint32_t now)
{
	for (uint32_t p = 0; p < s->setup->peers && p < s->n; p++) {
		uint32_t at = s->by_number[p];
		bool there = s->setup->plan == GOSSIP_FRESHEST ? spread_row(s, self)[at] != 0
							       : spread_is_alive(s, self, at, now);

		if (at != self && !there)
			spread_tie_set(s, self, at, true, now);
	}
}

void spread_plan(struct spread *s, uint32_t self, uint32_t now)
{
	struct spread_node *node = &s->nodes[self];
	uint32_t alive = spread_count(s, self, now) + 1;

	/* Each that it hears publishes once between two plans. */
	if (node->replan || node->mute || node->heard != node->on)
		spread_check_ties(s, self, now);
	node->heard = 0;
	/* Who comes sets replan: the same number is the same nodes. */
	if (alive != node->alive || (now / SPREAD_PERIOD_MS + node->number) % AGAIN_PERIODS == 0)
		node->replan = true;
	node->alive = alive;
	if (s->setup->plan == GOSSIP_FRESHEST)
		spread_plan_freshest(s, self, now);
	else if (node->replan)
		spread_plan_slices(s, self, now);
	spread_plan_peers(s, self, now);
	node->replan = false;
	if (s->measures)
		s->ties += node->on;
}
