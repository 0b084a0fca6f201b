/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Runs the studies of a probe; see probe_run.h. */
#include "sim/experiments/probe_run.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/workload/hash.h"

/* --- studies that are there already ----------------------------------------------- */

struct stored {
	struct stored *next;
	char *key;
	struct probe_month month;
};

struct probe_store {
	pthread_mutex_t lock;
	struct stored *first;
};

struct probe_store *probe_store_new(void)
{
	struct probe_store *s = calloc(1, sizeof(*s));

	if (s)
		pthread_mutex_init(&s->lock, NULL);
	return s;
}

void probe_store_free(struct probe_store *s)
{
	if (!s)
		return;
	for (struct stored *e = s->first, *next; e; e = next) {
		next = e->next;
		probe_month_free(&e->month);
		free(e->key);
		free(e);
	}
	pthread_mutex_destroy(&s->lock);
	free(s);
}

static struct stored *store_find(struct probe_store *s, const char *key)
{
	struct stored *e;

	pthread_mutex_lock(&s->lock);
	for (e = s->first; e && strcmp(e->key, key); e = e->next)
		;
	pthread_mutex_unlock(&s->lock);
	return e;
}

/* Takes over KEY and MONTH; entries stay until the store is freed. */
static struct stored *store_add(struct probe_store *s, char *key, struct probe_month *month)
{
	struct stored *e = malloc(sizeof(*e));

	if (!e) {
		free(key);
		probe_month_free(month);
		return NULL;
	}
	*e = (struct stored){.key = key, .month = *month};
	pthread_mutex_lock(&s->lock);
	e->next = s->first;
	s->first = e;
	pthread_mutex_unlock(&s->lock);
	return e;
}

/* Everything that determines the executions: the settings, except those for decisions,
 * and the seed. */
static char *probe_run_make_key(const struct probe_run *run)
{
	struct settings all = {0};
	char *text = NULL, *key;

	if (!settings_merge(&all, run->settings)) {
		settings_remove(&all, "zatti_");
		settings_remove(&all, "eager_");
		text = settings_text(&all);
	}
	settings_free(&all);
	if (!text || asprintf(&key, "%llu\n%s", (unsigned long long)run->seed, text) < 0)
		key = NULL;
	free(text);
	return key;
}

static int study(const struct probe_run *run, const struct probe_spec *spec,
		 struct probe_store *store, const struct probe_month **month, struct iocom_err *err)
{
	const struct scenario *s = run->scenario;
	char *key = probe_run_make_key(run);
	struct stored *e = key ? store_find(store, key) : NULL;
	struct probe_month new = {0};
	int ret = key ? 0 : -ENOMEM;

	if (e) {
		free(key);
	} else if (!ret) {
		ret = probe_month_run(spec, &s->cluster, &s->params, run->seed, run->keep_going,
				      run->arg, &new, err);
		if (ret) {
			free(key);
			return ret;
		}
		e = store_add(store, key, &new);
		ret = e ? 0 : -ENOMEM;
	}
	*month = e ? &e->month : NULL;
	return ret;
}

/* --- results ----------------------------------------------------------------------- */

static void hash_input(const struct probe_run *run, char out[HASH_TEXT])
{
	struct hash hash;

	out[0] = '\0';
	if (hash_begin(&hash))
		return;
	hash_add(&hash, run->scenario->workload, strlen(run->scenario->workload) + 1);
	hash_add(&hash, &run->seed, sizeof(run->seed));
	if (hash_end(&hash, out))
		out[0] = '\0';
}

static void take_score(const struct probe_score *s, double *v)
{
	v[M_WIN] = s->win;
	v[M_LOSS] = 1 - s->win;
	v[M_WIN_LOCAL] = s->local_right;
	v[M_WIN_REMOTE] = s->remote_right;
	v[M_SENT] = s->sent;
	v[M_WIN_IO] = s->io_win;
	v[M_MEMORY_WRONG] = s->memory_wrong;
	v[M_LOCAL_BETTER] = s->local_better;
	v[M_LOCAL_S] = s->local_s;
	v[M_REMOTE_S] = s->remote_s;
	v[M_OVERHEAD_S] = s->overhead_s;
}

static int probe_run_keep(const struct probe_month *month, struct sweep_result *out)
{
	out->rows = malloc((month->n ? month->n : 1) * sizeof(*out->rows));
	if (!out->rows)
		return -ENOMEM;
	memcpy(out->rows, month->rows, month->n * sizeof(*out->rows));
	out->nrows = month->n;
	return 0;
}

static int run_study(const struct probe_run *run, const struct probe_spec *spec,
		     struct probe_store *store, struct sweep_result *out, struct iocom_err *err)
{
	const struct scenario *s = run->scenario;
	const struct probe_month *month;
	struct probe_score score;
	int ret = study(run, spec, store, &month, err);

	if (!ret)
		ret = probe_decide(spec, month, &s->cluster, &s->params.rules, run->policy,
				   run->seed, &score, err);
	if (ret)
		return ret;
	take_score(&score, out->values);
	return run->keep_rows ? probe_run_keep(month, out) : 0;
}

int probe_run(const struct probe_run *run, struct probe_store *store, struct sweep_result *out,
	      struct iocom_err *err)
{
	const struct scenario *s = run->scenario;
	struct probe_spec spec;
	int ret = probe_spec_parse(&spec, s->workload, err);

	for (unsigned int m = 0; m < M_COUNT; m++)
		out->values[m] = NAN;
	if (ret)
		return ret;
	if (spec.job)
		ret = run_study(run, &spec, store, out, err);
	else
		ret = probe_imbalance(&spec, &s->cluster, &s->params, run->seed,
				      &out->values[M_IMBALANCE]);
	hash_input(run, out->input);
	out->done = !ret;
	return ret;
}

int probe_describe(const struct scenario *scenario, char *out, size_t size, struct iocom_err *err)
{
	struct probe_spec spec;
	int ret = probe_spec_parse(&spec, scenario->workload, err);

	if (ret)
		return ret;
	if (spec.job)
		snprintf(out, size,
			 "probe %s, %g times in %g days, local and remote; background of loops, "
			 "mean %g and %g, %g %% of them i/o-bound",
			 spec.job->name, spec.jobs, spec.days, spec.local, spec.remote,
			 100 * spec.io_share);
	else
		snprintf(out, size, "M/M/1 queues of their own, %g h", spec.hours);
	return 0;
}
