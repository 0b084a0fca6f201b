/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The life of the guest party, its chores, and what others may know of its jobs.  The way of a job
 * is in guest_admit.c (its lease), guest_start.c, guest_shim.c (what its supervisor tells),
 * guest_lease.c, guest_ends.c and guest_report.c (its home is told); guest_found.c takes over the
 * jobs of an earlier agent, guest_attach.c the output that jobs left, guest_keys.c the keys of
 * their streams, jobs.c holds the table.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "agent/base/question_thread.h"
#include "agent/guest/guest_own.h"
#include "user/clock.h"
#include "agent/guest/paths.h"
#include "agent/guest/replays.h"
#include "agent/guest/signals.h"
#include "agent/guest/stopped.h"
#include "agent/jobs/leases.h"

#define REPORT_EVERY 5 /* chores */

static void guest_respare(void *arg)
{
	struct guest *guest = arg;

	guest->launcher->spare_make(&guest->spare, guest->base->set->shim,
				    guest->base->set->scope_cgroup);
}

/* Asks shims again that could not be asked before. */
static void guest_look_for_busy(struct guest *guest)
{
	for (struct job *job = guest->jobs.first; job; job = job->next)
		if (job->busy)
			guest_shim_died(guest, job);
}

static void guest_expire(struct guest *guest)
{
	uint64_t now = loop_boot_ns(guest->base->loop);
	struct job *next;

	guest_look_for_busy(guest);

	for (struct job *job = guest->jobs.first; job; job = next) {
		struct job_report r;

		next = job->next;
		if (job->state != JOB_LEASED || job->lease_until_ns > now)
			continue;
		guest->base->counters->leases_expired++;
		job->end.kind = 3;
		job->end.value = LAUNCH_NEVER;
		job->end.end_ns = loop_real_ns(guest->base->loop);
		snprintf(job->end.text, sizeof(job->end.text),
			 "the client did not come within %d s of the lease",
			 (int)(JOBS_LEASE_NS / CLOCK_NS_PER_S));
		job_report_make(job, guest->config.cpu_speed, &r);
		guest_report(guest, &job->order, &r);
		jobs_remove(&guest->jobs, job);
		guest->ports->changed(guest->ports->arg);
	}
}

void guest_chores(struct guest *guest)
{
	guest_expire(guest);
	guest_lease_chores(guest);
	guest_owner_chores(guest);
	guest_forget_left(guest);
	guest_tell_progress(guest);
	guest_move_chores(guest);
	if (guest->chores++ % REPORT_EVERY == 0)
		guest_report_pending(guest);
}

int guest_new(struct guest **out, const struct guest_config *config, struct iocom_err *err)
{
	struct guest *guest = calloc(1, sizeof(*guest));

	if (!guest || paths_new(&guest->paths, config->base->loop, config->base->counters)) {
		free(guest);
		return iocom_err_set(err, -ENOMEM, "out of memory");
	}
	guest->config = *config;
	guest->base = config->base;
	guest->began_ns = loop_real_ns(config->base->loop);
	guest->ports = &guest->config.ports;
	guest->launcher = config->launcher;
	guest->jobs_dir = config->jobs_dir;
	guest->run_jobs_dir = config->run_jobs_dir;
	guest->journal = config->journal;
	guest->accounts = config->accounts;
	guest->jobs.network_mb_per_s = config->base->set->network_mb_per_s;
	guest->settle = (struct loop_timer){.fire = guest_settle_all, .arg = guest};
	guest->starts = (struct loop_timer){.fire = guest_shim_starts, .arg = guest};
	guest->spare.jobs_dir = guest->jobs_dir;
	guest->respare = (struct loop_timer){.fire = guest_respare, .arg = guest};
	guest->ends = (struct journal_wait){.done = guest_ends_durable, .arg = guest};
	guest->begun = (struct journal_wait){.done = guest_shim_begun, .arg = guest};
	guest->resend = (struct journal_wait){.done = guest_report_resend, .arg = guest};
	*out = guest;
	return 0;
}

void guest_begin(struct guest *guest)
{
	loop_start(guest->base->loop, &guest->respare, 0);
}

void guest_stop(struct guest *guest)
{
	if (!guest)
		return;
	paths_free(guest->paths);
	guest->paths = NULL;
	signals_stop(guest);
	guest_move_stop(guest);
}

void guest_free(struct guest *guest)
{
	if (!guest)
		return;
	guest_stop(guest);
	guest_attach_stop(guest);
	guest_start_stop(guest);
	journal_forget(guest->journal, &guest->ends);
	journal_forget(guest->journal, &guest->begun);
	journal_forget(guest->journal, &guest->resend);
	for (struct job *job = guest->jobs.first; job; job = job->next)
		guest_shim_close(guest, job);
	loop_cancel(guest->base->loop, &guest->settle);
	loop_cancel(guest->base->loop, &guest->starts);
	loop_cancel(guest->base->loop, &guest->respare);
	guest->launcher->spare_drop(&guest->spare);
	jobs_fini(&guest->jobs);
	tickets_erase(&guest->tickets);
	free(guest);
}

/* --- what others may know ------------------------------------------------------ */

static void guest_sampled(void *arg, const struct monitor_sample *sample,
			  struct vector_jobs_did *all)
{
	struct guest *guest = arg;

	jobs_sampled(&guest->jobs, guest->config.names, sample, all);
	guest->base->counters->connections_summed += guest->jobs.talk_rest;
	guest->jobs.talk_rest = 0;
}

static void guest_period(void *arg, double elapsed_ms)
{
	struct guest *guest = arg;

	jobs_period(&guest->jobs, elapsed_ms);
}

static struct vector_job *guest_vector(void *arg, size_t *n)
{
	const struct guest *guest = arg;

	return jobs_vector(&guest->jobs, n);
}

struct pulse_jobs guest_pulse_jobs(struct guest *guest)
{
	return (struct pulse_jobs){
		.arg = guest,
		.sampled = guest_sampled,
		.period = guest_period,
		.vector = guest_vector,
	};
}

int guest_whose(const struct guest *guest, uint64_t cgroup_id, const char **job, uid_t *uid)
{
	return jobs_whose(&guest->jobs, cgroup_id, job, uid);
}

bool guest_is_late(const struct guest *guest, const char *name)
{
	const struct job *job = jobs_find(&guest->jobs, name);

	return job && job->late && job->state != JOB_ENDED;
}

bool guest_is_stopped(const struct guest *guest, const char *name)
{
	const struct job *job = jobs_find(&guest->jobs, name);

	return job && job->state == JOB_RUNNING && stopped_is(job->pid);
}

void guest_count(struct guest *guest, struct guest_counts *counts)
{
	*counts = (struct guest_counts){
		.move_calls = question_thread_count(guest->calls),
		.jobs = guest->jobs.count,
		.signals = signals_count(guest),
		.replays = replays_count(guest),
		.tickets = tickets_count(&guest->tickets, loop_boot_ns(guest->base->loop)),
		.spool_bytes = guest->spool_kept_bytes,
		.spool_reserved = guest_spool_reserved(guest),
	};
	if (guest->paths)
		counts->paths = paths_count(guest->paths, &counts->paths_late);
}
