/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The request level (request.c) when something outside changes: a task is stopped, members or the
 * buffer change the rates, or a node needs more room.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sim/engine/request.h"

static uint32_t due_find(const struct request_due *entries, uint32_t n, uint32_t task)
{
	uint32_t i = 0;

	while (i < n && entries[i].task != task)
		i++;
	return i;
}

/* Accounts for what running[I] has computed of its burst; the caller has called cpu_advance. */
static void burst_settle(const struct node_model *m, struct request_node *q, uint32_t i)
{
	struct node_task *t = node_task_of(m, q->running[i].task);
	double x = t->burst.length_ms - cpu_left(m, q, i);

	if (x > 0) {
		burst_account(q, t, x);
		burst_use(t, x);
	}
}

static void stop_computing(struct node_model *m, struct request_node *q, uint32_t task, double now)
{
	uint32_t i = due_find(q->running, q->nrunning, task);

	cpu_advance(m, q, now);
	burst_settle(m, q, i);
	cpu_remove(m, q, i);
	cpu_plan(m, q);
}

/* The task issues an access that never began again when it continues, but not a page fault. */
static void withdraw(const struct request_node *q, struct node_task *t,
		     const struct request_queued *item)
{
	if (item->kind != ITEM_ACCESS)
		return;
	t->accessed_mb -= (item->service_ms - q->fixed_ms) / q->ms_per_kb * REQUEST_MB_PER_KB;
	if (t->requests_left >= 0)
		t->requests_left++;
	else
		t->burst.hazard = DBL_MIN;
}

/* Removes the task's request from the queue, or marks it abandoned if it is in service. */
static void stop_at_disk(struct request_node *q, struct node_task *t, uint32_t task)
{
	uint32_t mask = q->room - 1, i = 0;
	struct request_queued *item;

	while ((item = &q->queue[(q->head + i) & mask])->id != task || item->abandoned ||
	       item->kind == ITEM_WORK)
		i++;
	q->at_disk--;
	if (i == 0) {
		item->abandoned = true;
		return;
	}
	withdraw(q, t, item);
	for (; i + 1 < q->nqueued; i++)
		q->queue[(q->head + i) & mask] = q->queue[(q->head + i + 1) & mask];
	q->nqueued--;
}

double request_stop(struct node_model *m, uint32_t node, uint32_t task, double now)
{
	struct request_node *q = node_state(m, node);
	struct node_task *t = node_task_of(m, task);

	switch (t->state) {
	case REQUEST_IDLE:
		return 0;
	case REQUEST_AT_DISK:
		stop_at_disk(q, t, task);
		break;
	case REQUEST_AWAY:
		heap_remove(q->away, q->naway, due_find(q->away, q->naway, task));
		q->naway--;
		break;
	default:
		stop_computing(m, q, task, now);
	}
	t->state = REQUEST_IDLE;
	next_set(m, node, q);
	return t->segment_ms;
}

void request_refresh(struct node_model *m, uint32_t node, double now)
{
	struct request_node *q = node_state(m, node);

	cpu_advance(m, q, now);
	for (uint32_t i = 0; i < q->nrunning; i++)
		burst_settle(m, q, i);
	cpu_plan(m, q);
	next_set(m, node, q);
}

void request_before(struct node_model *m, uint32_t node, double now)
{
	cpu_advance(m, node_state(m, node), now);
}

/* Continues the running bursts at the new rates. */
static void bursts_replan(struct node_model *m, uint32_t node, struct request_node *q)
{
	for (uint32_t i = 0; i < q->nrunning; i++) {
		struct node_task *t = node_task_of(m, q->running[i].task);
		double length;

		burst_settle(m, q, i); /* accounts for the past at the old rates */
		burst_rates(&m->nodes[node], t);
		length = burst_plan(t);
		q->running[i].at = m->priority_decay ? length : q->virtual_ms + length;
	}
	if (m->priority_decay)
		return;
	for (uint32_t i = q->nrunning / 2; i-- > 0;)
		heap_down(q->running, q->nrunning, i, q->running[i]);
}

void request_after(struct node_model *m, uint32_t node, double now, bool rates)
{
	struct request_node *q = node_state(m, node);

	(void)now;
	q->epoch = m->nodes[node].epoch;
	if (rates)
		bursts_replan(m, node, q);
	cpu_plan(m, q);
	next_set(m, node, q);
}

static int request_change_room_make(struct node_model *m, struct request_node *q, uint32_t need)
{
	uint32_t room = q->room ? q->room : 4;
	struct request_due *running, *away;
	struct request_queued *queue;
	size_t each = 2 * sizeof(*running) + sizeof(*queue);

	while (room < need)
		room *= 2;
	if (room == q->room)
		return 0;
	if (m->page_fault_at_disk)
		each -= sizeof(*running);
	running = aligned_alloc(REQUEST_CACHE_LINE, room * each);
	if (!running)
		return -ENOMEM;
	queue = (struct request_queued *)(void *)(running + room);
	away = m->page_fault_at_disk ? NULL : (struct request_due *)(void *)(queue + room);
	if (q->nrunning)
		memcpy(running, q->running, q->nrunning * sizeof(*running));
	if (q->naway)
		memcpy(away, q->away, q->naway * sizeof(*away));
	for (uint32_t i = 0; i < q->nqueued; i++)
		queue[i] = q->queue[(q->head + i) & (q->room - 1)];
	free(q->running);
	q->running = running;
	q->queue = queue;
	q->away = away;
	q->head = 0;
	q->room = room;
	return 0;
}

/* The queue holds at most one request per member, one abandoned request and the transfers. */
int request_reserve(struct node_model *m, uint32_t node)
{
	struct request_node *q = node_state(m, node);

	return request_change_room_make(m, q, m->nodes[node].count + q->works + 2);
}

int request_disk_work(struct node_model *m, uint32_t node, double ms, uint32_t token, double now)
{
	struct request_node *q = node_state(m, node);
	int rc = request_change_room_make(m, q, m->nodes[node].count + q->works + 2);

	if (rc < 0)
		return rc;
	q->works++;
	disk_push(q, (struct request_queued){.service_ms = ms, .id = token, .kind = ITEM_WORK},
		  now);
	next_set(m, node, q);
	return 0;
}
