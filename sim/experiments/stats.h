/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Means with intervals over seeds.
 *
 * Every policy meets the same workload at the same seed (common random numbers),
 * so policies are compared seed by seed: the ratio of two policies is judged by
 * the mean of ln(base / new) and its Student t interval, and told as exp of it
 * (a geometric mean).  MODEL 6.0 names three measures of the same ratio:
 * factor = base / new, gain = factor - 1, reduction = 1 - 1 / factor.
 */
#ifndef SIM_EXPERIMENTS_STATS_H
#define SIM_EXPERIMENTS_STATS_H

#include <stdbool.h>
#include <stddef.h>

/* A mean and its 95 % interval; NaN where nothing can be said. */
struct interval {
	double mean, low, high;
	size_t n; /* values it rests on */
};

enum ratio { RATIO_FACTOR, RATIO_GAIN, RATIO_REDUCTION };

double ratio_of(enum ratio by, double base, double new);
double ratio_from_factor(enum ratio by, double factor);
double ratio_to_factor(enum ratio by, double value);
const char *ratio_name(enum ratio by); /* "factor", "gain", "reduction" */

/* Mean of N values; a single value has an interval of no width.  NaN values are
 * left out. */
struct interval stats_mean(const double *values, size_t n);
/* As stats_mean over ln of values (> 0, others left out), told as exp. */
struct interval stats_geometric(const double *values, size_t n);
/* Factor base / new by paired values. */
struct interval stats_factor(const double *base, const double *new, size_t n);
/* The same interval told by another measure of a ratio. */
struct interval stats_by(enum ratio by, struct interval factor);

/* The interval lies above (below) the bound: significant at 95 %. */
bool stats_above(struct interval i, double bound);
bool stats_below(struct interval i, double bound);
/* The measured value lies in [low, high]: a wide interval does not make a number right. */
bool stats_meets(struct interval i, double low, double high);

#endif
