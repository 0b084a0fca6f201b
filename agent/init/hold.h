/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * iocom-hold: what criu calls while it restores a job (its --action-script).  At "pre-resume" all
 * is there, also the job's user and groups, and nothing runs yet: it connects to the socket that
 * IOCOM_HOLD names, mounts the job's own /proc, says HOLD_READY (struct hold_ready), and waits for
 * one byte.  HOLD_GO lets the job run.  Whatever else comes, also the end of the connection, ends
 * the job and criu, which would let it run.
 */
#ifndef IOCOM_HOLD_H
#define IOCOM_HOLD_H

#include <stdint.h>

#define HOLD_ENV   "IOCOM_HOLD"
#define HOLD_READY 'r'
#define HOLD_GO	   'g'

/* What it says. */
struct hold_ready {
	char word;    /* HOLD_READY */
	int32_t init; /* pid of the job's first process, as the node sees it */
};

/* Returns the exit status: 0 to go on. */
int hold_main(void);

#endif
