/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Runs small enough to be computed by hand. */
#include "tests/sim/core_fixture.h"

#define TINY 1e-6

static const enum sim_fidelity fidelities[] = {SIM_REQUEST, SIM_FLUID};

/* 1000 ms of computation and 10 requests of 8 + 250 / 40 = 14.25 ms. */
static void job_alone_has_slowdown_one(void **state)
{
	(void)state;
	for (int f = 0; f < 2; f++) {
		struct sim_result r;
		struct seen seen;
		struct bench b;

		bench_init(&b, "1xfc");
		b.params.fidelity = fidelities[f];
		bench_job(&b, 5, 0, 1000)->requests = 10;
		bench_see(&b, &r, &seen);
		assert_close(seen.end[0], 5 + 1000 + 142.5, TINY);
		assert_close(seen.slowdown[0], 1, 1e-9);
		assert_close(seen.start[0], 5, 0);
		assert_close(r.slowdown.mean, 1, 1e-9);
		assert_close(r.makespan_ms, 1147.5, TINY);
		assert_int_equal(r.disk_requests, 10);
		assert_conserved(&r);
		sim_result_free(&r);
		bench_free(&b);
	}
}

/* 3 tasks with a rate of accesses: with the buffer 5/6 of the accesses hit. */
static void time_alone_follows_the_model(void **state)
{
	struct sim_machine m;
	struct sim_params p;
	struct sim_job j = {.tasks = 1,
			    .cpu_ms = 1000,
			    .io_per_ms = 2,
			    .request_kb = 250,
			    .reaccess = 5,
			    .requests = -1,
			    .memory_mb = 4};

	(void)state;
	sim_params_default(&p);
	assert_int_equal(sim_machine_by_name("fc", &m), 0);
	/* MODEL 1.5: h = 5/6 alone; 2000 accesses, 333.3 of them at the disk */
	assert_close(sim_alone_ms(&j, &m, &p, 800), 1000 + 2000.0 / 6 * 14.25, TINY);
	assert_close(sim_alone_ms(&j, &m, &p, 1600), 2000 + 2000.0 / 6 * 14.25, TINY);
	p.dedicated_buffer = false;
	assert_close(sim_alone_ms(&j, &m, &p, 800), 1000 + 2000 * 14.25, TINY);
	p.cpu_scale = 0.5;
	assert_close(sim_alone_ms(&j, &m, &p, 800), 500 + 1000 * 14.25, TINY);
	/* 960 MB in 480: page = 0.5 x 2 faults per ms, each 8.1 ms */
	j.io_per_ms = 0;
	j.faults_per_ms = 0.5;
	p.memory_scale = 240;
	assert_close(sim_alone_ms(&j, &m, &p, 800), 500 + 500 * 8.1, TINY);
	/* 3 slaves send 500 ms x 0.1 x 100 KB each to the master's port, 125 KB/ms */
	p.memory_scale = 1;
	j.tasks = 4;
	j.messages_per_ms = 0.1;
	j.message_kb = 100;
	assert_close(sim_alone_ms(&j, &m, &p, 800), 500 + 3 * 5000 / 125.0, TINY);
	p.port_contention = false;
	assert_close(sim_alone_ms(&j, &m, &p, 800), 500 + 5000 / 125.0, TINY);
}

static void two_jobs_share_the_processor(void **state)
{
	(void)state;
	for (int f = 0; f < 2; f++) {
		struct sim_result r;
		struct seen seen;
		struct bench b;

		bench_init(&b, "1xfc");
		b.params.fidelity = fidelities[f];
		bench_job(&b, 0, 0, 1000);
		bench_job(&b, 500, 0, 1000);
		bench_see(&b, &r, &seen);
		assert_close(seen.end[0], 1500, TINY);
		assert_close(seen.end[1], 2000, TINY);
		assert_close(r.cpu_utilisation, 1, 1e-9);
		assert_close(r.nodes[0].jobs_mean, 1.5, 1e-9);
		assert_close(r.slowdown.mean, 1.5, 1e-9);
		assert_close(r.delay_ms.mean, 500, TINY);
		sim_result_free(&r);

		/* a switch costs 0.1 ms after each 10 ms while there are two tasks */
		b.params.switch_ms = 0.1;
		bench_see(&b, &r, &seen);
		assert_close(seen.end[0], 500 + 1000 * 1.01, TINY);
		assert_close(seen.end[1], 500 + 1000 * 1.01 + 500, TINY);
		sim_result_free(&r);
		bench_free(&b);
	}
}

/* The second job finds a task at home and moves, at cost e + d (1/net + 1/disk + 1/disk). */
static void remote_execution_takes_its_cost(void **state)
{
	(void)state;
	for (int f = 0; f < 4; f++) {
		struct sim_result r;
		struct seen seen;
		struct bench b;

		bench_init(&b, "2xfc");
		b.params.fidelity = fidelities[f % 2];
		b.params.information_period_ms = f < 2 ? 0 : 100;
		b.params.rules.cpu_threshold = 1;
		b.policy = "cpu-re";
		/* after an idle time: the measured state must count the new task */
		bench_job(&b, 5000, 0, 20000);
		bench_job(&b, 5010, 0, 10000)->initial_mb = 50;
		bench_see(&b, &r, &seen);
		assert_int_equal(seen.node[1], 1);
		assert_int_equal(seen.moves[1], 1);
		assert_close(seen.start[1], 5010 + 100 + 50 * 58, TINY);
		assert_close(seen.end[1], 5010 + 100 + 50 * 58 + 10000, TINY);
		assert_close(seen.end[0], 25000, TINY);
		assert_int_equal(r.remote_executions, 1);
		assert_close(r.moved_mb, 50, 1e-9);
		assert_close(r.disk_utilisation, 0, 0);
		assert_conserved(&r);
		sim_result_free(&r);

		/* as disk work: 1250 ms at each disk, 100 + 400 ms between them */
		b.params.transfer_disk_work = true;
		bench_see(&b, &r, &seen);
		assert_close(seen.start[1], 5010 + 1250 + 500 + 1250, TINY);
		assert_close(r.nodes[0].disk_utilisation, 1250 / r.makespan_ms, 1e-9);
		assert_close(r.nodes[1].disk_utilisation, 1250 / r.makespan_ms, 1e-9);
		sim_result_free(&r);

		/* a transfer never takes less than the latency */
		b.params.transfer_disk_work = false;
		b.params.rules.fixed_cost_ms = 0;
		b.params.network_latency_ms = 7;
		b.jobs[1].initial_mb = 0;
		bench_see(&b, &r, &seen);
		assert_close(seen.start[1], 5017, TINY);
		sim_result_free(&r);
		bench_free(&b);
	}
}

/* With transit_counts a task on its way counts at its target, so the third job goes elsewhere. */
static void tasks_in_transit_count_if_asked(void **state)
{
	struct sim_result r;
	struct seen seen;
	struct bench b;

	(void)state;
	bench_init(&b, "3xfc");
	b.params.rules.cpu_threshold = 1;
	b.params.rules.fixed_cost_ms = 1000;
	b.policy = "cpu-re";
	for (int i = 0; i < 3; i++)
		bench_job(&b, i, 0, 50000);
	bench_see(&b, &r, &seen);
	assert_int_equal(r.remote_executions, 2);
	assert_int_not_equal(seen.node[1], seen.node[2]);
	sim_result_free(&r);
	/* if unseen, both may choose the same node: the seed decides and nothing separates them */
	b.params.transit_counts = false;
	b.cluster.n = 2;
	bench_see(&b, &r, &seen);
	assert_int_equal(seen.node[1], 1);
	assert_int_equal(seen.node[2], 1);
	sim_result_free(&r);
	b.params.transit_counts = true;
	bench_see(&b, &r, &seen);
	assert_int_equal(seen.node[2], 0);
	sim_result_free(&r);
	b.cluster.n = 3;
	bench_free(&b);
}

/*
 * Does the same with old information: with transit_counts a snapshot contains tasks on their way.
 */
static void snapshots_count_transit_if_asked(void **state)
{
	(void)state;
	for (int counts = 0; counts < 2; counts++) {
		struct sim_result r;
		struct seen seen;
		struct bench b;

		bench_init(&b, "2xfc");
		b.params.rules.cpu_threshold = 0;
		b.params.rules.fixed_cost_ms = 1000;
		b.params.information_period_ms = 100;
		b.params.transit_counts = counts;
		b.policy = "cpu-re";
		bench_job(&b, 10, 0, 50000);
		bench_job(&b, 20, 0, 50000);
		bench_job(&b, 30, 1, 1); /* gives node 1 a change of its own */
		bench_job(&b, 210, 0, 50000);
		bench_see(&b, &r, &seen);
		assert_int_equal(seen.node[1], 1);
		assert_int_equal(seen.node[3], counts ? 0 : 1);
		sim_result_free(&r);
		bench_free(&b);
	}
}

/* Old information: until the next snapshot the second home does not know what the first sent. */
static void information_is_as_old_as_its_period(void **state)
{
	struct sim_result r;
	struct seen seen;
	struct bench b;

	(void)state;
	bench_init(&b, "3xfc:cpu=800");
	b.params.rules.cpu_threshold = 0;
	b.policy = "cpu-re";
	/* nodes 0 and 1 have a task each since 1000; both send one more to node 2 */
	for (int i = 0; i < 4; i++)
		bench_job(&b, i < 2 ? 10 : 1010 + i, i % 2, 60000);
	b.params.information_period_ms = 1000;
	bench_see(&b, &r, &seen);
	assert_int_equal(seen.node[2], 2);
	assert_int_equal(seen.node[3], 2);
	sim_result_free(&r);
	/* one home remembers what it sent itself */
	b.jobs[3].home = 0;
	bench_see(&b, &r, &seen);
	assert_int_equal(seen.node[2], 2);
	assert_int_not_equal(seen.node[3], 2);
	sim_result_free(&r);
	/* without a period every node knows at once */
	b.jobs[3].home = 1;
	b.params.information_period_ms = 0;
	bench_see(&b, &r, &seen);
	assert_int_equal(seen.node[2], 2);
	assert_int_equal(seen.node[3], 1);
	sim_result_free(&r);
	bench_free(&b);
}

/* Jobs before the warm-up run but are in no mean; jobs after `until` count as unfinished. */
static void warm_up_and_end_bound_the_measurement(void **state)
{
	struct sim_result r;
	struct bench b;

	(void)state;
	bench_init(&b, "1xfc");
	bench_job(&b, 0, 0, 1000);
	bench_job(&b, 500, 0, 1000);
	bench_job(&b, 3000, 0, 1000);
	b.params.warmup_ms = 400;
	bench_run(&b, &r);
	assert_int_equal(r.completed, 3);
	assert_int_equal(r.slowdown.n, 2);
	assert_close(r.slowdown.mean, 1.25, 1e-9);
	sim_result_free(&r);
	b.params.until_ms = 1700;
	bench_run(&b, &r);
	assert_int_equal(r.arrived, 2);
	assert_int_equal(r.completed, 1);
	assert_int_equal(r.unfinished, 1);
	assert_close(r.makespan_ms, 1700, 0);
	assert_close(r.cpu_utilisation, 1, 1e-9);
	sim_result_free(&r);
	bench_free(&b);
}

static void samples_tell_the_course(void **state)
{
	struct sim_result r;
	struct bench b;

	(void)state;
	bench_init(&b, "2xfc");
	bench_job(&b, 0, 0, 1000);
	bench_job(&b, 500, 0, 1000);
	bench_job(&b, 500, 1, 250)->requests = 10;
	b.params.sample_ms = 400;
	bench_run(&b, &r);
	assert_int_equal(r.nsamples, 5); /* 400, 800 ... 2000; the last job ends at 2000 */
	assert_close(r.samples[0].time_ms, 400, 0);
	assert_close(r.samples[0].cpu_utilisation, 0.5, 1e-9);
	assert_close(r.samples[0].tasks_mean, 0.5, 0);
	assert_close(r.samples[1].tasks_mean, 1.5, 0);
	assert_close(r.samples[1].tasks_max, 2, 0);
	assert_close(r.samples[1].io_imbalance, 2, 1e-9);
	assert_close(r.samples[0].io_imbalance, 0, 0);
	assert_true(r.samples[1].disk_utilisation > 0);
	sim_result_free(&r);
	bench_free(&b);
}

/* The measured state of node 0 as decisions at home 1 see it. */
struct measured {
	unsigned int n;
	double queue[4], utilisation[4], arrivals[4], service[4];
};

static void note_measured(void *arg, double time_ms, const struct sim_job *job,
			  const struct rules_plan *plan, const uint32_t *nodes,
			  const struct sim_look *look)
{
	struct measured *m = arg;
	struct rules_node n;

	(void)time_ms, (void)plan, (void)nodes;
	if (job->home != 1)
		return;
	assert_int_equal(sim_look_node(look, 0, &n), 0);
	assert_true(n.has_measured);
	m->queue[m->n] = n.measured.cpu_queue;
	m->utilisation[m->n] = n.measured.disk_utilisation;
	m->arrivals[m->n] = n.measured.disk_arrivals_per_ms;
	m->service[m->n++] = n.measured.service_ms;
}

/* The measured window ends now and began at the end of the last 1 s window but one. */
static void what_is_measured_is_of_the_last_windows(void **state)
{
	(void)state;
	for (int f = 0; f < 4; f++) {
		struct measured m = {0};
		struct sim_result r;
		struct bench b;

		bench_init(&b, "2xfc");
		b.params.fidelity = fidelities[f % 2];
		b.params.information_period_ms = f < 2 ? 0 : 100;
		b.policy = "cpu-re";
		/* computes 500 ms, and 10 x 14.25 ms at the disk: done at 842.5 */
		bench_job(&b, 200, 0, 500)->requests = 10;
		/* another task stays: it is in the measured state from 3000 on */
		bench_job(&b, 3000, 0, 5000);
		bench_job(&b, 1300, 1, 10);
		bench_job(&b, 2300, 1, 10);
		bench_job(&b, 3600, 1, 10);
		bench_job(&b, 5700, 1, 10);
		b.jobs[1].id = 3, b.jobs[2].id = 1, b.jobs[3].id = 2;
		{
			struct sim_job late = b.jobs[1];

			b.jobs[1] = b.jobs[2];
			b.jobs[2] = b.jobs[3];
			b.jobs[3] = late;
		}
		b.run.decided = note_measured;
		b.run.arg = &m;
		bench_run(&b, &r);
		assert_int_equal(m.n, 4);
		assert_close(m.utilisation[0], 142.5 / 1300, 1e-9);
		assert_close(m.arrivals[0], 10.0 / 1300, 1e-9);
		assert_close(m.service[0], 14.25, 1e-9);
		/* the node is empty: the queue cannot be longer than the number of tasks */
		assert_close(m.queue[0], 0, 0);
		assert_close(m.utilisation[1], 0, 0);
		assert_close(m.arrivals[1], 0, 0);
		/* since 2000 the task was there for 600 of 1600, and counts for the rest */
		assert_close(m.queue[2], 1, 1e-9);
		assert_close(m.queue[3], 1, 1e-9);
		sim_result_free(&r);
		bench_free(&b);
	}
}

/* Windows in which nothing happened and no decision looked are skipped. */
static void idle_windows_are_passed_over(void **state)
{
	(void)state;
	for (int f = 0; f < 4; f++) {
		struct measured m = {0};
		struct sim_result r;
		struct bench b;

		bench_init(&b, "2xfc");
		b.params.fidelity = fidelities[f % 2];
		b.params.information_period_ms = f < 2 ? 0 : 100;
		b.policy = "cpu-re";
		bench_job(&b, 200, 0, 500)->requests = 10;
		bench_job(&b, 3700, 1, 10);
		b.run.decided = note_measured;
		b.run.arg = &m;
		bench_run(&b, &r);
		assert_int_equal(m.n, 1);
		assert_close(m.utilisation[0], 0, 0);
		assert_close(m.service[0], 0, 0);
		sim_result_free(&r);
		bench_free(&b);
	}
}

/* Two jobs that end together are reported in their order, wherever they ran. */
static void completions_come_in_order(void **state)
{
	struct sim_result r;
	struct seen seen;
	struct bench b;

	(void)state;
	bench_init(&b, "3xfc");
	for (uint32_t i = 0; i < 9; i++)
		bench_job(&b, 100 * (i / 3), 2 - i % 3, 50);
	bench_see(&b, &r, &seen);
	assert_close(seen.end[8], 250, TINY);
	sim_result_free(&r);
	bench_free(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(job_alone_has_slowdown_one),
		cmocka_unit_test(time_alone_follows_the_model),
		cmocka_unit_test(two_jobs_share_the_processor),
		cmocka_unit_test(remote_execution_takes_its_cost),
		cmocka_unit_test(tasks_in_transit_count_if_asked),
		cmocka_unit_test(snapshots_count_transit_if_asked),
		cmocka_unit_test(information_is_as_old_as_its_period),
		cmocka_unit_test(warm_up_and_end_bound_the_measurement),
		cmocka_unit_test(samples_tell_the_course),
		cmocka_unit_test(what_is_measured_is_of_the_last_windows),
		cmocka_unit_test(idle_windows_are_passed_over),
		cmocka_unit_test(completions_come_in_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
