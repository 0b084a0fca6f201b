/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* What the files of the guest party share. */
#ifndef IOCOM_GUEST_OWN_H
#define IOCOM_GUEST_OWN_H

#include <msgpack.h>

#include "agent/guest/guest.h"
#include "agent/guest/jobs.h"
#include "agent/guest/launcher.h"
#include "agent/guest/spool_quota.h"
#include "agent/guest/tickets.h"
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
	struct tickets tickets;		      /* of clients that are about to attach */
	struct leaving *leaving;	      /* ended jobs whose shims still serve their clients */
	uint64_t spool_kept_bytes;	      /* output of jobs that are over, as last counted */
	struct spool_quota_users spool_users; /* the same by user */
	struct guest_watch *watches;

	/* They wait for the disk: ends, starts, reports that are sent again. */
	struct journal_wait ends, begun, resend;
	struct start_held *held;   /* starts that wait for the disk */
	bool other_boot;	   /* the machine has booted since the last agent */
	double boot;		   /* the fact to be written with the ends of then; 0: none */
	struct loop_timer settle;  /* when it fires, one reading serves all ended jobs */
	uint64_t settled_ns;	   /* when jobs were last settled (CLOCK_BOOTTIME) */
	struct loop_timer starts;  /* delays "started" to homes: the job may end first */
	struct launch_spare spare; /* a shim waiting for the next job */
	struct loop_timer respare; /* delays the next spare until a job has begun */
	uint64_t chores;
	uint64_t began_ns;	       /* CLOCK_REALTIME */
	struct question_thread *calls; /* of nodes where jobs go (guest_move.c); NULL: none yet */
	struct moving *moving;	       /* they wait for their shims */
	msgpack_sbuffer order_packed;  /* the last answer to PEER_MOVABLE */
};

/* --- guest_admit.c --- */

void guest_admit_refuse(struct peer_grant *g, const char *reason, const char *text);

/* --- guest_start.c --- */

/* Closes the streams of starts that wait for the disk. */
void guest_start_stop(struct guest *guest);

/* --- guest_shim.c --- */

/*
 * Listens to JOB's shim through LEASH, which is taken.  If that is impossible, the chores ask the
 * shim for another one.
 */
void guest_shim_watch(struct guest *guest, struct job *job, int leash);
/* Closes JOB's leash, if there is one. */
void guest_shim_close(struct guest *guest, struct job *job);
/* Takes what a look at JOB's record and shim found, and its leash. */
void guest_shim_found(struct guest *guest, struct job *job, const struct launch_found *f);
/* JOB's shim is gone without reporting an end: takes the record's outcome, else JOB is lost. */
void guest_shim_died(struct guest *guest, struct job *job);
/* `fire` of guest->starts: writes new starts to the journal and tells homes. */
void guest_shim_starts(void *guest);
/* `done` of guest->begun. */
void guest_shim_begun(void *guest, int rc);

/* --- guest_talk.c --- */

/* JOB has started: counts its connections one by one if it is a gang's part, or all jobs' are. */
void guest_talk_begin(struct guest *guest, struct job *job);
/* Adds to REPORT what JOB's ranks sent and received; JOB keeps it until the next report. */
void guest_talk_report(struct job *job, struct job_report *report);
/* JOB is about to be removed. */
void guest_talk_end(const struct guest *guest, const struct job *job);

/* --- guest_ends.c --- */

/* JOB is over; its `end` says how.  It is settled together with others that end soon. */
void guest_job_over(struct guest *guest, struct job *job);
/* Ends JOB as lost: no shim supervises it, and no record tells its outcome. */
void guest_lost(struct guest *guest, struct job *job, const char *why);
/* Ends JOB, which was accepted but never launched. */
void guest_never_launched(struct guest *guest, struct job *job, const struct iocom_err *err);
/* Settles in some milliseconds: jobs may have ended, or shims that were busy may be gone. */
void guest_settle_soon(struct guest *guest);
/* `fire` of guest->settle. */
void guest_settle_all(void *guest);
/* `done` of guest->ends. */
void guest_ends_durable(void *guest, int rc);
/*
 * Writes that this boot is known.  Not before the ends that the last one left: a next agent must
 * not take it for the boot of those jobs.
 */
void guest_note_boot(struct guest *guest);
/* Tells the watches that the journal has JOB's end. */
void guest_ended(const struct guest *guest, const char *job);

/* --- guest_report.c --- */

/* Returns true if ORDER's home is this very node. */
bool guest_is_home(const struct guest *guest, const struct job_order *order);
/*
 * Tells ORDER's home how one job ended.  The report stays due in the journal until home has
 * answered.
 */
void guest_report(struct guest *guest, const struct job_order *order, const struct job_report *r);
/*
 * Tells homes of the jobs that are `due`, how they ended or what they have done so far, many in one
 * message if they have the same home.
 */
void guest_report_ended(struct guest *guest);
/* Resends the reports that homes have not acknowledged and that the disk has. */
void guest_report_pending(struct guest *guest);
/* `done` of guest->resend. */
void guest_report_resend(void *guest, int rc);
void guest_tell_started(struct guest *guest, struct job *job);
/*
 * Tells homes what those jobs have done so far of which home knows too little: their class was
 * never seen, or they have done more than it needs.  Once a second; of each job at 1, 2, 4, ... s.
 */
void guest_tell_progress(struct guest *guest);

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
 * Does the same for what the client of a new attached job may leave.  The attached jobs of a node,
 * and those of a user, reserve at most half of the room, and no user as much of it as is free; a
 * job for which nothing is left runs, but nothing is kept of what its client does not take.
 */
uint64_t guest_spill_quota(struct guest *guest, uid_t uid);
/* Bytes of output that running jobs may still write. */
uint64_t guest_spool_reserved(const struct guest *guest);
/*
 * The journal has the end of UID's JOB, whose output may take RESERVED bytes: removes the job's
 * record, or counts the output that is kept.  The reservation lasts until JOB's shim is gone.
 */
struct spool_reserved {
	uint64_t bytes;
	bool attached;
};
void guest_forget(struct guest *guest, const char *job, uid_t uid,
		  const struct spool_reserved *reserved);
/*
 * Returns how many shims of UID's ended jobs there are, and of all users in ALL: they serve their
 * clients for as long as those wish.
 */
size_t guest_leaving_of(const struct guest *guest, uid_t uid, size_t *all);
/* Calls guest_forget for jobs whose shims were still busy with their clients. */
void guest_forget_left(struct guest *guest);
/*
 * Checks that UID may attach to JOB.  Returns 0, with ENDED if only the journal still knows it; or
 * -ENOENT with the reason in ERR.
 */
int guest_attach_owned(struct guest *guest, const char *job, uid_t uid, bool *ended,
		       struct iocom_err *err);
/* Closes our descriptors of the senders, which go on. */
void guest_attach_stop(struct guest *guest);

/* --- guest_owner.c --- */

/* Returns true if the owner lets the job of ORDER in; else G is the refusal.  USER may be NULL. */
bool guest_owner_admits(struct guest *guest, const struct job_order *order,
			const struct account *user, struct peer_grant *g);
/* JOB is an earlier agent's: learns whether that one was about to expel it. */
void guest_owner_found(struct guest *guest, struct job *job);
/* Once a second: sends due signals to jobs that are expelled. */
void guest_owner_chores(struct guest *guest);

/* --- guest_move.c --- */

/* JOB's shim says that it holds the job, or that it could not move. */
void guest_move_held(struct guest *guest, struct job *job, const struct launch_event *event);
/* JOB has a lease here: if it waits for that, it may run. */
void guest_move_leased(struct guest *guest, struct job *job);
/* Returns true if JOB came by a move and may not run yet. */
bool guest_move_waits(const struct job *job);
/* Asks homes again. */
void guest_move_chores(struct guest *guest);
void guest_move_stop(struct guest *guest);
/* Returns whether JOB came and nobody let it go on: killed with its cgroup, it never ran here. */
bool guest_move_never_ran(const struct job *job);
/* Returns whether JOB, which has ended here, goes on elsewhere: home knows that already. */
bool guest_move_left(const struct job *job);
/* Why JOB cannot move, as far as this agent knows; NULL: it may. */
const char *guest_move_hindrance(const struct job *job);
/* Returns whether UID's job ran here and goes on elsewhere, as far as this node knows. */
bool guest_move_is_elsewhere(const struct guest *guest, const char *job, uid_t uid);
/* Returns whether JOB came and never ran here: home is told, and it may come again. */
bool guest_move_stayed(const struct job *job);

/* --- guest_lease.c --- */

/* Renews due leases, and kills jobs that outlived theirs.  Once a second. */
void guest_lease_chores(struct guest *guest);
/* Asks JOB's home to renew its lease. */
void guest_lease_ask(struct guest *guest, struct job *job);
/* Returns true if JOB needs no lease, or has one that does not end soon. */
bool guest_lease_runs(const struct guest *guest, const struct job *job);
/* Takes the lease from the shim's event: it has started, answers a new agent, or has renewed. */
void guest_lease_told(struct job *job, const struct launch_event *said);
/* When the job's lease ends, CLOCK_BOOTTIME in ms; 0: it needs none; LEASE_NONE_YET. */
uint64_t guest_lease_until_ms(const struct job *job);

#endif
