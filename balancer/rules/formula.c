/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The formulas of MODEL sections 1 and 2, one function each, on plain numbers.
 *
 *   IO(i,j)   = lambda_j (1 - h(i,j))                             (4.4) FC
 *   page(i,j) = mu_j L_MEM(i) / n_MEM(i)  if L_MEM(i) > n_MEM(i)   (4.3) FC
 *   r(i,j)    = t_j E(L_i) + t_j lambda_j [ E(s_i) + wait_i ]      (4.5) FC
 *   wait_i    = Lambda_i E(s_i^2) / (2 (1 - rho_i))                M/G/1
 *   c_j(i,k)  = e + d_j^INIT (1/b_net + 1/b_disk^i + 1/b_disk^k)   (4.7) FC
 *
 *   T         = M + q (C + D - M)      M = max(C, B + D)           2.10 (ours)
 *
 * All units are decimal: KB / (MB/s) = ms and MB / (MB/s) = s (O-1).
 */
#include <math.h>

#include <iocom/rules.h>

#define MS_PER_S 1000.0

double rules_hit_rate(double reaccess, double buffer_kb, double io_per_ms, double request_kb,
		      double cpu_ms, double node_kb_per_ms)
{
	double share_kb, data_kb, most;

	if (!(reaccess > 0) || !(buffer_kb > 0) || !(io_per_ms > 0))
		return 0;
	most = reaccess / (reaccess + 1);
	if (!(node_kb_per_ms > 0))
		return most;
	share_kb = io_per_ms * request_kb * buffer_kb / node_kb_per_ms; /* (5.2) */
	data_kb = io_per_ms * cpu_ms * request_kb / (reaccess + 1);	/* (5.3) */
	if (share_kb >= data_kb)
		return most;
	return reaccess * buffer_kb / (cpu_ms * node_kb_per_ms); /* (5.4) */
}

double rules_implicit(double faults_per_ms, double memory_load_mb, double memory_mb)
{
	if (!(memory_mb > 0) || memory_load_mb <= memory_mb)
		return 0;
	return faults_per_ms * memory_load_mb / memory_mb;
}

double rules_service_ms(double fixed_ms, double request_kb, double disk_mb_per_s)
{
	return fixed_ms + request_kb / disk_mb_per_s;
}

double rules_service_ms2(double fixed_ms, double request_kb, double sd_kb, double disk_mb_per_s)
{
	double mean = rules_service_ms(fixed_ms, request_kb, disk_mb_per_s);
	double sd = sd_kb / disk_mb_per_s;

	return mean * mean + sd * sd;
}

double rules_disk_response_ms(double service_ms, double service_ms2, double arrivals_per_ms,
			      double utilisation, double rho_max)
{
	double rho = utilisation < rho_max ? utilisation : rho_max;

	return service_ms + arrivals_per_ms * service_ms2 / (2 * (1 - rho));
}

double rules_response_ms(double cpu_ms, double cpu_queue, double requests, double disk_response_ms)
{
	return cpu_ms * cpu_queue + requests * disk_response_ms;
}

/* The s per MB over the link and both disks; a node without a disk adds nothing. */
static double path_s_per_mb(double network_mb_per_s, double from_mb_per_s, double to_mb_per_s)
{
	double s = network_mb_per_s > 0 ? 1 / network_mb_per_s : INFINITY;

	if (from_mb_per_s > 0)
		s += 1 / from_mb_per_s;
	if (to_mb_per_s > 0)
		s += 1 / to_mb_per_s;
	return s;
}

double rules_transfer_cost_ms(double fixed_ms, double initial_mb, double network_mb_per_s,
			      double disk_from_mb_per_s, double disk_to_mb_per_s)
{
	if (!(initial_mb > 0))
		return fixed_ms;
	return fixed_ms +
	       MS_PER_S * initial_mb *
		       path_s_per_mb(network_mb_per_s, disk_from_mb_per_s, disk_to_mb_per_s);
}

double rules_migration_cost_ms(double fixed_ms, double image_mb, double data_mb,
			       double network_mb_per_s, double disk_from_mb_per_s,
			       double disk_to_mb_per_s)
{
	double cost = rules_transfer_cost_ms(fixed_ms, data_mb, network_mb_per_s,
					     disk_from_mb_per_s, disk_to_mb_per_s);

	return cost + rules_transfer_cost_ms(0, image_mb, network_mb_per_s, 0, 0);
}

double rules_disk_performance(double fixed_ms, double request_kb, double disk_mb_per_s)
{
	if (!(disk_mb_per_s > 0))
		return 0;
	return 1 / rules_service_ms(fixed_ms, request_kb, disk_mb_per_s);
}

double rules_heterogeneity(const double *weights, size_t n)
{
	double mean = 0, square = 0;

	if (n == 0)
		return 0;
	for (size_t i = 0; i < n; i++)
		mean += weights[i];
	mean /= (double)n;
	for (size_t i = 0; i < n; i++)
		square += (mean - weights[i]) * (mean - weights[i]);
	return sqrt(square / (double)n);
}

double rules_io_threshold(double total_io_per_ms, double performance, double total_performance)
{
	if (!(total_performance > 0))
		return 0;
	return total_io_per_ms * (performance / total_performance);
}

double rules_weighted_load(double w_cpu, double cpu, double io_per_ms)
{
	return w_cpu * cpu + (1 - w_cpu) * io_per_ms;
}

double rules_alone_ms(double cpu_ms, double burst_ms, double disk_ms)
{
	double uncapped = burst_ms + disk_ms, least = cpu_ms > uncapped ? cpu_ms : uncapped;

	if (!isfinite(least))
		return least;
	return least + RULES_SEQUENTIAL * (cpu_ms + disk_ms - least);
}

void rules_sharers_add(struct rules_sharers *s, double cpu_ms, double burst_ms, double disk_ms)
{
	double alone = rules_alone_ms(cpu_ms, burst_ms, disk_ms);

	if (!(alone > 0) || !isfinite(alone))
		return;
	s->cpu += cpu_ms / alone;
	s->disk += disk_ms / alone;
	s->cpu_left_ms += cpu_ms;
	s->disk_left_ms += disk_ms;
}

double rules_com_load(const double *com_ms, const uint32_t *node, size_t processes, size_t j)
{
	double sum = 0;

	if (j >= processes)
		return 0;
	if (j != 0)
		return node[j] != node[0] ? com_ms[j] : 0;
	for (size_t k = 1; k < processes; k++)
		if (node[k] != node[0])
			sum += com_ms[k];
	return sum;
}
