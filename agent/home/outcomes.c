/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Predictions against what happened; see outcomes.h. */
#include "agent/home/outcomes.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SHRINK 2.0 /* so many jobs without an error are added to those that a mean is of */

/* One pair of node and policy.  The sums are weighted, the newest job has the weight 1. */
struct outcomes_pair {
	struct prediction is; /* its means are made when it is listed */
	double weight, log_sum, within_1_25, within_2;
	double recalled; /* the weight of the next job that is recalled */
	uint64_t used;	 /* by which it is replaced: the number of its last job */
};

struct outcomes {
	struct profile_store *profiles;
	struct counters *counters;
	struct outcomes_pair pairs[PREDICTIONS_MAX];
	size_t count;
	uint64_t jobs;
};

int outcomes_new(struct outcomes **out, struct profile_store *profiles, struct counters *counters)
{
	struct outcomes *o = calloc(1, sizeof(*o));

	if (!o)
		return -ENOMEM;
	o->profiles = profiles;
	o->counters = counters;
	*out = o;
	return 0;
}

void outcomes_free(struct outcomes *o)
{
	free(o);
}

/* --- running errors --------------------------------------------------------------- */

static struct outcomes_pair *outcomes_find(struct outcomes *o, const struct outcome *job)
{
	for (size_t i = 0; i < o->count; i++)
		if (!strcmp(o->pairs[i].is.node, job->node) &&
		    !strcmp(o->pairs[i].is.policy, job->policy))
			return &o->pairs[i];
	return NULL;
}

/* Returns the pair that had no job for longest. */
static struct outcomes_pair *outcomes_oldest(struct outcomes *o)
{
	struct outcomes_pair *oldest = &o->pairs[0];

	for (size_t i = 1; i < o->count; i++)
		if (o->pairs[i].used < oldest->used)
			oldest = &o->pairs[i];
	return oldest;
}

/* Begins a pair for JOB; NULL: there is no room, and none is made if REPLACE is not set. */
static struct outcomes_pair *outcomes_begin(struct outcomes *o, const struct outcome *job,
					    bool replace)
{
	struct outcomes_pair *pair;

	if (o->count < PREDICTIONS_MAX) {
		pair = &o->pairs[o->count++];
	} else if (replace) {
		pair = outcomes_oldest(o);
		o->counters->predictions_replaced++;
	} else {
		return NULL;
	}
	*pair = (struct outcomes_pair){.recalled = 1};
	snprintf(pair->is.node, sizeof(pair->is.node), "%s", job->node);
	snprintf(pair->is.policy, sizeof(pair->is.policy), "%s", job->policy);
	return pair;
}

static void outcomes_add(struct outcomes_pair *pair, double x, double weight)
{
	pair->weight += weight;
	pair->log_sum += weight * x;
	pair->within_1_25 += fabs(x) <= log(1.25) ? weight : 0;
	pair->within_2 += fabs(x) <= log(2) ? weight : 0;
	pair->is.jobs++;
}

static void outcomes_fade(struct outcomes_pair *pair)
{
	pair->weight *= OUTCOMES_FADE;
	pair->log_sum *= OUTCOMES_FADE;
	pair->within_1_25 *= OUTCOMES_FADE;
	pair->within_2 *= OUTCOMES_FADE;
	pair->recalled *= OUTCOMES_FADE;
}

static void outcomes_note(struct outcomes *o, const struct outcome *job, double x)
{
	struct outcomes_pair *pair = outcomes_find(o, job);

	if (!pair)
		pair = outcomes_begin(o, job, true);
	outcomes_fade(pair);
	outcomes_add(pair, x, 1);
	pair->used = ++o->jobs;
	pair->is.total.jobs++;
	pair->is.total.within_1_25 += fabs(x) <= log(1.25);
	pair->is.total.within_2 += fabs(x) <= log(2);
	pair->is.total.log_error += fabs(x);
}

static bool outcomes_is_time(double ms)
{
	return isfinite(ms) && ms > 0;
}

void outcomes_recall(struct outcomes *o, const struct outcome *job)
{
	struct outcomes_pair *pair = outcomes_find(o, job);

	if (!outcomes_is_time(job->wall_ms) || !outcomes_is_time(job->expected->there_ms))
		return;
	if (!pair)
		pair = outcomes_begin(o, job, false);
	if (!pair)
		return;
	outcomes_add(pair, log(job->wall_ms / job->expected->there_ms), pair->recalled);
	pair->recalled *= OUTCOMES_FADE;
}

size_t outcomes_count(const struct outcomes *o)
{
	return o->count;
}

size_t outcomes_list(const struct outcomes *o, struct prediction *out)
{
	for (size_t i = 0; i < o->count; i++) {
		const struct outcomes_pair *pair = &o->pairs[i];

		out[i] = pair->is;
		out[i].ratio = exp(pair->log_sum / pair->weight);
		out[i].within_1_25 = fmin(1, pair->within_1_25 / pair->weight);
		out[i].within_2 = fmin(1, pair->within_2 / pair->weight);
	}
	return o->count;
}

/* --- corrections ------------------------------------------------------------------- */

static double outcomes_cut(double x, double bound)
{
	return x > bound ? bound : x < -bound ? -bound : x;
}

/* What the rules alone expected, of MS with FACTOR in it. */
static double outcomes_alone(double ms, double factor)
{
	return outcomes_is_time(factor) ? ms / factor : ms;
}

/* Returns whether JOB was long enough to say something of a factor. */
static bool outcomes_is_long(const struct outcome *job)
{
	const struct journal_expectation *e = job->expected;
	double ms = outcomes_is_time(e->home_ms) ? outcomes_alone(e->home_ms, e->home_factor)
						 : outcomes_alone(e->there_ms, e->there_factor);

	return ms >= OUTCOMES_LONG * job->slack_ms;
}

/* The logarithm of what JOB took over EXPECTED_MS, but for a difference of its slack. */
static double outcomes_log(const struct outcome *job, double expected_ms, double bound)
{
	double more = job->wall_ms - expected_ms;
	double beyond = copysign(fmax(0, fabs(more) - job->slack_ms), more);

	return outcomes_cut(log1p(beyond / expected_ms), bound);
}

static int outcomes_teach(struct outcomes *o, const struct outcome *job, struct iocom_err *err)
{
	const struct journal_expectation *e = job->expected;
	double x = outcomes_log(job, outcomes_alone(e->there_ms, e->there_factor), OUTCOMES_CUT);
	int rc = profile_error_learn(o->profiles, job->uid, job->class_name, job->node, x, err);

	if (rc == -ENOENT)
		rc = 0; /* the class was forgotten meanwhile */
	x = outcomes_log(job, e->there_ms, OUTCOMES_DOUBT_CUT);
	return rc || job->idle ? rc : profile_doubt_learn(o->profiles, job->node, x, err);
}

int outcomes_take(struct outcomes *o, const struct outcome *job, struct iocom_err *err)
{
	double expected = job->expected->there_ms;

	if (!outcomes_is_time(expected))
		return 0;
	if (!outcomes_is_time(job->wall_ms)) {
		o->counters->outcomes_refused++;
		return 0;
	}
	outcomes_note(o, job, log(job->wall_ms / expected));
	if (!job->teaches || !*job->class_name || !outcomes_is_long(job))
		return 0;
	return outcomes_teach(o, job, err);
}

static double outcomes_trust(const struct profile_error *error)
{
	return error->jobs / (error->jobs + SHRINK);
}

double outcomes_factor(const struct profile_error *class_error, const struct profile_error *node)
{
	double k = outcomes_trust(class_error) * class_error->mean_log;

	if (node)
		k += outcomes_trust(node) * (node->mean_log - k);
	return fmin(OUTCOMES_FACTOR_MOST, fmax(OUTCOMES_FACTOR_LEAST, exp(k)));
}

struct outcomes_filling {
	uint32_t (*index_of)(const void *arg, const char *node);
	const void *arg;
	struct profile_error class_error;
	struct outcomes_factors *out;
};

/* The class comes first, then its nodes in the order of their names. */
static void outcomes_fill(void *arg, const char *node, const struct profile_error *error)
{
	struct outcomes_filling *f = arg;
	struct outcomes_factors *out = f->out;
	uint32_t index;

	if (!*node) {
		f->class_error = *error;
		out->others = outcomes_factor(error, NULL);
		return;
	}
	index = f->index_of(f->arg, node);
	if (index == UINT32_MAX || out->others <= 0 || out->count == PROFILE_NODES_MAX)
		return;
	out->at[out->count++] = (struct rules_correction){
		.node = index,
		.factor = outcomes_factor(&f->class_error, error),
	};
}

static void outcomes_fill_doubt(void *arg, const char *node, double doubt)
{
	struct outcomes_filling *f = arg;
	struct outcomes_factors *out = f->out;
	uint32_t index = f->index_of(f->arg, node);

	if (doubt < log(OUTCOMES_BELIEVED) || index == UINT32_MAX ||
	    out->ndoubts == PROFILE_DOUBTS_MAX)
		return;
	out->doubts[out->ndoubts++] =
		(struct rules_correction){.node = index, .factor = exp(doubt)};
}

/* Multiplies the factor of a node by that of its doubt. */
static void outcomes_apply_doubt(struct outcomes_factors *out, const struct rules_correction *doubt)
{
	size_t i = 0;

	while (i < out->count && out->at[i].node != doubt->node)
		i++;
	if (i == out->count)
		out->at[out->count++] = (struct rules_correction){
			.node = doubt->node, .factor = out->others > 0 ? out->others : 1};
	out->at[i].factor = fmin(RULES_CORRECTION_MAX, out->at[i].factor * doubt->factor);
}

double outcomes_doubt(const struct outcomes_factors *f, uint32_t node)
{
	for (size_t i = 0; i < f->ndoubts; i++)
		if (f->doubts[i].node == node)
			return f->doubts[i].factor;
	return 1;
}

static int outcomes_order(const void *a, const void *b)
{
	uint32_t x = ((const struct rules_correction *)a)->node;
	uint32_t y = ((const struct rules_correction *)b)->node;

	return (x > y) - (x < y);
}

int outcomes_correct(struct outcomes *o, uid_t uid, const char *class_name,
		     uint32_t (*index_of)(const void *arg, const char *node), const void *arg,
		     struct outcomes_factors *out, struct iocom_err *err)
{
	struct outcomes_filling filling = {.index_of = index_of, .arg = arg, .out = out};
	int rc;

	*out = (struct outcomes_factors){.others = 0};
	rc = profile_errors(o->profiles, uid, class_name, outcomes_fill, &filling, err);
	if (!rc)
		rc = profile_doubts(o->profiles, outcomes_fill_doubt, &filling, err);
	if (rc)
		*out = (struct outcomes_factors){.others = 0};
	for (size_t i = 0; i < out->ndoubts; i++)
		outcomes_apply_doubt(out, &out->doubts[i]);
	qsort(out->at, out->count, sizeof(out->at[0]), outcomes_order);
	return rc;
}
