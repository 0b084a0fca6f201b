/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Many tasks: mean value analysis in which an arriving task sees the means of the other tasks
 * (Bard, Schweitzer; each task is a class, so its own part is left out):
 *
 *   processor  R_j = cpu_j E[slowdown by 1 + A], A = sum of the others' Q_cpu
 *   disk       W_j = sum of the others' Q_disk E(s) - U E(s) (1 - c^2) / 2: the waiting requests
 *              and the rest of the one in service
 *   Q          = rate R, by substitution until the totals stop changing; the secant through
 *                two rounds speeds this up
 *
 * A round costs O(tasks) and starts from the last solution.
 */
#include "sim/engine/sharing_private.h"

#define ROUNDS 60
#define CLOSE  1e-4

struct many {
	const struct sharing_machine *m;
	double cpu;	      /* sum of Q_cpu */
	double disk, work_ms; /* sums of Q_disk, Q_disk E(s) */
	double half_done_ms;  /* U E(s) (1 - c^2) / 2 */
	uint32_t n;
};

/* Expected slowdown by sharing among 1 + A tasks; A is about normal. */
static double slowed(const struct many *x, double a)
{
	double mean = 1 + a, variance, sd, z, above;

	if (x->m->cores <= 1)
		return fmax(mean / x->m->crowded, 1);
	variance = a * (1 - a / x->n);
	if (!(variance > 1e-6))
		return mean <= x->m->cores ? 1 : mean / x->m->crowded;
	sd = sqrt(variance);
	z = (mean - x->m->cores) / sd;
	above = erfc(-z * M_SQRT1_2) / 2;
	return 1 - above +
	       (mean * above + sd * exp(-z * z / 2) * M_2_SQRTPI * M_SQRT1_2 / 2) / x->m->crowded;
}

/* Computes one task's cycle: its times at the processor and at the disk. */
static void sharing_many_advance(const struct many *x, struct sharing_task *t, double *cpu_ms,
				 double *disk_ms)
{
	double own_disk = t->rate * t->visits * t->service_ms * t->stretch;
	double own_cpu = fmax(1 - own_disk - t->rate * t->delay_ms, 0), wait;

	*cpu_ms = *disk_ms = 0;
	if (t->cpu_ms > 0)
		*cpu_ms = t->cpu_ms * slowed(x, fmax(x->cpu - own_cpu, 0));
	if (t->visits > 0) {
		wait = x->work_ms - own_disk * t->service_ms;
		if (t->cpu_ms > 0)
			wait -= x->half_done_ms;
		*disk_ms = t->visits * (t->service_ms + fmax(wait, 0));
	}
}

static void totals(struct many *x, const struct sharing_task *t, uint32_t n)
{
	struct sharing_services s = {0};
	double mean, cv2;

	x->cpu = x->disk = x->work_ms = 0;
	for (uint32_t i = 0; i < n; i++) {
		double disk = t[i].rate * t[i].visits * t[i].service_ms * t[i].stretch;

		if (t[i].cpu_ms > 0)
			x->cpu += fmax(1 - disk - t[i].rate * t[i].delay_ms, 0);
		x->disk += disk;
		x->work_ms += disk * t[i].service_ms;
		sharing_services_add(&s, &t[i]);
	}
	cv2 = fmin(sharing_services_cv2(&s, &mean), 1);
	x->half_done_ms = fmin(s.service_ms, 1) * mean * (1 - cv2) / 2;
}

/*
 * Guesses how many tasks are at the processor, by a secant through the last two guesses and their
 * results, and adapts the work at the disk.
 */
static void accelerate(struct many *x, double guess, double *last_guess, double *last_miss)
{
	double miss = x->cpu - guess, slope = (miss - *last_miss) / (guess - *last_guess);
	double total = x->cpu + x->disk, to = x->cpu;

	if (isfinite(slope) && slope < -0.02) {
		to = guess - miss / slope;
		if (!(to > 0 && to < total))
			to = x->cpu;
	}
	*last_guess = guess;
	*last_miss = miss;
	if (x->disk > 0) {
		x->work_ms *= (total - to) / x->disk;
		x->disk = total - to;
		x->cpu = to;
	}
}

void sharing_many(const struct sharing_machine *m, struct sharing_task *t, uint32_t n,
		  struct sharing_load *load)
{
	struct many x = {.m = m, .n = n};
	double guess, last_guess = -1, last_miss = 0;

	for (uint32_t i = 0; i < n; i++) {
		if (!(t[i].rate > 0))
			t[i].rate = 1 / (sharing_alone_ms(&t[i]) * n);
		if (!(t[i].stretch > 0))
			t[i].stretch = 1;
	}
	totals(&x, t, n);
	for (uint32_t round = 0; round < ROUNDS; round++) {
		guess = x.cpu;
		for (uint32_t i = 0; i < n; i++) {
			double cpu_ms, disk_ms, own = t[i].visits * t[i].service_ms;

			sharing_many_advance(&x, &t[i], &cpu_ms, &disk_ms);
			t[i].rate = 1 / (cpu_ms + disk_ms + t[i].delay_ms);
			t[i].stretch = own > 0 ? disk_ms / own : 1;
		}
		totals(&x, t, n);
		if (fabs(x.cpu - guess) < CLOSE * n)
			break;
		accelerate(&x, guess, &last_guess, &last_miss);
	}
	load->at_cpu = x.cpu;
	load->at_disk = x.disk;
	load->cores_busy = sharing_busy(m, t, n, x.cpu);
}
