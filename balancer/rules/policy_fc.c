/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The simple schemes of FC.
 *
 * CM (MODEL 3.4), with j counted at home i:
 *   L_MEM(i) > n_MEM(i)  (cm_memory_ratio: L_MEM(i)/mean > overload_ratio):
 *                                     argmin L_MEM/n_MEM, by the tests of MEM-RE
 *   L_CPU(i)/mean > overload_ratio:   argmin L_CPU
 *   else i
 *
 * IO (3.5): always k = argmin of the explicit I/O load; with io_useful_test only if
 * r(i,j) > r(k,j) + c.  As j counts at home, k is lighter only if the load at home exceeds
 * that of k by more than the load of j.
 *
 * Among equally light nodes a random one is taken (FC).
 */
#include <math.h>

#include "balancer/rules/rules_private.h"

static double over_mean(const struct rules_decision *d, const struct rules_exact *sum, double home,
			double added)
{
	double total = rules_exact_value(sum) + added;

	return total > 0 ? (home + added) * d->view->count / total : 0;
}

static bool memory_imbalanced(struct rules_decision *d)
{
	const struct rules_cell *c = d->at_home;
	double m = d->request->memory_mb;

	if (d->params->cm_memory_ratio)
		return rules_test_home(d, RULES_C_MEM_IMBALANCED,
				       over_mean(d, &d->view->totals.memory, c->memory, m),
				       d->params->overload_ratio);
	return c->n_mem > 0 && rules_test_home(d, RULES_C_MEM_OVERLOADED, c->memory + m, c->n_mem);
}

int rules_policy_cm(struct rules_decision *d)
{
	if (memory_imbalanced(d))
		return rules_balance_memory(d);
	if (!rules_test_home(d, RULES_C_CPU_IMBALANCED,
			     over_mean(d, &d->view->totals.cpu, d->at_home->cpu, 1),
			     d->params->overload_ratio))
		return 0;
	return rules_balance_tasks(d, RULES_ORDER_TASKS);
}

static bool policy_fc_judge(struct rules_decision *d, void *arg, uint32_t k, struct rules_tests *t)
{
	const struct rules_cell *c = &d->view->cells[k];
	double added = d->added_home.explicit_io;

	(void)arg;
	if (!rules_test(t, RULES_C_EXPLICIT_DISCREPANCY, k,
			rules_discrepancy(d, d->at_home->explicit_io, c->explicit_io, added),
			added))
		return false;
	return rules_test_eligible(d, t, k) &&
	       (!d->params->io_useful_test || rules_test_response(d, t, k));
}

int rules_policy_io(struct rules_decision *d)
{
	struct rules_contest contest = {
		.order = RULES_ORDER_EXPLICIT,
		.judge = policy_fc_judge,
		.limited_by = RULES_C_EXPLICIT_DISCREPANCY,
		.limit = rules_discrepancy_limit(d, d->at_home->explicit_io,
						 d->added_home.explicit_io),
		.try_next = d->params->try_next,
		.response = d->params->io_useful_test,
	};

	return rules_contest_run(d, &contest);
}
