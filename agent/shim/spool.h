/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What a job wrote, on disk: the files `out` and `err` of its record.  All of
 * a detached job's output goes here as far as the quota reaches; of other jobs
 * what their client had not taken when it went away and the job was over.
 *
 * The job never waits for its quota: what comes after it is counted and thrown
 * away, and who attaches is told how much.
 */
#ifndef IOCOM_SHIM_SPOOL_H
#define IOCOM_SHIM_SPOOL_H

#include <stdbool.h>
#include <stdint.h>

#include "frame.h"
#include "iocom/err.h"
#include "record.h"

struct spool {
	int fd[FRAME_STREAMS];	     /* [1] and [2]; -1 none */
	uint64_t end[FRAME_STREAMS]; /* offset behind the last byte that is kept */
	uint64_t left;		     /* of the quota, for both */
	struct record_spool info;    /* where the files begin, what is not kept */
};

void spool_init(struct spool *spool);
/* Makes the files in the record DIR; they begin at the offsets BASE.  0 or negative errno. */
int spool_make(struct spool *spool, int dir, const uint64_t base[FRAME_STREAMS], uint64_t quota,
	       bool detached, struct iocom_err *err);
/* Opens those of a job that is over.  0; -ENOENT nothing was kept; negative errno. */
int spool_open(struct spool *spool, int dir);
/* Appends; what the quota or the disk does not take is counted. */
void spool_add(struct spool *spool, int stream, const void *data, size_t length);
/* Reads from OFFSET on.  Bytes; -EIO. */
ssize_t spool_at(const struct spool *spool, int stream, uint64_t offset, void *out, size_t size);
/* What is not kept goes into the record DIR. */
void spool_note(const struct spool *spool, int dir);
void spool_deinit(struct spool *spool);

#endif
