/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The supervisor of one job.
 *
 *   state      what it does                                   goes on when
 *   running    moves stdio, forwards signals                  the first process ends
 *   draining   moves what is still in the pipes               both outputs end, or 2 s of
 *                                                             silence (then the rest is killed)
 *   ended      cgroup emptied and removed, record written,
 *              agent and client told                          the client closes (10 s at most),
 *                                                             or it is gone: the rest is kept
 *
 * The job is its cgroup: when its first process has ended and the outputs are
 * closed or silent, whoever is left in the cgroup is killed, so that nothing of
 * a job stays behind.  A client that goes away starts the grace period; at its
 * end a job's terminal is hung up, and the whole cgroup is killed; unless a client
 * attached meanwhile, or the job is a detached one, which needs none.  All of it is
 * killed when a restartable job's lease ends.
 */
#ifndef IOCOM_SHIM_H
#define IOCOM_SHIM_H

#include <stdbool.h>
#include <stdint.h>

#include "user/cgroup.h"
#include "agent/shim/child.h"
#include "agent/shim/guard.h"
#include "agent/shim/leash.h"
#include "agent/shim/lease.h"
#include "agent/shim/order.h"
#include "agent/shim/pam.h"
#include "user/record.h"
#include "agent/shim/renew.h"
#include "agent/shim/spare.h"
#include "agent/shim/streams.h"
#include "user/wire.h"

#define SHIM_SILENCE_MS 2000  /* of a job's leftovers that hold its outputs open */
#define SHIM_LINGER_MS	10000 /* for the client to take the exit status */
#define SHIM_REMOVE_MS	5000  /* for the last process to die */
/* Of a terminal that somebody attaches to: all that it showed, where that is little, or the last.
 */
#define SHIM_SHOW_ALL  (256 * 1024)
#define SHIM_SHOW_LAST (64 * 1024)
#define SHIM_HANGUP_MS 500 /* between SIGHUP of a lost terminal and the kill */

struct shim {
	struct order order;
	struct cgroup group;
	bool grouped; /* the cgroup was made */
	struct spare spare;
	bool moved; /* into the shims' v2 group, by who started us */
	int record; /* directory of the job's record, locked; -1; at first what the agent gave */
	struct leash leash;
	struct pam *pam; /* the open session; NULL: without PAM */
	struct lease lease;
	struct renew renew;
	struct guard guard; /* where there is a lease */
	struct wire client;
	bool client_gone;
	uint64_t gone_ms;
	char owner[SPEC_NONCE_MAX]; /* whose connection, or resumption, the client is */
	bool detached;		    /* the job needs no client */
	bool told_exit;		    /* the client was told how it ended */
	bool known;		    /* ... and said that it knows */
	bool replayed;		    /* it was over before we began: only its record is here */
	bool given_up;		    /* on a client, and with it on what is still in the pipes */
	struct child child;
	struct streams streams;
	struct spool spool;  /* until the streams have it */
	uint64_t started_ms; /* CLOCK_BOOTTIME, as all *_ms here */
	bool main_ended, hung_up, killed;
	uint64_t ended_ms, hung_up_ms, killed_ms;
	struct record_exit end;
};

/* Everything from the order on FD_ORDER to the removed cgroup.  The exit code. */
int shim_run(struct shim *shim, int fd_leash, int fd_order, int fd_stream);

/* begin.c: up to the running process.  0, or it failed and END says how. */
int shim_begin(struct shim *shim, struct iocom_err *err);
/* loop.c: until the job is over. */
void shim_loop(struct shim *shim);
/* The client went away, or broke the rules. */
void shim_client_lost(struct shim *shim);
/* Reads once from the client, then obeys all whole frames.  0 or negative errno. */
int shim_serve_client(struct shim *shim);
/* One connection of the control socket. */
void shim_serve_control(struct shim *shim);
/* CLOCK_BOOTTIME in ms, CLOCK_REALTIME in ns. */
uint64_t shim_now_ms(void);
uint64_t shim_wall_ns(void);

#endif
