/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Where the tasks of a parallel job run (MODEL 3.18).  Least-delay searches for the least price;
 * the papers' policies decide task by task, as rules_place_job does, and slots correct them.  Both
 * are told in the same numbers, so that they can be compared.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "balancer/rules/gang_private.h"

/* What a search may take: at least, for each task and node, and at most; about 2 ns a
 * step. */
#define GANG_STEPS_LEAST 400000u
#define GANG_STEPS_EACH	 500u
#define GANG_STEPS_MOST	 4000000u

static uint64_t gang_steps(const struct gang_model *m)
{
	uint64_t steps = GANG_STEPS_LEAST + (uint64_t)m->tasks * m->nsites * GANG_STEPS_EACH;

	return steps < GANG_STEPS_MOST ? steps : GANG_STEPS_MOST;
}

const char *rules_gang_bound_name(enum rules_gang_bound bound)
{
	static const char *const names[RULES_BOUNDS] = {"cpu", "disk", "communication"};

	return (unsigned int)bound < RULES_BOUNDS ? names[bound] : NULL;
}

int rules_gang_com_ms(const struct rules_gang *gang, uint32_t tasks, double mb_per_s,
		      double round_trip_ms, double *com_ms)
{
	double *received = calloc((size_t)tasks * 2 + 1, sizeof(*received));
	double *messages = received + tasks;
	int ret = 0;

	if (received == NULL)
		return -ENOMEM;
	memset(com_ms, 0, tasks * sizeof(*com_ms));
	for (size_t i = 0; i < gang->npairs && ret == 0; i++) {
		const struct rules_pair *p = &gang->pairs[i];

		if (p->from >= tasks || p->to >= tasks)
			ret = -EINVAL;
		else if (p->from != p->to) {
			com_ms[p->from] += p->bytes;
			received[p->to] += p->bytes;
			messages[p->from] += p->messages;
			messages[p->to] += p->messages;
		}
	}
	for (uint32_t t = 0; t < tasks; t++) {
		double bytes = com_ms[t] > received[t] ? com_ms[t] : received[t];

		com_ms[t] = bytes / (1e3 * mb_per_s) + messages[t] * round_trip_ms / 2;
	}
	free(received);
	return ret;
}

/* The slowest task of a site is the one with the most messages. */
static void cost_finish(const struct gang_model *m, const struct gang_state *s,
			struct rules_gang_cost *cost)
{
	uint32_t slowest = m->tasks;

	for (uint32_t t = 0; t < m->tasks; t++)
		if (s->site[t] == cost->node &&
		    (slowest == m->tasks || s->message_ms[t] > s->message_ms[slowest]))
			slowest = t;
	cost->task = slowest < m->tasks ? slowest : 0;
	cost->node = m->sites[cost->node].node;
}

/* --- the first-class resource --------------------------------------------------------------- */

static void plan_bound(const struct gang_model *m, const double *com_ms,
		       struct rules_gang_plan *plan)
{
	const struct rules_decision *d = &m->decision;
	struct rules_alone alone;

	rules_cell_alone(d->at_home, &m->one, d->requests, d->reference_mips, &alone);
	plan->cpu_ms = alone.cpu;
	plan->disk_ms = alone.disk;
	for (uint32_t t = 0; t < m->tasks; t++)
		plan->com_ms += com_ms[t] / m->tasks;
	plan->bound = RULES_BOUND_CPU;
	if (plan->disk_ms > plan->cpu_ms)
		plan->bound = RULES_BOUND_DISK;
	if (plan->com_ms > plan->cpu_ms && plan->com_ms > plan->disk_ms)
		plan->bound = RULES_BOUND_COM;
}

/* The slowest port and the longest round trip of the nodes that may get a task. */
static void slowest_link(const struct gang_model *m, double *mb_per_s, double *round_trip_ms)
{
	*mb_per_s = m->nsites > 0 ? INFINITY : m->decision.params->network_mb_per_s;
	*round_trip_ms = 0;
	for (uint32_t k = 0; k < m->nsites; k++) {
		double rate = 1e-3 / m->sites[k].ms_per_byte;

		if (rate < *mb_per_s)
			*mb_per_s = rate;
		if (m->sites[k].round_trip_ms > *round_trip_ms)
			*round_trip_ms = m->sites[k].round_trip_ms;
	}
}

/* --- a rule a task ------------------------------------------------------------------------------
 */

/* The site with room where one more task is done first; nsites if there is none. */
static uint32_t least_site(struct gang_model *m, const uint32_t *count)
{
	uint32_t best = m->nsites;
	double least = INFINITY;

	for (uint32_t k = 0; k < m->nsites; k++) {
		double ms;

		if (count[k] >= m->sites[k].limit)
			continue;
		ms = rules_gang_work(m, k, count[k] + 1) + m->sites[k].way_ms;
		if (best == m->nsites || ms < least) {
			best = k;
			least = ms;
		}
	}
	return best;
}

/* Takes the policy's nodes over, as far as there are slots. */
static int slots_apply(struct gang_model *m, const uint32_t *nodes, struct gang_state *s,
		       uint32_t *moved)
{
	uint32_t none = m->nsites;

	for (uint32_t t = 0; t < m->tasks; t++) {
		uint32_t k = 0;

		while (k < m->nsites && m->sites[k].node != nodes[t])
			k++;
		if (k < m->nsites && s->count[k] >= m->sites[k].limit)
			k = none;
		s->site[t] = k;
		if (k < none)
			s->count[k]++;
	}
	for (uint32_t t = 0; t < m->tasks; t++) {
		if (s->site[t] != none)
			continue;
		s->site[t] = least_site(m, s->count);
		if (s->site[t] == none)
			return 1;
		s->count[s->site[t]]++;
		++*moved;
	}
	rules_gang_state_set(m, s);
	return 0;
}

static int place_by_rule(struct gang_model *m, struct rules_view *view,
			 const struct rules_request *request, const double *com_ms,
			 struct gang_state *s, struct rules_gang_plan *plan, uint32_t *nodes)
{
	struct rules_request whole = *request;
	int ret;

	whole.com_ms = com_ms;
	ret = rules_place_job(m->decision.rules, view, m->decision.home, &whole, &plan->why, nodes);
	if (ret < 0)
		return ret;
	if (plan->why.queued)
		return 1;
	return slots_apply(m, nodes, s, &plan->moved);
}

/* --- both ----------------------------------------------------------------------------------------
 */

static int gang_decide(struct gang_model *m, struct rules_view *view,
		       const struct rules_request *request, const double *com_ms,
		       struct gang_state *s, struct rules_gang_plan *plan, uint32_t *nodes)
{
	/* The search goes first for all: packed and spread are told beside each choice. */
	bool searches = m->decision.rules->policy == RULES_LEAST_DELAY;
	int ret;

	m->most_steps = searches ? gang_steps(m) : 0;
	ret = rules_gang_search(m, s, plan);
	if (ret != 0)
		return ret;
	plan->searched = searches;
	if (!searches) {
		memset(s->count, 0, m->nsites * sizeof(*s->count));
		ret = place_by_rule(m, view, request, com_ms, s, plan, nodes);
		if (ret != 0)
			return ret;
	}
	for (uint32_t t = 0; t < m->tasks; t++)
		nodes[t] = m->sites[s->site[t]].node;
	rules_gang_cost(m, s, &plan->chosen);
	cost_finish(m, s, &plan->chosen);
	plan->packed.node = plan->has_packed ? m->sites[plan->packed.node].node : 0;
	plan->spread.node = plan->has_spread ? m->sites[plan->spread.node].node : 0;
	plan->steps = m->steps;
	plan->why.node = nodes[0];
	plan->why.stayed = nodes[0] == m->decision.home;
	if (plan->searched) {
		plan->why.ntied = 1;
		plan->why.tied[0] = nodes[0];
	}
	return 0;
}

int rules_place_gang(struct rules *r, struct rules_view *view, uint32_t home,
		     const struct rules_request *request, const struct rules_gang *gang,
		     struct rules_gang_plan *plan, uint32_t *nodes)
{
	double mb_per_s, round_trip_ms, *com_ms = NULL;
	struct gang_state state = {0};
	struct gang_model m;
	int ret;

	memset(plan, 0, sizeof(*plan));
	if (view->deferred)
		return -EBUSY;
	ret = rules_gang_model_init(&m, r, view, home, request, gang, NULL);
	if (ret < 0)
		return ret;
	for (uint32_t k = 0; k < view->count; k++)
		plan->slots += view->cells[k].accepts || k == home ? gang->ports[k].slots : 0;
	com_ms = calloc(m.tasks, sizeof(*com_ms));
	ret = com_ms != NULL ? rules_gang_state_init(&state, &m) : -ENOMEM;
	if (ret == 0) {
		slowest_link(&m, &mb_per_s, &round_trip_ms);
		ret = rules_gang_com_ms(gang, m.tasks, mb_per_s, round_trip_ms, com_ms);
	}
	if (ret == 0) {
		plan_bound(&m, com_ms, plan);
		ret = gang_decide(&m, view, request, com_ms, &state, plan, nodes);
	}
	rules_gang_state_free(&state);
	free(com_ms);
	rules_gang_model_free(&m);
	return ret;
}

int rules_expect_gang(struct rules *r, struct rules_view *view, uint32_t home,
		      const struct rules_request *request, const struct rules_gang *gang,
		      const uint32_t *nodes, struct rules_gang_cost *out)
{
	struct gang_state s = {0};
	struct gang_model m;
	int ret;

	if (view->deferred)
		return -EBUSY;
	ret = rules_gang_model_init(&m, r, view, home, request, gang, nodes);
	if (ret < 0)
		return ret;
	ret = rules_gang_state_init(&s, &m);
	if (ret == 0) {
		for (uint32_t t = 0; t < m.tasks; t++)
			while (m.sites[s.site[t]].node != nodes[t])
				s.site[t]++;
		rules_gang_state_set(&m, &s);
		rules_gang_cost(&m, &s, out);
		cost_finish(&m, &s, out);
		rules_gang_state_free(&s);
	}
	rules_gang_model_free(&m);
	return ret;
}
