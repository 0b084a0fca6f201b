/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Lock files for a bounded set of processes; see process_slot.h. */
#include "user/process_slot.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/pidfd.h>
#include <sys/stat.h>
#include <unistd.h>

#define LINE_MAX_BYTES 48

static int open_slot(const char *path, int flags)
{
	int fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | flags, 0600);
	struct stat st;

	if (fd < 0)
		return -errno;
	if (!fstat(fd, &st) && S_ISREG(st.st_mode))
		return fd;
	close(fd);
	return -EINVAL;
}

int process_slot_take(const char *path, uid_t uid)
{
	int fd = open_slot(path, O_CREAT), rc = 0, n;
	char line[LINE_MAX_BYTES];

	if (fd < 0)
		return fd;
	if (flock(fd, LOCK_EX | LOCK_NB))
		rc = -errno;
	n = snprintf(line, sizeof(line), "%d %u\n", (int)getpid(), (unsigned)uid);
	if (!rc && (ftruncate(fd, 0) || pwrite(fd, line, (size_t)n, 0) != n))
		rc = errno ? -errno : -EIO;
	if (!rc)
		return fd;
	close(fd);
	return rc;
}

/* Returns 1 if another process holds the lock of FD. */
static int held(int fd)
{
	if (!flock(fd, LOCK_SH | LOCK_NB)) {
		flock(fd, LOCK_UN);
		return 0;
	}
	return errno == EWOULDBLOCK ? 1 : -errno;
}

static int holder_of(int fd, pid_t *pid, uid_t *uid)
{
	char line[LINE_MAX_BYTES] = "";
	int rc = held(fd), who;
	unsigned whose;

	*pid = 0;
	*uid = (uid_t)-1;
	if (rc <= 0)
		return rc;
	if (pread(fd, line, sizeof(line) - 1, 0) > 0 &&
	    sscanf(line, "%d %u\n", &who, &whose) == 2 && who > 1) {
		*pid = (pid_t)who;
		*uid = (uid_t)whose;
	}
	return 1;
}

int process_slot_holder(const char *path, pid_t *pid, uid_t *uid)
{
	int fd = open_slot(path, 0), rc;

	*pid = 0;
	*uid = (uid_t)-1;
	if (fd < 0)
		return fd == -ENOENT ? 0 : fd;
	rc = holder_of(fd, pid, uid);
	close(fd);
	return rc;
}

int process_slot_kill(const char *path)
{
	int fd = open_slot(path, 0), process = -1, rc;
	pid_t pid;
	uid_t uid;

	if (fd < 0)
		return fd == -ENOENT ? -ESRCH : fd;
	rc = holder_of(fd, &pid, &uid);
	if (rc > 0 && pid > 1)
		process = pidfd_open(pid, 0);
	rc = rc < 0 ? rc : -ESRCH;
	/* The lock is still held, so the pid is its holder's and no stranger's. */
	if (process >= 0 && held(fd) == 1)
		rc = pidfd_send_signal(process, SIGKILL, NULL, 0) ? -errno : 0;
	if (process >= 0)
		close(process);
	close(fd);
	return rc;
}
