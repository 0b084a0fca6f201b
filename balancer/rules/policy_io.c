/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * IO-RE and IOCM-RE for clusters of unequal nodes (MODEL 3.6, 3.8).
 *
 * IO-RE:
 *   1  L_IO(i) += page(i,j) + IO(i,j)
 *   2  threshold(i) = (sum L_IO) D_i / (sum D)                       (16) ACM
 *   3  L_IO(i) < threshold(i): run on i
 *      K = { k != i : L_IO(k) <= threshold(k),
 *                     L_IO(i) - L_IO(k) > page(i,j) + IO(i,j),
 *                     r(i,j) > r(k,j) + c (io_cost_test) }
 *   4  argmin over K of L_IO(k) (io_order_share: L_IO(k)/threshold(k)), or i when K
 *      is empty
 *
 * IOCM-RE uses IO-RE if home has explicit I/O load, else MEM-RE if home has implicit load or is
 * short of memory, else CPU-RE.  With stage_fallthrough a job that IO-RE leaves at home still
 * tries the other two: slight I/O of others should not keep a job that needs only CPU on a node
 * without CPU to spare.
 */
#include "balancer/rules/rules_private.h"

struct io_stage {
	double before;	    /* L_IO(home) without j */
	double added;	    /* page(i,j) + IO(i,j) */
	double total;	    /* with j */
	double performance; /* sum of D */
};

static bool policy_io_judge(struct rules_decision *d, void *arg, uint32_t k, struct rules_tests *t)
{
	const struct io_stage *s = arg;
	const struct rules_cell *c = &d->view->cells[k];

	if (!rules_test(t, RULES_C_IO_DISCREPANCY, k,
			rules_discrepancy(d, s->before, c->io, s->added), s->added))
		return false;
	if (!rules_test_eligible(d, t, k))
		return false;
	if (!rules_test(t, RULES_C_IO_UNDERLOADED, k, c->io,
			rules_io_threshold(s->total, c->performance, s->performance)))
		return false;
	return !d->params->io_cost_test || rules_test_response(d, t, k);
}

/* Nodes with a higher L_IO / D than this are overloaded. */
static double share_limit(const struct io_stage *s)
{
	return s->total / s->performance * (1 + 1e-9);
}

int rules_policy_io_re(struct rules_decision *d)
{
	const struct rules_totals *totals = &d->view->totals;
	bool by_share = d->params->io_order_share;
	double added = d->added_home.explicit_io + d->added_home.implicit_io;
	struct io_stage stage = {
		.before = d->at_home->io,
		.added = added,
		.total = rules_exact_value(&totals->io) + added,
		.performance = rules_exact_value(&totals->performance),
	};
	struct rules_contest contest = {
		.order = by_share ? RULES_ORDER_IO_SHARE : RULES_ORDER_IO,
		.judge = policy_io_judge,
		.arg = &stage,
		.limited_by = by_share ? RULES_C_IO_UNDERLOADED : RULES_C_IO_DISCREPANCY,
		.limit = by_share ? share_limit(&stage)
				  : rules_discrepancy_limit(d, stage.before, added),
		.try_next = true,
		.response = d->params->io_cost_test,
		.share_limit = stage.performance > 0 ? share_limit(&stage) : 0,
	};

	if (!rules_test_home(
		    d, RULES_C_IO_OVERLOADED, stage.before + added,
		    rules_io_threshold(stage.total, d->at_home->performance, stage.performance)))
		return 0;
	return rules_contest_run(d, &contest);
}

double rules_significance(const struct rules_decision *d, double part)
{
	const struct rules_cell *c = d->at_home;
	bool measured = c->measured && d->params->measured_state;
	double service = measured && c->seen_service > 0 ? c->seen_service : c->service;
	double busy = c->io * service; /* the disk time that home's load announces */

	if (d->params->rates == RULES_RATES_COMPUTATION || part == 0)
		return part;
	if (measured) {
		busy *= d->params->significance_demand;
		/* Jobs that were admitted a moment ago do not show in what was measured. */
		busy = busy > c->utilisation ? busy : c->utilisation;
	}
	busy = busy < 1 ? busy : 1;
	return c->io > 0 ? busy * (part / c->io) : 0;
}

static bool memory_stage(struct rules_decision *d)
{
	const struct rules_cell *c = d->at_home;

	return rules_test_home(d, RULES_C_IMPLICIT_PRESENT, rules_significance(d, c->implicit_io),
			       d->params->io_significance) ||
	       (c->n_mem > 0 && c->memory + d->request->memory_mb > c->n_mem);
}

int rules_policy_iocm_re(struct rules_decision *d)
{
	int ret;

	if (rules_test_home(d, RULES_C_IO_PRESENT, rules_significance(d, d->at_home->explicit_io),
			    d->params->io_significance)) {
		ret = rules_policy_io_re(d);
		if (ret != 0 || !d->params->stage_fallthrough)
			return ret;
	}
	return memory_stage(d) ? rules_policy_mem_re(d) : rules_policy_cpu_re(d);
}
