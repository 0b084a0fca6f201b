/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The guard: a second process for a restartable job. If the shim is killed, or stopped for
 * longer than the lease, and no agent is there to notice, nothing else would end the job before
 * home runs it again elsewhere. The guard holds only the name of the job's cgroup, and sleeps.
 */
#ifndef IOCOM_SHIM_GUARD_H
#define IOCOM_SHIM_GUARD_H

#include <stdint.h>
#include <sys/types.h>

#include "user/cgroup.h"
#include "iocom/err.h"

#define GUARD_NO_END_MS (UINT64_MAX / 2)
#define GUARD_LATE_MS	500 /* a shim that runs kills its job itself when the lease ends */

struct guard {
	pid_t pid; /* 0: no guard */
	int fd;	   /* the kernel closes it when the shim ends */
	/* Shared memory: when the lease ends (CLOCK_BOOTTIME), or 0 once the job is over. */
	volatile uint64_t *until_ms;
};

/*
 * Starts a guard that kills GROUP when this process is gone or the lease is over. Call it before
 * the job's first process starts, from a process with one thread. The guard is a copy of this
 * process and calls FORGET to erase what only this one must know. Returns 0 or negative errno with
 * ERR.
 */
int guard_begin(struct guard *guard, const struct cgroup *group, uint64_t until_ms,
		void (*forget)(void *arg), void *arg, struct iocom_err *err);
/* Tells the guard the lease's new end. Does nothing without a guard. */
void guard_tell(struct guard *guard, uint64_t until_ms);
/* Ends the guard because the job is over. */
void guard_end(struct guard *guard);

#endif
