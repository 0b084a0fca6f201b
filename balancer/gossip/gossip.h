/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Who hears whom, and who tells of whom: the plan by which bulletins reach every node of a large
 * cluster.  No sockets, no clock: the agent and `iocom-sim gossip` use the same object.
 *
 * Up to GOSSIP_DIRECT nodes each hears all others, and tells of all others.  Of more, a hash of its
 * name puts each node into one of S slices, and another hash gives it one slice to keep:
 *
 *   a keeper   hears each node of its slice directly, and tells of these in its bulletins
 *   each node  hears, beside those of the slice that it keeps, one keeper of each slice
 *   newcomers  are told of by everybody for GOSSIP_NEWS_PERIODS, whatever their slice is
 *
 * so that every node is at most two bulletins away and comes about once, while a bulletin has N/S
 * vectors.  With S about sqrt(2 N) a node hears of all others by sqrt(2 N) bulletins a period,
 * from nodes that differ for each.  In clusters of some hundreds slices of GOSSIP_SLICE_NODES do
 * with half as many: those that a node hears for its own slice keep most of the others.  The nodes
 * of a slice that nobody keeps are heard directly, and told of, by everybody.
 *
 * Nodes may differ in N.  A keeper goes by GOSSIP_LAG times fewer nodes than it knows, so that the
 * slice that it tells of is the one that others expect, or twice as large.
 */
#ifndef IOCOM_GOSSIP_H
#define IOCOM_GOSSIP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GOSSIP_DIRECT	   16
#define GOSSIP_SLICE_NODES 16
#define GOSSIP_SLICES_MAX  256
#define GOSSIP_LAG	   1.3

/* What a name's hashes say; a slice is such a number modulo the number of slices. */
struct gossip_place {
	uint32_t slice; /* where it belongs */
	uint32_t keeps; /* of which it tells */
	uint32_t draw;	/* for the choice between keepers */
};

/* NAME's place. */
struct gossip_place gossip_place(const char *name);
/* The number of slices in a cluster of NODES, this one counted: a power of two; 1: no slices. */
unsigned gossip_slices(size_t nodes);
/* The same for what a node itself tells of. */
unsigned gossip_slices_kept(size_t nodes);
/* Returns true if a node at KEEPER, which counts SLICES, tells of one at PLACE. */
static inline bool gossip_tells(const struct gossip_place *keeper, const struct gossip_place *place,
				unsigned slices)
{
	return keeper->keeps % slices == place->slice % slices;
}

/* Which slices are kept by one of the nodes that count as there. */
struct gossip_keepers {
	unsigned slices;
	bool kept[GOSSIP_SLICES_MAX];
};

/* For what the node at SELF tells of in a cluster of NODES; then all others are added. */
static inline void gossip_keepers_init(struct gossip_keepers *k, const struct gossip_place *self,
				       size_t nodes)
{
	*k = (struct gossip_keepers){.slices = gossip_slices_kept(nodes)};
	k->kept[self->keeps % k->slices] = true;
}

static inline void gossip_keepers_add(struct gossip_keepers *k, const struct gossip_place *place)
{
	k->kept[place->keeps % k->slices] = true;
}

/* Returns true if nobody keeps the slice of PLACE: then everybody tells of it. */
static inline bool gossip_is_orphan(const struct gossip_keepers *k,
				    const struct gossip_place *place)
{
	return !k->kept[place->slice % k->slices];
}

/* A node is news until so long after it was heard of, for the first time or again. */
#define GOSSIP_NEWS_PERIODS 1
#define GOSSIP_NEWS_MAX	    12 /* in a bulletin */

static inline bool gossip_is_news(uint64_t since_ns, uint64_t now_ns, uint64_t period_ns)
{
	return now_ns - since_ns < GOSSIP_NEWS_PERIODS * period_ns;
}

/* A node that may be heard directly. */
struct gossip_node {
	struct gossip_place place;
	bool alive;
	bool mute;   /* it is being dialled, but its bulletins do not come */
	bool tied;   /* it was chosen before, and is not mute */
	bool heard;  /* and its bulletins come */
	bool chosen; /* the answer */
};

/*
 * Chooses which of N nodes the node at SELF hears directly.  One that is not alive is chosen only
 * if nobody else would tell of it when it comes back.  Returns how many are chosen.
 *
 * Keepers that are heard stay: a cluster that starts must not choose anew with each node that
 * comes, because whoever is chosen must be greeted.  Only of one slice, by TURN, which grows from
 * plan to plan, the one that comes first by lot is chosen as well; once that is heard it replaces
 * the other, so that the first nodes of a cluster do not carry it for good.
 */
size_t gossip_plan(const struct gossip_place *self, struct gossip_node *nodes, size_t n,
		   uint32_t turn);

/* That this node hears, or heard, another directly.  Times are of any clock, 0: never. */
struct gossip_tie {
	uint64_t since_ns;	/* when it was dialled */
	uint64_t heard_ns;	/* when a bulletin of it came */
	uint64_t mute_until_ns; /* no bulletin came in GOSSIP_MUTE_PERIODS (the first:
				   GOSSIP_MUTE_FIRST): it is passed over so long */
	bool on;
};

#define GOSSIP_MUTE_PERIODS 2
#define GOSSIP_MUTE_FIRST   8  /* the first bulletin may take so long: its key is asked for */
#define GOSSIP_MUTE_FOR	    60 /* periods */

/* Returns true if TIE brings nothing, and notes that. */
bool gossip_tie_is_mute(struct gossip_tie *tie, uint64_t now_ns, uint64_t period_ns);
/* Returns true if bulletins have come by TIE since it was dialled. */
static inline bool gossip_tie_brings(const struct gossip_tie *tie)
{
	return tie->on && tie->heard_ns > tie->since_ns;
}

/* The plan wants the node to be heard, or not.  Returns true if that is new. */
bool gossip_tie_set(struct gossip_tie *tie, bool on, uint64_t now_ns);

/* The node is there again, after it was gone. */
static inline void gossip_tie_again(struct gossip_tie *tie)
{
	tie->mute_until_ns = 0;
}

/* One that a bulletin may tell of. */
struct gossip_item {
	uint64_t heard_ns; /* or any time that grows with freshness */
	const void *what;
};
/* Moves the MAX freshest of N items to the front, in no order.  Returns min(MAX, N). */
size_t gossip_freshest(struct gossip_item *items, size_t n, size_t max);

#endif
