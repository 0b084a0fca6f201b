/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Runs with the predictive feedback controller: it finds the buffer that suits the tasks. */
#include "tests/sim/core_fixture.h"

/* Jobs that re-read 60 MB each on a cluster with hardly enough time for their misses. */
static void reading_init(struct bench *b, double first_mb)
{
	bench_init(b, "4xfc");
	b->params.fidelity = SIM_FLUID;
	b->params.switch_ms = 0.1;
	b->params.page_fault_at_disk = false;
	b->params.sample_ms = 1000;
	b->generator.jobs = 400;
	b->generator.interarrival_ms = 1500;
	b->generator.kind[0].reaccess = 5;
	b->generator.kind[0].io_per_ms = 1.5;
	b->generator.kind[0].faults_per_ms = 2;
	b->generator.kind[0].memory_mean_mb = 60;
	b->policy = "feedback+cpu-re";
	for (uint32_t i = 0; i < b->cluster.n; i++)
		b->cluster.machines[i].buffer_mb = first_mb;
}

static double run_with(enum rules_controller controller, double first_mb, double *last_mb)
{
	struct sim_result r;
	struct bench b;
	double slowdown;

	reading_init(&b, first_mb);
	b.params.rules.fb_controller = controller;
	bench_run(&b, &r);
	assert_conserved(&r);
	assert_true(r.nsamples > 10);
	*last_mb = 0;
	for (uint32_t i = r.nsamples / 2; i < r.nsamples; i++) {
		assert_in_range(r.samples[i].buffer_mb, 1, 639);
		*last_mb += r.samples[i].buffer_mb / (r.nsamples - r.nsamples / 2);
	}
	slowdown = r.slowdown.mean;
	sim_result_free(&r);
	bench_free(&b);
	return slowdown;
}

static void it_ends_alike_from_a_small_and_a_large_buffer(void **state)
{
	double small_mb, large_mb, small, large;

	(void)state;
	small = run_with(RULES_CONTROLLER_PREDICTIVE, 10, &small_mb);
	large = run_with(RULES_CONTROLLER_PREDICTIVE, 620, &large_mb);
	assert_true(small_mb > 60 && large_mb < 590);
	assert_close(small_mb / large_mb, 1, 0.15);
	assert_close(small / large, 1, 0.25);
}

static void it_beats_the_published_one_from_a_bad_start(void **state)
{
	static const double starts[] = {10, 620};
	double end_mb;

	(void)state;
	for (int i = 0; i < 2; i++)
		assert_true(run_with(RULES_CONTROLLER_PREDICTIVE, starts[i], &end_mb) <
			    0.7 * run_with(RULES_CONTROLLER_PUBLISHED, starts[i], &end_mb));
}

/* The controller must see the real cost of faults: they cost more where they use the disk. */
static void it_learns_where_faults_are_served(void **state)
{
	struct sim_result r;
	struct bench b;
	double mean[2] = {0, 0};

	(void)state;
	for (int at_disk = 0; at_disk < 2; at_disk++) {
		reading_init(&b, 160);
		b.params.rules.fb_controller = RULES_CONTROLLER_PREDICTIVE;
		b.params.page_fault_at_disk = at_disk;
		bench_run(&b, &r);
		for (uint32_t i = 0; i < r.nsamples; i++)
			mean[at_disk] += r.samples[i].buffer_mb / r.nsamples;
		sim_result_free(&r);
		bench_free(&b);
	}
	assert_true(mean[1] < mean[0] - 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_ends_alike_from_a_small_and_a_large_buffer),
		cmocka_unit_test(it_beats_the_published_one_from_a_bad_start),
		cmocka_unit_test(it_learns_where_faults_are_served),
	};

	return cmocka_run_group_tests_name("core: predictive control", tests, NULL, NULL);
}
