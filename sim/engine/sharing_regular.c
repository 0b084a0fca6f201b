/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * A few tasks whose requests are evenly spread over their computation: nothing in
 * their course is random, and they fall into step (two tasks alike, each waiting
 * for the other's resource as long as it uses its own, do not disturb one another at
 * all), which no formula of means tells.  So their course is followed for some
 * rounds, with mean services, and the progress counted:
 *
 *   burst of cpu / visits at the processor, shared -> one FCFS service -> burst ...
 */
#include <string.h>

#include "sharing_private.h"

#define MAX	    SHARING_REGULAR_MAX
#define ROUNDS	    6  /* of the slowest task, counted, after a third as many that are not */
#define EVENTS	    24 /* at least so many a task */
#define EVENTS_MOST 60 /* and at most */

struct course {
	double burst[MAX], left[MAX]; /* ms of computation of a burst; of this one */
	double computed[MAX];
	bool at_disk[MAX];
	uint32_t queue[MAX], queued, n, computing;
	double service_left, now, busy_ms, cpu_ms, disk_ms;
};

static void enqueue(struct course *c, const struct sharing_task *t, uint32_t j)
{
	c->at_disk[j] = true;
	c->queue[c->queued++] = j;
	if (c->queued == 1)
		c->service_left = t[j].service_ms;
}

/* Who began half a burst ago, who a whole one: the phases that tasks happen to have. */
static void start(struct course *c, const struct sharing_task *t, uint32_t n)
{
	*c = (struct course){.n = n};
	for (uint32_t j = 0; j < n; j++) {
		if (!(t[j].cpu_ms > 0)) {
			enqueue(c, t, j);
			continue;
		}
		c->burst[j] = t[j].visits > 0 ? t[j].cpu_ms / t[j].visits : INFINITY;
		c->left[j] = c->burst[j] * (j + 0.5) / n;
		c->computing++;
	}
}

static void serve_next(struct course *c, const struct sharing_task *t)
{
	uint32_t j = c->queue[0];

	memmove(c->queue, c->queue + 1, --c->queued * sizeof(*c->queue));
	c->at_disk[j] = false;
	if (t[j].cpu_ms > 0) {
		c->left[j] = c->burst[j];
		c->computing++;
	} else {
		enqueue(c, t, j);
		c->computed[j]++;
	}
	if (c->queued > 0)
		c->service_left = t[c->queue[0]].service_ms;
}

/* To the end of a burst or a service. */
static void step(struct course *c, const struct sharing_machine *m, const struct sharing_task *t)
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

static void forget(struct course *c)
{
	memset(c->computed, 0, sizeof(c->computed));
	c->now = c->cpu_ms = c->disk_ms = c->busy_ms = 0;
}

void sharing_regular(const struct sharing_machine *m, struct sharing_task *t, uint32_t n,
		     struct sharing_load *load)
{
	double slowest = 0, round = 0;
	uint32_t most = n * EVENTS_MOST, least = n * EVENTS, events = 0;
	struct course c;

	for (uint32_t j = 0; j < n; j++) {
		if (t[j].visits > 0)
			slowest = fmax(slowest, t[j].cpu_ms / t[j].visits);
		round += t[j].service_ms;
	}
	start(&c, t, n);
	while (events < most && (events < least || c.now < ROUNDS / 3 * (slowest + round))) {
		step(&c, m, t);
		if (++events == least / 3)
			forget(&c);
	}
	for (uint32_t j = 0; j < n; j++)
		t[j].rate = c.computed[j] / c.now / (t[j].cpu_ms > 0 ? t[j].cpu_ms : t[j].visits);
	load->at_cpu = c.cpu_ms / c.now;
	load->at_disk = c.disk_ms / c.now;
	load->cores_busy = c.busy_ms / c.now;
}
