/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * BS, a batch system that shares space, not time (MODEL 3.13): a job of p tasks waits until p
 * nodes are free and gets them to itself, one task each.  The caller does FCFS without
 * backfilling (O-30): it keeps the queue and asks about its head.
 *
 * A node is free if nothing runs on it and its owner lets jobs in; the job's own home can be
 * free, too.  A live node is never quite still: up to RULES_IDLE_TASKS count as nothing.  Home is
 * taken first (no data to move), the others in random order.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "balancer/rules/rules_private.h"

/* The load up to which nothing runs on a node. */
static double policy_bs_still(const struct rules_decision *d)
{
	return d->params->rates == RULES_RATES_WALL ? RULES_IDLE_TASKS : 0;
}

static bool policy_bs_judge(const struct rules_decision *d, struct rules_tests *t, uint32_t k)
{
	/* A job needs no permission for its own home. */
	return rules_test(t, RULES_C_IDLE, k, d->view->cells[k].cpu, policy_bs_still(d)) &&
	       (k == d->home || rules_test_eligible(d, t, k));
}

static bool policy_bs_busy(void *arg, uint32_t at, double key)
{
	(void)at;
	return key > *(const double *)arg;
}

/* The first free node shows its tests; the others appear as candidates only. */
static void policy_bs_take(struct rules_decision *d, uint32_t k, const struct rules_tests *t,
			   bool first)
{
	struct rules_plan *plan = d->plan;

	if (first) {
		plan->node = plan->tied[0] = k;
		plan->stayed = k == d->home;
		for (uint32_t i = 0; i < t->n; i++)
			plan->reasons[plan->nreasons++] = t->list[i];
	}
	if (!plan->stayed && plan->ncandidates < RULES_EXAMINED_MAX)
		plan->candidates[plan->ncandidates++] = k;
}

/*
 * Looks for TASKS free nodes and puts them into NODES unless it is NULL.  Returns how many it
 * found, or -ENOMEM.
 */
static int policy_bs_find(struct rules_decision *d, uint32_t tasks, uint32_t *nodes)
{
	struct rules_search search;
	uint32_t found = 0, k = d->home;
	double still = policy_bs_still(d);
	int ret = rules_search_init(&search, d->view, RULES_ORDER_TASKS, d->salt, &d->rules->heap);

	/* Judge home first, then the nodes that the search finds. */
	for (int next = RULES_SEARCH_LEAF; ret >= 0 && next != RULES_SEARCH_END;) {
		struct rules_tests t = {.n = 0};

		if (next == RULES_SEARCH_LEAF && (found == 0 || k != d->home)) {
			if (policy_bs_judge(d, &t, k)) {
				policy_bs_take(d, k, &t, found == 0);
				if (nodes != NULL)
					nodes[found] = k;
				if (++found == tasks)
					return (int)found;
			} else {
				d->plan->refused[t.list[t.n - 1].criterion] += k != d->home;
			}
		}
		next = ret = rules_search_next(&search, policy_bs_busy, &still, &k);
	}
	return ret < 0 ? ret : (int)found;
}

static int policy_bs_place(struct rules_decision *d, uint32_t tasks, uint32_t *nodes)
{
	const struct rules_totals *totals = &d->view->totals;
	const struct rules_cell *c = d->at_home;
	uint32_t free_nodes = d->does_io ? totals->idle_disks : totals->idle;
	int found;

	/* Home needs no permission, and its disk has the job's data. */
	if (c->cpu <= policy_bs_still(d) && !(c->accepts && (!d->does_io || c->disk_mb_per_s > 0)))
		free_nodes++;
	if (rules_test_home(d, RULES_C_FREE_NODES, free_nodes, tasks)) {
		found = policy_bs_find(d, tasks, nodes);
		if (found < 0)
			return found;
		if ((uint32_t)found == tasks)
			return 1;
		/* Some free nodes have too little memory: show the number that was found. */
		rules_plan_init(d->plan, d->home);
		rules_test_home(d, RULES_C_FREE_NODES, found, tasks);
	}
	d->plan->queued = true;
	return 0;
}

int rules_policy_bs(struct rules_decision *d)
{
	uint32_t tasks = d->request->tasks;
	uint32_t *nodes = NULL;
	int ret;

	if (d->batch != NULL) {
		nodes = malloc(tasks * sizeof(*nodes));
		if (nodes == NULL)
			return -ENOMEM;
	}
	ret = policy_bs_place(d, tasks, nodes);
	if (ret > 0 && nodes != NULL)
		memcpy(d->batch, nodes, tasks * sizeof(*nodes));
	free(nodes);
	return ret;
}
