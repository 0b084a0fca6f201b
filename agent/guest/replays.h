/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Replays: a shim per client sends the kept output of a job that is over.  Replays go on when their
 * agent ends, and the next agent finds them: each holds one of REPLAYS_MAX places (process_slot.h)
 * in RUN_DIR/replays, or it does not send.
 */
#ifndef IOCOM_REPLAYS_H
#define IOCOM_REPLAYS_H

#include "agent/guest/guest_own.h"

#define REPLAYS_MAX	64 /* at a time */
#define REPLAYS_OF_ONE	16 /* per user; root is exempt */
#define REPLAYS_OF_ROOT 4  /* places that only root takes */

/* Finds the replays of an earlier agent; ends those above the bounds. */
void replays_recover(struct guest *guest);
/* Returns true if a replay that this agent started reads the record of JOB. */
bool replays_read(const struct guest *guest, const char *job);
/*
 * Starts a replay of JOB that answers UID's ASK on FD, which is taken on 0.  Negative errno
 * with the reason in ERR.
 */
int replays_start(struct guest *guest, const char *job, const struct launch_ask *ask, int fd,
		  uid_t uid, struct iocom_err *err);
/* Returns how many replays run. */
size_t replays_count(const struct guest *guest);
/* Closes our leashes of the replays, which go on. */
void replays_stop(struct guest *guest);

#endif
