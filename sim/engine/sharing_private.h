/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* The solvers: sharing_pair.c, sharing_regular.c, sharing_exact.c, sharing_many.c. */
#ifndef SIM_SHARING_PRIVATE_H
#define SIM_SHARING_PRIVATE_H

#include <math.h>
#include <stdbool.h>

#include "sim/engine/sharing.h"

#define SHARING_CV2_LEAST 1e-6 /* the least squared variation of services */

/* Total power that N tasks at the processor get. */
static inline double sharing_power(const struct sharing_machine *m, double n)
{
	return n <= m->cores ? n : m->crowded;
}

/* Probability that no Poisson arrival falls in a Gamma service; X is the mean number of
 * arrivals. */
static inline double sharing_no_arrival(double x, double cv2)
{
	if (cv2 < SHARING_CV2_LEAST)
		cv2 = SHARING_CV2_LEAST;
	return exp(-log1p(x * cv2) / cv2);
}

static inline double sharing_alone_ms(const struct sharing_task *t)
{
	return t->cpu_ms + t->delay_ms + t->visits * t->service_ms;
}

/* Cores kept busy by this progress, including time lost in switching between more tasks
 * than cores. */
static inline double sharing_busy(const struct sharing_machine *m, const struct sharing_task *t,
				  uint32_t n, double at_cpu)
{
	double useful = 0;

	for (uint32_t i = 0; i < n; i++)
		useful += t[i].cpu_ms * t[i].rate;
	if (at_cpu > m->cores)
		useful *= m->cores / m->crowded;
	return fmin(useful, m->cores);
}

static inline double sharing_cv2(const struct sharing_task *t)
{
	double mean2 = t->service_ms * t->service_ms;

	return mean2 > 0 && t->service_ms2 > mean2 ? t->service_ms2 / mean2 - 1 : 0;
}

/* How much services of different tasks mix in the others' waiting, 0 to 1. */
#define SHARING_MIX 0.3

/* The disk's services as one stream; each weight is a task's requests per ms. */
struct sharing_services {
	double requests, service_ms, within, service_ms2;
};

static inline void sharing_services_add(struct sharing_services *s, const struct sharing_task *t)
{
	double x = t->visits * t->rate;

	s->requests += x;
	s->service_ms += x * t->service_ms;
	s->service_ms2 += x * t->service_ms2;
	s->within += x * (t->service_ms2 - t->service_ms * t->service_ms);
}

/* Squared coefficient of variation of the stream's services; *MEAN is their mean. */
static inline double sharing_services_cv2(const struct sharing_services *s, double *mean)
{
	double m, all, within;

	*mean = 0;
	if (!(s->requests > 0) || !(s->service_ms > 0))
		return 1;
	*mean = m = s->service_ms / s->requests;
	all = s->service_ms2 / s->requests / (m * m) - 1;
	within = s->within / s->requests / (m * m);
	return within + SHARING_MIX * (all - within);
}

#define SHARING_REGULAR_MAX 32 /* most tasks whose course is simulated */
#ifndef SHARING_MIXED_MAX
#define SHARING_MIXED_MAX 12
#endif
void sharing_regular(const struct sharing_machine *m, struct sharing_task *t, uint32_t n,
		     struct sharing_load *load);
void sharing_pair(const struct sharing_machine *m, struct sharing_task *t,
		  struct sharing_load *load);
void sharing_exact(const struct sharing_machine *m, struct sharing_task *t, uint32_t n,
		   struct sharing_load *load);
void sharing_many(const struct sharing_machine *m, struct sharing_task *t, uint32_t n,
		  struct sharing_load *load);

#endif
