/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* See moves_tasks.h. */
#include "agent/moves/moves_tasks.h"

#include <math.h>

#define TASK_LEAST_MS 1 /* no task has computed nothing */

void moves_task(const struct guest_running *job, double cpu_speed, double ran_ms, double disk_ms,
		struct rules_task *t)
{
	double here = job->requests + job->faults, requests = here + job->before_requests;
	double cpu_ms = fmax(job->cpu_ms * cpu_speed + job->before_cpu_ms, TASK_LEAST_MS);
	double done = cpu_ms + requests * disk_ms, whole = 2 * done, share = 0.5;
	double moved_kb = job->moved_mb * 1e3;

	*t = (struct rules_task){
		.io_per_ms = ran_ms > 0 ? here / ran_ms : 0,
		.request_kb = job->requests > 0 ? moved_kb / job->requests : 0,
		.memory_mb = job->memory_mb,
	};
	t->cpu_ms = 2 * cpu_ms;
	t->requests = 2 * requests;
	if (need_is_known(job->need)) {
		double need_cpu_ms = job->need->value[NEED_CPU_S] * 1e3;
		double need_requests = job->need->value[NEED_REQUESTS];

		whole = need_cpu_ms + need_requests * disk_ms;
		if (whole > done) { /* else it has done all that was known of it */
			share = done / whole;
			t->cpu_ms = fmax(need_cpu_ms, cpu_ms);
			t->requests = fmax(need_requests, requests);
		}
	}
	t->age_ms = share * t->cpu_ms;
}
