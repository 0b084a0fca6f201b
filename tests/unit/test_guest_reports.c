/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* What homes are told, until they have heard it, and a journal that fails in each of its writes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "agent/jobs/journal_sql.h"
#include "tests/lib/full_disk.h"
#include "tests/lib/guest_stage.h"
#include "tests/unit/guest_accounts.h"
#include "user/clock.h"

/* --- homes that do not answer ----------------------------------------------------------- */

static void test_told_until_it_is_heard(void **state)
{
	(void)state;
	gstage_run("n2-1-1", 10);
	shim_exited("n2-1-1", 0, 0);
	gstage_pass(100);
	gstage_home(PEER_DONE, "n2-1-1", NULL);
	gstage_chores(11); /* sent at once, because they were never due before; then every 5 s */
	gstage_home(PEER_DONE, "n2-1-1", NULL);
	gstage_home_ok(PEER_DONE, "n2-1-1");
	gstage_chores(10);
	gstage_show();
	trace_compare(__func__);
}

static void test_start_is_told_five_times(void **state)
{
	const struct job_order order = gstage_order("n2-1-1");

	(void)state;
	gstage_launch(&order);
	shim_started("n2-1-1", 10);
	gstage_pass(20);
	gstage_home(PEER_STARTED, "n2-1-1", NULL);
	gstage_chores(40);
	assert_int_equal(gstage_asked(PEER_STARTED, "n2-1-1"), 4);
	trace_compare(__func__);
}

/* Any answer of home is enough, whether home knows the job or not. */
static void test_start_is_heard(void **state)
{
	const struct peer_answer no = {.text = "no such job"};
	const struct job_order order = gstage_order("n2-1-1");

	(void)state;
	gstage_launch(&order);
	shim_started("n2-1-1", 10);
	gstage_pass(20);
	gstage_home(PEER_STARTED, "n2-1-1", &no);
	gstage_chores(10);
	assert_int_equal(gstage_asked(PEER_STARTED, "n2-1-1"), 0);
	trace_compare(__func__);
}

static void test_answer_after_the_end(void **state)
{
	const struct job_order order = gstage_order("n2-1-1");

	(void)state;
	gstage_launch(&order);
	shim_started("n2-1-1", 10);
	gstage_pass(20);
	shim_exited("n2-1-1", 0, 0);
	gstage_pass(20);
	gstage_home_ok(PEER_DONE, "n2-1-1");
	gstage_home_ok(PEER_STARTED, "n2-1-1");
	gstage_show();
	trace_compare(__func__);
}

static void test_home_cannot_be_asked(void **state)
{
	(void)state;
	gstage_run("n2-1-1", 10);
	gstage.ask_rc = -EHOSTUNREACH; /* this agent serves its own machine now */
	shim_exited("n2-1-1", 0, 0);
	gstage_chores(1);
	gstage.ask_rc = -EAGAIN;
	gstage_chores(5);
	gstage.ask_rc = 0;
	gstage_chores(5);
	gstage_home_ok(PEER_DONE, "n2-1-1");
	gstage_show();
	trace_compare(__func__);
}

/* More than one message holds, and more than are offered at once. */
static void test_forty_ends(void **state)
{
	char job[32];

	(void)state;
	gstage.set.user_jobs_max = 0;
	for (int i = 1; i <= 40; i++) {
		snprintf(job, sizeof(job), "n2-1-%d", i);
		gstage_run(job, 100 + i);
	}
	trace_pause(true);
	for (int i = 1; i <= 40; i++) {
		snprintf(job, sizeof(job), "n2-1-%d", i);
		shim_exited(job, 0, 0);
	}
	shims.quiet = true;
	trace_pause(false);
	gstage_pass(100);
	assert_int_equal(gstage.nquestions, 42);
	assert_int_equal(gstage.questions[40].reports, 32);
	assert_int_equal(gstage.questions[41].reports, 8);
	gstage_home(PEER_DONE, gstage.questions[40].job, NULL);
	gstage_home_ok(PEER_DONE, gstage.questions[41].job);
	trace_pause(true);
	gstage_chores(1);
	assert_int_equal(gstage.nquestions, 42 + 32);
	gstage_chores(5); /* a report is sent again only after all others */
	assert_int_equal(gstage.nquestions, 42 + 32);
	trace_pause(false);
	trace_compare(__func__);
}

/* --- what running jobs have done ---------------------------------------------------------- */

/* Home is told of a job of an unknown class at 1, 2, 4 and 8 s, and of two of them at once. */
static void test_progress_is_told(void **state)
{
	struct job_order order = gstage_order("n2-1-1");
	struct job_order known = gstage_order("n2-1-3"), nameless = gstage_order("n2-1-4");

	(void)state;
	strcpy(order.class_name, "fit");
	strcpy(known.class_name, "sort");
	need_set(&known.need, NEED_CPU_S, 30, NEED_PROFILE);
	gstage_run_order(&order, 10);
	strcpy(order.job, "n2-1-2");
	gstage_run_order(&order, 11);
	gstage_run_order(&known, 12);	 /* it does not more than it needs */
	gstage_run_order(&nameless, 13); /* nothing can be learned of it */
	trace_pause(true);
	gstage_chores(11);
	trace_pause(false);
	assert_int_equal(gstage_asked(PEER_PROGRESS, "n2-1-2"), 4); /* the newest comes first */
	assert_int_equal(gstage_asked(PEER_PROGRESS, "n2-1-1"), 0);
	assert_int_equal(gstage_asked(PEER_PROGRESS, "n2-1-3"), 0);
	assert_int_equal(gstage_asked(PEER_PROGRESS, "n2-1-4"), 0);
	assert_int_equal(gstage.questions[gstage.nquestions - 1].reports, 2);
	/* It is not told again whether home answers or not, and the end is reported as ever. */
	gstage_home(PEER_PROGRESS, "n2-1-2", NULL);
	gstage_home_ok(PEER_PROGRESS, "n2-1-2");
	shim_exited("n2-1-1", 0, 0);
	gstage_pass(100);
	gstage_home_ok(PEER_DONE, "n2-1-1");
	assert_int_equal(gstage.counters.reports_unacknowledged, 0);
}

/* --- a journal that fails ----------------------------------------------------------------- */

static void journal_breaks(const char *job)
{
	char sql[256];

	snprintf(sql, sizeof(sql),
		 "CREATE TEMP TRIGGER breaks BEFORE UPDATE ON main.target WHEN NEW.job='%s' "
		 "BEGIN SELECT RAISE(ABORT, 'broken'); END",
		 job);
	assert_int_equal(sqlite3_exec(gstage.journal->file.db, sql, NULL, NULL, NULL), SQLITE_OK);
}

static void journal_mended(void)
{
	assert_int_equal(
		sqlite3_exec(gstage.journal->file.db, "DROP TRIGGER breaks", NULL, NULL, NULL),
		SQLITE_OK);
}

/* Home hears of the end all the same, once, and again when the journal has it. */
static void test_end_is_not_written(void **state)
{
	(void)state;
	gstage_run("n2-1-1", 10);
	full_disk_break("", 1, FULL_DISK_ALWAYS);
	shim_exited("n2-1-1", 0, 5);
	gstage_pass(20);
	gstage_home_ok(PEER_DONE, "n2-1-1");
	gstage_show();
	gstage_pass(3000);
	full_disk_mend();
	gstage_show();
	gstage_pass(1000);
	gstage_show();
	gstage_home_ok(PEER_DONE, "n2-1-1");
	gstage_show();
	trace_compare(__func__);
}

static void test_journal_is_locked(void **state)
{
	(void)state;
	gstage_run("n2-1-1", 10);
	full_disk_lock(true);
	shim_exited("n2-1-1", 0, 5);
	gstage_pass(100);
	full_disk_lock(false);
	gstage_pass(1000);
	gstage_show();
	trace_compare(__func__);
}

/* One of three reports cannot be written, so none is written. */
static void test_one_of_three_is_not_written(void **state)
{
	(void)state;
	for (int i = 1; i <= 3; i++) {
		char job[] = "n2-1-1";

		job[5] = (char)('0' + i);
		gstage_run(job, 10 + i);
	}
	journal_breaks("n2-1-2");
	for (int i = 1; i <= 3; i++) {
		char job[] = "n2-1-1";

		job[5] = (char)('0' + i);
		shim_exited(job, 0, (uint32_t)i);
	}
	gstage_pass(100);
	gstage_show();
	/*
	 * A further job that ends meanwhile is reported at once; the earlier ones are not reported
	 * again.
	 */
	gstage_run("n2-1-4", 14);
	shim_exited("n2-1-4", 0, 4);
	gstage_pass(1000);
	journal_mended();
	gstage_pass(1000);
	gstage_show();
	trace_compare(__func__);
}

static void test_answer_is_not_written(void **state)
{
	(void)state;
	gstage_run("n2-1-1", 10);
	gstage_run("n2-1-2", 11);
	shim_exited("n2-1-1", 0, 0);
	shim_exited("n2-1-2", 0, 0);
	gstage_pass(20);
	journal_breaks("n2-1-1");
	gstage_home_ok(PEER_DONE, "n2-1-2"); /* both */
	gstage_show();
	gstage_chores(1);
	gstage_home_ok(PEER_DONE, "n2-1-1");
	journal_mended();
	gstage_chores(5);
	gstage_home_ok(PEER_DONE, "n2-1-1");
	gstage_home_ok(PEER_DONE, "n2-1-2");
	gstage_show();
	gstage_chores(5);
	trace_compare(__func__);
}

/* Home knows that the job runs, but the journal does not. */
static void test_start_is_not_written(void **state)
{
	const struct job_order order = gstage_order("n2-1-1");

	(void)state;
	gstage_launch(&order);
	full_disk_break("", 1, FULL_DISK_ALWAYS);
	shim_started("n2-1-1", 10);
	gstage_pass(20);
	full_disk_mend();
	gstage_home_ok(PEER_STARTED, "n2-1-1");
	gstage_chores(2);
	gstage_show();
	shim_exited("n2-1-1", 0, 0);
	gstage_pass(100);
	gstage_home_ok(PEER_DONE, "n2-1-1");
	gstage_show();
	trace_compare(__func__);
}

/* --- the n-th write fails ------------------------------------------------------------------- */

static const char *state_of(const char *job, bool *due)
{
	static char state[16];
	sqlite3_stmt *st = NULL;

	*due = false;
	assert_int_equal(sqlite3_prepare_v2(gstage.journal->file.db,
					    "SELECT state, report_due FROM target WHERE job=?1", -1,
					    &st, NULL),
			 SQLITE_OK);
	sqlite3_bind_text(st, 1, job, -1, SQLITE_STATIC);
	snprintf(state, sizeof(state), "none");
	if (sqlite3_step(st) == SQLITE_ROW) {
		snprintf(state, sizeof(state), "%s", sqlite3_column_text(st, 0));
		*due = sqlite3_column_int(st, 1);
	}
	sqlite3_finalize(st);
	return state;
}

/* Answers all questions that home was asked. */
static void home_hears(void)
{
	for (size_t i = 0; i < gstage.nquestions; i++) {
		const struct gstage_question *q = &gstage.questions[i];

		if (q->answered)
			gstage_home_ok(q->type, q->job);
	}
}

/* A client that was refused for the journal comes again. */
static void come_until_taken(const char *job)
{
	const struct job_order order = gstage_order(job);
	const struct gstage_client anna = {.uid = GSTAGE_UID};
	int tries = 0, rc;

	do {
		rc = gstage_come(job, gstage_admit(&order)->nonce, &anna);
		assert_true(!rc || rc == -EIO);
		assert_true(++tries < 6);
	} while (rc);
}

/* Takes two jobs from their places to the last answers of their homes. */
static void two_jobs(void)
{
	static const char *const jobs[] = {"n2-1-1", "n3-1-1"};

	for (int i = 0; i < 2; i++)
		come_until_taken(jobs[i]);
	for (int i = 0; i < 2; i++)
		shim_started(jobs[i], 10 + i);
	gstage_pass(20);
	home_hears();
	for (int i = 0; i < 2; i++)
		shim_exited(jobs[i], 0, 7);
	gstage_pass(20);
	home_hears();
	for (int i = 0; i < 22; i++) {
		gstage_chores(1);
		home_hears();
	}
}

/*
 * Whichever write fails, once or from then on until the disk has room again: each job runs
 * once, the journal has its end, its home has heard it, and each failure was counted.
 */
static void each_write(unsigned times)
{
	static const char *const jobs[] = {"n2-1-1", "n3-1-1"};
	unsigned n = 0, failures;
	bool due;

	do {
		gstage_teardown(NULL);
		assert_int_equal(gstage_setup(NULL), 0);
		full_disk_break("", ++n, times);
		two_jobs();
		failures = full_disk_failed();
		assert_int_equal(shims.n, 2);
		assert_true(!gstage.counters.journal_failures == !failures);
		for (int i = 0; i < 2; i++) {
			assert_string_equal(state_of(jobs[i], &due), "exited");
			assert_false(due);
			assert_int_equal(gstage_asked(PEER_DONE, jobs[i]), 0);
		}
		assert_int_equal(gstage.counters.jobs_ended, 2);
		assert_true(n < 200);
	} while (failures);
	assert_true(n > 8); /* two jobs were accepted, were started, ended and were acknowledged */
}

static void test_each_write_fails_once(void **state)
{
	(void)state;
	each_write(1);
}

static void test_each_three_writes_fail(void **state)
{
	(void)state;
	each_write(3);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, gstage_setup, gstage_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_told_until_it_is_heard), TEST(test_start_is_told_five_times),
		TEST(test_start_is_heard),	   TEST(test_answer_after_the_end),
		TEST(test_home_cannot_be_asked),   TEST(test_forty_ends),
		TEST(test_progress_is_told),	   TEST(test_end_is_not_written),
		TEST(test_journal_is_locked),	   TEST(test_one_of_three_is_not_written),
		TEST(test_answer_is_not_written),  TEST(test_start_is_not_written),
		TEST(test_each_write_fails_once),  TEST(test_each_three_writes_fail),
	};

	trace_file("agent_guest_reports");
	return cmocka_run_group_tests_name("guest_reports", tests, NULL, NULL);
}
