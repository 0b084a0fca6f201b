/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* See confined.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/lib/confined.h"

struct confined_page *confined;
char *confined_directory;

static int told[2] = {-1, -1}, heard[2] = {-1, -1}; /* the child tells, the child hears */

int confined_set_up(void **state)
{
	static char made[] = "/run/iocom-confine-XXXXXX";

	(void)state;
	confined = mmap(NULL, sizeof(*confined), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
			-1, 0);
	confined_directory = mkdtemp(made);
	if (confined == MAP_FAILED || !confined_directory || chmod(confined_directory, 0555))
		return -1;
	return 0;
}

int confined_tear_down(void **state)
{
	(void)state;
	return rmdir(confined_directory);
}

/* --- in the test ---------------------------------------------------------------------------- */

/* A child that a failed test has left waits no longer. */
static void pipe_anew(int ends[2])
{
	close(ends[0]);
	close(ends[1]);
	assert_int_equal(pipe(ends), 0);
}

pid_t confined_start(void (*run)(void *arg), void *arg)
{
	pid_t pid;

	memset(confined, 0, sizeof(*confined));
	pipe_anew(told);
	pipe_anew(heard);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL); /* also if the test has failed */
		close(told[0]);
		close(heard[1]);
		run(arg);
		_exit(0);
	}
	return pid;
}

void confined_await(void)
{
	struct pollfd p = {.fd = told[0], .events = POLLIN};
	char c;

	close(told[1]);
	told[1] = -1;
	if (poll(&p, 1, CONFINED_WAIT_MS) != 1 || read(told[0], &c, 1) != 1)
		fail_msg("the child has ended: %s", confined->failed);
}

void confined_let_go(void)
{
	assert_int_equal(write(heard[1], "x", 1), 1);
}

bool confined_is_killed(pid_t pid)
{
	int status = 0;

	for (int i = 0; i < CONFINED_WAIT_MS / 10; i++) {
		if (waitpid(pid, &status, WNOHANG) == pid)
			return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
		usleep(10000);
	}
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	return false;
}

void confined_ends_well(pid_t pid)
{
	int status;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (confined->failed[0])
		fail_msg("%s", confined->failed);
	assert_int_equal(status, 0);
}

void confined_run(void (*run)(void *arg), void *arg)
{
	confined_ends_well(confined_start(run, arg));
}

const char *confined_status(pid_t pid, const char *task, const char *name)
{
	static char line[256];
	char path[300];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/task/%s/status", pid, task);
	f = fopen(path, "r");
	assert_non_null(f);
	while (fgets(line, sizeof(line), f)) {
		size_t n = strlen(name);

		if (strncmp(line, name, n) != 0 || line[n] != ':')
			continue;
		fclose(f);
		line[strcspn(line, "\n")] = '\0';
		return line + n + 1 + strspn(line + n + 1, "\t ");
	}
	fclose(f);
	fail_msg("no line %s", name);
	return "";
}

/* --- in the child --------------------------------------------------------------------------- */

_Noreturn void confined_fails(const char *file, int line, const char *what)
{
	int e = errno;

	snprintf(confined->failed, sizeof(confined->failed), "%s:%d: %s (errno %d: %s)", file, line,
		 what, e, strerror(e));
	_exit(1);
}

void confined_waits(void)
{
	char c = 0;

	CHECK(write(told[1], "x", 1) == 1);
	CHECK(read(heard[0], &c, 1) == 1);
}

void confined_early(void)
{
	confined->rc = confine_early(CONFINED_UID, CONFINED_GID, confined_directory, &confined->got,
				     &confined->err);
	if (confined->rc)
		confined_fails(__FILE__, __LINE__, confined->err.text);
}

void confined_late(void)
{
	confined->rc = confine_late(&confined->err);
	if (confined->rc)
		confined_fails(__FILE__, __LINE__, confined->err.text);
}
