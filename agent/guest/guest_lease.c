/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Leases at the node that runs the job; see leases.h. */
#include "agent/jobs/leases.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "user/clock.h"
#include "user/pack.h"

/* The shim should have killed the job by then; looked at each second, within the margin. */
#define SHIM_LATE_NS (500 * CLOCK_NS_PER_MS)

struct asking {
	struct agent *agent;
	char job[SPEC_JOB_MAX];
	uint64_t asked_ns;
};

uint64_t lease_until_ms(const struct job *job)
{
	return job->order.lease_ms ? job->lease.until_ns / CLOCK_NS_PER_MS : 0;
}

static void tell_shim(struct agent *a, struct job *job, uint64_t until_ms)
{
	if (job->leash >= 0 && launch_lease(job->leash, until_ms))
		log_write(&a->log, LOG_L_WARNING, "job %s: its supervisor takes no renewal",
			  job->order.job);
}

static void fenced(struct agent *a, struct job *job, const char *why)
{
	if (job->lease.fenced)
		return;
	a->counters.jobs_fenced++;
	log_write(&a->log, LOG_L_WARNING, "job %s is ended: its home %s renews it no more: %s",
		  job->order.job, job->order.home, why);
	job->lease.fenced = true;
	job->lease.until_ns = clock_boot_ns();
	tell_shim(a, job, 0);
}

static void guest_lease_answered(void *arg, int rc, const msgpack_object *body, const char *why)
{
	struct asking *q = arg;
	struct agent *a = q->agent;
	struct job *job = rc == -ECANCELED ? NULL : jobs_find(&a->jobs, q->job);
	char text[TARGET_TEXT_MAX] = "";
	bool ok;

	if (job)
		job->lease.asking = false;
	if (!job || job->state == JOB_ENDED) {
		free(q);
		return;
	}
	if (rc || unpack_bool(body, "ok", &ok)) {
		log_write(&a->log, LOG_L_INFO, "the lease of job %s is not renewed yet: %s", q->job,
			  rc ? why : "the answer is incomplete");
	} else if (ok) {
		/* From when it was asked: home counts from later. */
		job->lease.until_ns = q->asked_ns + job->order.lease_ms * CLOCK_NS_PER_MS;
		tell_shim(a, job, lease_until_ms(job));
	} else {
		(void)unpack_str(body, "text", text, sizeof(text));
		fenced(a, job, text);
	}
	free(q);
}

static void guest_lease_ask(struct agent *a, struct job *job)
{
	const struct job_order *o = &job->order;
	struct asking *q = calloc(1, sizeof(*q));
	struct iocom_err err = {0};
	msgpack_sbuffer body;
	msgpack_packer pk;

	if (!q || !a->control || !o->home_address[0]) {
		free(q);
		return;
	}
	q->agent = a;
	q->asked_ns = job->lease.asked_ns = clock_boot_ns();
	memcpy(q->job, o->job, sizeof(q->job));
	pack_begin(&pk, &body, 1);
	pack_u64(&pk, "lease_ms", o->lease_ms);
	job->lease.asking = true;
	if (control_ask(a->control, o->home, o->home_address, o->home_port, "renew", o->job, &body,
			guest_lease_answered, q, &err)) {
		job->lease.asking = false;
		log_write(&a->log, LOG_L_WARNING, "cannot renew the lease of job %s: %s", o->job,
			  err.text);
		free(q);
	}
	msgpack_sbuffer_destroy(&body);
}

/* The shim kills it; where the shim is stopped or killed itself, we do. */
static void outlived(struct agent *a, struct job *job)
{
	if (!job->lease.killed) {
		a->counters.jobs_fenced += !job->lease.fenced;
		log_write(&a->log, LOG_L_WARNING,
			  "job %s outlives its lease: its supervisor is late; it is killed",
			  job->order.job);
	}
	job->lease.killed = true;
	launch_kill(a->set.scope_cgroup, job->order.job);
}

void lease_told(struct job *job, const struct launch_event *said)
{
	job->lease.renews = said->renews;
	if (job->order.lease_ms && said->lease_until_ms)
		job->lease.until_ns = said->lease_until_ms * CLOCK_NS_PER_MS;
}

/* Whether we are to ask home: where the shim does not, or cannot for half a lease. */
static bool guest_lease_is_ours(const struct job *job, uint64_t now)
{
	uint64_t lease_ns = job->order.lease_ms * CLOCK_NS_PER_MS;

	if (now < job->lease.asked_ns + lease_ns / LEASE_RENEW_PART)
		return false;
	return !job->lease.renews || now + lease_ns / 2 >= job->lease.until_ns;
}

void lease_tick(struct agent *a)
{
	uint64_t now = clock_boot_ns();

	for (struct job *job = a->jobs.first; job; job = job->next) {
		if (!job->order.lease_ms ||
		    (job->state != JOB_RUNNING && job->state != JOB_LAUNCHING))
			continue;
		/* Known to the shim only, which has not answered yet: a whole lease at most.  Its
		 * guard knows the end, too. */
		if (!job->lease.until_ns)
			job->lease.until_ns = now + job->order.lease_ms * CLOCK_NS_PER_MS;
		if (now > job->lease.until_ns + SHIM_LATE_NS)
			outlived(a, job);
		else if (!job->lease.fenced && !job->late && !job->lease.asking &&
			 guest_lease_is_ours(job, now))
			guest_lease_ask(a, job);
	}
}
