/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Bounds the kept output of jobs that are over: by number, age, bytes, and bytes per user; the
 * oldest output goes first.
 */
#ifndef IOCOM_SPOOL_QUOTA_H
#define IOCOM_SPOOL_QUOTA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Bytes of output by user. */
struct spool_quota_users {
	struct kept_user {
		uid_t uid;
		uint64_t bytes;
	} * list;
	size_t n;
};

/* If memory is out, the user counts for nothing until the next prune. */
void spool_quota_users_add(struct spool_quota_users *users, uid_t uid, uint64_t bytes);
uint64_t spool_quota_users_of(const struct spool_quota_users *users, uid_t uid);
void spool_quota_users_free(struct spool_quota_users *users);

struct spool_quota_limits {
	uint32_t jobs;	    /* how many jobs are kept */
	uint64_t oldest_ns; /* kept jobs ended after this (CLOCK_REALTIME) */
	uint64_t bytes;	    /* bytes of all kept jobs together */
	uint64_t of_one;    /* per user; root is exempt */
	/* This user has less, because the rest is needed for running jobs; 0: there is none. */
	uid_t uid;
	uint64_t of_uid;
};

struct spool_quota_sum {
	uint64_t jobs, bytes;	/* kept */
	uint64_t removed_jobs;	/* removed jobs */
	uint64_t removed_bytes; /* their output */
	/* how many of removed_jobs were removed only for the user's share */
	uint64_t removed_share;
};

/*
 * Removes from JOBS_DIR what exceeds LIMITS, and records without output whose shim is gone.  Jobs
 * for which LIVE is true stay.  USERS, if not NULL, gets the kept bytes per user; its old content
 * is replaced, and the caller frees it.  Returns 0 or negative errno.
 */
int spool_quota_prune(const char *jobs_dir, const char *run_dir,
		      const struct spool_quota_limits *limits,
		      bool (*live)(void *arg, const char *job), void *arg,
		      struct spool_quota_sum *sum, struct spool_quota_users *users);

#endif
