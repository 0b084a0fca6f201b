/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Launch: from an accepted job stream to a running shim.
 *
 * The agent's loop accepts a stream, reads FRAME_START without blocking, authenticates it, and
 * calls launch_shim: the shim is spawned by exec (nng is not fork-safe) with three descriptors: one
 * end of a socketpair (the "leash"), the order in a memory file, and the stream; from then on it
 * owns the job.  It reports on the leash, and a dead agent only closes that.
 *
 * The shim is the agent's child: the agent reaps it (SIGCHLD, or waitpid on launch_shim's pid once
 * launch_read returns -EPIPE).  Shims found after a restart are init's children.
 */
#ifndef IOCOM_LAUNCH_H
#define IOCOM_LAUNCH_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "user/account.h"
#include "user/cgroup_user.h"
#include "iocom/err.h"
#include "agent/guest/launch_spawn.h"
#include "user/channel/records.h"
#include "user/channel/secret.h"
#include "user/spec.h"

struct launch_order {
	const char *shim_path;	  /* the iocom-shim program */
	const char *jobs_dir;	  /* STATE_DIR/jobs; the shim's journal is jobs_dir/JOB/ */
	const char *run_dir;	  /* RUN_DIR/jobs; the shim's control socket is run_dir/JOB.sock */
	const char *scope_cgroup; /* relative path of the node's scope, "" = the root */
	uid_t uid;
	gid_t gid;
	bool allow_root;
	const struct account *account; /* UID's account; NULL: the shim looks it up */
	const char *pam;	       /* directory of PAM's service file; NULL: no PAM */
	const uint8_t *secret;	       /* SECRET_BYTES of the attempt, which the record keeps */
	const struct records *records; /* the stream's keys; NULL: a client of this machine */
	uint64_t lease_until_ms; /* end of a restartable job's lease, CLOCK_BOOTTIME; else 0 */
	uint32_t begin_ms;	 /* see shim/order.h; 0: the default */
	struct launch_renew {
		const uint8_t *secret; /* RENEWAL_SECRET bytes, the shim renews the lease itself; or
					  NULL */
		const char *address;   /* home's address */
		uint16_t port;	       /* home's port for job streams */
		uint32_t lease_ms;
	} renew;
	/* The job's cgroup is below its user's, which gets these limits; NULL: jobs/JOB, as once.
	 */
	const struct cgroup_limits *user_limits;
	bool guest;	      /* the job came from another node: its cgroup is in guests/ */
	uint64_t spool_max;   /* at most this much output of a detached job is kept */
	uint64_t spill_max;   /* and this much that the client of an attached job did not take */
	const char *data_dir; /* where jobs have their data that goes along; NULL: nowhere */
	uint64_t data_cache_bytes; /* and how much of it is kept for one user */
	const void *spec;	   /* packed, as received */
	uint32_t spec_length;
	struct launch_spare *spare; /* NULL: start a new process */
	/* The job comes from another node, whose shim is at the stream's other end; the criu to
	 * restore it with, "": the usual one; NULL: it is started here. */
	const char *criu;
};

/* A shim started in advance, which waits for a job (shim/spare.h).  Zeroed: none. */
struct launch_spare {
	const char *jobs_dir; /* where it makes a record in advance; NULL: it makes none */
	bool waits;
	int leash;
	pid_t pid;
	struct launch_shims shims; /* the cgroup for this shim and for those started directly */
};
/* Starts a spare if none waits.  Best effort: without a spare, launch_shim starts a new shim. */
void launch_spare_make(struct launch_spare *spare, const char *shim_path, const char *scope);
/* Drops the spare, and what is kept for the next one. */
void launch_spare_drop(struct launch_spare *spare);

/*
 * Spawns the shim.  On success takes STREAM_FD (it is closed here; the shim has it).  LEASH gets
 * the agent's end, non-blocking, close-on-exec.  Does not wait for the shim: a failure there
 * arrives as LAUNCH_EXITED with kind 3, and the shim tells the client.
 *
 * 0 or negative errno with the sentence, and nothing is left behind: -EEXIST the job was started
 * here before (at most once, ever), -ENOSPC and others the job's directory cannot be made, -ENOENT
 * no such shim program.  The caller then still owns STREAM_FD and tells the client (FRAME_ERROR).
 */
int launch_shim(const struct launch_order *order, int stream_fd, pid_t *shim, int *leash,
		struct iocom_err *err);

/*
 * A shim's events on the leash (frames, MessagePack maps):
 *   { "event": "started", "job", "pid", "cgroup_id", "lease_until_ms", "renews" }
 *     and again each time the shim itself has renewed the lease
 *   { "event": "exited", "job", "kind", "value", "end_ns", "wall_ms", "max_rss_kb", "oom_kills",
 *     "forks_refused", "cpu_us", "begin_us", "text" }
 *   { "event": "ready", "job" }: a job that comes is restored and held
 *   { "event": "moved", "job", "failed", "frozen_ms", "dump_ms", "bytes", "why" }: a job that goes
 *     is held there, or that failed
 */
#define LAUNCH_NEVER 125 /* no process of the job ran */
enum launch_event_type {
	LAUNCH_STARTED = 1,
	LAUNCH_EXITED = 2,
	LAUNCH_READY = 3,
	LAUNCH_MOVED = 4
};
struct launch_event {
	enum launch_event_type type;
	char job[SPEC_JOB_MAX];
	pid_t pid;
	uint64_t cgroup_id; /* of STARTED */
	/* STARTED: end of the lease, CLOCK_BOOTTIME; 0: no lease, or an older shim */
	uint64_t lease_until_ms;
	bool renews;  /* STARTED: the shim itself asks home */
	uint8_t kind; /* FRAME_EXIT kinds: 0 exited, 1 signalled, 2 exec failed, 3 iocom failed */
	/* kind 3: LAUNCH_NEVER, or 255: the outcome is unknown, or the lease is over */
	uint32_t value;
	uint64_t end_ns;  /* CLOCK_REALTIME */
	uint64_t wall_ms; /* start to end */
	uint64_t max_rss_kb;
	uint64_t oom_kills, forks_refused, cpu_us, begin_us; /* as in struct record_exit */
	/* MOVED: TEXT says why it failed */
	bool failed;
	uint64_t frozen_ms, dump_ms, bytes;
	char text[256];
};
/*
 * Reads one event without blocking.  Returns 0; -EAGAIN none now; -EPIPE the shim is gone, or has
 * closed the leash; -EBADMSG; -EPROTONOSUPPORT it speaks a later version (leash_wire.h).
 */
int launch_read(int leash, struct launch_event *event);
/* Tells the shim that its job's lease lasts until UNTIL_MS (CLOCK_BOOTTIME); 0: it is over. */
int launch_lease(int leash, uint64_t until_ms);

/*
 * A new agent finds the shims that an older one started, by their journals in JOBS_DIR.  Calls
 * FOUND for each: with LEASH >= 0 if the shim lives (its control socket took the request; a stopped
 * shim answers on the leash when it continues); with BUSY if it lives but cannot be asked now; else
 * with the event from its journal (exited, or kind 3 "shim died").  FOUND also gets what the job
 * was started with.  0 or negative errno.
 */
struct launch_found {
	char job[SPEC_JOB_MAX];
	uid_t uid;
	int leash;
	bool busy;		     /* ask again with launch_outcome */
	bool newer;		     /* its version is later: busy until it is gone */
	struct launch_event started; /* cgroup_id; pid, or 0: no answer yet */
	struct launch_event last;    /* exited, if LEASH is -1 and not BUSY */
	uint64_t start_ns;
	bool spooled;	   /* its output is kept on disk */
	char command[256]; /* for listings, printable UTF-8 */
	char class_name[64];
};
int launch_recover(const char *jobs_dir, const char *run_dir,
		   int (*found)(void *arg, const struct launch_found *f), void *arg,
		   struct iocom_err *err);
/*
 * Does the same for one job whose shim was busy, or for which launch_read returned -EPIPE without
 * an exit before (the shim was killed).  Kills what is left of the job if its shim is dead, and
 * fills F.  Does not block.  Returns 0; -ENOENT no such job; other negative errno.
 */
int launch_outcome(const char *jobs_dir, const char *run_dir, const char *job,
		   struct launch_found *f);
/*
 * Kills and removes what is left of UID's job in the node's cgroups, below its user's or, of an
 * older agent, beside it; call it when the shim is dead.
 */
void launch_bury(const char *scope_cgroup, uid_t uid, const char *job);
/* Kills all processes of UID's job without the help of its shim.  Best effort. */
void launch_kill(const char *scope_cgroup, uid_t uid, const char *job);
/*
 * Removes a finished job's socket, and its journal (the agent has recorded it) unless its output is
 * kept for clients that attach (spool_quota.h removes that later).  Returns the bytes that stay, 0
 * if all is gone; -EBUSY: the shim still serves its client, try again.
 */
int64_t launch_forget(const char *jobs_dir, const char *run_dir, const char *job);
/* What a client that attaches asks for, and the keys of its stream; NULL: of this machine. */
struct launch_ask {
	const void *packed; /* user/attach.h */
	size_t length;
	const struct records *records;
};
/*
 * Hands STREAM, the connection of a client with the request ASK, to the job's shim, which answers
 * there; the caller still closes its own copy.  Returns 0; -ESRCH no shim lives; other negative
 * errno.
 */
int launch_attach(const char *run_dir, const char *job, const struct launch_ask *ask, int stream);
/*
 * Starts a shim for a job that is over: it sends the kept output and the exit status to STREAM
 * (taken on success, as in launch_shim).  LEASH closes when it is done.  Meanwhile it holds the
 * place SLOT (process_slot.h) for UID, or ends if that is taken; SLOT NULL: no place.
 */
int launch_replay(const char *shim_path, const char *scope, const char *jobs_dir, const char *slot,
		  uid_t uid, const struct launch_ask *ask, int stream, int *leash,
		  struct iocom_err *err);
/* Reads the job's owner from its record.  Returns 0, -ENOENT. */
int launch_owner(const char *jobs_dir, const char *job, uid_t *uid);
/*
 * Reads the secret of the job's attempt from its record.  Returns 0; -ENODATA: a shim of an older
 * version has written none; -ENOENT.
 */
int launch_secret(const char *jobs_dir, const char *job, uint8_t secret[SECRET_BYTES]);
/*
 * Asks the job's shim through its control socket to send a signal.  A non-blocking descriptor for
 * the answer, or negative errno: -ESRCH no shim, -EAGAIN it takes no more requests.
 */
int launch_signal_ask(const char *run_dir, const char *job, int signal);
/* The same; the node's owner expels the job, and WHY is what its user reads. */
int launch_expel_ask(const char *run_dir, const char *job, int signal, const char *why);
/* Reads that answer: 0, -EAGAIN not yet, or negative errno. */
int launch_signal_answer(int fd);

/*
 * Asks the job's shim to move the job to the shim at the other end of STREAM, whose keys are
 * RECORDS (NULL: it is in clear); the caller still closes its own copy.  PRECOPY: memory may be
 * sent while it runs.  A non-blocking descriptor for the answer, or as launch_signal_ask.
 */
int launch_move_ask(const char *run_dir, const char *job, const char *criu, bool precopy,
		    const struct records *records, int stream);
/* Reads that answer: 0: it has begun; -EAGAIN not yet; or negative errno, with the shim's sentence.
 */
int launch_move_answer(int fd, struct iocom_err *err);
/*
 * Tells a shim what was decided: the one where the job was, that it stays or leaves, and the one
 * where it comes, that it goes on or that the move is given up.  A descriptor for the answer, which
 * launch_signal_answer reads (-EALREADY: nothing is held, or the other was said before), or as
 * launch_signal_ask.
 */
enum launch_decision { LAUNCH_STAY, LAUNCH_LEAVE, LAUNCH_GO, LAUNCH_ABORT };
int launch_decide_ask(const char *run_dir, const char *job, enum launch_decision decision);

#endif
