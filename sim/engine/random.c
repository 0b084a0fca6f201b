/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Distributions over the counter-based streams of random.h.  GSL draws from a stream through its
 * own generator type; draws that take GSL one line are made here (inverse of the distribution
 * function).
 *
 *   Gamma   mean k s, standard deviation s sqrt(k): shape k = (mean / sd)^2, scale s = sd^2 / mean
 *   Pareto  P(X > x) = (x_m / x)^a, mean x_m a / (a - 1)                   MODEL O-39
 */
#include <math.h>
#include <gsl/gsl_randist.h>
#include <gsl/gsl_rng.h>

#include "sim/random.h"

/* Stafford's variant 13, the last step of sim_random_next. */
static uint64_t random_mix(uint64_t x)
{
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
	x = (x ^ x >> 27) * 0x94d049bb133111ebu;
	return x ^ x >> 31;
}

struct sim_random sim_random_stream(uint64_t seed, uint64_t purpose, uint64_t owner)
{
	const uint64_t golden = 0x9e3779b97f4a7c15u; /* 2^64 over the golden ratio, odd */
	uint64_t key = random_mix(seed + golden);

	key = random_mix((key ^ purpose) + golden);
	key = random_mix((key ^ owner) + golden);
	/* A gamma with few changes between neighbouring bits would mix badly. */
	if (__builtin_popcountll(key ^ key >> 1) < 24)
		key ^= 0xaaaaaaaaaaaaaaaau;
	return (struct sim_random){.key = key};
}

static void stream_set(void *state, unsigned long seed)
{
	*(struct sim_random *)state = sim_random_stream(seed, 0, 0);
}

static unsigned long stream_get(void *state)
{
	return (unsigned long)(sim_random_next(state) >> 32);
}

static double stream_get_double(void *state)
{
	return sim_random_uniform(state);
}

static const gsl_rng_type stream_type = {
	.name = "iocom-stream",
	.max = 0xffffffffu,
	.min = 0,
	.size = sizeof(struct sim_random),
	.set = stream_set,
	.get = stream_get,
	.get_double = stream_get_double,
};

double sim_random_exponential(struct sim_random *r, double mean)
{
	return -mean * log(sim_random_uniform(r));
}

double sim_random_gamma(struct sim_random *r, double mean, double sd)
{
	gsl_rng rng = {.type = &stream_type, .state = r};

	if (!(sd > 0) || !(mean > 0))
		return mean;
	return gsl_ran_gamma(&rng, (mean / sd) * (mean / sd), sd / mean * sd);
}

double sim_random_pareto(struct sim_random *r, double mean, double shape)
{
	double least = mean * (shape - 1) / shape;

	return least * pow(sim_random_uniform(r), -1 / shape);
}

double sim_random_between(struct sim_random *r, double low, double high)
{
	return low + (high - low) * sim_random_uniform(r);
}

/* Lemire's multiplication with the rejection that makes it unbiased. */
uint64_t sim_random_integer(struct sim_random *r, uint64_t low, uint64_t high)
{
	uint64_t range = high - low + 1, least;
	unsigned __int128 product;

	if (range == 0)
		return sim_random_next(r);
	least = -range % range;
	do {
		product = (unsigned __int128)sim_random_next(r) * range;
	} while ((uint64_t)product < least);
	return low + (uint64_t)(product >> 64);
}
