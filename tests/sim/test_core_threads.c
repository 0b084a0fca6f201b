/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * A run on several threads gives the same bytes as on one, however the nodes are divided.  A run
 * that cannot have several threads says why.
 */
#include "tests/sim/core_fixture.h"

static void mix_init(struct bench *b, const char *cluster)
{
	bench_init(b, cluster);
	b->params.switch_ms = 0.1;
	b->params.information_period_ms = 700;
	b->params.rules.fixed_cost_ms = 200;
	b->generator.jobs = 2000;
	b->generator.interarrival_ms = 2600.0 / b->cluster.n;
	b->generator.home_skew = 0.4;
	b->generator.kinds = 2;
	b->generator.kind[0].io_per_ms = 0.08;
	b->generator.kind[0].io_uniform = true;
	b->generator.kind[0].initial_mb = 3;
	b->generator.kind[1] = b->generator.kind[0];
	b->generator.kind[1].memory_mean_mb = 10;
	b->generator.kind[1].write_fraction = 0.1;
}

static void same_summary(const struct sim_summary *a, const struct sim_summary *b)
{
	assert_memory_equal(a, b, sizeof(*a));
}

/* Compares everything except the fields about threads and their memory. */
static void same(struct sim_result *a, struct sim_result *b)
{
	same_summary(&a->slowdown, &b->slowdown);
	same_summary(&a->turnaround_ms, &b->turnaround_ms);
	same_summary(&a->delay_ms, &b->delay_ms);
	for (int k = 0; k < SIM_KINDS_MAX; k++)
		same_summary(&a->kind_slowdown[k], &b->kind_slowdown[k]);
	assert_int_equal(a->nnodes, b->nnodes);
	assert_memory_equal(a->nodes, b->nodes, a->nnodes * sizeof(*a->nodes));
	assert_int_equal(a->nsamples, b->nsamples);
	if (a->nsamples > 0)
		assert_memory_equal(a->samples, b->samples, a->nsamples * sizeof(*a->samples));
	a->bytes_peak = b->bytes_peak = 0;
	a->threads_used = b->threads_used = 0;
	a->serial_reason = b->serial_reason = NULL;
	a->nodes = b->nodes = NULL;
	a->samples = b->samples = NULL;
	assert_memory_equal(a, b, sizeof(*a));
}

static void compare(struct bench *b)
{
	struct sim_result one;

	b->params.threads = 1;
	bench_run(b, &one);
	assert_conserved(&one);
	for (uint32_t threads = 1; threads <= 4; threads++) {
		struct sim_result first = one, other, copy;

		b->params.threads = threads;
		bench_run(b, &other);
		copy = other;
		assert_int_equal(other.threads_used, threads);
		assert_null(other.serial_reason);
		same(&first, &other);
		sim_result_free(&copy);
	}
	sim_result_free(&one);
}

static void threads_do_not_show(void **state)
{
	static const char *const policies[] = {"nlb",	   "cpu-re",	"mem-re",  "io-re",
					       "iocm-re",  "wal",	"iocm-pm", "cpu-pm",
					       "shortest", "zatti-real"};

	(void)state;
	for (size_t i = 0; i < sizeof(policies) / sizeof(policies[0]); i++) {
		for (int f = 0; f < 2; f++) {
			struct bench b;

			mix_init(&b, "7xfc+6xfc:cpu=400");
			b.policy = policies[i];
			b.params.fidelity = f ? SIM_FLUID : SIM_REQUEST;
			b.params.sample_ms = i % 2 ? 3000 : 0;
			b.params.cpu_load_runnable = i % 3 == 0;
			compare(&b);
			bench_free(&b);
		}
	}
}

/* The same seed gives the same run; another seed gives another. */
static void the_seed_decides(void **state)
{
	struct sim_result a, b2, c;
	struct bench b;

	(void)state;
	mix_init(&b, "13xfc");
	b.policy = "iocm-re";
	bench_run(&b, &a);
	bench_run(&b, &b2);
	b.params.seed++;
	bench_run(&b, &c);
	assert_true(c.slowdown.mean != a.slowdown.mean);
	sim_result_free(&c);
	c = b2;
	{
		struct sim_result first = a;

		same(&first, &b2);
	}
	sim_result_free(&a);
	sim_result_free(&c);
	bench_free(&b);
}

/* All jobs are equal and arrive at the same times, so there are ties everywhere. */
static void ties_do_not_show(void **state)
{
	struct bench b;

	(void)state;
	mix_init(&b, "9xfc");
	b.generator.kinds = 1;
	b.generator.lifetime = LIFETIME_CONSTANT;
	b.generator.lifetime_mean_ms = 700;
	b.generator.arrivals_regular = true;
	b.generator.interarrival_ms = 100;
	b.generator.kind[0].memory_shape = 0;
	b.generator.kind[0].io_per_ms = 0;
	b.generator.kind[0].requests = 7;
	b.generator.kind[0].request_sd_kb = 0;
	b.params.information_period_ms = 500;
	b.params.rules.fixed_cost_ms = 100;
	b.params.switch_ms = 0;
	for (int f = 0; f < 2; f++) {
		b.params.fidelity = f ? SIM_FLUID : SIM_REQUEST;
		b.policy = f ? "iocm-re" : "iocm-pm";
		compare(&b);
	}
	bench_free(&b);
}

/* All homes send to the same node at the same moments, so their order must be defined. */
static void bursts_do_not_show(void **state)
{
	struct bench b;

	(void)state;
	mix_init(&b, "4xfc+4xfc:cpu=400,disk=20+1xfc:cpu=1600");
	b.params.information_period_ms = 500;
	b.params.rules.cpu_threshold = 0;
	b.params.rules.reference_mips = 800;
	for (uint32_t i = 0; i < JOBS_MOST; i++) {
		struct sim_job *j = bench_job(&b, 250 * (i / 18), i % 9, 300 + 7 * (i % 5));

		j->requests = 3;
		j->memory_mb = 0.1 + (i % 7) / 3.0;
		j->initial_mb = 1;
	}
	b.policy = "cpu-re";
	compare(&b);
	b.policy = "iocm-pm";
	compare(&b);
	bench_free(&b);
}

static void a_controller_a_node_runs_apart(void **state)
{
	struct bench b;

	(void)state;
	mix_init(&b, "8xfc");
	b.policy = "feedback+iocm-re";
	b.params.control_per_node = true;
	b.params.rules.fb_gain_b = 3;
	b.params.sample_ms = 2000;
	compare(&b);
	b.params.rules.fb_controller = 1;
	compare(&b);
	b.params.rules.fb_controller = RULES_CONTROLLER_PREDICTIVE;
	compare(&b);
	bench_free(&b);
}

static void expect_serial(struct bench *b, const char *why)
{
	struct sim_result r;

	b->params.threads = 3;
	bench_run(b, &r);
	assert_int_equal(r.threads_used, 1);
	assert_non_null(r.serial_reason);
	assert_non_null(strstr(r.serial_reason, why));
	assert_conserved(&r);
	sim_result_free(&r);
}

static void what_cannot_run_apart_says_why(void **state)
{
	struct sim_result several, alone;
	struct bench b;

	(void)state;
	mix_init(&b, "6xfc");
	b.generator.jobs = 500;
	b.policy = "iocm-re";
	b.params.information_period_ms = 0;
	expect_serial(&b, "information period 0");
	b.params.information_period_ms = 500;
	b.params.transfer_disk_work = true;
	expect_serial(&b, "disks");
	b.params.transfer_disk_work = false;
	b.params.rules.fixed_cost_ms = 0;
	expect_serial(&b, "lookahead");
	b.params.rules.fixed_cost_ms = 100;
	b.policy = "bs";
	expect_serial(&b, "queue");
	b.policy = "wal-fc";
	expect_serial(&b, "controller");
	/* the need for one thread shows during the run, which begins again as if nothing had
	 * happened */
	b.policy = "cpu-re";
	b.generator.kind[1].parallel_share = 0.02;
	b.generator.kind[1].tasks_max = 3;
	expect_serial(&b, "several tasks");
	bench_run(&b, &several);
	b.params.threads = 1;
	bench_run(&b, &alone);
	assert_null(alone.serial_reason);
	{
		struct sim_result x = several, y = alone;

		same(&x, &y);
	}
	sim_result_free(&several);
	sim_result_free(&alone);
	bench_free(&b);
}

/* A run that begins again starts where the workload stood, not at the workload's first job. */
static void a_run_begins_where_the_workload_stands(void **state)
{
	struct sim_result r;
	struct sim_job job;
	struct bench b;

	(void)state;
	mix_init(&b, "6xfc");
	b.generator.jobs = 300;
	b.generator.kind[1].parallel_share = 0.05;
	b.generator.kind[1].tasks_max = 3;
	b.policy = "cpu-re";
	b.params.threads = 2;
	b.run.workload = bench_workload(&b);
	for (int i = 0; i < 7; i++)
		assert_int_equal(workload_next(b.run.workload, &job, &b.err), 1);
	b.run.cluster = &b.cluster;
	b.run.policy = b.policy;
	b.run.params = &b.params;
	assert_int_equal(sim_run(&b.run, &r, &b.err), 0);
	assert_int_equal(r.threads_used, 1);
	assert_int_equal(r.arrived, 293);
	assert_conserved(&r);
	sim_result_free(&r);
	workload_free(b.run.workload);
	bench_free(&b);
}

/* With more threads than nodes, one thread per node is used. */
static void no_thread_without_a_node(void **state)
{
	struct sim_result r;
	struct bench b;

	(void)state;
	mix_init(&b, "2xfc");
	b.generator.jobs = 200;
	b.policy = "nlb";
	b.params.threads = 5;
	bench_run(&b, &r);
	assert_int_equal(r.threads_used, 2);
	sim_result_free(&r);
	bench_free(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(threads_do_not_show),
		cmocka_unit_test(the_seed_decides),
		cmocka_unit_test(ties_do_not_show),
		cmocka_unit_test(bursts_do_not_show),
		cmocka_unit_test(a_controller_a_node_runs_apart),
		cmocka_unit_test(what_cannot_run_apart_says_why),
		cmocka_unit_test(a_run_begins_where_the_workload_stands),
		cmocka_unit_test(no_thread_without_a_node),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
