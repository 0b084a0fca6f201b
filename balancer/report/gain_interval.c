/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* The bootstrap of gain.h.  All rows of a round use the same drawn errors. */
#include <math.h>
#include <stdlib.h>

#include "balancer/report/gain_private.h"

/* Any constants: the same jobs give the same interval. */
#define SEED	     0x9e3779b97f4a7c15ULL
#define SEED_OF_ROWS 0xd1b54a32d192ed03ULL

/* Returns a number below N, which is below 2^32 (xorshift64*). */
static size_t gain_draw(uint64_t *state, size_t n)
{
	*state ^= *state >> 12;
	*state ^= *state << 25;
	*state ^= *state >> 27;
	return (size_t)((*state * 0x2545f4914f6cdd1dULL >> 32) * n >> 32);
}

double gain_at_home(const struct gain_item *item, double error)
{
	return fmin(item->expected_ms * error, item->wall_ms * GAIN_SLOWDOWN);
}

static int gain_order(const void *left, const void *right)
{
	double a = *(const double *)left, b = *(const double *)right;

	return (a > b) - (a < b);
}

void gain_sort(double *values, size_t n)
{
	if (n)
		qsort(values, n, sizeof(*values), gain_order);
}

double gain_quantile(const double *values, size_t n, double q)
{
	double at = q * (double)(n - 1);
	size_t low = (size_t)at, high = low + 1 < n ? low + 1 : low;

	return values[low] + (values[high] - values[low]) * (at - (double)low);
}

/* Draws errors of CLASS with probabilities in proportion to their weights. */
static void gain_draw_class(const struct gain_errors *errors, const struct gain_class *class,
			    double *out, uint64_t *state)
{
	double before = class->begin ? errors->upto[class->begin - 1] : 0;
	double weight = errors->upto[class->begin + class->n - 1] - before;

	for (size_t i = 0; i < class->draws; i++) {
		double wanted = before + weight * (double)gain_draw(state, UINT32_MAX) / UINT32_MAX;
		size_t low = class->begin, high = class->begin + class->n - 1;

		while (low < high) {
			size_t middle = (low + high) / 2;

			if (errors->upto[middle] <= wanted)
				low = middle + 1;
			else
				high = middle;
		}
		out[i] = errors->all[low];
	}
}

static void gain_draw_errors(struct gain_errors *errors, uint64_t *state)
{
	gain_draw_class(errors, &errors->whole, errors->pool, state);
	for (size_t c = 0; c < errors->nclasses; c++)
		gain_draw_class(errors, &errors->classes[c], errors->own + errors->classes[c].begin,
				state);
}

static double gain_draw_sum(struct gain_part *part)
{
	double sum = 0;

	for (uint32_t i = 0; i < part->row->judged; i++) {
		const struct gain_item *item =
			part->items[gain_draw(&part->state, part->row->judged)];

		sum += gain_at_home(item, item->errors[gain_draw(&part->state, item->nerrors)]) -
		       item->wall_ms;
	}
	return sum;
}

void gain_intervals(struct gain_errors *errors, struct gain_part *parts, size_t nparts)
{
	uint64_t state = SEED;

	/* Each row draws from a sequence of its own: rows of the same jobs have the same interval.
	 */
	for (size_t p = 0; p < nparts; p++)
		parts[p].state = SEED_OF_ROWS;
	for (unsigned round = 0; nparts && round < GAIN_ROUNDS; round++) {
		gain_draw_errors(errors, &state);
		for (size_t p = 0; p < nparts; p++)
			parts[p].sums[round] = gain_draw_sum(&parts[p]);
	}
	for (size_t p = 0; p < nparts; p++) {
		gain_sort(parts[p].sums, GAIN_ROUNDS);
		parts[p].row->low_ms = gain_quantile(parts[p].sums, GAIN_ROUNDS, 0.025);
		parts[p].row->high_ms = gain_quantile(parts[p].sums, GAIN_ROUNDS, 0.975);
	}
}
