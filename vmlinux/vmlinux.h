/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The kernel types the eBPF programs look into, trimmed by hand to the fields
 * that are read.  Layout here means nothing: preserve_access_index makes every
 * access a CO-RE relocation that libbpf resolves against the running kernel.
 * Names and field types must match the kernel's.  README.md tells how to add one.
 */
#ifndef IOCOM_VMLINUX_H
#define IOCOM_VMLINUX_H

typedef unsigned char __u8;
typedef signed char __s8;
typedef unsigned short __u16;
typedef short __s16;
typedef unsigned int __u32;
typedef int __s32;
typedef unsigned long long __u64;
typedef long long __s64;
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u64 __be64;
typedef __u16 __le16;
typedef __u32 __le32;
typedef __u64 __le64;
typedef __u32 __wsum;
typedef __u16 __sum16;
typedef __u8 u8;
typedef __u16 u16;
typedef __u32 u32;
typedef __u64 u64;
typedef __s32 s32;
typedef __s64 s64;
typedef _Bool bool;
typedef int pid_t;
typedef __u32 dev_t;
typedef u64 sector_t;
typedef u32 blk_opf_t;
typedef __SIZE_TYPE__ size_t;
typedef long ssize_t;
typedef u8 blk_status_t;
typedef unsigned short umode_t;
enum { false = 0, true = 1 };

/* The part of the user-space interface (linux/bpf.h) the programs use. */
enum bpf_map_type {
	BPF_MAP_TYPE_HASH = 1,
	BPF_MAP_TYPE_ARRAY = 2,
	BPF_MAP_TYPE_PERCPU_ARRAY = 6,
	BPF_MAP_TYPE_LRU_HASH = 9,
	BPF_MAP_TYPE_QUEUE = 22,
	BPF_MAP_TYPE_SK_STORAGE = 24,
	BPF_MAP_TYPE_TASK_STORAGE = 29,
};
enum { BPF_ANY = 0, BPF_NOEXIST = 1, BPF_EXIST = 2 };
enum { BPF_F_NO_PREALLOC = 1, BPF_F_MMAPABLE = 1024 };
enum { BPF_LOCAL_STORAGE_GET_F_CREATE = 1, BPF_SK_STORAGE_GET_F_CREATE = 1 };

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct list_head {
	struct list_head *next, *prev;
};

/* Control groups. */
struct kernfs_node {
	u64 id;
};
struct cgroup {
	int level;
	struct kernfs_node *kn;
	struct cgroup *ancestors[0];
};
struct css_set {
	struct cgroup *dfl_cgrp;
};

/* Tasks. */
typedef struct {
	unsigned int val;
} kuid_t;
struct cred {
	kuid_t uid;
};
struct sched_entity {
	u64 sum_exec_runtime;
};
struct percpu_counter {
	s64 count;
};
typedef struct {
	long counter;
} atomic_long_t;
struct mm_struct {
	unsigned long env_start, env_end;
	struct percpu_counter rss_stat[4];
};
typedef struct {
	int counter;
} atomic_t;
struct signal_struct {
	atomic_t live;
};
struct bio_list;
struct pt_regs {
	unsigned long r15, r14, r13, r12, bp, bx, r11, r10, r9, r8, ax, cx, dx, si, di;
	unsigned long orig_ax, ip, flags, sp;
};
struct task_io_accounting {
	u64 read_bytes;
	u64 write_bytes;
	u64 cancelled_write_bytes;
};
struct sched_info {
	unsigned long long run_delay;
};
struct task_delay_info {
	u64 blkio_delay;
};
struct task_struct {
	unsigned int __state;
	unsigned int flags;
	unsigned int on_cpu; /* an int; 7.2: a u8 */
	struct sched_entity se;
	struct sched_info sched_info;
	struct task_io_accounting ioac;
	struct task_delay_info *delays;
	struct mm_struct *mm;
	int exit_state;
	pid_t pid;
	pid_t tgid;
	struct task_struct *group_leader;
	u64 start_boottime;
	unsigned long min_flt;
	unsigned long maj_flt;
	const struct cred *cred;
	char comm[16];
	struct signal_struct *signal;
	struct css_set *cgroups;
	struct bio_list *bio_list;
	void *stack;
};
struct swait_queue {
	struct task_struct *task;
	struct list_head task_list;
};
struct swait_queue_head {
	struct list_head task_list;
};
struct completion {
	struct swait_queue_head wait;
};

/* Memory and files. */
struct file_system_type {
	int fs_flags;
};
struct block_device;
struct super_block {
	dev_t s_dev;
	struct block_device *s_bdev;
	struct file_system_type *s_type;
};
struct inode {
	umode_t i_mode;
	struct super_block *i_sb;
	unsigned long i_ino;
	u32 i_generation;
};
struct address_space {
	struct inode *host;
};
struct page {
	struct address_space *mapping;
};
struct folio {
	struct page page;
};
struct writeback_control;
struct file {
	struct address_space *f_mapping;
};
struct kiocb {
	struct file *ki_filp;
};
/* Direct I/O of ext4, xfs and others. */
struct iomap_dio {
	struct kiocb *iocb;
	union {
		struct {
			struct task_struct *waiter;
		} submit;
	};
};

/* Block layer. */
struct gendisk;
struct request_queue {
	void *queuedata;
};
struct block_device {
	struct gendisk *bd_disk;
	dev_t bd_dev;
	void *bd_holder;
};
struct bdev_inode {
	struct block_device bdev;
	struct inode vfs_inode;
};
struct gendisk {
	int major;
	int first_minor;
	struct request_queue *queue;
	char disk_name[32];
};
struct bvec_iter {
	unsigned int bi_size;
	unsigned int bi_idx;
};
struct bio_vec {
	struct page *bv_page;
	unsigned int bv_len;
	unsigned int bv_offset;
};
struct bio {
	struct block_device *bi_bdev;
	blk_opf_t bi_opf;
	unsigned short bi_flags;
	struct bvec_iter bi_iter;
	void *bi_private;
	struct bio_vec *bi_io_vec;
};
struct request {
	struct request_queue *q;
	blk_opf_t cmd_flags;
	unsigned int __data_len;
	u64 start_time_ns;
	u64 io_start_time_ns;
};

/* Sockets. */
struct in6_addr {
	union {
		__be32 u6_addr32[4];
	} in6_u;
};
typedef struct {
	s64 counter;
} atomic64_t;
struct sock_common {
	__be32 skc_daddr;
	__be32 skc_rcv_saddr;
	__be16 skc_dport;
	__u16 skc_num;
	unsigned short skc_family;
	unsigned char skc_state;
	atomic64_t skc_cookie;
	unsigned long skc_flags;
	struct in6_addr skc_v6_daddr;
	struct in6_addr skc_v6_rcv_saddr;
};
struct net_device {
	unsigned int flags;
};
struct dst_entry {
	struct net_device *dev;
};
struct sock {
	struct sock_common __sk_common;
	struct dst_entry *sk_dst_cache;
	u8 sk_kern_sock : 1;
	u16 sk_protocol;
};
struct tcp_sock {
	u32 copied_seq;
	u32 rcv_nxt;
};
struct mptcp_sock {
	struct sock *first;
};
struct file;
struct msghdr;
struct socket {
	struct sock *sk;
};

/* The context of a task iterator. */
struct seq_file;
struct bpf_iter_meta {
	struct seq_file *seq;
};
struct bpf_iter__task {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
};
struct bpf_iter__task_file {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
	struct file *file;
};

#pragma clang attribute pop

#endif
