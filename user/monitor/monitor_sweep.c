/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Reads all live threads: with a walk along the kernel's list (walk.bpf.h) if the kernel has one
 * and there are not too many tasks for it, else with an iterator.
 */
#include "user/monitor/monitor_internal.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define WALK_PAUSE   20 /* sweeps and looks to do without the walk after one saw too little */
#define SWEEP_BUFFER ((size_t)64 * 1024)

typedef int (*each_fn)(struct monitor *monitor, const char *data, size_t size, size_t *used);

static int buffer_ready(struct monitor *monitor, struct iocom_err *err)
{
	if (!monitor->sweep_buffer)
		monitor->sweep_buffer = malloc(SWEEP_BUFFER);
	if (!monitor->sweep_buffer)
		return iocom_err_set(err, -ENOMEM, "out of memory for the sweep");
	return 0;
}

/* Runs an iterator program to its end and passes its output to EACH. */
static int run_iterator(struct monitor *monitor, struct bpf_link *link, each_fn each,
			struct iocom_err *err)
{
	size_t have = 0, used;
	int fd, rc = buffer_ready(monitor, err);
	ssize_t n;

	if (rc)
		return rc;
	fd = bpf_iter_create(bpf_link__fd(link));
	if (fd < 0)
		return iocom_err_set(err, -errno, "cannot start the sweep over all tasks: %s",
				     strerror(errno));
	while (!rc) {
		n = read(fd, monitor->sweep_buffer + have, SWEEP_BUFFER - have);
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			continue;
		if (n < 0)
			rc = iocom_err_set(err, -errno, "the sweep over all tasks failed: %s",
					   strerror(errno));
		if (n <= 0)
			break;
		have += (size_t)n;
		used = have;
		if (each)
			rc = each(monitor, monitor->sweep_buffer, have, &used);
		have -= used;
		memmove(monitor->sweep_buffer, monitor->sweep_buffer + used, have);
	}
	close(fd);
	return rc == -ENOMEM ? iocom_err_set(err, rc, "out of memory in the sweep") : rc;
}

/* Finds the parts of a run that its flags name. Returns the run's length. */
static size_t take_run(const char *data, const struct leader_record **leader,
		       const struct counters **counters)
{
	const struct run_record *run = (const void *)data;
	size_t length = sizeof(*run);

	*leader = NULL;
	*counters = NULL;
	if (run->flags & RUN_LEADER)
		*leader = (const void *)(data + length);
	if (run->flags & (RUN_LEADER | RUN_COUNTERS))
		length += sizeof(**leader);
	if (run->flags & RUN_COUNTERS) {
		*counters = (const void *)(data + length);
		length += sizeof(**counters);
	}
	return length;
}

/* Takes whole records; the rest waits for the next read. */
static int take_records(struct monitor *monitor, const char *data, size_t size, size_t *used)
{
	const struct leader_record *leader;
	const struct counters *counters;
	size_t at = 0, length;
	int rc;

	while (size - at >= sizeof(struct run_record)) {
		length = take_run(data + at, &leader, &counters);
		if (length > size - at)
			break;
		rc = fold_run(monitor->fold, (const void *)(data + at), leader, counters);
		if (rc)
			return rc;
		at += length;
	}
	*used = at;
	return 0;
}

static int iterate(struct monitor *monitor, struct iocom_err *err)
{
	static const char none[RUN_SIZE];
	__u32 zero = 0;

	/* A failed sweep may have left an unfinished run. */
	if (bpf_map_update_elem(bpf_map__fd(monitor->skel->maps.pending), &zero, none, BPF_ANY))
		return iocom_err_set(err, -errno, "cannot begin the sweep over all tasks: %s",
				     strerror(errno));
	return run_iterator(monitor, monitor->skel->links.sweep, take_records, err);
}

/* Returns false if there is no walk, or it did not see all tasks. */
static bool monitor_sweep_walk(struct monitor *monitor, const struct bpf_program *program)
{
	DECLARE_LIBBPF_OPTS(bpf_test_run_opts, opts);

	if (!monitor->runs)
		return false;
	if (monitor->no_walk) { /* there were too many tasks a moment ago */
		monitor->no_walk--;
		return false;
	}
	if (!bpf_prog_test_run_opts(bpf_program__fd(program), &opts) &&
	    !monitor->skel->bss->walk_short)
		return !monitor->skel->bss->walk_moved;
	monitor->no_walk = WALK_PAUSE;
	return false;
}

static int take_walk(struct monitor *monitor, struct iocom_err *err)
{
	const struct leader_record *leader;
	const struct counters *counters;
	__u32 n = monitor->skel->bss->walk_runs;

	for (__u32 i = 0; i < n && i < WALK_RUNS; i++) {
		const char *run = monitor->runs + i * RUN_SIZE;

		take_run(run, &leader, &counters);
		if (fold_run(monitor->fold, (const void *)run, leader, counters))
			return iocom_err_set(err, -ENOMEM, "out of memory in the sweep");
	}
	return 0;
}

static void name_reader(struct monitor *monitor)
{
	monitor->skel->bss->reader_tid = (__u32)syscall(SYS_gettid);
}

int monitor_sweep_open(struct monitor *monitor, struct iocom_err *err)
{
	struct iocom_bpf *skel = monitor->skel;
	void *runs;

	if (!bpf_program__autoload(skel->progs.walk) ||
	    !bpf_program__autoload(skel->progs.walk_look))
		return 0;
	runs = mmap(NULL, WALK_RUNS * RUN_SIZE, PROT_READ, MAP_SHARED, bpf_map__fd(skel->maps.runs),
		    0);
	if (runs == MAP_FAILED)
		return iocom_err_set(err, -errno, "cannot map the sweep's records: %s",
				     strerror(errno));
	monitor->runs = runs;
	return 0;
}

int monitor_sweep_baseline(struct monitor *monitor, struct iocom_err *err)
{
	int rc;

	monitor->skel->bss->sweep_mode = SWEEP_BASELINE;
	rc = run_iterator(monitor, monitor->skel->links.sweep, NULL, err);
	monitor->skel->bss->sweep_mode = SWEEP_READ;
	return rc;
}

int monitor_sweep_read(struct monitor *monitor, struct iocom_err *err)
{
	name_reader(monitor);
	if (monitor_sweep_walk(monitor, monitor->skel->progs.walk))
		return take_walk(monitor, err);
	return iterate(monitor, err);
}

int monitor_look(struct monitor *monitor, struct iocom_err *err)
{
	struct iocom_bpf__bss *bss = monitor->skel->bss;
	int rc;

	name_reader(monitor);
	bss->runnable = 0;
	if (!monitor_sweep_walk(monitor, monitor->skel->progs.walk_look)) {
		bss->runnable = 0;
		rc = run_iterator(monitor, monitor->skel->links.look, NULL, err);
		if (rc)
			return rc;
	}
	monitor->looks++;
	monitor->looks_sum += bss->runnable;
	return 0;
}

void monitor_sweep_close(struct monitor *monitor)
{
	if (monitor->runs)
		munmap((void *)monitor->runs, WALK_RUNS * RUN_SIZE);
	monitor->runs = NULL;
	free(monitor->sweep_buffer);
	monitor->sweep_buffer = NULL;
}
