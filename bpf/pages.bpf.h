/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* A bio's first page: what it is and where in its file it lies. */
#ifndef IOCOM_PAGES_BPF_H
#define IOCOM_PAGES_BPF_H

#define MAPPING_FLAGS 3UL
#define MAPPING_ANON  1UL
#define PAGE_BYTES    4096
#define S_IFMT	      0170000
#define S_IFBLK	      0060000

struct first_page {
	struct page *head;   /* first page of its folio; NULL: the bio has no pages */
	struct inode *inode; /* NULL: it is not a file's page */
	u64 mapping;
	u64 index; /* position in the file, in pages */
	unsigned long flags;
	bool anonymous;
};

/*
 * Not static, and BIO is a plain number: so the verifier checks it once and does not search BTF
 * at its steps.
 */
__noinline int first_page_of(u64 bio, struct first_page *first)
{
	struct bio_vec vec = {};
	struct page *page, *head;
	unsigned long mapping = 0;

	if (!first)
		return 0;
	__builtin_memset(first, 0, sizeof(*first));
	bpf_probe_read_kernel(&vec, sizeof(vec),
			      BPF_CORE_READ((struct bio *)bio, bi_io_vec) +
				      BPF_CORE_READ((struct bio *)bio, bi_iter.bi_idx));
	page = vec.bv_page;
	if (!page)
		return 0;
	head = page_head(page);
	first->index = vec.bv_offset / PAGE_BYTES +
		       ((u64)page - (u64)head) / bpf_core_type_size(struct page);
	page = head;
	first->head = page;
	first->flags = page_flags(page);
	bpf_core_read(&mapping, sizeof(mapping), &page->mapping);
	first->mapping = mapping;
	first->anonymous = !mapping || (mapping & MAPPING_FLAGS) == MAPPING_ANON;
	if (!mapping || (mapping & MAPPING_FLAGS))
		return 0;
	first->inode = BPF_CORE_READ((struct address_space *)mapping, host);
	first->index += page_index(page);
	return 0;
}

static __always_inline void look_at_first_page(struct bio *bio, struct first_page *first)
{
	u64 address = 0;

	/* Reads the address back as a number, because the verifier sees BIO as a pointer. */
	bpf_probe_read_kernel(&address, sizeof(address), &bio);
	first_page_of(address, first);
}

/* Returns the block device that INODE stands for, or NULL. */
static __always_inline struct block_device *device_of(struct inode *inode, umode_t mode)
{
	struct bdev_inode *both;

	if ((mode & S_IFMT) != S_IFBLK)
		return 0;
	both = (void *)inode - bpf_core_field_offset(((struct bdev_inode *)0)->vfs_inode);
	return &both->bdev;
}

/* Returns true if INODE is a block device with a file system on it: its pages are metadata. */
static __always_inline bool is_metadata(struct inode *inode, umode_t mode)
{
	struct block_device *bdev = device_of(inode, mode);

	return bdev && holds_filesystem(bdev);
}

/*
 * Returns true if a limit may hold back bios of INODE's file system or of the block device that
 * INODE is.
 */
static __always_inline bool file_may_hold_back(struct inode *inode)
{
	struct block_device *bdev = inode->i_sb->s_bdev;

	if (bdev)
		return may_hold_back(bdev->bd_disk->queue);
	return (inode->i_mode & S_IFMT) == S_IFBLK;
}

#endif
