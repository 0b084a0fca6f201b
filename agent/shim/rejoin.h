/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Clients that come later: to a running job, to one that is ending, to one that is over. */
#ifndef IOCOM_SHIM_REJOIN_H
#define IOCOM_SHIM_REJOIN_H

#include "user/attach.h"
#include "agent/shim/shim.h"

/*
 * Takes FD: this is the job's client from now on, and the one before is told so.
 * A refusal (a byte that is not kept, a client that was superseded) is said on FD.
 */
void shim_attach(struct shim *shim, int fd, const struct attach_ask *ask);
/* Tells the client how far the streams are.  As wire_send. */
int shim_tell_started(struct shim *shim);
/*
 * The job is over: its client gets the rest and the exit status; what it does not
 * take, or nobody is there to take, goes to the record.
 */
void shim_deliver(struct shim *shim);
/* Sends the client of ORDER what is kept of a job that is over.  0 or negative errno. */
int shim_replay(struct shim *shim, struct iocom_err *err);

#endif
