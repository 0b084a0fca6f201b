/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What became of the jobs of a replayed log, as sums by week of arrival, by user and by class.
 *
 * The weeks give intervals: a block bootstrap draws as many weeks as the log has, with
 * replacement, and takes the mean over their jobs; the 95 % interval holds the middle of
 * OUTCOME_DRAWS such means.  Jobs of one week depend on each other (a long queue lasts for days),
 * so single jobs would give intervals that are far too narrow.  All policies are drawn the same
 * weeks, so that their ratio has an interval of its own.
 *
 * Bounded slowdown = max(1, turn-around / max(time alone, 10 s)): without the bound, jobs that fail
 * within a second decide the mean.  Classes: narrow jobs use at most 8 processors, short ones run
 * at most 1 h.
 */
#ifndef SIM_EXPERIMENTS_OUTCOME_H
#define SIM_EXPERIMENTS_OUTCOME_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/experiments/measure.h"
#include "sim/experiments/stats.h"

#define OUTCOME_TAU_MS	   10000.0
#define OUTCOME_NARROW	   8	     /* processors */
#define OUTCOME_SHORT_MS   3600000.0 /* 1 h */
#define OUTCOME_WEEK_MS	   604800000.0
#define OUTCOME_WEEKS_MIN  8 /* fewer weeks give no interval */
#define OUTCOME_DRAWS	   2000
#define OUTCOME_USERS_MOST 1000000u /* further users are counted together with unknown ones */

enum outcome_sum {
	OUTCOME_JOBS,
	OUTCOME_SLOWDOWN,
	OUTCOME_BOUNDED,
	OUTCOME_WAIT_S,
	OUTCOME_TURNAROUND_S,
	OUTCOME_SUMS
};

enum outcome_group { OUTCOME_WEEKS, OUTCOME_USERS, OUTCOME_CLASSES, OUTCOME_GROUPS };

enum outcome_class { CLASS_SHORT_NARROW, CLASS_SHORT_WIDE, CLASS_LONG_NARROW, CLASS_LONG_WIDE };

struct outcome_row {
	double key; /* week, user (-1: unknown) or enum outcome_class */
	double sums[OUTCOME_SUMS];
};

struct outcome {
	struct outcome_row *rows[OUTCOME_GROUPS]; /* owned, by key */
	uint32_t n[OUTCOME_GROUPS], room[OUTCOME_GROUPS];
};

/* One job that has ended. */
struct outcome_job {
	double arrival_ms, start_ms, end_ms, alone_ms;
	uint32_t tasks;
	double user; /* -1: unknown */
};

const char *outcome_class_name(enum outcome_class c); /* "short narrow" */
const char *outcome_group_name(enum outcome_group g); /* "week", "user", "class" */
/* Return 0, -ENOMEM. */
int outcome_add(struct outcome *o, const struct outcome_job *job);
int outcome_copy(struct outcome *to, const struct outcome *from);
/* Finds or makes the row of KEY; NULL: no memory. */
struct outcome_row *outcome_row(struct outcome *o, enum outcome_group g, double key);
void outcome_free(struct outcome *o);

/* The sum that measure M is the mean of; OUTCOME_SUMS: none. */
enum outcome_sum outcome_sum_of(enum measure m);
/* Mean of WHAT over all jobs; NaN without jobs. */
double outcome_mean(const struct outcome *o, enum outcome_sum what);
/* Whether there are weeks enough for intervals. */
bool outcome_has_interval(const struct outcome *o);
/* Mean and interval of WHAT; n is the number of weeks. */
struct interval outcome_interval(const struct outcome *o, enum outcome_sum what);
/* Interval of the ratio of the means, BASE / NEW; n = 0: they have other weeks, or too few. */
struct interval outcome_factor(const struct outcome *base, const struct outcome *new,
			       enum outcome_sum what);

#endif
