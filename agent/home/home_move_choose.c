/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Where a job moves if nobody named a node: to the first that takes it of those to which its policy
 * would send it if it began now, but not to the one where it runs; then of those where it is
 * expected to take the least, or if nothing is known of it, with the shortest run queue.  Of a job
 * whose user had named a node, this node's own policy chooses.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "agent/cluster/cluster_view.h"
#include "agent/home/home_move_own.h"

/* Whether node INDEX may be one more choice. */
static bool choice_fits(const struct home_moving *m, uint32_t index)
{
	const struct iocom_vector *v = cluster_view_vector(m->home->view, index);

	if (m->nchoices == HOME_MOVE_CHOICES || !strcmp(v->name, m->move.source) ||
	    (index && !v->accepts_jobs))
		return false;
	for (unsigned i = 0; i < m->nchoices; i++)
		if (!strcmp(m->choices[i], v->name))
			return false;
	return true;
}

static void choice_add(struct home_moving *m, uint32_t index)
{
	const struct iocom_vector *v = cluster_view_vector(m->home->view, index);

	if (choice_fits(m, index))
		memcpy(m->choices[m->nchoices++], v->name, sizeof(m->choices[0]));
}

/* The order in which the policy would ask the nodes. */
static void choices_by_policy(struct home_moving *m, const struct rules_plan *plan)
{
	if (plan->stayed)
		choice_add(m, 0);
	else
		choice_add(m, plan->node);
	for (uint32_t i = 0; i < plan->ncandidates; i++)
		choice_add(m, plan->candidates[i]);
}

/* Adds the one of the N nodes that fits and has the least VALUES.  Returns false: there is none. */
static bool choose_least(struct home_moving *m, const struct rules_expectation *values, uint32_t n)
{
	const struct cluster_view *view = m->home->view;
	bool known = need_is_known(&m->order->need);
	uint32_t best = UINT32_MAX;
	double least = 0;

	for (uint32_t i = 0; i < n; i++) {
		double value = values[i].known ? values[i].there_ms
			       : known	       ? INFINITY
					       : cluster_view_vector(view, i)->run_queue;

		if (!choice_fits(m, i) || (best != UINT32_MAX && value >= least))
			continue;
		best = i;
		least = value;
	}
	if (best != UINT32_MAX)
		choice_add(m, best);
	return best != UINT32_MAX;
}

/* The others, the one first where the job is expected to take the least. */
static int choose_others(struct home_moving *m, const struct view_policy *policy,
			 const struct rules_request *request)
{
	const struct cluster_view *view = m->home->view;
	uint32_t n = cluster_view_count(view);
	struct rules_expectation *expected = calloc(n, sizeof(*expected));
	uint32_t *at = calloc(n, sizeof(*at));
	int rc = expected && at ? 0 : -ENOMEM;

	for (uint32_t i = 0; i < n && !rc; i++)
		at[i] = i;
	if (!rc && need_is_known(&m->order->need))
		rc = cluster_view_expect(view, policy->policy, request, at, n, expected);
	while (!rc && choose_least(m, expected, n))
		;
	free(expected);
	free(at);
	return rc;
}

int moving_choose(struct home_moving *m, struct iocom_err *err)
{
	struct home *home = m->home;
	struct view_decision decision = {0};
	struct rules_request request;
	struct view_policy policy;
	int rc = view_policy_parse(m->order->policy, &policy, NULL);

	if (rc) /* its user had named a node */
		rc = view_policy_parse(home->base->set->policy, &policy, err);
	if (!rc)
		rc = home_look(home, policy.feedback, loop_boot_ns(home->base->loop), err);
	if (rc)
		return rc;
	need_request(&m->order->need, &request);
	rc = cluster_view_decide(home->view, &policy, &request, ++home->job_sequence, &decision,
				 err);
	if (rc)
		return rc;
	choices_by_policy(m, &decision.plan);
	view_decision_fini(&decision);
	rc = choose_others(m, &policy, &request);
	if (rc)
		return iocom_err_set(err, rc, "cannot choose a node: %s", strerror(-rc));
	if (!m->nchoices)
		return iocom_err_set(err, -EHOSTUNREACH,
				     "no other node is heard that lets jobs in");
	memcpy(m->move.target, m->choices[0], sizeof(m->move.target));
	return 0;
}
