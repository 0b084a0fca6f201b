/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Clients that attach later: to a running job, one that is ending, or one that is over. */
#ifndef IOCOM_SHIM_REJOIN_H
#define IOCOM_SHIM_REJOIN_H

#include "user/attach.h"
#include "agent/shim/shim.h"

/*
 * Takes FD, which becomes the job's client; the former client is told so. RECORDS are the keys of
 * its stream; NULL: it is a client of this machine. A refusal (the byte is not kept, or the client
 * was superseded) is sent on FD.
 */
void shim_attach(struct shim *shim, int fd, const struct records *records,
		 const struct attach_ask *ask);
/* Tells the client how far the streams are. Returns as wire_send. */
int shim_tell_started(struct shim *shim);
/*
 * Call it when the job is over: its client gets the rest and the exit status. Output that no client
 * takes is kept in the record.
 */
void shim_deliver(struct shim *shim);
/* Closes the PAM session, which shim_deliver does, too. */
void shim_end_session(struct shim *shim);
/* Sends the client of ORDER what is kept of an ended job. Returns 0 or negative errno. */
int shim_replay(struct shim *shim, struct iocom_err *err);

#endif
