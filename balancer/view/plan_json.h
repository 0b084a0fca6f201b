/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * A plan as the answer of a view file:
 *
 *   { "policy", "home", "node", "nodes": [one a task], "tied": [],
 *     "migrate": [{ "node", "task", "to", "cost_effectiveness" }],
 *     "candidates": [], "refused_counts": { criterion: nodes },
 *     "reasons": [{ "criterion", "source", "node", "left", "right", "unit",
 *                   "relation", "holds", "text" }] }
 *
 * A job with pairs has "gang", too (gang_json.h).  "queued" is true when the job must wait (bs;
 * "nodes" is then empty); "tied_count" is there when more nodes tie than are listed.  "task"
 * numbers home's tasks in the view's order, followed by the job's own tasks that stayed.
 */
#ifndef IOCOM_PLAN_JSON_H
#define IOCOM_PLAN_JSON_H

#include <jansson.h>
#include <stdbool.h>

#include "balancer/view/view_decide.h"

/* What to write besides the plan; NAME gives the names of nodes. */
struct plan_answer {
	const char *policy;
	uint32_t home;
	const struct rules_plan *plan;
	const uint32_t *nodes; /* the node of each task */
	uint32_t ntasks;
	const struct rules_move *moves;
	size_t nmoves;
	enum rules_rates rates;
	const char *(*name)(const void *arg, uint32_t node);
	const void *arg;
	const struct rules_gang_plan *gang; /* NULL: the job was no gang */
};

/*
 * Writes the answer; without TEXTS reasons lack source, unit, relation and text.  Returns NULL if
 * there is no memory.
 */
json_t *plan_answer_json(const struct plan_answer *answer, bool texts);
json_t *plan_json(const struct view_decision *decision, bool texts);

/*
 * The expectation of a plan or of a placement:
 *
 *   { "there_ms", "home_ms", "there_factor", "home_factor" }
 *
 * There is none if it is not known.  Returns NULL if there is no memory.
 */
json_t *expectation_json(const struct rules_expectation *expectation);
/*
 * Reads OBJECT (NULL: not known).  Returns 0, or -EPROTO: a member is missing, no number or out of
 * range.
 */
int expectation_read(struct rules_expectation *expectation, const json_t *object);

/* One test of a criterion.  The texts are never NULL. */
struct plan_reason {
	const char *criterion, *source, *node, *unit, *relation, *text;
	double left, right;
	bool holds;
};

struct plan_move {
	const char *node, *to;
	double task;
};

/* A plan as read from its document, which owns all texts. */
struct plan_record {
	json_t *document; /* NULL: there is no plan */
	const char *policy, *home, *node;
	bool queued;
	struct plan_reason *reasons;
	const char **nodes, **tied, **candidates;
	struct plan_move *moves;
	size_t nreasons, nnodes, ntied, ncandidates, nmoves;
};

/*
 * Reads DOCUMENT and takes it in any case.  Missing members become "", 0 or empty.  Returns 0;
 * -EPROTO: DOCUMENT is no plan; -ENOMEM.  The caller frees RECORD only after 0.
 */
int plan_record_take(struct plan_record *record, json_t *document);
void plan_record_fini(struct plan_record *record);

/*
 * Returns whether both answers say the same apart from texts; numbers may differ by TOLERANCE (0:
 * not at all) of the larger one.
 */
bool plan_json_same(const json_t *a, const json_t *b, double tolerance);

#endif
