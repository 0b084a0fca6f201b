/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Clusters, jobs and runs that the tests of the engine core share. */
#ifndef CORE_FIXTURE_H
#define CORE_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/run.h"

#define JOBS_MOST 512

/* A run in preparation: a test changes some fields and runs it. */
struct bench {
	struct sim_cluster cluster;
	struct sim_params params;
	struct sim_job jobs[JOBS_MOST];
	size_t njobs;
	struct generator_params generator; /* used when njobs is 0 */
	const char *policy;
	struct sim_run run;
	struct iocom_err err;
};

static inline void bench_init(struct bench *b, const char *cluster)
{
	memset(b, 0, sizeof(*b));
	assert_int_equal(sim_cluster_parse(&b->cluster, cluster, &b->err), 0);
	sim_params_default(&b->params);
	b->params.switch_ms = 0;
	b->params.information_period_ms = 0;
	generator_params_default(&b->generator);
	b->generator.nodes = b->cluster.n;
	b->policy = "nlb";
}

static inline void bench_free(struct bench *b)
{
	sim_cluster_free(&b->cluster);
}

/* Adds a job that only computes, for CPU_MS. */
static inline struct sim_job *bench_job(struct bench *b, double arrival_ms, uint32_t home,
					double cpu_ms)
{
	struct sim_job *j = &b->jobs[b->njobs];

	assert_true(b->njobs < JOBS_MOST);
	*j = (struct sim_job){.id = b->njobs,
			      .arrival_ms = arrival_ms,
			      .home = home,
			      .tasks = 1,
			      .cpu_ms = cpu_ms,
			      .request_kb = 250,
			      .requests = 0};
	b->njobs++;
	return j;
}

/* Serves the jobs unchecked, because workload_from_jobs would refuse what the engine
 * must refuse. */
struct bench_list {
	const struct bench *bench;
	size_t at;
};

static inline int bench_list_next(void *state, struct sim_job *job, struct iocom_err *err)
{
	struct bench_list *l = state;

	(void)err;
	if (l->at == l->bench->njobs)
		return 0;
	*job = l->bench->jobs[l->at++];
	return 1;
}

static inline int bench_list_rewind(void *state, struct iocom_err *err)
{
	(void)err;
	((struct bench_list *)state)->at = 0;
	return 0;
}

static inline struct workload *bench_list(const struct bench *b)
{
	static const struct workload_ops ops = {bench_list_next, bench_list_rewind, free};
	const struct workload_info info = {.synthetic = ""};
	struct bench_list *l = calloc(1, sizeof(*l));

	assert_non_null(l);
	l->bench = b;
	return workload_new(&ops, l, &info);
}

static inline struct workload *bench_workload(struct bench *b)
{
	struct workload *w = b->njobs > 0 ? bench_list(b) : generator_new(&b->generator, &b->err);

	assert_non_null(w);
	return w;
}

static inline int bench_try(struct bench *b, struct sim_result *r)
{
	struct workload *w = bench_workload(b);
	int ret;

	b->run.cluster = &b->cluster;
	b->run.workload = w;
	b->run.policy = b->policy;
	b->run.params = &b->params;
	ret = sim_run(&b->run, r, &b->err);
	workload_free(w);
	return ret;
}

static inline void bench_run(struct bench *b, struct sim_result *r)
{
	int ret = bench_try(b, r);

	if (ret != 0)
		print_error("sim_run: %d: %s\n", ret, b->err.text);
	assert_int_equal(ret, 0);
}

static inline void assert_close(double got, double wanted, double within)
{
	if (!(fabs(got - wanted) <= within)) {
		print_error("got %.12g, wanted %.12g within %g\n", got, wanted, within);
		fail();
	}
}

/* Checks that all that entered has left. */
static inline void assert_conserved(const struct sim_result *r)
{
	uint64_t arrived = 0, executed = 0;

	for (uint32_t i = 0; i < r->nnodes; i++) {
		arrived += r->nodes[i].arrived;
		executed += r->nodes[i].executed;
	}
	assert_int_equal(r->arrived, r->completed);
	assert_int_equal(r->unfinished, 0);
	assert_int_equal(r->tasks_started, r->tasks_ended);
	assert_int_equal(arrived, r->tasks_started);
	assert_int_equal(executed, r->tasks_ended);
	assert_int_equal(r->slowdown.n, r->completed);
}

/* Completions by job number. */
struct seen {
	double start[JOBS_MOST], end[JOBS_MOST], slowdown[JOBS_MOST];
	uint32_t node[JOBS_MOST], moves[JOBS_MOST];
	uint64_t last_id;
	double last_ms;
	unsigned int n, unordered;
};

static inline void see(void *arg, const struct sim_completion *c)
{
	struct seen *s = arg;
	uint64_t id = c->job->id;

	s->unordered += s->n > 0 &&
			(c->end_ms < s->last_ms || (c->end_ms == s->last_ms && id < s->last_id));
	s->n++;
	s->last_ms = c->end_ms;
	s->last_id = id;
	assert_true(id < JOBS_MOST);
	s->start[id] = c->start_ms;
	s->end[id] = c->end_ms;
	s->slowdown[id] = c->slowdown;
	s->node[id] = c->node;
	s->moves[id] = c->moves;
}

static inline void bench_see(struct bench *b, struct sim_result *r, struct seen *s)
{
	memset(s, 0, sizeof(*s));
	b->run.completed = see;
	b->run.arg = s;
	bench_run(b, r);
	assert_int_equal(s->n, r->completed);
	assert_int_equal(s->unordered, 0);
}

#endif
