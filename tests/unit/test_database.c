/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Databases with a version: new, older, newer; a migration that fails or dies anywhere leaves
 * the file as it was, or as it is to be.
 */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "balancer/settings/database.h"

#define ROWS 200

static char dir[] = "/tmp/iocom-test-database-XXXXXX";
static char path[64], backup[96];
static struct iocom_err err;

/* Version 1 has a longer word in each row, so that pages are written; 2 a table more. */
static int first_step(const struct database *d, struct iocom_err *e)
{
	return sqlite3_exec(d->db, "UPDATE a SET word=word||'+'||hex(zeroblob(500))", NULL, NULL,
			    NULL) == SQLITE_OK
		       ? 0
		       : database_failed(d, "migrate", e);
}

static int second_step(const struct database *d, struct iocom_err *e)
{
	return sqlite3_exec(d->db, "CREATE TABLE b(x)", NULL, NULL, NULL) == SQLITE_OK
		       ? 0
		       : database_failed(d, "migrate", e);
}

static int (*const steps[])(const struct database *d, struct iocom_err *e) = {
	first_step,
	second_step,
};
static const struct database_layout layout = {
	.what = "the test's words",
	.advice = "; look there",
	.schema = "CREATE TABLE a(word TEXT); CREATE TABLE b(x);",
	.steps = steps,
	.version = 2,
};
static const struct database_layout layout_1 = {
	.what = "the test's words",
	.advice = "",
	.schema = "CREATE TABLE a(word TEXT);",
	.steps = steps,
	.version = 1,
};

/* The one number that SQL gives of FILE. */
static int ask(const char *file, const char *sql)
{
	sqlite3_stmt *st;
	sqlite3 *db;
	int n;

	assert_int_equal(sqlite3_open(file, &db), SQLITE_OK);
	assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &st, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_step(st), SQLITE_ROW);
	n = sqlite3_column_int(st, 0);
	sqlite3_finalize(st);
	assert_int_equal(sqlite3_close(db), SQLITE_OK);
	return n;
}

static void tell(const char *file, const char *sql)
{
	sqlite3 *db;

	assert_int_equal(sqlite3_open(file, &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

static void clear(void)
{
	char command[96];

	snprintf(command, sizeof(command), "rm -f %s/*", dir);
	assert_int_equal(system(command), 0);
}

/* Makes a file from before there were versions, in WAL mode like all of them. */
static void make_old(void)
{
	char sql[200];

	clear();
	snprintf(sql, sizeof(sql),
		 "PRAGMA journal_mode=WAL; CREATE TABLE a(word TEXT); WITH RECURSIVE n(i) AS"
		 " (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i<%d) INSERT INTO a SELECT"
		 " 'word '||i||' '||hex(zeroblob(300)) FROM n;",
		 ROWS);
	tell(path, sql);
}

static void assert_old(const char *file)
{
	assert_int_equal(ask(file, "PRAGMA user_version"), 0);
	assert_int_equal(ask(file, "SELECT count(*) FROM a WHERE word LIKE 'word %'"), ROWS);
	assert_int_equal(ask(file, "SELECT count(*) FROM a WHERE word LIKE '%+%'"), 0);
	assert_int_equal(ask(file, "SELECT count(*) FROM sqlite_master WHERE name='b'"), 0);
}

static void assert_new(const char *file)
{
	assert_int_equal(ask(file, "PRAGMA user_version"), 2);
	assert_int_equal(ask(file, "SELECT count(*) FROM a WHERE word LIKE 'word %+%'"), ROWS);
	assert_int_equal(ask(file, "SELECT count(*) FROM a WHERE word LIKE '%+%+%'"), 0);
	assert_int_equal(ask(file, "SELECT count(*) FROM b"), 0);
}

static void test_new(void **state)
{
	struct database d;
	struct stat st;

	(void)state;
	clear();
	assert_int_equal(database_open(&d, path, &layout, &err), 0);
	assert_string_equal(d.backup, "");
	database_close(&d);
	database_close(&d);
	assert_int_equal(ask(path, "PRAGMA user_version"), 2);
	assert_int_equal(ask(path, "SELECT count(*) FROM a"), 0);
	assert_int_equal(stat(backup, &st), -1);
	assert_int_equal(database_open(&d, ":memory:", &layout, &err), 0);
	database_close(&d);
	assert_int_equal(database_open(&d, "/nonexistent/x.db", &layout, &err), -EIO);
	assert_non_null(strstr(err.text, "the test's words /nonexistent/x.db"));
	assert_non_null(strstr(err.text, "; look there"));
}

static void test_older(void **state)
{
	struct database d;
	struct stat before, st;

	(void)state;
	make_old();
	umask(0);
	assert_int_equal(database_open(&d, path, &layout, &err), 0);
	assert_string_equal(d.backup, backup);
	database_close(&d);
	assert_new(path);
	assert_old(backup);
	assert_int_equal(stat(backup, &before), 0);
	assert_int_equal(before.st_mode & 0777, 0600);
	/* A second opening does nothing more. */
	assert_int_equal(database_open(&d, path, &layout, &err), 0);
	assert_string_equal(d.backup, "");
	database_close(&d);
	assert_new(path);
	assert_int_equal(stat(backup, &st), 0);
	assert_int_equal(st.st_ino, before.st_ino);
	/* The copy is a database as good as the file was. */
	assert_int_equal(rename(backup, path), 0);
	assert_int_equal(database_open(&d, path, &layout, &err), 0);
	database_close(&d);
	assert_new(path);
	assert_old(backup);
}

/* A file of version 1 needs only the second step. */
static void test_one_step(void **state)
{
	char of_1[96];
	struct database d;

	(void)state;
	snprintf(of_1, sizeof(of_1), "%s.v1-backup", path);
	make_old();
	assert_int_equal(database_open(&d, path, &layout_1, &err), 0);
	database_close(&d);
	assert_int_equal(ask(path, "PRAGMA user_version"), 1);
	assert_int_equal(database_open(&d, path, &layout, &err), 0);
	assert_string_equal(d.backup, of_1);
	database_close(&d);
	assert_new(path);
	assert_int_equal(ask(of_1, "PRAGMA user_version"), 1);
	assert_int_equal(ask(of_1, "SELECT count(*) FROM a WHERE word LIKE 'word %+%'"), ROWS);
}

/* Reads all bytes of FILE into BUFFER and returns how many there are. */
static size_t bytes_of(const char *file, char *buffer, size_t size)
{
	FILE *f = fopen(file, "r");
	size_t n = f ? fread(buffer, 1, size, f) : 0;

	assert_non_null(f);
	assert_true(n > 0 && n < size);
	fclose(f);
	return n;
}

static void test_newer(void **state)
{
	static char before[1 << 20], after[1 << 20];
	struct database d;
	size_t n;

	(void)state;
	make_old();
	tell(path, "PRAGMA journal_mode=DELETE; PRAGMA user_version=7");
	n = bytes_of(path, before, sizeof(before));
	assert_int_equal(database_open(&d, path, &layout, &err), -ENOTSUP);
	assert_non_null(strstr(err.text, path));
	assert_non_null(strstr(err.text, "version 7"));
	assert_non_null(strstr(err.text, "versions up to 2"));
	assert_non_null(strstr(err.text, "move it away"));
	assert_int_equal(bytes_of(path, after, sizeof(after)), n);
	assert_memory_equal(before, after, n);
	/* If a copy of our version exists, the error names that copy. */
	tell(backup, "CREATE TABLE x(y)");
	backup[strlen(path) + 2] = '2';
	tell(backup, "CREATE TABLE x(y)");
	assert_int_equal(database_open(&d, path, &layout, &err), -ENOTSUP);
	assert_non_null(strstr(err.text, backup));
	backup[strlen(path) + 2] = '0';
	tell(path, "PRAGMA user_version=-1");
	assert_int_equal(database_open(&d, path, &layout, &err), -ENOTSUP);
}

/* A step fails in its middle: nothing of it is left, and the next opening tries again. */
static void test_step_fails(void **state)
{
	struct database d;

	(void)state;
	make_old();
	tell(path, "CREATE TRIGGER stop BEFORE UPDATE ON a WHEN old.word LIKE 'word 100 %'"
		   " BEGIN SELECT RAISE(ABORT, 'row 100 will not'); END");
	assert_int_equal(database_open(&d, path, &layout, &err), -EIO);
	assert_non_null(strstr(err.text, "row 100 will not"));
	assert_non_null(strstr(err.text, path));
	assert_null(d.db);
	assert_old(path);
	assert_old(backup);
	/* The second step fails: the first is taken back with it. */
	tell(path, "DROP TRIGGER stop; CREATE VIEW b AS SELECT 1");
	assert_int_equal(database_open(&d, path, &layout, &err), -EUCLEAN);
	assert_int_equal(ask(path, "PRAGMA user_version"), 0);
	assert_int_equal(ask(path, "SELECT count(*) FROM a WHERE word LIKE '%+%'"), 0);
	tell(path, "DROP VIEW b");
	assert_int_equal(database_open(&d, path, &layout, &err), 0);
	database_close(&d);
	assert_new(path);
	assert_old(backup);
}

/* Opens in a process whose files end at MOST bytes: a full disk, or death where it ENDS one. */
static int open_within(rlim_t most, bool ends)
{
	struct rlimit limit = {.rlim_cur = most, .rlim_max = most};
	int status;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		struct database d;
		int rc;

		signal(SIGXFSZ, ends ? SIG_DFL : SIG_IGN);
		setrlimit(RLIMIT_CORE, &(struct rlimit){0});
		setrlimit(RLIMIT_FSIZE, &limit);
		rc = database_open(&d, path, &layout, &err);
		_exit(!rc ? 0 : strstr(err.text, "free space") ? 1 : 2);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFSIGNALED(status) ? -1 : WEXITSTATUS(status);
}

/* Wherever the room or the process ends, the file is completely old or completely new. */
static void test_cut_anywhere(void **state)
{
	int finished = 0, cut = 0, part_left = 0;
	char part[104];
	struct stat st;

	(void)state;
	snprintf(part, sizeof(part), "%s.part", backup);
	for (rlim_t most = 0; most <= 900000; most += 30011) {
		for (int ends = 0; ends < 2; ends++) {
			int rc;

			make_old();
			rc = open_within(most, ends);
			assert_true(rc == 0 || rc == (ends ? -1 : 1));
			finished += rc == 0;
			cut += rc != 0;
			if (!stat(part, &st)) {
				assert_int_equal(rc, -1);
				part_left++;
			}
			if (rc == 0)
				assert_new(path);
			else if (ask(path, "PRAGMA user_version") == 0)
				assert_old(path);
			else
				assert_new(path);
			if (rc == 0 || !stat(backup, &st))
				assert_old(backup);
			/* When there is room again, the migration goes on from there. */
			assert_int_equal(open_within(RLIM_INFINITY, false), 0);
			assert_new(path);
			assert_int_equal(stat(part, &st), -1);
		}
	}
	assert_true(finished > 2 && cut > 2 && part_left > 0);
}

static void test_no_copy_no_migration(void **state)
{
	char long_path[PATH_MAX + 10];
	struct database d;

	(void)state;
	make_old();
	snprintf(long_path, sizeof(long_path), "%s.part", backup);
	assert_int_equal(mkdir(long_path, 0700), 0); /* a file of the copy's name exists already */
	assert_int_equal(database_open(&d, path, &layout, &err), -EEXIST);
	assert_non_null(strstr(err.text, long_path));
	assert_int_equal(rmdir(long_path), 0);
	assert_old(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_new),	     cmocka_unit_test(test_older),
		cmocka_unit_test(test_one_step),     cmocka_unit_test(test_newer),
		cmocka_unit_test(test_step_fails),   cmocka_unit_test(test_no_copy_no_migration),
		cmocka_unit_test(test_cut_anywhere),
	};
	char command[80];
	int rc;

	if (!mkdtemp(dir))
		return 1;
	snprintf(path, sizeof(path), "%s/words.db", dir);
	snprintf(backup, sizeof(backup), "%s.v0-backup", path);
	rc = cmocka_run_group_tests(tests, NULL, NULL);
	snprintf(command, sizeof(command), "rm -rf %s", dir);
	return system(command) ? 1 : rc;
}
