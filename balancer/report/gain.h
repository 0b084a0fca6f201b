/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What balancing has gained: how long jobs that left home took, beside what they would have taken
 * at home.  Pure: no clock, file or output, and the same jobs give the same numbers.
 *
 * The second number was never measured, only expected.  How wrong such expectations are is known
 * from the jobs that stayed at home: error = measured / expected, at most 10.  For a job that left,
 *
 *   at home = min(expected at home x error, 20 x measured);  gain = at home - measured
 *
 * where the error is any of those of its class (at least 10 of them), else of all classes, each
 * with a weight: the expected time of its job, since the sum of a week is that of the long jobs.
 * The mean error is then the sum of measured times over that of expected ones.
 *
 * The gain of several jobs is a sum; its interval is a bootstrap: 1,000 times draw errors by
 * weight, as many as their effective number (sum of weights)^2 / sum of squares, then as many jobs
 * as there are, and for each of them one of the drawn errors.  The 2.5th and 97.5th percentiles of
 * the sums are its ends.
 *
 * It is an estimate of something that did not happen.  Had no job left, home would have had more
 * load than was expected for one job at a time, so the gain is rather larger.  Both bounds, 10 and
 * 20, only make it smaller.
 */
#ifndef IOCOM_GAIN_H
#define IOCOM_GAIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GAIN_JOBS      10000 /* more are not taken */
#define GAIN_ROWS      20    /* of a table; the last one may stand for several names */
#define GAIN_ROUNDS    1000  /* of the bootstrap */
#define GAIN_LEAST     5     /* with fewer jobs that left nothing can be told */
#define GAIN_STAYED    10    /* with fewer that stayed neither */
#define GAIN_EFFECTIVE 4    /* nor if their effective number is smaller: one outweighs the others */
#define GAIN_ERROR     10.0 /* a larger error counts as this one */
#define GAIN_SLOWDOWN  20.0 /* no job is taken to be slower at home than 20 times */

/* A job that has ended.  Texts are borrowed and not NULL; they stay as long as the report. */
struct gain_job {
	const char *policy, *node, *user, *class_name;
	double wall_ms, expected_ms, expected_home_ms; /* an expected time of 0 is not known */
	double slowdown;			       /* 0: not known */
	bool known;				       /* something was known of its needs */
	bool balanced;				       /* iocom chose the node */
	bool moved;				       /* it left home */
	bool well;				       /* it ended by itself, with status 0 */
};

/* Which jobs the report is about; errors are those of all jobs.  NULL: any. */
struct gain_filter {
	const char *policy, *node; /* upper and lower case of a policy are alike */
};

enum gain_verdict {
	GAIN_TOLD,    /* the interval does not contain 0 */
	GAIN_UNSURE,  /* it does */
	GAIN_FEW,     /* fewer than GAIN_LEAST jobs that left can be judged */
	GAIN_NO_SCALE /* too few jobs stayed, so nobody knows the errors */
};

struct gain_row {
	const char *name;    /* NULL: the jobs of all names that have no row */
	const char *user;    /* the class's */
	uint32_t jobs, left; /* all; those that iocom sent away */
	double time_ms;	     /* what all took */
	uint32_t judged;     /* those that left and can be judged; the rest is about them */
	double took_ms;
	enum gain_verdict verdict;
	double home_ms, gain_ms, low_ms, high_ms; /* GAIN_TOLD, GAIN_UNSURE */
};

enum gain_by { GAIN_TOTAL, GAIN_POLICY, GAIN_NODE, GAIN_USER, GAIN_CLASS, GAIN_TABLES };

struct gain_table {
	struct gain_row rows[GAIN_ROWS]; /* by time_ms, the longest first */
	size_t nrows, others;		 /* OTHERS: how many names the last row stands for */
};

/* Measured over expected times, each at the node where the job ran. */
struct gain_predictions {
	uint32_t jobs;			   /* 0: the rest is 0 */
	double low, median, high;	   /* 5th, 50th, 95th percentile */
	double within_quarter, within_two; /* shares: from 1/1.25 to 1.25, from 1/2 to 2 */
};

/* How many times longer jobs took than alone; not of those that waited for something else. */
struct gain_slowdowns {
	uint32_t jobs;		   /* 0: the rest is 0 */
	double mean, median, high; /* high: 95th percentile */
};

/* Why jobs that were told to the report are not judged. */
enum gain_left_out {
	GAIN_NAMED,   /* iocom did not choose the node */
	GAIN_FAILED,  /* it did not end well, so its time says nothing */
	GAIN_UNKNOWN, /* nothing was known of its needs, so nothing was expected */
	GAIN_ABSURD,  /* a time that cannot be: negative, not a number, or without end */
	GAIN_LEFT_OUT
};

struct gain_report {
	struct gain_table by[GAIN_TABLES]; /* GAIN_TOTAL has one row, also without jobs */
	struct gain_predictions predictions;
	struct gain_slowdowns slowdowns;
	uint32_t left_out[GAIN_LEFT_OUT];
	uint32_t stayed;      /* jobs that stayed at home and show the errors */
	double stayed_median; /* of their measured over expected times; 0: there are none */
};

/* Judges the first GAIN_JOBS of N JOBS.  Returns 0 or -ENOMEM. */
int gain_compute(const struct gain_job *jobs, size_t n, const struct gain_filter *filter,
		 struct gain_report *report);

#endif
