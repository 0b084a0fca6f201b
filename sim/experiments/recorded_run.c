/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* The outcome that a batch log recorded; see recorded_run.h. */
#include "sim/experiments/recorded_run.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "iocom/array.h"

struct recorded_totals {
	const struct scenario *scenario;
	struct sweep_result *out;
	double *slowdowns, *turnarounds; /* of all jobs so far */
	size_t n, slowdowns_room, turnarounds_room;
	double busy_ms, end_ms, delay_s;
};

bool recorded_is(const char *policy)
{
	return !strcmp(policy, RECORDED_POLICY);
}

/* Adds TASKS processors that are busy from START to END to the samples of that time. */
static void recorded_busy(struct sweep_result *out, double sample_ms, double start, double end,
			  double tasks)
{
	size_t i = (size_t)(start / sample_ms);

	for (; i < out->nsamples && (double)i * sample_ms < end; i++) {
		double from = fmax(start, (double)i * sample_ms);
		double to = fmin(end, ((double)i + 1) * sample_ms);

		out->samples[i].tasks_mean += tasks * (to - from);
	}
}

static int recorded_reserve_samples(struct recorded_totals *t, double end_ms, uint32_t *room)
{
	struct sweep_result *out = t->out;
	double need = ceil(end_ms / t->scenario->params.sample_ms);

	if (need > SIM_SAMPLES_MAX)
		return -E2BIG;
	if (need <= out->nsamples)
		return 0;
	if (array_reserve(out->samples, *room, (uint32_t)need, 256))
		return -ENOMEM;
	memset(&out->samples[out->nsamples], 0,
	       ((uint32_t)need - out->nsamples) * sizeof(*out->samples));
	out->nsamples = (uint32_t)need;
	return 0;
}

static int recorded_count(struct recorded_totals *t, const struct sim_job *job)
{
	double start = job->arrival_ms + job->batch.wait_ms;
	struct outcome_job one = {
		.arrival_ms = job->arrival_ms,
		.start_ms = start,
		.end_ms = start + job->batch.run_ms,
		.alone_ms = job->batch.run_ms,
		.tasks = job->tasks,
		.user = job->batch.user == UINT32_MAX ? -1.0 : job->batch.user,
	};
	double turnaround = one.end_ms - one.arrival_ms;

	t->busy_ms += one.alone_ms * job->tasks;
	t->end_ms = fmax(t->end_ms, one.end_ms);
	if (job->arrival_ms < t->scenario->params.warmup_ms)
		return 0;
	if (array_reserve(t->slowdowns, t->slowdowns_room, t->n + 1, 1024) ||
	    array_reserve(t->turnarounds, t->turnarounds_room, t->n + 1, 1024))
		return -ENOMEM;
	t->slowdowns[t->n] = turnaround / one.alone_ms;
	t->turnarounds[t->n] = turnaround / 1000;
	t->delay_s += job->batch.wait_ms / 1000;
	t->n++;
	return outcome_add(&t->out->outcome, &one);
}

static int recorded_order(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* The value that the share P of the N sorted values does not exceed. */
static double recorded_percentile(const double *sorted, size_t n, double p)
{
	size_t i = (size_t)ceil(p * (double)n);

	return sorted[i > 0 ? i - 1 : 0];
}

static void recorded_measures(struct recorded_totals *t)
{
	double *v = t->out->values;
	double n = t->scenario->cluster.n;

	qsort(t->slowdowns, t->n, sizeof(*t->slowdowns), recorded_order);
	qsort(t->turnarounds, t->n, sizeof(*t->turnarounds), recorded_order);
	for (unsigned int m = 0; m < M_COUNT; m++) {
		enum outcome_sum sum = outcome_sum_of(m);

		v[m] = sum < OUTCOME_SUMS ? outcome_mean(&t->out->outcome, sum) : NAN;
	}
	v[M_SLOWDOWN_P50] = recorded_percentile(t->slowdowns, t->n, 0.5);
	v[M_SLOWDOWN_P95] = recorded_percentile(t->slowdowns, t->n, 0.95);
	v[M_SLOWDOWN_P99] = recorded_percentile(t->slowdowns, t->n, 0.99);
	v[M_TURNAROUND_P95] = recorded_percentile(t->turnarounds, t->n, 0.95);
	v[M_DELAY] = t->delay_s / (double)t->n;
	v[M_CPU] = t->busy_ms / (t->end_ms * n);
	v[M_TASKS] = v[M_CPU];
	v[M_MAKESPAN] = t->end_ms / 1000;
	v[M_COMPLETED] = (double)t->n;
	v[M_UNFINISHED] = 0;
}

static void recorded_samples(struct recorded_totals *t)
{
	double sample_ms = t->scenario->params.sample_ms, n = t->scenario->cluster.n;

	for (uint32_t i = 0; i < t->out->nsamples; i++) {
		struct sim_sample *x = &t->out->samples[i];

		x->time_ms = (i + 1) * sample_ms;
		x->tasks_mean /= sample_ms * n;
		x->cpu_utilisation = x->tasks_mean;
	}
}

static int recorded_read(struct workload *w, struct recorded_totals *t, bool samples,
			 struct iocom_err *err)
{
	double sample_ms = samples ? t->scenario->params.sample_ms : 0;
	uint32_t room = 0;
	struct sim_job job;
	int ret;

	while ((ret = workload_next(w, &job, err)) > 0) {
		double start = job.arrival_ms + job.batch.wait_ms;

		if (!job.is_batch || job.batch.wait_ms < 0)
			continue;
		ret = recorded_count(t, &job);
		if (!ret && sample_ms > 0)
			ret = recorded_reserve_samples(t, start + job.batch.run_ms, &room);
		if (ret == -E2BIG)
			return iocom_err_set(
				err, ret, "sample_ms=%g gives a time series of more than %u points",
				sample_ms, SIM_SAMPLES_MAX);
		if (ret)
			return iocom_err_set(err, ret, "no memory for the recorded outcome");
		if (sample_ms > 0)
			recorded_busy(t->out, sample_ms, start, start + job.batch.run_ms,
				      job.tasks);
	}
	return ret;
}

int recorded_run(struct workload *w, const struct scenario *scenario, bool samples,
		 struct sweep_result *out, struct iocom_err *err)
{
	struct recorded_totals t = {.scenario = scenario, .out = out};
	int ret = 0;

	if (!workload_info(w)->batch)
		ret = iocom_err_set(err, -EINVAL,
				    "only the log of a batch system (SWF) says how its jobs ran");
	if (!ret)
		ret = recorded_read(w, &t, samples, err);
	if (!ret && !t.n)
		ret = iocom_err_set(err, -EINVAL, "the log says of no job how long it waited");
	if (!ret) {
		recorded_measures(&t);
		recorded_samples(&t);
		out->done = true;
	}
	free(t.slowdowns);
	free(t.turnarounds);
	return ret;
}
