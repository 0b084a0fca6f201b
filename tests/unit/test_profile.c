/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Class profiles: what a run teaches, and that it is there after reopening. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "profile.h"

#define NEAR(a, b) assert_true(fabs((double)(a) - (double)(b)) < 1e-9 * (1 + fabs((double)(b))))

static void test_merge(void **state)
{
	struct profile p = {0}, run = {.cpu_ms = 100,
				       .requests = 1000,
				       .wall_ms = 1000,
				       .io_per_ms = 1,
				       .memory_mb = 10,
				       .request_kb = 64};

	(void)state;
	profile_merge(&p, &run);
	assert_int_equal(p.runs, 1);
	NEAR(p.io_per_ms, 1);
	/* slowed down by others: the alone-rate stays, the rest moves half-way */
	run.cpu_ms = 200;
	run.wall_ms = 4000;
	run.io_per_ms = 0.25;
	profile_merge(&p, &run);
	NEAR(p.io_per_ms, 1);
	NEAR(p.cpu_ms, 150);
	NEAR(p.wall_ms, 2500);
	/* the class does far less I/O now: what was seen before says nothing */
	run.requests = 100;
	run.io_per_ms = 0.1;
	profile_merge(&p, &run);
	NEAR(p.io_per_ms, 0.1);
	assert_int_equal(p.runs, 3);
}

static void test_store(void **state)
{
	char dir[] = "/tmp/iocom-test-profile-XXXXXX", path[64], command[80];
	struct profile run = {.cpu_ms = 100, .memory_mb = 10}, p;
	struct profile_store *store = NULL;
	struct iocom_err err = {0};

	(void)state;
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/profile.db", dir);
	assert_int_equal(profile_open(&store, path, &err), 0);
	assert_int_equal(profile_get(store, 1000, "sort", &p, &err), -ENOENT);
	assert_int_equal(profile_learn(store, 1000, "sort", &run, &err), 0);
	profile_close(store);
	assert_int_equal(profile_open(&store, path, &err), 0);
	assert_int_equal(profile_get(store, 1000, "sort", &p, &err), 0);
	NEAR(p.cpu_ms, 100);
	assert_int_equal(profile_get(store, 1001, "sort", &p, &err), -ENOENT); /* another's */
	profile_close(store);
	profile_close(NULL);
	assert_int_equal(profile_open(&store, "/nonexistent/x.db", &err), -EIO);
	assert_non_null(strstr(err.text, "/nonexistent/x.db"));
	snprintf(command, sizeof(command), "rm -rf %s", dir);
	assert_int_equal(system(command), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_merge),
		cmocka_unit_test(test_store),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
