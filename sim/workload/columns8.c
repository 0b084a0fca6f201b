/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The eight columns of the papers' simulator (2002): one job per line, fields between blanks,
 * commas or semicolons.  Lines that begin with # or ; are comments; a first line that begins with
 * "arrival" is a header.  We know only the names of the columns; this reader takes their units to
 * be:
 *
 *   1 arrival time      s, in order
 *   2 arrival node      0 ..; the home
 *   3 duration          s of computation at the reference speed
 *   4 requested memory  MB
 *   5 I/O rate          disk accesses per ms of computation
 *   6 initial I/O node  where the initial data is: a node, or -1 for the home.  The simulator
 *                       has a job's data at its home (MODEL 0.1); the note of workload_info
 *                       counts jobs whose data is elsewhere
 *   7 I/O type          0 or r: reads, 1 or w: writes, 2 or rw: half and half
 *   8 initial data      MB
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "sim/workload/reader.h"

#define COLUMNS 8

struct columns8 {
	uint64_t elsewhere; /* jobs whose data is at another node than their home */
};

static int columns8_begin(struct reader *r, struct iocom_err *err)
{
	struct columns8 *c = r->state;

	(void)err;
	c->elsewhere = 0;
	return 0;
}

static size_t columns8_split(const struct lines *l, struct token *f)
{
	if (memchr(l->text, ',', l->length))
		return tokens_separated(l, ',', f, COLUMNS + 1);
	if (memchr(l->text, ';', l->length))
		return tokens_separated(l, ';', f, COLUMNS + 1);
	return tokens_blank(l, f, COLUMNS + 1);
}

/* Finds the next line that holds a job. */
static int columns8_job_line(struct reader *r, struct iocom_err *err)
{
	for (;;) {
		int rc = reader_line(r, '#', err);
		const char *p = r->lines.text;

		if (rc <= 0)
			return rc;
		p += strspn(p, " \t");
		if (*p != ';' && (r->record || strncasecmp(p, "arrival", 7)))
			return 1;
	}
}

static int write_fraction(struct reader *r, const struct token *f, double *fraction,
			  struct iocom_err *err)
{
	static const struct {
		const char *number, *word;
		double fraction;
	} types[] = {{"0", "r", 0}, {"1", "w", 1}, {"2", "rw", 0.5}};

	for (size_t i = 0; i < 3; i++) {
		if (token_is(f, types[i].number) || token_is(f, types[i].word)) {
			*fraction = types[i].fraction;
			return 0;
		}
	}
	return token_fail(&r->lines, f, err,
			  "the I/O type, 0 or r (reads), 1 or w (writes), 2 or rw");
}

static int data_node(struct reader *r, const struct token *f, uint32_t home, struct iocom_err *err)
{
	const struct wanted wanted = {"the initial I/O node (-1: the arrival node)", -1,
				      reader_hosts(r) - 1.0, true};
	struct columns8 *c = r->state;
	double node;
	int rc = token_number(&r->lines, f, &wanted, &node, err);

	c->elsewhere += !rc && node >= 0 && node != home;
	return rc;
}

static int columns8_next(struct reader *r, struct record *record, struct iocom_err *err)
{
	static const struct wanted wanted[] = {
		{"the arrival time in s", 0, READER_TIME_MAX, false},
		{"the duration in s", 0, READER_TIME_MAX, false},
		{"the requested memory in MB", 0, 1e9, false},
		{"the I/O rate per ms", 0, 1e6, false},
		{"the initial data in MB", 0, 1e12, false},
	};
	static const unsigned int column[] = {0, 2, 3, 4, 7};
	struct sim_job *job = &record->job;
	struct token f[COLUMNS + 1];
	double value[5];
	size_t n;
	int rc = columns8_job_line(r, err);

	if (rc <= 0)
		return rc;
	n = columns8_split(&r->lines, f);
	if (n != COLUMNS)
		return tokens_fail_count(&r->lines, f, n, COLUMNS, "columns", err);
	rc = token_number(&r->lines, &f[0], &wanted[0], &value[0], err);
	if (!rc)
		rc = reader_host(r, &f[1], "the arrival node", &job->home, err);
	for (unsigned int i = 1; i < 5 && !rc; i++)
		rc = token_number(&r->lines, &f[column[i]], &wanted[i], &value[i], err);
	if (!rc)
		rc = data_node(r, &f[5], job->home, err);
	if (!rc)
		rc = write_fraction(r, &f[6], &job->write_fraction, err);
	if (rc)
		return rc;
	record->arrival_ms = value[0] * 1000;
	record->column = f[0].column;
	record->holds =
		HOLDS_HOME | HOLDS_CPU | HOLDS_MEMORY | HOLDS_IO | HOLDS_INITIAL | HOLDS_WRITES;
	job->cpu_ms = value[1] * 1000;
	job->memory_mb = value[2];
	job->io_per_ms = value[3];
	job->initial_mb = value[4];
	job->kind = job->io_per_ms > 0;
	return 1;
}

static void columns8_describe(struct reader *r)
{
	static const char *const kinds[] = {"no I/O", "I/O"};
	const struct columns8 *c = r->state;

	reader_kinds(r, kinds, 2);
	if (c->elsewhere)
		snprintf(r->info.note, sizeof(r->info.note),
			 "in the trace the data of %llu jobs is at another node; here it is at "
			 "home",
			 (unsigned long long)c->elsewhere);
}

static void columns8_end(struct reader *r)
{
	(void)r;
}

const struct format format_columns8 = {
	.name = "eight-column trace",
	.state = sizeof(struct columns8),
	.begin = columns8_begin,
	.next = columns8_next,
	.describe = columns8_describe,
	.end = columns8_end,
};
