/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The cgroup of all jobs that came from other nodes, SCOPE/guests, and the caps that their owner
 * sets. A job's group is SCOPE/guests/user@UID/JOB; those of jobs of this node are in SCOPE/jobs.
 *
 *   cap       cgroup v2                 cgroup v1
 *   cpu       cpu.max                   cpu.cfs_quota_us, cpu.cfs_period_us
 *   memory    memory.max                memory.limit_in_bytes
 *   disk      io.max, of each disk      - (blkio does not see what the page cache writes)
 */
#ifndef IOCOM_CGROUP_GUESTS_H
#define IOCOM_CGROUP_GUESTS_H

#include <stdint.h>
#include <sys/types.h>

#include "user/cgroup.h"

#define CGROUP_GUESTS	    "guests"
#define CGROUP_GUESTS_DISKS 16

/* Writes the name of the guest UID's JOB below its scope. Returns 0 or -ENAMETOOLONG. */
int cgroup_guests_job(char *name, size_t size, uid_t uid, const char *job);

/* 0: no cap. */
struct cgroup_caps {
	double cores;
	uint64_t memory_bytes;
	uint64_t disk_bytes_per_s;	     /* of each disk, reads and writes each */
	char disks[CGROUP_GUESTS_DISKS][16]; /* "8:0" */
	size_t ndisks;
};

/* Which caps hold, by the file that holds them; "" and a negative errno: why not. */
struct cgroup_held {
	const char *file;
	int rc;
};
struct cgroup_caps_held {
	struct cgroup_held cpu, memory, disk;
};

/*
 * Makes SCOPE/guests and sets the caps; what has none is set to no limit. HELD tells which hold.
 * Returns 0, or negative errno with the reason in ERR: there is no group.
 */
int cgroup_guests_cap(const struct cgroup_mounts *mounts, const char *scope,
		      const struct cgroup_caps *caps, struct cgroup_caps_held *held,
		      struct iocom_err *err);
/* Sets the caps in one DIRECTORY of the group, and adds to HELD what it could. */
void cgroup_guests_write(const char *directory, const struct cgroup_caps *caps,
			 struct cgroup_caps_held *held);

#endif
