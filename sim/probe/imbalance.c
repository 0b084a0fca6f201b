/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * MODEL 4.8, ZAT-8: how often one machine is idle while another has two jobs or more.  Each of n
 * independent M/M/1 queues of utilisation u holds no job with probability 1 - u, one with
 * u (1 - u) and more with u^2, so that
 *
 *   P = 1 - u^n - (1 - u^2)^n + (u (1 - u))^n
 *       (1 minus: no machine is idle, no machine has two, plus both at once)
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "iocom/array.h"
#include "sim/engine/node_model.h"
#include "sim/probe/probe.h"

#define SERVICE_MS 1000.0 /* mean */
#define HOUR_MS	   3600e3

enum { PURPOSE_QUEUE = 0x50540000 };

double probe_imbalance_exact(double machines, double utilisation)
{
	double u = utilisation, n = machines;

	return 1 - pow(u, n) - pow(1 - u * u, n) + pow(u * (1 - u), n);
}

struct queues {
	struct node_model *model;
	uint32_t n;
	struct node_task *tasks;
	uint32_t room, *unused, nunused;
	double *arrivals; /* time of each machine's next arrival */
	struct sim_random *random;
	double interval_ms;
	double now, both_ms;
};

static int imbalance_grow(struct queues *q)
{
	uint32_t tasks_room = q->room, room = q->room;

	if (array_reserve(q->tasks, tasks_room, q->room + 1, 64))
		return -ENOMEM;
	node_model_tasks(q->model, q->tasks, sizeof(*q->tasks), 0);
	if (array_reserve(q->unused, room, q->room + 1, 64))
		return -ENOMEM;
	for (uint32_t i = q->room; i < room; i++)
		q->unused[q->nunused++] = i;
	q->room = room;
	return 0;
}

static int imbalance_arrive(struct queues *q, uint32_t node)
{
	double cpu_ms = sim_random_exponential(&q->random[node], SERVICE_MS);
	int ret = q->nunused ? 0 : imbalance_grow(q);
	uint32_t task;

	if (ret)
		return ret;
	task = q->unused[--q->nunused];
	q->tasks[task] = (struct node_task){.cpu_ms = cpu_ms, .requests = -1};
	q->arrivals[node] = q->now + sim_random_exponential(&q->random[node], q->interval_ms);
	ret = node_enter(q->model, node, task, q->now);
	return ret ? ret : node_run(q->model, node, task, cpu_ms, -1, q->now);
}

static void imbalance_serve(struct queues *q, uint32_t node)
{
	const struct node_done *done;
	int n = node_step(q->model, node, q->now, &done);
	uint32_t ended[NODE_DONE_MAX];

	for (int i = 0; i < n; i++)
		ended[i] = done[i].task;
	for (int i = 0; i < n; i++) {
		node_leave(q->model, node, ended[i], q->now);
		q->unused[q->nunused++] = ended[i];
	}
}

static bool both(const struct queues *q)
{
	bool idle = false, crowded = false;

	for (uint32_t i = 0; i < q->n; i++) {
		idle |= node_members(q->model, i) == 0;
		crowded |= node_members(q->model, i) >= 2;
	}
	return idle && crowded;
}

/* Handles one event; false: UNTIL is reached. */
static bool imbalance_next(struct queues *q, double until, int *ret)
{
	double at = until;
	uint32_t node = q->n;

	for (uint32_t i = 0; i < q->n; i++) {
		double event = fmin(q->arrivals[i], node_next(q->model, i));

		if (event < at) {
			at = event;
			node = i;
		}
	}
	if (both(q))
		q->both_ms += at - q->now;
	q->now = at;
	if (node == q->n)
		return false;
	if (q->arrivals[node] <= at)
		*ret = imbalance_arrive(q, node);
	else
		imbalance_serve(q, node);
	return !*ret;
}

int probe_imbalance(const struct probe_spec *spec, const struct sim_cluster *cluster,
		    const struct sim_params *p, uint64_t seed, double *share)
{
	struct sim_params plain = *p;
	struct queues q = {.n = cluster->n, .interval_ms = SERVICE_MS / spec->utilisation};
	int ret;

	if (spec->exact) {
		*share = probe_imbalance_exact(cluster->n, spec->utilisation);
		return 0;
	}
	plain.priority_decay = false; /* the jobs of M/M/1 queues have no priorities */
	plain.switch_ms = 0;
	q.arrivals = calloc(q.n, sizeof(*q.arrivals));
	q.random = calloc(q.n, sizeof(*q.random));
	ret = q.arrivals && q.random ? 0 : -ENOMEM;
	if (!ret)
		ret = node_model_new(&q.model, cluster, &plain, cluster->machines[0].cpu_mips);
	for (uint32_t i = 0; i < q.n && !ret; i++) {
		q.random[i] = sim_random_stream(seed, PURPOSE_QUEUE, i);
		q.arrivals[i] = sim_random_exponential(&q.random[i], q.interval_ms);
	}
	while (!ret && imbalance_next(&q, spec->hours * HOUR_MS, &ret))
		;
	*share = q.both_ms / q.now;
	node_model_free(q.model);
	free(q.tasks);
	free(q.unused);
	free(q.arrivals);
	free(q.random);
	return ret;
}
