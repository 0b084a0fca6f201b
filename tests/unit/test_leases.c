/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* The home's side of restartable jobs: who may be run again, when, and who is fenced. */
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

#include "clock.h"
#include "leases.h"

#define LEASE_S 5

static char path[64];

static int setup(void **state)
{
	struct agent *a = calloc(1, sizeof(*a));
	int fd;

	strcpy(path, "/tmp/iocom-leases-XXXXXX");
	fd = mkstemp(path);
	if (!a || fd < 0)
		return -1;
	close(fd);
	strcpy(a->set.name, "n1");
	a->set.lease_s = LEASE_S;
	a->log.level = LOG_L_ERROR;
	*state = a;
	return journal_open(&a->journal, path, NULL);
}

static int teardown(void **state)
{
	struct agent *a = *state;
	char more[80];

	lease_unload(a);
	journal_close(a->journal);
	free(a);
	unlink(path);
	for (int i = 0; i < 2; i++) {
		snprintf(more, sizeof(more), "%s%s", path, i ? "-wal" : "-shm");
		unlink(more);
	}
	return 0;
}

/* An agent that was killed and started again: only the journal is left. */
static void restart(struct agent *a)
{
	lease_unload(a);
	journal_close(a->journal);
	assert_int_equal(journal_open(&a->journal, path, NULL), 0);
	assert_int_equal(lease_load(a, NULL), 0);
}

static void submit(struct agent *a, const char *job, const char *node)
{
	const struct journal_job row = {
		.job = job,
		.uid = 1000,
		.class_name = "",
		.command = "c",
		.policy = "p",
		.node = "",
		.submit_ns = clock_real_ns(),
	};

	assert_int_equal(journal_submit(a->journal, &row, NULL), 0);
	assert_int_equal(journal_placed(a->journal, job, node, "{}", NULL), 0);
	assert_int_equal(journal_home_state(a->journal, job, "running", 1, 2, NULL), 0);
}

static void begin(struct agent *a, const char *job, const char *node)
{
	assert_int_equal(lease_begin(a, job, job, 1, 2, "", NULL), 0);
	submit(a, job, node);
	if (strcmp(node, "n1"))
		assert_int_equal(lease_placed(a, job, LEASE_S * 1000), 0);
}

static void end(struct agent *a, const char *job, const char *state, int kind, int value)
{
	const struct journal_job row = {
		.job = job, .state = state, .end_ns = 9, .exit_kind = kind, .exit_value = value};

	assert_int_equal(journal_home_end(a->journal, &row, NULL), 0);
	lease_ended(a, job);
}

static int asked(struct agent *a, const char *job, struct lease_answer *answer)
{
	struct iocom_err err = {0};
	int rc = lease_again(a, 1000, job, answer, &err);

	assert_true(rc == 0 || err.text[0]);
	return rc ? rc : (int)answer->what;
}

/* As if so much time had passed. */
static void pass(struct agent *a, uint64_t ms)
{
	for (struct lease_held *l = a->leases; l; l = l->next)
		l->until_ns -= ms * CLOCK_NS_PER_MS;
}

static void test_held_lease_is_waited_for(void **state)
{
	struct agent *a = *state;
	struct lease_answer answer;

	begin(a, "n1-1-1", "n2");
	assert_int_equal(asked(a, "n1-1-1", &answer), LEASE_WAIT);
	assert_in_range(answer.wait_ms, 1, 1000);
	assert_int_equal(lease_renew(a, "n2", "n1-1-1", NULL), 0);
	lease_expire(a);
	assert_int_equal(lease_renew(a, "n2", "n1-1-1", NULL), 0);
	/* Those that it was not placed at do not hold it. */
	assert_int_equal(lease_renew(a, "n3", "n1-1-1", NULL), -ESTALE);
	assert_int_equal(lease_renew(a, "n2", "n1-1-2", NULL), -ESTALE);
	assert_int_equal(a->counters.leases_refused, 2);
}

static void test_over_only_after_the_margin(void **state)
{
	struct agent *a = *state;
	struct lease_answer answer;

	begin(a, "n1-1-1", "n2");
	pass(a, LEASE_S * 1000 + 100); /* the lease is over, the margin is not */
	lease_expire(a);
	assert_int_equal(asked(a, "n1-1-1", &answer), LEASE_WAIT);
	pass(a, LEASE_MARGIN_MS(LEASE_S * 1000) - 300);
	assert_int_equal(asked(a, "n1-1-1", &answer), LEASE_WAIT);
	assert_in_range(answer.wait_ms, 1, 250);
	pass(a, 300);
	lease_expire(a);
	assert_int_equal(a->counters.leases_lost, 1);
	assert_int_equal(asked(a, "n1-1-1", &answer), LEASE_AGAIN);
	assert_int_equal(answer.attempt, 2);
	/* Even before it is given out: what is over is not renewed. */
	assert_int_equal(lease_renew(a, "n2", "n1-1-1", NULL), -ESTALE);
}

static void test_given_out_once(void **state)
{
	struct agent *a = *state;
	struct lease_answer answer;
	struct journal_lease lost;

	begin(a, "n1-1-1", "n2");
	pass(a, 60000);
	assert_int_equal(asked(a, "n1-1-1", &answer), LEASE_AGAIN);
	assert_int_equal(lease_begin(a, "n1-1-2", "n1-1-1", 2, 2, "n1-1-1", NULL), 0);
	submit(a, "n1-1-2", "n3");
	assert_int_equal(lease_placed(a, "n1-1-2", LEASE_S * 1000), 0);
	assert_int_equal(asked(a, "n1-1-1", &answer), -ESTALE);
	assert_int_equal(lease_begin(a, "n1-1-3", "n1-1-1", 2, 2, "n1-1-1", NULL), -ESTALE);
	assert_int_equal(journal_lease_get(a->journal, "n1-1-1", &lost, NULL), 0);
	assert_string_equal(lost.next, "n1-1-2");
	assert_string_equal(lost.state, "lost");
	assert_true(lost.ended);
	/* Nor after a restart of the agent, whenever the old one comes back. */
	restart(a);
	assert_int_equal(asked(a, "n1-1-1", &answer), -ESTALE);
	assert_int_equal(lease_renew(a, "n2", "n1-1-1", NULL), -ESTALE);
	assert_int_equal(lease_renew(a, "n3", "n1-1-2", NULL), 0);
	assert_int_equal(asked(a, "n1-1-2", &answer), LEASE_WAIT);
}

static void test_restart_keeps_the_lease(void **state)
{
	struct agent *a = *state;
	struct lease_answer answer;

	begin(a, "n1-1-1", "n2");
	pass(a, LEASE_S * 1000 - 100);
	restart(a);
	/* It may have been renewed in the last moment: a whole lease from now. */
	pass(a, LEASE_S * 1000 - 100);
	assert_int_equal(asked(a, "n1-1-1", &answer), LEASE_WAIT);
	assert_int_equal(lease_renew(a, "n2", "n1-1-1", NULL), 0);
	/* The setting changed meanwhile: what was granted stays. */
	a->set.lease_s = 3600;
	restart(a);
	pass(a, 60000);
	assert_int_equal(asked(a, "n1-1-1", &answer), LEASE_AGAIN);
}

static void test_own_ends_are_ends(void **state)
{
	static const struct {
		const char *state;
		int kind, value, what;
	} cases[] = {{"exited", 0, 0, LEASE_ENDED},   {"exited", 0, 3, LEASE_ENDED},
		     {"killed", 1, 9, LEASE_ENDED},   {"failed", 2, 127, LEASE_ENDED},
		     {"failed", 3, 255, LEASE_AGAIN}, {"lost", 3, 255, LEASE_AGAIN}};
	struct agent *a = *state;
	struct lease_answer answer;
	char job[32];

	for (int i = 0; i < 6; i++) {
		snprintf(job, sizeof(job), "n1-1-%d", i + 1);
		begin(a, job, "n2");
		end(a, job, cases[i].state, cases[i].kind, cases[i].value);
		assert_int_equal(asked(a, job, &answer), cases[i].what);
		assert_int_equal(answer.lost.exit_value, cases[i].value);
		assert_int_equal(lease_renew(a, "n2", job, NULL), -ESTALE);
	}
}

static void test_so_often_and_no_more(void **state)
{
	struct agent *a = *state;
	struct lease_answer answer;

	assert_int_equal(lease_begin(a, "n1-1-1", "n1-1-1", 1, 0, "", NULL), 0);
	submit(a, "n1-1-1", "n2");
	end(a, "n1-1-1", "lost", 3, 255);
	assert_int_equal(asked(a, "n1-1-1", &answer), -EDQUOT);
}

static void test_others_jobs(void **state)
{
	struct agent *a = *state;
	struct lease_answer answer;
	struct iocom_err err = {0};

	begin(a, "n1-1-1", "n2");
	pass(a, 60000);
	assert_int_equal(lease_again(a, 1001, "n1-1-1", &answer, &err), -ENOENT);
	assert_int_equal(lease_again(a, 0, "n1-1-1", &answer, &err), -ENOENT);
	submit(a, "n1-1-9", "n2"); /* not restartable */
	end(a, "n1-1-9", "lost", 3, 255);
	assert_int_equal(asked(a, "n1-1-9", &answer), -ENOENT);
}

static void test_here_there_is_no_lease(void **state)
{
	struct agent *a = *state;
	struct lease_answer answer;

	begin(a, "n1-1-1", "n1");
	pass(a, 3600000);
	assert_int_equal(asked(a, "n1-1-1", &answer), LEASE_WAIT);
	restart(a);
	pass(a, 3600000);
	lease_expire(a);
	assert_int_equal(asked(a, "n1-1-1", &answer), LEASE_WAIT);
	assert_int_equal(a->counters.leases_lost, 0);
}

static void test_leases_are_pruned(void **state)
{
	struct agent *a = *state;
	struct journal_lease lost;

	begin(a, "n1-1-1", "n2");
	begin(a, "n1-1-2", "n2");
	end(a, "n1-1-1", "exited", 0, 0);
	assert_int_equal(journal_prune(a->journal, 100, UINT64_MAX >> 1, NULL), 0);
	assert_int_equal(journal_lease_get(a->journal, "n1-1-1", &lost, NULL), -ENOENT);
	assert_int_equal(journal_lease_get(a->journal, "n1-1-2", &lost, NULL), 0);
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
		cmocka_unit_test_setup_teardown(test_leases_are_pruned, setup, teardown),
	};

	return cmocka_run_group_tests_name("leases", tests, NULL, NULL);
}
