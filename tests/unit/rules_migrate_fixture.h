/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Tasks and calls that the tests of migration share. */
#ifndef RULES_MIGRATE_FIXTURE_H
#define RULES_MIGRATE_FIXTURE_H

#include "balancer/rules/rules_private.h"

#include "tests/unit/rules_fixture.h"

#define MOST_TASKS 24

/* The policies that migrate. */
static const enum rules_policy families[] = {RULES_IOCM_PM, RULES_IO_PM, RULES_MEM_PM, RULES_CPU_PM,
					     RULES_WAL_PM};

static inline struct rules_params computation(void)
{
	struct rules_params p;

	rules_params_default(&p, RULES_RATES_COMPUTATION);
	return p;
}

static inline struct rules_task task_cpu(double cpu_ms, double age_ms)
{
	return (struct rules_task){.cpu_ms = cpu_ms, .age_ms = age_ms, .memory_mb = 4};
}

static inline struct rules_task task_io(double cpu_ms, double io_per_ms)
{
	return (struct rules_task){
		.cpu_ms = cpu_ms, .io_per_ms = io_per_ms, .request_kb = 250, .memory_mb = 4};
}

struct outcome {
	struct rules_move moves[MOST_TASKS];
	size_t n;
	struct rules_plan plan;
};

/* Moves from node 0, which has the given TASKS; the other nodes stay unchanged. */
static inline void migrate(enum rules_policy policy, const struct rules_params *p,
			   struct rules_node *nodes, uint32_t count, const struct rules_task *tasks,
			   size_t ntasks, struct outcome *out)
{
	struct rules *rules = rules_new(policy, p, 1);
	struct rules_view *view;

	nodes[0].tasks = tasks;
	nodes[0].ntasks = ntasks;
	view = view_of(nodes, count, p->rates);
	assert_int_equal(rules_view_keep(view, policy, p), 0);
	assert_int_equal(rules_migrate(rules, view, 0, tasks, ntasks, out->moves, MOST_TASKS,
				       &out->n, &out->plan),
			 0);
	rules_free(rules);
	rules_view_free(view);
}

#endif
