/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Control groups of jobs, on pure v2 machines and on hybrid ones.
 *
 * A node's scope is one relative path. It always exists on the cgroup2 mount, and a job is
 * identified by its group there. If v1 controllers (memory, cpu, cpuacct, pids) are mounted, the
 * same relative path exists under each. A job's group is SCOPE/jobs/user@UID/JOB in all of them,
 * so that limits on SCOPE/jobs/user@UID hold for all jobs of a user together (cgroup_user.h).
 * That of a job from another node is in SCOPE/guests instead (cgroup_guests.h). An
 * agent before 0.1.0's user groups made SCOPE/jobs/JOB. An empty scope means the whole machine;
 * its groups are then in "iocom/".
 */
#ifndef IOCOM_CGROUP_H
#define IOCOM_CGROUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "iocom/err.h"

#define CGROUP_PATH_MAX 1024
#define CGROUP_V1_MAX	4

/* Where the hierarchies are mounted. */
struct cgroup_mounts {
	char v2[256]; /* "" if cgroup2 is not mounted */
	char v1[CGROUP_V1_MAX][256];
	size_t nv1;
	char devices[256]; /* the v1 hierarchy of devices, if it is not one of these; else "" */
};

/* One group, with its directory in every hierarchy that has it. */
struct cgroup {
	char v2[CGROUP_PATH_MAX];
	char v1[CGROUP_V1_MAX][CGROUP_PATH_MAX];
	size_t nv1;
	unsigned depth; /* directories below the scope */
	bool whole;	/* the scope is the whole machine */
	uint64_t id;	/* id of the v2 directory, the kernel's dfl_cgrp->kn->id; 0: unknown */
};

/* Reads a mount table (/proc/self/mounts). Returns 0, or -ENOENT if cgroup2 is not mounted. */
int cgroup_mounts_read(const char *table, struct cgroup_mounts *mounts, struct iocom_err *err);
/*
 * Names SCOPE/NAME without making it. NAME is "jobs/user@7/n1-1-7" or "shims", for example. A v1
 * hierarchy without the directory SCOPE is left out. Returns 0; -ENAMETOOLONG; -EINVAL for a
 * scope that is absolute or has "..".
 */
int cgroup_name(const struct cgroup_mounts *mounts, const char *scope, const char *name,
		struct cgroup *group, struct iocom_err *err);
/*
 * Makes the group and its parents below the scope, offers it the v2 controllers that the scope
 * has, and fills `id`. Other processes may remove empty parents meanwhile: they are made again.
 * Returns 0 (also if the group existed and is empty), or -EBUSY if it has processes.
 */
int cgroup_create(struct cgroup *group, struct iocom_err *err);
/* Writes TEXT to FILE of a group. Returns 0 or negative errno; -ENOENT: there is no such file. */
int cgroup_write(const char *directory, const char *file, const char *text);
/*
 * Moves the calling process into the v1 groups, and with V2 into the v2 group too. Uses only
 * system calls, so a child may call it between fork and exec. Returns 0 or negative errno.
 */
int cgroup_enter(const struct cgroup *group, bool v2);
/*
 * Moves the calling process out of the v1 group of devices that a service manager made for a
 * service (its name ends in .service) into the root: a limit to few devices is the agent's, and
 * v2, where it would be left behind with the group, has no such hierarchy. Another group stays.
 * Returns 0 or negative errno.
 */
int cgroup_leave_devices(const struct cgroup_mounts *mounts);
/* Returns an O_DIRECTORY descriptor of the v2 group for CLONE_INTO_CGROUP, or negative errno. */
int cgroup_open(const struct cgroup *group);
/* Returns 1 if a process is in the group or below it, else 0, or negative errno. */
int cgroup_populated(const struct cgroup *group);
/* Returns the CPU time of all that was ever in GROUP, in us; 0: the kernel does not say. */
uint64_t cgroup_cpu_us(const struct cgroup *group);
/*
 * Kills all processes in the group and below: with cgroup.kill (Linux 5.14), else it freezes the
 * group and kills them one by one. Does not wait for the last exit.
 */
int cgroup_kill(const struct cgroup *group);
/* Sends SIGNAL to each process in the group. A process that forks meanwhile may escape. */
int cgroup_signal(const struct cgroup *group, int signal);
/*
 * Removes the group and the groups that the job made below it. Kills processes that are still
 * there and waits up to LIMIT_MS for the last exit. Returns 0 or -EBUSY.
 */
int cgroup_remove(const struct cgroup *group, unsigned limit_ms);
/*
 * Removes the groups that iocom made for SCOPE itself ("jobs" and "guests" with their users'
 * groups, "shims", and
 * "iocom" of an empty scope) if they are empty. If no job is left, waits up to LIMIT_MS for the
 * shims of jobs that have just ended. Best effort.
 */
void cgroup_tidy(const char *scope, unsigned limit_ms);

#endif
