/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * One page of metrics: a copy of what the agent knew at the end of a period, and its text.  The
 * copy is complete: rendering it needs nothing of the agent.
 */
#ifndef IOCOM_AGENT_METRICS_PAGE_H
#define IOCOM_AGENT_METRICS_PAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/base/counters.h"
#include "iocom/vector.h"
#include "agent/base/limit.h"
#include "agent/base/prediction.h"
#include "agent/metrics/metrics_jobs.h"
#include "user/monitor/monitor.h"

/* Counts the requests for the page itself since the agent began. */
struct metrics_served {
	uint64_t answered; /* with the page */
	uint64_t refused;  /* another path or method, or garbage */
	uint64_t cut;	   /* too slow */
};

struct metrics_page {
	struct iocom_vector vector; /* the vector as it was last published */
	struct counters counters;
	struct limit bounds[LIMITS_LISTED];
	size_t nbounds;
	uint64_t charges_lost, log_lines_suppressed;
	double load_average[3]; /* over 1, 5, 15 minutes */
	bool has_load_average;
	uint64_t agent_rss_bytes; /* 0: not known */
	struct metrics_served served;
	struct prediction *predictions; /* room for PREDICTIONS_MAX */
	size_t npredictions;

	struct monitor_sample sample; /* we own its arrays; no tasks, no jobs */
	struct iocom_load total;      /* the sum over all jobs; never goes down */
	struct metrics_jobs_view jobs;
	struct metrics_job *rows; /* jobs.count */
};

/*
 * Makes a page with copies of SAMPLE's disks, drops and programs and of the jobs; NULL: out of
 * memory.  The caller fills in the vector, the counters and the rest.
 */
struct metrics_page *metrics_page_new(const struct monitor_sample *sample,
				      const struct metrics_jobs *jobs);
void metrics_page_free(struct metrics_page *page); /* NULL is fine */
/* Renders the text, malloc'ed, which the caller frees.  Returns 0 or -ENOMEM. */
int metrics_page_render(const struct metrics_page *page, char **text, size_t *length);

#endif
