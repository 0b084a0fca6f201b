/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * How a shim and its agent speak (leash_wire.h: whatever their versions).  On the
 * leash the shim reports "started" and "exited" (agent/launch.h has the form) and
 * hears, of a restartable job,
 *
 *   { "op": "lease", "until_ms": N } the lease goes on until then; 0: it is over
 *
 * On the control socket RUN_DIR/JOB.sock, for root only, it takes one request a
 * connection:
 *
 *   { "op": "leash" }               this connection is the leash from now on; the
 *                                   answer is the event "started"
 *   { "op": "signal", "signal": N } answer { "result": 0 or errno }
 */
#ifndef IOCOM_SHIM_LEASH_H
#define IOCOM_SHIM_LEASH_H

#include <stdint.h>
#include <sys/types.h>

#include "iocom/err.h"
#include "lease.h"
#include "record.h"
#include "spec.h"

struct leash {
	int fd;	    /* the agent; -1 none now */
	int listen; /* control socket; -1 none */
	char run_dir[1024];
	char job[SPEC_JOB_MAX];
	pid_t pid; /* as reported */
	uint64_t cgroup_id;
	const struct lease *lease; /* of the job; told with "started"; may be NULL */
};

/* FD: the agent's socket (taken).  Reports for JOB. */
void leash_init(struct leash *leash, int fd, const char *job);
/* Opens RUN_DIR/JOB.sock.  0 or negative errno. */
int leash_listen(struct leash *leash, const char *run_dir, struct iocom_err *err);
/* Closes and removes the control socket. */
void leash_unlisten(struct leash *leash);
void leash_deinit(struct leash *leash);
/* Reports.  An agent that does not take it counts as gone (-1): the record stays. */
void leash_started(struct leash *leash, pid_t pid, uint64_t cgroup_id);
void leash_exited(struct leash *leash, const struct record_exit *end);
/* The agent's end is readable: it says something of the lease, or went away. */
void leash_hear(struct leash *leash, struct lease *lease);
/*
 * Serves one connection of the control socket.  Returns a signal to send to the
 * job (> 0; the caller answers through leash_answer), else 0.  At most 1 s.
 */
int leash_serve(struct leash *leash, int *connection);
void leash_answer(int connection, int result); /* closes CONNECTION */

#endif
