/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Leases of restartable jobs (`iocom run --restartable`): such a job may be run again from its
 * start when its node is lost, and never twice at a time.
 *
 *   home    keeps each lease's end, lease_s after it last heard; only after it, and a
 *           margin, it gives the next attempt out, and never renews the old one again
 *   target  asks home to renew while the job runs; what home grants it counts from when
 *           it asked, so its end is never later than home's
 *   shim    kills the job at that end, even if nobody answers (shim/lease.h)
 *   guard   kills it if the shim was killed or stopped and no agent notices (shim/guard.h)
 *
 * Every attempt is a separate job with its own id, so that everything that makes jobs run at most
 * once holds for it; home's journal ties the attempts together.  Only the user can start one (the
 * spec is signed by the user's credential, which no agent can make): the client that waits for the
 * job asks home for the next attempt.
 *
 * The shim renews the lease (shim/renew.h) at home's job port, so that the target's agent may be
 * away for any time.  Its key is a secret of this one attempt: home makes it, keeps it in its
 * journal, and sends it in the sealed order; the shim holds it in memory only.  The secret renews
 * this lease and nothing else, and is worthless afterwards.  Each question has a larger number than
 * the one before, and home's journal has the last number, so that even a new agent obeys no replay.
 * Home signs its answer: a stranger can neither have a job killed nor let it outlive its lease.
 * Renewals go over plain TCP: nothing in them is secret.
 *
 * If the shim has no secret (home or shim of an older build), or could not reach home's job port
 * for half a lease, the agent asks as well, by a sealed control message.
 *
 * A job that moves (home_move.h) keeps its lease: while nothing is decided home does not count it
 * as over, and the source renews it.  With the decision it is the target's: there the shim gets a
 * secret of its own, the old one renews nothing more, and the job runs when the target's agent has
 * renewed.  At home itself it needs none.
 *
 * All times are durations on CLOCK_BOOTTIME: two machines' dates may differ by any amount.  The
 * margin covers the drift of two such clocks within a lease, and the time to kill.
 */
#ifndef IOCOM_LEASES_H
#define IOCOM_LEASES_H

#define LEASE_MARGIN_MS(lease_ms) (2000 + (lease_ms) / 20)
#define LEASE_RENEW_PART	  4 /* renewals per lease */
#define LEASES_MAX		  4096
#define LEASES_OF_ROOT		  64 /* of them, places that only root takes */
#define LEASE_RESTARTS_MAX	  1000

#endif
