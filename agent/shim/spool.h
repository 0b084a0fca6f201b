/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What a job wrote, on disk: the files `out` and `err` of its record.  All of
 * a detached job's output goes here as far as the quota reaches; of other jobs
 * what their client had not taken when it went away and the job was over.
 *
 * The job never waits for its quota.  Of more output than that the beginning is kept, and
 * the end, where errors are said: behind the beginning each file has a ring of the
 * newest bytes (record_tail.h).  What was between them is counted and thrown away, and
 * who attaches is told how much.
 *
 *   offsets  base ......... head ........ from ........ end
 *            the beginning    not kept      the ring
 */
#ifndef IOCOM_SHIM_SPOOL_H
#define IOCOM_SHIM_SPOOL_H

#include <stdbool.h>
#include <stdint.h>

#include "user/frame.h"
#include "iocom/err.h"
#include "user/record.h"
#include "user/record_tail.h"

/* Bytes: of both beginnings together, of the rings of [1] and [2]. */
struct spool_size {
	uint64_t head, ring[FRAME_STREAMS];
};

struct spool {
	int fd[FRAME_STREAMS]; /* [1] and [2]; -1 none */
	int fd_tail;	       /* of a running job, once it was needed; -1 */
	uint64_t left;	       /* of the beginnings' room, for both */
	bool ringed;	       /* the beginnings are over: `tail` says where they end */
	bool told;	       /* the file `tail` says the same */
	struct record_tail tail;
	struct record_spool info; /* where the files begin, what is not kept */
};

void spool_init(struct spool *spool);
/* How QUOTA is shared out: half for the beginnings, most of the rest for standard output's end. */
struct spool_size spool_share(uint64_t quota, bool terminal);
/* Makes the files in the record DIR; they begin at the offsets BASE.  0 or negative errno. */
int spool_make(struct spool *spool, int dir, const uint64_t base[FRAME_STREAMS],
	       const struct spool_size *size, bool detached, struct iocom_err *err);
/* Opens those of a job that is over.  0; -ENOENT nothing was kept; negative errno. */
int spool_open(struct spool *spool, int dir);
/* Appends; what the quota or the disk does not take is counted.  DIR: the record. */
void spool_add(struct spool *spool, int dir, int stream, const void *data, size_t length);
/* Where the beginning ends; where the output does. */
uint64_t spool_head(const struct spool *spool, int stream);
uint64_t spool_end(const struct spool *spool, int stream);
/* The first offset from OFFSET on that is kept; the output's end: none is. */
uint64_t spool_kept(const struct spool *spool, int stream, uint64_t offset);
/* Reads from OFFSET on, which is kept.  Bytes; -EIO. */
ssize_t spool_at(const struct spool *spool, int stream, uint64_t offset, void *out, size_t size);
/* What is not kept goes into the record DIR. */
void spool_note(const struct spool *spool, int dir);
void spool_deinit(struct spool *spool);

#endif
