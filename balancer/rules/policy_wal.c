/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * WAL (MODEL 3.10), and WAL-FC, whose weights the controller moves (3.11):
 *
 *   load(n) = W_CPU L_CPU(n) + W_IO L_IO(n),  W_CPU = 1 - W_IO          (4.1) FC
 *             (wal_normalise: divides each load by the cluster's mean)
 *   1  load(i) with j
 *   2  load(i) is the highest of all and load(i) / mean load > overload_ratio, else i
 *   3  k = argmin load; of several a random one
 *   4  load(i) - load(k) > load(j) (wal_discrepancy), r(i,j) > r(k,j) + c (4.6), else i
 *
 * The ratio is tested first because it costs one division.
 */
#include <errno.h>
#include <math.h>

#include "balancer/rules/rules_private.h"

/*
 * The search must tell equal nodes from light ones by both loads.  If one weight is 0, its load
 * still breaks ties with this weight, which changes nothing else.
 */
#define LEAST_WEIGHT 1e-12

struct weights {
	double cpu, io;
};

struct wal {
	struct weights w;
	double before; /* load(home) without the job j */
	double added;
};

static double load_of(const struct weights *w, double cpu, double io)
{
	return w->cpu * cpu + w->io * io;
}

/* Divided by the mean with j: home has 1 task and its requests more. */
static struct weights weights_of(const struct rules_decision *d, double added_io)
{
	double w_io = rules_weight_io(d->rules);
	struct weights w = {1 - w_io, w_io};
	double cpu, io;

	if (!d->params->wal_normalise)
		return w;
	cpu = (rules_exact_value(&d->view->totals.cpu) + 1) / d->view->count;
	io = (rules_exact_value(&d->view->totals.io) + added_io) / d->view->count;
	w.cpu /= cpu;
	/* If nobody has I/O load, its weight does not matter. */
	w.io = io > 0 ? w.io / io : 0;
	return w;
}

static bool policy_wal_overloaded(struct rules_decision *d, const struct wal *s, double added_io)
{
	const struct rules_totals *totals = &d->view->totals;
	double home = s->before + s->added;
	/* A brief plan needs to know only whether any node is higher. */
	double enough = d->brief ? home : INFINITY;
	double mean = load_of(&s->w, rules_exact_value(&totals->cpu) + 1,
			      rules_exact_value(&totals->io) + added_io) /
		      d->view->count;

	if (!rules_test_home(d, RULES_C_LOAD_RATIO, mean > 0 ? home / mean : 0,
			     d->params->overload_ratio))
		return false;
	return rules_test_home(d, RULES_C_LOAD_HIGHEST, home,
			       rules_search_highest(d->view, s->w.cpu, s->w.io, d->home, enough));
}

static bool policy_wal_judge(struct rules_decision *d, void *arg, uint32_t k, struct rules_tests *t)
{
	const struct wal *s = arg;
	const struct rules_cell *c = &d->view->cells[k];

	if (d->params->wal_discrepancy &&
	    !rules_test(t, RULES_C_LOAD_DISCREPANCY, k,
			rules_discrepancy(d, s->before, load_of(&s->w, c->cpu, c->io), s->added),
			s->added))
		return false;
	return rules_test_eligible(d, t, k) && rules_test_response(d, t, k);
}

static double at_least(double weight)
{
	return weight > LEAST_WEIGHT ? weight : LEAST_WEIGHT;
}

int rules_policy_wal(struct rules_decision *d)
{
	double added_io = d->added_home.explicit_io + d->added_home.implicit_io;
	struct weights w = weights_of(d, added_io);
	struct wal s = {
		.w = w,
		.before = load_of(&w, d->at_home->cpu, d->at_home->io),
		.added = load_of(&w, 1, added_io),
	};
	struct rules_contest contest = {
		.weighted = true,
		.w_cpu = at_least(w.cpu),
		.w_io = at_least(w.io),
		.judge = policy_wal_judge,
		.arg = &s,
		.limited_by = RULES_C_LOAD_DISCREPANCY,
		.limit = INFINITY,
		.try_next = d->params->try_next,
		.response = true,
	};

	if (!rules_view_has(d->view, RULES_INDEX_CORNERS))
		return -EINVAL;
	if (!policy_wal_overloaded(d, &s, added_io))
		return 0;
	/* Looser by what LEAST_WEIGHT may have added to a key. */
	if (d->params->wal_discrepancy)
		contest.limit = rules_discrepancy_limit(d, s.before, s.added) +
				(contest.w_cpu - w.cpu) * d->view->corners[1].most_cpu +
				(contest.w_io - w.io) * d->view->corners[1].most_io;
	return rules_contest_run(d, &contest);
}
