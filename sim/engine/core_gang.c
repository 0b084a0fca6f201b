/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Places the tasks of a job that communicates all at once (MODEL 3.18), as a live agent does: its
 * slaves send to its master, and each node's port has a rate and something that it carries already.
 * A node takes as many tasks as it gets: here it has no slots.
 */
#include <errno.h>
#include <stdlib.h>

#include <iocom/gang.h>

#include "sim/engine/core.h"

bool core_gang_is(const struct core *c, const struct core_job *j)
{
	return c->params.whole_gangs && c->policy == RULES_LEAST_DELAY && j->job.tasks > 1 &&
	       j->com_ms > 0 && j->job.tasks <= RULES_GANG_TASKS_MAX;
}

double core_port_share(const struct core_look *look)
{
	double share = 0;

	for (size_t i = 0; i < look->node.ntasks; i++) {
		const struct rules_task *t = &look->tasks[i];

		if (t->com_ms > 0)
			share += t->com_ms / (t->com_ms + t->cpu_ms);
	}
	return share < 1 ? share : 1;
}

/* Makes room for the pairs of a job of TASKS, and for all ports.  Returns 0 or -ENOMEM. */
static int core_gang_reserve(struct core_shard *s, uint32_t tasks)
{
	uint32_t room = s->pairs_room;

	if (core_grow(&s->pairs, &room, tasks, sizeof(*s->pairs)) < 0)
		return -ENOMEM;
	s->pairs_room = room;
	if (s->ports == NULL)
		s->ports = calloc(s->core->cluster->n, sizeof(*s->ports));
	if (s->gang == NULL)
		s->gang = calloc(1, sizeof(*s->gang));
	return s->ports == NULL || s->gang == NULL ? -ENOMEM : 0;
}

int core_gang_place(struct core_shard *s, const struct core_job *j)
{
	const struct core *c = s->core;
	const struct sim_job *k = &j->job;
	double kb = k->messages_per_ms * k->cpu_ms * k->message_kb;
	struct rules_gang gang;
	int ret = core_gang_reserve(s, k->tasks);

	if (ret < 0)
		return ret;
	for (uint32_t i = 1; i < k->tasks; i++)
		s->pairs[i - 1] = (struct rules_pair){
			.from = i, .to = 0, .bytes = kb * 1e3, .messages = j->phases};
	for (uint32_t i = 0; i < c->cluster->n; i++) {
		double rate = c->cluster->machines[i].network_mb_per_s;

		if (!(rate > 0))
			rate = c->params.rules.network_mb_per_s;
		s->ports[i] = (struct rules_port){
			.mb_per_s = rate,
			.busy_mb_per_s = rate * c->port_share[i],
			.round_trip_ms = 2 * c->params.network_latency_ms,
			.slots = k->tasks,
		};
	}
	s->request.pairs = s->pairs;
	s->request.npairs = k->tasks - 1;
	s->request.phases = j->phases;
	gang = (struct rules_gang){.pairs = s->pairs,
				   .npairs = s->request.npairs,
				   .ports = s->ports,
				   .phases = j->phases};
	ret = rules_place_gang(core_rules_of(s, k->home), s->view, k->home, &s->request, &gang,
			       s->gang, s->targets);
	if (ret == 0)
		s->plan = s->gang->why;
	return ret;
}
