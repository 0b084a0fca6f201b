/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Layouts that the eBPF programs and the monitor in user space share. The includer must define
 * __u32 and __u64 (linux/types.h or vmlinux.h).
 */
#ifndef IOCOM_BPF_RECORDS_H
#define IOCOM_BPF_RECORDS_H

/* The same fields in the same order as struct iocom_load. */
struct counters {
	__u64 explicit_read_bytes;
	__u64 explicit_write_bytes;
	__u64 explicit_ops;
	__u64 implicit_bytes;
	__u64 implicit_ops;
	__u64 major_faults;
	__u64 minor_faults;
	__u64 sent_bytes;
	__u64 received_bytes;
	__u64 sent_messages;
	__u64 received_messages;
	__u64 local_bytes;
	__u64 dirtied_bytes;
	__u64 cancelled_bytes;
	__u64 netfs_read_bytes;
	__u64 netfs_write_bytes;
	__u64 cpu_ns;
	__u64 run_wait_ns;
	__u64 io_wait_ns;
};
#define COUNTERS (sizeof(struct counters) / sizeof(__u64))

/* A process. With its start time (CLOCK_BOOTTIME ns) a tgid never recurs. */
struct process_key {
	__u64 start;
	__u32 tgid;
	__u32 part; /* 0, except in `late`: enum late_part */
};

enum late_part {
	LATE_COUNTED, /* its job has these counts, too */
	LATE_MOVED,   /* done before the process moved, perhaps in an unknown cgroup */
};

/*
 * Counts of a process that no live task's storage has: those of its ended threads, and those of
 * the kernel writing back what it had dirtied.
 */
struct late_value {
	struct counters counters;
	__u64 cgid;
	__u32 uid;
	__u32 exited; /* the leader has ended: comm, uid and cgid are valid */
	char comm[16];
};

/* What one CPU counted for a disk. */
struct disk_value {
	__u32 device; /* dev_t */
	__u32 pad;
	/* counted from bios */
	__u64 task_bytes;
	__u64 stacked_bytes;
	__u64 foreign_bytes;
	__u64 metadata_bytes;
	__u64 writeback_bytes;
	__u64 swap_out_bytes;
	__u64 other_bytes;
	/* counted from completions */
	__u64 requests;
	__u64 read_bytes;
	__u64 write_bytes;
	__u64 service_ns;
	__u64 response_ns;
	__u64 service2; /* in SERVICE_UNIT_NS squared; it wraps, so use differences */
};

/* What all CPUs share for a disk. */
struct disk_mark {
	__u64 last_completion_ns;
	__u64 swapped;	/* the disk is swapped to */
	__u64 apart[6]; /* keeps each mark on a cache line of its own */
};
#define PLACE_IGNORED	0x80000000u /* a disk in memory is no load */
#define SERVICE_UNIT_NS 16

/* What a job's tasks submitted to one disk, and what its file system writes for them. */
struct job_disk_key {
	__u64 cgid;
	__u32 device;
	__u32 pad;
};
struct job_disk_value {
	__u64 operations;
	__u64 bytes;
	__u64 metadata_bytes; /* the file system's own, for the job (bpf/journal.bpf.h) */
};
#define JOB_DISKS 8192

/*
 * The owner of a page (the task that dirtied it, or added it to be read): a process in scope, or
 * one of the unnamed classes.
 */
enum writer_class {
	WRITER_NONE,
	WRITER_EXPLICIT, /* read(2), write(2) and friends */
	WRITER_IMPLICIT, /* a load or store through a mapping */
	WRITER_STACKED,	 /* the worker of a disk above (loop) */
	WRITER_KERNEL,
	WRITER_FOREIGN, /* a task outside the scope */
};

struct writer {
	struct process_key process;
	__u64 cgid;
	__s64 dirty_bytes;
	__u64 from, to; /* range of the pages of the file that it dirtied */
	__u32 class;
	__u32 held; /* the bio was held back, after the kernel had accounted it to the task */
};
#define LEDGER_WRITERS 4

/*
 * The pointer is part of the key because inode numbers repeat between the subvolumes of one
 * btrfs; the rest is there because the kernel reuses pointers.
 */
struct ledger_key {
	__u64 inode;
	__u64 number;
	__u32 generation;
	__u32 device;
};

struct ledger_value {
	struct writer writers[LEDGER_WRITERS];
	__u32 touched_s; /* `now_s` of the last dirtying; user space removes old entries */
	__u32 last;	 /* index of the writer that dirtied last */
};

#define TALKS	4096  /* slots of threads that talk by TCP (bpf/talks.bpf.h) */
#define STREAMS 16384 /* slots of TCP connections (bpf/streams.bpf.h) */

/* A job and a remote address of its TCP traffic. Family 0: all addresses without a slot. */
struct remote_key {
	__u64 cgid;
	__u32 address[4]; /* network order; an IPv4 address is in the first */
	__u32 family;
	__u32 pad;
};

/* Takes one line of the cache. */
struct remote_slot {
	__u64 cgid; /* 0: the slot is free */
	__u32 address[4];
	__u32 family;
	__u32 generation; /* at least 1 */
	__u64 sent_bytes;
	__u64 received_bytes;
	__u64 sent_messages;
	__u64 received_messages;
};

#define GANGS_MAX 1024	/* cgroups of jobs whose connections are counted one by one */
#define PAIRS_MAX 16384 /* their connections, by process */

/* A TCP connection as a process of a gang uses it: a socket may belong to several processes. */
struct pair_key {
	__u64 cookie; /* of the socket; the kernel never gives it again */
	__u64 cgid;
	__u32 tgid;
	__u32 pad;
};

struct pair_end {
	__u32 address[4]; /* network order; an IPv4 address, also a mapped one, is in the first */
	__u32 port;
};

struct pair_value {
	__u64 start;	/* start time of the process */
	__u64 noted_ns; /* when the process's burst was last noted (CLOCK_MONOTONIC) */
	struct pair_end local, remote;
	__u32 family;
	__u32 inside; /* the other end is on this host */
	__u64 sent_bytes;
	__u64 received_bytes;
	__u64 sent_messages;
	__u64 received_messages; /* 0 if the other end is on this host: the sender's count */
};

/* A process of a gang that uses TCP. */
struct gang_task_key {
	__u64 cgid;
	__u64 start; /* start time of the process (CLOCK_BOOTTIME ns) */
	__u32 tgid;
	__u32 pad;
};

struct gang_task_value {
	__s64 rank;	/* by its environment; below 0: none was found, less 1 for each try */
	__u64 last_ns;	/* its last send or receive (CLOCK_MONOTONIC) */
	__u64 bursts;	/* runs of sends and receives without a gap of BURST_GAP_NS */
	__u64 burst_ns; /* the time of these, in all */
};
#define BURST_GAP_NS  2000000
#define BURST_NOTE_NS 100000 /* a connection notes bursts so seldom */
#define RANK_MAX      4096   /* ranks are less */
#define ENVIRON_WORDS 512    /* variables that are looked at, */
#define ENVIRON_BYTES 131072 /* in so many bytes, */
#define ENVIRON_TRIES 8	     /* so often */

/* Events that could not be counted, by cause. */
enum drop {
	DROP_TASK_STORAGE,
	DROP_LATE,
	DROP_JOBS,
	DROP_DISKS,
	DROP_LEDGER,
	DROP_COWRITERS,
	DROP_SOCKETS,
	DROP_JOB_DISKS,
	DROP_REMOTES,
	DROP_OTHER_REMOTES,
	DROP_PAIRS,
	DROPS,
};

enum run_flags {
	RUN_LEADER = 1,	  /* a leader_record follows */
	RUN_COUNTERS = 2, /* a leader_record (perhaps empty) and counters follow */
};

/* The sweep writes this for a run: consecutive threads of one process and one cgroup, summed. */
struct run_record {
	__u32 tgid;
	__u32 flags;
	__u64 start; /* start time of the process */
	__u64 cgid;
	__u64 cpu_ns; /* since the last fold */
	__u64 run_wait_ns;
	__u64 minor_faults;
	__u64 major_faults;
	__u32 threads;
	__u32 runnable;
};
struct leader_record {
	__u64 rss_pages;
	__u32 uid;
	__u32 file_pages; /* of rss_pages, those of files, which its job's processes share */
	char comm[16];
};

#define RUN_SIZE                                                                                   \
	(sizeof(struct run_record) + sizeof(struct leader_record) + sizeof(struct counters))
#define WALK_RUNS 16384 /* room of one walk */
/* What this kernel accounts to tasks. The first sweep sets `accounting`. */
enum accounting_kind {
	ACCOUNTING_IO = 1,	 /* CONFIG_TASK_IO_ACCOUNTING */
	ACCOUNTING_RUN_WAIT = 2, /* CONFIG_SCHED_INFO */
	ACCOUNTING_IO_WAIT = 4,	 /* sysctl kernel.task_delayacct: some task has it */
};

/* Parts that a test switches off, to see other tests fail then. */
enum ablate {
	ABLATE_LEDGER = 1,
	ABLATE_FAULTS = 2,
	ABLATE_FOLD = 4,
	ABLATE_CARRIED = 8,
};

/* Kernel types whose numbers user space tells the programs. */
enum cast_type {
	CAST_TCP_SOCK,
	CAST_TASK,
	CAST_BIO,
	CAST_REQUEST,
	CAST_INODE,
	CAST_MAPPING,
	CAST_FOLIO,
	CASTS,
};

/* What the sweep does. */
enum sweep_mode {
	SWEEP_READ,
	SWEEP_BASELINE, /* give each task that was there before us its zero point */
};

#endif
