/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * One disk's time of service shared among the jobs that used it; see struct
 * iocom_disk_time.  Pure.
 */
#ifndef IOCOM_JOBDISK_SHARE_H
#define IOCOM_JOBDISK_SHARE_H

#include "iocom/load.h"

/* What a disk served for tasks and nobody was charged with yet. */
struct jobdisk_due {
	double service_ns, wait_ns;
};

/*
 * Adds what DISK served since BEFORE, as far as tasks caused it: not disks above,
 * the kernel or foreigners.  Bytes are counted when submitted, service when done:
 * a reading that saw only completions uses the PARTS of the last one, *PART.
 */
void jobdisk_due_add(struct jobdisk_due *due, const struct iocom_disk *now,
		     const struct iocom_disk *before, double *part);
/* The part of a job with OPERATIONS and BYTES of a disk's ALL_OPERATIONS and ALL_BYTES. */
struct iocom_disk_time jobdisk_share(const struct jobdisk_due *due, double operations, double bytes,
				     double all_operations, double all_bytes);

#endif
