/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Block I/O.  Who and how much: block_bio_queue, in the context of whoever
 * submits.  How long: block_rq_complete, from the request's own time stamps.
 *
 *   bio of ...                                    goes to
 *   a disk above (loop worker, dm, md)            stacked
 *   write: pages of a mounted device, REQ_META    metadata
 *   write: anonymous pages under writeback        swap_out
 *   write: file pages under writeback             their writers (ledger.bpf.h), else writeback
 *   any other kernel thread                       other
 *   a task outside the scope                      foreign
 *   else                                          the current task: implicit or explicit
 */
#ifndef IOCOM_BLOCK_BPF_H
#define IOCOM_BLOCK_BPF_H

#define REQ_OP_MASK   0xff
#define MAPPING_FLAGS 3UL
#define MAPPING_ANON  1UL
#define FRAME_WORDS   19 /* of struct pt_regs, r15 to sp */
#define REQ_OP_ZEROES 9

/* What a bio's first page is. */
struct first_page {
	struct inode *inode; /* NULL: no page of a file */
	u64 mapping;
	unsigned long flags;
	bool anonymous;
};

static __noinline void disk_enter(struct gendisk *disk, u32 device)
{
	struct disk_value fresh = {};
	char name[4];

	fresh.device = device;
	bpf_probe_read_kernel(name, sizeof(name), disk->disk_name);
	fresh.ignored = (name[0] == 'r' && name[1] == 'a' && name[2] == 'm') ||
			(name[0] == 'z' && name[1] == 'r' && name[2] == 'a' && name[3] == 'm');
	if (bpf_map_update_elem(&disks, &device, &fresh, BPF_NOEXIST) == -7 /* E2BIG */)
		count_drop(DROP_DISKS);
}

static __always_inline struct disk_value *disk_find(struct gendisk *disk)
{
	u32 device = (u32)disk->major << 20 | disk->first_minor;
	struct disk_value *value = bpf_map_lookup_elem(&disks, &device);

	if (value || !cfg_all_disks)
		return value;
	disk_enter(disk, device);
	return bpf_map_lookup_elem(&disks, &device);
}

static __always_inline void look_at_first_page(struct bio *bio, struct first_page *first)
{
	struct bio_vec vec = {};
	struct page *page;
	unsigned long head = 0, mapping = 0;

	__builtin_memset(first, 0, sizeof(*first));
	bpf_probe_read_kernel(&vec, sizeof(vec), bio->bi_io_vec + bio->bi_iter.bi_idx);
	page = vec.bv_page;
	if (!page)
		return;
	bpf_core_read(&head, sizeof(head), &page->compound_head);
	if (head & 1)
		page = (struct page *)(head - 1);
	first->flags = page_flags(page);
	bpf_core_read(&mapping, sizeof(mapping), &page->mapping);
	first->mapping = mapping;
	first->anonymous = !mapping || (mapping & MAPPING_FLAGS) == MAPPING_ANON;
	if (mapping && !(mapping & MAPPING_FLAGS))
		first->inode = BPF_CORE_READ((struct address_space *)mapping, host);
}

static __always_inline u64 frame_digest(u64 frame)
{
	u64 words[FRAME_WORDS] = {}, digest = 0;

	bpf_probe_read_kernel(words, sizeof(words), (void *)frame);
#pragma unroll
	for (int i = 0; i < FRAME_WORDS; i++)
		digest = digest * 31 + words[i];
	return digest;
}

/* Names the current system call of a task: the same until it returns. */
static __always_inline u64 call_digest(struct pt_regs *regs)
{
#if defined(__TARGET_ARCH_x86)
	return (regs->ip * 31 + regs->sp) * 31 + regs->orig_ax * 31 + regs->di * 7 + regs->si;
#else
	return 1;
#endif
}

__u64 inferred_bytes; /* of task_bytes: their class follows from pages, not from an exception */

/* A read that TASK submits serves a page fault.  SWAP: the disk is swapped to. */
static __always_inline bool is_implicit(struct task_struct *task, struct thread_state *state,
					struct bio *bio, bool swap)
{
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(task);
	struct first_page first;
	bool waited;

	if (in_user_fault(regs))
		return true;
	if (state->fault_frame) {
		if (frame_digest(state->fault_frame) == state->fault_digest)
			return true;
		state->fault_frame = 0;
	}
	waited = state->fault_mapping && call_digest(regs) == state->fault_call;
	if (!waited && !swap)
		return false;
	__sync_fetch_and_add(&inferred_bytes, bio->bi_iter.bi_size);
	look_at_first_page(bio, &first);
	if (waited && first.mapping == state->fault_mapping)
		return true;
	/* Swap-in without an exception (get_user_pages): a swap-cache page being filled. */
	return swap && first.anonymous && (first.flags & PAGE_BIT(swapcache)) &&
	       !(first.flags & PAGE_BIT(uptodate));
}

/* The bio comes from a driver that serves a disk above this one. */
static __always_inline bool is_stacked(struct task_struct *task, struct block_device *bdev)
{
	if (task->bio_list)
		return true; /* submitted from inside another bio's submission: dm, md */
	if (!(task->flags & PF_KTHREAD))
		return false;
	if (task->flags & PF_LOCAL_THROTTLE)
		return true;				   /* loop's worker */
	return bdev->bd_holder && !holds_filesystem(bdev); /* a worker of dm-crypt and the like */
}

#define DISK_ADD(disk, field, bytes)                                                               \
	do {                                                                                       \
		if (disk)                                                                          \
			__sync_fetch_and_add(&(disk)->field, bytes);                               \
	} while (0)

/* Writeback by whomever.  False: the bio is the current task's own. */
static __always_inline bool take_writeback(struct bio *bio, u32 opf, struct disk_value *disk)
{
	u64 bytes = bio->bi_iter.bi_size;
	struct charge charge = {.bytes = bytes};
	struct first_page first;
	struct inode *inode;

	if (opf & (1U << bpf_core_enum_value(enum req_flag_bits___x, __REQ_META___x))) {
		DISK_ADD(disk, metadata_bytes, bytes);
		return true;
	}
	if ((opf & REQ_OP_MASK) == REQ_OP_ZEROES)
		return false;
	look_at_first_page(bio, &first);
	inode = first.inode;
	if (inode && is_metadata(inode, BPF_CORE_READ(inode, i_mode))) {
		DISK_ADD(disk, metadata_bytes, bytes);
		return true;
	}
	/* Not under writeback: a direct write, perhaps from a mapped file's pages. */
	if (!(first.flags & PAGE_BIT(writeback)))
		return false;
	if (!inode) {
		if (first.anonymous && (first.flags & PAGE_BIT(swapcache))) {
			DISK_ADD(disk, swap_out_bytes, bytes);
			return true;
		}
		return false;
	}
	ledger_key_of(inode, &charge.key);
	if (!ledger_charge(&charge, disk))
		DISK_ADD(disk, writeback_bytes, bytes);
	return true;
}

/* The kernel's accounting of the task has these bytes, too (zeroing not). */
static __always_inline void note_block(struct thread_state *state, bool write, u32 opf, u64 bytes)
{
	if (!write)
		state->block.read_bytes += bytes;
	else if ((opf & REQ_OP_MASK) != REQ_OP_ZEROES)
		state->block.write_bytes += bytes;
}

/* A disk in memory: no load, but the kernel accounted it to the task. */
static __always_inline void take_ignored(struct task_struct *task, struct bio *bio, bool write)
{
	struct thread_state *state;
	struct first_page first;

	if ((task->flags & PF_KTHREAD) || task->bio_list || !current_in_scope())
		return;
	look_at_first_page(bio, &first);
	if (write && (first.flags & PAGE_BIT(writeback)))
		return;
	state = thread_current(task);
	if (state)
		note_block(state, write, bio->bi_opf, bio->bi_iter.bi_size);
}

static __always_inline void take_own(struct task_struct *task, struct bio *bio, bool write,
				     struct disk_value *disk)
{
	struct thread_state *state = thread_current(task);
	u64 bytes = bio->bi_iter.bi_size;

	DISK_ADD(disk, task_bytes, bytes);
	if (!state)
		return;
	note_block(state, write, bio->bi_opf, bytes);
	if (disk)
		job_disk_note(state, disk->device, 1, bytes);
	if (write) {
		state->counters.explicit_write_bytes += bytes;
		state->counters.explicit_ops++;
	} else if (is_implicit(task, state, bio, disk && disk->swap_out_bytes)) {
		state->counters.implicit_bytes += bytes;
		state->counters.implicit_ops++;
	} else {
		state->counters.explicit_read_bytes += bytes;
		state->counters.explicit_ops++;
	}
}

SEC("tp_btf/block_bio_queue")
int BPF_PROG(bio_queue, struct bio *bio)
{
	struct block_device *bdev;
	struct task_struct *task;
	struct disk_value *disk;
	u32 opf = bio->bi_opf;
	u64 bytes = bio->bi_iter.bi_size;
	bool write = opf & 1;

	if (!bytes || !carries_data(opf & REQ_OP_MASK))
		return 0;
	bdev = bio->bi_bdev;
	disk = disk_find(bdev->bd_disk);
	task = bpf_get_current_task_btf();
	if (disk && disk->ignored) {
		take_ignored(task, bio, write);
		return 0;
	}
	if (is_stacked(task, bdev))
		DISK_ADD(disk, stacked_bytes, bytes);
	else if (write && take_writeback(bio, opf, disk))
		return 0;
	else if (task->flags & PF_KTHREAD)
		DISK_ADD(disk, other_bytes, bytes);
	else if (!current_in_scope())
		DISK_ADD(disk, foreign_bytes, bytes);
	else
		take_own(task, bio, write, disk);
	return 0;
}

/*
 * md sends the same bio on to a disk below: no second block_bio_queue.  (A
 * partition's remap names the bio's own device.)
 */
SEC("tp_btf/block_bio_remap")
int BPF_PROG(bio_remap, struct bio *bio, dev_t from, sector_t sector)
{
	struct block_device *bdev = bio->bi_bdev;
	struct disk_value *disk;

	if (bdev->bd_dev == from || is_clone(bio) || !carries_data(bio->bi_opf & REQ_OP_MASK))
		return 0;
	disk = disk_find(bdev->bd_disk);
	DISK_ADD(disk, stacked_bytes, bio->bi_iter.bi_size);
	return 0;
}

SEC("tp_btf/block_rq_complete")
int BPF_PROG(rq_complete, struct request *rq, int error, u32 bytes)
{
	u32 op = rq->cmd_flags & REQ_OP_MASK;
	struct gendisk *gendisk = request_disk(rq);
	struct disk_value *disk;
	u64 now, start, service, units;
	u32 device;

	if (!gendisk)
		return 0;
	device = BPF_CORE_READ(gendisk, major) << 20 | BPF_CORE_READ(gendisk, first_minor);
	disk = bpf_map_lookup_elem(&disks, &device);
	if (!disk)
		return 0;
	now = bpf_ktime_get_ns();
	if (!carries_data(op)) {
		disk->last_completion_ns = now; /* a flush occupies the disk, too */
		return 0;
	}
	if (op & 1)
		__sync_fetch_and_add(&disk->write_bytes, bytes);
	else
		__sync_fetch_and_add(&disk->read_bytes, bytes);
	if (bytes < rq->__data_len)
		return 0; /* a part; the request goes on */
	start = rq->start_time_ns;
	if (start && now > start)
		__sync_fetch_and_add(&disk->response_ns, now - start);
	start = rq->io_start_time_ns;
	if (!start)
		start = rq->start_time_ns; /* queues without statistics: when it was allocated */
	if (start < disk->last_completion_ns)
		start = disk->last_completion_ns;
	disk->last_completion_ns = now;
	__sync_fetch_and_add(&disk->requests, 1);
	if (now <= start)
		return 0;
	service = now - start;
	units = service / SERVICE_UNIT_NS;
	__sync_fetch_and_add(&disk->service_ns, service);
	__sync_fetch_and_add(&disk->service2, units * units);
	return 0;
}

SEC("tp_btf/writeback_dirty_folio")
int BPF_PROG(dirty_folio, struct folio *folio, struct address_space *mapping)
{
	struct page *page = &folio->page;

	return ledger_dirty(mapping ? mapping->host : 0, folio_bytes(page, page_flags(page)));
}

/* Before 5.16. */
SEC("tp_btf/writeback_dirty_page")
int BPF_PROG(dirty_page, struct page *page, struct address_space *mapping)
{
	return ledger_dirty(mapping ? mapping->host : 0, 4096);
}

SEC("tp_btf/writeback_single_inode")
int BPF_PROG(inode_written, struct inode *inode)
{
	struct ledger_key key;

	if (inode_has_dirty_pages(inode))
		return 0;
	ledger_key_of(inode, &key);
	bpf_map_delete_elem(&ledger, &key);
	return 0;
}

/* A fault on user memory taken inside the kernel, say in write(2)'s copy. */
SEC("tp_btf/page_fault_kernel")
int BPF_PROG(fault_kernel, unsigned long address, struct pt_regs *regs)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct thread_state *state;

	if ((long)address < 0 || (task->flags & PF_KTHREAD) || !current_in_scope())
		return 0;
	state = thread_current(task);
	if (!state)
		return 0;
	state->fault_frame = (u64)regs;
	state->fault_digest = frame_digest((u64)regs);
	return 0;
}

/* From 6.2: faults without an exception (direct I/O to or from a mapping). */
SEC("tp_btf/mm_filemap_fault")
int BPF_PROG(filemap_fault, struct address_space *mapping)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(task);
	struct thread_state *state;

	if (in_user_fault(regs) || (task->flags & PF_KTHREAD) || !current_in_scope())
		return 0;
	state = thread_current(task);
	if (!state)
		return 0;
	state->fault_mapping = (u64)mapping;
	state->fault_call = call_digest(regs);
	return 0;
}

#endif
