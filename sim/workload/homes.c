/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Homes by weight: binary search in a table of sums; see homes.h. */
#include "sim/workload/homes.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/random.h"
#include "sim/workload/purpose.h"

static void shuffle(double *w, uint32_t n, uint64_t seed)
{
	struct sim_random random = sim_random_stream(seed, PURPOSE_HOME_ORDER, 0);

	for (uint32_t i = n; i > 1; i--) {
		uint32_t j = (uint32_t)sim_random_integer(&random, 0, i - 1);
		double t = w[i - 1];

		w[i - 1] = w[j];
		w[j] = t;
	}
}

static int sum_up(double *w, uint32_t n, struct iocom_err *err)
{
	double sum = 0;

	for (uint32_t i = 0; i < n; i++) {
		if (!(w[i] >= 0) || !isfinite(w[i]))
			return iocom_err_set(err, -EINVAL,
					     "the weight of home %u is %g: expected 0 or more", i,
					     w[i]);
		sum += w[i];
		w[i] = sum;
	}
	if (!(sum > 0) || !isfinite(sum))
		return iocom_err_set(err, -EINVAL, "the weights of the homes add up to %g", sum);
	for (uint32_t i = 0; i < n; i++)
		w[i] /= sum;
	return 0;
}

int homes_init(struct homes *h, uint32_t n, double skew, const double *weights, uint64_t seed,
	       struct iocom_err *err)
{
	int rc;

	*h = (struct homes){.n = n};
	if (!n || !(fabs(skew) <= 100))
		return iocom_err_set(err, -EINVAL,
				     n ? "home_skew: expected -100 to 100"
				       : "nodes: expected at least 1");
	if (!weights && skew == 0)
		return 0;
	h->upto = malloc(n * sizeof(*h->upto));
	if (!h->upto)
		return iocom_err_set(err, -ENOMEM, "out of memory");
	for (uint32_t i = 0; i < n; i++)
		h->upto[i] = weights ? weights[i] : pow(1.0 + i, -skew);
	if (!weights)
		shuffle(h->upto, n, seed);
	rc = sum_up(h->upto, n, err);
	if (rc)
		homes_deinit(h);
	return rc;
}

uint32_t homes_draw(const struct homes *h, double u)
{
	uint32_t low = 0, high = h->n - 1;

	if (!h->upto) {
		uint32_t i = (uint32_t)(u * h->n);

		return i < h->n ? i : h->n - 1;
	}
	/* Finds the first node whose sum is above U; nodes without weight are never found. */
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (h->upto[middle] > u)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

void homes_deinit(struct homes *h)
{
	free(h->upto);
	*h = (struct homes){0};
}
