/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Senders of what is kept of jobs that are over: a shim for each client that comes.  They
 * go on when their agent ends, and the next one finds them: each has one of REPLAYS_MAX
 * places (process_slot.h) in RUN_DIR/replays, or it does not send.
 */
#ifndef IOCOM_REPLAYS_H
#define IOCOM_REPLAYS_H

#include "agent/guest/guest_own.h"

#define REPLAYS_MAX    64 /* at a time */
#define REPLAYS_OF_ONE 16 /* ... of one user who is not root */

/* Finds those of an agent before; what is above the bounds is ended. */
void replays_recover(struct guest *guest);
/* Answers the packed ASK of UID on FD, which is taken on 0.  Negative errno with the sentence. */
int replays_start(struct guest *guest, const void *ask, size_t length, int fd, uid_t uid,
		  struct iocom_err *err);
/* How many there are. */
size_t replays_count(const struct guest *guest);
/* Closes what watches the senders; they go on. */
void replays_stop(struct guest *guest);

#endif
