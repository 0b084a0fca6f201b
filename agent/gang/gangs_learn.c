/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What a gang that ended well teaches: one run of the class "CLASS@TASKS", whose needs are the sums
 * over its parts, and whose time is that of its slowest part.  Who talked to whom is learned after
 * that, because the profiles keep it of known classes only (agent/home/talk_learn.h).
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "agent/gang/gangs_own.h"
#include "agent/home/learn.h"
#include "agent/home/talk_learn.h"
#include "user/clock.h"

void gang_used(struct gang *g, const struct job_report *report)
{
	struct profile part, *sum = &g->used;

	job_report_profile(report, &part);
	sum->cpu_ms += part.cpu_ms;
	sum->requests += part.requests;
	sum->request_mb += part.request_mb;
	sum->fault_requests += part.fault_requests;
	sum->fault_mb += part.fault_mb;
	sum->memory_mb += part.memory_mb;
	sum->wall_ms = fmax(sum->wall_ms, part.wall_ms);
	sum->com_ms += part.com_ms;
	sum->disk_ms += part.disk_ms;
	sum->read_mb += part.read_mb;
	sum->written_mb += part.written_mb;
	sum->shared_read_mb += part.shared_read_mb;
	sum->shared_written_mb += part.shared_written_mb;
	g->nused++;
}

/* Parts that ended while no agent of home ran, or before it began anew, have told nobody. */
static void gang_learn_need(struct gangs *gangs, const struct gang *g, uint32_t tasks,
			    uint32_t nparts)
{
	struct learned_run run = {
		.uid = g->uid,
		.input_mb = -1,
		.end_s = loop_real_ns(gangs->base->loop) / CLOCK_NS_PER_S,
		.run = g->used,
	};

	if (g->nused != nparts || profile_talk_class(g->class_name, tasks, run.class_name))
		return;
	snprintf(run.node, sizeof(run.node), "%s", gangs->base->set->name);
	learn_run(gangs->home, &run);
}

void gang_learn(struct gangs *gangs, const struct gang *g, uint32_t tasks, uint32_t nparts)
{
	char part[SPEC_JOB_MAX];

	if (!*g->class_name)
		return;
	gang_learn_need(gangs, g, tasks, nparts);
	if (!gang_part_name(g->job, 0, part))
		talk_learn(gangs->home, g->uid, g->class_name, part);
}
