/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The jobs of an earlier agent, at the start of this one: what the journal calls unfinished is
 * compared with the shims and the records that are left.
 */
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "agent/guest/guest_own.h"
#include "agent/guest/replays.h"
#include "user/pack.h"
#include "agent/shim/lease.h"
#include "agent/shim/order.h"

static void guest_found_unfinished(void *arg, const char *name, uint64_t start_ns,
				   uint64_t cgroup_id, const void *order, size_t length)
{
	struct guest *guest = arg;
	struct job_order o;
	msgpack_unpacked map;
	struct job *job = NULL;

	if (!unpack_map(&map, order, length)) {
		job = job_order_unpack(&o, &map.data) == 0 ? jobs_add(&guest->jobs, &o) : NULL;
		msgpack_unpacked_destroy(&map);
	}
	if (!job) {
		log_write(guest->base->log, LOG_L_ERROR,
			  "job %s: its order in the journal cannot be read, or there is no memory "
			  "for it; this agent cannot tell when it ends",
			  name);
		return;
	}
	job->guest = guest;
	job->state = JOB_LAUNCHING;
	job->start_ns = start_ns;
	job->cgroup_id = cgroup_id;
	job->found = true;
}

/* A record without a start proves nothing after a power cut: its file may not have reached the
 * disk.
 */
static void guest_found_cut(struct launch_found *f)
{
	f->last.value = LEASE_OUTCOME;
	snprintf(f->last.text, sizeof(f->last.text),
		 "the machine went down; whether the job had begun is unknown");
}

static int guest_found_job(void *arg, const struct launch_found *f)
{
	struct guest *guest = arg;
	struct job *job = jobs_find(&guest->jobs, f->job);
	struct launch_found now;

	if (!job) {
		/*
		 * The job's end is in the journal and only the shim's files are left, or it is not
		 * our job.
		 */
		if (f->leash >= 0)
			close(f->leash);
		guest_forget(guest, f->job, f->uid, &(struct spool_reserved){SHIM_SPILL_MAX, true});
		return 0;
	}
	/* What the earlier agent reserved for an attached job is not known: at most this. */
	job->attached = !f->spooled;
	job->spool_bytes = f->spooled ? guest_spool_share(guest, job->order.uid) : SHIM_SPILL_MAX;
	if (f->leash >= 0 || f->busy) {
		log_write(guest->base->log, LOG_L_INFO, "job %s still runs", f->job);
		guest_owner_found(guest, job);
	}
	now = *f;
	if (guest->other_boot && f->leash < 0 && f->last.kind == 3 && f->last.value == LAUNCH_NEVER)
		guest_found_cut(&now);
	guest_shim_found(guest, job, &now);
	return 0;
}

/* A 48-bit number that identifies this boot of the machine; 0: not known. */
static double guest_found_boot(void)
{
	FILE *file = fopen("/proc/sys/kernel/random/boot_id", "re");
	unsigned high = 0, low = 0;

	if (file && fscanf(file, "%8x-%4x", &high, &low) != 2)
		high = low = 0;
	if (file)
		fclose(file);
	return high * 65536.0 + low;
}

/*
 * The job was accepted, but it has no record.  A record is removed only if its job did not begin,
 * or if the journal has its end; but a power cut may have destroyed it.
 */
static void guest_found_nothing(struct guest *guest, struct job *job, bool same_boot)
{
	struct iocom_err err = {.text = "it never began: its agent ended first"};

	guest->launcher->bury(guest->base->set->scope_cgroup, job->order.uid, job->order.job);
	if (same_boot && !job->start_ns)
		guest_never_launched(guest, job, &err);
	else
		guest_lost(guest, job, "no record of it was left after the agent's restart");
}

int guest_recover(struct guest *guest, struct iocom_err *err)
{
	double boot = guest_found_boot();
	bool same_boot = boot > 0 && journal_fact(guest->journal, "boot") == boot;
	int rc;

	guest->other_boot = !same_boot;
	guest->boot = same_boot ? 0 : boot;
	if (journal_unfinished(guest->journal, guest_found_unfinished, guest))
		return iocom_err_set(err, -EIO, "cannot read the job journal in %s",
				     guest->base->set->state_dir);
	rc = guest->launcher->recover(guest->jobs_dir, guest->run_jobs_dir, guest_found_job, guest,
				      err);
	if (rc)
		return rc;
	for (struct job *job = guest->jobs.first; job; job = job->next) {
		if (job->leash < 0 && !job->busy && job->state != JOB_ENDED)
			guest_found_nothing(guest, job, same_boot);
	}
	if (!guest->settle.active)
		guest_note_boot(guest);
	guest_spool_prune(guest);
	replays_recover(guest);
	return 0;
}
