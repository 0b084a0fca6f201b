/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 *   (2)  p_R(i) = sum_{j=0..i} Pr(R_IO = j) Pr(R_CPU = i - j)         printed: j <= i - 1 (E-12)
 *   (3)  E(R)   = sum i p_R(i)
 *   (4)  E(T)   = sum i sum_j alpha_j beta_(i-j)
 *   (6)  E(S)   = E(R) / E(T) + 1
 *   (7)  lambda_i(L) = lambda_i + rho_i - phi_i
 *   (8)  phi_i  = lambda_i [ u_IO v_IO + (1 - u_IO) (u_MEM v_MEM + (1 - u_MEM) u_CPU v_CPU) ]
 *   (9)  u_X(L) = 1 - prod_{j != i} sum_{k > L} q^j_X(k)              (10), (11) alike (E-11)
 *   (12) rho_i  = lambda [ mu_IO pi_IO theta_IO + (1 - mu_IO) (mu_MEM pi_MEM theta_MEM
 *                          + (1 - mu_MEM) mu_CPU pi_CPU theta_CPU) ]
 *   (13) pi_X(L) = prod_{j != i} sum_{k > L} q^j_X(k)                 (14), (15) alike (E-11)
 */
#include <math.h>

#include "sim/analytic/analytic.h"

void analytic_sum(const double *io, size_t n_io, const double *cpu, size_t n_cpu, bool as_printed,
		  double *out)
{
	for (size_t i = 0; i < n_io + n_cpu - 1; i++)
		out[i] = 0;
	for (size_t j = 0; j < n_io; j++) {
		for (size_t k = as_printed ? 1 : 0; k < n_cpu; k++)
			out[j + k] += io[j] * cpu[k];
	}
}

double analytic_mean(const double *p, size_t n)
{
	double sum = 0;

	for (size_t i = 1; i < n; i++)
		sum += (double)i * p[i];
	return sum;
}

double analytic_execution(const double *io, size_t n_io, const double *cpu, size_t n_cpu)
{
	double sum = 0;

	for (size_t i = 1; i < n_io + n_cpu - 1; i++) {
		size_t first = i < n_cpu ? 0 : i - n_cpu + 1, last = i < n_io ? i : n_io - 1;
		double p = 0;

		for (size_t j = first; j <= last; j++)
			p += io[j] * cpu[i - j];
		sum += (double)i * p;
	}
	return sum;
}

double analytic_slowdown(double cumulative, double execution)
{
	return execution > 0 ? cumulative / execution + 1 : 1;
}

static double analytic_above(const double *q, size_t levels, size_t level)
{
	double sum = 0;

	for (size_t k = levels; k-- > level + 1;)
		sum += q[k];
	return sum;
}

double analytic_lightest(const struct analytic_model *m, uint32_t node, enum analytic_resource x,
			 size_t level)
{
	double p = 1;

	for (uint32_t j = 0; j < m->nodes; j++) {
		if (j != node)
			p *= analytic_above(m->node[j].load[x], m->levels, level);
	}
	return p;
}

double analytic_unbalanced(const struct analytic_model *m, uint32_t node, enum analytic_resource x,
			   size_t level)
{
	return 1 - analytic_lightest(m, node, x, level);
}

double analytic_unbalanced_alike(const double *q, size_t levels, uint32_t nodes, size_t level)
{
	return 1 - pow(analytic_above(q, levels, level), nodes - 1.0);
}

/* The ladder of (8) and (12): resource X counts only if all resources before it are in balance. */
static double ladder(const double *seen, const double *part)
{
	double reached = 1, sum = 0;

	for (int x = 0; x < ANALYTIC_RESOURCES; x++) {
		sum += reached * seen[x] * part[x];
		reached *= 1 - seen[x];
	}
	return sum;
}

double analytic_out(const struct analytic_model *m, uint32_t node, const size_t level[])
{
	const struct analytic_node *n = &m->node[node];
	double u[ANALYTIC_RESOURCES];

	for (int x = 0; x < ANALYTIC_RESOURCES; x++)
		u[x] = analytic_unbalanced(m, node, (enum analytic_resource)x, level[x]);
	return n->arrivals * ladder(u, n->gain);
}

double analytic_in(const struct analytic_model *m, uint32_t node, const size_t level[])
{
	const struct analytic_node *n = &m->node[node];
	double part[ANALYTIC_RESOURCES];

	for (int x = 0; x < ANALYTIC_RESOURCES; x++)
		part[x] = n->useful[x] *
			  analytic_lightest(m, node, (enum analytic_resource)x, level[x]);
	return m->arrivals * ladder(n->unbalanced, part);
}

double analytic_rate(const struct analytic_model *m, uint32_t node, const size_t level[])
{
	return m->node[node].arrivals + analytic_in(m, node, level) - analytic_out(m, node, level);
}

double analytic_mean_lightest(const struct analytic_model *m, uint32_t node,
			      enum analytic_resource x)
{
	const double *q = m->node[node].load[x];
	double sum = 0;

	for (size_t k = 0; k < m->levels; k++)
		sum += q[k] * analytic_lightest(m, node, x, k);
	return sum;
}

double analytic_mean_out(const struct analytic_model *m, uint32_t node)
{
	const struct analytic_node *n = &m->node[node];
	double u[ANALYTIC_RESOURCES];

	for (int x = 0; x < ANALYTIC_RESOURCES; x++)
		u[x] = 1 - analytic_mean_lightest(m, node, (enum analytic_resource)x);
	return n->arrivals * ladder(u, n->gain);
}

double analytic_mean_in(const struct analytic_model *m, uint32_t node)
{
	const struct analytic_node *n = &m->node[node];
	double part[ANALYTIC_RESOURCES];

	for (int x = 0; x < ANALYTIC_RESOURCES; x++)
		part[x] = n->useful[x] * analytic_mean_lightest(m, node, (enum analytic_resource)x);
	return m->arrivals * ladder(n->unbalanced, part);
}
