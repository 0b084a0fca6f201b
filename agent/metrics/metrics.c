/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Makes the page of metrics from what the agent knows; see metrics.h.
 *
 * SAMPLE's arrays live only until the next reading.  A page is made right after the last reading of
 * its period, so keeping the sample by value suffices.
 */
#include "agent/metrics/metrics.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/metrics/metrics_http.h"
#include "agent/metrics/metrics_jobs.h"
#include "agent/metrics/metrics_page.h"
#include "user/monitor/sample_names.h"

#define NESTING_MAX 64

struct metrics {
	const struct base *base;
	const struct pulse *pulse;
	struct sample_names *names;
	struct metrics_ports ports;
	struct pulse_watch watch;
	struct metrics_http *http;
	struct metrics_jobs *jobs;
	struct iocom_load total;
	struct monitor_sample last;
	bool fresh; /* `last` points to arrays that the monitor still has */
};

/*
 * The name of the job that a cgroup, or one above it, belongs to; else the cgroup's path, or NULL.
 */
static const char *name_of(const struct metrics *m, uint64_t cgroup)
{
	const char *job;
	uint64_t at = cgroup;

	for (unsigned depth = 0; at && depth < NESTING_MAX; depth++) {
		if (!m->ports.whose(m->ports.arg, at, &job, NULL))
			return job;
		if (!m->names || !sample_names_path(m->names, at, &at))
			break;
	}
	return m->names ? sample_names_path(m->names, cgroup, NULL) : NULL;
}

static void metrics_sampled(void *arg, const struct monitor_sample *sample)
{
	struct metrics *m = arg;

	m->fresh = sample != NULL;
	if (!sample)
		return;
	if (m->names)
		sample_names_begin(m->names);
	metrics_jobs_begin(m->jobs, loop_boot_ns(m->base->loop));
	for (size_t i = 0; i < sample->njobs; i++) {
		const struct iocom_job_load *row = &sample->jobs[i];

		iocom_load_add(&m->total, &row->delta);
		if (metrics_jobs_matters(row))
			metrics_jobs_add(m->jobs, name_of(m, row->cgroup_id), row);
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

static void metrics_period(void *arg)
{
	struct metrics *m = arg;
	struct metrics_page *page;

	if (!m->fresh)
		return;
	page = metrics_page_new(&m->last, m->jobs);
	if (page) {
		page->vector = m->pulse->own;
		page->counters = *m->base->counters;
		page->nbounds = m->ports.limits(m->ports.arg, page->bounds);
		page->charges_lost = m->ports.charges_lost(m->ports.arg);
		page->npredictions = m->ports.predictions(m->ports.arg, page->predictions);
		page->log_lines_suppressed = m->base->log->suppressed;
		page->has_load_average = getloadavg(page->load_average, 3) == 3;
		page->agent_rss_bytes = own_rss_bytes();
		page->total = m->total;
		metrics_http_served(m->http, &page->served);
	}
	if (!page || metrics_http_show(m->http, page))
		log_write(m->base->log, LOG_L_ERROR,
			  "out of memory: /metrics shows an older reading");
}

int metrics_new(struct metrics **out, const struct base *base, struct pulse *pulse,
		struct sample_names *names, const struct metrics_ports *ports,
		struct iocom_err *err)
{
	const struct settings *set = base->set;
	struct metrics *m;
	int rc;

	*out = NULL;
	if (!set->metrics.address[0])
		return 0;
	m = *out = calloc(1, sizeof(*m));
	if (m)
		m->jobs = metrics_jobs_new(set->metrics_max_jobs);
	if (!m || !m->jobs)
		return iocom_err_set(err, -ENOMEM, "out of memory for metrics");
	m->base = base;
	m->pulse = pulse;
	m->names = names;
	m->ports = *ports;
	rc = metrics_http_new(&m->http, set->metrics.address, set->metrics.port, err);
	if (rc)
		return rc;
	log_write(base->log, LOG_L_INFO, "metrics at http://%s:%u/metrics", set->metrics.address,
		  set->metrics.port);
	m->watch =
		(struct pulse_watch){.sampled = metrics_sampled, .told = metrics_period, .arg = m};
	pulse_watch(pulse, &m->watch);
	return 0;
}

void metrics_free(struct metrics *m)
{
	if (!m)
		return;
	metrics_http_free(m->http);
	metrics_jobs_free(m->jobs);
	free(m);
}
