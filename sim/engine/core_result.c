/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Turns the shards' counts into the result.  Sums are exact, or are added in node order. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/engine/core.h"

/* Completions at one time, reported in the order of their jobs. */
struct core_completions {
	struct completion {
		struct sim_job job;
		struct sim_completion c;
	} * list;
	uint32_t used, room;
};

static void remember_completion(struct core_shard *s, const struct core_job *j, double slowdown,
				double now)
{
	struct core_completions *k = s->completions;
	uint32_t i = k->used;
	struct completion entry = {
		.job = j->job,
		.c = {.node = j->end_node,
		      .start_ms = j->start_ms,
		      .end_ms = now,
		      .alone_ms = j->alone_ms,
		      .slowdown = slowdown,
		      .moves = j->moves},
	};

	if (core_grow(&k->list, &k->room, i + 1, sizeof(*k->list)) < 0) {
		core_fail(s, -ENOMEM, "out of memory for completions");
		return;
	}
	for (; i > 0 && k->list[i - 1].job.id > entry.job.id; i--)
		k->list[i] = k->list[i - 1];
	k->list[i] = entry;
	k->used++;
}

void core_completions_tell(struct core_shard *s, double now)
{
	struct core_completions *k = s->completions;
	const struct sim_run *run = s->core->run;

	if (k->used == 0 || !(k->list[0].c.end_ms < now))
		return;
	for (uint32_t i = 0; i < k->used; i++) {
		k->list[i].c.job = &k->list[i].job;
		run->completed(run->arg, &k->list[i].c);
	}
	k->used = 0;
}

int core_completions_new(struct core_shard *s)
{
	s->completions = calloc(1, sizeof(*s->completions));
	return s->completions == NULL ? -ENOMEM : 0;
}

void core_completions_free(struct core_completions *k)
{
	if (k != NULL)
		free(k->list);
	free(k);
}

static int count_completion(struct core_shard *s, const struct core_job *j, double slowdown,
			    double turnaround)
{
	struct core_stats *st = &s->stats;
	int ret = core_distribution_add(&st->slowdown, slowdown);

	if (ret == 0)
		ret = core_distribution_add(&st->turnaround, turnaround);
	if (ret == 0)
		ret = core_distribution_add(&st->delay, turnaround - j->alone_ms);
	if (ret == 0)
		ret = core_distribution_add(&st->kinds[j->job.kind], slowdown);
	return ret;
}

void core_complete(struct core_shard *s, uint32_t job, double now)
{
	struct core *c = s->core;
	const struct core_job *j = &s->jobs.list[job];
	uint32_t node = j->end_node;
	double turnaround = now - j->job.arrival_ms;
	double slowdown = j->alone_ms > 0 ? turnaround / j->alone_ms : 1;

	s->stats.completed++;
	s->stats.last_ms = now;
	if (j->job.arrival_ms >= c->params.warmup_ms &&
	    count_completion(s, j, slowdown, turnaround) < 0)
		core_fail(s, -ENOMEM, "out of memory for statistics");
	if (s->completions != NULL)
		remember_completion(s, j, slowdown, now);
	core_job_drop(s, job);
	if (c->feedback)
		core_control_done(s, node, slowdown, now);
}

/* --- time series -------------------------------------------------------------------- */

void core_sample_partial(struct core_shard *s)
{
	struct core *c = s->core;
	struct core_partial *p = &s->partial;
	double now = c->sample_at_ms;

	memset(p, 0, sizeof(*p));
	p->remote = s->stats.remote;
	p->migrations = s->stats.migrations;
	for (uint32_t i = s->first; i < s->first + s->n; i++) {
		struct core_meter *m = &c->meters[i];
		struct core_load load;
		struct node_sums sums;
		double io;

		node_sums(s->model, i - s->first, now, &sums);
		core_fixed_add(&p->cpu_busy, (sums.cpu_busy_ms - m->sampled_cpu_ms) /
						     c->cluster->machines[i].cores);
		core_fixed_add(&p->disk_busy, sums.disk_busy_ms - m->sampled_disk_ms);
		m->sampled_cpu_ms = sums.cpu_busy_ms;
		m->sampled_disk_ms = sums.disk_busy_ms;
		p->resident += c->nodes[i].resident;
		if (c->nodes[i].resident > p->resident_most)
			p->resident_most = c->nodes[i].resident;
		if (core_describe(c, i, now, CORE_FOREVER, &s->look) < 0) {
			core_fail(s, -ENOMEM, "out of memory for a sample");
			return;
		}
		load = core_load_of(&s->look);
		io = load.explicit_per_ms + load.implicit_per_ms;
		core_fixed_add(&p->io, io);
		p->io_most = io > p->io_most ? io : p->io_most;
	}
}

static void sample_control(const struct core *c, struct sim_sample *row)
{
	struct rules_control control;
	uint32_t count = c->own_rules != NULL ? c->cluster->n : 1;

	if (!c->feedback)
		return;
	for (uint32_t i = 0; i < count; i++) {
		rules_control(c->own_rules != NULL ? c->own_rules[i] : c->shards[0].rules,
			      &control);
		row->w_io += control.w_io / count;
		row->buffer_mb += control.buffer_mb / count;
		row->slowdown += control.slowdown / count;
	}
}

int core_sample_merge(struct core *c)
{
	struct sim_result *r = c->result;
	struct core_partial sum = {0};
	struct sim_sample *row;
	double n = c->cluster->n, span = c->sample_at_ms - c->sampled_ms;

	for (uint32_t k = 0; k < c->nshards; k++) {
		const struct core_shard *s = &c->shards[k];

		sum.cpu_busy += s->partial.cpu_busy;
		sum.disk_busy += s->partial.disk_busy;
		sum.io += s->partial.io;
		sum.resident += s->partial.resident;
		sum.resident_most = s->partial.resident_most > sum.resident_most
					    ? s->partial.resident_most
					    : sum.resident_most;
		sum.io_most = fmax(sum.io_most, s->partial.io_most);
		sum.remote += s->partial.remote;
		sum.migrations += s->partial.migrations;
	}
	if (r->nsamples >= SIM_SAMPLES_MAX)
		return -E2BIG;
	if (core_grow(&r->samples, &c->samples_room, r->nsamples + 1, sizeof(*r->samples)) < 0)
		return -ENOMEM;
	row = &r->samples[r->nsamples++];
	*row = (struct sim_sample){
		.time_ms = c->sample_at_ms,
		.cpu_utilisation = core_fixed_value(sum.cpu_busy) / (span * n),
		.disk_utilisation = core_fixed_value(sum.disk_busy) / (span * n),
		.tasks_mean = (double)sum.resident / n,
		.tasks_max = sum.resident_most,
		.io_imbalance = sum.io > 0 ? sum.io_most * n / core_fixed_value(sum.io) : 0,
		.remote = sum.remote - c->sampled_remote,
		.migrations = sum.migrations - c->sampled_migrations,
	};
	sample_control(c, row);
	c->sampled_remote = sum.remote;
	c->sampled_migrations = sum.migrations;
	c->sampled_ms = c->sample_at_ms;
	return 0;
}

/* --- the end --------------------------------------------------------------------------- */

size_t core_bytes(const struct core *c)
{
	size_t bytes = c->cluster->n * (sizeof(*c->nodes) + sizeof(*c->meters));

	for (uint32_t k = 0; k < c->nshards; k++) {
		const struct core_shard *s = &c->shards[k];

		bytes += node_model_bytes(s->model) + core_flows_bytes(s->flows);
		bytes += s->tasks.room * sizeof(*s->tasks.list);
		bytes += s->jobs.room * sizeof(*s->jobs.list);
		bytes += s->steps.room * (sizeof(*s->steps.entries) + sizeof(*s->steps.at));
		bytes += s->timers.room * sizeof(*s->timers.entries);
		bytes += s->arrivals.room * sizeof(*s->arrivals.jobs);
		bytes += s->placed.room * sizeof(*s->placed.list);
		bytes += 3 * (size_t)s->touched.room * sizeof(uint32_t);
	}
	return bytes;
}

static double core_result_at_most_one(double x)
{
	return x > 1 ? 1 : x;
}

static void node_result(const struct core *c, uint32_t i, double end, struct node_sums *sums,
			struct sim_node_result *out)
{
	const struct core_shard *s = &c->shards[core_shard_of(c, i)];
	const struct core_node *n = &c->nodes[i];
	double until = n->last_ms > end ? n->last_ms : end;

	node_sums(s->model, i - s->first, until, sums);
	*out = (struct sim_node_result){.arrived = c->meters[i].arrived,
					.executed = c->meters[i].executed};
	if (!(end > 0))
		return;
	out->cpu_utilisation =
		core_result_at_most_one(sums->cpu_busy_ms / (end * c->cluster->machines[i].cores));
	out->disk_utilisation = core_result_at_most_one(sums->disk_busy_ms / end);
	out->jobs_mean = (n->resident_ms + n->resident * (until - n->last_ms)) / end;
}

static int nodes_result(struct core *c, double end)
{
	struct sim_result *r = c->result;
	struct node_sums all = {0}, one;

	r->nnodes = c->cluster->n;
	r->nodes = calloc(r->nnodes, sizeof(*r->nodes));
	if (r->nodes == NULL)
		return -ENOMEM;
	for (uint32_t i = 0; i < r->nnodes; i++) {
		node_result(c, i, end, &one, &r->nodes[i]);
		r->cpu_utilisation += r->nodes[i].cpu_utilisation / r->nnodes;
		r->disk_utilisation += r->nodes[i].disk_utilisation / r->nnodes;
		all.disk_requests += one.disk_requests;
		all.page_faults += one.page_faults;
		all.accesses += one.accesses;
		all.hits += one.hits;
		all.disk_mb += one.disk_mb;
	}
	r->hit_rate = all.accesses > 0 ? all.hits / all.accesses : 0;
	r->disk_requests = (uint64_t)llround(all.disk_requests);
	r->page_faults = (uint64_t)llround(all.page_faults);
	r->disk_mb = all.disk_mb;
	if (!c->params.page_fault_at_disk)
		all.disk_requests += all.page_faults;
	r->implicit_share = all.disk_requests > 0 ? all.page_faults / all.disk_requests : 0;
	return 0;
}

static void summaries(struct sim_result *r, const struct core_stats *st)
{
	core_distribution_summary(&st->slowdown, &r->slowdown);
	core_distribution_summary(&st->turnaround, &r->turnaround_ms);
	core_distribution_summary(&st->delay, &r->delay_ms);
	for (int k = 0; k < SIM_KINDS_MAX; k++)
		core_distribution_summary(&st->kinds[k], &r->kind_slowdown[k]);
	r->completed = st->completed;
	r->tasks_started = st->tasks_started;
	r->tasks_ended = st->tasks_ended;
	r->remote_executions = st->remote;
	r->migrations = st->migrations;
	r->queued = st->queued;
	r->moved_mb = core_fixed_value(st->moved_mb);
	r->events = st->events;
	r->decisions = st->decisions;
}

int core_result(struct core *c)
{
	struct sim_result *r = c->result;
	struct core_stats *st = &c->shards[0].stats;
	double end;

	for (uint32_t k = 1; k < c->nshards; k++)
		if (core_stats_merge(st, &c->shards[k].stats) < 0)
			return -ENOMEM;
	summaries(r, st);
	r->arrived = c->arrived;
	r->unfinished = r->arrived - r->completed;
	end = r->unfinished > 0 && c->params.until_ms > 0 ? c->params.until_ms : st->last_ms;
	r->makespan_ms = end;
	r->bytes_peak = core_bytes(c);
	r->threads_used = c->nshards;
	r->serial_reason = c->serial_reason;
	return nodes_result(c, end);
}
