/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The indexed view: derived values per node, exact sums and search trees over them.  Each
 * change updates them, so that no decision scans all nodes.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "balancer/rules/rules_private.h"
#include "balancer/rules/zatti.h"

#define FIRST_CAPACITY 16u
#define MOST_NODES     (1u << 30)

struct rules_view *rules_view_new(void)
{
	struct rules_view *view = calloc(1, sizeof(*view));
	struct rules_params params;

	if (view == NULL)
		return NULL;
	view->kept = RULES_KEEP(RULES_INDEXES) - 1;
	rules_params_default(&params, RULES_RATES_COMPUTATION);
	if (rules_zatti_keep(view, true, true, &params) < 0) {
		rules_view_free(view);
		return NULL;
	}
	return view;
}

void rules_view_free(struct rules_view *view)
{
	if (view == NULL)
		return;
	rules_tree_free(view);
	rules_journal_free(view);
	free(view);
}

void rules_view_rates(struct rules_view *view, enum rules_rates rates)
{
	view->reading.rates = rates;
}

void rules_view_reference(struct rules_view *view, double mips)
{
	view->reading.reference_mips = mips;
}

static void store_cell(struct rules_view *view, uint32_t index, const struct rules_cell *cell)
{
	if (index < view->count)
		rules_totals_subtract(&view->totals, &view->cells[index]);
	else
		view->count++;
	rules_totals_add(&view->totals, cell);
	view->cells[index] = *cell;
}

void rules_view_store(struct rules_view *view, uint32_t index, const struct rules_cell *cell)
{
	store_cell(view, index, cell);
	rules_tree_update(view, index);
}

void rules_view_remove_newest(struct rules_view *view)
{
	rules_totals_subtract(&view->totals, &view->cells[--view->count]);
	rules_tree_update(view, view->count);
}

int rules_view_set(struct rules_view *view, uint32_t index, const struct rules_node *node)
{
	struct rules_cell cell;
	int ret;

	if (index > view->count || index >= MOST_NODES)
		return -EINVAL;
	if (index < view->count)
		rules_tree_prefetch(view, index);
	ret = rules_cell_init(&cell, node, &view->reading);
	if (ret == 0 && index == view->capacity)
		ret = rules_tree_grow(view, index ? 2 * index : FIRST_CAPACITY);
	if (ret == 0)
		ret = rules_journal_note(
			view, index < view->count ? RULES_NOTE_CHANGED : RULES_NOTE_ADDED, index,
			node->name);
	if (ret < 0)
		return ret;
	memcpy(view->names[index], node->name, sizeof(view->names[index]));
	rules_view_store(view, index, &cell);
	return 0;
}

int rules_view_defer(struct rules_view *view)
{
	if (view->deferred || view->journal.open)
		return -EBUSY;
	view->deferred = true;
	return 0;
}

void rules_view_settle(struct rules_view *view)
{
	if (!view->deferred)
		return;
	view->deferred = false;
	rules_tree_join_all(view);
}

int rules_view_copy(struct rules_view *to, const struct rules_view *from, uint32_t index)
{
	int ret;

	if (index >= to->count || index >= from->count)
		return -EINVAL;
	rules_tree_prefetch(to, index);
	ret = rules_journal_note(to, RULES_NOTE_CHANGED, index, from->names[index]);
	if (ret < 0)
		return ret;
	memcpy(to->names[index], from->names[index], sizeof(to->names[index]));
	store_cell(to, index, &from->cells[index]);
	rules_tree_copy(to, from, index);
	return 0;
}

void rules_view_prefetch(const struct rules_view *view, uint32_t index)
{
	if (index < view->count)
		rules_tree_prefetch(view, index);
}

int rules_view_pop(struct rules_view *view)
{
	int ret;

	if (view->count == 0)
		return -EINVAL;
	ret = rules_journal_note(view, RULES_NOTE_POPPED, view->count - 1, NULL);
	if (ret == 0)
		rules_view_remove_newest(view);
	return ret;
}

int rules_view_remove(struct rules_view *view, uint32_t index)
{
	size_t before = view->journal.used;
	uint32_t last = view->count - 1;
	struct rules_cell moved;
	int ret;

	if (index >= view->count)
		return -EINVAL;
	if (index == last)
		return rules_view_pop(view);
	/* Both notes before either change: a note that finds no memory changes nothing. */
	ret = rules_journal_note(view, RULES_NOTE_CHANGED, index, view->names[last]);
	if (ret == 0)
		ret = rules_journal_note(view, RULES_NOTE_POPPED, last, NULL);
	if (ret < 0) {
		view->journal.used = before;
		return ret;
	}
	moved = view->cells[last];
	memcpy(view->names[index], view->names[last], sizeof(view->names[index]));
	rules_view_remove_newest(view);
	rules_view_store(view, index, &moved);
	return 0;
}

uint32_t rules_view_count(const struct rules_view *view)
{
	return view->count;
}

const char *rules_view_name(const struct rules_view *view, uint32_t index)
{
	return index < view->count ? view->names[index] : NULL;
}

int rules_view_keep(struct rules_view *view, enum rules_policy policy,
		    const struct rules_params *params)
{
	uint32_t before = view->kept, wanted;
	int ret;

	if ((unsigned int)policy >= RULES_POLICIES || rules_params_check(params) < 0)
		return -EINVAL;
	wanted = rules_policy_indexes(policy, params);
	/* First do what needs memory; dropping cannot fail. */
	ret = rules_tree_keep(view, before | wanted);
	if (ret < 0)
		return ret;
	ret = rules_zatti_keep(view, policy == RULES_ZATTI_BINARY, policy == RULES_ZATTI_REAL,
			       params);
	rules_tree_keep(view, ret < 0 ? before : wanted);
	return ret;
}

/* The table of POLICY, where it is one of Zatti's and the view has none that serves it. */
static int keep_zatti_also(struct rules_view *view, enum rules_policy policy,
			   const struct rules_params *params)
{
	bool binary = policy == RULES_ZATTI_BINARY, real = policy == RULES_ZATTI_REAL;
	const struct rules_zatti_index *x = view->zatti[real];
	int ret;

	if ((!binary && !real) || (x != NULL && rules_zatti_serves(x, params)))
		return 0;
	ret = rules_zatti_keep(view, binary || view->zatti[0] != NULL,
			       real || view->zatti[1] != NULL, params);
	return ret < 0 ? ret : 1;
}

int rules_view_keep_also(struct rules_view *view, enum rules_policy policy,
			 const struct rules_params *params)
{
	uint32_t wanted;
	int ret;

	if ((unsigned int)policy >= RULES_POLICIES || rules_params_check(params) < 0)
		return -EINVAL;
	wanted = rules_policy_indexes(policy, params) & ~view->kept;
	ret = wanted != 0 ? rules_tree_keep(view, view->kept | wanted) : 0;
	if (ret == 0)
		ret = keep_zatti_also(view, policy, params);
	return ret == 0 && wanted != 0 ? 1 : ret;
}

int rules_view_replace(struct rules_view *view, uint32_t index, const struct rules_cell *cell)
{
	int ret;

	/* Sums of huge requirements may overflow. */
	if (!isfinite(cell->io) || !isfinite(cell->memory) || !isfinite(cell->com))
		return -EINVAL;
	ret = rules_journal_note(view, RULES_NOTE_CHANGED, index, NULL);
	if (ret == 0)
		rules_view_store(view, index, cell);
	return ret;
}

/* Takes from the target's a.vector what a placement uses (3.14, 3.15). */
static void charge_zatti(const struct rules_view *view, struct rules_cell *cell,
			 const struct rules_request *request, int sign)
{
	const struct rules_zatti_index *x = view->zatti[0] ? view->zatti[0] : view->zatti[1];

	if (x != NULL)
		rules_zatti_charge(&x->cuts, cell, request, view->reading.rates, sign);
}

int rules_view_charge(struct rules_view *view, uint32_t index, const struct rules_request *request)
{
	struct rules_cell cell;

	if (index >= view->count || rules_request_check(request) < 0)
		return -EINVAL;
	rules_tree_prefetch(view, index);
	cell = view->cells[index];
	charge_zatti(view, &cell, request, 1);
	rules_cell_charge(&cell, request, &view->reading);
	return rules_view_replace(view, index, &cell);
}

int rules_view_discharge(struct rules_view *view, uint32_t index,
			 const struct rules_request *request)
{
	struct rules_cell cell;

	if (index >= view->count || rules_request_check(request) < 0)
		return -EINVAL;
	rules_tree_prefetch(view, index);
	cell = view->cells[index];
	rules_cell_discharge(&cell, request, &view->reading);
	charge_zatti(view, &cell, request, -1);
	return rules_view_replace(view, index, &cell);
}
