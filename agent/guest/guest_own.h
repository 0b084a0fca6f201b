/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* What the files of the guest party share. */
#ifndef IOCOM_GUEST_OWN_H
#define IOCOM_GUEST_OWN_H

#include "agent/guest/guest.h"
#include "agent/guest/jobs.h"
#include "agent/guest/launcher.h"
#include "agent/guest/spool_quota.h"
#include "agent/jobs/journal.h"

struct guest {
	const struct base *base;
	struct guest_config config;
	const struct guest_ports *ports;     /* of config */
	const struct launcher *launcher;     /* of config */
	const char *jobs_dir, *run_jobs_dir; /* of config */
	struct journal *journal;
	struct accounts *accounts;
	struct paths *paths;
	struct jobs jobs;
	struct signals_sent *signalled;	      /* signals whose shims have not answered yet */
	struct replays *replays;	      /* NULL: no replay was started yet */
	struct leaving *leaving;	      /* ended jobs whose shims still serve their clients */
	uint64_t spool_kept_bytes;	      /* output of jobs that are over, as last counted */
	struct spool_quota_users spool_users; /* the same by user */
	struct guest_watch *watches;

	struct loop_timer settle;  /* when it fires, one reading serves all ended jobs */
	uint64_t settled_ns;	   /* when jobs were last settled (CLOCK_BOOTTIME) */
	struct loop_timer starts;  /* delays "started" to homes: the job may end first */
	struct launch_spare spare; /* a shim waiting for the next job */
	struct loop_timer respare; /* delays the next spare until a job has begun */
	uint64_t chores;
};

/* --- guest.c --- */

void guest_ended(const struct guest *guest, const char *job);

/* --- guest_report.c --- */

/*
 * Tells ORDER's home how one job ended.  The report stays due in the journal until home has
 * answered.
 */
void guest_report(struct guest *guest, const struct job_order *order, const struct job_report *r);
/*
 * Tells homes how all ended jobs did, many in one message if they have the same home.  FAILED: our
 * journal could not take the reports; each home is told once anyway, since its journal may work.
 */
void guest_report_ended(struct guest *guest, bool failed);
/* Resends the reports that homes have not acknowledged. */
void guest_report_pending(struct guest *guest);
void guest_tell_started(struct guest *guest, struct job *job);

/* --- guest_attach.c --- */

/*
 * Bytes of output that one more job of UID may keep: a part of what running jobs leave free, or a
 * few jobs would take all room from later jobs and from kept output of others; and no more than is
 * left of the user's share.
 */
uint64_t guest_spool_share(const struct guest *guest, uid_t uid);
/* Bytes of output that a new detached job may keep; makes room by removing the oldest output. */
uint64_t guest_spool_quota(struct guest *guest, uid_t uid, uint64_t wanted);
/*
 * The journal has the end of UID's JOB: removes the job's record, or counts the output that is
 * kept.
 */
void guest_forget(struct guest *guest, const char *job, uid_t uid);
/*
 * Returns how many shims of UID's ended jobs there are: they serve their clients for as long as
 * those wish.
 */
size_t guest_leaving_of(struct guest *guest, uid_t uid);
/* Calls guest_forget for jobs whose shims were still busy with their clients. */
void guest_forget_left(struct guest *guest);
/* Closes our descriptors of the senders, which go on. */
void guest_attach_stop(struct guest *guest);

/* --- guest_lease.c --- */

/* Renews due leases, and kills jobs that outlived theirs.  Once a second. */
void guest_lease_chores(struct guest *guest);
/* Takes the lease from the shim's event: it has started, answers a new agent, or has renewed. */
void guest_lease_told(struct job *job, const struct launch_event *said);
/* When the job's lease ends, CLOCK_BOOTTIME in ms; 0: it has none. */
uint64_t guest_lease_until_ms(const struct job *job);

#endif
