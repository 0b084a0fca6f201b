/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Whoever works on a job that moves is told to stop, or is killed (mover.h). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/lib/mover.h"
#include "user/clock.h"
#include "user/frame.h"
#include "user/record.h"

/* The mover works on it: the process of shim M in the group beside the job's. */
static pid_t mover_process(const struct mover *m)
{
	uint64_t until_ms = clock_boot_ms() + MOVER_LIMIT_MS;
	char path[512];
	int pid = 0;

	snprintf(path, sizeof(path), "%s/%s/jobs/user@0/%s.move/cgroup.procs",
		 mover_nodes[m->at].v2, mover_nodes[m->at].scope, m->job.name);
	while (!pid && clock_boot_ms() < until_ms) {
		FILE *file = fopen(path, "re");

		if (file && fscanf(file, "%d", &pid) != 1)
			pid = 0;
		if (file)
			fclose(file);
	}
	assert_true(pid > 0);
	return pid;
}

/* A job of 64 MiB, which criu needs a while to save. */
#define LARGE                                                                                      \
	{                                                                                          \
		.migratable = true, .root = true, .allow_root = true, .grace_ms = 20000, .argv = { \
			"/usr/bin/python3",                                                        \
			"-c",                                                                      \
			"import os,time\nx=os.urandom(1<<26)\nn=0\n"                               \
			"while True: print(n,flush=True); n+=1; time.sleep(0.001)\n",              \
			NULL                                                                       \
		}                                                                                  \
	}

/* Asks M to move, but the shim where it goes does nothing until SIGCONT. */
static struct job ask_stopped(struct mover *m)
{
	struct iocom_err err = {0};
	struct job there;

	mover_expect(m, 30);
	there = mover_there(m);
	kill(there.shim, SIGSTOP);
	assert_int_equal(mover_ask(m, &there, &err), 0);
	close(there.client);
	return there;
}

/*
 * "Stay" while it is saved and while it is sent: it goes on when criu has let go of it, its /proc
 * is its own, and nothing is left.
 */
static void test_stays_early(void **state)
{
	static const unsigned waits_us[] = {0, 20000, 60000, 150000, 400000};
	struct want want = LARGE;
	struct mover m = mover_begin(&want);

	(void)state;
	for (size_t i = 0; i < sizeof(waits_us) / sizeof(waits_us[0]); i++) {
		struct job there;

		there = ask_stopped(&m);
		usleep(waits_us[i]);
		assert_int_equal(mover_decide(&mover_nodes[m.at], m.job.name, LAUNCH_STAY), 0);
		assert_int_equal(mover_decide(&mover_nodes[m.at], m.job.name, LAUNCH_STAY),
				 -EALREADY);
		mover_expect(&m, 100);
		kill(there.shim, SIGCONT);
		mover_gone(&m, &there, !m.at, 3);
	}
	mover_move(&m);
	mover_expect(&m, 100);
	mover_end(&m, SIGTERM);
}

/* The mover is killed while criu works, which ends its work: then the job goes on. */
static void test_mover_killed(void **state)
{
	static const unsigned waits_us[] = {0, 30000, 80000, 200000};
	struct want want = LARGE;
	struct mover m = mover_begin(&want);
	struct launch_event event;

	(void)state;
	for (size_t i = 0; i < sizeof(waits_us) / sizeof(waits_us[0]); i++) {
		struct job there;

		there = ask_stopped(&m);
		usleep(waits_us[i]);
		kill(mover_process(&m), SIGKILL);
		mover_event(m.job.leash, LAUNCH_MOVED, &event);
		assert_true(event.failed);
		assert_non_null(strstr(event.text, "killed"));
		assert_int_equal(mover_decide(&mover_nodes[m.at], m.job.name, LAUNCH_LEAVE),
				 -EALREADY);
		assert_int_equal(mover_decide(&mover_nodes[m.at], m.job.name, LAUNCH_STAY), 0);
		mover_expect(&m, 100);
		kill(there.shim, SIGCONT);
		mover_gone(&m, &there, !m.at, 3);
	}
	mover_move(&m);
	mover_expect(&m, 100);
	mover_end(&m, SIGTERM);
}

/*
 * All that works on it is killed, criu, too: it goes on as it was, or it ends with a sentence if
 * criu's code was in it.  It never goes on damaged.
 */
static void test_criu_killed(void **state)
{
	(void)state;
	for (unsigned wait_us = 20000; wait_us < 400000; wait_us += 40000) {
		struct want want = LARGE;
		struct mover m = mover_begin(&want);
		struct launch_event event;
		struct job there;
		char path[512];
		int fd, rc;

		there = ask_stopped(&m);
		usleep(wait_us);
		snprintf(path, sizeof(path), "%s/%s/jobs/user@0/%s.move/cgroup.kill",
			 mover_nodes[m.at].v2, mover_nodes[m.at].scope, m.job.name);
		fd = open(path, O_WRONLY | O_CLOEXEC);
		if (fd >= 0) {
			assert_int_equal(write(fd, "1", 1), 1);
			close(fd);
		}
		mover_event(m.job.leash, LAUNCH_MOVED, &event);
		assert_int_equal(mover_decide(&mover_nodes[m.at], m.job.name, LAUNCH_STAY), 0);
		rc = mover_read(&m);
		while (rc != FRAME_EXIT && m.next < 600)
			rc = mover_read(&m);
		kill(there.shim, SIGKILL);
		waitpid(there.shim, NULL, 0);
		close(there.leash);
		(void)launch_outcome(mover_nodes[!m.at].jobs, mover_nodes[!m.at].run, m.job.name,
				     &(struct launch_found){0});
		(void)launch_forget(mover_nodes[!m.at].jobs, mover_nodes[!m.at].run, m.job.name);
		if (rc != FRAME_EXIT) {
			mover_end(&m, SIGTERM);
			continue;
		}
		print_message("killed after %u us: it was damaged and ended\n", wait_us);
		assert_int_equal(frame_write(m.client, FRAME_EXIT, NULL, 0), 0);
		close(m.client);
		event = mover_gone(&m, &m.job, m.at, 1);
		assert_non_null(strstr(event.text, "criu was killed"));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_stays_early),
		cmocka_unit_test(test_mover_killed),
		cmocka_unit_test(test_criu_killed),
	};

	if (!criu_to_test(&mover_criu))
		return 0;
	return cmocka_run_group_tests_name("move_killed", tests, mover_up, mover_down);
}
