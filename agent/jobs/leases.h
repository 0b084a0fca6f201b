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
 *   guard   does where the shim was killed or stopped, and no agent sees it (shim/guard.h)
 *
 * Every attempt is a job of its own with an id of its own, so that all that makes jobs
 * run at most once holds for it; the journal of home ties them together.  Nobody but the
 * user can start one (the spec is signed by the user's credential, which no agent can
 * make): the client that waits for the job asks home for the next attempt.
 *
 * Who renews: the shim (shim/renew.h), with home's job port, so that a target's agent may
 * be away for as long as it likes.  Its key is a secret of this one attempt: home makes
 * it, keeps it in its journal, and sends it in the sealed order; the shim has it in its
 * memory only.  It renews this lease and nothing else, and is worth nothing afterwards.
 * The number of each question is larger than those before, and home's journal knows the
 * last one, so that nothing shown again is obeyed, also by a new agent.  Home signs its
 * answer: neither can a stranger have a job killed, nor let it outlive its lease.  That
 * goes over plain TCP also where there is TLS: nothing in it is secret, and a shim would
 * want the node's key for it.
 *
 * Where the shim has no secret (home or shim of an older build), or could not reach home's
 * job port for half a lease, the agent asks as well, by a sealed control message.
 *
 * All times are durations on CLOCK_BOOTTIME: two machines' dates may differ as they like.
 * The margin covers what two such clocks can drift apart within a lease, and the killing.
 */
#ifndef IOCOM_LEASES_H
#define IOCOM_LEASES_H

#include <stdint.h>

#include "agent/agent.h"

#define LEASE_MARGIN_MS(lease_ms) (2000 + (lease_ms) / 20)
#define LEASE_RENEW_PART	  4 /* so many renewals fit in a lease */
#define LEASES_MAX		  4096
#define LEASE_RESTARTS_MAX	  1000

/* --- lease_home.c --- */

struct lease_held {
	struct lease_held *next;
	char job[SPEC_JOB_MAX];
	uint32_t lease_ms;
	bool renews; /* its shim asks, with: */
	uint8_t secret[RENEWAL_SECRET];
	uint64_t until_ns;
};

struct lease_held *lease_find(const struct agent *agent, const char *job);

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
 * ORDER's job is attempt NUMBER of FIRST; LOST is the one before, which is not renewed any
 * more, or "".  ORDER gets the secret for its renewals.  0, or negative errno: it must not
 * be run.
 */
int lease_begin(struct agent *a, struct job_order *order, const char *first, uint32_t number,
		uint32_t restarts, const char *lost, struct iocom_err *err);
/*
 * JOB has a place, and LOST is fenced for good, before anybody can start JOB: a crash
 * between the two loses, it never doubles.  0; -ESTALE another has taken its place.
 */
int lease_fence(struct agent *a, const char *lost, const char *job, struct iocom_err *err);
/* ORDER's job was placed at another node: its lease counts from now.  0 or -ENOMEM. */
int lease_placed(struct agent *a, const struct job_order *order);
/* Node FROM asks for more time for JOB.  0; -ESTALE with the sentence: fenced, or not ours. */
int lease_renew(struct agent *a, const char *from, const char *job, struct iocom_err *err);
/* Those that are over, margin included, go: they are renewed no more.  Once a second. */
void lease_expire(struct agent *a);
/* JOB is over. */
void lease_ended(struct agent *a, const char *job);
/*
 * Whether JOB was lost so short a time ago that the process that waits for it may have it
 * run again yet.
 */
bool lease_may_follow(struct agent *a, const char *job);
/* UID's client asks what is to become of JOB.  0, or negative errno with the sentence. */
int lease_again(struct agent *a, uid_t uid, const char *job, struct lease_answer *answer,
		struct iocom_err *err);
/* What the client is told: when to ask again, or how it ended. */
json_t *lease_answer_json(const struct lease_answer *answer);
/* To one that wants NODE and no other, which is silent; for how long it waits is its affair. */
json_t *lease_silent_json(const struct agent *a, const char *node);

/* --- lease_asked.c --- */

/*
 * A shim's question (FRAME_RENEW's payload); ANSWER is FRAME_RENEWED's.  0; negative errno
 * with the sentence: it is no shim's whose job has or had a lease here, or not the first
 * time.
 */
int lease_asked(struct agent *a, const void *payload, uint32_t length,
		uint8_t answer[RENEWAL_ANSWER], struct iocom_err *err);

/* --- guest_lease.c --- */

/* Renews what is due, and kills what outlived its lease.  Once a second. */
void lease_tick(struct agent *a);
/* What the shim says when it has started, is asked by a new agent, or has renewed. */
void lease_told(struct job *job, const struct launch_event *said);
/* The job's end by its lease, CLOCK_BOOTTIME in ms; 0: it has none. */
uint64_t lease_until_ms(const struct job *job);

#endif
