/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The guest party: jobs that run at this node, wherever they were submitted.
 *
 *   admit (a lease) -> start (a stream) -> running -> ended -> reported to its home
 *
 * It answers homes' questions (peer_message.h: admit, kill) and asks homes (started, progress,
 * done, renew) through the port `ask`.  It knows nothing of the home party; if a job's home is this
 * very node, `ask` is short-circuited (peers.h).
 */
#ifndef IOCOM_GUEST_H
#define IOCOM_GUEST_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

#include "agent/base/base.h"
#include "agent/cluster/peers.h"
#include "agent/measure/pulse.h"
#include "iocom/err.h"
#include "user/channel/stream_hello.h"
#include "user/processor.h"

struct account;
struct accounts;
struct credential;
struct journal;
struct launcher;
struct user_limits;
struct guest;

/* What jobs of other nodes that are here need, as far as it is known. */
struct guest_use {
	size_t jobs;
	double memory_mb, disk_mb_per_s;
};

/* A job of another node that wants to get in.  USER NULL: it was judged before. */
struct guest_asking {
	const struct job_order *order;
	const struct account *user;
};

struct guest_ports {
	void *arg;
	/* This node's vector as of now, with all leases; sequence: of the last vector sent. */
	void (*own_vector)(void *arg, struct iocom_vector *own);
	uint64_t (*sequence)(void *arg);
	void (*sample)(void *arg);  /* reads the monitor now */
	void (*changed)(void *arg); /* the load may have changed significantly: check and publish */
	peers_asker ask;
	void *ask_arg;
	/* Deferred answers to homes; the same as peers_answer. */
	void (*answer)(void *arg, uint64_t ticket, enum peer_type type,
		       const struct peer_answer *answer);
	/*
	 * Returns true if the node's owner lets the job in; otherwise WHY says why not.  NULL: the
	 * owner has no rules.
	 */
	bool (*owner)(void *arg, const struct guest_asking *asking, char *why, size_t size);
	/* Tells the monitor that the cgroup is a gang's, or no more.  NULL: nothing is measured. */
	void (*gang)(void *arg, uint64_t cgroup_id, bool is);
};

struct guest_config {
	const struct base *base;
	const char *jobs_dir, *run_jobs_dir; /* STATE_DIR/jobs, RUN_DIR/jobs */
	struct journal *journal;
	struct accounts *accounts;
	struct sample_names *names;	 /* names of cgroups; NULL: none */
	struct user_limits *user_limits; /* of jobs' users; NULL: none are set */
	double cpu_speed;
	processor_set processor;	 /* 0: not known, and any job may come */
	const struct launcher *launcher; /* how shims are started and asked */
	struct guest_ports ports;
};

/* Learns of jobs that ran here; members may be NULL. */
struct guest_watch {
	/* The journal has JOB's end. */
	void (*ended)(void *arg, const char *job);
	/* A job exited that took SLOWDOWN times as long as alone, from its start here on. */
	void (*slowed)(void *arg, double slowdown);
	/* JOB goes on at TARGET and has left; it was frozen for FROZEN_MS, and was of so many
	 * BYTES. */
	void (*left)(void *arg, const char *job, const char *target, uint64_t frozen_ms,
		     uint64_t bytes);
	void *arg;
	struct guest_watch *next;
};

/* Returns 0 or -ENOMEM.  The configuration is copied; what it points to is borrowed. */
int guest_new(struct guest **guest, const struct guest_config *config, struct iocom_err *err);
/* Takes over the jobs of an earlier agent.  Returns 0 or negative errno with the reason in ERR. */
int guest_recover(struct guest *guest, struct iocom_err *err);
/* The agent is ready: a spare shim starts soon. */
void guest_begin(struct guest *guest);
/* Stops waiting for file systems and shims; open questions are refused. */
void guest_stop(struct guest *guest);
/* Frees GUEST; running jobs go on. */
void guest_free(struct guest *guest);
/* WATCH is the caller's and stays until guest_free. */
void guest_watch(struct guest *guest, struct guest_watch *watch);
/* Once a second: checks leases and busy shims; every fifth time, resends reports. */
void guest_chores(struct guest *guest);
/* Removes old output of jobs that are over. */
void guest_spool_prune(struct guest *guest);

/* --- questions of homes: peers_handlers -------------------------------------- */

int guest_on_admit(void *guest, const struct peer_request *request, uint64_t ticket,
		   struct peer_answer *answer);
int guest_on_kill(void *guest, const struct peer_request *request, uint64_t ticket,
		  struct peer_answer *answer);
/* Its home gives up the lease of a gang's part that has not begun. */
int guest_on_release(void *guest, const struct peer_request *request, uint64_t ticket,
		     struct peer_answer *answer);
/* Home wants to move a job that runs here: may it, and where to (guest_move.c). */
int guest_on_movable(void *guest, const struct peer_request *request, uint64_t ticket,
		     struct peer_answer *answer);
int guest_on_move(void *guest, const struct peer_request *request, uint64_t ticket,
		  struct peer_answer *answer);
/* Gives a client that wants to attach from another node a ticket and its key. */
int guest_on_attach(void *guest, const struct peer_request *request, uint64_t ticket,
		    struct peer_answer *answer);

/* --- streams of clients ------------------------------------------------------ */

/*
 * Handle FRAME_START and FRAME_ATTACH of a client of this machine, LOCAL as the kernel tells it.
 * Return 0: FD is taken; negative errno with the reason in ERR.
 */
int guest_start(void *guest, int fd, const void *payload, uint32_t length,
		const struct ucred *local, struct iocom_err *err);
int guest_attach(void *guest, int fd, const void *payload, uint32_t length,
		 const struct ucred *local, struct iocom_err *err);
/* A job that home has just placed here, and whose client sent its spec along. */
struct guest_placed {
	const char *job, *node, *nonce;
	const void *spec; /* packed, without these names */
	uint32_t length;
	const void *lead; /* a frame that FD gets before the job's own */
	size_t lead_length;
};
/*
 * The same for PLACED.  Ends the journal's transaction if one is open, also when it fails to end
 * well; nothing is sent to FD before that.
 */
int guest_start_placed(void *guest, int fd, const struct guest_placed *placed,
		       const struct ucred *local, struct iocom_err *err);
/*
 * The key of a stream from another machine.  Returns 0; negative errno: there is no such job, or
 * none with a key.
 */
int guest_stream_key(void *guest, const struct stream_hello *hello, uint8_t key[SECRET_KEY]);
/*
 * The same of a client of another machine, whose stream has keys, in two steps, because its
 * credential is opened by munged.  The first checks what it can without that, and gives the
 * credential's text, which the caller frees; the second gets WHO made it and what it binds.
 */
int guest_start_check(void *guest, const struct stream_hello *hello, const void *payload,
		      uint32_t length, char **credential, struct iocom_err *err);
int guest_attach_check(void *guest, const struct stream_hello *hello, const void *payload,
		       uint32_t length, char **credential, struct iocom_err *err);
int guest_start_of(void *guest, int fd, const struct stream_secure *secure, const void *payload,
		   uint32_t length, const struct credential *who, struct iocom_err *err);
int guest_attach_of(void *guest, int fd, const struct stream_secure *secure, const void *payload,
		    uint32_t length, const struct credential *who, struct iocom_err *err);

/* --- the node's owner: guest_owner.c ------------------------------------------ */

/*
 * Expels JOB, "" for all jobs of other nodes: each gets SIGTERM, and SIGKILL after GRACE_S.  WHY is
 * what its user reads.  Returns how many jobs there were.
 */
size_t guest_expel(struct guest *guest, const char *job, const char *why, uint32_t grace_s);
/* What jobs of other nodes need. */
void guest_use(const struct guest *guest, struct guest_use *use);
/*
 * The terminals in /dev/pts that are jobs', by their numbers.  Returns how many there are, at most
 * MAX.
 */
size_t guest_terminals(const struct guest *guest, unsigned *numbers, size_t max);

/* --- what others may know ---------------------------------------------------- */

/* Home moves JOB, if MOVES; else WHY says why not. */
typedef void (*guest_away_told)(void *arg, const char *job, bool moves, const char *why);

/* A job that runs here, as the controller and the policies that move jobs see it. */
struct guest_running {
	char job[SPEC_JOB_MAX];
	char group[SPEC_JOB_MAX + 40]; /* its control group below the scope */
	uid_t uid;
	double cpu_ms, need_cpu_ms; /* so far, at this node's speed; in all, 0: not known */
	double requests, moved_mb;  /* explicit I/O so far */
	double read_mb;		    /* the part that was read */
	double faults;		    /* page faults that went to the disk */
	double memory_mb;
	const struct need *need; /* until the guest is called again */
	char policy[32];
	bool may_move;	   /* it can, and is not on its way */
	bool moves;	   /* it is on its way */
	bool came;	   /* from another node, where it ran before */
	uint64_t since_ns; /* since when it is counted here, CLOCK_REALTIME */
	/* What it did at other nodes before, at the reference speed. */
	double before_cpu_ms, before_requests;
};
/* Fills OUT, which has room for MAX; returns how many. */
size_t guest_running(const struct guest *guest, struct guest_running *out, size_t max);
/* The same, of jobs that can move or are on their way. */
size_t guest_movable(const struct guest *guest, struct guest_running *out, size_t max);

/*
 * Asks the home of JOB, which runs here, to move it, for WHY.  Returns 0 or negative errno with the
 * reason in ERR: TOLD is then not called.
 */
int guest_away(struct guest *guest, const char *job, const struct peer_away *why,
	       guest_away_told told, void *arg, struct iocom_err *err);

/* Writes jobs that ended a moment ago to the journal now, not in some milliseconds. */
void guest_settle(struct guest *guest);
/* The port through which the pulse sees the jobs. */
struct pulse_jobs guest_pulse_jobs(struct guest *guest);
/*
 * Finds the job and user that a cgroup belongs or belonged to; JOB and UID may be NULL.  Returns 0
 * or -ENOENT.
 */
int guest_whose(const struct guest *guest, uint64_t cgroup_id, const char **job, uid_t *uid);
/* Returns true if JOB runs here as far as we know, but its shim does not answer. */
bool guest_is_late(const struct guest *guest, const char *job);
/* Returns whether JOB runs here and is stopped by a signal just now. */
bool guest_is_stopped(const struct guest *guest, const char *job);

/* Fill levels, for lists of limits. */
struct guest_counts {
	size_t move_calls; /* of nodes where jobs go */
	size_t jobs, signals, replays, tickets;
	size_t paths, paths_late; /* path checks under way; how many of them hang */
	uint64_t spool_bytes;	  /* output of jobs that are over */
	uint64_t spool_reserved;  /* bytes that the output of running jobs may take */
};
void guest_count(struct guest *guest, struct guest_counts *counts);

#endif
