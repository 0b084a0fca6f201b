/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * A processor whose scheduler lowers the priority of CPU hogs (O-50).  It is as simple as
 * possible while showing what the scheduler of 4.2BSD did to probes:
 *
 *   u_j     recent processor time of task j, ms.  It grows while the task computes and decays by
 *           the factor 2n / (2n + 1) per second with n runnable tasks (the digital decay filter
 *           of 4.2BSD), also while the task waits.
 *   w_j     = 1 / (1 + u_j / DECAY_UNIT_MS): its weight
 *   share   w_j / sum of w, of the power of all cores; a task gets at most one core
 *
 * Weights are updated in steps of at most DECAY_STEP_MS.  With tasks <= cores every task runs at
 * full speed, as without decay.  An event costs O(tasks), which suits a few machines.
 */
#include <math.h>

#include "sim/engine/request.h"

#define DECAY_UNIT_MS 100.0
#define DECAY_STEP_MS 50.0
#define MS_PER_S      1000.0

static double forgetting_per_ms(const struct request_node *q)
{
	double n = q->nrunning > 0 ? q->nrunning : 1;

	return log1p(1 / (2 * n)) / MS_PER_S;
}

static double request_decay_weight(const struct node_task *t)
{
	return 1 / (1 + t->burst.usage_ms / DECAY_UNIT_MS);
}

/* Updates the usage to NOW; since the last update the task had RATE of the processor. */
static void usage_follow(struct node_task *t, double rate, double per_ms, double now)
{
	double passed = now - t->burst.usage_at_ms;
	double kept = exp(-per_ms * passed);

	t->burst.usage_ms = t->burst.usage_ms * kept + rate * (1 - kept) / per_ms;
	t->burst.usage_at_ms = now;
}

/*
 * The level L at which the sum over j of min(w_j L, one core) equals the available power; both
 * sides include the cores' efficiency.
 */
static double share_level(const struct node_model *m, const struct request_node *q)
{
	double core = q->crowded / q->cores, power = q->crowded, level = 0;

	for (uint32_t round = 0; round <= q->nrunning; round++) {
		double free_power = power, weights = 0, next;

		for (uint32_t i = 0; i < q->nrunning; i++) {
			double w = request_decay_weight(node_task_of(m, q->running[i].task));

			if (level > 0 && w * level >= core)
				free_power -= core;
			else
				weights += w;
		}
		if (!(weights > 0))
			break;
		next = free_power / weights;
		if (!(next > level))
			break;
		level = next;
	}
	return level;
}

static double request_decay_share(const struct request_node *q, const struct node_task *t)
{
	double core = q->crowded / q->cores;

	if (q->nrunning <= q->cores)
		return q->speed;
	return fmin(request_decay_weight(t) * q->rate, core);
}

void request_decay_enter(struct node_model *m, struct request_node *q, uint32_t task,
			 double length_ms, double now)
{
	struct node_task *t = node_task_of(m, task);

	usage_follow(t, 0, forgetting_per_ms(q), now);
	q->running[q->nrunning++] = (struct request_due){length_ms, task};
}

void request_decay_advance(struct node_model *m, struct request_node *q, double now)
{
	double passed = now - q->cpu_at, per_ms = forgetting_per_ms(q);

	q->cpu_busy_ms += passed * q->cores_busy;
	q->cpu_at = now;
	if (!(passed > 0))
		return;
	for (uint32_t i = 0; i < q->nrunning; i++) {
		struct node_task *t = node_task_of(m, q->running[i].task);
		double rate = request_decay_share(q, t);

		q->running[i].at -= passed * rate;
		usage_follow(t, rate / q->speed, per_ms, now);
	}
}

void request_decay_plan(struct node_model *m, struct request_node *q)
{
	double soonest = q->nrunning > q->cores ? DECAY_STEP_MS : NODE_NEVER;

	q->cores_busy = q->nrunning <= q->cores ? q->nrunning : q->cores;
	q->rate = q->nrunning <= q->cores ? 0 : share_level(m, q);
	for (uint32_t i = 0; i < q->nrunning; i++) {
		double rate = request_decay_share(q, node_task_of(m, q->running[i].task));
		double wait = q->running[i].at > 0 ? q->running[i].at / rate : 0;

		if (wait < soonest)
			soonest = wait;
	}
	q->cpu_next = q->cpu_at + soonest;
}

uint32_t request_decay_ended(const struct request_node *q)
{
	const double nothing_ms = 1e-9; /* tolerates the rounding of the steps */
	uint32_t best = q->nrunning;

	for (uint32_t i = 0; i < q->nrunning; i++) {
		if (q->running[i].at <= nothing_ms &&
		    (best == q->nrunning || q->running[i].at < q->running[best].at))
			best = i;
	}
	return best;
}
