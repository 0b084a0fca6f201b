/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The monitor loads the eBPF programs, reads what they counted, folds threads into processes and
 * processes into jobs. It needs root. Use a monitor from one thread only.
 */
#ifndef IOCOM_MONITOR_H
#define IOCOM_MONITOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "iocom/err.h"
#include "iocom/load.h"

struct monitor;

/* Sizes of the tables; 0: the default. Tests use small ones to fill them. */
struct monitor_limits {
	uint32_t late;	     /* processes whose ended threads have counters, between two readings */
	uint32_t jobs;	     /* cgroups with such counters */
	uint32_t disks;	     /* disks */
	uint32_t ledger;     /* files with dirty pages */
	uint32_t exited;     /* ended processes remembered */
	uint32_t ended_jobs; /* cgroups remembered */
	uint32_t walk;	     /* number of tasks up to which the faster sweep is used */
	uint32_t slots;	     /* threads, and connections, found the faster way; a power of 2 */
	uint32_t pairs;	     /* connections of gangs */
};

struct monitor_config {
	/*
	 * Which tasks belong to this node: a cgroup2 directory (absolute path); its tasks and
	 * those of all cgroups below it count. NULL: all tasks.
	 */
	const char *scope_cgroup;
	/*
	 * Which disks belong to this node: kernel names ("loop3"), NULL-terminated. NULL: every
	 * whole disk that did I/O. With a scope an empty list means no disks.
	 */
	const char *const *scope_disks;
	/*
	 * Never switch on the kernel's run-time statistics of eBPF programs, which cost two
	 * clock readings per event. (By default they are on in one period of ten.) `programs`
	 * then shows zeros.
	 */
	bool no_program_cost;
	/* Tests only: parts of the programs to switch off (enum ablate, records.h); 0: none. */
	uint32_t ablate;
	struct monitor_limits limits;
	/*
	 * CLOCK_BOOTTIME (ns) up to which an earlier monitor counted, for `gap_ns`. 0: there was
	 * none.
	 */
	uint64_t counted_until_ns;
	/*
	 * The number of remote addresses for which TCP is counted, over all jobs (0: 4096; at most
	 * 65536). Traffic of further addresses counts in each job's row of other remotes.
	 */
	unsigned remotes_max;
	/* A remote without traffic for this long may give its place to another (0: 10000). */
	unsigned remotes_idle_ms;
	/* Tests only: behave as on a kernel without the tracepoints of sends and receives. */
	bool no_socket_tracepoints;
};

/* TCP traffic that left the node, for one job and one address. */
struct monitor_remote_counts {
	uint64_t sent_bytes;
	uint64_t received_bytes;
	uint64_t sent_messages;
	uint64_t received_messages;
};

/* A row for one address; a job's rows add up to all it sent and received. */
struct monitor_remote {
	uint64_t cgroup_id;
	uint16_t family;     /* AF_INET, AF_INET6; AF_UNSPEC: all addresses without a row */
	uint8_t address[16]; /* the address as in in_addr and in6_addr */
	struct monitor_remote_counts counts;
	struct monitor_remote_counts delta; /* since the previous reading */
};

/* One TCP connection of a gang, as one of its processes uses it. */
struct monitor_pair {
	uint64_t cgroup_id;
	uint64_t start_ns; /* of the process, CLOCK_BOOTTIME */
	uint32_t tgid;
	int32_t rank;	 /* that its environment tells; -1: it has none */
	uint16_t family; /* AF_INET, AF_INET6 */
	uint16_t local_port, remote_port;
	bool inside;			     /* the other end is on this node */
	uint8_t local[16], remote[16];	     /* as in in_addr and in6_addr */
	struct monitor_remote_counts counts; /* since it was noticed */
	struct monitor_remote_counts delta;  /* since the previous reading */
};

/* A process of a gang that uses TCP; its numbers are those since the previous reading. */
struct monitor_gang_task {
	uint64_t cgroup_id, start_ns;
	uint32_t tgid;
	int32_t rank;
	uint64_t bursts;   /* that began; a gap of 2 ms ends one */
	uint64_t burst_ns; /* the time of bursts */
};

struct monitor_pairs {
	const struct monitor_pair *list; /* unordered */
	size_t n;
	const struct monitor_gang_task *tasks;
	size_t ntasks;
};

/* One cause of overflow, and how often it happened. */
struct monitor_drop {
	const char *name; /* "task_storage", "ledger", "late", "jobs", ...; static string */
	const char *help; /* one sentence: what is lost when this grows; static string */
	uint64_t count;
};

/* Cost of one eBPF program while the kernel's statistics were on. */
struct monitor_program {
	char name[32];
	uint64_t runs;
	uint64_t run_ns;
};

/* A column of the reading that this kernel measures less exactly or not at all. */
struct monitor_degraded {
	const char *column; /* its name in the JSON: "sent_bytes"; all strings are static */
	const char *hook;   /* the hook that is missing, or "processor" */
	const char *why;    /* one sentence */
	bool unknown;	    /* true: its values mean nothing; false: they are less exact */
};
#define MONITOR_DEGRADED_MAX 32
/* One table of the eBPF programs. Memory and entries are read every 30 s. */
struct monitor_map {
	char name[32];
	uint64_t entries_max;  /* 0: it has one entry per task or socket */
	uint64_t entries;      /* MONITOR_ENTRIES_UNKNOWN: the kernel does not say */
	uint64_t memory_bytes; /* 0: the kernel does not say */
};
#define MONITOR_ENTRIES_UNKNOWN UINT64_MAX

/* What one reading saw.  Valid until the next monitor_sample or monitor_free. */
struct monitor_sample {
	uint64_t time_ns; /* CLOCK_REALTIME of this reading */
	uint64_t boot_ns; /* CLOCK_BOOTTIME of this reading */
	/*
	 * When counting began, in the calendar of this reading: time_ns - since_ns is the true
	 * span.
	 */
	uint64_t since_ns;
	uint64_t elapsed_ns;   /* time awake since the previous reading, or since counting began */
	uint64_t suspended_ns; /* time suspended since then, not part of elapsed_ns */
	uint64_t gap_ns;       /* uncounted time before counting began; 0: unknown */

	const struct iocom_task
		*tasks; /* live tasks, and once each task that ended since the last reading */
	size_t ntasks;
	const struct iocom_job_load *jobs; /* every cgroup in scope that has or had counters */
	size_t njobs;
	const struct iocom_disk *disks;
	size_t ndisks;

	struct {
		uint64_t metadata_bytes;  /* journal and file-system metadata writeback */
		uint64_t writeback_bytes; /* file data whose writer the ledger did not know */
		uint64_t swap_out_bytes;  /* pages that reclaim wrote to a swap device */
		uint64_t other_bytes;	  /* bios of kernel threads and the like */
	} unattributed;			  /* cumulative, over the disks in scope */

	/* Compares all columns with the kernel's own disk statistics, over the disks in scope. */
	struct {
		uint64_t kernel_bytes;
		uint64_t in_flight_bytes; /* bytes that are in a column, but not yet completed */
		int64_t residual_bytes;	  /* kernel_bytes - (columns - in_flight_bytes) */
		double residual_share; /* sum of each disk's |residual| / kernel_bytes; 0: no I/O */
	} identity;
	const struct monitor_remote *remotes; /* unordered */
	size_t nremotes;
	struct monitor_pairs pairs; /* of gangs (monitor_gang) */

	/* Cumulative: counters of ended threads that found no job ("jobs" in `drops`). */
	struct iocom_load lost;

	const struct monitor_drop *drops;
	size_t ndrops;
	const struct monitor_program *programs;
	size_t nprograms;
	uint64_t measured_ns; /* how long the statistics were on; the rate is runs / measured_ns */
	const struct monitor_degraded *degraded; /* the same in every reading */
	size_t ndegraded;
	struct {
		double per_s;	   /* events of all programs except the reading ones */
		double ns_each;	   /* mean time per event, of the last period with events; else 0 */
		double core_share; /* part of one core, with the reading programs */
	} events;		   /* events of the last period with statistics on */
	const struct monitor_map *maps;
	size_t nmaps;
	/*
	 * How certain the split of task bytes into explicit and implicit is. A page fault that
	 * comes as an exception leaves a certain sign. A fault without one (direct I/O to a
	 * mapping, swap-in by the kernel) is inferred from the pages of the request; so is the
	 * absence of a fault.
	 */
	struct {
		uint64_t task_bytes;	 /* all bytes that have a class */
		uint64_t inferred_bytes; /* bytes whose class is inferred */
		/* true: faults inside the kernel leave no sign on this kernel */
		bool no_kernel_faults;
		/* true: faults of direct I/O leave no sign, so they count as explicit */
		bool no_direct_faults;
	} classifier;
	/*
	 * How often a thread, or a connection, asked for a place in a table (`talks`, `streams`)
	 * that another one had. It then costs more to measure, but nothing is lost.
	 */
	struct {
		uint64_t talks, streams;
	} taken;
	uint64_t sweep_ns;    /* time this reading took */
	uint64_t user_cpu_ns; /* CPU of this process since counting began */

	/* What this kernel does not account to tasks: the members concerned stay 0. */
	bool no_task_io;  /* dirtied, cancelled, netfs (CONFIG_TASK_IO_ACCOUNTING) */
	bool no_run_wait; /* CONFIG_SCHED_INFO */
	bool no_io_wait;  /* sysctl kernel.task_delayacct is 0 */

	double run_queue; /* mean of the runnable tasks in scope, over all looks */
	uint32_t live_tasks;
	uint32_t io_tasks; /* processes in scope that did disk I/O since the last reading */
};

/* Returns the part of the classified bytes whose class is certain, 0..1; 1 if there are none. */
static inline double monitor_confidence(const struct monitor_sample *s)
{
	uint64_t all = s->classifier.task_bytes, inferred = s->classifier.inferred_bytes;

	if (inferred >= all) /* the sum shrank because a disk was removed */
		return all ? 0 : 1;
	return 1 - (double)inferred / (double)all;
}

/*
 * Loads and attaches the programs. Returns 0, or negative errno with the reason in ERR: -EPERM: not
 * root; -EOPNOTSUPP: the kernel is too old or has no BTF; -ENOENT: no such cgroup; -ENODEV: no such
 * disk; -ENOMEM.
 */
int monitor_open(struct monitor **monitor, const struct monitor_config *config,
		 struct iocom_err *err);
/*
 * Whether the node is at rest. If it is, the readings take what concerns the programs themselves
 * (`programs`, `events`, the drop "recursion") only around the periods in which their cost is
 * measured, one in ten, and count the entries of their tables less often. All else is read as
 * before.
 */
void monitor_rest(struct monitor *monitor, bool resting);
/*
 * The tasks in CGROUP_ID are a gang's (or no more): their connections are counted one by one, in
 * `pairs`. Returns 0 or negative errno with the reason in ERR.
 */
int monitor_gang(struct monitor *monitor, uint64_t cgroup_id, bool is, struct iocom_err *err);
/* Makes a full reading. SAMPLE points into the monitor. */
int monitor_sample(struct monitor *monitor, struct monitor_sample *sample, struct iocom_err *err);
/*
 * Looks at the run queue between readings, a few times per period, so that `run_queue` is a
 * mean.
 */
int monitor_look(struct monitor *monitor, struct iocom_err *err);
/*
 * Tells which hooks are in use and why others are not (monitor_hooks.h). Lives as long as
 * MONITOR.
 */
struct hooks;
const struct hooks *monitor_hooks(const struct monitor *monitor);
/* Detaches and frees; NULL is fine. Nothing stays pinned. */
void monitor_free(struct monitor *monitor);

#endif
