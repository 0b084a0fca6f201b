/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What is kept of the output of jobs that are over: how much, and for how long.
 * By number, age, bytes, and bytes of one user; the oldest go first.
 */
#ifndef IOCOM_SPOOL_QUOTA_H
#define IOCOM_SPOOL_QUOTA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Bytes of output by whose they are. */
struct spool_quota_users {
	struct kept_user {
		uid_t uid;
		uint64_t bytes;
	} * list;
	size_t n;
};

/* Without memory a user counts for nothing until the next prune. */
void spool_quota_users_add(struct spool_quota_users *users, uid_t uid, uint64_t bytes);
uint64_t spool_quota_users_of(const struct spool_quota_users *users, uid_t uid);
void spool_quota_users_free(struct spool_quota_users *users);

struct spool_quota_limits {
	uint32_t jobs;	    /* so many */
	uint64_t oldest_ns; /* ended after this (CLOCK_REALTIME) */
	uint64_t bytes;	    /* of all together */
	uint64_t of_one;    /* ... of one user who is not root */
	/* One of them has less, because he needs the rest for more; 0: there is none. */
	uid_t uid;
	uint64_t of_uid;
};

struct spool_quota_sum {
	uint64_t jobs, bytes;	/* that stay */
	uint64_t removed_jobs;	/* ... that went, */
	uint64_t removed_bytes; /* with so much output */
	uint64_t removed_share; /* of those jobs: for their user's share alone */
};

/*
 * Removes from JOBS_DIR what is above LIMITS, and records without output whose shim
 * has gone.  Jobs that LIVE knows are left alone.  USERS, where it is not NULL: whose what
 * stays is; what was in it is replaced, it is the caller's to free.  0 or negative errno.
 */
int spool_quota_prune(const char *jobs_dir, const char *run_dir,
		      const struct spool_quota_limits *limits,
		      bool (*live)(void *arg, const char *job), void *arg,
		      struct spool_quota_sum *sum, struct spool_quota_users *users);

#endif
