/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Standard Workload Format: 18 columns between blanks; lines that begin with ';' are header or
 * comment; -1 is unknown.  The columns are read as
 *
 *   2 submit s           arrival, counted from the first job (logs begin at any time)
 *   5 procs used, else 8 requested          tasks
 *   6 average CPU s per proc, if above 0, else 4 run s: computation of a task
 *   7 memory used KB per proc, else 10 requested, if above 0: memory; else generated
 *
 * With the option `batch` the run time (column 4) is the computation of each task, as in a batch
 * system, which gives processors to one job at a time.  Columns 3 (wait s), 4 and 9 (requested s)
 * and 12 (user) go along with the job for the batch queue and for what was recorded.
 *
 * With the option `requested` the requested values come first: 8 procs, 9 time, 10 memory.  A run
 * time of 0 means less than a second and counts as half a second.  Jobs without run time (-1) or
 * procs never ran: they are left out and counted.  The log does not say at which machine a user
 * sat, so homes are spread over MaxNodes of the header (else MaxProcs) or the option `nodes`.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/workload/reader.h"

#define COLUMNS 18
#define NO_TIME 0.5 /* seconds that a run time of 0 stands for */

enum {
	SUBMIT = 1,
	WAIT,
	RUN,
	PROCS,
	CPU,
	MEMORY,
	PROCS_ASKED,
	TIME_ASKED,
	MEMORY_ASKED,
	USER = 11
};

struct swf {
	uint32_t nodes, procs;	      /* values from the header; 0: not given */
	uint64_t no_request, no_wait; /* jobs of this pass without these times */
};

static int swf_begin(struct reader *r, struct iocom_err *err)
{
	struct swf *s = r->state;

	(void)err;
	s->no_request = s->no_wait = 0;
	return 0;
}

/* Parses a header line like "; MaxNodes: 70  (dual)". */
static void swf_header(struct reader *r, const char *p)
{
	struct swf *s = r->state;
	uint32_t *to = NULL;

	p += strspn(p, "; \t");
	if (!strncmp(p, "MaxNodes:", 9))
		to = &s->nodes;
	else if (!strncmp(p, "MaxProcs:", 9))
		to = &s->procs;
	if (to) {
		long long n = strtoll(p + 9, NULL, 10);

		/* -1 is unknown in this format; what no machine has is taken as unknown, too. */
		*to = n > 0 && n <= READER_NODES_MAX ? (uint32_t)n : 0;
		r->own_nodes = s->nodes ? s->nodes : s->procs;
		r->own_processors = s->procs ? s->procs : s->nodes;
		r->own_cores = s->nodes && s->procs >= s->nodes ? (double)(s->procs / s->nodes) : 0;
	}
}

static int swf_job_line(struct reader *r, struct iocom_err *err)
{
	for (;;) {
		int rc = reader_line(r, 0, err);
		const char *p = r->lines.text;

		if (rc <= 0)
			return rc;
		p += strspn(p, " \t");
		if (*p != ';')
			return 1;
		swf_header(r, p);
	}
}

static int swf_parse(struct reader *r, struct token *f, double *value, struct iocom_err *err)
{
	static const struct wanted wanted[COLUMNS] = {
		{"the job's number (column 1)", -1, 1e15, false},
		{"the submit time in s (column 2)", 0, READER_TIME_MAX, false},
		{"the wait time in s (column 3)", -1, READER_TIME_MAX, false},
		{"the run time in s (column 4)", -1, READER_TIME_MAX, false},
		{"the number of processors (column 5)", -1, 1e6, true},
		{"the average CPU time in s (column 6)", -1, READER_TIME_MAX, false},
		{"the used memory in KB (column 7)", -1, 1e15, false},
		{"the requested processors (column 8)", -1, 1e6, true},
		{"the requested time in s (column 9)", -1, READER_TIME_MAX, false},
		{"the requested memory in KB (column 10)", -1, 1e15, false},
	};
	static const struct wanted rest = {"a column (-1: unknown)", -1e15, 1e15, false};
	size_t n = tokens_blank(&r->lines, f, COLUMNS + 1);
	int rc = 0;

	if (n != COLUMNS)
		return tokens_fail_count(&r->lines, f, n, COLUMNS, "columns", err);
	for (unsigned int i = 0; i < COLUMNS && !rc; i++)
		rc = token_number(&r->lines, &f[i], wanted[i].name ? &wanted[i] : &rest, &value[i],
				  err);
	return rc;
}

/* Returns the first of the two that is known (above 0), else 0. */
static double known(double first, double second)
{
	return first > 0 ? first : second > 0 ? second : 0;
}

static void swf_batch(const double *v, struct sim_batch *batch)
{
	*batch = (struct sim_batch){
		.requested_ms = 1000 * known(v[TIME_ASKED], 0),
		.wait_ms = 1000 * v[WAIT],
		.run_ms = 1000 * (v[RUN] > 0 ? v[RUN] : NO_TIME),
		.user = v[USER] >= 0 && v[USER] < UINT32_MAX ? (uint32_t)v[USER] : UINT32_MAX,
	};
}

static int swf_next(struct reader *r, struct record *record, struct iocom_err *err)
{
	struct sim_job *job = &record->job;
	struct token f[COLUMNS + 1];
	double v[COLUMNS], procs, seconds, memory_kb;
	bool asked = r->options.requested;
	struct swf *s = r->state;
	int rc = swf_job_line(r, err);

	if (rc <= 0)
		return rc;
	rc = swf_parse(r, f, v, err);
	if (rc)
		return rc;
	record->arrival_ms = v[SUBMIT] * 1000;
	record->column = f[SUBMIT].column;
	procs = asked ? known(v[PROCS_ASKED], v[PROCS]) : known(v[PROCS], v[PROCS_ASKED]);
	seconds = r->options.batch ? v[RUN] : known(v[CPU], v[RUN]);
	if (asked && !r->options.batch && v[TIME_ASKED] > 0)
		seconds = v[TIME_ASKED];
	memory_kb = asked ? known(v[MEMORY_ASKED], v[MEMORY]) : known(v[MEMORY], v[MEMORY_ASKED]);
	if (procs < 1 || v[RUN] < 0)
		return 2;
	record->holds = HOLDS_CPU | (memory_kb > 0 ? HOLDS_MEMORY : 0);
	job->tasks = (uint32_t)procs;
	job->kind = job->tasks > 1;
	job->cpu_ms = 1000 * (seconds > 0 ? seconds : NO_TIME);
	job->memory_mb = memory_kb / 1000;
	job->is_batch = true;
	swf_batch(v, &job->batch);
	s->no_request += !(job->batch.requested_ms > 0);
	s->no_wait += job->batch.wait_ms < 0;
	return 1;
}

static void swf_describe(struct reader *r)
{
	static const char *const kinds[] = {"serial", "parallel"};

	const struct swf *s = r->state;
	char *note = r->info.note;
	size_t size = sizeof(r->info.note);

	reader_kinds(r, kinds, 2);
	r->info.batch = true;
	if (r->options.batch && s->no_request)
		snprintf(note, size, "%llu records request no time: their run time stands for it",
			 (unsigned long long)s->no_request);
	if (r->options.batch && s->no_wait)
		snprintf(note + strlen(note), size - strlen(note), "%s%llu state no wait",
			 *note ? "; " : "", (unsigned long long)s->no_wait);
	if (r->options.requested)
		snprintf(note + strlen(note), size - strlen(note),
			 "%sprocessors%s and memory as requested, not as used", *note ? "; " : "",
			 r->options.batch ? "" : ", time");
}

static void swf_end(struct reader *r)
{
	(void)r;
}

const struct format format_swf = {
	.name = "SWF job log",
	.from_first = true,
	.state = sizeof(struct swf),
	.begin = swf_begin,
	.next = swf_next,
	.describe = swf_describe,
	.end = swf_end,
};
