/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The work that both this simulator and SimGrid do (bench_sim.c, bench_simgrid.cpp): job k computes
 * for an exponential time of 500 ms in equal parts, with 5 reads of 250 KB between them, each
 * 14.25 ms alone.  The processor is half busy.
 */
#ifndef SIMGRID_WORK_H
#define SIMGRID_WORK_H

#include <math.h>
#include <stdint.h>

#define WORK_READS    5
#define WORK_READ_MS  14.25
#define WORK_CPU_MS   500.0
#define WORK_CPU_BUSY 0.5

struct work_job {
	double arrival_ms, cpu_ms;
	uint32_t home;
};

struct work {
	uint64_t state;
	uint32_t nodes;
	double now_ms;
};

static inline double work_uniform(struct work *w)
{
	uint64_t x = w->state += 0x9e3779b97f4a7c15u;

	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
	x ^= x >> 31;
	return ((double)(x >> 12) + 0.5) * 0x1p-52;
}

static inline struct work_job work_next(struct work *w)
{
	struct work_job j;

	w->now_ms -= log(work_uniform(w)) * WORK_CPU_MS / WORK_CPU_BUSY / w->nodes;
	j.arrival_ms = w->now_ms;
	j.cpu_ms = -log(work_uniform(w)) * WORK_CPU_MS;
	j.home = (uint32_t)(work_uniform(w) * w->nodes);
	return j;
}

#endif
