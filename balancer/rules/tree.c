/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The indexes of a view: a tournament tree of least (key, tie) for each order of the nodes, a
 * tree of bounds to rule out whole subtrees, and a tree of corners, the least and the most of
 * both loads that make up the weighted load.
 *
 * A change climbs from its leaf until an ancestor stays the same, after about two levels on
 * average.  Only the kept indexes exist.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "balancer/rules/rules_private.h"
#include "balancer/rules/zatti.h"

static const struct rules_least nothing = {INFINITY, INFINITY, 0};
static const struct rules_bound unbounded = {INFINITY, INFINITY, INFINITY, INFINITY,
					     INFINITY, 0,	 0};
static const struct rules_corner nowhere = {
	.least_cpu = INFINITY,
	.least_io = INFINITY,
	.most_cpu = -INFINITY,
	.most_io = -INFINITY,
	.least_mix = {INFINITY, INFINITY},
	.most_mix = {-INFINITY, -INFINITY},
};

static double tree_lesser(double a, double b)
{
	return a < b ? a : b;
}

static double tree_greater(double a, double b)
{
	return a > b ? a : b;
}

static double io_share(const struct rules_cell *c)
{
	if (c->performance > 0)
		return c->io / c->performance;
	return c->io > 0 ? INFINITY : 0;
}

static double order_key(const struct rules_cell *c, enum rules_order order)
{
	switch (order) {
	case RULES_ORDER_IO:
		return c->io;
	case RULES_ORDER_MEM:
		return rules_cell_memory_ratio(c, 0);
	case RULES_ORDER_CPU_WEIGHTED:
		return c->cpu / (c->cores * c->mips);
	case RULES_ORDER_MEM_FREE:
		return c->n_mem > 0 ? c->memory - c->n_mem : -INFINITY;
	case RULES_ORDER_IO_SHARE:
		return io_share(c);
	case RULES_ORDER_EXPLICIT:
		return c->explicit_io;
	case RULES_ORDER_COM:
	case RULES_ORDER_COM_MEM:
		return c->com;
	default:
		return c->cpu;
	}
}

static double order_tie(const struct rules_cell *c, enum rules_order order)
{
	switch (order) {
	case RULES_ORDER_TASKS:
	case RULES_ORDER_EXPLICIT:
		return 0;
	case RULES_ORDER_COM:
		return c->cpu;
	default:
		return c->memory;
	}
}

static struct rules_bound leaf_bound(const struct rules_cell *c)
{
	double queue = (c->queue + 1) / c->cores;
	bool disk = c->disk_mb_per_s > 0;
	double cpu_factor = (queue > 1 ? queue : 1) / c->mips;
	double s_per_mb = disk ? 1 / c->disk_mb_per_s : 0;

	return (struct rules_bound){
		.io_share = io_share(c),
		.cpu_factor = cpu_factor,
		.fixed_ms = disk ? c->fixed_ms : 0,
		.s_per_mb = s_per_mb,
		.mixed = cpu_factor + RULES_MIX * s_per_mb,
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
		.io_share = tree_lesser(l->io_share, r->io_share),
		.cpu_factor = tree_lesser(l->cpu_factor, r->cpu_factor),
		.fixed_ms = tree_lesser(l->fixed_ms, r->fixed_ms),
		.s_per_mb = tree_lesser(l->s_per_mb, r->s_per_mb),
		.mixed = tree_lesser(l->mixed, r->mixed),
		.disks = l->disks + r->disks,
		.accepting = l->accepting + r->accepting,
	};
}

static uint32_t at_corner(const struct rules_corner *c, double cpu, double io)
{
	return c->least_cpu == cpu && c->least_io == io ? c->count : 0;
}

static struct rules_corner join_corner(const struct rules_corner *l, const struct rules_corner *r)
{
	double cpu = tree_lesser(l->least_cpu, r->least_cpu),
	       io = tree_lesser(l->least_io, r->least_io);
	struct rules_corner joined = {
		.least_cpu = cpu,
		.least_io = io,
		.most_cpu = tree_greater(l->most_cpu, r->most_cpu),
		.most_io = tree_greater(l->most_io, r->most_io),
		.count = at_corner(l, cpu, io) + at_corner(r, cpu, io),
	};

	for (int i = 0; i < RULES_MIXES; i++) {
		joined.least_mix[i] = tree_lesser(l->least_mix[i], r->least_mix[i]);
		joined.most_mix[i] = tree_greater(l->most_mix[i], r->most_mix[i]);
	}
	return joined;
}

static bool same_least(const struct rules_least *a, const struct rules_least *b)
{
	return a->key == b->key && a->tie == b->tie && a->count == b->count;
}

static bool same_bound(const struct rules_bound *a, const struct rules_bound *b)
{
	return a->io_share == b->io_share && a->cpu_factor == b->cpu_factor &&
	       a->fixed_ms == b->fixed_ms && a->s_per_mb == b->s_per_mb && a->mixed == b->mixed &&
	       a->disks == b->disks && a->accepting == b->accepting;
}

static bool same_corner(const struct rules_corner *a, const struct rules_corner *b)
{
	for (int i = 0; i < RULES_MIXES; i++)
		if (a->least_mix[i] != b->least_mix[i] || a->most_mix[i] != b->most_mix[i])
			return false;
	return a->least_cpu == b->least_cpu && a->least_io == b->least_io &&
	       a->most_cpu == b->most_cpu && a->most_io == b->most_io && a->count == b->count;
}

/* FOR_ORDERS loops over the orders that VIEW keeps; most views keep two or three of the ten. */
#define FOR_ORDERS(view, o)                                                                        \
	for (uint32_t left_ = (view)->kept & (RULES_KEEP(RULES_ORDERS) - 1), o;                    \
	     left_ != 0 && (o = (uint32_t)__builtin_ctz(left_), true); left_ &= left_ - 1)

/* Climbs to the root, or to the first ancestor that the change does not affect. */
#define DEFINE_CLIMB(name)                                                                         \
	static void set_##name(struct rules_##name *tree, uint32_t at, struct rules_##name leaf)   \
	{                                                                                          \
		if (same_##name(&tree[at], &leaf))                                                 \
			return;                                                                    \
		tree[at] = leaf;                                                                   \
		for (at /= 2; at >= 1; at /= 2) {                                                  \
			struct rules_##name joined =                                               \
				join_##name(&tree[2 * at], &tree[2 * at + 1]);                     \
                                                                                                   \
			if (same_##name(&tree[at], &joined))                                       \
				return;                                                            \
			tree[at] = joined;                                                         \
		}                                                                                  \
	}

DEFINE_CLIMB(least)
DEFINE_CLIMB(bound)
DEFINE_CLIMB(corner)

static struct rules_least leaf_least(const struct rules_view *view, uint32_t index,
				     enum rules_order order)
{
	const struct rules_cell *c = &view->cells[index];

	if (index >= view->count)
		return nothing;
	return (struct rules_least){order_key(c, order), order_tie(c, order), 1};
}

static struct rules_corner leaf_corner(const struct rules_view *view, uint32_t index)
{
	const struct rules_cell *c = &view->cells[index];
	struct rules_corner leaf = {c->cpu, c->io, c->cpu, c->io, .count = 1};

	if (index >= view->count)
		return nowhere;
	for (int i = 0; i < RULES_MIXES; i++)
		leaf.least_mix[i] = leaf.most_mix[i] = c->cpu + rules_mixes[i] * c->io;
	return leaf;
}

/* Sets only the leaves; rules_tree_join_all does the rest. */
static void put_leaves(struct rules_view *view, uint32_t index)
{
	uint32_t at = view->capacity + index;

	FOR_ORDERS(view, o)
	view->least[o][at] = leaf_least(view, index, o);
	if (view->bounds != NULL)
		view->bounds[at] =
			index < view->count ? leaf_bound(&view->cells[index]) : unbounded;
	if (view->corners != NULL)
		view->corners[at] = leaf_corner(view, index);
}

static void tree_climb(struct rules_view *view, uint32_t index)
{
	uint32_t at = view->capacity + index;

	FOR_ORDERS(view, o)
	set_least(view->least[o], at, leaf_least(view, index, o));
	if (view->bounds != NULL)
		set_bound(view->bounds, at,
			  index < view->count ? leaf_bound(&view->cells[index]) : unbounded);
	if (view->corners != NULL)
		set_corner(view->corners, at, leaf_corner(view, index));
}

static void set_zatti(struct rules_view *view, uint32_t index)
{
	for (int i = 0; i < 2; i++)
		if (view->zatti[i] != NULL)
			rules_zatti_set(view->zatti[i], index,
					index < view->count ? &view->cells[index] : NULL);
}

void rules_tree_update(struct rules_view *view, uint32_t index)
{
	if (view->deferred)
		put_leaves(view, index);
	else
		tree_climb(view, index);
	set_zatti(view, index);
}

void rules_tree_copy(struct rules_view *to, const struct rules_view *from, uint32_t index)
{
	uint32_t at = to->capacity + index, there = from->capacity + index;

	if (!to->deferred || (to->kept & ~from->kept) != 0) {
		rules_tree_update(to, index);
		return;
	}
	FOR_ORDERS(to, o)
	to->least[o][at] = from->least[o][there];
	if (to->bounds != NULL)
		to->bounds[at] = from->bounds[there];
	if (to->corners != NULL)
		to->corners[at] = from->corners[there];
	set_zatti(to, index);
}

#define LEVELS_AHEAD 3 /* a climb seldom goes further up than this */

void rules_tree_prefetch(const struct rules_view *view, uint32_t index)
{
	const char *cell = (const char *)&view->cells[index];
	uint32_t at = view->capacity + index;
	int levels = view->deferred ? 1 : LEVELS_AHEAD;

	for (size_t i = 0; i < sizeof(view->cells[0]); i += 64)
		__builtin_prefetch(cell + i, 1);
	for (int level = 0; level < levels && at > 1; level++, at /= 2) {
		FOR_ORDERS(view, o)
		__builtin_prefetch(&view->least[o][at & ~1u], 1);
		if (view->bounds != NULL)
			__builtin_prefetch(&view->bounds[at & ~1u], 1);
		if (view->corners != NULL)
			__builtin_prefetch(&view->corners[at & ~1u], 1);
	}
}

/* --- building whole trees, from the leaves up ----------------------------------- */

#define DEFINE_JOIN_ALL(name)                                                                      \
	static void join_all_##name(const struct rules_view *view, struct rules_##name *tree)      \
	{                                                                                          \
		for (uint32_t at = view->capacity - 1; at >= 1; at--)                              \
			tree[at] = join_##name(&tree[2 * at], &tree[2 * at + 1]);                  \
	}

DEFINE_JOIN_ALL(least)
DEFINE_JOIN_ALL(bound)
DEFINE_JOIN_ALL(corner)

void rules_tree_join_all(struct rules_view *view)
{
	if (view->capacity == 0)
		return;
	FOR_ORDERS(view, o)
	join_all_least(view, view->least[o]);
	if (view->bounds != NULL)
		join_all_bound(view, view->bounds);
	if (view->corners != NULL)
		join_all_corner(view, view->corners);
}

static void build_least(const struct rules_view *view, struct rules_least *tree, int order)
{
	tree[0] = nothing;
	for (uint32_t i = 0; i < view->capacity; i++)
		tree[view->capacity + i] = leaf_least(view, i, order);
	join_all_least(view, tree);
}

static void build_bounds(const struct rules_view *view, struct rules_bound *tree)
{
	tree[0] = unbounded;
	for (uint32_t i = 0; i < view->capacity; i++)
		tree[view->capacity + i] =
			i < view->count ? leaf_bound(&view->cells[i]) : unbounded;
	join_all_bound(view, tree);
}

static void build_corners(const struct rules_view *view, struct rules_corner *tree)
{
	tree[0] = nowhere;
	for (uint32_t i = 0; i < view->capacity; i++)
		tree[view->capacity + i] = leaf_corner(view, i);
	join_all_corner(view, tree);
}

static void tree_build(struct rules_view *view, uint32_t index)
{
	if (index < RULES_ORDERS)
		build_least(view, view->least[index], (int)index);
	else if (index == RULES_INDEX_BOUNDS)
		build_bounds(view, view->bounds);
	else
		build_corners(view, view->corners);
}

/* Returns where the array of an index is kept, and the size of its elements. */
static void **array_of(struct rules_view *view, uint32_t index, size_t *size)
{
	if (index < RULES_ORDERS) {
		*size = sizeof(struct rules_least);
		return (void **)&view->least[index];
	}
	if (index == RULES_INDEX_BOUNDS) {
		*size = sizeof(struct rules_bound);
		return (void **)&view->bounds;
	}
	*size = sizeof(struct rules_corner);
	return (void **)&view->corners;
}

/* Grows *ARRAY to N elements; if out of memory, it stays as it was. */
static int tree_grow(void *array, size_t n, size_t size)
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
	int ret = tree_grow(&view->names, capacity, sizeof(view->names[0]));

	if (ret == 0)
		ret = tree_grow(&view->cells, capacity, sizeof(view->cells[0]));
	for (int i = 0; ret == 0 && i < 2; i++)
		if (view->zatti[i] != NULL)
			ret = rules_zatti_reserve(view->zatti[i], capacity);
	for (uint32_t i = 0; ret == 0 && i < RULES_INDEXES; i++) {
		size_t size;
		void **array = array_of(view, i, &size);

		if (rules_view_has(view, i))
			ret = tree_grow(array, 2 * (size_t)capacity, size);
	}
	if (ret < 0)
		return ret; /* arrays may be larger than the old capacity, which does no harm */
	view->capacity = capacity;
	for (uint32_t i = 0; i < RULES_INDEXES; i++)
		if (rules_view_has(view, i))
			tree_build(view, i);
	return 0;
}

/* Allocates missing indexes of KEEP; on failure it frees the new ones again. */
static int add_missing(struct rules_view *view, uint32_t keep)
{
	uint32_t added = 0;

	for (uint32_t i = 0; i < RULES_INDEXES; i++) {
		size_t size;
		void **array = array_of(view, i, &size);

		if (!(keep & RULES_KEEP(i)) || rules_view_has(view, i))
			continue;
		*array = malloc(2 * (size_t)view->capacity * size);
		if (*array == NULL) {
			for (i = 0; i < RULES_INDEXES; i++) {
				array = array_of(view, i, &size);
				if (added & RULES_KEEP(i)) {
					free(*array);
					*array = NULL;
				}
			}
			return -ENOMEM;
		}
		added |= RULES_KEEP(i);
		tree_build(view, i);
	}
	return 0;
}

int rules_tree_keep(struct rules_view *view, uint32_t keep)
{
	int ret = view->capacity > 0 ? add_missing(view, keep) : 0;

	if (ret < 0)
		return ret;
	for (uint32_t i = 0; i < RULES_INDEXES; i++) {
		size_t size;
		void **array = array_of(view, i, &size);

		if (keep & RULES_KEEP(i))
			continue;
		free(*array);
		*array = NULL;
	}
	view->kept = keep;
	return 0;
}

void rules_tree_free(struct rules_view *view)
{
	free(view->names);
	free(view->cells);
	for (int o = 0; o < RULES_ORDERS; o++)
		free(view->least[o]);
	free(view->bounds);
	free(view->corners);
	for (int i = 0; i < 2; i++) {
		if (view->zatti[i] != NULL)
			rules_zatti_free(view->zatti[i]);
		free(view->zatti[i]);
	}
}

uint32_t rules_tree_population(const struct rules_view *view, uint32_t at)
{
	int down = __builtin_clz(at) - __builtin_clz(view->capacity);
	uint32_t width = 1u << down, first = (at << down) - view->capacity;

	if (first >= view->count)
		return 0;
	return view->count - first < width ? view->count - first : width;
}
