/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The cost of a change at the fluid level by the number of tasks on the node: a task ends and
 * leaves, and another enters and runs; each change solves all rates again.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "sim/engine/node_model.h"

#define TASKS_MOST 100
#define CHANGES	   400000.0

struct mix {
	const char *name;
	double io_per_ms, io_spread, cpu_only_share, requests;
};

static const struct mix mixes[] = {
	{"disk-bound, alike", 0.2, 0, 0, -1},
	{"each its own I/O rate", 0.07, 0.9, 0, -1},
	{"half without I/O", 0.1, 0.5, 0.5, -1},
	{"accesses by number", 0.07, 0.5, 0, 1},
};

static double now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static struct node_task task_draw(const struct mix *mix, struct sim_random *r)
{
	double spread = sim_random_between(r, 1 - mix->io_spread, 1 + mix->io_spread);
	double io = sim_random_uniform(r) < mix->cpu_only_share ? 0 : mix->io_per_ms * spread;

	return (struct node_task){
		.cpu_ms = 3000,
		.io_per_ms = io,
		.request_kb = 250,
		.request_sd_kb = 50,
		.reaccess = 0,
		.requests = mix->requests < 0 ? -1 : (double)(int)(3000 * io),
		.memory_mb = 4,
		.random = sim_random_stream(1, 2, sim_random_next(r)),
	};
}

static int begin(struct node_model *m, struct node_task *tasks, uint32_t i, double now)
{
	if (node_enter(m, 0, i, now) < 0)
		return -1;
	return node_run(m, 0, i, tasks[i].cpu_ms, tasks[i].requests, now);
}

static double run(struct node_model *m, struct node_task *tasks, const struct mix *mix,
		  unsigned int changes)
{
	struct sim_random r = sim_random_stream(5, 5, 5);
	double began = now_ns(), now;

	for (unsigned int e = 0; e < changes;) {
		const struct node_done *done;
		uint32_t ended[NODE_DONE_MAX];
		int n = node_step(m, 0, now = node_next(m, 0), &done);

		for (int i = 0; i < n; i++)
			ended[i] = done[i].task;
		for (int i = 0; i < n; i++) {
			node_leave(m, 0, ended[i], now);
			(void)node_next(m, 0);
			tasks[ended[i]] = task_draw(mix, &r);
			begin(m, tasks, ended[i], now);
			(void)node_next(m, 0);
			e += 2;
		}
	}
	return (now_ns() - began) / changes;
}

static int measure(const struct mix *mix, uint32_t n)
{
	struct node_task tasks[TASKS_MOST];
	struct sim_cluster c = {0};
	struct sim_random r = sim_random_stream(3, 3, 3);
	struct node_model *m = NULL;
	struct sim_params p;
	unsigned int changes = (unsigned int)(CHANGES / (5 + n));
	int rc = -1;

	sim_params_default(&p);
	p.fidelity = SIM_FLUID;
	if (sim_cluster_parse(&c, "1xfc", NULL) < 0 || node_model_new(&m, &c, &p, 800) < 0)
		goto out;
	node_model_tasks(m, tasks, sizeof(*tasks), 0);
	for (uint32_t i = 0; i < n; i++) {
		tasks[i] = task_draw(mix, &r);
		if (begin(m, tasks, i, 0) < 0)
			goto out;
	}
	run(m, tasks, mix, changes / 4);
	printf(" %9.0f", run(m, tasks, mix, changes));
	rc = 0;
out:
	node_model_free(m);
	sim_cluster_free(&c);
	return rc;
}

int main(void)
{
	static const uint32_t sizes[] = {1, 2, 3, 5, 10, 20, 30, 100};
	const size_t n = sizeof(sizes) / sizeof(*sizes);

	printf("fluid level, ns a change (a task ends, or one begins), by tasks on the node\n%-24s",
	       "");
	for (size_t i = 0; i < n; i++)
		printf(" %9u", sizes[i]);
	printf("\n");
	for (size_t k = 0; k < sizeof(mixes) / sizeof(*mixes); k++) {
		printf("%-24s", mixes[k].name);
		for (size_t i = 0; i < n; i++) {
			if (measure(&mixes[k], sizes[i]) < 0)
				return 1;
		}
		printf("\n");
	}
	return 0;
}
