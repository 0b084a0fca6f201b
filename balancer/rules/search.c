/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Best-first walk over a tournament tree: the leaves come out in ascending
 * (key, tie), and each costs about log2(n) steps, so a decision that looks at
 * few nodes never touches the others.
 *
 * Equal leaves come out in a random order, every permutation equally likely,
 * without listing them first.  Each is thought to carry an exponential clock of
 * rate 1, and the earliest goes first; a subtree with m equal leaves is due at
 * the least of m clocks.  Going down, that least lies left with probability
 * left/m; as exponentials have no memory, the other side is due Exp(its count)
 * later.  The clocks follow from (salt, subtree), so the order is repeatable and
 * the same for any capacity of the tree.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "rules_private.h"

static uint64_t mix(uint64_t x)
{
	x += 0x9e3779b97f4a7c15u;
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
	return x ^ (x >> 31);
}

/* In (0, 1); told apart by the first leaf and width of the subtree. */
static double uniform(const struct rules_search *s, uint32_t at, uint64_t stream)
{
	int down = __builtin_clz(at) - __builtin_clz(s->view->capacity);
	uint64_t leaf = ((uint64_t)at << down) - s->view->capacity;

	return ((double)(mix(s->salt ^ mix(leaf << 32 | (uint64_t)down << 8 | stream)) >> 12) +
		0.5) *
	       0x1p-52;
}

/* When the first of the subtree's equal leaves is due; drawn only when it matters. */
static double due(const struct rules_search *s, const struct rules_waiting *w)
{
	if (w->tag >= 0)
		return w->tag;
	return -log(uniform(s, w->drawn_at, 1)) / s->least[w->drawn_at].count;
}

static bool before(const struct rules_search *s, const struct rules_waiting *a,
		   const struct rules_waiting *b)
{
	double due_a, due_b;

	if (a->key != b->key)
		return a->key < b->key;
	if (a->tie != b->tie)
		return a->tie < b->tie;
	due_a = due(s, a);
	due_b = due(s, b);
	return due_a != due_b ? due_a < due_b : a->at < b->at;
}

static int heap_push(const struct rules_search *s, struct rules_waiting item)
{
	struct rules_heap *h = s->heap;
	size_t i = h->used;

	if (h->used == h->room) {
		size_t room = h->room ? 2 * h->room : 256;
		struct rules_waiting *items = realloc(h->items, room * sizeof(*items));

		if (items == NULL)
			return -ENOMEM;
		h->items = items;
		h->room = room;
	}
	h->used++;
	while (i > 0 && before(s, &item, &h->items[(i - 1) / 2])) {
		h->items[i] = h->items[(i - 1) / 2];
		i = (i - 1) / 2;
	}
	h->items[i] = item;
	return 0;
}

static struct rules_waiting heap_pop(const struct rules_search *s)
{
	struct rules_heap *h = s->heap;
	struct rules_waiting top = h->items[0], last = h->items[--h->used];
	size_t i = 0;

	for (size_t child = 1; child < h->used; child = 2 * i + 1) {
		if (child + 1 < h->used && before(s, &h->items[child + 1], &h->items[child]))
			child++;
		if (!before(s, &h->items[child], &last))
			break;
		h->items[i] = h->items[child];
		i = child;
	}
	h->items[i] = last;
	return top;
}

#define NOT_DRAWN (-1.0)

static struct rules_waiting waiting(const struct rules_search *s, uint32_t at, double tag)
{
	const struct rules_least *l = &s->least[at];

	return (struct rules_waiting){l->key, l->tie, tag, at, at, l->count};
}

static bool equal(const struct rules_least *a, const struct rules_least *b)
{
	return b->count > 0 && a->key == b->key && a->tie == b->tie;
}

/* Splits WHOLE into the child where its first leaf lies (in place) and the other (*FAR). */
static void split(const struct rules_search *s, struct rules_waiting *whole,
		  struct rules_waiting *far)
{
	const struct rules_least *least = &s->least[whole->at];
	uint32_t near_at = 2 * whole->at, far_at = near_at + 1, swap = near_at ^ far_at;
	bool in_left = equal(least, &s->least[near_at]), in_right = equal(least, &s->least[far_at]);
	bool both = in_left && in_right;
	bool right = both ? uniform(s, whole->at, 2) * least->count >= s->least[near_at].count
			  : in_right;
	double tag = NOT_DRAWN;

	if (right) {
		near_at ^= swap;
		far_at ^= swap;
	}
	if (both) {
		whole->tag = due(s, whole);
		tag = whole->tag - log(uniform(s, whole->at, 3)) / s->least[far_at].count;
	}
	whole->at = near_at;
	whole->count = s->least[near_at].count;
	*far = waiting(s, far_at, tag);
}

int rules_search_init(struct rules_search *s, const struct rules_view *view, enum rules_order order,
		      uint64_t salt, struct rules_heap *heap)
{
	uint32_t root = 1;

	*s = (struct rules_search){view, view->least[order], heap, mix(salt)};
	heap->used = 0;
	if (view->count == 0)
		return 0;
	/* From the least subtree that holds all nodes: the capacity shall not matter. */
	while (root < view->capacity && view->count <= view->capacity / (2 * root))
		root *= 2;
	return heap_push(s, waiting(s, root, NOT_DRAWN));
}

int rules_search_next(struct rules_search *s, bool (*prune)(void *arg, uint32_t at), void *arg,
		      uint32_t *index)
{
	struct rules_waiting here, far;

	if (s->heap->used == 0)
		return RULES_SEARCH_END;
	here = heap_pop(s);
	while (!prune(arg, here.at)) {
		if (here.at >= s->view->capacity) {
			*index = here.at - s->view->capacity;
			return RULES_SEARCH_LEAF;
		}
		split(s, &here, &far);
		if (far.count > 0 && heap_push(s, far) < 0)
			return -ENOMEM;
	}
	return RULES_SEARCH_DROPPED;
}
