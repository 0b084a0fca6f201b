/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Which running jobs leave by their policy, in virtual time: two looks that agree, the gain that a
 * move must have, pauses and the budget of a minute, what becomes of a move, and what it costs.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/moves/moves.h"
#include "agent/moves/moves_cost.h"
#include "agent/moves/moves_tasks.h"
#include "tests/lib/logged.h"
#include "user/clock.h"

#define JOBS 4

static struct settings set;
static struct logger log_lines;
static struct counters counters;
static struct base base = {.log = &log_lines, .counters = &counters, .set = &set, .boot_id = 1};
static struct matrix matrix;
static struct cluster_view *view;
static struct iocom_vector own;
static struct need needs[JOBS];
static struct guest_running jobs[JOBS];
static size_t njobs;
static uint64_t sequence; /* of the last vector */
static struct moves *moves;
/* What was asked of homes. */
static struct peer_away asked;
static char asked_job[SPEC_JOB_MAX];
static unsigned nasked;
static int away_rc;
static guest_away_told told;
static void *told_arg;

static struct cluster_view *port_look(void *arg, bool feedback)
{
	(void)arg;
	assert_false(feedback);
	assert_int_equal(cluster_view_refresh(view, &own, loop_boot_ns(base.loop)), 0);
	return view;
}

static size_t port_running(void *arg, struct guest_running *out, size_t max)
{
	(void)arg;
	assert_true(max >= njobs);
	memcpy(out, jobs, njobs * sizeof(*jobs));
	return njobs;
}

static int port_away(void *arg, const char *job, const struct peer_away *why, guest_away_told then,
		     void *then_arg, struct iocom_err *err)
{
	(void)arg;
	if (away_rc)
		return iocom_err_set(err, away_rc, "no such home");
	nasked++;
	asked = *why;
	snprintf(asked_job, sizeof(asked_job), "%s", job);
	told = then;
	told_arg = then_arg;
	return 0;
}

static struct iocom_vector node(const char *name, double run_queue)
{
	struct iocom_vector v = {
		.boot_id = 1,
		.sequence = 10,
		.time_ns = 1,
		.period_ms = 1000,
		.cores = 1,
		.cpu_speed = 1,
		.memory_mb = 8000,
		.run_queue = run_queue,
		.disks = 1,
		.disk_mb_per_s = 100,
		.disk_fixed_ms = 0.1,
		.network_mb_per_s = 125,
		.accepts_jobs = true,
	};

	snprintf(v.name, sizeof(v.name), "%s", name);
	return v;
}

static void heard(const char *name, double run_queue)
{
	struct iocom_vector v = node(name, run_queue);

	v.sequence = ++sequence;
	assert_true(matrix_put(&matrix, &v, 0, loop_boot_ns(base.loop)) >= 0);
}

static int setup(void **state)
{
	const struct moves_config config = {
		.base = &base,
		.cpu_speed = 1,
		.ports = {.look = port_look, .running = port_running, .away = port_away}};

	(void)state;
	counters = (struct counters){0};
	set = (struct settings){
		.period_s = 1,
		.moves = {.a_minute = 6, .mb_a_minute = 4096, .pause_s = 30, .gain = 0.2}};
	if (logged_begin(&log_lines) ||
	    loop_new_virtual(&base.loop, 1000 * CLOCK_NS_PER_S, 2000 * CLOCK_NS_PER_S, NULL))
		return -1;
	matrix_init(&matrix, "me");
	view = cluster_view_new(&matrix);
	own = node("me", 4);
	heard("other", 0);
	nasked = 0;
	away_rc = 0;
	njobs = JOBS;
	for (size_t i = 0; i < JOBS; i++) {
		memset(&needs[i], 0, sizeof(needs[i]));
		needs[i].value[NEED_CPU_S] = 100;
		needs[i].source[NEED_CPU_S] = NEED_OPTION;
		jobs[i] = (struct guest_running){.policy = "cpu-pm",
						 .cpu_ms = 5000,
						 .memory_mb = 20,
						 .need = &needs[i],
						 .may_move = true,
						 .since_ns = 1900 * CLOCK_NS_PER_S};
		snprintf(jobs[i].job, sizeof(jobs[i].job), "me-0-%zu", i);
		snprintf(jobs[i].policy, sizeof(jobs[i].policy), "iocm-pm");
	}
	{
		struct rules_params params;

		view_params(&params);
		params.cpu_threshold = 2;
		cluster_view_use(view, &params);
	}
	return moves_new(&moves, &config, NULL);
}

static int teardown(void **state)
{
	(void)state;
	moves_free(moves);
	cluster_view_free(view);
	matrix_fini(&matrix);
	loop_free(base.loop);
	logged_end();
	return 0;
}

/* Lets SECONDS pass, with the chores of each. */
static void passes(unsigned seconds)
{
	while (seconds--) {
		loop_advance(base.loop, CLOCK_NS_PER_S);
		moves_chores(moves);
	}
}

static struct guest_running *the_job(void)
{
	for (size_t i = 0; i < njobs; i++)
		if (!strcmp(jobs[i].job, asked_job))
			return &jobs[i];
	fail_msg("job %s is none", asked_job);
	return NULL;
}

/* The job that was asked for leaves, of MB, frozen for MS. */
static void leaves(double mb, uint64_t ms)
{
	struct guest_running *job = the_job();

	told(told_arg, asked_job, true, "");
	job->moves = true;
	job->may_move = false;
	passes(2);
	moves_left(moves, asked_job, asked.node, ms, (uint64_t)(mb * 1e6));
	*job = jobs[--njobs];
	own.run_queue = (double)njobs;
}

/* --- what leaves ------------------------------------------------------------------------------ */

static void test_two_looks_agree(void **state)
{
	(void)state;
	passes(1);
	assert_int_equal(nasked, 0);
	passes(2);
	assert_int_equal(nasked, 1);
	assert_string_equal(asked.node, "other");
	assert_string_equal(asked.cause, "iocm-pm");
	/* r_PM: 95 s of computation for each of four at one core, or alone there. */
	assert_true(asked.here_ms > 3 * 95e3 && asked.here_ms < 4.1 * 95e3);
	assert_true(asked.there_ms > 94e3 && asked.there_ms < 96e3);
	assert_true(asked.cost_ms > 300 && asked.cost_ms < 1000);
	assert_int_equal(counters.policy_moves, 1);
	passes(10); /* one at a time */
	assert_int_equal(nasked, 1);
}

static void test_a_look_between_does_not_count(void **state)
{
	(void)state;
	passes(1);
	own.run_queue = 1; /* home is not overloaded now */
	passes(2);
	own.run_queue = 4;
	passes(2);
	assert_int_equal(nasked, 0);
	passes(2);
	assert_int_equal(nasked, 1);
}

static void test_others_stay(void **state)
{
	(void)state;
	for (size_t i = 0; i < JOBS; i++)
		snprintf(jobs[i].policy, sizeof(jobs[i].policy), "%s",
			 i % 2 ? "iocm-re" : "node"); /* they are placed, and not moved */
	passes(20);
	assert_int_equal(nasked, 0);
	snprintf(jobs[2].policy, sizeof(jobs[2].policy), "iocm-pm");
	jobs[2].may_move = false;
	passes(10);
	assert_int_equal(nasked, 0);
	jobs[2].may_move = true;
	jobs[2].since_ns = loop_real_ns(base.loop) + CLOCK_NS_PER_S; /* it begins just now */
	passes(3);
	assert_int_equal(nasked, 0);
	passes(8);
	assert_int_equal(nasked, 1);
	assert_string_equal(asked_job, "me-0-2");
}

static void test_a_gain_that_is_too_small(void **state)
{
	(void)state;
	heard("other", 3); /* four there with it, and four here */
	passes(20);
	assert_int_equal(nasked, 0);
	heard("other", 2); /* three there: better, by a third */
	set.moves.gain = 0.4;
	passes(20);
	assert_int_equal(nasked, 0);
	set.moves.gain = 0.2;
	passes(4);
	assert_int_equal(nasked, 1);
}

static void test_no_moves_are_wanted(void **state)
{
	(void)state;
	set.moves.a_minute = 0;
	passes(20);
	assert_int_equal(nasked, 0);
}

/* By CPU-PM's own test, of ages, no times are expected. */
static void test_by_age(void **state)
{
	(void)state;
	for (size_t i = 0; i < JOBS; i++)
		snprintf(jobs[i].policy, sizeof(jobs[i].policy), "cpu-pm");
	passes(4);
	assert_int_equal(nasked, 1);
	assert_string_equal(asked.cause, "cpu-pm");
	assert_true(asked.here_ms == 0 && asked.there_ms == 0 && asked.cost_ms > 300);
}

/* --- what becomes of it -------------------------------------------------------------------------
 */

static void test_the_next_after_it_has_left(void **state)
{
	struct moves_counts counts;

	(void)state;
	passes(3);
	leaves(20, 400);
	passes(3); /* the loads must show it first: four periods */
	assert_int_equal(nasked, 1);
	passes(5);
	assert_int_equal(nasked, 2);
	moves_count(moves, &counts);
	assert_int_equal(counts.nodes, 1);
	assert_int_equal(counts.budget, 1);
	assert_int_equal(counts.jobs, 3);
}

static void test_refused_and_left_alone(void **state)
{
	struct moves_counts counts;
	char first[SPEC_JOB_MAX];

	(void)state;
	passes(3);
	memcpy(first, asked_job, sizeof(first));
	told(told_arg, asked_job, false, "its data went along");
	assert_int_equal(counters.policy_moves_stayed, 1);
	passes(9); /* another one is tried */
	assert_int_equal(nasked, 2);
	assert_string_not_equal(asked_job, first);
	told(told_arg, asked_job, false, "its data went along");
	jobs[0] = *the_job();
	njobs = 1;
	passes(20);
	assert_int_equal(nasked, 2);
	moves_count(moves, &counts);
	assert_int_equal(counts.rests, 2);
	passes(20);
	assert_int_equal(nasked, 3);
}

static void test_stayed_after_it_began(void **state)
{
	(void)state;
	passes(3);
	told(told_arg, asked_job, true, "");
	the_job()->moves = true;
	passes(3);
	the_job()->moves = false; /* it was aborted */
	passes(3);
	assert_int_equal(counters.policy_moves_stayed, 1);
	passes(3);
	assert_int_equal(nasked, 1); /* the loads settle */
}

static void test_home_never_begins(void **state)
{
	(void)state;
	passes(3);
	told(told_arg, asked_job, true, "");
	passes(15);
	assert_int_equal(counters.policy_moves_stayed, 0);
	passes(10);
	assert_int_equal(counters.policy_moves_stayed, 1);
}

static void test_home_cannot_be_asked(void **state)
{
	(void)state;
	away_rc = -EHOSTUNREACH;
	passes(3);
	assert_int_equal(counters.policy_moves_stayed, 1);
	assert_int_equal(nasked, 0);
}

static void test_it_ends_meanwhile(void **state)
{
	(void)state;
	passes(3);
	told(told_arg, asked_job, true, "");
	*the_job() = jobs[--njobs];
	passes(3);
	assert_int_equal(counters.policy_moves_stayed, 0);
	passes(8);
	assert_int_equal(nasked, 2);
}

/* An answer about a job that is none of the present one changes nothing. */
static void test_a_late_answer(void **state)
{
	(void)state;
	passes(3);
	told(told_arg, "me-0-9", false, "late");
	assert_int_equal(counters.policy_moves_stayed, 0);
	passes(6);
	assert_int_equal(nasked, 1);
}

static void test_pause_of_one_that_came(void **state)
{
	(void)state;
	for (size_t i = 0; i < JOBS; i++) {
		jobs[i].came = true;
		jobs[i].since_ns = loop_real_ns(base.loop);
	}
	passes(28);
	assert_int_equal(nasked, 0);
	passes(6);
	assert_int_equal(nasked, 1);
}

static void test_budget_of_a_minute(void **state)
{
	(void)state;
	set.moves.a_minute = 1;
	passes(3);
	leaves(20, 400);
	passes(30);
	assert_int_equal(nasked, 1);
	assert_true(counters.policy_moves_held > 5);
	passes(35); /* the minute is over */
	assert_int_equal(nasked, 2);
}

static void test_budget_of_bytes(void **state)
{
	(void)state;
	set.moves.mb_a_minute = 30; /* one of 20 MB is within it, two are not */
	passes(3);
	leaves(20, 400);
	passes(30);
	assert_int_equal(nasked, 1);
	assert_true(counters.policy_moves_held > 5);
	passes(35);
	assert_int_equal(nasked, 2);
}

/* What the move to a node took counts for the next one. */
static void test_cost_is_learned(void **state)
{
	double before;

	(void)state;
	passes(3);
	before = asked.cost_ms;
	leaves(20, 5000);
	passes(8);
	assert_int_equal(nasked, 2);
	assert_true(asked.cost_ms > 5 * before);
	/* Of so dear a way nothing is left to gain. */
	for (int i = 0; i < 10; i++)
		moves_left(moves, "by-hand", "other", 400000, 20000000);
	told(told_arg, asked_job, false, "no");
	passes(40);
	assert_int_equal(nasked, 2);
}

static void test_rooms_that_are_full(void **state)
{
	struct moves_counts counts;
	char name[32];

	(void)state;
	for (int i = 0; i < MOVES_NODES_MAX + 3; i++) {
		snprintf(name, sizeof(name), "n%d", i);
		moves_left(moves, "by-hand", name, 100, 1000000);
	}
	moves_count(moves, &counts);
	assert_int_equal(counts.nodes, MOVES_NODES_MAX);
	assert_int_equal(counters.moves_nodes_replaced, 3);
}

/* --- costs and tasks -----------------------------------------------------------------------------
 */

static void test_cost_by_least_squares(void **state)
{
	struct moves_cost cost;
	double f, mb_per_s;

	(void)state;
	moves_cost_begin(&cost, 300, 125);
	moves_cost_tell(&cost, &f, &mb_per_s);
	assert_true(f > 299.9 && f < 300.1 && mb_per_s > 124.9 && mb_per_s < 125.1);
	for (int i = 0; i < 60; i++) /* in truth f is 100 ms, and 50 MB/s */
		moves_cost_learn(&cost, 1 + i % 7 * 40, 100 + (1 + i % 7 * 40) * 20);
	moves_cost_tell(&cost, &f, &mb_per_s);
	assert_true(f > 99 && f < 102 && mb_per_s > 49.5 && mb_per_s < 50.5);
	/* Moves of one size tell f and b together only: what they took is what is expected. */
	for (int i = 0; i < 60; i++)
		moves_cost_learn(&cost, 10, 700);
	moves_cost_tell(&cost, &f, &mb_per_s);
	assert_true(f + 1e4 / mb_per_s > 680 && f + 1e4 / mb_per_s < 720);
	/* Larger ones that took less do not make it negative. */
	moves_cost_learn(&cost, 500, 10);
	moves_cost_tell(&cost, &f, &mb_per_s);
	assert_true(f >= 0 && mb_per_s > 0);
}

static void test_tasks(void **state)
{
	struct guest_running job = {.cpu_ms = 1000,
				    .requests = 400,
				    .faults = 100,
				    .moved_mb = 40,
				    .memory_mb = 7,
				    .need = &needs[0]};
	struct rules_task task;

	(void)state;
	/* 1 s of computation and 500 requests of 2 ms are a quarter of 4 s and 2,000. */
	needs[0].value[NEED_CPU_S] = 4;
	needs[0].value[NEED_REQUESTS] = 2000;
	needs[0].source[NEED_REQUESTS] = NEED_PROFILE;
	moves_task(&job, 1, 10000, 2, &task);
	assert_true(task.cpu_ms == 4000 && task.age_ms == 1000 && task.requests == 2000);
	assert_true(task.io_per_ms == 0.05 && task.request_kb == 100 && task.memory_mb == 7);
	/* It computes less than was known, but is as far by its requests. */
	job.cpu_ms = 0;
	job.requests = 1900;
	moves_task(&job, 1, 10000, 2, &task);
	assert_true(task.age_ms > 0.49 * task.cpu_ms && task.age_ms < 0.51 * task.cpu_ms);
	/* It has done more than was known; or nothing is known: as much again. */
	job.requests = 9000;
	moves_task(&job, 1, 10000, 2, &task);
	assert_true(task.age_ms == 0.5 * task.cpu_ms && task.requests == 18200);
	needs[0].source[NEED_CPU_S] = needs[0].source[NEED_REQUESTS] = NEED_DEFAULT;
	job.requests = 10;
	job.cpu_ms = 3000;
	moves_task(&job, 2, 0, 2, &task);
	assert_true(task.cpu_ms == 12000 && task.age_ms == 6000 && task.requests == 220);
	assert_true(task.io_per_ms == 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_two_looks_agree),
		TEST(test_a_look_between_does_not_count),
		TEST(test_others_stay),
		TEST(test_a_gain_that_is_too_small),
		TEST(test_no_moves_are_wanted),
		TEST(test_by_age),
		TEST(test_the_next_after_it_has_left),
		TEST(test_refused_and_left_alone),
		TEST(test_stayed_after_it_began),
		TEST(test_home_never_begins),
		TEST(test_home_cannot_be_asked),
		TEST(test_it_ends_meanwhile),
		TEST(test_a_late_answer),
		TEST(test_pause_of_one_that_came),
		TEST(test_budget_of_a_minute),
		TEST(test_budget_of_bytes),
		TEST(test_cost_is_learned),
		TEST(test_rooms_that_are_full),
		TEST(test_cost_by_least_squares),
		TEST(test_tasks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
