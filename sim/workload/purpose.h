/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* The purposes of a workload's random numbers: one stream each, so that none shifts another. */
#ifndef SIM_WORKLOAD_PURPOSE_H
#define SIM_WORKLOAD_PURPOSE_H

enum {
	PURPOSE_HOME_ORDER = 0x574c0000, /* the shuffle of the homes */
	PURPOSE_TRACE_HOME,
	PURPOSE_TRACE_MEMORY,
	PURPOSE_TRACE_IO,
	PURPOSE_GAP, /* generator: time since the previous job */
	PURPOSE_HOME,
	PURPOSE_KIND,
	PURPOSE_LIFETIME,
	PURPOSE_MEMORY,
	PURPOSE_IO,
	PURPOSE_TASKS,
};

#endif
