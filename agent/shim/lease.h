/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The lease of a restartable job, as its shim holds it.
 *
 * Such a job may be run again elsewhere when its node is lost, and home knows only
 * that it does not hear from there.  So the job lives no longer than its lease: what
 * home grants by renewing ends later at home than here, and when it ends here the
 * whole cgroup is killed, whether anybody can be told or not.
 *
 * Times are CLOCK_BOOTTIME in ms of this machine: it runs while the machine sleeps,
 * and nobody sets it.  We ask home to renew (renew.h), and so does the agent where we
 * cannot.
 */
#ifndef IOCOM_SHIM_LEASE_H
#define IOCOM_SHIM_LEASE_H

#include <stdbool.h>
#include <stdint.h>

#include "user/record.h"

#define LEASE_OUTCOME 255 /* of a job that was ended though it could be run again */

struct lease {
	uint64_t until_ms; /* 0: the job needs none */
	const char *why;   /* it was ended for; NULL */
};

/* UNTIL_MS of a message: later than ours, or 0 for "home has given it to another". */
void lease_hear(struct lease *lease, uint64_t until_ms);
/* True once, when the job must be killed for it. */
bool lease_over(struct lease *lease, uint64_t now_ms);
/* The grace for a client that is gone is over; of a job without a lease: nothing. */
void lease_client_lost(struct lease *lease);
/* Puts the reason into END where the lease ended the job. */
void lease_outcome(const struct lease *lease, struct record_exit *end);

#endif
