/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Lines of a trace; see lines.h. */
#include "sim/workload/lines.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Room for a whole line and a further block of the file. */
#define BUFFER_BYTES (LINE_MAX_BYTES + 192 * 1024)
#define FOUND_SHOWN  40

int lines_init(struct lines *l, struct source *source)
{
	*l = (struct lines){.source = source, .buffer = malloc(BUFFER_BYTES + 1)};
	return l->buffer ? 0 : -ENOMEM;
}

void lines_deinit(struct lines *l)
{
	free(l->buffer);
	l->buffer = NULL;
}

int lines_rewind(struct lines *l, struct iocom_err *err)
{
	l->begin = l->end = l->length = 0;
	l->number = 0;
	l->ended = false;
	if (source_rewind(l->source))
		return iocom_err_set(err, -EIO, "cannot read %s again from its start",
				     source_name(l->source));
	return 0;
}

/* Writes as much of FOUND as fits a message, with '?' for characters that do not print. */
static void lines_show(char *out, size_t size, const char *found, size_t length)
{
	size_t n = length < size - 4 ? length : size - 4;

	for (size_t i = 0; i < n; i++)
		out[i] = found[i] >= ' ' && found[i] != 0x7f ? found[i] : '?';
	strcpy(out + n, n < length ? "..." : "");
}

static int workload_lines_fail(const struct lines *l, size_t column, const char *found,
			       size_t length, struct iocom_err *err, const char *expected,
			       va_list ap)
{
	char what[400], shown[FOUND_SHOWN + 4];

	if (!err)
		return -EINVAL;
	vsnprintf(what, sizeof(what), expected, ap);
	lines_show(shown, sizeof(shown), found, length);
	return iocom_err_set(err, -EINVAL, "%s:%llu:%zu: expected %s, found \"%s\"",
			     source_name(l->source),
			     (unsigned long long)(l->number ? l->number : 1), column, what, shown);
}

int lines_fail(const struct lines *l, size_t column, const char *found, size_t length,
	       struct iocom_err *err, const char *expected, ...)
{
	va_list ap;
	int rc;

	va_start(ap, expected);
	rc = workload_lines_fail(l, column, found, length, err, expected, ap);
	va_end(ap);
	return rc;
}

int token_fail(const struct lines *l, const struct token *f, struct iocom_err *err,
	       const char *expected, ...)
{
	va_list ap;
	int rc;

	va_start(ap, expected);
	rc = workload_lines_fail(l, f->column, f->text, f->length, err, expected, ap);
	va_end(ap);
	return rc;
}

int tokens_fail_count(const struct lines *l, const struct token *f, size_t count, size_t wanted,
		      const char *unit, struct iocom_err *err)
{
	if (count > wanted)
		return token_fail(l, &f[wanted], err, "the end of the line after %zu %s", wanted,
				  unit);
	return lines_fail(l, l->length + 1, "end of line", 11, err, "%zu %s (there are %zu)",
			  wanted, unit, count);
}

/* Moves the unread bytes to the front of the buffer and reads more. */
static int refill(struct lines *l, struct iocom_err *err)
{
	const char *trouble = NULL, *found = "";
	size_t got = 0;
	int rc;

	memmove(l->buffer, l->buffer + l->begin, l->end - l->begin);
	l->end -= l->begin;
	l->begin = 0;
	rc = source_read(l->source, l->buffer + l->end, BUFFER_BYTES - l->end, &got, &trouble,
			 &found);
	if (rc == -EBADMSG) {
		/* The error is after everything that could be unpacked. */
		l->end += got;
		for (char *p; (p = memchr(l->buffer + l->begin, '\n', l->end - l->begin));) {
			l->number++;
			l->begin = (size_t)(p - l->buffer) + 1;
		}
		l->number++;
		return lines_fail(l, l->end - l->begin + 1, found, strlen(found), err, "%s",
				  trouble);
	}
	if (rc)
		return iocom_err_set(err, rc, "cannot read %s: %s", source_name(l->source),
				     *found ? found : strerror(-rc));
	if (l->hash && hash_add(l->hash, l->buffer + l->end, got))
		return iocom_err_set(err, -EIO, "cannot compute SHA-256");
	l->end += got;
	l->ended = !got;
	return 0;
}

/* Makes the first N unread bytes the current line. */
static int lines_take(struct lines *l, size_t n, struct iocom_err *err)
{
	const char *nul;

	l->number++;
	l->text = l->buffer + l->begin;
	l->length = n && l->text[n - 1] == '\r' ? n - 1 : n;
	l->begin += n < l->end - l->begin ? n + 1 : n;
	if (l->length > LINE_MAX_BYTES)
		return lines_fail(l, LINE_MAX_BYTES + 1, l->text, l->length, err,
				  "a line of at most %d bytes", LINE_MAX_BYTES);
	nul = memchr(l->text, 0, l->length);
	if (nul)
		return lines_fail(l, (size_t)(nul - l->text) + 1, "NUL byte", 8, err, "text");
	l->text[l->length] = '\0';
	return 1;
}

int lines_next(struct lines *l, struct iocom_err *err)
{
	size_t seen = 0;

	for (;;) {
		size_t have = l->end - l->begin;
		char *p = memchr(l->buffer + l->begin + seen, '\n', have - seen);
		int rc;

		if (p)
			return lines_take(l, (size_t)(p - l->buffer) - l->begin, err);
		if (l->ended)
			return have ? lines_take(l, have, err) : 0;
		if (have > LINE_MAX_BYTES + 1)
			return lines_take(l, have, err); /* reports the error */
		seen = have;
		rc = refill(l, err);
		if (rc)
			return rc;
	}
}
