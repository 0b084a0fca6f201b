/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Zatti's vectors (MODEL 4.4, 4.5): a node's load for its a.vector, a job's r.vector, and the
 * effect of a placement on a copy of the a.vector.
 *
 *   cpu%     = t / elapsed,   i/o rate = requests / elapsed
 *   elapsed  = t + requests E(s), before buffer hits, alone on the machine at hand;
 *              in wall rates requests over the rate that the request has alone
 *   bits     = cpu% >= zatti_cpu_need, i/o rate >= zatti_io_need
 */
#include <float.h>
#include <math.h>

#include "balancer/rules/zatti.h"

#define MS_PER_S 1000.0

double rules_zatti_cpu(const struct rules_zatti_cuts *cuts, bool real, const struct rules_cell *c)
{
	double queue = c->has_zatti ? c->zatti_queue : c->cpu, idle;

	if (!cuts->idle)
		return (queue + real) / c->cores;
	idle = c->has_zatti ? c->zatti_idle : 100 * (1 - queue / c->cores);
	return 100 - (idle > 0 ? idle : 0) * (real ? c->cores : 1);
}

double rules_zatti_io(const struct rules_cell *c)
{
	if (!(c->disk_mb_per_s > 0))
		return DBL_MAX; /* a node without a disk has nothing to offer */
	return c->has_zatti ? c->zatti_blocks : MS_PER_S * c->io;
}

double rules_zatti_free_mb(const struct rules_cell *c)
{
	if (c->has_zatti)
		return c->zatti_free;
	return c->n_mem > 0 ? c->n_mem - c->memory : INFINITY;
}

void rules_zatti_bits(const struct rules_zatti_cuts *cuts, struct rules_zatti_vector *v)
{
	v->cpu = v->cpu_percent > 0 && v->cpu_percent >= cuts->cpu_need;
	v->io = v->blocks_per_s > 0 && v->blocks_per_s >= cuts->io_need;
}

/* Returns how long the job takes when alone. */
static double zatti_load_elapsed_ms(const struct rules_cell *c, const struct rules_request *j,
				    enum rules_rates rates)
{
	double requests = rules_request_count(j, rates);
	double kb = j->request_kb > 0 ? j->request_kb : c->request_kb;
	double elapsed;

	if (rates == RULES_RATES_WALL && j->requests > 0 && j->io_per_ms > 0) {
		elapsed = j->requests / j->io_per_ms;
		return elapsed > j->cpu_ms ? elapsed : j->cpu_ms;
	}
	if (!(c->disk_mb_per_s > 0))
		return j->cpu_ms;
	return j->cpu_ms + requests * rules_service_ms(c->fixed_ms, kb, c->disk_mb_per_s);
}

struct rules_zatti_vector rules_zatti_vector(const struct rules_zatti_cuts *cuts,
					     const struct rules_cell *c,
					     const struct rules_request *j, enum rules_rates rates)
{
	double elapsed = zatti_load_elapsed_ms(c, j, rates);
	struct rules_zatti_vector v = {.memory_mb = j->memory_mb};

	if (elapsed > 0) {
		v.cpu_percent = 100 * j->cpu_ms / elapsed;
		v.blocks_per_s = MS_PER_S * rules_request_count(j, rates) / elapsed;
	}
	if (rates == RULES_RATES_WALL && j->io_per_ms > 0)
		v.blocks_per_s = MS_PER_S * j->io_per_ms;
	rules_zatti_bits(cuts, &v);
	return v;
}

void rules_zatti_charge(const struct rules_zatti_cuts *cuts, struct rules_cell *c,
			const struct rules_request *j, enum rules_rates rates, int sign)
{
	struct rules_zatti_vector v = rules_zatti_vector(cuts, c, j, rates);

	c->spent_cpu += sign * v.cpu;
	c->spent_io += sign * v.io;
	if (!c->has_zatti)
		return;
	c->zatti_queue += sign;
	c->zatti_idle -= sign * v.cpu_percent / c->cores;
	c->zatti_blocks += sign * v.blocks_per_s;
	c->zatti_free -= sign * v.memory_mb;
}
