/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Who waits until the disk has what the journal says: many commits and one sync, syncs that fail,
 * transactions that do, and the thread that syncs.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "agent/jobs/journal_sql.h"
#include "agent/jobs/journal_thread.h"
#include "tests/lib/full_disk.h"
#include "tests/lib/logged.h"
#include "tests/lib/slow_disk.h"
#include "user/clock.h"

static struct journal *journal;
static struct slow_disk disk;
static struct iocom_err err;
static char dir[] = "/tmp/iocom-test-sync-XXXXXX", path[96];

/* The thread's own syncs; SQLite's go through full_disk.h. */
static struct {
	int error;
	unsigned calls;
} file;

int fdatasync(int fd)
{
	file.calls++;
	if (!file.error)
		return (int)syscall(SYS_fdatasync, fd);
	errno = file.error;
	return -1;
}

/* One who waits. */
struct waiter {
	struct journal_wait wait;
	unsigned times;
	int rc;
	struct waiter *forgets; /* another one that it forgets when it is called */
	bool again;		/* it commits, and waits again */
	struct loop *ends;	/* a loop that it stops */
};

static void commit(void)
{
	static double n;

	assert_int_equal(journal_set_fact(journal, "n", ++n), 0);
}

static bool waits(struct waiter *w);

static void waiter_done(void *arg, int rc)
{
	struct waiter *w = arg;

	assert_false(w->wait.waiting);
	w->times++;
	w->rc = rc;
	if (w->forgets)
		journal_forget(journal, &w->forgets->wait);
	if (w->ends)
		loop_stop(w->ends);
	if (w->again) {
		w->again = false;
		commit();
		assert_true(waits(w));
	}
}

static bool waits(struct waiter *w)
{
	w->wait.done = waiter_done;
	w->wait.arg = w;
	return journal_when_durable(journal, &w->wait);
}

static void remove_files(void)
{
	static const char *const ends[] = {"", "-wal", "-shm"};
	char name[128];

	for (size_t i = 0; i < 3; i++) {
		snprintf(name, sizeof(name), "%s%s", path, ends[i]);
		unlink(name);
	}
}

static int setup(void **state)
{
	(void)state;
	full_disk_use();
	remove_files();
	memset(&file, 0, sizeof(file));
	if (journal_open(&journal, path, &err))
		return -1;
	slow_disk_use(&disk, journal);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	full_disk_mend();
	journal_close(journal);
	return 0;
}

/* --- commits ------------------------------------------------------------------------- */

static void test_commits_are_counted(void **state)
{
	const uint64_t before = journal_position(journal);

	(void)state;
	commit();
	assert_int_equal(journal_position(journal), before + 1);
	assert_int_equal(journal_begin(journal, NULL), 0);
	assert_int_equal(journal_position(journal), before + 2);
	commit();
	commit();
	assert_int_equal(journal_commit(journal, NULL), 0);
	assert_int_equal(journal_position(journal), before + 2);
	assert_int_equal(journal_acked(journal, "none-1-1", NULL), 0); /* it changes no row */
	assert_int_equal(journal_position(journal), before + 2);
	assert_int_equal(journal_begin(journal, NULL), 0);
	assert_int_equal(journal_commit(journal, NULL), 0);
	assert_int_equal(journal_position(journal), before + 2);
}

/* Without a disk nobody waits. */
static void test_nobody_syncs(void **state)
{
	struct waiter w = {0};

	(void)state;
	journal_set_disk(journal, NULL);
	commit();
	assert_true(journal_is_durable(journal, journal_position(journal)));
	assert_false(waits(&w));
	assert_int_equal(w.times, 0);
}

/* What an agent that was killed has left may not be on the disk. */
static void test_what_was_there_before(void **state)
{
	struct waiter w = {0};

	(void)state;
	assert_true(waits(&w));
	assert_int_equal(slow_disk_flush(&disk), 1);
	assert_int_equal(w.times, 1);
	assert_false(waits(&w));
	assert_int_equal(disk.begun, 1);
}

/* --- waiting --------------------------------------------------------------------------- */

static void test_many_commits_one_sync(void **state)
{
	struct waiter early[20] = {0}, late[20] = {0};

	(void)state;
	for (size_t i = 0; i < 20; i++) {
		commit();
		assert_true(waits(&early[i]));
	}
	assert_int_equal(disk.begun, 1);
	slow_disk_end(&disk, 0); /* it began after the first commit */
	assert_int_equal(early[0].times, 1);
	assert_int_equal(early[1].times, 0);
	for (size_t i = 0; i < 20; i++) {
		commit();
		assert_true(waits(&late[i]));
	}
	assert_int_equal(disk.begun, 2);
	slow_disk_end(&disk, 0);
	for (size_t i = 0; i < 20; i++) {
		assert_int_equal(early[i].times, 1);
		assert_int_equal(early[i].rc, 0);
		assert_int_equal(late[i].times, 0);
	}
	assert_int_equal(slow_disk_flush(&disk), 1);
	for (size_t i = 0; i < 20; i++)
		assert_int_equal(late[i].times, 1);
	assert_int_equal(disk.begun, 3);
	assert_false(waits(&late[0]));
}

static void test_waits_again(void **state)
{
	struct waiter w = {.again = true};

	(void)state;
	commit();
	assert_true(waits(&w));
	slow_disk_end(&disk, 0);
	assert_int_equal(w.times, 1);
	assert_true(w.wait.waiting);
	slow_disk_end(&disk, 0);
	assert_int_equal(w.times, 2);
	assert_false(disk.syncing);
}

static void test_forgotten(void **state)
{
	struct waiter gone = {0}, stays = {0}, last = {0};

	(void)state;
	commit();
	assert_true(waits(&gone));
	assert_true(waits(&stays));
	assert_true(waits(&last));
	journal_forget(journal, &gone.wait);
	journal_forget(journal, &gone.wait); /* once more is fine */
	stays.forgets = &last;		     /* both are due at the same time */
	assert_int_equal(slow_disk_flush(&disk), 1);
	assert_int_equal(gone.times, 0);
	assert_int_equal(stays.times, 1);
	assert_int_equal(last.times, 0);
}

static void test_agent_ends(void **state)
{
	struct waiter w = {0};

	(void)state;
	commit();
	assert_true(waits(&w));
	journal_set_disk(journal, NULL);
	assert_false(w.wait.waiting);
	assert_int_equal(w.times, 0);
}

/* --- transactions ------------------------------------------------------------------------ */

static void test_open_transaction(void **state)
{
	struct waiter w = {0};

	(void)state;
	commit();
	assert_true(waits(&w));
	assert_int_equal(slow_disk_flush(&disk), 1);
	assert_int_equal(journal_begin(journal, NULL), 0);
	commit();
	assert_true(waits(&w));
	assert_false(disk.syncing); /* there is nothing to sync yet */
	assert_int_equal(journal_commit(journal, NULL), 0);
	assert_true(disk.syncing);
	slow_disk_end(&disk, 0);
	assert_int_equal(w.times, 2);
}

/* Whoever waits for a transaction hears of it, whatever becomes of it. */
static void test_transaction_ends(void **state)
{
	struct waiter w = {0};

	(void)state;
	assert_int_equal(journal_begin(journal, NULL), 0);
	commit();
	assert_true(waits(&w));
	journal_cancel(journal);
	assert_int_equal(slow_disk_flush(&disk), 1);
	assert_int_equal(w.times, 1);

	assert_int_equal(journal_begin(journal, NULL), 0);
	assert_true(waits(&w));
	assert_int_equal(journal_commit(journal, NULL), 0); /* it has changed nothing */
	assert_int_equal(slow_disk_flush(&disk), 1);
	assert_int_equal(w.times, 2);

	assert_int_equal(journal_begin(journal, NULL), 0);
	commit();
	assert_true(waits(&w));
	full_disk_fail("-wal", 1, FULL_DISK_ALWAYS);
	assert_int_equal(journal_commit(journal, NULL), -ENOSPC);
	full_disk_mend();
	assert_int_equal(slow_disk_flush(&disk), 1);
	assert_int_equal(w.times, 3);
}

/* --- a disk that fails ---------------------------------------------------------------------- */

static void test_sync_fails(void **state)
{
	struct waiter a = {0}, b = {0}, c = {0};
	uint64_t at;

	(void)state;
	commit();
	at = journal_position(journal);
	assert_true(waits(&a));
	assert_true(waits(&b));
	assert_false(disk.repair);
	slow_disk_end(&disk, -EIO);
	assert_int_equal(a.rc, -EIO);
	assert_int_equal(b.rc, -EIO);
	assert_int_equal(a.times + b.times, 2);
	assert_false(disk.syncing); /* nobody waits any more */
	assert_false(journal_is_durable(journal, at));

	assert_true(waits(&c)); /* for the same commit */
	assert_true(disk.repair);
	slow_disk_end(&disk, -EIO);
	assert_int_equal(c.rc, -EIO);
	assert_true(waits(&c));
	assert_true(disk.repair);
	slow_disk_end(&disk, 0);
	assert_int_equal(c.rc, 0);
	assert_int_equal(c.times, 2);
	assert_true(journal_is_durable(journal, at));
	commit();
	assert_true(waits(&c));
	assert_false(disk.repair);
	slow_disk_end(&disk, 0);
}

/* --- the thread --------------------------------------------------------------------------------
 */

static struct logger log_;
static struct counters counters;
static struct base base = {.log = &log_, .counters = &counters};

static struct journal_thread *thread_begin(void)
{
	struct journal_thread *thread = NULL;

	counters = (struct counters){0};
	assert_int_equal(logged_begin(&log_), 0);
	assert_int_equal(loop_new(&base.loop, &err), 0);
	assert_int_equal(journal_thread_new(&thread, &base, journal, path, &err), 0);
	return thread;
}

static void thread_end(struct journal_thread *thread)
{
	journal_thread_free(thread);
	loop_free(base.loop);
	logged_end();
}

/* Commits, and runs the loop until the waiter is called.  Returns what it was told. */
static int committed_and_told(void)
{
	struct waiter w = {.ends = base.loop};

	commit();
	assert_true(waits(&w));
	assert_int_equal(loop_run(base.loop), 0);
	assert_int_equal(w.times, 1);
	return w.rc;
}

static void test_thread_syncs(void **state)
{
	struct journal_thread *thread = thread_begin();

	(void)state;
	assert_int_equal(committed_and_told(), 0);
	assert_int_equal(file.calls, 1);
	assert_int_equal(committed_and_told(), 0);
	assert_int_equal(file.calls, 2);
	assert_int_equal(counters.journal_sync_failures, 0);
	assert_int_equal(logged("journal"), 0);
	thread_end(thread);
}

/* Waits again for the last commit.  Returns what it was told. */
static int told_again(void)
{
	struct waiter w = {.ends = base.loop};

	assert_true(waits(&w));
	assert_int_equal(loop_run(base.loop), 0);
	assert_int_equal(w.times, 1);
	return w.rc;
}

static off_t log_size(void)
{
	char name[128];
	struct stat st;

	snprintf(name, sizeof(name), "%s-wal", path);
	assert_int_equal(stat(name, &st), 0);
	return st.st_size;
}

/* The agent says it once; what was refused is written anew before it counts as durable. */
static void test_thread_fails(void **state)
{
	struct journal_thread *thread = thread_begin();

	(void)state;
	file.error = EIO;
	assert_int_equal(committed_and_told(), -EIO);
	assert_int_equal(committed_and_told(), -EIO);
	assert_int_equal(counters.journal_sync_failures, 2);
	assert_int_equal(logged("cannot sync the job journal"), 1);
	assert_int_equal(logged("Input/output error"), 1);
	file.error = 0;
	commit();
	assert_true(log_size() > 0);
	full_disk_break("iocom.db", 1, FULL_DISK_ALWAYS); /* the repair fails, too */
	assert_int_equal(told_again(), -EIO);
	assert_true(full_disk_failed() > 0);
	full_disk_mend();
	assert_int_equal(told_again(), 0);
	assert_int_equal(log_size(), 0);
	assert_int_equal(counters.journal_sync_failures, 3);
	assert_int_equal(logged("cannot sync the job journal"), 1);
	assert_int_equal(logged("is synced again"), 1);
	assert_int_equal(committed_and_told(), 0);
	thread_end(thread);
}

/* An agent that ends answers those that wait, with the loop at rest. */
static void test_thread_ends(void **state)
{
	struct journal_thread *thread = thread_begin();
	struct waiter w = {.again = true};

	(void)state;
	commit();
	assert_true(waits(&w));
	thread_end(thread);
	assert_int_equal(w.times, 2);
	assert_int_equal(w.rc, 0);
	assert_int_equal(file.calls, 2);
}

/* The log has gone with its file system. */
static void test_no_log(void **state)
{
	struct journal_thread *thread;

	(void)state;
	commit();
	strcat(path, "-elsewhere/iocom.db");
	thread = thread_begin();
	path[strlen(path) - strlen("-elsewhere/iocom.db")] = 0;
	assert_int_equal(committed_and_told(), -ENOENT);
	assert_int_equal(logged("No such file or directory"), 1);
	thread_end(thread);
}

#define CASE(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(test_commits_are_counted),
		CASE(test_nobody_syncs),
		CASE(test_what_was_there_before),
		CASE(test_many_commits_one_sync),
		CASE(test_waits_again),
		CASE(test_forgotten),
		CASE(test_agent_ends),
		CASE(test_open_transaction),
		CASE(test_transaction_ends),
		CASE(test_sync_fails),
		CASE(test_thread_syncs),
		CASE(test_thread_fails),
		CASE(test_thread_ends),
		CASE(test_no_log),
	};
	int rc;

	if (!mkdtemp(dir))
		return 1;
	snprintf(path, sizeof(path), "%s/iocom.db", dir);
	rc = cmocka_run_group_tests_name("journal_sync", tests, NULL, NULL);
	remove_files();
	rmdir(dir);
	return rc;
}
