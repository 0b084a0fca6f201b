/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Goes from a view to a decision in one way, for the agent, the view file and a recording. */
#ifndef IOCOM_VIEW_DECIDE_H
#define IOCOM_VIEW_DECIDE_H

#include <jansson.h>
#include <stdbool.h>

#include "iocom/err.h"
#include "iocom/gang.h"
#include "iocom/rules.h"
#include "balancer/view/view_json.h"

/* The policy, and whether the feedback controller is attached to it. */
struct view_policy {
	enum rules_policy policy;
	bool feedback;
	char name[32]; /* written as in answers: "iocm-re", "feedback+wal" */
};

struct view_decision {
	struct view_policy policy;
	struct rules_plan plan;
	uint32_t *nodes;	  /* the node of each task of the job */
	uint32_t ntasks;	  /* 0: queued */
	struct rules_move *moves; /* migrating policies: tasks of home, the job's own after them */
	size_t nmoves;
	/* of one task at the plan's node; unknown if the job must wait */
	struct rules_expectation expectation;
	/* If the job has pairs: what its tasks take all together; else false. */
	bool is_gang;
	struct rules_gang_plan gang;
	/* the view that was decided on, for the names of its nodes */
	const struct rules_view *view;
	struct rules_view *built; /* the same view if it was made for this decision, or NULL */
	uint32_t home;
	enum rules_rates rates;
};

/*
 * Parses a name in any case, "feedback+P" too.  Returns 0, or -EINVAL with a sentence that lists
 * all names.
 */
int view_policy_parse(const char *name, struct view_policy *policy, struct iocom_err *err);

/*
 * The indexed form of all nodes, charged; with POLICY only what that looks at is indexed (NULL:
 * everything).  Returns 0; -EINVAL (values that no sum can hold); -ENOMEM.
 */
int view_index(const struct view_file *view, const struct view_policy *policy,
	       struct rules_view **out, struct iocom_err *err);

/* A question about nodes that are indexed already; all members are borrowed. */
struct view_question {
	const struct rules_params *params;
	const struct rules_request *job;
	uint64_t seed;
	uint32_t home;
	const struct rules_node *home_node; /* the description that node HOME was set to */
	/*
	 * of each node of the view: the job is a gang.  NULL: it is one if it has pairs, and then
	 * all nodes are idle, without limit of slots
	 */
	const struct rules_port *ports;
};

/*
 * Places the job on NODES, charged and with the indexes that POLICY needs, and, for policies that
 * migrate, says which tasks of home should then leave it.  NODES is as before afterwards, and the
 * decision's names are good until it changes.  Returns 0; -EINVAL, -ENOMEM, -EBUSY (NODES is
 * marked).  DECISION is to be freed only after 0.
 */
int view_decide_on(struct rules_view *nodes, const struct view_question *question,
		   const struct view_policy *policy, struct view_decision *decision,
		   struct iocom_err *err);
/*
 * Does the same on the nodes of VIEW, which are indexed for this decision alone.  Returns 0;
 * -EINVAL, -ENOMEM.  The caller frees DECISION only after 0.
 */
int view_decide(const struct view_file *view, const struct view_policy *policy,
		struct view_decision *decision, struct iocom_err *err);
/*
 * Says what the job would take at each of the N nodes AT of NODES by the formula of POLICY,
 * whichever it chose.  A node that NODES does not have is unknown.  Returns 0; -EINVAL, -ENOMEM;
 * OUT is then undefined.
 */
int view_expect(const struct rules_view *nodes, const struct view_question *question,
		enum rules_policy policy, const uint32_t *at, size_t n,
		struct rules_expectation *out);
void view_decision_fini(struct view_decision *decision);

#endif
