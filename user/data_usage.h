/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What a user's data cache at a node has seen so far: DATA_DIR/UID/usage, a file of root's that the
 * supervisors of jobs keep, for `iocom doctor`.
 */
#ifndef IOCOM_DATA_USAGE_H
#define IOCOM_DATA_USAGE_H

#include "user/data_stage.h"

struct data_usage {
	uint64_t jobs; /* whose data went along */
	/* sums over them; the cache's bytes, files and quota as the last one left them */
	struct data_stats sum;
};

/* Reads the file in the directory AT.  Returns 0, -ENOENT, -EBADMSG or negative errno. */
int data_usage_read(int at, struct data_usage *usage);
/* Adds one job.  The caller has AT locked.  Returns 0 or negative errno. */
int data_usage_add(int at, const struct data_stats *stats);

#endif
