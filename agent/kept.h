/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What is kept of the output of jobs that are over: how much, and for how long.
 * By number, age and bytes; the oldest go first.
 */
#ifndef IOCOM_KEPT_H
#define IOCOM_KEPT_H

#include <stdbool.h>
#include <stdint.h>

struct kept_limits {
	uint32_t jobs;	    /* so many */
	uint64_t oldest_ns; /* ended after this (CLOCK_REALTIME) */
	uint64_t bytes;	    /* of all together */
};

struct kept_sum {
	uint64_t jobs, bytes;	/* that stay */
	uint64_t removed_jobs;	/* ... that went, */
	uint64_t removed_bytes; /* with so much output */
};

/*
 * Removes from JOBS_DIR what is above LIMITS, and records without output whose shim
 * has gone.  Jobs that LIVE knows are left alone.  0 or negative errno.
 */
int kept_prune(const char *jobs_dir, const char *run_dir, const struct kept_limits *limits,
	       bool (*live)(void *arg, const char *job), void *arg, struct kept_sum *sum);

#endif
