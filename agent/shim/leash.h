/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * How a shim and its agent speak (leash_wire.h: whatever their versions).  On the
 * leash the shim reports "started" and "exited" (agent/target/launch.h has the form) and
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
 *   { "op": "attach", "ask": bin }  a client's connection comes with it (SCM_RIGHTS); what is
 *                                   to be said is said there (user/attach.h)
 */
#ifndef IOCOM_SHIM_LEASH_H
#define IOCOM_SHIM_LEASH_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "user/attach.h"
#include "iocom/err.h"
#include "agent/shim/lease.h"
#include "user/record.h"
#include "user/spec.h"

struct leash {
	int fd;	    /* the agent; -1 none now */
	int listen; /* control socket; -1 none */
	char run_dir[1024];
	char job[SPEC_JOB_MAX];
	pid_t pid; /* as reported */
	uint64_t cgroup_id;
	bool told;		   /* the end was sent to who is at FD */
	bool taken;		   /* ... who has read it; FD is -1 since */
	const struct lease *lease; /* of the job; told with "started"; may be NULL */
	bool renews;		   /* ... likewise: we ask home ourselves */
};

/* FD: the agent's socket (taken).  Reports for JOB. */
void leash_init(struct leash *leash, int fd, const char *job);
/* Opens RUN_DIR/JOB.sock.  0 or negative errno. */
int leash_listen(struct leash *leash, const char *run_dir, struct iocom_err *err);
/* Nobody can connect any more.  Whether one who has waits to be served. */
bool leash_last(struct leash *leash);
/* Closes and removes the control socket. */
void leash_unlisten(struct leash *leash);
void leash_deinit(struct leash *leash);
/* Reports.  An agent that does not take it counts as gone (-1): the record stays. */
void leash_started(struct leash *leash, pid_t pid, uint64_t cgroup_id);
void leash_exited(struct leash *leash, const struct record_exit *end);
/* The agent's end is readable: it says something of the lease, or went away. */
void leash_hear(struct leash *leash, struct lease *lease);
enum leash_what { LEASH_NOTHING, LEASH_SIGNAL, LEASH_ATTACH };
struct leash_request {
	int connection;	       /* of LEASH_SIGNAL: for leash_answer */
	int signal;	       /* for the job */
	int stream;	       /* of LEASH_ATTACH: the client's connection, the caller's */
	struct attach_ask ask; /* what it wants */
};
/* Serves one connection of the control socket; what is left to do.  At most 1 s. */
enum leash_what leash_serve(struct leash *leash, struct leash_request *request);
void leash_answer(int connection, int result); /* closes CONNECTION */

#endif
