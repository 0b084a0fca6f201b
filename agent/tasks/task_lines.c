/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* See task_lines.h. */
#include "agent/tasks/task_lines.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void task_sink_init(struct task_sink *sink, int fd)
{
	*sink = (struct task_sink){.fd = fd};
}

void task_sink_free(struct task_sink *sink)
{
	queue_free(&sink->waits);
	sink->fd = -1;
}

void task_sink_flush(struct task_sink *sink)
{
	struct queue *q = &sink->waits;

	while (q->length && sink->fd >= 0) {
		ssize_t n = write(sink->fd, queue_front(q), q->length);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return;
		if (n <= 0)
			sink->fd = -1;
		else
			queue_drop(q, (size_t)n);
	}
	if (sink->fd < 0)
		queue_free(q);
}

static void task_sink_add(struct task_sink *sink, const char *data, size_t length)
{
	if (sink->fd < 0 || !queue_push(&sink->waits, data, length))
		return;
	/* Memory is short: write, and wait for it. */
	while (sink->waits.length && sink->fd >= 0)
		task_sink_flush(sink);
	(void)!write(sink->fd, data, length);
}

static void task_lines_put(struct task_lines *lines)
{
	char label[16];
	int n = snprintf(label, sizeof(label), "%u: ", lines->rank);

	task_sink_add(lines->sink, label, (size_t)n);
	task_sink_add(lines->sink, lines->data, lines->length);
	task_sink_add(lines->sink, "\n", 1);
	lines->length = 0;
}

static void task_lines_take(struct task_lines *lines, const char *data, size_t length)
{
	while (length) {
		const char *end = memchr(data, '\n', length);
		size_t n = end ? (size_t)(end - data) : length;
		size_t room = TASK_LINE_MAX - lines->length;

		if (n > room) {
			n = room;
			end = NULL;
		}
		memcpy(lines->data + lines->length, data, n);
		lines->length += n;
		if (end || lines->length == TASK_LINE_MAX)
			task_lines_put(lines);
		n += end != NULL;
		data += n;
		length -= n;
	}
}

bool task_lines_read(struct task_lines *lines)
{
	char data[TASK_LINE_MAX];
	ssize_t n = read(lines->fd, data, sizeof(data));

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return false;
	if (n > 0 && !lines->data)
		lines->data = malloc(TASK_LINE_MAX);
	if (n <= 0 || !lines->data) {
		task_lines_end(lines);
		return true;
	}
	task_lines_take(lines, data, (size_t)n);
	return false;
}

void task_lines_end(struct task_lines *lines)
{
	if (lines->length)
		task_lines_put(lines);
	if (lines->fd >= 0)
		close(lines->fd);
	free(lines->data);
	*lines = (struct task_lines){.fd = -1, .rank = lines->rank, .sink = lines->sink};
}
