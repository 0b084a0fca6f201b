/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The two queues of the event loop, both 4-ary heaps.
 *
 * core_heap has one entry per id (a node, a flow), which moves when its time changes; its order
 * is (time, id).  core_timers has entries that are only added and taken; its order is (time,
 * node, job, task), so it does not depend on the order in which entries are added.
 */
#ifndef SIM_CORE_HEAP_H
#define SIM_CORE_HEAP_H

#include <stdbool.h>
#include <stdint.h>

#define CORE_NO_ID UINT32_MAX

struct core_entry {
	double time;
	uint32_t id;
};

struct core_heap {
	struct core_entry *entries;
	uint32_t *at; /* position of each id; CORE_NO_ID: not in the heap */
	uint32_t used, room;
};

static inline bool core_entry_before(const struct core_entry *a, const struct core_entry *b)
{
	return a->time < b->time || (a->time == b->time && a->id < b->id);
}

static inline void core_heap_up(struct core_heap *h, uint32_t i, struct core_entry e)
{
	while (i > 0) {
		uint32_t up = (i - 1) / 4;

		if (!core_entry_before(&e, &h->entries[up]))
			break;
		h->entries[i] = h->entries[up];
		h->at[h->entries[i].id] = i;
		i = up;
	}
	h->entries[i] = e;
	h->at[e.id] = i;
}

static inline void core_heap_down(struct core_heap *h, uint32_t i, struct core_entry e)
{
	for (;;) {
		uint32_t first = 4 * i + 1, least = first;
		uint32_t end = first + 4 < h->used ? first + 4 : h->used;

		if (first >= h->used)
			break;
		for (uint32_t c = first + 1; c < end; c++)
			if (core_entry_before(&h->entries[c], &h->entries[least]))
				least = c;
		if (!core_entry_before(&h->entries[least], &e))
			break;
		h->entries[i] = h->entries[least];
		h->at[h->entries[i].id] = i;
		i = least;
	}
	h->entries[i] = e;
	h->at[e.id] = i;
}

/*
 * Sets the time of the first entry to TIME, no earlier than before.  Returns the place (1 to 4)
 * of the entry that became the first, where now another entry stands; 0: the first stayed.
 */
static inline uint32_t core_heap_sink(struct core_heap *h, double time)
{
	struct core_entry e = {time, h->entries[0].id};
	uint32_t least = 1, end = h->used < 5 ? h->used : 5;

	if (h->used < 2)
		least = 0;
	for (uint32_t c = 2; c < end; c++)
		if (core_entry_before(&h->entries[c], &h->entries[least]))
			least = c;
	if (least == 0 || !core_entry_before(&h->entries[least], &e)) {
		h->entries[0] = e;
		return 0;
	}
	h->entries[0] = h->entries[least];
	h->at[h->entries[0].id] = 0;
	core_heap_down(h, least, e);
	return least;
}

/* Sets the time of ID, which is in the heap, to TIME. */
static inline void core_heap_move(struct core_heap *h, uint32_t id, double time)
{
	uint32_t i = h->at[id];
	double was = h->entries[i].time;

	if (time < was)
		core_heap_up(h, i, (struct core_entry){time, id});
	else if (time > was)
		core_heap_down(h, i, (struct core_entry){time, id});
}

/* Makes room for ids 0 .. N-1; 0 or -ENOMEM. */
int core_heap_reserve(struct core_heap *h, uint32_t n);
void core_heap_add(struct core_heap *h, uint32_t id, double time);
void core_heap_remove(struct core_heap *h, uint32_t id);
void core_heap_free(struct core_heap *h);

struct core_timer {
	double time;
	uint64_t job; /* its number in the workload */
	uint32_t node, index, task;
};

struct core_timers {
	struct core_timer *entries;
	uint32_t used, room;
};

int core_timers_add(struct core_timers *t,
		    const struct core_timer *timer); /* Returns 0 or -ENOMEM */
/* Takes the first timer; there must be one. */
struct core_timer core_timers_take(struct core_timers *t);
void core_timers_free(struct core_timers *t);

#endif
