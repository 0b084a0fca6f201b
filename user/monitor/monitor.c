/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * One reading first starts a new epoch and takes what was folded since the last one; then it
 * sweeps the live threads; then it reads the disks. In this order a thread that folds in between
 * appears one reading late and is never counted twice (monitor_fold.h).
 */
#include "user/monitor/monitor_internal.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define DRAIN_BATCH    1024
#define EPOCH_WAIT_NS  200000000ULL
#define LEDGER_PRUNE_S 30
#define LEDGER_REST_S  120 /* between two prunings at rest */
#define LEDGER_STALE_S 60
#define LEDGER_BATCH   512
#define CLOCK_S(t)     ((t) / 1000000000ULL)

static __u64 process_cpu_ns(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return ((__u64)usage.ru_utime.tv_sec + (__u64)usage.ru_stime.tv_sec) * 1000000000ULL +
	       ((__u64)usage.ru_utime.tv_usec + (__u64)usage.ru_stime.tv_usec) * 1000ULL;
}

/* Starts a new epoch. Returns false if some program does not leave the old one. */
static bool turn_epoch(struct monitor *monitor)
{
	struct iocom_bpf__bss *bss = monitor->skel->bss;
	__u64 until = monitor_clock_ns(CLOCK_MONOTONIC) + EPOCH_WAIT_NS;

	__atomic_store_n(&bss->epoch, bss->epoch + 1, __ATOMIC_SEQ_CST);
	for (int cpu = 0; cpu < (int)(sizeof(bss->busy) / sizeof(bss->busy[0])); cpu++) {
		while (__atomic_load_n(&bss->busy[cpu].count, __ATOMIC_SEQ_CST)) {
			if (monitor_clock_ns(CLOCK_MONOTONIC) > until)
				return false;
			sched_yield();
		}
	}
	return true;
}

/* Empties MAP, which holds (late key, late value), or with JOBS (cgroup id, counters). */
static int drain_map(struct monitor *monitor, struct bpf_map *map, bool jobs, struct iocom_err *err)
{
	DECLARE_LIBBPF_OPTS(bpf_map_batch_opts, opts);
	__u32 cursor = 0, count;
	bool first = true, last = false;

	while (!last) {
		int rc;

		count = DRAIN_BATCH;
		rc = bpf_map_lookup_and_delete_batch(bpf_map__fd(map), first ? NULL : &cursor,
						     &cursor, monitor->late_keys,
						     monitor->late_values, &count, &opts);
		if (rc && errno != ENOENT)
			return iocom_err_set(err, -errno, "cannot read map %s: %s",
					     bpf_map__name(map), strerror(errno));
		last = rc != 0;
		first = false;
		for (__u32 i = 0; i < count; i++) {
			if (jobs)
				rc = fold_job(monitor->fold, ((__u64 *)monitor->late_keys)[i],
					      (struct counters *)monitor->late_values + i);
			else
				rc = fold_late(monitor->fold, &monitor->late_keys[i],
					       &monitor->late_values[i]);
			if (rc == -ENOMEM)
				return iocom_err_set(err, rc, "out of memory for processes");
		}
	}
	return 0;
}

static int drain_folded(struct monitor *monitor, struct iocom_err *err)
{
	struct iocom_bpf *skel = monitor->skel;
	bool odd = skel->bss->epoch & 1;
	int rc;

	monitor->drains++;

	if (!turn_epoch(monitor)) {
		/* Go back: the programs fill the old pair again, and the new one waits. */
		__atomic_store_n(&skel->bss->epoch, skel->bss->epoch - 1, __ATOMIC_SEQ_CST);
		monitor->stalled_epochs++;
		return 0;
	}
	if (!monitor_filled(&skel->bss->epoch_filled[odd], monitor->drains / 2))
		return 0;
	rc = drain_map(monitor, odd ? skel->maps.jobs_odd : skel->maps.jobs_even, true, err);
	if (!rc)
		rc = drain_map(monitor, odd ? skel->maps.late_odd : skel->maps.late_even, false,
			       err);
	return rc;
}

/*
 * Removes the entries of files that were dirtied and then deleted before writeback, at most one
 * batch of the table at a time, in the memory for the counters of ended threads.
 */
static void prune_ledger(struct monitor *monitor, __u64 now_s)
{
	DECLARE_LIBBPF_OPTS(bpf_map_batch_opts, opts);
	int fd = bpf_map__fd(monitor->skel->maps.ledger), rc = 0;
	const struct ledger_value *values = (const void *)monitor->late_values;
	const struct ledger_key *keys = (const void *)monitor->late_keys;
	__u32 cursor = 0, count;
	bool first = true;

	_Static_assert(LEDGER_BATCH * sizeof(*keys) <= DRAIN_BATCH * sizeof(*monitor->late_keys) &&
			       LEDGER_BATCH * sizeof(*values) <=
				       DRAIN_BATCH * sizeof(*monitor->late_values),
		       "a batch fits");
	if (now_s < monitor->pruned_s + (monitor->resting ? LEDGER_REST_S : LEDGER_PRUNE_S))
		return;
	monitor->pruned_s = now_s;
	while (!rc) {
		count = LEDGER_BATCH;
		rc = bpf_map_lookup_batch(fd, first ? NULL : &cursor, &cursor, monitor->late_keys,
					  monitor->late_values, &count, &opts);
		if (rc && errno != ENOENT) /* the next time will do */
			return;
		first = false;
		for (__u32 i = 0; i < count; i++)
			if (values[i].touched_s + LEDGER_STALE_S < now_s)
				bpf_map_delete_elem(fd, &keys[i]);
	}
}

static void read_drops(struct monitor *monitor, const struct fold_result *result, __u64 misses,
		       struct monitor_sample *sample)
{
	static const struct monitor_drop kernel[DROPS] = {
		[DROP_TASK_STORAGE] = {"task_storage",
				       "events were not counted because there was no memory for a "
				       "thread's counters",
				       0},
		[DROP_LATE] = {"late",
			       "an ended process's last counters are missing from its row "
			       "(its job has them)",
			       0},
		[DROP_JOBS] = {"jobs", "counters of ended threads are missing from their job", 0},
		[DROP_DISKS] = {"disks", "a disk was not counted: too many disks", 0},
		[DROP_LEDGER] = {"ledger",
				 "a file's writer was not remembered: its writeback is "
				 "unattributed",
				 0},
		[DROP_COWRITERS] = {"cowriters",
				    "a page of a file's fifth concurrent writer went "
				    "to the fourth",
				    0},
		[DROP_SOCKETS] = {"sockets", "bytes received on a socket were not counted", 0},
		[DROP_JOB_DISKS] = {"job_disks",
				    "a job's part of a disk's service time is too small", 0},
		[DROP_REMOTES] = {"remotes",
				  "a socket's bytes went to its job's row of other "
				  "remotes: too many addresses",
				  0},
		[DROP_OTHER_REMOTES] = {"other_remotes",
					"a send or receive is missing from its job's rows by "
					"remote address (the job has it)",
					0},
		[DROP_PAIRS] = {"pairs",
				"a gang's send or receive is missing from its connections: too "
				"many of them (the job has it)",
				0},
	};
	struct monitor_drop *out = monitor->drops;
	size_t n = 0;

	for (; n < DROPS; n++) {
		out[n] = kernel[n];
		out[n].count = monitor->skel->bss->drops[n];
	}
	out[n++] = (struct monitor_drop){
		"recursion",
		"events were not counted because their program already ran on "
		"that CPU",
		misses};
	out[n++] =
		(struct monitor_drop){"epochs",
				      "a reading could not take the ended threads' counters; the "
				      "next reading takes them",
				      monitor->stalled_epochs};
	out[n++] = (struct monitor_drop){"exited",
					 "ended processes were forgotten early: late "
					 "writeback gives them a nameless row",
					 result->evicted_processes};
	out[n++] = (struct monitor_drop){"ended_jobs",
					 "totals of the longest idle cgroups were "
					 "forgotten",
					 result->evicted_jobs};
	out[n++] = (struct monitor_drop){"idle_remotes",
					 "rows of other remotes of the longest idle jobs were "
					 "forgotten",
					 remotes_forgotten(monitor->net.remotes)};
	out[n++] =
		(struct monitor_drop){"replaced",
				      "another disk got a disk's number: no row has what both did "
				      "between the two readings",
				      monitor->disks.replaced};
	sample->drops = out;
	sample->ndrops = n;
}

static int monitor_start(struct monitor *monitor, const struct monitor_config *config,
			 struct iocom_err *err)
{
	struct iocom_bpf *skel = monitor->skel;
	int rc;

	rc = monitor_disks_scope(skel, config->scope_disks, err);
	if (!rc)
		rc = monitor_net_init(&monitor->net, skel, config->remotes_idle_ms, err);
	if (rc)
		return rc;
	monitor_cost_start(&monitor->cost, config->no_program_cost);
	monitor->cpu_since_ns = process_cpu_ns();
	monitor_clock_read(&monitor->began);
	monitor->previous = monitor->began;
	if (config->counted_until_ns && config->counted_until_ns < monitor->began.boot_ns)
		monitor->gap_ns = monitor->began.boot_ns - config->counted_until_ns;
	skel->bss->now_s = (__u32)CLOCK_S(monitor->began.boot_ns);
	skel->bss->began_ns = monitor->began.boot_ns;
	/* Take the disks' zero point close to the first counted bio. */
	skel->links.bio_queue = bpf_program__attach(skel->progs.bio_queue);
	rc = monitor_disks_baseline(&monitor->disks, err);
	if (!rc)
		rc = monitor_load_attach(skel, &monitor->hooks, err);
	if (!rc)
		rc = monitor_net_baseline(skel, err);
	if (rc)
		return rc;
	return monitor_sweep_baseline(monitor, err);
}

static void monitor_unload(struct monitor *monitor)
{
	monitor_net_deinit(&monitor->net);
	monitor_sweep_close(monitor);
	iocom_bpf__destroy(monitor->skel);
	monitor->skel = NULL;
	monitor_cost_stop(&monitor->cost);
	monitor_disks_deinit(&monitor->disks);
	memset(&monitor->disks, 0, sizeof(monitor->disks));
}

static int monitor_load(struct monitor *monitor, const struct monitor_config *config,
			const struct monitor_knobs *knobs, struct iocom_err *err)
{
	struct monitor_types types;
	int rc = monitor_load_probe(&monitor->hooks, &types, err);

	if (rc)
		return rc;
	if (config->no_socket_tracepoints) {
		hooks_refuse(&monitor->hooks, "send_length", "left out on request");
		hooks_refuse(&monitor->hooks, "recv_length", "left out on request");
	}
	/* This ends, because each round leaves out one more program. */
	do {
		monitor_unload(monitor);
		rc = monitor_load_open(&monitor->skel, &monitor->hooks, knobs, &types, err);
		if (!rc)
			rc = monitor_sweep_open(monitor, err);
		if (!rc)
			rc = monitor_start(monitor, config, err);
	} while (rc == MONITOR_E_AGAIN);
	monitor_types_deinit(&types);
	return rc;
}

/* Adds the columns that need no hook but a kernel option. */
static void add_accounting_degraded(struct monitor *monitor)
{
	static const char no_io[] = "the kernel was built without CONFIG_TASK_IO_ACCOUNTING";
	static const struct {
		__u32 kind;
		struct monitor_degraded what;
	} list[] = {
		{ACCOUNTING_IO, {"dirtied_bytes", "task I/O accounting", no_io, true}},
		{ACCOUNTING_IO, {"cancelled_bytes", "task I/O accounting", no_io, true}},
		{ACCOUNTING_IO, {"netfs_read_bytes", "task I/O accounting", no_io, true}},
		{ACCOUNTING_IO, {"netfs_write_bytes", "task I/O accounting", no_io, true}},
		{ACCOUNTING_RUN_WAIT,
		 {"run_wait_ms", "scheduler statistics",
		  "the kernel was built without CONFIG_SCHED_INFO", true}},
	};

	for (size_t i = 0; i < sizeof(list) / sizeof(list[0]); i++)
		if (!(monitor->skel->bss->accounting & list[i].kind) &&
		    monitor->ndegraded < MONITOR_DEGRADED_MAX)
			monitor->degraded[monitor->ndegraded++] = list[i].what;
}

int monitor_open(struct monitor **out, const struct monitor_config *config, struct iocom_err *err)
{
	bool scoped = config->scope_cgroup != NULL;
	struct monitor_knobs knobs = {.all_disks = !scoped && !config->scope_disks,
				      .ablate = config->ablate,
				      .remotes_max = config->remotes_max,
				      .limits = &config->limits};
	struct monitor *monitor;
	int rc;

	*out = NULL;
	if (scoped) {
		rc = monitor_scope_find(config->scope_cgroup, &knobs.scope_id, &knobs.scope_level,
					err);
		if (rc)
			return rc;
	}
	monitor = calloc(1, sizeof(*monitor));
	if (!monitor)
		return iocom_err_set(err, -ENOMEM, "out of memory for the monitor");
	monitor->cost.stats_fd = -1;
	monitor->fold = fold_new(config->limits.exited, config->limits.ended_jobs);
	monitor->jobdisks = monitor_jobdisks_new();
	monitor->late_keys = malloc(DRAIN_BATCH * sizeof(*monitor->late_keys));
	monitor->late_values = malloc(DRAIN_BATCH * sizeof(*monitor->late_values));
	if (!monitor->fold || !monitor->jobdisks || !monitor->late_keys || !monitor->late_values)
		rc = iocom_err_set(err, -ENOMEM, "out of memory for the monitor");
	else
		rc = monitor_load(monitor, config, &knobs, err);
	if (rc) {
		monitor_free(monitor);
		return rc;
	}
	monitor->ndegraded =
		hooks_degraded(&monitor->hooks, monitor->degraded, MONITOR_DEGRADED_MAX);
	add_accounting_degraded(monitor);
	*out = monitor;
	return 0;
}

const struct hooks *monitor_hooks(const struct monitor *monitor)
{
	return &monitor->hooks;
}

static void take_accounting(const struct monitor *monitor, struct monitor_sample *sample)
{
	__u32 kinds = monitor->skel->bss->accounting;

	sample->no_task_io = !(kinds & ACCOUNTING_IO);
	sample->no_run_wait = !(kinds & ACCOUNTING_RUN_WAIT);
	sample->no_io_wait = !(kinds & ACCOUNTING_IO_WAIT);
}

static void monitor_take_time(struct monitor *monitor, struct monitor_sample *sample)
{
	struct monitor_clock now;

	monitor_clock_read(&now);
	sample->time_ns = now.real_ns;
	sample->boot_ns = now.boot_ns;
	sample->since_ns = monitor_clock_date(&monitor->began, &now);
	sample->elapsed_ns = monitor_clock_elapsed(&monitor->previous, &now);
	sample->suspended_ns = monitor_clock_suspended(&monitor->previous, &now);
	sample->gap_ns = monitor->gap_ns;
	monitor->previous = now;
}

void monitor_rest(struct monitor *monitor, bool resting)
{
	monitor->resting = resting;
}

int monitor_gang(struct monitor *monitor, uint64_t cgroup_id, bool is, struct iocom_err *err)
{
	return monitor_net_gang(&monitor->net, monitor->skel, cgroup_id, is, err);
}

int monitor_sample(struct monitor *monitor, struct monitor_sample *sample, struct iocom_err *err)
{
	__u64 began = monitor_clock_ns(CLOCK_MONOTONIC),
	      now_s = CLOCK_S(monitor_clock_ns(CLOCK_BOOTTIME)), misses;
	struct fold_result result;
	int rc;

	memset(sample, 0, sizeof(*sample));
	monitor->skel->bss->now_s = (__u32)now_s;
	/* Once a reading every thread looks up its cgroup, even if no move was reported. */
	__atomic_fetch_add(&monitor->skel->bss->moves, 1, __ATOMIC_RELAXED);
	fold_begin(monitor->fold, now_s);
	monitor_maps_read(&monitor->maps, monitor->skel, now_s, monitor->resting);
	rc = drain_folded(monitor, err);
	if (!rc)
		rc = monitor_sweep_read(monitor, err);
	if (!rc)
		rc = monitor_disks_read(&monitor->disks, monitor->skel, sample, err);
	if (!rc)
		rc = monitor_jobdisks_read(monitor->jobdisks, monitor->skel, sample, monitor->fold,
					   err);
	if (!rc)
		rc = monitor_net_read(&monitor->net, monitor_clock_ns(CLOCK_BOOTTIME), sample, err);
	if (!rc && fold_end(monitor->fold, &result))
		rc = iocom_err_set(err, -ENOMEM, "out of memory for the sample");
	if (rc)
		return rc;
	prune_ledger(monitor, now_s);
	misses = monitor_cost_read(&monitor->cost, monitor->skel, sample, monitor->resting);
	sample->maps = monitor->maps.list;
	sample->nmaps = monitor->maps.count;
	read_drops(monitor, &result, misses, sample);
	sample->degraded = monitor->degraded;
	sample->ndegraded = monitor->ndegraded;
	memcpy(&sample->lost, &monitor->skel->bss->lost, sizeof(sample->lost));
	fold_at_least_zero(&sample->lost);
	sample->tasks = result.tasks;
	sample->ntasks = result.ntasks;
	sample->jobs = result.jobs;
	sample->njobs = result.njobs;
	take_accounting(monitor, sample);
	sample->live_tasks = result.live_tasks;
	sample->io_tasks = result.io_tasks;
	sample->run_queue =
		(double)(monitor->looks_sum + result.runnable) / (double)(monitor->looks + 1);
	monitor->looks = monitor->looks_sum = 0;
	monitor_take_time(monitor, sample);
	sample->user_cpu_ns = process_cpu_ns() - monitor->cpu_since_ns;
	sample->sweep_ns = monitor_clock_ns(CLOCK_MONOTONIC) - began;
	return 0;
}

void monitor_free(struct monitor *monitor)
{
	int saved = errno;

	if (!monitor)
		return;
	monitor_unload(monitor);
	fold_free(monitor->fold);
	monitor_jobdisks_free(monitor->jobdisks);
	free(monitor->late_keys);
	free(monitor->late_values);
	free(monitor);
	errno = saved;
}
