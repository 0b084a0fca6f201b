/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Writing all of something to a descriptor that blocks. */
#ifndef IOCOM_WRITE_WHOLE_H
#define IOCOM_WRITE_WHOLE_H

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

/* Returns 0 or negative errno; then some of it may be written. */
static inline int write_whole(int fd, const void *data, size_t length)
{
	const uint8_t *at = data;

	while (length) {
		ssize_t n = write(fd, at, length);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		at += n;
		length -= (size_t)n;
	}
	return 0;
}

#endif
