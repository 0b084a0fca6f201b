/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The feedback controller (MODEL 3.11).  Each completion goes to the rules, and the nodes get the
 * buffer that the rules then want.  There is one controller for the cluster, or one per node
 * (control_per_node), which learns from the jobs that ended on its node.
 */
#include <errno.h>
#include <stdlib.h>

#include "sim/engine/core.h"

/* What was already reported to a controller. */
struct core_reported {
	double time_ms;
	struct node_sums sums;
	double buffer_mb;
};

static double least_ram(const struct sim_cluster *cluster)
{
	double ram = cluster->machines[0].ram_mb;

	for (uint32_t i = 1; i < cluster->n; i++)
		if (cluster->machines[i].ram_mb < ram)
			ram = cluster->machines[i].ram_mb;
	return ram;
}

static int core_control_attach(struct core *c, struct rules *rules, double ram, double buffer,
			       struct core_reported *reported)
{
	reported->buffer_mb = buffer;
	if (rules_feedback(rules, ram, buffer) < 0)
		return iocom_err_set(c->err, -EINVAL,
				     "the feedback controller needs nodes whose memory is known "
				     "and larger than their buffer: %g MB, buffer %g MB",
				     ram, buffer);
	return 0;
}

int core_control_init(struct core *c)
{
	const struct sim_machine *m = c->cluster->machines;
	bool own = c->params.control_per_node;
	int ret = 0;

	if (!c->feedback)
		return 0;
	c->reported = calloc(own ? c->cluster->n : 1, sizeof(*c->reported));
	if (c->reported == NULL)
		return -ENOMEM;
	if (!own)
		return core_control_attach(c, c->shards[0].rules, least_ram(c->cluster),
					   m[0].buffer_mb, &c->reported[0]);
	c->own_rules = calloc(c->cluster->n, sizeof(struct rules *));
	if (c->own_rules == NULL)
		return -ENOMEM;
	for (uint32_t i = 0; ret == 0 && i < c->cluster->n; i++) {
		c->own_rules[i] = rules_new(c->policy, &c->params.rules, c->params.seed);
		if (c->own_rules[i] == NULL)
			return -ENOMEM;
		rules_brief(c->own_rules[i], c->run->decided == NULL);
		ret = core_control_attach(c, c->own_rules[i], m[i].ram_mb, m[i].buffer_mb,
					  &c->reported[i]);
	}
	return ret;
}

void core_control_free(struct core *c)
{
	for (uint32_t i = 0; c->own_rules != NULL && i < c->cluster->n; i++)
		rules_free(c->own_rules[i]);
	free(c->own_rules);
	free(c->reported);
}

static void core_control_add_sums(struct node_sums *to, const struct node_sums *from, double cores)
{
	to->cpu_busy_ms += from->cpu_busy_ms / cores;
	to->disk_busy_ms += from->disk_busy_ms;
	to->disk_requests += from->disk_requests;
	to->page_faults += from->page_faults;
	to->accesses += from->accesses;
	to->hits += from->hits;
}

static double core_control_share(double part, double whole)
{
	return whole > 0 ? part / whole : 0;
}

/* Averages over COUNT nodes from FIRST since the controller's last outcome. */
static void describe_outcome(struct core_shard *s, uint32_t first, uint32_t count, double now,
			     struct core_reported *reported, struct rules_outcome *out)
{
	struct node_sums sums = {0}, one, was = reported->sums;
	double span = (now - reported->time_ms) * count;

	for (uint32_t i = first; i < first + count; i++) {
		node_sums(s->model, i - s->first, now, &one);
		core_control_add_sums(&sums, &one, s->core->cluster->machines[i].cores);
	}
	out->cpu_utilisation = core_control_share(sums.cpu_busy_ms - was.cpu_busy_ms, span);
	out->disk_utilisation = core_control_share(sums.disk_busy_ms - was.disk_busy_ms, span);
	out->implicit_share = core_control_share(sums.page_faults - was.page_faults,
						 sums.disk_requests - was.disk_requests);
	out->hit_rate = core_control_share(sums.hits - was.hits, sums.accesses - was.accesses);
	reported->sums = sums;
	reported->time_ms = now;
}

/* Shows the predictive controller the tasks on the nodes. */
static int foresee(struct core_shard *s, struct rules *rules, uint32_t first, uint32_t count,
		   double now)
{
	const struct sim_params *p = &s->core->params;
	int ret = 0;

	if (p->rules.fb_controller != RULES_CONTROLLER_PREDICTIVE)
		return 0;
	for (uint32_t i = first; ret == 0 && i < first + count; i++) {
		node_refresh(s->model, i - s->first, now); /* updates the tasks' ages */
		ret = core_describe(s->core, i, now, CORE_FOREVER, &s->look);
		if (ret == 0)
			ret = rules_foresee(rules, &s->look.node, p->page_fault_ms,
					    p->page_fault_at_disk);
	}
	return ret;
}

static double core_control_at_most_one(double x)
{
	return x > 1 ? 1 : x > 0 ? x : 0;
}

void core_control_done(struct core_shard *s, uint32_t node, double slowdown, double now)
{
	struct core *c = s->core;
	bool own = c->own_rules != NULL;
	uint32_t first = own ? node : 0, count = own ? 1 : c->cluster->n;
	struct core_reported *reported = &c->reported[first];
	struct rules_outcome outcome = {.slowdown = slowdown};
	struct rules *rules = core_rules_of(s, node);
	struct rules_control control;
	int ret;

	/* Only our own controllers use the rest, which costs a walk over the nodes. */
	if (c->params.rules.fb_controller != 0)
		describe_outcome(s, first, count, now, reported, &outcome);
	outcome.cpu_utilisation = core_control_at_most_one(outcome.cpu_utilisation);
	outcome.disk_utilisation = core_control_at_most_one(outcome.disk_utilisation);
	outcome.implicit_share = core_control_at_most_one(outcome.implicit_share);
	outcome.hit_rate = core_control_at_most_one(outcome.hit_rate);
	ret = foresee(s, rules, first, count, now);
	if (ret == 0)
		ret = rules_done(rules, &outcome);
	if (ret < 0) {
		core_fail(s, ret, "the controller refuses a slowdown of %g", slowdown);
		return;
	}
	rules_control(rules, &control);
	if (control.buffer_mb == reported->buffer_mb)
		return;
	reported->buffer_mb = control.buffer_mb;
	for (uint32_t i = first; i < first + count; i++) {
		core_node_begin(s, i, now);
		node_set_buffer(s->model, i - s->first, control.buffer_mb, now);
		core_mark_dirty(s, i);
		core_node_end(s, i);
	}
}
