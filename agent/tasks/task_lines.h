/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Labelled output: each line of a task becomes "RANK: line".  A line that is longer than
 * TASK_LINE_MAX becomes several.
 */
#ifndef IOCOM_TASK_LINES_H
#define IOCOM_TASK_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "user/wire.h"

#define TASK_LINE_MAX 16384
#define TASK_SINK_MAX (256u << 10) /* while so much waits, no more is read from tasks */

/* Where labelled lines go: a descriptor that takes what it has room for. */
struct task_sink {
	int fd; /* -1: nobody reads any more */
	struct queue waits;
};

struct task_lines {
	int fd; /* a pipe from the task; -1: none, or ended */
	uint32_t rank;
	struct task_sink *sink;
	char *data; /* an unfinished line */
	size_t length;
};

void task_sink_init(struct task_sink *sink, int fd);
void task_sink_free(struct task_sink *sink);
/* Writes what FD takes.  What nobody reads is dropped. */
void task_sink_flush(struct task_sink *sink);
static inline bool task_sink_full(const struct task_sink *sink)
{
	return sink->waits.length >= TASK_SINK_MAX;
}

/* Reads from the non-blocking FD of LINES once.  Returns true at its end: FD is closed then. */
bool task_lines_read(struct task_lines *lines);
/* Closes FD; an unfinished line gets an end. */
void task_lines_end(struct task_lines *lines);

#endif
