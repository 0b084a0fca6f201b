/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Homes are told that their jobs started, what they have done so far, and how they ended.  Starts
 * and ends are told again if home does not answer.
 */
#include "agent/guest/guest_own.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/guest/stopped.h"
#include "user/clock.h"
#include "user/pack.h"

#define PENDING_AT_ONCE	  32
#define TALKS_AT_ONCE	  2    /* parts of gangs in one message: EXCHANGE_PACKED_MAX each */
#define PROGRESS_FIRST_MS 1000 /* the age at which home is told first what a job does */
#define TELL_AT_LAST_NS	  (30 * CLOCK_NS_PER_S) /* well before home gives a start up */

struct telling {
	struct guest *guest;
	enum peer_type type;
	size_t n;
	char jobs[][SPEC_JOB_MAX];
};

bool guest_is_home(const struct guest *guest, const struct job_order *order)
{
	return !strcmp(order->home, guest->base->set->name);
}

static struct telling *telling_new(struct guest *guest, size_t room)
{
	struct telling *t = calloc(1, sizeof(*t) + room * sizeof(t->jobs[0]));

	if (t)
		t->guest = guest;
	return t;
}

/* Home has acknowledged the first TAKEN reports. */
static void acked(const struct telling *t, size_t taken)
{
	struct journal *journal = t->guest->journal;
	struct iocom_err err = {0};
	int rc = taken > 1 ? journal_begin(journal, &err) : 0;

	for (size_t i = 0; i < taken && !rc; i++)
		rc = journal_acked(journal, t->jobs[i], &err);
	if (rc)
		journal_cancel(journal);
	else if (taken > 1)
		rc = journal_commit(journal, &err);
	if (rc)
		base_journal_failed(t->guest->base, &err);
}

static void guest_report_told(void *arg, int rc, const struct peer_answer *answer, const char *why)
{
	struct telling *t = arg;
	const struct base *base = t->guest->base;
	struct job *job = t->type == PEER_STARTED ? jobs_find(&t->guest->jobs, t->jobs[0]) : NULL;

	if (job && !rc)
		job->tells = JOBS_TELLS;
	if (rc && t->type == PEER_DONE) {
		base->counters->reports_unacknowledged += t->n;
		log_write(base->log, LOG_L_WARNING,
			  "could not tell the home of job %s how it ended: %s; the agent will try "
			  "again",
			  t->jobs[0], why);
	} else if (t->type == PEER_DONE) {
		acked(t, answer->taken < t->n ? answer->taken : t->n);
	}
	free(t);
}

/* Reports to the home of ORDER, which may be this node.  Takes T, which names the jobs. */
static void guest_report_tell(struct guest *guest, const struct job_order *o, struct telling *t,
			      const struct peer_request *request)
{
	struct iocom_err err = {0};
	char job[SPEC_JOB_MAX];
	int rc;

	memcpy(job, t->jobs[0], sizeof(job));
	rc = guest->ports->ask(guest->ports->ask_arg, o->home, o->home_address, o->home_port,
			       request, guest_report_told, t, &err);
	if (!rc)
		return;
	/* The job is of an agent that served its machine only: its home can never be asked. */
	if (rc != -EHOSTUNREACH)
		log_write(guest->base->log, LOG_L_WARNING, "cannot tell %s of job %s: %s", o->home,
			  job, err.text);
	free(t);
}

static void tell_reports(struct guest *guest, const struct job_order *o, enum peer_type type,
			 const struct job_report *reports, size_t n)
{
	struct peer_request request = {.type = type, .done = {.reports = reports, .count = n}};
	struct telling *t = telling_new(guest, n);

	if (!t)
		return; /* pending reports are sent again */
	memcpy(request.job, reports[0].job, sizeof(request.job));
	t->type = type;
	for (size_t i = 0; i < n; i++)
		memcpy(t->jobs[t->n++], reports[i].job, sizeof(reports[i].job));
	guest_report_tell(guest, o, t, &request);
}

void guest_report(struct guest *guest, const struct job_order *o, const struct job_report *r)
{
	tell_reports(guest, o, PEER_DONE, r, 1);
}

static bool same_home(const struct job_order *guest, const struct job_order *b)
{
	return !strcmp(guest->home, b->home) && !strcmp(guest->home_address, b->home_address) &&
	       guest->home_port == b->home_port;
}

/* Collects the jobs from FIRST on that are due for the same home, up to the limit. */
static size_t companions(const struct job *first, struct job *jobs[JOB_REPORTS_MAX])
{
	size_t n = 0, talks = 0;

	for (const struct job *job = first; job && n < JOB_REPORTS_MAX; job = job->next)
		if (job->state == first->state && job->due &&
		    same_home(&job->order, &first->order) &&
		    (!job->talk || talks++ < TALKS_AT_ONCE))
			jobs[n++] = (struct job *)job;
	return n;
}

static void guest_report_running(const struct job *job, struct job_report *r)
{
	r->wall_ms = job->progress_ms;
	r->stopped = job->stopped;
}

static void report_together(struct guest *guest, const struct job *first)
{
	enum peer_type type = first->state == JOB_ENDED ? PEER_DONE : PEER_PROGRESS;
	struct job *jobs[JOB_REPORTS_MAX];
	size_t n = companions(first, jobs);
	struct job_report *reports = calloc(n, sizeof(*reports));

	for (size_t i = 0; i < n; i++) {
		if (reports)
			job_report_make(jobs[i], guest->config.cpu_speed, &reports[i]);
		if (reports)
			guest_talk_report(jobs[i], &reports[i]);
		if (reports && type == PEER_PROGRESS)
			guest_report_running(jobs[i], &reports[i]);
		jobs[i]->due = false;
	}
	if (reports) /* otherwise they are sent again later */
		tell_reports(guest, &first->order, type, reports, n);
	free(reports);
}

void guest_report_ended(struct guest *guest)
{
	for (struct job *job = guest->jobs.first; job; job = job->next)
		if (job->due)
			report_together(guest, job);
}

/* Returns whether home knows too little of what JOB needs. */
static bool surprises(const struct guest *guest, const struct job *job)
{
	const struct need *need = &job->order.need;
	double cpu_ms = (double)job->load.cpu_ns / 1e6 * guest->config.cpu_speed;
	double requests = (double)(job->load.explicit_ops + job->load.implicit_ops);

	return !need_is_known(need) || cpu_ms > need->value[NEED_CPU_S] * 1e3 ||
	       requests > need->value[NEED_REQUESTS];
}

/* Returns whether home believes of JOB that it is stopped, or not, and is wrong. */
static bool has_stopped_or_goes_on(struct job *job)
{
	bool stopped = job->state == JOB_RUNNING && job->told && stopped_is(job->pid);

	if (stopped == job->stopped)
		return false;
	job->stopped = stopped;
	return job->state == JOB_RUNNING;
}

/* Returns whether it is time to tell home what JOB, AGE_MS old, has done so far. */
static bool is_time(struct job *job, uint64_t age_ms)
{
	uint64_t next_ms = job->progress_ms ? 2 * job->progress_ms : PROGRESS_FIRST_MS;

	if (job->state != JOB_RUNNING || age_ms < next_ms ||
	    (!*job->order.class_name && !job->stopped && !job->talk))
		return false;
	while (2 * next_ms <= age_ms)
		next_ms *= 2;
	job->progress_ms = next_ms;
	return true;
}

void guest_tell_progress(struct guest *guest)
{
	uint64_t now = loop_real_ns(guest->base->loop);

	for (struct job *job = guest->jobs.first; job; job = job->next) {
		uint64_t age_ms = now > job->start_ns ? (now - job->start_ns) / CLOCK_NS_PER_MS : 0;

		if (has_stopped_or_goes_on(job) ||
		    (is_time(job, age_ms) && (job->stopped || job->talk || surprises(guest, job))))
			job->due = true;
	}
	guest_report_ended(guest);
}

static void pending(void *arg, const char *job, const char *home, const void *order,
		    size_t order_length, const void *data, size_t length)
{
	struct guest *guest = arg;
	struct job_report r;
	struct job_order o;
	msgpack_unpacked map, rmap;

	(void)home;
	/* Its end may not be on the disk yet: then it is reported for the first time. */
	if (jobs_find(&guest->jobs, job))
		return;
	if (unpack_map(&map, order, order_length))
		return;
	if (job_order_unpack(&o, &map.data) == 0 && unpack_map(&rmap, data, length) == 0) {
		if (job_report_unpack(&r, &rmap.data) == 0)
			guest_report(guest, &o, &r);
		msgpack_unpacked_destroy(&rmap);
	}
	msgpack_unpacked_destroy(&map);
}

/* True also if the disk has hung for long: home would say that the job never started. */
static bool guest_may_tell(const struct guest *guest, const struct job *job)
{
	return journal_is_durable(guest->journal, job->written) ||
	       loop_real_ns(guest->base->loop) > job->start_ns + TELL_AT_LAST_NS;
}

void guest_report_pending(struct guest *guest)
{
	for (struct job *job = guest->jobs.first; job; job = job->next)
		if (job->state == JOB_RUNNING && job->tells < JOBS_TELLS &&
		    guest_may_tell(guest, job))
			guest_tell_started(guest, job);
	if (!guest->resend.waiting && !journal_when_durable(guest->journal, &guest->resend))
		guest_report_resend(guest, 0);
}

void guest_report_resend(void *arg, int rc)
{
	struct guest *guest = arg;

	if (!rc && journal_pending(guest->journal, PENDING_AT_ONCE, pending, guest))
		guest->base->counters->journal_failures++;
}

void guest_tell_started(struct guest *guest, struct job *job)
{
	struct peer_request request = {
		.type = PEER_STARTED,
		.started = {.start_ns = job->start_ns, .pid = job->pid},
	};
	struct telling *t = telling_new(guest, 1);

	job->tells++;
	if (!t)
		return;
	memcpy(request.job, job->order.job, sizeof(request.job));
	t->type = PEER_STARTED;
	memcpy(t->jobs[0], job->order.job, sizeof(t->jobs[0]));
	t->n = 1;
	guest_report_tell(guest, &job->order, t, &request);
}
