/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Decides which jobs have their own series: a bounded number, whatever runs.
 *
 * A counter that was shown must never go down, and no byte may be in two series.  So each name has
 * its own counters, fed by what its cgroups did since the last reading; the work of names without a
 * place counts for `other`, and stays there.  A name keeps its place until it has done nothing for
 * METRICS_JOBS_IDLE_NS and another name needs the place.  When it comes back, its counters
 * continue: as many as METRICS_JOBS_KEPT times the maximum of names that lost their place are
 * remembered.
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
	struct iocom_load load;	      /* the sum since the name was first seen; never goes down */
	uint32_t tasks;
	uint64_t rss_bytes;
};

struct metrics_jobs;

/* MAX: the number of places, 0 or more.  Returns NULL if there is no memory. */
struct metrics_jobs *metrics_jobs_new(size_t max);
void metrics_jobs_free(struct metrics_jobs *jobs); /* NULL is fine */
/* Begins a reading: resets tasks and memory, which are levels. */
void metrics_jobs_begin(struct metrics_jobs *jobs, uint64_t now_ns);
/* Returns true if ROW did something, or has tasks; otherwise it need not be added. */
bool metrics_jobs_matters(const struct iocom_job_load *row);
/* Adds one cgroup of the reading under its job's name; NULL: the name is unknown. */
void metrics_jobs_add(struct metrics_jobs *jobs, const char *name,
		      const struct iocom_job_load *row);

struct metrics_jobs_view {
	size_t count;		  /* names with a place */
	size_t max;		  /* places */
	uint64_t other_cgroups;	  /* active cgroups of the last reading that count for `other` */
	uint64_t replaced;	  /* how many names ever lost their place */
	struct metrics_job other; /* the job named "other" */
};
/* Copies the rows into OUT (room for `max`), which may be NULL. */
void metrics_jobs_view(const struct metrics_jobs *jobs, struct metrics_jobs_view *view,
		       struct metrics_job *out);

#endif
