/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The monitor compared with known truth: a rig, a monitor that watches it, its last reading, and
 * the accuracy table with one row per compared number:
 *
 *   # |case | quantity | truth | measured | error | kernel
 */
#ifndef IOCOM_TESTS_WATCH_H
#define IOCOM_TESTS_WATCH_H

#include "user/monitor/monitor.h"
#include "tests/lib/rig.h"

#define WATCH_SETTLE_US 150000 /* an RCU grace period, after which ended threads are folded */

struct watch {
	struct rig rig;
	struct monitor *monitor;
	struct monitor_sample sample;
	bool statistics; /* also in an emulated machine: set it between watch_rig and watch_open */
};

/* Prints the row. Fails the test if |measured - truth| > TOLERANCE * truth. */
void watch_compare(const char *name, const char *what, double truth, double measured,
		   double tolerance);
/* Does the same with an absolute SLACK. */
void watch_compare_within(const char *name, const char *what, double truth, double measured,
			  double slack);
/*
 * Does the same but lets up to LOST be missing, because the monitor reported that much as lost;
 * never more.
 */
void watch_compare_lost(const char *name, const char *what, double truth, double measured,
			double lost);
/*
 * Returns how often the last reading counted the drop NAME. Fails the test if there is none of
 * that name.
 */
uint64_t watch_drop(const struct watch *watch, const char *name);
/*
 * Returns the events that were reported as lost until the last reading. Drop `recursion`: if
 * tracepoints may be preempted, an event skips a program that already runs on that CPU. Drop
 * `task_storage`: a thread finds the storage of its CPU in use by a reader that was preempted.
 */
double watch_missed(const struct watch *watch);
/* Prints a row for a case that this kernel cannot measure, and why: neither passed nor failed. */
void watch_degraded(const char *name, const char *what, const char *why);

/* Brings up a rig with a disk of MEGABYTES. If the machine cannot, prints SKIP and exits with 0. */
void watch_rig(struct watch *watch, unsigned megabytes);
/*
 * Opens the monitor (CONFIG may be NULL) and takes the first reading, or fails the test.
 * IOCOM_ABLATE in the environment switches parts of the monitor off (enum ablate): then tests
 * must fail.
 */
void watch_open(struct watch *watch, const struct monitor_config *config);
/* Closes the monitor and takes the rig down; it is fine if one of them was not begun. */
void watch_close(struct watch *watch);
/* Ends a group of tests whose state is only a malloc'ed watch. */
int watch_down(void **state);

/* Waits until ended threads are folded, then makes a reading. */
void watch_sample(struct watch *watch);
/* Returns the youngest process PID of the last reading, or NULL. */
const struct iocom_task *watch_task(const struct watch *watch, pid_t pid);
/* Returns true if this kernel tells the column COLUMN of tasks and jobs. */
bool watch_known(const struct watch *watch, const char *column);
/* Returns the rig's disk in the last reading. Fails the test if it is not there. */
const struct iocom_disk *watch_disk(const struct watch *watch);
/* Returns the job of a cgroup id in the last reading, or NULL. */
const struct iocom_job_load *watch_job(const struct watch *watch, uint64_t cgroup_id);
/* Runs BODY in a child, which must exit with 0. Returns what the monitor says of it at its exit. */
struct iocom_load watch_run(struct watch *watch, int (*body)(void *argument), void *argument);

/* Returns true if the running kernel has this tracepoint with PARAMETERS parameters. */
bool watch_hook(const char *tracepoint, int parameters);

/* Returns true in an emulated machine (tests/vm), where code may take a hundred times as long. */
bool watch_emulated(void);
/* Makes the cgroup PARENT/NAME and puts its path into OUT. Returns its id, or fails the test. */
uint64_t watch_cgroup(const char *parent, const char *name, char *out, size_t size);

/* Returns CLOCK_MONOTONIC in milliseconds. */
double watch_now_ms(void);

#endif
