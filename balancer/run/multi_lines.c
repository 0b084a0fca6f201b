/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Passes the output of many nodes on by whole lines; see multi.h. */
#include "balancer/run/multi.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "iocom/array.h"

#define READ_SIZE (64u << 10)

static const char rule[] = "---------------\n";

void multi_lines_fini(struct multi_lines *lines)
{
	free(lines->data);
	*lines = (struct multi_lines){0};
}

/* Passes on one line of LENGTH bytes and adds a newline if it has none. */
static int put_line(struct multi_sink *sink, struct queue *gather, const char *node,
		    const char *line, size_t length)
{
	struct queue *to = gather ? gather : &sink->ready;
	bool whole = length && line[length - 1] == '\n';
	int rc = 0;

	if (!gather && sink->label)
		rc = queue_push(to, node, strlen(node)) || queue_push(to, ": ", 2);
	if (!rc)
		rc = queue_push(to, line, length);
	if (!rc && !whole)
		rc = queue_push(to, "\n", 1);
	return rc ? -ENOMEM : 0;
}

/* Passes on all whole lines of LINES, and an unfinished one that is too long to keep. */
static int put_lines(struct multi_lines *lines, const char *node, struct multi_sink *sink,
		     struct queue *gather)
{
	size_t at = 0;
	int rc = 0;

	while (!rc) {
		size_t from = lines->scanned > at ? lines->scanned : at;
		const char *end = memchr(lines->data + from, '\n', lines->length - from);
		size_t n = end ? (size_t)(end + 1 - lines->data) - at : lines->length - at;

		if (!end && n < MULTI_LINE_MAX)
			break;
		sink->cut += !end;
		rc = put_line(sink, gather, node, lines->data + at, n);
		at += n;
		if (at == lines->length)
			break;
	}
	memmove(lines->data, lines->data + at, lines->length - at);
	lines->length -= at;
	lines->scanned = lines->length;
	return rc;
}

int multi_lines_read(struct multi_lines *lines, int fd, const char *node, struct multi_sink *sink,
		     struct queue *gather)
{
	ssize_t n;
	int rc = array_reserve(lines->data, lines->room, lines->length + READ_SIZE, READ_SIZE);

	if (rc)
		return rc;
	n = read(fd, lines->data + lines->length, lines->room - lines->length);
	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return 1;
	if (n > 0) {
		lines->length += (size_t)n;
		rc = put_lines(lines, node, sink, gather);
		return rc ? rc : 1;
	}
	if (lines->length)
		rc = put_line(sink, gather, node, lines->data, lines->length);
	multi_lines_fini(lines);
	return rc;
}

int multi_sink_flush(struct multi_sink *sink)
{
	ssize_t rc;

	if (sink->output.closed) {
		queue_free(&sink->ready);
		return -EPIPE;
	}
	rc = run_output_write(&sink->output, sink->ready.length ? queue_front(&sink->ready) : NULL,
			      sink->ready.length);
	queue_free(&sink->ready);
	return rc < 0 ? -EPIPE : 0;
}

void multi_sink_fini(struct multi_sink *sink)
{
	queue_free(&sink->ready);
	run_output_deinit(&sink->output);
}

int multi_sink_block(struct multi_sink *sink, const char *const *names, size_t count,
		     const struct queue *text)
{
	char *folded = sink->label ? nodelist_fold(names, count) : NULL;
	char *head = NULL;
	int rc = 0;

	if (sink->label) {
		int n = !folded	    ? -1
			: count > 1 ? asprintf(&head, "%s%s (%zu)\n%s", rule, folded, count, rule)
				    : asprintf(&head, "%s%s\n%s", rule, folded, rule);

		rc = n < 0 ? -ENOMEM : queue_push(&sink->ready, head, (size_t)n);
	}
	if (!rc && text->length)
		rc = queue_push(&sink->ready, queue_front(text), text->length);
	free(folded);
	free(head);
	return rc;
}
