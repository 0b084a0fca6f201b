/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * A second process for a restartable job: where the shim is killed, or stopped beyond the
 * lease, and no agent is there to see it, nobody else would end the job, and home lets it
 * run again elsewhere.  It holds the job's cgroup's name and nothing else, and is asleep.
 */
#ifndef IOCOM_SHIM_GUARD_H
#define IOCOM_SHIM_GUARD_H

#include <stdint.h>
#include <sys/types.h>

#include "user/cgroup.h"
#include "iocom/err.h"

#define GUARD_LATE_MS 500 /* a shim that lives kills its job itself, at the lease's end */

struct guard {
	pid_t pid; /* 0: none */
	int fd;	   /* closes with the shim */
	/* Shared: the lease's end in CLOCK_BOOTTIME; 0: the job is over. */
	volatile uint64_t *until_ms;
};

/*
 * Guards GROUP, which it kills when this process is gone or the lease is over.  Before the
 * job's first process, from a process of one thread.  0 or negative errno, and ERR.
 */
int guard_begin(struct guard *guard, const struct cgroup *group, uint64_t until_ms,
		struct iocom_err *err);
/* The lease ends then; nothing without a guard. */
void guard_tell(struct guard *guard, uint64_t until_ms);
/* The job is over. */
void guard_end(struct guard *guard);

#endif
