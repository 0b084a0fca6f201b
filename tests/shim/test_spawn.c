/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* The process of a shim: its cgroup, descriptors, signals and environment. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "user/cgroup.h"
#include "agent/guest/launch_spawn.h"

#define SCOPE "iocom-test-spawn"

static char program[64], out[64], root[300];

static void write_program(void)
{
	static const char text[] =
		"#!/bin/sh\n"
		"echo \"arguments $*\" >&5\n"
		"cat /proc/self/cgroup >&5\n"
		"grep -E 'SigBlk|SigIgn' /proc/self/status >&5\n"
		"echo \"environment $(env | cut -d= -f1 | grep -vx -e PWD -e "
		"SHLVL -e _ | tr '\\n' ' ')\" >&5\n"
		"[ \"$(ps -o sid= -p $$ | tr -d ' ')\" = $$ ] && echo leads >&5\n"
		"[ -e /proc/$$/fd/20 ] || echo closed >&5\n";
	int fd = open(program, O_WRONLY | O_CREAT | O_EXCL, 0755);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, sizeof(text) - 1), sizeof(text) - 1);
	close(fd);
}

/* Returns what the program prints when it is spawned below the scope; the caller frees. */
static char *spawned(const char *path, const char *scope, struct launch_shims *shims, int *rc)
{
	int fds[3], fd = open(out, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600), status;
	char *text = calloc(1, 4096);
	pid_t pid = -1;

	assert_true(fd >= 0 && text);
	for (int i = 0; i < 3; i++)
		assert_true((fds[i] = fcntl(fd, F_DUPFD_CLOEXEC, 16)) >= 16);
	*rc = launch_spawn(path, scope, shims, fds, 3, &pid);
	if (!*rc) {
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_int_equal(pread(fd, text, 4095, 0) > 0, 1);
	}
	for (int i = 0; i < 3; i++)
		close(fds[i]);
	close(fd);
	return text;
}

static int set_up(void **state)
{
	struct cgroup_mounts mounts;

	(void)state;
	snprintf(program, sizeof(program), "/tmp/iocom-spawn-%d", (int)getpid());
	snprintf(out, sizeof(out), "/tmp/iocom-spawn-%d.out", (int)getpid());
	write_program();
	if (geteuid() == 0 && !cgroup_mounts_read("/proc/self/mounts", &mounts, NULL)) {
		snprintf(root, sizeof(root), "%s/" SCOPE, mounts.v2);
		if (mkdir(root, 0755) && errno != EEXIST)
			root[0] = 0;
	}
	/* As in an agent. */
	signal(SIGPIPE, SIG_IGN);
	setenv("LD_BENCH", "1", 1);
	return 0;
}

static int tear_down(void **state)
{
	char path[320];

	(void)state;
	snprintf(path, sizeof(path), "%s/shims", root);
	rmdir(path);
	rmdir(root);
	unlink(program);
	unlink(out);
	return 0;
}

static void test_moved(void **state)
{
	char *text;
	int rc;

	(void)state;
	if (!*root) {
		print_message("needs root and a cgroup2 mount\n");
		skip();
	}
	text = spawned(program, SCOPE, NULL, &rc);
	assert_int_equal(rc, 0);
	assert_non_null(strstr(text, "arguments --moved\n"));
	assert_non_null(strstr(text, "/" SCOPE "/shims\n"));
	assert_non_null(strstr(text, "SigBlk:\t0000000000000000\n"));
	assert_non_null(strstr(text, "SigIgn:\t0000000000000000\n"));
	assert_non_null(strstr(text, "environment PATH \n"));
	assert_non_null(strstr(text, "leads\n"));
	assert_non_null(strstr(text, "closed\n"));
	free(text);
}

/* Without a cgroup to start in it still becomes a process, but without "--moved". */
static void test_here(void **state)
{
	char *text;
	int rc;

	(void)state;
	text = spawned(program, "../up", NULL, &rc);
	assert_int_equal(rc, 0);
	assert_non_null(strstr(text, "arguments \n"));
	assert_null(strstr(text, SCOPE));
	assert_non_null(strstr(text, "environment PATH \n"));
	assert_non_null(strstr(text, "leads\n"));
	free(text);
}

static void test_missing(void **state)
{
	int rc;

	(void)state;
	free(spawned("/tmp/iocom-no-such-program", SCOPE, NULL, &rc));
	assert_int_equal(rc, -ENOENT);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
	assert_int_equal(errno, ECHILD);
}

/* A cgroup kept open is used again; after it was removed, its replacement is found. */
static void test_kept(void **state)
{
	struct launch_shims shims = {0};
	char path[320];
	int rc, fd;

	(void)state;
	if (!*root)
		skip();
	snprintf(path, sizeof(path), "%s/shims", root);
	for (int i = 0; i < 3; i++) {
		char *text = spawned(program, SCOPE, &shims, &rc);

		assert_int_equal(rc, 0);
		assert_non_null(strstr(text, "arguments --moved\n"));
		assert_non_null(strstr(text, "/" SCOPE "/shims\n"));
		free(text);
		assert_true(shims.open);
		if (i == 0)
			fd = shims.fd;
		if (i < 2)
			assert_int_equal(shims.fd, fd);
		if (i == 1)
			assert_int_equal(rmdir(path), 0);
	}
	free(spawned("/tmp/iocom-no-such-program", SCOPE, &shims, &rc));
	assert_int_equal(rc, -ENOENT);
	launch_shims_close(&shims);
	assert_false(shims.open);
	launch_shims_close(&shims);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_moved),
		cmocka_unit_test(test_here),
		cmocka_unit_test(test_missing),
		cmocka_unit_test(test_kept),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
