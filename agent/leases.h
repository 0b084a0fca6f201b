/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Leases of restartable jobs (`iocom run --restartable`): such a job may be run again
 * from its start when its node is lost, and never twice at a time.
 *
 *   home    holds an end for each, lease_s after it last heard; only after it, and a
 *           margin, it gives the next attempt out, and never renews the old one again
 *   target  asks home to renew while the job runs; what home grants it counts from when
 *           it asked, so its end is never later than home's
 *   shim    kills the job at that end, whoever can be asked then (shim/lease.h)
 *
 * Every attempt is a job of its own with an id of its own, so that all that makes jobs
 * run at most once holds for it; the journal of home ties them together.  Nobody but the
 * user can start one (the spec is signed by the user's credential, which no agent can
 * make): the client that waits for the job asks home for the next attempt.
 *
 * Who renews: the agents, not the shim.  A shim has no keys and opens no connection; it
 * hears what its agent tells on the leash and believes nobody else.  Between agents the
 * sealed control messages are obeyed once, whatever is replayed.  The price: where a
 * target's agent is away longer than a lease, its restartable jobs are ended there; a
 * lease is longer than an agent's restart, and `lease_s` says how much longer.  A shim
 * that spoke to home itself would want a key in a file or in the memory of a process that
 * starts other people's programs, and a second way in at home.
 *
 * All times are durations on CLOCK_BOOTTIME: two machines' dates may differ as they like.
 * The margin covers what two such clocks can drift apart within a lease, and the killing.
 */
#ifndef IOCOM_LEASES_H
#define IOCOM_LEASES_H

#include <stdint.h>

#include "agent.h"

#define LEASE_MARGIN_MS(lease_ms) (2000 + (lease_ms) / 20)
#define LEASE_RENEW_PART	  4 /* so many renewals fit in a lease */
#define LEASES_MAX		  4096
#define LEASE_RESTARTS_MAX	  1000

/* --- lease_home.c --- */

struct lease_held {
	struct lease_held *next;
	char job[SPEC_JOB_MAX];
	uint32_t lease_ms;
	uint64_t until_ns;
};

/* What the client that lost contact to an attempt is told. */
struct lease_answer {
	enum { LEASE_AGAIN, LEASE_WAIT, LEASE_ENDED } what;
	uint64_t wait_ms;	   /* LEASE_WAIT: ask again then */
	struct journal_lease lost; /* the attempt */
	uint32_t attempt;	   /* LEASE_AGAIN: the number of the next */
};

/* Leases that an earlier agent gave: they may have been renewed just before it ended. */
int lease_load(struct agent *a, struct iocom_err *err);
void lease_unload(struct agent *a);
/*
 * JOB is attempt NUMBER of FIRST; LOST is the one before, which is fenced from now on, or
 * "".  0, or negative errno: it must not be run.
 */
int lease_begin(struct agent *a, const char *job, const char *first, uint32_t number,
		uint32_t restarts, const char *lost, struct iocom_err *err);
/* JOB was placed at another node: its lease counts from now.  0 or -ENOMEM. */
int lease_placed(struct agent *a, const char *job, uint32_t lease_ms);
/* Node FROM asks for more time for JOB.  0; -ESTALE with the sentence: fenced, or not ours. */
int lease_renew(struct agent *a, const char *from, const char *job, struct iocom_err *err);
/* Those that are over, margin included, go: they are renewed no more.  Once a second. */
void lease_expire(struct agent *a);
/* JOB is over. */
void lease_ended(struct agent *a, const char *job);
/* UID's client asks what is to become of JOB.  0, or negative errno with the sentence. */
int lease_again(struct agent *a, uid_t uid, const char *job, struct lease_answer *answer,
		struct iocom_err *err);

/* --- lease_target.c --- */

/* Renews what is due, and kills what outlived its lease.  Once a second. */
void lease_tick(struct agent *a);
/* What the shim says when it is asked by a new agent. */
void lease_told(struct job *job, uint64_t until_ms);
/* The job's end by its lease, CLOCK_BOOTTIME in ms; 0: it has none. */
uint64_t lease_until_ms(const struct job *job);

#endif
