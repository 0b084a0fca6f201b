/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Clients that wait for a job's end, whatever happens to the job, the clients and the journal
 * meanwhile.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "agent/guest/guest_own.h"
#include "agent/home/home_leases.h"
#include "agent/jobs/journal_sql.h"
#include "tests/lib/asks.h"
#include "tests/lib/slow_disk.h"

#define JOB	 "here-0f-1"
#define OTHER	 "here-0f-2"
#define USER	 1000
#define STRANGER 1001

static struct whole w;

static int setup(void **state)
{
	(void)state;
	return whole_new(&w, ":memory:");
}

static int teardown(void **state)
{
	(void)state;
	whole_free(&w);
	return 0;
}

static void sql(const char *text)
{
	assert_int_equal(sqlite3_exec(w.journal->file.db, text, NULL, NULL, NULL), SQLITE_OK);
}

static int waits_for(uid_t uid, const char *job)
{
	return ASKS(&w, uid, .op = "wait", .job = job);
}

static void reads_unknown(int fd, const char *job)
{
	char text[256];

	snprintf(text, sizeof(text),
		 "no job of yours named %s was submitted or ran at node here; `iocom jobs --all` "
		 "lists them",
		 job);
	reads_error(fd, text);
}

static void reads_unreadable(int fd)
{
	char text[128];

	snprintf(text, sizeof(text), "cannot read the job journal in %s", w.dir);
	reads_error(fd, text);
}

/* --- the end of a job ------------------------------------------------------------ */

static void test_until_the_end(void **state)
{
	int fd;

	(void)state;
	submitted(&w, JOB, USER, "there");
	fd = waits_for(USER, JOB);
	whole_pass_ms(&w, 120000); /* a client that waits may be idle for as long as it likes */
	reads_nothing(fd);
	assert_int_equal(tells_end(&w, "there", JOB, "exited", 0, 3), 0);
	reads_job(fd, JOB, "exited", 3);
	assert_null(w.front.waits);
	reads_job(waits_for(USER, JOB), JOB, "exited", 3); /* answered at once */
}

/* An end that another node tells is none. */
static void test_not_believed(void **state)
{
	int fd;

	(void)state;
	submitted(&w, JOB, USER, "there");
	fd = waits_for(USER, JOB);
	assert_int_equal(tells_end(&w, "elsewhere", JOB, "exited", 0, 3), 0);
	reads_nothing(fd);
	assert_non_null(w.front.waits);
	close(fd);
}

static void test_each_its_own(void **state)
{
	int one, other;

	(void)state;
	submitted(&w, JOB, USER, "there");
	submitted(&w, OTHER, USER, "there");
	one = waits_for(USER, JOB);
	other = waits_for(USER, OTHER);
	assert_int_equal(tells_end(&w, "there", OTHER, "killed", 1, 9), 0);
	reads_nothing(one);
	reads_job(other, OTHER, "killed", 9);
	assert_int_equal(tells_end(&w, "there", JOB, "exited", 0, 0), 0);
	reads_job(one, JOB, "exited", 0);
}

/* A job that was submitted elsewhere runs here, and the guest party reports its end. */
static void test_of_another_home(void **state)
{
	const struct journal_job row = {
		.job = "there-0f-1", .state = "exited", .end_ns = 9, .exit_value = 4};
	int fd;

	(void)state;
	accepted(&w, "there-0f-1", USER);
	fd = waits_for(USER, "there-0f-1");
	reads_nothing(fd);
	assert_int_equal(journal_end(w.journal, &row, "", 0, NULL), 0);
	guest_ended(w.guest, "there-0f-1");
	reads_job(fd, "there-0f-1", "exited", 4);
}

/* No client came for the job, and no node reports such an end. */
static void test_never_started(void **state)
{
	int fd;

	(void)state;
	submitted(&w, JOB, USER, "there");
	sql("UPDATE home SET state='starting'");
	fd = waits_for(USER, JOB);
	whole_pass_ms(&w, 119000);
	home_prune(w.home);
	reads_nothing(fd);
	whole_pass_ms(&w, 2000);
	home_prune(w.home);
	reads_job(fd, JOB, "failed", 0);
}

/* --- what is asked ------------------------------------------------------------------ */

static void test_now(void **state)
{
	(void)state;
	submitted(&w, JOB, USER, "there");
	reads_job(ASKS(&w, USER, .op = "wait", .job = JOB, .now = true), JOB, "running", 0);
	reads_job(ASKS(&w, USER, .op = "wait", .job = "last", .now = true), JOB, "running", 0);
	assert_null(w.front.waits);
}

/*
 * "last" is the newest job at the moment of the question, and stays that job; a worker of a batch
 * is never the last job.
 */
static void test_last(void **state)
{
	int fd;

	(void)state;
	submitted(&w, JOB, USER, "there");
	submitted(&w, OTHER, USER, "there");
	submitted(&w, "here-0f-3", STRANGER, "there");
	submitted(&w, "here-0f-4", USER, "there");
	sql("UPDATE home SET worker=1 WHERE job='here-0f-4'");
	fd = waits_for(USER, "last");
	submitted(&w, "here-0f-5", USER, "there");
	assert_int_equal(tells_end(&w, "there", "here-0f-5", "exited", 0, 5), 0);
	assert_int_equal(tells_end(&w, "there", JOB, "exited", 0, 1), 0);
	reads_nothing(fd);
	assert_int_equal(tells_end(&w, "there", OTHER, "exited", 0, 2), 0);
	reads_job(fd, OTHER, "exited", 2);
	reads_error(waits_for(1002, "last"), "no job of yours was submitted at node here");
}

/* Another user's job and a job that does not exist look the same; root may wait for all. */
static void test_whose(void **state)
{
	int fd;

	(void)state;
	submitted(&w, JOB, USER, "there");
	reads_unknown(waits_for(STRANGER, JOB), JOB);
	reads_unknown(waits_for(STRANGER, OTHER), OTHER);
	assert_null(w.front.waits);
	fd = waits_for(0, JOB);
	assert_int_equal(tells_end(&w, "there", JOB, "exited", 0, 3), 0);
	reads_job(fd, JOB, "exited", 3);
}

static void test_without_a_name(void **state)
{
	(void)state;
	reads_error(ASKS(&w, USER, .op = "wait"), "the request names no \"job\"");
}

/* --- clients that leave -------------------------------------------------------------- */

static void test_leaves(void **state)
{
	int fd;

	(void)state;
	submitted(&w, JOB, USER, "there");
	fd = waits_for(USER, JOB);
	assert_non_null(w.front.waits);
	close(fd);
	whole_pass_ms(&w, 1);
	assert_null(w.front.waits);
	assert_int_equal(clients_count(w.front.clients), 0);
	assert_int_equal(tells_end(&w, "there", JOB, "exited", 0, 3), 0);
}

/* The client has shut down its sending side and still reads. */
static void test_half_closed(void **state)
{
	int fd;

	(void)state;
	submitted(&w, JOB, USER, "there");
	fd = waits_for(USER, JOB);
	assert_int_equal(shutdown(fd, SHUT_WR), 0);
	whole_pass_ms(&w, 1000);
	assert_non_null(w.front.waits);
	assert_int_equal(tells_end(&w, "there", JOB, "exited", 0, 3), 0);
	reads_job(fd, JOB, "exited", 3);
}

/* While all clients are answered, one is found to be gone; the others are answered all the same. */
static void test_dropped_among_others(void **state)
{
	(void)state;
	for (int gone = 0; gone < 4; gone++) {
		char job[SPEC_JOB_MAX];
		int fds[4];

		snprintf(job, sizeof(job), "here-0f-%d", 10 + gone);
		submitted(&w, job, USER, "there");
		for (int i = 0; i < 4; i++)
			fds[i] = waits_for(USER, job);
		close(fds[gone]); /* the loop has not yet seen that the client left */
		assert_int_equal(clients_count(w.front.clients), 4);
		assert_int_equal(tells_end(&w, "there", job, "exited", 0, gone), 0);
		assert_int_equal(clients_count(w.front.clients), 3);
		assert_null(w.front.waits);
		for (int i = 0; i < 4; i++)
			if (i != gone)
				reads_job(fds[i], job, "exited", gone);
		whole_pass_ms(&w, 1);
		assert_int_equal(clients_count(w.front.clients), 0);
	}
}

/* The same happens while the others wait for another job: they go on waiting. */
static void test_others_go_on(void **state)
{
	int first, gone, last;

	(void)state;
	submitted(&w, JOB, USER, "there");
	submitted(&w, OTHER, USER, "there");
	first = waits_for(USER, OTHER);
	gone = waits_for(USER, JOB);
	last = waits_for(USER, OTHER);
	close(gone);
	assert_int_equal(tells_end(&w, "there", JOB, "exited", 0, 1), 0);
	whole_pass_ms(&w, 1);
	reads_nothing(first);
	reads_nothing(last);
	assert_int_equal(tells_end(&w, "there", OTHER, "exited", 0, 2), 0);
	reads_job(first, OTHER, "exited", 2);
	reads_job(last, OTHER, "exited", 2);
}

static void test_agent_stops(void **state)
{
	char byte;
	int fd;

	(void)state;
	submitted(&w, JOB, USER, "there");
	fd = waits_for(USER, JOB);
	front_stop(&w.front);
	assert_null(w.front.waits);
	assert_int_equal(recv(fd, &byte, 1, 0), 0);
	close(fd);
}

/* --- restartable jobs ------------------------------------------------------------------ */

/* A lost attempt is the end only when nobody has had it run again for ten seconds. */
static void test_lost_may_follow(void **state)
{
	int fd;

	(void)state;
	submitted_restartable(&w, JOB, USER, "there");
	fd = waits_for(USER, JOB);
	assert_int_equal(tells_end(&w, "there", JOB, "lost", 3, 255), 0);
	for (int second = 1; second < 10; second++) {
		whole_pass_ms(&w, 1000);
		front_chores(&w.front);
		reads_nothing(fd);
	}
	reads_job(ASKS(&w, USER, .op = "wait", .job = JOB, .now = true), JOB, "lost", 255);
	whole_pass_ms(&w, 1000);
	front_chores(&w.front);
	reads_job(fd, JOB, "lost", 255);
	assert_null(w.front.waits);
}

/* A client that asks within these seconds waits as well; nobody is asked about jobs that run. */
static void test_asked_when_lost(void **state)
{
	int fd, other;

	(void)state;
	submitted_restartable(&w, JOB, USER, "there");
	submitted_restartable(&w, OTHER, USER, "there");
	other = waits_for(USER, OTHER);
	assert_int_equal(tells_end(&w, "there", JOB, "lost", 3, 255), 0);
	whole_pass_ms(&w, 4000);
	fd = waits_for(USER, JOB);
	reads_nothing(fd);
	sql("ALTER TABLE lease RENAME TO away"); /* the client that asked reads this */
	front_chores(&w.front);
	reads_unreadable(fd);
	reads_nothing(other);
	sql("ALTER TABLE away RENAME TO lease");
	close(other);
}

/* A job's own end by a signal, and a job that was lost once too often, are final ends at once. */
static void test_lost_for_good(void **state)
{
	int fd;

	(void)state;
	submitted_restartable(&w, JOB, USER, "there");
	fd = waits_for(USER, JOB);
	assert_int_equal(tells_end(&w, "there", JOB, "killed", 1, 9), 0);
	reads_job(fd, JOB, "killed", 9);
	submitted_restartable(&w, OTHER, USER, "there");
	sql("UPDATE lease SET attempt=3");
	fd = waits_for(USER, OTHER);
	assert_int_equal(tells_end(&w, "there", OTHER, "lost", 3, 255), 0);
	reads_job(fd, OTHER, "lost", 255);
}

/*
 * A client that waits for an attempt that is run again then waits for the next attempt, also by the
 * old name.
 */
static void test_next_attempt(void **state)
{
	int before, lost, after;

	(void)state;
	submitted_restartable(&w, JOB, USER, "there");
	before = waits_for(USER, JOB);
	assert_int_equal(tells_end(&w, "there", JOB, "lost", 3, 255), 0);
	whole_pass_ms(&w, 5000);
	lost = waits_for(USER, JOB);
	submitted(&w, OTHER, USER, "elsewhere");
	assert_int_equal(lease_fence(w.home, JOB, OTHER, NULL), 0);
	after = waits_for(USER, JOB);
	whole_pass_ms(&w, 60000);
	front_chores(&w.front);
	reads_nothing(before);
	reads_nothing(lost);
	reads_nothing(after);
	assert_int_equal(tells_end(&w, "elsewhere", OTHER, "exited", 0, 6), 0);
	reads_job(before, OTHER, "exited", 6);
	reads_job(lost, OTHER, "exited", 6);
	reads_job(after, OTHER, "exited", 6);
}

/* --- a journal that cannot be read ------------------------------------------------------- */

static void test_unreadable(void **state)
{
	static const char *const tables[] = {"home", "target", "lease"};
	char text[64];

	(void)state;
	for (size_t i = 0; i < sizeof(tables) / sizeof(*tables); i++) {
		snprintf(text, sizeof(text), "ALTER TABLE %s RENAME TO away", tables[i]);
		sql(text);
		reads_unreadable(waits_for(USER, JOB));
		snprintf(text, sizeof(text), "ALTER TABLE away RENAME TO %s", tables[i]);
		sql(text);
	}
	assert_null(w.front.waits);
	reads_unknown(waits_for(USER, JOB), JOB); /* the journal can be read again */
}

/* A waiting client gets the error, so that it does not wait for ever. */
static void test_unreadable_at_the_end(void **state)
{
	int fd;

	(void)state;
	submitted(&w, JOB, USER, "there");
	fd = waits_for(USER, JOB);
	sql("ALTER TABLE lease RENAME TO away");
	assert_int_equal(tells_end(&w, "there", JOB, "exited", 0, 3), 0);
	reads_unreadable(fd);
	assert_null(w.front.waits);
}

/* The end was not written, so it is reported again, and the waiting clients go on. */
static void test_end_not_written(void **state)
{
	int fd;

	(void)state;
	submitted(&w, JOB, USER, "there");
	fd = waits_for(USER, JOB);
	sql("CREATE TEMP TRIGGER full BEFORE UPDATE ON home "
	    "BEGIN SELECT RAISE(ROLLBACK, 'no room'); END");
	assert_int_not_equal(tells_end(&w, "there", JOB, "exited", 0, 3), 0);
	reads_nothing(fd);
	sql("DROP TRIGGER full");
	assert_int_equal(tells_end(&w, "there", JOB, "exited", 0, 3), 0);
	reads_job(fd, JOB, "exited", 3);
}

/* --- what the disk has ------------------------------------------------------------- */

static void test_told_when_the_disk_has_it(void **state)
{
	struct slow_disk disk;
	int fd, listed, asked;

	(void)state;
	submitted(&w, JOB, USER, "there");
	slow_disk_use(&disk, w.journal);
	fd = waits_for(USER, JOB);
	assert_int_equal(disk.begun, 0); /* nothing was told */
	assert_int_equal(tells_end(&w, "there", JOB, "exited", 0, 3), 0);
	listed = ASKS(&w, USER, .op = "jobs", .all = true);
	asked = waits_for(USER, JOB);
	whole_pass_ms(&w, 1000);
	reads_nothing(fd);
	reads_nothing(listed);
	reads_nothing(asked);
	assert_int_equal(disk.begun, 1);
	assert_int_equal(slow_disk_flush(&disk), 1);
	reads_job(fd, JOB, "exited", 3);
	reads_job(asked, JOB, "exited", 3);
	json_decref(reads_json(listed));
	/* From now on nobody waits, as nothing is new. */
	reads_job(waits_for(USER, JOB), JOB, "exited", 3);
	json_decref(reads_json(ASKS(&w, USER, .op = "jobs", .all = true)));
	assert_int_equal(disk.begun, 1);
	assert_null(w.front.told);
}

static void reads_unsynced(int fd)
{
	char text[256];

	snprintf(text, sizeof(text),
		 "the job journal in %s cannot be synced: what it says could be lost by a power "
		 "cut; its agent's log says more",
		 w.dir);
	reads_error(fd, text);
}

static void test_disk_fails(void **state)
{
	struct slow_disk disk;
	int fd;

	(void)state;
	submitted(&w, JOB, USER, "there");
	slow_disk_use(&disk, w.journal);
	fd = waits_for(USER, JOB);
	assert_int_equal(tells_end(&w, "there", JOB, "exited", 0, 3), 0);
	slow_disk_end(&disk, -EIO);
	assert_true(disk.repair);
	reads_nothing(fd);
	slow_disk_end(&disk, -EIO);
	reads_unsynced(fd);
	assert_null(w.front.waits);
	fd = waits_for(USER, JOB); /* once more, and the disk works again */
	assert_int_equal(slow_disk_flush(&disk), 1);
	reads_job(fd, JOB, "exited", 3);
}

static void test_leaves_before_the_disk(void **state)
{
	struct slow_disk disk;
	int fd, other;

	(void)state;
	slow_disk_use(&disk, w.journal);
	submitted(&w, JOB, USER, "there");
	fd = ASKS(&w, USER, .op = "jobs", .all = true);
	other = ASKS(&w, USER, .op = "jobs", .all = true);
	assert_non_null(w.front.told);
	close(fd);
	whole_pass_ms(&w, 1);
	slow_disk_flush(&disk);
	json_decref(reads_json(other));
	assert_null(w.front.told);
	submitted(&w, OTHER, USER, "there"); /* and the agent ends */
	fd = ASKS(&w, USER, .op = "jobs", .all = true);
	close(fd);
}

static int refuse_commit(void *arg)
{
	(void)arg;
	return 1;
}

/*
 * Home tells an end within the transaction of the message that reports it.  If just the commit
 * fails, nobody may have heard of it.
 */
static void test_commit_fails(void **state)
{
	struct slow_disk disk;
	int fd;

	(void)state;
	submitted(&w, JOB, USER, "there");
	slow_disk_use(&disk, w.journal);
	fd = waits_for(USER, JOB);
	sqlite3_commit_hook(w.journal->file.db, refuse_commit, NULL);
	assert_int_not_equal(tells_end(&w, "there", JOB, "exited", 0, 3), 0);
	sqlite3_commit_hook(w.journal->file.db, NULL, NULL);
	slow_disk_flush(&disk);
	reads_nothing(fd);
	assert_non_null(w.front.waits);
	assert_int_equal(tells_end(&w, "there", JOB, "exited", 0, 3), 0);
	slow_disk_flush(&disk);
	reads_job(fd, JOB, "exited", 3);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(test_until_the_end),
		CASE(test_not_believed),
		CASE(test_each_its_own),
		CASE(test_of_another_home),
		CASE(test_never_started),
		CASE(test_now),
		CASE(test_last),
		CASE(test_whose),
		CASE(test_without_a_name),
		CASE(test_leaves),
		CASE(test_half_closed),
		CASE(test_dropped_among_others),
		CASE(test_others_go_on),
		CASE(test_agent_stops),
		CASE(test_lost_may_follow),
		CASE(test_asked_when_lost),
		CASE(test_lost_for_good),
		CASE(test_next_attempt),
		CASE(test_unreadable),
		CASE(test_unreadable_at_the_end),
		CASE(test_end_not_written),
		CASE(test_told_when_the_disk_has_it),
		CASE(test_disk_fails),
		CASE(test_leaves_before_the_disk),
		CASE(test_commit_fails),
	};

	return cmocka_run_group_tests_name("waits", tests, NULL, NULL);
}
