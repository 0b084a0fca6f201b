/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* See data_io.h. */
#include "agent/shim/data_io.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int data_io_read(struct data_io *io, uint8_t *type, const uint8_t **payload, uint32_t *length)
{
	size_t consumed;
	ssize_t n;
	int rc;

	while ((rc = data_next(io->buffer + io->head, io->length, type, payload, length,
			       &consumed)) == 1) {
		memmove(io->buffer, io->buffer + io->head, io->length);
		io->head = 0;
		n = read(0, io->buffer + io->length, sizeof(io->buffer) - io->length);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n ? -errno : -EPIPE;
		io->length += (size_t)n;
	}
	if (rc)
		return rc;
	io->head += consumed;
	io->length -= consumed;
	return 0;
}

int data_io_put(int fd, const void *data, size_t length)
{
	const uint8_t *at = data;

	while (length) {
		ssize_t n = write(fd, at, length);

		if (n < 0 && errno != EINTR)
			return -errno;
		at += n > 0 ? n : 0;
		length -= n > 0 ? (size_t)n : 0;
	}
	return 0;
}

int data_io_write(enum data_type type, const void *payload, uint32_t length)
{
	uint8_t message[DATA_MESSAGE];

	if (length > DATA_PIECE)
		return -EMSGSIZE;
	data_head(message, type, length);
	if (length)
		memcpy(message + DATA_HEAD, payload, length);
	return data_io_put(1, message, DATA_HEAD + length);
}

int data_io_fail(int rc, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vdprintf(2, fmt, ap);
	va_end(ap);
	return rc;
}
