/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Shares a disk's time among jobs; see jobdisk_share.h. */
#include "user/monitor/jobdisk_share.h"

#include <math.h>

static double jobdisk_share_since(uint64_t now, uint64_t before)
{
	return now > before ? (double)(now - before) : 0;
}

void jobdisk_due_add(struct jobdisk_due *due, const struct iocom_disk *now,
		     const struct iocom_disk *before, double *part)
{
	double tasks = jobdisk_share_since(now->task_bytes, before->task_bytes);
	double all = tasks + jobdisk_share_since(now->stacked_bytes, before->stacked_bytes) +
		     jobdisk_share_since(now->unattributed_bytes, before->unattributed_bytes) +
		     jobdisk_share_since(now->foreign_bytes, before->foreign_bytes);
	double service = jobdisk_share_since(now->service_sum_ns, before->service_sum_ns);
	double response = jobdisk_share_since(now->response_sum_ns, before->response_sum_ns);

	if (all > 0)
		*part = tasks / all;
	due->service_ns += service * *part;
	due->wait_ns += fmax(0, response - service) * *part;
}

struct iocom_disk_time jobdisk_share(const struct jobdisk_due *due, double operations, double bytes,
				     double all_operations, double all_bytes)
{
	double by_bytes = all_bytes > 0 ? bytes / all_bytes : 0;
	double by_count = all_operations > 0 ? operations / all_operations : by_bytes;

	return (struct iocom_disk_time){
		.low_ns = (uint64_t)(due->service_ns * fmin(by_bytes, by_count)),
		.high_ns = (uint64_t)(due->service_ns * fmax(by_bytes, by_count)),
		.wait_ns = (uint64_t)(due->wait_ns * (by_bytes + by_count) / 2),
	};
}
