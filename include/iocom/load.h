/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Load records: what a process, a job (cgroup) or a disk has done since
 * counting began.  All values are cumulative; rates are the reader's business.
 * Terms: MODEL 0.1 (explicit, implicit, communication).
 */
#ifndef IOCOM_LOAD_H
#define IOCOM_LOAD_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* What a process or job did.  "Operations" are block requests (bios). */
struct iocom_load {
	uint64_t explicit_read_bytes;
	uint64_t explicit_write_bytes;
	uint64_t explicit_ops;
	uint64_t implicit_bytes; /* caused by page faults */
	uint64_t implicit_ops;
	uint64_t major_faults;
	uint64_t minor_faults;
	uint64_t sent_bytes; /* TCP, leaving the node */
	uint64_t received_bytes;
	uint64_t sent_messages; /* a message = one successful call */
	uint64_t received_messages;
	uint64_t local_bytes; /* TCP, loopback and same host, both directions */
	/*
	 * From the kernel's accounting of tasks. Network file systems never reach the block
	 * layer: netfs_* is what the kernel counted for the task beyond its block requests and
	 * the pages of disk file systems that it dirtied.
	 */
	uint64_t dirtied_bytes;	  /* pages made dirty, and direct writes, counted when made */
	uint64_t cancelled_bytes; /* dirty pages dropped before they were written */
	uint64_t netfs_read_bytes;
	uint64_t netfs_write_bytes;
	uint64_t cpu_ns;
	uint64_t run_wait_ns; /* ready, but other tasks had the CPU */
	uint64_t io_wait_ns;  /* asleep until block I/O was done */
};

/* Adds FROM to INTO, field by field. */
static inline void iocom_load_add(struct iocom_load *into, const struct iocom_load *from)
{
	into->explicit_read_bytes += from->explicit_read_bytes;
	into->explicit_write_bytes += from->explicit_write_bytes;
	into->explicit_ops += from->explicit_ops;
	into->implicit_bytes += from->implicit_bytes;
	into->implicit_ops += from->implicit_ops;
	into->major_faults += from->major_faults;
	into->minor_faults += from->minor_faults;
	into->sent_bytes += from->sent_bytes;
	into->received_bytes += from->received_bytes;
	into->sent_messages += from->sent_messages;
	into->received_messages += from->received_messages;
	into->local_bytes += from->local_bytes;
	into->dirtied_bytes += from->dirtied_bytes;
	into->cancelled_bytes += from->cancelled_bytes;
	into->netfs_read_bytes += from->netfs_read_bytes;
	into->netfs_write_bytes += from->netfs_write_bytes;
	into->cpu_ns += from->cpu_ns;
	into->run_wait_ns += from->run_wait_ns;
	into->io_wait_ns += from->io_wait_ns;
}

/* One process with all its threads. */
struct iocom_task {
	pid_t pid; /* thread group id */
	uid_t uid;
	uint64_t start_ns;  /* CLOCK_BOOTTIME; with pid it never recurs */
	uint64_t cgroup_id; /* cgroup2 id of its job */
	char comm[16];
	uint64_t rss_bytes; /* 0 after its exit */
	bool exited;
	struct iocom_load load;
	struct iocom_load delta; /* since the previous sample */
};

/*
 * A job's part of the time in which disks served tasks. We cannot tell requests apart by job:
 * one request may hold several bios, and one bio may become several requests. A request costs a
 * fixed time and a time per byte, so the truth lies between the job's part of each disk's
 * operations and its part of the bytes.
 */
struct iocom_disk_time {
	uint64_t low_ns, high_ns;
	uint64_t wait_ns; /* time in queues before service */
	/*
	 * Blocks of inodes, directories and bitmaps that the file system writes for it, where the
	 * kernel lets us see them (bpf/journal.bpf.h).
	 */
	uint64_t metadata_bytes;
};

static inline void iocom_disk_time_add(struct iocom_disk_time *into,
				       const struct iocom_disk_time *from)
{
	into->low_ns += from->low_ns;
	into->high_ns += from->high_ns;
	into->wait_ns += from->wait_ns;
	into->metadata_bytes += from->metadata_bytes;
}

/* One job: all tasks of one cgroup, live or ended. */
struct iocom_job_load {
	uint64_t cgroup_id;
	uint32_t tasks; /* live processes */
	/* of its live processes; of pages of files, which they share, the most that one of them has
	 */
	uint64_t rss_bytes;
	struct iocom_load load;
	struct iocom_load delta;
	struct iocom_disk_time disk; /* cumulative */
	struct iocom_disk_time disk_delta;
};

/*
 * One disk.  A service time is completion - max(issue, previous completion on
 * this disk): what a single FCFS server would have needed, so that the sums
 * give the M/G/1 inputs (MODEL 2.1): E(s) = sum/requests, E(s^2) =
 * sum2/requests, utilisation = sum/elapsed.
 */
struct iocom_disk {
	char name[32]; /* "vda", "loop3" */
	uint32_t major, minor;
	uint64_t requests;		  /* completed */
	uint64_t read_bytes, write_bytes; /* completed, as the block layer saw them */
	uint64_t service_sum_ns;
	double service_sum2_ms2;
	uint64_t response_sum_ns; /* from each request's start to its completion, with its wait */
	uint64_t task_bytes;	  /* bios attributed to a task */
	uint64_t stacked_bytes;	  /* bios that a disk above (loop, dm, md) sent here */
	uint64_t unattributed_bytes; /* bios whose owner is unknown: metadata, journal */
	uint64_t foreign_bytes;	     /* bios of tasks outside this node's scope */
	uint64_t kernel_bytes;	     /* the kernel's own disk statistics since counting began */
	/* kernel_bytes - (task + stacked + unattributed + foreign), without bios in flight. */
	int64_t residual_bytes;
};

#endif
