/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* The measures of a run: a fixed list of numbers with names. */
#ifndef SIM_EXPERIMENTS_MEASURE_H
#define SIM_EXPERIMENTS_MEASURE_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/job.h"
#include "sim/result.h"

enum measure {
	M_SLOWDOWN, /* mean over all jobs (MODEL 1.1) */
	M_SLOWDOWN_P50,
	M_SLOWDOWN_P95,
	M_SLOWDOWN_P99,
	M_TURNAROUND, /* s */
	M_TURNAROUND_P95,
	M_DELAY, /* s: turn-around minus the time alone */
	M_CPU,	 /* utilisations, 0..1 */
	M_DISK,
	M_IO_SHARE, /* disk busy / (disk busy + CPU busy) */
	M_HIT_RATE,
	M_IMPLICIT,  /* page faults / disk requests */
	M_TASKS,     /* resident tasks per node: mean of the nodes' time averages */
	M_TASKS_MAX, /* the same on the fullest node */
	M_REMOTE,    /* tasks that started on another node than their home */
	M_MIGRATIONS,
	M_TRANSFERS, /* remote executions and migrations */
	M_MOVED_MB,
	M_MAKESPAN, /* s */
	M_COMPLETED,
	M_UNFINISHED,
	M_EVENTS,
	M_W_IO, /* controller: means over the second half of the run, and standard deviations */
	M_W_IO_SD,
	M_BUFFER, /* MB */
	M_BUFFER_SD,
	M_BUFFER_SETTLED, /* share of the run after which the buffer stays near its final size */
	/* for a probe's study (probe/probe.h): shares of its executions */
	M_WIN,		/* the decision chose the faster site */
	M_LOSS,		/* the decision chose the slower site */
	M_WIN_LOCAL,	/* wins where the decision was to stay */
	M_WIN_REMOTE,	/* wins where the decision was to send */
	M_SENT,		/* the decision was to send */
	M_WIN_IO,	/* share of right decisions where only the i/o field was a reason to send */
	M_MEMORY_WRONG, /* the memory field decided, and the decision was wrong */
	M_LOCAL_BETTER, /* the local site was faster */
	M_LOCAL_S,	/* mean response times, s */
	M_REMOTE_S,
	M_OVERHEAD_S,
	M_IMBALANCE, /* share of time: one machine idle, another with two or more jobs */
	M_BOUNDED,   /* mean bounded slowdown of a replayed log (outcome.h) */
	M_WAIT,	     /* mean time from submission to the start, s, likewise */
	M_KIND,	     /* mean slowdown of each kind of job; SIM_KINDS_MAX measures */
	M_COUNT = M_KIND + SIM_KINDS_MAX
};

/* "slowdown", "turnaround_s", ...; those of kinds are "slowdown_kind_0" ... */
const char *measure_name(enum measure m);
/* For an axis: "mean slowdown", "mean turn-around time (s)". */
const char *measure_title(enum measure m);
/* A share of a whole, 0 to 1. */
bool measure_is_share(enum measure m);
/* Finds a measure by name; M_COUNT: unknown. */
enum measure measure_parse(const char *name);
/* Computes all measures of a run; NaN where the run has no value. */
void measure_all(const struct sim_result *r, double values[M_COUNT]);

#endif
