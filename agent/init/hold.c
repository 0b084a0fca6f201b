/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* See hold.h. */
#include "agent/init/hold.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/init/cover_proc.h"

/* What criu tells its scripts. */
#define CRIU_ACTION "CRTOOLS_SCRIPT_ACTION"
#define CRIU_INIT   "CRTOOLS_INIT_PID"

static int hold_enter(const char *pid, const char *name, int flag)
{
	char path[64];
	int fd, rc;

	snprintf(path, sizeof(path), "/proc/%.20s/ns/%s", pid, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	rc = fd < 0 || setns(fd, flag) ? -1 : 0;
	if (fd >= 0)
		close(fd);
	return rc;
}

/* A /proc has the pids of the namespace of who mounts it, which must be born in it. */
static int hold_mount_proc(const char *init)
{
	int status;
	pid_t pid;

	if (hold_enter(init, "mnt", CLONE_NEWNS) || hold_enter(init, "pid", CLONE_NEWPID))
		return -1;
	pid = fork();
	if (!pid)
		_exit(mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) != 0);
	while (pid > 0 && waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -1;
	return pid > 0 && !status ? 0 : -1;
}

static int hold_connect(const char *path)
{
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || strlen(path) >= sizeof(sa.sun_path))
		return -1;
	memcpy(sa.sun_path, path, strlen(path));
	return connect(fd, (struct sockaddr *)&sa, sizeof(sa)) ? -1 : fd;
}

/* Waits for the word.  Returns true: the job may run. */
static bool hold_wait(const char *path, const char *init)
{
	struct hold_ready ready = {.word = HOLD_READY, .init = (int32_t)strtol(init, NULL, 10)};
	/* The socket is reached before the mounts are the job's. */
	int fd = path ? hold_connect(path) : -1;
	char word = 0;
	ssize_t n;

	if (fd < 0 || hold_mount_proc(init) ||
	    write(fd, &ready, sizeof(ready)) != (ssize_t)sizeof(ready))
		return false;
	do
		n = read(fd, &word, 1);
	while (n < 0 && errno == EINTR);
	return n == 1 && word == HOLD_GO;
}

int hold_main(void)
{
	const char *action = getenv(CRIU_ACTION), *init = getenv(CRIU_INIT);
	const char *covered = getenv(HOLD_COVER_ENV);
	pid_t pid = init ? (pid_t)strtol(init, NULL, 10) : 0;

	if (action && !strcmp(action, "pre-dump") && covered)
		return cover_proc((pid_t)strtol(covered, NULL, 10)) != 0;
	if (!action || strcmp(action, "pre-resume") != 0)
		return 0;
	if (pid > 0 && hold_wait(getenv(HOLD_ENV), init))
		return 0;
	/* With its first process all end; criu would wait for them for ever. */
	if (pid > 0)
		kill(pid, SIGKILL);
	kill(getppid(), SIGKILL);
	return 1;
}
