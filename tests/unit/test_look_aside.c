/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* A look that does not come back is left alone, and holds nothing of the caller's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "balancer/command_look.h"
#include "balancer/look_aside.h"
#include "balancer/run/run.h"

#define SHORT_MS 2000 /* enough for a child to begin on a busy machine */

struct seen {
	int step, value;
	pid_t by;
	char large[2 * PATH_MAX];
};

static void look_well(const void *arg, void *out)
{
	struct seen *seen = out;

	seen->value += *(const int *)arg;
	seen->by = getpid();
	memset(seen->large, 'x', sizeof(seen->large));
}

static void look_for_ever(const void *arg, void *out)
{
	(void)arg;
	((struct seen *)out)->step = 1;
	((struct seen *)out)->by = getpid();
	for (;;)
		pause();
}

static void look_and_die(const void *arg, void *out)
{
	(void)arg;
	((struct seen *)out)->step = 2;
	raise(SIGKILL);
}

/* Returns whether the caller has no child. */
static bool is_alone(void)
{
	return waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD;
}

static void test_answers(void **state)
{
	struct seen seen = {.value = 1};
	int more = 41;

	(void)state;
	assert_int_equal(look_aside_for(look_well, &more, &seen, sizeof(seen), 60000), 0);
	assert_int_equal(seen.value, 42);
	assert_int_not_equal(seen.by, getpid());
	assert_int_equal(seen.large[sizeof(seen.large) - 1], 'x');
	assert_true(is_alone());
}

static void test_does_not_come_back(void **state)
{
	struct seen seen = {0};
	int pipes[2];
	char byte;

	(void)state;
	assert_int_equal(pipe(pipes), 0);
	assert_int_equal(look_aside_for(look_for_ever, NULL, &seen, sizeof(seen), SHORT_MS),
			 -ETIMEDOUT);
	assert_int_equal(seen.step, 1); /* so far it came */
	/* It was killed: at once, or as soon as a busy machine comes to it. */
	assert_true(waitpid(seen.by, NULL, 0) == seen.by || errno == ECHILD);
	assert_true(is_alone());
	close(pipes[1]);
	assert_int_equal(read(pipes[0], &byte, 1), 0); /* nobody else has its other end */
	close(pipes[0]);
}

static void test_dies(void **state)
{
	struct seen seen = {0};

	(void)state;
	assert_int_equal(look_aside_for(look_and_die, NULL, &seen, sizeof(seen), 60000), -EIO);
	assert_int_equal(seen.step, 2);
	assert_true(is_alone());
}

/* If there can be no pipe, the caller looks itself. */
static void test_without_child(void **state)
{
	struct seen seen = {0};
	struct rlimit before, none;
	int more = 5;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	none = (struct rlimit){.rlim_cur = 0, .rlim_max = before.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	assert_int_equal(look_aside_for(look_well, &more, &seen, sizeof(seen), 60000), 0);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	assert_int_equal(seen.value, 5);
	assert_int_equal(seen.by, getpid());
}

static void test_command(void **state)
{
	struct iocom_err err = {0};
	char *found, name[PATH_MAX + 8];

	(void)state;
	setenv("PATH", "/no/such:/bin:/usr/bin", 1);
	assert_int_equal(command_look("sh", "/", true, &found, &err), 0);
	assert_string_equal(found, "/bin/sh");
	free(found);
	assert_int_equal(command_look("bin/sh", "/", true, &found, &err), 0);
	assert_string_equal(found, "//bin/sh");
	free(found);
	setenv("PATH", "bin", 1); /* below the directory */
	assert_int_equal(chdir("/"), 0);
	assert_int_equal(command_look("sh", "/", true, &found, &err), 0);
	assert_string_equal(found, "//bin/sh");
	free(found);
	assert_int_equal(command_look("none", "/", true, &found, &err), 127);
	assert_null(found);
	assert_string_equal(err.text, "none: command not found");
	assert_int_equal(command_look("/etc", "/", true, &found, &err), 126);
	assert_null(found);
	/* Where the user named a node, it may be there. */
	assert_int_equal(command_look("none", "/", false, &found, &err), 0);
	assert_string_equal(found, "none");
	free(found);
	memset(name, 'a', sizeof(name) - 1);
	name[0] = '/';
	name[sizeof(name) - 1] = 0;
	assert_int_equal(command_look(name, "/", true, &found, &err), 126);
	assert_null(found);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_answers), cmocka_unit_test(test_does_not_come_back),
		cmocka_unit_test(test_dies),	cmocka_unit_test(test_without_child),
		cmocka_unit_test(test_command),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
