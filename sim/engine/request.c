/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The request level: every disk access is an event (MODEL 5.1-5.4).
 *
 * A task alternates bursts of computation and synchronous requests (O-2):
 *
 *   burst   ends at the segment's end, at the next of a given number of accesses, or where the
 *           hazard integral of (1 - h) lambda + page per ms of computation reaches an
 *           exponential of mean 1.  When members or the buffer change the rates, the rest of the
 *           exponential continues at the new rates, so bursts follow the rates of each moment
 *           exactly.  Accesses that hit cost nothing and are counted by their rate.
 *   CPU     processor sharing by virtual time, which runs at `speed` while tasks <= cores, else
 *           at speed x cores x slice / (slice + switch) / tasks.  A burst of x begun at V ends at
 *           V + x whatever other tasks do, so an arrival or a departure moves only the clock.
 *   disk    FCFS.  An access takes fixed + size / rate, with Gamma sizes; a page fault takes
 *           page_fault_ms (or delays the task for so long without the disk); a transfer takes
 *           the time it states.
 *
 * No event allocates memory: entering a node makes room for all that the task can do there.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/engine/request.h"

static void issue_access(struct request_node *q, struct node_task *t, uint32_t task, double now)
{
	double size_kb = t->request_sd_kb > 0
				 ? sim_random_gamma(&t->random, t->request_kb, t->request_sd_kb)
				 : t->request_kb;

	if (t->requests_left > 0) {
		t->requests_left--;
		t->burst.gap_ms = t->segment_ms / (t->requests_left + 1);
	}
	t->accessed_mb += size_kb * REQUEST_MB_PER_KB;
	t->state = REQUEST_AT_DISK;
	q->at_disk++;
	disk_push(q,
		  (struct request_queued){.service_ms = q->fixed_ms + size_kb * q->ms_per_kb,
					  .id = task,
					  .kind = ITEM_ACCESS},
		  now);
}

static void issue_page_fault(struct node_model *m, struct request_node *q, struct node_task *t,
			     uint32_t task, double now)
{
	if (!m->page_fault_at_disk) {
		t->state = REQUEST_AWAY;
		heap_up(q->away, q->naway++, (struct request_due){now + m->page_fault_ms, task});
		return;
	}
	t->state = REQUEST_AT_DISK;
	q->at_disk++;
	disk_push(q,
		  (struct request_queued){
			  .service_ms = m->page_fault_ms, .id = task, .kind = ITEM_PAGE_FAULT},
		  now);
}

/* --- events --------------------------------------------------------------------- */

static inline void burst_begin(struct node_model *m, uint32_t node, struct request_node *q,
			       struct node_task *t, uint32_t task, double now)
{
	double length;

	if (t->epoch != q->epoch)
		burst_rates(&m->nodes[node], t);
	length = burst_plan(t);
	if (length == 0 && t->state == REQUEST_TO_GIVEN)
		issue_access(q, t, task, now);
	else
		cpu_enter(m, q, task, length, now);
}

static void done_push(struct request_node *q, uint32_t id, bool disk_work)
{
	q->done[q->ndone++] = (struct node_done){.task = id, .disk_work = disk_work};
}

static inline void disk_end(struct node_model *m, uint32_t node, struct request_node *q, double now)
{
	struct request_queued item = q->queue[q->head];

	q->head = (q->head + 1) & (q->room - 1);
	q->nqueued--;
	disk_start(q, now);
	if (item.kind == ITEM_WORK) {
		q->works--;
		q->works_ms += item.service_ms;
		done_push(q, item.id, true);
		return;
	}
	q->requests++;
	q->faults += item.kind == ITEM_PAGE_FAULT;
	q->service_sum += item.service_ms;
	q->service_sum2 += item.service_ms * item.service_ms;
	if (item.abandoned)
		return;
	q->at_disk--;
	burst_begin(m, node, q, node_task_of(m, item.id), item.id, now);
}

static inline void burst_end(struct node_model *m, struct request_node *q, uint32_t task,
			     double now)
{
	struct node_task *t = node_task_of(m, task);
	double x = t->burst.length_ms;

	burst_account(q, t, x);
	if (t->state == REQUEST_TO_DRAWN) {
		t->burst.gap_ms -= x;
		t->burst.hazard = 0;
		if (t->burst.page_share > 0 &&
		    (t->burst.page_share >= 1 ||
		     sim_random_uniform(&t->random) < t->burst.page_share))
			issue_page_fault(m, q, t, task, now);
		else
			issue_access(q, t, task, now);
		return;
	}
	burst_use(t, x);
	if (t->state == REQUEST_TO_GIVEN) {
		issue_access(q, t, task, now);
		return;
	}
	t->state = REQUEST_IDLE;
	t->segment_ms = 0;
	t->done_ms = t->goal_ms;
	done_push(q, task, false);
}

static inline void cpu_end(struct node_model *m, struct request_node *q, double now)
{
	uint32_t i = 0, task;

	cpu_advance(m, q, now);
	if (m->priority_decay) {
		i = request_decay_ended(q);
		if (i == q->nrunning) { /* only the priorities have changed */
			cpu_plan(m, q);
			return;
		}
	} else if (q->virtual_ms < q->running[0].at) {
		q->virtual_ms = q->running[0].at; /* exact to the last digit */
	}
	task = q->running[i].task;
	cpu_remove(m, q, i);
	cpu_plan(m, q);
	burst_end(m, q, task, now);
}

static void away_end(struct node_model *m, uint32_t node, struct request_node *q, double now)
{
	uint32_t task = q->away[0].task;

	heap_remove(q->away, q->naway--, 0);
	q->delays++;
	burst_begin(m, node, q, node_task_of(m, task), task, now);
}

static inline double away_next(const struct request_node *q)
{
	return q->naway > 0 ? q->away[0].at : NODE_NEVER;
}

static int request_step(struct node_model *m, uint32_t node, double now,
			const struct node_done **done)
{
	struct request_node *q = node_state(m, node);

	q->ndone = 0;
	while (q->ndone < NODE_DONE_MAX) {
		if (q->disk_next <= now)
			disk_end(m, node, q, now);
		else if (q->cpu_next <= now)
			cpu_end(m, q, now);
		else if (away_next(q) <= now)
			away_end(m, node, q, now);
		else
			break;
	}
	next_set(m, node, q);
	*done = q->done;
	return (int)q->ndone;
}

static int request_run(struct node_model *m, uint32_t node, uint32_t task, double cpu_ms,
		       double requests, double now)
{
	struct request_node *q = node_state(m, node);
	struct node_task *t = node_task_of(m, task);

	t->segment_ms = cpu_ms;
	t->goal_ms = t->done_ms + cpu_ms;
	t->requests_left = requests < 0 ? -1 : floor(requests);
	t->burst.gap_ms = requests < 0 ? 0 : cpu_ms / (t->requests_left + 1);
	t->epoch = 0;
	burst_begin(m, node, q, t, task, now);
	next_set(m, node, q);
	return 0;
}

/* --- the rest of the interface ------------------------------------------------------ */

static void request_prefetch(const struct node_model *m, uint32_t node)
{
	const char *state = (const char *)node_state(m, node);

	for (int line = 0; line < 3; line++)
		__builtin_prefetch(state + line * REQUEST_CACHE_LINE, 1);
	__builtin_prefetch(&m->next[node], 1);
}

/* Fetches the task whose burst ends first and the task that the disk serves. */
static void request_prefetch_tasks(const struct node_model *m, uint32_t node)
{
	const struct request_node *q = node_state(m, node);
	bool disk = q->disk_next < q->cpu_next;
	const char *t;

	if (disk ? q->nqueued == 0 : q->nrunning == 0)
		return;
	t = (const char *)node_task_of(m, disk ? q->queue[q->head].id : q->running[0].task);
	for (size_t at = 0; at < sizeof(struct node_task); at += REQUEST_CACHE_LINE)
		__builtin_prefetch(t + at, 1);
}

static uint32_t request_runnable(const struct node_model *m, uint32_t node)
{
	return node_state(m, node)->nrunning;
}

static uint32_t request_at_disk(const struct node_model *m, uint32_t node)
{
	return node_state(m, node)->at_disk;
}

static void request_sums(const struct node_model *m, uint32_t node, double now,
			 struct node_sums *sums)
{
	const struct request_node *q = node_state(m, node);
	double accesses = q->requests - q->faults;
	double transfer_ms = q->service_sum - q->faults * m->page_fault_ms - accesses * q->fixed_ms;

	*sums = (struct node_sums){
		.cpu_busy_ms = q->cpu_busy_ms + (now - q->cpu_at) * q->cores_busy,
		.disk_busy_ms = q->service_sum + q->works_ms,
		.disk_requests = q->requests,
		.page_faults = q->faults + q->delays,
		.accesses = accesses + q->hits,
		.hits = q->hits,
		.service_sum = q->service_sum,
		.service_sum2 = q->service_sum2,
		.disk_mb = accesses > 0 ? transfer_ms / q->ms_per_kb * REQUEST_MB_PER_KB : 0,
	};
	if (q->nqueued > 0)
		sums->disk_busy_ms += now - (q->disk_next - q->queue[q->head].service_ms);
}

static int request_create(struct node_model *m)
{
	struct request_node *nodes = aligned_alloc(REQUEST_CACHE_LINE, m->n * sizeof(*nodes));

	if (!nodes)
		return -ENOMEM;
	memset(nodes, 0, m->n * sizeof(*nodes));
	for (uint32_t i = 0; i < m->n; i++) {
		const struct node *n = &m->nodes[i];

		nodes[i].speed = n->speed;
		nodes[i].cores = n->cores;
		nodes[i].crowded = n->crowded;
		nodes[i].fixed_ms = n->disk_fixed_ms;
		nodes[i].ms_per_kb = 1 / n->disk_mb_per_s; /* KB / (MB/s) = ms (O-1) */
		nodes[i].epoch = n->epoch;
		nodes[i].cpu_next = NODE_NEVER;
		nodes[i].disk_next = NODE_NEVER;
	}
	m->state = nodes;
	return 0;
}

static void request_destroy(struct node_model *m)
{
	for (uint32_t i = 0; i < m->n; i++)
		free(node_state(m, i)->running);
	free(m->state);
}

static size_t request_bytes(const struct node_model *m)
{
	size_t bytes = m->n * sizeof(struct request_node);
	size_t each = (m->page_fault_at_disk ? 1 : 2) * sizeof(struct request_due) +
		      sizeof(struct request_queued);

	for (uint32_t i = 0; i < m->n; i++)
		bytes += node_state(m, i)->room * each;
	return bytes;
}

const struct node_fidelity node_request_level = {
	.create = request_create,
	.destroy = request_destroy,
	.bytes = request_bytes,
	.reserve = request_reserve,
	.before = request_before,
	.after = request_after,
	.run = request_run,
	.stop = request_stop,
	.disk_work = request_disk_work,
	.refresh = request_refresh,
	.step = request_step,
	.prefetch = request_prefetch,
	.prefetch_tasks = request_prefetch_tasks,
	.runnable = request_runnable,
	.at_disk = request_at_disk,
	.sums = request_sums,
};
