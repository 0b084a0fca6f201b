/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * A job's record on the target's disk: JOBS_DIR/JOB/start, written before the
 * process starts, and JOBS_DIR/JOB/exit after it ended.  Where output is kept
 * for who attaches: `out`, `err`, `spool`, which says what they are, and `tail`
 * (record_tail.h).  The shim writes, an
 * agent that comes later reads.  A file appears whole or not at all (temporary
 * name, then rename).  The shim holds a lock on the directory while it lives.
 */
#ifndef IOCOM_RECORD_H
#define IOCOM_RECORD_H

#include <msgpack.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "iocom/err.h"
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
};

struct record_exit {
	pid_t pid;
	uint8_t kind; /* as in FRAME_EXIT */
	uint32_t value;
	uint64_t end_ns, wall_ms, max_rss_kb;
	char text[256];
};

#define RECORD_OUT "out"
#define RECORD_ERR "err"

/* Of `out` and `err`: [0] and [1]. */
struct record_spool {
	uint64_t base[2]; /* the offset in the job's output at which the file begins */
	uint64_t lost[2]; /* bytes after it that are not kept */
	bool detached;
};

/*
 * Writes into the job's directory DIR; other processes see it at once.  Nothing waits for
 * the disk before a start: no process survives what loses it, and no lease does, so that
 * the job cannot start again.  The exit has its room then, so that a disk that fills later
 * takes no outcome; record_sync puts it on the disk.
 * 0 or negative errno (-ENOSPC ...), and then nothing of it is left.
 */
int record_write_start(int dir, const struct record_start *start, struct iocom_err *err);
int record_write_exit(int dir, const struct record_exit *end, struct iocom_err *err);
void record_sync(int dir);
/* Packs END's RECORD_EXIT_FIELDS fields into a map begun: the shim tells its agent the same. */
#define RECORD_EXIT_FIELDS 7
void record_pack_exit(msgpack_packer *pk, const struct record_exit *end);
/* 0; -ENOENT not there; -EBADMSG damaged. */
int record_read_start(int dir, struct record_start *start);
int record_read_exit(int dir, struct record_exit *end);
/* 0 or negative errno; reading: -ENOENT no output is kept, -EBADMSG damaged. */
int record_write_spool(int dir, const struct record_spool *spool);
/* Room for one more record_write_spool, whatever fills the disk meanwhile. */
int record_reserve_spool(int dir);
int record_read_spool(int dir, struct record_spool *spool);
/* Bytes of output that are kept in DIR; -ENOENT none is, nor is it meant to be. */
int64_t record_spool_bytes(int dir);
/*
 * The first SIZE bytes of the file NAME in DIR, if it is a regular one and no link: how many, or
 * negative errno; -EBADMSG: something else.
 */
ssize_t record_slurp(int dir, const char *name, void *data, size_t size);
/* Takes the lock of a living shim.  0; -EWOULDBLOCK another process holds it. */
int record_lock(int dir);
/* Removes JOBS_DIR/JOB and its files; missing ones are fine. */
void record_remove(const char *jobs_dir, const char *job);
/* Makes PATH and missing parents, each mode 0700 when new.  0 or negative errno. */
int record_make_dirs(const char *path, struct iocom_err *err);

#endif
