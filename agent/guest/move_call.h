/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * A node whose job moves away calls the node where it goes, as a client does that starts a job
 * there: connection, handshake (user/channel/stream_hello.h), FRAME_START.  Its credential is the
 * key, which home has given to these two nodes alone.  It waits until the shim there is ready, so
 * that the job is not frozen meanwhile.  A thread does it.
 */
#ifndef IOCOM_MOVE_CALL_H
#define IOCOM_MOVE_CALL_H

#include <stddef.h>

#include "agent/cluster/peer_message.h"
#include "iocom/err.h"
#include "user/channel/records.h"

#define MOVE_CALL_MS   10000
#define MOVE_CALLS_MAX 16 /* at a time */

/*
 * Calls the node of TO, with the PACKED spec of JOB.  Returns the connection, whose keys are in
 * RECORDS, or negative errno with the reason in ERR.
 */
int move_call(const struct peer_move *to, const char *job, const void *packed, size_t length,
	      struct records *records, struct iocom_err *err);

#endif
