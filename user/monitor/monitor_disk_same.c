/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * A device number can get another disk: a loop device gets another file, or a drive is replaced.
 * The kernel numbers every medium (diskseq): a new number means a new disk, which begins at 0
 * and appears once it does I/O. We check disks that did I/O, and the others now and then.
 */
#include "user/monitor/monitor_internal.h"

#include <stdio.h>

#define ASK_EVERY 8 /* readings */

/* Returns 0 if the device is gone or the kernel does not number media. */
static __u64 read_sequence(const struct disk_entry *entry)
{
	unsigned long long sequence;
	char path[64];
	FILE *file;

	snprintf(path, sizeof(path), "/sys/dev/block/%u:%u/diskseq", entry->disk.major,
		 entry->disk.minor);
	file = fopen(path, "re");
	if (!file)
		return 0;
	if (fscanf(file, "%llu", &sequence) != 1)
		sequence = 0;
	fclose(file);
	return sequence;
}

static __u64 monitor_disk_same_queued(const struct disk_value *v)
{
	return v->task_bytes + v->stacked_bytes + v->foreign_bytes + v->metadata_bytes +
	       v->writeback_bytes + v->swap_out_bytes + v->other_bytes + v->requests;
}

struct disk_value monitor_disk_since(const struct disk_entry *entry,
				     const struct disk_value *counted)
{
	const struct disk_value *zero = &entry->zero;
	struct disk_value value = *counted;

	value.task_bytes -= zero->task_bytes;
	value.stacked_bytes -= zero->stacked_bytes;
	value.foreign_bytes -= zero->foreign_bytes;
	value.metadata_bytes -= zero->metadata_bytes;
	value.writeback_bytes -= zero->writeback_bytes;
	value.swap_out_bytes -= zero->swap_out_bytes;
	value.other_bytes -= zero->other_bytes;
	value.requests -= zero->requests;
	value.read_bytes -= zero->read_bytes;
	value.write_bytes -= zero->write_bytes;
	value.service_ns -= zero->service_ns;
	value.response_ns -= zero->response_ns;
	return value; /* service2 wraps, and only its differences are used */
}

void monitor_disk_begin(struct disk_entry *entry)
{
	entry->sequence = read_sequence(entry);
}

static void retire(struct monitor_disks *disks, struct disk_entry *entry,
		   const struct disk_value *counted)
{
	struct disk_value last = monitor_disk_since(entry, counted);

	disks->gone.metadata_bytes += last.metadata_bytes;
	disks->gone.writeback_bytes += last.writeback_bytes;
	disks->gone.swap_out_bytes += last.swap_out_bytes;
	disks->gone.other_bytes += last.other_bytes;
	entry->zero = *counted;
	entry->service2 = counted->service2;
	entry->disk.service_sum2_ms2 = 0;
	entry->disk.residual_bytes = 0;
	entry->lost = 0;
	entry->kernel_rebase = entry->replaced = true;
}

bool monitor_disk_same(struct monitor_disks *disks, struct disk_entry *entry,
		       const struct disk_value *counted)
{
	bool quiet = monitor_disk_same_queued(counted) == entry->queued;
	__u64 sequence;

	entry->queued = monitor_disk_same_queued(counted);
	if (quiet && ++entry->quiet % ASK_EVERY)
		return true;
	sequence = read_sequence(entry);
	if (sequence == entry->sequence)
		return true;
	entry->sequence = sequence;
	retire(disks, entry, counted);
	return quiet;
}

bool monitor_disk_hidden(const struct disk_entry *entry)
{
	return entry->replaced && !monitor_disk_same_queued(&entry->value);
}
