/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * A job's life: it arrives, its tasks go where the rules say, compute phase by
 * phase, wait for each other, talk, and end (MODEL 5.6).
 *
 *   computation of barrier_ms -> barrier -> messages of the slaves to the master -> next phase
 *   The last phase ends the tasks: after its messages, or without a barrier if there are none.
 */
#include <errno.h>
#include <math.h>

#include "sim/engine/core.h"

#define PURPOSE_TASK 0x7461736bu /* one stream of random numbers per task */

/* The tasks of a parallel job exchange messages if it has any. */
static bool talks(const struct sim_job *j)
{
	return j->tasks > 1 && j->messages_per_ms * j->message_kb > 0;
}

static double phase_start(const struct core_job *j, uint32_t phase)
{
	return phase < j->phases ? phase * j->job.barrier_ms : j->job.cpu_ms;
}

static double phase_length(const struct core_job *j, uint32_t phase)
{
	if (j->phases == 1)
		return j->job.cpu_ms;
	return phase_start(j, phase + 1) - phase_start(j, phase);
}

/* Returns how many of a given number of accesses lie in the computation before START. */
static double accesses_before(const struct core_job *j, double start)
{
	if (start >= j->job.cpu_ms)
		return j->job.requests;
	return floor(j->job.requests * (start / j->job.cpu_ms) + 1e-9);
}

static double phase_requests(const struct core_job *j, uint32_t phase)
{
	if (j->job.requests < 0 || j->phases == 1)
		return j->job.requests;
	return accesses_before(j, phase_start(j, phase + 1)) -
	       accesses_before(j, phase_start(j, phase));
}

static void job_init(struct core *c, struct core_job *j, const struct sim_job *job)
{
	const struct sim_machine *home = &c->cluster->machines[job->home];
	struct sim_job *k = &j->job;

	*k = *job;
	core_scale(k, &c->params);
	j->alone_ms = core_alone_ms(k, home, &c->params, c->reference_mips);
	j->start_ms = -1;
	j->phases = 1;
	if (k->tasks > 1 && k->barrier_ms > 0 && k->cpu_ms > k->barrier_ms)
		j->phases = (uint32_t)ceil(k->cpu_ms / k->barrier_ms - 1e-9);
	if (c->params.rules.rates == RULES_RATES_WALL && k->has_asked)
		j->rate_per_ms = k->asked.io_per_ms;
	else if (c->params.rules.rates == RULES_RATES_WALL)
		j->rate_per_ms = (k->requests >= 0 ? k->requests : k->cpu_ms * k->io_per_ms) /
				 (j->alone_ms > 0 ? j->alone_ms : 1);
	else if (k->requests >= 0)
		j->rate_per_ms = k->requests / (k->cpu_ms > 0	  ? k->cpu_ms
						: j->alone_ms > 0 ? j->alone_ms
								  : 1);
	else
		j->rate_per_ms = k->io_per_ms;
	if (talks(k) && home->network_mb_per_s > 0)
		j->com_ms = k->messages_per_ms * k->cpu_ms * k->message_kb / home->network_mb_per_s;
}

void core_arrive(struct core_shard *s, const struct sim_job *job, double now)
{
	struct core *c = s->core;
	uint32_t id = core_job_new(s);
	int ret;

	if (id == CORE_NONE) {
		core_fail(s, -ENOMEM, "out of memory for job %llu", (unsigned long long)job->id);
		return;
	}
	job_init(c, &s->jobs.list[id], job);
	c->meters[job->home].arrived += job->tasks;
	if (s->easy != NULL) {
		core_easy_add(s, id);
		return;
	}
	if (c->batch && !c->params.bs_backfill && s->queue_head != CORE_NONE) {
		core_queue_add(s, id);
		return;
	}
	ret = core_decide(s, id, now);
	if (ret > 0)
		core_queue_add(s, id);
	else if (ret == 0 && core_dispatch(s, id, now) == 0 && c->migrates)
		core_migrate(s, job->home, now);
}

static void task_init(const struct core_shard *s, struct core_task *t, uint32_t job)
{
	const struct core_job *j = &s->jobs.list[job];
	const struct sim_job *k = &j->job;
	bool counted = k->requests >= 0;

	t->job = job;
	t->single = k->tasks == 1;
	t->at.cpu_ms = k->cpu_ms;
	t->at.io_per_ms = !counted ? k->io_per_ms : k->cpu_ms > 0 ? k->requests / k->cpu_ms : 0;
	t->at.request_kb = k->request_kb;
	t->at.request_sd_kb = k->request_sd_kb;
	t->at.reaccess = counted ? 0 : k->reaccess;
	t->at.requests = k->requests;
	t->at.memory_mb = k->memory_mb;
	t->at.faults_per_ms = k->faults_per_ms;
	t->at.random = sim_random_stream(s->core->params.seed, PURPOSE_TASK + t->index, k->id);
	t->segment_ms = phase_length(j, 0);
	t->segment_requests = phase_requests(j, 0);
	t->rate_per_ms = j->rate_per_ms;
	t->implicit_share = s->core->params.rules.rates == RULES_RATES_WALL && k->has_asked
				    ? k->asked.implicit_share
				    : 0;
	t->initial_mb = k->initial_mb;
	t->write_fraction = k->write_fraction;
	t->com_ms = j->com_ms;
}

/* Starts the segment of TASK on its node, of which it is a member. */
static void core_job_run(struct core_shard *s, struct core_task *t, uint32_t id, double now)
{
	uint32_t at = t->node - s->first;

	t->state = TASK_RUNNING;
	if (node_run(s->model, at, id, t->segment_ms, t->segment_requests, now) < 0)
		core_fail(s, -ENOMEM, "out of memory on node %u", t->node);
}

static void run_next(struct core_shard *s, struct core_task *t, uint32_t id, double now)
{
	core_node_begin(s, t->node, now);
	core_job_run(s, t, id, now);
	core_node_end(s, t->node);
}

/* The caller has called core_node_begin and will call core_node_end. */
static void core_job_enter(struct core_shard *s, uint32_t id, double now)
{
	struct core_task *t = core_task(s, id);
	struct core_job *j = core_job_of(s, t);

	if (j->start_ms < 0)
		j->start_ms = now;
	t->since_ms = now;
	if (node_enter(s->model, t->node - s->first, id, now) < 0)
		core_fail(s, -ENOMEM, "out of memory on node %u", t->node);
	else
		core_job_run(s, t, id, now);
}

void core_task_enters(struct core_shard *s, uint32_t task, double now)
{
	uint32_t node = core_task(s, task)->node;

	core_coming_remove(s, task);
	core_node_begin(s, node, now);
	core_job_enter(s, task, now);
	core_node_end(s, node);
}

static int make_tasks(struct core_shard *s, uint32_t job)
{
	uint32_t n = s->jobs.list[job].job.tasks, id;

	for (uint32_t i = n; i-- > 0;) {
		id = core_task_new(s);
		if (id == CORE_NONE)
			return core_fail(s, -ENOMEM, "out of memory for %u tasks", n);
		core_task(s, id)->index = i;
		task_init(s, core_task(s, id), job);
		core_task(s, id)->sibling = s->jobs.list[job].first;
		s->jobs.list[job].first = id;
	}
	s->stats.tasks_started += n;
	return 0;
}

int core_dispatch(struct core_shard *s, uint32_t job, double now)
{
	uint32_t home = s->jobs.list[job].job.home, next;
	bool here = false;

	if (make_tasks(s, job) < 0)
		return s->error;
	for (uint32_t id = s->jobs.list[job].first; id != CORE_NONE && s->error == 0; id = next) {
		struct core_task *t = core_task(s, id);
		uint32_t to = s->targets[t->index];

		next = t->sibling;
		t->node = to;
		if (to != home) {
			core_send_new(s, id, home, now);
			continue;
		}
		if (!here) /* tasks that stay enter together: one solution */
			core_node_begin(s, home, now);
		here = true;
		core_job_enter(s, id, now);
	}
	if (here)
		core_node_end(s, home);
	return s->error;
}

static void end_task(struct core_shard *s, uint32_t id, double now)
{
	struct core_task *t = core_task(s, id);
	uint32_t node = t->node, job = t->job;
	struct core_job *j = core_job_of(s, t);

	core_node_begin(s, node, now);
	node_leave(s->model, node - s->first, id, now);
	core_node_end(s, node);
	s->core->meters[node].executed++;
	s->stats.tasks_ended++;
	if (s->easy == NULL)
		s->queue_check = s->queue_head != CORE_NONE;
	if (t->index == 0)
		j->end_node = node;
	core_task_drop(s, id);
	if (++j->ended < j->job.tasks)
		return;
	if (s->easy != NULL)
		core_easy_done(s, job);
	core_complete(s, job, now);
}

/* Begins the next phase of all tasks of JOB, or ends them. */
void core_talk_done(struct core_shard *s, uint32_t job, double now)
{
	struct core_job *j = &s->jobs.list[job];
	uint32_t id = j->first, left = j->job.tasks, next;
	uint32_t phase = core_task(s, id)->phase + 1;

	for (; left > 0; left--, id = next) {
		struct core_task *t = core_task(s, id);

		next = t->sibling;
		if (phase == j->phases) {
			end_task(s, id, now);
			continue;
		}
		t->phase = phase;
		t->segment_ms = phase_length(j, phase);
		t->segment_requests = phase_requests(j, phase);
		run_next(s, t, id, now);
	}
}

/* All tasks of JOB have reached the barrier: the slaves send to the master. */
static void barrier_done(struct core_shard *s, uint32_t job, double now)
{
	struct core_job *j = &s->jobs.list[job];
	uint32_t master = core_task(s, j->first)->node;
	double kb = j->job.messages_per_ms * j->job.message_kb *
		    phase_length(j, core_task(s, j->first)->phase);

	j->waiting = 0;
	for (uint32_t id = j->first; id != CORE_NONE; id = core_task(s, id)->sibling) {
		struct core_task *t = core_task(s, id);

		t->state = TASK_TALKING;
		if (t->index == 0 || !talks(&j->job) ||
		    (t->node == master && s->core->params.local_messages_free))
			continue;
		if (core_flow_add(s, job, t->node, master, kb, now) < 0) {
			core_fail(s, -ENOMEM, "out of memory for messages");
			return;
		}
		j->talking++;
	}
	if (j->talking == 0)
		core_talk_done(s, job, now);
}

void core_segment_done(struct core_shard *s, uint32_t task, double now)
{
	struct core_task *t = core_task(s, task);
	struct core_job *j = core_job_of(s, t);
	bool last;

	if (t->single) {
		core_fetch(j, sizeof(*j));
		end_task(s, task, now);
		return;
	}
	last = t->phase + 1 == j->phases;
	if (last && !talks(&j->job)) {
		end_task(s, task, now);
		return;
	}
	t->state = TASK_BARRIER;
	if (++j->waiting == j->job.tasks)
		barrier_done(s, t->job, now);
}
