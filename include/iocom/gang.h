/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Where the tasks of a parallel job run (MODEL 3.18), all at once: the rules see who of them
 * sends how much to whom, and what the nodes' ports carry.  As pure as <iocom/rules.h>.
 */
#ifndef IOCOM_GANG_H
#define IOCOM_GANG_H

#include <iocom/rules.h>

#define RULES_GANG_TASKS_MAX 4096
/* a decision looks closely at so many nodes, those that are best for one task alone */
#define RULES_GANG_NODES_MAX 128

/* A node's way to the others, and its room for tasks of parallel jobs. */
struct rules_port {
	double mb_per_s;      /* each direction; 0: what the view's node has */
	double busy_mb_per_s; /* what others carry over it now, in the busier direction */
	double round_trip_ms; /* to home; home's own is of no effect */
	uint32_t slots;	      /* so many tasks of the job fit; 0: none */
};

struct rules_gang {
	const struct rules_pair *pairs; /* borrowed; a pair may occur more than once */
	size_t npairs;
	const struct rules_port *ports; /* borrowed; one for each node of the view */
	/* After each phase all tasks wait for each other; 0 or 1: not known that they do. */
	uint32_t phases;
};

/* What a placement is expected to take, and which task ends last. */
struct rules_gang_cost {
	double response_ms; /* of the job: its slowest task */
	double harm_ms;	    /* the delay of all others there */
	double price_ms;    /* response + delay_harm harm */
	uint32_t task;	    /* the slowest */
	uint32_t node;	    /* where that is, in the view */
	/* of the slowest task: processor and disk, shared; the way there; the port; messages */
	double work_ms, way_ms, port_ms, message_ms;
	uint32_t nodes; /* number of nodes in use */
};

enum rules_gang_bound { RULES_BOUND_CPU, RULES_BOUND_DISK, RULES_BOUND_COM, RULES_BOUNDS };

struct rules_gang_plan {
	struct rules_gang_cost chosen;
	/* For comparison: all tasks at the best node, and one a node; if that fits at all. */
	bool has_packed, has_spread;
	struct rules_gang_cost packed, spread;
	/* The first-class resource: where a mean task alone at home spends most (5.10), ms. */
	enum rules_gang_bound bound;
	double cpu_ms, disk_ms, com_ms;
	uint32_t moved; /* tasks that the policy's own choice had where there was no slot */
	bool searched;	/* the search decided (least-delay), not a rule a task */
	uint64_t steps; /* of the search */
	uint64_t slots; /* of all nodes that accept */
	/* of task 0; the policy's own reasons, or, if searched, its node alone */
	struct rules_plan why;
};

/* "cpu", "disk", "communication"; NULL when out of range. */
const char *rules_gang_bound_name(enum rules_gang_bound bound);

/*
 * Chooses a node for each of request->tasks tasks (NODES, caller's).  Least-delay searches for the
 * least price; all other policies decide as rules_place_job does, COM with com_ms by (5) from the
 * pairs, and what exceeds a node's slots moves to the nodes with the least to do.  request->com_ms
 * is not read.  VIEW is restored before the return.  O(steps), which are bounded.
 * Returns 0; 1 (the tasks do not fit into the slots: plan->slots; NODES is unset); -EINVAL (as for
 * rules_place; a pair or port out of range; too many tasks); -EBUSY; -ENOMEM.
 */
int rules_place_gang(struct rules *r, struct rules_view *view, uint32_t home,
		     const struct rules_request *request, const struct rules_gang *gang,
		     struct rules_gang_plan *plan, uint32_t *nodes);

/*
 * Says what a placement takes; slots do not matter.  Returns 0, or an error as rules_place_gang
 * does (-EINVAL for a node that the view does not have, or that no task may go to).
 */
int rules_expect_gang(struct rules *r, struct rules_view *view, uint32_t home,
		      const struct rules_request *request, const struct rules_gang *gang,
		      const uint32_t *nodes, struct rules_gang_cost *out);

/*
 * T_COM of each task over all phases (MODEL 5.10): what it sends or receives, the larger, over a
 * port of MB_PER_S (> 0), and half a round trip for each message it sends or receives.
 * Returns 0; -EINVAL (a pair out of range); -ENOMEM.
 */
int rules_gang_com_ms(const struct rules_gang *gang, uint32_t tasks, double mb_per_s,
		      double round_trip_ms, double *com_ms);

#endif
