/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Reads the commands of `iocom batch`: the lines of its input except empty ones and comments. */
#include "balancer/batch/batch_pool.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void batch_command_free(struct pool *pool, struct batch_command *c)
{
	for (int i = 0; i < 2; i++)
		batch_text_free(pool, &c->text[i]);
	free(c->line);
	free(c);
}

int batch_read_input(struct pool *pool, struct iocom_err *err)
{
	ssize_t n = read(pool->options->in, pool->piece, sizeof(pool->piece));

	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return 0;
	if (n < 0)
		return iocom_err_set(err, -errno, "cannot read the commands: %s", strerror(errno));
	pool->input_ended = n == 0;
	pool->input_bytes += (uint64_t)n;
	if (queue_push(&pool->input, pool->piece, (size_t)n))
		return iocom_err_set(err, -ENOMEM, "out of memory");
	return 0;
}

/* The end of the first line: its newline, or the end of the input.  NULL: not read yet. */
static const uint8_t *line_end(const struct pool *pool)
{
	const struct queue *q = &pool->input;
	const uint8_t *end = q->length ? memchr(queue_front(q), '\n', q->length) : NULL;

	return end || !pool->input_ended || !q->length ? end : queue_front(q) + q->length;
}

bool batch_has_line(const struct pool *pool)
{
	return line_end(pool) != NULL;
}

static int make(struct pool *pool, const uint8_t *line, size_t n, struct batch_command **out,
		struct iocom_err *err)
{
	struct batch_command *c = calloc(1, sizeof(*c));
	int rc;

	if (!c || !(c->line = strndup((const char *)line, n))) {
		free(c);
		return iocom_err_set(err, -ENOMEM, "out of memory");
	}
	c->sequence = ++pool->sequence;
	rc = batch_done_before(pool->options->done, c->sequence, c->line, err);
	if (rc) {
		pool->result->left_out += rc > 0;
		batch_command_free(pool, c);
		return rc < 0 ? rc : 0;
	}
	c->turn = ++pool->turn;
	*out = c;
	return 0;
}

/*
 * Takes the next line that has a command into *OUT (NULL: none is there yet).  Returns 0 or
 * negative errno.
 */
static int batch_input_next_line(struct pool *pool, struct batch_command **out,
				 struct iocom_err *err)
{
	const uint8_t *end;

	*out = NULL;
	while (!*out && (end = line_end(pool))) {
		const uint8_t *line = queue_front(&pool->input);
		size_t n = (size_t)(end - line), blank = 0;
		int rc = 0;

		while (blank < n && (line[blank] == ' ' || line[blank] == '\t'))
			blank++;
		if (n > BATCH_LINE_MAX || memchr(line, 0, n))
			return iocom_err_set(err, -E2BIG,
					     "a line of the input is longer than %u bytes or "
					     "holds a zero byte",
					     BATCH_LINE_MAX);
		if (blank < n && line[blank] != '#')
			rc = make(pool, line, n, out, err);
		if (rc)
			return rc;
		queue_drop(&pool->input, n + (n < pool->input.length));
	}
	if (!*out && pool->input.length > BATCH_LINE_MAX)
		return iocom_err_set(err, -E2BIG, "a line of the input is longer than %u bytes",
				     BATCH_LINE_MAX);
	return 0;
}

int batch_next(struct pool *pool, struct batch_command **out, struct iocom_err *err)
{
	*out = pool->back;
	if (*out) {
		pool->back = (*out)->next;
		return 0;
	}
	/* The commands that hold up the order have begun already; their end makes room again. */
	if (pool->held_bytes > BATCH_HELD_MAX ||
	    (pool->held_bytes && pool->filed_bytes > BATCH_FILED_MAX / 2))
		return 0;
	return batch_input_next_line(pool, out, err);
}

void batch_take_back(struct pool *pool, struct batch_command *c)
{
	struct batch_command **at = &pool->back;

	for (int i = 0; i < 2; i++)
		batch_text_free(pool, &c->text[i]);
	while (*at && (*at)->turn < c->turn) /* keep the order of the list */
		at = &(*at)->next;
	c->next = *at;
	*at = c;
}
