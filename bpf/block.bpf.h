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
 *   any other kernel thread, a limit's among them whom it serves (carried.bpf.h), else other
 *   a task outside the scope                      foreign
 *   else                                          the current task: implicit or explicit
 */
#ifndef IOCOM_BLOCK_BPF_H
#define IOCOM_BLOCK_BPF_H

#define REQ_OP_MASK   0xff
#define REQ_OP_ZEROES 9

static __noinline void disk_enter(struct gendisk *disk, u32 device)
{
	struct disk_value fresh = {};
	char name[4];

	fresh.device = device;
	bpf_probe_read_kernel(name, sizeof(name), disk->disk_name);
	fresh.ignored = (name[0] == 'r' && name[1] == 'a' && name[2] == 'm') ||
			(name[0] == 'z' && name[1] == 'r' && name[2] == 'a' && name[3] == 'm');
	/* Before 6.4 the upper half of the result is anything. */
	if ((int)bpf_map_update_elem(&disks, &device, &fresh, BPF_NOEXIST) == -7 /* E2BIG */)
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

__u64 inferred_bytes; /* of task_bytes: their class follows from pages, not from an exception */

/* A read that TASK submits serves a page fault.  SWAP: the disk is swapped to. */
static __always_inline bool is_implicit(struct task_struct *task, struct thread_state *state,
					struct bio *bio, bool swap)
{
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(task);
	struct first_page first;
	u64 waited;

	if (cfg_ablate & ABLATE_FAULTS)
		return false;
	if (in_exception(regs, state))
		return true;
	waited = faulted_mapping(regs, state);
	if (!waited && !swap)
		return false;
	__sync_fetch_and_add(&inferred_bytes, bio->bi_iter.bi_size);
	look_at_first_page(bio, &first);
	if (first.flags & PAGE_BIT(uptodate))
		return false; /* not being filled: the memory of a direct read */
	if (waited && first.mapping == waited)
		return true;
	/* Swap-in without an exception (get_user_pages): a swap-cache page being filled. */
	return swap && first.anonymous && (first.flags & PAGE_BIT(swapcache));
}

/* The bio comes from a driver that serves a disk above this one. */
static __always_inline bool is_stacked(struct task_struct *task, bool nested,
				       struct block_device *bdev)
{
	if (nested)
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
	charge.from = first.index;
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
static __always_inline void take_ignored(struct task_struct *task, bool nested, struct bio *bio,
					 bool write)
{
	struct thread_state *state;
	struct first_page first;

	if ((task->flags & PF_KTHREAD) || nested || !current_in_scope())
		return;
	look_at_first_page(bio, &first);
	if (write && (first.flags & PAGE_BIT(writeback)))
		return;
	state = thread_current(task);
	if (state)
		note_block(state, write, bio->bi_opf, bio->bi_iter.bi_size);
}

/* A kernel thread's bio: on behalf of a task, or its own.  Rare: a call, its stack its own. */
static __noinline int take_kernel(struct bio *bio, bool write, struct disk_value *disk)
{
	u64 bytes = bio->bi_iter.bi_size;
	struct writer owner = {};

	if ((cfg_ablate & ABLATE_CARRIED) || !carried_find(bio, &owner)) {
		DISK_ADD(disk, other_bytes, bytes);
		return 0;
	}
	owner.held = (bio->bi_opf & REQ_OP_MASK) != REQ_OP_ZEROES; /* as in note_block */
	charge_writer(&owner, bytes, 1, !write, disk);
	return 0;
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

static __always_inline int on_bio_queue(struct bio *bio)
{
	struct block_device *bdev;
	struct task_struct *task;
	struct disk_value *disk;
	struct gendisk *gendisk;
	u32 opf = bio->bi_opf;
	u64 bytes = bio->bi_iter.bi_size;
	bool write = opf & 1, nested;

	if (!bytes || !carries_data(opf & REQ_OP_MASK))
		return 0;
	/* Pointers before branches: newer verifiers search BTF at each step, in each branch. */
	bdev = bio->bi_bdev;
	gendisk = bdev->bd_disk;
	task = bpf_get_current_task_btf();
	nested = task->bio_list;
	disk = disk_find(gendisk);
	if (disk && disk->ignored) {
		take_ignored(task, nested, bio, write);
		return 0;
	}
	if (is_stacked(task, nested, bdev))
		DISK_ADD(disk, stacked_bytes, bytes);
	else if (write && take_writeback(bio, opf, disk))
		return 0;
	else if (task->flags & PF_KTHREAD)
		take_kernel(bio, write, disk);
	else if (!current_in_scope())
		DISK_ADD(disk, foreign_bytes, bytes);
	else
		take_own(task, bio, write, disk);
	return 0;
}

SEC("tp_btf/block_bio_queue")
int BPF_PROG(bio_queue, struct bio *bio)
{
	KEEP_CPU(on_bio_queue(bio));
	return 0;
}

/*
 * md sends the same bio on to a disk below, from inside the bio's submission: no
 * second block_bio_queue.  A clone, and what a worker made (dm-crypt, raid5), is
 * submitted itself.  (A partition's remap names the bio's own device.)
 */
SEC("tp_btf/block_bio_remap")
int BPF_PROG(bio_remap, struct bio *bio, dev_t from, sector_t sector)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct block_device *bdev = bio->bi_bdev;
	struct disk_value *disk;

	if (bdev->bd_dev == from || !task->bio_list || is_clone(bio) ||
	    !carries_data(bio->bi_opf & REQ_OP_MASK))
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
	device = (u32)gendisk->major << 20 | gendisk->first_minor;
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

static __always_inline int on_dirty_folio(struct folio *folio, struct address_space *mapping)
{
	return ledger_dirty(mapping ? mapping->host : 0, (u64)mapping, folio_index(folio),
			    folio_bytes(folio));
}

SEC("tp_btf/writeback_dirty_folio")
int BPF_PROG(dirty_folio, struct folio *folio, struct address_space *mapping)
{
	KEEP_CPU(on_dirty_folio(folio, mapping));
	return 0;
}

/* Before 5.16. */
SEC("tp_btf/writeback_dirty_page")
int BPF_PROG(dirty_page, struct page *page, struct address_space *mapping)
{
	return ledger_dirty(mapping ? mapping->host : 0, (u64)mapping, page_index(page),
			    PAGE_BYTES);
}

SEC("tp_btf/writeback_single_inode")
int BPF_PROG(inode_written, struct inode *inode)
{
	struct ledger_key key;

	if (!all_written(inode))
		return 0;
	ledger_key_of(inode, &key);
	bpf_map_delete_elem(&ledger, &key);
	return 0;
}

#endif
