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

#include "agent/metrics/metrics_file.h"
#include "agent/metrics/metrics_jobs.h"
#include "agent/metrics/metrics_page.h"
#include "user/monitor/sample_names.h"

#define NESTING_MAX 64

struct metrics {
	struct metrics_config config;
	const struct base *base;
	struct pulse_watch watch;
	struct net_watch net_watch;
	bool watches;
	struct metrics_file *file;
	struct metrics_jobs *jobs;
	struct iocom_load total;
	struct monitor_sample last;
	bool fresh; /* `last` points to arrays that the monitor still has */
	/* What all network parts counted, and the one that runs when it was asked last. */
	struct metrics_served served, told;
};

/*
 * The name of the job that a cgroup, or one above it, belongs to; else what people call the
 * cgroup, such as slurm:12 (sample_names_owner), or its path, or NULL.
 */
static const char *name_of(const struct metrics *m, uint64_t cgroup)
{
	const struct group_name *group;
	const char *job;
	uint64_t at = cgroup;

	for (unsigned depth = 0; at && depth < NESTING_MAX; depth++) {
		if (!m->config.ports.whose(m->config.ports.arg, at, &job, NULL))
			return job;
		if (!m->config.names || !sample_names_path(m->config.names, at, &at))
			break;
	}
	if (!m->config.names)
		return NULL;
	at = sample_names_owner(m->config.names, cgroup, &group);
	return group ? group->text : sample_names_path(m->config.names, at, NULL);
}

static void metrics_sampled(void *arg, const struct monitor_sample *sample)
{
	struct metrics *m = arg;

	m->fresh = sample != NULL;
	if (!sample)
		return;
	if (m->config.names)
		sample_names_begin(m->config.names);
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

static void metrics_add(uint64_t *sum, uint64_t *told, uint64_t now)
{
	if (now > *told)
		*sum += now - *told;
	*told = now;
}

/* Adds what the network part has counted since it was asked last. */
static void metrics_count(struct metrics *m)
{
	const struct gate_counts now = net_part_counts(m->config.net);

	metrics_add(&m->served.answered, &m->told.answered, now.pages_answered);
	metrics_add(&m->served.refused, &m->told.refused, now.pages_refused);
	metrics_add(&m->served.cut, &m->told.cut, now.pages_cut);
}

/* The next network part counts from 0. */
static void metrics_net_down(void *arg)
{
	struct metrics *m = arg;

	m->told = (struct metrics_served){0};
}

static void metrics_period(void *arg)
{
	struct metrics *m = arg;
	struct metrics_page *page;

	if (!m->fresh)
		return;
	page = metrics_page_new(&m->last, m->jobs);
	if (!page) {
		log_write(m->base->log, LOG_L_ERROR,
			  "out of memory: /metrics shows an older reading");
		return;
	}
	page->vector = m->config.pulse->own;
	page->counters = *m->base->counters;
	page->nbounds = m->config.ports.limits(m->config.ports.arg, page->bounds);
	page->charges_lost = m->config.ports.charges_lost(m->config.ports.arg);
	page->npredictions = m->config.ports.predictions(m->config.ports.arg, page->predictions);
	page->log_lines_suppressed = m->base->log->suppressed;
	page->has_load_average = getloadavg(page->load_average, 3) == 3;
	page->agent_rss_bytes = own_rss_bytes();
	page->total = m->total;
	metrics_count(m);
	page->served = m->served;
	metrics_file_put(m->file, page);
}

/* --- the network part wants the page ---------------------------------------------------- */

static void metrics_wanted(void *arg, const struct gate_message *message, uint8_t *tail, size_t n,
			   const int *fds)
{
	struct metrics *m = arg;

	(void)message;
	(void)tail;
	(void)n;
	(void)fds;
	metrics_file_want(m->file);
}

static void metrics_have(void *arg, int fd)
{
	struct metrics *m = arg;
	const struct gate_message page = {.type = GATE_PAGE};
	int rc = net_part_send(m->config.net, &page, NULL, 0, &fd);

	/* While it is down nobody waits; else its clients are told that there is no page. */
	if (rc && rc != -EPIPE)
		log_provoked(m->base->log, LOG_L_ERROR,
			     "cannot give the page of metrics to the network part: %s",
			     strerror(-rc));
}

static void metrics_watch(struct metrics *m)
{
	m->watch =
		(struct pulse_watch){.sampled = metrics_sampled, .told = metrics_period, .arg = m};
	m->net_watch = (struct net_watch){.down = metrics_net_down, .arg = m};
	m->watches = true;
	pulse_watch(m->config.pulse, &m->watch);
	net_part_watch(m->config.net, &m->net_watch);
	net_part_serve(m->config.net, GATE_WANT_PAGE, metrics_wanted, m);
}

int metrics_new(struct metrics **out, const struct metrics_config *config, struct iocom_err *err)
{
	const struct settings *set = config->base->set;
	struct metrics *m;
	int rc;

	*out = NULL;
	if (!set->metrics.address[0])
		return 0;
	m = *out = calloc(1, sizeof(*m));
	if (!m)
		return iocom_err_set(err, -ENOMEM, "out of memory for metrics");
	m->config = *config;
	m->base = config->base;
	m->jobs = metrics_jobs_new(set->metrics_max_jobs);
	if (!m->jobs)
		return iocom_err_set(err, -ENOMEM, "out of memory for metrics");
	rc = metrics_file_new(&m->file, m->base, metrics_have, m, err);
	if (rc)
		return rc;
	metrics_watch(m);
	log_write(m->base->log, LOG_L_INFO, "metrics at http://%s:%u/metrics", set->metrics.address,
		  set->metrics.port);
	return 0;
}

void metrics_free(struct metrics *m)
{
	if (!m)
		return;
	if (m->watches) {
		net_part_serve(m->config.net, GATE_WANT_PAGE, NULL, NULL);
		net_part_unwatch(m->config.net, &m->net_watch);
	}
	metrics_file_free(m->file);
	metrics_jobs_free(m->jobs);
	free(m);
}
