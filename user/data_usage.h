/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What a user's data cache at a node has seen so far: DATA_DIR/UID/usage, a file of root's that the
 * supervisors of jobs keep, for the agent and `iocom doctor`.
 */
#ifndef IOCOM_DATA_USAGE_H
#define IOCOM_DATA_USAGE_H

#include "user/data_stage.h"

struct data_usage {
	uint64_t jobs;	  /* whose data went along */
	uint64_t refused; /* whose data had no room: quota, or a full disk */
	/* sums over them; the cache's bytes, files and quota as the last one left them */
	struct data_stats sum;
};

/* Reads the file in the directory AT.  Returns 0, -ENOENT, -EBADMSG or negative errno. */
int data_usage_read(int at, struct data_usage *usage);
/* Adds one job.  The caller has AT locked.  Returns 0 or negative errno. */
int data_usage_add(int at, const struct data_stats *stats);
/* Counts one job whose data had no room.  The caller has AT locked.  0 or negative errno. */
int data_usage_refuse(int at);

/* The caches of all users. */
struct data_usage_all {
	struct data_usage sum; /* the quota: of one user, the largest */
	unsigned users;
	unsigned full; /* caches that have more than nine tenths of their quota */
};
/* Sums up what is in DATA_DIR; for root.  Returns 0 or negative errno. */
int data_usage_all(const char *data_dir, struct data_usage_all *all);

#endif
