/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Which jobs have series of their own: at most so many, whatever runs.
 *
 * A counter that was shown must never go down, and no byte may be in two
 * series.  So each name has counters of its own, fed by what its cgroups did
 * since the reading before; what is done without a place counts for `other`,
 * and stays there.  A name keeps its place until another one needs it and it
 * has done nothing for METRICS_JOBS_IDLE_NS.  When it comes back its counters go
 * on from where they were: the last METRICS_JOBS_KEPT times the maximum of
 * names that lost their place are remembered.
 */
#ifndef IOCOM_AGENT_METRICS_JOBS_H
#define IOCOM_AGENT_METRICS_JOBS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "iocom/load.h"
#include "agent/metrics/metrics_text.h"

#define METRICS_JOBS_IDLE_NS (600ull * 1000000000ull)
#define METRICS_JOBS_KEPT    4

struct metrics_job {
	char name[METRICS_LABEL_MAX]; /* UTF-8 */
	struct iocom_load load;	      /* since it was first seen; never goes down */
	uint32_t tasks;
	uint64_t rss_bytes;
};

struct metrics_jobs;

/* MAX: names with a place, 0 or more.  NULL: no memory. */
struct metrics_jobs *metrics_jobs_new(size_t max);
void metrics_jobs_free(struct metrics_jobs *jobs); /* NULL is fine */
/* Begins a reading: tasks and memory are levels, they are told anew. */
void metrics_jobs_begin(struct metrics_jobs *jobs, uint64_t now_ns);
/* ROW did something, or has tasks; else it need not be added. */
bool metrics_jobs_matters(const struct iocom_job_load *row);
/* One cgroup of the reading, by its job's name; NULL: nobody knows its name. */
void metrics_jobs_add(struct metrics_jobs *jobs, const char *name,
		      const struct iocom_job_load *row);

struct metrics_jobs_view {
	size_t count;		  /* with a place */
	size_t max;		  /* places */
	uint64_t other_cgroups;	  /* of the last reading that did something and count for `other` */
	uint64_t replaced;	  /* names that lost their place, ever */
	struct metrics_job other; /* name "other" */
};
/* Copies: the rows into OUT (room for `max`), which may be NULL. */
void metrics_jobs_view(const struct metrics_jobs *jobs, struct metrics_jobs_view *view,
		       struct metrics_job *out);

#endif
