/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * `iocom record --csv KIND` writes all rows of an interval together, at its end, so a file that
 * is cut off still holds whole intervals.
 */
#include "balancer/record/record_csv.h"

#include <errno.h>
#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "balancer/record/record_file.h"

#define LOOK_MS 500 /* longest delay until we notice a signal between two calls */

struct table {
	const struct record_csv_options *options;
	struct record_file *file;
	struct top_source *source;
	struct csv_text text;
	bool terminal;
	double start_s;
	unsigned long intervals;
};

static double record_csv_now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static bool record_csv_time_to_stop(const struct table *t)
{
	const struct record_csv_options *o = t->options;

	return *o->stopped || (o->seconds > 0 && record_csv_now_s() - t->start_s >= o->seconds);
}

static int record_csv_write_text(struct table *t, struct iocom_err *err)
{
	int rc = record_file_add(t->file, t->text.data, t->text.used, err);

	t->text.used = 0;
	return rc ? rc : record_file_flush(t->file, err);
}

static int write_header(struct table *t, struct iocom_err *err)
{
	if (csv_header(t->options->kind, &t->text))
		return iocom_err_set(err, -ENOMEM, "out of memory");
	return record_csv_write_text(t, err);
}

/*
 * A task's name must not control the terminal: '?' replaces control bytes, and both bytes of
 * U+0080 to U+009F.
 */
static void record_csv_tame(char *text, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		unsigned char c = (unsigned char)text[i];
		unsigned char next = i + 1 < n ? (unsigned char)text[i + 1] : 0;

		if ((c < 0x20 && c != '\n') || c == 0x7f)
			text[i] = '?';
		else if (c == 0xc2 && next >= 0x80 && next < 0xa0)
			text[i] = text[i + 1] = '?';
	}
}

static int write_interval(struct table *t, const json_t *document, struct iocom_err *err)
{
	if (csv_rows(t->options->kind, document, &t->text))
		return iocom_err_set(err, -ENOMEM, "out of memory");
	if (t->terminal)
		record_csv_tame(t->text.data, t->text.used);
	t->intervals++;
	return t->text.used ? record_csv_write_text(t, err) : 0;
}

/* Waits a short while for the source.  Returns whether it has something to read. */
static bool record_csv_ready(const struct table *t)
{
	struct pollfd p = {.fd = top_source_fd(t->source), .events = POLLIN};
	int due = top_source_due_ms(t->source), n;

	n = poll(&p, 1, due >= 0 && due < LOOK_MS ? due : LOOK_MS);
	return p.fd < 0 ? top_source_due_ms(t->source) == 0 : n > 0;
}

static int take_intervals(struct table *t, struct iocom_err *err)
{
	int rc = 0;

	while (!rc && !record_csv_time_to_stop(t)) {
		json_t *document = NULL;

		if (!record_csv_ready(t))
			continue;
		rc = top_source_next(t->source, &document, err);
		if (!rc)
			rc = write_interval(t, document, err);
		else if (rc == TOP_SOURCE_E_AGAIN)
			rc = 0;
		json_decref(document);
	}
	return rc;
}

static int record_csv_fail(const char *text, const char *more)
{
	fprintf(stderr, "iocom record: %s%s\n", text, more);
	return 1;
}

/* The file gets its name even after a failure, because the earlier rows are valid. */
static int record_csv_keep(struct table *t, int rc, const struct iocom_err *err)
{
	struct iocom_err why = {0};
	int kept;

	if (rc && !t->intervals) {
		record_file_drop(t->file);
		return record_csv_fail(err->text, "");
	}
	kept = record_file_keep(t->file, &why);
	if (rc)
		return record_csv_fail(err->text, "; the part recorded so far is kept");
	return kept ? record_csv_fail(why.text, "") : 0;
}

int record_csv(const struct record_csv_options *o)
{
	struct table t = {.options = o};
	struct iocom_err err = {0};
	char name[64];
	int rc;

	snprintf(name, sizeof(name), "iocom-%s.csv", csv_kind_name(o->kind));
	rc = record_file_open(o->out ? o->out : name, o->force, &t.file, &err);
	if (rc)
		return record_csv_fail(err.text, "");
	t.terminal = o->out && !strcmp(o->out, "-") && isatty(STDOUT_FILENO);
	rc = top_source_open(&t.source, &o->source, &err);
	t.start_s = record_csv_now_s();
	if (!rc)
		rc = write_header(&t, &err);
	if (!rc)
		rc = take_intervals(&t, &err);
	top_source_free(t.source);
	rc = record_csv_keep(&t, rc, &err);
	free(t.text.data);
	return rc;
}
