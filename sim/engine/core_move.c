/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Tasks between nodes.  A transfer takes c_j(i,k) of MODEL 2.3 (a new task) or 2.4 (a running
 * one), and at least the network's latency.  With transfer_disk_work the data is read at the
 * source's disk, then moved, then written at the target's.
 *
 * A task on its way is on its target's list in the order (time sent, job, task), which does not
 * depend on the order in which shards are served.
 */
#include <errno.h>
#include <stdlib.h>

#include "sim/engine/core.h"

#define MS_PER_S 1000.0

double core_written_mb(const struct core_task *t)
{
	return t->write_fraction * t->at.accessed_mb;
}

static bool sent_before(const struct core_shard *s, const struct core_task *a,
			const struct core_task *b)
{
	uint64_t ja = core_job_of(s, a)->job.id, jb = core_job_of(s, b)->job.id;

	if (a->since_ms != b->since_ms)
		return a->since_ms < b->since_ms;
	return ja != jb ? ja < jb : a->index < b->index;
}

static void coming_add(struct core_shard *s, uint32_t id)
{
	struct core_task *t = core_task(s, id);
	uint32_t *link = &s->core->nodes[t->node].coming;

	while (*link != CORE_NONE && sent_before(s, core_task(s, *link), t))
		link = &core_task(s, *link)->next;
	t->next = *link;
	*link = id;
	if (s->core->transit_counts)
		core_mark_dirty(s, t->node);
}

void core_coming_remove(struct core_shard *s, uint32_t id)
{
	struct core_task *t = core_task(s, id);
	uint32_t *link = &s->core->nodes[t->node].coming;

	while (*link != id)
		link = &core_task(s, *link)->next;
	*link = t->next;
	t->next = CORE_NONE;
	if (s->core->transit_counts)
		core_mark_dirty(s, t->node);
}

static int add_timer(struct core_shard *s, uint32_t id, double due)
{
	const struct core_task *t = core_task(s, id);
	struct core_timer timer = {
		.time = due,
		.job = core_job_of(s, t)->job.id,
		.node = t->node,
		.index = t->index,
		.task = id,
	};

	if (core_timers_add(&s->timers, &timer) < 0)
		return core_fail(s, -ENOMEM, "out of memory for a transfer");
	return 0;
}

static double core_move_network(const struct core *c, uint32_t from, uint32_t to)
{
	double a = c->cluster->machines[from].network_mb_per_s;
	double b = c->cluster->machines[to].network_mb_per_s;

	a = a > 0 ? a : c->params.rules.network_mb_per_s;
	b = b > 0 ? b : c->params.rules.network_mb_per_s;
	return a < b ? a : b;
}

/* Sends a task and its job to another shard; both leave this shard. */
static int send_parcel(struct core_shard *s, uint32_t id, double due)
{
	struct core_task *t = core_task(s, id);
	struct core_parcels *out = &s->out[s->core->round % 2][core_shard_of(s->core, t->node)];
	struct core_parcel *p;

	if (core_grow(&out->list, &out->room, out->used + 1, sizeof(*out->list)) < 0)
		return core_fail(s, -ENOMEM, "out of memory for a transfer");
	p = &out->list[out->used++];
	p->job = *core_job_of(s, t);
	p->task = *t;
	p->due_ms = due;
	core_job_drop(s, t->job);
	core_task_drop(s, id);
	return 0;
}

/* Sends TASK from FROM to its node, with MS between the disks and MB of data. */
static int send(struct core_shard *s, uint32_t id, uint32_t from, double ms, double now)
{
	struct core *c = s->core;
	struct core_task *t = core_task(s, id);
	double read_ms = MS_PER_S * t->moving_mb / c->cluster->machines[from].disk_mb_per_s;

	t->since_ms = now;
	t->moving_ms = ms > c->params.network_latency_ms ? ms : c->params.network_latency_ms;
	t->state = TASK_MOVING;
	if (c->params.transfer_disk_work && t->moving_mb > 0) {
		t->state = TASK_READING;
		coming_add(s, id);
		core_node_begin(s, from, now);
		if (node_disk_work(s->model, from - s->first, read_ms, id, now) < 0)
			core_fail(s, -ENOMEM, "out of memory for a transfer");
		core_node_end(s, from);
		return s->error;
	}
	if (core_shard_of(c, t->node) != s->index)
		return send_parcel(s, id, now + t->moving_ms);
	coming_add(s, id);
	return add_timer(s, id, now + t->moving_ms);
}

int core_send_new(struct core_shard *s, uint32_t id, uint32_t from, double now)
{
	struct core *c = s->core;
	struct core_task *t = core_task(s, id);
	struct core_job *j = core_job_of(s, t);
	const struct sim_machine *a = &c->cluster->machines[from];
	const struct sim_machine *b = &c->cluster->machines[t->node];
	bool work = c->params.transfer_disk_work;
	double ms =
		rules_transfer_cost_ms(c->params.rules.fixed_cost_ms, j->job.initial_mb,
				       core_move_network(c, from, t->node),
				       work ? 0 : a->disk_mb_per_s, work ? 0 : b->disk_mb_per_s);

	t->moving_mb = j->job.initial_mb;
	j->moves++;
	s->stats.remote++;
	core_fixed_add(&s->stats.moved_mb, t->moving_mb);
	return send(s, id, from, ms, now);
}

/* Moves a running task from FROM to TO, where it continues. */
static int core_move_migrate(struct core_shard *s, uint32_t id, uint32_t from, uint32_t to,
			     double now)
{
	struct core *c = s->core;
	struct core_task *t = core_task(s, id);
	struct core_job *j = core_job_of(s, t);
	const struct sim_machine *a = &c->cluster->machines[from];
	const struct sim_machine *b = &c->cluster->machines[to];
	bool work = c->params.transfer_disk_work;
	double ms;

	core_node_begin(s, from, now);
	t->segment_ms = node_stop(s->model, from - s->first, id, now);
	if (t->segment_requests >= 0)
		t->segment_requests = t->at.requests_left;
	node_leave(s->model, from - s->first, id, now);
	core_node_end(s, from);
	t->node = to;
	t->moving_mb = j->job.initial_mb + core_written_mb(t);
	ms = rules_migration_cost_ms(c->params.rules.migration_fixed_ms, j->job.memory_mb,
				     t->moving_mb, core_move_network(c, from, to),
				     work ? 0 : a->disk_mb_per_s, work ? 0 : b->disk_mb_per_s);
	j->moves++;
	s->stats.migrations++;
	core_fixed_add(&s->stats.moved_mb, t->moving_mb + j->job.memory_mb);
	return send(s, id, from, ms, now);
}

int core_migrate(struct core_shard *s, uint32_t home, double now)
{
	uint32_t at = home - s->first, ntasks;
	struct core_look *look = &s->home_look;
	struct rules_request request;
	size_t n = 0;
	int ret;

	node_refresh(s->model, at, now);
	core_mark_dirty(s, home); /* the tasks' ages have changed */
	ret = core_view_open(s, home, now);
	ntasks = (uint32_t)look->node.ntasks;
	if (ret == 0 && core_grow(&s->moves, &s->moves_room, ntasks + 1, sizeof(*s->moves)) < 0)
		ret = core_fail(s, -ENOMEM, "out of memory for migrations");
	if (ret == 0) {
		ret = rules_migrate(core_rules_of(s, home), s->view, home, look->tasks, ntasks,
				    s->moves, ntasks, &n, &s->plan);
		if (ret < 0)
			core_fail(s, ret, "the rules cannot choose the tasks that leave node %u",
				  home);
	}
	core_view_close(s);
	for (size_t i = 0; ret == 0 && i < n; i++) {
		uint32_t id = look->ids[s->moves[i].task];

		request = core_request_of(s, core_job_of(s, core_task(s, id)));
		core_remember(s, home, s->moves[i].to, &request, 0);
		ret = core_move_migrate(s, id, home, s->moves[i].to, now);
	}
	return ret;
}

void core_task_arrives(struct core_shard *s, uint32_t id, double now)
{
	struct core_task *t = core_task(s, id);
	uint32_t node = t->node;
	double ms = MS_PER_S * t->moving_mb / s->core->cluster->machines[node].disk_mb_per_s;

	if (!s->core->params.transfer_disk_work || !(ms > 0)) {
		core_task_enters(s, id, now);
		return;
	}
	t->state = TASK_WRITING;
	core_node_begin(s, node, now);
	if (node_disk_work(s->model, node - s->first, ms, id, now) < 0)
		core_fail(s, -ENOMEM, "out of memory for a transfer");
	core_node_end(s, node);
}

void core_disk_work_done(struct core_shard *s, uint32_t id, double now)
{
	struct core_task *t = core_task(s, id);

	if (t->state == TASK_READING) {
		t->state = TASK_MOVING;
		add_timer(s, id, now + t->moving_ms);
	} else {
		core_task_enters(s, id, now);
	}
}

static int core_move_unpack(struct core_shard *s, const struct core_parcel *p)
{
	uint32_t job = core_job_new(s), id = core_task_new(s);

	if (job == CORE_NONE || id == CORE_NONE)
		return core_fail(s, -ENOMEM, "out of memory for a transfer");
	s->jobs.list[job] = p->job;
	*core_task(s, id) = p->task;
	s->jobs.list[job].first = id;
	core_task(s, id)->job = job;
	coming_add(s, id);
	return add_timer(s, id, p->due_ms);
}

int core_take_parcels(struct core_shard *s)
{
	struct core *c = s->core;

	for (uint32_t from = 0; from < c->nshards; from++) {
		struct core_parcels *in = &c->shards[from].out[(c->round + 1) % 2][s->index];

		for (uint32_t i = 0; i < in->used; i++)
			if (core_move_unpack(s, &in->list[i]) < 0)
				return s->error;
		in->used = 0;
	}
	return 0;
}
