/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What the agent knows, as a page of metrics; see metrics.h.
 *
 * SAMPLE's arrays live until the next reading only, and a page is made at the end
 * of a period right after its reading: so the sample is kept by value.
 */
#include "agent/metrics/metrics.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/front/limits.h"
#include "user/clock.h"
#include "agent/metrics/metrics_http.h"
#include "agent/metrics/metrics_jobs.h"
#include "agent/metrics/metrics_page.h"
#include "user/monitor/sample_names.h"

#define NESTING_MAX 64

struct metrics {
	struct metrics_http *http;
	struct metrics_jobs *jobs;
	struct iocom_load total;
	struct monitor_sample last;
	bool fresh; /* `last` points to what the monitor still has */
};

int metrics_start(struct agent *a, struct iocom_err *err)
{
	struct metrics *m;
	int rc;

	if (!a->set.metrics.address[0])
		return 0;
	m = a->metrics = calloc(1, sizeof(*m));
	if (m)
		m->jobs = metrics_jobs_new(a->set.metrics_max_jobs);
	if (!m || !m->jobs)
		return iocom_err_set(err, -ENOMEM, "out of memory for metrics");
	rc = metrics_http_new(&m->http, a->set.metrics.address, a->set.metrics.port, err);
	if (!rc)
		log_write(&a->log, LOG_L_INFO, "metrics at http://%s:%u/metrics",
			  a->set.metrics.address, a->set.metrics.port);
	return rc;
}

void metrics_stop(struct agent *a)
{
	if (!a->metrics)
		return;
	metrics_http_free(a->metrics->http);
	metrics_jobs_free(a->metrics->jobs);
	free(a->metrics);
	a->metrics = NULL;
}

/* The job of iocom that a cgroup belongs to, also from below it; else its path, or NULL. */
static const char *name_of(struct agent *a, uint64_t cgroup)
{
	const char *job;
	uint64_t at = cgroup;

	for (unsigned depth = 0; at && depth < NESTING_MAX; depth++) {
		if (!jobs_whose(&a->jobs, at, &job, NULL))
			return job;
		if (!a->names || !sample_names_path(a->names, at, &at))
			break;
	}
	return a->names ? sample_names_path(a->names, cgroup, NULL) : NULL;
}

void metrics_sampled(struct agent *a, const struct monitor_sample *sample)
{
	struct metrics *m = a->metrics;

	if (!m)
		return;
	m->fresh = sample != NULL;
	if (!sample)
		return;
	if (a->names)
		sample_names_begin(a->names);
	metrics_jobs_begin(m->jobs, clock_boot_ns());
	for (size_t i = 0; i < sample->njobs; i++) {
		const struct iocom_job_load *row = &sample->jobs[i];

		iocom_load_add(&m->total, &row->delta);
		if (metrics_jobs_matters(row))
			metrics_jobs_add(m->jobs, name_of(a, row->cgroup_id), row);
	}
	m->last = *sample;
}

static uint64_t own_rss_bytes(void)
{
	unsigned long long size, resident;
	FILE *f = fopen("/proc/self/statm", "re");
	int n;

	if (!f)
		return 0;
	n = fscanf(f, "%llu %llu", &size, &resident);
	fclose(f);
	return n == 2 ? resident * (uint64_t)sysconf(_SC_PAGESIZE) : 0;
}

void metrics_period(struct agent *a)
{
	struct metrics *m = a->metrics;
	struct metrics_page *page;

	if (!m || !m->fresh)
		return;
	page = metrics_page_new(&m->last, m->jobs);
	if (page) {
		page->vector = a->own;
		page->counters = a->counters;
		page->nbounds = limits_list(a, page->bounds);
		page->charges_lost = a->charges.lost;
		page->log_lines_suppressed = a->log.suppressed;
		page->has_load_average = getloadavg(page->load_average, 3) == 3;
		page->agent_rss_bytes = own_rss_bytes();
		page->total = m->total;
		metrics_http_served(m->http, &page->served);
	}
	if (!page || metrics_http_show(m->http, page))
		log_write(&a->log, LOG_L_ERROR, "out of memory: /metrics shows an older reading");
}
