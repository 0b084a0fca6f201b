/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Clusters drawn from seeds, and each side of each test of the rules computed by a
 * plain scan over the same nodes.
 */
#ifndef RULES_SCAN_H
#define RULES_SCAN_H

#include "balancer/rules/rules_private.h"

#include "tests/unit/rules_fixture.h"

#define MOST_HERE 120

struct cluster {
	uint32_t n, home;
	struct rules_node nodes[MOST_HERE];
	struct rules_request job;
	struct rules_correction corrections[MOST_HERE]; /* of the job; half the jobs have some */
	struct rules_params params;
	enum rules_policy policy;
	struct rules_view *view;
	uint64_t seed;
};

static inline struct rules_params scan_params(struct draws *d)
{
	struct rules_params p;

	rules_params_default(&p, draw_chance(d, 0.5) ? RULES_RATES_WALL : RULES_RATES_COMPUTATION);
	p.try_next = draw_chance(d, 0.5);
	p.literal_requests = draw_chance(d, 0.5);
	p.measured_state = draw_chance(d, 0.8);
	p.closed_loop_bound = draw_chance(d, 0.8);
	p.require_memory = draw_chance(d, 0.5);
	p.cpu_cost_test = draw_chance(d, 0.7);
	p.io_cost_test = draw_chance(d, 0.7);
	p.io_useful_test = draw_chance(d, 0.7);
	p.cpu_speed_weighted = draw_chance(d, 0.3);
	p.discrepancy_after = draw_chance(d, 0.7);
	p.mem_ratio_test = draw_chance(d, 0.8);
	p.mem_order_free = draw_chance(d, 0.2);
	p.cm_memory_ratio = draw_chance(d, 0.3);
	p.io_order_share = draw_chance(d, 0.2);
	p.hom_stage_explicit = draw_chance(d, 0.3);
	p.wal_normalise = draw_chance(d, 0.3);
	p.wal_discrepancy = draw_chance(d, 0.7);
	p.w_io = draw_chance(d, 0.3) ? (double)(int)draw(d, 2) : draw(d, 1);
	p.overload_ratio = draw(d, 1.5);
	p.eager_probes = (double)(int)draw(d, 5);
	p.cpu_threshold = draw(d, 3);
	p.delay_harm = p.w_io > 0.5 ? 1 : 2 * p.w_io;
	p.delay_margin = p.w_io / 4;
	p.delay_tie = p.w_io < 0.3 ? 0 : p.w_io / 4;
	return p;
}

/*
 * Gives the nodes loads that hardly differ, so that a bound that is a little too low would rule out
 * the right node.
 */
static inline void make_alike(struct cluster *c, struct draws *d)
{
	for (uint32_t i = 0; i < c->n; i++) {
		struct rules_node *n = &c->nodes[i];
		double memory = 1950 + draw(d, 40), io = 0.05 + draw(d, 0.002);

		n->ram_mb = 2000;
		n->cores = 1;
		n->cpu_mips = 800;
		n->disk_mb_per_s = 40;
		n->advertised.memory_mb = memory;
		n->advertised.io_per_ms = n->advertised.explicit_per_ms = io;
		n->advertised.cpu = 10 + draw(d, 0.5);
	}
	c->params.cpu_cost_test = c->params.io_cost_test = c->params.io_useful_test = false;
	c->params.require_memory = false;
	c->params.overload_ratio = 0.5;
	c->params.fixed_cost_ms = 0;
	c->job = job_io(10000, 100);
	c->job.memory_mb = 100;
}

static inline void cluster_draw(struct cluster *c, uint64_t seed)
{
	struct draws d = {seed};

	c->seed = seed;
	c->n = 1 + (uint32_t)draw(&d, draw_chance(&d, 0.5) ? 8 : MOST_HERE);
	c->home = (uint32_t)draw(&d, c->n);
	c->policy = (enum rules_policy)draw(&d, RULES_POLICIES);
	c->params = scan_params(&d);
	for (uint32_t i = 0; i < c->n; i++)
		c->nodes[i] = node_random(&d, i);
	/* Sometimes the highest of all, or WAL would have nothing to do. */
	if (draw_chance(&d, 0.5)) {
		c->nodes[c->home].advertised.cpu += 15;
		c->nodes[c->home].advertised.io_per_ms += 0.1;
	}
	c->job = job_random(&d);
	if (draw_chance(&d, 0.2))
		make_alike(c, &d);
	if (seed % 2 == 0) {
		correct_randomly(&c->job, c->corrections, c->n, seed);
		c->params.prediction_feedback = seed % 10 != 0;
	}
	if (seed % 3 > 0)
		share_randomly(c->nodes, c->n, seed);
	c->view = view_of(c->nodes, c->n, c->params.rates);
}

static inline void cluster_place(const struct cluster *c, struct rules_plan *plan)
{
	struct rules *rules = rules_new(c->policy, &c->params, c->seed);

	assert_int_equal(rules_place(rules, c->view, c->home, &c->job, plan), 0);
	rules_free(rules);
}

#define REQUIRE(c, what)                                                                           \
	do {                                                                                       \
		if (!(what)) {                                                                     \
			print_error("seed %llu (%s): %s\n", (unsigned long long)(c)->seed,         \
				    rules_policy_name((c)->policy), #what);                        \
			fail();                                                                    \
		}                                                                                  \
	} while (0)

/* --- the plain scan ---------------------------------------------------------- */

static inline double scan_disk(const struct cluster *c, const struct rules_cell *k, double kb)
{
	bool measured = c->params.measured_state && k->measured;
	double own = k->fixed_ms + kb / k->disk_mb_per_s;
	double es = k->service, es2 = k->service2, arrivals, rho;
	struct rules_added added = rules_cell_added(k, &c->job, c->params.rates);

	if (!(k->disk_mb_per_s > 0))
		return 0;
	if (measured && k->seen_service > 0) {
		es = k->seen_service;
		es2 = fmax(k->seen_service2, es * es);
	}
	arrivals = measured ? k->arrivals : k->io + added.explicit_io + added.implicit_io;
	rho = fmin(measured ? k->utilisation : arrivals * es, c->params.rho_max);
	if (!c->params.closed_loop_bound)
		return own + arrivals * es2 / (2 * (1 - rho));
	return fmin(own + arrivals * es2 / (2 * (1 - rho)), (k->io_tasks + 1) * fmax(es, own));
}

static inline double scan_factor(const struct cluster *c, uint32_t index)
{
	double factor = c->job.correction > 0 ? c->job.correction : 1;

	for (size_t i = 0; i < c->job.ncorrections; i++)
		if (c->job.corrections[i].node == index)
			factor = c->job.corrections[i].factor;
	return c->params.prediction_feedback ? factor : 1;
}

static inline double scan_response(const struct cluster *c, uint32_t index)
{
	const struct rules_cell *k = &c->view->cells[index];
	const struct rules_request *j = &c->job;
	bool is_wall = c->params.rates == RULES_RATES_WALL;
	double requests = is_wall ? j->requests : j->cpu_ms * j->io_per_ms;
	double kb_per_ms = k->kb_per_ms + j->io_per_ms * j->request_kb;
	double t = j->cpu_ms * (c->view->cells[c->home].mips / k->mips);
	double faults = 0;

	if (!c->params.literal_requests) {
		if (!is_wall)
			requests *= 1 - rules_hit_rate(j->reaccess, k->buffer_kb, j->io_per_ms,
						       j->request_kb, j->cpu_ms, kb_per_ms);
		faults = j->cpu_ms *
			 rules_implicit(j->faults_per_ms, k->memory + j->memory_mb, k->n_mem);
	}
	return (t * fmax(1, (k->queue + 1) / k->cores) + requests * scan_disk(c, k, j->request_kb) +
		faults * scan_disk(c, k, RULES_PAGE_KB)) *
	       scan_factor(c, index);
}

/* 2.10: what the job takes at a node (price false), or that and what others lose by it. */
static inline double scan_delay(const struct cluster *c, uint32_t index, bool price)
{
	const struct rules_cell *k = &c->view->cells[index];
	const struct rules_sharers *s = &k->sharers;
	const struct rules_request *j = &c->job;
	bool is_wall = c->params.rates == RULES_RATES_WALL, disk = k->disk_mb_per_s > 0;
	double work = j->cpu_ms * c->view->cells[c->home].mips, requests = j->requests, d = 0;
	double faults = 0, t, met_cpu = 0, met_disk = 0, crowd = 1, crowd_disk = 1, harm;

	if (!is_wall) {
		requests = j->cpu_ms * j->io_per_ms *
			   (1 - rules_hit_rate(j->reaccess, k->buffer_kb, j->io_per_ms,
					       j->request_kb, j->cpu_ms,
					       k->kb_per_ms + j->io_per_ms * j->request_kb));
		faults = j->cpu_ms *
			 rules_implicit(j->faults_per_ms, k->memory + j->memory_mb, k->n_mem);
	}
	if (disk)
		d = requests * (k->fixed_ms + j->request_kb / k->disk_mb_per_s) +
		    faults * (k->fixed_ms + RULES_PAGE_KB / k->disk_mb_per_s);
	t = fmax(work / k->mips, work / k->burst + d);
	t += RULES_SEQUENTIAL * (work / k->mips + d - t);
	if (!(t > 0))
		return 0;
	if (s->cpu > 0)
		met_cpu = work / k->mips / t * fmin(t, s->cpu_left_ms / s->cpu);
	if (s->disk > 0)
		met_disk = d / t * fmin(t, s->disk_left_ms / s->disk);
	if (k->cores > 1)
		crowd = fmin(1, fmax(0, s->cpu + 1 - k->cores));
	if (k->disk_parallel > 1)
		crowd_disk = fmin(1, fmax(0, s->disk + 1 - k->disk_parallel));
	if (k->disk_parallel < 2)
		crowd_disk += (2 - k->disk_parallel) * (1 - crowd_disk);
	harm = met_cpu * s->cpu / k->cores * crowd +
	       met_disk * s->disk / k->disk_parallel * crowd_disk;
	return (t + met_cpu * fmax(0, (s->cpu + 1) / k->cores - 1) +
		met_disk * fmax(0, (s->disk + 1) / k->disk_parallel - 1)) *
		       scan_factor(c, index) +
	       (price ? c->params.delay_harm * harm : 0);
}

static inline double scan_cost(const struct cluster *c, uint32_t index)
{
	const struct rules_cell *i = &c->view->cells[c->home], *k = &c->view->cells[index];
	double from = i->network > 0 ? i->network : c->params.network_mb_per_s;
	double to = k->network > 0 ? k->network : c->params.network_mb_per_s;

	return rules_transfer_cost_ms(c->params.fixed_cost_ms, c->job.initial_mb, fmin(from, to),
				      i->disk_mb_per_s, k->disk_mb_per_s);
}

static inline bool scan_worthwhile(const struct cluster *c, uint32_t index)
{
	return scan_response(c, c->home) > scan_response(c, index) + scan_cost(c, index);
}

static inline bool scan_eligible(const struct cluster *c, uint32_t index)
{
	const struct rules_cell *k = &c->view->cells[index];
	const struct rules_request *j = &c->job;

	if (!k->accepts || ((j->io_per_ms > 0 || j->requests > 0) && !(k->disk_mb_per_s > 0)))
		return false;
	return !c->params.require_memory || k->memory + j->memory_mb <= k->n_mem;
}

#endif
