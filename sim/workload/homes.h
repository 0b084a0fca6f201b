/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Which node a job is born on, where nothing else says it: node i has weight
 * 1 / (1 + i)^skew in an order shuffled by the seed, or weights of its own.
 */
#ifndef SIM_WORKLOAD_HOMES_H
#define SIM_WORKLOAD_HOMES_H

#include <iocom/err.h>
#include <stdint.h>

struct homes {
	uint32_t n;
	double *upto; /* sum of the weights up to each node over all; NULL: all alike */
};

/* WEIGHTS: n of them, or NULL.  0; -EINVAL (negative, not finite, all zero); -ENOMEM. */
int homes_init(struct homes *h, uint32_t n, double skew, const double *weights, uint64_t seed,
	       struct iocom_err *err);
/* U in (0, 1). */
uint32_t homes_draw(const struct homes *h, double u);
void homes_deinit(struct homes *h);

#endif
