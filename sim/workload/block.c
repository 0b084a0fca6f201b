/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * A block trace as CSV with the header `version,time,op,size,lbn`: time in units of the option
 * time_unit_s, in order; op is a SCSI opcode in hex (28 read, 2a write, and their 6, 12 and 16
 * byte forms); size in bytes; lbn is the block number.
 *
 * A disk trace has no jobs, so a job is a burst: requests that follow the previous one within the
 * option burst_gap_ms (0: with the same time stamp; negative: every request is a job).  It arrives
 * with its first request and issues the same number one after another, with the burst's mean size
 * and standard deviation; written bytes make its write fraction.  The trace does not show what a
 * program computes between two requests: we assume 0.1 ms each.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "sim/workload/reader.h"

#define COLUMNS	       5
#define CPU_REQUEST_MS 0.1

struct request {
	double time_s, kb;
	bool write;
	size_t column;
};

struct block {
	bool held; /* the first request of the next burst is read already */
	struct request first;
	double last_s;
};

static int block_begin(struct reader *r, struct iocom_err *err)
{
	struct block *b = r->state;
	struct token f[COLUMNS + 1];
	int rc = reader_line(r, '#', err);

	/* The line is the header, by which the format was recognised. */
	if (rc > 0)
		rc = reader_fields(r, f, COLUMNS, err);
	b->held = false;
	b->last_s = 0;
	return rc;
}

static int parse_op(struct reader *r, const struct token *f, bool *write, struct iocom_err *err)
{
	static const struct {
		const char *code;
		bool write;
	} ops[] = {{"28", false}, {"2a", true},	 {"08", false}, {"0a", true}, {"a8", false},
		   {"aa", true},  {"88", false}, {"8a", true},	{"2A", true}, {"0A", true},
		   {"A8", false}, {"AA", true},	 {"8A", true}};

	for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); i++) {
		if (token_is(f, ops[i].code)) {
			*write = ops[i].write;
			return 0;
		}
	}
	return token_fail(&r->lines, f, err,
			  "a SCSI opcode in hex (28 or 2a, 08 or 0a, 88 or 8a, a8 or aa)");
}

/* Returns 1: a request was read; 0: the end. */
static int read_request(struct reader *r, struct request *q, struct iocom_err *err)
{
	static const struct wanted version = {"the version", 1, 1, true};
	static const struct wanted time = {"the time", 0, 1e18, false};
	static const struct wanted size = {"the size in bytes", 1, READER_COUNT_MAX, true};
	static const struct wanted lbn = {"the block number", 0, 1e18, true};
	struct block *b = r->state;
	struct token f[COLUMNS + 1];
	double value;
	int rc = reader_line(r, '#', err);

	if (rc <= 0)
		return rc;
	rc = reader_fields(r, f, COLUMNS, err);
	if (!rc)
		rc = token_number(&r->lines, &f[0], &version, &value, err);
	if (!rc)
		rc = token_number(&r->lines, &f[1], &time, &q->time_s, err);
	if (!rc)
		rc = parse_op(r, &f[2], &q->write, err);
	if (!rc)
		rc = token_number(&r->lines, &f[3], &size, &q->kb, err);
	if (!rc)
		rc = token_number(&r->lines, &f[4], &lbn, &value, err);
	if (rc)
		return rc;
	q->time_s *= r->options.time_unit_s;
	q->kb /= 1000;
	q->column = f[1].column;
	if (q->time_s < b->last_s || q->time_s > READER_TIME_MAX)
		return token_fail(
			&r->lines, &f[1], err,
			"a time not before that of the row above (%.10g s) and at most %g s",
			b->last_s, READER_TIME_MAX);
	b->last_s = q->time_s;
	return 1;
}

/*
 * Sums over a burst.  off and off2 sum the differences to the first size, which is near
 * the mean.
 */
struct burst {
	double n, kb, written_kb, off, off2, first_kb;
};

static void block_add(struct burst *s, const struct request *q)
{
	double off;

	if (s->n == 0)
		s->first_kb = q->kb;
	off = q->kb - s->first_kb;
	s->n++;
	s->kb += q->kb;
	s->written_kb += q->write ? q->kb : 0;
	s->off += off;
	s->off2 += off * off;
}

static void block_fill(struct record *record, const struct burst *s, double start_s, size_t column)
{
	struct sim_job *job = &record->job;
	double mean_off = s->off / s->n;

	record->arrival_ms = start_s * 1000;
	record->column = column;
	record->holds = HOLDS_IO | HOLDS_REQUEST | HOLDS_REACCESS | HOLDS_WRITES;
	job->cpu_ms = CPU_REQUEST_MS * s->n;
	job->requests = s->n;
	job->io_per_ms = 1 / CPU_REQUEST_MS;
	job->request_kb = s->kb / s->n;
	job->request_sd_kb = sqrt(fmax(0, s->off2 / s->n - mean_off * mean_off));
	job->write_fraction = s->written_kb / s->kb;
	job->kind = job->write_fraction > 0.5;
}

static int block_next(struct reader *r, struct record *record, struct iocom_err *err)
{
	double gap_s = r->options.burst_gap_ms / 1000, previous_s;
	struct block *b = r->state;
	struct burst sums = {0};
	struct request q;
	double start_s;
	size_t column;
	int rc = 1;

	if (!b->held)
		rc = read_request(r, &b->first, err);
	if (rc <= 0)
		return rc;
	start_s = previous_s = b->first.time_s;
	column = b->first.column;
	block_add(&sums, &b->first);
	b->held = false;
	while (gap_s >= 0) {
		rc = read_request(r, &q, err);
		if (rc < 0)
			return rc;
		if (!rc)
			break;
		if (q.time_s - previous_s > gap_s) {
			b->first = q;
			b->held = true;
			break;
		}
		previous_s = q.time_s;
		block_add(&sums, &q);
	}
	block_fill(record, &sums, start_s, column);
	return 1;
}

static void block_describe(struct reader *r)
{
	static const char *const kinds[] = {"reads", "writes"};

	reader_kinds(r, kinds, 2);
	if (r->options.burst_gap_ms < 0)
		snprintf(r->info.note, sizeof(r->info.note), "each request is a job");
	else
		snprintf(r->info.note, sizeof(r->info.note),
			 "each burst of requests is a job: they are at most %g ms apart and each "
			 "follows 0.1 ms of computation",
			 r->options.burst_gap_ms);
}

static void block_end(struct reader *r)
{
	(void)r;
}

const struct format format_block = {
	.name = "block trace",
	.from_first = true,
	.state = sizeof(struct block),
	.begin = block_begin,
	.next = block_next,
	.describe = block_describe,
	.end = block_end,
};
