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
 */
#ifndef SIM_GOSSIP_RUN_H
#define SIM_GOSSIP_RUN_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "iocom/err.h"

#define GOSSIP_RUN_NODES_MAX 16384

enum gossip_scenario { GOSSIP_STEADY, GOSSIP_DEAD, GOSSIP_CUT, GOSSIP_FLAP, GOSSIP_SCENARIOS };

struct gossip_setup {
	uint32_t nodes;
	uint32_t periods; /* that are measured */
	uint32_t settle;  /* periods before */
	uint64_t seed;
	uint32_t peers;	       /* configured at each node: the first ones */
	uint32_t vector_bytes; /* one vector in a bulletin */
	uint32_t
		head_bytes; /* the rest of a bulletin, the seal and TCP's and IP's heads included */
	uint32_t dial_ms;
	uint32_t silent; /* periods after which a node counts as gone */
	double dead;	 /* the part of the nodes that stops */
	uint32_t cut;	 /* periods for which the halves are parted */
	double flapping; /* the part of the nodes that flaps */
	double up, down; /* periods for which they do, means */
	const volatile sig_atomic_t *cancel;
};

/* Ages are those of what nodes that run know of others that run, at the end of each period. */
struct gossip_result {
	enum gossip_scenario scenario;
	double age_mean, age_p50, age_p99, age_max; /* periods */
	double gone; /* part of the pairs that wrongly count as gone */
	double bytes,
		bytes_max;    /* received by a node in a period: mean; the most of a node's means */
	double sent_max;      /* sent by a node in a period: the most of a node's means */
	double bulletins;     /* received by a node in a period */
	double vectors, news; /* in these, and those that were newer than what it knew */
	double ties;	      /* nodes that a node hears directly */
	double dials;	      /* new ones a period */
	double excluded;      /* DEAD: periods until nobody counts them as there any more */
	double healed;	      /* CUT: periods until all know of all again; < 0: not in the run */
};

/* What they are unless something else is asked for. */
void gossip_setup_init(struct gossip_setup *setup);
const char *gossip_scenario_name(enum gossip_scenario scenario);
/* Returns 0; -EINVAL, -ENOMEM, -ECANCELED with the reason in ERR. */
int gossip_run(const struct gossip_setup *setup, enum gossip_scenario scenario,
	       struct gossip_result *result, struct iocom_err *err);

#endif
