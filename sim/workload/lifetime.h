/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * How long jobs compute: a distribution that is set up once and drawn from many times.
 *
 *   constant, exponential, Gamma (mean, standard deviation)
 *   hyperexponential of two stages with balanced means, CV^2 = c > 1:
 * 	p = (1 + sqrt((c - 1) / (c + 1))) / 2, rates 2 p / mean and 2 (1 - p) / mean
 *   Pareto, shape a > 1: P(X > x) = (L / x)^a, L = mean (a - 1) / a
 *   Pareto cut at H, any shape a > 0: the same between L and H only,
 * 	P(X > x) = ((L / x)^a - (L / H)^a) / (1 - (L / H)^a), with L such that the mean is kept
 */
#ifndef SIM_WORKLOAD_LIFETIME_H
#define SIM_WORKLOAD_LIFETIME_H

#include "sim/random.h"
#include "sim/workload.h"

struct lifetime {
	enum generator_lifetime kind;
	double mean, shape;
	double low; /* Pareto: L */
	double cut; /* (L / H)^a; 0: not cut */
	double p;   /* hyperexponential */
};

/* Returns 0; -EINVAL with ERR set. */
int lifetime_init(struct lifetime *l, enum generator_lifetime kind, double mean, double shape,
		  double max, struct iocom_err *err);
double lifetime_draw(const struct lifetime *l, struct sim_random *r);

#endif
