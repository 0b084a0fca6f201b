/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Reads the lines that an agent sends to a recorder, without blocking. */
#ifndef IOCOM_RECORD_STREAM_H
#define IOCOM_RECORD_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "iocom/err.h"

struct record_stream {
	int fd;
	uint8_t *bytes;
	size_t at, used, room;
	bool ended; /* the agent closed */
};

/* Asks the agent for its lines.  Returns 0, or negative errno with the reason in ERR. */
int record_stream_open(const char *run_dir, struct record_stream *s, struct iocom_err *err);
void record_stream_close(struct record_stream *s);
/*
 * Gets the next line with its newline, borrowed until the next call.  Returns 1; 0: none now
 * (or `ended`); -EIO with the agent's own sentence; -EPROTO; -ENOMEM.
 */
int record_stream_next(struct record_stream *s, const char **line, size_t *length,
		       struct iocom_err *err);
/* Asks for the end line; other lines may come before it. */
void record_stream_finish(struct record_stream *s);

#endif
