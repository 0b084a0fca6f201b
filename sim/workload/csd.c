/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The process trace of Harchol-Balter and Downey as CSV with the header
 * `hour,min,unk,sec,prog`.  Its names do not match what the columns hold:
 *
 *   hour   minute, counted through all runs of 60 minutes: the run is hour / 60
 *   min    second in that minute, 0 .. 59.9
 *   unk    host, 0 .. 5
 *   sec    CPU seconds; .005 stands for the smallest
 *   prog   the program's name
 *
 * A workload is one run; its arrivals are (hour % 60) * 60 + min.  Rows are in order of time
 * inside a run; the runs may be in any order.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "sim/workload/reader.h"

#define COLUMNS	    5
#define RUN_MINUTES 60
#define RUNS_MAX    WORKLOAD_RUNS_MAX /* most runs that a message lists */

struct csd {
	int32_t run;	 /* the run that becomes the workload; -1: unknown yet */
	int32_t current; /* the run of the previous row; -1: none */
	double last_s;
	uint32_t runs; /* runs passed so far */
	int32_t seen[RUNS_MAX];
};

static int csd_begin(struct reader *r, struct iocom_err *err)
{
	struct csd *c = r->state;
	struct token f[COLUMNS + 1];
	int rc = reader_line(r, '#', err);

	/* The line is the header, by which the format was recognised. */
	if (rc > 0)
		rc = reader_fields(r, f, COLUMNS, err);
	if (r->scanning)
		c->run = r->options.run;
	c->current = -1;
	c->runs = 0;
	return rc;
}

struct row {
	int32_t run;
	double second;
	uint32_t host;
	double cpu_s;
	size_t column;
};

static int csd_parse(struct reader *r, struct row *row, struct iocom_err *err)
{
	static const struct wanted minute = {"the minute (`hour`)", 0, 60e6, true};
	static const struct wanted second = {"the second in the minute (`min`)", 0, 59.9999999,
					     false};
	static const struct wanted cpu = {"CPU seconds (`sec`)", 0, READER_TIME_MAX, false};
	struct token f[COLUMNS + 1];
	double m, s;
	int rc = reader_fields(r, f, COLUMNS, err);

	if (!rc)
		rc = token_number(&r->lines, &f[0], &minute, &m, err);
	if (!rc)
		rc = token_number(&r->lines, &f[1], &second, &s, err);
	if (!rc)
		rc = reader_host(r, &f[2], "the host (`unk`)", &row->host, err);
	if (!rc)
		rc = token_number(&r->lines, &f[3], &cpu, &row->cpu_s, err);
	if (!rc && !f[4].length)
		rc = token_fail(&r->lines, &f[4], err, "the program's name (`prog`)");
	if (rc)
		return rc;
	row->run = (int32_t)m / RUN_MINUTES;
	row->second = (int32_t)m % RUN_MINUTES * 60 + s;
	row->column = f[1].column;
	return 0;
}

/* Checks the order of every run, also of runs that are not part of the workload. */
static int csd_check_order(struct reader *r, const struct row *row, struct iocom_err *err)
{
	struct csd *c = r->state;
	char found[32];

	if (row->run != c->current) {
		if (c->runs < RUNS_MAX)
			c->seen[c->runs] = row->run;
		c->runs++;
		c->current = row->run;
		c->last_s = row->second;
	}
	if (row->second < c->last_s) {
		snprintf(found, sizeof(found), "%.10g", row->second);
		return lines_fail(
			&r->lines, row->column, found, strlen(found), err,
			"an arrival not before that of the row above, second %.10g of run %d",
			c->last_s, row->run);
	}
	c->last_s = row->second;
	return 0;
}

static int no_such_run(const struct reader *r, struct iocom_err *err)
{
	const struct csd *c = r->state;
	char names[RUNS_MAX * 12] = "";
	size_t at = 0;

	for (uint32_t i = 0; i < c->runs && i < RUNS_MAX; i++)
		at += (size_t)snprintf(names + at, sizeof(names) - at, "%s%d", i ? ", " : "",
				       c->seen[i]);
	return iocom_err_set(err, -EINVAL, "%s: the trace has no run %d; it has: %s%s",
			     source_name(r->source), c->run, at ? names : "none",
			     c->runs > RUNS_MAX ? " and more" : "");
}

static int csd_next(struct reader *r, struct record *record, struct iocom_err *err)
{
	struct csd *c = r->state;
	struct row row;
	int rc;

	do {
		rc = reader_line(r, '#', err);
		if (rc < 0)
			return rc;
		if (!rc)
			return c->run >= 0 && !r->record ? no_such_run(r, err) : 0;
		rc = csd_parse(r, &row, err);
		if (!rc)
			rc = csd_check_order(r, &row, err);
		if (rc)
			return rc;
		if (c->run < 0)
			c->run = row.run;
		r->left[WORKLOAD_OTHER_RUN] += row.run != c->run;
	} while (row.run != c->run);
	record->arrival_ms = row.second * 1000;
	record->column = row.column;
	record->holds = HOLDS_HOME | HOLDS_CPU;
	record->job.home = row.host;
	record->job.cpu_ms = row.cpu_s * 1000;
	return 1;
}

static void csd_describe(struct reader *r)
{
	static const char *const kinds[] = {"process"};
	const struct csd *c = r->state;

	reader_kinds(r, kinds, 1);
	r->info.runs = c->runs < RUNS_MAX ? c->runs : RUNS_MAX;
	memcpy(r->info.run, c->seen, sizeof(r->info.run));
	snprintf(r->info.source, sizeof(r->info.source), "CSD process trace %.200s, run %d",
		 reader_base_name(r), c->run);
	if (c->runs > 1)
		snprintf(r->info.note, sizeof(r->info.note), "one of %u runs (load.run)", c->runs);
}

static void csd_end(struct reader *r)
{
	(void)r;
}

const struct format format_csd = {
	.name = "CSD process trace",
	.state = sizeof(struct csd),
	.begin = csd_begin,
	.next = csd_next,
	.describe = csd_describe,
	.end = csd_end,
};
