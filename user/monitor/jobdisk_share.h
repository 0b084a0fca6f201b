/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Shares one disk's service time among the jobs that used it; see struct iocom_disk_time. Pure. */
#ifndef IOCOM_JOBDISK_SHARE_H
#define IOCOM_JOBDISK_SHARE_H

#include "iocom/load.h"

/* What a disk served for tasks and no job is charged with yet. */
struct jobdisk_due {
	double service_ns, wait_ns;
};

/*
 * Adds what DISK served since BEFORE as far as tasks caused it: not disks above, the kernel or
 * foreign tasks. Bytes are counted when submitted, service when done, so a reading that saw only
 * completions uses the last reading's PART.
 */
void jobdisk_due_add(struct jobdisk_due *due, const struct iocom_disk *now,
		     const struct iocom_disk *before, double *part);
/* Returns the part of a job with OPERATIONS and BYTES of a disk's ALL_OPERATIONS and ALL_BYTES. */
struct iocom_disk_time jobdisk_share(const struct jobdisk_due *due, double operations, double bytes,
				     double all_operations, double all_bytes);

#endif
