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

static int spawn_lifted(const char *program, char *const argv[], const int *fds, size_t n,
			pid_t *pid)
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
		rc = posix_spawn_file_actions_adddup2(&actions, fds[i], SPAWN_FIRST_FD + (int)i);
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
	rc = spawn_lifted(program, argv, high, n, pid);
	while (n--)
		close(high[n]);
	return rc;
}
