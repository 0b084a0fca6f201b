/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* See stopped.h. */
#include "agent/guest/stopped.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

bool stopped_is(pid_t pid)
{
	char path[32], text[256];
	const char *name_end;
	ssize_t n;
	int fd;

	if (pid <= 0)
		return false;
	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	text[n > 0 ? n : 0] = 0;
	/* "PID (NAME) STATE": the name may hold anything.  t: a debugger holds it. */
	name_end = strrchr(text, ')');
	return name_end && !strncmp(name_end, ") T", 3);
}
