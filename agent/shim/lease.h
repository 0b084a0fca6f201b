/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The lease of a restartable job, as its shim holds it.
 *
 * Home may run such a job again elsewhere when its node is lost, but home only knows that it
 * hears nothing from that node. So the job must not outlive its lease: a lease that home renews
 * ends later at home than here. When it ends here, the shim kills the whole cgroup, even if it
 * can tell nobody.
 *
 * Times are CLOCK_BOOTTIME in ms of this machine: this clock runs while the machine sleeps, and
 * nobody can set it. The shim asks home to renew (renew.h); if it cannot, the agent asks.
 */
#ifndef IOCOM_SHIM_LEASE_H
#define IOCOM_SHIM_LEASE_H

#include <stdbool.h>
#include <stdint.h>

#include "user/record.h"

#define LEASE_OUTCOME 255 /* exit value of a job that was ended but can be run again */

#define LEASE_WHY_MAX 160

/*
 * The lease of a job that moves here begins when it may run; until then it has this end, which is
 * over.
 */
#define LEASE_NONE_YET 2

struct lease {
	uint64_t until_ms;	      /* 0: the job needs no lease; LEASE_NONE_YET: it has none */
	const char *why;	      /* why the job was ended; NULL: it was not */
	char expelled[LEASE_WHY_MAX]; /* why the owner expels the job; "": nobody does */
};

/* Takes UNTIL_MS of a message: a later end, or 0 if home has given the job to another node. */
void lease_hear(struct lease *lease, uint64_t until_ms);
/* Returns true if home has given the job to another node. */
bool lease_given_up(const struct lease *lease);
/* Returns true once, when the lease is over and the job must be killed. */
bool lease_over(struct lease *lease, uint64_t now_ms);
/* Call it when the grace for a lost client is over. Does nothing for a job without a lease. */
void lease_client_lost(struct lease *lease);
/* The owner of the node expels the job, and says WHY; it gets a signal. */
void lease_expel(struct lease *lease, const char *why);
/*
 * If the lease ended the job, puts the reason into END.  So it is with a job that was expelled, and
 * did not end well in spite of it: one with a lease may run again.
 */
void lease_outcome(const struct lease *lease, struct record_exit *end);

#endif
