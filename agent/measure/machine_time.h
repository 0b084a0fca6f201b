/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* How the whole machine's processors spent their time, from /proc/stat. */
#ifndef IOCOM_AGENT_MACHINE_TIME_H
#define IOCOM_AGENT_MACHINE_TIME_H

#include <stdbool.h>
#include <stdint.h>

#define MACHINE_TIME_IDLE 0.05 /* of the time: with less, no processor counts as idle */

/* In clock ticks of all processors, since the machine started. */
struct machine_time {
	uint64_t all;	 /* with idle */
	uint64_t idle;	 /* nothing to run, or only tasks that wait for a disk */
	uint64_t stolen; /* another guest of this machine's host ran */
};

/* Reads the counters from FILE, "/proc/stat" outside tests.  Returns 0; -errno; -EBADMSG. */
int machine_time_read(const char *file, struct machine_time *out);
/* Returns the share of the time from BEFORE to NOW, 0..1, that was stolen. */
double machine_time_stolen(const struct machine_time *before, const struct machine_time *now);
/* Returns true if no processor was idle from BEFORE to NOW; false if no time has passed. */
bool machine_time_crowded(const struct machine_time *before, const struct machine_time *now);

#endif
