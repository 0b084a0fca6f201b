/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The simulator's random numbers come from a counter-based generator.  A stream is a key (seed,
 * purpose, owner) and a counter, so the numbers of one task do not depend on other tasks, the
 * order of events, the number of threads or the compiler.
 */
#ifndef SIM_RANDOM_H
#define SIM_RANDOM_H

#include <stdint.h>

struct sim_random {
	uint64_t key, counter;
};

/* Makes the stream of OWNER (a job's number, a node's index) for PURPOSE (any constant). */
struct sim_random sim_random_stream(uint64_t seed, uint64_t purpose, uint64_t owner);

/*
 * A 64-bit mix of key and counter.  The sequence is key + counter x gamma with an odd gamma of
 * its own for each key, so that streams are not shifted copies of one another (as in the
 * splittable generators of Steele, Lea and Flood, 2014).  The mix is Stafford's variant 13 of
 * the MurmurHash3 finaliser.
 */
static inline uint64_t sim_random_next(struct sim_random *r)
{
	uint64_t gamma = (r->key << 32 | r->key >> 32) | 1;
	uint64_t x = r->key + ++r->counter * gamma;

	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
	x = (x ^ x >> 27) * 0x94d049bb133111ebu;
	return x ^ x >> 31;
}

/* Uniform in (0, 1): never 0, never 1. */
static inline double sim_random_uniform(struct sim_random *r)
{
	return ((double)(sim_random_next(r) >> 12) + 0.5) * 0x1p-52;
}

/* Draw from an exponential distribution, a Gamma (mean, standard deviation; through GSL)
 * and a Pareto with a least value (mean, shape > 1). */
double sim_random_exponential(struct sim_random *r, double mean);
double sim_random_gamma(struct sim_random *r, double mean, double sd);
double sim_random_pareto(struct sim_random *r, double mean, double shape);
double sim_random_between(struct sim_random *r, double low, double high);
/* Uniform integer in [low, high]. */
uint64_t sim_random_integer(struct sim_random *r, uint64_t low, uint64_t high);

#endif
