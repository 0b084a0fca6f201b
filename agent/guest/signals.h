/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Signals for jobs.  A shim sends them and may be slow to confirm (its job's program may hang): the
 * loop goes on meanwhile.
 */
#ifndef IOCOM_SIGNALS_H
#define IOCOM_SIGNALS_H

#include "agent/guest/guest_own.h"

#define SIGNALS_WAIT_MS 250
#define SIGNALS_MAX	128 /* signals that wait for their shims at a time */
#define SIGNALS_OF_ONE	8   /* per user; root is exempt */
#define SIGNALS_OF_ROOT 16  /* places that only root's jobs take */

/* RC 0: the signal was sent; negative errno: WHY is the sentence.  Called once, from the loop. */
typedef void (*signals_done)(void *arg, int rc, const char *why);

/*
 * Sends SIGNAL to JOB, which runs here, for UID.  Returns 0: DONE is called later; negative errno
 * with the reason in ERR: -ESRCH, -EPERM it is another user's job, -EAGAIN too many signals wait.
 * SIGNAL 0 only asks whether JOB runs: DONE is not called.
 */
int signals_send(struct guest *guest, const char *job, uid_t uid, int signal, signals_done done,
		 void *arg, struct iocom_err *err);
/*
 * Expels JOB: SIGNAL, and WHY for its user.  No place in the table is asked for, and nobody gets an
 * answer.  Returns 0 or negative errno.
 */
int signals_expel(struct guest *guest, const struct job *job, int signal, const char *why);
/* Tells JOB's shim what home decided of its move.  Returns 0: DONE is called; negative errno. */
int signals_decide(struct guest *guest, const struct job *job, enum launch_decision decision,
		   signals_done done, void *arg);
size_t signals_count(const struct guest *guest);
/* Ends all waiting signals with -ECANCELED. */
void signals_stop(struct guest *guest);

#endif
