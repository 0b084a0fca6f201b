/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* The rig goes down whatever a test left running. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/lib/rig.h"

#define MEGABYTES 16
#define STAYS_S	  20

static int body_stays(void *arg)
{
	(void)arg;
	sleep(STAYS_S);
	return 0;
}

/* As after an assertion that failed between rig_start and rig_wait. */
static void test_comes_down_without_its_children(void **state)
{
	struct rig rig;
	pid_t child;
	int still;

	(void)state;
	if (rig_up(&rig, MEGABYTES)) {
		print_message("%s\n", rig.why);
		skip();
	}
	child = rig_start(body_stays, NULL);
	assert_true(child > 0);
	rig_down(&rig);
	still = waitpid(child, NULL, WNOHANG);
	if (!still) {
		kill(child, SIGKILL);
		waitpid(child, NULL, 0);
	}
	assert_int_equal(still, 0);
	assert_int_not_equal(access(rig.dir, F_OK), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_comes_down_without_its_children),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
