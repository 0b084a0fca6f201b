/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* See progress.h. */
#include "agent/home/progress.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/counters.h"
#include "user/clock.h"

#define AGE_MOST_MS (30 * 86400 * 1000ull) /* whatever a node says */

struct entry {
	char job[SPEC_JOB_MAX], class_name[64];
	uid_t uid;
	uint64_t noted;	   /* the number of its last report */
	uint64_t until_ns; /* by then it reports again */
	bool stopped;
	struct profile did;
};

struct progress {
	struct entry *entries;
	size_t count, room;
	uint64_t reports;
	struct counters *counters;
};

int progress_new(struct progress **out, struct counters *counters)
{
	*out = calloc(1, sizeof(**out));
	if (!*out)
		return -ENOMEM;
	(*out)->counters = counters;
	return 0;
}

void progress_free(struct progress *p)
{
	if (!p)
		return;
	free(p->entries);
	free(p);
}

static struct entry *progress_find(const struct progress *p, const char *job)
{
	for (size_t i = 0; i < p->count; i++)
		if (!strcmp(p->entries[i].job, job))
			return &p->entries[i];
	return NULL;
}

static struct entry *progress_oldest(const struct progress *p)
{
	struct entry *oldest = &p->entries[0];

	for (size_t i = 1; i < p->count; i++)
		if (p->entries[i].noted < oldest->noted)
			oldest = &p->entries[i];
	return oldest;
}

/* Returns a place for a new job, or NULL. */
static struct entry *progress_add(struct progress *p)
{
	if (p->count == PROGRESS_MAX) {
		p->counters->progress_replaced++;
		return progress_oldest(p);
	}
	if (p->count == p->room) {
		size_t room = p->room ? 2 * p->room : 16;
		struct entry *entries = realloc(p->entries, room * sizeof(*entries));

		if (!entries)
			return NULL;
		p->entries = entries;
		p->room = room;
	}
	return &p->entries[p->count++];
}

static void progress_expire(struct progress *p, uint64_t now_ns)
{
	for (size_t i = 0; i < p->count;)
		if (p->entries[i].until_ns < now_ns)
			p->entries[i] = p->entries[--p->count];
		else
			i++;
}

int progress_note(struct progress *p, uid_t uid, const char *class_name,
		  const struct job_report *report, uint64_t now_ns)
{
	struct entry *e;
	uint64_t age_ms = report->wall_ms < AGE_MOST_MS ? report->wall_ms : AGE_MOST_MS;

	progress_expire(p, now_ns);
	e = progress_find(p, report->job);

	if (!e)
		e = progress_add(p);
	if (!e)
		return -ENOMEM;
	*e = (struct entry){
		.uid = uid,
		.stopped = report->stopped,
		.noted = ++p->reports,
		.until_ns = now_ns + 2 * age_ms * CLOCK_NS_PER_MS + PROGRESS_LATE_NS,
	};
	snprintf(e->job, sizeof(e->job), "%s", report->job);
	snprintf(e->class_name, sizeof(e->class_name), "%s", class_name);
	job_report_profile(report, &e->did);
	return 0;
}

bool progress_stopped(const struct progress *p, const char *job)
{
	const struct entry *e = progress_find(p, job);

	return e && e->stopped;
}

void progress_forget(struct progress *p, const char *job)
{
	struct entry *e = progress_find(p, job);

	if (e)
		*e = p->entries[--p->count];
}

size_t progress_count(const struct progress *p)
{
	return p->count;
}

/* Work in one number, to compare jobs of one class: ms of computation, and 1 ms a request. */
static double progress_work(const struct profile *p)
{
	return p->cpu_ms + profile_requests(p);
}

/* The running job of the class that did most; NULL: none is known. */
static const struct entry *progress_most(const struct progress *p, uid_t uid,
					 const char *class_name, uint64_t now_ns)
{
	const struct entry *most = NULL;

	for (size_t i = 0; i < p->count; i++) {
		const struct entry *e = &p->entries[i];

		if (e->until_ns >= now_ns && e->uid == uid && !strcmp(e->class_name, class_name) &&
		    (!most || progress_work(&e->did) > progress_work(&most->did)))
			most = e;
	}
	return most;
}

bool progress_guess(const struct progress *p, uid_t uid, const char *class_name, uint64_t now_ns,
		    struct profile *out)
{
	const struct entry *e = progress_most(p, uid, class_name, now_ns);

	if (!e)
		return false;
	*out = e->did;
	out->cpu_ms *= 2;
	out->requests *= 2;
	out->request_mb *= 2;
	out->fault_requests *= 2;
	out->fault_mb *= 2;
	out->wall_ms *= 2;
	out->rest_ms *= 2;
	out->disk_ms *= 2;
	out->com_ms *= 2;
	return true;
}

bool progress_correct(const struct progress *p, uid_t uid, const char *class_name, uint64_t now_ns,
		      struct profile *profile)
{
	const struct entry *e = progress_most(p, uid, class_name, now_ns);

	if (!e || progress_work(&e->did) <= progress_work(profile))
		return false;
	profile_merge(profile, &e->did);
	return true;
}
