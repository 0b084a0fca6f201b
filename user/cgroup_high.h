/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The bound above which the kernel takes memory back from one job's group, before anybody is
 * refused memory: what the page cache of a job may grow to.
 *
 *   cgroup v2   memory.high                     it reclaims at once, and slows the job down
 *   cgroup v1   memory.soft_limit_in_bytes      it reclaims here first if the machine is short
 *
 * The cache is the `file` pages of memory.stat (v1: `cache`) without those of tmpfs.
 */
#ifndef IOCOM_CGROUP_HIGH_H
#define IOCOM_CGROUP_HIGH_H

#include <stdint.h>

#include "user/cgroup.h"

#define CGROUP_HIGH_NONE UINT64_MAX /* no bound */
#define CGROUP_HIGH_TEXT 32	    /* a bound as the kernel writes it */

struct cgroup_high {
	char directory[CGROUP_PATH_MAX];
	bool v2;
};

struct cgroup_high_use {
	uint64_t bytes, cache_bytes;
};

/* "memory.high" or "memory.soft_limit_in_bytes". */
const char *cgroup_high_file(const struct cgroup_high *high);
/*
 * Finds where the group NAME ("jobs/user@7/n1-1-7") below SCOPE has its bound.  Returns 0; -ENOENT:
 * there is no such group; -EOPNOTSUPP: no hierarchy has a bound for it; other negative errno.
 */
int cgroup_high_find(const struct cgroup_mounts *mounts, const char *scope, const char *name,
		     struct cgroup_high *high);
/* Returns true if NAME is one that iocom gives a job's group: KIND/user@UID/JOB. */
bool cgroup_high_is_job(const char *name);
/*
 * What file would hold the bound of groups below SCOPE on this machine, NULL: none, for the memory
 * controller is in no hierarchy.
 */
const char *cgroup_high_offered(const struct cgroup_mounts *mounts, const char *scope);
/* Reads the bound: BYTES, CGROUP_HIGH_NONE if there is none; TEXT as it was.  0, negative errno. */
int cgroup_high_read(const struct cgroup_high *high, uint64_t *bytes, char text[CGROUP_HIGH_TEXT]);
/* The value of a bound's TEXT.  Returns 0 or -EBADMSG. */
int cgroup_high_parse(const char *text, uint64_t *bytes);
/* Writes TEXT, a number or what cgroup_high_read read.  Returns 0 or negative errno. */
int cgroup_high_write(const struct cgroup_high *high, const char *text);
/* What the group and those below it use.  Returns 0 or negative errno. */
int cgroup_high_use(const struct cgroup_high *high, struct cgroup_high_use *use);
/*
 * Has the kernel take BYTES of cache back now (memory.reclaim, Linux 5.19), and only cache where it
 * can be told so (6.9).  It may take long.  Returns 0; -ENOENT: this kernel has no such file; other
 * negative errno: it took back less.
 */
int cgroup_high_reclaim(const struct cgroup_high *high, uint64_t bytes);

#endif
