/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Messages between the tasks of a job (O-38).  A flow leaves through its node's port and enters
 * through the master's.  A port shares its bandwidth equally among its flows, and a flow gets the
 * smaller of its two shares; without port_contention, the smaller bandwidth.  Every message takes
 * at least the network's latency.
 *
 * There are flows only when one shard has all nodes.
 */
#include <errno.h>
#include <stdlib.h>

#include "sim/engine/core.h"

struct flow {
	uint32_t job;
	uint32_t port[2];	      /* ports that it leaves and enters */
	uint32_t after[2], before[2]; /* the flow's neighbours in the list of that port */
	double left_kb, rate;	      /* what is left at since_ms; KB/ms */
	double since_ms, least_ms;    /* earliest end: least_ms */
};

struct port {
	uint32_t first, count;
	double kb_per_ms; /* = MB/s */
	bool changed;
};

struct core_flows {
	struct flow *list;
	uint32_t used, room;
	struct core_list free;
	struct core_heap ends;
	struct port *ports; /* the ports of node i: out 2 i, in 2 i + 1 */
	uint32_t nports;
	struct core_list changed; /* ports that have changed */
	bool shared;
};

int core_flows_new(struct core_shard *s)
{
	const struct core *c = s->core;
	struct core_flows *f = calloc(1, sizeof(*f));

	if (f == NULL)
		return -ENOMEM;
	f->shared = c->params.port_contention;
	f->nports = 2 * s->n;
	f->ports = calloc(f->nports, sizeof(*f->ports));
	if (f->ports == NULL) {
		free(f);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < f->nports; i++) {
		double own = c->cluster->machines[i / 2].network_mb_per_s;

		f->ports[i].first = CORE_NONE;
		f->ports[i].kb_per_ms = own > 0 ? own : c->params.rules.network_mb_per_s;
	}
	s->flows = f;
	return 0;
}

void core_flows_free(struct core_flows *f)
{
	if (f == NULL)
		return;
	free(f->list);
	free(f->free.ids);
	free(f->ports);
	free(f->changed.ids);
	core_heap_free(&f->ends);
	free(f);
}

size_t core_flows_bytes(const struct core_flows *f)
{
	return f == NULL ? 0
			 : f->room * sizeof(*f->list) + f->nports * sizeof(*f->ports) +
				   f->ends.room * (sizeof(*f->ends.entries) + sizeof(*f->ends.at));
}

double core_flows_next(const struct core_flows *f)
{
	return f->ends.used > 0 ? f->ends.entries[0].time : CORE_FOREVER;
}

static int port_changed(struct core_flows *f, uint32_t port)
{
	if (f->ports[port].changed)
		return 0;
	f->ports[port].changed = true;
	return core_list_add(&f->changed, port);
}

static int link_flow(struct core_flows *f, uint32_t id)
{
	struct flow *flow = &f->list[id];

	for (int side = 0; side < 2; side++) {
		struct port *p = &f->ports[flow->port[side]];

		flow->before[side] = CORE_NONE;
		flow->after[side] = p->first;
		if (p->first != CORE_NONE)
			f->list[p->first].before[side] = id;
		p->first = id;
		p->count++;
		if (port_changed(f, flow->port[side]) < 0)
			return -ENOMEM;
	}
	return 0;
}

static int unlink_flow(struct core_flows *f, uint32_t id)
{
	struct flow *flow = &f->list[id];

	for (int side = 0; side < 2; side++) {
		struct port *p = &f->ports[flow->port[side]];
		uint32_t after = flow->after[side], before = flow->before[side];

		if (after != CORE_NONE)
			f->list[after].before[side] = before;
		if (before != CORE_NONE)
			f->list[before].after[side] = after;
		else
			p->first = after;
		p->count--;
		if (port_changed(f, flow->port[side]) < 0)
			return -ENOMEM;
	}
	return 0;
}

static uint32_t new_flow(struct core_flows *f)
{
	if (f->free.used > 0)
		return f->free.ids[--f->free.used];
	if (core_grow(&f->list, &f->room, f->used + 1, sizeof(*f->list)) < 0 ||
	    core_heap_reserve(&f->ends, f->room) < 0)
		return CORE_NONE;
	return f->used++;
}

int core_flow_add(struct core_shard *s, uint32_t job, uint32_t from, uint32_t to, double kb,
		  double now)
{
	struct core_flows *f;
	uint32_t id;

	if (s->flows == NULL && core_flows_new(s) < 0)
		return -ENOMEM;
	f = s->flows;
	id = new_flow(f);
	if (id == CORE_NONE)
		return -ENOMEM;
	f->list[id] = (struct flow){
		.job = job,
		.port = {2 * from, 2 * to + 1},
		.left_kb = kb,
		.since_ms = now,
		.least_ms = now + s->core->params.network_latency_ms,
	};
	core_heap_add(&f->ends, id, CORE_FOREVER);
	return link_flow(f, id);
}

static void set_rate(struct core_flows *f, uint32_t id, double now)
{
	struct flow *flow = &f->list[id];
	const struct port *out = &f->ports[flow->port[0]], *in = &f->ports[flow->port[1]];
	double a = out->kb_per_ms / (f->shared ? out->count : 1);
	double b = in->kb_per_ms / (f->shared ? in->count : 1);
	double rate = a < b ? a : b, end;

	if (rate == flow->rate)
		return;
	flow->left_kb -= flow->rate * (now - flow->since_ms);
	if (flow->left_kb < 0)
		flow->left_kb = 0;
	flow->since_ms = now;
	flow->rate = rate;
	end = now + flow->left_kb / rate;
	core_heap_move(&f->ends, id, end > flow->least_ms ? end : flow->least_ms);
}

void core_flows_settle(struct core_shard *s, double now)
{
	struct core_flows *f = s->flows;

	for (uint32_t i = 0; i < f->changed.used; i++) {
		uint32_t port = f->changed.ids[i], side = port % 2;

		f->ports[port].changed = false;
		for (uint32_t id = f->ports[port].first; id != CORE_NONE;
		     id = f->list[id].after[side])
			set_rate(f, id, now);
	}
	f->changed.used = 0;
}

void core_flows_step(struct core_shard *s, double now)
{
	struct core_flows *f = s->flows;

	while (f->ends.used > 0 && f->ends.entries[0].time <= now && s->error == 0) {
		uint32_t id = f->ends.entries[0].id, job = f->list[id].job;

		core_heap_remove(&f->ends, id);
		if (unlink_flow(f, id) < 0 || core_list_add(&f->free, id) < 0) {
			core_fail(s, -ENOMEM, "out of memory for messages");
			return;
		}
		if (--s->jobs.list[job].talking == 0)
			core_talk_done(s, job, now);
	}
}
