/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* How a job gets a place at its target, and how its client takes it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "agent/guest/guest_own.h"
#include "tests/lib/full_disk.h"
#include "tests/lib/guest_stage.h"
#include "tests/unit/guest_accounts.h"
#include "user/pack.h"

#define FAR "/proc" /* a thread looks, because the kernel alone cannot tell what is there */

static const struct gstage_client anna = {.uid = GSTAGE_UID};

static struct job_order of(const char *job, uid_t uid)
{
	struct job_order order = gstage_order(job);

	order.uid = uid;
	return order;
}

static const char *admit_reason(const struct job_order *order)
{
	const struct peer_grant *g = gstage_admit(order);

	assert_true(g->granted == !g->reason[0]);
	assert_true(g->granted == !g->text[0]);
	return g->granted ? "granted" : g->reason;
}

static void test_owner_says_no(void **state)
{
	struct job_order order = gstage_order("n2-1-1");

	(void)state;
	gstage.set.accept_jobs = false;
	assert_string_equal(admit_reason(&order), "owner");
	gstage.set.accept_jobs = true;
	assert_string_equal(admit_reason(&order), "granted");
	gstage_show();
	trace_compare(__func__);
}

static void test_whose_jobs(void **state)
{
	static const struct {
		uid_t uid;
		const char *allow, *deny, *reason;
	} cases[] = {
		{1234, "", "", "no-user"},
		{ACCOUNTS_SILENT, "", "", "user-slow"},
		{2, "", "", "user"}, /* below min_uid */
		{0, "", "", "user"}, /* allow_root is off */
		{1000, "", "anna", "user"},
		{1000, "bert", "", "user"},
		{1000, "bert, @users", "", "granted"},
		{1001, "bert", "anna", "granted"},
		{1001, "bert", "@nobody", "user"}, /* there is no such group */
		{1001, "bert", "@silent", "user"},
	};
	char job[32];

	(void)state;
	for (unsigned i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct job_order order;

		snprintf(job, sizeof(job), "n2-1-%u", i);
		order = of(job, cases[i].uid);
		strcpy(gstage.set.allow_users, cases[i].allow);
		strcpy(gstage.set.deny_users, cases[i].deny);
		assert_string_equal(admit_reason(&order), cases[i].reason);
	}
	gstage_show();
	trace_compare(__func__);
}

static void test_what_is_missing(void **state)
{
	struct job_order order = gstage_order("n2-1-1");

	(void)state;
	strcpy(order.cwd, "/no-such-directory-of-anna");
	assert_string_equal(admit_reason(&order), "path-missing");
	order.forced = true; /* the user named this node, but the job cannot run there at all */
	assert_string_equal(admit_reason(&order), "path-missing");
	order = gstage_order("n2-1-2");
	strcpy(order.executable, "/no-such-program-of-anna");
	assert_string_equal(admit_reason(&order), "path-missing");
	order.forced = true; /* exec reports that with status 127 */
	assert_string_equal(admit_reason(&order), "granted");
	order = gstage_order("n2-1-3");
	strcpy(order.cwd, FAR);
	assert_string_equal(admit_reason(&order), "granted");
	gstage_show();
	trace_compare(__func__);
}

static void test_what_it_would_do(void **state)
{
	struct job_order order = gstage_order("n2-1-1");

	(void)state;
	gstage.own.explicit_per_ms = 0.3;
	gstage.own.implicit_per_ms = 0.1;
	gstage.own.run_queue = 2;
	order.need.value[NEED_IO_PER_S] = 200;
	order.home_io = 0.59; /* 0.3 + 0.1 + 0.2 here */
	assert_string_equal(admit_reason(&order), "overloaded");
	order.home_io = 0.61;
	order.home_cpu = 2.9;
	assert_string_equal(admit_reason(&order), "overloaded");
	order.home_cpu = 3;
	order.need.value[NEED_MEMORY_MB] = 1010;
	assert_string_equal(admit_reason(&order), "memory");
	order.need.value[NEED_MEMORY_MB] = 1000;
	assert_string_equal(admit_reason(&order), "granted");
	order = gstage_order("n2-1-2");
	order.home_io = 0.1;
	order.need.value[NEED_MEMORY_MB] = 4000;
	order.forced = true; /* the user named this node, so the load does not matter */
	assert_string_equal(admit_reason(&order), "granted");
	gstage_show();
	trace_compare(__func__);
}

/* The first answer was lost: the second is the same. */
static void test_asked_again(void **state)
{
	const struct job_order order = gstage_order("n2-1-1"), other = of("n2-1-1", 1001);
	char nonce[SPEC_NONCE_MAX];

	(void)state;
	strcpy(nonce, gstage_admit(&order)->nonce);
	assert_int_equal(strlen(nonce), 32);
	gstage_pass(9000);
	assert_string_equal(gstage_admit(&order)->nonce, nonce);
	assert_string_equal(admit_reason(&other), "duplicate");
	assert_int_equal(gstage_come("n2-1-1", nonce, &anna), 0);
	assert_string_equal(admit_reason(&order), "duplicate");
	shim_started("n2-1-1", 10);
	gstage_pass(0);
	assert_string_equal(admit_reason(&order), "duplicate");
	gstage_show();
	trace_compare(__func__);
}

static int ask_now(const struct job_order *order, uint64_t ticket, struct peer_answer *answer)
{
	struct peer_request request = {.type = PEER_ADMIT, .order = order};

	memcpy(request.job, order->job, sizeof(request.job));
	return guest_on_admit(gstage.guest, &request, ticket, answer);
}

/* Passes the loop until no thread looks at directories any more; no virtual time passes. */
static size_t jobs_here(void)
{
	struct guest_counts counts;

	do {
		gstage_pass(0);
		guest_count(gstage.guest, &counts);
	} while (counts.paths);
	return counts.jobs;
}

/* Two homes ask while a thread looks at a directory, and there is only one place. */
static void test_two_homes_at_once(void **state)
{
	struct job_order one = gstage_order("n2-1-1"), two = gstage_order("n3-1-1");
	struct peer_answer answer = {0};
	struct guest_counts counts;
	const struct peer_grant *g;

	(void)state;
	gstage.set.user_jobs_max = 1;
	strcpy(one.cwd, FAR);
	strcpy(two.cwd, FAR);
	assert_int_equal(ask_now(&one, 0, &answer), PEERS_LATER);
	assert_int_equal(ask_now(&two, 0, &answer), PEERS_LATER);
	guest_count(gstage.guest, &counts);
	assert_int_equal(counts.paths, 2);
	assert_int_equal(counts.jobs, 0);
	assert_int_equal(jobs_here(), 1);
	assert_int_equal(gstage.counters.admissions_granted, 1);
	assert_int_equal(gstage.counters.jobs_refused_limit, 1);
	/* Two questions about the same job at once get one place. */
	gstage.set.user_jobs_max = 2;
	one = gstage_order("n2-1-2");
	strcpy(one.cwd, FAR);
	assert_int_equal(ask_now(&one, 0, &answer), PEERS_LATER);
	g = gstage_admit(&one);
	assert_true(g->granted);
	assert_int_equal(jobs_here(), 2);
	assert_int_equal(gstage.counters.admissions_granted, 3);
}

static void test_no_user_takes_all_places(void **state)
{
	struct job_order order;
	char job[32];

	(void)state;
	gstage.set.user_jobs_max = 2;
	gstage.set.allow_root = true;
	for (int i = 1; i <= 3; i++) {
		snprintf(job, sizeof(job), "n2-1-%d", i);
		order = gstage_order(job);
		assert_string_equal(admit_reason(&order), i < 3 ? "granted" : "user-limit");
		order = of(strcat(job, "0"), 0);
		assert_string_equal(admit_reason(&order), "granted");
	}
	order = of("n2-1-4", 1001);
	assert_string_equal(admit_reason(&order), "granted");
	gstage_show();
	trace_compare(__func__);
}

/* UID asks for places until one is refused.  Returns how many UID got. */
static size_t fill(const char *home, uid_t uid, const char *reason)
{
	struct job_order order;
	const char *got;
	char job[32];

	for (size_t n = 0;; n++) {
		snprintf(job, sizeof(job), "%s-%u-%zu", home, (unsigned)uid, n);
		order = of(job, uid);
		got = admit_reason(&order);
		if (!strcmp(got, "granted"))
			continue;
		assert_string_equal(got, reason);
		return n;
	}
}

/* 4096 places, 64 of them root's. */
static void test_two_users_leave_places(void **state)
{
	(void)state;
	gstage.set.user_jobs_max = 0;
	trace_pause(true);
	assert_int_equal(fill("n1", 1000, "user-limit"), 2016);
	assert_string_equal(
		gstage.answer.grant.text,
		"uid 1000 has 2016 jobs there, and 2016 places are free: a user who has "
		"as many as are free gets no more (jobs)");
	assert_int_equal(fill("n1", 1001, "user-limit"), 1008);
	assert_int_equal(fill("n1", 1002, "user-limit"), 504);
	trace_pause(false);
	assert_int_equal(gstage.counters.places_refused, 3);
	assert_int_equal(gstage.counters.jobs_refused_limit, 3);
}

/* The shims of these jobs still serve clients that do not read, so they take places, too. */
static void test_those_that_leave_count(void **state)
{
	const struct job_order order = gstage_order("n2-1-2");

	(void)state;
	gstage.set.user_jobs_max = 1;
	gstage_run("n2-1-1", 10);
	shims.forget = -EBUSY;
	shim_exited("n2-1-1", 0, 0);
	gstage_pass(100);
	gstage_home_ok(PEER_DONE, "n2-1-1");
	assert_string_equal(admit_reason(&order), "user-limit");
	shims.forget = 0;
	assert_string_equal(admit_reason(&order), "granted");
	trace_compare(__func__);
}

static void test_table_is_full(void **state)
{
	const struct job_order order = gstage_order("n2-1-1");
	size_t count = gstage.guest->jobs.count;

	(void)state;
	gstage.guest->jobs.count = JOBS_MAX;
	assert_string_equal(admit_reason(&order), "full");
	gstage.guest->jobs.count = count;
	assert_string_equal(admit_reason(&order), "granted");
	trace_compare(__func__);
}

/* Home is this very node and has judged the job, so the guest only gives it a place. */
static void test_own_job(void **state)
{
	struct job_order order = of("n1-1-1", 1234);

	(void)state;
	gstage.set.accept_jobs = false;
	gstage.set.user_jobs_max = 1;
	gstage.own.memory_available_mb = 0;
	order.need.value[NEED_MEMORY_MB] = 100;
	strcpy(order.cwd, "/no-such-directory-of-anna");
	assert_string_equal(admit_reason(&order), "granted");
	order = of("n1-1-2", 1234);
	assert_string_equal(admit_reason(&order), "user-limit");
	gstage_show();
	trace_compare(__func__);
}

static size_t in_vector(void)
{
	const struct pulse_jobs jobs = guest_pulse_jobs(gstage.guest);
	size_t n;

	free(jobs.vector(jobs.arg, &n));
	return n;
}

static void test_place_expires(void **state)
{
	const struct job_order order = gstage_order("n2-1-1");
	char nonce[SPEC_NONCE_MAX];

	(void)state;
	strcpy(nonce, gstage_admit(&order)->nonce);
	assert_int_equal(in_vector(), 1);
	gstage_chores(9);
	assert_int_equal(in_vector(), 1);
	gstage_chores(1);
	assert_int_equal(in_vector(), 0);
	gstage_home_ok(PEER_DONE, "n2-1-1");
	assert_int_equal(gstage_come("n2-1-1", nonce, &anna), -EACCES);
	assert_true(gstage_admit(&order)->granted); /* the job never began, so it may come again */
	assert_string_not_equal(gstage.answer.grant.nonce, nonce);
	gstage_show();
	trace_compare(__func__);
}

static void test_wrong_clients(void **state)
{
	const struct gstage_client elsewhere = {.uid = GSTAGE_UID, .node = "n7"};
	const struct gstage_client bert = {.uid = 1001}, here = {.uid = 1001, .local = true};
	const struct job_order order = gstage_order("n2-1-1");
	char nonce[SPEC_NONCE_MAX];

	(void)state;
	strcpy(nonce, gstage_admit(&order)->nonce);
	assert_int_equal(gstage_come("n2-1-2", nonce, &anna), -EACCES);
	assert_int_equal(gstage_come("n2-1-1", "0123", &anna), -EACCES);
	assert_int_equal(gstage_come("n2-1-1", nonce, &elsewhere), -EACCES);
	assert_int_equal(gstage_come("n2-1-1", nonce, &bert), -EACCES);
	assert_int_equal(gstage_come("n2-1-1", nonce, &here), -EACCES);
	gstage.forged = true;
	assert_int_equal(gstage_come("n2-1-1", nonce, &anna), -EACCES);
	gstage.forged = false;
	gstage.munged_rc = -EHOSTDOWN;
	assert_int_equal(gstage_come("n2-1-1", nonce, &anna), -EHOSTDOWN);
	gstage.munged_rc = 0;
	/* None of these clients took the place from the user who may have it. */
	assert_int_equal(gstage_come("n2-1-1", nonce, &anna), 0);
	assert_int_equal(gstage_come("n2-1-1", nonce, &anna), -EACCES);
	gstage_show();
	trace_compare(__func__);
}

static void test_no_start_message(void **state)
{
	static const struct {
		const char *bytes, *why;
	} none[] = {{"x", "the start message is not a MessagePack map"},
		    {"\x80" /* {} */, "the start message holds no job"}};
	const struct ucred here = {.uid = GSTAGE_UID};
	const struct credential there = {.uid = GSTAGE_UID};
	const struct stream_secure secure = {0};
	struct iocom_err err = {0};
	char *text;

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		assert_int_equal(guest_start(gstage.guest, -1, none[i].bytes, 1, &here, &err),
				 -EBADMSG);
		assert_string_equal(err.text, none[i].why);
		assert_int_equal(guest_start_check(gstage.guest, &secure.hello, none[i].bytes, 1,
						   &text, &err),
				 -EBADMSG);
		assert_null(text);
		assert_string_equal(err.text, none[i].why);
		assert_int_equal(
			guest_start_of(gstage.guest, -1, &secure, none[i].bytes, 1, &there, &err),
			-EBADMSG);
	}
}

/* Starts JOB by a spec that has nothing but its names. */
static int come_with_names(const char *job, const char *nonce, struct iocom_err *err)
{
	const struct ucred local = {.uid = GSTAGE_UID, .gid = 100};
	msgpack_sbuffer spec, message;
	msgpack_packer pk;
	int rc;

	pack_begin(&pk, &spec, 3);
	pack_str(&pk, "job", job);
	pack_str(&pk, "node", gstage.set.name);
	pack_str(&pk, "nonce", nonce);
	pack_begin(&pk, &message, 1);
	pack_bin(&pk, "spec", spec.data, spec.size);
	rc = guest_start(gstage.guest, -1, message.data, (uint32_t)message.size, &local, err);
	msgpack_sbuffer_destroy(&message);
	msgpack_sbuffer_destroy(&spec);
	return rc;
}

/* The rest of a stranger's spec is not even decoded; a broken one does not take the place. */
static void test_strangers_cost_nothing(void **state)
{
	const struct job_order order = gstage_order("n2-1-1");
	struct iocom_err err = {0};
	char nonce[SPEC_NONCE_MAX];

	(void)state;
	strcpy(nonce, gstage_admit(&order)->nonce);
	assert_int_equal(come_with_names("n2-1-2", nonce, &err), -EACCES);
	assert_non_null(strstr(err.text, "holds no lease for job n2-1-2"));
	assert_int_equal(come_with_names("n2-1-1", nonce, &err), -EBADMSG);
	assert_non_null(strstr(err.text, "field 'v'"));
	assert_int_equal(gstage_come("n2-1-1", nonce, &anna), 0);
}

/* Home counts a lease from the grant, and may have given the job up. */
static void test_restartable_job_comes_late(void **state)
{
	struct job_order order = gstage_order("n2-1-1");
	char nonce[SPEC_NONCE_MAX];

	(void)state;
	order.lease_ms = 2000;
	strcpy(nonce, gstage_admit(&order)->nonce);
	gstage_pass(2000);
	assert_int_equal(gstage_come("n2-1-1", nonce, &anna), -EACCES);
	order = gstage_order("n2-1-2");
	order.lease_ms = 2000;
	order.renews = true;
	strcpy(nonce, gstage_admit(&order)->nonce);
	gstage_pass(1999);
	assert_int_equal(gstage_come("n2-1-2", nonce, &anna), 0);
	trace_compare(__func__);
}

static void test_journal_does_not_take_a_start(void **state)
{
	const struct job_order order = gstage_order("n2-1-1");
	char nonce[SPEC_NONCE_MAX];

	(void)state;
	strcpy(nonce, gstage_admit(&order)->nonce);
	full_disk_break("", 1, FULL_DISK_ALWAYS);
	assert_int_equal(gstage_come("n2-1-1", nonce, &anna), -EIO);
	full_disk_mend();
	full_disk_lock(true);
	assert_int_equal(gstage_come("n2-1-1", nonce, &anna), -EBUSY);
	full_disk_lock(false);
	assert_int_equal(shims.n, 0);
	gstage_show();
	/* The user still has the place. */
	assert_int_equal(gstage_come("n2-1-1", nonce, &anna), 0);
	gstage_show();
	trace_compare(__func__);
}

/* A job runs only once, whoever asks for it again. */
static void test_ran_before(void **state)
{
	const struct job_order order = gstage_order("n2-1-1");

	(void)state;
	gstage_run("n2-1-1", 10);
	shim_exited("n2-1-1", 0, 0);
	gstage_pass(100);
	gstage_home_ok(PEER_DONE, "n2-1-1");
	assert_true(gstage_admit(&order)->granted);
	assert_int_equal(gstage_come("n2-1-1", gstage.answer.grant.nonce, &anna), -EEXIST);
	gstage_show();
	trace_compare(__func__);
}

static void test_no_supervisor(void **state)
{
	const struct job_order order = gstage_order("n2-1-1");
	char nonce[SPEC_NONCE_MAX];

	(void)state;
	strcpy(nonce, gstage_admit(&order)->nonce);
	shims.launch_rc = -ENOSPC;
	assert_int_equal(gstage_come("n2-1-1", nonce, &anna), -ENOSPC);
	shims.launch_rc = 0;
	assert_int_equal(gstage_come("n2-1-1", nonce, &anna), -EACCES);
	gstage_pass(100);
	gstage_home_ok(PEER_DONE, "n2-1-1");
	gstage_show();
	trace_compare(__func__);
}

/* A spare shim waits for the next job and is used for it. The next spare is made soon after. */
static void test_spare(void **state)
{
	const struct job_order order = gstage_order("n2-1-1");

	(void)state;
	guest_begin(gstage.guest);
	gstage_pass(0);
	assert_int_equal(shims.spares, 1);
	gstage_launch(&order);
	gstage_pass(19);
	assert_int_equal(shims.spares, 1);
	gstage_pass(1);
	assert_int_equal(shims.spares, 2);
	gstage_stop_agent();
	assert_int_equal(shims.dropped, 1);
	trace_compare(__func__);
}

static void test_agent_stops_while_it_looks(void **state)
{
	struct job_order order = gstage_order("n2-1-1");
	struct peer_answer answer = {0};

	(void)state;
	strcpy(order.cwd, FAR);
	assert_int_equal(ask_now(&order, 0, &answer), PEERS_LATER);
	gstage_stop_agent();
	assert_true(gstage.answered);
	assert_false(gstage.answer.grant.granted);
	assert_string_equal(gstage.answer.grant.text, "the agent is stopping");
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, gstage_setup, gstage_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_owner_says_no),
		TEST(test_whose_jobs),
		TEST(test_what_is_missing),
		TEST(test_what_it_would_do),
		TEST(test_asked_again),
		TEST(test_two_homes_at_once),
		TEST(test_no_user_takes_all_places),
		TEST(test_two_users_leave_places),
		TEST(test_those_that_leave_count),
		TEST(test_table_is_full),
		TEST(test_own_job),
		TEST(test_place_expires),
		TEST(test_wrong_clients),
		TEST(test_no_start_message),
		TEST(test_strangers_cost_nothing),
		TEST(test_restartable_job_comes_late),
		TEST(test_journal_does_not_take_a_start),
		TEST(test_ran_before),
		TEST(test_no_supervisor),
		TEST(test_spare),
		TEST(test_agent_stops_while_it_looks),
	};

	trace_file("agent_guest_admit");
	return cmocka_run_group_tests_name("guest_admit", tests, NULL, NULL);
}
