/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
#include "user/kept_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <unistd.h>

/* Returns the number of bytes, or negative errno. */
static ssize_t kept_file_take(int fd, char *out, size_t size)
{
	size_t have = 0;
	ssize_t n;

	do {
		n = pread(fd, out + have, size - 1 - have, (off_t)have);
		if (n > 0)
			have += (size_t)n;
	} while ((n > 0 && have < size - 1) || (n < 0 && errno == EINTR));
	if (n < 0)
		return -errno;
	out[have] = 0;
	return (ssize_t)have;
}

ssize_t kept_file_read(struct kept_file *file, const char *path, char *out, size_t size)
{
	bool was_open = file->open;
	ssize_t n;

	if (!file->open)
		file->open = open(path, O_RDONLY | O_CLOEXEC) + 1;
	if (!file->open)
		return -errno;
	n = kept_file_take(file->open - 1, out, size);
	if (n >= 0)
		return n;
	kept_file_close(file);
	return was_open ? kept_file_read(file, path, out, size) : n;
}

void kept_file_close(struct kept_file *file)
{
	if (file->open)
		close(file->open - 1);
	file->open = 0;
}
