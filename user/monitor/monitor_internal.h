/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What the files of the monitor share: monitor.c (open, read, free),
 * monitor_sweep.c (all tasks), monitor_load.c (the eBPF object), monitor_hooks.c
 * (what fits this kernel), monitor_disk.c (disks), monitor_fold.c (processes and
 * jobs), monitor_cost.c (what the programs cost), monitor_maps.c (what their tables
 * hold), monitor_net.c (TCP).
 */
#ifndef IOCOM_MONITOR_INTERNAL_H
#define IOCOM_MONITOR_INTERNAL_H

#include <linux/types.h>

#include "bpf/iocom.skel.h"
#include "user/monitor/monitor.h"
#include "user/monitor/monitor_clock.h"
#include "user/monitor/monitor_fold.h"
#include "user/monitor/monitor_hooks.h"
#include "user/monitor/monitor_net.h"
#include "user/kept_file.h"
#include "bpf/records.h"

#define MONITOR_PROGRAMS 56
#define MONITOR_DROPS	 (DROPS + 7)
#define MONITOR_MAPS	 40
#define MONITOR_READ_ALL 16 /* readings */

/* One disk that the programs saw. */
struct disk_entry {
	struct iocom_disk disk;
	__u32 device;	   /* the kernel's dev_t */
	__u32 place;	   /* place of its counters (disks.bpf.h) */
	__u64 kernel_base; /* bytes in the kernel's statistics when counting began */
	__u64 kernel_last; /* the same at the last reading */
	__u64 service2;	   /* the wrapping counter at the last reading */
	__u64 in_progress; /* requests in progress, by the kernel's statistics */
	__s64 lost;	   /* bytes queued but never completed, found when the disk was last idle */
	__u64 in_flight;   /* bytes */
	struct disk_value value;
	struct disk_value earlier; /* the value read just before the kernel's statistics */
	struct disk_value zero;	   /* counts of disks that had this number before */
	__u64 sequence;		   /* the kernel's number of the medium (diskseq) */
	__u64 queued;		   /* value at the last reading, to see whether anything happened */
	__u32 quiet;		   /* readings in which nothing happened */
	bool kernel_rebase;	   /* take the next line of the kernel's statistics as the base */
	bool replaced;		   /* another disk had this number */
};

struct monitor_disks {
	struct disk_entry *entries;
	size_t count, capacity;
	struct iocom_disk *reported;
	struct {
		__u32 device;
		__u64 bytes;
	} * bases;
	size_t nbases;
	struct kept_file statistics; /* of the kernel */
	char *text;		     /* what was read of them */
	size_t text_room;
	struct disk_value *by_cpu; /* room to read one disk, by CPU */
	size_t cpus;
	struct disk_value gone; /* unattributed bytes of removed disks */
	__u64 replaced;		/* number of removed disks */
};

/* The cost of the eBPF programs. The kernel's statistics are on in some periods only. */
struct monitor_cost {
	int stats_fd;  /* -1: the statistics are off */
	bool never;    /* never switch them on */
	unsigned done; /* periods */
	__u64 period_began_ns, measured_ns;
	struct monitor_runs {
		/* the runs of all programs; `events` has only those that count */
		__u64 runs, events;
		__u64 run_ns, event_ns;
	} runs;
	struct monitor_program programs[MONITOR_PROGRAMS];
	size_t nprograms;
	double events_per_s, ns_per_event, core_share; /* values of the last measured period */
	__u64 lost;				       /* events that no program took */
};

/* The tables of the eBPF programs. */
struct monitor_maps {
	struct monitor_map list[MONITOR_MAPS];
	size_t count;
	__u64 looked_s; /* CLOCK_BOOTTIME of the last look; 0: never */
};

/* Disk time by job, monitor_jobdisks.c. */
struct monitor_jobdisks;
/* Returns NULL if there is no memory. */
struct monitor_jobdisks *monitor_jobdisks_new(void);
void monitor_jobdisks_free(struct monitor_jobdisks *jobdisks);
/*
 * Call it after the disks were read: shares what they served since the last reading among the jobs
 * in FOLD. Returns 0 or negative errno with the reason in ERR.
 */
int monitor_jobdisks_read(struct monitor_jobdisks *jobdisks, struct iocom_bpf *skel,
			  const struct monitor_sample *sample, struct fold *fold,
			  struct iocom_err *err);

/*
 * Takes back FILLED, which the programs set after they put something into a table. Returns true if
 * the table must be read: also in some readings (the count READING) without the sign, which need
 * not be seen in the order of what it stands for on each processor.
 */
static inline bool monitor_filled(__u32 *filled, unsigned reading)
{
	return __atomic_exchange_n(filled, 0, __ATOMIC_SEQ_CST) || reading % MONITOR_READ_ALL == 0;
}

struct monitor {
	struct iocom_bpf *skel;
	struct fold *fold;
	struct monitor_disks disks;
	struct monitor_jobdisks *jobdisks;
	struct monitor_net net;
	char *sweep_buffer; /* for the iterator; NULL until it is needed */
	unsigned no_walk;   /* how many sweeps and looks still go without the walk */
	const char *runs;   /* the mapped `runs`; NULL: this kernel has no walk */
	struct process_key *late_keys;
	struct late_value *late_values;
	struct monitor_clock began, previous;
	__u64 gap_ns, cpu_since_ns;
	__u64 pruned_s;
	__u64 stalled_epochs;
	unsigned drains; /* attempts to empty the tables of an epoch */
	bool resting;
	__u64 looks, looks_sum;
	struct monitor_drop drops[MONITOR_DROPS];
	struct monitor_cost cost;
	struct monitor_maps maps;
	struct hooks hooks;
	struct monitor_degraded degraded[MONITOR_DEGRADED_MAX];
	size_t ndegraded;
};

/* What we tell the programs before loading. scope_id 0: all tasks. */
struct monitor_knobs {
	__u64 scope_id;
	__u32 scope_level;
	bool all_disks;
	__u32 ablate;			     /* enum ablate, for tests */
	unsigned remotes_max;		     /* 0: the default */
	const struct monitor_limits *limits; /* NULL: the defaults */
};

/*
 * The kernel's types for relocation, as a file that libbpf can open. PATH[0] == 0: libbpf finds
 * them itself.
 */
struct monitor_types {
	int fd; /* -1: none */
	char path[32];
};

/*
 * Decides which hooks fit this kernel. Returns 0; -EPERM: not root; -EOPNOTSUPP: no type
 * information, or a needed hook is missing.
 */
int monitor_load_probe(struct hooks *hooks, struct monitor_types *types, struct iocom_err *err);
void monitor_types_deinit(struct monitor_types *types);
/*
 * Opens and loads the programs that HOOKS names. An optional program that the kernel refuses is
 * left out and noted there. After a failure the sentence in ERR ends with libbpf's words.
 */
int monitor_load_open(struct iocom_bpf **skel, struct hooks *hooks,
		      const struct monitor_knobs *knobs, const struct monitor_types *types,
		      struct iocom_err *err);
/*
 * Attaches all loaded programs that are not attached. MONITOR_E_AGAIN: an optional one was
 * refused and noted in HOOKS; load again without it.
 */
#define MONITOR_E_AGAIN 1
int monitor_load_attach(struct iocom_bpf *skel, struct hooks *hooks, struct iocom_err *err);

/* Begins; the first period is measured unless NEVER. */
void monitor_cost_start(struct monitor_cost *cost, bool never);
/*
 * Ends a period; with RESTING it does without the programs' own numbers if this period was not
 * measured and the next one will not be. Returns the events lost because their program already ran
 * on that CPU, as far as read.
 */
__u64 monitor_cost_read(struct monitor_cost *cost, struct iocom_bpf *skel,
			struct monitor_sample *sample, bool resting);
void monitor_cost_stop(struct monitor_cost *cost);

/*
 * Reads all tables if it is time, which at rest comes less often. Call it before they are emptied.
 */
void monitor_maps_read(struct monitor_maps *maps, struct iocom_bpf *skel, __u64 now_s,
		       bool resting);

/* Finds out how this kernel lets us read all tasks, trying the cheapest way first. */
int monitor_sweep_open(struct monitor *monitor, struct iocom_err *err);
/* Sets the zero point of each task that is older than the monitor. */
int monitor_sweep_baseline(struct monitor *monitor, struct iocom_err *err);
/* Reads all live threads in scope into the fold. */
int monitor_sweep_read(struct monitor *monitor, struct iocom_err *err);
void monitor_sweep_close(struct monitor *monitor);

/* Finds the id of a cgroup2 directory, and its depth below its mount. */
int monitor_scope_find(const char *path, __u64 *id, __u32 *level, struct iocom_err *err);

/* Puts NAMES into the kernel's table before counting begins. */
int monitor_disks_scope(struct iocom_bpf *skel, const char *const *names, struct iocom_err *err);
/* Reads the kernel's statistics as the zero point. */
int monitor_disks_baseline(struct monitor_disks *disks, struct iocom_err *err);
int monitor_disks_read(struct monitor_disks *disks, struct iocom_bpf *skel,
		       struct monitor_sample *sample, struct iocom_err *err);
/* Remembers which medium ENTRY is now. */
void monitor_disk_begin(struct disk_entry *entry);
/*
 * Checks that ENTRY is still the same medium; COUNTED is what its number counted. If not, ENTRY
 * begins at 0 and this returns false: no row has what both disks did since the last reading.
 */
bool monitor_disk_same(struct monitor_disks *disks, struct disk_entry *entry,
		       const struct disk_value *counted);
/* Returns COUNTED without what other disks did under ENTRY's number. */
struct disk_value monitor_disk_since(const struct disk_entry *entry,
				     const struct disk_value *counted);
/* True for a new medium that did nothing yet. */
bool monitor_disk_hidden(const struct disk_entry *entry);
void monitor_disks_deinit(struct monitor_disks *disks);

#endif
