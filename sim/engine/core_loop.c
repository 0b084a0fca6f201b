/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The event loop of one shard up to the end of the round, in the order that core.h states.
 */
#include "sim/engine/core.h"

/* A run with one shard returns to its caller after this many events. */
#define EVENTS_AT_ONCE 1000000u
/*
 * While one arrival is handled, the home of a later arrival, this many places behind it, is
 * prefetched.
 */
#define ARRIVALS_AHEAD 1u

enum source {
	FROM_STEP,
	FROM_TIMER,
	FROM_FLOW,
	FROM_ARRIVAL,
};

void core_node_begin(struct core_shard *s, uint32_t node, double now)
{
	struct core_node *n = &s->core->nodes[node];

	if (now >= n->window_end_ms)
		core_window_turn(s, node, now);
	n->runnable_ms += n->runnable * (now - n->last_ms);
	n->resident_ms += n->resident * (now - n->last_ms);
	n->last_ms = now;
	if (!(n->flags & NODE_TOUCHED))
		core_touch(s, node);
}

void core_node_end(struct core_shard *s, uint32_t node)
{
	struct core_node *n = &s->core->nodes[node];
	uint32_t at = node - s->first, resident = node_members(s->model, at);
	uint32_t runnable = node_runnable(s->model, at);

	if (resident != n->resident ||
	    (runnable != n->runnable && s->core->params.cpu_load_runnable))
		core_mark_dirty(s, node);
	n->resident = resident;
	n->runnable = runnable;
	core_heap_move(&s->steps, at, node_next(s->model, at));
}

/* Continues the tasks whose segments or transfers have ended at a step. */
static void step_done(struct core_shard *s, uint32_t node, const struct node_done *done, int n,
		      double now)
{
	struct node_done ended[NODE_DONE_MAX];

	for (int i = 0; i < n; i++)
		ended[i] = done[i];
	for (int i = 0; i < n; i++) {
		if (ended[i].disk_work)
			core_disk_work_done(s, ended[i].task, now);
		else
			core_segment_done(s, ended[i].task, now);
	}
	core_node_end(s, node);
}

static void fetch(struct core_shard *s, uint32_t at)
{
	node_prefetch(s->model, at);
	__builtin_prefetch(&s->core->nodes[s->first + at], 1);
}

/* Most events concern nodes that are in no cache, so we prefetch the nodes that are due
 * soon, and the tasks of the node that is due after the first.  MOVED is the place of a
 * new entry among the first five of the heap; 0: any may be new. */
static void fetch_ahead(struct core_shard *s, uint32_t moved)
{
	const struct core_heap *h = &s->steps;
	uint32_t least = 1;

	if (h->used < 5)
		return;
	for (uint32_t c = 1; c < 5; c++) {
		if (moved == 0 || c == moved)
			fetch(s, h->entries[c].id);
		if (core_entry_before(&h->entries[c], &h->entries[least]))
			least = c;
	}
	node_prefetch_tasks(s->model, h->entries[least].id);
}

static void core_loop_step(struct core_shard *s, double now)
{
	uint32_t at = s->steps.entries[0].id, node = s->first + at, runnable, moved;
	struct core_node *n = &s->core->nodes[node];
	const struct node_done *done;
	int ended;

	core_node_begin(s, node, now);
	ended = node_step(s->model, at, now, &done);
	if (ended > 0) {
		step_done(s, node, done, ended, now);
		fetch_ahead(s, 0);
		return;
	}
	runnable = node_runnable(s->model, at);
	if (runnable != n->runnable && s->core->params.cpu_load_runnable)
		core_mark_dirty(s, node);
	n->runnable = runnable;
	moved = core_heap_sink(&s->steps, node_next(s->model, at));
	if (moved != 0)
		fetch_ahead(s, moved);
}

static double arrival_time(const struct core_shard *s)
{
	const struct core_arrivals *a = &s->arrivals;

	return a->head < a->used ? a->jobs[a->head].arrival_ms : CORE_FOREVER;
}

static double first_event(const struct core_shard *s, enum source *source)
{
	double time = s->steps.used ? s->steps.entries[0].time : CORE_FOREVER;
	double timer = s->timers.used ? s->timers.entries[0].time : CORE_FOREVER;
	double flow = s->flows ? core_flows_next(s->flows) : CORE_FOREVER;
	double arrival = arrival_time(s);

	*source = FROM_STEP;
	if (timer < time) {
		time = timer;
		*source = FROM_TIMER;
	}
	if (flow < time) {
		time = flow;
		*source = FROM_FLOW;
	}
	if (arrival < time) {
		time = arrival;
		*source = FROM_ARRIVAL;
	}
	return time;
}

double core_next_time(const struct core_shard *s)
{
	enum source source;

	return first_event(s, &source);
}

static void take_arrival(struct core_shard *s, double now)
{
	struct core_arrivals *a = &s->arrivals;
	struct sim_job job = a->jobs[a->head++];

	if (a->head + ARRIVALS_AHEAD < a->used)
		core_fetch_node(s, a->jobs[a->head + ARRIVALS_AHEAD].home);
	core_arrive(s, &job, now);
}

static void take_timer(struct core_shard *s, double now)
{
	uint32_t task = core_timers_take(&s->timers).task;

	if (s->timers.used > 0) {
		core_fetch(core_task(s, s->timers.entries[0].task), sizeof(struct core_task));
		core_fetch_node(s, s->timers.entries[0].node);
	}
	core_task_arrives(s, task, now);
}

static void core_loop_handle(struct core_shard *s, enum source source, double now)
{
	s->stats.events++;
	switch (source) {
	case FROM_STEP:
		core_loop_step(s, now);
		break;
	case FROM_TIMER:
		take_timer(s, now);
		break;
	case FROM_FLOW:
		core_flows_step(s, now);
		break;
	case FROM_ARRIVAL:
		take_arrival(s, now);
		break;
	}
	if (s->queue_check && s->error == 0) {
		if (s->easy == NULL)
			core_queue_try(s, now);
		else if (core_next_time(s) > now)
			core_easy_try(s, now);
	}
	if (s->flows != NULL && s->error == 0)
		core_flows_settle(s, now);
}

void core_run_shard(struct core_shard *s)
{
	double end = s->core->end_ms;
	uint32_t left = EVENTS_AT_ONCE;
	enum source source;

	s->paused = false;
	while (s->error == 0) {
		double now = first_event(s, &source);

		if (!(now < end))
			break;
		if (left-- == 0) {
			s->paused = true;
			break;
		}
		if (s->completions != NULL)
			core_completions_tell(s, now);
		core_loop_handle(s, source, now);
	}
}
