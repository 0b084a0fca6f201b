/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * See session_tty.h.  criu may have a C library of its own, and an older one: this uses nothing
 * that not all of them have.
 */
#include "agent/init/session_tty.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Stands before the C library's.  What fails here shows when the job is looked at. */
__attribute__((visibility("default"))) pid_t setsid(void)
{
	pid_t session = (pid_t)syscall(SYS_setsid);
	const char *path = session == 1 ? getenv(SESSION_TTY_ENV) : NULL;
	int tty =
		path ? (int)syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_NOCTTY | O_CLOEXEC) : -1;

	if (tty < 0)
		return session;
	(void)ioctl(tty, TIOCSCTTY, 0);
	close(tty);
	return session;
}
