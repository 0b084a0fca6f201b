/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Runs that end while the class profiles are locked, damaged or cannot be written. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <sqlite3.h>

#include "agent/home/home_own.h"
#include "agent/home/learn.h"

#define USER 1000

static struct logger log_ = {.level = LOG_L_ERROR};
static struct counters counters;
static struct base base = {.log = &log_, .counters = &counters};
static struct home home;
static struct iocom_err err;
static char dir[64], path[80];
static sqlite3 *other;

static int begin(void **state)
{
	(void)state;
	strcpy(dir, "/tmp/iocom-test-learn-XXXXXX");
	counters = (struct counters){0};
	home = (struct home){.base = &base};
	if (!mkdtemp(dir))
		return -1;
	snprintf(path, sizeof(path), "%s/profile.db", dir);
	return profile_renew(&home.profiles, path, &err) || sqlite3_open(path, &other) != SQLITE_OK;
}

static int finish(void **state)
{
	char command[96];

	(void)state;
	learn_stop(&home);
	profile_close(home.profiles);
	sqlite3_close(other);
	snprintf(command, sizeof(command), "rm -rf %s", dir);
	return system(command);
}

static void sql(const char *text)
{
	assert_int_equal(sqlite3_exec(other, text, NULL, NULL, NULL), SQLITE_OK);
}

/* A run ends that needed CPU_MS. */
static void ends(double cpu_ms)
{
	struct learned_run run = {.uid = USER, .class_name = "sort", .node = "n1", .input_mb = -1};

	run.run.cpu_ms = cpu_ms;
	learn_run(&home, &run);
}

static uint32_t known(void)
{
	struct profile p;

	return profile_get(home.profiles, USER, "sort", &p, &err) ? 0 : p.runs;
}

/* What was learned of the newest run first. */
static void assert_newest(double cpu_ms)
{
	struct profile_one runs[2 * PROFILE_RUNS_KEPT];
	size_t n;

	assert_int_equal(profile_runs_read(home.profiles, USER, "sort", runs, &n, &err), 0);
	assert_true(n > 0 && runs[0].need[PROFILE_CPU_MS] == cpu_ms);
}

/* They wait, in their order, and nothing of them is lost. */
static void test_locked(void **state)
{
	(void)state;
	ends(1);
	sql("BEGIN IMMEDIATE");
	ends(2);
	ends(3);
	assert_int_equal(home.nlater, 2);
	assert_int_equal(counters.runs_learned_late, 2);
	assert_int_equal(known(), 1);
	learn_chores(&home); /* still locked */
	assert_int_equal(home.nlater, 2);
	sql("COMMIT");
	ends(4); /* after those that wait */
	assert_int_equal(home.nlater, 3);
	learn_chores(&home);
	assert_int_equal(home.nlater, 0);
	assert_int_equal(known(), 4);
	assert_newest(4);
	assert_int_equal(counters.runs_not_learned, 0);
	ends(5);
	assert_int_equal(known(), 5);
}

/* Not more wait than there is room for; what does not is counted. */
static void test_bounded(void **state)
{
	(void)state;
	sql("BEGIN IMMEDIATE");
	for (int i = 0; i < LEARN_LATER_MAX + 3; i++)
		ends(i);
	assert_int_equal(home.nlater, LEARN_LATER_MAX);
	assert_int_equal(counters.runs_not_learned, 3);
	sql("COMMIT");
	for (int i = 0; i < LEARN_LATER_MAX; i++)
		learn_chores(&home);
	assert_int_equal(known(), LEARN_LATER_MAX);
	/* Those that wait when the agent ends are learned, or counted. */
	sql("BEGIN IMMEDIATE");
	ends(1);
	learn_stop(&home);
	assert_int_equal(home.nlater, 0);
	assert_int_equal(counters.runs_not_learned, 4);
	ends(2);
	sql("COMMIT");
	learn_stop(&home);
	assert_int_equal(known(), LEARN_LATER_MAX + 1);
}

/* Damaged when the agent starts: another file takes their place, and has the run. */
static void test_damaged(void **state)
{
	const char *why;
	FILE *file;

	(void)state;
	for (int i = 0; i < 3; i++)
		ends(i);
	sqlite3_close(other);
	other = NULL;
	profile_close(home.profiles);
	file = fopen(path, "r+");
	assert_non_null(file);
	assert_true(fputs("no database at all", file) >= 0);
	fclose(file);
	assert_int_equal(profile_renew(&home.profiles, path, &err), 0);
	assert_true(*profile_aside(home.profiles, &why));
	ends(9);
	assert_int_equal(known(), 1);
	assert_int_equal(counters.runs_not_learned, 0);
}

/* What cannot be written for another reason is counted, and the next run is tried again. */
static void test_refused(void **state)
{
	(void)state;
	sql("CREATE TRIGGER no BEFORE INSERT ON run BEGIN SELECT raise(ABORT, 'no'); END");
	ends(1);
	assert_int_equal(counters.runs_not_learned, 1);
	assert_int_equal(known(), 0);
	assert_int_equal(home.nlater, 0);
	sql("DROP TRIGGER no");
	ends(2);
	assert_int_equal(known(), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_locked, begin, finish),
		cmocka_unit_test_setup_teardown(test_bounded, begin, finish),
		cmocka_unit_test_setup_teardown(test_damaged, begin, finish),
		cmocka_unit_test_setup_teardown(test_refused, begin, finish),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
