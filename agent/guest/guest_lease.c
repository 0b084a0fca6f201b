/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Leases at the node that runs the job; see leases.h. */
#include "agent/guest/guest_own.h"
#include "agent/jobs/leases.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/shim/lease.h"
#include "user/clock.h"

/* By then the shim should have killed the job; checked each second, within the margin. */
#define SHIM_LATE_NS (500 * CLOCK_NS_PER_MS)

struct asking {
	struct guest *guest;
	char job[SPEC_JOB_MAX];
	uint64_t asked_ns;
};

uint64_t guest_lease_until_ms(const struct job *job)
{
	if (!job->order.lease_ms)
		return 0;
	return job->lease.until_ns ? job->lease.until_ns / CLOCK_NS_PER_MS : LEASE_NONE_YET;
}

static void tell_shim(struct guest *guest, struct job *job, uint64_t until_ms)
{
	if (job->leash >= 0 && guest->launcher->lease(job->leash, until_ms))
		log_write(guest->base->log, LOG_L_WARNING,
			  "job %s: its supervisor accepts no renewal", job->order.job);
}

static void fenced(struct guest *guest, struct job *job, const char *why)
{
	if (job->lease.fenced)
		return;
	guest->base->counters->jobs_fenced++;
	log_write(guest->base->log, LOG_L_WARNING,
		  "ending job %s: its home %s no longer renews its lease: %s", job->order.job,
		  job->order.home, why);
	job->lease.fenced = true;
	job->lease.until_ns = loop_boot_ns(guest->base->loop);
	tell_shim(guest, job, 0);
}

static void guest_lease_answered(void *arg, int rc, const struct peer_answer *answer,
				 const char *why)
{
	struct asking *q = arg;
	struct guest *guest = q->guest;
	struct job *job = rc == -ECANCELED ? NULL : jobs_find(&guest->jobs, q->job);
	uint64_t until_ns;

	if (job)
		job->lease.asking = false;
	if (!job || job->state == JOB_ENDED) {
		free(q);
		return;
	}
	if (rc) {
		log_write(guest->base->log, LOG_L_INFO,
			  "the lease of job %s is not renewed yet: %s", q->job, why);
	} else if (answer->ok) {
		/*
		 * Our copy of the lease begins when we asked, but home's begins later, and the shim
		 * may have more.
		 */
		until_ns = q->asked_ns + job->order.lease_ms * CLOCK_NS_PER_MS;
		if (until_ns > job->lease.until_ns)
			job->lease.until_ns = until_ns;
		tell_shim(guest, job, guest_lease_until_ms(job));
		guest_move_leased(guest, job);
	} else {
		fenced(guest, job, answer->text);
	}
	free(q);
}

void guest_lease_ask(struct guest *guest, struct job *job)
{
	const struct job_order *o = &job->order;
	struct peer_request request = {.type = PEER_RENEW, .renew.lease_ms = o->lease_ms};
	struct asking *q = calloc(1, sizeof(*q));
	struct iocom_err err = {0};
	int rc;

	if (!q)
		return;
	q->guest = guest;
	q->asked_ns = job->lease.asked_ns = loop_boot_ns(guest->base->loop);
	memcpy(q->job, o->job, sizeof(q->job));
	memcpy(request.job, o->job, sizeof(request.job));
	job->lease.asking = true;
	rc = guest->ports->ask(guest->ports->ask_arg, o->home, o->home_address, o->home_port,
			       &request, guest_lease_answered, q, &err);
	if (!rc)
		return;
	job->lease.asking = false;
	if (rc != -EHOSTUNREACH)
		log_write(guest->base->log, LOG_L_WARNING, "cannot renew the lease of job %s: %s",
			  o->job, err.text);
	free(q);
}

bool guest_lease_runs(const struct guest *guest, const struct job *job)
{
	uint64_t lease_ns = job->order.lease_ms * CLOCK_NS_PER_MS;

	return !lease_ns || job->lease.until_ns > loop_boot_ns(guest->base->loop) + lease_ns / 2;
}

/* The lease is over: the shim kills the job; if the shim is stopped or dead, we do. */
static void outlived(struct guest *guest, struct job *job)
{
	if (!job->lease.killed) {
		guest->base->counters->jobs_fenced += !job->lease.fenced;
		log_write(guest->base->log, LOG_L_WARNING,
			  "killing job %s: it outlived its lease, and its supervisor is late",
			  job->order.job);
	}
	job->lease.killed = true;
	guest->launcher->kill(guest->base->set->scope_cgroup, job->order.uid, job->order.job);
}

void guest_lease_told(struct job *job, const struct launch_event *said)
{
	job->lease.renews = said->renews;
	if (job->order.lease_ms && said->lease_until_ms)
		job->lease.until_ns = said->lease_until_ms * CLOCK_NS_PER_MS;
}

/* Returns true if we must ask home, because the shim does not, or could not for half a lease. */
static bool guest_lease_is_ours(const struct job *job, uint64_t now)
{
	uint64_t lease_ns = job->order.lease_ms * CLOCK_NS_PER_MS;

	if (now < job->lease.asked_ns + lease_ns / LEASE_RENEW_PART)
		return false;
	return !job->lease.renews || now + lease_ns / 2 >= job->lease.until_ns;
}

void guest_lease_chores(struct guest *guest)
{
	uint64_t now = loop_boot_ns(guest->base->loop);

	for (struct job *job = guest->jobs.first; job; job = job->next) {
		if (!job->order.lease_ms || guest_move_never_ran(job) ||
		    (job->state != JOB_RUNNING && job->state != JOB_LAUNCHING))
			continue;
		/*
		 * Only the shim knows the lease's end and has not answered yet: assume a whole
		 * lease.  Its guard knows the end, too.
		 */
		if (!job->lease.until_ns)
			job->lease.until_ns = now + job->order.lease_ms * CLOCK_NS_PER_MS;
		if (now > job->lease.until_ns + SHIM_LATE_NS)
			outlived(guest, job);
		else if (!job->lease.fenced && !job->late && !job->lease.asking &&
			 !guest_move_waits(job) && guest_lease_is_ours(job, now))
			guest_lease_ask(guest, job);
	}
}
