/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Decides which jobs have their own series; see metrics_jobs.h. */
#include "agent/metrics/metrics_jobs.h"

#include <stdlib.h>
#include <string.h>

#include "user/utf8.h"

#define BUCKETS 1024

struct entry {
	struct metrics_job job;
	struct entry *next; /* the next in the same bucket */
	uint64_t active_ns; /* when the name last did something */
	bool shown;
};

struct metrics_jobs {
	struct entry *buckets[BUCKETS];
	struct entry **shown; /* the shown names, in the order in which they got places */
	size_t nshown, max;
	size_t nhidden;
	uint64_t now_ns, other_cgroups, replaced;
	struct metrics_job other;
	bool full; /* no further name loses its place in this reading */
};

struct metrics_jobs *metrics_jobs_new(size_t max)
{
	struct metrics_jobs *jobs = calloc(1, sizeof(*jobs));

	if (!jobs)
		return NULL;
	jobs->shown = calloc(max + 1, sizeof(*jobs->shown));
	if (!jobs->shown) {
		free(jobs);
		return NULL;
	}
	jobs->max = max;
	strcpy(jobs->other.name, "other");
	return jobs;
}

void metrics_jobs_free(struct metrics_jobs *jobs)
{
	if (!jobs)
		return;
	for (size_t i = 0; i < BUCKETS; i++) {
		for (struct entry *e = jobs->buckets[i], *next; e; e = next) {
			next = e->next;
			free(e);
		}
	}
	free(jobs->shown);
	free(jobs);
}

static size_t bucket_of(const char *name)
{
	uint64_t hash = 14695981039346656037ull; /* FNV-1a */

	for (; *name; name++)
		hash = (hash ^ (unsigned char)*name) * 1099511628211ull;
	return hash % BUCKETS;
}

static struct entry *metrics_jobs_find(const struct metrics_jobs *jobs, const char *name)
{
	struct entry *e = jobs->buckets[bucket_of(name)];

	while (e && strcmp(e->job.name, name))
		e = e->next;
	return e;
}

/* Forgets the hidden name that has been idle for the longest time, except BUT. */
static void forget_one(struct metrics_jobs *jobs, const struct entry *but)
{
	struct entry **oldest = NULL, *gone;

	for (size_t i = 0; i < BUCKETS; i++)
		for (struct entry **at = &jobs->buckets[i]; *at; at = &(*at)->next)
			if (!(*at)->shown && *at != but &&
			    (!oldest || (*at)->active_ns < (*oldest)->active_ns))
				oldest = at;
	if (!oldest)
		return;
	gone = *oldest;
	*oldest = gone->next;
	free(gone);
	jobs->nhidden--;
}

/* Takes the place of the name that has been idle for the longest time, long enough. */
static bool make_place(struct metrics_jobs *jobs, const struct entry *newcomer)
{
	size_t idle = 0;
	struct entry *leaves;

	if (jobs->nshown < jobs->max)
		return true;
	if (!jobs->max || jobs->full)
		return false;
	for (size_t i = 1; i < jobs->nshown; i++)
		if (jobs->shown[i]->active_ns < jobs->shown[idle]->active_ns)
			idle = i;
	leaves = jobs->shown[idle];
	if (jobs->now_ns - leaves->active_ns < METRICS_JOBS_IDLE_NS) {
		jobs->full = true;
		return false;
	}
	if (jobs->nhidden - (newcomer != NULL) >= METRICS_JOBS_KEPT * jobs->max)
		forget_one(jobs, newcomer);
	leaves->shown = false;
	/*
	 * The name's tasks in this reading count for `other`, as those of the next readings will.
	 */
	jobs->other.tasks += leaves->job.tasks;
	jobs->other.rss_bytes += leaves->job.rss_bytes;
	leaves->job.tasks = 0;
	leaves->job.rss_bytes = 0;
	jobs->nhidden++;
	jobs->replaced++;
	jobs->nshown--;
	memmove(jobs->shown + idle, jobs->shown + idle + 1,
		(jobs->nshown - idle) * sizeof(*jobs->shown));
	return true;
}

static struct entry *metrics_jobs_enter(struct metrics_jobs *jobs, const char *name)
{
	struct entry *e = calloc(1, sizeof(*e)), **bucket = &jobs->buckets[bucket_of(name)];

	if (!e)
		return NULL;
	strcpy(e->job.name, name);
	e->next = *bucket;
	*bucket = e;
	jobs->nhidden++;
	return e;
}

/* NAME's entry with a place, or NULL if it gets none. */
static struct entry *metrics_jobs_place(struct metrics_jobs *jobs, const char *name)
{
	struct entry *e = metrics_jobs_find(jobs, name);

	if (e && e->shown)
		return e;
	if (!make_place(jobs, e))
		return NULL;
	if (!e)
		e = metrics_jobs_enter(jobs, name);
	if (!e)
		return NULL;
	e->shown = true;
	jobs->nhidden--;
	jobs->shown[jobs->nshown++] = e;
	return e;
}

void metrics_jobs_begin(struct metrics_jobs *jobs, uint64_t now_ns)
{
	jobs->now_ns = now_ns;
	jobs->full = false;
	jobs->other_cgroups = 0;
	jobs->other.tasks = 0;
	jobs->other.rss_bytes = 0;
	for (size_t i = 0; i < jobs->nshown; i++) {
		jobs->shown[i]->job.tasks = 0;
		jobs->shown[i]->job.rss_bytes = 0;
	}
}

static void metrics_jobs_count(struct metrics_job *job, const struct iocom_job_load *row)
{
	iocom_load_add(&job->load, &row->delta);
	job->tasks += row->tasks;
	job->rss_bytes += row->rss_bytes;
}

static bool active(const struct iocom_job_load *row)
{
	static const struct iocom_load nothing;

	return memcmp(&row->delta, &nothing, sizeof(nothing)) != 0;
}

bool metrics_jobs_matters(const struct iocom_job_load *row)
{
	return row->tasks || active(row);
}

void metrics_jobs_add(struct metrics_jobs *jobs, const char *name, const struct iocom_job_load *row)
{
	bool works = active(row);
	char clean[METRICS_LABEL_MAX];
	struct entry *e = NULL;

	if (name) {
		utf8_copy(clean, sizeof(clean), name, strlen(name));
		/* Only names that do something get a place; the name of `other` is reserved. */
		if (strcmp(clean, jobs->other.name))
			e = works ? metrics_jobs_place(jobs, clean)
				  : metrics_jobs_find(jobs, clean);
	}
	if (!e || !e->shown) {
		jobs->other_cgroups += works;
		metrics_jobs_count(&jobs->other, row);
		return;
	}
	if (works)
		e->active_ns = jobs->now_ns;
	metrics_jobs_count(&e->job, row);
}

void metrics_jobs_view(const struct metrics_jobs *jobs, struct metrics_jobs_view *view,
		       struct metrics_job *out)
{
	*view = (struct metrics_jobs_view){
		.count = jobs->nshown,
		.max = jobs->max,
		.other_cgroups = jobs->other_cgroups,
		.replaced = jobs->replaced,
		.other = jobs->other,
	};
	for (size_t i = 0; out && i < jobs->nshown; i++)
		out[i] = jobs->shown[i]->job;
}
