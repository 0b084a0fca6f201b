/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * A job's output on disk: the files `out` and `err` of its record. All output of a detached job
 * goes here, up to the quota. For other jobs this is what their client had not taken when it
 * went away and the job was over.
 *
 * The job never waits for its quota. If it writes more, the beginning and the end are kept,
 * because errors are at the end: behind the beginning each file has a ring of the newest bytes
 * (record_tail.h). The bytes between them are counted and dropped, and a client that attaches is
 * told how many.
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

/* Sizes in bytes: `head` for both beginnings together, `ring` for each output. */
struct spool_size {
	uint64_t head, ring[FRAME_STREAMS];
};

struct spool {
	int fd[FRAME_STREAMS]; /* [1] and [2]; -1: none */
	int fd_tail;	       /* file `tail` of a running job, once it is needed; -1: none */
	uint64_t left;	       /* room left for both beginnings together */
	bool ringed;	       /* the beginnings are over: `tail` says where they end */
	bool told;	       /* the file `tail` matches the member */
	struct record_tail tail;
	struct record_spool info; /* where the files begin and how much is not kept */
};

void spool_init(struct spool *spool);
/* Shares QUOTA out: half for the beginnings, most of the rest for the end of standard output. */
struct spool_size spool_share(uint64_t quota, bool terminal);
/* Makes the files in the record DIR; their first bytes have the offsets BASE. Returns 0 or
 * negative errno. */
int spool_make(struct spool *spool, int dir, const uint64_t base[FRAME_STREAMS],
	       const struct spool_size *size, bool detached, struct iocom_err *err);
/* Opens the files of an ended job. Returns 0; -ENOENT: nothing was kept; negative errno. */
int spool_open(struct spool *spool, int dir);
/* Appends, and counts what the quota or the disk does not take. DIR is the record. */
void spool_add(struct spool *spool, int dir, int stream, const void *data, size_t length);
/* These return the offsets where the beginning ends and where the output ends. */
uint64_t spool_head(const struct spool *spool, int stream);
uint64_t spool_end(const struct spool *spool, int stream);
/* Returns the first kept offset at or after OFFSET, or the output's end. */
uint64_t spool_kept(const struct spool *spool, int stream, uint64_t offset);
/* Reads at OFFSET, which must be kept. Returns the number of bytes, or -EIO. */
ssize_t spool_at(const struct spool *spool, int stream, uint64_t offset, void *out, size_t size);
/* Writes to the record DIR how much is not kept. */
void spool_note(const struct spool *spool, int dir);
void spool_deinit(struct spool *spool);

/*
 * A job that moves takes its files along (SPOOL_OUT and SPOOL_ERR on the way) and what its shim
 * knows of them, which spool_pack writes.  spool_carry_on takes both up in the record DIR, where
 * the files are, with at most QUOTA bytes.  Returns 0, or negative errno (-EBADMSG: they do not
 * belong together) with the reason in ERR.
 */
#define SPOOL_PACKED (6 * 8 + RECORD_TAIL_BYTES)
void spool_pack(const struct spool *spool, uint8_t out[SPOOL_PACKED]);
int spool_carry_on(struct spool *spool, int dir, const uint8_t packed[SPOOL_PACKED], uint64_t quota,
		   struct iocom_err *err);

#endif
