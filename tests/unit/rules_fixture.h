/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Nodes, jobs and numbers that the tests of the rules share. */
#ifndef RULES_FIXTURE_H
#define RULES_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <iocom/rules.h>

struct draws {
	uint64_t state;
};

static inline uint64_t draw_bits(struct draws *d)
{
	uint64_t x = d->state += 0x9e3779b97f4a7c15u;

	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
	return x ^ (x >> 31);
}

/* Uniform in [0, most). */
static inline double draw(struct draws *d, double most)
{
	return (double)(draw_bits(d) >> 11) * 0x1p-53 * most;
}

static inline bool draw_chance(struct draws *d, double p)
{
	return draw(d, 1) < p;
}

static inline void assert_close(double got, double wanted, double within)
{
	if (!(fabs(got - wanted) <= within)) {
		print_error("got %.9g, wanted %.9g within %g\n", got, wanted, within);
		fail();
	}
}

/* The node of FC: 640 MB of which 160 MB buffer, 800 MIPS, 8 ms + d/40 MB/s. */
static inline struct rules_node node_fc(const char *name)
{
	struct rules_node n = {.ram_mb = 640,
			       .buffer_mb = 160,
			       .cpu_mips = 800,
			       .cores = 1,
			       .disk_fixed_ms = 8,
			       .disk_mb_per_s = 40,
			       .request_kb = 250,
			       .request_sd_kb = 50,
			       .accepts = true};

	snprintf(n.name, sizeof(n.name), "%s", name);
	return n;
}

/* FC nodes whose I/O loads and task counts are advertised. */
static inline struct rules_node node_advertised(const char *name, double io, double memory,
						double cpu)
{
	struct rules_node n = node_fc(name);

	n.has_advertised = true;
	n.advertised.io_per_ms = n.advertised.explicit_per_ms = io;
	n.advertised.memory_mb = memory;
	n.advertised.cpu = cpu;
	return n;
}

static inline struct rules_params params_computation(void)
{
	struct rules_params p;

	rules_params_default(&p, RULES_RATES_COMPUTATION);
	return p;
}

static inline struct rules_params params_wall(void)
{
	struct rules_params p;

	rules_params_default(&p, RULES_RATES_WALL);
	return p;
}

/* A live node: every value is measured, and it has no tasks. */
static inline struct rules_node node_live(const char *name, double utilisation, double cpu)
{
	struct rules_node n = node_fc(name);

	n.ram_mb = 16000;
	n.buffer_mb = 0;
	n.cores = 4;
	n.has_measured = n.has_advertised = true;
	n.measured.disk_utilisation = utilisation;
	n.measured.service_ms = utilisation > 0 ? 14.25 : 0;
	n.measured.service_ms2 = utilisation > 0 ? 204.625 : 0;
	n.measured.disk_arrivals_per_ms = utilisation / 14.25;
	n.measured.io_tasks = utilisation > 0 ? 2 : 0;
	n.measured.cpu_queue = cpu;
	n.advertised.io_per_ms = n.advertised.explicit_per_ms = utilisation / 14.25;
	n.advertised.memory_mb = 1000;
	n.advertised.cpu = cpu;
	return n;
}

static inline struct rules_request job_cpu(double cpu_ms)
{
	return (struct rules_request){.cpu_ms = cpu_ms, .memory_mb = 4, .requests = -1, .tasks = 1};
}

/* A job whose requests keep the FC disk busy when it runs alone. */
static inline struct rules_request job_io(double cpu_ms, double requests)
{
	return (struct rules_request){.cpu_ms = cpu_ms,
				      .io_per_ms = 0.05,
				      .request_kb = 250,
				      .memory_mb = 4,
				      .requests = requests,
				      .tasks = 1};
}

static inline const struct rules_reason *reason_find(const struct rules_plan *plan,
						     enum rules_criterion c, uint32_t node)
{
	for (uint32_t i = 0; i < plan->nreasons; i++)
		if (plan->reasons[i].criterion == c && plan->reasons[i].node == node)
			return &plan->reasons[i];
	return NULL;
}

static inline const struct rules_reason *
assert_reason(const struct rules_plan *plan, enum rules_criterion c, uint32_t node, bool holds)
{
	const struct rules_reason *r = reason_find(plan, c, node);

	if (r == NULL || r->holds != holds) {
		print_error("no reason %s of node %u that is %d\n", rules_criterion_name(c), node,
			    holds);
		fail();
	}
	return r;
}

/* Compares field by field, because a reason has padding. */
static inline bool same_reasons(const struct rules_plan *a, const struct rules_plan *b)
{
	if (a->nreasons != b->nreasons)
		return false;
	for (uint32_t i = 0; i < a->nreasons; i++) {
		const struct rules_reason *x = &a->reasons[i], *y = &b->reasons[i];

		if (x->criterion != y->criterion || x->node != y->node || x->left != y->left ||
		    x->right != y->right || x->holds != y->holds)
			return false;
	}
	return true;
}

static inline bool same_plan(const struct rules_plan *a, const struct rules_plan *b)
{
	uint32_t shown = a->ntied < 8 ? a->ntied : 8;

	return a->node == b->node && a->stayed == b->stayed && a->queued == b->queued &&
	       a->ntied == b->ntied && a->ncandidates == b->ncandidates &&
	       memcmp(a->tied, b->tied, shown * sizeof(a->tied[0])) == 0 &&
	       memcmp(a->candidates, b->candidates, a->ncandidates * sizeof(a->candidates[0])) ==
		       0 &&
	       memcmp(a->refused, b->refused, sizeof(a->refused)) == 0 && same_reasons(a, b);
}

static inline struct rules_view *view_of(const struct rules_node *nodes, uint32_t n,
					 enum rules_rates rates)
{
	struct rules_view *view = rules_view_new();

	assert_non_null(view);
	rules_view_rates(view, rates);
	for (uint32_t i = 0; i < n; i++)
		assert_int_equal(rules_view_set(view, i, &nodes[i]), 0);
	return view;
}

/* Makes one decision with fresh rules. */
static inline void place(enum rules_policy policy, const struct rules_params *params,
			 const struct rules_view *view, uint32_t home,
			 const struct rules_request *job, struct rules_plan *plan)
{
	struct rules *rules = rules_new(policy, params, 7);

	assert_non_null(rules);
	assert_int_equal(rules_place(rules, view, home, job, plan), 0);
	rules_free(rules);
}

/* A cluster drawn from a seed, with coarse numbers so that equal nodes are common. */
static inline struct rules_node node_random(struct draws *d, uint32_t i)
{
	/* One draw per statement, because the compiler chooses the order of arguments. */
	double busy = (double)(int)draw(d, 5) / 4, cpu = (double)(int)draw(d, 12);
	char name[16];
	struct rules_node n;

	snprintf(name, sizeof(name), "n%u", i);
	n = node_live(name, busy, cpu);
	n.cpu_mips = draw_chance(d, 0.7) ? 800 : 400 + draw(d, 1600);
	n.cores = 1 + (double)(int)draw(d, 4);
	n.accepts = draw_chance(d, 0.9);
	n.ram_mb = draw_chance(d, 0.7) ? 2000 : 500 + draw(d, 4000);
	n.advertised.memory_mb = (double)(int)draw(d, 10) * 300;
	n.measured.cpu_queue = draw_chance(d, 0.5) ? n.advertised.cpu : draw(d, 8);
	if (draw_chance(d, 0.3))
		n.disk_mb_per_s = 20 + draw(d, 200);
	if (draw_chance(d, 0.2))
		n.advertised.io_per_ms += 0.02;
	if (draw_chance(d, 0.1)) {
		n.disk_mb_per_s = 0;
		n.advertised.io_per_ms = n.advertised.explicit_per_ms = 0;
	}
	n.network_mb_per_s = draw_chance(d, 0.5) ? 0 : 10 + draw(d, 1000);
	n.has_measured = draw_chance(d, 0.8);
	return n;
}

/*
 * Lets about half of N nodes tell what their tasks have left, and some have a cap.  It comes from
 * SEED alone, so that nothing else is drawn differently.
 */
static inline void share_randomly(struct rules_node *nodes, uint32_t n, uint64_t seed)
{
	struct draws d = {seed ^ 0x7368617265u};

	for (uint32_t i = 0; i < n; i++) {
		struct rules_sharers *s = &nodes[i].sharers;

		nodes[i].has_sharers = draw_chance(&d, 0.5);
		s->cpu = draw_chance(&d, 0.3) ? 0 : draw(&d, 8);
		s->disk = draw_chance(&d, 0.3) ? 0 : draw(&d, 4);
		s->cpu_left_ms = s->cpu * draw(&d, 20000);
		s->disk_left_ms = s->disk * draw(&d, 20000);
		if (draw_chance(&d, 0.3))
			nodes[i].burst_mips = nodes[i].cpu_mips * (1 + draw(&d, 3));
		if (draw_chance(&d, 0.3))
			nodes[i].disk_parallel = 1 + draw(&d, 5);
	}
}

static inline struct rules_request job_random(struct draws *d)
{
	double cpu_ms = draw(d, 20000), requests = (double)(int)draw(d, 2000);
	struct rules_request j = job_io(cpu_ms, requests);

	j.io_per_ms = draw_chance(d, 0.3) ? 0 : draw(d, 0.07);
	if (j.io_per_ms == 0)
		j.requests = 0;
	j.initial_mb = draw_chance(d, 0.5) ? 0 : draw(d, 200);
	j.memory_mb = draw(d, 800);
	j.faults_per_ms = draw_chance(d, 0.5) ? 0 : draw(d, 0.01);
	j.reaccess = draw_chance(d, 0.5) ? 0 : 5;
	return j;
}

/*
 * Gives JOB random factors for some of N nodes, and perhaps for all others; LIST has room for N.
 * They come from SEED alone, so that nothing else is drawn differently.
 */
static inline void correct_randomly(struct rules_request *job, struct rules_correction *list,
				    uint32_t n, uint64_t seed)
{
	struct draws d = {seed ^ 0x636f7272u};
	double share = draw(&d, 1);

	job->corrections = list;
	job->ncorrections = 0;
	if (draw_chance(&d, 0.5))
		job->correction = 0.25 * exp2(draw(&d, 4));
	for (uint32_t i = 0; i < n; i++)
		if (draw_chance(&d, share))
			list[job->ncorrections++] =
				(struct rules_correction){i, 0.25 * exp2(draw(&d, 4))};
}

#endif
