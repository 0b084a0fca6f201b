/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* The predictive feedback controller on models whose best buffer is known. */
#include <errno.h>

#include "tests/unit/rules_fixture.h"

#define FAULT_MS 8.1
#define POINT_MB (638.0 / 63) /* distance between the buffers it examines */

/* A task with 2 accesses per ms of 250 KB for a second, each five times: 83.3 MB of data. */
static struct rules_task reader(double memory_mb)
{
	return (struct rules_task){.cpu_ms = 1000,
				   .io_per_ms = 2,
				   .request_kb = 250,
				   .reaccess = 5,
				   .memory_mb = memory_mb,
				   .faults_per_ms = 2};
}

static struct rules_node running(const struct rules_task *tasks, size_t n)
{
	struct rules_node node = node_fc("a");

	node.tasks = tasks;
	node.ntasks = n;
	return node;
}

static struct rules *predictive(double buffer_mb, double dead_band)
{
	struct rules_params p = params_computation();
	struct rules *r;

	p.fb_controller = RULES_CONTROLLER_PREDICTIVE;
	p.fb_dead_band = dead_band;
	p.fb_known_length = true;
	r = rules_new(RULES_WAL_FC, &p, 1);
	assert_non_null(r);
	assert_int_equal(rules_feedback(r, 640, buffer_mb), 0);
	return r;
}

static void outcome(struct rules *r, const struct rules_node *node, bool at_disk,
		    struct rules_control *c)
{
	struct rules_outcome o = {.slowdown = 3};

	assert_int_equal(rules_foresee(r, node, FAULT_MS, at_disk), 0);
	assert_int_equal(rules_done(r, &o), 0);
	rules_control(r, c);
}

/* Returns where a buffer that starts at FROM ends; no step is larger than allowed. */
static double settles(const struct rules_node *node, double from, bool at_disk)
{
	struct rules *r = predictive(from, 0.001);
	struct rules_control c = {.buffer_mb = from};

	for (int i = 0; i < 100; i++) {
		double before = c.buffer_mb;

		outcome(r, node, at_disk, &c);
		assert_true(fabs(c.buffer_mb - before) <= 16);
		assert_true(c.buffer_mb >= 1 && c.buffer_mb <= 639);
	}
	rules_free(r);
	return c.buffer_mb;
}

/*
 * Derived by hand: alone 1 + D with D = 2 (1 - 5/6) 14.25; with another task R = 4.25 +
 * sqrt(4.25^2 + D).
 */
static void the_prediction_matches_derived_values(void **state)
{
	struct rules_task tasks[] = {reader(4), reader(4)};
	struct rules_node node = running(tasks, 1);
	struct rules *r = predictive(300, 0.001);
	struct rules_control c;

	(void)state;
	rules_control(r, &c);
	assert_true(c.why == RULES_WHY_NONE);
	outcome(r, &node, false, &c);
	assert_close(c.stretch, 5.75, 1e-9);
	node.ntasks = 2;
	outcome(r, &node, false, &c);
	assert_close(c.stretch, 1 + 4.25 + sqrt(4.25 * 4.25 + 4.75), 1e-9);
	/* Two cores' worth of CPU time and no disk: n / cores. */
	tasks[0].io_per_ms = tasks[1].io_per_ms = 0;
	outcome(r, &node, false, &c);
	assert_close(c.stretch, 2, 1e-9);
	/* Full memory: 2 faults a ms times 800 / 340, away or at the disk. */
	tasks[0] = reader(800);
	tasks[0].io_per_ms = 0;
	node.ntasks = 1;
	for (int at_disk = 0; at_disk < 2; at_disk++) {
		struct rules *full = predictive(300, 1);

		outcome(full, &node, at_disk, &c);
		/* the curve is straight between its points: a little above 1 / x */
		assert_close(c.stretch / (1 + 2 * 800.0 / 340 * FAULT_MS), 1, 1e-3);
		rules_free(full);
	}
	rules_free(r);
}

/* Without paging it grows to the size of the data, not beyond. */
static void it_grows_to_the_data(void **state)
{
	static const double from[] = {1, 20, 160};
	struct rules_task tasks[] = {reader(4), reader(4)};
	struct rules_node node = running(tasks, 2);

	(void)state;
	for (int i = 0; i < 3; i++)
		assert_close(settles(&node, from[i], false), 2 * 83.333 + POINT_MB / 2, POINT_MB);
}

/*
 * Tasks of 500 MB page if less memory is left, so the buffer stays below 140 MB, starting from
 * either side, although the data would fill 167 MB.
 */
static void it_stops_where_paging_begins(void **state)
{
	static const double from[] = {1, 60, 139, 300, 639 - 1};
	struct rules_task tasks[] = {reader(250), reader(250)};
	struct rules_node node = running(tasks, 2);

	(void)state;
	for (int at_disk = 0; at_disk < 2; at_disk++)
		for (int i = 0; i < 5; i++)
			assert_close(settles(&node, from[i], at_disk), 140 - POINT_MB / 2,
				     POINT_MB / 2);
}

/* If memory is short with any buffer, misses are weighed against faults, from either side. */
static void it_balances_misses_and_faults(void **state)
{
	struct rules_task tasks[8] = {0};
	struct rules_node node = running(tasks, 8);
	double low, high;

	(void)state;
	for (int j = 0; j < 8; j++)
		tasks[j] = reader(100);
	low = settles(&node, 10, false);
	high = settles(&node, 600, false);
	assert_close(low, high, 1.5 * POINT_MB);
	assert_true(low > 50 && high < 590);
	/* The tasks need more memory: a smaller buffer. */
	for (int j = 0; j < 8; j++)
		tasks[j].memory_mb = 400;
	assert_true(settles(&node, 300, false) < low - POINT_MB);
	/* The tasks never re-read: no buffer helps. */
	for (int j = 0; j < 8; j++)
		tasks[j].reaccess = 0;
	assert_close(settles(&node, 300, false), 1, POINT_MB);
}

/* Each job counts the same: if a short and a long one disagree, the short one wins. */
static void short_jobs_count_as_much_as_long_ones(void **state)
{
	struct rules_task tasks[] = {reader(390), reader(100)};
	struct rules_node node = running(tasks, 2);
	double alike;

	(void)state;
	tasks[1].cpu_ms = 4000; /* 333 MB of data */
	tasks[0].faults_per_ms = 0.3;
	tasks[1].faults_per_ms = 0;
	alike = settles(&node, 160, false);
	tasks[1].faults_per_ms = 0.3;
	tasks[0].faults_per_ms = 0;
	assert_true(settles(&node, 160, false) > alike + POINT_MB);
}

static void the_dead_band_holds(void **state)
{
	struct rules_task tasks[] = {reader(4), reader(4)};
	struct rules_node node = running(tasks, 2);
	struct rules *r = predictive(160, 0.2);
	struct rules_control c;

	(void)state;
	for (int i = 0; i < 20; i++) {
		outcome(r, &node, false, &c);
		assert_true(c.why == RULES_WHY_DEAD_BAND && c.buffer_mb == 160);
		assert_true(c.wanted_mb > 160 && c.stretch_wanted < c.stretch);
	}
	rules_free(r);
	r = predictive(60, 0.2);
	outcome(r, &node, false, &c);
	assert_true(c.why == RULES_WHY_MISSES && c.buffer_mb == 76);
	rules_free(r);
	r = predictive(600, 0.2);
	tasks[0].memory_mb = 500;
	outcome(r, &node, false, &c);
	assert_true(c.why == RULES_WHY_FAULTS && c.buffer_mb == 584);
	rules_free(r);
}

static void bad_measurements_change_nothing(void **state)
{
	struct rules_task good = reader(4), bad = good;
	struct rules_node node = running(&bad, 1), short_of_memory = running(&good, 1);
	struct rules *r = predictive(160, 0);
	struct rules_outcome o = {.slowdown = 3};
	struct rules_control c;

	(void)state;
	bad = good, bad.memory_mb = NAN;
	assert_int_equal(rules_foresee(r, &node, FAULT_MS, false), -EINVAL);
	bad = good, bad.io_per_ms = -1;
	assert_int_equal(rules_foresee(r, &node, FAULT_MS, false), -EINVAL);
	bad = good, bad.faults_per_ms = INFINITY;
	assert_int_equal(rules_foresee(r, &node, FAULT_MS, false), -EINVAL);
	bad = good;
	assert_int_equal(rules_foresee(r, &node, NAN, false), -EINVAL);
	assert_int_equal(rules_foresee(r, &node, -1, false), -EINVAL);
	/* Nothing runs; less memory than the examined buffers need; nothing is known of the job. */
	node.ntasks = 0;
	assert_int_equal(rules_foresee(r, &node, FAULT_MS, false), 0);
	short_of_memory.ram_mb = 600;
	assert_int_equal(rules_foresee(r, &short_of_memory, FAULT_MS, false), 0);
	assert_int_equal(rules_done(r, &o), 0);
	rules_control(r, &c);
	assert_true(c.why == RULES_WHY_IDLE && c.buffer_mb == 160);
	node.ntasks = 1;
	bad = (struct rules_task){0};
	outcome(r, &node, false, &c);
	assert_true(c.buffer_mb == 160 && c.stretch == 1);
	o.slowdown = NAN;
	assert_int_equal(rules_foresee(r, &short_of_memory, FAULT_MS, false), 0);
	assert_int_equal(rules_done(r, &o), -EINVAL);
	rules_free(r);
}

static double stretch_of(const struct rules_task *task, bool known)
{
	struct rules_params p = params_computation();
	struct rules_node node = running(task, 1);
	struct rules_control c;
	struct rules *r;

	p.fb_controller = RULES_CONTROLLER_PREDICTIVE;
	p.fb_known_length = known;
	r = rules_new(RULES_WAL_FC, &p, 1);
	assert_int_equal(rules_feedback(r, 640, 40), 0);
	outcome(r, &node, false, &c);
	rules_free(r);
	return c.stretch;
}

/* By default the controller does not use a job's length, only twice its age. */
static void length_is_not_known_but_age_is(void **state)
{
	struct rules_task task = reader(4);
	double known = stretch_of(&task, true), half;

	(void)state;
	task.age_ms = 500;
	assert_close(stretch_of(&task, false), known, 1e-12);
	task.age_ms = 250;
	half = stretch_of(&task, false);
	assert_true(half < known - 0.1); /* the controller expects less data */
	task.cpu_ms = 50000;
	assert_close(stretch_of(&task, false), half, 0);
	task.age_ms = 0;
	task.cpu_ms = 1;
	assert_true(stretch_of(&task, false) ==
		    stretch_of(&task, true)); /* both buffers are at the minimum */
}

/* Other controllers, and none at all, ignore it. */
static void only_the_predictive_one_looks(void **state)
{
	struct rules_params p = params_computation();
	struct rules_task task = reader(4);
	struct rules_node node = running(&task, 1);
	struct rules *none = rules_new(RULES_NLB, &p, 1), *published = rules_new(RULES_NLB, &p, 1);
	struct rules_control c;

	(void)state;
	outcome(none, &node, false, &c);
	assert_true(!c.active && c.why == RULES_WHY_NONE);
	assert_int_equal(rules_feedback(published, 640, 20), 0);
	outcome(published, &node, false, &c);
	assert_true(c.buffer_mb == 20 && c.why == RULES_WHY_NONE);
	for (int why = 0; why < RULES_WHYS; why++)
		assert_non_null(rules_control_why_name(why));
	assert_null(rules_control_why_name(RULES_WHYS));
	rules_free(published);
	rules_free(none);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_prediction_matches_derived_values),
		cmocka_unit_test(it_grows_to_the_data),
		cmocka_unit_test(it_stops_where_paging_begins),
		cmocka_unit_test(it_balances_misses_and_faults),
		cmocka_unit_test(short_jobs_count_as_much_as_long_ones),
		cmocka_unit_test(the_dead_band_holds),
		cmocka_unit_test(bad_measurements_change_nothing),
		cmocka_unit_test(length_is_not_known_but_age_is),
		cmocka_unit_test(only_the_predictive_one_looks),
	};

	return cmocka_run_group_tests_name("rules: predictive feedback", tests, NULL, NULL);
}
