/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Supervisors without processes, on the clock of a virtual loop: what guest/launcher.h asks for.
 *
 *   launched, and started at once -> exited, when the test says so
 *                                 -> ended by its lease, at its time, if nobody renews that
 *
 * Attempts of one job that may not run at the same time have one class name: the most that ever
 * did is counted.
 */
#ifndef IOCOM_TESTS_SHIMS_H
#define IOCOM_TESTS_SHIMS_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/guest/launcher.h"

struct loop;

extern const struct launcher launcher_in_memory;

/* LOOP is borrowed until shims_end. */
void shims_begin(struct loop *loop);
void shims_end(void);
/* Returns when the next lease ends, CLOCK_BOOTTIME; UINT64_MAX: never. */
uint64_t shims_due_ns(void);
/* Ends the jobs whose leases are over. */
void shims_tick(void);
/* Ends JOB with a kind and value as in launch.h. */
void shims_finish(const char *job, uint8_t kind, uint32_t value, const char *text);
/* JOB ignores SIGTERM; else that, and SIGKILL, ends a job at once. */
void shims_ignore_term(const char *job);
/* How many signals JOB has got. */
unsigned shims_signals(const char *job);
bool shims_runs(const char *job);
/* The most that ran at a time of one class. */
unsigned shims_most(void);
/* The agent that launched jobs in JOBS_DIR is gone; its jobs go on. */
void shims_abandon(const char *jobs_dir);

#endif
