/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Control groups of jobs, on pure v2 and on hybrid machines alike.
 *
 * A node's scope is one relative path.  On the cgroup2 mount it always exists
 * (that is what identifies a job); beside it, where v1 controllers are mounted
 * (memory, cpu, cpuacct), the same relative path under each.  A job's group is
 * SCOPE/jobs/JOB in all of them.  An empty scope means the whole machine; its
 * groups then live in "iocom/".
 */
#ifndef IOCOM_CGROUP_H
#define IOCOM_CGROUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "iocom/err.h"

#define CGROUP_PATH_MAX 1024
#define CGROUP_V1_MAX	3

/* Where the hierarchies are mounted. */
struct cgroup_mounts {
	char v2[256]; /* "" when there is none */
	char v1[CGROUP_V1_MAX][256];
	size_t nv1;
};

/* One group in every hierarchy that has it. */
struct cgroup {
	char v2[CGROUP_PATH_MAX];
	char v1[CGROUP_V1_MAX][CGROUP_PATH_MAX];
	size_t nv1;
	uint64_t id; /* of the v2 directory: dfl_cgrp->kn->id in the kernel; 0 unknown */
};

/* Reads a mount table (/proc/self/mounts).  0; -ENOENT no cgroup2 mounted. */
int cgroup_mounts_read(const char *table, struct cgroup_mounts *mounts, struct iocom_err *err);
/*
 * Names SCOPE/NAME without making it, e.g. NAME "jobs/n1-1-7" or "shims".  A v1
 * hierarchy without the directory SCOPE is left out.  0; -ENAMETOOLONG; -EINVAL
 * for a scope that is absolute or leaves its root ("..").
 */
int cgroup_name(const struct cgroup_mounts *mounts, const char *scope, const char *name,
		struct cgroup *group, struct iocom_err *err);
/*
 * Makes the group and its parents below the scope, offers v2 controllers to it
 * where the scope has them, and fills `id`.  0 (also when it was there and is
 * empty); -EBUSY when processes are in it.
 */
int cgroup_create(struct cgroup *group, struct iocom_err *err);
/*
 * Moves the calling process into the v1 groups, and with V2 into that one too.
 * Only system calls: fit for a child between fork and exec.  0 or negative errno.
 */
int cgroup_enter(const struct cgroup *group, bool v2);
/* An O_DIRECTORY descriptor of the v2 group, for CLONE_INTO_CGROUP; negative errno. */
int cgroup_open(const struct cgroup *group);
/* Whether a process lives in it or below.  1, 0 or negative errno. */
int cgroup_populated(const struct cgroup *group);
/*
 * SIGKILL to all in it and below: cgroup.kill (Linux 5.14), else frozen and
 * killed one by one until none is left.  Does not wait for the last exit.
 */
int cgroup_kill(const struct cgroup *group);
/* Sends SIGNAL to each process in it now (no guarantee about forks). */
int cgroup_signal(const struct cgroup *group, int signal);
/*
 * Removes it, with groups the job made below it.  Kills whoever is still there,
 * and waits for the last exit up to LIMIT_MS.  0; -EBUSY.
 */
int cgroup_remove(const struct cgroup *group, unsigned limit_ms);
/*
 * Removes what iocom made for SCOPE itself ("jobs", "shims", and "iocom" of an
 * empty scope), where nothing is in it any more.  When no job is left, waits up to
 * LIMIT_MS for the shims of jobs that have just ended.  Best effort.
 */
void cgroup_tidy(const char *scope, unsigned limit_ms);

#endif
