/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * A job that can move has pids of its own.  The tests of streams, attach, recover and spare run
 * with such jobs, too (STAGE_MIGRATABLE).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/lib/stage.h"

#define SH(script)                                                                                 \
	{                                                                                          \
		.migratable = true, .argv = { "/bin/sh", "-c", script, NULL }                      \
	}

static void test_own_pids(void **state)
{
	struct want want = SH("echo $$ $PPID /proc/[0-9]*; read x </proc/1/comm; echo $x; "
			      "readlink /proc/1/fd/0; set -- /proc/1/fd/*; echo $#");
	struct stage *stage = *state;
	struct run_result result;

	want.root = want.allow_root = true; /* whose /proc/1/fd is to be read */
	assert_int_equal(stage_run(stage, &want, &result), 0);
	/* Init has its stdio and the pipe for the status, and nothing else. */
	assert_string_equal(stage_read(stage->out),
			    "2 1 /proc/1 /proc/2\niocom-init\n/dev/null\n4\n");
}

static void test_user(void **state)
{
	struct want want = SH("id -u; ps -o pid= -p 1; echo $PPID");
	struct stage *stage = *state;
	struct run_result result;

	assert_int_equal(stage_run(stage, &want, &result), 0);
	assert_string_equal(stage_read(stage->out), "65534\n      1\n1\n");
}

/* Only init says how the command ended: its user cannot write there. */
static void test_forged(void **state)
{
	struct want want = SH("head -c 24 /dev/zero >/proc/1/fd/3 || echo refused; exit 7");
	struct stage *stage = *state;
	struct run_result result;

	assert_int_equal(stage_run(stage, &want, &result), 7);
	assert_string_equal(stage_read(stage->out), "refused\n");
}

/* What the command leaves behind ends as without an init: when it is silent. */
static void test_leftovers(void **state)
{
	struct want want = SH("sleep 977.91 & echo started; exit 4");
	struct stage *stage = *state;
	struct run_result result;

	assert_int_equal(stage_run(stage, &want, &result), 4);
	assert_string_equal(stage_read(stage->out), "started\n");
	assert_int_equal(stage_count("sleep", "977.91"), 0);
}

/* A command may have left the process group that signals are for. */
static void test_signals(void **state)
{
	struct want want = {.migratable = true,
			    .argv = {"/usr/bin/timeout", "100", "/bin/sleep", "977.93", NULL}};
	struct stage *stage = *state;
	struct launch_event event;
	struct job job = stage_start(stage, &want);

	assert_int_equal(job.rc, 0);
	assert_int_equal(stage_event(job.leash, &event), 0);
	while (!stage_count("/bin/sleep", "977.93"))
		usleep(1000);
	assert_int_equal(stage_signal(stage, job.name, SIGTERM), 0);
	assert_int_equal(stage_event(job.leash, &event), 0);
	assert_int_equal(event.kind == 1 ? 128 + event.value : event.value, 128 + SIGTERM);
	assert_int_equal(stage_count("/bin/sleep", "977.93"), 0);
	close(job.client);
	close(job.leash);
	stage_reap(&job);
}

/* With init all processes of the namespace end. */
static void test_init_is_killed(void **state)
{
	struct want want = SH("trap '' TERM; sleep 977.92");
	struct stage *stage = *state;
	struct launch_event event;
	struct job job = stage_start(stage, &want);

	assert_int_equal(job.rc, 0);
	assert_int_equal(stage_event(job.leash, &event), 0);
	while (!stage_count("sleep", "977.92"))
		usleep(1000);
	assert_int_equal(kill(event.pid, SIGKILL), 0);
	assert_int_equal(stage_event(job.leash, &event), 0);
	assert_int_equal(event.kind, 1);
	assert_int_equal(event.value, SIGKILL);
	assert_int_equal(stage_count("sleep", "977.92"), 0);
	close(job.client);
	close(job.leash);
	stage_reap(&job);
}

/* The job sees what is mounted on the node after its start, where mounts are shared. */
static void test_mounts(void **state)
{
	char dir[] = "/tmp/iocom-mounted-XXXXXX", script[256], sub[64], path[128];
	struct want want = {.migratable = true, .argv = {"/bin/sh", "-c", script, NULL}};
	struct stage *stage = *state;
	struct launch_event event;
	struct job job;

	assert_non_null(mkdtemp(dir));
	assert_int_equal(mount("none", dir, "tmpfs", 0, "size=64k,mode=0755"), 0);
	assert_int_equal(mount("none", dir, NULL, MS_SHARED, NULL), 0);
	snprintf(sub, sizeof(sub), "%s/sub", dir);
	assert_int_equal(mkdir(sub, 0755), 0);
	snprintf(path, sizeof(path), "%s/there", sub);
	snprintf(script, sizeof(script), "until [ -e %s ]; do sleep 0.02; done; exit 6", path);
	job = stage_start(stage, &want);
	assert_int_equal(job.rc, 0);
	assert_int_equal(stage_event(job.leash, &event), 0);
	assert_int_equal(mount("none", sub, "tmpfs", 0, "size=64k,mode=0755"), 0);
	close(open(path, O_CREAT | O_WRONLY, 0644));
	assert_int_equal(stage_event(job.leash, &event), 0);
	umount(sub);
	umount2(dir, MNT_DETACH);
	rmdir(dir);
	assert_int_equal(event.value, 6);
	close(job.client);
	close(job.leash);
	stage_reap(&job);
}

/* Init's own failures are no command's. */
static void test_no_init(void **state)
{
	struct want want = SH("echo ran");
	struct stage *stage = *state, elsewhere = *stage;
	struct run_result result;
	char command[9000];

	snprintf(elsewhere.shim, sizeof(elsewhere.shim), "%s/bare-shim", stage->dir);
	snprintf(command, sizeof(command), "cp %s %s", stage->shim, elsewhere.shim);
	assert_int_equal(system(command), 0);
	assert_int_equal(stage_run(&elsewhere, &want, &result), 125);
	stage->sequence = elsewhere.sequence;
	assert_string_equal(result.text,
			    "cannot start iocom-init, the first process of a --migratable job, on "
			    "node here: No such file or directory");
	unlink(elsewhere.shim);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_own_pids), cmocka_unit_test(test_user),
		cmocka_unit_test(test_forged),	 cmocka_unit_test(test_leftovers),
		cmocka_unit_test(test_signals),	 cmocka_unit_test(test_init_is_killed),
		cmocka_unit_test(test_mounts),	 cmocka_unit_test(test_no_init),
	};

	return cmocka_run_group_tests_name("migratable", tests, stage_setup, stage_teardown);
}
