/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The monitor beside known truth: a rig, a monitor that watches it, its last
 * reading; and the accuracy table, one row a compared number:
 *
 *   # |case | quantity | truth | measured | error | kernel
 */
#ifndef IOCOM_TESTS_WATCH_H
#define IOCOM_TESTS_WATCH_H

#include "user/monitor/monitor.h"
#include "tests/lib/rig.h"

#define WATCH_SETTLE_US 150000 /* an RCU grace period, for the ended to be folded */

struct watch {
	struct rig rig;
	struct monitor *monitor;
	struct monitor_sample sample;
};

/* Prints the row; fails the test when |measured - truth| > TOLERANCE * truth. */
void watch_compare(const char *name, const char *what, double truth, double measured,
		   double tolerance);
/* The same with an absolute SLACK. */
void watch_compare_within(const char *name, const char *what, double truth, double measured,
			  double slack);
/* The same where up to LOST may be missing, because that much was told as lost; never more. */
void watch_compare_lost(const char *name, const char *what, double truth, double measured,
			double lost);
/* How often what is lost for cause NAME was, by the last reading.  Fails the test: no such. */
uint64_t watch_drop(const struct watch *watch, const char *name);
/*
 * Events of the last reading that were told as lost (drop `recursion`): where tracepoints
 * may be preempted, an event passes a program that is running on that CPU by.
 */
double watch_missed(const struct watch *watch);
/* A row of a case that this kernel cannot measure, and why: neither passed nor failed. */
void watch_degraded(const char *name, const char *what, const char *why);

/* Brings up a rig with a disk of MEGABYTES; a machine that cannot: prints SKIP, exits 0. */
void watch_rig(struct watch *watch, unsigned megabytes);
/*
 * Opens the monitor (CONFIG may be NULL) and takes the first reading; fails the
 * test.  IOCOM_ABLATE in the environment switches parts of the monitor off (enum
 * ablate): then tests have to fail.
 */
void watch_open(struct watch *watch, const struct monitor_config *config);
/* Ends both; what was not begun is fine. */
void watch_close(struct watch *watch);
/* The end of a group of tests whose state is a malloc'ed watch and no more. */
int watch_down(void **state);

/* Waits for the ended to be folded, then reads. */
void watch_sample(struct watch *watch);
/* The youngest process PID of the last reading; NULL: none. */
const struct iocom_task *watch_task(const struct watch *watch, pid_t pid);
/* Whether this kernel tells the column COLUMN of tasks and jobs. */
bool watch_known(const struct watch *watch, const char *column);
/* The rig's disk in the last reading; fails the test when it is not there. */
const struct iocom_disk *watch_disk(const struct watch *watch);
/* The job of a cgroup id in the last reading; NULL: none. */
const struct iocom_job_load *watch_job(const struct watch *watch, uint64_t cgroup_id);
/* Runs BODY in a child to its end, 0 expected; what the monitor says of it at its exit. */
struct iocom_load watch_run(struct watch *watch, int (*body)(void *argument), void *argument);

/* The running kernel has this tracepoint with so many parameters, by its type information. */
bool watch_hook(const char *tracepoint, int parameters);

/* In an emulated machine (tests/vm): code takes up to a hundred times as long as it does. */
bool watch_emulated(void);
/* Makes the cgroup PARENT/NAME, its path into OUT; its id.  Fails the test. */
uint64_t watch_cgroup(const char *parent, const char *name, char *out, size_t size);

/* CLOCK_MONOTONIC in milliseconds. */
double watch_now_ms(void);

#endif
