/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What MODEL 5.9 leaves open (O-42), estimated from the tasks of a run: the distributions
 * of R and T, the loads q, and v, mu, theta as the shares seen.
 *
 *   R       per resource, by Lindley's recursion over the tasks that a node received:
 *           R' = max(R - time passed, 0) + T; what an arriving task would wait for if all
 *           before it were served first, in full
 *   q       loads at the arrivals, of every node
 *   stage   the first resource in which home's load is not strictly the lowest
 *   v       of home's arrivals in the stage, the part that was transferred
 *   mu      of all arrivals that reach the stage, the part that are in it
 *   theta   transfers into a node over the arrivals in the stage that would find it
 *           the lightest by (13)-(15); above 1 where these underrate it
 */
#ifndef SIM_ESTIMATE_H
#define SIM_ESTIMATE_H

#include "sim/analytic/analytic.h"

/* One task as it went. */
struct analytic_task {
	double arrival_ms, start_ms, end_ms; /* submitted; received by its node; ended */
	uint32_t home, node;
	double io_ms, cpu_ms;		 /* what it takes of each alone */
	double load[ANALYTIC_RESOURCES]; /* what it adds to a node's load */
};

/* Units of the distributions; what is beyond the last level counts there. */
struct analytic_scale {
	double unit_ms;
	size_t times; /* levels of R and T */
	double load_unit[ANALYTIC_RESOURCES];
	size_t loads;
};

struct analytic_estimate {
	struct analytic_model model; /* with all its arrays, owned by the estimate */
	/* Each `times` long, owned. */
	double *r_io, *r_cpu, *t_io, *t_cpu;
	double cumulative_ms, execution_ms; /* E(R), E(T) without the rounding to units */
	double slowdown;		    /* (6) of these */
	/* As seen, to hold the model against */
	double seen_slowdown;		       /* mean of (end - start) / T */
	double seen_of_means;		       /* mean of (end - start) over mean of T */
	double out_per_ms, in_per_ms;	       /* sums of phi and rho by the model */
	double moved_per_ms;		       /* transfers seen */
	double unbalanced[ANALYTIC_RESOURCES]; /* home's load is not strictly lowest: seen */
	void *memory;
};

/*
 * Estimates from N tasks of a run on NODES nodes.  0; -ENOMEM; -EINVAL (no tasks, a
 * node out of range, a scale that is not positive).  TASKS is sorted on return.
 */
int analytic_estimate(struct analytic_task *tasks, size_t n, uint32_t nodes,
		      const struct analytic_scale *scale, struct analytic_estimate *e);
void analytic_estimate_free(struct analytic_estimate *e);

#endif
