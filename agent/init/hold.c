/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* See hold.h. */
#include "agent/init/hold.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

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

int hold_main(void)
{
	const char *action = getenv(CRIU_ACTION), *init = getenv(CRIU_INIT);
	const char *path = getenv(HOLD_ENV);
	struct hold_ready ready = {.word = HOLD_READY};
	char word;
	ssize_t n;
	int fd;

	if (!action || strcmp(action, "post-restore") != 0)
		return 0;
	/* The socket is reached before the mounts are the job's. */
	fd = path && init ? hold_connect(path) : -1;
	if (fd < 0 || hold_mount_proc(init))
		return 1;
	ready.init = (int32_t)strtol(init, NULL, 10);
	if (write(fd, &ready, sizeof(ready)) != (ssize_t)sizeof(ready))
		return 1;
	do
		n = read(fd, &word, 1);
	while (n < 0 && errno == EINTR);
	return n == 1 && word == HOLD_GO ? 0 : 1;
}
