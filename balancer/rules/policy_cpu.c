/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * CPU-RE (MODEL 3.2) balances the number of running tasks and ignores memory and I/O.
 *
 *   L_CPU(i) with j <= threshold * cores       run on i
 *   k = argmin L_CPU;  L_CPU(k) + 1 < L_CPU(i) and r(i,j) > r(k,j) + c   run on k
 *
 * With cpu_speed_weighted it counts tasks per core of reference speed instead.
 */
#include "balancer/rules/rules_private.h"

/* The number of TASKS on node C, in the unit that is compared. */
static double weighted(const struct rules_decision *d, const struct rules_cell *c, double tasks)
{
	if (!d->params->cpu_speed_weighted)
		return tasks;
	return tasks / (c->cores * (c->mips / d->reference_mips));
}

static bool policy_cpu_judge(struct rules_decision *d, void *arg, uint32_t k, struct rules_tests *t)
{
	const struct rules_cell *c = &d->view->cells[k];

	(void)arg;
	if (!rules_test(t, RULES_C_CPU_DISCREPANCY, k, weighted(d, d->at_home, d->at_home->cpu + 1),
			weighted(d, c, c->cpu + 1)))
		return false;
	return rules_test_eligible(d, t, k) &&
	       (!d->params->cpu_cost_test || rules_test_response(d, t, k));
}

int rules_balance_tasks(struct rules_decision *d, enum rules_order order)
{
	bool by_speed = d->params->cpu_speed_weighted;
	const struct rules_cell *c = d->at_home;
	struct rules_contest contest = {
		.order = by_speed ? RULES_ORDER_CPU_WEIGHTED : order,
		.judge = policy_cpu_judge,
		.limited_by = RULES_C_CPU_DISCREPANCY,
		/*
		 * With weights, one more task counts differently on each node: use a looser
		 * limit.
		 */
		.limit = by_speed ? (c->cpu + 1) / (c->cores * c->mips) * (1 + 1e-9) : c->cpu,
		.try_next = d->params->try_next,
		.response = d->params->cpu_cost_test,
	};

	return rules_contest_run(d, &contest);
}

bool rules_test_cpu_overloaded(struct rules_decision *d)
{
	const struct rules_cell *c = d->at_home;
	double cores = d->params->cpu_speed_weighted ? 1 : c->cores;

	return rules_test_home(d, RULES_C_CPU_OVERLOADED, weighted(d, c, c->cpu + 1),
			       d->params->cpu_threshold * cores);
}

int rules_policy_cpu_re(struct rules_decision *d)
{
	if (!rules_test_cpu_overloaded(d))
		return 0;
	return rules_balance_tasks(d, RULES_ORDER_CPU);
}
