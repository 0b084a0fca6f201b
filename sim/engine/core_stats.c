/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Statistics of a run; see core_stats.h.
 *
 * A bin spans 1/128 of an octave, so its middle is within 0.4 % of all values in it.  Bin 0 takes
 * values below 2^-20 (and negative ones), the last bin values above 2^44.
 */
#include "sim/engine/core_stats.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define GRID	    0x1p40
#define SQUARE_GRID 0x1p20
#define TERM_MOST   0x1p60
#define SQUARE_MOST 0x1p43

#define BITS	    7 /* bits of the mantissa that select a bin */
#define FIRST_EXP   (-20)
#define OCTAVES	    64
#define BINS	    (1 + (OCTAVES << BITS) + 1)
#define FIRST_BITS  ((uint64_t)(1023 + FIRST_EXP) << 52)

static double core_stats_within(double x, double most)
{
	return x > most ? most : x < -most ? -most : x;
}

void core_fixed_add(core_fixed *sum, double x)
{
	*sum += (core_fixed)(core_stats_within(x, TERM_MOST) * GRID);
}

double core_fixed_value(core_fixed sum)
{
	return (double)sum / GRID;
}

static uint32_t bin_of(double x)
{
	uint64_t bits;

	if (!(x >= ldexp(1, FIRST_EXP)))
		return 0;
	memcpy(&bits, &x, sizeof(bits));
	bits = (bits - FIRST_BITS) >> (52 - BITS);
	return bits < (OCTAVES << BITS) ? 1 + (uint32_t)bits : BINS - 1;
}

static double bin_edge(uint32_t bin)
{
	uint64_t bits = FIRST_BITS + ((uint64_t)(bin - 1) << (52 - BITS));
	double edge;

	memcpy(&edge, &bits, sizeof(edge));
	return edge;
}

int core_distribution_add(struct core_distribution *d, double x)
{
	double y = core_stats_within(x, SQUARE_MOST);

	if (d->bins == NULL) {
		d->bins = calloc(BINS, sizeof(*d->bins));
		if (d->bins == NULL)
			return -ENOMEM;
		d->min = d->max = x;
	}
	d->n++;
	core_fixed_add(&d->sum, x);
	d->squares += (core_fixed)(y * y * SQUARE_GRID);
	d->min = x < d->min ? x : d->min;
	d->max = x > d->max ? x : d->max;
	d->bins[bin_of(x)]++;
	return 0;
}

int core_distribution_merge(struct core_distribution *to, const struct core_distribution *from)
{
	if (from->n == 0)
		return 0;
	if (to->bins == NULL) {
		to->bins = calloc(BINS, sizeof(*to->bins));
		if (to->bins == NULL)
			return -ENOMEM;
		to->min = from->min;
		to->max = from->max;
	}
	to->n += from->n;
	to->sum += from->sum;
	to->squares += from->squares;
	to->min = from->min < to->min ? from->min : to->min;
	to->max = from->max > to->max ? from->max : to->max;
	for (uint32_t i = 0; i < BINS; i++)
		to->bins[i] += from->bins[i];
	return 0;
}

/* The lowest bin for which a share Q of all values is in it or below. */
static double quantile(const struct core_distribution *d, double q)
{
	uint64_t wanted = (uint64_t)ceil(q * (double)d->n), seen = 0;
	uint32_t bin = 0;
	double x;

	for (; bin < BINS - 1; bin++) {
		seen += d->bins[bin];
		if (seen >= wanted)
			break;
	}
	x = bin == 0 ? 0 : bin == BINS - 1 ? d->max : (bin_edge(bin) + bin_edge(bin + 1)) / 2;
	return x < d->min ? d->min : x > d->max ? d->max : x;
}

void core_distribution_summary(const struct core_distribution *d, struct sim_summary *s)
{
	double n = (double)d->n, variance;

	*s = (struct sim_summary){.n = d->n};
	if (d->n == 0)
		return;
	s->mean = core_fixed_value(d->sum) / n;
	variance = (double)d->squares / SQUARE_GRID / n - s->mean * s->mean;
	s->sd = variance > 0 ? sqrt(variance) : 0;
	s->min = d->min;
	s->max = d->max;
	s->p50 = quantile(d, 0.50);
	s->p95 = quantile(d, 0.95);
	s->p99 = quantile(d, 0.99);
}

void core_distribution_free(struct core_distribution *d)
{
	free(d->bins);
	d->bins = NULL;
}

int core_stats_merge(struct core_stats *to, const struct core_stats *from)
{
	int ret = core_distribution_merge(&to->slowdown, &from->slowdown);

	if (ret == 0)
		ret = core_distribution_merge(&to->turnaround, &from->turnaround);
	if (ret == 0)
		ret = core_distribution_merge(&to->delay, &from->delay);
	for (int k = 0; ret == 0 && k < SIM_KINDS_MAX; k++)
		ret = core_distribution_merge(&to->kinds[k], &from->kinds[k]);
	to->completed += from->completed;
	to->tasks_started += from->tasks_started;
	to->tasks_ended += from->tasks_ended;
	to->remote += from->remote;
	to->migrations += from->migrations;
	to->queued += from->queued;
	to->decisions += from->decisions;
	to->events += from->events;
	to->moved_mb += from->moved_mb;
	to->last_ms = from->last_ms > to->last_ms ? from->last_ms : to->last_ms;
	return ret;
}

void core_stats_free(struct core_stats *s)
{
	core_distribution_free(&s->slowdown);
	core_distribution_free(&s->turnaround);
	core_distribution_free(&s->delay);
	for (int k = 0; k < SIM_KINDS_MAX; k++)
		core_distribution_free(&s->kinds[k]);
}
