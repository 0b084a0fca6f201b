/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* What a run is judged by: a fixed list of numbers, by name. */
#ifndef SIM_EXPERIMENTS_MEASURE_H
#define SIM_EXPERIMENTS_MEASURE_H

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
	M_DELAY, /* s: turn-around less the time alone */
	M_CPU,	 /* utilisations, 0..1 */
	M_DISK,
	M_IO_SHARE, /* disk busy / (disk busy + CPU busy) */
	M_HIT_RATE,
	M_IMPLICIT,  /* page faults / disk requests */
	M_TASKS,     /* resident tasks a node, mean of the nodes' time averages */
	M_TASKS_MAX, /* the same of the fullest node */
	M_REMOTE,    /* tasks executed elsewhere than at home from the start */
	M_MIGRATIONS,
	M_TRANSFERS, /* both together */
	M_MOVED_MB,
	M_MAKESPAN, /* s */
	M_COMPLETED,
	M_UNFINISHED,
	M_EVENTS,
	M_W_IO, /* controller: means over the second half of the run, and how they swing */
	M_W_IO_SD,
	M_BUFFER, /* MB */
	M_BUFFER_SD,
	M_BUFFER_SETTLED, /* share of the run after which the buffer stays near its end */
	/* of a probe's study (probe/probe.h): shares of its executions */
	M_WIN,		/* the decision named the faster site */
	M_LOSS,		/* it did not */
	M_WIN_LOCAL,	/* of these: stayed */
	M_WIN_REMOTE,	/* of these: was sent */
	M_SENT,		/* decisions for the remote machine */
	M_WIN_IO,	/* right ones of those that the i/o field alone sent away */
	M_MEMORY_WRONG, /* the memory field decided, and wrongly */
	M_LOCAL_BETTER, /* the local site was the faster one */
	M_LOCAL_S,	/* mean response times, s */
	M_REMOTE_S,
	M_OVERHEAD_S,
	M_IMBALANCE, /* share of time: a machine idle, another with two jobs or more */
	M_KIND,	     /* mean slowdown of each kind of job, SIM_KINDS_MAX of them */
	M_COUNT = M_KIND + SIM_KINDS_MAX
};

/* "slowdown", "turnaround_s", ...; kinds are "slowdown_kind_0" ... */
const char *measure_name(enum measure m);
/* For an axis: "mean slowdown", "mean turn-around time (s)". */
const char *measure_title(enum measure m);
/* By name; M_COUNT when there is none. */
enum measure measure_parse(const char *name);
/* All of a run; NaN where the run cannot tell. */
void measure_all(const struct sim_result *r, double values[M_COUNT]);

#endif
