/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Clients that come later, at the target's agent; what is kept for them; who waits for ends. */
#ifndef IOCOM_TARGET_ATTACH_H
#define IOCOM_TARGET_ATTACH_H

#include "agent/agent.h"

/*
 * A stream's FRAME_ATTACH.  LOCAL as in target_start.  0: FD is taken; else negative
 * errno with the sentence.
 */
int target_attach(struct agent *a, int fd, const void *payload, uint32_t length,
		  const struct ucred *local, struct iocom_err *err);
/*
 * Bytes of output that one more job of UID may be promised: a part of what the running ones
 * leave, or a few would take all room, from those that come and from what is kept of others;
 * and no more than is left of the user's share.
 */
uint64_t target_spool_share(const struct agent *a, uid_t uid);
/* Bytes of output that a new detached job may keep; makes room by removing the oldest. */
uint64_t target_spool_quota(struct agent *a, uid_t uid, uint64_t wanted);
/* Bounds what is kept of jobs that are over. */
void target_spool_prune(struct agent *a);
/* The journal has the end of UID's JOB: its record goes, or what is kept of it is counted. */
void target_forget(struct agent *a, const char *job, uid_t uid);
/* How many shims UID has whose jobs are over: they serve clients as long as those like. */
size_t target_leaving_of(struct agent *a, uid_t uid);
/* The same for those whose shims were still busy with their clients. */
void target_forget_left(struct agent *a);
/* Closes what watches the senders; they go on. */
void target_attach_stop(struct agent *a);

/* The CLI's op "attach": where the job is. */
void attach_request(struct agent *a, struct client *c, const msgpack_object *request);
/* The CLI's op "wait": answered when the job has ended. */
void wait_request(struct agent *a, struct client *c, const msgpack_object *request);
/* A job ended, and the journal knows: who waits for it is told. */
void wait_ended(struct agent *a, const char *job);
/* Once a second: what was lost and nobody has run again is over. */
void wait_tick(struct agent *a);
void wait_forget(struct agent *a, const struct client *c);

#endif
