/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The ends of jobs at their target.  Jobs that ended within SETTLE_NS are settled together: one
 * reading of the monitor, one transaction, one message to each home.
 *
 *   over -> measured -> in the journal -> on the disk -> told to its home, its record removed
 */
#include <stdio.h>
#include <string.h>

#include "agent/base/loop_share.h"
#include "agent/guest/guest_own.h"
#include "user/clock.h"
#include "user/record.h"
#include "agent/shim/lease.h"

#define SETTLE_NS      (20 * CLOCK_NS_PER_MS)
#define SETTLE_BUSY_NS (100 * CLOCK_NS_PER_MS) /* between settlings, when jobs end all the time */
#define AGAIN_NS       CLOCK_NS_PER_S /* when ends that the journal did not take are written again */

/* One reading serves all jobs that ended since the last one. */
void guest_job_over(struct guest *guest, struct job *job)
{
	guest_shim_close(guest, job);
	job->busy = false;
	job->state = JOB_ENDED;
	job->written = 0;
	/* Now, while the client ends: when the next one asks, it would wait for this. */
	if (!guest->spare.waits)
		loop_start(guest->base->loop, &guest->respare, 0);
	if (!job->end.end_ns)
		job->end.end_ns = loop_real_ns(guest->base->loop);
	if (!guest->settle.active)
		loop_start(guest->base->loop, &guest->settle,
			   loop_boot_ns(guest->base->loop) - guest->settled_ns < SETTLE_BUSY_NS
				   ? SETTLE_BUSY_NS
				   : SETTLE_NS);
	guest->ports->changed(guest->ports->arg);
}

static int guest_ends_write_one(struct guest *guest, struct job *job, struct iocom_err *err)
{
	struct job_report r;
	struct journal_job row;
	msgpack_sbuffer body;
	int rc;

	if (guest_move_left(job))
		return journal_left(guest->journal, job->order.job, job->end.end_ns, job->end.text,
				    err);
	job_report_make(job, guest->config.cpu_speed, &r);
	guest_talk_report(job, &r);
	row = (struct journal_job){
		.job = r.job,
		.state = guest_move_stayed(job) ? JOURNAL_STAYED : r.state,
		.start_ns = r.start_ns,
		.end_ns = r.end_ns,
		.exit_kind = (int)r.kind,
		.exit_value = (int)r.value,
		.text = r.text,
	};
	msgpack_sbuffer_init(&body);
	job_report_pack(&r, &body);
	rc = journal_end(guest->journal, &row, body.data, body.size, err);
	msgpack_sbuffer_destroy(&body);
	return rc;
}

static bool guest_ends_is_unsettled(const struct job *job)
{
	return job->state == JOB_ENDED && !job->written;
}

void guest_note_boot(struct guest *guest)
{
	if (guest->boot > 0)
		(void)journal_set_fact(guest->journal, "boot", guest->boot);
	guest->boot = 0;
}

/* Writes all ends in one transaction, or none.  0, or the journal failed. */
static int guest_ends_write(struct guest *guest)
{
	struct iocom_err err = {0};
	int rc = journal_begin(guest->journal, &err);
	double boot = guest->boot;
	bool said = true;

	for (struct job *job = guest->jobs.first; job && !rc; job = job->next) {
		uid_t before;

		if (!guest_ends_is_unsettled(job))
			continue;
		before = loop_share_enter(guest->base->shares, job->order.uid);
		rc = guest_ends_write_one(guest, job, &err);
		loop_share_leave(guest->base->shares, before);
	}
	if (!rc)
		guest_note_boot(guest);
	if (rc)
		journal_cancel(guest->journal);
	else
		rc = journal_commit(guest->journal, &err);
	if (rc)
		guest->boot = boot;
	for (struct job *job = guest->jobs.first; job; job = job->next) {
		if (!guest_ends_is_unsettled(job))
			continue;
		said &= job->unwritten;
		job->written = rc ? 0 : journal_position(guest->journal);
	}
	if (rc && !said)
		base_journal_failed(guest->base, &err);
	return rc;
}

/* Tells the watches that JOB has left for another node. */
static void guest_ends_left(const struct guest *guest, const struct job *job)
{
	for (const struct guest_watch *w = guest->watches; w; w = w->next)
		if (w->left)
			w->left(w->arg, job->order.job, job->move.target, job->move.said.frozen_ms,
				job->move.said.bytes);
}

/* What home measures counts the wait for a place, too; here it is what this node did to JOB. */
static void guest_ends_slowed(const struct guest *guest, const struct job *job)
{
	struct job_report r;
	double slowdown = 0;

	if (job->lost || job->end.kind != 0 || job->end.value != 0)
		return;
	job_report_make(job, guest->config.cpu_speed, &r);
	slowdown = job_report_slowdown(&r, (double)r.wall_ms);
	for (const struct guest_watch *w = guest->watches; w && slowdown > 0; w = w->next)
		if (w->slowed)
			w->slowed(w->arg, slowdown);
}

/*
 * RC is the journal's result, or the disk's: if it failed, the shim's record stays, and so does
 * JOB, whose end is written again.
 */
static void guest_ends_settle_job(struct guest *guest, struct job *job, int rc)
{
	uid_t before;

	if (!job->unwritten) {
		guest->base->counters->jobs_ended++;
		guest->base->counters->jobs_lost += job->lost;
		guest->base->counters->jobs_oom += job->end.oom_kills > 0;
		guest->base->counters->forks_refused += job->end.forks_refused > 0;
		guest_ends_slowed(guest, job);
	}
	job->unwritten = rc != 0;
	if (rc) {
		job->written = 0;
		return;
	}
	if (guest_move_left(job))
		guest_ends_left(guest, job);
	before = loop_share_enter(guest->base->shares, job->order.uid);
	/* Its output is kept where it goes on, and it may come again. */
	if (guest_move_stayed(job))
		record_remove(guest->jobs_dir, job->order.job);
	guest_forget(guest, job->order.job, job->order.uid,
		     &(struct spool_reserved){job->spool_bytes, job->attached});
	guest_ended(guest, job->order.job);
	guest_talk_end(guest, job);
	jobs_remove(&guest->jobs, job);
	loop_share_leave(guest->base->shares, before);
}

/* Ends that were committed as UP_TO or before; 0: those that the journal did not take. */
static bool guest_ends_settles(const struct job *job, uint64_t up_to)
{
	return job->state == JOB_ENDED && job->written <= up_to && (job->written || !up_to);
}

/*
 * The ends up to the commit UP_TO are on the disk, or RC: they failed to get there.  A home of
 * another node is told of a failed one once anyway, since its journal may work.
 */
static void guest_ends_settle_up_to(struct guest *guest, uint64_t up_to, int rc)
{
	struct job *next;

	for (struct job *job = guest->jobs.first; job; job = job->next)
		job->due = guest_ends_settles(job, up_to) && (!rc || !job->unwritten) &&
			   (!job->written || !guest_is_home(guest, &job->order)) &&
			   !guest_move_left(job);
	guest_report_ended(guest);
	for (struct job *job = guest->jobs.first; job; job = next) {
		next = job->next;
		if (guest_ends_settles(job, up_to))
			guest_ends_settle_job(guest, job, rc);
	}
	if (rc && !guest->settle.active)
		loop_start(guest->base->loop, &guest->settle, AGAIN_NS);
}

static void guest_ends_await(struct guest *guest);

void guest_ends_durable(void *arg, int rc)
{
	struct guest *guest = arg;
	bool more = false;

	guest_ends_settle_up_to(guest, guest->ends.position, rc);
	for (const struct job *job = guest->jobs.first; job; job = job->next)
		more |= job->state == JOB_ENDED && job->written;
	if (more) /* they ended meanwhile */
		guest_ends_await(guest);
}

static void guest_ends_await(struct guest *guest)
{
	if (!guest->ends.waiting && !journal_when_durable(guest->journal, &guest->ends))
		guest_ends_durable(guest, 0);
}

/*
 * An end is told, and the shim's record of it removed, when the disk has it.  A home that is this
 * very node hears of it at once: its row is a later commit in the same journal, and whoever tells
 * that one waits, too.
 */
void guest_settle_all(void *arg)
{
	struct guest *guest = arg;
	bool any = false;
	int rc = 0;

	guest->ports->sample(guest->ports->arg);
	guest->settled_ns = loop_boot_ns(guest->base->loop);
	for (struct job *job = guest->jobs.first; job; job = job->next) {
		if (job->busy)
			guest_shim_died(guest, job);
		job->due = guest_ends_is_unsettled(job);
		any |= job->due;
	}
	if (!any)
		return;
	rc = guest_ends_write(guest);
	if (rc) {
		guest_ends_settle_up_to(guest, 0, rc);
		return;
	}
	for (struct job *job = guest->jobs.first; job; job = job->next)
		job->due &= guest_is_home(guest, &job->order) && !guest_move_left(job);
	guest_report_ended(guest);
	guest_ends_await(guest);
}

void guest_lost(struct guest *guest, struct job *job, const char *why)
{
	/* The job's record may not name its cgroup, or may be missing. */
	guest->launcher->bury(guest->base->set->scope_cgroup, job->order.uid, job->order.job);
	job->lost = !guest_move_never_ran(job);
	job->end.kind = 3;
	job->end.value = job->lost ? LEASE_OUTCOME : LAUNCH_NEVER;
	/* The record of one that never ran says that its outcome is unknown. */
	if (!job->lost || !job->end.text[0])
		snprintf(job->end.text, sizeof(job->end.text), "%s", why);
	log_write(guest->base->log, LOG_L_ERROR, "job %s is lost: %.200s", job->order.job,
		  job->end.text);
	guest_job_over(guest, job);
}

void guest_never_launched(struct guest *guest, struct job *job, const struct iocom_err *err)
{
	job->end.kind = 3;
	job->end.value = LAUNCH_NEVER;
	snprintf(job->end.text, sizeof(job->end.text), "%.250s", err->text);
	guest_job_over(guest, job);
}

void guest_settle_soon(struct guest *guest)
{
	if (!guest->settle.active)
		loop_start(guest->base->loop, &guest->settle, SETTLE_NS);
}

void guest_settle(struct guest *guest)
{
	if (!guest->settle.active)
		return;
	loop_cancel(guest->base->loop, &guest->settle);
	guest_settle_all(guest);
}

void guest_ended(const struct guest *guest, const char *job)
{
	for (const struct guest_watch *w = guest->watches; w; w = w->next)
		if (w->ended)
			w->ended(w->arg, job);
}

void guest_watch(struct guest *guest, struct guest_watch *watch)
{
	watch->next = guest->watches;
	guest->watches = watch;
}
