/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Journals of older layouts: they are copied, and their decisions shrink to the examined nodes
 * without a word of what `iocom explain` prints being lost; or nothing happens to them.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>
#include <sqlite3.h>

#include "agent/jobs/journal.h"
#include "balancer/placement_text.h"
#include "tests/unit/placement_fixture.h"

#define JOBS 12

static char dir[] = "/tmp/iocom-test-version-XXXXXX";
static char path[64], backup[96];
static struct iocom_err err;

/* The tables as they were before they had a version. */
static const char old_schema[] =
	"PRAGMA journal_mode=WAL;"
	"CREATE TABLE home(job TEXT PRIMARY KEY, uid INTEGER, class TEXT, command TEXT, policy "
	"TEXT,"
	" node TEXT, state TEXT, submit_ns INTEGER, start_ns INTEGER DEFAULT 0, end_ns INTEGER"
	" DEFAULT 0, kind INTEGER DEFAULT 0, value INTEGER DEFAULT 0, pid INTEGER DEFAULT 0, place"
	" TEXT, text TEXT, worker INTEGER DEFAULT 0);"
	"CREATE INDEX home_submit ON home(submit_ns);"
	"CREATE INDEX home_state ON home(state);"
	"CREATE TABLE target(job TEXT PRIMARY KEY, home TEXT, node TEXT, uid INTEGER, class TEXT,"
	" command TEXT, policy TEXT, state TEXT, submit_ns INTEGER, start_ns INTEGER DEFAULT 0,"
	" end_ns INTEGER DEFAULT 0, kind INTEGER DEFAULT 0, value INTEGER DEFAULT 0, pid INTEGER"
	" DEFAULT 0, cgroup_id INTEGER DEFAULT 0, report_due INTEGER DEFAULT 0, orders BLOB, report"
	" BLOB, text TEXT);"
	"CREATE INDEX target_submit ON target(submit_ns);"
	"CREATE INDEX target_due ON target(report_due);"
	"CREATE INDEX target_state ON target(state);"
	"CREATE TABLE mark(source TEXT PRIMARY KEY, high INTEGER);"
	"CREATE TABLE nonce(sender TEXT, id INTEGER, until_s INTEGER, PRIMARY KEY(sender, id))"
	" WITHOUT ROWID;"
	"CREATE INDEX nonce_until ON nonce(until_s);"
	"CREATE TABLE lease(job TEXT PRIMARY KEY, first TEXT, attempt INTEGER, restarts INTEGER,"
	" lease_ms INTEGER, next TEXT DEFAULT '', secret BLOB, number INTEGER DEFAULT 0)"
	" WITHOUT ROWID;"
	"CREATE TABLE fact(name TEXT PRIMARY KEY, value REAL);"
	"INSERT INTO fact VALUES('disk_mb_per_s', 49.5);"
	"INSERT INTO mark VALUES('n9-1', 77);"
	"INSERT INTO lease VALUES('n1-1-3', 'n1-1-3', 1, 3, 30000, '', NULL, 0);"
	"INSERT INTO nonce VALUES('n2', 5, 9999999999);";

/*
 * Returns how many nodes the decision on job I looked at. 0: the journal keeps it in a form that
 * cannot be read.
 */
static size_t nodes_of(int i)
{
	static const size_t sizes[] = {3, 10, 100, 300, 0, 1};

	return sizes[i % 6];
}

/* The text that `iocom explain` printed for the decision on job I when all vectors were there. */
static char *explained(const struct placement *p)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	placement_text_print(p, NULL, out);
	fclose(out);
	return text;
}

/* Returns the document that an older agent would have kept of job I; malloc'ed. */
static char *old_row(int i, char **says)
{
	char job[32];
	struct placement p;
	json_t *document;
	char *text;

	if (!nodes_of(i)) {
		*says = strdup("");
		return strdup(i % 4 ? "no json" : "[\"of nobody\"]");
	}
	fixture_decide(&p, i % 2 ? "iocm-re" : "wal", nodes_of(i), i % 3 * 5);
	fixture_place(&p);
	snprintf(job, sizeof(job), "n1-1-%d", i);
	p.job = job;
	p.nonce = ""; /* the older row never had this */
	document = placement_json(&p, PLACEMENT_ANSWER);
	text = json_dumps(document, JSON_COMPACT);
	*says = explained(&p);
	json_decref(document);
	placement_fini(&p);
	return text;
}

static void old_insert(sqlite3 *db, int i)
{
	sqlite3_stmt *st;
	char *says, *row = old_row(i, &says), job[32];

	snprintf(job, sizeof(job), "n1-1-%d", i);
	assert_int_equal(
		sqlite3_prepare_v2(db,
				   "INSERT INTO home(job,uid,class,command,policy,node,state,"
				   "submit_ns,place) VALUES(?1,1000,'c','c x','p','n2',"
				   "'exited',?2,?3)",
				   -1, &st, NULL),
		SQLITE_OK);
	sqlite3_bind_text(st, 1, job, -1, SQLITE_STATIC);
	sqlite3_bind_int64(st, 2, 100 + i);
	sqlite3_bind_text(st, 3, row, -1, SQLITE_STATIC);
	assert_int_equal(sqlite3_step(st), SQLITE_DONE);
	sqlite3_finalize(st);
	free(row);
	free(says);
}

static void tell(const char *file, const char *sql)
{
	sqlite3 *db;

	assert_int_equal(sqlite3_open(file, &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

static int64_t ask(const char *file, const char *sql)
{
	sqlite3_stmt *st;
	sqlite3 *db;
	int64_t n;

	assert_int_equal(sqlite3_open(file, &db), SQLITE_OK);
	assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &st, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_step(st), SQLITE_ROW);
	n = sqlite3_column_int64(st, 0);
	sqlite3_finalize(st);
	assert_int_equal(sqlite3_close(db), SQLITE_OK);
	return n;
}

static void make_old(void)
{
	char command[96];
	sqlite3 *db;

	snprintf(command, sizeof(command), "rm -f %s/*", dir);
	assert_int_equal(system(command), 0);
	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, old_schema, NULL, NULL, NULL), SQLITE_OK);
	for (int i = 0; i < JOBS; i++)
		old_insert(db, i);
	assert_int_equal(
		sqlite3_exec(db,
			     "INSERT INTO home(job,uid,state,submit_ns) VALUES('n1-1-99',1,"
			     "'starting',500)",
			     NULL, NULL, NULL),
		SQLITE_OK);
	sqlite3_close(db);
}

/* FILE is as make_old made it. */
static void assert_old(const char *file)
{
	assert_int_equal(ask(file, "PRAGMA user_version"), 0);
	assert_int_equal(ask(file, "SELECT count(*) FROM home"), JOBS + 1);
	for (int i = 0; i < JOBS; i++) {
		char *says, *row = old_row(i, &says), sql[128];

		snprintf(sql, sizeof(sql), "SELECT length(place) FROM home WHERE job='n1-1-%d'", i);
		assert_int_equal(ask(file, sql), strlen(row));
		free(row);
		free(says);
	}
}

/* Checks that job I's row still says what it said before. Returns how many bytes it has. */
static size_t check_row(struct journal *j, int i)
{
	char job[32], *text = NULL, *says, *row = old_row(i, &says), *now;
	struct placement p;
	json_t *document;
	size_t length;
	uid_t owner;

	snprintf(job, sizeof(job), "n1-1-%d", i);
	assert_int_equal(journal_place(j, job, 1000, &text, &owner, &err), 0);
	length = strlen(text);
	if (!nodes_of(i)) {
		assert_string_equal(text, row); /* a row that cannot be read stays as it is */
	} else {
		document = json_loads(text, 0, NULL);
		assert_int_equal(placement_read(&p, document, "it", &err), 0);
		now = explained(&p);
		assert_string_equal(now, says);
		assert_int_equal(placement_known(&p), nodes_of(i));
		free(now);
		placement_fini(&p);
		json_decref(document);
	}
	free(row);
	free(says);
	free(text);
	return length;
}

static void check_new(struct journal *j)
{
	uint8_t secret[RENEWAL_SECRET];

	for (int i = 0; i < JOBS; i++) {
		char *says, *row = old_row(i, &says);
		size_t length = check_row(j, i), before = strlen(row);

		assert_true(nodes_of(i) < 100 ? length <= before
					      : length < 70000 && length < before - 30000);
		free(row);
		free(says);
	}
	assert_true(journal_fact(j, "disk_mb_per_s") == 49.5);
	assert_int_equal(journal_nonce(j, "n2", 5, 1, 60, &err), JOURNAL_E_SEEN);
	assert_int_equal(journal_lease_secret(j, "n1-1-3", secret, &err), -ENOENT);
}

static void test_migration(void **state)
{
	struct journal *j = NULL;
	struct stat st;

	(void)state;
	make_old();
	assert_int_equal(journal_open(&j, path, &err), 0);
	assert_string_equal(journal_backup(j), backup);
	check_new(j);
	journal_close(j);
	assert_int_equal(ask(path, "PRAGMA user_version"), 7);
	assert_old(backup);
	assert_int_equal(stat(backup, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	/* The second opening finds nothing to do. */
	assert_int_equal(unlink(backup), 0);
	assert_int_equal(journal_open(&j, path, &err), 0);
	assert_string_equal(journal_backup(j), "");
	check_new(j);
	journal_close(j);
	assert_int_equal(stat(backup, &st), -1);
}

/* Rows of a version without the last columns are migrated, too. */
static void test_first_layout(void **state)
{
	struct journal *j = NULL;

	(void)state;
	make_old();
	tell(path, "ALTER TABLE home DROP COLUMN text; ALTER TABLE home DROP COLUMN worker;"
		   "ALTER TABLE target DROP COLUMN text; ALTER TABLE lease DROP COLUMN number;"
		   "ALTER TABLE lease DROP COLUMN secret; DROP TABLE fact; DROP TABLE nonce");
	assert_int_equal(journal_open(&j, path, &err), 0);
	for (int i = 0; i < JOBS; i++)
		check_row(j, i);
	assert_int_equal(journal_lease_number(j, "n1-1-3", 5, &err), 0);
	assert_int_equal(journal_set_fact(j, "x", 1), 0);
	journal_close(j);
}

/* A row in the middle cannot be written, so the rows before it stay as they were. */
static void test_failure(void **state)
{
	struct journal *j = NULL;

	(void)state;
	make_old();
	tell(path, "CREATE TRIGGER stop BEFORE UPDATE ON home WHEN old.job='n1-1-8'"
		   " BEGIN SELECT RAISE(ABORT, 'the disk is weary'); END");
	assert_int_equal(journal_open(&j, path, &err), -EIO);
	assert_null(j);
	assert_non_null(strstr(err.text, "the disk is weary"));
	assert_non_null(strstr(err.text, path));
	assert_old(path);
	assert_old(backup);
	tell(path, "DROP TRIGGER stop");
	assert_int_equal(journal_open(&j, path, &err), 0);
	check_new(j);
	journal_close(j);
}

static void take_older(void *arg, const struct journal_job *job)
{
	assert_true(job->wall_ms == 0 && job->slowdown == 0 && job->expectation.there_ms == 0);
	assert_int_equal(job->expectation.basis, 0);
	++*(int *)arg;
}

/* A file of version 1 gets the columns of what was expected; its jobs have no expectation. */
static void test_version_1(void **state)
{
	const struct journal_expectation e = {.there_ms = 5, .home_ms = 7, .basis = 2};
	char copy[96];
	struct journal *j = NULL;
	int n = 0;

	(void)state;
	make_old();
	tell(path, "PRAGMA user_version=1");
	assert_int_equal(journal_open(&j, path, &err), 0);
	snprintf(copy, sizeof(copy), "%s.v1-backup", path);
	assert_string_equal(journal_backup(j), copy);
	assert_int_equal(journal_list(j, (uid_t)-1, true, 100, take_older, &n), 0);
	assert_int_equal(n, JOBS + 1);
	assert_int_equal(journal_placed(j, "n1-1-1", "n2", "{}", &e, &err), 0);
	journal_close(j);
	assert_int_equal(ask(path, "SELECT sum(expected_home_ms) FROM home"), 7);
	assert_int_equal(ask(copy, "PRAGMA user_version"), 1);
	assert_int_equal(ask(copy, "SELECT count(*) FROM pragma_table_info('home')"
				   " WHERE name='expected_ms'"),
			 0);
}

/* A file of version 2, as the release before wrote it: its jobs have no slowdown, new ones do. */
static void test_version_2(void **state)
{
	struct journal_job end = {.job = "n1-1-1",
				  .state = "exited",
				  .start_ns = 1,
				  .end_ns = 2,
				  .wall_ms = 8,
				  .slowdown = 4};
	char copy[96];
	struct journal *j = NULL;
	int n = 0;

	(void)state;
	make_old();
	assert_int_equal(journal_open(&j, path, &err), 0);
	journal_close(j);
	j = NULL;
	tell(path, "ALTER TABLE home DROP COLUMN slowdown");
	tell(path, "PRAGMA user_version=2");
	assert_int_equal(journal_open(&j, path, &err), 0);
	snprintf(copy, sizeof(copy), "%s.v2-backup", path);
	assert_string_equal(journal_backup(j), copy);
	assert_int_equal(journal_list(j, (uid_t)-1, true, 100, take_older, &n), 0);
	assert_int_equal(n, JOBS + 1);
	assert_int_equal(journal_home_end(j, &end, &err), 0);
	journal_close(j);
	assert_int_equal(ask(path, "SELECT sum(slowdown) FROM home"), 4);
	assert_int_equal(ask(path, "PRAGMA user_version"), 7);
	assert_int_equal(ask(copy, "SELECT count(*) FROM pragma_table_info('home')"
				   " WHERE name='slowdown'"),
			 0);
	unlink(copy);
}

static void take_ordinary(void *arg, const struct journal_job *job)
{
	assert_int_equal(job->tasks, 0);
	assert_string_equal(job->gang, "");
	++*(int *)arg;
}

static void count_gang(void *arg, const struct journal_job *job)
{
	assert_true(job->tasks > 0);
	++*(int *)arg;
}

/* A file of version 4, as the release before wrote it: its jobs are ordinary, new ones may not be.
 */
static void test_version_4(void **state)
{
	const struct journal_job gang = {.job = "n1-1-90", .node = "", .tasks = 6};
	const struct journal_job part = {
		.job = "n1-1-90.0", .node = "n2", .tasks = 6, .gang = gang.job};
	char copy[96];
	struct journal *j = NULL;
	int n = 0;

	(void)state;
	make_old();
	assert_int_equal(journal_open(&j, path, &err), 0);
	journal_close(j);
	j = NULL;
	tell(path, "ALTER TABLE home DROP COLUMN tasks; ALTER TABLE home DROP COLUMN gang;"
		   "PRAGMA user_version=4");
	assert_int_equal(journal_open(&j, path, &err), 0);
	snprintf(copy, sizeof(copy), "%s.v4-backup", path);
	assert_string_equal(journal_backup(j), copy);
	assert_int_equal(journal_list(j, (uid_t)-1, true, 100, take_ordinary, &n), 0);
	assert_int_equal(n, JOBS + 1);
	assert_int_equal(journal_submit(j, &gang, &err), 0);
	assert_int_equal(journal_submit(j, &part, &err), 0);
	n = 0;
	assert_int_equal(journal_gangs(j, count_gang, &n), 0);
	assert_int_equal(n, 1);
	assert_int_equal(journal_gang_parts(j, gang.job, count_gang, &n), 0);
	assert_int_equal(n, 2);
	journal_close(j);
	unlink(copy);
}

static void test_newer(void **state)
{
	struct journal *j = NULL;

	(void)state;
	make_old();
	assert_int_equal(journal_open(&j, path, &err), 0);
	journal_close(j);
	j = NULL;
	tell(path, "PRAGMA user_version=8");
	assert_int_equal(journal_open(&j, path, &err), -ENOTSUP);
	assert_null(j);
	assert_non_null(strstr(err.text, "the job journal"));
	assert_non_null(strstr(err.text, "layout version 8"));
	assert_non_null(strstr(err.text, "versions up to 7"));
	assert_int_equal(ask(path, "SELECT count(*) FROM home"), JOBS + 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_migration), cmocka_unit_test(test_first_layout),
		cmocka_unit_test(test_failure),	  cmocka_unit_test(test_version_1),
		cmocka_unit_test(test_version_2), cmocka_unit_test(test_version_4),
		cmocka_unit_test(test_newer),
	};
	char command[80];
	int rc;

	if (!mkdtemp(dir))
		return 1;
	snprintf(path, sizeof(path), "%s/iocom.db", dir);
	snprintf(backup, sizeof(backup), "%s.v0-backup", path);
	rc = cmocka_run_group_tests(tests, NULL, NULL);
	snprintf(command, sizeof(command), "rm -rf %s", dir);
	return system(command) ? 1 : rc;
}
