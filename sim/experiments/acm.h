/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What the three studies of ACM share: readings, each with its reason.  ACM-SENS and ACM-SENS-HET
 * show how the outcome depends on them.
 */
#ifndef SIM_EXPERIMENTS_ACM_H
#define SIM_EXPERIMENTS_ACM_H

/* Processes per host in five hours of the process trace. */
#define ACM_HOMES "20691:107:28:12502:23585:35997"

#define ACM_READINGS                                                                               \
	{"load.home_weights", ACM_HOMES,                                                           \
	 "reading 4: processes per host in the process trace, repeated over the nodes"},           \
		{"cpu_load_runnable", "1",                                                         \
		 "reading 1: L_CPU counts running tasks, not tasks that wait for a disk"},         \
		{"page_fault_at_disk", "0",                                                        \
		 "reading 2: in the disk's queue paging is bistable and slowdowns reach "          \
		 "10^3 and more; ACM-18 goes to 18"},                                              \
		{"literal_requests", "0",                                                          \
		 "O-8(c): the estimate counts what reaches the disk: misses and page "             \
		 "faults; otherwise a task that only pages seems to cost nothing"},                \
		{"io_significance", "0.015",                                                       \
		 "reading 8: I/O that cannot keep a disk a quarter busy (15 per second, "          \
		 "E(s) of Table I) does not count; the 0.01 per ms of the "                        \
		 "memory-intensive studies is less"},                                              \
	{                                                                                          \
		"information_period_ms", "100",                                                    \
			"O-15: nodes exchange loads several times during the half second of an "   \
			"average job"                                                              \
	}

/* The points of ACM-SENS and ACM-SENS-HET, each of which changes one reading. */
#define ACM_OTHER_READINGS                                                                         \
	{"as chosen", NAN, NULL}, {"resident tasks", NAN, "cpu_load_runnable=0"},                  \
		{"faults at the disk", NAN, "page_fault_at_disk=1"},                               \
		{"homes alike", NAN, "load.home_weights=1"},                                       \
		{"literal estimate", NAN, "literal_requests=1"},                                   \
		{"no measured state", NAN, "measured_state=0"},                                    \
		{"all I/O counts", NAN, "io_significance=0"},                                      \
		{"period 1 s", NAN, "information_period_ms=1000"},                                 \
		{"memory x1", NAN, "memory_scale=1"},                                              \
	{                                                                                          \
		"lifetimes to 20 s", NAN, "load.lifetime_max_ms=20000"                             \
	}

#endif
