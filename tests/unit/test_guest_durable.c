/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* A guest whose disk is slow, or fails: what it tells, and when. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "agent/guest/guest_own.h"
#include "tests/lib/guest_stage.h"
#include "tests/lib/slow_disk.h"
#include "tests/unit/guest_accounts.h"

#define JOB   "n2-1-1"
#define OTHER "n2-1-2"
#define OWN   "n1-1-1"

static struct slow_disk disk;

static bool runs(const char *job)
{
	const struct job *j = jobs_find(&gstage.guest->jobs, job);

	return j && j->leash >= 0;
}

static void comes_as(const struct job_order *order)
{
	const struct gstage_client one = {.uid = GSTAGE_UID};
	const struct peer_grant *grant = gstage_admit(order);

	assert_true(grant->granted);
	assert_int_equal(gstage_come(order->job, grant->nonce, &one), 0);
}

/* A job gets a place and its client comes; DURABLE as its order says. */
static void comes(const char *job, bool durable)
{
	struct job_order order = gstage_order(job);

	order.durable = durable;
	comes_as(&order);
}

/* The same for a job that its home may run again. */
static void comes_leased(const char *job, uint32_t lease_ms)
{
	struct job_order order = gstage_order(job);

	order.durable = true;
	order.lease_ms = lease_ms;
	comes_as(&order);
}

/* --- starts ---------------------------------------------------------------------------- */

static void test_attached_begins_at_once(void **state)
{
	(void)state;
	slow_disk_use(&disk, gstage.journal);
	comes(JOB, false);
	assert_true(runs(JOB));
	assert_int_equal(disk.begun, 0);
	/* Home hears that it runs when the disk has it. */
	shim_started(JOB, 10);
	gstage_pass(100);
	assert_int_equal(gstage_asked(PEER_STARTED, JOB), 0);
	gstage_chores(10);
	assert_int_equal(gstage_asked(PEER_STARTED, JOB), 0);
	assert_int_equal(slow_disk_flush(&disk), 1);
	assert_int_equal(gstage_asked(PEER_STARTED, JOB), 1);
}

/* Home would call a job failed that it never heard of: then it is told at last. */
static void test_start_is_told_at_last(void **state)
{
	(void)state;
	slow_disk_use(&disk, gstage.journal);
	comes(JOB, false);
	shim_started(JOB, 10);
	gstage_chores(25);
	assert_int_equal(gstage_asked(PEER_STARTED, JOB), 0);
	gstage_chores(15); /* the disk hangs */
	assert_true(gstage_asked(PEER_STARTED, JOB) > 0);
	comes(OTHER, false);
	shim_started(OTHER, 11);
	gstage_pass(100);
	slow_disk_end(&disk, -EIO);
	if (disk.syncing)
		slow_disk_end(&disk, -EIO);
	assert_int_equal(gstage_asked(PEER_STARTED, OTHER), 1);
}

static void test_detached_waits(void **state)
{
	(void)state;
	slow_disk_use(&disk, gstage.journal);
	comes(JOB, true);
	comes(OTHER, true);
	gstage_chores(3);
	assert_false(runs(JOB));
	assert_false(runs(OTHER));
	slow_disk_end(&disk, 0);
	assert_true(runs(JOB));
	assert_false(runs(OTHER)); /* it came after that sync had begun */
	slow_disk_end(&disk, 0);
	assert_true(runs(OTHER));
	assert_int_equal(disk.begun, 2);
	assert_null(gstage.guest->held);
}

static void test_detached_cannot_begin(void **state)
{
	(void)state;
	slow_disk_use(&disk, gstage.journal);
	gstage.client_stays = true;
	comes(JOB, true);
	slow_disk_end(&disk, -EIO);
	assert_false(runs(JOB));
	assert_string_equal(gstage_hear(), "node n1 cannot write to its disk that the job began "
					   "(Input/output error), so it does not begin");
	gstage_pass(100);
	assert_int_equal(slow_disk_flush(&disk), 1);
	assert_int_equal(gstage_asked(PEER_DONE, JOB), 1);

	shims.launch_rc = -ENOMEM; /* the disk has it, but there is no shim */
	comes(OTHER, true);
	slow_disk_end(&disk, 0);
	assert_non_null(strstr(gstage_hear(), "cannot start"));
	gstage.client_stays = false;
}

/* A job whose lease ends while its start waits for the disk may run elsewhere by now. */
static void test_detached_outlives_its_lease(void **state)
{
	(void)state;
	slow_disk_use(&disk, gstage.journal);
	gstage.client_stays = true;
	comes_leased(JOB, 5000);
	gstage_chores(7);
	slow_disk_end(&disk, 0);
	assert_false(runs(JOB));
	assert_string_equal(gstage_hear(),
			    "the disk of node n1 was slower than the lease of job " JOB
			    ", which is over, so the job does not begin");
	assert_null(gstage.guest->held);
	gstage_pass(100);
	slow_disk_flush(&disk);
	assert_int_equal(gstage_asked(PEER_DONE, JOB), 1);
	gstage.client_stays = false;
}

/* Home no longer wants a job whose start waits for the disk. */
static void test_detached_is_given_up(void **state)
{
	const struct peer_answer no = {.ok = false, .text = "given up"};

	(void)state;
	slow_disk_use(&disk, gstage.journal);
	comes_leased(JOB, 30000);
	gstage_chores(12);
	assert_int_equal(gstage_asked(PEER_RENEW, JOB), 1);
	gstage_home(PEER_RENEW, JOB, &no);
	slow_disk_end(&disk, 0);
	assert_false(runs(JOB));
}

static void test_detached_is_renewed(void **state)
{
	(void)state;
	slow_disk_use(&disk, gstage.journal);
	comes_leased(JOB, 30000);
	gstage_chores(12);
	gstage_home_ok(PEER_RENEW, JOB);
	gstage_chores(2); /* it asks again */
	gstage_home_ok(PEER_RENEW, JOB);
	gstage_pass(20000); /* the first lease is over, the last is not */
	slow_disk_end(&disk, 0);
	assert_true(runs(JOB));
}

/* The agent ends: the client's stream is closed, and nothing has begun. */
static void test_agent_ends(void **state)
{
	(void)state;
	slow_disk_use(&disk, gstage.journal);
	comes(JOB, true);
	assert_non_null(gstage.guest->held);
}

/* --- ends -------------------------------------------------------------------------------- */

static void test_ends_are_told_when_the_disk_has_them(void **state)
{
	(void)state;
	gstage_run(JOB, 10);
	gstage_run(OTHER, 11);
	slow_disk_use(&disk, gstage.journal);
	shim_exited(JOB, 0, 3);
	gstage_pass(100);
	shim_exited(OTHER, 0, 4);
	gstage_pass(100);
	gstage_show();
	gstage_chores(11); /* nor are they sent again, which were never sent */
	assert_int_equal(gstage_asked(PEER_DONE, JOB), 0);
	assert_int_equal(gstage.counters.jobs_ended, 0);
	trace_line("the disk has the first");
	slow_disk_end(&disk, 0);
	assert_int_equal(gstage_asked(PEER_DONE, JOB), 1);
	assert_int_equal(gstage_asked(PEER_DONE, OTHER), 0);
	trace_line("and the second");
	slow_disk_flush(&disk);
	assert_int_equal(gstage_asked(PEER_DONE, OTHER), 1);
	assert_int_equal(gstage.counters.jobs_ended, 2);
	assert_null(gstage.guest->jobs.first);
	trace_compare(__func__);
}

/* A home that is this very node hears of the end at once: its row comes later in this journal. */
static void test_own_home(void **state)
{
	struct job_order order = gstage_order(OWN);

	(void)state;
	strcpy(order.home, "n1");
	gstage_run_order(&order, 10);
	slow_disk_use(&disk, gstage.journal);
	shim_exited(OWN, 0, 3);
	gstage_pass(100);
	assert_int_equal(gstage_asked(PEER_DONE, OWN), 1);
	assert_non_null(jobs_find(&gstage.guest->jobs, OWN)); /* and so is the shim's record */
	slow_disk_flush(&disk);
	assert_int_equal(gstage_asked(PEER_DONE, OWN), 1);
	assert_null(gstage.guest->jobs.first);
}

/*
 * The home is told once, since its disk may work; the shim's record stays, and the end is written
 * again until the disk takes it.
 */
static void test_end_does_not_reach_the_disk(void **state)
{
	(void)state;
	gstage_run(JOB, 10);
	slow_disk_use(&disk, gstage.journal);
	shim_exited(JOB, 0, 3);
	gstage_pass(100);
	slow_disk_end(&disk, -EIO);
	assert_int_equal(gstage_asked(PEER_DONE, JOB), 1);
	gstage_home(PEER_DONE, JOB, NULL);
	gstage_pass(1100);
	slow_disk_end(&disk, -EIO);
	assert_int_equal(gstage_asked(PEER_DONE, JOB), 0);
	assert_non_null(jobs_find(&gstage.guest->jobs, JOB));
	assert_int_equal(gstage.counters.jobs_ended, 1);
	gstage_pass(1100);
	trace_line("the disk works again");
	assert_true(disk.repair);
	slow_disk_flush(&disk);
	assert_int_equal(gstage_asked(PEER_DONE, JOB), 1);
	assert_null(gstage.guest->jobs.first);
	assert_int_equal(gstage.counters.jobs_ended, 1);
	trace_compare(__func__);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, gstage_setup, gstage_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_attached_begins_at_once),
		TEST(test_start_is_told_at_last),
		TEST(test_detached_waits),
		TEST(test_detached_cannot_begin),
		TEST(test_detached_outlives_its_lease),
		TEST(test_detached_is_given_up),
		TEST(test_detached_is_renewed),
		TEST(test_agent_ends),
		TEST(test_ends_are_told_when_the_disk_has_them),
		TEST(test_own_home),
		TEST(test_end_does_not_reach_the_disk),
	};

	trace_file("agent_guest_durable");
	return cmocka_run_group_tests_name("guest_durable", tests, NULL, NULL);
}
