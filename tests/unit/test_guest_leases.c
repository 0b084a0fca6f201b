/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Leases of restartable jobs at their target, and signals for jobs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <signal.h>

#include "agent/guest/signals.h"
#include "tests/lib/guest_stage.h"
#include "tests/unit/guest_accounts.h"
#include "user/clock.h"

#define LEASE_MS 8000 /* the shim asks every 2 s */
#define BOOT_MS	 1000000

static const struct peer_answer fenced = {.text = "it was given to another node"};

/* Starts a restartable job. It began at 20 ms, and its lease at 0. */
static void run_restartable(const char *job, pid_t pid)
{
	struct job_order order = gstage_order(job);

	order.lease_ms = LEASE_MS;
	gstage_run_order(&order, pid);
}

/* --- leases ------------------------------------------------------------------------------- */

/* A job without a lease is never asked about. */
static void test_no_lease(void **state)
{
	(void)state;
	gstage_run("n2-1-1", 10);
	gstage_chores(30);
	assert_int_equal(gstage_asked(PEER_RENEW, "n2-1-1"), 0);
	trace_compare(__func__);
}

static void test_renewed_in_time(void **state)
{
	(void)state;
	run_restartable("n2-1-1", 10);
	gstage_chores(2);
	gstage_home_ok(PEER_RENEW, "n2-1-1");
	gstage_chores(2);
	gstage_pass(500); /* the answer takes long: the lease counts from the question */
	gstage_home_ok(PEER_RENEW, "n2-1-1");
	gstage_chores(2);
	gstage_home_ok(PEER_RENEW, "n2-1-1");
	gstage_show();
	trace_compare(__func__);
}

/* The guest asks one question at a time, and asks a silent home again. */
static void test_home_is_silent(void **state)
{
	(void)state;
	run_restartable("n2-1-1", 10);
	gstage_chores(4);
	assert_int_equal(gstage_asked(PEER_RENEW, "n2-1-1"), 1);
	gstage_home(PEER_RENEW, "n2-1-1", NULL);
	gstage_chores(1);
	assert_int_equal(gstage_asked(PEER_RENEW, "n2-1-1"), 1);
	gstage_home_ok(PEER_RENEW, "n2-1-1");
	gstage.ask_rc = -ENOMEM;
	gstage_chores(2);
	gstage.ask_rc = -EHOSTUNREACH;
	gstage_chores(2);
	trace_compare(__func__);
}

static void test_fenced(void **state)
{
	(void)state;
	run_restartable("n2-1-1", 10);
	gstage_chores(2);
	gstage_home(PEER_RENEW, "n2-1-1", &fenced);
	shim_exited("n2-1-1", 3, 255);
	gstage_chores(3);
	gstage_home_ok(PEER_DONE, "n2-1-1");
	gstage_show();
	trace_compare(__func__);
}

/* The shim was told and does not kill the job, so we try to kill it each second. */
static void test_fenced_and_not_killed(void **state)
{
	(void)state;
	run_restartable("n2-1-1", 10);
	gstage_chores(2);
	gstage_home(PEER_RENEW, "n2-1-1", &fenced);
	shims.lease_rc = -EPIPE;
	gstage_chores(3);
	gstage_show();
	trace_compare(__func__);
}

/* Nobody answers: the shim kills the job at the lease's end, or we do so half a second later. */
static void test_outlives_its_lease(void **state)
{
	(void)state;
	run_restartable("n2-1-1", 10);
	gstage_chores(8); /* at 8020 ms */
	gstage_pass(480); /* the time is 8500: the lease is not over yet */
	guest_chores(gstage.guest);
	gstage_pass(1);
	guest_chores(gstage.guest);
	gstage_show();
	trace_compare(__func__);
}

/*
 * The lease ends while the answer is under way: once the answer comes too late for the shim, and
 * once in time.
 */
static void test_lease_ends_while_asked(void **state)
{
	(void)state;
	run_restartable("n2-1-1", 10);
	gstage_chores(8);
	assert_int_equal(gstage_asked(PEER_RENEW, "n2-1-1"), 1);
	shim_exited("n2-1-1", 3, 255); /* killed by its shim */
	gstage_pass(5);
	gstage_home(PEER_RENEW, "n2-1-1", &fenced); /* ended, and not settled yet */
	gstage_pass(1000);
	run_restartable("n2-1-2", 11);
	gstage_chores(8);
	gstage_home_ok(PEER_RENEW, "n2-1-2"); /* the job still runs */
	gstage_chores(1);
	gstage_show();
	trace_compare(__func__);
}

static void test_answer_after_the_job(void **state)
{
	(void)state;
	run_restartable("n2-1-1", 10);
	run_restartable("n2-1-2", 11);
	gstage_chores(2);
	shim_exited("n2-1-1", 0, 0);
	shim_exited("n2-1-2", 0, 0);
	gstage_pass(1000);
	gstage_home_ok(PEER_RENEW, "n2-1-1");
	gstage_home(PEER_RENEW, "n2-1-2", &fenced);
	gstage_show();
	trace_compare(__func__);
}

/* A shim that renews itself is left to it, until it could not for half a lease. */
static void test_shim_renews_itself(void **state)
{
	(void)state;
	run_restartable("n2-1-1", 10);
	shim_holds("n2-1-1", 10, BOOT_MS + LEASE_MS, true);
	gstage_chores(3);
	shim_holds("n2-1-1", 10, BOOT_MS + 2000 + LEASE_MS, true);
	gstage_chores(2);
	assert_int_equal(gstage_asked(PEER_RENEW, "n2-1-1"), 0);
	gstage_chores(1); /* renewed at 6020; the lease lasts until 10000 */
	assert_int_equal(gstage_asked(PEER_RENEW, "n2-1-1"), 1);
	trace_compare(__func__);
}

/* An answer that home gave to the shim meanwhile is newer than its answer to us. */
static void test_late_answer_takes_nothing_away(void **state)
{
	(void)state;
	run_restartable("n2-1-1", 10);
	gstage_chores(2); /* we asked at 2020 */
	shim_holds("n2-1-1", 10, BOOT_MS + 3000 + LEASE_MS, true);
	gstage_chores(2);
	gstage_home_ok(PEER_RENEW, "n2-1-1"); /* the lease lasts until 10020, as answered at 2020 */
	gstage.ask_rc = -EHOSTUNREACH;
	gstage_pass(6900); /* the time is 10920: the shim has the lease until 11000 */
	guest_chores(gstage.guest);
	gstage_pass(680); /* 11600 */
	guest_chores(gstage.guest);
	trace_compare(__func__);
}

/*
 * A new agent does not know the lease's end until the shim tells it, and assumes at most one whole
 * lease.
 */
static void test_lease_after_a_restart(void **state)
{
	(void)state;
	run_restartable("n2-1-1", 10);
	run_restartable("n2-1-2", 11);
	shim_record("n2-1-1")->lives = true;
	shim_record("n2-1-1")->found.started = (struct launch_event){
		.pid = 10, .cgroup_id = 1010, .lease_until_ms = BOOT_MS + LEASE_MS};
	shim_record("n2-1-2")->lives = true; /* the shim is stopped and says nothing */
	gstage_restart();
	gstage_chores(1);
	gstage_home_ok(PEER_RENEW, "n2-1-1");
	assert_int_equal(gstage_asked(PEER_RENEW, "n2-1-2"), 0);
	gstage.ask_rc = -EHOSTUNREACH;
	gstage_chores(10);
	gstage_show();
	trace_compare(__func__);
}

static void test_agent_stops_while_it_asks(void **state)
{
	(void)state;
	run_restartable("n2-1-1", 10);
	gstage_chores(2);
	gstage_stop_agent();
	gstage_show();
	trace_compare(__func__);
}

/* --- signals ---------------------------------------------------------------------------------- */

static void test_signal(void **state)
{
	const struct job_order order = gstage_order("n2-1-2");

	(void)state;
	gstage_run("n2-1-1", 10);
	gstage_kill("n2-1-1", GSTAGE_UID, SIGTERM);
	assert_false(gstage.answered);
	shim_signalled("n2-1-1", 0);
	gstage_pass(0);
	assert_true(gstage.answered);
	gstage_kill("n2-1-1", 0, SIGKILL); /* root may */
	shim_signalled("n2-1-1", -EPERM);
	gstage_pass(0);
	gstage_kill("n2-1-1", GSTAGE_UID, 0); /* signal 0 asks whether the job runs */
	gstage_kill("n2-1-1", 1001, 0);
	gstage_kill("n2-1-1", 1001, SIGTERM);
	gstage_kill("n2-1-9", GSTAGE_UID, SIGTERM);
	gstage_admit(&order); /* a job that only has a place does not run yet */
	gstage_kill("n2-1-2", GSTAGE_UID, SIGTERM);
	shims.signal_rc = -ESRCH;
	gstage_kill("n2-1-1", GSTAGE_UID, SIGTERM);
	shims.signal_rc = 0;
	shim_exited("n2-1-1", 0, 0);
	gstage_pass(0);
	/* the job has ended, though nobody else knows it yet */
	gstage_kill("n2-1-1", GSTAGE_UID, 0);
	trace_compare(__func__);
}

static void test_shim_does_not_say(void **state)
{
	(void)state;
	gstage_run("n2-1-1", 10);
	gstage_kill("n2-1-1", GSTAGE_UID, SIGTERM);
	gstage_pass(SIGNALS_WAIT_MS - 1);
	assert_false(gstage.answered);
	gstage_pass(1);
	assert_true(gstage.answered);
	assert_int_equal(gstage.answer.error, -ETIMEDOUT);
	trace_compare(__func__);
}

static size_t waiting(void)
{
	struct guest_counts counts;

	guest_count(gstage.guest, &counts);
	return counts.signals;
}

static void test_too_many_signals(void **state)
{
	struct job_order roots = gstage_order("n2-1-2");

	(void)state;
	gstage.set.user_jobs_max = 0;
	gstage_run("n2-1-1", 10);
	for (int i = 0; i < SIGNALS_OF_ONE; i++)
		gstage_kill("n2-1-1", GSTAGE_UID, SIGUSR1);
	assert_int_equal(waiting(), SIGNALS_OF_ONE);
	gstage_kill("n2-1-1", GSTAGE_UID, SIGUSR1);
	/* the bound counts for the job's owner, not for the user who asks */
	gstage_kill("n2-1-1", 0, SIGUSR1);
	assert_int_equal(gstage.answer.error, -EAGAIN);
	assert_int_equal(gstage.counters.signals_refused, 2);
	gstage_kill("n2-1-1", GSTAGE_UID, 0);
	assert_true(gstage.answer.ok);
	shim_signalled("n2-1-1", 0);
	gstage_pass(0);
	gstage_kill("n2-1-1", GSTAGE_UID, SIGUSR1);
	assert_int_equal(waiting(), SIGNALS_OF_ONE);
	/* Root's jobs are bounded only by the number of all waiting signals. */
	trace_pause(true);
	gstage.set.allow_root = true;
	roots.uid = 0;
	gstage_launch(&roots);
	for (int i = SIGNALS_OF_ONE; i < SIGNALS_MAX; i++)
		gstage_kill(roots.job, 0, SIGUSR1);
	trace_pause(false);
	assert_int_equal(waiting(), SIGNALS_MAX);
	gstage_kill(roots.job, 0, SIGUSR1);
	assert_int_equal(gstage.answer.error, -EAGAIN);
	gstage_kill("n2-1-1", GSTAGE_UID, SIGUSR1);
	trace_pause(true);
	gstage_pass(SIGNALS_WAIT_MS);
	trace_pause(false);
	assert_int_equal(waiting(), 0);
	trace_compare(__func__);
}

static void test_agent_stops_while_it_signals(void **state)
{
	(void)state;
	gstage_run("n2-1-1", 10);
	gstage_kill("n2-1-1", GSTAGE_UID, SIGTERM);
	gstage_kill("n2-1-1", GSTAGE_UID, SIGKILL);
	gstage_stop_agent();
	assert_int_equal(gstage.answer.error, -ECANCELED);
	trace_compare(__func__);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, gstage_setup, gstage_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_no_lease),
		TEST(test_renewed_in_time),
		TEST(test_home_is_silent),
		TEST(test_fenced),
		TEST(test_fenced_and_not_killed),
		TEST(test_outlives_its_lease),
		TEST(test_lease_ends_while_asked),
		TEST(test_answer_after_the_job),
		TEST(test_shim_renews_itself),
		TEST(test_late_answer_takes_nothing_away),
		TEST(test_lease_after_a_restart),
		TEST(test_agent_stops_while_it_asks),
		TEST(test_signal),
		TEST(test_shim_does_not_say),
		TEST(test_too_many_signals),
		TEST(test_agent_stops_while_it_signals),
	};

	trace_file("agent_guest_leases");
	return cmocka_run_group_tests_name("guest_leases", tests, NULL, NULL);
}
