/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The search trees of a view: for each order of the nodes a tournament tree of
 * least (key, tie), one tree of bounds to rule out whole subtrees, and one of
 * sums, whose root cannot drift: it depends on the leaves alone, not on how they
 * came about (and not on the capacity: empty leaves to the right add zeroes).
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "rules_private.h"

static const struct rules_least nothing = {INFINITY, INFINITY, 0};
static const struct rules_bound unbounded = {INFINITY, INFINITY, INFINITY, INFINITY, 0, 0};

static double lesser(double a, double b)
{
	return a < b ? a : b;
}

static double order_key(const struct rules_cell *c, enum rules_order order)
{
	switch (order) {
	case RULES_ORDER_IO:
		return c->io;
	case RULES_ORDER_MEM:
		return rules_cell_memory_ratio(c, 0);
	case RULES_ORDER_CPU:
		return c->cpu;
	default:
		return c->cpu / (c->cores * c->mips);
	}
}

static struct rules_bound leaf_bound(const struct rules_cell *c)
{
	double queue = (c->queue + 1) / c->cores;
	bool disk = c->disk_mb_per_s > 0;

	return (struct rules_bound){
		.io_share = c->performance > 0 ? c->io / c->performance
			    : c->io > 0	       ? INFINITY
					       : 0,
		.cpu_factor = (queue > 1 ? queue : 1) / c->mips,
		.fixed_ms = disk ? c->fixed_ms : 0,
		.s_per_mb = disk ? 1 / c->disk_mb_per_s : 0,
		.disks = disk,
		.accepting = c->accepts,
	};
}

static struct rules_least join_least(const struct rules_least *l, const struct rules_least *r)
{
	if (r->count == 0 || l->count == 0)
		return r->count == 0 ? *l : *r;
	if (l->key == r->key && l->tie == r->tie)
		return (struct rules_least){l->key, l->tie, l->count + r->count};
	return l->key < r->key || (l->key == r->key && l->tie < r->tie) ? *l : *r;
}

static struct rules_bound join_bound(const struct rules_bound *l, const struct rules_bound *r)
{
	return (struct rules_bound){
		.io_share = lesser(l->io_share, r->io_share),
		.cpu_factor = lesser(l->cpu_factor, r->cpu_factor),
		.fixed_ms = lesser(l->fixed_ms, r->fixed_ms),
		.s_per_mb = lesser(l->s_per_mb, r->s_per_mb),
		.disks = l->disks + r->disks,
		.accepting = l->accepting + r->accepting,
	};
}

static bool same_least(const struct rules_least *a, const struct rules_least *b)
{
	return a->key == b->key && a->tie == b->tie && a->count == b->count;
}

static bool same_bound(const struct rules_bound *a, const struct rules_bound *b)
{
	return a->io_share == b->io_share && a->cpu_factor == b->cpu_factor &&
	       a->fixed_ms == b->fixed_ms && a->s_per_mb == b->s_per_mb && a->disks == b->disks &&
	       a->accepting == b->accepting;
}

/* Up to the root, or to the first ancestor that the change does not reach. */
static void set_least(struct rules_least *tree, uint32_t at, struct rules_least leaf)
{
	if (same_least(&tree[at], &leaf))
		return;
	tree[at] = leaf;
	for (at /= 2; at >= 1; at /= 2) {
		struct rules_least joined = join_least(&tree[2 * at], &tree[2 * at + 1]);

		if (same_least(&tree[at], &joined))
			return;
		tree[at] = joined;
	}
}

static void set_bound(struct rules_bound *tree, uint32_t at, struct rules_bound leaf)
{
	if (same_bound(&tree[at], &leaf))
		return;
	tree[at] = leaf;
	for (at /= 2; at >= 1; at /= 2) {
		struct rules_bound joined = join_bound(&tree[2 * at], &tree[2 * at + 1]);

		if (same_bound(&tree[at], &joined))
			return;
		tree[at] = joined;
	}
}

static void set_sum(struct rules_sum *tree, uint32_t at, struct rules_sum leaf)
{
	if (tree[at].io == leaf.io && tree[at].performance == leaf.performance)
		return;
	tree[at] = leaf;
	for (at /= 2; at >= 1; at /= 2) {
		tree[at].io = tree[2 * at].io + tree[2 * at + 1].io;
		tree[at].performance = tree[2 * at].performance + tree[2 * at + 1].performance;
	}
}

void rules_tree_update(struct rules_view *view, uint32_t index)
{
	const struct rules_cell *c = &view->cells[index];
	uint32_t at = view->capacity + index;
	bool here = index < view->count;

	for (int o = 0; o < RULES_ORDERS; o++)
		set_least(view->least[o], at,
			  here ? (struct rules_least){order_key(c, o), c->memory, 1} : nothing);
	set_bound(view->bounds, at, here ? leaf_bound(c) : unbounded);
	set_sum(view->sums, at,
		here ? (struct rules_sum){c->io, c->performance} : (struct rules_sum){0, 0});
}

static void rebuild(struct rules_view *view)
{
	uint32_t nodes = 2 * view->capacity;

	for (uint32_t at = 0; at < nodes; at++) {
		for (int o = 0; o < RULES_ORDERS; o++)
			view->least[o][at] = nothing;
		view->bounds[at] = unbounded;
		view->sums[at] = (struct rules_sum){0, 0};
	}
	for (uint32_t i = 0; i < view->count; i++)
		rules_tree_update(view, i);
}

/* Grows *ARRAY to N elements; it stays as it was when memory is out. */
static int grow(void *array, size_t n, size_t size)
{
	void **p = array;
	void *bigger;

	if (n > SIZE_MAX / size)
		return -ENOMEM;
	bigger = realloc(*p, n * size);
	if (bigger == NULL)
		return -ENOMEM;
	*p = bigger;
	return 0;
}

int rules_tree_grow(struct rules_view *view, uint32_t capacity)
{
	size_t nodes = 2 * (size_t)capacity;
	int ret = grow(&view->names, capacity, sizeof(view->names[0]));

	if (ret == 0)
		ret = grow(&view->cells, capacity, sizeof(view->cells[0]));
	for (int o = 0; ret == 0 && o < RULES_ORDERS; o++)
		ret = grow(&view->least[o], nodes, sizeof(view->least[o][0]));
	if (ret == 0)
		ret = grow(&view->bounds, nodes, sizeof(view->bounds[0]));
	if (ret == 0)
		ret = grow(&view->sums, nodes, sizeof(view->sums[0]));
	if (ret < 0)
		return ret; /* larger arrays, old capacity: nothing is lost */
	view->capacity = capacity;
	rebuild(view);
	return 0;
}

void rules_tree_free(struct rules_view *view)
{
	free(view->names);
	free(view->cells);
	for (int o = 0; o < RULES_ORDERS; o++)
		free(view->least[o]);
	free(view->bounds);
	free(view->sums);
}

uint32_t rules_tree_population(const struct rules_view *view, uint32_t at)
{
	uint32_t width = 1, first;

	while (at < view->capacity) {
		at *= 2;
		width *= 2;
	}
	first = at - view->capacity;
	if (first >= view->count)
		return 0;
	return view->count - first < width ? view->count - first : width;
}
