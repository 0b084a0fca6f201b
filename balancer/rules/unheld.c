/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Which equal nodes have no task of the job yet.  A wide job soon has a task on each of many
 * equal nodes; a contest that looks for one without (O-16) would judge them all, for every task.
 *
 * So there is a tree with the least (key, tie) of the nodes without a task of the job.  While a
 * job is placed, only nodes with tasks of it change, so a node leaves the tree once and nothing
 * else happens to it.  The search skips a subtree in which all such nodes come after the choice.
 * It skips only nodes that could not replace the choice, so the decision is the same.
 *
 * The tree takes a pass over all nodes, so it is built only when the contests of this job have
 * looked at a good part of as many, and is dropped with the job.
 */
#include <math.h>
#include <stdlib.h>

#include "balancer/rules/rules_private.h"

/* Contests look at this many nodes, and this part of the tree, before it is built. */
#define LEAST_LOOKS   64u
#define PART_OF_NODES 8u

void rules_unheld_free(struct rules_unheld *u)
{
	free(u->first);
	*u = (struct rules_unheld){0};
}

static bool comes_before(const struct rules_first *a, const struct rules_first *b)
{
	return a->key < b->key || (a->key == b->key && a->tie < b->tie);
}

static struct rules_first unheld_join(const struct rules_first *children)
{
	return comes_before(&children[1], &children[0]) ? children[1] : children[0];
}

static void unheld_build(struct rules_unheld *u, const struct rules_decision *d)
{
	const struct rules_view *view = d->view;
	const struct rules_least *least = view->least[u->order];

	u->first = malloc(2 * (size_t)view->capacity * sizeof(*u->first));
	if (u->first == NULL)
		return; /* the contests go on without it */
	u->capacity = view->capacity;
	for (uint32_t i = 0; i < view->capacity; i++) {
		const struct rules_least *leaf = &least[view->capacity + i];

		u->first[view->capacity + i] = rules_job_tasks_at(d, i) == 0
						       ? (struct rules_first){leaf->key, leaf->tie}
						       : (struct rules_first){INFINITY, INFINITY};
	}
	for (uint32_t at = view->capacity - 1; at >= 1; at--)
		u->first[at] = unheld_join(&u->first[2 * at]);
}

bool rules_unheld_look(struct rules_unheld *u, const struct rules_decision *d,
		       enum rules_order order)
{
	uint32_t looks = d->view->capacity / PART_OF_NODES;

	if (u->order != order) {
		rules_unheld_free(u);
		u->order = order;
	}
	if (u->first == NULL && ++u->looks > (looks > LEAST_LOOKS ? looks : LEAST_LOOKS)) {
		u->looks = 0;
		unheld_build(u, d);
	}
	return u->first != NULL;
}

void rules_unheld_remove(struct rules_unheld *u, uint32_t node)
{
	uint32_t at;

	if (u->first == NULL)
		return;
	at = u->capacity + node;
	u->first[at] = (struct rules_first){INFINITY, INFINITY};
	for (at /= 2; at >= 1; at /= 2) {
		struct rules_first joined = unheld_join(&u->first[2 * at]);

		if (joined.key == u->first[at].key && joined.tie == u->first[at].tie)
			return;
		u->first[at] = joined;
	}
}

bool rules_unheld_after(const struct rules_unheld *u, uint32_t at, const struct rules_least *choice)
{
	const struct rules_first chosen = {choice->key, choice->tie};

	return comes_before(&chosen, &u->first[at]);
}
