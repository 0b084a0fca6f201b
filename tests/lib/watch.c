/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
#include "tests/lib/watch.h"

#include <bpf/btf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#define READINGS_MAX 5

/* Cuts a release to its numbers: "6.12.57-amd64" -> "6.12.57". */
static const char *kernel(char *out, size_t size)
{
	struct utsname names;
	size_t length;

	if (uname(&names))
		return "?";
	length = strspn(names.release, "0123456789.");
	snprintf(out, size, "%.*s", (int)length, names.release);
	return out;
}

static void row(const char *name, const char *what, const char *rest)
{
	static int rows; /* rows that this program printed */
	char release[32];

	if (!rows++)
		printf("# |%-30s|%-24s|%13s|%13s|%10s|%s\n", "case", "quantity", "truth",
		       "measured", "error", "kernel");
	printf("# |%-30s|%-24s|%s|%s\n", name, what, rest, kernel(release, sizeof(release)));
	fflush(stdout);
}

static void compare(const char *name, const char *what, double truth, double measured, double slack)
{
	double error = truth != 0 ? (measured - truth) / truth * 100 : measured - truth;
	char rest[64];

	snprintf(rest, sizeof(rest), "%13.0f|%13.0f|%9.3f%s", truth, measured, error,
		 truth != 0 ? "%" : " ");
	row(name, what, rest);
	if (measured - truth > slack || truth - measured > slack)
		fail_msg("%s: %s is %.0f, should be %.0f", name, what, measured, truth);
}

void watch_compare(const char *name, const char *what, double truth, double measured,
		   double tolerance)
{
	compare(name, what, truth, measured, truth != 0 ? truth * tolerance : tolerance);
}

void watch_compare_within(const char *name, const char *what, double truth, double measured,
			  double slack)
{
	compare(name, what, truth, measured, slack);
}

void watch_compare_lost(const char *name, const char *what, double truth, double measured,
			double lost)
{
	compare(name, what, truth, measured, lost);
	if (measured > truth)
		fail_msg("%s: %s is %.0f, more than the truth, %.0f", name, what, measured, truth);
}

uint64_t watch_drop(const struct watch *watch, const char *name)
{
	for (size_t i = 0; i < watch->sample.ndrops; i++)
		if (!strcmp(watch->sample.drops[i].name, name))
			return watch->sample.drops[i].count;
	fail_msg("no drop named %s", name);
	return 0;
}

double watch_missed(const struct watch *watch)
{
	return (double)(watch_drop(watch, "recursion") + watch_drop(watch, "task_storage"));
}

void watch_degraded(const char *name, const char *what, const char *why)
{
	char rest[128];

	snprintf(rest, sizeof(rest), "degraded: %s", why);
	row(name, what, rest);
}

void watch_rig(struct watch *watch, unsigned megabytes)
{
	memset(watch, 0, sizeof(*watch));
	if (rig_up(&watch->rig, megabytes)) {
		printf("1..0 # SKIP %s\n", watch->rig.why);
		exit(0);
	}
}

void watch_open(struct watch *watch, const struct monitor_config *config)
{
	const char *ablate = getenv("IOCOM_ABLATE");
	struct monitor_config used = {0};
	struct iocom_err err = {""};

	if (config)
		used = *config;
	/*
	 * The switch for statistics patches the kernel's code, and an emulator of several
	 * processors may run into a breakpoint that is gone again: then the machine panics.
	 */
	if (watch_emulated() && !watch->statistics)
		used.no_program_cost = true;
	if (ablate)
		used.ablate |= (uint32_t)strtoul(ablate, NULL, 0);
	if (monitor_open(&watch->monitor, &used, &err) ||
	    monitor_sample(watch->monitor, &watch->sample, &err))
		fail_msg("%s", err.text);
}

void watch_close(struct watch *watch)
{
	monitor_free(watch->monitor);
	watch->monitor = NULL;
	rig_down(&watch->rig);
}

int watch_down(void **state)
{
	watch_close(*state);
	free(*state);
	return 0;
}

/* Returns how many readings could not take the ended threads' counters. */
static uint64_t stalled(const struct watch *watch)
{
	/* 0: there was no reading yet */
	return watch->sample.ndrops ? watch_drop(watch, "epochs") : 0;
}

void watch_sample(struct watch *watch)
{
	struct iocom_err err = {""};
	uint64_t before;

	for (int i = 0; i < READINGS_MAX; i++) {
		before = stalled(watch);
		usleep(WATCH_SETTLE_US);
		if (monitor_sample(watch->monitor, &watch->sample, &err))
			fail_msg("monitor_sample: %s", err.text);
		if (stalled(watch) == before)
			/*
			 * or a program was off its CPU too long, so that the next reading has the
			 * event
			 */
			return;
	}
}

const struct iocom_task *watch_task(const struct watch *watch, pid_t pid)
{
	const struct iocom_task *found = NULL;

	for (size_t i = 0; i < watch->sample.ntasks; i++)
		if (watch->sample.tasks[i].pid == pid &&
		    (!found || found->start_ns < watch->sample.tasks[i].start_ns))
			found = &watch->sample.tasks[i];
	return found;
}

bool watch_known(const struct watch *watch, const char *column)
{
	for (size_t i = 0; i < watch->sample.ndegraded; i++)
		if (watch->sample.degraded[i].unknown &&
		    !strcmp(watch->sample.degraded[i].column, column))
			return false;
	return true;
}

const struct iocom_disk *watch_disk(const struct watch *watch)
{
	for (size_t i = 0; i < watch->sample.ndisks; i++)
		if (!strcmp(watch->sample.disks[i].name, watch->rig.disk))
			return &watch->sample.disks[i];
	fail_msg("disk %s is not in the sample", watch->rig.disk);
	return NULL;
}

const struct iocom_job_load *watch_job(const struct watch *watch, uint64_t cgroup_id)
{
	for (size_t i = 0; i < watch->sample.njobs; i++)
		if (watch->sample.jobs[i].cgroup_id == cgroup_id)
			return &watch->sample.jobs[i];
	return NULL;
}

struct iocom_load watch_run(struct watch *watch, int (*body)(void *argument), void *argument)
{
	const struct iocom_task *task;
	pid_t pid = rig_start(body, argument);

	assert_int_equal(rig_wait(pid), 0);
	watch_sample(watch);
	task = watch_task(watch, pid);
	assert_non_null(task);
	assert_true(task->exited);
	return task->load;
}

bool watch_hook(const char *tracepoint, int parameters)
{
	struct btf *btf = btf__load_vmlinux_btf();
	const struct btf_type *type;
	char name[96];
	int id, found = -1;

	snprintf(name, sizeof(name), "btf_trace_%s", tracepoint);
	id = btf ? btf__find_by_name_kind(btf, name, BTF_KIND_TYPEDEF) : -1;
	if (id > 0) {
		type = btf__type_by_id(
			btf,
			btf__type_by_id(btf, (__u32)id)->type); /* what the pointer points to */
		type = btf__type_by_id(btf, type->type);
		found = btf_is_func_proto(type) ? btf_vlen(type) - 1 : -1;
	}
	btf__free(btf);
	return found == parameters;
}

bool watch_emulated(void)
{
	return getenv("IOCOM_VM") != NULL;
}

double watch_now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

uint64_t watch_cgroup(const char *parent, const char *name, char *out, size_t size)
{
	struct stat st;

	snprintf(out, size, "%s/%s", parent, name);
	assert_int_equal(mkdir(out, 0755), 0);
	assert_int_equal(stat(out, &st), 0);
	return st.st_ino;
}
