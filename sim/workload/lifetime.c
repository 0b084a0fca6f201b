/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Distributions of computation time; see lifetime.h. */
#include "sim/workload/lifetime.h"

#include <errno.h>
#include <math.h>

/* The mean of a Pareto distribution of shape A between LOW and HIGH. */
static double cut_mean(double low, double high, double a)
{
	double ratio = low / high;

	if (fabs(a - 1) < 1e-9)
		return low * log(high / low) / (1 - ratio);
	return a * low * (1 - pow(ratio, a - 1)) / ((a - 1) * (1 - pow(ratio, a)));
}

/* The lower end that gives MEAN; cut_mean grows with it from 0 to HIGH. */
static double cut_low(double mean, double high, double a)
{
	double low = 0, up = mean;

	for (int i = 0; i < 200; i++) {
		double middle = low + (up - low) / 2;

		if (cut_mean(middle, high, a) < mean)
			low = middle;
		else
			up = middle;
	}
	return up;
}

static int init_pareto(struct lifetime *l, double max, struct iocom_err *err)
{
	if (max > 0) {
		if (!(l->shape > 0) || !(max > l->mean))
			return iocom_err_set(err, -EINVAL,
					     "a Pareto lifetime that is cut needs a shape above 0 "
					     "and lifetime_max_ms above the mean, not %g and %g",
					     l->shape, max);
		l->low = cut_low(l->mean, max, l->shape);
		l->cut = pow(l->low / max, l->shape);
		return 0;
	}
	if (!(l->shape > 1))
		return iocom_err_set(err, -EINVAL,
				     "a Pareto lifetime that is not cut needs a shape above 1, "
				     "not %g",
				     l->shape);
	l->low = l->mean * (l->shape - 1) / l->shape;
	return 0;
}

int lifetime_init(struct lifetime *l, enum generator_lifetime kind, double mean, double shape,
		  double max, struct iocom_err *err)
{
	*l = (struct lifetime){.kind = kind, .mean = mean, .shape = shape};
	if (!(mean >= 0) || !isfinite(mean) || !(shape >= 0) || !isfinite(shape) || !(max >= 0) ||
	    !isfinite(max))
		return iocom_err_set(err, -EINVAL,
				     "lifetime: expected mean, shape and maximum of 0 or more");
	switch (kind) {
	case LIFETIME_CONSTANT:
	case LIFETIME_EXPONENTIAL:
	case LIFETIME_GAMMA:
		return 0;
	case LIFETIME_PARETO:
		return init_pareto(l, max, err);
	case LIFETIME_HYPEREXP:
		if (!(shape >= 1))
			return iocom_err_set(err, -EINVAL,
					     "a hyperexponential lifetime needs a squared "
					     "coefficient of variation of at least 1, not %g",
					     shape);
		l->p = (1 + sqrt((shape - 1) / (shape + 1))) / 2;
		return 0;
	}
	return iocom_err_set(err, -EINVAL, "unknown lifetime distribution %d", (int)kind);
}

static double draw_hyperexp(const struct lifetime *l, struct sim_random *r)
{
	double p = l->p, u = sim_random_uniform(r);

	if (u >= p)
		p = 1 - p;
	return sim_random_exponential(r, l->mean / (2 * p));
}

double lifetime_draw(const struct lifetime *l, struct sim_random *r)
{
	switch (l->kind) {
	case LIFETIME_CONSTANT:
		break;
	case LIFETIME_EXPONENTIAL:
		return sim_random_exponential(r, l->mean);
	case LIFETIME_PARETO:
		return l->low / pow(1 - sim_random_uniform(r) * (1 - l->cut), 1 / l->shape);
	case LIFETIME_HYPEREXP:
		return draw_hyperexp(l, r);
	case LIFETIME_GAMMA:
		return sim_random_gamma(r, l->mean, l->shape);
	}
	return l->mean;
}
