/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Leases at the home node; agent/jobs/leases.h has the whole of it. */
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
	uint32_t lease_ms;
	bool renews; /* its shim asks, with: */
	uint8_t secret[RENEWAL_SECRET];
	uint64_t until_ns;
};

struct lease_held *lease_find(const struct home *home, const char *job);

/* What the client that lost contact to an attempt is told. */
struct lease_answer {
	enum { LEASE_AGAIN, LEASE_WAIT, LEASE_ENDED } what;
	uint64_t wait_ms;	   /* LEASE_WAIT: ask again then */
	struct journal_lease lost; /* the attempt */
	uint32_t attempt;	   /* LEASE_AGAIN: the number of the next */
};

/* Leases that an earlier agent gave: they may have been renewed just before it ended. */
int lease_load(struct home *home, struct iocom_err *err);
void lease_unload(struct home *home);
/*
 * ORDER's job is attempt NUMBER of FIRST; LOST is the one before, which is not renewed any
 * more, or "".  ORDER gets the secret for its renewals.  0, or negative errno: it must not
 * be run.
 */
int lease_begin(struct home *home, struct job_order *order, const char *first, uint32_t number,
		uint32_t restarts, const char *lost, struct iocom_err *err);
/*
 * JOB has a place, and LOST is fenced for good, before anybody can start JOB: a crash
 * between the two loses, it never doubles.  0; -ESTALE another has taken its place.
 */
int lease_fence(struct home *home, const char *lost, const char *job, struct iocom_err *err);
/* ORDER's job was placed at another node: its lease counts from now.  0 or -ENOMEM. */
int lease_placed(struct home *home, const struct job_order *order);
/* Node FROM asks for more time for JOB.  0; -ESTALE with the sentence: fenced, or not ours. */
int lease_renew(struct home *home, const char *from, const char *job, struct iocom_err *err);
/* Those that are over, margin included, go: they are renewed no more.  Once a second. */
void lease_expire(struct home *home);
/* JOB is over. */
void lease_ended(struct home *home, const char *job);
/* UID's client asks what is to become of JOB.  0, or negative errno with the sentence. */
int lease_again(struct home *home, uid_t uid, const char *job, struct lease_answer *answer,
		struct iocom_err *err);
/* What the client is told: when to ask again, or how it ended. */
json_t *lease_answer_json(const struct lease_answer *answer);
/* To one that wants NODE and no other, which is silent; for how long it waits is its affair. */
json_t *lease_silent_json(const struct home *home, const char *node);

#endif
