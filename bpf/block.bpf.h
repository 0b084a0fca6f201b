/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Block I/O. block_bio_queue, which runs in the submitter's context, tells who does how much.
 * block_rq_complete tells how long it took, from the request's own time stamps.
 *
 *   bio of ...                                    goes to
 *   a disk above (loop worker, dm, md)            stacked
 *   write: pages of a mounted device, REQ_META    metadata
 *   write: anonymous pages under writeback        swap_out
 *   write: file pages under writeback             their writers (ledger.bpf.h), else writeback
 *   another kernel thread                         the task it works for (carried.bpf.h: bios that
 *                                                 a limit held back), else other
 *   a task outside the scope                      foreign
 *   any other task                                that task: implicit or explicit
 */
#ifndef IOCOM_BLOCK_BPF_H
#define IOCOM_BLOCK_BPF_H

#define REQ_OP_MASK   0xff
#define REQ_OP_ZEROES 9

__u64 inferred_bytes; /* part of task_bytes whose class we infer from pages, without an exception */

/* The flag of a bio whose pages a caller lent (direct I/O); 0 if the kernel has no such flag. */
const volatile __u16 cfg_bio_pinned = 0;

static __always_inline bool is_lent(struct bio *bio)
{
	return cfg_bio_pinned && (bio->bi_flags & cfg_bio_pinned);
}

/*
 * Returns true if BIO fills a page that a fault waits for: a page of the file mapped by WAITED, or
 * a swapped one.
 */
static __noinline bool fills_page(struct bio *bio, u64 waited, bool swap)
{
	struct first_page first = {}; /* older verifiers need the initialisation */

	__sync_fetch_and_add(&inferred_bytes, bio->bi_iter.bi_size);
	look_at_first_page(bio, &first);
	if (first.flags & PAGE_BIT(uptodate))
		return false; /* it is not being filled, so it is memory of a direct read */
	if (waited && first.mapping == waited)
		return true;
	/* Swap-in without an exception (get_user_pages): a swap-cache page is being filled. */
	return swap && first.anonymous && (first.flags & PAGE_BIT(swapcache));
}

/* Returns true if a read that TASK submits serves a page fault. SWAP: the disk is swapped to. */
static __always_inline bool is_implicit(struct task_struct *task, struct thread_state *state,
					struct bio *bio, bool swap)
{
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(task);
	u64 waited;

	if (cfg_ablate & ABLATE_FAULTS)
		return false;
	if (in_exception(regs, state))
		return true;
	waited = faulted_mapping(regs, state);
	return (waited || swap) && fills_page(bio, waited, swap);
}

/* Returns true if the bio comes from a driver that serves a disk above this one. */
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

/*
 * Takes a writeback bio, whoever submits it. Returns false if the bio is the current task's own.
 * Not inlined, to get a stack of its own.
 */
static __noinline bool take_writeback(struct bio *bio, u32 opf, u32 place, struct disk_value *disk)
{
	u64 bytes = bio->bi_iter.bi_size;
	struct charge charge = {.bytes = bytes};
	struct first_page first = {}; /* older verifiers need the initialisation */
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
	/* Not under writeback: this is a direct write, perhaps from a mapped file's pages. */
	if (!(first.flags & PAGE_BIT(writeback)))
		return false;
	if (!inode) {
		if (first.anonymous && (first.flags & PAGE_BIT(swapcache))) {
			DISK_ADD(disk, swap_out_bytes, bytes);
			disk_note_swapped(place);
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

/* Notes bytes that the kernel also accounts to the task (it does not account zeroing). */
static __always_inline void note_block(struct thread_state *state, bool write, u32 opf, u64 bytes)
{
	if (!write)
		state->block.read_bytes += bytes;
	else if ((opf & REQ_OP_MASK) != REQ_OP_ZEROES)
		state->block.write_bytes += bytes;
}

/* A disk in memory is no load, but the kernel accounts its bytes to the task. */
static __noinline int take_ignored(struct task_struct *task, bool nested, struct bio *bio,
				   bool write)
{
	struct thread_state *state;
	struct first_page first = {}; /* older verifiers need the initialisation */

	if ((task->flags & PF_KTHREAD) || nested || !current_in_scope())
		return 0;
	look_at_first_page(bio, &first);
	if (write && (first.flags & PAGE_BIT(writeback)))
		return 0;
	state = thread_current(task);
	if (state)
		note_block(state, write, bio->bi_opf, bio->bi_iter.bi_size);
	return 0;
}

/*
 * Takes a kernel thread's bio, which may belong to a task. This is rare, so it is not inlined
 * and has a stack of its own.
 */
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
				     u32 place, struct disk_value *disk)
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
	} else if (!is_lent(bio) && is_implicit(task, state, bio, disk_is_swapped(place))) {
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
	u32 opf = bio->bi_opf, device, place;
	u64 bytes = bio->bi_iter.bi_size;
	bool write = opf & 1, nested;

	if (!bytes || !carries_data(opf & REQ_OP_MASK))
		return 0;
	bio = to_read(bio, CAST_BIO);
	bdev = bio->bi_bdev;
	gendisk = bdev->bd_disk;
	task = bpf_get_current_task_btf();
	nested = ((struct task_struct *)to_read(task, CAST_TASK))->bio_list;
	device = disk_device(gendisk);
	place = disk_place(gendisk, device, true);
	if (place & PLACE_IGNORED) {
		take_ignored(task, nested, bio, write);
		return 0;
	}
	disk = disk_at(place);
	if (disk)
		disk->device = device;
	if (is_stacked(task, nested, bdev))
		disk_add_stacked(disk, bytes);
	else if (write && !is_lent(bio) && take_writeback(bio, opf, place, disk))
		return 0;
	else if (task->flags & PF_KTHREAD)
		take_kernel(bio, write, disk);
	else if (!current_in_scope())
		DISK_ADD(disk, foreign_bytes, bytes);
	else
		take_own(task, bio, write, place, disk);
	return 0;
}

SEC("tp_btf/block_bio_queue")
int BPF_PROG(bio_queue, struct bio *bio)
{
	KEEP_CPU(INSIDE_BIO, on_bio_queue(bio));
	return 0;
}

SEC("tp_btf/block_bio_queue")
int BPF_PROG(bio_queue_again, struct bio *bio)
{
	IF_SKIPPED(INSIDE_BIO, on_bio_queue(bio));
	return 0;
}

/*
 * Counts a bio that md sends on to a disk below: it does so inside the bio's submission, without
 * a second block_bio_queue. Clones, and bios made by a worker (dm-crypt, raid5), are submitted
 * themselves. (A partition's remap names the bio's own device.)
 */
SEC("tp_btf/block_bio_remap")
int BPF_PROG(bio_remap, struct bio *bio, dev_t from, sector_t sector)
{
	struct task_struct *task = to_read(bpf_get_current_task_btf(), CAST_TASK);
	struct block_device *bdev;
	struct gendisk *disk;

	bio = to_read(bio, CAST_BIO);
	bdev = bio->bi_bdev;

	if (bdev->bd_dev == from || !task->bio_list || is_clone(bio) ||
	    !carries_data(bio->bi_opf & REQ_OP_MASK))
		return 0;
	disk = bdev->bd_disk;
	disk_add_stacked(disk_at(disk_place(disk, disk_device(disk), true)), bio->bi_iter.bi_size);
	return 0;
}

SEC("tp_btf/block_rq_complete")
int BPF_PROG(rq_complete, struct request *rq, int error, u32 bytes)
{
	u32 op = rq->cmd_flags & REQ_OP_MASK, place;
	struct gendisk *gendisk = request_disk(to_read(rq, CAST_REQUEST));
	struct disk_value *disk;
	struct disk_mark *mark;
	u64 now, start, service, units;

	if (!gendisk)
		return 0;
	place = disk_place(gendisk, disk_device(gendisk), false);
	disk = disk_at(place);
	mark = disk_mark_at(place);
	if (!disk || !mark || (place & PLACE_IGNORED))
		return 0;
	now = bpf_ktime_get_ns();
	if (!carries_data(op)) {
		mark->last_completion_ns = now; /* a flush occupies the disk, too */
		return 0;
	}
	if (op & 1)
		disk->write_bytes += bytes;
	else
		disk->read_bytes += bytes;
	if (bytes < rq->__data_len)
		return 0; /* only a part: the request goes on */
	start = rq->start_time_ns;
	if (start && now > start)
		disk->response_ns += now - start;
	start = rq->io_start_time_ns;
	if (!start)
		start = rq->start_time_ns; /* queues without statistics: use the allocation time */
	if (start < mark->last_completion_ns)
		start = mark->last_completion_ns;
	mark->last_completion_ns = now;
	disk->requests++;
	if (now <= start)
		return 0;
	service = now - start;
	units = service / SERVICE_UNIT_NS;
	disk->service_ns += service;
	disk->service2 += units * units;
	return 0;
}

static __always_inline int on_dirty_folio(struct folio *folio, struct address_space *mapping)
{
	mapping = to_read(mapping, CAST_MAPPING);
	return ledger_dirty(mapping ? mapping->host : 0, (u64)mapping, folio_index(folio),
			    folio_bytes(folio));
}

SEC("tp_btf/writeback_dirty_folio")
int BPF_PROG(dirty_folio, struct folio *folio, struct address_space *mapping)
{
	KEEP_CPU(INSIDE_DIRTY, on_dirty_folio(folio, mapping));
	return 0;
}

SEC("tp_btf/writeback_dirty_folio")
int BPF_PROG(dirty_folio_again, struct folio *folio, struct address_space *mapping)
{
	IF_SKIPPED(INSIDE_DIRTY, on_dirty_folio(folio, mapping));
	return 0;
}

/* Kernels before 5.16. */
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

	inode = to_read(inode, CAST_INODE);
	if (!all_written(inode))
		return 0;
	ledger_key_of(inode, &key);
	bpf_map_delete_elem(&ledger, &key);
	return 0;
}

#endif
