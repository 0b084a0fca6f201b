/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Zatti's a.matrix (MODEL 4.4): slots of lists ascending by free memory.
 *
 *   binary   slot = 2 cpu_bit + io_bit; bit 1 means available
 *   real     slot = cpu interval * n + io interval, both ascending by what is
 *            left: floor(n (top - load) / top)                        O-33
 *
 * A list is a treap over node indices with the key (free memory, index): updates and the first
 * fit cost O(log n).  Its shape depends on its content alone (the priorities are a hash of the
 * index), not on its history.  Each subtree knows its least loads, so that nodes which fail a
 * threshold that the slot does not show are skipped in groups.  Closed nodes are in no slot.
 */
#include <errno.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "balancer/rules/zatti.h"

#define NIL	UINT32_MAX
#define NO_SLOT UINT32_MAX

struct key {
	double free_mb;
	uint32_t at;
};

static const struct key after_all = {INFINITY, NIL};

static bool less(struct key a, struct key b)
{
	return a.free_mb != b.free_mb ? a.free_mb < b.free_mb : a.at < b.at;
}

static struct key zatti_index_key_of(const struct rules_zatti_index *x, uint32_t at)
{
	return (struct key){x->links[at].free_mb, at};
}

/* --- the tables --------------------------------------------------------------- */

struct rules_zatti_cuts rules_zatti_cuts(const struct rules_params *p)
{
	double queue_delta = p->zatti_relative ? 0 : p->zatti_queue_delta;
	double blocks_delta = p->zatti_relative ? 0 : p->zatti_blocks_delta;

	return (struct rules_zatti_cuts){
		.idle = p->zatti_idle,
		.cpu_limit =
			p->zatti_idle ? 100 - p->zatti_idle_percent : p->zatti_queue - queue_delta,
		.io_limit = p->zatti_blocks_per_s - blocks_delta,
		.cpu_top = p->zatti_idle ? 100 : p->zatti_queue,
		.io_top = p->zatti_blocks_per_s,
		.intervals = (uint32_t)p->zatti_intervals,
		.cpu_need = p->zatti_cpu_need,
		.io_need = p->zatti_io_need,
	};
}

int rules_zatti_init(struct rules_zatti_index *x, bool real, const struct rules_params *params)
{
	uint32_t n = real ? (uint32_t)params->zatti_intervals : 2;

	*x = (struct rules_zatti_index){
		.real = real,
		.cuts = rules_zatti_cuts(params),
		.nslots = n * n,
		.nrows = n,
	};
	x->roots = malloc(x->nslots * sizeof(*x->roots));
	x->row_sizes = calloc(n, sizeof(*x->row_sizes));
	if (x->roots == NULL || x->row_sizes == NULL) {
		rules_zatti_free(x);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < x->nslots; i++)
		x->roots[i] = NIL;
	return 0;
}

void rules_zatti_free(struct rules_zatti_index *x)
{
	free(x->roots);
	free(x->row_sizes);
	free(x->links);
	memset(x, 0, sizeof(*x));
}

static uint32_t zatti_index_hash(uint32_t x)
{
	x = (x ^ (x >> 16)) * 0x7feb352du;
	x = (x ^ (x >> 15)) * 0x846ca68bu;
	return x ^ (x >> 16);
}

int rules_zatti_reserve(struct rules_zatti_index *x, uint32_t capacity)
{
	struct rules_zatti_link *links;

	if (capacity <= x->capacity)
		return 0;
	links = realloc(x->links, (size_t)capacity * sizeof(*links));
	if (links == NULL)
		return -ENOMEM;
	x->links = links;
	for (uint32_t i = x->capacity; i < capacity; i++)
		links[i] = (struct rules_zatti_link){.left = NIL,
						     .right = NIL,
						     .draw = zatti_index_hash(i + 1),
						     .slot = NO_SLOT};
	x->capacity = capacity;
	return 0;
}

/* Makes an index of the nodes in VIEW; NULL: out of memory. */
static struct rules_zatti_index *zatti_index_build(const struct rules_view *view, bool real,
						   const struct rules_params *params)
{
	struct rules_zatti_index *x = malloc(sizeof(*x));

	if (x == NULL || rules_zatti_init(x, real, params) < 0) {
		free(x);
		return NULL;
	}
	if (rules_zatti_reserve(x, view->capacity) < 0) {
		rules_zatti_free(x);
		free(x);
		return NULL;
	}
	for (uint32_t i = 0; i < view->count; i++)
		rules_zatti_set(x, i, &view->cells[i]);
	return x;
}

static void drop(struct rules_zatti_index *x)
{
	if (x != NULL)
		rules_zatti_free(x);
	free(x);
}

int rules_zatti_keep(struct rules_view *view, bool binary, bool real,
		     const struct rules_params *params)
{
	struct rules_zatti_index *kept[2] = {NULL, NULL};
	bool wanted[2] = {binary, real};

	for (int i = 0; i < 2; i++) {
		kept[i] = wanted[i] ? zatti_index_build(view, i, params) : NULL;
		if (wanted[i] && kept[i] == NULL) {
			drop(kept[0]);
			return -ENOMEM;
		}
	}
	for (int i = 0; i < 2; i++) {
		drop(view->zatti[i]);
		view->zatti[i] = kept[i];
	}
	return 0;
}

bool rules_zatti_serves(const struct rules_zatti_index *x, const struct rules_params *params)
{
	struct rules_zatti_cuts want = rules_zatti_cuts(params);
	const struct rules_zatti_cuts *have = &x->cuts;

	if (x->roots == NULL || have->idle != want.idle || have->cpu_need != want.cpu_need ||
	    have->io_need != want.io_need)
		return false;
	if (x->real)
		return have->cpu_top == want.cpu_top && have->io_top == want.io_top &&
		       have->intervals == want.intervals;
	return have->cpu_limit == want.cpu_limit && have->io_limit == want.io_limit;
}

uint32_t rules_zatti_interval(const struct rules_zatti_index *x, double load, double top)
{
	double n = x->cuts.intervals, left = top > 0 ? (top - load) / top * n : 0;

	if (!(left > 0))
		return 0;
	return left < n ? (uint32_t)left : x->cuts.intervals - 1;
}

static uint32_t slot_of(const struct rules_zatti_index *x, const struct rules_cell *c, double cpu,
			double io)
{
	const struct rules_zatti_cuts *cuts = &x->cuts;
	bool cpu_bit, io_bit;

	if (x->real)
		return rules_zatti_interval(x, cpu, cuts->cpu_top) * cuts->intervals +
		       rules_zatti_interval(x, io, cuts->io_top);
	cpu_bit = c->spent_cpu <= 0 && cpu <= cuts->cpu_limit;
	io_bit = c->spent_io <= 0 && io <= cuts->io_limit;
	return 2u * cpu_bit + io_bit;
}

/* --- treaps ---------------------------------------------------------------------- */

static uint32_t size_of(const struct rules_zatti_index *x, uint32_t at)
{
	return at == NIL ? 0 : x->links[at].size;
}

static void pull(struct rules_zatti_index *x, uint32_t at)
{
	struct rules_zatti_link *l = &x->links[at];

	l->size = 1;
	l->least_cpu = l->cpu;
	l->least_io = l->io;
	for (int side = 0; side < 2; side++) {
		uint32_t child = side ? l->right : l->left;
		const struct rules_zatti_link *c;

		if (child == NIL)
			continue;
		c = &x->links[child];
		l->size += c->size;
		l->least_cpu = c->least_cpu < l->least_cpu ? c->least_cpu : l->least_cpu;
		l->least_io = c->least_io < l->least_io ? c->least_io : l->least_io;
	}
}

static bool zatti_index_above(const struct rules_zatti_index *x, uint32_t a, uint32_t b)
{
	uint32_t da = x->links[a].draw, db = x->links[b].draw;

	return da != db ? da > db : a > b;
}

/* Splits the tree AT into keys below K and the others. */
static void zatti_index_split(struct rules_zatti_index *x, uint32_t at, struct key k, uint32_t *low,
			      uint32_t *high)
{
	if (at == NIL) {
		*low = *high = NIL;
		return;
	}
	if (less(zatti_index_key_of(x, at), k)) {
		*low = at;
		zatti_index_split(x, x->links[at].right, k, &x->links[at].right, high);
	} else {
		*high = at;
		zatti_index_split(x, x->links[at].left, k, low, &x->links[at].left);
	}
	pull(x, at);
}

/* Joins two trees; all keys of LOW are below those of HIGH. */
static uint32_t zatti_index_merge(struct rules_zatti_index *x, uint32_t low, uint32_t high)
{
	if (low == NIL || high == NIL)
		return low == NIL ? high : low;
	if (zatti_index_above(x, low, high)) {
		x->links[low].right = zatti_index_merge(x, x->links[low].right, high);
		pull(x, low);
		return low;
	}
	x->links[high].left = zatti_index_merge(x, low, x->links[high].left);
	pull(x, high);
	return high;
}

static uint32_t zatti_index_insert(struct rules_zatti_index *x, uint32_t at, uint32_t node)
{
	struct rules_zatti_link *l;

	if (at == NIL || zatti_index_above(x, node, at)) {
		zatti_index_split(x, at, zatti_index_key_of(x, node), &x->links[node].left,
				  &x->links[node].right);
		at = node;
	} else {
		l = &x->links[at];
		if (less(zatti_index_key_of(x, node), zatti_index_key_of(x, at)))
			l->left = zatti_index_insert(x, l->left, node);
		else
			l->right = zatti_index_insert(x, l->right, node);
	}
	pull(x, at);
	return at;
}

static uint32_t erase(struct rules_zatti_index *x, uint32_t at, uint32_t node)
{
	struct rules_zatti_link *l = &x->links[at];

	if (at == node)
		return zatti_index_merge(x, l->left, l->right);
	if (less(zatti_index_key_of(x, node), zatti_index_key_of(x, at)))
		l->left = erase(x, l->left, node);
	else
		l->right = erase(x, l->right, node);
	pull(x, at);
	return at;
}

/* Updates the path to NODE, whose loads changed but not its place. */
static void repull(struct rules_zatti_index *x, uint32_t at, uint32_t node)
{
	if (at != node)
		repull(x,
		       less(zatti_index_key_of(x, node), zatti_index_key_of(x, at))
			       ? x->links[at].left
			       : x->links[at].right,
		       node);
	pull(x, at);
}

void rules_zatti_set(struct rules_zatti_index *x, uint32_t at, const struct rules_cell *c)
{
	struct rules_zatti_link *l = &x->links[at];
	struct rules_zatti_link new = {.left = NIL, .right = NIL, .draw = l->draw, .slot = NO_SLOT};

	if (c != NULL && c->accepts) {
		new.free_mb = rules_zatti_free_mb(c);
		new.cpu = rules_zatti_cpu(&x->cuts, x->real, c);
		new.io = rules_zatti_io(c);
		new.slot = slot_of(x, c, new.cpu, new.io);
	}
	if (new.slot == l->slot &&new.free_mb == l->free_mb) {
		if (new.slot == NO_SLOT || (new.cpu == l->cpu &&new.io == l->io))
			return;
		l->cpu = new.cpu;
		l->io = new.io;
		repull(x, x->roots[l->slot], at);
		return;
	}
	if (l->slot != NO_SLOT) {
		x->roots[l->slot] = erase(x, x->roots[l->slot], at);
		x->row_sizes[l->slot / x->nrows]--;
	}
	*l = new;
	if (l->slot != NO_SLOT) {
		x->roots[l->slot] = zatti_index_insert(x, x->roots[l->slot], at);
		x->row_sizes[l->slot / x->nrows]++;
	}
}

/* --- matching -------------------------------------------------------------------- */

uint32_t rules_zatti_size(const struct rules_zatti_index *x, uint32_t slot)
{
	return size_of(x, x->roots[slot]);
}

/* The number of keys of the tree AT below K. */
static uint32_t zatti_index_rank(const struct rules_zatti_index *x, uint32_t at, struct key k)
{
	uint32_t n = 0;

	while (at != NIL) {
		const struct rules_zatti_link *l = &x->links[at];

		if (less(zatti_index_key_of(x, at), k)) {
			n += size_of(x, l->left) + 1;
			at = l->right;
		} else {
			at = l->left;
		}
	}
	return n;
}

/* The key that has N keys below it. */
static struct key nth(const struct rules_zatti_index *x, uint32_t at, uint32_t n)
{
	for (;;) {
		const struct rules_zatti_link *l = &x->links[at];
		uint32_t left = size_of(x, l->left);

		if (n == left)
			return zatti_index_key_of(x, at);
		at = n < left ? l->left : l->right;
		n = n < left ? n : n - left - 1;
	}
}

uint32_t rules_zatti_short(const struct rules_zatti_index *x, uint32_t slot, double memory_mb)
{
	return zatti_index_rank(x, x->roots[slot], (struct key){memory_mb, 0});
}

static bool zatti_index_fits(const struct rules_zatti_query *q, double cpu, double io)
{
	return cpu <= q->cpu_most && cpu < q->cpu_below && io + q->io_need <= q->io_most &&
	       io < q->io_below;
}

/* Collects fitting nodes of [LOW, HIGH) in ascending order.  Returns true when there are enough. */
static bool zatti_index_walk(const struct rules_zatti_index *x, uint32_t at, struct key low,
			     struct key high, struct rules_zatti_query *q)
{
	const struct rules_zatti_link *l;
	struct key here;

	if (at == NIL)
		return false;
	l = &x->links[at];
	if (!zatti_index_fits(q, l->least_cpu, l->least_io))
		return false;
	here = zatti_index_key_of(x, at);
	if (!less(here, low) && zatti_index_walk(x, l->left, low, high, q))
		return true;
	if (!less(here, low) && less(here, high) && at != q->home &&
	    zatti_index_fits(q, l->cpu, l->io)) {
		q->found[q->n++] = at;
		if (q->n == q->room)
			return true;
	}
	return less(here, high) && zatti_index_walk(x, l->right, low, high, q);
}

void rules_zatti_collect(const struct rules_zatti_index *x, uint32_t slot,
			 struct rules_zatti_query *q)
{
	struct key low = {q->memory_mb, 0}, end, start;
	uint32_t root = x->roots[slot], most = q->room, first, equal;
	bool full;

	if (q->n == q->room)
		return;
	if (q->n > 0) {
		zatti_index_walk(x, root, low, after_all, q);
		return;
	}
	q->room = 1;
	full = zatti_index_walk(x, root, low, after_all, q);
	q->room = most;
	if (!full)
		return;
	/* Start at a random one of equally free nodes, so that homes do not all pick the same. */
	low = (struct key){x->links[q->found[0]].free_mb, 0};
	end = (struct key){low.free_mb, NIL};
	first = zatti_index_rank(x, root, low);
	equal = zatti_index_rank(x, root, end) - first;
	start = nth(x, root, first + (uint32_t)(q->salt % equal));
	q->n = 0;
	if (zatti_index_walk(x, root, start, end, q) || zatti_index_walk(x, root, low, start, q))
		return;
	zatti_index_walk(x, root, end, after_all, q);
}
