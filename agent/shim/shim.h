/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The supervisor of one job.
 *
 *   state      what it does                                   ends when
 *   running    moves stdio, forwards signals                  the first process ends
 *   draining   moves what is still in the pipes               both outputs end, or 2 s of
 *                                                             silence (then the rest is killed)
 *   ended      empties and removes the cgroup, writes the     the client closes (10 s at most),
 *              record, tells agent and client                 or it is gone: the rest is kept
 *
 * The job is its cgroup: when its first process has ended and the outputs are closed or silent,
 * the shim kills all processes left in the cgroup, so that nothing of a job stays behind. When
 * the client goes away the grace period starts. At its end the shim hangs up the job's terminal
 * and kills the whole cgroup, unless another client has attached or the job is detached and
 * needs none. When a restartable job's lease ends, the shim kills the whole job.
 */
#ifndef IOCOM_SHIM_H
#define IOCOM_SHIM_H

#include <stdbool.h>
#include <stdint.h>

#include "user/cgroup.h"
#include "agent/shim/audit.h"
#include "agent/shim/child.h"
#include "agent/shim/depart.h"
#include "agent/shim/gang.h"
#include "agent/shim/guard.h"
#include "agent/shim/leash.h"
#include "agent/shim/lease.h"
#include "agent/shim/order.h"
#include "agent/shim/pam.h"
#include "user/record.h"
#include "agent/shim/renew.h"
#include "agent/shim/scratch.h"
#include "agent/shim/spare.h"
#include "agent/shim/stage.h"
#include "agent/shim/streams.h"
#include "agent/shim/user_group.h"
#include "user/wire.h"

#define SHIM_SILENCE_MS 2000  /* silence of leftovers that hold the outputs open */
#define SHIM_LINGER_MS	10000 /* for the client to take the exit status */
#define SHIM_REMOVE_MS	5000  /* for the last process to die */
#define SHIM_AUDIT_MS	1000  /* at the end, for the audit log; then it goes on without us */
/* A client that attaches to a terminal sees all of its output if it is at most SHIM_SHOW_ALL
 * bytes, else the last SHIM_SHOW_LAST. */
#define SHIM_SHOW_ALL  (256 * 1024)
#define SHIM_SHOW_LAST (64 * 1024)
#define SHIM_HANGUP_MS 500 /* between SIGHUP of a lost terminal and the kill */

struct shim {
	struct order order;
	struct cgroup group;
	bool grouped; /* we made the cgroup */
	struct user_group user;
	struct spare spare;
	bool moved; /* the agent started us in the shims' v2 group */
	int record; /* the record's directory, locked; first what the agent passed; -1 */
	struct leash leash;
	struct pam *pam; /* the open session; NULL: no PAM */
	struct lease lease;
	struct renew renew;
	struct guard guard; /* used only with a lease */
	struct wire client;
	bool client_gone;
	uint64_t gone_ms;
	char owner[SPEC_NONCE_MAX]; /* nonce of the client's connection or resumption */
	bool detached;		    /* the job needs no client */
	bool told_exit;		    /* the client was told how the job ended */
	bool known;		    /* the client confirmed it */
	bool replayed; /* the job was over before we started: only its record is here */
	bool given_up; /* we wait no longer for a client or for what is still in the pipes */
	struct child child;
	struct depart depart;
	struct wire source; /* of a job that came: its former shim, which may send signals */
	struct gang_line gang;
	struct streams streams;
	struct spool spool;	/* until the streams take it */
	struct scratch scratch; /* the directory of a job whose data went along */
	bool gives;		/* when the job is over, its client fetches files */
	uint64_t started_ms;	/* CLOCK_BOOTTIME, as all *_ms members */
	/* When the job began, CLOCK_REALTIME, and how long it ran before it came here. */
	uint64_t start_ns, ran_ms;
	/* CPU time where it was before, and what its cgroup here had used before it ran. */
	uint64_t cpu_before_us, cpu_base_us;
	bool main_ended, hung_up, killed;
	uint64_t ended_ms, hung_up_ms, killed_ms;
	struct record_exit end;
	char user_name[256]; /* the job's, once it is known */
	char address[64];    /* of the client that started the job; "": not known */
	pid_t audit;	     /* the process that tells the audit log; 0: none */
};

/* Does everything from reading the order on FD_ORDER to removing the cgroup. Returns the exit
 * code. */
int shim_run(struct shim *shim, int fd_leash, int fd_order, int fd_stream);

/* begin.c: starts the process. Returns 0, or an error that ERR explains. */
int shim_begin(struct shim *shim, struct iocom_err *err);
/* loop.c: returns when the job is over. */
void shim_loop(struct shim *shim);
/* Call it when the client went away or broke the rules. */
void shim_client_lost(struct shim *shim);
/* Reads once from the client, then obeys all complete frames. Returns 0 or negative errno. */
int shim_serve_client(struct shim *shim);
/* Obeys one frame of the client. Returns 0 or -EPROTO. */
int shim_take_frame(struct shim *shim, uint8_t type, const uint8_t *payload, uint32_t length);
/* Sends SIGNAL to the job.  Returns 0 or errno. */
int shim_signal(struct shim *shim, int signal);
/* Serves one connection of the control socket. */
void shim_serve_control(struct shim *shim);
/* shim.c: tells the audit log that the job has started, or has ended or was refused. */
void shim_audit_start(struct shim *shim);
void shim_audit_end(struct shim *shim);
/* These return CLOCK_BOOTTIME in ms and CLOCK_REALTIME in ns. */
uint64_t shim_now_ms(void);
uint64_t shim_wall_ns(void);

#endif
