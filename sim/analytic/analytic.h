/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The analytic model of MODEL 5.9 (ACM 3.2): how long an arriving task waits, and how tasks are
 * transferred between nodes whose loads are known as distributions.
 *
 * A distribution is an array of N probabilities: p[i] = Pr(i units), i = 0 .. N - 1.
 * Equation numbers are those of ACM.  For errors in the paper's print we compute the intended form
 * (E-10, E-11), and for E-12 the printed form on request.
 */
#ifndef SIM_ANALYTIC_H
#define SIM_ANALYTIC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* --- response (2)-(6) ------------------------------------------------------------------ */

/*
 * (2): the distribution of R = R_IO + R_CPU, independent; OUT has n_io + n_cpu - 1
 * entries.  AS_PRINTED: the sum stops at j = i - 1, which drops R_CPU = 0 (E-12).
 */
void analytic_sum(const double *io, size_t n_io, const double *cpu, size_t n_cpu, bool as_printed,
		  double *out);
/* (3): sum of i p[i]. */
double analytic_mean(const double *p, size_t n);
/* (4): E(T) as the double sum over alpha_j beta_(i-j); io[0] and cpu[0] count with their
 * given values. */
double analytic_execution(const double *io, size_t n_io, const double *cpu, size_t n_cpu);
/* (5), (6): E(S) = E(R) / E(T) + 1; 1 when E(T) is 0. */
double analytic_slowdown(double cumulative, double execution);

/* --- transfers (7)-(15) ------------------------------------------------------------------ */

enum analytic_resource {
	ANALYTIC_IO,
	ANALYTIC_MEM,
	ANALYTIC_CPU,
	ANALYTIC_RESOURCES,
};

struct analytic_node {
	double arrivals;			/* lambda_i, arrivals from outside */
	double gain[ANALYTIC_RESOURCES];	/* v: probability that balancing X brings a gain */
	double unbalanced[ANALYTIC_RESOURCES];	/* mu: probability that X is unbalanced */
	double useful[ANALYTIC_RESOURCES];	/* theta: probability that a transfer to this node
						 * helps */
	const double *load[ANALYTIC_RESOURCES]; /* q: `levels` probabilities; borrowed */
};

struct analytic_model {
	uint32_t nodes;
	size_t levels;
	const struct analytic_node *node;
	/* lambda of (12).  The paper has one node's rate, but if theta is a probability,
	 * transfers in and out can only balance with the rate of the whole cluster. */
	double arrivals;
};

/* (13)-(15): probability that every other node's load is above LEVEL. */
double analytic_lightest(const struct analytic_model *m, uint32_t node, enum analytic_resource x,
			 size_t level);
/* Mean of analytic_lightest over the node's own load. */
double analytic_mean_lightest(const struct analytic_model *m, uint32_t node,
			      enum analytic_resource x);
/* (9)-(11): 1 - analytic_lightest: another node has at most this load. */
double analytic_unbalanced(const struct analytic_model *m, uint32_t node, enum analytic_resource x,
			   size_t level);
/* (9) in closed form for N identical nodes with load Q. */
double analytic_unbalanced_alike(const double *q, size_t levels, uint32_t nodes, size_t level);
/* (8), phi_i: tasks transferred out per unit of time at these loads (I/O, memory, CPU). */
double analytic_out(const struct analytic_model *m, uint32_t node, const size_t level[]);
/* (12), rho_i: tasks transferred in. */
double analytic_in(const struct analytic_model *m, uint32_t node, const size_t level[]);
/* (7): lambda_i + rho_i - phi_i. */
double analytic_rate(const struct analytic_model *m, uint32_t node, const size_t level[]);
/* phi_i and rho_i averaged over the node's own loads, which are taken as independent. */
double analytic_mean_out(const struct analytic_model *m, uint32_t node);
double analytic_mean_in(const struct analytic_model *m, uint32_t node);

#endif
