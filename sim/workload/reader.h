/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What the readers of trace formats share.  A format turns lines into records; the reader
 * (reader.c) checks their order, applies the options, generates what the trace does not hold and
 * numbers the jobs.
 *
 * Opening reads the whole content once: this finds and reports every error, counts the jobs and
 * hashes the content, but keeps nothing.  Each later pass reads the content again.
 */
#ifndef SIM_WORKLOAD_READER_H
#define SIM_WORKLOAD_READER_H

#include "sim/workload.h"
#include "sim/workload/homes.h"
#include "sim/workload/lines.h"
#include "sim/workload/quoted.h"

#define READER_NODES_MAX 1000000 /* host numbers are below this */
#define READER_TIME_MAX	 1e12	 /* s */
#define READER_COUNT_MAX 1e15	 /* bytes, requests */

/* The fields of struct sim_job that a record holds; the rest is generated. */
enum {
	HOLDS_HOME = 1 << 0,
	HOLDS_CPU = 1 << 1,
	HOLDS_MEMORY = 1 << 2,
	HOLDS_IO = 1 << 3,	/* io_per_ms and requests */
	HOLDS_REQUEST = 1 << 4, /* request_kb and request_sd_kb */
	HOLDS_REACCESS = 1 << 5,
	HOLDS_FAULTS = 1 << 6,
	HOLDS_INITIAL = 1 << 7,
	HOLDS_WRITES = 1 << 8,
	HOLDS_BITS = 9,
	HOLDS_ALL = (1 << HOLDS_BITS) - 1,
};

struct record {
	double arrival_ms;  /* arrival in the trace's own time */
	size_t column;	    /* column of the arrival, for messages; 0: not from the current line */
	uint32_t holds;	    /* HOLDS_... */
	struct sim_job job; /* home, tasks, kind, cpu_ms, ... if the record holds them */
};

struct reader;

struct format {
	const char *name; /* what its traces are called: "SWF job log" */
	bool from_first;  /* times count from the first arrival, not from the trace's zero */
	size_t state;	  /* bytes of reader.state, zeroed once */
	/*
	 * Reads headers at the start of the content, before every pass.  Returns 0 or negative
	 * errno.
	 */
	int (*begin)(struct reader *r, struct iocom_err *err);
	/* Returns 1: a record; 2: the input was no job; 0: the end; negative errno. */
	int (*next)(struct reader *r, struct record *record, struct iocom_err *err);
	/* After the first pass: fills kinds, source and note of reader.info. */
	void (*describe)(struct reader *r);
	void (*end)(struct reader *r);
};

struct reader {
	const struct format *format;
	struct workload_options options;
	struct source *source;
	struct lines lines;
	struct quoted quoted;
	void *state;
	struct workload_info info;
	char synthetic[200];
	struct homes homes;
	uint32_t own_nodes;	 /* number of nodes that a trace without hosts states, or 0 */
	double own_cores;	 /* cores of each node, or 0 */
	uint32_t own_processors; /* of all nodes, or 0 */
	bool scanning;		 /* first pass: nothing is generated */
	/* the state of this pass */
	bool first_known;
	double first_ms;  /* the first arrival */
	double last_ms;	  /* the latest arrival */
	uint64_t record;  /* records so far; the number selects a job's random numbers */
	uint64_t emitted; /* jobs so far */
	uint64_t left[WORKLOAD_LEFT_COUNT]; /* records that are not used, by reason */
	uint32_t missing;		    /* HOLDS_... that some job lacks */
	uint32_t lacking;		    /* HOLDS_... that every job lacks */
	uint32_t homes_seen;		    /* 1 + the largest home so far */
};

extern const struct format format_columns8, format_csd, format_swf, format_darshan, format_block,
	format_recording;

/*
 * Reads the next line that is not blank and does not begin with COMMENT (0: there are no
 * comments).
 */
int reader_line(struct reader *r, char comment, struct iocom_err *err);
/* Splits the line at commas; -EINVAL unless it has COUNT fields. */
int reader_fields(struct reader *r, struct token *f, size_t count, struct iocom_err *err);
/* 1 + the largest host allowed: the options' nodes or READER_NODES_MAX. */
uint32_t reader_hosts(const struct reader *r);
/* Parses a host's number in F and checks it. */
int reader_host(struct reader *r, const struct token *f, const char *what, uint32_t *home,
		struct iocom_err *err);
/* The name of the input without its directory. */
const char *reader_base_name(const struct reader *r);
/*
 * Returns the kind of that name; kinds are numbered in order of first appearance.  Beyond
 * SIM_KINDS_MAX names the last kind takes all others and is called "others".
 */
uint32_t reader_kind(struct reader *r, const char *name, size_t length);
void reader_kinds(struct reader *r, const char *const *names, uint32_t n);

#endif
