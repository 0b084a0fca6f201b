/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * A job's data goes along: before the job begins, a process of its user takes what the client
 * sends (data_take.c), and when it is over, another one gives what the client fetches
 * (data_give.c).  The shim passes bytes between them and the client, and reads none of them but
 * the last message of the first, which has fixed fields.
 *
 * These processes are in a cgroup of their own beside the job's: what they read and write is no
 * need of the job, and its class learns nothing from it.
 */
#ifndef IOCOM_SHIM_STAGE_H
#define IOCOM_SHIM_STAGE_H

#include "agent/shim/child.h"
#include "iocom/err.h"
#include "user/data_stage.h"

struct shim;

/*
 * Makes the job's directory, takes its data into it, and makes it the job's working directory.
 * Returns 0 or negative errno with the reason in ERR: nothing of the job has run.
 */
int stage_take(struct shim *shim, const struct identity *identity, struct iocom_err *err);
/* Gives the client what it fetches.  It hears of failures because something is missing. */
void stage_give(struct shim *shim);

#endif
