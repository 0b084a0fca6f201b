/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Draws the home of a job when the trace or the kind does not give it.  Node i has weight
 * 1 / (1 + i)^skew in an order shuffled by the seed, or a weight from the caller.
 */
#ifndef SIM_WORKLOAD_HOMES_H
#define SIM_WORKLOAD_HOMES_H

#include <iocom/err.h>
#include <stdint.h>

struct homes {
	uint32_t n;
	double *upto; /* share of the weights up to each node; NULL: all weights are equal */
};

/* WEIGHTS: N of them, or NULL.  Returns 0; -EINVAL (negative, not finite, all zero); -ENOMEM. */
int homes_init(struct homes *h, uint32_t n, double skew, const double *weights, uint64_t seed,
	       struct iocom_err *err);
/* U must be in (0, 1). */
uint32_t homes_draw(const struct homes *h, double u);
void homes_deinit(struct homes *h);

#endif
