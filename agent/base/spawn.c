/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* See spawn.h. */
#include "agent/base/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <unistd.h>

int spawn_lift(const int *fds, size_t n, int *high)
{
	for (size_t i = 0; i < n; i++) {
		int rc = 0;

		high[i] = fcntl(fds[i], F_DUPFD_CLOEXEC, SPAWN_LIFTED);
		if (high[i] >= 0)
			continue;
		rc = -errno;
		while (i--)
			close(high[i]);
		return rc;
	}
	return 0;
}

static int spawn_attributes(posix_spawnattr_t *attributes)
{
	sigset_t all, none;
	int rc = posix_spawnattr_init(attributes);

	if (rc)
		return -rc;
	sigfillset(&all);
	sigemptyset(&none);
	posix_spawnattr_setsigdefault(attributes, &all);
	posix_spawnattr_setsigmask(attributes, &none);
	posix_spawnattr_setflags(attributes, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGDEF |
						     POSIX_SPAWN_SETSIGMASK);
	return 0;
}

/* FDS (N) become FIRST, FIRST + 1, ... */
static int spawn_lifted(const char *program, char *const argv[], const int *fds, size_t n,
			int first, pid_t *pid)
{
	char *const env[] = {(char *)"PATH=/usr/sbin:/usr/bin:/sbin:/bin", NULL};
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	int rc = spawn_attributes(&attributes);

	if (rc)
		return rc;
	rc = posix_spawn_file_actions_init(&actions);
	if (!rc)
		rc = posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDWR, 0);
	if (!rc)
		rc = posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_RDWR, 0);
	for (size_t i = 0; i < n && !rc; i++)
		rc = posix_spawn_file_actions_adddup2(&actions, fds[i], first + (int)i);
	if (!rc)
		rc = posix_spawn(pid, program, &actions, &attributes, argv, env);
	posix_spawn_file_actions_destroy(&actions);
	posix_spawnattr_destroy(&attributes);
	return -rc;
}

int spawn_spawn(const char *program, char *const argv[], const int *fds, size_t n, pid_t *pid)
{
	int high[SPAWN_FDS_MAX];
	int rc = n > SPAWN_FDS_MAX ? -EINVAL : spawn_lift(fds, n, high);

	if (rc)
		return rc;
	rc = spawn_lifted(program, argv, high, n, SPAWN_FIRST_FD, pid);
	while (n--)
		close(high[n]);
	return rc;
}

int spawn_output(const char *program, char *const argv[], int *output, pid_t *pid)
{
	int ends[2], fds[2], high[2], rc = 0;

	if (pipe2(ends, O_CLOEXEC))
		return -errno;
	fds[0] = ends[1];
	fds[1] = open("/dev/null", O_WRONLY | O_CLOEXEC);
	if (fds[1] < 0 || fcntl(ends[0], F_SETFL, O_NONBLOCK))
		rc = -errno;
	if (!rc)
		rc = spawn_lift(fds, 2, high);
	if (!rc) {
		rc = spawn_lifted(program, argv, high, 2, STDOUT_FILENO, pid);
		close(high[0]);
		close(high[1]);
	}
	close(ends[1]);
	if (fds[1] >= 0)
		close(fds[1]);
	if (rc)
		close(ends[0]);
	else
		*output = ends[0];
	return rc;
}
