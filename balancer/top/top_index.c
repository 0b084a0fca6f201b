/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* A sorted array of pointers; see top_index.h. */
#include "balancer/top/top_index.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "iocom/array.h"

/* Returns where ID is or would be inserted. */
static size_t top_index_place_of(const struct top_index *index, uint64_t id)
{
	size_t low = 0, high = index->n;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (index->entries[middle]->id < id)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

void *top_index_find(const struct top_index *index, uint64_t id)
{
	size_t at = top_index_place_of(index, id);

	return at < index->n && index->entries[at]->id == id ? index->entries[at] : NULL;
}

int top_index_add(struct top_index *index, struct top_entry *entry)
{
	size_t at = top_index_place_of(index, entry->id);

	if (array_reserve(index->entries, index->room, index->n + 1, 64))
		return -ENOMEM;
	memmove(index->entries + at + 1, index->entries + at,
		(index->n - at) * sizeof(struct top_entry *));
	index->entries[at] = entry;
	index->n++;
	return 0;
}

void top_index_sweep(struct top_index *index, bool (*keep)(const struct top_entry *, void *),
		     void *arg)
{
	size_t kept = 0;

	for (size_t i = 0; i < index->n; i++) {
		if (keep(index->entries[i], arg))
			index->entries[kept++] = index->entries[i];
		else
			free(index->entries[i]);
	}
	index->n = kept;
}

void top_index_clear(struct top_index *index)
{
	for (size_t i = 0; i < index->n; i++)
		free(index->entries[i]);
	free(index->entries);
	*index = (struct top_index){0};
}
