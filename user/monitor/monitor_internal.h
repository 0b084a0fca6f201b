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
#include "bpf/records.h"

#define MONITOR_PROGRAMS 40
#define MONITOR_DROPS	 (DROPS + 7)
#define MONITOR_MAPS	 40

/* One disk that was seen. */
struct disk_entry {
	struct iocom_disk disk;
	__u32 device;	   /* the kernel's dev_t */
	__u32 place;	   /* where its numbers are (disks.bpf.h) */
	__u64 kernel_base; /* bytes in its statistics when counting began */
	__u64 kernel_last; /* and at the last reading */
	__u64 service2;	   /* the wrapping counter at the last reading */
	__u64 in_progress; /* requests, by the kernel's statistics */
	__s64 lost;	   /* queued but never completed, as seen when the disk was last idle */
	__u64 in_flight;   /* bytes */
	struct disk_value value;
	struct disk_value earlier; /* the same, read before the kernel's statistics */
	struct disk_value zero;	   /* counted for disks that had this number before */
	__u64 sequence;		   /* the kernel's number of the medium */
	__u64 queued;		   /* at the last reading: whether anything happened */
	__u32 quiet;		   /* readings without anything */
	bool kernel_rebase;	   /* the kernel's statistics begin anew with the next line */
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
	struct disk_value *by_cpu; /* one disk's, while it is read */
	size_t cpus;
	struct disk_value gone; /* unattributed bytes of disks that went */
	__u64 replaced;		/* disks that went */
};

/* What the eBPF programs cost; the kernel's statistics are on in some periods only. */
struct monitor_cost {
	int stats_fd;  /* -1: off */
	bool never;    /* leave them off */
	unsigned done; /* periods */
	__u64 period_began_ns, measured_ns;
	struct monitor_runs {
		__u64 runs, events; /* of all programs together; events: of those that count */
		__u64 run_ns, event_ns;
	} runs;
	struct monitor_program programs[MONITOR_PROGRAMS];
	double events_per_s, ns_per_event, core_share; /* of the last measured period */
};

/* The tables of the eBPF programs. */
struct monitor_maps {
	struct monitor_map list[MONITOR_MAPS];
	size_t count;
	__u64 looked_s; /* CLOCK_BOOTTIME; 0: never */
};

/* Disk time by job, monitor_jobdisks.c. */
struct monitor_jobdisks;
/* NULL: out of memory. */
struct monitor_jobdisks *monitor_jobdisks_new(void);
void monitor_jobdisks_free(struct monitor_jobdisks *jobdisks);
/*
 * After the disks were read: shares what they served since the last reading among
 * the jobs in FOLD.  0 or negative errno with the sentence.
 */
int monitor_jobdisks_read(struct monitor_jobdisks *jobdisks, struct iocom_bpf *skel,
			  const struct monitor_sample *sample, struct fold *fold,
			  struct iocom_err *err);

struct monitor {
	struct iocom_bpf *skel;
	struct fold *fold;
	struct monitor_disks disks;
	struct monitor_jobdisks *jobdisks;
	struct monitor_net net;
	char *sweep_buffer; /* for the iterator; NULL until it is needed */
	unsigned no_walk;   /* so many sweeps and looks do without */
	const char *runs;   /* the map `runs`; NULL: this kernel has no walk */
	struct process_key *late_keys;
	struct late_value *late_values;
	struct monitor_clock began, previous;
	__u64 gap_ns, cpu_since_ns;
	__u64 pruned_s;
	__u64 stalled_epochs;
	__u64 looks, looks_sum;
	struct monitor_drop drops[MONITOR_DROPS];
	struct monitor_cost cost;
	struct monitor_maps maps;
	struct hooks hooks;
	struct monitor_degraded degraded[MONITOR_DEGRADED_MAX];
	size_t ndegraded;
};

/* What the programs are told before they are loaded.  scope_id 0: all tasks. */
struct monitor_knobs {
	__u64 scope_id;
	__u32 scope_level;
	bool all_disks;
	__u32 ablate;			     /* enum ablate, of tests */
	unsigned remotes_max;		     /* 0: as many as usual */
	const struct monitor_limits *limits; /* NULL: as usual */
};

/*
 * The kernel's types for relocation, as a file that libbpf can open; PATH[0] == 0
 * where it shall look itself.
 */
struct monitor_types {
	int fd; /* -1: none */
	char path[32];
};

/*
 * Decides what fits this kernel.  0; -EPERM not root; -EOPNOTSUPP no type information,
 * or a needed hook is not there.
 */
int monitor_load_probe(struct hooks *hooks, struct monitor_types *types, struct iocom_err *err);
void monitor_types_deinit(struct monitor_types *types);
/*
 * Opens and loads what HOOKS name; an optional program that the kernel refuses is
 * left out and noted there.  The sentence in ERR ends with libbpf's own last words
 * where it failed.
 */
int monitor_load_open(struct iocom_bpf **skel, struct hooks *hooks,
		      const struct monitor_knobs *knobs, const struct monitor_types *types,
		      struct iocom_err *err);
/*
 * Attaches all programs that were loaded and are not attached.  MONITOR_E_AGAIN: an
 * optional one was refused and noted in HOOKS; load again without it.
 */
#define MONITOR_E_AGAIN 1
int monitor_load_attach(struct iocom_bpf *skel, struct hooks *hooks, struct iocom_err *err);

/* The first period is measured unless NEVER. */
void monitor_cost_start(struct monitor_cost *cost, bool never);
/* Ends a period; MISSES: events lost because their program ran on that CPU already. */
void monitor_cost_read(struct monitor_cost *cost, struct iocom_bpf *skel,
		       struct monitor_sample *sample, __u64 *misses);
void monitor_cost_stop(struct monitor_cost *cost);

/* Looks at all tables, if it is time to; before they are emptied. */
void monitor_maps_read(struct monitor_maps *maps, struct iocom_bpf *skel, __u64 now_s);

/* Finds out how this kernel lets all tasks be read, cheapest first. */
int monitor_sweep_open(struct monitor *monitor, struct iocom_err *err);
/* Gives each task that was there before us its zero point. */
int monitor_sweep_baseline(struct monitor *monitor, struct iocom_err *err);
/* Reads all live threads in scope into the fold. */
int monitor_sweep_read(struct monitor *monitor, struct iocom_err *err);
void monitor_sweep_close(struct monitor *monitor);

/* Finds the id and the depth below its mount of a cgroup2 directory. */
int monitor_scope_find(const char *path, __u64 *id, __u32 *level, struct iocom_err *err);

/* Enters NAMES into the kernel's table, before counting begins. */
int monitor_disks_scope(struct iocom_bpf *skel, const char *const *names, struct iocom_err *err);
/* Reads the kernel's statistics as the zero point. */
int monitor_disks_baseline(struct monitor_disks *disks, struct iocom_err *err);
int monitor_disks_read(struct monitor_disks *disks, struct iocom_bpf *skel,
		       struct monitor_sample *sample, struct iocom_err *err);
/* Remembers which medium ENTRY is. */
void monitor_disk_begin(struct disk_entry *entry);
/*
 * Asks whether ENTRY is still the medium it was, with what was COUNTED under its
 * number; if not, it begins at 0.  False: so it is, and what both did since the last
 * reading is in no row.
 */
bool monitor_disk_same(struct monitor_disks *disks, struct disk_entry *entry,
		       const struct disk_value *counted);
/* COUNTED without what other disks did under ENTRY's number. */
struct disk_value monitor_disk_since(const struct disk_entry *entry,
				     const struct disk_value *counted);
/* A new medium that did nothing yet. */
bool monitor_disk_hidden(const struct disk_entry *entry);
void monitor_disks_deinit(struct monitor_disks *disks);

#endif
