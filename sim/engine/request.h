/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The request level's state of a node: tasks that compute, tasks at the disk, and tasks that are
 * away for a page fault that is a pure delay.
 */
#ifndef SIM_REQUEST_H
#define SIM_REQUEST_H

#include <float.h>
#include <math.h>

#include "sim/engine/node_private.h"

#define REQUEST_MB_PER_KB  1e-3
#define REQUEST_CACHE_LINE 64

/* State of a struct node_task. */
enum request_state {
	REQUEST_IDLE,	  /* runs no segment */
	REQUEST_TO_END,	  /* computes to the end of its segment */
	REQUEST_TO_GIVEN, /* computes to the next of a given number of accesses */
	REQUEST_TO_DRAWN, /* computes to an access or page fault drawn by rate */
	REQUEST_AT_DISK,
	REQUEST_AWAY, /* away for a page fault that is a pure delay */
};

/* Heap entry, ordered by `at`: the virtual time at which a burst ends, or the real time
 * at which an absence ends. */
struct request_due {
	double at;
	uint32_t task;
};

enum request_item {
	ITEM_ACCESS,
	ITEM_PAGE_FAULT,
	ITEM_WORK, /* work of a transfer; `id` is the token */
};

struct request_queued {
	double service_ms;
	uint32_t id;
	uint16_t kind;
	bool abandoned; /* the task was stopped while its request was served */
};

/* The fields stand in the order of their use: an event touches the first three cache lines. */
struct request_node {
	/* the processor: running[0] ends first, when virtual time reaches its `at` */
	double virtual_ms, cpu_at; /* virtual time at the real time cpu_at */
	double rate;		   /* virtual ms per real ms */
	double cores_busy;
	double cpu_next;
	struct request_due *running;
	/* the disk: a ring; the head is in service until disk_next */
	double disk_next;
	struct request_queued *queue;

	uint32_t nrunning;
	uint32_t room; /* room of running, away and queue: a power of two, or 0 */
	uint32_t head, nqueued;
	uint32_t at_disk; /* tasks in the queue */
	uint32_t epoch;	  /* the value in struct node */
	/* the machine, as in struct node */
	double fixed_ms, ms_per_kb;
	double speed, cores, crowded;

	/* sums that struct node_sums is made from */
	double cpu_busy_ms;
	double requests, faults, hits; /* served by the disk; page faults among them; buffer hits */
	double service_sum, service_sum2;
	double works_ms;
	uint32_t works; /* transfers in the queue */
	uint32_t ndone;

	uint32_t naway;
	struct request_due *away;
	double delays; /* page faults that did not use the disk */
	struct node_done done[NODE_DONE_MAX];
} __attribute__((aligned(REQUEST_CACHE_LINE)));

/*
 * With priority_decay (O-50) tasks share the processor by weight, and running[i].at is the
 * computation left in the burst; running[] has no order (request_decay.c).
 */
void request_decay_enter(struct node_model *m, struct request_node *q, uint32_t task,
			 double length_ms, double now);
/* Accounts for the time until NOW. */
void request_decay_advance(struct node_model *m, struct request_node *q, double now);
/* Plans cpu_next. */
void request_decay_plan(struct node_model *m, struct request_node *q);
/* Index in running[] of a burst that has ended; nrunning: there is none. */
uint32_t request_decay_ended(const struct request_node *q);

static inline struct request_node *node_state(const struct node_model *m, uint32_t node)
{
	return &((struct request_node *)m->state)[node];
}

/* --- heap ----------------------------------------------------------------------- */

static inline void heap_up(struct request_due *heap, uint32_t i, struct request_due entry)
{
	while (i > 0 && heap[(i - 1) / 2].at > entry.at) {
		heap[i] = heap[(i - 1) / 2];
		i = (i - 1) / 2;
	}
	heap[i] = entry;
}

static inline void heap_down(struct request_due *heap, uint32_t n, uint32_t i,
			     struct request_due entry)
{
	for (uint32_t child; (child = 2 * i + 1) < n; i = child) {
		if (child + 1 < n && heap[child + 1].at < heap[child].at)
			child++;
		if (heap[child].at >= entry.at)
			break;
		heap[i] = heap[child];
	}
	heap[i] = entry;
}

/* Removes entry I of N. */
static inline void heap_remove(struct request_due *heap, uint32_t n, uint32_t i)
{
	struct request_due last = heap[n - 1];

	if (i == n - 1)
		return;
	if (i > 0 && heap[(i - 1) / 2].at > last.at)
		heap_up(heap, i, last);
	else
		heap_down(heap, n - 1, i, last);
}

/* --- processor ------------------------------------------------------------------ */

/* Accounts for the processor's time until NOW. */
static inline void cpu_advance(struct node_model *m, struct request_node *q, double now)
{
	double passed = now - q->cpu_at;

	if (m->priority_decay) {
		request_decay_advance(m, q, now);
		return;
	}
	q->virtual_ms += passed * q->rate;
	q->cpu_busy_ms += passed * q->cores_busy;
	q->cpu_at = now;
}

/* Sets the rate for the present number of tasks and the time when the first burst ends. */
static inline void cpu_plan(struct node_model *m, struct request_node *q)
{
	double n = q->nrunning, left;

	if (q->nrunning == 0) {
		q->virtual_ms = 0; /* starting from 0 leaves the digits to the bursts */
		q->rate = 0;
		q->cores_busy = 0;
		q->cpu_next = NODE_NEVER;
		return;
	}
	if (m->priority_decay) {
		request_decay_plan(m, q);
		return;
	}
	q->rate = n <= q->cores ? q->speed : q->crowded / n;
	q->cores_busy = n <= q->cores ? n : q->cores;
	left = q->running[0].at - q->virtual_ms;
	q->cpu_next = left > 0 ? q->cpu_at + left / q->rate : q->cpu_at;
}

static inline void cpu_enter(struct node_model *m, struct request_node *q, uint32_t task,
			     double length_ms, double now)
{
	cpu_advance(m, q, now);
	if (m->priority_decay)
		request_decay_enter(m, q, task, length_ms, now);
	else
		heap_up(q->running, q->nrunning++,
			(struct request_due){q->virtual_ms + length_ms, task});
	cpu_plan(m, q);
}

/* Computation left in the burst of running[I]; the caller has called cpu_advance. */
static inline double cpu_left(const struct node_model *m, const struct request_node *q, uint32_t i)
{
	double left = m->priority_decay ? q->running[i].at : q->running[i].at - q->virtual_ms;

	return left > 0 ? left : 0;
}

static inline void cpu_remove(struct node_model *m, struct request_node *q, uint32_t i)
{
	if (m->priority_decay)
		q->running[i] = q->running[q->nrunning - 1];
	else
		heap_remove(q->running, q->nrunning, i);
	q->nrunning--;
}

/* --- bursts --------------------------------------------------------------------- */

static inline void burst_rates(const struct node *n, struct node_task *t)
{
	struct node_burst *b = &t->burst;
	double accesses = t->requests_left < 0 ? t->io_per_ms : 0;
	double hit = accesses > 0 ? node_hit_rate(n, t) : 0;
	double page = node_page_rate(n, t), rate = accesses * (1 - hit) + page;

	b->interval_ms = rate > 0 ? 1 / rate : 0;
	b->page_share = rate > 0 ? page / rate : 0;
	b->hits_per_ms = accesses * hit;
	t->epoch = n->epoch;
}

/* Accounts for X of the burst as computed. */
static inline void burst_account(struct request_node *q, struct node_task *t, double x)
{
	struct node_burst *b = &t->burst;

	t->segment_ms -= x;
	t->done_ms = t->goal_ms - t->segment_ms;
	b->length_ms -= x;
	if (b->hits_per_ms > 0) {
		double hits = x * b->hits_per_ms;

		q->hits += hits;
		t->accessed_mb += hits * t->request_kb * REQUEST_MB_PER_KB;
	}
}

/* Subtracts X of computation from what is left to the next request. */
static inline void burst_use(struct node_task *t, double x)
{
	struct node_burst *b = &t->burst;

	b->gap_ms -= x;
	if (b->interval_ms > 0 && b->hazard > 0)
		b->hazard = fmax(b->hazard - x / b->interval_ms, DBL_MIN);
}

/* Plans how the burst that begins now ends, and returns its length. */
static inline double burst_plan(struct node_task *t)
{
	struct node_burst *b = &t->burst;
	double length = t->segment_ms, drawn;

	t->state = REQUEST_TO_END;
	if (t->requests_left > 0) {
		t->state = REQUEST_TO_GIVEN;
		length = b->gap_ms > 0 ? fmin(b->gap_ms, length) : 0;
	}
	if (b->interval_ms > 0) {
		if (!(b->hazard > 0))
			b->hazard = -log(sim_random_uniform(&t->random));
		drawn = b->hazard * b->interval_ms;
		if (drawn < length) {
			t->state = REQUEST_TO_DRAWN;
			length = drawn;
		}
	}
	b->length_ms = length;
	return length;
}

/* --- disk ----------------------------------------------------------------------- */

static inline void disk_start(struct request_node *q, double now)
{
	q->disk_next = q->nqueued > 0 ? now + q->queue[q->head].service_ms : NODE_NEVER;
}

static inline void disk_push(struct request_node *q, struct request_queued item, double now)
{
	q->queue[(q->head + q->nqueued) & (q->room - 1)] = item;
	if (q->nqueued++ == 0)
		disk_start(q, now);
}

static inline void next_set(struct node_model *m, uint32_t node, const struct request_node *q)
{
	double next = q->cpu_next < q->disk_next ? q->cpu_next : q->disk_next;

	if (q->naway > 0 && q->away[0].at < next)
		next = q->away[0].at;
	m->next[node] = next;
}

/* The rest of the fidelity is in request_change.c. */
int request_reserve(struct node_model *m, uint32_t node);
void request_before(struct node_model *m, uint32_t node, double now);
void request_after(struct node_model *m, uint32_t node, double now, bool rates);
double request_stop(struct node_model *m, uint32_t node, uint32_t task, double now);
int request_disk_work(struct node_model *m, uint32_t node, double ms, uint32_t token, double now);
void request_refresh(struct node_model *m, uint32_t node, double now);

#endif
