/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* The kept runs of a class, what the next one needs, what its user set, and a file set aside. */
#include <errno.h>
#include <glob.h>
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

#include "balancer/profile/profile_runs.h"

#define NEAR(a, b) assert_true(fabs((double)(a) - (double)(b)) < 1e-9 * (1 + fabs((double)(b))))
#define USER	   1000

static struct profile_store *store;
static struct iocom_err err;

static int begin(void **state)
{
	(void)state;
	return profile_open(&store, ":memory:", &err);
}

static int finish(void **state)
{
	(void)state;
	profile_close(store);
	return 0;
}

/* A run that computed 2 ms for each MB of its input and read READ_MB of it from the disk. */
static void ran(const char *class_name, uint64_t id, double input_mb, double read_mb,
		const char *node, uint64_t end_s)
{
	struct profile run = {
		.cpu_ms = 10 + 2 * (input_mb > 0 ? input_mb : 0),
		.requests = 8 * read_mb,
		.request_mb = read_mb,
		.read_mb = read_mb,
		.memory_mb = 30,
		.wall_ms = 1000,
	};
	struct profile_origin origin = {
		.input_id = id, .input_mb = input_mb, .node = node, .end_s = end_s};

	assert_int_equal(profile_learn_run(store, USER, class_name, &run, &origin, &err), 0);
}

static struct profile_expected expect(const char *class_name, uint64_t id, double input_mb,
				      const char *home, uint64_t now_s)
{
	struct profile_next next = {
		.input_id = id, .input_mb = input_mb, .home = home, .now_s = now_s};
	struct profile_expected out;

	assert_int_equal(profile_expect(store, USER, class_name, &next, &out, &err), 0);
	return out;
}

static void test_sizes(void **state)
{
	struct profile_expected e;

	(void)state;
	ran("sort", 1, 100, 100, "n1", 1000);
	ran("sort", 2, 200, 200, "n1", 1001);
	ran("sort", 3, 300, 300, "n1", 1002);
	e = expect("sort", 9, 340, "n1", 2000);
	assert_true(e.by_input && e.of[PROFILE_CPU_MS].line && e.of[PROFILE_READ_MB].line);
	assert_false(e.of[PROFILE_MEMORY_MB].line);
	NEAR(e.profile.cpu_ms, 690);
	NEAR(e.profile.requests, 2720);
	NEAR(e.profile.request_mb, 340);
	NEAR(e.profile.memory_mb, 30);
	assert_int_equal(e.used, 3);
	assert_int_equal(e.profile.runs, 3);
	assert_false(e.warm);
	e = expect("sort", 9, -1, "n1", 2000);
	assert_false(e.by_input);
	assert_true(e.profile.cpu_ms > 410 && e.profile.cpu_ms < 610);
	assert_true(e.of[PROFILE_CPU_MS].spread > 100);
}

static void test_warm(void **state)
{
	struct profile_expected e;

	(void)state;
	ran("grep", 7, 50, 50, "n1", 1000);
	e = expect("grep", 7, 50, "n1", 1010);
	assert_false(e.warm); /* its files are in the cache, but no warm run tells what it needs */
	ran("grep", 7, 50, 0.1, "n1", 1020);
	e = expect("grep", 7, 50, "n1", 1030);
	assert_true(e.warm);
	NEAR(e.profile.read_mb, 0.1);
	assert_int_equal(e.cold_runs, 1);
	assert_int_equal(e.warm_runs, 1);
	e = expect("grep", 7, 50, "n1", 1020 + PROFILE_WARM_S + 1);
	assert_false(e.warm);
	NEAR(e.profile.read_mb, 50);
	assert_false(expect("grep", 8, 50, "n1", 1030).warm); /* other files */
	assert_false(expect("grep", 7, 50, "n2", 1030).warm); /* another node's cache */
	assert_false(expect("grep", 0, -1, "n1", 1030).warm); /* nobody knows */
	/* Without named files: the same command read less than it did before. */
	ran("find", 5, -1, 20, "n1", 1000);
	ran("find", 5, -1, 0, "n1", 1001);
	e = expect("find", 5, -1, "n1", 1002);
	assert_true(e.warm);
	NEAR(e.profile.read_mb, 0);
	NEAR(expect("find", 6, -1, "n1", 1002).profile.read_mb, 20);
	/* Less than a MB is no sign of anything. */
	ran("cat", 5, 0.5, 0, "n1", 1000);
	assert_int_equal(expect("cat", 5, 0.5, "n1", 1001).warm_runs, 0);
	/* If there are only warm ones, these are what is known. */
	ran("head", 5, 500, 1, "n1", 1000);
	e = expect("head", 6, 500, "n1", 9000);
	assert_true(e.warm);
	NEAR(e.profile.read_mb, 1);
}

/* A run that read READ_MB on a shared file system. */
static void ran_shared(uint64_t id, double read_mb, const char *node, uint64_t end_s)
{
	struct profile run = {.cpu_ms = 10, .wall_ms = 1000, .shared_read_mb = read_mb};
	struct profile_origin origin = {
		.input_id = id, .input_mb = 50, .node = node, .end_s = end_s};

	assert_int_equal(profile_learn_run(store, USER, "md5sum", &run, &origin, &err), 0);
}

static double cached_at(const struct profile_expected *e, const char *node)
{
	for (size_t i = 0; i < e->ncached; i++)
		if (!strcmp(e->cached[i].node, node))
			return e->cached[i].mb;
	return 0;
}

/* It is expected cold wherever home is, and the caches are told beside it. */
static void test_shared(void **state)
{
	struct profile_expected e;

	(void)state;
	ran_shared(7, 50, "n1", 1000);
	e = expect("md5sum", 7, 50, "n1", 1010);
	NEAR(e.profile.shared_read_mb, 50);
	NEAR(cached_at(&e, "n1"), 50); /* the first run there brought it */
	ran_shared(7, 5, "n1", 1020);
	e = expect("md5sum", 7, 50, "n1", 1030);
	assert_true(e.warm && e.warm_runs == 1);
	NEAR(e.profile.shared_read_mb, 50);
	NEAR(cached_at(&e, "n1"), 45); /* so much had stayed */
	ran_shared(7, 50, "n1", 1040);
	e = expect("md5sum", 7, 50, "n1", 1050);
	assert_int_equal(e.ncached, 0); /* nothing had stayed, so nothing will */
	ran_shared(7, 50, "n2", 1060);
	e = expect("md5sum", 7, 50, "n1", 1070);
	assert_int_equal(e.ncached, 1);
	NEAR(cached_at(&e, "n2"), 50);
	assert_int_equal(expect("md5sum", 8, 50, "n1", 1070).ncached, 0); /* other files */
	assert_int_equal(expect("md5sum", 0, -1, "n1", 1070).ncached, 0); /* nobody knows */
	e = expect("md5sum", 7, 50, "n1", 1060 + PROFILE_WARM_S + 1);
	assert_int_equal(e.ncached, 0); /* too long ago */
	NEAR(e.profile.shared_read_mb, 50);
	/* What brought it so long ago says nothing of what stayed since. */
	ran_shared(7, 50, "n2", 1060 + PROFILE_WARM_S + 5);
	e = expect("md5sum", 7, 50, "n1", 1060 + PROFILE_WARM_S + 10);
	NEAR(cached_at(&e, "n2"), 50);
}

/* Runs of a file of before shared file systems were told are kept, and read none there. */
static void test_before_shared(void **state)
{
	static const char sql[] = "ALTER TABLE run DROP COLUMN shared_read_mb;"
				  "ALTER TABLE run DROP COLUMN shared_written_mb;"
				  "PRAGMA user_version=5";
	char dir[] = "/tmp/iocom-test-profile-XXXXXX", path[64], command[80];
	struct profile_expected e;
	sqlite3 *db;

	(void)state;
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/profile.db", dir);
	assert_int_equal(profile_open(&store, path, &err), 0);
	ran("grep", 7, 50, 50, "n1", 1000);
	profile_close(store);
	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
	sqlite3_close(db);
	assert_int_equal(profile_open(&store, path, &err), 0);
	e = expect("grep", 7, 50, "n1", 1010);
	assert_int_equal(e.used, 1);
	NEAR(e.profile.read_mb, 50);
	NEAR(e.profile.shared_read_mb, 0);
	assert_int_equal(e.ncached, 0);
	ran_shared(7, 50, "n1", 1020);
	NEAR(expect("md5sum", 7, 50, "n1", 1030).profile.shared_read_mb, 50);
	profile_close(store);
	store = NULL;
	snprintf(command, sizeof(command), "rm -rf %s", dir);
	assert_int_equal(system(command), 0);
}

/* So many runs are kept of each kind; the newest ones. */
static void test_kept(void **state)
{
	struct profile_one runs[2 * PROFILE_RUNS_KEPT];
	size_t n;

	(void)state;
	for (int i = 0; i < PROFILE_RUNS_KEPT + 4; i++) {
		ran("a", 1, 10, 10, "n1", 1000 + (uint64_t)i);
		ran("a", 1, 10, 0, "n1", 2000 + (uint64_t)i);
	}
	assert_int_equal(profile_runs_read(store, USER, "a", runs, &n, &err), 0);
	assert_int_equal(n, 2 * PROFILE_RUNS_KEPT);
	assert_int_equal(runs[0].end_s, 2000 + PROFILE_RUNS_KEPT + 3);
	assert_true(runs[0].warm && !runs[1].warm);
	assert_string_equal(runs[0].node, "n1");
	assert_int_equal(expect("a", 1, 10, "n1", 1).profile.runs, 2 * (PROFILE_RUNS_KEPT + 4));
	assert_int_equal(profile_runs_read(store, USER + 1, "a", runs, &n, &err), 0);
	assert_int_equal(n, 0);
	assert_int_equal(profile_forget(store, USER, "a", &err), 0);
	assert_int_equal(profile_runs_read(store, USER, "a", runs, &n, &err), 0);
	assert_int_equal(n, 0);
}

/* What a node says of a job is bounded, and a class without kept runs has its averages. */
static void test_absurd(void **state)
{
	struct profile run = {.cpu_ms = NAN, .wall_ms = 5};
	struct profile_next next = {.input_mb = -1, .home = "n1"};
	struct profile_expected e;

	(void)state;
	assert_int_equal(profile_expect(store, USER, "x", &next, &e, &err), -ENOENT);
	run.cpu_ms = 1e300;
	assert_int_equal(profile_learn(store, USER, "x", &run, &err), 0);
	e = expect("x", 0, -1, "n1", 0);
	assert_int_equal(e.used, 0);
	NEAR(e.of[PROFILE_CPU_MS].confidence, 0);
	NEAR(e.profile.wall_ms, 5);
}

static void test_set(void **state)
{
	struct profile_next next = {.input_mb = -1, .home = "n1"};
	struct profile_expected e;
	struct need_options set;

	(void)state;
	need_options_init(&set);
	set.value[NEED_MEMORY_MB] = 500;
	assert_int_equal(profile_set(store, USER, "new", &set, &err), 0);
	e = expect("new", 0, -1, "n1", 0);
	assert_int_equal(e.profile.runs, 0);
	NEAR(e.set.value[NEED_MEMORY_MB], 500);
	assert_true(e.set.value[NEED_CPU_S] < 0);
	need_options_init(&set);
	set.value[NEED_CPU_S] = 3;
	assert_int_equal(profile_set(store, USER, "new", &set, &err), 0);
	ran("new", 0, -1, 1, "n1", 1);
	e = expect("new", 0, -1, "n1", 0);
	NEAR(e.set.value[NEED_MEMORY_MB], 500); /* runs do not change it */
	NEAR(e.set.value[NEED_CPU_S], 3);
	NEAR(e.profile.memory_mb, 30);
	assert_int_equal(profile_unset(store, USER, "new", &err), 0);
	assert_int_equal(profile_unset(store, USER, "new", &err), -ENOENT);
	assert_true(expect("new", 0, -1, "n1", 0).set.value[NEED_CPU_S] < 0);
	assert_int_equal(profile_set(store, USER, "only set", &set, &err), 0);
	assert_int_equal(profile_unset(store, USER, "only set", &err), 0);
	assert_int_equal(profile_expect(store, USER, "only set", &next, &e, &err), -ENOENT);
}

/* --- files --------------------------------------------------------------------------------- */

static char dir[64], path[96];

static void file_begin(void)
{
	strcpy(dir, "/tmp/iocom-test-profile-XXXXXX");
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/profile.db", dir);
}

static void file_end(struct profile_store *s)
{
	char command[96];

	profile_close(s);
	snprintf(command, sizeof(command), "rm -rf %s", dir);
	assert_int_equal(system(command), 0);
}

static size_t set_aside(void)
{
	char pattern[128];
	glob_t found = {0};
	size_t n;

	snprintf(pattern, sizeof(pattern), "%s.aside-*", path);
	glob(pattern, 0, NULL, &found);
	n = found.gl_pathc;
	for (size_t i = 0; i < found.gl_pathc; i++)
		n -= strlen(found.gl_pathv[i]) > 4 &&
		     !strcmp(found.gl_pathv[i] + strlen(found.gl_pathv[i]) - 4, "-wal");
	globfree(&found);
	return n;
}

static void sql(const char *text)
{
	sqlite3 *db;

	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, text, NULL, NULL, NULL), SQLITE_OK);
	sqlite3_close(db);
}

/* Opens the file, which must be set aside as number ASIDE with a reason that has WHY. */
static void renewed(size_t aside, const char *why)
{
	struct profile run = {.cpu_ms = 1};
	struct profile_store *s = NULL;
	const char *reason;

	assert_int_equal(profile_renew(&s, path, &err), 0);
	assert_int_equal(set_aside(), aside);
	assert_int_equal(strncmp(profile_aside(s, &reason), path, strlen(path)), 0);
	assert_non_null(strstr(reason, why));
	assert_int_equal(profile_learn(s, USER, "sort", &run, &err), 0);
	profile_close(s);
	/* The new one is sound. */
	assert_int_equal(profile_renew(&s, path, &err), 0);
	assert_string_equal(profile_aside(s, &reason), "");
	assert_int_equal(profile_get(s, USER, "sort", &run, &err), 0);
	profile_close(s);
}

static void write_over(long from, const char *text)
{
	FILE *file = fopen(path, "r+");

	assert_non_null(file);
	assert_int_equal(fseek(file, from, SEEK_SET), 0);
	assert_true(fputs(text, file) >= 0);
	assert_int_equal(fclose(file), 0);
}

/* Makes a file with a class of 300 runs, which fills some pages. */
static void make_file(void)
{
	struct profile run = {.cpu_ms = 1};
	struct profile_store *s = NULL;
	char name[32];

	unlink(path);
	assert_int_equal(profile_open(&s, path, &err), 0);
	for (int i = 0; i < 300; i++) {
		snprintf(name, sizeof(name), "class %d", i);
		assert_int_equal(profile_learn(s, USER, name, &run, &err), 0);
	}
	profile_close(s);
}

static void test_set_aside(void **state)
{
	(void)state;
	file_begin();
	make_file();
	write_over(0, "this is no database, but a text that somebody put there");
	renewed(1, "not a database");
	make_file();
	write_over(4096 * 5, "a page that a bad disk wrote, in the middle of a table");
	renewed(2, "damaged");
	make_file();
	sql("PRAGMA user_version=77");
	renewed(3, "version 77");
	make_file();
	sql("DROP TABLE pin");
	renewed(4, "no such table");
	make_file();
	sql("ALTER TABLE run RENAME COLUMN com_ms TO odd");
	renewed(5, "no such column");
	make_file();
	sql("PRAGMA user_version=1; ALTER TABLE behaviour RENAME COLUMN disk_ms TO odd");
	renewed(6, "cannot migrate");
	file_end(NULL);
}

/* Somebody edited the numbers: what no run can have goes, the rest stays. */
static void test_edited(void **state)
{
	struct profile_next next = {.input_mb = -1, .home = "n1"};
	struct profile_one runs[2 * PROFILE_RUNS_KEPT];
	struct profile run = {.cpu_ms = 1, .memory_mb = 7};
	struct profile_store *s = NULL;
	struct profile_expected e;
	struct need_options set;
	size_t n;

	(void)state;
	file_begin();
	assert_int_equal(profile_renew(&s, path, &err), 0);
	assert_int_equal(profile_swept(s), 0);
	need_options_init(&set);
	set.value[NEED_MEMORY_MB] = 5;
	set.value[NEED_CPU_S] = 5;
	for (int i = 0; i < 3; i++) {
		assert_int_equal(profile_learn(s, USER, "a", &run, &err), 0);
		assert_int_equal(profile_learn(s, USER, "b", &run, &err), 0);
		assert_int_equal(profile_learn(s, USER, "c", &run, &err), 0);
	}
	assert_int_equal(profile_set(s, USER, "a", &set, &err), 0);
	sql("UPDATE run SET cpu_ms=-5 WHERE class='a' AND number=1;"
	    "UPDATE run SET disk_ms=9e999 WHERE class='a' AND number=2;"
	    "UPDATE pin SET value='much' WHERE need='cpu_s';"
	    "UPDATE profile SET memory_mb=1e300 WHERE class='b';"
	    "UPDATE profile SET runs=-1 WHERE class='c'");
	/* The open store does not believe them either. */
	assert_int_equal(profile_expect(s, USER, "a", &next, &e, &err), 0);
	assert_int_equal(e.used, 1);
	NEAR(e.profile.cpu_ms, 1);
	assert_true(e.set.value[NEED_CPU_S] < 0 || e.set.value[NEED_CPU_S] == 0);
	assert_int_equal(profile_get(s, USER, "b", &run, &err), 0);
	NEAR(run.memory_mb, 0);
	assert_int_equal(profile_get(s, USER, "c", &run, &err), 0);
	assert_int_equal(run.runs, 0);
	profile_close(s);
	assert_int_equal(profile_renew(&s, path, &err), 0);
	assert_int_equal(profile_swept(s), 5);
	assert_int_equal(profile_runs_read(s, USER, "a", runs, &n, &err), 0);
	assert_int_equal(n, 1);
	assert_int_equal(profile_get(s, USER, "b", &run, &err), -ENOENT);
	assert_int_equal(profile_get(s, USER, "c", &run, &err), -ENOENT);
	assert_int_equal(profile_set_read(s, USER, "a", &set, &err), 0);
	NEAR(set.value[NEED_MEMORY_MB], 5);
	assert_true(set.value[NEED_CPU_S] < 0);
	file_end(s);
}

/* Needs that somebody set are the last to make room. */
static void test_set_stays(void **state)
{
	struct profile_next next = {.input_mb = -1, .home = "n1"};
	struct profile run = {.cpu_ms = 1};
	struct profile_expected e;
	struct need_options set;
	char name[32];

	(void)state;
	need_options_init(&set);
	set.value[NEED_MEMORY_MB] = 5;
	assert_int_equal(profile_set(store, USER, "mine", &set, &err), 0);
	for (int i = 0; i < PROFILE_CLASSES_MAX + 3; i++) {
		snprintf(name, sizeof(name), "class %d", i);
		assert_int_equal(profile_learn(store, USER, name, &run, &err), 0);
	}
	assert_int_equal(profile_expect(store, USER, "mine", &next, &e, &err), 0);
	NEAR(e.set.value[NEED_MEMORY_MB], 5);
}

/* Damage that shows while the store is open: it goes on with a new file. */
static void test_renew_open(void **state)
{
	struct profile run = {.cpu_ms = 1}, p;
	struct profile_store *s = NULL;
	const char *why;

	(void)state;
	file_begin();
	assert_int_equal(profile_renew(&s, path, &err), 0);
	assert_int_equal(profile_learn(s, USER, "sort", &run, &err), 0);
	assert_int_equal(profile_get(s, USER, "sort", &p, &err), 0);
	sql("PRAGMA user_version=77");
	assert_int_equal(profile_renew_open(s, &err), 0);
	assert_int_equal(strncmp(profile_aside(s, &why), path, strlen(path)), 0);
	assert_int_equal(profile_get(s, USER, "sort", &p, &err), -ENOENT);
	assert_int_equal(profile_learn(s, USER, "sort", &run, &err), 0);
	file_end(s);
}

/* A lock is waited for, but not for long; what was to be learned can be learned afterwards. */
static void test_locked(void **state)
{
	struct profile run = {.cpu_ms = 1}, p;
	struct profile_store *s = NULL;
	sqlite3 *other;

	(void)state;
	file_begin();
	assert_int_equal(profile_renew(&s, path, &err), 0);
	assert_int_equal(sqlite3_open(path, &other), SQLITE_OK);
	assert_int_equal(sqlite3_exec(other, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
	assert_int_equal(profile_learn(s, USER, "sort", &run, &err), -EBUSY);
	assert_non_null(strstr(err.text, "end the other program"));
	assert_int_equal(profile_get(s, USER, "sort", &p, &err), -ENOENT);
	assert_int_equal(sqlite3_exec(other, "COMMIT", NULL, NULL, NULL), SQLITE_OK);
	assert_int_equal(profile_learn(s, USER, "sort", &run, &err), 0);
	profile_close(s);
	/* Nor is a locked one taken for damaged when it is opened. */
	assert_int_equal(sqlite3_exec(other,
				      "PRAGMA locking_mode=EXCLUSIVE; BEGIN EXCLUSIVE;"
				      " INSERT INTO doubt VALUES('n', 1)",
				      NULL, NULL, NULL),
			 SQLITE_OK);
	assert_int_equal(profile_renew(&s, path, &err), -EBUSY);
	assert_int_equal(set_aside(), 0);
	sqlite3_close(other);
	assert_int_equal(profile_renew(&s, path, &err), 0);
	assert_int_equal(profile_get(s, USER, "sort", &p, &err), 0);
	file_end(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_sizes, begin, finish),
		cmocka_unit_test_setup_teardown(test_warm, begin, finish),
		cmocka_unit_test_setup_teardown(test_shared, begin, finish),
		cmocka_unit_test(test_before_shared),
		cmocka_unit_test_setup_teardown(test_kept, begin, finish),
		cmocka_unit_test_setup_teardown(test_absurd, begin, finish),
		cmocka_unit_test_setup_teardown(test_set, begin, finish),
		cmocka_unit_test_setup_teardown(test_set_stays, begin, finish),
		cmocka_unit_test(test_set_aside),
		cmocka_unit_test(test_edited),
		cmocka_unit_test(test_renew_open),
		cmocka_unit_test(test_locked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
