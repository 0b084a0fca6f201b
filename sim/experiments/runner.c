/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Runs sweeps; see runner.h. */
#include "sim/experiments/runner.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "sim/experiments/probe_run.h"
#include "sim/run.h"
#include "sim/experiments/scenario.h"

struct unit {
	struct sweep *sweep;
	size_t index; /* position in the sweep */
	size_t order; /* position in the whole list */
	size_t leader;
	char *key;
	bool samples, rows;
};

struct runner {
	const struct runner_options *options;
	struct probe_store *probes;
	struct unit *units;
	size_t nunits;
	size_t *todo; /* leaders to run, as indexes of units */
	size_t ntodo;
	atomic_size_t next;
	atomic_size_t done; /* thousandths of runs */
	atomic_bool stop;
	double until_s; /* no run begins later; 0: no limit */
	pthread_mutex_t lock;
	pthread_cond_t ended;
	unsigned int running;
	/* the failure of the unit that comes first */
	int code;
	size_t failed;
	struct iocom_err err;
};

/* --- the list -------------------------------------------------------------------- */

static int runner_make_key(struct unit *u)
{
	struct settings all;
	char *text;
	int ret = sweep_unit_settings(u->sweep, u->index, &all);

	if (ret)
		return ret;
	text = settings_text(&all);
	settings_free(&all);
	if (!text)
		return -ENOMEM;
	if (asprintf(&u->key, "%s\n%llu\n%d %d\n%s", sweep_unit_policy(u->sweep, u->index),
		     (unsigned long long)sweep_unit_seed(u->sweep, u->index), u->samples, u->rows,
		     text) < 0)
		u->key = NULL;
	free(text);
	return u->key ? 0 : -ENOMEM;
}

/* Whether unit K was not run and its cell wants its seed. */
static bool is_wanted(const struct sweep *s, size_t k)
{
	return s->wanted && !s->results[k].done && k % s->seeds < s->wanted[k / s->seeds];
}

static int list_sweep(struct runner *r, struct sweep *s)
{
	int ret = r->options->more ? 0 : sweep_results(s);

	for (size_t k = 0; k < sweep_units(s) && !ret; k++) {
		struct unit *u = &r->units[r->nunits];

		if (r->options->more && !is_wanted(s, k))
			continue;

		*u = (struct unit){.sweep = s, .index = k, .order = r->nunits};
		u->samples = s->keep_samples && k % s->seeds == 0;
		u->rows = s->keep_rows;
		r->nunits++;
		ret = runner_make_key(u);
	}
	return ret;
}

/* Lists the runs of the sweeps and their parts. */
static int list_units(struct runner *r, struct sweep *const *sweeps, size_t nsweeps)
{
	size_t total = 0;
	int ret = 0;

	for (size_t i = 0; i < nsweeps; i++) {
		for (size_t k = 0; k <= sweeps[i]->nparts; k++) {
			struct sweep *s = sweep_part(sweeps[i], k);

			s->first_seed = sweeps[i]->first_seed;
			total += sweep_units(s);
		}
	}
	r->units = calloc(total ? total : 1, sizeof(*r->units));
	r->todo = calloc(total ? total : 1, sizeof(*r->todo));
	if (!r->units || !r->todo)
		return -ENOMEM;
	for (size_t i = 0; i < nsweeps; i++)
		for (size_t k = 0; k <= sweeps[i]->nparts && !ret; k++)
			ret = list_sweep(r, sweep_part(sweeps[i], k));
	return ret;
}

static int runner_by_key(const void *a, const void *b)
{
	const struct unit *x = *(struct unit *const *)a, *y = *(struct unit *const *)b;
	int order = strcmp(x->key, y->key);

	return order ? order : (x->order > y->order) - (x->order < y->order);
}

/* If units have equal keys, the first one in the list runs for all. */
static int find_leaders(struct runner *r)
{
	struct unit **sorted = malloc((r->nunits ? r->nunits : 1) * sizeof(struct unit *));
	size_t leader = 0;

	if (!sorted)
		return -ENOMEM;
	for (size_t i = 0; i < r->nunits; i++)
		sorted[i] = &r->units[i];
	qsort(sorted, r->nunits, sizeof(struct unit *), runner_by_key);
	for (size_t i = 0; i < r->nunits; i++) {
		if (!i || strcmp(sorted[i]->key, sorted[i - 1]->key))
			leader = sorted[i]->order;
		sorted[i]->leader = leader;
	}
	free(sorted);
	return 0;
}

static int runner_by_seed(const void *a, const void *b, void *arg)
{
	const struct runner *r = arg;
	const struct unit *x = &r->units[*(const size_t *)a], *y = &r->units[*(const size_t *)b];
	size_t i = x->index % x->sweep->seeds, k = y->index % y->sweep->seeds;

	return i != k ? (i > k) - (i < k) : (x->order > y->order) - (x->order < y->order);
}

static void choose_shard(struct runner *r)
{
	size_t leaders = 0;

	for (size_t i = 0; i < r->nunits; i++) {
		if (r->units[i].leader != i)
			continue;
		if (!r->options->shards || leaders % r->options->shards + 1 == r->options->shard)
			r->todo[r->ntodo++] = i;
		leaders++;
	}
	if (!r->options->more)
		return;
	/* A seed is complete before the next one begins, and which runs are made does not depend
	 * on how long they take. */
	qsort_r(r->todo, r->ntodo, sizeof(*r->todo), runner_by_seed, r);
	if (r->ntodo > r->options->more)
		r->ntodo = r->options->more;
}

/* --- one run --------------------------------------------------------------------- */

static bool runner_cancelled(const struct runner *r)
{
	return atomic_load_explicit(&r->stop, memory_order_relaxed) ||
	       (r->options->cancel && *r->options->cancel);
}

static bool probe_goes_on(void *arg)
{
	return !runner_cancelled(arg);
}

#define THOUSAND 1000

/* A run in progress, and how much of it was reported. */
struct under_way {
	struct runner *runner;
	double jobs, until_ms; /* jobs 0: unknown; until_ms 0: to the end */
	size_t told;	       /* thousandths that were reported */
};

static void runner_advance(struct under_way *w, double part)
{
	size_t now = part >= 1 ? THOUSAND : (size_t)(THOUSAND * part);

	if (now <= w->told)
		return;
	atomic_fetch_add_explicit(&w->runner->done, now - w->told, memory_order_relaxed);
	w->told = now;
}

static bool runner_keep_going(void *arg, double time_ms, uint64_t completed)
{
	struct under_way *w = arg;

	if (w->until_ms > 0)
		runner_advance(w, time_ms / w->until_ms);
	else if (w->jobs > 0)
		runner_advance(w, (double)completed / w->jobs);
	return !runner_cancelled(w->runner);
}

static void take_result(struct unit *u, struct sim_result *result, const char *input)
{
	struct sweep_result *out = &u->sweep->results[u->index];

	measure_all(result, out->values);
	snprintf(out->input, sizeof(out->input), "%s", input);
	if (u->samples) {
		out->samples = result->samples;
		out->nsamples = result->nsamples;
		result->samples = NULL;
		result->nsamples = 0;
	}
	out->done = true;
	sim_result_free(result);
}

static int run_scenario(struct runner *r, struct unit *u, struct scenario *scenario,
			struct iocom_err *err)
{
	uint64_t seed = sweep_unit_seed(u->sweep, u->index);
	struct workload *workload = scenario_workload(scenario, seed, err);
	struct under_way w = {.runner = r, .until_ms = scenario->params.until_ms};
	struct sim_result result;
	struct sim_run run = {
		.cluster = &scenario->cluster,
		.workload = workload,
		.policy = sweep_unit_policy(u->sweep, u->index),
		.params = &scenario->params,
		.progress = runner_keep_going,
		.arg = &w,
	};
	int ret;

	if (!workload)
		return -EINVAL;
	w.jobs = (double)workload_info(workload)->jobs;
	scenario->params.seed = seed;
	ret = sim_run(&run, &result, err);
	if (!ret) {
		take_result(u, &result, workload_info(workload)->hash);
		runner_advance(&w, 1);
	}
	workload_free(workload);
	return ret;
}

static int run_probe(struct runner *r, struct unit *u, const struct settings *all,
		     const struct scenario *scenario, struct iocom_err *err)
{
	struct probe_run run = {
		.settings = all,
		.scenario = scenario,
		.policy = sweep_unit_policy(u->sweep, u->index),
		.seed = sweep_unit_seed(u->sweep, u->index),
		.keep_rows = u->rows,
		.keep_going = probe_goes_on,
		.arg = r,
	};

	return probe_run(&run, r->probes, &u->sweep->results[u->index], err);
}

static int run_unit(struct runner *r, struct unit *u, struct iocom_err *err)
{
	struct settings all;
	struct scenario scenario;
	int ret = sweep_unit_settings(u->sweep, u->index, &all);

	if (ret)
		return ret;
	ret = scenario_open(&scenario, &all, err);
	if (!ret) {
		if (scenario_is_probe(&scenario)) {
			ret = run_probe(r, u, &all, &scenario, err);
			atomic_fetch_add(&r->done, THOUSAND);
		} else {
			ret = run_scenario(r, u, &scenario, err);
		}
		scenario_close(&scenario);
	}
	settings_free(&all);
	return ret;
}

static void runner_fail(struct runner *r, struct unit *u, int code, struct iocom_err *err)
{
	const struct sweep *s = u->sweep;
	const struct sweep_point *p = &s->points[u->index / s->seeds / s->nseries];

	if (!err->text[0])
		iocom_err_set(err, code, "%s", strerror(-code));
	iocom_err_prefix(err, "%s, %s, %s, seed %llu", s->id, p->label,
			 sweep_unit_policy(s, u->index),
			 (unsigned long long)sweep_unit_seed(s, u->index));
	pthread_mutex_lock(&r->lock);
	if (!r->code || u->order < r->failed) {
		r->code = code;
		r->failed = u->order;
		r->err = *err;
	}
	pthread_mutex_unlock(&r->lock);
	atomic_store(&r->stop, true);
}

static double runner_now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void *worker(void *arg)
{
	struct runner *r = arg;

	while (!runner_cancelled(r)) {
		struct iocom_err err = {0};
		size_t i = atomic_fetch_add(&r->next, 1);
		int ret;

		if (i >= r->ntodo || (r->until_s > 0 && runner_now_s() > r->until_s))
			break;
		ret = run_unit(r, &r->units[r->todo[i]], &err);
		if (ret == -ECANCELED)
			break;
		if (ret) {
			runner_fail(r, &r->units[r->todo[i]], ret, &err);
			break;
		}
	}
	pthread_mutex_lock(&r->lock);
	r->running--;
	pthread_cond_signal(&r->ended);
	pthread_mutex_unlock(&r->lock);
	return NULL;
}

/* --- all of them ----------------------------------------------------------------- */

static void runner_tell(struct runner *r)
{
	if (r->options->progress)
		r->options->progress(r->options->arg, (double)atomic_load(&r->done) / THOUSAND,
				     r->ntodo);
}

static void wait_for_workers(struct runner *r)
{
	pthread_mutex_lock(&r->lock);
	while (r->running) {
		struct timespec until;

		clock_gettime(CLOCK_REALTIME, &until);
		until.tv_nsec += 200000000;
		until.tv_sec += until.tv_nsec / 1000000000;
		until.tv_nsec %= 1000000000;
		pthread_cond_timedwait(&r->ended, &r->lock, &until);
		pthread_mutex_unlock(&r->lock);
		runner_tell(r);
		pthread_mutex_lock(&r->lock);
	}
	pthread_mutex_unlock(&r->lock);
}

static int run_all(struct runner *r)
{
	long cores = sysconf(_SC_NPROCESSORS_ONLN);
	size_t n = r->options->jobs ? r->options->jobs : (size_t)(cores > 0 ? cores : 1);
	pthread_t *threads;
	size_t started = 0;

	if (n > r->ntodo)
		n = r->ntodo;
	threads = calloc(n ? n : 1, sizeof(*threads));
	if (!threads)
		return -ENOMEM;
	r->running = (unsigned int)n;
	while (started < n && !pthread_create(&threads[started], NULL, worker, r))
		started++;
	if (started < n) {
		pthread_mutex_lock(&r->lock);
		r->running -= (unsigned int)(n - started);
		pthread_mutex_unlock(&r->lock);
	}
	wait_for_workers(r);
	for (size_t i = 0; i < started; i++)
		pthread_join(threads[i], NULL);
	free(threads);
	if (r->code)
		return r->code;
	if (runner_cancelled(r))
		return -ECANCELED;
	return started || !n ? 0 : -EAGAIN;
}

static void *runner_copy(const void *from, size_t size)
{
	void *to = from ? malloc(size ? size : 1) : NULL;

	return to ? memcpy(to, from, size) : NULL;
}

/* Copies the leaders' results to the units that share them. */
static int share_results(struct runner *r)
{
	for (size_t i = 0; i < r->nunits; i++) {
		const struct unit *u = &r->units[i], *l = &r->units[u->leader];
		const struct sweep_result *from = &l->sweep->results[l->index];
		struct sweep_result *to = &u->sweep->results[u->index];

		if (u->leader == i || !from->done)
			continue;
		*to = *from;
		to->samples = runner_copy(from->samples, from->nsamples * sizeof(*from->samples));
		to->rows = runner_copy(from->rows, from->nrows * sizeof(*from->rows));
		if ((from->samples && !to->samples) || (from->rows && !to->rows))
			return -ENOMEM;
	}
	return 0;
}

static void describe_source(struct sweep *s, const struct workload_info *info)
{
	char left_out[64] = "", jobs[48] = "";

	if (info->jobs)
		snprintf(jobs, sizeof(jobs), ", %llu jobs", (unsigned long long)info->jobs);
	if (info->left_out)
		snprintf(left_out, sizeof(left_out), ", %llu records left out",
			 (unsigned long long)info->left_out);
	snprintf(s->source, sizeof(s->source), "%.100s%s%s%s%.100s", info->source, jobs, left_out,
		 info->note[0] ? "; " : "", info->note);
}

/* Describes the workload in words, from the sweep's first run. */
static int runner_describe(struct sweep *s, struct iocom_err *err)
{
	struct settings all;
	struct scenario scenario;
	struct workload *w;
	int ret;

	if (!sweep_units(s) || !s->results[0].done)
		return 0;
	ret = sweep_unit_settings(s, 0, &all);
	if (ret)
		return ret;
	ret = scenario_open(&scenario, &all, err);
	settings_free(&all);
	if (ret)
		return ret;
	if (scenario_is_probe(&scenario)) {
		ret = probe_describe(&scenario, s->source, sizeof(s->source), err);
		scenario_close(&scenario);
		return ret;
	}
	w = scenario_workload(&scenario, sweep_unit_seed(s, 0), err);
	if (w) {
		const struct workload_info *info = workload_info(w);

		describe_source(s, info);
		/*
		 * A generator generates all fields, so only those that a trace lacks are
		 * reported.
		 */
		if (strncmp(scenario.workload, "gen:", 4) && info->synthetic)
			snprintf(s->synthetic, sizeof(s->synthetic), "%s", info->synthetic);
		s->nkinds = info->kinds;
		memcpy(s->kinds, info->kind, sizeof(s->kinds));
	}
	workload_free(w);
	scenario_close(&scenario);
	return w ? 0 : -EINVAL;
}

static void runner_free(struct runner *r)
{
	for (size_t i = 0; i < r->nunits; i++)
		free(r->units[i].key);
	free(r->units);
	free(r->todo);
	probe_store_free(r->probes);
	pthread_cond_destroy(&r->ended);
	pthread_mutex_destroy(&r->lock);
}

int runner_run(struct sweep *const *sweeps, size_t nsweeps, const struct runner_options *options,
	       struct iocom_err *err)
{
	struct runner r = {
		.options = options,
		.probes = probe_store_new(),
		.lock = PTHREAD_MUTEX_INITIALIZER,
		.ended = PTHREAD_COND_INITIALIZER,
	};
	int ret;

	if (options->seconds > 0)
		r.until_s = runner_now_s() + options->seconds;
	ret = r.probes ? list_units(&r, sweeps, nsweeps) : -ENOMEM;

	if (!ret)
		ret = find_leaders(&r);
	if (!ret) {
		choose_shard(&r);
		ret = run_all(&r);
	}
	if (!ret) {
		runner_tell(&r);
		ret = share_results(&r);
	}
	for (size_t i = 0; options->more && options->made && i < r.ntodo; i++) {
		const struct unit *u = &r.units[r.todo[i]];

		*options->made += u->sweep->results[u->index].done;
	}
	for (size_t i = 0; i < nsweeps && !ret && !options->more; i++)
		ret = runner_describe(sweeps[i], err);
	if (ret && r.code == ret && err)
		*err = r.err;
	else if (ret == -ECANCELED)
		iocom_err_set(err, ret, "interrupted");
	else if (ret == -ENOMEM)
		iocom_err_set(err, ret, "no memory for the runs");
	runner_free(&r);
	return ret;
}
