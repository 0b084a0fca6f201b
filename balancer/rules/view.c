/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The indexed view: derived values per node and the search trees over them, kept
 * up to date by each set, so that no decision scans.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "rules_private.h"

#define FIRST_CAPACITY 16u
#define MOST_NODES     (1u << 30)

struct rules_view *rules_view_new(void)
{
	return calloc(1, sizeof(struct rules_view));
}

void rules_view_free(struct rules_view *view)
{
	if (view == NULL)
		return;
	rules_tree_free(view);
	free(view);
}

void rules_view_rates(struct rules_view *view, enum rules_rates rates)
{
	view->rates = rates;
}

int rules_view_set(struct rules_view *view, uint32_t index, const struct rules_node *node)
{
	struct rules_cell cell;
	int ret;

	if (index > view->count || index >= MOST_NODES)
		return -EINVAL;
	ret = rules_cell_init(&cell, node, view->rates);
	if (ret < 0)
		return ret;
	if (index == view->capacity) {
		ret = rules_tree_grow(view, index ? 2 * index : FIRST_CAPACITY);
		if (ret < 0)
			return ret;
	}
	if (index == view->count)
		view->count++;
	memcpy(view->names[index], node->name, sizeof(view->names[index]));
	view->cells[index] = cell;
	rules_tree_update(view, index);
	return 0;
}

int rules_view_pop(struct rules_view *view)
{
	if (view->count == 0)
		return -EINVAL;
	view->count--;
	rules_tree_update(view, view->count);
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

int rules_view_charge(struct rules_view *view, uint32_t index, const struct rules_request *request)
{
	struct rules_cell charged;

	if (index >= view->count || rules_request_check(request) < 0)
		return -EINVAL;
	charged = view->cells[index];
	rules_cell_charge(&charged, request, view->rates);
	if (!isfinite(charged.io) || !isfinite(charged.memory))
		return -EINVAL;
	view->cells[index] = charged;
	rules_tree_update(view, index);
	return 0;
}
