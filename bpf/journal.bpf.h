/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What a journaling file system writes for a job beside its files' data: the blocks of inodes,
 * directories and bitmaps that its tasks change. A thread of the kernel writes them later, for all
 * jobs together, so they are counted when they are changed.
 *
 * At the end of each handle, jbd2 (ext4) tells how many blocks it was the first to change in the
 * transaction (jbd2_journal_dirty_metadata takes a credit for these, and for no others). Such a
 * block is written twice, to the journal and to its place. Changes by the kernel's own threads
 * (bitmaps, when delayed allocation ends) and the journal's own blocks are nobody's. A block that
 * several jobs change in one transaction counts for the first.
 * Too much is counted of blocks that are freed before they are written (removing many directories),
 * or that a later transaction changes again before they are written to their place.
 */
#ifndef IOCOM_JOURNAL_BPF_H
#define IOCOM_JOURNAL_BPF_H

/* The event has no block size. ext4 has smaller blocks only on disks below 512 MiB. */
#define JOURNAL_BLOCK	   4096
#define JOURNAL_WRITES	   2
#define JOURNAL_HANDLE_MAX 65536 /* no handle changes more blocks */

static __always_inline int journal_note(u32 device, int blocks)
{
	struct task_struct *task = bpf_get_current_task_btf();

	if (blocks <= 0 || blocks > JOURNAL_HANDLE_MAX)
		return 0;
	if ((task->flags & PF_KTHREAD) || !current_in_scope())
		return 0;
	return job_disk_add(cgroup_id(task), device, 0, 0,
			    (u64)blocks * JOURNAL_BLOCK * JOURNAL_WRITES);
}

SEC("tp_btf/jbd2_handle_stats")
int BPF_PROG(journal_handle, dev_t device, unsigned long tid, unsigned int type, unsigned int line,
	     int interval, int sync, int requested, int blocks)
{
	return journal_note(device, blocks);
}

#endif
