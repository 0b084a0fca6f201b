/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Leases at the home node; agent/jobs/leases.h explains the whole. */
#ifndef IOCOM_HOME_LEASES_H
#define IOCOM_HOME_LEASES_H

#include <jansson.h>
#include <stdint.h>

#include "agent/home/home_own.h"
#include "agent/jobs/leases.h"
#include "balancer/view/placement.h"

struct lease_held {
	struct lease_held *next;
	char job[SPEC_JOB_MAX];
	uid_t uid;
	uint32_t lease_ms;
	bool renews; /* its shim asks home, with the secret */
	uint8_t secret[RENEWAL_SECRET];
	uint64_t until_ns;
};

struct lease_held *lease_find(const struct home *home, const char *job);

/* The answer to a client that lost contact with an attempt. */
struct lease_answer {
	enum { LEASE_AGAIN, LEASE_WAIT, LEASE_ENDED } what;
	uint64_t wait_ms;	   /* LEASE_WAIT: ask again after this */
	struct journal_lease lost; /* the lost attempt */
	uint32_t attempt;	   /* LEASE_AGAIN: the next attempt's number */
};

/* Loads leases that an earlier agent gave: it may have renewed them just before it ended. */
int lease_load(struct home *home, struct iocom_err *err);
void lease_unload(struct home *home);
/*
 * Begins a lease: ORDER's job is attempt NUMBER of FIRST; LOST is the attempt before, which is no
 * longer renewed, or "".  ORDER gets its secret, which the journal has for its renewals.  Returns
 * 0; negative errno: the job must not run.
 */
int lease_begin(struct home *home, struct job_order *order, const char *first, uint32_t number,
		uint32_t restarts, const char *lost, struct iocom_err *err);
/*
 * JOB has a place: fences LOST for good before anybody can start JOB, so that a crash between the
 * two loses the job but never doubles it.  Returns 0; -ESTALE another attempt has taken its place.
 */
int lease_fence(struct home *home, const char *lost, const char *job, struct iocom_err *err);
/* ORDER's job was placed at another node: its lease begins now.  Returns 0 or -ENOMEM. */
int lease_placed(struct home *home, const struct job_order *order);
/*
 * Renews JOB's lease for node FROM.  Returns 0; -ESTALE with the reason in ERR: fenced, or not our
 * lease.
 */
int lease_renew(struct home *home, const char *from, const char *job, struct iocom_err *err);
/*
 * JOB, whose ORDER has a secret of its own, may move to NODE: ORDER gets what its lease there will
 * need.  Returns 0; -EAGAIN with the reason in ERR: too many jobs have leases.
 */
int lease_may_move(struct home *home, struct job_order *order, const char *node,
		   struct iocom_err *err);
/*
 * JOB goes on at NODE, and a shim with SECRET renews its lease there; NULL: none can, only that
 * node's agent.  Does nothing if JOB has no lease.  Returns 0 or negative errno with the reason in
 * ERR.
 */
int lease_hand_on(struct home *home, const char *job, const char *node,
		  const uint8_t secret[RENEWAL_SECRET], struct iocom_err *err);
/* Returns true if JOB was given up, or may be: it must not go on at NODE. */
bool lease_is_lost(struct home *home, const char *job, const char *node);
/* Drops leases that are over, margin included: they are never renewed.  Once a second. */
void lease_expire(struct home *home);
/* Ends JOB's lease, because JOB is over. */
void lease_ended(struct home *home, const char *job);
/*
 * Answers UID's client that asks what to do about JOB.  Returns 0, or negative errno with the
 * reason in ERR.
 */
int lease_again(struct home *home, uid_t uid, const char *job, struct lease_answer *answer,
		struct iocom_err *err);
/* Makes the answer for the client: when to ask again, or how the job ended. */
json_t *lease_answer_json(const struct lease_answer *answer);
/* Answers a client that wants only NODE, which is silent; the client decides how long it waits. */
json_t *lease_silent_json(const struct home *home, const char *node);

#endif
