/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What a decision expects: r(i,j), the response time at a node (MODEL 2.1), and
 * c_j(i,k), the cost to get there (2.3).
 *
 *   r = t_j (C_ref / C_i) E(L_i) + requests R_i(s_j) + faults R_i(s_page) + shared
 *   E(L_i) = max(1, (queue + 1) / cores)                           O-8(a), (e)
 *   R_i(s) = min( s + Lambda E(s^2) / (2 (1 - min(rho, rho_max))),
 *                 (I/O tasks + 1) max(E(s_i), s) )   closed_loop_bound, O-8(d)
 *
 * s_j is the service time of the job's own request size.  Lambda, rho, E(s) and E(s^2) are
 * measured if possible, else they follow from the requirements of the node's tasks and the
 * candidate (O-8(b)).
 *
 * `shared` is the I/O on a shared file system (shared.c, 2.11), whichever disk has it.
 *
 * What earlier predictions were off by multiplies r, not c (prediction_feedback): response is
 * the model alone, and whoever wants another model changes it and its floor here.
 */
#include "balancer/rules/rules_private.h"

static double estimate_lesser(double a, double b)
{
	return a < b ? a : b;
}

static double estimate_greater(double a, double b)
{
	return a > b ? a : b;
}

static double own_service_ms(const struct rules_cell *c, double request_kb)
{
	return rules_service_ms(c->fixed_ms, request_kb, c->disk_mb_per_s);
}

double rules_disk_response(const struct rules_decision *d, const struct rules_cell *c,
			   double request_kb)
{
	bool measured = d->params->measured_state && c->measured;
	double own, service = c->service, service2 = c->service2, arrivals, rho, response;

	if (!(c->disk_mb_per_s > 0))
		return 0;
	own = own_service_ms(c, request_kb);
	if (measured) {
		if (c->seen_service > 0) {
			service = c->seen_service;
			service2 = estimate_greater(c->seen_service2, service * service);
		}
		arrivals = c->arrivals;
		rho = c->utilisation;
	} else {
		struct rules_added added = rules_cell_added(c, d->request, d->params->rates);

		arrivals = c->io + added.explicit_io + added.implicit_io;
		rho = arrivals * service;
	}
	response = rules_disk_response_ms(own, service2, arrivals, rho, d->params->rho_max);
	if (!d->params->closed_loop_bound)
		return response;
	return estimate_lesser(response, (c->io_tasks + 1) * estimate_greater(service, own));
}

static double request_size(const struct rules_decision *d, const struct rules_cell *c)
{
	return d->request->request_kb > 0 ? d->request->request_kb : c->request_kb;
}

/* The model of r(i,j), without what earlier predictions were off by. */
static double estimate_response(const struct rules_decision *d, const struct rules_cell *c,
				uint32_t node)
{
	const struct rules_request *j = d->request;
	double t = j->cpu_ms * (d->reference_mips / c->mips);
	double queue = estimate_greater(1, (c->queue + 1) / c->cores);
	double requests = d->requests, faults = 0, response, page;

	if (!d->params->literal_requests) {
		if (d->params->rates == RULES_RATES_COMPUTATION)
			requests *= 1 - rules_cell_hit_rate(c, j);
		faults = j->cpu_ms *
			 rules_implicit(j->faults_per_ms, c->memory + j->memory_mb, c->n_mem);
	}
	response = requests > 0 ? rules_disk_response(d, c, request_size(d, c)) : 0;
	page = faults > 0 ? rules_disk_response(d, c, RULES_PAGE_KB) : 0;
	return rules_response_ms(t, queue, requests, response) + faults * page +
	       rules_shared_response(d, c, node);
}

static double factor_of_others(const struct rules_decision *d)
{
	return d->request->correction > 0 ? d->request->correction : 1;
}

double rules_factor_at(const struct rules_decision *d, uint32_t node)
{
	const struct rules_correction *c = d->request->corrections;
	size_t low = 0, high = d->request->ncorrections;

	if (!d->params->prediction_feedback)
		return 1;
	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (c[middle].node == node)
			return c[middle].factor;
		if (c[middle].node < node)
			low = middle + 1;
		else
			high = middle;
	}
	return factor_of_others(d);
}

/* No node has a lesser factor. */
static double least_factor(const struct rules_decision *d)
{
	const struct rules_request *j = d->request;
	double least = factor_of_others(d);

	if (!d->params->prediction_feedback)
		return 1;
	for (size_t i = 0; i < j->ncorrections; i++)
		least = estimate_lesser(least, j->corrections[i].factor);
	return least;
}

double rules_response_at(const struct rules_decision *d, const struct rules_cell *c, uint32_t node)
{
	return estimate_response(d, c, node) * rules_factor_at(d, node);
}

double rules_network(const struct rules_decision *d, const struct rules_cell *c)
{
	return c->network > 0 ? c->network : d->params->network_mb_per_s;
}

/* The part of the initial data that must be moved to a node that has HELD of it. */
static double missing_mb(const struct rules_request *j, double held)
{
	return held < j->initial_mb ? j->initial_mb - held : 0;
}

static const struct rules_held *held_find(const struct rules_held *list, size_t n, uint32_t node)
{
	size_t low = 0, high = n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (list[middle].node == node)
			return &list[middle];
		if (list[middle].node < node)
			low = middle + 1;
		else
			high = middle;
	}
	return NULL;
}

const struct rules_held *rules_held_at(const struct rules_request *j, uint32_t node)
{
	return held_find(j->held, j->nheld, node);
}

const struct rules_held *rules_cached_at(const struct rules_request *j, uint32_t node)
{
	return held_find(j->shared.cached, j->shared.ncached, node);
}

double rules_moved_mb(const struct rules_request *j, uint32_t node)
{
	const struct rules_held *held = rules_held_at(j, node);

	return (held != NULL ? missing_mb(j, held->mb) : j->initial_mb) + j->output_mb;
}

/* No node needs less to be moved. */
static double least_moved_mb(const struct rules_request *j)
{
	double most = 0;

	for (size_t i = 0; i < j->nheld; i++)
		most = estimate_greater(most, j->held[i].mb);
	return missing_mb(j, most) + j->output_mb;
}

double rules_cost_to(const struct rules_decision *d, const struct rules_cell *c, uint32_t node)
{
	double link = estimate_lesser(rules_network(d, d->at_home), rules_network(d, c));

	return rules_transfer_cost_ms(d->params->fixed_cost_ms, rules_moved_mb(d->request, node),
				      link, d->at_home->disk_mb_per_s, c->disk_mb_per_s);
}

/* The part of the floor that does not depend on the node. */
void rules_floor_init(struct rules_decision *d)
{
	const struct rules_request *j = d->request;
	double path = 1 / rules_network(d, d->at_home), factor = least_factor(d);
	double moved = least_moved_mb(j);

	if (d->at_home->disk_mb_per_s > 0)
		path += 1 / d->at_home->disk_mb_per_s;
	d->floor = (struct rules_floor){
		.fixed_ms = d->params->fixed_cost_ms + 1000 * moved * path,
		.cpu = j->cpu_ms * d->reference_mips * factor,
		.mb = 1000 * moved,
	};
	/* Buffer hits may save requests: if they count, I/O has no floor. */
	if (d->params->literal_requests || d->params->rates == RULES_RATES_WALL) {
		d->floor.requests = d->requests * factor;
		d->floor.mb += d->requests * j->request_kb * factor;
	}
	d->floor.mixed = estimate_lesser(d->floor.cpu, d->floor.mb / RULES_MIX);
	d->floor.cpu -= d->floor.mixed;
	d->floor.mb = estimate_greater(d->floor.mb - d->floor.mixed * RULES_MIX, 0);
	d->has_floor = true;
}
