/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The cgroup of all jobs of one user, SCOPE/jobs/user@UID, and its limits: a job that forks or
 * takes memory without end then harms only jobs of the same user.
 *
 *   limit     cgroup v2                       cgroup v1
 *   tasks     pids.max                        pids.max
 *   memory    memory.max                      memory.limit_in_bytes
 *   swap      memory.swap.max                 memory.memsw.limit_in_bytes (memory and swap)
 *
 * What the kernel did because of a limit, or for want of memory in general:
 *
 *   killed    memory.events: oom_kill         memory.oom_control: oom_kill, of the job's group
 *   refused   pids.events: max, of the job's group; from Linux 6.11 on, v2 counts at the group
 *             whose limit it was: pids.events.local of the user's group, for all of the user's jobs
 */
#ifndef IOCOM_CGROUP_USER_H
#define IOCOM_CGROUP_USER_H

#include <stdint.h>
#include <sys/types.h>

#include "user/cgroup.h"

#define CGROUP_USER_PREFIX "user@"

/* 0: no limit. Without a limit of memory there is none of swap. */
struct cgroup_limits {
	uint64_t tasks; /* processes and threads */
	uint64_t memory_bytes, swap_bytes;
};

#define CGROUP_TASKS  1u
#define CGROUP_MEMORY 2u

/* Writes the name of UID's JOB below its scope, for cgroup_name. Returns 0 or -ENAMETOOLONG. */
int cgroup_user_job(char *name, size_t size, uid_t uid, const char *job);
/*
 * Limits the user's group, the parent of a job's GROUP, which exists: so the user's group cannot
 * vanish meanwhile. Returns the limits that could not be set because their controller is missing
 * or refuses them: a sum of CGROUP_TASKS and CGROUP_MEMORY, or 0.
 */
unsigned cgroup_user_limit(const struct cgroup *group, const struct cgroup_limits *limits);
/* Removes the user's group, the parent of a job's GROUP, if no job is left in it. Best effort. */
void cgroup_user_leave(const struct cgroup *group);

/* How often the kernel acted since the groups were made; 0 also if a file cannot be read. */
struct cgroup_troubles {
	uint64_t oom_kills;	     /* processes of the job killed for want of memory */
	uint64_t forks_refused;	     /* of the job */
	uint64_t user_forks_refused; /* of all jobs of the user, where the kernel counts only those
				      */
};
void cgroup_user_troubles(const struct cgroup *group, struct cgroup_troubles *out);
/*
 * Finds KEY in TEXT, lines of "KEY NUMBER". Returns 0; -ENOENT: there is no such line; -EBADMSG: no
 * number follows.
 */
int cgroup_user_event(const char *text, const char *key, uint64_t *value);

/* What the machine and the groups around JOBS offer at most; 0: unknown. */
struct cgroup_bounds {
	uint64_t tasks; /* least of kernel.pid_max, kernel.threads-max, each pids.max */
	uint64_t memory_bytes, swap_bytes;
};
/* PROC is "/proc". JOBS names the group SCOPE/jobs, which need not exist. */
void cgroup_user_bounds(const char *proc, const struct cgroup *jobs, struct cgroup_bounds *out);

#endif
