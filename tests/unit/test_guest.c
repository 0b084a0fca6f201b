/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Jobs at their target: how they run and end, supervisors that fail, an agent's restart. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <signal.h>

#include "tests/lib/guest_stage.h"
#include "tests/unit/guest_accounts.h"
#include "user/clock.h"

/* --- start and end ---------------------------------------------------------------------- */

static void saw_end(void *arg, const char *job)
{
	unsigned *ends = arg;

	++*ends;
	trace_line("watched: the journal has the end of %s", job);
}

static void test_a_job(void **state)
{
	unsigned ends = 0;
	struct guest_watch watch = {.ended = saw_end, .arg = &ends};
	struct job_order order = gstage_order("n2-1-1");
	const char *name = NULL;
	uid_t uid = 0;

	(void)state;
	guest_watch(gstage.guest, &watch);
	gstage_launch(&order);
	gstage_show();
	assert_false(guest_is_late(gstage.guest, "n2-1-1"));
	shim_started("n2-1-1", 10);
	gstage_pass(20);
	gstage_home_ok(PEER_STARTED, "n2-1-1");
	gstage_show();
	assert_int_equal(guest_whose(gstage.guest, 1010, &name, &uid), 0);
	assert_string_equal(name, "n2-1-1");
	assert_int_equal(uid, GSTAGE_UID);
	/* the job got a place, so the other nodes are told of its load */
	assert_int_equal(gstage.changes, 1);
	shim_exited("n2-1-1", 0, 3);
	gstage_pass(20);
	assert_int_equal(ends, 1);
	assert_int_equal(gstage.changes, 2);
	gstage_home_ok(PEER_DONE, "n2-1-1");
	/* The guest still knows whose the job's cgroup was. */
	assert_int_equal(guest_whose(gstage.guest, 1010, NULL, NULL), 0);
	assert_int_equal(guest_whose(gstage.guest, 1011, NULL, NULL), -ENOENT);
	gstage_chores(30); /* the home is told nothing more */
	gstage_show();
	trace_compare(__func__);
}

static void test_how_it_ended(void **state)
{
	static const struct {
		uint8_t kind;
		uint32_t value;
	} ends[] = {{0, 0}, {0, 255}, {1, SIGKILL}, {2, 127}, {3, LAUNCH_NEVER}, {3, 255}};
	char job[32];

	(void)state;
	gstage.set.user_jobs_max = 0;
	for (unsigned i = 0; i < sizeof(ends) / sizeof(*ends); i++) {
		snprintf(job, sizeof(job), "n2-1-%u", i + 1);
		gstage_run(job, (pid_t)(10 + i));
		shim_exited(job, ends[i].kind, ends[i].value);
		gstage_pass(1000);
		gstage_home_ok(PEER_DONE, job);
	}
	gstage_show();
	trace_compare(__func__);
}

/* What the kernel did to jobs is counted by job, once, and the sentence goes home. */
static void test_out_of_something(void **state)
{
	static const struct launch_event ends[] = {
		{.type = LAUNCH_EXITED,
		 .kind = 1,
		 .value = 9,
		 .oom_kills = 3,
		 .text = "out of memory"},
		{.type = LAUNCH_EXITED, .forks_refused = 241, .text = "refused 241 forks"},
		{.type = LAUNCH_EXITED, .oom_kills = 1, .forks_refused = 2, .text = "out of both"},
		{.type = LAUNCH_EXITED},
	};
	const struct counters *c = &gstage.counters;
	char job[32];

	(void)state;
	gstage.set.user_jobs_max = 0;
	for (unsigned i = 0; i < sizeof(ends) / sizeof(*ends); i++) {
		snprintf(job, sizeof(job), "n2-1-%u", i + 1);
		gstage_run(job, (pid_t)(10 + i));
		shim_says(job, &ends[i]);
		gstage_pass(1000);
		gstage_home_ok(PEER_DONE, job);
	}
	assert_int_equal(c->jobs_oom, 2);
	assert_int_equal(c->forks_refused, 2);
	assert_int_equal(c->jobs_ended, 4);
	gstage_show();
	trace_compare(__func__);
}

/* The job is over before home was told that it began, so home hears only of its end. */
static void test_a_short_job(void **state)
{
	const struct job_order order = gstage_order("n2-1-1");

	(void)state;
	gstage_launch(&order);
	shim_started("n2-1-1", 10);
	gstage_pass(10);
	shim_exited("n2-1-1", 0, 0);
	gstage_pass(1000);
	assert_int_equal(gstage_asked(PEER_STARTED, "n2-1-1"), 0);
	assert_int_equal(gstage_asked(PEER_DONE, "n2-1-1"), 1);
	trace_compare(__func__);
}

/*
 * Jobs that end together share one reading. If jobs end all the time, readings come at most every
 * 100 ms.
 */
static void test_one_reading_for_many(void **state)
{
	(void)state;
	for (int i = 1; i <= 4; i++) {
		char job[] = "n2-1-1";

		job[5] = (char)('0' + i);
		gstage_run(job, 10 + i);
	}
	shim_exited("n2-1-1", 0, 0);
	gstage_pass(10);
	shim_exited("n2-1-2", 0, 0);
	gstage_pass(9);
	assert_int_equal(gstage.samples, 0);
	gstage_pass(1); /* 20 ms after the first */
	assert_int_equal(gstage.samples, 1);
	shim_exited("n2-1-3", 0, 0);
	gstage_pass(99);
	assert_int_equal(gstage.samples, 1);
	gstage_pass(1); /* the reading came after 100 ms, because the last one was a moment ago */
	assert_int_equal(gstage.samples, 2);
	/* A caller that asks for a list does not wait for a reading. */
	shim_exited("n2-1-4", 0, 0);
	gstage_pass(0);
	guest_settle(gstage.guest);
	assert_int_equal(gstage.samples, 3);
	guest_settle(gstage.guest);
	trace_compare(__func__);
}

static void test_several_in_one_message(void **state)
{
	const struct peer_answer first = {.ok = true, .taken = 1};

	(void)state;
	gstage.set.user_jobs_max = 0;
	gstage_run("n2-1-1", 11);
	gstage_run("n3-1-1", 12);
	gstage_run("n2-1-2", 13);
	gstage_run("n2-1-3", 14);
	shim_exited("n2-1-1", 0, 0);
	shim_exited("n3-1-1", 0, 0);
	shim_exited("n2-1-2", 1, 9);
	shim_exited("n2-1-3", 0, 2);
	gstage_pass(20);
	/*
	 * A home of an older build, or one whose journal is full, acknowledges only the first
	 * report.
	 */
	gstage_home(PEER_DONE, "n2-1-3", &first);
	gstage_home_ok(PEER_DONE, "n3-1-1");
	gstage_show();
	gstage_chores(5);
	gstage_home_ok(PEER_DONE, "n2-1-1");
	gstage_home_ok(PEER_DONE, "n2-1-2");
	gstage_show();
	trace_compare(__func__);
}

/* --- supervisors that fail ----------------------------------------------------------------- */

static void test_shim_dies(void **state)
{
	struct shim_record *r;

	(void)state;
	for (int i = 1; i <= 4; i++) {
		char job[] = "n2-1-1";

		job[5] = (char)('0' + i);
		gstage_run(job, 10 + i);
	}
	shim_gone("n2-1-1"); /* the job's record is gone, too */
	shim_record("n2-1-2");
	shim_gone("n2-1-2"); /* the shim says nothing */
	r = shim_record("n2-1-3");
	r->found.last.kind = 0;
	r->found.last.value = 4;
	shim_gone("n2-1-3"); /* the record has the exit, which did not come through the leash */
	shim_record("n2-1-4")->found.last.value = LAUNCH_NEVER;
	shim_gone("n2-1-4"); /* no process of the job ran */
	gstage_pass(200);
	gstage_show();
	trace_compare(__func__);
}

/*
 * A shim that was killed a moment ago may still hold its lock. A shim that lives is asked each
 * second.
 */
static void test_shim_is_busy(void **state)
{
	(void)state;
	gstage_run("n2-1-1", 10);
	shim_record("n2-1-1")->found.busy = true;
	shim_says_rc("n2-1-1", -EBADMSG);
	gstage_pass(10);
	assert_true(guest_is_late(gstage.guest, "n2-1-1"));
	shim_record("n2-1-1")->found.busy = false;
	gstage_pass(10); /* the reading also looks at the shim, which is dead */
	assert_false(guest_is_late(gstage.guest, "n2-1-1"));
	gstage_pass(200);
	gstage_run("n2-1-2", 11);
	shim_record("n2-1-2")->found.busy = true;
	shim_gone("n2-1-2");
	gstage_chores(3);
	assert_true(guest_is_late(gstage.guest, "n2-1-2"));
	shim_record("n2-1-2")->found.busy = false;
	shim_record("n2-1-2")->lives = true; /* the new leash has not said anything yet */
	gstage_chores(1);
	assert_true(guest_is_late(gstage.guest, "n2-1-2"));
	shim_started("n2-1-2", 11);
	gstage_pass(0);
	assert_false(guest_is_late(gstage.guest, "n2-1-2"));
	gstage_show();
	trace_compare(__func__);
}

/* The guest looks each second at a job that it cannot watch, and does not forget it. */
static void test_leash_cannot_be_watched(void **state)
{
	const struct job_order order = gstage_order("n2-1-1");

	(void)state;
	shims.deaf_leash = true;
	gstage_launch(&order);
	shims.deaf_leash = false;
	shim_record("n2-1-1")->lives = true;
	gstage_chores(2);
	shim_started("n2-1-1", 10);
	shim_exited("n2-1-1", 0, 0);
	gstage_pass(100);
	gstage_show();
	trace_compare(__func__);
}

/* A supervisor of a later version is left alone until it is gone. */
static void test_newer_shim(void **state)
{
	(void)state;
	gstage_run("n2-1-1", 10);
	shim_record("n2-1-1")->found.busy = shim_record("n2-1-1")->found.newer = true;
	shim_says_rc("n2-1-1", -EPROTONOSUPPORT);
	gstage_chores(3);
	assert_true(guest_is_late(gstage.guest, "n2-1-1"));
	shim_record("n2-1-1")->found.busy = false;
	shim_record("n2-1-1")->found.last.kind = 0;
	shim_record("n2-1-1")->found.last.value = 0;
	gstage_chores(2);
	gstage_show();
	trace_compare(__func__);
}

/*
 * --- an agent's restart ------------------------------------------------------------------------
 */

static void five_jobs(void)
{
	gstage.set.user_jobs_max = 0;
	for (int i = 1; i <= 5; i++) {
		char job[] = "n2-1-1";

		job[5] = (char)('0' + i);
		gstage_run(job, 10 + i);
	}
}

static void test_restart(void **state)
{
	struct shim_record *r;

	(void)state;
	five_jobs();
	r = shim_record("n2-1-1"); /* the shim lives and answers at once */
	r->lives = true;
	r->found.started = (struct launch_event){.pid = 11, .cgroup_id = 1011};
	r->found.start_ns = 3;
	shim_record("n2-1-2")->lives = true; /* the shim lives and is stopped */
	shim_record("n2-1-3")->found.busy = true;
	r = shim_record("n2-1-4"); /* the job ended meanwhile */
	r->found.last.kind = 0;
	r->found.last.value = 1;
	shim_record("n2-1-5"); /* was killed */
	shim_record("n2-1-9"); /* a record of a job that the journal does not know */
	gstage_restart();
	gstage_show();
	gstage_chores(1);
	assert_false(guest_is_late(gstage.guest, "n2-1-1"));
	assert_true(guest_is_late(gstage.guest, "n2-1-2"));
	assert_true(guest_is_late(gstage.guest, "n2-1-3"));
	shim_started("n2-1-2", 12);
	shim_record("n2-1-3")->found.newer = true;
	gstage_chores(5);
	gstage_show();
	trace_compare(__func__);
}

static void test_restart_with_a_leash_that_cannot_be_watched(void **state)
{
	(void)state;
	gstage_run("n2-1-1", 11);
	shim_record("n2-1-1")->lives = true;
	shim_record("n2-1-1")->found.started.pid = 11;
	shims.deaf_leash = true;
	gstage_restart();
	gstage_pass(100);
	shims.deaf_leash = false;
	gstage_chores(1);
	shim_exited("n2-1-1", 0, 0);
	gstage_pass(100);
	gstage_show();
	trace_compare(__func__);
}

/* Nothing is left of this job: it never began, because the agent ended before its shim started. */
static void test_nothing_is_left(void **state)
{
	struct job_order order = gstage_order("n2-1-1");

	(void)state;
	gstage_launch(&order);
	gstage_run("n2-1-2", 12);
	gstage_restart();
	gstage_pass(1000);
	gstage_show();
	trace_compare(__func__);
}

/* After a power cut the job's record may be gone, too. Then nobody knows whether the job began. */
static void test_nothing_is_left_after_a_power_cut(void **state)
{
	struct job_order order = gstage_order("n2-1-1");

	(void)state;
	gstage_launch(&order);
	gstage_kill_agent();
	assert_int_equal(journal_set_fact(gstage.journal, "boot", 1), 0);
	assert_int_equal(gstage_start_agent(), 0);
	gstage_pass(1000);
	gstage_show();
	trace_compare(__func__);
}

/* A restart forgets a place that was granted and not taken, so its client is refused. */
static void test_places_are_not_kept(void **state)
{
	const struct gstage_client anna = {.uid = GSTAGE_UID};
	struct job_order order = gstage_order("n2-1-1");
	char nonce[SPEC_NONCE_MAX];

	(void)state;
	strcpy(nonce, gstage_admit(&order)->nonce);
	gstage_restart();
	assert_int_equal(gstage_come("n2-1-1", nonce, &anna), -EACCES);
	trace_compare(__func__);
}

/* Reports that were not acknowledged before the restart are sent again after it. */
static void test_reports_outlive_the_agent(void **state)
{
	(void)state;
	gstage_run("n2-1-1", 10);
	shim_exited("n2-1-1", 0, 7);
	gstage_pass(100);
	gstage_restart();
	gstage_chores(1);
	gstage_home_ok(PEER_DONE, "n2-1-1");
	gstage_show();
	gstage_restart();
	gstage_chores(6);
	trace_compare(__func__);
}

/*
 * --- questions under way ------------------------------------------------------------------------
 */

static void test_agent_stops(void **state)
{
	struct job_order order = gstage_order("n2-1-3");

	(void)state;
	gstage_run("n2-1-1", 10);
	gstage_run("n2-1-2", 11);
	gstage_launch(&order);
	shim_started("n2-1-3", 12);
	shim_exited("n2-1-1", 0, 0);
	gstage_pass(100); /* home does not answer `started` and `done` */
	gstage_kill("n2-1-2", GSTAGE_UID, SIGTERM);
	shim_exited("n2-1-2", 0, 0);
	gstage_pass(0); /* the end waits for its reading */
	gstage_stop_agent();
	gstage_show();
	/* The next agent takes the outcome from the shim's record. */
	shim_record("n2-1-2")->found.last.kind = 0;
	shim_record("n2-1-2")->found.last.value = 0;
	shim_record("n2-1-3")->lives = true;
	shim_record("n2-1-3")->found.started.pid = 12;
	assert_int_equal(gstage_start_agent(), 0);
	gstage_chores(1);
	gstage_show();
	trace_compare(__func__);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, gstage_setup, gstage_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_a_job),
		TEST(test_how_it_ended),
		TEST(test_out_of_something),
		TEST(test_a_short_job),
		TEST(test_one_reading_for_many),
		TEST(test_several_in_one_message),
		TEST(test_shim_dies),
		TEST(test_shim_is_busy),
		TEST(test_leash_cannot_be_watched),
		TEST(test_newer_shim),
		TEST(test_restart),
		TEST(test_restart_with_a_leash_that_cannot_be_watched),
		TEST(test_nothing_is_left),
		TEST(test_nothing_is_left_after_a_power_cut),
		TEST(test_places_are_not_kept),
		TEST(test_reports_outlive_the_agent),
		TEST(test_agent_stops),
	};

	trace_file("agent_guest");
	return cmocka_run_group_tests_name("guest", tests, NULL, NULL);
}
