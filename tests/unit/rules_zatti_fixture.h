/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Nodes and jobs that the tests of Zatti's matching share. */
#ifndef RULES_ZATTI_FIXTURE_H
#define RULES_ZATTI_FIXTURE_H

#include "balancer/rules/zatti.h"

#include "tests/unit/rules_fixture.h"

static inline struct rules_params wall(void)
{
	struct rules_params p;

	rules_params_default(&p, RULES_RATES_WALL);
	return p;
}

/* A node whose vector has Zatti's fields. */
static inline struct rules_node node_zatti(const char *name, double queue, double blocks,
					   double free_mb)
{
	struct rules_node n = node_fc(name);

	n.has_zatti = true;
	n.zatti.run_queue = queue;
	n.zatti.cpu_idle_percent = queue < 1 ? 100 - 100 * queue : 0;
	n.zatti.blocks_per_s = blocks;
	n.zatti.free_mb = free_mb;
	return n;
}

/* Keys 2, 1 and 3: a job that computes; one with 5 blocks/s for 10 s; one with both. */
static inline struct rules_request needs_cpu(void)
{
	return job_cpu(5000);
}

static inline struct rules_request needs_io(void)
{
	struct rules_request j = job_io(100, 50);

	j.io_per_ms = 0.005;
	return j;
}

static inline struct rules_request needs_both(void)
{
	struct rules_request j = job_io(5000, 50);

	j.io_per_ms = 0.005;
	return j;
}

#endif
