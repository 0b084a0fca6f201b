/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* The options of `iocom run -n`: what they mean, and the sentence for each that goes wrong. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "balancer/run/gang_options.h"

static struct gang_options options;
static struct placement_ask ask;
static struct iocom_err err;

static void begin(void)
{
	gang_options_init(&options);
	placement_ask_init(&ask);
	err.text[0] = 0;
}

static int take(int option, const char *value)
{
	return gang_options_take(&options, &ask, option, value, &err);
}

static int check(const char *single, const char *command)
{
	char *const words[] = {(char *)command, NULL};

	return gang_options_check(&options, &ask, single, words, &err);
}

static void test_numbers(void **state)
{
	static const struct {
		const char *text, *sentence;
	} bad[] = {
		{"0", "-n takes 1 to 4096 tasks, not '0'"},
		{"4097", "-n takes 1 to 4096 tasks, not '4097'"},
		{"-3", "-n takes 1 to 4096 tasks, not '-3'"},
		{"99999999999999999999", "-n takes 1 to 4096 tasks, not '99999999999999999999'"},
		{"", "-n wants a number of tasks, not ''; for no input use --stdin none"},
		{"p", "-np is -n here: write -n TASKS"},
		{"--", "-n wants a number of tasks, not '--'; for no input use --stdin none"},
		{"4x", "-n wants a number of tasks, not '4x'; for no input use --stdin none"},
		{" 4", "-n wants a number of tasks, not ' 4'; for no input use --stdin none"},
		{"true", "-n wants a number of tasks, not 'true'; for no input use --stdin none"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		begin();
		assert_int_equal(take(GANG_TASKS, bad[i].text), -EINVAL);
		assert_string_equal(err.text, bad[i].sentence);
		assert_int_equal(take(GANG_PER_NODE, bad[i].text), -EINVAL);
	}
	begin();
	assert_int_equal(take(GANG_TASKS, "4096"), 0);
	assert_int_equal(take(GANG_PER_NODE, "1"), 0);
	assert_int_equal(take(GANG_OVERSUBSCRIBE, NULL), 0);
	assert_int_equal(take(GANG_ON, "n[1-3],db"), 0);
	assert_int_equal(take('x', NULL), 1);
	assert_int_equal(check(NULL, "true"), 0);
	assert_int_equal(ask.tasks, 4096);
	assert_int_equal(ask.per_node, 1);
	assert_true(ask.oversubscribe);
	assert_false(ask.keep_going);
	assert_string_equal(ask.only, "n1,n2,n3,db");
}

static void test_an_ordinary_job(void **state)
{
	(void)state;
	begin();
	assert_int_equal(check("--pty", "true"), 0);
	assert_true(ask.tasks < 0);
	assert_int_equal(take(GANG_BIND, NULL), 0);
	assert_int_equal(check(NULL, "true"), -EINVAL);
	assert_non_null(strstr(err.text, "--bind goes with -n TASKS only"));
	begin();
	assert_int_equal(take(GANG_MPI, NULL), 0);
	assert_int_equal(check(NULL, "true"), -EINVAL);
	assert_non_null(strstr(err.text, "--mpi needs -n TASKS"));
}

static void test_what_does_not_agree(void **state)
{
	(void)state;
	begin();
	assert_int_equal(take(GANG_TASKS, "2"), 0);
	assert_int_equal(check("--pty", "true"), -EINVAL);
	assert_string_equal(err.text, "--pty and -n do not go together");
	strcpy(ask.node, "n2");
	assert_int_equal(check("--node", "true"), -EINVAL);
	assert_non_null(strstr(err.text, "--on n2 takes only that node"));
	assert_int_equal(take(GANG_KEEP_GOING, NULL), 0);
	assert_true(ask.keep_going);
	assert_int_equal(take(GANG_MPI, "rsh"), 0);
	assert_int_equal(check(NULL, "true"), -EINVAL);
	assert_non_null(strstr(err.text, "--keep-going and --mpi do not go together"));
	assert_int_equal(take(GANG_MPI, "lam"), -EINVAL);
	assert_string_equal(err.text, "--mpi takes pmix, pmi1 or rsh after =, not 'lam'");
	begin();
	assert_int_equal(take(GANG_TASKS, "2"), 0);
	assert_int_equal(take(GANG_MPI, NULL), 0);
	assert_int_equal(check(NULL, "pmix"), -EINVAL);
	assert_string_equal(err.text, "--mpi takes its word after =: --mpi=pmix");
	assert_int_equal(check(NULL, "./pmix"), 0);
	assert_int_equal(take(GANG_ON, "n[1-"), 0);
	assert_int_equal(check(NULL, "true"), -EINVAL);
	assert_int_equal(strncmp(err.text, "--on: ", 6), 0);
	/* More names than a request has room for. */
	assert_int_equal(take(GANG_ON, "a-node-with-a-rather-long-name-[1-1000]"), 0);
	assert_int_equal(check(NULL, "true"), -EINVAL);
	assert_non_null(strstr(err.text, "the names of 1000 nodes are longer than"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_an_ordinary_job),
		cmocka_unit_test(test_what_does_not_agree),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
