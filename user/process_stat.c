/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* See process_stat.h. */
#include "user/process_stat.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int process_stat(pid_t pid, char *out, size_t size)
{
	char path[32], text[512];
	const char *name_end;
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	text[n > 0 ? n : 0] = 0;
	name_end = strrchr(text, ')');
	if (!name_end || !name_end[1])
		return -EBADMSG;
	snprintf(out, size, "%s", name_end + 2);
	return 0;
}
