/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The entry to the closed network (sharing.h), and the cases with a simple formula:
 *
 *   one task       1 / (cpu / power(1) + delay + visits E(s))
 *   no requests    power(n) / n / cpu for each
 *   all at disk    each task's requests in turn: visits x sum of E(s) over the tasks
 */
#include "sim/engine/sharing_private.h"

static void alone(const struct sharing_machine *m, struct sharing_task *t,
		  struct sharing_load *load)
{
	double cpu = t->cpu_ms / sharing_power(m, 1), disk = t->visits * t->service_ms;
	double all = cpu + disk + t->delay_ms;

	t->rate = all > 0 ? 1 / all : 0;
	load->at_cpu = cpu * t->rate;
	load->at_disk = disk * t->rate;
	load->cores_busy = load->at_cpu * (m->cores < 1 ? m->cores : 1);
}

static void processor_only(const struct sharing_machine *m, struct sharing_task *t, uint32_t n,
			   struct sharing_load *load)
{
	double each = sharing_power(m, n) / n;

	for (uint32_t i = 0; i < n; i++)
		t[i].rate = t[i].cpu_ms > 0 ? each / t[i].cpu_ms : 0;
	load->at_cpu = n;
	load->cores_busy = n <= m->cores ? n : m->cores;
}

static void sharing_disk_only(struct sharing_task *t, uint32_t n, struct sharing_load *load)
{
	double round = 0;

	for (uint32_t i = 0; i < n; i++)
		round += t[i].service_ms;
	for (uint32_t i = 0; i < n; i++)
		t[i].rate = round > 0 ? 1 / (t[i].visits * round) : 0;
	load->at_disk = n;
}

void sharing_solve(const struct sharing_machine *machine, struct sharing_task *tasks, uint32_t n,
		   struct sharing_load *load)
{
	uint32_t visiting = 0, computing = 0, away = 0;
	uint32_t regular = 0, random = 0;

	*load = (struct sharing_load){0};
	if (n == 1) {
		alone(machine, tasks, load);
		return;
	}
	for (uint32_t i = 0; i < n; i++) {
		visiting += tasks[i].visits > 0;
		computing += tasks[i].cpu_ms > 0;
		away += tasks[i].delay_ms > 0;
		if (tasks[i].visits > 0 && tasks[i].cpu_ms > 0) {
			regular += tasks[i].regular;
			random += !tasks[i].regular;
		}
	}
	if (visiting == 0 && away == 0)
		processor_only(machine, tasks, n, load);
	else if (computing == 0 && away == 0)
		sharing_disk_only(tasks, n, load);
	else if (regular > 0 && away == 0 &&
		 n <= (random > 0 ? SHARING_MIXED_MAX : SHARING_REGULAR_MAX))
		sharing_regular(machine, tasks, n, load);
	else if (n == 2 && away == 0)
		sharing_pair(machine, tasks, load);
	else if (n <= SHARING_EXACT_MAX)
		sharing_exact(machine, tasks, n, load);
	else
		sharing_many(machine, tasks, n, load);
}
