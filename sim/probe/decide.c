/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Zatti's offline decisions (ZAT-9.3).  The rules get the a.vectors of the moment and the probe's
 * r.vector; a decision wins if it chooses the faster site.
 *
 * ZAT's random placement chooses each machine with the same probability.  Eager never chooses the
 * home, so it gets the job on a third machine that only submits.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>

#include "sim/probe/probe.h"

#define MS	 1000.0
#define NOTHING	 1e-9 /* accesses per ms of a job without any */
#define TERMINAL 2    /* the submitting machine's index in the view */

struct decider {
	struct rules *rules;
	struct rules_view *view;
	struct rules_node nodes[3];
	struct rules_request request;
	uint32_t home;
};

struct counts {
	double win, local_right, remote_right, sent, io, io_right, memory_wrong, local_better;
	double local_s, remote_s, overhead_s;
};

/* The r.vector as in ZAT Table 1; at wall-clock rates elapsed = requests / rate. */
static struct rules_request requirements(const struct probe_job *j, double request_kb)
{
	double rate = fmax(j->blocks_per_s / MS, NOTHING), elapsed_ms = j->elapsed_s * MS;

	return (struct rules_request){
		.cpu_ms = j->cpu_percent / 100 * elapsed_ms,
		.io_per_ms = rate,
		.requests = rate * elapsed_ms,
		.request_kb = request_kb,
		.memory_mb = j->memory_pages / MS,
		.tasks = 1,
	};
}

static void decide_describe(struct rules_node *n, const char *name, const struct sim_machine *m)
{
	*n = (struct rules_node){
		.ram_mb = m->ram_mb,
		.buffer_mb = m->buffer_mb,
		.cpu_mips = m->cpu_mips,
		.cores = m->cores,
		.disk_fixed_ms = m->disk_fixed_ms,
		.disk_mb_per_s = m->disk_mb_per_s,
		.request_kb = m->request_kb,
		.network_mb_per_s = m->network_mb_per_s,
		.has_advertised = true,
		.has_zatti = true,
		.accepts = true,
	};
	snprintf(n->name, sizeof(n->name), "%s", name);
}

/* Sets the machine's a.vector from its columns, which begin at V. */
static void advertise(struct rules_node *n, const double *v)
{
	n->zatti.cpu_idle_percent = v[0];
	n->zatti.run_queue = v[PROBE_QUEUE - PROBE_IDLE];
	n->zatti.blocks_per_s = v[PROBE_BLOCKS - PROBE_IDLE];
	n->zatti.free_mb = v[PROBE_FREE - PROBE_IDLE] / MS;
	n->advertised.cpu = n->zatti.run_queue;
	n->advertised.io_per_ms = n->advertised.explicit_per_ms = n->zatti.blocks_per_s / MS;
	n->advertised.memory_mb = fmax(0, n->ram_mb - n->buffer_mb - n->zatti.free_mb);
}

static int set_nodes(struct decider *d, const struct probe_row *row)
{
	int ret = 0;

	advertise(&d->nodes[0], &row->v[PROBE_IDLE]);
	advertise(&d->nodes[1], &row->v[PROBE_AT_REMOTE]);
	for (uint32_t i = 0; i < (d->home == TERMINAL ? 3 : 2) && !ret; i++)
		ret = rules_view_set(d->view, i, &d->nodes[i]);
	return ret;
}

static bool holds(const struct rules_plan *plan, enum rules_criterion c)
{
	for (uint32_t i = 0; i < plan->nreasons; i++)
		if (plan->reasons[i].criterion == c)
			return plan->reasons[i].holds;
	return false;
}

/*
 * Returns whether the memory field decided: as the only reason to leave home, or against the other
 * machine.
 */
static bool by_memory(const struct rules_plan *plan, bool sent)
{
	if (sent)
		return holds(plan, RULES_C_LOCAL_MEMORY) && !holds(plan, RULES_C_LOCAL_CPU) &&
		       !holds(plan, RULES_C_LOCAL_IO);
	return plan->refused[RULES_C_REMOTE_MEMORY] > 0;
}

static void decide_count(struct counts *c, const struct probe_row *row,
			 const struct rules_plan *plan)
{
	bool local = row->v[PROBE_LOCAL_S] <= row->v[PROBE_REMOTE_S], sent = plan->node == 1;
	bool right = sent != local;
	bool io = sent && holds(plan, RULES_C_LOCAL_IO) && !holds(plan, RULES_C_LOCAL_CPU);

	c->win += right;
	c->local_right += right && !sent;
	c->remote_right += right && sent;
	c->sent += sent;
	c->io += io;
	c->io_right += io && right;
	c->memory_wrong += !right && by_memory(plan, sent);
	c->local_better += local;
	c->local_s += row->v[PROBE_LOCAL_S];
	c->remote_s += row->v[PROBE_REMOTE_S];
	c->overhead_s += row->v[PROBE_OVERHEAD_S];
}

static int decide_all(struct decider *d, const struct probe_month *month, uint64_t seed,
		      struct counts *c)
{
	struct rules_plan plan;

	for (uint32_t k = 0; k < month->n; k++) {
		int ret = set_nodes(d, &month->rows[k]);

		rules_reseed(d->rules, seed << 32 | k);
		if (!ret)
			ret = rules_place(d->rules, d->view, d->home, &d->request, &plan);
		if (ret)
			return ret;
		decide_count(c, &month->rows[k], &plan);
	}
	return 0;
}

static struct probe_score score_of(const struct counts *c, double n)
{
	return (struct probe_score){
		.win = c->win / n,
		.local_right = c->local_right / n,
		.remote_right = c->remote_right / n,
		.sent = c->sent / n,
		.io_win = c->io > 0 ? c->io_right / c->io : NAN,
		.memory_wrong = c->memory_wrong / n,
		.local_better = c->local_better / n,
		.local_s = c->local_s / n,
		.remote_s = c->remote_s / n,
		.overhead_s = c->overhead_s / n,
	};
}

int probe_decide(const struct probe_spec *spec, const struct probe_month *month,
		 const struct sim_cluster *cluster, const struct rules_params *params,
		 const char *policy, uint64_t seed, struct probe_score *score,
		 struct iocom_err *err)
{
	struct counts counts = {0};
	struct rules_params own = *params;
	struct decider d = {.home = 0};
	enum rules_policy which;
	int ret = rules_policy_parse(policy, &which);

	if (ret)
		return iocom_err_set(err, ret, "a probe takes a plain policy, not \"%s\"", policy);
	if (which == RULES_RANDOM) {
		d.home = TERMINAL;
		own.eager_threshold = 0;
	}
	d.request = requirements(spec->job, cluster->machines[0].request_kb);
	decide_describe(&d.nodes[0], "local", &cluster->machines[0]);
	decide_describe(&d.nodes[1], "remote", &cluster->machines[1]);
	decide_describe(&d.nodes[TERMINAL], "terminal", &cluster->machines[0]);
	d.rules = rules_new(which, &own, seed);
	d.view = rules_view_new();
	ret = d.rules && d.view ? 0 : -ENOMEM;
	if (!ret) {
		rules_view_rates(d.view, own.rates);
		rules_view_reference(d.view, own.reference_mips);
		ret = rules_view_keep(d.view, which, &own);
	}
	if (!ret)
		ret = decide_all(&d, month, seed, &counts);
	if (ret == -EINVAL)
		iocom_err_set(err, ret, "a parameter of the rules is out of its range");
	*score = score_of(&counts, month->n);
	rules_free(d.rules);
	rules_view_free(d.view);
	return ret;
}
