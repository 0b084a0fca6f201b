/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Means with intervals over seeds.
 *
 * Every policy gets the same workload at the same seed (common random numbers), so policies are
 * compared seed by seed.  The ratio of two policies is judged by the mean of ln(base / new) and
 * its Student t interval, and reported as exp of it (a geometric mean).  MODEL 6.0 names three
 * measures of the same ratio: factor = base / new, gain = factor - 1, reduction = 1 - 1 / factor.
 */
#ifndef SIM_EXPERIMENTS_STATS_H
#define SIM_EXPERIMENTS_STATS_H

#include <math.h>
#include <stdbool.h>
#include <stddef.h>

/* A mean and its 95 % interval; NaN if they are unknown. */
struct interval {
	double mean, low, high;
	size_t n; /* number of values */
	/* Standard deviation of the values, of their logarithms if LN. */
	double sd;
	bool ln;
};

#define STATS_ALPHA   0.05 /* of a 95 % interval */
#define STATS_UNKNOWN ((struct interval){NAN, NAN, NAN, 0, 0, false})

enum ratio { RATIO_FACTOR, RATIO_GAIN, RATIO_REDUCTION };

double ratio_of(enum ratio by, double base, double new);
double ratio_from_factor(enum ratio by, double factor);
double ratio_to_factor(enum ratio by, double value);
const char *ratio_name(enum ratio by); /* "factor", "gain", "reduction" */

/* Mean of N values without NaN; a single value has an interval of no width. */
struct interval stats_mean(const double *values, size_t n);
/* Like stats_mean over ln of the values (> 0, others are left out), reported as exp. */
struct interval stats_geometric(const double *values, size_t n);
/* Factor base / new over paired values. */
struct interval stats_factor(const double *base, const double *new, size_t n);
/* Converts the interval to another measure of a ratio. */
struct interval stats_by(enum ratio by, struct interval factor);

/* The interval lies above (below) the bound: significant at 95 %. */
bool stats_above(struct interval i, double bound);
bool stats_below(struct interval i, double bound);
/* The interval that misses the true mean with probability ALPHA. */
struct interval stats_at(struct interval i, double alpha);
/* Student's quantile for a two-sided interval over N values. */
double stats_quantile(size_t n, double alpha);
/*
 * The interval of a statistic of means by the jackknife: ALL is the statistic of all N seeds,
 * WITHOUT[i] of all but seed i.
 */
struct interval stats_jackknife(double all, const double *without, size_t n);

#endif
