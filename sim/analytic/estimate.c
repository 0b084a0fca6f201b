/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * O-42: estimates the inputs of the analytic model from a run.
 *
 *   lambda_i  tasks submitted to node i over the time of all arrivals
 *   v         moved / in stage, by home;   mu  in stage / reached, over all homes
 *   theta_i   moved to i / (in stage x E pi_i), so that rho_i equals what was observed
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/analytic/estimate.h"

struct moment {
	double ms;
	size_t task;
};

struct work {
	struct analytic_task *task;
	size_t n;
	uint32_t nodes;
	const struct analytic_scale *scale;
	struct analytic_estimate *e;
	struct analytic_node *node;
	double *q;		      /* nodes x resources x levels */
	double *load;		      /* nodes x resources, at the present moment */
	struct moment *starts, *ends; /* times at which tasks start and end, in order */
	/* counts */
	double *staged, *moved, *into; /* nodes x resources */
	double reached[ANALYTIC_RESOURCES], in_stage[ANALYTIC_RESOURCES];
};

static size_t level_of(double value, double unit, size_t levels)
{
	double level = floor(value / unit + 0.5);

	return level < (double)levels - 1 ? (size_t)fmax(level, 0) : levels - 1;
}

static int estimate_order(double a, double b)
{
	return (a > b) - (a < b);
}

static int by_node(const void *a, const void *b)
{
	const struct analytic_task *x = a, *y = b;
	int c = estimate_order(x->node, y->node);

	c = c ? c : estimate_order(x->start_ms, y->start_ms);
	c = c ? c : estimate_order(x->arrival_ms, y->arrival_ms);
	return c ? c : estimate_order(x->end_ms, y->end_ms);
}

static int by_arrival(const void *a, const void *b)
{
	const struct analytic_task *x = a, *y = b;
	int c = estimate_order(x->arrival_ms, y->arrival_ms);

	c = c ? c : estimate_order(x->start_ms, y->start_ms);
	c = c ? c : estimate_order(x->node, y->node);
	return c ? c : estimate_order(x->end_ms, y->end_ms);
}

static int by_moment(const void *a, const void *b)
{
	const struct moment *x = a, *y = b;
	int c = estimate_order(x->ms, y->ms);

	return c ? c : (x->task > y->task) - (x->task < y->task);
}

/* --- R, T, and the slowdown ------------------------------------------------------------ */

static void response(struct work *w)
{
	const struct analytic_scale *s = w->scale;
	struct analytic_estimate *e = w->e;
	double each = 1 / (double)w->n, io = 0, cpu = 0, last = 0, took = 0;
	uint32_t node = UINT32_MAX;

	qsort(w->task, w->n, sizeof(*w->task), by_node);
	for (size_t i = 0; i < w->n; i++) {
		const struct analytic_task *t = &w->task[i];
		double alone = t->io_ms + t->cpu_ms, passed = t->start_ms - last;

		if (t->node != node)
			io = cpu = passed = 0;
		io = fmax(io - passed, 0);
		cpu = fmax(cpu - passed, 0);
		e->r_io[level_of(io, s->unit_ms, s->times)] += each;
		e->r_cpu[level_of(cpu, s->unit_ms, s->times)] += each;
		e->t_io[level_of(t->io_ms, s->unit_ms, s->times)] += each;
		e->t_cpu[level_of(t->cpu_ms, s->unit_ms, s->times)] += each;
		e->cumulative_ms += each * (io + cpu);
		e->execution_ms += each * alone;
		e->seen_slowdown += alone > 0 ? each * (t->end_ms - t->start_ms) / alone : each;
		took += each * (t->end_ms - t->start_ms);
		io += t->io_ms;
		cpu += t->cpu_ms;
		last = t->start_ms;
		node = t->node;
	}
	e->slowdown = analytic_slowdown(e->cumulative_ms, e->execution_ms);
	e->seen_of_means = e->execution_ms > 0 ? took / e->execution_ms : 1;
}

/* --- loads and transfers ----------------------------------------------------------------- */

static void load_change(struct work *w, const struct analytic_task *t, double sign)
{
	for (int x = 0; x < ANALYTIC_RESOURCES; x++)
		w->load[t->node * ANALYTIC_RESOURCES + x] += sign * t->load[x];
}

/* Records all nodes' loads; returns the first resource in which HOME is not strictly the lowest. */
static int estimate_look(struct work *w, uint32_t home)
{
	const size_t levels = w->scale->loads;
	int stage = ANALYTIC_RESOURCES;

	for (int x = 0; x < ANALYTIC_RESOURCES; x++) {
		double unit = w->scale->load_unit[x];
		size_t own = level_of(w->load[home * ANALYTIC_RESOURCES + x], unit, levels);
		bool lightest = true;

		for (uint32_t j = 0; j < w->nodes; j++) {
			uint32_t k = j * ANALYTIC_RESOURCES + x;
			size_t level = level_of(w->load[k], unit, levels);

			w->q[k * levels + level] += 1 / (double)w->n;
			lightest = lightest && (j == home || level > own);
		}
		w->e->unbalanced[x] += lightest ? 0 : 1 / (double)w->n;
		if (!lightest && stage == ANALYTIC_RESOURCES)
			stage = x;
	}
	return stage;
}

static void estimate_count(struct work *w, const struct analytic_task *t, int stage)
{
	bool moved = t->node != t->home;

	for (int x = 0; x < ANALYTIC_RESOURCES && x <= stage; x++)
		w->reached[x]++;
	if (stage == ANALYTIC_RESOURCES)
		return;
	w->in_stage[stage]++;
	w->staged[t->home * ANALYTIC_RESOURCES + stage]++;
	w->moved[t->home * ANALYTIC_RESOURCES + stage] += moved;
	w->into[t->node * ANALYTIC_RESOURCES + stage] += moved;
}

/* Follows the run by arrivals.  A task counts on its node from its start to its end. */
static void estimate_follow(struct work *w)
{
	struct moment *starts = w->starts, *ends = w->ends;
	size_t started = 0, ended = 0;

	for (size_t i = 0; i < w->n; i++) {
		const struct analytic_task *t = &w->task[i];

		for (; started < w->n && starts[started].ms < t->arrival_ms; started++)
			load_change(w, &w->task[starts[started].task], 1);
		for (; ended < started && ends[ended].ms <= t->arrival_ms; ended++)
			load_change(w, &w->task[ends[ended].task], -1);
		estimate_count(w, t, estimate_look(w, t->home));
		w->node[t->home].arrivals++;
	}
}

static void shares(struct work *w)
{
	struct analytic_model *m = &w->e->model;
	double span = w->task[w->n - 1].arrival_ms - w->task[0].arrival_ms, moved = 0;

	for (uint32_t j = 0; j < w->nodes; j++)
		w->node[j].arrivals /= span > 0 ? span : 1;
	m->arrivals = (double)w->n / (span > 0 ? span : 1);
	for (uint32_t j = 0; j < w->nodes; j++) {
		for (int x = 0; x < ANALYTIC_RESOURCES; x++) {
			uint32_t k = j * ANALYTIC_RESOURCES + x;
			double lightest = analytic_mean_lightest(m, j, (enum analytic_resource)x);
			double chances = w->in_stage[x] * lightest;

			w->node[j].gain[x] = w->staged[k] > 0 ? w->moved[k] / w->staged[k] : 0;
			w->node[j].unbalanced[x] =
				w->reached[x] > 0 ? w->in_stage[x] / w->reached[x] : 0;
			w->node[j].useful[x] = chances > 0 ? w->into[k] / chances : 0;
			moved += w->into[k];
		}
	}
	w->e->moved_per_ms = moved / (span > 0 ? span : 1);
	for (uint32_t j = 0; j < w->nodes; j++) {
		w->e->out_per_ms += analytic_mean_out(m, j);
		w->e->in_per_ms += analytic_mean_in(m, j);
	}
}

static void transfers(struct work *w)
{
	qsort(w->task, w->n, sizeof(*w->task), by_arrival);
	for (size_t i = 0; i < w->n; i++) {
		w->starts[i] = (struct moment){w->task[i].start_ms, i};
		w->ends[i] = (struct moment){w->task[i].end_ms, i};
	}
	qsort(w->starts, w->n, sizeof(*w->starts), by_moment);
	qsort(w->ends, w->n, sizeof(*w->ends), by_moment);
	estimate_follow(w);
	shares(w);
}

/* --- memory ---------------------------------------------------------------------------------- */

static int estimate_check(const struct analytic_task *task, size_t n, uint32_t nodes,
			  const struct analytic_scale *s)
{
	if (n == 0 || nodes == 0 || !(s->unit_ms > 0) || s->times < 2 || s->loads < 2)
		return -EINVAL;
	for (int x = 0; x < ANALYTIC_RESOURCES; x++) {
		if (!(s->load_unit[x] > 0))
			return -EINVAL;
	}
	for (size_t i = 0; i < n; i++) {
		if (task[i].home >= nodes || task[i].node >= nodes)
			return -EINVAL;
	}
	return 0;
}

/* Allocates the estimate's own arrays as one block. */
static int estimate_reserve(struct work *w)
{
	const struct analytic_scale *s = w->scale;
	size_t cells = (size_t)w->nodes * ANALYTIC_RESOURCES;
	double *block = calloc(1, w->nodes * sizeof(*w->node) +
					  (4 * s->times + cells * s->loads) * sizeof(*block));
	struct analytic_estimate *e = w->e;

	if (!block)
		return -ENOMEM;
	e->memory = block;
	e->r_io = block;
	e->r_cpu = e->r_io + s->times;
	e->t_io = e->r_cpu + s->times;
	e->t_cpu = e->t_io + s->times;
	w->q = e->t_cpu + s->times;
	w->node = (struct analytic_node *)(void *)(w->q + cells * s->loads);
	for (uint32_t j = 0; j < w->nodes; j++) {
		for (int x = 0; x < ANALYTIC_RESOURCES; x++)
			w->node[j].load[x] = w->q + ((size_t)j * ANALYTIC_RESOURCES + x) * s->loads;
	}
	e->model = (struct analytic_model){.nodes = w->nodes, .levels = s->loads, .node = w->node};
	return 0;
}

int analytic_estimate(struct analytic_task *tasks, size_t n, uint32_t nodes,
		      const struct analytic_scale *scale, struct analytic_estimate *e)
{
	struct work w = {.task = tasks, .n = n, .nodes = nodes, .scale = scale, .e = e};
	size_t cells = (size_t)nodes * ANALYTIC_RESOURCES;
	double *counts;
	int rc = estimate_check(tasks, n, nodes, scale);

	*e = (struct analytic_estimate){0};
	if (rc < 0)
		return rc;
	counts = calloc(4 * cells, sizeof(*counts));
	w.starts = calloc(2 * n, sizeof(*w.starts));
	rc = counts && w.starts ? estimate_reserve(&w) : -ENOMEM;
	if (rc == 0) {
		w.ends = w.starts + n;
		w.load = counts;
		w.staged = counts + cells;
		w.moved = counts + 2 * cells;
		w.into = counts + 3 * cells;
		response(&w);
		transfers(&w);
	}
	free(counts);
	free(w.starts);
	return rc;
}

void analytic_estimate_free(struct analytic_estimate *e)
{
	free(e->memory);
	*e = (struct analytic_estimate){0};
}
