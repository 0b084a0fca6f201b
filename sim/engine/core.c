/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* sim_run: checks the parameters, sets the run up and takes it down. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/engine/core.h"

#define THREADS_MOST 256u
#define TASKS_MOST   1000000u
/* The cost of reading a job, relative to simulating it at the fluid level. */
#define READING_SHARE 0.06
/* Shorter rounds gain less than their barriers cost. */
#define LEAST_LOOKAHEAD_MS 1.0

int core_fail(struct core_shard *s, int code, const char *fmt, ...)
{
	va_list args;

	if (s->error == 0) {
		s->error = code;
		va_start(args, fmt);
		vsnprintf(s->err.text, sizeof(s->err.text), fmt, args);
		va_end(args);
	}
	return s->error;
}

/* --- checks ---------------------------------------------------------------------- */

static bool core_sane(const double *values, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!isfinite(values[i]) || values[i] < 0)
			return false;
	return true;
}

#define SANE(...)                                                                                  \
	core_sane((const double[]){__VA_ARGS__},                                                   \
		  sizeof((const double[]){__VA_ARGS__}) / sizeof(double))

static int check_params(const struct sim_params *p, struct iocom_err *err)
{
	if (!SANE(p->slice_ms, p->switch_ms, p->page_fault_ms, p->information_period_ms,
		  p->measure_window_ms, p->network_latency_ms, p->memory_scale, p->cpu_scale,
		  p->warmup_ms, p->until_ms, p->sample_ms))
		return iocom_err_set(err, -EINVAL, "a parameter is negative or not a number");
	if (p->threads < 1 || p->threads > THREADS_MOST)
		return iocom_err_set(err, -EINVAL, "threads must be 1 to %u, not %u", THREADS_MOST,
				     p->threads);
	return sim_params_check(p, err);
}

static int check_cluster(const struct sim_cluster *cluster, struct iocom_err *err)
{
	if (cluster->n == 0)
		return iocom_err_set(err, -EINVAL, "the cluster has no node");
	for (uint32_t i = 0; i < cluster->n; i++) {
		const struct sim_machine *m = &cluster->machines[i];

		if (!SANE(m->cpu_mips, m->cores, m->ram_mb, m->buffer_mb, m->disk_fixed_ms,
			  m->disk_mb_per_s, m->request_kb, m->request_sd_kb, m->network_mb_per_s) ||
		    m->cpu_mips == 0 || m->cores < 1 || m->disk_mb_per_s == 0 ||
		    (m->ram_mb > 0 && m->buffer_mb >= m->ram_mb))
			return iocom_err_set(err, -EINVAL,
					     "node %u: needs a speed, a core, a disk and a buffer "
					     "smaller than its memory",
					     i);
	}
	return 0;
}

/* Checks what only recorded jobs, or jobs of a batch log, have. */
static bool sane_extra(const struct sim_job *j)
{
	const struct sim_asked *a = &j->asked;

	if (j->is_batch)
		return SANE(j->batch.requested_ms, j->batch.run_ms) && isfinite(j->batch.wait_ms);
	return SANE(a->cpu_ms, a->io_per_ms, a->request_kb, a->memory_mb, a->faults_per_ms,
		    a->implicit_share) &&
	       a->implicit_share <= 1 && isfinite(a->requests);
}

static int check_job(const struct core *c, const struct sim_job *j)
{
	unsigned long long id = j->id;

	if (j->home >= c->cluster->n)
		return iocom_err_set(c->err, -EINVAL,
				     "job %llu: its home is node %u, the cluster has nodes 0 to %u",
				     id, j->home, c->cluster->n - 1);
	if (j->tasks < 1 || j->tasks > TASKS_MOST)
		return iocom_err_set(c->err, -EINVAL, "job %llu: %u tasks, expected 1 to %u", id,
				     j->tasks, TASKS_MOST);
	if (j->kind >= SIM_KINDS_MAX)
		return iocom_err_set(c->err, -EINVAL, "job %llu: kind %u, expected below %u", id,
				     j->kind, SIM_KINDS_MAX);
	if (!SANE(j->arrival_ms, j->cpu_ms, j->io_per_ms, j->request_kb, j->request_sd_kb,
		  j->reaccess, j->memory_mb, j->faults_per_ms, j->initial_mb, j->write_fraction,
		  j->barrier_ms, j->messages_per_ms, j->message_kb) ||
	    !isfinite(j->requests) || !sane_extra(j))
		return iocom_err_set(c->err, -EINVAL,
				     "job %llu: a field is negative or not a number", id);
	if (j->arrival_ms < c->last_arrival_ms)
		return iocom_err_set(c->err, -EINVAL,
				     "job %llu: it arrives at %.3f ms, before the previous job", id,
				     j->arrival_ms);
	return 0;
}

/* --- the stream --------------------------------------------------------------------- */

#define AHEAD_MOST 16384u

/* Like workload_next, but begins with the first job of this run. */
static int read_job(const struct core *c, struct sim_job *job, struct iocom_err *err)
{
	int ret;

	do
		ret = workload_next(c->run->workload, job, err);
	while (ret > 0 && job->id < c->skip_before);
	return ret;
}

bool core_read_ahead(struct core *c)
{
	uint32_t used = c->ahead.used;

	if (c->ahead.end <= 0 || used == AHEAD_MOST ||
	    core_grow(&c->ahead.jobs, &c->ahead.room, used + 1, sizeof(*c->ahead.jobs)) < 0)
		return false;
	c->ahead.end = read_job(c, &c->ahead.jobs[used], &c->ahead.err);
	c->ahead.used += c->ahead.end > 0;
	return c->ahead.end > 0;
}

static int take_job(struct core *c)
{
	if (c->ahead.head < c->ahead.used) {
		c->next = c->ahead.jobs[c->ahead.head++];
		return 1;
	}
	c->ahead.head = c->ahead.used = 0;
	if (c->ahead.end > 0)
		return read_job(c, &c->next, c->err);
	if (c->ahead.end < 0 && c->err != NULL)
		*c->err = c->ahead.err;
	return c->ahead.end;
}

int core_read_next(struct core *c)
{
	int ret = take_job(c);

	c->has_next = ret > 0;
	if (ret <= 0)
		return ret;
	ret = check_job(c, &c->next);
	c->last_arrival_ms = c->next.arrival_ms;
	c->several = c->nshards > 1 && c->next.tasks > 1;
	return ret;
}

/* Says why this run cannot have several threads; NULL: it can. */
static const char *why_serial(const struct core *c)
{
	if (c->batch)
		return "all nodes share the batch queue";
	if (c->feedback && !c->params.control_per_node)
		return "one feedback controller controls all nodes";
	if (c->looks && c->period_ms == 0)
		return "information period 0: each decision sees the present state of all nodes";
	if (c->params.transfer_disk_work)
		return "moved data is work for the disks of two nodes";
	if (c->least_delay_ms < LEAST_LOOKAHEAD_MS)
		return "a transfer may take less than 1 ms: no lookahead";
	return NULL;
}

static double core_greater(double a, double b)
{
	return a > b ? a : b;
}

/* Finds out why rules_new failed. */
static int check_rules(const struct core *c)
{
	struct rules_view *view = rules_view_new();
	int ret = view == NULL ? -ENOMEM : rules_view_keep(view, c->policy, &c->params.rules);

	rules_view_free(view);
	if (ret == -EINVAL)
		return iocom_err_set(c->err, ret, "a parameter of the rules is out of its range");
	return ret;
}

static int ask_policy(struct core *c)
{
	const struct sim_params *p = &c->params;
	double delay = p->rules.fixed_cost_ms;

	if (rules_policy_parse_feedback(c->run->policy, &c->policy, &c->feedback) < 0)
		return iocom_err_set(c->err, -EINVAL, "unknown policy \"%s\"", c->run->policy);
	c->migrates = rules_policy_migrates(c->policy);
	c->batch = c->policy == RULES_BS;
	c->looks = c->policy != RULES_NLB || c->run->decided != NULL;
	c->measures = c->looks && p->measure_window_ms > 0 && p->rules.measured_state;
	c->transit_counts = p->transit_counts || c->batch;
	c->period_ms = c->batch ? 0 : p->information_period_ms;
	if (c->migrates && p->rules.migration_fixed_ms < delay)
		delay = p->rules.migration_fixed_ms;
	c->least_delay_ms = c->looks ? core_greater(delay, p->network_latency_ms) : CORE_FOREVER;
	return check_rules(c);
}

/* --- set-up and end ------------------------------------------------------------------ */

static int parcels_init(struct core_shard *s)
{
	for (int parity = 0; parity < 2; parity++) {
		s->out[parity] = calloc(s->core->nshards, sizeof(*s->out[parity]));
		if (s->out[parity] == NULL)
			return -ENOMEM;
	}
	return 0;
}

static int steps_init(struct core_shard *s)
{
	int ret = core_heap_reserve(&s->steps, s->n);

	for (uint32_t i = 0; ret == 0 && i < s->n; i++)
		core_heap_add(&s->steps, i, node_next(s->model, i));
	return ret;
}

static int lists_init(struct core_shard *s)
{
	struct core_list *lists[] = {&s->touched, &s->dirty, &s->changed};

	for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++)
		if (core_grow(&lists[i]->ids, &lists[i]->room, s->n, sizeof(uint32_t)) < 0)
			return -ENOMEM;
	return 0;
}

/* The first shard's thread also reads the jobs, so it gets fewer nodes where reading matters. */
static void share_out(struct core *c)
{
	double n = c->cluster->n, all = c->nshards;
	double reading = c->params.fidelity == SIM_FLUID ? READING_SHARE * n : 0;
	double share = floor((n - reading * (all - 1)) / all);

	c->share_first = c->nshards == 1 ? c->cluster->n : share > 1 ? (uint32_t)share : 1;
}

/* The first node of a shard, by the shares that core_shard_of knows. */
static uint32_t first_node(const struct core *c, uint32_t shard)
{
	uint64_t rest = c->cluster->n - c->share_first, others = c->nshards - 1;

	if (shard == 0)
		return 0;
	if (shard == c->nshards)
		return c->cluster->n;
	return c->share_first + (uint32_t)(((shard - 1) * rest + others - 1) / others);
}

static int shard_init(struct core *c, uint32_t index)
{
	struct core_shard *s = &c->shards[index];
	int ret;

	s->core = c;
	s->index = index;
	s->first = first_node(c, index);
	s->n = first_node(c, index + 1) - s->first;
	s->cluster.n = s->n;
	s->cluster.machines = c->cluster->machines + s->first;
	s->spins = 1;
	s->tasks.free = s->jobs.free = CORE_NONE;
	s->queue_head = s->queue_tail = CORE_NONE;
	ret = node_model_new(&s->model, &s->cluster, &c->params, c->reference_mips);
	if (ret == 0)
		ret = steps_init(s);
	if (ret == 0)
		ret = lists_init(s);
	if (ret == 0)
		ret = parcels_init(s);
	if (ret < 0)
		return ret;
	s->rules = rules_new(c->policy, &c->params.rules, c->params.seed);
	if (s->rules == NULL)
		return -ENOMEM;
	rules_brief(s->rules, c->run->decided == NULL);
	if (c->run->completed != NULL)
		ret = core_completions_new(s);
	if (ret == 0 && c->batch && c->params.bs_backfill == BS_EASY)
		ret = core_easy_new(s);
	return ret;
}

static int nodes_init(struct core *c)
{
	uint32_t n = c->cluster->n;

	c->nodes = calloc(n, sizeof(*c->nodes));
	c->meters = calloc(n, sizeof(*c->meters));
	c->port_share = calloc(n, sizeof(*c->port_share));
	c->shards = calloc(c->nshards, sizeof(*c->shards));
	if (c->run->decided != NULL)
		c->saved = calloc(n, sizeof(*c->saved));
	if (c->nodes == NULL || c->meters == NULL || c->port_share == NULL || c->shards == NULL ||
	    (c->run->decided != NULL && c->saved == NULL))
		return -ENOMEM;
	for (uint32_t i = 0; i < n; i++) {
		c->nodes[i].coming = c->nodes[i].placed = CORE_NONE;
		c->nodes[i].placed_at_ms = -1;
		c->nodes[i].window_end_ms =
			c->measures ? c->params.measure_window_ms : CORE_FOREVER;
	}
	return 0;
}

static void shard_free(struct core_shard *s)
{
	for (int parity = 0; parity < 2; parity++) {
		for (uint32_t k = 0; s->out[parity] != NULL && k < s->core->nshards; k++)
			free(s->out[parity][k].list);
		free(s->out[parity]);
	}
	node_model_free(s->model);
	core_heap_free(&s->steps);
	core_timers_free(&s->timers);
	free(s->tasks.list);
	free(s->jobs.list);
	free(s->arrivals.jobs);
	core_flows_free(s->flows);
	rules_free(s->rules);
	rules_view_free(s->view);
	free(s->touched.ids);
	free(s->dirty.ids);
	free(s->changed.ids);
	core_look_free(&s->look);
	core_look_free(&s->home_look);
	free(s->placed.list);
	free(s->targets);
	free(s->com_ms);
	free(s->pairs);
	free(s->ports);
	free(s->gang);
	free(s->moves);
	core_stats_free(&s->stats);
	core_completions_free(s->completions);
	core_easy_free(s->easy);
}

static void core_free(struct core *c)
{
	core_control_free(c);
	for (uint32_t k = 0; c->shards != NULL && k < c->nshards; k++)
		if (c->shards[k].core != NULL)
			shard_free(&c->shards[k]);
	for (uint32_t i = 0; c->saved != NULL && i < c->cluster->n; i++)
		free(c->saved[i].tasks);
	free(c->saved);
	free(c->ahead.jobs);
	free(c->shards);
	free(c->nodes);
	free(c->meters);
	free(c->port_share);
}

static int core_set_up(struct core *c)
{
	int ret = nodes_init(c);

	share_out(c);
	for (uint32_t k = 0; ret == 0 && k < c->nshards; k++)
		ret = shard_init(c, k);
	if (ret == 0)
		ret = core_control_init(c);
	if (ret == -ENOMEM)
		iocom_err_set(c->err, ret, "out of memory for %u nodes", c->cluster->n);
	return ret;
}

/* Tries the run. Returns 1 if it met a job of several tasks and needs one thread. */
static int run_with(struct core *c, uint32_t threads)
{
	int ret;

	c->nshards = threads < c->cluster->n ? threads : c->cluster->n;
	c->ahead.end = 1;
	ret = core_set_up(c);
	if (ret == 0)
		ret = core_read_next(c);
	c->first_job = c->next.id;
	if (ret == 0 && !c->several)
		ret = core_rounds(c);
	if (ret == 0 && c->several)
		return 1;
	if (ret == 0 && c->shards[0].completions != NULL)
		core_completions_tell(&c->shards[0], CORE_FOREVER);
	return ret == 0 ? core_result(c) : ret;
}

/* Rewinds the workload to the first job that this run read. */
static int go_back(struct core *c)
{
	uint64_t first = c->first_job;
	int ret = workload_rewind(c->run->workload, c->err);
	struct core again = {
		.run = c->run,
		.cluster = c->cluster,
		.params = c->params,
		.reference_mips = c->reference_mips,
		.err = c->err,
		.result = c->result,
		.serial_reason = "jobs of several tasks connect nodes without delay",
	};

	core_free(c);
	sim_result_free(c->result);
	memset(c->result, 0, sizeof(*c->result));
	*c = again;
	if (ret == 0)
		ret = ask_policy(c);
	c->skip_before = first;
	return ret;
}

int sim_run(const struct sim_run *run, struct sim_result *result, struct iocom_err *err)
{
	struct core c = {.run = run, .cluster = run->cluster, .err = err, .result = result};
	int ret;

	if (err != NULL)
		err->text[0] = '\0';
	memset(result, 0, sizeof(*result));
	c.params = *run->params;
	ret = check_params(&c.params, err);
	if (ret == 0)
		ret = check_cluster(c.cluster, err);
	if (ret < 0)
		return ret;
	c.reference_mips = sim_reference_mips(c.cluster, &c.params);
	c.params.rules.reference_mips = c.reference_mips;
	ret = ask_policy(&c);
	if (ret == 0 && c.params.threads > 1 && (run->completed != NULL || run->decided != NULL))
		ret = iocom_err_set(err, -EINVAL,
				    "reporting completions or decisions in order needs one thread");
	if (ret < 0)
		return ret;
	if (c.params.threads > 1)
		c.serial_reason = why_serial(&c);
	ret = run_with(&c, c.serial_reason != NULL ? 1 : c.params.threads);
	if (ret > 0) {
		ret = go_back(&c);
		if (ret == 0)
			ret = run_with(&c, 1);
	}
	core_free(&c);
	if (ret < 0)
		sim_result_free(result);
	return ret;
}
