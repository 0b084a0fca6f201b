/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
#include "watch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

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
	static int rows; /* of this program */
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
	static const struct monitor_config everything;
	struct iocom_err err = {""};

	if (monitor_open(&watch->monitor, config ? config : &everything, &err) ||
	    monitor_sample(watch->monitor, &watch->sample, &err))
		fail_msg("%s", err.text);
}

void watch_close(struct watch *watch)
{
	monitor_free(watch->monitor);
	watch->monitor = NULL;
	rig_down(&watch->rig);
}

void watch_sample(struct watch *watch)
{
	struct iocom_err err = {""};

	usleep(WATCH_SETTLE_US);
	if (monitor_sample(watch->monitor, &watch->sample, &err))
		fail_msg("monitor_sample: %s", err.text);
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

double watch_now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}
