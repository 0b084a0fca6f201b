/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Sums over the jobs of a replayed log, and the block bootstrap over its weeks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>

#include "sim/experiments/outcome.h"
#include "sim/random.h"

#define HOUR_MS 3600000.0

static void add(struct outcome *o, double week, double wait_ms, double run_ms, uint32_t tasks,
		double user)
{
	double arrival = week * OUTCOME_WEEK_MS + 1;
	struct outcome_job job = {
		.arrival_ms = arrival,
		.start_ms = arrival + wait_ms,
		.end_ms = arrival + wait_ms + run_ms,
		.alone_ms = run_ms,
		.tasks = tasks,
		.user = user,
	};

	assert_int_equal(outcome_add(o, &job), 0);
}

static void near(double got, double wanted)
{
	if (!(fabs(got - wanted) <= 1e-9 * fabs(wanted)))
		fail_msg("got %.15g, wanted %.15g", got, wanted);
}

/* 100 s of waiting are a slowdown of 101 for a job of 1 s, bounded: 10.1. */
static void the_slowdown_is_bounded(void **state)
{
	struct outcome o = {0};

	(void)state;
	add(&o, 0, 100000, 1000, 1, 3);
	near(outcome_mean(&o, OUTCOME_SLOWDOWN), 101);
	near(outcome_mean(&o, OUTCOME_BOUNDED), 10.1);
	near(outcome_mean(&o, OUTCOME_WAIT_S), 100);
	near(outcome_mean(&o, OUTCOME_TURNAROUND_S), 101);
	outcome_free(&o);
	add(&o, 0, 0, 1000, 1, 3); /* never below 1 */
	near(outcome_mean(&o, OUTCOME_BOUNDED), 1);
	outcome_free(&o);
}

static void jobs_are_sorted_into_groups(void **state)
{
	struct outcome o = {0};

	(void)state;
	add(&o, 5, 0, HOUR_MS, 8, 9);
	add(&o, 2, 0, HOUR_MS + 1, 8, 4);
	add(&o, 2, 0, HOUR_MS, 9, 9);
	add(&o, 0, 0, HOUR_MS + 1, 9, -1);
	assert_int_equal(o.n[OUTCOME_WEEKS], 3);
	assert_int_equal(o.n[OUTCOME_USERS], 3);
	assert_int_equal(o.n[OUTCOME_CLASSES], 4);
	for (unsigned int g = 0; g < OUTCOME_GROUPS; g++)
		for (uint32_t i = 1; i < o.n[g]; i++)
			assert_true(o.rows[g][i - 1].key < o.rows[g][i].key);
	near(outcome_row(&o, OUTCOME_WEEKS, 2)->sums[OUTCOME_JOBS], 2);
	near(outcome_row(&o, OUTCOME_USERS, 9)->sums[OUTCOME_JOBS], 2);
	near(outcome_row(&o, OUTCOME_USERS, -1)->sums[OUTCOME_JOBS], 1);
	outcome_free(&o);
}

static void too_few_weeks_have_no_interval(void **state)
{
	struct outcome o = {0}, other = {0};
	struct interval i;

	(void)state;
	for (unsigned int week = 0; week < OUTCOME_WEEKS_MIN - 1; week++) {
		add(&o, week, 1000.0 * week, 20000, 1, 1);
		add(&other, week, 3000.0 * week, 20000, 1, 1);
	}
	i = outcome_interval(&o, OUTCOME_WAIT_S);
	near(i.low, i.mean);
	near(i.high, i.mean);
	assert_int_equal(outcome_factor(&other, &o, OUTCOME_WAIT_S).n, 0);
	outcome_free(&o);
	outcome_free(&other);
}

/* A policy that is better in each week is told apart, however much the weeks differ. */
static void pairs_share_their_weeks(void **state)
{
	struct outcome o = {0}, other = {0}, shifted = {0};
	struct interval i, alone;

	(void)state;
	for (unsigned int week = 0; week < 30; week++) {
		double wait = 1000 * exp(week % 7);

		add(&o, week, wait, 20000, 1, 1);
		add(&other, week, 1.1 * wait, 20000, 1, 1);
		add(&shifted, week + 1, wait, 20000, 1, 1);
	}
	i = outcome_factor(&other, &o, OUTCOME_WAIT_S);
	near(i.mean, 1.1);
	assert_int_equal(i.n, 30);
	assert_true(i.low > 1.0999 && i.high < 1.1001);
	alone = outcome_interval(&o, OUTCOME_WAIT_S);
	assert_true(alone.low < alone.mean / 1.1 && alone.high > alone.mean * 1.1);
	i = outcome_factor(&shifted, &o, OUTCOME_WAIT_S); /* other weeks cannot be paired */
	assert_int_equal(i.n, 0);
	outcome_free(&o);
	outcome_free(&other);
	outcome_free(&shifted);
}

/*
 * Of 200 logs of 40 weeks with the same true mean, the intervals of about 95 % hold it.  The jobs
 * of a week are alike, so intervals over single jobs would hold it far more seldom.
 */
static void intervals_hold_the_mean(void **state)
{
	unsigned int held = 0;

	(void)state;
	for (uint64_t log = 0; log < 200; log++) {
		struct sim_random r = sim_random_stream(log, 1, 0);
		struct outcome o = {0};
		struct interval i;

		for (unsigned int week = 0; week < 40; week++) {
			double wait = 2000000 * sim_random_uniform(&r);

			for (unsigned int k = 0; k < 10; k++)
				add(&o, week, wait, 20000, 1, 1);
		}
		i = outcome_interval(&o, OUTCOME_WAIT_S);
		held += i.low <= 1000 && 1000 <= i.high;
		outcome_free(&o);
	}
	if (held < 176 || held > 198)
		fail_msg("%u of 200 intervals hold the mean", held);
}

static void a_copy_is_equal_and_owned(void **state)
{
	struct outcome o = {0}, copy;

	(void)state;
	for (unsigned int k = 0; k < 100; k++)
		add(&o, k % 9, 1000.0 * k, 20000, k, k);
	assert_int_equal(outcome_copy(&copy, &o), 0);
	near(outcome_mean(&copy, OUTCOME_WAIT_S), outcome_mean(&o, OUTCOME_WAIT_S));
	outcome_free(&o);
	assert_int_equal(copy.n[OUTCOME_USERS], 100);
	outcome_free(&copy);
	assert_true(isnan(outcome_mean(&copy, OUTCOME_WAIT_S)));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_slowdown_is_bounded),
		cmocka_unit_test(jobs_are_sorted_into_groups),
		cmocka_unit_test(too_few_weeks_have_no_interval),
		cmocka_unit_test(pairs_share_their_weeks),
		cmocka_unit_test(intervals_hold_the_mean),
		cmocka_unit_test(a_copy_is_equal_and_owned),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
