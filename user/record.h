/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * A job's record on the target's disk: JOBS_DIR/JOB/start, written before the process starts,
 * and JOBS_DIR/JOB/exit, written after it ended. If output is kept for clients that attach,
 * there are also `out`, `err`, `spool`, which describes them, and `tail` (record_tail.h). The
 * shim writes, all but `expelled`; the agent reads, also one that starts later. A file appears
 * whole or not at all (temporary name, then rename). The shim holds a lock on the directory while
 * it lives.
 */
#ifndef IOCOM_RECORD_H
#define IOCOM_RECORD_H

#include <msgpack.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "iocom/err.h"
#include "user/channel/secret.h"
#include "user/spec.h"

struct record_start {
	char job[SPEC_JOB_MAX];
	char class_name[64];
	char command[256]; /* printable */
	char scope[256];   /* relative path of the node's cgroup */
	uid_t uid;
	pid_t shim;
	uint64_t cgroup_id;
	uint64_t start_ns; /* CLOCK_REALTIME */
	bool keyed;	   /* false: an older shim wrote it, and its streams are in clear */
	uint8_t secret[SECRET_BYTES]; /* of the attempt (user/channel/secret.h) */
};

#define RECORD_MOVED 4 /* the job left for another node, and ends there */

struct record_exit {
	pid_t pid;
	uint8_t kind; /* the kind as in FRAME_EXIT, or RECORD_MOVED */
	uint32_t value;
	uint64_t end_ns, wall_ms, max_rss_kb;
	uint64_t oom_kills;	/* processes killed for want of memory; 0 from an older shim */
	uint64_t forks_refused; /* of the job, or of its user's jobs meanwhile (cgroup_user.h) */
	/*
	 * The CPU time of its first process and of those that were waited for, to the last
	 * instruction, and of it what the shim's steps took before exec; 0 from an older shim.
	 */
	uint64_t cpu_us, begin_us;
	char text[256];
};

/* `expelled`: the node's owner sends the job away.  The agent writes it, for its next start. */
struct record_expelled {
	char why[160];
	uint64_t due_ns; /* SIGKILL, CLOCK_BOOTTIME */
	bool asked;	 /* SIGTERM was sent */
};

#define RECORD_OUT "out"
#define RECORD_ERR "err"

/* Values of `out` ([0]) and `err` ([1]). */
struct record_spool {
	uint64_t base[2]; /* the offset in the job's output at which the file begins */
	uint64_t lost[2]; /* bytes after the file's that are not kept */
	bool detached;
};

/*
 * Write into the job's directory DIR; other processes see the file at once. Nothing is synced
 * before a start: a crash that loses the record also ends every process and lease, so the job
 * cannot start twice. The start also reserves the room for the exit, so that a full disk loses
 * no outcome; record_sync syncs it and its name. Return 0 or negative errno (-ENOSPC, for
 * instance), and then leave nothing behind.
 */
int record_write_start(int dir, const struct record_start *start, struct iocom_err *err);
int record_write_exit(int dir, const struct record_exit *end, struct iocom_err *err);
void record_sync(int dir);
/*
 * Packs END's RECORD_EXIT_FIELDS fields into a map that the caller began. The shim also uses it
 * to report to its agent.
 */
#define RECORD_EXIT_FIELDS 11
void record_pack_exit(msgpack_packer *pk, const struct record_exit *end);
/* These return 0; -ENOENT: no such file; -EBADMSG: damaged. */
int record_read_start(int dir, struct record_start *start);
int record_read_exit(int dir, struct record_exit *end);
/*
 * Write and read the spool's description. They return 0 or negative errno; reading: -ENOENT: no
 * output is kept; -EBADMSG: damaged.
 */
int record_write_spool(int dir, const struct record_spool *spool);
/* Reserves room for one more record_write_spool, even if the disk fills meanwhile. */
int record_reserve_spool(int dir);
int record_read_spool(int dir, struct record_spool *spool);
/* These return 0 or negative errno; reading: -ENOENT: it may stay; -EBADMSG: damaged. */
int record_write_expelled(int dir, const struct record_expelled *expelled);
int record_read_expelled(int dir, struct record_expelled *expelled);
/* Returns the bytes of output kept in DIR; -ENOENT: none is kept or ever will be. */
int64_t record_spool_bytes(int dir);
/*
 * Reads the first SIZE bytes of the file NAME in DIR, which must be a regular file and no link.
 * Returns the number of bytes; -EBADMSG: it is something else; negative errno.
 */
ssize_t record_slurp(int dir, const char *name, void *data, size_t size);
/* Removes what is kept of the output in DIR: the job went on elsewhere with it. */
void record_forget_output(int dir);
/* Takes the lock that a living shim holds. Returns 0; -EWOULDBLOCK: another process holds it. */
int record_lock(int dir);
/* Removes JOBS_DIR/JOB and its files, of which some may be missing. */
void record_remove(const char *jobs_dir, const char *job);
/*
 * A record made in advance, JOBS_DIR/.spare-PID: it has the files that each job needs, so that a
 * job's begin makes none.  No job has such a name.  record_make_spare makes the one of the process
 * PID and returns its descriptor, or negative errno.
 */
#define RECORD_SPARE ".spare-"
int record_make_spare(const char *jobs_dir, pid_t pid);
/*
 * Makes it the record of JOB.  Returns 0; -EEXIST: JOB has one; -ENOENT: there is no such spare;
 * negative errno.
 */
int record_take_spare(const char *jobs_dir, pid_t pid, const char *job);
/* Removes JOBS_DIR/NAME if NAME is a spare record's. */
void record_remove_spare(const char *jobs_dir, const char *name);
/* Makes PATH and its missing parents, the new ones with mode 0700. Returns 0 or negative errno. */
int record_make_dirs(const char *path, struct iocom_err *err);

#endif
