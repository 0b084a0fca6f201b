/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What a placement of a parallel job takes (MODEL 3.18, ours).  With m_k of its tasks at node k,
 *
 *   W_k = response of one task among the others there and m_k - 1 of its own kind (2.10)
 *         + c_j(i,k), the way there, unless k is home
 *   N_k = max(sent_k, received_k) / b_k (1 + busy_k/b_k)   bytes over k's port, of all its tasks
 *   M_t = sum over its messages to or from other nodes of half a round trip
 *
 *   response = max over tasks t at k of W_k + N_k + M_t
 *            = max W_k + max (N_k + M_t)   if all tasks wait for each other after each phase
 *   harm     = sum over nodes of m_k harm_k (2.10) + busy_k/b_k N_k
 *   price    = response + delay_harm harm / tasks
 *
 * Inside a node messages are free.  Connections share a port: beside one that always has something
 * to send, messages take twice as long.  Jobs that are delayed are as late as the slowest of their
 * tasks, as this one is, so that the delays of tasks are not added up.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "balancer/rules/gang_private.h"

static double gang_greater(double a, double b)
{
	return a > b ? a : b;
}

/* --- who talks to whom -------------------------------------------------------------- */

static bool pair_valid(const struct rules_pair *p, uint32_t tasks)
{
	return p->from < tasks && p->to < tasks && p->bytes >= 0 && isfinite(p->bytes) &&
	       p->messages >= 0 && isfinite(p->messages);
}

static int edges_init(struct gang_model *m)
{
	const struct rules_gang *g = m->gang;

	m->first = calloc((size_t)m->tasks + 2, sizeof(*m->first));
	m->edges = calloc(2 * g->npairs + 1, sizeof(*m->edges));
	if (m->first == NULL || m->edges == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < g->npairs; i++) {
		const struct rules_pair *p = &g->pairs[i];

		if (!pair_valid(p, m->tasks))
			return -EINVAL;
		if (p->from == p->to)
			continue;
		m->first[p->from + 2]++;
		m->first[p->to + 2]++;
	}
	return 0;
}

static void edges_fill(struct gang_model *m)
{
	const struct rules_gang *g = m->gang;
	uint32_t *at =
		m->first + 1; /* filling makes at[t] the end of t's edges, from their begin */

	for (uint32_t t = 1; t <= m->tasks; t++)
		at[t] += at[t - 1];
	for (size_t i = 0; i < g->npairs; i++) {
		const struct rules_pair *p = &g->pairs[i];

		if (p->from == p->to)
			continue;
		m->edges[at[p->from]++] = (struct gang_edge){
			.with = p->to, .sent = p->bytes, .messages = p->messages};
		m->edges[at[p->to]++] = (struct gang_edge){
			.with = p->from, .received = p->bytes, .messages = p->messages};
	}
}

/* --- nodes ------------------------------------------------------------------------------ */

static bool port_valid(const struct rules_port *p)
{
	return p->mb_per_s >= 0 && isfinite(p->mb_per_s) && p->busy_mb_per_s >= 0 &&
	       isfinite(p->busy_mb_per_s) && p->round_trip_ms >= 0 && isfinite(p->round_trip_ms);
}

/* How many tasks NODE may get: its slots, and what its memory holds. */
static uint32_t limit_at(const struct gang_model *m, uint32_t node)
{
	const struct rules_decision *d = &m->decision;
	const struct rules_cell *c = &d->view->cells[node];
	uint32_t limit = m->gang->ports[node].slots;
	struct rules_tests t = {.n = 0};

	if (limit == 0 || (node != d->home && !rules_test_eligible(d, &t, node)))
		return 0;
	if (d->params->require_memory && c->n_mem > 0 && m->one.memory_mb > 0) {
		double room = (c->n_mem - c->memory) / m->one.memory_mb;

		if (room < limit)
			limit = room > 0 ? (uint32_t)room : 0;
	}
	return limit < m->tasks ? limit : m->tasks;
}

static void site_init(struct gang_model *m, struct gang_site *s, uint32_t node, uint32_t limit)
{
	const struct rules_decision *d = &m->decision;
	const struct rules_cell *c = &d->view->cells[node];
	const struct rules_port *p = &m->gang->ports[node];
	double rate = p->mb_per_s > 0  ? p->mb_per_s
		      : c->network > 0 ? c->network
				       : d->params->network_mb_per_s;
	double busy = p->busy_mb_per_s < rate ? p->busy_mb_per_s : rate;
	double *work = s->work_ms;
	struct rules_delay delay;

	rules_delay_at(d, c, node, &delay);
	*s = (struct gang_site){
		.node = node,
		.limit = limit,
		.way_ms = node == d->home ? 0 : rules_cost_to(d, c, node),
		.ms_per_byte = 1e-3 / rate * (1 + busy / rate),
		.round_trip_ms = node == d->home ? 0 : p->round_trip_ms,
		.busy_share = busy / rate,
		.harm_ms = delay.harm,
		.cell = *c,
		.filled = 1,
		.work_ms = work,
	};
	work[0] = delay.response;
}

double rules_gang_work(struct gang_model *m, uint32_t k, uint32_t count)
{
	struct gang_site *s = &m->sites[k];

	while (s->filled < count) {
		struct rules_delay delay;

		rules_cell_charge(&s->cell, &m->one, &m->decision.view->reading);
		rules_delay_at(&m->decision, &s->cell, s->node, &delay);
		s->work_ms[s->filled++] = delay.response;
		m->steps += 10;
	}
	return s->work_ms[count - 1];
}

/* The price of the first task at S. */
static double site_price(const struct gang_model *m, const struct gang_site *s)
{
	return s->work_ms[0] + s->way_ms + m->decision.params->delay_harm * s->harm_ms;
}

/* Keeps the sites in ascending order of what one task takes there; the last may drop out. */
static void sites_insert(struct gang_model *m, uint32_t node, uint32_t limit)
{
	struct gang_site site = {.work_ms = m->work + (size_t)RULES_GANG_NODES_MAX * m->tasks};
	uint32_t at = m->nsites;
	double price;

	site_init(m, &site, node, limit);
	price = site_price(m, &site);
	if (at == RULES_GANG_NODES_MAX) {
		if (site_price(m, &m->sites[at - 1]) <= price)
			return;
		at--;
	} else {
		m->nsites++;
	}
	site.work_ms = m->work + (size_t)at * m->tasks;
	/* A slot of work stays where it is; only its first value moves. */
	for (; at > 0; at--) {
		struct gang_site *before = &m->sites[at - 1];
		double *slot = site.work_ms;

		if (site_price(m, before) <= price)
			break;
		site.work_ms = before->work_ms;
		slot[0] = before->work_ms[0];
		m->sites[at] = *before;
		m->sites[at].work_ms = slot;
	}
	site.work_ms[0] = m->work[(size_t)RULES_GANG_NODES_MAX * m->tasks];
	m->sites[at] = site;
}

static bool gang_has_node(const struct gang_model *m, uint32_t node)
{
	for (uint32_t k = 0; k < m->nsites; k++)
		if (m->sites[k].node == node)
			return true;
	return false;
}

static int sites_init(struct gang_model *m, const uint32_t *fixed)
{
	uint32_t count = m->decision.view->count;

	m->sites = calloc(RULES_GANG_NODES_MAX, sizeof(*m->sites));
	m->work = calloc((size_t)(RULES_GANG_NODES_MAX + 1) * m->tasks, sizeof(*m->work));
	if (m->sites == NULL || m->work == NULL)
		return -ENOMEM;
	for (uint32_t k = 0; k < count; k++)
		if (!port_valid(&m->gang->ports[k]))
			return -EINVAL;
	if (fixed == NULL) {
		for (uint32_t k = 0; k < count; k++) {
			uint32_t limit = limit_at(m, k);

			if (limit > 0)
				sites_insert(m, k, limit);
		}
		return 0;
	}
	for (uint32_t t = 0; t < m->tasks; t++) {
		if (fixed[t] >= count)
			return -EINVAL;
		if (gang_has_node(m, fixed[t]))
			continue;
		if (m->nsites == RULES_GANG_NODES_MAX)
			return -EINVAL;
		sites_insert(m, fixed[t], m->tasks);
	}
	return 0;
}

/* --- the model ---------------------------------------------------------------------------- */

int rules_gang_model_init(struct gang_model *m, struct rules *r, const struct rules_view *view,
			  uint32_t home, const struct rules_request *request,
			  const struct rules_gang *gang, const uint32_t *fixed)
{
	int ret;

	*m = (struct gang_model){.one = *request, .gang = gang, .tasks = request->tasks};
	if (home >= view->count || rules_request_check(request) < 0 ||
	    request->tasks > RULES_GANG_TASKS_MAX || gang->ports == NULL ||
	    (gang->npairs > 0 && gang->pairs == NULL) || gang->npairs > UINT32_MAX / 4)
		return -EINVAL;
	m->one.tasks = 1;
	m->one.com_ms = NULL;
	rules_decision_init(&m->decision, r, view, home, &m->one, NULL);
	ret = edges_init(m);
	if (ret == 0) {
		edges_fill(m);
		ret = sites_init(m, fixed);
	}
	if (ret < 0)
		rules_gang_model_free(m);
	return ret;
}

void rules_gang_model_free(struct gang_model *m)
{
	free(m->first);
	free(m->edges);
	free(m->sites);
	free(m->work);
}

/* --- a placement ---------------------------------------------------------------------------- */

int rules_gang_state_init(struct gang_state *s, const struct gang_model *m)
{
	*s = (struct gang_state){
		.site = calloc(m->tasks, sizeof(*s->site)),
		.count = calloc(RULES_GANG_NODES_MAX, sizeof(*s->count)),
		.sent = calloc(RULES_GANG_NODES_MAX, sizeof(*s->sent)),
		.received = calloc(RULES_GANG_NODES_MAX, sizeof(*s->received)),
		.message_ms = calloc(m->tasks, sizeof(*s->message_ms)),
		.slowest_ms = calloc(RULES_GANG_NODES_MAX, sizeof(*s->slowest_ms)),
	};
	if (s->site != NULL && s->count != NULL && s->sent != NULL && s->received != NULL &&
	    s->message_ms != NULL && s->slowest_ms != NULL)
		return 0;
	rules_gang_state_free(s);
	return -ENOMEM;
}

void rules_gang_state_free(struct gang_state *s)
{
	free(s->site);
	free(s->count);
	free(s->sent);
	free(s->received);
	free(s->message_ms);
	free(s->slowest_ms);
	*s = (struct gang_state){0};
}

void rules_gang_state_copy(const struct gang_model *m, struct gang_state *to,
			   const struct gang_state *from)
{
	memcpy(to->site, from->site, m->tasks * sizeof(*to->site));
	memcpy(to->count, from->count, m->nsites * sizeof(*to->count));
	memcpy(to->sent, from->sent, m->nsites * sizeof(*to->sent));
	memcpy(to->received, from->received, m->nsites * sizeof(*to->received));
	memcpy(to->message_ms, from->message_ms, m->tasks * sizeof(*to->message_ms));
}

static double half_trip(const struct gang_model *m, uint32_t a, uint32_t b)
{
	return gang_greater(m->sites[a].round_trip_ms, m->sites[b].round_trip_ms) / 2;
}

/* Adds what T exchanges with others, SIGN times; if BOTH, with all of its own and theirs. */
static void state_edges(const struct gang_model *m, struct gang_state *s, uint32_t t, double sign,
			bool both)
{
	uint32_t k = s->site[t];

	for (uint32_t i = m->first[t]; i < m->first[t + 1]; i++) {
		const struct gang_edge *e = &m->edges[i];
		uint32_t other = s->site[e->with];
		double wait;

		if (other == k)
			continue;
		wait = sign * e->messages * half_trip(m, k, other);
		s->sent[k] += sign * e->sent;
		s->received[k] += sign * e->received;
		s->message_ms[t] += wait;
		if (!both)
			continue;
		s->sent[other] += sign * e->received;
		s->received[other] += sign * e->sent;
		s->message_ms[e->with] += wait;
	}
}

void rules_gang_state_set(struct gang_model *m, struct gang_state *s)
{
	memset(s->count, 0, m->nsites * sizeof(*s->count));
	memset(s->sent, 0, m->nsites * sizeof(*s->sent));
	memset(s->received, 0, m->nsites * sizeof(*s->received));
	memset(s->message_ms, 0, m->tasks * sizeof(*s->message_ms));
	for (uint32_t t = 0; t < m->tasks; t++) {
		s->count[s->site[t]]++;
		state_edges(m, s, t, 1, false);
	}
	m->steps += 4 * (uint64_t)m->first[m->tasks]; /* far apart in memory */
}

void rules_gang_state_move(struct gang_model *m, struct gang_state *s, uint32_t task, uint32_t to)
{
	state_edges(m, s, task, -1, true);
	s->count[s->site[task]]--;
	s->site[task] = to;
	s->count[to]++;
	state_edges(m, s, task, 1, true);
	m->steps += 4 * (uint64_t)(m->first[task + 1] - m->first[task]);
}

/* The most of each part, where all tasks wait for the slowest of each. */
static void cost_phased(struct rules_gang_cost *out, const struct rules_gang_cost *work,
			const struct rules_gang_cost *net)
{
	out->work_ms = work->work_ms;
	out->way_ms = work->way_ms;
	out->port_ms = net->port_ms;
	out->message_ms = net->message_ms;
	out->response_ms = out->work_ms + out->way_ms + out->port_ms + out->message_ms;
	if (work->work_ms + work->way_ms < net->port_ms + net->message_ms)
		out->node = net->node;
	else
		out->node = work->node;
}

/* The most message_ms at each site; returns the sum over all tasks. */
static double cost_messages(const struct gang_model *m, struct gang_state *s)
{
	double sum = 0;

	for (uint32_t k = 0; k < m->nsites; k++)
		s->slowest_ms[k] = 0;
	for (uint32_t t = 0; t < m->tasks; t++) {
		double *slowest = &s->slowest_ms[s->site[t]];

		sum += s->message_ms[t];
		if (s->message_ms[t] > *slowest)
			*slowest = s->message_ms[t];
	}
	return sum;
}

double rules_gang_cost(struct gang_model *m, struct gang_state *s, struct rules_gang_cost *out)
{
	struct rules_gang_cost work = {.work_ms = -1}, net = {.port_ms = -1}, one;
	double sum = cost_messages(m, s);

	*out = (struct rules_gang_cost){.response_ms = -1};
	for (uint32_t k = 0; k < m->nsites; k++) {
		const struct gang_site *site = &m->sites[k];

		if (s->count[k] == 0)
			continue;
		one = (struct rules_gang_cost){
			.node = k,
			.work_ms = rules_gang_work(m, k, s->count[k]),
			.way_ms = site->way_ms,
			.port_ms = gang_greater(s->sent[k], s->received[k]) * site->ms_per_byte,
			.message_ms = s->slowest_ms[k],
		};
		one.response_ms = one.work_ms + one.way_ms + one.port_ms + one.message_ms;
		sum += s->count[k] * (one.response_ms - one.message_ms);
		one.harm_ms =
			out->harm_ms + s->count[k] * site->harm_ms + site->busy_share * one.port_ms;
		one.nodes = out->nodes + 1;
		out->harm_ms = one.harm_ms;
		out->nodes = one.nodes;
		if (one.work_ms + one.way_ms > work.work_ms + work.way_ms)
			work = one;
		if (one.port_ms + one.message_ms > net.port_ms + net.message_ms)
			net = one;
		if (one.response_ms > out->response_ms)
			*out = one;
	}
	if (m->gang->phases > 1)
		cost_phased(out, &work, &net);
	out->price_ms = out->response_ms + m->decision.params->delay_harm * out->harm_ms / m->tasks;
	m->steps += m->tasks + m->nsites;
	return sum / m->tasks;
}
