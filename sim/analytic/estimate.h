/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What MODEL 5.9 leaves open (O-42), estimated from the tasks of a run: the distributions of R and
 * T, the loads q, and v, mu, theta as observed shares.
 *
 *   R       per resource, by Lindley's recursion over the tasks that a node received:
 *           R' = max(R - time passed, 0) + T; an arriving task would wait so long if all
 *           before it were served first, in full
 *   q       loads of every node at the arrivals
 *   stage   the first resource in which home's load is not strictly the lowest
 *   v       share of home's arrivals in the stage that was transferred
 *   mu      share of all arrivals that reach the stage and are in it
 *   theta   transfers into a node over the arrivals in the stage that would find it the
 *           lightest by (13)-(15); above 1 if these equations give too few
 */
#ifndef SIM_ESTIMATE_H
#define SIM_ESTIMATE_H

#include "sim/analytic/analytic.h"

/* The course of one task. */
struct analytic_task {
	double arrival_ms, start_ms, end_ms; /* submitted; received by its node; ended */
	uint32_t home, node;
	/* the time that the task takes of each resource when it is alone */
	double io_ms, cpu_ms;
	double load[ANALYTIC_RESOURCES]; /* the load that it adds to a node */
};

/* Units of the distributions; larger values count in the last level. */
struct analytic_scale {
	double unit_ms;
	size_t times; /* levels of R and T */
	double load_unit[ANALYTIC_RESOURCES];
	size_t loads;
};

struct analytic_estimate {
	struct analytic_model model; /* with all its arrays, which the estimate owns */
	/* Each has `times` entries, owned. */
	double *r_io, *r_cpu, *t_io, *t_cpu;
	double cumulative_ms, execution_ms; /* E(R), E(T), not rounded to units */
	double slowdown;		    /* (6) of these two */
	/* Observed values, for comparison with the model. */
	double seen_slowdown;		       /* mean of (end - start) / T */
	double seen_of_means;		       /* mean of (end - start) over mean of T */
	double out_per_ms, in_per_ms;	       /* sums of phi and rho from the model */
	double moved_per_ms;		       /* observed transfers */
	double unbalanced[ANALYTIC_RESOURCES]; /* observed share in which home's load is not
						* strictly lowest */
	void *memory;
};

/*
 * Estimates from N tasks of a run on NODES nodes.  Returns 0; -ENOMEM; -EINVAL (no tasks, a node
 * out of range, a scale that is not positive).  TASKS is sorted on return.
 */
int analytic_estimate(struct analytic_task *tasks, size_t n, uint32_t nodes,
		      const struct analytic_scale *scale, struct analytic_estimate *e);
void analytic_estimate_free(struct analytic_estimate *e);

#endif
