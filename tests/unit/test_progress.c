/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* What running jobs say about the needs of their classes (progress.h). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "agent/base/counters.h"
#include "agent/home/progress.h"

#define ANNA	   1000
#define BEN	   1001

#define NEAR(a, b) assert_true(fabs((double)(a) - (double)(b)) < 1e-9 * (1 + fabs((double)(b))))

static struct counters counters;
static uint64_t now_ns;
static struct progress *progress;

static int setup(void **state)
{
	(void)state;
	counters = (struct counters){0};
	now_ns = 1000;
	return progress_new(&progress, &counters);
}

static int teardown(void **state)
{
	(void)state;
	progress_free(progress);
	return 0;
}

static void note(const char *job, uid_t uid, const char *class_name, double cpu_ms, double requests)
{
	struct job_report r = {.state = "running",
			       .wall_ms = 2000,
			       .cpu_ms = cpu_ms,
			       .requests = requests,
			       .request_kb = 64,
			       .behaviour = {.fault_requests = 10, .fault_kb = 1280}};

	snprintf(r.job, sizeof(r.job), "%s", job);
	assert_int_equal(progress_note(progress, uid, class_name, &r, now_ns), 0);
}

/* The last report tells whether a signal has stopped the job. */
static void test_stopped(void **state)
{
	struct job_report r = {.job = "s", .state = "running", .stopped = true};

	(void)state;
	assert_false(progress_stopped(progress, "s"));
	assert_int_equal(progress_note(progress, ANNA, "", &r, now_ns), 0);
	assert_true(progress_stopped(progress, "s"));
	assert_false(progress_stopped(progress, "t"));
	r.stopped = false;
	assert_int_equal(progress_note(progress, ANNA, "", &r, now_ns), 0);
	assert_false(progress_stopped(progress, "s"));
	r.stopped = true;
	assert_int_equal(progress_note(progress, ANNA, "", &r, now_ns), 0);
	progress_forget(progress, "s");
	assert_false(progress_stopped(progress, "s"));
}

/* What it did once more; of the job that did most; and of nobody else's. */
static void test_guess(void **state)
{
	struct profile p;

	(void)state;
	assert_false(progress_guess(progress, ANNA, "fit", now_ns, &p));
	note("a", ANNA, "fit", 500, 100);
	note("b", ANNA, "fit", 700, 100);
	note("c", BEN, "fit", 9000, 100);
	note("d", ANNA, "make", 9000, 100);
	assert_true(progress_guess(progress, ANNA, "fit", now_ns, &p));
	NEAR(p.cpu_ms, 1400);
	NEAR(profile_requests(&p), 220);
	NEAR(profile_request_kb(&p), (6.4 + 1.28) * 1e3 / 110);
	NEAR(p.wall_ms, 4000);
	note("b", ANNA, "fit", 1700, 100); /* it tells again */
	assert_int_equal(progress_count(progress), 4);
	assert_true(progress_guess(progress, ANNA, "fit", now_ns, &p));
	NEAR(p.cpu_ms, 3400);
	progress_forget(progress, "b");
	progress_forget(progress, "unknown");
	assert_true(progress_guess(progress, ANNA, "fit", now_ns, &p));
	NEAR(p.cpu_ms, 1000);
	progress_forget(progress, "a");
	assert_false(progress_guess(progress, ANNA, "fit", now_ns, &p));
	assert_int_equal(progress_count(progress), 2);
}

/* A profile is corrected upwards only, by half of the way, as by a run that ended. */
static void test_correct(void **state)
{
	struct profile p = {.runs = 3, .cpu_ms = 1000, .requests = 200, .request_mb = 12.8};

	(void)state;
	assert_false(progress_correct(progress, ANNA, "fit", now_ns, &p));
	note("a", ANNA, "fit", 900, 200); /* it did less so far, which says nothing */
	assert_false(progress_correct(progress, ANNA, "fit", now_ns, &p));
	NEAR(p.cpu_ms, 1000);
	note("a", ANNA, "fit", 3000, 190);
	assert_true(progress_correct(progress, ANNA, "fit", now_ns, &p));
	NEAR(p.cpu_ms, 2000);
	NEAR(p.requests, 195);
	NEAR(p.fault_requests, 5);
}

/* A job that does not report again when it is twice as old is gone, with its node or without. */
static void test_silence(void **state)
{
	struct profile p;

	(void)state;
	note("a", ANNA, "fit", 500, 100); /* it is 2 s old */
	now_ns += PROGRESS_LATE_NS + 4000000000ull;
	assert_true(progress_guess(progress, ANNA, "fit", now_ns, &p));
	now_ns++;
	assert_false(progress_guess(progress, ANNA, "fit", now_ns, &p));
	p = (struct profile){.runs = 1};
	assert_false(progress_correct(progress, ANNA, "fit", now_ns, &p));
	note("b", ANNA, "make", 500, 100);
	assert_int_equal(progress_count(progress), 1);
}

/* The newest stay. */
static void test_bound(void **state)
{
	struct profile p;
	char name[32];

	(void)state;
	for (int i = 0; i < PROGRESS_MAX + 10; i++) {
		snprintf(name, sizeof(name), "job-%d", i);
		note(name, ANNA, name, 100, 1);
		note("first", ANNA, "first", 100, 1);
	}
	assert_int_equal(progress_count(progress), PROGRESS_MAX);
	assert_int_equal(counters.progress_replaced, 11);
	assert_false(progress_guess(progress, ANNA, "job-5", now_ns, &p));
	assert_true(progress_guess(progress, ANNA, "job-50", now_ns, &p));
	assert_true(progress_guess(progress, ANNA, name, now_ns, &p));
	assert_true(progress_guess(progress, ANNA, "first", now_ns, &p));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_stopped, setup, teardown),
		cmocka_unit_test_setup_teardown(test_guess, setup, teardown),
		cmocka_unit_test_setup_teardown(test_correct, setup, teardown),
		cmocka_unit_test_setup_teardown(test_silence, setup, teardown),
		cmocka_unit_test_setup_teardown(test_bound, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
