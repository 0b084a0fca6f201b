/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The memory of a job that moves is sent while the job runs, in rounds: all of it, then what it has
 * changed meanwhile, and so on, so that little is left for the time when it is frozen.  The kernel
 * notes which pages change (soft-dirty), criu looks at that in each round, for which it stops the
 * job for a moment, and again when the rest is saved.
 *
 * Another round is worth it while the last one was clearly smaller than the one before, and took
 * longer than a freeze may.
 */
#ifndef IOCOM_SHIM_MOVE_PRECOPY_H
#define IOCOM_SHIM_MOVE_PRECOPY_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "agent/shim/move/criu.h"
#include "agent/shim/move/images.h"
#include "agent/shim/move/transfer.h"
#include "iocom/err.h"

#define PRECOPY_LEAST_BYTES (32ULL << 20) /* smaller jobs are saved and sent in a moment */
#define PRECOPY_LIMIT_MS    240000	  /* for all rounds; none begins later */
#define PRECOPY_ROUND_MS    120000	  /* for criu in one */
#define PRECOPY_ASK_MS	    3000	  /* for the target to say that it takes rounds */
#define PRECOPY_REST_MS	    100		  /* what is sent in so short a time is the rest */
#define PRECOPY_SHRINK	    3 /* quarters of the round before: a round must be smaller */

/* Returns whether the kernel notes which pages a program changes. */
bool precopy_tracks(void);

struct precopy {
	/* What the caller fills in. */
	const struct criu *criu;
	pid_t init;	   /* the job's first process */
	const char *group; /* path of its cgroup */
	const struct images *images;
	uint64_t room_bytes; /* as transfer_open had them */
	struct sending *sending;
	/* What came of it. */
	unsigned rounds;
	uint64_t bytes;			    /* that were sent */
	uint64_t frozen_us;		    /* while criu looked, in all rounds together */
	char previous[TRANSFER_ROUND_NAME]; /* for criu_dump; "": all must be saved */
	struct iocom_err why;		    /* criu could not do it, and all must be saved */
};
/*
 * Returns 0, also if criu failed, which has left the job as it was; or negative errno: the target
 * is gone, or refuses, or (-EIO) the job is damaged: ERR is empty then.
 */
int precopy_run(struct precopy *p, struct iocom_err *err);

#endif
