/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The nodes of gossip_run.h while they are calculated: what each knows of each, whom it hears and
 * what it tells.
 *
 * Nodes stand in the order of their slices' numbers with the bits reversed, so that the nodes of a
 * slice are neighbours, however many slices a node counts: a bulletin is a stretch of two rows of
 * `made`.  What is drawn goes by their numbers, which their names have.
 */
#ifndef SIM_GOSSIP_SPREAD_H
#define SIM_GOSSIP_SPREAD_H

#include "balancer/gossip/gossip.h"
#include "sim/gossip/gossip_run.h"
#include "sim/random.h"

#define SPREAD_PERIOD_MS 1000u
#define SPREAD_NS_PER_MS 1000000ull
/* The clock begins so late that a node of which nothing is known (made 0) is silent and lost. */
#define SPREAD_BEGIN 900u /* periods */
#define SPREAD_LOST  600u /* periods after which a silent node is forgotten */
#define SPREAD_NEWS  32u  /* the latest news that a node remembers */
#define SPREAD_SELF                                                                                \
	UINT32_MAX /* what a node knows of itself is never older than what others say              \
		    */

/* That a node hears another, heard it a while ago, or was asked to hear it. */
struct spread_tie {
	uint32_t who;
	uint32_t asked_until; /* ms; 0: it was not */
	uint32_t ear;	      /* where it was last among the other's ears */
	bool mute;
	struct gossip_tie tie; /* `heard_ns` is as of the last look */
};

/* A node that hears this one: since when, and the last bulletin that it heard; ms, 0: none. */
struct spread_ear {
	uint32_t who, since, heard;
};

struct spread_news {
	uint32_t who, since; /* ms: when it was there, for the first time or again */
};

struct spread_node {
	/* First what each bulletin that it hears touches. */
	uint64_t bytes, sent;
	uint32_t heard; /* bulletins since its last plan */
	bool up, flaps, other_half, peer;
	bool replan;		       /* what its plan was made of has changed */
	uint32_t own_from, own_to;     /* the nodes of the slice that it keeps */
	struct gossip_keepers keepers; /* as of its plan */
	bool orphans;		       /* there are nodes that nobody keeps */
	uint32_t alive;		       /* that it counts as there, itself included */
	struct gossip_place place;
	uint32_t key;		 /* place.slice with its bits reversed */
	uint32_t number;	 /* "node7" is 7 */
	uint32_t phase;		 /* ms */
	double turns_at;	 /* ms: flapping */
	struct spread_tie *ties; /* by `who` */
	size_t nties, ties_room;
	uint32_t on;   /* of these */
	uint32_t mute; /* of these, and those that it was asked to hear */
	struct spread_ear *ears;
	size_t nears, ears_room;
	struct spread_news news[SPREAD_NEWS]; /* a ring */
	uint32_t nnews;
};

struct spread {
	const struct gossip_setup *setup;
	enum gossip_scenario scenario;
	uint32_t n, silent_ms;
	struct spread_node *nodes;
	uint32_t *
		made; /* [n * n]: made[i * n + j] when what i knows of j was made, ms; 0: nothing */
	uint32_t *order;     /* nodes by their phases */
	uint32_t *by_number; /* nodes by their numbers */
	struct gossip_node *plan;
	struct gossip_item *items;
	uint32_t *told;
	struct sim_random random;
	bool parted, measures;
	uint64_t bulletins, vectors, news, ties, dials; /* while it measures */
	uint32_t learned_ms; /* when somebody last heard of one that it did not count as there */
	bool failed;	     /* out of memory */
};

/* Everybody knows of everybody, as after a while.  False: out of memory; spread_deinit in any case.
 */
bool spread_init(struct spread *s, const struct gossip_setup *setup, enum gossip_scenario scenario);
void spread_deinit(struct spread *s);
/* NODE starts again and knows nothing. */
void spread_restart(struct spread *s, uint32_t node);
/* NODE makes its plan and publishes. */
void spread_publish(struct spread *s, uint32_t node, uint32_t now);

/* What SELF knows of each node. */
static inline uint32_t *spread_row(const struct spread *s, uint32_t self)
{
	return &s->made[(size_t)self * s->n];
}

static inline bool spread_is_alive(const struct spread *s, uint32_t self, uint32_t who,
				   uint32_t now)
{
	return now - spread_row(s, self)[who] <= s->silent_ms;
}

/* The number of nodes that SELF counts as there, without itself. */
uint32_t spread_count(const struct spread *s, uint32_t self, uint32_t now);

/* For spread_plan.c and spread.c. */
struct spread_tie *spread_tie_find(const struct spread_node *node, uint32_t who);
void spread_tie_set(struct spread *s, uint32_t self, uint32_t who, bool on, uint32_t now);
/* SELF counts who is there and chooses whom it hears. */
void spread_plan(struct spread *s, uint32_t self, uint32_t now);
/* SELF asks the configured peers that do not know it to hear it. */
void spread_hello(struct spread *s, uint32_t self, uint32_t now);

#endif
