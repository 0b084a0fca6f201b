/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Folds the kernel side's counters into processes and jobs. Pure: no kernel, no clock. Between
 * fold_begin and fold_end the caller passes first the folded parts (jobs, late), then the live
 * threads: a thread that folds in between is missing from this reading and comes with the next;
 * nothing is counted twice.
 */
#ifndef IOCOM_MONITOR_FOLD_H
#define IOCOM_MONITOR_FOLD_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "iocom/load.h"
#include "bpf/records.h"

/* How long (for late writeback), and how many, ended processes are remembered. */
#define FOLD_EXITED_MAX 8192
#define FOLD_EXITED_S	600
#define FOLD_JOBS_MAX	16384
/* We give up a process that neither ran nor reported its end for this many readings. */
#define FOLD_MISSING_MAX 5

struct fold;

/* The result of one reading. The fold owns the arrays; they are valid until fold_begin. */
struct fold_result {
	const struct iocom_task *tasks;
	size_t ntasks;
	const struct iocom_job_load *jobs;
	size_t njobs;
	uint32_t live_tasks;
	uint32_t io_tasks;
	uint32_t runnable;
	uint64_t evicted_processes; /* cumulative: ended processes forgotten for lack of room */
	uint64_t evicted_jobs;
};

/*
 * Remembers EXITED_MAX ended processes and JOBS_MAX cgroups; 0: FOLD_EXITED_MAX, FOLD_JOBS_MAX.
 * Returns NULL if there is no memory.
 */
struct fold *fold_new(uint32_t exited_max, uint32_t jobs_max);
void fold_free(struct fold *fold);

/* NOW_S is in seconds, of any clock that never runs back. */
void fold_begin(struct fold *fold, uint64_t now_s);
/* These return 0 or -ENOMEM. */
int fold_job(struct fold *fold, uint64_t cgroup_id, const struct counters *what);
int fold_late(struct fold *fold, const struct process_key *key, const struct late_value *value);
/* Adds to the job's disk time. */
int fold_disk_time(struct fold *fold, uint64_t cgroup_id, const struct iocom_disk_time *time);
/* LEADER and COUNTERS may be NULL. */
int fold_run(struct fold *fold, const struct run_record *run, const struct leader_record *leader,
	     const struct counters *counters);
int fold_end(struct fold *fold, struct fold_result *result);
/*
 * Makes negative sums 0. Differences may wrap: a thread that folds while it is read may show
 * less than nothing, and a correction may come before the value that it corrects.
 */
void fold_at_least_zero(struct iocom_load *load);

#endif
