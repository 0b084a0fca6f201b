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

#include "balancer/profile/profile.h"

#define NEAR(a, b) assert_true(fabs((double)(a) - (double)(b)) < 1e-9 * (1 + fabs((double)(b))))

static void test_merge(void **state)
{
	struct profile p = {0}, run = {.cpu_ms = 100,
				       .requests = 450,
				       .request_mb = 28.8,
				       .wall_ms = 1000,
				       .rest_ms = 500,
				       .memory_mb = 10};

	(void)state;
	profile_merge(&p, &run);
	assert_int_equal(p.runs, 1);
	NEAR(profile_request_kb(&p), 64);
	/* The same work in other pieces: the work stays what it is, the rest moves half-way. */
	run.cpu_ms = 200;
	run.wall_ms = 4000;
	run.rest_ms = 100;
	run.requests = 7200;
	profile_merge(&p, &run);
	assert_int_equal(p.runs, 2);
	NEAR(p.requests, 3825);
	NEAR(profile_requests(&p) * profile_request_kb(&p) / 1e3, 28.8);
	NEAR(p.cpu_ms, 150);
	NEAR(p.wall_ms, 2500);
	NEAR(p.rest_ms, 300);
	/* A run without I/O: it has a part in the bytes like in the requests. */
	run.requests = run.request_mb = 0;
	profile_merge(&p, &run);
	NEAR(profile_requests(&p) * profile_request_kb(&p) / 1e3, 14.4);
	assert_int_equal(p.runs, 3);
}

/* A reader of mapped files does its disk work by page faults: it counts, and stays apart. */
static void test_mapped_reader(void **state)
{
	struct profile p = {0}, run = {.cpu_ms = 400, .fault_requests = 800, .fault_mb = 102.4};

	(void)state;
	profile_merge(&p, &run);
	NEAR(p.requests, 0);
	NEAR(profile_requests(&p), 800);
	NEAR(profile_request_kb(&p), 128);
	NEAR(profile_faults_per_ms(&p), 2);
	run.fault_requests = 400;
	run.requests = 200;
	run.request_mb = 12.8;
	profile_merge(&p, &run);
	NEAR(profile_requests(&p), 700);
	NEAR(profile_request_kb(&p), (102.4 + 6.4) * 1e3 / 700);
	NEAR(profile_faults_per_ms(&p), 1.5);
	p = (struct profile){.requests = 0};
	NEAR(profile_request_kb(&p), 0);
	NEAR(profile_faults_per_ms(&p), 0);
}

/* The rate is that of the machine which asks, wherever the class ran. */
static void test_rate(void **state)
{
	const struct profile_machine slow = {.cpu_speed = 1, .disk_mb_per_s = 10},
				     fast = {.cpu_speed = 1, .disk_mb_per_s = 64e3}, unknown = {0};
	struct profile p = {.requests = 10000, .request_mb = 640, .wall_ms = 1000, .disk_ms = 10};

	(void)state;
	NEAR(profile_rate_per_ms(&p, &slow), 10000 / 64e3);
	NEAR(profile_rate_per_ms(&p, &fast), 10000 / PROFILE_RATE_MS); /* no run is shorter */
	/* It slept for most of the run, and sleeps elsewhere, too. */
	p.rest_ms = 36000;
	p.wall_ms = 37000;
	NEAR(profile_rate_per_ms(&p, &slow), 10000 / 100e3);
	/* 16 s of computation at half the speed; seek and rotation are part of a request. */
	p.rest_ms = 0;
	p.cpu_ms = 16000;
	p.wall_ms = 20000;
	NEAR(profile_rate_per_ms(&p, &(struct profile_machine){0.5, 3.6, 10}), 10000 / 132e3);
	/* Four threads did in 4 s what takes 16 s of a CPU; a disk serves one at a time. */
	p.disk_ms = 4000;
	p.wall_ms = 5000;
	NEAR(profile_rate_per_ms(&p, &slow), 10000 / 64e3);
	NEAR(profile_rate_per_ms(&p, &unknown), 10000 / 5000.0);
	/* Page faults are requests like the others, here. */
	p.fault_requests = p.requests;
	p.fault_mb = p.request_mb;
	p.requests = p.request_mb = 0;
	NEAR(profile_rate_per_ms(&p, &slow), 10000 / 64e3);
	p = (struct profile){.cpu_ms = 10};
	NEAR(profile_rate_per_ms(&p, &slow), 0);
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
	struct profile run = {.cpu_ms = 1020,
			      .requests = 12,
			      .request_mb = 1.5,
			      .fault_requests = 7,
			      .fault_mb = 0.5,
			      .memory_mb = 30,
			      .wall_ms = 2100,
			      .rest_ms = 330,
			      .com_ms = 8,
			      .disk_ms = 702.5},
		       p;
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
	run.runs = 1;
	assert_memory_equal(&p, &run, sizeof(p)); /* every number comes back as it was */
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
	assert_int_equal(
		profile_list_part(store,
				  &(struct profile_part){
					  .uid = (uid_t)-1, .class_name = "", .skip = 1, .most = 5},
				  see, &seen, &err),
		0);
	assert_int_equal(seen.count, 4);
	assert_string_equal(seen.last, "join");
	assert_int_equal(profile_list_part(store,
					   &(struct profile_part){
						   .uid = (uid_t)-1, .class_name = "", .most = 1},
					   see, &seen, &err),
			 0);
	assert_int_equal(seen.count, 5);
	assert_string_equal(seen.last, "sort");
	assert_int_equal(
		profile_list_part(store, &(struct profile_part){.uid = 1001, .class_name = "sort"},
				  see, &seen, &err),
		0);
	assert_int_equal(seen.count, 5); /* no such class of that user */
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

struct errors_seen {
	unsigned nodes;
	struct profile_error all, n2;
	char first[64];
};

static void see_error(void *arg, const char *node, const struct profile_error *e)
{
	struct errors_seen *seen = arg;

	if (!*node) {
		assert_int_equal(seen->nodes, 0); /* the class comes first */
		seen->all = *e;
		return;
	}
	if (!seen->nodes++)
		snprintf(seen->first, sizeof(seen->first), "%s", node);
	if (!strcmp(node, "n2"))
		seen->n2 = *e;
}

static struct errors_seen errors_of(struct profile_store *store, uid_t uid, const char *class_name)
{
	struct errors_seen seen = {0};
	struct iocom_err err = {0};

	assert_int_equal(profile_errors(store, uid, class_name, see_error, &seen, &err), 0);
	return seen;
}

/* How wrong predictions were belongs to the class: it lives, is bounded, and goes with it. */
static void test_errors(void **state)
{
	char dir[] = "/tmp/iocom-test-profile-XXXXXX", path[64], command[80], name[32];
	struct profile run = {.cpu_ms = 100};
	struct profile_store *store = NULL;
	struct iocom_err err = {0};
	struct errors_seen seen;

	(void)state;
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/profile.db", dir);
	assert_int_equal(profile_open(&store, path, &err), 0);
	assert_int_equal(profile_error_learn(store, 1000, "sort", "n2", 1, &err), -ENOENT);
	assert_int_equal(profile_learn(store, 1000, "sort", &run, &err), 0);
	assert_int_equal(profile_error_learn(store, 1001, "sort", "n2", 1, &err), -ENOENT);
	assert_int_equal(profile_error_learn(store, 1000, "sort", "n2", NAN, &err), -EINVAL);
	assert_int_equal(profile_error_learn(store, 1000, "sort", "n2", 1, &err), 0);
	assert_int_equal(profile_error_learn(store, 1000, "sort", "n3", 0, &err), 0);
	assert_int_equal(profile_error_learn(store, 1000, "sort", "n2", 0, &err), 0);
	profile_close(store);
	assert_int_equal(profile_open(&store, path, &err), 0);
	seen = errors_of(store, 1000, "sort");
	assert_int_equal(seen.nodes, 2);
	assert_int_equal(seen.n2.jobs, 2);
	NEAR(seen.n2.mean_log, 0.5);
	assert_int_equal(seen.all.jobs, 3);
	NEAR(seen.all.mean_log, 1 / 3.0);
	/* Old errors are forgotten: what was true for long gives way within a few dozen jobs. */
	for (int i = 0; i < 100; i++)
		assert_int_equal(profile_error_learn(store, 1000, "sort", "n2", -1, &err), 0);
	seen = errors_of(store, 1000, "sort");
	assert_true(seen.n2.mean_log < -0.99 && seen.n2.jobs == 102);
	/* Ever new nodes take the places of those used longest ago, never that of the class. */
	for (int i = 0; i < PROFILE_NODES_MAX + 5; i++) {
		snprintf(name, sizeof(name), "m%03d", i);
		assert_int_equal(profile_error_learn(store, 1000, "sort", name, 0, &err), 0);
	}
	seen = errors_of(store, 1000, "sort");
	assert_int_equal(seen.nodes, PROFILE_NODES_MAX);
	assert_int_equal(seen.n2.jobs, 0);
	assert_string_equal(seen.first, "m005");
	assert_int_equal(seen.all.jobs, 103 + PROFILE_NODES_MAX + 5);
	/* They go with the class: forgotten, or replaced by others. */
	assert_int_equal(profile_forget(store, 1000, "sort", &err), 0);
	assert_int_equal(errors_of(store, 1000, "sort").all.jobs, 0);
	assert_int_equal(profile_learn(store, 1000, "a", &run, &err), 0);
	assert_int_equal(profile_error_learn(store, 1000, "a", "n2", 1, &err), 0);
	for (int i = 0; i < PROFILE_CLASSES_MAX; i++) {
		snprintf(name, sizeof(name), "b%04d", i);
		assert_int_equal(profile_learn(store, 1000, name, &run, &err), 0);
	}
	assert_int_equal(errors_of(store, 1000, "a").all.jobs, 0);
	profile_close(store);
	snprintf(command, sizeof(command), "rm -rf %s", dir);
	assert_int_equal(system(command), 0);
}

/* Rows of a damaged file that are no errors are not there: no correction comes from them. */
static void test_errors_absurd(void **state)
{
	static const char sql[] =
		"INSERT INTO error VALUES(1000,'sort','',-4,0.5,1), (1000,'sort','n2',3,9e999,1),"
		" (1000,'tar','',3,-9e999,1), (1000,'tar','n2',2,0.25,1)";
	char dir[] = "/tmp/iocom-test-profile-XXXXXX", path[64], command[80];
	struct profile_store *store = NULL;
	struct iocom_err err = {0};
	sqlite3 *db;

	(void)state;
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/profile.db", dir);
	assert_int_equal(profile_open(&store, path, &err), 0);
	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
	sqlite3_close(db);
	assert_int_equal(errors_of(store, 1000, "sort").all.jobs, 0);
	assert_int_equal(errors_of(store, 1000, "sort").nodes, 0);
	assert_int_equal(errors_of(store, 1000, "tar").all.jobs, 0);
	assert_int_equal(errors_of(store, 1000, "tar").n2.jobs, 2);
	profile_close(store);
	snprintf(command, sizeof(command), "rm -rf %s", dir);
	assert_int_equal(system(command), 0);
}

/* A file whose table is gone says so. */
static void test_errors_failure(void **state)
{
	char dir[] = "/tmp/iocom-test-profile-XXXXXX", path[64], command[80];
	struct profile_store *store = NULL;
	struct errors_seen seen = {0};
	struct iocom_err err = {0};
	sqlite3 *db;

	(void)state;
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/profile.db", dir);
	assert_int_equal(profile_open(&store, path, &err), 0);
	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, "DROP TABLE error", NULL, NULL, NULL), SQLITE_OK);
	sqlite3_close(db);
	assert_int_equal(profile_error_learn(store, 1000, "sort", "n2", 1, &err), -EIO);
	assert_non_null(strstr(err.text, path));
	assert_int_equal(profile_errors(store, 1000, "sort", see_error, &seen, &err), -EIO);
	profile_close(store);
	snprintf(command, sizeof(command), "rm -rf %s", dir);
	assert_int_equal(system(command), 0);
}

/*
 * What is typical: medians over the user's classes, over everybody's if he has too few, and nothing
 * of a damaged file.
 */
static void test_typical(void **state)
{
	static const char damage[] =
		"INSERT INTO profile VALUES(1002,'x',9,9e999,1,1,0,0,1,1,1),"
		" (1002,'y',9,-5,1,1,0,0,1,1,1), (1002,'z',9,NULL,1,1,0,0,1,1,1)";
	char dir[] = "/tmp/iocom-test-profile-XXXXXX", path[64], command[80];
	struct profile_store *store = NULL;
	struct profile run = {.wall_ms = 500}, p;
	struct iocom_err err = {0};
	sqlite3 *db;

	(void)state;
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/profile.db", dir);
	assert_int_equal(profile_open(&store, path, &err), 0);
	assert_int_equal(profile_typical(store, 1000, &p, &err), -ENOENT);
	for (int i = 0; i < 3; i++) {
		run.cpu_ms = (double[]){100, 5000, 300}[i];
		run.requests = (double[]){0, 40, 10}[i];
		run.fault_requests = 5;
		run.request_mb = run.requests / 10;
		run.fault_mb = 1;
		assert_int_equal(profile_typical(store, 1000, &p, &err), -ENOENT);
		assert_int_equal(
			profile_learn(store, 1000, (const char *[]){"a", "b", "c"}[i], &run, &err),
			0);
	}
	assert_int_equal(profile_typical(store, 1000, &p, &err), 0);
	NEAR(p.cpu_ms, 300);
	NEAR(profile_requests(&p), 15);
	NEAR(profile_request_kb(&p), 2e3 / 15);
	NEAR(p.wall_ms, 500);
	/* the first class of another user: what is typical here */
	run.cpu_ms = 900;
	assert_int_equal(profile_learn(store, 1001, "a", &run, &err), 0);
	assert_int_equal(profile_typical(store, 1001, &p, &err), 0);
	NEAR(p.cpu_ms, 600);
	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, damage, NULL, NULL, NULL), SQLITE_OK);
	assert_int_equal(profile_typical(store, 1002, &p, &err), 0);
	assert_true(p.cpu_ms >= 100 && p.cpu_ms <= 5000);
	assert_int_equal(sqlite3_exec(db, "DROP TABLE profile", NULL, NULL, NULL), SQLITE_OK);
	sqlite3_close(db);
	assert_int_equal(profile_typical(store, 1000, &p, &err), -EIO);
	profile_close(store);
	snprintf(command, sizeof(command), "rm -rf %s", dir);
	assert_int_equal(system(command), 0);
}

struct doubts_seen {
	int n;
	char last[16];
	double n2;
};

static void see_doubt(void *arg, const char *node, double doubt)
{
	struct doubts_seen *seen = arg;

	seen->n++;
	snprintf(seen->last, sizeof(seen->last), "%s", node);
	if (!strcmp(node, "n2"))
		seen->n2 = doubt;
}

static struct doubts_seen doubts_of(struct profile_store *store)
{
	struct doubts_seen seen = {.n = 0};
	struct iocom_err err = {0};

	assert_int_equal(profile_doubts(store, see_doubt, &seen, &err), 0);
	return seen;
}

/* Doubts of nodes: moved, bounded, faded, few, and kept; those of a damaged file do not count. */
static void test_doubts(void **state)
{
	char dir[] = "/tmp/iocom-test-profile-XXXXXX", path[64], name[16], command[80];
	struct profile_store *store = NULL;
	struct iocom_err err = {0};
	sqlite3 *db;

	(void)state;
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/profile.db", dir);
	assert_int_equal(profile_open(&store, path, &err), 0);
	assert_int_equal(doubts_of(store).n, 0);
	assert_int_equal(profile_doubt_learn(store, "n2", NAN, &err), -EINVAL);
	assert_int_equal(profile_doubt_learn(store, "n2", 2, &err), 0);
	NEAR(doubts_of(store).n2, 0.4);
	assert_int_equal(profile_doubt_learn(store, "n2", -1, &err), 0);
	NEAR(doubts_of(store).n2, 0.4 * 0.98 - 0.2);
	assert_int_equal(profile_doubt_learn(store, "n2", -9, &err), 0);
	assert_int_equal(doubts_of(store).n, 0); /* nothing is doubted */
	assert_int_equal(profile_doubt_learn(store, "n2", 1e9, &err), 0);
	NEAR(doubts_of(store).n2, PROFILE_DOUBT_MAX);
	profile_close(store);
	assert_int_equal(profile_open(&store, path, &err), 0);
	NEAR(doubts_of(store).n2, PROFILE_DOUBT_MAX);
	for (int i = 0; i < PROFILE_DOUBTS_MAX + 5; i++) {
		snprintf(name, sizeof(name), "m%03d", i);
		assert_int_equal(profile_doubt_learn(store, name, 1 + i / 10.0, &err), 0);
	}
	assert_int_equal(doubts_of(store).n, PROFILE_DOUBTS_MAX);
	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	assert_int_equal(
		sqlite3_exec(db,
			     "DELETE FROM doubt; INSERT INTO doubt VALUES('a',-1), ('b',9e999),"
			     " ('c','x'), ('d',0.5)",
			     NULL, NULL, NULL),
		SQLITE_OK);
	assert_int_equal(doubts_of(store).n, 1);
	assert_string_equal(doubts_of(store).last, "d");
	assert_int_equal(sqlite3_exec(db, "DROP TABLE doubt", NULL, NULL, NULL), SQLITE_OK);
	sqlite3_close(db);
	assert_int_equal(profile_doubt_learn(store, "n2", 1, &err), -EIO);
	assert_int_equal(profile_doubts(store, see_doubt, NULL, &err), -EIO);
	profile_close(store);
	snprintf(command, sizeof(command), "rm -rf %s", dir);
	assert_int_equal(system(command), 0);
}

/* Writes a file of VERSION by SQL. */
static void older_file(const char *path, int version, const char *sql)
{
	char pragma[64];
	sqlite3 *db;

	snprintf(pragma, sizeof(pragma), "PRAGMA user_version=%d", version);
	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, pragma, NULL, NULL, NULL), SQLITE_OK);
	sqlite3_close(db);
}

static const char first_table[] =
	"PRAGMA journal_mode=WAL; CREATE TABLE profile(uid INTEGER, class TEXT,"
	" runs INTEGER, cpu_ms REAL, requests REAL, request_kb REAL, memory_mb REAL,"
	" wall_ms REAL, io_per_ms REAL, faults_per_ms REAL, PRIMARY KEY(uid, class)) WITHOUT ROWID;"
	"INSERT INTO profile VALUES(1000,'sort',3,100,5,64,10,200,0.1,0);"
	"INSERT INTO profile VALUES(1000,'map',2,400,0,0,10,3500,0,2)";
static const char second_table[] =
	"CREATE TABLE behaviour(uid INTEGER, class TEXT, com_ms REAL, disk_ms REAL, phases TEXT,"
	" PRIMARY KEY(uid, class)) WITHOUT ROWID;"
	"INSERT INTO behaviour VALUES(1000,'map',1,2900,'[1,2,3,4,5,[10,0,2900,3500,2]]')";

/* Opens PATH, a file of VERSION, and checks what it knew. */
static void check_older(const char *path, int version)
{
	struct profile_store *store = NULL;
	struct iocom_err err = {0};
	struct profile p;
	char copy[96];

	snprintf(copy, sizeof(copy), "%s.v%d-backup", path, version);
	assert_int_equal(profile_open(&store, path, &err), 0);
	assert_string_equal(profile_backup(store), copy);
	assert_int_equal(profile_get(store, 1000, "sort", &p, &err), 0);
	assert_int_equal(p.runs, 3);
	NEAR(p.cpu_ms, 100);
	NEAR(p.requests, 5);
	NEAR(p.request_mb, 0.32);
	NEAR(p.fault_requests, 0);
	NEAR(p.memory_mb, 10);
	NEAR(p.wall_ms, 200);
	NEAR(p.rest_ms, 100);
	assert_int_equal(profile_get(store, 1000, "map", &p, &err), 0);
	NEAR(p.fault_requests, 800); /* 2 per ms of computation */
	NEAR(p.fault_mb, 102.4);
	NEAR(p.rest_ms, version ? 200 : 3100); /* nothing told of the disk's time before */
	NEAR(p.disk_ms, version ? 2900 : 0);
	assert_int_equal(p.behaviour.n, version ? 1 : 0);
	assert_int_equal(profile_learn(store, 1000, "sort", &p, &err), 0);
	profile_close(store);
	assert_int_equal(profile_open(&store, path, &err), 0);
	assert_string_equal(profile_backup(store), "");
	assert_int_equal(profile_get(store, 1000, "sort", &p, &err), 0);
	assert_int_equal(p.runs, 4);
	/* It has the tables that came last. */
	assert_int_equal(profile_error_learn(store, 1000, "sort", "n2", 1, &err), 0);
	assert_int_equal(profile_doubt_learn(store, "n2", 1, &err), 0);
	profile_close(store);
}

/* Files of before there were versions, and of before bytes and page faults were learned. */
static void test_older_file(void **state)
{
	char dir[] = "/tmp/iocom-test-profile-XXXXXX", path[64], other[64], command[80];
	struct profile_store *store = NULL;
	struct iocom_err err = {0};

	(void)state;
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/profile.db", dir);
	snprintf(other, sizeof(other), "%s/profile-1.db", dir);
	older_file(path, 0, first_table);
	check_older(path, 0);
	older_file(other, 0, first_table);
	older_file(other, 1, second_table);
	check_older(other, 1);
	/* A newer one is not touched. */
	older_file(path, 8, "");
	assert_int_equal(profile_open(&store, path, &err), -ENOTSUP);
	assert_non_null(strstr(err.text, "the class profiles"));
	assert_non_null(strstr(err.text, "version 8"));
	snprintf(command, sizeof(command), "rm -rf %s", dir);
	assert_int_equal(system(command), 0);
}

/* A migration that fails on its way leaves the old file. */
static void test_failed_migration(void **state)
{
	char dir[] = "/tmp/iocom-test-profile-XXXXXX", path[64], command[80];
	struct profile_store *store = NULL;
	struct iocom_err err = {0};
	sqlite3 *db;

	(void)state;
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/profile.db", dir);
	older_file(path, 0, first_table);
	older_file(path, 1, second_table);
	older_file(path, 1, "ALTER TABLE behaviour RENAME COLUMN disk_ms TO odd");
	assert_true(profile_open(&store, path, &err) < 0);
	assert_null(store);
	assert_non_null(strstr(err.text, path));
	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, "SELECT io_per_ms FROM profile", NULL, NULL, NULL),
			 SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, "SELECT * FROM profile_1", NULL, NULL, NULL),
			 SQLITE_ERROR);
	sqlite3_close(db);
	snprintf(command, sizeof(command), "rm -rf %s", dir);
	assert_int_equal(system(command), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_merge),
		cmocka_unit_test(test_mapped_reader),
		cmocka_unit_test(test_rate),
		cmocka_unit_test(test_store),
		cmocka_unit_test(test_errors),
		cmocka_unit_test(test_errors_failure),
		cmocka_unit_test(test_typical),
		cmocka_unit_test(test_doubts),
		cmocka_unit_test(test_errors_absurd),
		cmocka_unit_test(test_bounded),
		cmocka_unit_test(test_behaviour),
		cmocka_unit_test(test_older_file),
		cmocka_unit_test(test_failed_migration),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
