/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * iocom-hold: what criu calls while it saves or restores a job (its --action-script).
 *
 * At "pre-dump" the node's /proc lies over the job's; what lies there from then on is of use to
 * criu's code in the job, too (agent/init/cover_proc.h).
 *
 * At "pre-resume" all is there, also the job's user and groups, and nothing runs yet: it connects
 * to the socket that IOCOM_HOLD names, mounts the job's own /proc, says HOLD_READY (struct
 * hold_ready), and waits for one byte.  HOLD_GO lets the job run.  Whatever else comes, also the
 * end of the connection, ends the job and criu, which would let it run.
 */
/*
 * iocom-hold: what criu calls while it saves or restores a job (its --action-script).
 *
 * At "pre-dump" criu has the node's /proc open, which lies over the job's.  The job's must be seen
 * again before criu's code runs in the job: there it looks for its process in /proc, with no other
 * rights than the job's user.
 *
 * At "pre-resume" all
 * is there, also the job's user and groups, and nothing runs yet: it connects to the socket that
 * IOCOM_HOLD names, mounts the job's own /proc, says HOLD_READY (struct hold_ready), and waits for
 * one byte.  HOLD_GO lets the job run.  Whatever else comes, also the end of the connection, ends
 * the job and criu, which would let it run.
 */
#ifndef IOCOM_HOLD_H
#define IOCOM_HOLD_H

#include <stdint.h>

#define HOLD_ENV       "IOCOM_HOLD"
#define HOLD_COVER_ENV "IOCOM_COVER" /* pid of the job's first process, which is saved */
#define HOLD_READY     'r'
#define HOLD_GO	       'g'

/* What it says. */
struct hold_ready {
	char word;    /* HOLD_READY */
	int32_t init; /* pid of the job's first process, as the node sees it */
};

/* Returns the exit status: 0 to go on. */
int hold_main(void);

#endif
