/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Class profiles: what a run teaches, and that it survives reopening. */
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
#include <sqlite3.h>

#include "balancer/settings/profile.h"

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
	/* other jobs slowed it down: its rate when alone stays, the rest moves half-way */
	run.cpu_ms = 200;
	run.wall_ms = 4000;
	run.io_per_ms = 0.25;
	profile_merge(&p, &run);
	NEAR(p.io_per_ms, 1);
	NEAR(p.cpu_ms, 150);
	NEAR(p.wall_ms, 2500);
	/* the class does far less I/O now: its earlier runs count no more */
	run.requests = 100;
	run.io_per_ms = 0.1;
	profile_merge(&p, &run);
	NEAR(p.io_per_ms, 0.1);
	assert_int_equal(p.runs, 3);
}

struct seen {
	unsigned count;
	uid_t last_uid;
	char last[PROFILE_CLASS_MAX];
};

static void see(void *arg, uid_t uid, const char *class_name, const struct profile *profile)
{
	struct seen *seen = arg;

	assert_true(profile->runs > 0);
	seen->count++;
	seen->last_uid = uid;
	snprintf(seen->last, sizeof(seen->last), "%s", class_name);
}

static struct behaviour two_phases(void)
{
	return (struct behaviour){
		.n = 2,
		.phases = {{.ms = {1000, 0, 2.5}, .wall_ms = 1200, .dominant = BEHAVIOUR_CPU},
			   {.ms = {20, 0, 700}, .wall_ms = 900, .dominant = BEHAVIOUR_DISK}},
		.disk_low_ms = 650,
		.disk_high_ms = 755,
		.fault_ms = 12,
		.disk_wait_ms = 40,
		.run_wait_ms = 3,
	};
}

/* Phases come back unchanged; the times move half-way, the phases are the last run's. */
static void test_behaviour(void **state)
{
	char dir[] = "/tmp/iocom-test-profile-XXXXXX", path[64], command[80];
	struct profile run = {.cpu_ms = 1020, .com_ms = 8, .disk_ms = 702.5}, p;
	struct profile_store *store = NULL;
	struct iocom_err err = {0};
	struct seen seen = {0};
	sqlite3 *db;

	(void)state;
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/profile.db", dir);
	assert_int_equal(profile_open(&store, path, &err), 0);
	run.behaviour = two_phases();
	assert_int_equal(profile_learn(store, 1000, "sort", &run, &err), 0);
	assert_int_equal(profile_get(store, 1000, "sort", &p, &err), 0);
	assert_memory_equal(&p.behaviour, &run.behaviour, sizeof(p.behaviour));
	run.com_ms = 4;
	run.behaviour.n = 1;
	assert_int_equal(profile_learn(store, 1000, "sort", &run, &err), 0);
	assert_int_equal(profile_get(store, 1000, "sort", &p, &err), 0);
	NEAR(p.com_ms, 6);
	NEAR(p.disk_ms, 702.5);
	assert_int_equal(p.behaviour.n, 1);
	assert_int_equal(profile_learn(store, 1001, "join", &run, &err), 0);
	assert_int_equal(profile_list(store, (uid_t)-1, see, &seen, &err), 0);
	assert_int_equal(seen.count, 2);
	assert_int_equal(seen.last_uid, 1001);
	assert_string_equal(seen.last, "join");
	assert_int_equal(profile_list(store, 1000, see, &seen, &err), 0);
	assert_int_equal(seen.count, 3);
	assert_int_equal(profile_forget(store, 1000, "join", &err), -ENOENT); /* another user's */
	assert_int_equal(profile_forget(store, 1001, "join", &err), 0);
	assert_int_equal(profile_get(store, 1001, "join", &p, &err), -ENOENT);
	/* An older or damaged file: the numbers stay, the phases are unknown. */
	profile_close(store);
	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, "UPDATE behaviour SET phases='[1,2'", NULL, NULL, NULL),
			 SQLITE_OK);
	sqlite3_close(db);
	assert_int_equal(profile_open(&store, path, &err), 0);
	assert_int_equal(profile_get(store, 1000, "sort", &p, &err), 0);
	assert_int_equal(p.behaviour.n, 0);
	NEAR(p.cpu_ms, 1020);
	profile_close(store);
	snprintf(command, sizeof(command), "rm -rf %s", dir);
	assert_int_equal(system(command), 0);
}

/* Users may invent class names: a user with ever new ones must not fill the disk. */
static void test_bounded(void **state)
{
	char dir[] = "/tmp/iocom-test-profile-XXXXXX", path[64], command[80], name[32];
	struct profile run = {.cpu_ms = 100}, p;
	struct profile_store *store = NULL;
	struct iocom_err err = {0};
	struct seen seen = {0};

	(void)state;
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/profile.db", dir);
	assert_int_equal(profile_open(&store, path, &err), 0);
	assert_int_equal(profile_learn(store, 1001, "another's", &run, &err), 0);
	assert_int_equal(profile_learn(store, 1000, "aaa used", &run, &err), 0);
	assert_int_equal(profile_learn(store, 1000, "aaa used", &run, &err), 0);
	for (int i = 0; i < PROFILE_CLASSES_MAX + 5; i++) {
		snprintf(name, sizeof(name), "once %04d", i);
		assert_int_equal(profile_learn(store, 1000, name, &run, &err), 0);
	}
	assert_int_equal(profile_list(store, 1000, see, &seen, &err), 0);
	assert_int_equal(seen.count, PROFILE_CLASSES_MAX);
	assert_int_equal(profile_get(store, 1000, "aaa used", &p, &err), 0);
	assert_int_equal(profile_get(store, 1000, "once 0000", &p, &err), -ENOENT);
	assert_int_equal(profile_get(store, 1000, name, &p, &err), 0);
	assert_int_equal(profile_get(store, 1001, "another's", &p, &err), 0);
	profile_close(store);
	snprintf(command, sizeof(command), "rm -rf %s", dir);
	assert_int_equal(system(command), 0);
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
	assert_int_equal(profile_get(store, 1001, "sort", &p, &err), -ENOENT); /* another user's */
	profile_close(store);
	profile_close(NULL);
	assert_int_equal(profile_open(&store, "/nonexistent/x.db", &err), -EIO);
	assert_non_null(strstr(err.text, "/nonexistent/x.db"));
	snprintf(command, sizeof(command), "rm -rf %s", dir);
	assert_int_equal(system(command), 0);
}

/* A file of before there were versions, and of before there was a behaviour. */
static void test_older_file(void **state)
{
	char dir[] = "/tmp/iocom-test-profile-XXXXXX", path[64], copy[80], command[80];
	struct profile_store *store = NULL;
	struct iocom_err err = {0};
	struct profile p;
	sqlite3 *db;

	(void)state;
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/profile.db", dir);
	snprintf(copy, sizeof(copy), "%s.v0-backup", path);
	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	assert_int_equal(
		sqlite3_exec(
			db,
			"PRAGMA journal_mode=WAL; CREATE TABLE profile(uid INTEGER, class TEXT,"
			" runs INTEGER, cpu_ms REAL, requests REAL, request_kb REAL, memory_mb"
			" REAL, wall_ms REAL, io_per_ms REAL, faults_per_ms REAL,"
			" PRIMARY KEY(uid, class)) WITHOUT ROWID;"
			"INSERT INTO profile VALUES(1000,'sort',3,100,5,64,10,200,0.1,0)",
			NULL, NULL, NULL),
		SQLITE_OK);
	sqlite3_close(db);
	assert_int_equal(profile_open(&store, path, &err), 0);
	assert_string_equal(profile_backup(store), copy);
	assert_int_equal(profile_get(store, 1000, "sort", &p, &err), 0);
	NEAR(p.cpu_ms, 100);
	assert_int_equal(p.runs, 3);
	assert_int_equal(profile_learn(store, 1000, "sort", &p, &err), 0);
	profile_close(store);
	assert_int_equal(profile_open(&store, path, &err), 0);
	assert_string_equal(profile_backup(store), "");
	profile_close(store);
	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, "PRAGMA user_version=2", NULL, NULL, NULL), SQLITE_OK);
	sqlite3_close(db);
	assert_int_equal(profile_open(&store, path, &err), -ENOTSUP);
	assert_non_null(strstr(err.text, "the class profiles"));
	assert_non_null(strstr(err.text, "version 2"));
	snprintf(command, sizeof(command), "rm -rf %s", dir);
	assert_int_equal(system(command), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_merge),	   cmocka_unit_test(test_store),
		cmocka_unit_test(test_bounded),	   cmocka_unit_test(test_behaviour),
		cmocka_unit_test(test_older_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
