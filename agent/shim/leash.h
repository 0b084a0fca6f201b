/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Messages between a shim and its agent; leash_wire.h makes them independent of versions. On the
 * leash the shim reports "started" and "exited" (agent/guest/launch.h has the form). For a
 * restartable job it receives
 *
 *   { "op": "lease", "until_ms": N } the lease goes on until then; 0: it is over
 *
 * The control socket RUN_DIR/JOB.sock is for root only and takes one request per connection:
 *
 *   { "op": "leash" }               this connection is the leash from now on; the
 *                                   answer is the event "started"
 *   { "op": "signal", "signal": N } answer { "result": 0 or errno }; with "why" the owner of the
 *                                   node expels the job (lease.h)
 *   { "op": "attach", "ask": bin }  a client's connection comes with it (SCM_RIGHTS); the
 *                                   shim answers the client there (user/attach.h), sealed
 *                                   if "records": bin has the keys (user/channel/records.h)
 *   { "op": "move", "criu": path,
 *     "precopy": bool }           the job moves: the connection to the shim of the node where it
 *                                   goes comes with it, as above; answer { "result": 0 or errno,
 *                                   "why": sentence }.  Later, on the leash:
 *                                   { "event": "moved", "failed", "frozen_ms", "dump_ms", "bytes",
 *                                   "why" }: it is held, there and here, and waits for
 *   { "op": "stay" }, { "op": "leave" }  answer { "result": 0 or errno }
 *
 * The shim of a job that comes reports { "event": "ready" } when it is held, and waits for
 *
 *   { "op": "go" }, { "op": "abort" }    on the leash or on the control socket
 */
#ifndef IOCOM_SHIM_LEASH_H
#define IOCOM_SHIM_LEASH_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "user/attach.h"
#include "user/channel/records.h"
#include "iocom/err.h"
#include "agent/shim/lease.h"
#include "user/record.h"
#include "user/spec.h"

/* How a job's move went as far as it is held, or failed. */
struct leash_move {
	bool failed;
	uint64_t frozen_ms; /* until now */
	uint64_t dump_ms, bytes;
	char why[256];
};

struct leash {
	int fd;	    /* the agent's socket; -1: no agent now */
	int listen; /* control socket; -1: none */
	char run_dir[1024];
	char job[SPEC_JOB_MAX];
	pid_t pid; /* the pid that we reported */
	uint64_t cgroup_id;
	bool told;		   /* the agent at FD was sent the job's end */
	bool taken;		   /* that agent has read it; FD is -1 since then */
	const struct lease *lease; /* the job's lease, reported with "started"; may be NULL */
	bool renews;		   /* the shim asks home itself; reported with "started" */
	/* For an agent that starts again: what was reported and is not decided yet. */
	bool is_ready, is_moved;
	struct leash_move move;
	/* What becomes of a job that came and is held. */
	enum leash_word { LEASH_NO_WORD, LEASH_GO, LEASH_ABORT } word;
};

/* Takes FD, the agent's socket, for reports about JOB. */
void leash_init(struct leash *leash, int fd, const char *job);
/* Opens RUN_DIR/JOB.sock. Returns 0 or negative errno. */
int leash_listen(struct leash *leash, const char *run_dir, struct iocom_err *err);
/* Lets nobody else connect. Returns true if somebody who connected before waits to be served. */
bool leash_last(struct leash *leash);
/* Closes and removes the control socket. */
void leash_unlisten(struct leash *leash);
void leash_deinit(struct leash *leash);
/* These report to the agent. An agent that does not take a report counts as gone (FD becomes
 * -1), and the record stays. */
void leash_started(struct leash *leash, pid_t pid, uint64_t cgroup_id);
/* These two are reported again to an agent that starts again, until leash_decided. */
void leash_ready(struct leash *leash);
void leash_moved(struct leash *leash, const struct leash_move *move);
void leash_decided(struct leash *leash);
void leash_exited(struct leash *leash, const struct record_exit *end);
/* Call it when FD is readable: the agent changed the lease, or went away. */
void leash_hear(struct leash *leash, struct lease *lease);
enum leash_what { LEASH_NOTHING, LEASH_SIGNAL, LEASH_ATTACH, LEASH_MOVE, LEASH_STAY, LEASH_LEAVE };
struct leash_request {
	int connection;		 /* of all but LEASH_ATTACH: pass it to leash_answer */
	int signal;		 /* the signal for the job */
	char why[LEASE_WHY_MAX]; /* why its node's owner expels it; "": nobody does */
	int stream; /* for LEASH_ATTACH and LEASH_MOVE: the connection, which the caller owns */
	char criu[PATH_MAX];   /* for LEASH_MOVE: "": the usual one */
	bool precopy;	       /* for LEASH_MOVE: memory may be sent while the job runs */
	struct attach_ask ask; /* what the client wants */
	bool secure;	       /* its stream is sealed with these keys, which the caller erases */
	struct records records;
};
/* Serves one connection of the control socket within 1 s. Returns what the caller must do. */
enum leash_what leash_serve(struct leash *leash, struct leash_request *request);
void leash_answer(int connection, int result); /* closes CONNECTION */
/* Refuses REQUEST, which is WHAT, with ERROR (errno).  A client that attaches asks again. */
void leash_decline(struct leash_request *request, enum leash_what what, int error);
void leash_answer_why(int connection, int result, const char *why);

#endif
