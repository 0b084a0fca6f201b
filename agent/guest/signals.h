/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Signals for jobs.  A shim sends them, and may be slow to say so (its user's program may be
 * one that hangs): the loop goes on meanwhile.
 */
#ifndef IOCOM_SIGNALS_H
#define IOCOM_SIGNALS_H

#include "agent/guest/guest_own.h"

#define SIGNALS_WAIT_MS 250
#define SIGNALS_MAX	128 /* that wait for their shims, at a time */
#define SIGNALS_OF_ONE	8   /* ... for jobs of one user who is not root */

/* 0: it was sent; else negative errno, WHY the sentence.  Once, from the loop. */
typedef void (*signals_done)(void *arg, int rc, const char *why);

/*
 * Sends SIGNAL to JOB, which runs here, for UID.  0: DONE is called, later; else negative errno
 * with the sentence: -ESRCH, -EPERM it is another's, -EAGAIN too many wait.  SIGNAL 0 asks
 * whether it runs only: DONE is not called.
 */
int signals_send(struct guest *guest, const char *job, uid_t uid, int signal, signals_done done,
		 void *arg, struct iocom_err *err);
size_t signals_count(const struct guest *guest);
/* All that wait are told -ECANCELED. */
void signals_stop(struct guest *guest);

#endif
