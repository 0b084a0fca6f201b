/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Home's side of restartable jobs: which jobs may run again and when, which attempts are fenced,
 * and who may renew.
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
#include <unistd.h>

#include "user/clock.h"
#include "agent/home/home_leases.h"

#define LEASE_S 5

static char path[64];
static struct settings set;
static struct logger log_;
static struct counters counters;
static struct matrix matrix;
static struct base base = {.log = &log_, .counters = &counters, .set = &set};

static int setup(void **state)
{
	const struct home_config config = {.base = &base, .matrix = &matrix};
	struct home *home;
	int fd;

	matrix_init(&matrix, "n1");
	strcpy(path, "/tmp/iocom-leases-XXXXXX");
	fd = mkstemp(path);
	if (fd < 0 || loop_new_virtual(&base.loop, 3600 * CLOCK_NS_PER_S, clock_real_ns(), NULL) ||
	    home_new(&home, &config, NULL))
		return -1;
	close(fd);
	counters = (struct counters){0};
	set = (struct settings){.lease_s = LEASE_S};
	strcpy(set.name, "n1");
	log_.level = LOG_L_ERROR;
	*state = home;
	return journal_open(&home->journal, path, NULL);
}

static int teardown(void **state)
{
	struct home *home = *state;
	char more[80];

	journal_close(home->journal);
	home_free(home);
	matrix_fini(&matrix);
	loop_free(base.loop);
	unlink(path);
	for (int i = 0; i < 2; i++) {
		snprintf(more, sizeof(more), "%s%s", path, i ? "-wal" : "-shm");
		unlink(more);
	}
	return 0;
}

/* An agent that was killed and started again: only the journal is left. */
static void restart(struct home *home)
{
	lease_unload(home);
	journal_close(home->journal);
	assert_int_equal(journal_open(&home->journal, path, NULL), 0);
	assert_int_equal(lease_load(home, NULL), 0);
}

static void submit(struct home *home, const char *job, const char *node)
{
	const struct journal_job row = {
		.job = job,
		.uid = 1000,
		.class_name = "",
		.command = "c",
		.policy = "p",
		.node = "",
		.submit_ns = loop_real_ns(home->base->loop),
	};

	assert_int_equal(journal_submit(home->journal, &row, NULL), 0);
	assert_int_equal(journal_placed(home->journal, job, node, "{}", NULL, NULL), 0);
	assert_int_equal(journal_home_state(home->journal, job, "running", 1, 2, NULL), 0);
}

static int attempt(struct home *home, struct job_order *order, const char *job, unsigned number,
		   unsigned restarts, const char *lost)
{
	*order = (struct job_order){.lease_ms = LEASE_S * 1000};
	snprintf(order->job, sizeof(order->job), "%s", job);
	return lease_begin(home, order, "n1-1-1", number, restarts, lost, NULL);
}

static struct job_order begin(struct home *home, const char *job, const char *node)
{
	struct job_order order;

	assert_int_equal(attempt(home, &order, job, 1, 2, ""), 0);
	submit(home, job, node);
	if (strcmp(node, "n1"))
		assert_int_equal(lease_placed(home, &order), 0);
	return order;
}

static void end(struct home *home, const char *job, const char *state, int kind, int value)
{
	const struct journal_job row = {
		.job = job, .state = state, .end_ns = 9, .exit_kind = kind, .exit_value = value};

	assert_int_equal(journal_home_end(home->journal, &row, NULL), 0);
	lease_ended(home, job);
}

static int asked(struct home *home, const char *job, struct lease_answer *answer)
{
	struct iocom_err err = {0};
	int rc = lease_again(home, 1000, job, answer, &err);

	assert_true(rc == 0 || err.text[0]);
	return rc ? rc : (int)answer->what;
}

static void pass(struct home *home, uint64_t ms)
{
	loop_advance(home->base->loop, ms * CLOCK_NS_PER_MS);
}

static void test_held_lease_is_waited_for(void **state)
{
	struct home *home = *state;
	struct lease_answer answer;

	begin(home, "n1-1-1", "n2");
	assert_int_equal(asked(home, "n1-1-1", &answer), LEASE_WAIT);
	assert_in_range(answer.wait_ms, 1, 1000);
	assert_int_equal(lease_renew(home, "n2", "n1-1-1", NULL), 0);
	lease_expire(home);
	assert_int_equal(lease_renew(home, "n2", "n1-1-1", NULL), 0);
	/* A node at which the job was not placed cannot renew it. */
	assert_int_equal(lease_renew(home, "n3", "n1-1-1", NULL), -ESTALE);
	assert_int_equal(lease_renew(home, "n2", "n1-1-2", NULL), -ESTALE);
	assert_int_equal(counters.leases_refused, 2);
}

static void test_over_only_after_the_margin(void **state)
{
	struct home *home = *state;
	struct lease_answer answer;

	begin(home, "n1-1-1", "n2");
	pass(home, LEASE_S * 1000 + 100); /* the lease is over, the margin is not */
	lease_expire(home);
	assert_int_equal(asked(home, "n1-1-1", &answer), LEASE_WAIT);
	pass(home, LEASE_MARGIN_MS(LEASE_S * 1000) - 300);
	assert_int_equal(asked(home, "n1-1-1", &answer), LEASE_WAIT);
	assert_in_range(answer.wait_ms, 1, 250);
	pass(home, 300);
	lease_expire(home);
	assert_int_equal(counters.leases_lost, 1);
	assert_int_equal(asked(home, "n1-1-1", &answer), LEASE_AGAIN);
	assert_int_equal(answer.attempt, 2);
	/* A lease that is over is not renewed, even before the next attempt is given out. */
	assert_int_equal(lease_renew(home, "n2", "n1-1-1", NULL), -ESTALE);
}

static void test_given_out_once(void **state)
{
	struct home *home = *state;
	struct lease_answer answer;
	struct journal_lease lost;
	struct job_order next, third;

	begin(home, "n1-1-1", "n2");
	pass(home, 60000);
	assert_int_equal(asked(home, "n1-1-1", &answer), LEASE_AGAIN);
	assert_int_equal(attempt(home, &next, "n1-1-2", 2, 2, "n1-1-1"), 0);
	/*
	 * The next attempt has no place yet and may get none. The lost attempt is neither renewed
	 * nor fenced.
	 */
	assert_int_equal(lease_renew(home, "n2", "n1-1-1", NULL), -ESTALE);
	assert_int_equal(asked(home, "n1-1-1", &answer), LEASE_AGAIN);
	assert_int_equal(attempt(home, &third, "n1-1-3", 2, 2, "n1-1-1"), 0);
	submit(home, "n1-1-2", "n3");
	assert_int_equal(lease_fence(home, "n1-1-1", "n1-1-2", NULL), 0);
	assert_int_equal(lease_placed(home, &next), 0);
	assert_int_equal(asked(home, "n1-1-1", &answer), -ESTALE);
	assert_int_equal(lease_fence(home, "n1-1-1", "n1-1-3", NULL), -ESTALE);
	assert_int_equal(counters.jobs_restarted, 1);
	assert_int_equal(journal_lease_get(home->journal, "n1-1-1", &lost, NULL), 0);
	assert_string_equal(lost.next, "n1-1-2");
	assert_string_equal(lost.state, "lost");
	assert_true(lost.ended);
	/* This also holds after a restart of the agent, whenever the old attempt comes back. */
	restart(home);
	assert_int_equal(asked(home, "n1-1-1", &answer), -ESTALE);
	assert_int_equal(lease_renew(home, "n2", "n1-1-1", NULL), -ESTALE);
	assert_int_equal(lease_renew(home, "n3", "n1-1-2", NULL), 0);
	assert_int_equal(asked(home, "n1-1-2", &answer), LEASE_WAIT);
}

static void test_restart_keeps_the_lease(void **state)
{
	struct home *home = *state;
	struct lease_answer answer;

	begin(home, "n1-1-1", "n2");
	pass(home, LEASE_S * 1000 - 100);
	restart(home);
	/*
	 * The lease may have been renewed at the last moment, so it lasts a whole lease from now.
	 */
	pass(home, LEASE_S * 1000 - 100);
	assert_int_equal(asked(home, "n1-1-1", &answer), LEASE_WAIT);
	assert_int_equal(lease_renew(home, "n2", "n1-1-1", NULL), 0);
	/* The setting changed meanwhile, but a granted lease keeps its length. */
	set.lease_s = 3600;
	restart(home);
	pass(home, 60000);
	assert_int_equal(asked(home, "n1-1-1", &answer), LEASE_AGAIN);
}

static void test_own_ends_are_ends(void **state)
{
	static const struct {
		const char *state;
		int kind, value, what;
	} cases[] = {{"exited", 0, 0, LEASE_ENDED},   {"exited", 0, 3, LEASE_ENDED},
		     {"killed", 1, 9, LEASE_ENDED},   {"failed", 2, 127, LEASE_ENDED},
		     {"failed", 3, 255, LEASE_AGAIN}, {"lost", 3, 255, LEASE_AGAIN}};
	struct home *home = *state;
	struct lease_answer answer;
	char job[32];

	for (int i = 0; i < 6; i++) {
		snprintf(job, sizeof(job), "n1-1-%d", i + 1);
		begin(home, job, "n2");
		end(home, job, cases[i].state, cases[i].kind, cases[i].value);
		assert_int_equal(asked(home, job, &answer), cases[i].what);
		assert_int_equal(answer.lost.exit_value, cases[i].value);
		assert_int_equal(lease_renew(home, "n2", job, NULL), -ESTALE);
	}
}

static void test_so_often_and_no_more(void **state)
{
	struct home *home = *state;
	struct lease_answer answer;
	struct job_order order;

	assert_int_equal(attempt(home, &order, "n1-1-1", 1, 0, ""), 0);
	submit(home, "n1-1-1", "n2");
	end(home, "n1-1-1", "lost", 3, 255);
	assert_int_equal(asked(home, "n1-1-1", &answer), -EDQUOT);
}

static void test_others_jobs(void **state)
{
	struct home *home = *state;
	struct lease_answer answer;
	struct iocom_err err = {0};

	begin(home, "n1-1-1", "n2");
	pass(home, 60000);
	assert_int_equal(lease_again(home, 1001, "n1-1-1", &answer, &err), -ENOENT);
	assert_int_equal(lease_again(home, 0, "n1-1-1", &answer, &err), -ENOENT);
	submit(home, "n1-1-9", "n2"); /* not restartable */
	end(home, "n1-1-9", "lost", 3, 255);
	assert_int_equal(asked(home, "n1-1-9", &answer), -ENOENT);
}

static void test_here_there_is_no_lease(void **state)
{
	struct home *home = *state;
	struct lease_answer answer;

	begin(home, "n1-1-1", "n1");
	pass(home, 3600000);
	assert_int_equal(asked(home, "n1-1-1", &answer), LEASE_WAIT);
	restart(home);
	pass(home, 3600000);
	lease_expire(home);
	assert_int_equal(asked(home, "n1-1-1", &answer), LEASE_WAIT);
	assert_int_equal(counters.leases_lost, 0);
}

/* The agent ended between a job's place and its start: the next attempt waits for nothing. */
static void test_never_begun(void **state)
{
	static const char *const jobs[] = {"n1-1-1", "n1-1-2", "n1-1-3", "n1-1-4", "n1-1-5"};
	static const char *const nodes[] = {"n1", "", "n2", "n1", "n1"};
	static const int what[] = {LEASE_AGAIN, LEASE_AGAIN, LEASE_WAIT, LEASE_WAIT, LEASE_WAIT};
	const struct journal_job accepted = {.job = jobs[3], .home = "n1", .node = "n1"};
	struct home *home = *state;
	struct lease_answer answer;

	for (int i = 0; i < 5; i++) {
		begin(home, jobs[i], nodes[i]);
		if (i < 4) /* the last one runs */
			assert_int_equal(
				journal_home_state(home->journal, jobs[i], "starting", 0, 0, NULL),
				0);
	}
	assert_int_equal(journal_accept(home->journal, &accepted, "", 0, NULL), 0);
	restart(home);
	lease_unload(home);
	assert_int_equal(home_load(home, NULL), 0);
	for (int i = 0; i < 5; i++) {
		assert_int_equal(asked(home, jobs[i], &answer), what[i]);
		assert_string_equal(answer.lost.state, i == 4  ? "running"
						       : i < 2 ? "failed"
							       : "starting");
	}
}

static void test_leases_are_pruned(void **state)
{
	struct home *home = *state;
	struct journal_lease lost;

	begin(home, "n1-1-1", "n2");
	begin(home, "n1-1-2", "n2");
	end(home, "n1-1-1", "exited", 0, 0);
	assert_int_equal(journal_prune(home->journal, 100, UINT64_MAX >> 1, NULL), 0);
	assert_int_equal(journal_lease_get(home->journal, "n1-1-1", &lost, NULL), -ENOENT);
	assert_int_equal(journal_lease_get(home->journal, "n1-1-2", &lost, NULL), 0);
}

/* A question about the first attempt means the last. */
static void test_followed(void **state)
{
	struct home *home = *state;
	char job[SPEC_JOB_MAX] = "n1-1-1";
	struct job_order next;

	begin(home, "n1-1-1", "n2");
	assert_false(home_may_follow(home, "n1-1-1")); /* it runs */
	assert_int_equal(journal_lease_last(home->journal, job, NULL), 0);
	assert_string_equal(job, "n1-1-1");
	for (unsigned i = 2; i <= 3; i++) {
		char name[32], lost[32];

		snprintf(lost, sizeof(lost), "n1-1-%u", i - 1);
		snprintf(name, sizeof(name), "n1-1-%u", i);
		assert_int_equal(attempt(home, &next, name, i, 2, lost), 0);
		submit(home, name, "n3");
		assert_int_equal(lease_fence(home, lost, name, NULL), 0);
		assert_false(home_may_follow(home, lost));
	}
	assert_int_equal(journal_lease_last(home->journal, job, NULL), 2);
	assert_string_equal(job, "n1-1-3");
	strcpy(job, "n1-1-2");
	assert_int_equal(journal_lease_last(home->journal, job, NULL), 1);
	strcpy(job, "n1-1-77");
	assert_int_equal(journal_lease_last(home->journal, job, NULL), 0);
	assert_string_equal(job, "n1-1-77");
}

static void end_now(struct home *home, const char *job, int kind, uint64_t ago_ns)
{
	const struct journal_job row = {.job = job,
					.state = "lost",
					.end_ns = loop_real_ns(home->base->loop) - ago_ns,
					.exit_kind = kind,
					.exit_value = 255};

	assert_int_equal(journal_home_end(home->journal, &row, NULL), 0);
	lease_ended(home, job);
}

static void test_may_follow(void **state)
{
	struct home *home = *state;
	struct job_order order;

	begin(home, "n1-1-1", "n2");
	end_now(home, "n1-1-1", 3, 0);
	assert_true(home_may_follow(home, "n1-1-1"));
	begin(home, "n1-1-2", "n2");
	end_now(home, "n1-1-2", 1, 0); /* a job that a signal ended has ended by itself */
	assert_false(home_may_follow(home, "n1-1-2"));
	begin(home, "n1-1-3", "n2");
	end_now(home, "n1-1-3", 3, 60 * CLOCK_NS_PER_S); /* no client came for it */
	assert_false(home_may_follow(home, "n1-1-3"));
	assert_int_equal(attempt(home, &order, "n1-1-4", 3, 2, ""), 0);
	submit(home, "n1-1-4", "n2");
	end_now(home, "n1-1-4", 3, 0); /* the last attempt */
	assert_false(home_may_follow(home, "n1-1-4"));
	assert_false(home_may_follow(home, "n1-1-77"));
}

/* --- shims that ask --- */

/* 1 renewed, 0 given up, negative errno: refused. */
static int ask(struct home *home, const struct job_order *order, const uint8_t *secret,
	       uint64_t number)
{
	uint8_t question[RENEWAL_ASK_MAX], answer[RENEWAL_ANSWER];
	size_t n = renewal_ask_pack(question, secret, order->job, number);
	struct iocom_err err = {0};
	int rc = home_renew(home, question, (uint32_t)n, answer, &err);
	bool renewed;

	assert_true(!rc == !err.text[0]);
	if (rc)
		return rc;
	/* The answer is valid only for this question, and only with the secret. */
	assert_int_equal(renewal_answer_open(secret, order->job, number + 1, answer, sizeof(answer),
					     &renewed),
			 -EBADMSG);
	assert_int_equal(
		renewal_answer_open(secret, order->job, number, answer, sizeof(answer), &renewed),
		0);
	return renewed;
}

/* A shim signs with the key that its agent has derived; one of the version before, with the secret
 * itself.  The answer is signed with the same.
 */
static void test_both_keys(void **state)
{
	struct home *home = *state;
	struct job_order one = begin(home, "n1-1-1", "n2");
	uint8_t key[SECRET_KEY], other[SECRET_KEY];

	assert_true(one.keyed);
	secret_derive(key, one.secret, SECRET_RENEWAL, "n1-1-1", "");
	assert_int_equal(ask(home, &one, key, 1), 1);
	assert_int_equal(ask(home, &one, one.secret, 2), 1);
	assert_int_equal(ask(home, &one, key, 2), -EALREADY); /* the numbers are the job's */
	assert_int_equal(ask(home, &one, key, 3), 1);
	/* The keys of streams, and those of other jobs, renew nothing. */
	secret_derive(other, one.secret, SECRET_STREAM, "n1-1-1", "");
	assert_int_equal(ask(home, &one, other, 4), -EACCES);
	secret_derive(other, one.secret, SECRET_RENEWAL, "n1-1-2", "");
	assert_int_equal(ask(home, &one, other, 4), -EACCES);
	/* Also when only the journal has the secret. */
	restart(home);
	assert_int_equal(ask(home, &one, key, 4), 1);
	assert_int_equal(ask(home, &one, one.secret, 5), 1);
	assert_int_equal(counters.leases_renewed, 5);
}

static void test_a_shim_renews(void **state)
{
	struct home *home = *state;
	struct lease_answer answer;
	struct job_order one = begin(home, "n1-1-1", "n2");
	struct job_order two = begin(home, "n1-1-2", "n2");

	assert_memory_not_equal(one.secret, two.secret, RENEWAL_SECRET);
	pass(home, LEASE_S * 1000);
	assert_int_equal(ask(home, &one, one.secret, 1), 1);
	pass(home, LEASE_MARGIN_MS(LEASE_S * 1000) + 100);
	assert_int_equal(asked(home, "n1-1-1", &answer), LEASE_WAIT);
	assert_int_equal(asked(home, "n1-1-2", &answer), LEASE_AGAIN);
	assert_int_equal(counters.leases_renewed, 1);
}

static void test_others_renew_nothing(void **state)
{
	struct home *home = *state;
	struct job_order one = begin(home, "n1-1-1", "n2");
	struct job_order two = begin(home, "n1-1-2", "n3");
	uint64_t until_ns = lease_find(home, "n1-1-1")->until_ns;
	struct job_order none = {.job = "n1-1-3"};
	uint8_t secret[RENEWAL_SECRET];

	for (int bit = 0; bit < 8 * RENEWAL_SECRET; bit += 37) {
		memcpy(secret, one.secret, sizeof(secret));
		secret[bit / 8] ^= (uint8_t)(1 << bit % 8);
		assert_int_equal(ask(home, &one, secret, 1), -EACCES);
	}
	/* the secret of another attempt */
	assert_int_equal(ask(home, &one, two.secret, 1), -EACCES);
	assert_int_equal(ask(home, &none, two.secret, 1), -ENOENT);
	assert_int_equal(lease_find(home, "n1-1-1")->until_ns, until_ns);
	assert_int_equal(counters.leases_renewed, 0);
	assert_int_equal(counters.leases_refused, 9);
	/* Forged questions use up no number of the real shim. */
	assert_int_equal(ask(home, &one, one.secret, 1), 1);
}

static void test_each_number_once(void **state)
{
	struct home *home = *state;
	struct job_order one = begin(home, "n1-1-1", "n2");

	assert_int_equal(ask(home, &one, one.secret, 1), 1);
	assert_int_equal(ask(home, &one, one.secret, 1), -EALREADY);
	assert_int_equal(ask(home, &one, one.secret, 7), 1);
	assert_int_equal(ask(home, &one, one.secret, 6), -EALREADY);
	/* A new agent knows the secret and the last number. */
	restart(home);
	assert_int_equal(ask(home, &one, one.secret, 7), -EALREADY);
	assert_int_equal(ask(home, &one, one.secret, 8), 1);
}

static void test_a_shim_is_told(void **state)
{
	struct home *home = *state;
	struct job_order one = begin(home, "n1-1-1", "n2"), two;

	pass(home, 60000);
	lease_expire(home);
	assert_int_equal(ask(home, &one, one.secret, 1), 0);
	assert_int_equal(attempt(home, &two, "n1-1-2", 2, 2, "n1-1-1"), 0);
	submit(home, "n1-1-2", "n3");
	assert_int_equal(lease_fence(home, "n1-1-1", "n1-1-2", NULL), 0);
	assert_int_equal(lease_placed(home, &two), 0);
	restart(home);
	assert_int_equal(ask(home, &one, one.secret, 2), 0);
	assert_int_equal(ask(home, &one, one.secret, 2), -EALREADY);
	assert_int_equal(ask(home, &two, two.secret, 1), 1);
	/* A job that ended needs no secret. */
	end(home, "n1-1-2", "exited", 0, 0);
	assert_int_equal(ask(home, &two, two.secret, 2), 0);
}

static void test_no_question(void **state)
{
	static const char *const names[] = {"../../x", "", ".hidden", "a b", "a\nb"};
	uint8_t question[RENEWAL_ASK_MAX + 8] = {0}, answer[RENEWAL_ANSWER];
	struct home *home = *state;
	struct job_order one = begin(home, "n1-1-1", "n2");
	struct iocom_err err;
	size_t n;

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		n = renewal_ask_pack(question, one.secret, names[i], 1);
		assert_int_equal(home_renew(home, question, (uint32_t)n, answer, &err), -EBADMSG);
	}
	n = renewal_ask_pack(question, one.secret, "n1-1-1", 1);
	for (size_t cut = 0; cut < n; cut++)
		assert_true(home_renew(home, question, (uint32_t)cut, answer, &err) < 0);
	question[n] = 0; /* a name with a NUL in it, and a name that is too long */
	assert_int_equal(home_renew(home, question, (uint32_t)n + 1, answer, &err), -EBADMSG);
	memset(question + 40, 'a', sizeof(question) - 40);
	assert_int_equal(home_renew(home, question, RENEWAL_ASK_MAX + 1, answer, &err), -EBADMSG);
	/* No number is larger than this one. */
	n = renewal_ask_pack(question, one.secret, "n1-1-1", UINT64_MAX);
	assert_int_equal(home_renew(home, question, (uint32_t)n, answer, &err), -EBADMSG);
	assert_int_equal(counters.leases_renewed, 0);
}

static int lease_of(struct home *home, uid_t uid, const char *job, const char *lost,
		    struct iocom_err *err)
{
	struct job_order order = {.lease_ms = LEASE_S * 1000, .uid = uid};

	snprintf(order.job, sizeof(order.job), "%s", job);
	return lease_begin(home, &order, job, 1, 2, lost, err);
}

/* Of 4096 places 64 are root's: alone, a user gets 2016. */
static void test_no_user_takes_all_leases(void **state)
{
	struct home *home = *state;
	struct job_order order = {.lease_ms = LEASE_S * 1000, .uid = 1000};
	struct iocom_err err = {0};

	for (int i = 0; i < 2015; i++) {
		snprintf(order.job, sizeof(order.job), "n1-2-%d", i);
		assert_int_equal(lease_placed(home, &order), 0);
	}
	assert_int_equal(lease_of(home, 1000, "n1-1-1", "", &err), 0);
	snprintf(order.job, sizeof(order.job), "n1-2-2015");
	assert_int_equal(lease_placed(home, &order), 0);
	assert_int_equal(lease_of(home, 1000, "n1-1-2", "", &err), -EAGAIN);
	assert_string_equal(err.text,
			    "uid 1000 has 2016 restartable jobs at other nodes, and 2016 places "
			    "are free: a user who has as many as are free gets no more "
			    "(restartable_jobs)");
	assert_int_equal(counters.restartable_refused_full, 1);
	assert_int_equal(counters.places_refused, 1);
	assert_int_equal(lease_of(home, 1001, "n1-1-3", "", &err), 0);
	/* The next attempt of a lost job has that job's place. */
	assert_int_equal(lease_of(home, 1000, "n1-1-4", "n1-2-7", &err), 0);
	assert_null(lease_find(home, "n1-2-7"));
}

/* A new agent still knows whose the leases are. */
static void test_leases_keep_their_user(void **state)
{
	struct home *home = *state;

	begin(home, "n1-1-1", "n2");
	restart(home);
	assert_int_equal(lease_find(home, "n1-1-1")->uid, 1000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_held_lease_is_waited_for, setup, teardown),
		cmocka_unit_test_setup_teardown(test_over_only_after_the_margin, setup, teardown),
		cmocka_unit_test_setup_teardown(test_given_out_once, setup, teardown),
		cmocka_unit_test_setup_teardown(test_restart_keeps_the_lease, setup, teardown),
		cmocka_unit_test_setup_teardown(test_own_ends_are_ends, setup, teardown),
		cmocka_unit_test_setup_teardown(test_so_often_and_no_more, setup, teardown),
		cmocka_unit_test_setup_teardown(test_others_jobs, setup, teardown),
		cmocka_unit_test_setup_teardown(test_here_there_is_no_lease, setup, teardown),
		cmocka_unit_test_setup_teardown(test_never_begun, setup, teardown),
		cmocka_unit_test_setup_teardown(test_leases_are_pruned, setup, teardown),
		cmocka_unit_test_setup_teardown(test_followed, setup, teardown),
		cmocka_unit_test_setup_teardown(test_may_follow, setup, teardown),
		cmocka_unit_test_setup_teardown(test_both_keys, setup, teardown),
		cmocka_unit_test_setup_teardown(test_a_shim_renews, setup, teardown),
		cmocka_unit_test_setup_teardown(test_others_renew_nothing, setup, teardown),
		cmocka_unit_test_setup_teardown(test_each_number_once, setup, teardown),
		cmocka_unit_test_setup_teardown(test_a_shim_is_told, setup, teardown),
		cmocka_unit_test_setup_teardown(test_no_question, setup, teardown),
		cmocka_unit_test_setup_teardown(test_no_user_takes_all_leases, setup, teardown),
		cmocka_unit_test_setup_teardown(test_leases_keep_their_user, setup, teardown),
	};

	return cmocka_run_group_tests_name("leases", tests, NULL, NULL);
}
