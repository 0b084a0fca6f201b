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
	struct replays *replays;	      /* NULL: none yet */
	struct leaving *leaving;	      /* ended jobs whose shims still serve their clients */
	uint64_t spool_kept_bytes;	      /* output of jobs that are over, as last looked at */
	struct spool_quota_users spool_users; /* ... by user */
	struct guest_watch *watches;

	struct loop_timer settle;  /* ended jobs wait for one reading */
	uint64_t settled_ns;	   /* when the last ones were settled (CLOCK_BOOTTIME) */
	struct loop_timer starts;  /* homes are told of jobs that run, unless they end first */
	struct launch_spare spare; /* a shim for the next job */
	struct loop_timer respare; /* the next spare is started, not while a job begins */
	uint64_t chores;
};

/* --- guest.c --- */

void guest_ended(const struct guest *guest, const char *job);

/* --- guest_report.c --- */

/* Tells ORDER's home how one job ended.  Until home has answered it stays due in the journal. */
void guest_report(struct guest *guest, const struct job_order *order, const struct job_report *r);
/*
 * Tells homes how all ended jobs did, many in one message where they have the same home.
 * FAILED: the journal could not take them; home may have one that can, and hears of each once.
 */
void guest_report_ended(struct guest *guest, bool failed);
/* Tells homes again what they have not acknowledged. */
void guest_report_pending(struct guest *guest);
void guest_tell_started(struct guest *guest, struct job *job);

/* --- guest_attach.c --- */

/*
 * Bytes of output that one more job of UID may be promised: a part of what the running ones
 * leave, or a few would take all room from those that come and from what is kept of others;
 * and no more than is left of the user's share.
 */
uint64_t guest_spool_share(const struct guest *guest, uid_t uid);
/* Bytes of output that a new detached job may keep; makes room by removing the oldest. */
uint64_t guest_spool_quota(struct guest *guest, uid_t uid, uint64_t wanted);
/* The journal has the end of UID's JOB: its record goes, or what is kept of it is counted. */
void guest_forget(struct guest *guest, const char *job, uid_t uid);
/* How many shims UID has whose jobs are over: they serve clients as long as those like. */
size_t guest_leaving_of(struct guest *guest, uid_t uid);
/* The same for those whose shims were still busy with their clients. */
void guest_forget_left(struct guest *guest);
/* Closes what watches the senders; they go on. */
void guest_attach_stop(struct guest *guest);

/* --- guest_lease.c --- */

/* Renews what is due, and kills what outlived its lease.  Once a second. */
void guest_lease_chores(struct guest *guest);
/* What the shim says when it has started, is asked by a new agent, or has renewed. */
void guest_lease_told(struct job *job, const struct launch_event *said);
/* The job's end by its lease, CLOCK_BOOTTIME in ms; 0: it has none. */
uint64_t guest_lease_until_ms(const struct job *job);

#endif
