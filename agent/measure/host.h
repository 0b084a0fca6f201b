/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * This node's memory, processors and kind of disk, read from /proc and from the cgroup that is its
 * scope.  Works with cgroup v1 (controllers beside cgroup2, as on hybrid machines) and pure v2.
 *
 *   with a scope:  memory = min(its limit, RAM)
 *                  used   = usage - file cache (active and inactive) + swap
 *   without:       memory = MemTotal, used = MemTotal - MemAvailable
 *
 *   dirty pages are those under writeback, too; 0 if the kernel does not say
 */
#ifndef IOCOM_HOST_H
#define IOCOM_HOST_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "iocom/err.h"
#include "user/kept_file.h"

/* The files of each reading, which stay open. */
enum host_file {
	HOST_MEMINFO,
	HOST_ONLINE,
	HOST_USAGE,
	HOST_STAT,
	HOST_LIMIT,
	HOST_SWAP,
	HOST_QUOTA,
	HOST_PERIOD,
	HOST_FILES,
};

struct host {
	char unified[PATH_MAX]; /* the cgroup2 mount; "" none */
	char scope[PATH_MAX];	/* the scope's cgroup2 directory; "" = the whole machine */
	char memory[PATH_MAX];	/* the scope's directory with memory files; "" none */
	char cpu[PATH_MAX];	/* the same for the CPU quota */
	bool memory_v2, cpu_v2;
	struct kept_file files[HOST_FILES];
};

struct host_reading {
	double memory_mb, used_mb; /* 10^6 bytes */
	double dirty_mb;	   /* written by programs, and not by the disk yet */
	uint32_t cores;		   /* a quota rounds up */
	double core_share;	   /* 0..1: the part of each core that a quota leaves */
};

/*
 * SCOPE: relative cgroup path, NULL for the whole machine.  Returns 0; -ENOENT when the scope's
 * cgroup does not exist, with the reason in ERR.
 */
int host_init(struct host *host, const char *scope, struct iocom_err *err);
/* Returns 0 or negative errno with the file's name. */
int host_read(struct host *host, struct host_reading *out, struct iocom_err *err);
/*
 * How many processors LIST names, as the kernel writes them ("0-3,8"); 0: this is no such list.
 */
uint32_t host_online(const char *list);
/* Closes its files. */
void host_fini(struct host *host);
/* Returns true if DISK spins; false also when unknown. */
bool host_rotational(const char *disk);

#endif
