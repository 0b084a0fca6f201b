/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * All kernel differences that the programs know, each with the version that brought it. Nothing
 * here checks a version: CO-RE looks into the type information for a field or type.
 */
#ifndef IOCOM_COMPAT_BPF_H
#define IOCOM_COMPAT_BPF_H

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

/* 6.18 turned page->flags into `memdesc_flags_t { unsigned long f; }`. */
struct page___long {
	unsigned long flags;
};
typedef struct {
	unsigned long f;
} memdesc_flags_t;
struct page___desc {
	memdesc_flags_t flags;
};

/* 7.2 or an earlier version renamed page->compound_head to compound_info. */
struct page___head {
	unsigned long compound_head;
};
struct page___info {
	unsigned long compound_info;
};

/* 5.16 introduced folios. Their size is in _folio_nr_pages until 6.14, then in _nr_pages. */
struct folio___nr {
	unsigned int _nr_pages;
};
struct folio___folio_nr {
	unsigned int _folio_nr_pages;
};

/* 5.16; a later version renamed page->index to page->__folio_index. */
struct folio___index {
	unsigned long index;
};
struct page___index {
	unsigned long index;
};

/* Since 6.10 blk-throttle's data exists only after the first limit; before, always. */
struct request_queue___td {
	void *td;
};

/* 6.1 introduced cgroup->ancestors[], an array of pointers; before it was ancestor_ids[]. */
struct cgroup___ids {
	u64 ancestor_ids[0];
};

/* 6.2 turned mm->rss_stat into percpu_counter[4]; before it was a struct of atomics. */
struct mm_rss_stat___old {
	atomic_long_t count[4];
};
struct mm_struct___old {
	struct mm_rss_stat___old rss_stat;
};

/* 5.17 removed request->rq_disk; since 5.15 the queue knows its disk. */
struct request___rq_disk {
	struct gendisk *rq_disk;
};
struct request_queue___disk {
	struct gendisk *disk;
};

/* Since 6.5 bd_holder_ops shows that a file system owns the device; before, bd_super did. */
struct block_device___ops {
	void *bd_holder_ops;
};
struct block_device___super {
	struct super_block *bd_super;
};

/*
 * Inode state bits: at first macros with I_DIRTY_PAGES 1 << 2; since 6.12 it is 1 << 5 and
 * i_state has 32 bits; since 6.18 they are an enum, which 7.2 or an earlier version renamed.
 */
enum inode_state_flags_t { I_DIRTY_PAGES = 4 };
enum inode_state_flags_enum { I_DIRTY_PAGES___x = 4 };
struct inode___state_int {
	u32 i_state;
};
struct inode___state_enum {
	enum inode_state_flags_t i_state;
};
/* 6.19 turned inode->i_state into a struct. */
struct inode_state_flags___boxed {
	u32 __state;
};
struct inode___state_boxed {
	struct inode_state_flags___boxed i_state;
};

/* arm64 keeps -1 here outside system calls, as x86 does in orig_ax. */
struct pt_regs___arm64 {
	s32 syscallno;
};

#pragma clang attribute pop

/* Since 6.2. The verifier turns it into no call at all, unlike a helper. */
extern void *bpf_rdonly_cast(const void *object, __u32 type) __ksym __weak;

const volatile __u32 cfg_types[CASTS] = {}; /* the kernel's numbers of these types; 0: not known */

/*
 * Returns OBJECT for reads alone. At each step from a trusted pointer to a next one newer verifiers
 * search all of BTF (about 1 ms, when the programs are loaded).
 */
static __always_inline void *to_read(void *object, enum cast_type type)
{
	if (bpf_rdonly_cast && cfg_types[type])
		return bpf_rdonly_cast(object, cfg_types[type]);
	return object;
}

enum pageflags___x { PG_writeback___x = 1, PG_uptodate___x, PG_head___x, PG_swapcache___x };
enum req_op___x { REQ_OP_ZONE_APPEND___x = 7 };
enum req_opf___x { REQ_OP_ZONE_APPEND___y = 13 };
enum req_flag_bits___x { __REQ_META___x = 12 };

#define PAGE_BIT(name) (1UL << bpf_core_enum_value(enum pageflags___x, PG_##name##___x))

static __always_inline unsigned long page_flags(struct page *page)
{
	unsigned long flags = 0;

	if (bpf_core_field_exists(((struct page___long *)0)->flags))
		bpf_core_read(&flags, sizeof(flags), &((struct page___long *)page)->flags);
	else
		bpf_core_read(&flags, sizeof(flags), &((struct page___desc *)page)->flags);
	return flags;
}

/* Returns the first page of PAGE's folio. */
static __always_inline struct page *page_head(struct page *page)
{
	unsigned long info = 0;

	if (bpf_core_field_exists(((struct page___head *)0)->compound_head))
		bpf_core_read(&info, sizeof(info), &((struct page___head *)page)->compound_head);
	else
		bpf_core_read(&info, sizeof(info), &((struct page___info *)page)->compound_info);
	if (!(info & 1))
		return page;
	/*
	 * compound_info holds either the head's address or a mask for the tail's address. Only a
	 * mask has all upper bits set.
	 */
	if ((long)info >> 30 == -1)
		return (struct page *)((unsigned long)page & info);
	return (struct page *)(info - 1);
}

static __always_inline u64 folio_bytes(struct folio *folio)
{
	unsigned long flags;
	u32 pages = 1;

	if (bpf_core_field_exists(((struct page___long *)0)->flags))
		flags = ((struct page___long *)&folio->page)->flags;
	else
		flags = ((struct page___desc *)&folio->page)->flags.f;
	if (!(flags & PAGE_BIT(head)))
		return 4096;
	if (bpf_core_field_exists(((struct folio___nr *)0)->_nr_pages))
		pages = ((struct folio___nr *)folio)->_nr_pages;
	else if (bpf_core_field_exists(((struct folio___folio_nr *)0)->_folio_nr_pages))
		pages = ((struct folio___folio_nr *)folio)->_folio_nr_pages;
	return 4096 * (u64)pages;
}

/* Returns the page's position in its file, in pages. */
static __always_inline u64 page_index(struct page *page)
{
	unsigned long index = 0;

	if (bpf_core_field_exists(((struct folio___index *)0)->index))
		bpf_core_read(&index, sizeof(index), &((struct folio___index *)page)->index);
	else
		bpf_core_read(&index, sizeof(index), &((struct page___index *)page)->index);
	return index;
}

/* Does the same for a folio whose type the verifier knows, without reads by helper. */
static __always_inline u64 folio_index(struct folio *folio)
{
	return ((struct folio___index *)folio)->index;
}

/*
 * Returns true if a limit may hold back bios of this disk. Uses direct reads because it runs once
 * per page.
 */
static __always_inline bool may_hold_back(struct request_queue *queue)
{
	if (bpf_core_field_exists(((struct request_queue___td *)0)->td))
		return ((struct request_queue___td *)queue)->td;
	return false; /* this kernel has no limits */
}

static __always_inline bool carries_data(u32 op)
{
	/* Read, write and WRITE_ZEROES, which the disk statistics count as written. */
	if (op <= 1 || op == 9)
		return true;
	/*
	 * ZONE_APPEND is 7 since 6.10 (and in stable kernels), before it was 13. enum req_op was
	 * req_opf until 6.0.
	 */
	if (bpf_core_enum_value_exists(enum req_op___x, REQ_OP_ZONE_APPEND___x))
		return op == bpf_core_enum_value(enum req_op___x, REQ_OP_ZONE_APPEND___x);
	return false;
}

/* True for a clone, which fires block_bio_queue itself. The flag is number 1 from 4.x to 6.18. */
static __always_inline bool is_clone(struct bio *bio)
{
	return bio->bi_flags & (1 << 1);
}

/* Returns a request's disk. Uses direct reads, not helpers, because it runs for each request. */
static __always_inline struct gendisk *request_disk(struct request *rq)
{
	if (bpf_core_field_exists(((struct request_queue___disk *)0)->disk))
		return ((struct request_queue___disk *)rq->q)->disk;
	return ((struct request___rq_disk *)rq)->rq_disk;
}

/* Returns true if a mounted file system owns this block device. */
static __always_inline bool holds_filesystem(struct block_device *bdev)
{
	if (bpf_core_field_exists(((struct block_device___ops *)0)->bd_holder_ops))
		return BPF_CORE_READ((struct block_device___ops *)bdev, bd_holder_ops);
	if (bpf_core_field_exists(((struct block_device___super *)0)->bd_super))
		return BPF_CORE_READ((struct block_device___super *)bdev, bd_super);
	return true;
}

static __always_inline bool inode_has_dirty_pages(struct inode *inode)
{
	unsigned long state = 0, bit = 1 << 2;

	if (bpf_core_enum_value_exists(enum inode_state_flags_t, I_DIRTY_PAGES))
		bit = bpf_core_enum_value(enum inode_state_flags_t, I_DIRTY_PAGES);
	else if (bpf_core_enum_value_exists(enum inode_state_flags_enum, I_DIRTY_PAGES___x))
		bit = bpf_core_enum_value(enum inode_state_flags_enum, I_DIRTY_PAGES___x);
	else if (bpf_core_field_size(((struct inode___state_int *)0)->i_state) == sizeof(u32))
		bit = 1 << 5;
	if (bpf_core_field_exists(((struct inode___state_enum *)0)->i_state))
		state = (u32)((struct inode___state_enum *)inode)->i_state;
	else if (bpf_core_field_exists(((struct inode___state_boxed *)0)->i_state))
		state = *(u32 *)&((struct inode___state_boxed *)inode)->i_state;
	else
		state = ((struct inode___state_int *)inode)->i_state;
	return state & bit;
}

/* Returns the pages that MM has in memory; FILES gets those of files among them. */
static __always_inline u64 rss_pages(struct mm_struct *mm, u32 *files)
{
	long file = 0, anon = 0, shmem = 0;

	if (bpf_core_type_exists(struct mm_rss_stat___old)) {
		struct mm_struct___old *old = (struct mm_struct___old *)mm;

		bpf_core_read(&file, sizeof(file), &old->rss_stat.count[0]);
		bpf_core_read(&anon, sizeof(anon), &old->rss_stat.count[1]);
		bpf_core_read(&shmem, sizeof(shmem), &old->rss_stat.count[3]);
	} else {
		bpf_core_read(&file, sizeof(file), &mm->rss_stat[0].count);
		bpf_core_read(&anon, sizeof(anon), &mm->rss_stat[1].count);
		bpf_core_read(&shmem, sizeof(shmem), &mm->rss_stat[3].count);
	}
	/* Batched per-CPU counters lag, so a part may be negative: it means about 0. */
	*files = file > 0 ? file < 0xffffffff ? (u32)file : 0xffffffff : 0;
	return (file > 0 ? file : 0) + (anon > 0 ? anon : 0) + (shmem > 0 ? shmem : 0);
}

/* Returns the id of CGROUP's ancestor at LEVEL, which is at most CGROUP's own level. */
static __always_inline u64 ancestor_id(struct cgroup *cgroup, u32 level)
{
	struct cgroup *ancestor = 0;
	u64 id = 0;

	if (bpf_core_field_exists(((struct cgroup *)0)->ancestors)) {
		bpf_probe_read_kernel(
			&ancestor, sizeof(ancestor),
			(void *)cgroup + bpf_core_field_offset(((struct cgroup *)0)->ancestors) +
				level * sizeof(void *));
		return BPF_CORE_READ(ancestor, kn, id);
	}
	bpf_probe_read_kernel(
		&id, sizeof(id),
		(void *)cgroup + bpf_core_field_offset(((struct cgroup___ids *)0)->ancestor_ids) +
			level * sizeof(u64));
	return id;
}

/* True in a page fault that was taken in user mode. */
static __always_inline bool in_user_fault(struct pt_regs *regs)
{
#if defined(__TARGET_ARCH_x86)
	return (long)regs->orig_ax == -1;
#elif defined(__TARGET_ARCH_arm64)
	return BPF_CORE_READ((struct pt_regs___arm64 *)regs, syscallno) == -1;
#else
	return false; /* then everything counts as explicit */
#endif
}

#endif
