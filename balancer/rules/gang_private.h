/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* A parallel job as the search sees it: few nodes, who talks to whom, and a placement. */
#ifndef RULES_GANG_PRIVATE_H
#define RULES_GANG_PRIVATE_H

#include <iocom/gang.h>

#include "balancer/rules/rules_private.h"

/* What remains of a port for one more job, however busy it is: connections share it. */

/* All that task FROM exchanges with task WITH. */
struct gang_edge {
	uint32_t with;
	double sent, received; /* bytes */
	double messages;       /* both ways */
};

struct gang_site {
	uint32_t node;	/* in the view */
	uint32_t limit; /* tasks that it may get */
	double way_ms;	/* 0 at home */
	double ms_per_byte, round_trip_ms, busy_share;
	double harm_ms;		/* of the first task */
	struct rules_cell cell; /* with `filled` - 1 tasks of the job */
	uint32_t filled;	/* work_ms is known up to so many tasks */
	double *work_ms;	/* [m - 1]: of each of m tasks here */
};

struct gang_model {
	struct rules_decision decision;
	struct rules_request one; /* a task without what only a decision uses */
	const struct rules_gang *gang;
	uint32_t tasks, nsites;
	struct gang_site *sites;
	uint32_t *first; /* edges of task t: first[t] .. first[t + 1] - 1 */
	struct gang_edge *edges;
	double *work; /* all sites' work_ms */
	uint64_t steps, most_steps;
};

/* A placement; `site` is the index of a site for each task. */
struct gang_state {
	uint32_t *site, *count;
	double *sent, *received; /* bytes over the site's port */
	double *message_ms;	 /* of each task */
	double *slowest_ms;	 /* the most message_ms of a site's tasks; scratch */
};

/* FIXED: the nodes of interest, one for each task, or NULL: the best ones.  Frees all on error. */
int rules_gang_model_init(struct gang_model *m, struct rules *r, const struct rules_view *view,
			  uint32_t home, const struct rules_request *request,
			  const struct rules_gang *gang, const uint32_t *fixed);
void rules_gang_model_free(struct gang_model *m);
/* What each of COUNT >= 1 tasks takes at site K; COUNT <= tasks. */
double rules_gang_work(struct gang_model *m, uint32_t k, uint32_t count);

int rules_gang_state_init(struct gang_state *s, const struct gang_model *m);
void rules_gang_state_free(struct gang_state *s);
/* Sums all up after s->site was filled in. */
void rules_gang_state_set(struct gang_model *m, struct gang_state *s);
void rules_gang_state_move(struct gang_model *m, struct gang_state *s, uint32_t task, uint32_t to);
void rules_gang_state_copy(const struct gang_model *m, struct gang_state *to,
			   const struct gang_state *from);
/* Returns the mean over the tasks; OUT gets the rest. */
double rules_gang_cost(struct gang_model *m, struct gang_state *s, struct rules_gang_cost *out);

/* Finds a cheap placement.  Returns 0; 1: the sites have too little room; -ENOMEM. */
int rules_gang_search(struct gang_model *m, struct gang_state *best, struct rules_gang_plan *plan);

#endif
