/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Jobs of several tasks, computed by hand: barriers, messages, migration, the batch queue. */
#include "tests/sim/core_fixture.h"

#define TINY 1e-6

static const enum sim_fidelity fidelities[] = {SIM_REQUEST, SIM_FLUID};

/* Puts one task on each node from home on, whatever the load (O-17). */
static void spread(struct bench *b)
{
	b->policy = "nlb";
	b->params.rules.parallel_start = 1;
}

static void the_slowest_task_decides_each_phase(void **state)
{
	(void)state;
	for (int f = 0; f < 2; f++) {
		struct sim_result r;
		struct seen seen;
		struct sim_job *j;
		struct bench b;

		bench_init(&b, "1xfc+1xfc:cpu=400");
		b.params.fidelity = fidelities[f];
		b.params.rules.reference_mips = 800;
		spread(&b);
		j = bench_job(&b, 0, 0, 300);
		j->tasks = 2;
		j->barrier_ms = 100;
		bench_see(&b, &r, &seen);
		/* task 1 arrives at 100 and takes 200 per phase, three times */
		assert_close(seen.end[0], 700, TINY);
		assert_close(seen.slowdown[0], 700.0 / 300, 1e-9);
		assert_int_equal(r.remote_executions, 1);
		assert_conserved(&r);
		sim_result_free(&r);

		/* without barriers the slow task takes 600 by itself */
		j->barrier_ms = 0;
		bench_see(&b, &r, &seen);
		assert_close(seen.end[0], 700, TINY);
		assert_close(r.nodes[0].cpu_utilisation, 300 / 700.0, 1e-9);
		sim_result_free(&r);

		/* 250 ms are phases of 100, 100 and 50 */
		j->barrier_ms = 100;
		j->cpu_ms = 250;
		bench_see(&b, &r, &seen);
		assert_close(seen.end[0], 100 + 200 + 200 + 100, TINY);
		sim_result_free(&r);
		bench_free(&b);
	}
}

/* The 5 accesses are divided among 3 phases: none is lost, none is made twice. */
static void given_accesses_are_dealt_out_to_the_phases(void **state)
{
	(void)state;
	for (int f = 0; f < 2; f++) {
		struct sim_result r;
		struct seen seen;
		struct sim_job *j;
		struct bench b;

		bench_init(&b, "2xfc");
		b.params.fidelity = fidelities[f];
		spread(&b);
		j = bench_job(&b, 0, 0, 300);
		j->tasks = 2;
		j->barrier_ms = 100;
		j->requests = 5;
		bench_see(&b, &r, &seen);
		assert_int_equal(r.disk_requests, 10);
		assert_close(seen.end[0], 100 + 300 + 5 * 14.25, TINY);
		sim_result_free(&r);
		bench_free(&b);
	}
}

/* Two slaves send 100 ms x 1 x 10 KB each to the master: 125 KB/ms into its port. */
static void flows_share_the_ports(void **state)
{
	struct sim_result r;
	struct seen seen;
	struct sim_job *j;
	struct bench b;

	(void)state;
	bench_init(&b, "3xfc");
	spread(&b);
	j = bench_job(&b, 0, 0, 100);
	j->tasks = 3;
	j->barrier_ms = 100;
	j->messages_per_ms = 1;
	j->message_kb = 10;
	bench_see(&b, &r, &seen);
	assert_close(seen.end[0], 100 + 100 + 16, TINY);
	assert_close(seen.slowdown[0], 216.0 / 116, 1e-9);
	assert_conserved(&r);
	sim_result_free(&r);

	b.params.port_contention = false;
	bench_see(&b, &r, &seen);
	assert_close(seen.end[0], 208, TINY);
	sim_result_free(&r);

	/* the slower port limits: slave 1 at 25 KB/ms, then alone at the master's port */
	b.params.port_contention = true;
	b.cluster.machines[1].network_mb_per_s = 25;
	bench_see(&b, &r, &seen);
	assert_close(seen.end[0], 200 + 1000 / 25.0, TINY);
	sim_result_free(&r);

	/* no message takes less than the latency */
	b.cluster.machines[1].network_mb_per_s = 125;
	b.params.network_latency_ms = 30;
	bench_see(&b, &r, &seen);
	assert_close(seen.end[0], 230, TINY);
	sim_result_free(&r);
	bench_free(&b);
}

/* Four tasks of 100 ms that send 1 MB each to the master: over slow links they stay together. */
static void least_delay_weighs_messages_against_processors(void **state)
{
	static const struct {
		double mb_per_s;
		bool whole;
		double end;
	} cases[] = {
		{0.1, true, 400},	 /* one node: 4 x 100 ms, no messages */
		{1000, true, 100 + 3},	 /* one each: 3 MB into the master's port of 1,000 MB/s */
		{0.1, false, 100 + 3e4}, /* a task after the other, each to an idle node */
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct sim_result r;
		struct seen seen;
		struct sim_job *j;
		struct bench b;

		bench_init(&b, "4xfc");
		b.policy = "least-delay";
		b.params.network_latency_ms = 0;
		b.params.rules.fixed_cost_ms = 0;
		b.params.switch_ms = 0;
		b.params.whole_gangs = cases[i].whole;
		for (int n = 0; n < 4; n++)
			b.cluster.machines[n].network_mb_per_s = cases[i].mb_per_s;
		j = bench_job(&b, 0, 0, 100);
		j->tasks = 4;
		j->messages_per_ms = 1;
		j->message_kb = 10;
		bench_see(&b, &r, &seen);
		assert_close(seen.end[0], cases[i].end, 1);
		assert_conserved(&r);
		sim_result_free(&r);
		bench_free(&b);
	}
}

/* A flow starts while another is half done: 500 KB alone, then at half the rate. */
static void flows_of_two_jobs_meet(void **state)
{
	struct sim_result r;
	struct seen seen;
	struct bench b;

	(void)state;
	bench_init(&b, "2xfc:cores=2");
	spread(&b);
	/* both masters on node 0: their slaves' flows of 1000 KB meet at its port */
	for (int i = 0; i < 2; i++) {
		struct sim_job *j = bench_job(&b, i * 4, 0, 1000);

		j->tasks = 2;
		j->messages_per_ms = 1;
		j->message_kb = 1;
	}
	bench_see(&b, &r, &seen);
	/* job 0 sends 500 KB alone until 1104; then both get 62.5 KB/ms until its other 500 KB are
	 * sent */
	assert_close(seen.end[0], 1104 + 500 / 62.5, TINY);
	assert_close(seen.end[1], 1112 + 500 / 125.0, TINY);
	sim_result_free(&r);
	bench_free(&b);
}

static void messages_inside_a_node_are_free_if_asked(void **state)
{
	struct sim_result r;
	struct seen seen;
	struct sim_job *j;
	struct bench b;

	(void)state;
	bench_init(&b, "1xfc");
	j = bench_job(&b, 0, 0, 100);
	j->tasks = 2;
	j->barrier_ms = 100;
	j->messages_per_ms = 1;
	j->message_kb = 10;
	bench_see(&b, &r, &seen);
	assert_close(seen.end[0], 200, TINY);
	sim_result_free(&r);
	b.params.local_messages_free = false;
	bench_see(&b, &r, &seen);
	assert_close(seen.end[0], 208, TINY);
	sim_result_free(&r);
	bench_free(&b);
}

/* Preempted tasks do exactly their work and pay the cost of 2.4. */
static void migration_preserves_work(void **state)
{
	(void)state;
	for (int f = 0; f < 4; f++) {
		struct sim_result r;
		struct bench b;
		double busy = 0;

		bench_init(&b, "3xfc");
		b.params.fidelity = fidelities[f % 2];
		b.params.information_period_ms = f < 2 ? 0 : 50;
		b.params.rules.fixed_cost_ms = 1e6; /* no task moves before it starts ... */
		b.params.rules.migration_fixed_ms = 10;
		b.policy = "io-pm"; /* ... but tasks move while they run */
		for (int i = 0; i < 12; i++)
			bench_job(&b, 100 * i, 0, 2000)->requests = 100;
		bench_run(&b, &r);
		assert_true(r.migrations > 0);
		assert_int_equal(r.remote_executions, 0);
		assert_conserved(&r);
		assert_int_equal(r.disk_requests, 1200);
		for (uint32_t i = 0; i < r.nnodes; i++)
			busy += r.nodes[i].cpu_utilisation * r.makespan_ms;
		assert_close(busy, 12 * 2000, 1e-6 * 24000);
		sim_result_free(&r);
		bench_free(&b);
	}
}

/* A long job is at home and one more arrives: the first is moved, since its age pays the cost. */
static void a_migrant_goes_on_where_it_was(void **state)
{
	(void)state;
	for (int f = 0; f < 2; f++) {
		struct sim_result r;
		struct seen seen;
		struct bench b;

		bench_init(&b, "2xfc");
		b.params.fidelity = fidelities[f];
		b.params.rules.cpu_threshold = 1;
		b.params.rules.fixed_cost_ms = 1e6;
		b.params.rules.migration_fixed_ms = 10;
		b.policy = "cpu-pm";
		bench_job(&b, 0, 0, 10000)->memory_mb = 25;
		bench_job(&b, 5000, 0, 8000)->memory_mb = 25;
		bench_see(&b, &r, &seen);
		assert_int_equal(r.migrations, 1);
		assert_int_equal(seen.moves[0], 1);
		/* 10 + 25 MB / 125 MB/s; 5000 ms were done, 5000 are left */
		assert_close(seen.end[0], 5000 + 210 + 5000, TINY);
		assert_int_equal(seen.node[0], 1);
		assert_close(seen.end[1], 13000, TINY);
		assert_close(r.moved_mb, 25, 1e-9);
		sim_result_free(&r);
		bench_free(&b);
	}
}

/* Two nodes.  A job that needs both waits for the first; a job of one task waits behind it. */
static void the_batch_queue_is_first_come_first_served(void **state)
{
	struct sim_result r;
	struct seen seen;
	struct bench b;

	(void)state;
	bench_init(&b, "2xfc");
	b.policy = "bs";
	b.params.rules.fixed_cost_ms = 0;
	b.params.network_latency_ms = 0;
	bench_job(&b, 0, 0, 1000);
	bench_job(&b, 10, 0, 500)->tasks = 2;
	bench_job(&b, 20, 1, 100);
	bench_see(&b, &r, &seen);
	assert_close(seen.start[1], 1000, TINY);
	assert_close(seen.start[2], 1500, TINY);
	assert_int_equal(r.queued, 2);
	assert_close(seen.slowdown[1], 1490 / 500.0, 1e-9);
	assert_conserved(&r);
	sim_result_free(&r);

	b.params.bs_backfill = true;
	bench_see(&b, &r, &seen);
	assert_close(seen.start[2], 20, TINY);
	assert_close(seen.start[1], 1000, TINY);
	assert_int_equal(r.queued, 1);
	sim_result_free(&r);
	bench_free(&b);
}

/* The head of the queue does not fit yet, so jobs behind it must not start either. */
static void nobody_passes_the_head_of_the_queue(void **state)
{
	struct sim_result r;
	struct seen seen;
	struct bench b;

	(void)state;
	bench_init(&b, "2xfc");
	b.policy = "bs";
	b.params.rules.fixed_cost_ms = 0;
	b.params.network_latency_ms = 0;
	bench_job(&b, 0, 0, 1000);
	bench_job(&b, 0, 1, 300);
	bench_job(&b, 10, 0, 500)->tasks = 2;
	bench_job(&b, 20, 1, 100);
	bench_job(&b, 30, 1, 100);
	bench_see(&b, &r, &seen);
	assert_close(seen.start[2], 1000, TINY);
	assert_close(seen.start[3], 1500, TINY);
	assert_close(seen.start[4], 1500, TINY);
	sim_result_free(&r);
	b.params.bs_backfill = true;
	bench_see(&b, &r, &seen);
	assert_close(seen.start[3], 300, TINY);
	assert_close(seen.start[4], 400, TINY);
	assert_close(seen.start[2], 1000, TINY);
	sim_result_free(&r);
	bench_free(&b);
}

/* With old information a home must remember where it sent its migrants. */
static void a_home_remembers_its_migrants(void **state)
{
	struct sim_result r;
	struct seen seen;
	struct bench b;

	(void)state;
	bench_init(&b, "3xfc");
	b.params.information_period_ms = 100000;
	b.params.rules.cpu_threshold = 1;
	b.params.rules.fixed_cost_ms = 1e6;
	b.params.rules.migration_fixed_ms = 10;
	b.policy = "cpu-pm";
	bench_job(&b, 0, 0, 20000);
	bench_job(&b, 5000, 0, 20000);
	bench_job(&b, 10000, 0, 20000);
	bench_see(&b, &r, &seen);
	assert_int_equal(r.migrations, 2);
	assert_int_equal(seen.moves[0], 1);
	assert_int_equal(seen.moves[1], 1);
	assert_int_not_equal(seen.node[0], seen.node[1]);
	assert_int_equal(seen.node[2], 0);
	sim_result_free(&r);
	bench_free(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_slowest_task_decides_each_phase),
		cmocka_unit_test(given_accesses_are_dealt_out_to_the_phases),
		cmocka_unit_test(flows_share_the_ports),
		cmocka_unit_test(least_delay_weighs_messages_against_processors),
		cmocka_unit_test(flows_of_two_jobs_meet),
		cmocka_unit_test(messages_inside_a_node_are_free_if_asked),
		cmocka_unit_test(migration_preserves_work),
		cmocka_unit_test(a_migrant_goes_on_where_it_was),
		cmocka_unit_test(the_batch_queue_is_first_come_first_served),
		cmocka_unit_test(nobody_passes_the_head_of_the_queue),
		cmocka_unit_test(a_home_remembers_its_migrants),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
