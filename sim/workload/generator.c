/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * An endless stream of jobs that keeps none of them.  Job k depends only on (seed, k), and each of
 * its properties has a stream of random numbers of its own, so that changing one property leaves
 * the others as they were.  Its arrival is the sum of the first k gaps.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/random.h"
#include "sim/workload.h"
#include "sim/workload/hash.h"
#include "sim/workload/homes.h"
#include "sim/workload/lifetime.h"
#include "sim/workload/process_trace.h"
#include "sim/workload/purpose.h"

struct generator {
	struct generator_params p; /* home_weights is not kept */
	struct homes homes;
	struct lifetime lifetime;
	double upto[SIM_KINDS_MAX]; /* running sums of the shares */
	uint64_t k;
	double arrival_ms;
};

void generator_params_default(struct generator_params *p)
{
	*p = (struct generator_params){
		.seed = 1,
		.name = "generator",
		.jobs = 1000,
		.nodes = 6,
		.interarrival_ms = 1000,
		.lifetime = LIFETIME_EXPONENTIAL,
		.lifetime_mean_ms = 1000,
		.lifetime_shape = 1,
		.kinds = 1,
	};
	p->kind[0] = (struct generator_kind){
		.name = "job",
		.share = 1,
		.cpu_factor = 1,
		.request_kb = 256,
		.request_sd_kb = 51.2,
		.reaccess = 5,
		.requests = -1,
		.memory_mean_mb = 4,
		.memory_shape = 1.5,
		.faults_per_ms = 0.5,
		.tasks_min = 2,
		.tasks_max = 32,
	};
}

/* --- drawing ---------------------------------------------------------------------- */

static struct sim_random stream(const struct generator *g, uint64_t purpose)
{
	return sim_random_stream(g->p.seed, purpose, g->k);
}

static double generator_uniform(const struct generator *g, uint64_t purpose)
{
	struct sim_random r = stream(g, purpose);

	return sim_random_uniform(&r);
}

static uint32_t draw_kind(const struct generator *g)
{
	double u;
	uint32_t i = 0;

	if (g->p.kinds == 1)
		return 0;
	u = generator_uniform(g, PURPOSE_KIND);
	while (i + 1 < g->p.kinds && u >= g->upto[i])
		i++;
	return i;
}

static double draw_memory(const struct generator *g, const struct generator_kind *kind)
{
	struct sim_random r;

	if (!(kind->memory_shape > 0))
		return kind->memory_mean_mb;
	r = stream(g, PURPOSE_MEMORY);
	return sim_random_pareto(&r, kind->memory_mean_mb, kind->memory_shape);
}

static uint32_t draw_tasks(const struct generator *g, const struct generator_kind *kind)
{
	struct sim_random r;

	if (!(kind->parallel_share > 0))
		return 1;
	r = stream(g, PURPOSE_TASKS);
	if (sim_random_uniform(&r) >= kind->parallel_share)
		return 1;
	return (uint32_t)sim_random_integer(&r, kind->tasks_min, kind->tasks_max);
}

static double draw_gap(const struct generator *g)
{
	struct sim_random r = stream(g, PURPOSE_GAP);

	return g->p.arrivals_regular ? g->p.interarrival_ms
				     : sim_random_exponential(&r, g->p.interarrival_ms);
}

static double part_arrival(const struct generator *g)
{
	const struct generator_part *part = &g->p.part;

	return part->gap_scale * (part->v[g->k].arrival_ms - part->v[0].arrival_ms);
}

static double part_cpu(const struct generator *g)
{
	double cpu_ms = g->p.part.cpu_scale * g->p.part.v[g->k].cpu_ms;

	return g->p.lifetime_max_ms > 0 ? fmin(cpu_ms, g->p.lifetime_max_ms) : cpu_ms;
}

static uint32_t draw_home(const struct generator *g)
{
	if (g->homes.n <= 1)
		return 0;
	if (g->p.part.v)
		return process_trace_home(&g->p, g->p.part.v[g->k].host,
					  generator_uniform(g, PURPOSE_HOME));
	return homes_draw(&g->homes, generator_uniform(g, PURPOSE_HOME));
}

static int generator_next(void *state, struct sim_job *job, struct iocom_err *err)
{
	struct generator *g = state;
	const struct generator_kind *kind;
	struct sim_random life;
	uint32_t index;

	(void)err;
	if (g->k == g->p.jobs)
		return 0;
	index = draw_kind(g);
	kind = &g->p.kind[index];
	life = stream(g, PURPOSE_LIFETIME);
	g->arrival_ms = g->p.part.v ? part_arrival(g) : g->arrival_ms + draw_gap(g);
	*job = (struct sim_job){
		.id = g->k,
		.arrival_ms = g->arrival_ms,
		.home = draw_home(g),
		.tasks = draw_tasks(g, kind),
		.kind = index,
		.cpu_ms = kind->cpu_factor *
			  (g->p.part.v ? part_cpu(g) : lifetime_draw(&g->lifetime, &life)),
		.io_per_ms = kind->io_uniform && kind->io_per_ms > 0
				     ? 2 * kind->io_per_ms * generator_uniform(g, PURPOSE_IO)
				     : kind->io_per_ms,
		.request_kb = kind->request_kb,
		.request_sd_kb = kind->request_sd_kb,
		.reaccess = kind->reaccess,
		.requests = kind->requests,
		.memory_mb = draw_memory(g, kind),
		.faults_per_ms = kind->faults_per_ms,
		.initial_mb = kind->initial_mb,
		.write_fraction = kind->write_fraction,
	};
	if (job->tasks > 1) {
		job->barrier_ms = kind->barrier_ms;
		job->messages_per_ms = kind->messages_per_ms;
		job->message_kb = kind->message_kb;
	}
	g->k++;
	return 1;
}

static int generator_rewind(void *state, struct iocom_err *err)
{
	struct generator *g = state;

	(void)err;
	g->k = 0;
	g->arrival_ms = 0;
	return 0;
}

static void generator_free(void *state)
{
	struct generator *g = state;

	homes_deinit(&g->homes);
	free(g);
}

static const struct workload_ops generator_ops = {generator_next, generator_rewind, generator_free};

/* --- checking ---------------------------------------------------------------------- */

static int check_number(const char *of, const char *name, double value, double low, double high,
			struct iocom_err *err)
{
	if (value >= low && value <= high)
		return 0;
	return iocom_err_set(err, -EINVAL, "%s: %s: expected a number from %g to %g, found %g", of,
			     name, low, high, value);
}

static int check_kind(const struct generator_kind *k, struct iocom_err *err)
{
	const struct {
		const char *name;
		double value, low, high;
	} rows[] = {
		{"share", k->share, 0, 1e9},
		{"cpu_factor", k->cpu_factor, 0, 1e9},
		{"io_per_ms", k->io_per_ms, 0, 1e6},
		{"request_kb", k->request_kb, 0, 1e9},
		{"request_sd_kb", k->request_sd_kb, 0, 1e9},
		{"reaccess", k->reaccess, 0, 1e6},
		{"requests", k->requests, -1, 1e15},
		{"memory_mb", k->memory_mean_mb, 0, 1e9},
		{"memory_shape", k->memory_shape, 0, 1e3},
		{"faults_per_ms", k->faults_per_ms, 0, 1e6},
		{"initial_mb", k->initial_mb, 0, 1e9},
		{"write_fraction", k->write_fraction, 0, 1},
		{"parallel", k->parallel_share, 0, 1},
		{"barrier_ms", k->barrier_ms, 0, 1e15},
		{"messages_per_ms", k->messages_per_ms, 0, 1e6},
		{"message_kb", k->message_kb, 0, 1e9},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		int rc = check_number(k->name, rows[i].name, rows[i].value, rows[i].low,
				      rows[i].high, err);
		if (rc)
			return rc;
	}
	if (k->memory_shape > 0 && !(k->memory_shape > 1))
		return iocom_err_set(err, -EINVAL,
				     "%s: memory_shape: expected above 1 (Pareto) or 0 (constant), "
				     "found %g",
				     k->name, k->memory_shape);
	if (k->parallel_share > 0 && (!k->tasks_min || k->tasks_max < k->tasks_min))
		return iocom_err_set(err, -EINVAL,
				     "%s: tasks: expected a least number from 1 up to the largest, "
				     "found %u to %u",
				     k->name, k->tasks_min, k->tasks_max);
	return 0;
}

static int generator_check(const struct generator_params *p, struct iocom_err *err)
{
	double shares = 0;
	int rc = check_number(p->name, "interarrival_ms", p->interarrival_ms, 0, 1e12, err);

	if (!rc)
		rc = check_number(p->name, "jobs", (double)p->jobs, 1, 1e15, err);
	if (!rc)
		rc = check_number(p->name, "nodes", p->nodes, 1, 1e8, err);
	if (!rc)
		rc = check_number(p->name, "kinds", p->kinds, 1, SIM_KINDS_MAX, err);
	for (uint32_t i = 0; i < p->kinds && !rc; i++) {
		rc = check_kind(&p->kind[i], err);
		shares += p->kind[i].share;
	}
	if (!rc && !(shares > 0))
		rc = iocom_err_set(err, -EINVAL, "%s: the shares of its kinds add up to 0",
				   p->name);
	return rc;
}

/* --- what is told of it ------------------------------------------------------------- */

static int hash_kind(struct hash *hash, const struct generator_kind *k)
{
	char text[800];
	int n = snprintf(
		text, sizeof(text), "%s %a %a %a %d %a %a %a %a %a %a %a %a %a %a %u %u %a %a %a\n",
		k->name, k->share, k->cpu_factor, k->io_per_ms, k->io_uniform, k->request_kb,
		k->request_sd_kb, k->reaccess, k->requests, k->memory_mean_mb, k->memory_shape,
		k->faults_per_ms, k->initial_mb, k->write_fraction, k->parallel_share, k->tasks_min,
		k->tasks_max, k->barrier_ms, k->messages_per_ms, k->message_kb);

	return hash_add(hash, text, (size_t)n);
}

static int hash_params(const struct generator_params *p, char text[HASH_TEXT])
{
	struct hash hash;
	char line[400];
	int rc = hash_begin(&hash);
	int n = snprintf(line, sizeof(line), "generator 1 %llu %llu %u %a %d %a %d %a %a %a\n",
			 (unsigned long long)p->seed, (unsigned long long)p->jobs, p->nodes,
			 p->interarrival_ms, p->arrivals_regular, p->home_skew, (int)p->lifetime,
			 p->lifetime_mean_ms, p->lifetime_shape, p->lifetime_max_ms);

	if (!rc)
		rc = hash_add(&hash, line, (size_t)n);
	for (uint32_t i = 0; p->home_weights && i < p->nodes && !rc; i++) {
		n = snprintf(line, sizeof(line), "%a\n", p->home_weights[i]);
		rc = hash_add(&hash, line, (size_t)n);
	}
	if (p->part.v && !rc) {
		n = snprintf(line, sizeof(line), "%s %s %a %a\n", p->part.hash, p->part.about,
			     p->part.gap_scale, p->part.cpu_scale);
		rc = hash_add(&hash, line, (size_t)n);
	}
	for (uint32_t i = 0; i < p->kinds && !rc; i++)
		rc = hash_kind(&hash, &p->kind[i]);
	if (rc)
		return rc;
	return hash_end(&hash, text);
}

static int generator_describe(const struct generator_params *p, struct workload_info *info)
{
	*info = (struct workload_info){
		.nodes = p->nodes, .jobs = p->jobs, .synthetic = "all", .kinds = p->kinds};
	snprintf(info->source, sizeof(info->source), "generator %s, seed %llu", p->name,
		 (unsigned long long)p->seed);
	snprintf(info->note, sizeof(info->note), "%s", p->part.about);
	for (uint32_t i = 0; i < p->kinds; i++)
		snprintf(info->kind[i], sizeof(info->kind[i]), "%s", p->kind[i].name);
	return hash_params(p, info->hash);
}

struct workload *generator_new(const struct generator_params *p, struct iocom_err *err)
{
	struct workload_info info;
	struct workload *w;
	struct generator *g;
	double sum = 0;
	int rc = generator_check(p, err);

	if (rc)
		return NULL;
	g = calloc(1, sizeof(*g));
	if (!g) {
		iocom_err_set(err, -ENOMEM, "%s: out of memory", p->name);
		return NULL;
	}
	g->p = *p;
	g->p.home_weights = NULL;
	for (uint32_t i = 0; i < p->kinds; i++)
		sum += p->kind[i].share;
	for (uint32_t i = 0; i < p->kinds; i++)
		g->upto[i] = (i ? g->upto[i - 1] : 0) + p->kind[i].share / sum;
	rc = lifetime_init(&g->lifetime, p->lifetime, p->lifetime_mean_ms, p->lifetime_shape,
			   p->lifetime_max_ms, err);
	if (!rc)
		rc = homes_init(&g->homes, p->nodes, p->home_skew, p->home_weights, p->seed, err);
	if (!rc && generator_describe(p, &info))
		rc = iocom_err_set(err, -EIO, "cannot compute SHA-256");
	if (rc) {
		iocom_err_prefix(err, "%s", p->name);
		generator_free(g);
		return NULL;
	}
	w = workload_new(&generator_ops, g, &info);
	if (!w)
		iocom_err_set(err, -ENOMEM, "%s: out of memory", p->name);
	return w;
}
