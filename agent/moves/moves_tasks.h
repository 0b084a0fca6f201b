/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Jobs that run here as tasks of the rules. */
#ifndef IOCOM_MOVES_TASKS_H
#define IOCOM_MOVES_TASKS_H

#include "agent/guest/guest.h"

/*
 * Makes JOB a task at a node of CPU_SPEED, which has run for RAN_MS and whose disk takes
 * DISK_MS for one of its requests.  What it needs in all is what is known of its class, its t_j;
 * if nothing is known, or it has done that, twice what it has done so far.
 */
void moves_task(const struct guest_running *job, double cpu_speed, double ran_ms, double disk_ms,
		struct rules_task *task);

#endif
