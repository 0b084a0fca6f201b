/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Means with intervals over seeds; see stats.h. */
#include "sim/experiments/stats.h"

#include <gsl/gsl_cdf.h>
#include <math.h>

double ratio_of(enum ratio by, double base, double new)
{
	return ratio_from_factor(by, base / new);
}

double ratio_from_factor(enum ratio by, double factor)
{
	switch (by) {
	case RATIO_GAIN:
		return factor - 1;
	case RATIO_REDUCTION:
		return 1 - 1 / factor;
	case RATIO_FACTOR:
		break;
	}
	return factor;
}

double ratio_to_factor(enum ratio by, double value)
{
	switch (by) {
	case RATIO_GAIN:
		return value + 1;
	case RATIO_REDUCTION:
		return 1 / (1 - value);
	case RATIO_FACTOR:
		break;
	}
	return value;
}

const char *ratio_name(enum ratio by)
{
	static const char *const names[] = {"factor", "gain", "reduction"};

	return names[by];
}

double stats_quantile(size_t n, double alpha)
{
	return n > 1 ? gsl_cdf_tdist_Pinv(1 - alpha / 2, (double)n - 1) : INFINITY;
}

/* Mean and interval of TRANSFORM(value), converted with BACK. */
static struct interval summarise(const double *values, size_t n, double (*transform)(double),
				 double (*back)(double))
{
	struct interval out = STATS_UNKNOWN;
	double sum = 0, squares = 0, mean, half = 0;

	for (size_t i = 0; i < n; i++) {
		double x = transform(values[i]);

		if (!isfinite(x))
			continue;
		sum += x;
		out.n++;
	}
	if (!out.n)
		return out;
	mean = sum / (double)out.n;
	for (size_t i = 0; i < n; i++) {
		double d = transform(values[i]) - mean;

		if (isfinite(d))
			squares += d * d;
	}
	if (out.n > 1) {
		double degrees = (double)out.n - 1;

		out.sd = sqrt(squares / degrees);
		half = stats_quantile(out.n, STATS_ALPHA) * out.sd / sqrt((double)out.n);
	}
	out.mean = back(mean);
	out.low = back(mean - half);
	out.high = back(mean + half);
	return out;
}

static double stats_same(double x)
{
	return x;
}

static double ln_positive(double x)
{
	return x > 0 ? log(x) : NAN;
}

struct interval stats_mean(const double *values, size_t n)
{
	return summarise(values, n, stats_same, stats_same);
}

struct interval stats_geometric(const double *values, size_t n)
{
	struct interval out = summarise(values, n, ln_positive, exp);

	out.ln = true;
	return out;
}

struct interval stats_factor(const double *base, const double *new, size_t n)
{
	double ratios[n ? n : 1];

	for (size_t i = 0; i < n; i++)
		ratios[i] = base[i] / new[i];
	return stats_geometric(ratios, n);
}

struct interval stats_by(enum ratio by, struct interval factor)
{
	struct interval out = {
		ratio_from_factor(by, factor.mean),
		ratio_from_factor(by, factor.low),
		ratio_from_factor(by, factor.high),
		factor.n,
		factor.sd,
		factor.ln,
	};

	return out;
}

bool stats_above(struct interval i, double bound)
{
	return i.n > 0 && i.low > bound;
}

bool stats_below(struct interval i, double bound)
{
	return i.n > 0 && i.high < bound;
}

struct interval stats_at(struct interval i, double alpha)
{
	double half = i.n > 1 ? stats_quantile(i.n, alpha) * i.sd / sqrt((double)i.n) : 0;

	if (i.ln) {
		i.low = i.mean * exp(-half);
		i.high = i.mean * exp(half);
	} else {
		i.low = i.mean - half;
		i.high = i.mean + half;
	}
	return i;
}

struct interval stats_jackknife(double all, const double *without, size_t n)
{
	struct interval out = {all, all, all, n, 0, false};
	double squares = 0;

	if (!isfinite(all))
		return STATS_UNKNOWN;
	/* Around the statistic itself rather than the mean of those without a seed: that cannot be
	 * less. */
	for (size_t i = 0; i < n; i++)
		squares += (without[i] - all) * (without[i] - all);
	out.sd = sqrt((double)(n - 1) * squares);
	return stats_at(out, STATS_ALPHA);
}
