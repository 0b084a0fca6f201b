/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Tasks whose requests are evenly spread over their computation.  Nothing in their course is
 * random, so they fall into step: two equal tasks, each computing as long as the other uses the
 * disk, do not disturb each other at all.  No formula of means shows this.  So we simulate all
 * tasks for some rounds and count their progress:
 *
 *   burst of cpu / visits at the processor, shared -> one FCFS service -> burst ...
 *
 * Tasks that are not regular have exponential bursts.  Services are uniform with their mean and
 * variance.  Both are taken at the quantiles of an even sequence (the multiples of an irrational
 * number), of which a few values already show the distribution.
 */
#include <string.h>

#include "sim/engine/sharing_private.h"

#define MAX	    SHARING_REGULAR_MAX
#define ROUNDS	    6 /* counted rounds of the slowest task */
#define GOLDEN	    0.61803398874989485
#define PLASTIC	    0.75487766624669276
#define UNIFORM	    3.4641016151377544 /* width of a uniform distribution of deviation 1 */
#define EVENTS	    24		       /* least number of events for each task */
#define EVENTS_FEW  8		       /* number of tasks that this applies to */
#define EVENTS_MORE 6		       /* least number for each further task */

struct course {
	double burst[MAX], left[MAX]; /* computation of a burst in ms; what is left of the present
				       * one */
	double computed[MAX];
	double cv[MAX];			       /* variation of services */
	double burst_at[MAX], service_at[MAX]; /* quantiles */
	bool at_disk[MAX];
	uint32_t queue[MAX], queued, n, computing;
	double service_left, now, busy_ms, cpu_ms, disk_ms;
};

static double even_sequence(double *at, double step)
{
	*at += step;
	*at -= floor(*at);
	return *at;
}

static double burst_next(struct course *c, const struct sharing_task *t, uint32_t j)
{
	if (t[j].regular)
		return c->burst[j];
	return c->burst[j] * -log1p(-even_sequence(&c->burst_at[j], GOLDEN));
}

static void sharing_regular_serve(struct course *c, const struct sharing_task *t)
{
	uint32_t j = c->queue[0];
	double u = even_sequence(&c->service_at[j], PLASTIC);

	c->service_left = fmax(t[j].service_ms * (1 + c->cv[j] * UNIFORM * (u - 0.5)), 0);
}

static void enqueue(struct course *c, const struct sharing_task *t, uint32_t j)
{
	c->at_disk[j] = true;
	c->queue[c->queued++] = j;
	if (c->queued == 1)
		sharing_regular_serve(c, t);
}

/* Starts the tasks at different places of their first burst, as real tasks would be. */
static void sharing_regular_start(struct course *c, const struct sharing_task *t, uint32_t n)
{
	*c = (struct course){.n = n};
	for (uint32_t j = 0; j < n; j++) {
		c->cv[j] = sqrt(sharing_cv2(&t[j]));
		c->burst_at[j] = c->service_at[j] = (j + 0.5) / n;
		if (!(t[j].cpu_ms > 0)) {
			enqueue(c, t, j);
			continue;
		}
		c->burst[j] = t[j].visits > 0 ? t[j].cpu_ms / t[j].visits : 0;
		c->left[j] = t[j].visits > 0 ? burst_next(c, t, j) : INFINITY;
		if (t[j].regular)
			c->left[j] *= (j + 0.5) / n;
		c->computing++;
	}
}

static void serve_next(struct course *c, const struct sharing_task *t)
{
	uint32_t j = c->queue[0];

	memmove(c->queue, c->queue + 1, --c->queued * sizeof(*c->queue));
	c->at_disk[j] = false;
	if (t[j].cpu_ms > 0) {
		c->left[j] = burst_next(c, t, j);
		c->computing++;
	} else {
		enqueue(c, t, j);
		c->computed[j]++;
	}
	if (c->queued > 0)
		sharing_regular_serve(c, t);
}

/* Advances to the next end of a burst or a service. */
static void sharing_regular_step(struct course *c, const struct sharing_machine *m,
				 const struct sharing_task *t)
{
	double each = c->computing > 0 ? sharing_power(m, c->computing) / c->computing : 0;
	double soonest = INFINITY, passed;
	uint32_t first = c->n;

	for (uint32_t j = 0; j < c->n; j++) {
		if (!c->at_disk[j] && c->left[j] < soonest) {
			soonest = c->left[j];
			first = j;
		}
	}
	passed = first < c->n ? soonest / each : INFINITY;
	if (c->queued > 0 && c->service_left <= passed) {
		passed = c->service_left;
		first = c->n;
	}
	for (uint32_t j = 0; j < c->n; j++) {
		if (!c->at_disk[j]) {
			c->left[j] -= each * passed;
			c->computed[j] += each * passed;
		}
	}
	c->now += passed;
	c->cpu_ms += passed * c->computing;
	c->disk_ms += passed * (c->n - c->computing);
	c->busy_ms += passed * fmin(c->computing, m->cores);
	c->service_left -= passed;
	if (first == c->n) {
		serve_next(c, t);
	} else {
		c->computing--;
		enqueue(c, t, first);
	}
}

static void sharing_regular_forget(struct course *c)
{
	memset(c->computed, 0, sizeof(c->computed));
	c->now = c->cpu_ms = c->disk_ms = c->busy_ms = 0;
}

/*
 * The counted rate, limited for tasks whose cycle is longer than the simulation: not faster than
 * alone, and not slower than if each request waited for a service of every task.
 */
static double counted_rate(const struct course *c, const struct sharing_machine *m,
			   const struct sharing_task *t, uint32_t j, double round_ms)
{
	double counted = c->computed[j] / c->now / (t->cpu_ms > 0 ? t->cpu_ms : t->visits);
	double slowest = 1 / (t->cpu_ms * c->n / m->crowded + t->visits * round_ms);

	return fmin(fmax(counted, slowest), 1 / sharing_alone_ms(t));
}

void sharing_regular(const struct sharing_machine *m, struct sharing_task *t, uint32_t n,
		     struct sharing_load *load)
{
	double slowest = 0, round = 0;
	uint32_t few = n < EVENTS_FEW ? n : EVENTS_FEW, events = 0;
	uint32_t least = few * EVENTS + (n - few) * EVENTS_MORE, most = 5 * least / 2;
	struct course c;

	for (uint32_t j = 0; j < n; j++) {
		if (t[j].visits > 0)
			slowest = fmax(slowest, t[j].cpu_ms / t[j].visits);
		round += t[j].service_ms;
	}
	sharing_regular_start(&c, t, n);
	while (events < most && (events < least || c.now < ROUNDS / 3 * (slowest + round))) {
		sharing_regular_step(&c, m, t);
		if (++events == least / 3)
			sharing_regular_forget(&c);
	}
	for (uint32_t j = 0; j < n; j++)
		t[j].rate = counted_rate(&c, m, &t[j], j, round);
	load->at_cpu = c.cpu_ms / c.now;
	load->at_disk = c.disk_ms / c.now;
	load->cores_busy = c.busy_ms / c.now;
}
