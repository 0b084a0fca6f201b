/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* How the whole machine's processors spent their time, from /proc/stat. */
#ifndef IOCOM_AGENT_MACHINE_TIME_H
#define IOCOM_AGENT_MACHINE_TIME_H

#include <stdint.h>

/* In clock ticks of all processors, since the machine started. */
struct machine_time {
	uint64_t all;	 /* with idle */
	uint64_t idle;	 /* nothing to run, or only tasks that wait for a disk */
	uint64_t stolen; /* another guest of this machine's host ran */
};

/* Reads the counters from FILE, "/proc/stat" outside tests.  Returns 0; -errno; -EBADMSG. */
int machine_time_read(const char *file, struct machine_time *out);

#endif
