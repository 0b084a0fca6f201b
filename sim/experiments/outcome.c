/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Sums over the jobs of a replayed log, and intervals over its weeks; see outcome.h. */
#include "sim/experiments/outcome.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "iocom/array.h"
#include "sim/random.h"

#define TAIL	      0.025 /* of the draws below and above a 95 % interval */
#define PURPOSE_WEEKS 0x7765656bu
#define DRAWS_SEED    1

const char *outcome_class_name(enum outcome_class c)
{
	static const char *const names[] = {
		[CLASS_SHORT_NARROW] = "short narrow",
		[CLASS_SHORT_WIDE] = "short wide",
		[CLASS_LONG_NARROW] = "long narrow",
		[CLASS_LONG_WIDE] = "long wide",
	};

	return names[c];
}

const char *outcome_group_name(enum outcome_group g)
{
	static const char *const names[] = {"week", "user", "class"};

	return names[g];
}

struct outcome_row *outcome_row(struct outcome *o, enum outcome_group g, double key)
{
	struct outcome_row *rows = o->rows[g];
	uint32_t low = 0, high = o->n[g];

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (rows[middle].key < key)
			low = middle + 1;
		else
			high = middle;
	}
	if (low < o->n[g] && rows[low].key == key)
		return &rows[low];
	if (array_reserve(o->rows[g], o->room[g], o->n[g] + 1, 64))
		return NULL;
	rows = o->rows[g];
	memmove(&rows[low + 1], &rows[low], (o->n[g] - low) * sizeof(*rows));
	o->n[g]++;
	rows[low] = (struct outcome_row){.key = key};
	return &rows[low];
}

static enum outcome_class outcome_class_of(const struct outcome_job *job)
{
	bool wide = job->tasks > OUTCOME_NARROW;

	if (job->alone_ms <= OUTCOME_SHORT_MS)
		return wide ? CLASS_SHORT_WIDE : CLASS_SHORT_NARROW;
	return wide ? CLASS_LONG_WIDE : CLASS_LONG_NARROW;
}

int outcome_add(struct outcome *o, const struct outcome_job *job)
{
	double turnaround = job->end_ms - job->arrival_ms;
	double alone = job->alone_ms, bounded = turnaround / fmax(alone, OUTCOME_TAU_MS);
	bool known = job->user >= 0 && (o->n[OUTCOME_USERS] < OUTCOME_USERS_MOST);
	const double keys[OUTCOME_GROUPS] = {
		[OUTCOME_WEEKS] = floor(job->arrival_ms / OUTCOME_WEEK_MS),
		[OUTCOME_USERS] = known ? job->user : -1,
		[OUTCOME_CLASSES] = outcome_class_of(job),
	};
	const double terms[OUTCOME_SUMS] = {
		[OUTCOME_JOBS] = 1,
		[OUTCOME_SLOWDOWN] = alone > 0 ? turnaround / alone : 1,
		[OUTCOME_BOUNDED] = fmax(1, bounded),
		[OUTCOME_WAIT_S] = (job->start_ms - job->arrival_ms) / 1000,
		[OUTCOME_TURNAROUND_S] = turnaround / 1000,
	};

	for (unsigned int g = 0; g < OUTCOME_GROUPS; g++) {
		struct outcome_row *row = outcome_row(o, g, keys[g]);

		if (!row)
			return -ENOMEM;
		for (unsigned int i = 0; i < OUTCOME_SUMS; i++)
			row->sums[i] += terms[i];
	}
	return 0;
}

int outcome_copy(struct outcome *to, const struct outcome *from)
{
	*to = (struct outcome){0};
	for (unsigned int g = 0; g < OUTCOME_GROUPS; g++) {
		if (!from->n[g])
			continue;
		if (array_reserve(to->rows[g], to->room[g], from->n[g], 64))
			return -ENOMEM;
		memcpy(to->rows[g], from->rows[g], from->n[g] * sizeof(*from->rows[g]));
		to->n[g] = from->n[g];
	}
	return 0;
}

void outcome_free(struct outcome *o)
{
	for (unsigned int g = 0; g < OUTCOME_GROUPS; g++)
		free(o->rows[g]);
	*o = (struct outcome){0};
}

/* --- means and intervals ------------------------------------------------------------ */

enum outcome_sum outcome_sum_of(enum measure m)
{
	switch (m) {
	case M_SLOWDOWN:
		return OUTCOME_SLOWDOWN;
	case M_BOUNDED:
		return OUTCOME_BOUNDED;
	case M_WAIT:
		return OUTCOME_WAIT_S;
	case M_TURNAROUND:
		return OUTCOME_TURNAROUND_S;
	default:
		return OUTCOME_SUMS;
	}
}

double outcome_mean(const struct outcome *o, enum outcome_sum what)
{
	double sum = 0, jobs = 0;

	for (uint32_t i = 0; i < o->n[OUTCOME_WEEKS]; i++) {
		sum += o->rows[OUTCOME_WEEKS][i].sums[what];
		jobs += o->rows[OUTCOME_WEEKS][i].sums[OUTCOME_JOBS];
	}
	return jobs > 0 ? sum / jobs : NAN;
}

bool outcome_has_interval(const struct outcome *o)
{
	return o->n[OUTCOME_WEEKS] >= OUTCOME_WEEKS_MIN;
}

static int outcome_by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* The means, or with BASE their ratios, of weeks that are drawn with replacement. */
static void outcome_draw(const struct outcome *base, const struct outcome *o, enum outcome_sum what,
			 double *means)
{
	struct sim_random r = sim_random_stream(DRAWS_SEED, PURPOSE_WEEKS, 0);
	uint32_t n = o->n[OUTCOME_WEEKS];

	for (unsigned int k = 0; k < OUTCOME_DRAWS; k++) {
		double sum = 0, jobs = 0, base_sum = 0, base_jobs = 0;

		for (uint32_t i = 0; i < n; i++) {
			uint32_t week = (uint32_t)(n * sim_random_uniform(&r)) % n;
			const struct outcome_row *row = &o->rows[OUTCOME_WEEKS][week];

			sum += row->sums[what];
			jobs += row->sums[OUTCOME_JOBS];
			if (!base)
				continue;
			row = &base->rows[OUTCOME_WEEKS][week];
			base_sum += row->sums[what];
			base_jobs += row->sums[OUTCOME_JOBS];
		}
		means[k] = sum / jobs;
		if (base)
			means[k] = base_sum / base_jobs / means[k];
	}
	qsort(means, OUTCOME_DRAWS, sizeof(*means), outcome_by_value);
}

static struct interval outcome_middle(const struct outcome *base, const struct outcome *o,
				      enum outcome_sum what, double mean)
{
	double means[OUTCOME_DRAWS];
	unsigned int low = (unsigned int)(TAIL * OUTCOME_DRAWS);

	outcome_draw(base, o, what, means);
	return (struct interval){
		.mean = mean,
		.low = means[low],
		.high = means[OUTCOME_DRAWS - 1 - low],
		.n = o->n[OUTCOME_WEEKS],
	};
}

struct interval outcome_interval(const struct outcome *o, enum outcome_sum what)
{
	double mean = outcome_mean(o, what);

	if (!outcome_has_interval(o))
		return (struct interval){
			.mean = mean, .low = mean, .high = mean, .n = isfinite(mean)};
	return outcome_middle(NULL, o, what, mean);
}

static bool outcome_same_weeks(const struct outcome *a, const struct outcome *b)
{
	if (a->n[OUTCOME_WEEKS] != b->n[OUTCOME_WEEKS])
		return false;
	for (uint32_t i = 0; i < a->n[OUTCOME_WEEKS]; i++)
		if (a->rows[OUTCOME_WEEKS][i].key != b->rows[OUTCOME_WEEKS][i].key)
			return false;
	return true;
}

struct interval outcome_factor(const struct outcome *base, const struct outcome *new,
			       enum outcome_sum what)
{
	if (!outcome_has_interval(new) || !outcome_same_weeks(base, new))
		return STATS_UNKNOWN;
	return outcome_middle(base, new, what, outcome_mean(base, what) / outcome_mean(new, what));
}
