/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What a job's shim tells its target through the leash: that the job has started, and that it has
 * exited.  A shim may also be late, of a later version, or dead.
 */
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "agent/base/loop_share.h"
#include "agent/guest/guest_own.h"
#include "user/clock.h"
#include "agent/shim/lease.h"

#define STARTS_NS (20 * CLOCK_NS_PER_MS) /* a job that ends sooner sends no separate "started" */

void guest_shim_close(struct guest *guest, struct job *job)
{
	if (job->leash < 0)
		return;
	loop_remove(guest->base->loop, &job->leash_entry);
	close(job->leash);
	job->leash = -1;
}

static void guest_shim_started(struct guest *guest, struct job *job, const struct launch_event *e)
{
	/* A shim that renewed its lease sends the same event. */
	if (job->state == JOB_RUNNING && !job->late && job->pid == e->pid) {
		guest_lease_told(job, e);
		return;
	}
	guest->base->counters->jobs_started += job->state != JOB_RUNNING;
	if (job->state != JOB_RUNNING && !job->found)
		job->running_ns = loop_real_ns(guest->base->loop);
	job->state = JOB_RUNNING;
	job->pid = e->pid;
	job->cgroup_id = e->cgroup_id;
	job->late = false;
	guest_lease_told(job, e);
	if (job->move.said.there)
		job->move.held = false;
	guest_talk_begin(guest, job);
	if (!job->start_ns)
		job->start_ns = loop_real_ns(guest->base->loop);
	job->told = false;
	if (!guest->starts.active)
		loop_start(guest->base->loop, &guest->starts, STARTS_NS);
}

static bool guest_shim_untold(const struct guest *guest, const struct job *job)
{
	return job->state == JOB_RUNNING && job->told && !job->tells &&
	       !guest_is_home(guest, &job->order);
}

static void guest_shim_await_begun(struct guest *guest);

/*
 * A home that knows that a job runs waits for its end, however long: this node must not have
 * forgotten the job after a power cut.  If the sync fails, home is told all the same: it would soon
 * say that the job never started.
 */
void guest_shim_begun(void *arg, int rc)
{
	struct guest *guest = arg;
	uint64_t up_to = guest->begun.position;
	bool more = false;

	(void)rc;
	for (struct job *job = guest->jobs.first; job; job = job->next) {
		if (!guest_shim_untold(guest, job))
			continue;
		if (job->written <= up_to)
			guest_tell_started(guest, job);
		else
			more = true;
	}
	if (more) /* they started meanwhile */
		guest_shim_await_begun(guest);
}

static void guest_shim_await_begun(struct guest *guest)
{
	if (!guest->begun.waiting && !journal_when_durable(guest->journal, &guest->begun))
		guest_shim_begun(guest, 0);
}

void guest_shim_starts(void *arg)
{
	struct guest *guest = arg;
	struct iocom_err err = {0};
	bool elsewhere = false;
	uid_t before;

	for (struct job *job = guest->jobs.first; job; job = job->next) {
		if (job->state != JOB_RUNNING || job->told)
			continue;
		job->told = true;
		before = loop_share_enter(guest->base->shares, job->order.uid);
		if (journal_started(guest->journal, job->order.job, job->start_ns, job->pid,
				    job->cgroup_id, &err))
			base_journal_failed(guest->base, &err);
		job->written = journal_position(guest->journal);
		if (guest_is_home(guest, &job->order))
			guest_tell_started(guest, job);
		elsewhere |= guest_shim_untold(guest, job);
		loop_share_leave(guest->base->shares, before);
	}
	if (elsewhere)
		guest_shim_await_begun(guest);
}

static void guest_shim_is_newer(struct guest *guest, struct job *job);

static void guest_shim_take_event(struct job *job)
{
	struct guest *guest = job->guest;
	struct launch_event e = {0};
	int rc = guest->launcher->read(job->leash, &e);

	if (rc == -EAGAIN)
		return;
	if (rc == -EPROTONOSUPPORT) {
		guest_shim_close(guest, job);
		guest_shim_is_newer(guest, job);
		return;
	}
	if (rc) {
		guest_shim_died(guest, job);
		return;
	}
	if (e.type == LAUNCH_STARTED) {
		guest_shim_started(guest, job, &e);
	} else if (e.type == LAUNCH_MOVED || e.type == LAUNCH_READY) {
		guest_move_held(guest, job, &e);
	} else if (e.type == LAUNCH_EXITED) {
		job->end = e;
		job->lost = e.kind == 3 && e.value == LEASE_OUTCOME;
		guest_job_over(guest, job);
	}
}

static void guest_shim_ready(void *arg, uint32_t events)
{
	struct job *job = arg;
	const struct base *base = job->guest->base;
	uid_t before = loop_share_enter(base->shares, job->order.uid);

	(void)events;
	guest_shim_take_event(job); /* this may free JOB */
	loop_share_leave(base->shares, before);
}

void guest_shim_watch(struct guest *guest, struct job *job, int leash)
{
	int rc;

	job->leash = leash;
	job->leash_entry = (struct loop_fd){.fd = leash, .ready = guest_shim_ready, .arg = job};
	rc = loop_add(guest->base->loop, &job->leash_entry, EPOLLIN);
	if (!rc)
		return;
	log_write(guest->base->log, LOG_L_ERROR, "cannot watch job %s: %s; tried again",
		  job->order.job, strerror(-rc));
	guest_shim_close(guest, job);
	job->busy = true;
}

/* Leaves the job alone until it ends; the chores check for that. */
static void guest_shim_is_newer(struct guest *guest, struct job *job)
{
	if (!job->newer)
		log_write(guest->base->log, LOG_L_WARNING,
			  "job %s: its supervisor speaks a later version than this agent; the job "
			  "is left alone until it ends",
			  job->order.job);
	job->newer = job->late = job->busy = true;
}

/*
 * The shim lives but has not answered: it is stopped, slow, or of a later version.  The job is not
 * lost: it counts as running until its shim answers or is gone.
 */
static void guest_shim_is_late(struct guest *guest, struct job *job, const struct launch_found *f)
{
	bool late = f->busy || (f->leash >= 0 && !f->started.pid);

	guest->base->counters->jobs_late += late && !job->late;
	job->late = late;
	if (f->newer)
		guest_shim_is_newer(guest, job);
}

void guest_shim_found(struct guest *guest, struct job *job, const struct launch_found *f)
{
	job->busy = f->busy;
	guest_shim_is_late(guest, job, f);
	if (f->start_ns)
		job->start_ns = f->start_ns;
	if (f->started.cgroup_id)
		job->cgroup_id = f->started.cgroup_id;
	if (f->busy)
		return;
	if (f->leash < 0) {
		job->end = f->last;
		if (f->last.kind == 3 && f->last.value == LAUNCH_NEVER)
			guest->launcher->bury(
				guest->base->set->scope_cgroup, job->order.uid,
				job->order.job); /* the directory is made before the record */
		if (f->last.kind == 3 && f->last.value != LAUNCH_NEVER)
			guest_lost(guest, job, "its supervisor was killed");
		else
			guest_job_over(guest, job);
		return;
	}
	guest_shim_watch(guest, job, f->leash);
	if (f->started.pid)
		guest_shim_started(guest, job, &f->started);
	else if (f->started.type == LAUNCH_READY)
		guest_move_held(guest, job, &f->started);
}

void guest_shim_died(struct guest *guest, struct job *job)
{
	struct launch_found f = {0};
	bool before = job->busy;

	guest_shim_close(guest, job);
	if (guest->launcher->outcome(guest->jobs_dir, guest->run_jobs_dir, job->order.job, &f)) {
		guest_lost(guest, job, "the job's supervisor was killed, and its record is gone");
		return;
	}
	guest_shim_found(guest, job, &f);
	/* Killed a moment ago, it may hold its lock yet.  Later the chores look. */
	if (job->busy && !before)
		guest_settle_soon(guest);
}
