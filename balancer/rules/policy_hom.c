/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * IOCM-RE for clusters of equal nodes (MODEL 3.7):
 *
 *   1  home has I/O load: nodes k by L_IO, the first with
 *        L_IO(i) - L_IO(k) > page(i,j) + IO(i,j) and r(i,j) > r(k,j) + c
 *   2  else L_MEM(i) with j > n_MEM(i): k = argmin L_MEM/n_MEM, r(i,j) > r(k,j) + c
 *   3  else L_CPU(i) with j > threshold: k = argmin L_CPU, r(i,j) > r(k,j) + c
 *
 * The load before j chooses the stage (O-22); hom_stage_explicit considers explicit load
 * only.  Stages 2 and 3 make the response test alone (O-23).
 */
#include <math.h>

#include "balancer/rules/rules_private.h"

struct stage {
	bool io;       /* this is stage 1 */
	double before; /* L_IO(home) without j */
	double added;  /* page(i,j) + IO(i,j) */
};

static bool policy_hom_judge(struct rules_decision *d, void *arg, uint32_t k, struct rules_tests *t)
{
	const struct stage *s = arg;

	if (s->io &&
	    !rules_test(t, RULES_C_IO_DISCREPANCY, k,
			rules_discrepancy(d, s->before, d->view->cells[k].io, s->added), s->added))
		return false;
	return rules_test_eligible(d, t, k) && rules_test_response(d, t, k);
}

static int io_stage(struct rules_decision *d)
{
	struct stage s = {.io = true,
			  .before = d->at_home->io,
			  .added = d->added_home.explicit_io + d->added_home.implicit_io};
	struct rules_contest contest = {
		.order = RULES_ORDER_IO,
		.judge = policy_hom_judge,
		.arg = &s,
		.limited_by = RULES_C_IO_DISCREPANCY,
		.limit = rules_discrepancy_limit(d, s.before, s.added),
		.try_next = true,
		.response = true,
	};

	return rules_contest_run(d, &contest);
}

static int other_stage(struct rules_decision *d, enum rules_order order)
{
	struct stage s = {.io = false};
	struct rules_contest contest = {
		.order = order,
		.judge = policy_hom_judge,
		.arg = &s,
		.limited_by = RULES_C_RESPONSE,
		.limit = INFINITY,
		.try_next = d->params->try_next,
		.response = true,
	};

	return rules_contest_run(d, &contest);
}

int rules_policy_iocm_re_hom(struct rules_decision *d)
{
	const struct rules_cell *c = d->at_home;
	const struct rules_params *p = d->params;
	double io = p->hom_stage_explicit ? c->explicit_io : c->io;
	int ret;

	if (rules_test_home(d, RULES_C_IO_PRESENT, rules_significance(d, io), p->io_significance)) {
		ret = io_stage(d);
		if (ret != 0 || !p->stage_fallthrough)
			return ret;
	}
	if (c->n_mem > 0 &&
	    rules_test_home(d, RULES_C_MEM_OVERLOADED, c->memory + d->request->memory_mb, c->n_mem))
		return other_stage(d, p->mem_order_free ? RULES_ORDER_MEM_FREE : RULES_ORDER_MEM);
	if (rules_test_cpu_overloaded(d))
		return other_stage(d, p->cpu_speed_weighted ? RULES_ORDER_CPU_WEIGHTED
							    : RULES_ORDER_CPU);
	return 0;
}
