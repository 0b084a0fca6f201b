/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The view of a decision, for callers that record it: each node as it was described to the rules.
 * Tasks that the home has sent to a node since the snapshot are added to the node's tasks and
 * measured state and to the work that is left, as rules_view_charge does.  Hit rates computed from
 * this may differ a little, because a charge leaves the hit rates of the other tasks unchanged.
 */
#include <errno.h>

#include <iocom/gang.h>

#include "sim/engine/core.h"

static int core_look_append(struct core_look *look, const struct rules_request *r,
			    double reference_mips)
{
	struct rules_node *n = &look->node;
	double service = n->measured.service_ms > 0
				 ? n->measured.service_ms
				 : n->disk_fixed_ms + n->request_kb / n->disk_mb_per_s;
	double room = (1 - n->measured.disk_utilisation) / service;
	double io = r->io_per_ms < room ? r->io_per_ms : room;

	if (core_look_reserve(look, n->ntasks + 1) < 0)
		return -ENOMEM;
	look->tasks[n->ntasks++] = (struct rules_task){
		.cpu_ms = r->cpu_ms,
		.io_per_ms = r->io_per_ms,
		.request_kb = r->request_kb,
		.reaccess = r->reaccess,
		.memory_mb = r->memory_mb,
		.faults_per_ms = r->faults_per_ms,
		.initial_mb = r->initial_mb,
		.pinned = true,
	};
	n->measured.cpu_queue += 1;
	n->measured.disk_arrivals_per_ms += io;
	n->measured.disk_utilisation += io * service;
	n->advertised.cpu += 1;
	n->advertised.memory_mb += r->memory_mb;
	n->advertised.explicit_per_ms += r->io_per_ms;
	n->advertised.io_per_ms += r->io_per_ms;
	if (n->has_sharers)
		core_view_share(n, r, reference_mips);
	return 0;
}

static int append_placed(const struct sim_look *look, uint32_t node, struct core_look *out)
{
	const struct core_shard *s = look->shard;
	const struct core_node *home = &s->core->nodes[look->home];

	if (s->core->period_ms == 0 || home->placed_at_ms != s->core->snapshot_ms)
		return 0;
	for (uint32_t i = home->placed; i != CORE_NONE; i = s->placed.list[i].next)
		if (s->placed.list[i].target == node &&
		    core_look_append(out, &s->placed.list[i].request,
				     s->core->params.rules.reference_mips) < 0)
			return -ENOMEM;
	return 0;
}

/* Tells what a decision on a gang was told of the node's port. */
static void look_port(const struct core_shard *s, uint32_t i, struct rules_node *node)
{
	if (!s->request.npairs)
		return;
	node->has_port = true;
	node->port.busy_mb_per_s = s->ports[i].busy_mb_per_s;
	node->port.round_trip_ms = s->ports[i].round_trip_ms;
	node->port.slots = s->ports[i].slots;
}

int sim_look_node(const struct sim_look *look, uint32_t i, struct rules_node *node)
{
	struct core_shard *s = look->shard;
	const struct core *c = s->core;
	const struct rules_node *seen;
	struct core_look *out = &s->look;

	if (i >= c->cluster->n)
		return -EINVAL;
	if (i == look->home && c->looks && c->period_ms > 0) {
		*node = s->home_look.node;
		look_port(s, i, node);
		return 0;
	}
	seen = &c->saved[i].node;
	if (core_look_reserve(out, seen->ntasks) < 0)
		return -ENOMEM;
	for (size_t k = 0; k < seen->ntasks; k++)
		out->tasks[k] = c->saved[i].tasks[k];
	out->node = *seen;
	if (append_placed(look, i, out) < 0)
		return -ENOMEM;
	out->node.tasks = out->tasks;
	*node = out->node;
	look_port(s, i, node);
	return 0;
}

uint64_t sim_look_seed(const struct sim_look *look)
{
	return core_ties_seed(look->shard->core, look->job);
}

const struct rules_request *sim_look_request(const struct sim_look *look)
{
	return &look->shard->request;
}

const struct rules_gang_plan *sim_look_gang(const struct sim_look *look)
{
	return look->shard->request.npairs ? look->shard->gang : NULL;
}

void sim_look_control(const struct sim_look *look, struct rules_control *control)
{
	rules_control(core_rules_of(look->shard, look->home), control);
}
