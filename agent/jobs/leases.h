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

#define LEASE_MARGIN_MS(lease_ms) (2000 + (lease_ms) / 20)
#define LEASE_RENEW_PART	  4 /* so many renewals fit in a lease */
#define LEASES_MAX		  4096
#define LEASE_RESTARTS_MAX	  1000

#endif
