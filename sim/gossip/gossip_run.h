/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Bulletins in a cluster of thousands of nodes, calculated: who hears whom and who tells of whom is
 * the agent's own object (balancer/gossip/).  Of a vector only the time counts at which it was
 * made; the newest wins.  Each node publishes once a period, at a phase of its own, and makes its
 * plan just before.  A bulletin takes no time to arrive; a new subscription takes `dial_ms`.
 *
 * Four scenarios, each from a cluster that has settled:
 *
 *   steady   nothing happens
 *   dead     some nodes stop without a word
 *   cut      the cluster is parted into two halves for a while, and joined again
 *   flap     some nodes stop and start again and again
 *
 * and two plans, the agent's and one to compare it with:
 *
 *   slices   balancer/gossip/
 *   freshest each node hears `hear` others, drawn, one of which changes now and then, and tells
 *            of the `relay` freshest vectors that it has
 */
#ifndef SIM_GOSSIP_RUN_H
#define SIM_GOSSIP_RUN_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "iocom/err.h"

#define GOSSIP_RUN_NODES_MAX   16384
#define GOSSIP_RUN_PERIODS_MAX 10000
#define GOSSIP_RUN_SILENT_MAX  30
#define GOSSIP_RUN_AGE_MAX                                                                         \
	120 /* periods: older vectors, and those of unknown nodes, count as this */

enum gossip_scenario { GOSSIP_STEADY, GOSSIP_DEAD, GOSSIP_CUT, GOSSIP_FLAP, GOSSIP_SCENARIOS };
enum gossip_plans { GOSSIP_SLICED, GOSSIP_FRESHEST, GOSSIP_PLANS };

struct gossip_setup {
	enum gossip_plans plan;
	uint32_t nodes;
	uint32_t periods; /* that are measured */
	uint64_t seed;
	uint32_t peers;	       /* configured at each node: the first ones */
	uint32_t vector_bytes; /* one vector in a bulletin */
	uint32_t head_bytes;   /* the rest of it, the seal and TCP's and IP's heads included */
	uint32_t dial_ms;
	uint32_t silent;      /* periods after which a node counts as gone */
	double dead;	      /* the part of the nodes that stops */
	uint32_t cut;	      /* periods for which the halves are parted */
	double flapping;      /* the part of the nodes that flaps */
	double up, down;      /* periods for which they do, means */
	uint32_t hear, relay; /* GOSSIP_FRESHEST */
	const volatile sig_atomic_t *cancel;
	/* If not NULL, called after each period with the part that is done. */
	void (*progress)(void *arg, double part);
	void *arg;
};

/* Ages are those of what nodes that run know of others that run, at the end of each period; in
 * GOSSIP_CUT after the halves were joined, in GOSSIP_FLAP of and at the nodes that do not flap. */
struct gossip_result {
	double age_mean, age_p50, age_p99, age_max; /* periods */
	double gone;			   /* part of the pairs that wrongly count as gone */
	double bytes, bytes_max, sent_max; /* a node in a period: received, mean; of the node that
					      receives most, and sends most */
	double bulletins;		   /* received by a node in a period */
	double vectors, news; /* in these, and those that were newer than what it knew */
	double ties;	      /* nodes that a node hears directly */
	double dials;	      /* new ones in a period */
	double excluded;      /* DEAD: periods until nobody counts them as there any more */
	double healed; /* CUT: periods until all know of all again; both: < 0: not in the run */
};

/* What they are unless something else is asked for. */
void gossip_setup_init(struct gossip_setup *setup);
const char *gossip_scenario_name(enum gossip_scenario scenario);
const char *gossip_plans_name(enum gossip_plans plan);
/* Returns 0; -EINVAL: that cannot be calculated, with the reason in ERR. */
int gossip_setup_check(const struct gossip_setup *setup, enum gossip_scenario scenario,
		       struct iocom_err *err);
/* Returns 0; -EINVAL, -ENOMEM, -ECANCELED with the reason in ERR. */
int gossip_run(const struct gossip_setup *setup, enum gossip_scenario scenario,
	       struct gossip_result *result, struct iocom_err *err);

#endif
