/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Where a job moves if nobody named a node: to the nodes to which its policy would send it if it
 * began now (this node's default one, of a job whose user had named a node), in that order, but not
 * to the one where it runs.  If the policy knows none of them, to the one where it is expected to
 * take the least, or which has the shortest run queue.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/cluster/cluster_view.h"
#include "agent/home/home_move_own.h"

static void choice_add(struct home_moving *m, uint32_t index)
{
	const struct cluster_view *view = m->home->view;
	const struct iocom_vector *v = cluster_view_vector(view, index);

	if (m->nchoices == HOME_MOVE_CHOICES || !strcmp(v->name, m->move.source))
		return;
	for (unsigned i = 0; i < m->nchoices; i++)
		if (!strcmp(m->choices[i], v->name))
			return;
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

/* All nodes, the one first where the job is expected to take the least. */
static int choose_least(struct home_moving *m, const struct view_policy *policy,
			const struct rules_request *request)
{
	const struct cluster_view *view = m->home->view;
	uint32_t n = cluster_view_count(view), best = UINT32_MAX;
	struct rules_expectation *expected = calloc(n, sizeof(*expected));
	uint32_t *at = calloc(n, sizeof(*at));
	double least = 0;
	int rc = expected && at ? 0 : -ENOMEM;

	for (uint32_t i = 0; i < n && !rc; i++)
		at[i] = i;
	if (!rc)
		rc = cluster_view_expect(view, policy->policy, request, at, n, expected);
	for (uint32_t i = 0; i < n && !rc; i++) {
		const struct iocom_vector *v = cluster_view_vector(view, i);
		double value = expected[i].known ? expected[i].there_ms : v->run_queue;

		if ((i && !v->accepts_jobs) || !strcmp(v->name, m->move.source) ||
		    (best != UINT32_MAX && value >= least))
			continue;
		best = i;
		least = value;
	}
	if (best != UINT32_MAX)
		choice_add(m, best);
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
	if (!m->nchoices)
		rc = choose_least(m, &policy, &request);
	if (rc)
		return iocom_err_set(err, rc, "cannot choose a node: %s", strerror(-rc));
	if (!m->nchoices)
		return iocom_err_set(err, -EHOSTUNREACH,
				     "no other node is heard that lets jobs in");
	memcpy(m->move.target, m->choices[0], sizeof(m->move.target));
	return 0;
}
