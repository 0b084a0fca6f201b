/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The cost of the eBPF programs. The kernel's statistics take two clock readings per event, more
 * than some of the programs, so we switch them on in one period of ten, beginning with the
 * first. If an administrator has them always on (sysctl kernel.bpf_stats_enabled), runs are
 * counted without us, and that time counts.
 */
#include "user/monitor/monitor_internal.h"

#include <bpf/bpf.h>
#include <string.h>
#include <unistd.h>

#define MEASURED_ONE_OF 10

void monitor_cost_start(struct monitor_cost *cost, bool never)
{
	cost->never = never;
	cost->stats_fd = never ? -1 : bpf_enable_stats(BPF_STATS_RUN_TIME);
	cost->period_began_ns = monitor_clock_ns(CLOCK_BOOTTIME);
}

void monitor_cost_stop(struct monitor_cost *cost)
{
	if (cost->stats_fd >= 0)
		close(cost->stats_fd);
	cost->stats_fd = -1;
}

static bool reads(const struct bpf_program *program)
{
	return bpf_program__expected_attach_type(program) == BPF_TRACE_ITER;
}

/* Returns true if PROGRAM is an understudy: it runs for the events of another program. */
static bool is_understudy(const struct bpf_program *program)
{
	char name[64];

	return hooks_understudy(bpf_program__name(program), name, sizeof(name));
}

/* Returns the number of all runs since the start, and into MISSES that of all skipped events. */
static struct monitor_runs read_programs(struct monitor_cost *cost, struct iocom_bpf *skel,
					 __u64 *misses)
{
	struct bpf_object_skeleton *skeleton = skel->skeleton;
	struct monitor_runs sum = {0};
	size_t n = 0;

	*misses = 0;
	for (int i = 0; i < skeleton->prog_cnt && n < MONITOR_PROGRAMS; i++) {
		struct bpf_program *program = *skeleton->progs[i].prog;
		struct bpf_prog_info info = {0};
		__u32 length = sizeof(info);
		struct monitor_program *out = &cost->programs[n];

		if (bpf_program__fd(program) < 0 ||
		    bpf_obj_get_info_by_fd(bpf_program__fd(program), &info, &length))
			continue;
		strncpy(out->name, bpf_program__name(program), sizeof(out->name) - 1);
		out->runs = info.run_cnt;
		out->run_ns = info.run_time_ns;
		/* An event that only the understudy missed is not lost. */
		if (!is_understudy(program))
			*misses += info.recursion_misses;
		sum.runs += info.run_cnt;
		sum.run_ns += info.run_time_ns;
		if (!reads(program) && !is_understudy(program))
			sum.events += info.run_cnt;
		sum.event_ns += reads(program) ? 0 : info.run_time_ns;
		n++;
	}
	cost->nprograms = n;
	return sum;
}

/* Computes the costs from a measured period of NS. */
static void monitor_cost_judge(struct monitor_cost *cost, const struct monitor_runs *runs, __u64 ns)
{
	__u64 events = runs->events - cost->runs.events;

	if (!ns)
		return;
	cost->measured_ns += ns;
	cost->events_per_s = (double)events * 1e9 / (double)ns;
	if (events) /* a short period without events says nothing about the time of one */
		cost->ns_per_event =
			(double)(runs->event_ns - cost->runs.event_ns) / (double)events;
	cost->core_share = (double)(runs->run_ns - cost->runs.run_ns) / (double)ns;
}

/*
 * Notes how many of MISSES no understudy took. It may have taken one since MISSES was read, so the
 * number waits then, but never falls.
 */
static void monitor_cost_note_lost(struct monitor_cost *cost, __u64 misses, __u64 stood_in)
{
	if (misses > stood_in && misses - stood_in > cost->lost)
		cost->lost = misses - stood_in;
}

static void read_classifier(struct iocom_bpf *skel, struct monitor_sample *sample)
{
	sample->classifier.inferred_bytes = skel->bss->inferred_bytes;
	for (size_t i = 0; i < sample->ndisks; i++)
		sample->classifier.task_bytes += sample->disks[i].task_bytes;
	sample->classifier.no_kernel_faults = bpf_program__fd(skel->progs.fault_kernel) < 0;
	sample->classifier.no_direct_faults = bpf_program__fd(skel->progs.filemap_fault) < 0;
}

/* Ends a period whose numbers are read, and begins the next one. */
static void monitor_cost_turn(struct monitor_cost *cost, struct iocom_bpf *skel, bool measure_next)
{
	__u64 now = monitor_clock_ns(CLOCK_BOOTTIME), misses;
	struct monitor_runs runs = read_programs(cost, skel, &misses);

	monitor_cost_note_lost(cost, misses, *(volatile __u64 *)&skel->bss->stood_in);
	if (cost->stats_fd >= 0 || runs.runs != cost->runs.runs)
		monitor_cost_judge(cost, &runs, now - cost->period_began_ns);
	cost->runs = runs;
	cost->period_began_ns = now;
	monitor_cost_stop(cost);
	if (measure_next)
		cost->stats_fd = bpf_enable_stats(BPF_STATS_RUN_TIME);
}

__u64 monitor_cost_read(struct monitor_cost *cost, struct iocom_bpf *skel,
			struct monitor_sample *sample, bool resting)
{
	bool measure_next = ++cost->done % MEASURED_ONE_OF == 0 && !cost->never;

	if (!resting || cost->stats_fd >= 0 || measure_next)
		monitor_cost_turn(cost, skel, measure_next);
	sample->programs = cost->programs;
	sample->nprograms = cost->nprograms;
	sample->measured_ns = cost->measured_ns;
	sample->events.per_s = cost->events_per_s;
	sample->events.ns_each = cost->ns_per_event;
	sample->events.core_share = cost->core_share;
	sample->taken.talks = skel->bss->talks_taken;
	sample->taken.streams = skel->bss->streams_taken;
	read_classifier(skel, sample);
	return cost->lost;
}
