/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Every policy in a run, at both fidelities, with new and old information: nothing is lost, what
 * must not move does not move, and policies that should help do help.
 */
#include "tests/sim/core_fixture.h"

/* Jobs that compute and read, unequally spread over the homes. */
static void mix_init(struct bench *b, const char *cluster)
{
	bench_init(b, cluster);
	b->params.switch_ms = 0.1;
	b->generator.jobs = 1200;
	b->generator.interarrival_ms = 3000.0 / b->cluster.n;
	b->generator.home_skew = 0.5;
	b->generator.kinds = 2;
	b->generator.kind[0].io_per_ms = 0.08;
	b->generator.kind[0].io_uniform = true;
	b->generator.kind[0].reaccess = 0;
	b->generator.kind[0].initial_mb = 2;
	b->generator.kind[1] = b->generator.kind[0];
	strcpy(b->generator.kind[1].name, "memory");
	b->generator.kind[1].share = 0.3;
	b->generator.kind[1].io_per_ms = 0;
	b->generator.kind[1].memory_mean_mb = 20;
	b->generator.kind[1].write_fraction = 0.1;
}

static void run_policy(const char *policy, unsigned int variant)
{
	struct sim_result r;
	struct bench b;

	mix_init(&b, variant & 4 ? "4xfc+4xfc:cpu=400,disk=20" : "8xfc");
	b.policy = policy;
	b.params.fidelity = variant & 1 ? SIM_FLUID : SIM_REQUEST;
	b.params.information_period_ms = variant & 2 ? 500 : 0;
	b.params.transfer_disk_work = variant & 2;
	b.params.cpu_load_runnable = variant & 4;
	b.params.transit_counts = !(variant & 4);
	if (variant & 4) {
		b.generator.kind[0].parallel_share = 0.3;
		b.generator.kind[0].tasks_max = 6;
		b.generator.kind[0].barrier_ms = 100;
		b.generator.kind[0].messages_per_ms = 0.05;
		b.generator.kind[0].message_kb = 100;
		b.generator.interarrival_ms *= 2.5;
	}
	bench_run(&b, &r);
	assert_conserved(&r);
	assert_int_equal(r.completed, 1200);
	assert_true(r.kind_slowdown[0].n + r.kind_slowdown[1].n == 1200);
	assert_true(r.slowdown.mean > 0.5);
	if (strcmp(policy, "nlb") == 0 || strcmp(policy, "feedback+nlb") == 0) {
		assert_int_equal(r.remote_executions + r.migrations, 0);
		assert_close(r.moved_mb, 0, 0);
		for (uint32_t i = 0; i < r.nnodes; i++)
			assert_int_equal(r.nodes[i].arrived, r.nodes[i].executed);
	} else {
		assert_true(r.remote_executions > 0);
	}
	sim_result_free(&r);
	bench_free(&b);
}

static void every_policy_loses_nothing(void **state)
{
	(void)state;
	for (int p = 0; p < RULES_POLICIES; p++)
		for (unsigned int variant = 0; variant < 8; variant++)
			run_policy(rules_policy_name(p), variant);
	for (unsigned int variant = 0; variant < 8; variant++)
		run_policy("feedback+nlb", variant);
}

static double slowdown_of(struct bench *b, const char *policy)
{
	struct sim_result r;
	double mean;

	b->policy = policy;
	bench_run(b, &r);
	mean = r.slowdown.mean;
	sim_result_free(&r);
	return mean;
}

/* One home gets most of the I/O: moving it must pay. */
static void balancing_helps_where_load_is_skewed(void **state)
{
	(void)state;
	for (int f = 0; f < 4; f++) {
		struct bench b;
		double nlb;

		mix_init(&b, "8xfc");
		b.generator.home_skew = 2;
		b.generator.interarrival_ms = 2200.0 / b.cluster.n;
		b.params.fidelity = f & 1 ? SIM_FLUID : SIM_REQUEST;
		b.params.information_period_ms = f & 2 ? 1000 : 0;
		nlb = slowdown_of(&b, "nlb");
		assert_true(nlb > 5);
		assert_true(slowdown_of(&b, "iocm-re") < nlb / 4);
		assert_true(slowdown_of(&b, "iocm-re-hom") < nlb / 4);
		assert_true(slowdown_of(&b, "wal") < nlb / 4);
		assert_true(slowdown_of(&b, "random") < nlb);
		bench_free(&b);
	}
}

/* However CPU load is counted, a batch system must treat a node as taken while its task
 * waits for the disk. */
static void a_batch_system_counts_who_is_there(void **state)
{
	struct sim_result r[2];

	(void)state;
	for (int runnable = 0; runnable < 2; runnable++) {
		struct bench b;

		mix_init(&b, "8xfc");
		b.policy = "bs";
		b.params.fidelity = SIM_FLUID;
		b.params.cpu_load_runnable = runnable;
		bench_run(&b, &r[runnable]);
		for (uint32_t i = 0; i < r[runnable].nnodes; i++)
			assert_true(r[runnable].nodes[i].jobs_mean <= 1);
		bench_free(&b);
	}
	assert_close(r[0].slowdown.mean, r[1].slowdown.mean, 0);
	sim_result_free(&r[0]);
	sim_result_free(&r[1]);
}

/* Without a measuring window, information that is a microsecond old gives the same
 * results as exact information. */
static void a_tiny_period_is_none(void **state)
{
	static const char *const policies[] = {"cpu-re",  "mem-re", "io-re",
					       "iocm-re", "wal",    "iocm-pm"};

	(void)state;
	for (size_t i = 0; i < sizeof(policies) / sizeof(policies[0]); i++) {
		struct sim_result exact, old;
		struct bench b;

		mix_init(&b, "8xfc");
		b.policy = policies[i];
		b.params.measure_window_ms = 0;
		bench_run(&b, &exact);
		b.params.information_period_ms = 1e-3;
		bench_run(&b, &old);
		assert_true(exact.remote_executions > 0);
		assert_int_equal(exact.remote_executions, old.remote_executions);
		assert_int_equal(exact.migrations, old.migrations);
		assert_close(exact.slowdown.mean, old.slowdown.mean, 0);
		sim_result_free(&exact);
		sim_result_free(&old);
		bench_free(&b);
	}
}

/* The nodes get the controller's buffer, and it changes. */
static void the_controller_sets_the_nodes(void **state)
{
	(void)state;
	for (int own = 0; own < 2; own++) {
		struct sim_result with, without;
		double least = 1e9, most = 0;
		struct bench b;

		mix_init(&b, "6xfc");
		b.generator.kind[0].reaccess = 5;
		b.generator.kind[0].io_per_ms = 2;
		b.generator.interarrival_ms = 4000;
		b.params.rules.fb_gain_b = 5;
		b.params.control_per_node = own;
		b.params.sample_ms = 10000;
		b.policy = "nlb";
		bench_run(&b, &without);
		b.policy = "feedback+nlb";
		bench_run(&b, &with);
		assert_int_equal(with.remote_executions, 0);
		for (uint32_t i = 0; i < with.nsamples; i++) {
			least = fmin(least, with.samples[i].buffer_mb);
			most = fmax(most, with.samples[i].buffer_mb);
			assert_true(with.samples[i].w_io >= 0 && with.samples[i].w_io <= 1);
		}
		assert_true(most > least + 1);
		assert_true(with.hit_rate != without.hit_rate);
		assert_close(without.samples[0].buffer_mb, 0, 0);
		sim_result_free(&with);
		sim_result_free(&without);
		bench_free(&b);
	}
}

/* Both fidelities give the same results for a whole cluster with a policy.  (Without
 * paging, where the few jobs that page determine the mean.) */
static void fidelities_agree(void **state)
{
	static const char *const policies[] = {"nlb", "cpu-re", "iocm-re", "iocm-pm"};

	(void)state;
	for (size_t i = 0; i < sizeof(policies) / sizeof(policies[0]); i++) {
		struct bench b;
		double request, fluid;

		mix_init(&b, "8xfc");
		b.generator.home_skew = 0.2;
		b.generator.jobs = 10000;
		b.generator.kind[0].faults_per_ms = b.generator.kind[1].faults_per_ms = 0;
		b.params.information_period_ms = 1000;
		request = slowdown_of(&b, policies[i]);
		b.params.fidelity = SIM_FLUID;
		fluid = slowdown_of(&b, policies[i]);
		assert_close(fluid / request, 1, 0.05);
		bench_free(&b);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_policy_loses_nothing),
		cmocka_unit_test(balancing_helps_where_load_is_skewed),
		cmocka_unit_test(a_batch_system_counts_who_is_there),
		cmocka_unit_test(a_tiny_period_is_none),
		cmocka_unit_test(the_controller_sets_the_nodes),
		cmocka_unit_test(fidelities_agree),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
