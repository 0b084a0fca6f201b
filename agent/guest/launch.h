/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Launch: from an accepted job stream to a running shim.
 *
 * The agent's loop accepts a stream, reads FRAME_START without blocking,
 * authenticates it, and calls launch_shim: the shim is spawned by exec (nng is
 * not fork-safe) with three descriptors: one end of a socketpair (the "leash"),
 * the order in a memory file, and the stream; from then on it owns the job.  It
 * reports on the leash, and a dead agent only closes that.
 *
 * The shim is the agent's child: the agent reaps it (SIGCHLD, or waitpid on the
 * pid that launch_shim gave once launch_read says -EPIPE).  Shims found after a
 * restart are init's.
 */
#ifndef IOCOM_LAUNCH_H
#define IOCOM_LAUNCH_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "user/account.h"
#include "iocom/err.h"
#include "agent/guest/launch_spawn.h"
#include "user/spec.h"

struct launch_order {
	const char *shim_path;	  /* the iocom-shim program */
	const char *jobs_dir;	  /* STATE_DIR/jobs: the shim's journal is jobs_dir/JOB/ */
	const char *run_dir;	  /* RUN_DIR/jobs: the shim's control socket is run_dir/JOB.sock */
	const char *scope_cgroup; /* relative path of the node's scope, "" = the root */
	uid_t uid;
	gid_t gid;
	bool allow_root;
	const struct account *account; /* of UID; NULL: the shim looks it up */
	const char *pam;	       /* directory of PAM's service file; NULL: without PAM */
	uint64_t lease_until_ms;       /* of a restartable job, CLOCK_BOOTTIME; else 0 */
	uint32_t begin_ms;	       /* shim/order.h; 0: the usual */
	struct launch_renew {
		const uint8_t
			*secret;     /* RENEWAL_SECRET bytes: the shim renews it itself; or NULL */
		const char *address; /* of home */
		uint16_t port;	     /* ... for job streams */
		uint32_t lease_ms;
	} renew;
	uint64_t spool_max; /* bytes of a detached job's output that are kept, at most */
	const void *spec;   /* packed, as received */
	uint32_t spec_length;
	struct launch_spare *spare; /* NULL: a new process */
};

/* One shim that is started ahead and waits (shim/spare.h).  Zeroed: none. */
struct launch_spare {
	bool waits;
	int leash;
	pid_t pid;
	struct launch_shims shims; /* for it, and for those that are started without it */
};
/* Starts one where none waits.  Best effort: launch_shim starts its own where there is none. */
void launch_spare_make(struct launch_spare *spare, const char *shim_path, const char *scope);
/* It goes, and what is kept for the next one. */
void launch_spare_drop(struct launch_spare *spare);

/*
 * Spawns the shim.  Takes STREAM_FD on success (it is closed here, the shim
 * has it).  LEASH gets the agent's end, non-blocking, close-on-exec.  Does not
 * wait for the shim: what fails there comes as LAUNCH_EXITED with kind 3, and
 * the shim tells the client.
 * 0 or negative errno with the sentence, and nothing is left behind: -EEXIST
 * the job was started here before (at most once, ever), -ENOSPC and others the
 * job's directory cannot be made, -ENOENT no such shim program.  The caller then
 * still owns STREAM_FD and tells the client (FRAME_ERROR).
 */
int launch_shim(const struct launch_order *order, int stream_fd, pid_t *shim, int *leash,
		struct iocom_err *err);

/*
 * What a shim says on the leash (frames, MessagePack maps):
 *   { "event": "started", "job", "pid", "cgroup_id", "lease_until_ms", "renews" }
 *     and again each time the shim itself has renewed the lease
 *   { "event": "exited", "job", "kind", "value", "end_ns", "wall_ms", "max_rss_kb", "text" }
 */
#define LAUNCH_NEVER 125 /* nothing of the job ran */
enum launch_event_type { LAUNCH_STARTED = 1, LAUNCH_EXITED = 2 };
struct launch_event {
	enum launch_event_type type;
	char job[SPEC_JOB_MAX];
	pid_t pid;
	uint64_t cgroup_id;	 /* of STARTED */
	uint64_t lease_until_ms; /* of STARTED, CLOCK_BOOTTIME; 0: none, or an older shim */
	bool renews;		 /* of STARTED: the shim asks home itself */
	uint8_t kind;	/* FRAME_EXIT kinds: 0 exited, 1 signalled, 2 exec failed, 3 iocom failed */
	uint32_t value; /* of kind 3: LAUNCH_NEVER, 255 the outcome is unknown, or of the lease */
	uint64_t end_ns;  /* CLOCK_REALTIME */
	uint64_t wall_ms; /* start to end */
	uint64_t max_rss_kb;
	char text[256];
};
/*
 * Non-blocking.  0 an event; -EAGAIN none now; -EPIPE the shim is gone, or has closed the
 * leash; -EBADMSG; -EPROTONOSUPPORT it speaks a later version (leash_wire.h).
 */
int launch_read(int leash, struct launch_event *event);
/* The lease of a restartable job goes on until then (CLOCK_BOOTTIME); 0: it is over. */
int launch_lease(int leash, uint64_t until_ms);

/*
 * For a new agent: finds the shims that an older one started, by their journals
 * in JOBS_DIR.  Calls FOUND for each: LEASH >= 0 when the shim lives (its control
 * socket took the request; one that is stopped answers on the leash when it goes on),
 * or BUSY when it lives and cannot be asked now, else the event its journal holds
 * (exited, or kind 3 "shim died").  Also returns what started it.  0 or negative errno.
 */
struct launch_found {
	char job[SPEC_JOB_MAX];
	uid_t uid;
	int leash;
	bool busy;		     /* ask again with launch_outcome */
	bool newer;		     /* ... and of a later version: until it is gone */
	struct launch_event started; /* cgroup_id; pid, or 0: it has not answered yet */
	struct launch_event last;    /* exited, when LEASH is -1 and it is not BUSY */
	uint64_t start_ns;
	bool spooled;	   /* its output is kept on the disk */
	char command[256]; /* for listings, printable UTF-8 */
	char class_name[64];
};
int launch_recover(const char *jobs_dir, const char *run_dir,
		   int (*found)(void *arg, const struct launch_found *f), void *arg,
		   struct iocom_err *err);
/*
 * The same for one job, when launch_read said -EPIPE without an exit before (the
 * shim was killed), or it was busy.  Kills what is left of the job where its shim is
 * dead, and fills F.  Does not block.  0; -ENOENT no such job; negative errno.
 */
int launch_outcome(const char *jobs_dir, const char *run_dir, const char *job,
		   struct launch_found *f);
/* Kills and removes what is left of a job in the node's cgroups; its shim is dead. */
void launch_bury(const char *scope_cgroup, const char *job);
/* Kills all of a job's processes without its shim.  Best effort. */
void launch_kill(const char *scope_cgroup, const char *job);
/*
 * Removes a finished job's socket, and its journal (the agent has recorded it) unless
 * output of it is kept for who attaches (spool_quota.h looks after that).  The bytes that stay,
 * 0 where all is gone; -EBUSY its shim is still there, for its client: try again.
 */
int64_t launch_forget(const char *jobs_dir, const char *run_dir, const char *job);
/*
 * Hands the connection STREAM of a client that asks (ASK, packed: user/attach.h) to the
 * job's shim, which answers there; the caller still closes its own.  0; -ESRCH no shim
 * lives; negative errno.
 */
int launch_attach(const char *run_dir, const char *job, const void *ask, size_t length, int stream);
/*
 * A shim for a job that is over: it sends STREAM (taken on success, as in launch_shim)
 * what is kept of its output and its exit status.  LEASH closes when it is done.  It has
 * the place SLOT (process_slot.h) for UID meanwhile, or refuses; NULL: none.
 */
int launch_replay(const char *shim_path, const char *scope, const char *jobs_dir, const char *slot,
		  uid_t uid, const void *ask, size_t length, int stream, int *leash,
		  struct iocom_err *err);
/* Whose job it was, by its record.  0, -ENOENT. */
int launch_owner(const char *jobs_dir, const char *job, uid_t *uid);
/*
 * Asks the job's shim, through its control socket, to send a signal.  A non-blocking descriptor
 * on which the answer comes, or negative errno: -ESRCH there is none, -EAGAIN it takes no more.
 */
int launch_signal_ask(const char *run_dir, const char *job, int signal);
/* The answer: 0, -EAGAIN not yet, or negative errno. */
int launch_signal_answer(int fd);

#endif
