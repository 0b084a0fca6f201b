/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The pools of tasks and jobs: arrays that grow, with free lists through `next`.
 * A slot keeps its index as long as it lives; its address may change.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sim/engine/core.h"

#define FIRST_ROOM 64u
#define MOST	   (UINT32_MAX / 2)

int core_grow(void *array, uint32_t *room, uint32_t n, size_t size)
{
	void **p = array;
	uint32_t wanted = *room ? *room : FIRST_ROOM;
	void *bigger;

	if (n <= *room)
		return 0;
	if (n > MOST)
		return -ENOMEM;
	while (wanted < n)
		wanted += wanted / 2;
	bigger = realloc(*p, wanted * size);
	if (bigger == NULL)
		return -ENOMEM;
	*p = bigger;
	*room = wanted;
	return 0;
}

int core_list_add(struct core_list *l, uint32_t id)
{
	if (core_grow(&l->ids, &l->room, l->used + 1, sizeof(*l->ids)) < 0)
		return -ENOMEM;
	l->ids[l->used++] = id;
	return 0;
}

uint32_t core_task_new(struct core_shard *s)
{
	struct core_pool_tasks *p = &s->tasks;
	uint32_t id = p->free;

	if (id != CORE_NONE) {
		p->free = p->list[id].next;
	} else {
		if (core_grow(&p->list, &p->room, p->used + 1, sizeof(*p->list)) < 0)
			return CORE_NONE;
		node_model_tasks(s->model, p->list, sizeof(*p->list),
				 offsetof(struct core_task, at));
		id = p->used++;
	}
	memset(&p->list[id], 0, sizeof(p->list[id]));
	p->list[id].next = p->list[id].sibling = CORE_NONE;
	return id;
}

void core_task_drop(struct core_shard *s, uint32_t task)
{
	s->tasks.list[task].next = s->tasks.free;
	s->tasks.free = task;
}

uint32_t core_job_new(struct core_shard *s)
{
	struct core_pool_jobs *p = &s->jobs;
	uint32_t id = p->free;

	if (id != CORE_NONE) {
		p->free = p->list[id].next;
	} else {
		if (core_grow(&p->list, &p->room, p->used + 1, sizeof(*p->list)) < 0)
			return CORE_NONE;
		id = p->used++;
	}
	memset(&p->list[id], 0, sizeof(p->list[id]));
	p->list[id].first = p->list[id].next = CORE_NONE;
	p->live++;
	return id;
}

void core_job_drop(struct core_shard *s, uint32_t job)
{
	s->jobs.list[job].next = s->jobs.free;
	s->jobs.free = job;
	s->jobs.live--;
}
