/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Best-first walk over a tournament tree: the leaves come out in ascending (key, tie), and each
 * costs about log2(n) steps, so a decision that looks at few nodes never touches the others.
 *
 * Equal leaves come out in a random order, every permutation equally likely, without listing
 * them first.  Imagine that each leaf carries an exponential clock of rate 1 and the earliest
 * goes first; a subtree with m equal leaves is due at the least of m clocks.  One level down,
 * that least lies on the left with probability left/m; as exponentials have no memory, the other
 * side is due Exp(its count) later.  The clocks follow from (salt, subtree), so the order is
 * repeatable and the same for any capacity of the tree.
 *
 * By weighted load, a subtree's key is computed from its corner: the least CPU load and the
 * least I/O load below it.  If one node has both (count > 0), the key is that node's; else it is
 * only a bound, and the subtree is opened when its turn comes.  So one tree serves all weights,
 * even when they change with every completion.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "balancer/rules/rules_private.h"
#include "iocom/array.h"

static uint64_t search_mix(uint64_t x)
{
	return rules_mix(x + 0x9e3779b97f4a7c15u);
}

/* A number in (0, 1), determined by the salt, STREAM, and the subtree's first leaf and width. */
static double search_uniform(const struct rules_search *s, uint32_t at, uint64_t stream)
{
	int down = __builtin_clz(at) - __builtin_clz(s->view->capacity);
	uint64_t leaf = ((uint64_t)at << down) - s->view->capacity;

	return ((double)(search_mix(s->salt ^
				    search_mix(leaf << 32 | (uint64_t)down << 8 | stream)) >>
			 12) +
		0.5) *
	       0x1p-52;
}

/*
 * A bound of w_cpu cpu + w_io io.  As much of it as possible is bounded by the sum of one node,
 * the rest by the least (or most) of each load.  SLACK leaves room for rounding, as the true
 * values are summed in another order.
 */
static inline double bound_of(const struct rules_search *s, double mix, double of_one, double cpu,
			      double io, double slack)
{
	double part = s->w_cpu < s->w_io / mix ? s->w_cpu : s->w_io / mix;

	return (part * of_one + (s->w_cpu - part) * cpu + (s->w_io - part * mix) * io) * slack;
}

#define BELOW (1 - 1e-12)
#define ABOVE (1 + 1e-12)

static inline double least_load(const struct rules_search *s, const struct rules_corner *c)
{
	double least = s->w_cpu * c->least_cpu + s->w_io * c->least_io;

	for (int i = 0; i < RULES_MIXES && c->count == 0; i++) {
		double bound = bound_of(s, rules_mixes[i], c->least_mix[i], c->least_cpu,
					c->least_io, BELOW);

		least = bound > least ? bound : least;
	}
	return least;
}

static inline double most_load(const struct rules_search *s, const struct rules_corner *c)
{
	double most = s->w_cpu * c->most_cpu + s->w_io * c->most_io;

	for (int i = 0; i < RULES_MIXES; i++) {
		double bound =
			bound_of(s, rules_mixes[i], c->most_mix[i], c->most_cpu, c->most_io, ABOVE);

		most = bound < most ? bound : most;
	}
	return most;
}

/* The least of a subtree; by weighted load, count 0 means that the key is a bound. */
static inline struct rules_least search_least_of(const struct rules_search *s, uint32_t at)
{
	const struct rules_corner *c;

	if (s->least != NULL)
		return s->least[at];
	c = &s->view->corners[at];
	if (c->least_cpu == INFINITY)
		return (struct rules_least){INFINITY, 0, 0};
	return (struct rules_least){least_load(s, c), 0, c->count};
}

static inline bool empty(const struct rules_search *s, const struct rules_least *least)
{
	return s->least != NULL ? least->count == 0 : least->key == INFINITY;
}

/* When the first of the subtree's equal leaves is due; drawn only when needed. */
static double due(const struct rules_search *s, struct rules_waiting *w)
{
	if (w->tag < 0)
		w->tag = -log(search_uniform(s, w->drawn_at, 1)) /
			 search_least_of(s, w->drawn_at).count;
	return w->tag;
}

static bool before_equal(const struct rules_search *s, struct rules_waiting *a,
			 struct rules_waiting *b)
{
	double tie_a = search_least_of(s, a->at).tie, tie_b = search_least_of(s, b->at).tie, due_a,
	       due_b;

	if (tie_a != tie_b)
		return tie_a < tie_b;
	due_a = due(s, a);
	due_b = due(s, b);
	return due_a != due_b ? due_a < due_b : a->at < b->at;
}

static inline bool search_before(const struct rules_search *s, struct rules_waiting *a,
				 struct rules_waiting *b)
{
	return __builtin_expect(a->key != b->key, 1) ? a->key < b->key : before_equal(s, a, b);
}

/*
 * Does the same for an item being moved: only a copy has an address, so that the item can stay in
 * registers.
 */
static inline __attribute__((always_inline)) bool
item_before(const struct rules_search *s, struct rules_waiting *item, struct rules_waiting *b)
{
	struct rules_waiting copy;
	bool first;

	if (__builtin_expect(item->key != b->key, 1))
		return item->key < b->key;
	copy = *item;
	first = before_equal(s, &copy, b);
	item->tag = copy.tag;
	return first;
}

/* --- the heap ------------------------------------------------------------------- */

/* Puts ITEM where it belongs below AT, which is free.  Inlined, so that items stay in registers. */
static inline __attribute__((always_inline)) void sift_down(const struct rules_search *s, size_t at,
							    struct rules_waiting item)
{
	struct rules_heap *h = s->heap;

	for (size_t child = 2 * at + 1; child < h->used; child = 2 * at + 1) {
		if (child + 1 < h->used)
			child += search_before(s, &h->items[child + 1], &h->items[child]);
		if (item_before(s, &item, &h->items[child]))
			break;
		h->items[at] = h->items[child];
		at = child;
	}
	h->items[at] = item;
}

static inline __attribute__((always_inline)) void sift_up(const struct rules_search *s, size_t at,
							  struct rules_waiting item)
{
	struct rules_heap *h = s->heap;

	while (at > 0 && item_before(s, &item, &h->items[(at - 1) / 2])) {
		h->items[at] = h->items[(at - 1) / 2];
		at = (at - 1) / 2;
	}
	h->items[at] = item;
}

static int heap_push(struct rules_search *s, double key, double tag, uint32_t at, uint32_t drawn_at)
{
	struct rules_waiting item = {key, tag, at, drawn_at};
	struct rules_heap *h = s->heap;

	if (s->hole) {
		s->hole = false;
		sift_down(s, 0, item);
		return 0;
	}
	if (array_reserve(h->items, h->room, h->used + 1, 256) < 0)
		return -ENOMEM;
	h->used++;
	sift_up(s, h->used - 1, item);
	return 0;
}

/* Closes the hole of the first item, which is kept open for the next item pushed. */
static void close_hole(struct rules_search *s)
{
	if (!s->hole)
		return;
	s->hole = false;
	s->heap->used--;
	if (s->heap->used > 0)
		sift_down(s, 0, s->heap->items[s->heap->used]);
}

void rules_search_drop(struct rules_search *s, rules_prune_fn *prune, void *arg)
{
	struct rules_heap *h = s->heap;
	size_t kept = 0;

	close_hole(s);
	for (size_t i = 0; i < h->used; i++)
		if (!prune(arg, h->items[i].at, h->items[i].key))
			h->items[kept++] = h->items[i];
	h->used = kept;
	for (size_t i = kept / 2; i-- > 0;)
		sift_down(s, i, h->items[i]);
}

/* --- the walk --------------------------------------------------------------------- */

#define NOT_DRAWN (-1.0)

/*
 * Returns the tag of a subtree.  A subtree with only a bound comes before all equals until it is
 * opened.
 */
static double first_tag(const struct rules_least *least)
{
	return least->count > 0 ? NOT_DRAWN : 0;
}

static bool equal(const struct rules_least *a, const struct rules_least *b)
{
	return b->count > 0 && a->key == b->key && a->tie == b->tie;
}

/*
 * Opens HERE: its first child takes its place, the other goes into the heap.  If HERE's least
 * is that of leaves, the clocks decide which child is first, else the lower bound.
 */
static inline __attribute__((always_inline)) int
open_subtree(struct rules_search *s, struct rules_waiting *here, rules_prune_fn *prune, void *arg)
{
	uint32_t left = 2 * here->at, near_side = 0, drawn_at = here->drawn_at;
	struct rules_least all = search_least_of(s, here->at),
			   l[2] = {search_least_of(s, left), search_least_of(s, left + 1)};
	bool in_left = equal(&all, &l[0]), in_right = equal(&all, &l[1]), exact = all.count > 0;
	double near_tag = here->tag, far_tag;
	const struct rules_least *far;

	if (exact && in_left && in_right)
		near_side = search_uniform(s, here->at, 2) * all.count >= l[0].count;
	else
		near_side = exact ? in_right : l[1].key < l[0].key;
	far = &l[!near_side];
	far_tag = first_tag(far);
	if (exact && in_left && in_right) {
		near_tag = due(s, here);
		far_tag = near_tag - log(search_uniform(s, here->at, 3)) / far->count;
	} else if (!exact) {
		near_tag = first_tag(&l[near_side]);
		drawn_at = left + near_side;
	}
	*here = (struct rules_waiting){l[near_side].key, near_tag, left + near_side, drawn_at};
	left += !near_side;
	if (empty(s, far) || (prune != NULL && prune(arg, left, far->key)))
		return 0;
	return heap_push(s, far->key, far_tag, left, left);
}

/* After a bound was opened, the current subtree may have to wait for others. */
static int take_turns(struct rules_search *s, struct rules_waiting *here)
{
	if (s->heap->used > s->hole) {
		if (heap_push(s, here->key, here->tag, here->at, here->drawn_at) < 0)
			return -ENOMEM;
		close_hole(s);
		*here = s->heap->items[0];
		s->hole = true;
	}
	return 0;
}

static int rules_search_start(struct rules_search *s)
{
	const struct rules_view *view = s->view;
	uint32_t root = 1;
	struct rules_least l;

	s->heap->used = 0;
	s->hole = false;
	s->begun = false;
	if (view->count == 0)
		return 0;
	/*
	 * Start from the smallest subtree that holds all nodes, so that the capacity does not
	 * matter.
	 */
	while (root < view->capacity && view->count <= view->capacity / (2 * root))
		root *= 2;
	l = search_least_of(s, root);
	return heap_push(s, l.key, first_tag(&l), root, root);
}

int rules_search_init(struct rules_search *s, const struct rules_view *view, enum rules_order order,
		      uint64_t salt, struct rules_heap *heap)
{
	if (!rules_view_has(view, order))
		return -EINVAL;
	*s = (struct rules_search){
		.view = view, .least = view->least[order], .heap = heap, .salt = search_mix(salt)};
	return rules_search_start(s);
}

int rules_search_init_weighted(struct rules_search *s, const struct rules_view *view, double w_cpu,
			       double w_io, uint64_t salt, struct rules_heap *heap)
{
	if (!rules_view_has(view, RULES_INDEX_CORNERS))
		return -EINVAL;
	*s = (struct rules_search){
		.view = view, .w_cpu = w_cpu, .w_io = w_io, .heap = heap, .salt = search_mix(salt)};
	return rules_search_start(s);
}

struct rules_least rules_search_leaf(const struct rules_search *s, uint32_t index)
{
	return search_least_of(s, s->view->capacity + index);
}

int rules_search_next(struct rules_search *s, rules_prune_fn *prune, void *arg, uint32_t *index)
{
	struct rules_waiting here;

	close_hole(s);
	if (s->heap->used == 0)
		return RULES_SEARCH_END;
	here = s->heap->items[0];
	s->hole = true;
	/* Subtrees in the heap were checked when they were pushed. */
	if (prune != NULL && !s->begun && prune(arg, here.at, here.key))
		return RULES_SEARCH_DROPPED;
	s->begun = true;
	while (here.at < s->view->capacity) {
		bool bound = s->least == NULL && s->view->corners[here.at].count == 0;

		if (open_subtree(s, &here, prune, arg) < 0)
			return -ENOMEM;
		if (prune != NULL && prune(arg, here.at, here.key))
			return RULES_SEARCH_DROPPED;
		if (bound && take_turns(s, &here) < 0)
			return -ENOMEM;
	}
	*index = here.at - s->view->capacity;
	return RULES_SEARCH_LEAF;
}

/*
 * The highest weighted load below AT without SKIP, if it is above LEAST; any value above ENOUGH
 * will do.
 */
static double highest(const struct rules_search *s, uint32_t at, uint32_t skip, double least,
		      double enough)
{
	const struct rules_corner *left, *right;
	double load_left, load_right;
	bool right_first;

	if (at >= s->view->capacity) {
		const struct rules_corner *c = &s->view->corners[at];
		double load = s->w_cpu * c->most_cpu + s->w_io * c->most_io;

		return at != skip && load > least ? load : least;
	}
	left = &s->view->corners[2 * at];
	right = left + 1;
	load_left = most_load(s, left);
	load_right = most_load(s, right);
	right_first = load_right > load_left;
	for (int i = 0; i < 2; i++) {
		bool go_right = (i == 1) != right_first;

		if (least <= enough && (go_right ? load_right : load_left) > least)
			least = highest(s, 2 * at + go_right, skip, least, enough);
	}
	return least;
}

double rules_search_highest(const struct rules_view *view, double w_cpu, double w_io, uint32_t skip,
			    double enough)
{
	struct rules_search s = {.view = view, .w_cpu = w_cpu, .w_io = w_io};

	return highest(&s, 1, view->capacity + skip, -INFINITY, enough);
}
