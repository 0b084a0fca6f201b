/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Which nodes an answer shows: all of them in a small cluster, and to a client that only
 * asks; in a larger one, to a client that runs a job, those that the decision names.  So
 * neither that answer nor the work for it grows with the cluster.  It says how many nodes
 * there are, and whether one that is not shown has room in memory.
 */
#include <errno.h>
#include <stdlib.h>

#include "agent/home/place.h"

/* Indices of nodes in the view. */
struct shown {
	uint32_t *list;
	size_t count;
};

static void shown_add(struct shown *s, const uint32_t *nodes, size_t n)
{
	for (size_t i = 0; i < n; i++)
		s->list[s->count++] = nodes[i];
}

static int by_index(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

/* Leaves each index once; home, 0, comes first. */
static void shown_sort(struct shown *s)
{
	size_t kept = 0;

	qsort(s->list, s->count, sizeof(*s->list), by_index);
	for (size_t i = 0; i < s->count; i++)
		if (!i || s->list[i] != s->list[kept - 1])
			s->list[kept++] = s->list[i];
	s->count = kept;
}

static void shown_all(struct shown *s, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		shown_add(s, &i, 1);
}

/* Adds home, the node that the user named, and the nodes that plan, tasks and moves name. */
static void shown_examined(struct shown *s, const struct place *p, const struct view_decision *d)
{
	const struct matrix_entry *named = matrix_find(p->home->matrix, p->placement.ask.node);
	const struct rules_plan *plan = &d->plan;
	const uint32_t most = sizeof(plan->tied) / sizeof(*plan->tied);

	shown_add(s, &d->home, 1);
	shown_add(s, &plan->node, 1);
	if (named && named->view_index)
		shown_add(s, &named->view_index, 1);
	shown_add(s, plan->tied, plan->ntied < most ? plan->ntied : most);
	shown_add(s, plan->candidates, plan->ncandidates);
	for (uint32_t i = 0; i < plan->nreasons; i++)
		shown_add(s, &plan->reasons[i].node, 1);
	shown_add(s, d->nodes, d->ntasks);
	for (size_t i = 0; i < d->nmoves; i++)
		shown_add(s, &d->moves[i].to, 1);
	shown_sort(s);
}

/* Adds home, the nodes where the job goes, those of closed owners, and those not believed. */
static void shown_told(struct shown *s, const struct place *p, const struct view_decision *d)
{
	const struct cluster_view *view = p->home->view;
	const uint32_t count = cluster_view_count(view);

	for (uint32_t i = 0; i < count; i++) {
		const struct iocom_vector *v = cluster_view_vector(view, i);
		bool goes = i == d->home || i == d->plan.node ||
			    !strcmp(v->name, p->placement.ask.node);

		for (uint32_t k = 0; k < d->ntasks && !goes; k++)
			goes = d->nodes[k] == i;
		if (goes || (!v->accepts_jobs && *v->owner) || outcomes_doubt(&p->factors, i) > 1)
			shown_add(s, &i, 1);
	}
}

/* Whether the sentences about a decision tell of all nodes' vectors: of the way of its data. */
static bool place_tells_all(const struct place *p)
{
	const struct placement *placement = &p->placement;

	return !placement->ask.brief || placement->need.value[NEED_DATA_MB] > 0;
}

/* Returns how many indices shown_examined adds at most. */
static size_t shown_most(const struct view_decision *d)
{
	const struct rules_plan *plan = &d->plan;

	return 3 + sizeof(plan->tied) / sizeof(*plan->tied) + plan->ncandidates + plan->nreasons +
	       d->ntasks + d->nmoves;
}

/* Returns whether a node that is not shown has room for the job's memory. */
static bool has_room_elsewhere(const struct place *p, const struct shown *s)
{
	const struct cluster_view *view = p->home->view;
	uint32_t count = cluster_view_count(view);
	size_t at = 0;

	for (uint32_t i = 0; i < count; i++) {
		if (at < s->count && s->list[at] == i)
			at++;
		else if (placement_has_room(&p->placement, cluster_view_vector(view, i)))
			return true;
	}
	return false;
}

static int place_copy_nodes(struct place *p, const struct shown *s, uint64_t now)
{
	const struct cluster_view *view = p->home->view;
	struct placement *placement = &p->placement;

	placement->nodes = calloc(s->count, sizeof(*placement->nodes));
	if (!placement->nodes)
		return -ENOMEM;
	for (size_t i = 0; i < s->count; i++)
		placement->nodes[placement->nnodes++] = (struct placement_node){
			.vector = *cluster_view_vector(view, s->list[i]),
			.age_ms = cluster_view_age_ms(view, s->list[i], now),
			.self = s->list[i] == 0,
			.doubt = outcomes_doubt(&p->factors, s->list[i]),
		};
	return 0;
}

int place_take_nodes(struct place *p, const struct view_decision *d, uint64_t now)
{
	uint32_t count = cluster_view_count(p->home->view);
	bool runs = p->placement.ask.run;
	bool whole = count <= PLACEMENT_ROW_WHOLE || (!runs && place_tells_all(p));
	struct shown s = {.list = calloc(runs && !whole ? shown_most(d) : count, sizeof(*s.list))};
	int rc;

	if (!s.list)
		return -ENOMEM;
	if (whole)
		shown_all(&s, count);
	else if (!runs)
		shown_told(&s, p, d);
	else
		shown_examined(&s, p, d);
	rc = place_copy_nodes(p, &s, now);
	p->placement.known = count;
	p->placement.room_elsewhere = has_room_elsewhere(p, &s);
	free(s.list);
	return rc;
}
