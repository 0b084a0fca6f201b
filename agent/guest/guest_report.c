/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* See guest_report.h. */
#include "agent/guest/guest_report.h"

#include <stdlib.h>
#include <string.h>

#include "user/pack.h"

#define PENDING_AT_ONCE 32

static bool is_local(const struct agent *a, const char *home)
{
	return !strcmp(home, a->set.name);
}

struct telling {
	struct agent *agent;
	bool report;
	size_t n;
	char jobs[][SPEC_JOB_MAX];
};

static struct telling *telling_new(struct agent *a, size_t room)
{
	struct telling *t = calloc(1, sizeof(*t) + room * sizeof(t->jobs[0]));

	if (t)
		t->agent = a;
	return t;
}

/* Home has the first TAKEN of them. */
static void acked(const struct telling *t, size_t taken)
{
	struct journal *journal = t->agent->journal;
	struct iocom_err err = {0};
	int rc = taken > 1 ? journal_begin(journal, &err) : 0;

	for (size_t i = 0; i < taken && !rc; i++)
		rc = journal_acked(journal, t->jobs[i], &err);
	if (taken > 1 && journal_commit(journal, rc ? NULL : &err) && !rc)
		rc = -1;
	if (rc)
		agent_journal_failed(t->agent, &err);
}

static void guest_report_told(void *arg, int rc, const msgpack_object *body, const char *why)
{
	struct telling *t = arg;
	struct job *job = t->report ? NULL : jobs_find(&t->agent->jobs, t->jobs[0]);
	uint64_t taken;

	if (job && !rc)
		job->tells = JOBS_TELLS;
	if (rc && t->report) {
		t->agent->counters.reports_unacknowledged += t->n;
		log_write(&t->agent->log, LOG_L_WARNING,
			  "the home of job %s does not know yet how it ended: %s; told again later",
			  t->jobs[0], why);
	} else if (t->report) {
		/* An older home takes the first only; the rest is told again one by one. */
		if (unpack_u64(body, "taken", &taken) || taken < 1)
			taken = 1;
		acked(t, taken < t->n ? (size_t)taken : t->n);
	}
	free(t);
}

/* Home is another node.  T, which is taken, names the jobs. */
static void guest_report_tell(struct agent *a, const struct job_order *o, struct telling *t,
			      const char *type, const msgpack_sbuffer *body)
{
	struct iocom_err err = {0};

	if (!a->control || !o->home_address[0] ||
	    control_ask(a->control, o->home, o->home_address, o->home_port, type, t->jobs[0], body,
			guest_report_told, t, &err)) {
		if (err.text[0])
			log_write(&a->log, LOG_L_WARNING, "cannot tell %s of job %s: %s", o->home,
				  t->jobs[0], err.text);
		free(t);
	}
}

static void tell_one(struct agent *a, const struct job_order *o, bool report,
		     const msgpack_sbuffer *body)
{
	struct telling *t = telling_new(a, 1);

	if (!t)
		return; /* pending reports are told again */
	t->report = report;
	t->n = 1;
	memcpy(t->jobs[0], o->job, sizeof(t->jobs[0]));
	guest_report_tell(a, o, t, report ? "done" : "started", body);
}

static void report_here(struct agent *a, const struct job_report *r)
{
	struct iocom_err err = {0};

	if (home_ended(a, a->set.name, r) == 0 && journal_acked(a->journal, r->job, &err))
		agent_journal_failed(a, &err);
}

void target_report(struct agent *a, const struct job_order *o, const struct job_report *r)
{
	msgpack_sbuffer body;

	if (is_local(a, o->home)) {
		report_here(a, r);
		return;
	}
	msgpack_sbuffer_init(&body);
	job_report_pack(r, &body);
	tell_one(a, o, true, &body);
	msgpack_sbuffer_destroy(&body);
}

static bool same_home(const struct job_order *a, const struct job_order *b)
{
	return !strcmp(a->home, b->home) && !strcmp(a->home_address, b->home_address) &&
	       a->home_port == b->home_port;
}

/* The ended jobs from FIRST on that are to be reported to its home, up to the limit. */
static size_t companions(const struct job *first, struct job *jobs[JOB_REPORTS_MAX])
{
	size_t n = 0;

	for (const struct job *job = first; job && n < JOB_REPORTS_MAX; job = job->next)
		if (job->state == JOB_ENDED && job->due && same_home(&job->order, &first->order))
			jobs[n++] = (struct job *)job;
	return n;
}

static void report_together(struct agent *a, const struct job *first)
{
	struct telling *t = telling_new(a, JOB_REPORTS_MAX);
	struct job *jobs[JOB_REPORTS_MAX];
	size_t n = companions(first, jobs);
	msgpack_sbuffer body;
	struct job_report r;

	msgpack_sbuffer_init(&body);
	for (size_t i = 0; i < n; i++) {
		job_report_make(jobs[i], a->self.cpu_speed, &r);
		if (i)
			job_report_pack(&r, &body);
		else
			job_report_pack_first(&r, n - 1, &body);
		if (t)
			memcpy(t->jobs[t->n++], r.job, sizeof(r.job));
		jobs[i]->due = false;
	}
	if (t) { /* else they are told again */
		t->report = true;
		guest_report_tell(a, &first->order, t, "done", &body);
	}
	msgpack_sbuffer_destroy(&body);
}

void target_report_ended(struct agent *a, bool failed)
{
	struct job_report r;

	for (struct job *job = a->jobs.first; job; job = job->next)
		job->due = job->state == JOB_ENDED && (!job->unwritten || !failed);
	for (struct job *job = a->jobs.first; job; job = job->next) {
		if (!job->due)
			continue;
		if (!is_local(a, job->order.home)) {
			report_together(a, job);
			continue;
		}
		job_report_make(job, a->self.cpu_speed, &r);
		report_here(a, &r);
		job->due = false;
	}
}

static void pending(void *arg, const char *job, const char *home, const void *order,
		    size_t order_length, const void *data, size_t length)
{
	struct agent *a = arg;
	struct job_report r;
	struct job_order o;
	msgpack_unpacked map, rmap;

	(void)job;
	(void)home;
	if (unpack_map(&map, order, order_length))
		return;
	if (job_order_unpack(&o, &map.data) == 0 && unpack_map(&rmap, data, length) == 0) {
		if (job_report_unpack(&r, &rmap.data) == 0)
			target_report(a, &o, &r);
		msgpack_unpacked_destroy(&rmap);
	}
	msgpack_unpacked_destroy(&map);
}

void target_report_pending(struct agent *a)
{
	for (struct job *job = a->jobs.first; job; job = job->next)
		if (job->state == JOB_RUNNING && job->tells < JOBS_TELLS)
			target_tell_started(a, job);
	if (journal_pending(a->journal, PENDING_AT_ONCE, pending, a))
		a->counters.journal_failures++;
}

void target_tell_started(struct agent *a, struct job *job)
{
	msgpack_sbuffer body;
	msgpack_packer pk;

	if (is_local(a, job->order.home)) {
		if (!home_started(a, a->set.name, job->order.job, job->start_ns, job->pid))
			job->tells = JOBS_TELLS;
		return;
	}
	job->tells++;
	pack_begin(&pk, &body, 2);
	pack_u64(&pk, "start_ns", job->start_ns);
	pack_u64(&pk, "pid", (uint64_t)job->pid);
	tell_one(a, &job->order, false, &body);
	msgpack_sbuffer_destroy(&body);
}
