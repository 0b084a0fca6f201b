/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Fields of a CSV line; see quoted.h. */
#include "sim/workload/quoted.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void quoted_init(struct quoted *q)
{
	memset(q, 0, sizeof(*q));
}

void quoted_deinit(struct quoted *q)
{
	if (q->started)
		csv_free(&q->parser);
	free(q->unquoted);
	quoted_init(q);
}

/* The lines are split already, so nothing inside one ends a row. */
static int never(unsigned char c)
{
	(void)c;
	return 0;
}

static int quoted_start(struct quoted *q)
{
	if (q->started)
		return 0;
	q->unquoted = malloc(LINE_MAX_BYTES + 1);
	if (!q->unquoted || csv_init(&q->parser, CSV_STRICT | CSV_STRICT_FINI))
		return -ENOMEM;
	csv_set_term_func(&q->parser, never);
	q->started = true;
	return 0;
}

/* Called by libcsv for each field; C->column is where the field began. */
static void on_field(void *text, size_t length, void *arg)
{
	struct quoted *q = arg;

	/* The fields of a line together are not longer than the line. */
	if (q->n < q->max && q->used + length <= LINE_MAX_BYTES) {
		memcpy(q->unquoted + q->used, text, length);
		q->fields[q->n] = (struct token){q->unquoted + q->used, length, q->column};
		q->used += length;
	}
	q->n++;
	q->column = 0; /* the next field begins after this separator */
}

/* Reports why libcsv stopped at column I + 1; the parser is not used again. */
static int stopped(struct quoted *q, const struct lines *l, size_t i, struct iocom_err *err)
{
	int error = csv_error(&q->parser);

	quoted_deinit(q);
	if (error != CSV_EPARSE)
		return iocom_err_set(err, -ENOMEM, "%s: out of memory", source_name(l->source));
	if (i == l->length)
		return lines_fail(l, i + 1, "end of line", 11, err,
				  "the closing quote of the field");
	return lines_fail(l, i + 1, l->text + i, l->length - i, err,
			  "a comma after a quoted field, or \"\" for a quote inside one");
}

static int split_quoted(struct quoted *q, const struct lines *l, struct iocom_err *err)
{
	int rc = quoted_start(q);

	if (rc)
		return iocom_err_set(err, rc, "%s: out of memory", source_name(l->source));
	for (size_t i = 0; i < l->length; i++) {
		if (!q->column && l->text[i] != ' ' && l->text[i] != '\t')
			q->column = i + 1;
		if (csv_parse(&q->parser, l->text + i, 1, on_field, NULL, q) != 1)
			return stopped(q, l, i, err);
	}
	if (!q->column)
		q->column = l->length + 1;
	return csv_fini(&q->parser, on_field, NULL, q) ? stopped(q, l, l->length, err) : 0;
}

int quoted_split(struct quoted *q, const struct lines *l, struct token *f, size_t max, size_t *n,
		 struct iocom_err *err)
{
	int rc;

	if (!memchr(l->text, '"', l->length)) {
		*n = tokens_separated(l, ',', f, max);
		return 0;
	}
	q->fields = f;
	q->max = max;
	q->n = q->used = q->column = 0;
	rc = split_quoted(q, l, err);
	*n = q->n;
	return rc;
}
