/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Decisions: the rules get the view of the home node and nothing else.
 *
 * With period 0 there is one view, exact at every decision.  Otherwise the view is the snapshot
 * of the last period boundary, with the home's own present state and the tasks that this home has
 * sent elsewhere since; these additions are removed after the decision.
 *
 * Batch (MODEL 3.13): jobs that found too few free nodes wait in one queue, first come first
 * served; with bs_backfill later jobs may overtake.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sim/engine/core.h"

#define PURPOSE_TIES 0x74696573u /* stream of random numbers that decide ties */

struct rules *core_rules_of(const struct core_shard *s, uint32_t node)
{
	return s->core->own_rules != NULL ? s->core->own_rules[node] : s->rules;
}

struct rules_request core_request_of(const struct core_shard *s, const struct core_job *j)
{
	const struct sim_job *k = &j->job;
	bool wall = s->core->params.rules.rates == RULES_RATES_WALL;
	double requests = k->requests >= 0 ? k->requests : k->cpu_ms * k->io_per_ms;

	if (wall && k->has_asked)
		return (struct rules_request){
			.cpu_ms = k->asked.cpu_ms,
			.io_per_ms = j->rate_per_ms,
			.request_kb = k->asked.request_kb,
			.memory_mb = k->asked.memory_mb,
			.faults_per_ms = k->asked.faults_per_ms,
			.initial_mb = k->initial_mb,
			.requests = k->asked.requests,
			.implicit_share = k->asked.implicit_share,
			.tasks = 1,
		};
	return (struct rules_request){
		.cpu_ms = k->cpu_ms,
		.io_per_ms = j->rate_per_ms,
		.request_kb = k->request_kb,
		.reaccess = k->requests >= 0 ? 0 : k->reaccess,
		.memory_mb = k->memory_mb,
		.faults_per_ms = k->faults_per_ms,
		.initial_mb = k->initial_mb,
		.requests = wall ? requests : -1,
		.tasks = 1,
	};
}

void core_remember(struct core_shard *s, uint32_t home, uint32_t target,
		   const struct rules_request *request, double com_ms)
{
	struct core_node *n = &s->core->nodes[home];
	uint32_t i = s->placed.used;

	if (!s->core->looks || s->core->period_ms == 0)
		return;
	if (core_grow(&s->placed.list, &s->placed.room, i + 1, sizeof(*s->placed.list)) < 0) {
		core_fail(s, -ENOMEM, "out of memory for placements");
		return;
	}
	s->placed.list[i].request = *request;
	s->placed.list[i].com_ms = com_ms;
	s->placed.list[i].target = target;
	s->placed.list[i].next = n->placed_at_ms == s->core->snapshot_ms ? n->placed : CORE_NONE;
	n->placed_at_ms = s->core->snapshot_ms;
	n->placed = i;
	s->placed.used++;
}

/* Adds the home's own placements since the snapshot, oldest first. */
static int charge_placed(struct core_shard *s, uint32_t home)
{
	struct core_node *n = &s->core->nodes[home];
	struct core_placement *list = s->placed.list;
	uint32_t turned = CORE_NONE, i, next;
	int ret = 0;

	if (n->placed_at_ms != s->core->snapshot_ms)
		return 0;
	for (i = n->placed; i != CORE_NONE; i = next) {
		next = list[i].next;
		list[i].next = turned;
		turned = i;
	}
	for (i = turned, turned = CORE_NONE; i != CORE_NONE; i = next) {
		list[i].request.com_ms = &list[i].com_ms;
		if (ret == 0)
			ret = rules_view_charge(s->view, list[i].target, &list[i].request);
		next = list[i].next;
		list[i].next = turned;
		turned = i;
	}
	return ret;
}

/*
 * Returns whether the home may differ from the snapshot.  Callers that record looks want it
 * described in any case.
 */
static bool home_changed(const struct core *c, uint32_t home)
{
	const struct core_node *n = &c->nodes[home];

	return n->last_ms >= c->snapshot_ms || (n->flags & NODE_DIRTY) || c->migrates ||
	       c->saved != NULL;
}

static int set_home(struct core_shard *s, uint32_t home, double now)
{
	const struct core *c = s->core;
	int ret;

	core_measure(s, home, now);
	core_view_age(s, home, now);
	ret = core_describe(c, home, now, c->snapshot_ms, &s->home_look);
	return ret < 0 ? ret : rules_view_set(s->view, home, &s->home_look.node);
}

int core_view_open(struct core_shard *s, uint32_t home, double now)
{
	struct core *c = s->core;
	int ret = 0;

	if (!c->looks)
		return 0;
	if (c->period_ms == 0) {
		ret = core_view_refresh(s, now);
		if (ret == 0 && c->migrates)
			ret = core_describe(c, home, now, CORE_FOREVER, &s->home_look);
	} else {
		ret = rules_view_mark(s->view);
		if (ret == 0 && home_changed(c, home))
			ret = set_home(s, home, now);
		if (ret == 0)
			ret = charge_placed(s, home);
	}
	if (ret < 0)
		core_fail(s, ret, "cannot build the view of node %u", home);
	return ret;
}

void core_view_close(struct core_shard *s)
{
	if (s->core->looks && s->core->period_ms > 0)
		rules_view_rollback(s->view);
}

static int reserve_targets(struct core_shard *s, uint32_t tasks)
{
	uint32_t room = s->targets_room;

	if (core_grow(&s->targets, &room, tasks, sizeof(*s->targets)) < 0)
		return core_fail(s, -ENOMEM, "out of memory for %u tasks", tasks);
	room = s->targets_room;
	if (core_grow(&s->com_ms, &room, tasks, sizeof(*s->com_ms)) < 0)
		return core_fail(s, -ENOMEM, "out of memory for %u tasks", tasks);
	s->targets_room = room;
	return 0;
}

/* Depends on the job's id, so that jobs that are otherwise alike do not draw alike. */
uint64_t core_ties_seed(const struct core *c, const struct sim_job *job)
{
	struct sim_random r = sim_random_stream(c->params.seed, PURPOSE_TIES, job->id);

	/* A view file stores 53 bits. */
	return sim_random_next(&r) >> 11;
}

static int core_place_ask(struct core_shard *s, const struct core_job *j)
{
	struct rules_request request = core_request_of(s, j);
	struct rules *rules = core_rules_of(s, j->job.home);
	uint32_t tasks = j->job.tasks;
	int ret;

	rules_reseed(rules, core_ties_seed(s->core, &j->job));
	s->request = request;
	if (tasks == 1 && !s->core->batch) {
		ret = rules_place(rules, s->view, j->job.home, &request, &s->plan);
		s->targets[0] = s->plan.node;
		if (s->core->params.follow_recorded && j->job.has_asked &&
		    j->job.asked.node < s->core->cluster->n)
			s->targets[0] = j->job.asked.node;
		return ret;
	}
	request.tasks = tasks;
	for (uint32_t i = 0; i < tasks; i++)
		s->com_ms[i] = i == 0 ? 0 : j->com_ms;
	if (j->com_ms > 0)
		request.com_ms = s->com_ms;
	s->request = request;
	s->plan.queued = false;
	if (core_gang_is(s->core, j)) {
		ret = core_gang_place(s, j);
		if (ret <= 0)
			return ret;
		/* It fits nowhere: each task goes where there is most room. */
		s->request = request;
	}
	return rules_place_job(rules, s->view, j->job.home, &request, &s->plan, s->targets);
}

static void remember_all(struct core_shard *s, const struct core_job *j)
{
	struct rules_request request = core_request_of(s, j);

	for (uint32_t i = 0; i < j->job.tasks; i++)
		if (s->targets[i] != j->job.home)
			core_remember(s, j->job.home, s->targets[i], &request,
				      s->targets[i] != s->targets[0] ? j->com_ms : 0);
}

int core_decide(struct core_shard *s, uint32_t job, double now)
{
	const struct core_job *j = &s->jobs.list[job];
	const struct sim_run *run = s->core->run;
	uint32_t home = j->job.home;
	int ret = reserve_targets(s, j->job.tasks);

	if (ret < 0)
		return ret;
	ret = core_view_open(s, home, now);
	if (ret == 0) {
		ret = core_place_ask(s, j);
		if (ret < 0)
			core_fail(s, ret, "job %llu cannot be placed",
				  (unsigned long long)j->job.id);
		s->stats.decisions++;
	}
	if (ret == 0 && run->decided != NULL) {
		struct sim_look look = {s, &j->job, home};

		run->decided(run->arg, now, &j->job, &s->plan, s->targets, &look);
	}
	core_view_close(s);
	if (ret < 0)
		return ret;
	if (s->core->batch && s->plan.queued)
		return 1;
	remember_all(s, j);
	return 0;
}

void core_queue_add(struct core_shard *s, uint32_t job)
{
	s->jobs.list[job].next = CORE_NONE;
	if (s->queue_head == CORE_NONE)
		s->queue_head = job;
	else
		s->jobs.list[s->queue_tail].next = job;
	s->queue_tail = job;
	s->stats.queued++;
}

static void queue_remove(struct core_shard *s, uint32_t job, uint32_t before)
{
	uint32_t next = s->jobs.list[job].next;

	if (before == CORE_NONE)
		s->queue_head = next;
	else
		s->jobs.list[before].next = next;
	if (s->queue_tail == job)
		s->queue_tail = before;
	s->jobs.list[job].next = CORE_NONE;
}

void core_queue_try(struct core_shard *s, double now)
{
	uint32_t before = CORE_NONE, job = s->queue_head;

	s->queue_check = false;
	while (job != CORE_NONE) {
		uint32_t next = s->jobs.list[job].next;
		int ret = core_decide(s, job, now);

		if (ret < 0)
			return;
		if (ret > 0) {
			if (!s->core->params.bs_backfill)
				return;
			before = job;
		} else {
			queue_remove(s, job, before);
			if (core_dispatch(s, job, now) < 0)
				return;
		}
		job = next;
	}
}
