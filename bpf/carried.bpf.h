/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The kernel holds back bios over their cgroup's limit before block_bio_queue; a kernel thread
 * sends them later. We find their owner by what they carry:
 *
 *   direct I/O                   the task that the request's own record names
 *   a page being read            the task that added it to the page cache
 *   a page under writeback       the ledger knows it, whoever submits the bio
 *   a task that waits for a bio  the sleeper on its completion (raw devices)
 *
 * Pages are remembered from their adding to their bio, but only for disks with a limit. When the
 * table is full the oldest pages are dropped, and their bios count as `other`.
 */
#ifndef IOCOM_CARRIED_BPF_H
#define IOCOM_CARRIED_BPF_H

#define STACK_BYTES 16384

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 16384);
	__type(key, u64); /* address of the folio */
	__type(value, struct writer);
} carried SEC(".maps");

/* Fills OWNER with the one to charge for TASK, which is not the current task. */
static __always_inline void owner_of(struct task_struct *task, struct writer *owner)
{
	u32 flags = BPF_CORE_READ(task, flags);

	if (flags & PF_KTHREAD) {
		owner->class = flags & PF_LOCAL_THROTTLE ? WRITER_STACKED : WRITER_KERNEL;
		return;
	}
	if (!in_scope(task)) {
		owner->class = WRITER_FOREIGN;
		return;
	}
	owner->process.tgid = BPF_CORE_READ(task, tgid);
	owner->process.start = BPF_CORE_READ(task, group_leader, start_boottime);
	owner->cgid = cgroup_id(task);
	owner->class = WRITER_EXPLICIT;
}

/* Returns the task that waits for a file system's direct I/O: BIO's record must lead back to its
 * disk. */
static __always_inline struct task_struct *direct_waiter(struct bio *bio, u64 private)
{
	struct iomap_dio *dio = (struct iomap_dio *)private;
	struct inode *inode = BPF_CORE_READ(dio, iocb, ki_filp, f_mapping, host);
	struct gendisk *disk;

	if (!inode)
		return 0;
	disk = BPF_CORE_READ(inode, i_sb, s_bdev, bd_disk);
	if (!disk || disk != BPF_CORE_READ(bio, bi_bdev, bd_disk))
		return 0;
	return BPF_CORE_READ(dio, submit.waiter);
}

/* Returns the only sleeper on a completion, if the completion is on that task's stack. */
static __always_inline struct task_struct *completion_waiter(u64 private)
{
	struct completion *done = (struct completion *)private;
	struct list_head *head = &done->wait.task_list, *first;
	struct swait_queue *sleeper;
	struct task_struct *task;
	u64 stack;

	first = BPF_CORE_READ(done, wait.task_list.next);
	if (!first || first == head || BPF_CORE_READ(first, next) != head ||
	    BPF_CORE_READ(first, prev) != head)
		return 0;
	sleeper = (void *)first - bpf_core_field_offset(((struct swait_queue *)0)->task_list);
	task = BPF_CORE_READ(sleeper, task);
	stack = (u64)BPF_CORE_READ(task, stack);
	return private - stack < STACK_BYTES ? task : 0;
}

/* Finds the owner of a BIO that a kernel thread sends. Returns false if it is unknown. */
static __always_inline bool carried_find(struct bio *bio, struct writer *owner)
{
	u64 private = (u64)bio->bi_private;
	struct task_struct *task = 0;
	struct first_page first;
	struct writer *known;
	u64 folio;

	if (private) {
		task = direct_waiter(bio, private);
		if (!task)
			task = completion_waiter(private);
	}
	if (task) {
		owner_of(task, owner);
		return true;
	}
	look_at_first_page(bio, &first);
	if (!first.inode || (first.flags & PAGE_BIT(uptodate)))
		return false;
	folio = (u64)first.head;
	known = bpf_map_lookup_elem(&carried, &folio);
	if (!known)
		return false;
	*owner = *known;
	return true;
}

static __always_inline int on_page_added(struct folio *folio)
{
	struct address_space *mapping = ((struct folio *)to_read(folio, CAST_FOLIO))->page.mapping;
	struct inode *inode = mapping ? mapping->host : 0;
	u64 key = (u64)folio;
	struct writer owner = {};

	if (!inode || !file_may_hold_back(inode) || (cfg_ablate & ABLATE_CARRIED))
		return 0;
	writer_of(bpf_get_current_task_btf(), (u64)mapping, true, false, &owner);
	bpf_map_update_elem(&carried, &key, &owner, BPF_ANY);
	return 0;
}

SEC("tp_btf/mm_filemap_add_to_page_cache")
int BPF_PROG(page_added, struct folio *folio)
{
	KEEP_CPU(INSIDE_PAGE, on_page_added(folio));
	return 0;
}

SEC("tp_btf/mm_filemap_add_to_page_cache")
int BPF_PROG(page_added_again, struct folio *folio)
{
	IF_SKIPPED(INSIDE_PAGE, on_page_added(folio));
	return 0;
}

#endif
