/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The three schemes of Eager et al. (MODEL 3.16), with L_CPU as the load.  All of them look for
 * another node only if home would run more than T tasks with the job (O-34).
 *
 *   random      draws a node from all that may have the job and ignores load
 *   threshold   draws up to L nodes and takes the first with fewer than T tasks
 *   shortest    draws L nodes and takes the one with the fewest tasks, if fewer than home
 *
 * L = eager_probes, T = eager_threshold; L = 0 asks all nodes.  Then shortest takes the lightest
 * of all, and threshold draws up to MOST_DRAWN nodes, then asks the index whether any node is
 * below T.
 */
#include "balancer/rules/rules_private.h"

/* Nodes drawn before the index is asked, or before random gives up on a closed cluster. */
#define MOST_DRAWN RULES_EXAMINED_MAX

/* Distinct nodes other than home, in an order that the salt determines. */
struct probes {
	const struct rules_decision *d;
	uint32_t drawn[MOST_DRAWN];
	uint32_t n;
	uint64_t state;
};

static bool was_drawn(const struct probes *p, uint32_t k)
{
	for (uint32_t i = 0; i < p->n; i++)
		if (p->drawn[i] == k)
			return true;
	return k == p->d->home;
}

/* Draws the next node.  Returns false if no other node is left or enough were drawn. */
static bool probe(struct probes *p, uint32_t *k)
{
	uint32_t count = p->d->view->count;

	if (p->n == MOST_DRAWN || p->n + 1 >= count)
		return false;
	do {
		p->state += 0x9e3779b97f4a7c15u;
		*k = (uint32_t)((rules_mix(p->state) >> 32) * count >> 32);
	} while (was_drawn(p, *k));
	p->drawn[p->n++] = *k;
	return true;
}

static bool policy_eager_refuse(struct rules_decision *d, const struct rules_tests *t)
{
	struct rules_plan *plan = d->plan;
	const struct rules_reason *failed = &t->list[t->n - 1];

	plan->refused[failed->criterion]++;
	if (plan->nreasons + RULES_TESTS_MAX < RULES_REASONS_MAX)
		plan->reasons[plan->nreasons++] = *failed;
	return false;
}

static int policy_eager_take(struct rules_decision *d, uint32_t k, const struct rules_tests *t)
{
	struct rules_plan *plan = d->plan;

	for (uint32_t i = 0; i < t->n && plan->nreasons < RULES_REASONS_MAX; i++)
		plan->reasons[plan->nreasons++] = t->list[i];
	plan->candidates[0] = plan->tied[0] = plan->node = k;
	plan->ncandidates = 1;
	plan->stayed = false;
	return 1;
}

static bool tries(struct rules_decision *d)
{
	return rules_test_home(d, RULES_C_CPU_OVERLOADED, d->at_home->cpu + 1,
			       d->params->eager_threshold);
}

int rules_policy_random(struct rules_decision *d)
{
	struct probes p = {.d = d, .state = d->salt};
	uint32_t k;

	if (!tries(d))
		return 0;
	while (probe(&p, &k)) {
		struct rules_tests t = {.n = 0};

		if (rules_test_eligible(d, &t, k) && rules_test(&t, RULES_C_AT_RANDOM, k, 0, 0))
			return policy_eager_take(d, k, &t);
		policy_eager_refuse(d, &t);
	}
	return 0;
}

static bool judge_threshold(struct rules_decision *d, void *arg, uint32_t k, struct rules_tests *t)
{
	(void)arg;
	return rules_test(t, RULES_C_QUEUE_BELOW, k, d->view->cells[k].cpu,
			  d->params->eager_threshold) &&
	       rules_test_eligible(d, t, k);
}

static bool judge_shortest(struct rules_decision *d, void *arg, uint32_t k, struct rules_tests *t)
{
	(void)arg;
	return rules_test(t, RULES_C_QUEUE_SHORTER, k, d->view->cells[k].cpu, d->at_home->cpu) &&
	       rules_test_eligible(d, t, k);
}

static int lightest(struct rules_decision *d,
		    bool (*judge)(struct rules_decision *, void *, uint32_t, struct rules_tests *),
		    enum rules_criterion limited_by, double limit)
{
	struct rules_contest contest = {
		.order = RULES_ORDER_TASKS,
		.judge = judge,
		.limited_by = limited_by,
		.limit = limit,
		.try_next = true,
	};

	return rules_contest_run(d, &contest);
}

int rules_policy_threshold(struct rules_decision *d)
{
	double most = d->params->eager_probes;
	struct probes p = {.d = d, .state = d->salt};
	uint32_t k;

	if (!tries(d))
		return 0;
	while ((most == 0 || p.n < most) && probe(&p, &k)) {
		struct rules_tests t = {.n = 0};

		if (judge_threshold(d, NULL, k, &t))
			return policy_eager_take(d, k, &t);
		policy_eager_refuse(d, &t);
	}
	if (p.n < MOST_DRAWN || (most > 0 && p.n >= most))
		return 0;
	return lightest(d, judge_threshold, RULES_C_QUEUE_BELOW, d->params->eager_threshold);
}

/* Returns true if A is better: it has fewer tasks, or as many and none of this job (O-16). */
static bool better(const struct rules_decision *d, uint32_t a, uint32_t b)
{
	const struct rules_cell *cells = d->view->cells;

	if (cells[a].cpu != cells[b].cpu)
		return cells[a].cpu < cells[b].cpu;
	return d->params->spread_tasks && rules_job_tasks_at(d, a) == 0 &&
	       rules_job_tasks_at(d, b) > 0;
}

int rules_policy_shortest(struct rules_decision *d)
{
	double most = d->params->eager_probes;
	struct probes p = {.d = d, .state = d->salt};
	struct rules_tests best = {.n = 0};
	uint32_t k, chosen = d->home;

	if (!tries(d))
		return 0;
	if (most == 0 || most > MOST_DRAWN)
		return lightest(d, judge_shortest, RULES_C_QUEUE_SHORTER, d->at_home->cpu);
	while (p.n < most && probe(&p, &k)) {
		struct rules_tests t = {.n = 0};

		if (!judge_shortest(d, NULL, k, &t)) {
			policy_eager_refuse(d, &t);
		} else if (chosen == d->home || better(d, k, chosen)) {
			chosen = k;
			best = t;
		}
	}
	return chosen == d->home ? 0 : policy_eager_take(d, chosen, &best);
}
