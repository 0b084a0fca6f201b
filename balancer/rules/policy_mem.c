/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * MEM-RE (MODEL 3.3) balances memory, and thereby the disk load of page faults.  With enough
 * memory it acts as CPU-RE.
 *
 *   L_MEM(i) with j > n_MEM(i):
 *     k = argmin L_MEM/n_MEM (mem_order_free: most free memory);
 *     (L_MEM(k) + m_j)/n_MEM(k) < L_MEM(i)/n_MEM(i) (mem_ratio_test)
 *     and r(i,j) > r(k,j) + c   run on k
 *   else CPU-RE
 */
#include <math.h>

#include "balancer/rules/rules_private.h"

static bool policy_mem_judge(struct rules_decision *d, void *arg, uint32_t k, struct rules_tests *t)
{
	const struct rules_cell *c = &d->view->cells[k];
	double m = d->request->memory_mb;

	(void)arg;
	if (d->params->mem_ratio_test &&
	    !rules_test(t, RULES_C_MEM_RATIO, k, rules_cell_memory_ratio(d->at_home, m),
			rules_cell_memory_ratio(c, m)))
		return false;
	return rules_test_eligible(d, t, k) &&
	       (!d->params->cpu_cost_test || rules_test_response(d, t, k));
}

int rules_balance_memory(struct rules_decision *d)
{
	const struct rules_params *p = d->params;
	bool limited = p->mem_ratio_test && !p->mem_order_free;
	struct rules_contest contest = {
		.order = p->mem_order_free ? RULES_ORDER_MEM_FREE : RULES_ORDER_MEM,
		.judge = policy_mem_judge,
		.limited_by = RULES_C_MEM_RATIO,
		.limit = limited ? rules_cell_memory_ratio(d->at_home, d->request->memory_mb)
				 : INFINITY,
		.try_next = p->try_next,
		.response = d->params->cpu_cost_test,
	};

	return rules_contest_run(d, &contest);
}

int rules_policy_mem_re(struct rules_decision *d)
{
	const struct rules_cell *c = d->at_home;

	if (!(c->n_mem > 0) || !rules_test_home(d, RULES_C_MEM_OVERLOADED,
						c->memory + d->request->memory_mb, c->n_mem))
		return rules_policy_cpu_re(d);
	return rules_balance_memory(d);
}
