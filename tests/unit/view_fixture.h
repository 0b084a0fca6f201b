/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Views drawn from a seed, for the tests of the view file and of recordings. */
#ifndef VIEW_FIXTURE_H
#define VIEW_FIXTURE_H

#include "tests/unit/rules_fixture.h"

#include "balancer/view/view_json.h"

static inline struct rules_task task_random(struct draws *d)
{
	struct rules_task t = {.request_kb = 250, .reaccess = 5};

	t.cpu_ms = draw(d, 20000);
	t.age_ms = draw(d, t.cpu_ms);
	t.io_per_ms = draw_chance(d, 0.3) ? 0 : draw(d, 2);
	t.memory_mb = draw(d, 300);
	t.faults_per_ms = draw(d, 2);
	t.initial_mb = draw_chance(d, 0.5) ? 0 : draw(d, 100);
	t.written_mb = draw_chance(d, 0.5) ? 0 : draw(d, 10);
	t.com_ms = draw_chance(d, 0.5) ? 0 : draw(d, 3000);
	t.pinned = draw_chance(d, 0.1);
	return t;
}

/* A node as in the papers (tasks) or a live one (measured, advertised). */
static inline struct rules_node view_node_random(struct draws *d, uint32_t i,
						 struct rules_task tasks[6])
{
	struct rules_node n = node_random(d, i);

	n.ntasks = (size_t)draw(d, 7);
	for (size_t t = 0; t < n.ntasks; t++)
		tasks[t] = task_random(d);
	n.tasks = tasks;
	n.has_advertised = draw_chance(d, 0.4);
	n.has_measured = draw_chance(d, 0.4);
	n.has_sharers = draw_chance(d, 0.4);
	n.has_zatti = draw_chance(d, 0.4);
	n.zatti.cpu_idle_percent = draw(d, 100);
	n.zatti.run_queue = draw(d, 8);
	n.zatti.blocks_per_s = draw(d, 40);
	n.zatti.free_mb = draw(d, 900);
	n.burst_mips = draw_chance(d, 0.5) ? 0 : n.cpu_mips * (1 + draw(d, 3));
	n.buffer_mb = draw_chance(d, 0.5) ? 0 : draw(d, n.ram_mb / 2);
	n.age_ms = draw(d, 3000);
	/* A group that is absent is not written, so it has no value. */
	if (!n.has_advertised)
		memset(&n.advertised, 0, sizeof(n.advertised));
	if (!n.has_measured)
		memset(&n.measured, 0, sizeof(n.measured));
	if (n.has_sharers)
		n.sharers =
			(struct rules_sharers){draw(d, 9), draw(d, 9), draw(d, 1e5), draw(d, 1e5)};
	if (!n.has_zatti)
		memset(&n.zatti, 0, sizeof(n.zatti));
	return n;
}

static inline void view_random_job(struct draws *d, struct view_file *v)
{
	v->job = job_random(d);
	v->job.written_mb = draw(d, 3);
	v->job.output_mb = draw_chance(d, 0.5) ? 0 : draw(d, 30);
	v->job.hops = (uint32_t)draw(d, 4);
	v->job.tasks = draw_chance(d, 0.5) ? 1 : 1 + (uint32_t)draw(d, 6);
	if (draw_chance(d, 0.4))
		v->job.requests = -1;
	if (draw_chance(d, 0.5)) {
		v->com_ms = calloc(v->job.tasks, sizeof(double));
		assert_non_null(v->com_ms);
		for (uint32_t i = 1; i < v->job.tasks; i++)
			v->com_ms[i] = draw(d, 4000);
	}
	v->job.com_ms = v->com_ms;
	v->corrections = calloc(v->nnodes, sizeof(*v->corrections));
	assert_non_null(v->corrections);
	if (draw_chance(d, 0.5))
		correct_randomly(&v->job, v->corrections, v->nnodes, draw_bits(d));
}

static inline void view_random(struct draws *d, struct view_file *v)
{
	enum rules_rates rates = draw_chance(d, 0.5) ? RULES_RATES_WALL : RULES_RATES_COMPUTATION;
	uint32_t n = 1 + (uint32_t)draw(d, 12);

	view_file_init(v, rates);
	v->time_ms = draw(d, 1e7);
	v->seed = draw_bits(d) & VIEW_SEED_MAX;
	v->home = (uint32_t)draw(d, n);
	if (draw_chance(d, 0.5))
		v->params.reference_mips = 500 + draw(d, 1000);
	v->params.network_mb_per_s = 10 + draw(d, 500);
	v->params.w_io = draw(d, 1);
	v->params.wal_normalise = draw_chance(d, 0.5);
	for (uint32_t i = 0; i < n; i++) {
		struct rules_task tasks[6];
		struct rules_node node = view_node_random(d, i, tasks);
		uint32_t charges = draw_chance(d, 0.3) ? (uint32_t)draw(d, 3) : 0;

		assert_int_equal(view_file_add(v, &node), 0);
		while (charges--) {
			struct rules_request job = job_random(d);

			assert_int_equal(view_file_charge(v, i, &job), 0);
		}
	}
	view_random_job(d, v);
}

#endif
