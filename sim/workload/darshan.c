/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Darshan job summaries as CSV: a header with names, and a row for each run of an application.  If
 * rows have one field more than the header, the first field is an unnamed row index and the names
 * shift by one.  Columns, by name:
 *
 *   darshan_start_time        arrival, s; rows may be in any order
 *   darshan_walltime          s
 *   darshan_nprocs            tasks
 *   darshan_app               its last path component is the kind
 *   darshan_tot_reads_posix, .._writes_posix                 accesses of all processes
 *   darshan_tot_bytes_read_posix, .._bytes_written_posix
 *   darshan_tot_f_{read,write,meta}_time_posix (if there)    s, summed over the processes
 *
 * Each task gets its share: requests = accesses / tasks, request size = bytes / accesses
 * (constant), write fraction = bytes written / bytes, computation = walltime minus its I/O time,
 * but at least 1 % of the walltime (an access costs some computation, and processes overlap).
 * Rate = requests / computation.  Rows are kept in memory and sorted by time; the other fields of
 * a job are generated.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "iocom/array.h"
#include "sim/workload/reader.h"

#define FIELDS_MAX 1024
#define CPU_LEAST  0.01 /* least computation, as a share of the walltime */

enum column {
	START,
	WALLTIME,
	NPROCS,
	READS,
	WRITES,
	BYTES_READ,
	BYTES_WRITTEN,
	READ_TIME,
	WRITE_TIME,
	META_TIME,
	APP,
	COLUMNS,
};

static const struct {
	const char *name;
	bool optional;
	struct wanted wanted;
} columns[COLUMNS] = {
	[START] = {"darshan_start_time",
		   false,
		   {"darshan_start_time in s", 0, READER_TIME_MAX, false}},
	[WALLTIME] = {"darshan_walltime",
		      false,
		      {"darshan_walltime in s", 0, READER_TIME_MAX, false}},
	[NPROCS] = {"darshan_nprocs", false, {"darshan_nprocs", 1, 1e9, true}},
	[READS] = {"darshan_tot_reads_posix",
		   false,
		   {"the number of reads", 0, READER_COUNT_MAX, true}},
	[WRITES] = {"darshan_tot_writes_posix",
		    false,
		    {"the number of writes", 0, READER_COUNT_MAX, true}},
	[BYTES_READ] = {"darshan_tot_bytes_read_posix", false, {"the bytes read", 0, 1e18, false}},
	[BYTES_WRITTEN] = {"darshan_tot_bytes_written_posix",
			   false,
			   {"the bytes written", 0, 1e18, false}},
	[READ_TIME] = {"darshan_tot_f_read_time_posix",
		       true,
		       {"the read time in s", 0, READER_TIME_MAX, false}},
	[WRITE_TIME] = {"darshan_tot_f_write_time_posix",
			true,
			{"the write time in s", 0, READER_TIME_MAX, false}},
	[META_TIME] = {"darshan_tot_f_meta_time_posix",
		       true,
		       {"the metadata time in s", 0, READER_TIME_MAX, false}},
	[APP] = {"darshan_app", true, {NULL, 0, 0, false}},
};

struct row {
	double start_s;
	uint64_t order; /* position in the file, which decides ties */
	uint32_t tasks, kind;
	double cpu_ms, requests, request_kb, write_fraction;
};

struct darshan {
	bool loaded;
	struct row *rows;
	size_t n, room, at;
	size_t names, fields;	/* names in the header; fields in a row, 0: no row seen yet */
	size_t column[COLUMNS]; /* 1 + index in the header; 0: the column is missing */
	struct token f[FIELDS_MAX + 1];
};

static int darshan_read_header(struct reader *r, struct iocom_err *err)
{
	struct darshan *d = r->state;
	int rc = reader_line(r, '#', err);

	if (rc <= 0)
		return rc ? rc : -EINVAL;
	rc = quoted_split(&r->quoted, &r->lines, d->f, FIELDS_MAX, &d->names, err);
	if (rc)
		return rc;
	if (d->names > FIELDS_MAX)
		return token_fail(&r->lines, &d->f[FIELDS_MAX - 1], err, "at most %d columns",
				  FIELDS_MAX);
	for (unsigned int c = 0; c < COLUMNS; c++) {
		for (size_t i = 0; i < d->names && !d->column[c]; i++)
			if (token_is(&d->f[i], columns[c].name))
				d->column[c] = i + 1;
		if (!d->column[c] && !columns[c].optional)
			return lines_fail(&r->lines, 1, r->lines.text, r->lines.length, err,
					  "a column %s", columns[c].name);
	}
	return 0;
}

/* The kind of an application is the program's name without its folder. */
static uint32_t kind_of(struct reader *r, const struct token *app)
{
	const char *from = memrchr(app->text, '/', app->length);
	size_t skip = from ? (size_t)(from + 1 - app->text) : 0;

	return reader_kind(r, app->text + skip, app->length - skip);
}

static int row_fields(struct reader *r, struct iocom_err *err)
{
	struct darshan *d = r->state;
	size_t n;
	int rc = quoted_split(&r->quoted, &r->lines, d->f, FIELDS_MAX + 1, &n, err);

	if (rc)
		return rc;
	if (!d->fields && (n == d->names || n == d->names + 1))
		d->fields = n;
	if (n != d->fields)
		return tokens_fail_count(&r->lines, d->f, n, d->fields ? d->fields : d->names,
					 "fields", err);
	return 0;
}

static int darshan_parse(struct reader *r, double *value, uint32_t *kind, struct iocom_err *err)
{
	static const struct token no_app = {"application", 11, 0};
	struct darshan *d = r->state;
	size_t shift;
	int rc = row_fields(r, err);

	if (rc)
		return rc;
	shift = d->fields - d->names;
	for (unsigned int c = 0; c < COLUMNS && !rc; c++) {
		const struct token *f = d->column[c] ? &d->f[d->column[c] - 1 + shift] : NULL;

		if (c == APP)
			*kind = kind_of(r, f && f->length ? f : &no_app);
		else if (!f || (columns[c].optional && !f->length))
			value[c] = 0;
		else
			rc = token_number(&r->lines, f, &columns[c].wanted, &value[c], err);
	}
	return rc;
}

static void darshan_fill(struct row *row, const double *v)
{
	double accesses = v[READS] + v[WRITES], bytes = v[BYTES_READ] + v[BYTES_WRITTEN];
	double io_s = (v[READ_TIME] + v[WRITE_TIME] + v[META_TIME]) / v[NPROCS];
	double cpu_s = fmax(v[WALLTIME] - io_s, CPU_LEAST * v[WALLTIME]);

	row->start_s = v[START];
	row->tasks = (uint32_t)v[NPROCS];
	row->cpu_ms = 1000 * cpu_s;
	row->requests = accesses > 0 ? fmax(1, round(accesses / v[NPROCS])) : 0;
	row->request_kb = accesses > 0 ? bytes / accesses / 1000 : 0;
	row->write_fraction = bytes > 0 ? v[BYTES_WRITTEN] / bytes : 0;
}

static int load_row(struct reader *r, struct iocom_err *err)
{
	struct darshan *d = r->state;
	double value[COLUMNS] = {0};
	struct row *row;
	int rc;

	if (array_reserve(d->rows, d->room, d->n + 1, 1024))
		return iocom_err_set(err, -ENOMEM, "%s: out of memory", source_name(r->source));
	row = &d->rows[d->n];
	*row = (struct row){.order = d->n};
	rc = darshan_parse(r, value, &row->kind, err);
	if (rc)
		return rc;
	darshan_fill(row, value);
	d->n++;
	return 0;
}

static int by_time(const void *a, const void *b)
{
	const struct row *x = a, *y = b;

	if (x->start_s != y->start_s)
		return x->start_s < y->start_s ? -1 : 1;
	return (x->order > y->order) - (x->order < y->order);
}

static int darshan_begin(struct reader *r, struct iocom_err *err)
{
	struct darshan *d = r->state;
	int rc;

	d->at = 0;
	if (d->loaded)
		return 0;
	rc = darshan_read_header(r, err);
	while (!rc) {
		rc = reader_line(r, '#', err);
		if (rc <= 0)
			break;
		rc = load_row(r, err);
	}
	if (rc)
		return rc;
	for (size_t i = 0; i < d->n;
	     i++) /* no summary names the machines: we take one per process */
		if (d->rows[i].tasks > r->own_nodes)
			r->own_nodes = d->rows[i].tasks;
	if (d->n)
		qsort(d->rows, d->n, sizeof(*d->rows), by_time);
	d->loaded = true;
	return 0;
}

static int darshan_next(struct reader *r, struct record *record, struct iocom_err *err)
{
	struct darshan *d = r->state;
	struct sim_job *job = &record->job;
	const struct row *row;

	(void)err;
	if (d->at == d->n)
		return 0;
	row = &d->rows[d->at++];
	if (!(row->cpu_ms > 0) && !(row->requests > 0))
		return 2;
	record->arrival_ms = row->start_s * 1000;
	record->holds = HOLDS_CPU | HOLDS_IO | HOLDS_REQUEST | HOLDS_REACCESS | HOLDS_WRITES;
	job->tasks = row->tasks;
	job->kind = row->kind;
	job->cpu_ms = row->cpu_ms;
	job->requests = row->requests;
	job->io_per_ms = row->cpu_ms > 0 ? row->requests / row->cpu_ms : 0;
	job->request_kb = row->request_kb;
	job->write_fraction = row->write_fraction;
	return 1;
}

static void darshan_describe(struct reader *r)
{
	(void)r;
}

static void darshan_end(struct reader *r)
{
	struct darshan *d = r->state;

	free(d->rows);
}

const struct format format_darshan = {
	.name = "Darshan summaries",
	.from_first = true,
	.state = sizeof(struct darshan),
	.begin = darshan_begin,
	.next = darshan_next,
	.describe = darshan_describe,
	.end = darshan_end,
};
