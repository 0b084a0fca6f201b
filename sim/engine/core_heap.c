/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* The queues of the event loop; see core_heap.h. */
#include "sim/engine/core_heap.h"

#include <errno.h>
#include <stdlib.h>

#include "iocom/array.h"

#define FIRST_ROOM 64u

int core_heap_reserve(struct core_heap *h, uint32_t n)
{
	struct core_entry *entries;
	uint32_t *at;

	if (n <= h->room)
		return 0;
	entries = realloc(h->entries, n * sizeof(*entries));
	if (entries != NULL)
		h->entries = entries;
	at = realloc(h->at, n * sizeof(*at));
	if (at != NULL)
		h->at = at;
	if (entries == NULL || at == NULL)
		return -ENOMEM;
	for (uint32_t i = h->room; i < n; i++)
		at[i] = CORE_NO_ID;
	h->room = n;
	return 0;
}

void core_heap_add(struct core_heap *h, uint32_t id, double time)
{
	core_heap_up(h, h->used++, (struct core_entry){time, id});
}

void core_heap_remove(struct core_heap *h, uint32_t id)
{
	uint32_t i = h->at[id];
	struct core_entry last = h->entries[--h->used];

	h->at[id] = CORE_NO_ID;
	if (i == h->used)
		return;
	if (i > 0 && core_entry_before(&last, &h->entries[(i - 1) / 4]))
		core_heap_up(h, i, last);
	else
		core_heap_down(h, i, last);
}

void core_heap_free(struct core_heap *h)
{
	free(h->entries);
	free(h->at);
}

static bool core_heap_before(const struct core_timer *a, const struct core_timer *b)
{
	if (a->time != b->time)
		return a->time < b->time;
	if (a->node != b->node)
		return a->node < b->node;
	if (a->job != b->job)
		return a->job < b->job;
	return a->index < b->index;
}

int core_timers_add(struct core_timers *t, const struct core_timer *timer)
{
	uint32_t i = t->used;

	if (array_reserve(t->entries, t->room, t->used + 1, FIRST_ROOM) < 0)
		return -ENOMEM;
	t->used++;
	for (; i > 0 && core_heap_before(timer, &t->entries[(i - 1) / 4]); i = (i - 1) / 4)
		t->entries[i] = t->entries[(i - 1) / 4];
	t->entries[i] = *timer;
	return 0;
}

struct core_timer core_timers_take(struct core_timers *t)
{
	struct core_timer first = t->entries[0], last = t->entries[--t->used];
	uint32_t i = 0;

	while (4 * i + 1 < t->used) {
		uint32_t least = 4 * i + 1, end = least + 4 < t->used ? least + 4 : t->used;

		for (uint32_t c = least + 1; c < end; c++)
			if (core_heap_before(&t->entries[c], &t->entries[least]))
				least = c;
		if (!core_heap_before(&t->entries[least], &last))
			break;
		t->entries[i] = t->entries[least];
		i = least;
	}
	t->entries[i] = last;
	return first;
}

void core_timers_free(struct core_timers *t)
{
	free(t->entries);
}
