/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Searches for a cheap placement of a parallel job (MODEL 3.18).  It begins with
 *
 *   - all tasks at one node, for each node;
 *   - one task a node;
 *   - for s = 2, 3, 4, 6, 8 ...: the s best nodes, filled so that each next task goes where it is
 *     done first; s = all is the least-loaded spread.  Neighbours by number, or by what they
 *     exchange, come to the same node
 *
 * (of at most GANG_ALL placements, with each there is) and improves the best GANG_STARTS of them:
 * by moving a task, exchanging two, and emptying a node into another, as long as the price falls
 * and most_steps allow.  A mean over the tasks, with a small weight, tells moves apart that leave
 * the slowest task as it is.  Small jobs are then shaken a few times, and improved again.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "balancer/rules/gang_private.h"

#define GANG_STARTS	 4
#define GANG_MEAN_WEIGHT 1e-3
/* With more tasks times nodes, only tasks of the slowest node move. */
#define GANG_SMALL 4096
/* Up to here two tasks move at once to one site, or to any two. */
#define GANG_PAIRS	256
#define GANG_FEW	40
#define GANG_SHAKES	4
#define GANG_SHAKES_FEW 40

/* So many placements are all tried: 5 tasks on 4 nodes. */
#define GANG_ALL 1024

/* With more edges, each look at all of them takes long; almost all exchange with all then. */
#define GANG_EDGES 500000

struct start {
	struct gang_state state;
	double key; /* INFINITY: empty */
};

struct gang_search {
	struct gang_model *m;
	struct rules_gang_plan *plan;
	struct start best[GANG_STARTS]; /* in ascending order */
	struct gang_state trial;
	uint32_t *order; /* tasks, those that exchange much beside each other */
	uint32_t *room;	 /* scratch: tasks for each site */
	double *weight;	 /* scratch of the order */
};

static double search_key(struct gang_search *x, struct gang_state *s, struct rules_gang_cost *cost)
{
	double mean = rules_gang_cost(x->m, s, cost);

	return cost->price_ms + GANG_MEAN_WEIGHT * mean;
}

/* Takes the trial among the starts if it is good and new. */
static double search_offer(struct gang_search *x, struct rules_gang_cost *cost)
{
	struct gang_model *m = x->m;
	struct start last = x->best[GANG_STARTS - 1];
	uint32_t at = GANG_STARTS - 1;
	double key;

	rules_gang_state_set(m, &x->trial);
	key = search_key(x, &x->trial, cost);
	for (uint32_t i = 0; i < GANG_STARTS; i++)
		if (x->best[i].key == key && memcmp(x->best[i].state.site, x->trial.site,
						    m->tasks * sizeof(*x->trial.site)) == 0)
			return key;
	if (!(key < last.key))
		return key;
	for (; at > 0 && x->best[at - 1].key > key; at--)
		x->best[at] = x->best[at - 1];
	x->best[at] = last;
	x->best[at].key = key;
	rules_gang_state_copy(m, &x->best[at].state, &x->trial);
	return key;
}

/* --- starts ----------------------------------------------------------------------------- */

/* Each next task exchanges the most with those before it. */
static void order_tasks(struct gang_search *x)
{
	const struct gang_model *m = x->m;
	uint32_t n = m->tasks;

	for (uint32_t t = 0; t < n; t++)
		x->weight[t] = 0;
	for (uint32_t i = 0; i < n; i++) {
		uint32_t next = n;

		for (uint32_t t = 0; t < n; t++)
			if (x->weight[t] >= 0 && (next == n || x->weight[t] > x->weight[next]))
				next = t;
		x->order[i] = next;
		x->weight[next] = -1;
		for (uint32_t e = m->first[next]; e < m->first[next + 1]; e++) {
			const struct gang_edge *edge = &m->edges[e];

			if (x->weight[edge->with] >= 0)
				x->weight[edge->with] += edge->sent + edge->received;
		}
	}
	x->m->steps += (uint64_t)n * n;
}

/* Deals the tasks out to the first S sites, each next one where it is done first. */
static bool deal(struct gang_search *x, uint32_t s, uint32_t most)
{
	struct gang_model *m = x->m;

	memset(x->room, 0, m->nsites * sizeof(*x->room));
	for (uint32_t t = 0; t < m->tasks; t++) {
		double least = INFINITY;
		uint32_t to = s;

		for (uint32_t k = 0; k < s; k++) {
			double ms;

			if (x->room[k] >= m->sites[k].limit || x->room[k] >= most)
				continue;
			ms = rules_gang_work(m, k, x->room[k] + 1) + m->sites[k].way_ms +
			     m->decision.params->delay_harm * m->sites[k].harm_ms / m->tasks;
			if (to == s || ms < least) {
				least = ms;
				to = k;
			}
		}
		if (to == s)
			return false;
		x->room[to]++;
	}
	m->steps += (uint64_t)m->tasks * s;
	return true;
}

/* Fills the sites with so many tasks as `room` says, by number or in the order of exchange. */
static double fill(struct gang_search *x, bool by_number, struct rules_gang_cost *cost)
{
	struct gang_model *m = x->m;
	uint32_t k = 0, used = 0;

	for (uint32_t i = 0; i < m->tasks; i++) {
		while (used == x->room[k]) {
			k++;
			used = 0;
		}
		x->trial.site[by_number ? i : x->order[i]] = k;
		used++;
	}
	return search_offer(x, cost);
}

static void try_packed(struct gang_search *x)
{
	struct gang_model *m = x->m;
	struct rules_gang_plan *plan = x->plan;
	struct rules_gang_cost cost;

	for (uint32_t k = 0; k < m->nsites; k++) {
		if (m->sites[k].limit < m->tasks)
			continue;
		memset(x->room, 0, m->nsites * sizeof(*x->room));
		x->room[k] = m->tasks;
		fill(x, true, &cost);
		if (plan->has_packed && cost.price_ms >= plan->packed.price_ms)
			continue;
		plan->packed = cost;
		plan->has_packed = true;
	}
}

static void try_spread(struct gang_search *x)
{
	struct rules_gang_plan *plan = x->plan;
	struct rules_gang_cost cost;

	if (x->m->nsites < x->m->tasks || !deal(x, x->m->nsites, 1))
		return;
	fill(x, true, &cost);
	plan->spread = cost;
	plan->has_spread = true;
	if (x->m->first[x->m->tasks] > GANG_EDGES)
		return;
	fill(x, false, &cost);
	if (cost.price_ms < plan->spread.price_ms)
		plan->spread = cost;
}

static bool try_some(struct gang_search *x, uint32_t s)
{
	struct rules_gang_cost cost;

	if (!deal(x, s, x->m->tasks))
		return false;
	fill(x, true, &cost);
	if (x->m->first[x->m->tasks] <= GANG_EDGES)
		fill(x, false, &cost);
	return true;
}

/* Returns whether all sites together have room. */
static bool try_all(struct gang_search *x)
{
	uint32_t n = x->m->nsites;

	try_packed(x);
	try_spread(x);
	if (!try_some(x, n))
		return false;
	/* Half of the steps are for the improvement. */
	for (uint32_t s = 2; s < n && x->m->steps < x->m->most_steps / 2; s += s < 4 ? 1 : s / 2)
		try_some(x, s);
	return true;
}

/* The number of all placements; GANG_ALL + 1: more than that. */
static uint32_t placements(const struct gang_model *m)
{
	uint32_t n = 1;

	for (uint32_t t = 0; t < m->tasks && n <= GANG_ALL; t++)
		n *= m->nsites;
	return n <= GANG_ALL ? n : GANG_ALL + 1;
}

/* Tries each placement there is, if they are few. */
static void try_each(struct gang_search *x)
{
	struct gang_model *m = x->m;
	struct rules_gang_cost cost;
	uint32_t n = placements(m);

	if (n > GANG_ALL)
		return;
	for (uint32_t i = 0; i < n; i++) {
		uint32_t rest = i;
		bool fits = true;

		memset(x->room, 0, m->nsites * sizeof(*x->room));
		for (uint32_t t = 0; t < m->tasks; t++, rest /= m->nsites) {
			uint32_t k = rest % m->nsites;

			x->trial.site[t] = k;
			fits &= ++x->room[k] <= m->sites[k].limit;
		}
		if (fits)
			search_offer(x, &cost);
	}
}

/* --- improvement -------------------------------------------------------------------------- */

static bool over(const struct gang_search *x)
{
	return x->m->steps > x->m->most_steps;
}

static bool gang_better(double key, double than)
{
	return key < than - 1e-9 * than;
}

static bool try_move(struct gang_search *x, struct start *s, uint32_t t, uint32_t to)
{
	struct rules_gang_cost cost;
	uint32_t from = s->state.site[t];
	double key;

	if (to == from || s->state.count[to] >= x->m->sites[to].limit)
		return false;
	rules_gang_state_move(x->m, &s->state, t, to);
	key = search_key(x, &s->state, &cost);
	if (gang_better(key, s->key)) {
		s->key = key;
		return true;
	}
	rules_gang_state_move(x->m, &s->state, t, from);
	return false;
}

static bool try_exchange(struct gang_search *x, struct start *s, uint32_t a, uint32_t b)
{
	struct rules_gang_cost cost;
	uint32_t at_a = s->state.site[a], at_b = s->state.site[b];
	double key;

	if (at_a == at_b)
		return false;
	rules_gang_state_move(x->m, &s->state, a, at_b);
	rules_gang_state_move(x->m, &s->state, b, at_a);
	key = search_key(x, &s->state, &cost);
	if (gang_better(key, s->key)) {
		s->key = key;
		return true;
	}
	rules_gang_state_move(x->m, &s->state, a, at_a);
	rules_gang_state_move(x->m, &s->state, b, at_b);
	return false;
}

/* Moves A to K and B to L at once, where neither alone need be better. */
static bool try_two(struct gang_search *x, struct start *s, const uint32_t who[2],
		    const uint32_t to[2])
{
	struct gang_model *m = x->m;
	uint32_t a = s->state.site[who[0]], b = s->state.site[who[1]];
	struct rules_gang_cost cost;
	double key;

	if (a == to[0] || b == to[1])
		return false;
	rules_gang_state_move(m, &s->state, who[0], to[0]);
	rules_gang_state_move(m, &s->state, who[1], to[1]);
	key = search_key(x, &s->state, &cost);
	if (gang_better(key, s->key) && s->state.count[to[0]] <= m->sites[to[0]].limit &&
	    s->state.count[to[1]] <= m->sites[to[1]].limit) {
		s->key = key;
		return true;
	}
	rules_gang_state_move(m, &s->state, who[0], a);
	rules_gang_state_move(m, &s->state, who[1], b);
	return false;
}

/* Two tasks to one site; of few tasks and sites, to any two. */
static bool improve_two(struct gang_search *x, struct start *s)
{
	const struct gang_model *m = x->m;
	bool few = m->tasks * m->nsites <= GANG_FEW, better = false;

	for (uint32_t a = 0; a < m->tasks; a++)
		for (uint32_t b = a + 1; b < m->tasks; b++)
			for (uint32_t k = 0; k < m->nsites; k++)
				for (uint32_t l = few ? 0 : k; l < (few ? m->nsites : k + 1); l++)
					if (!over(x))
						better |= try_two(x, s, (uint32_t[]){a, b},
								  (uint32_t[]){k, l});
	return better;
}

/* Empties A into B, as far as B has room. */
static bool try_merge(struct gang_search *x, struct start *s, uint32_t a, uint32_t b)
{
	struct gang_model *m = x->m;
	struct rules_gang_cost cost;
	double key;

	if (a == b || s->state.count[a] == 0 || s->state.count[b] >= m->sites[b].limit)
		return false;
	rules_gang_state_copy(m, &x->trial, &s->state);
	for (uint32_t t = 0; t < m->tasks && x->trial.count[b] < m->sites[b].limit; t++)
		if (x->trial.site[t] == a)
			rules_gang_state_move(m, &x->trial, t, b);
	key = search_key(x, &x->trial, &cost);
	m->steps += 4 * (uint64_t)m->tasks;
	if (!gang_better(key, s->key))
		return false;
	s->key = key;
	rules_gang_state_copy(m, &s->state, &x->trial);
	return true;
}

static bool improve_task(struct gang_search *x, struct start *s, uint32_t t)
{
	bool better = false;

	for (uint32_t k = 0; k < x->m->nsites && !over(x); k++)
		better |= try_move(x, s, t, k);
	for (uint32_t u = 0; u < x->m->tasks && !over(x); u++)
		better |= try_exchange(x, s, t, u);
	return better;
}

static bool improve_once(struct gang_search *x, struct start *s)
{
	struct gang_model *m = x->m;
	bool all = (uint64_t)m->tasks * m->nsites <= GANG_SMALL, better = false;
	struct rules_gang_cost cost;

	search_key(x, &s->state, &cost);
	for (uint32_t a = 0; a < m->nsites; a++)
		for (uint32_t b = 0; b < m->nsites && !over(x); b++)
			if (all || a == cost.node)
				better |= try_merge(x, s, a, b);
	search_key(x, &s->state, &cost);
	for (uint32_t t = 0; t < m->tasks && !over(x); t++)
		if (all || s->state.site[t] == cost.node)
			better |= improve_task(x, s, t);
	if (!better && m->tasks * m->nsites <= GANG_PAIRS)
		better = improve_two(x, s);
	return better;
}

/* --- the search ------------------------------------------------------------------------------ */

static int search_init(struct gang_search *x)
{
	const struct gang_model *m = x->m;
	int ret = rules_gang_state_init(&x->trial, m);

	for (uint32_t i = 0; i < GANG_STARTS; i++) {
		x->best[i].key = INFINITY;
		if (ret == 0)
			ret = rules_gang_state_init(&x->best[i].state, m);
	}
	x->order = calloc(m->tasks, sizeof(*x->order));
	x->room = calloc(RULES_GANG_NODES_MAX, sizeof(*x->room));
	x->weight = calloc(m->tasks, sizeof(*x->weight));
	if (ret == 0 && (x->order == NULL || x->room == NULL || x->weight == NULL))
		ret = -ENOMEM;
	return ret;
}

static void search_free(struct gang_search *x)
{
	for (uint32_t i = 0; i < GANG_STARTS; i++)
		rules_gang_state_free(&x->best[i].state);
	rules_gang_state_free(&x->trial);
	free(x->order);
	free(x->room);
	free(x->weight);
}

/* A third of the tasks, or three, go anywhere. */
static void shake(struct gang_search *x, struct start *s, uint64_t draw)
{
	struct gang_model *m = x->m;
	uint32_t moves = m->tasks / 3 > 3 ? m->tasks / 3 : 3;
	struct rules_gang_cost cost;

	for (uint32_t i = 0; i < moves; i++) {
		uint64_t bits = rules_mix((draw << 16) + i + 1);
		uint32_t t = (uint32_t)(bits >> 32) % m->tasks;
		uint32_t k = (uint32_t)bits % m->nsites;

		if (s->state.count[k] < m->sites[k].limit)
			rules_gang_state_move(m, &s->state, t, k);
	}
	s->key = search_key(x, &s->state, &cost);
}

/* All tasks go anywhere that has room. */
static void scatter(struct gang_search *x, struct start *s, uint64_t draw)
{
	struct gang_model *m = x->m;
	struct rules_gang_cost cost;

	memset(x->room, 0, m->nsites * sizeof(*x->room));
	for (uint32_t t = 0; t < m->tasks; t++) {
		uint32_t k = (uint32_t)(rules_mix((draw << 16) + t + 1) >> 32) % m->nsites;

		while (x->room[k] >= m->sites[k].limit)
			k = (k + 1) % m->nsites;
		s->state.site[t] = k;
		x->room[k]++;
	}
	rules_gang_state_set(m, &s->state);
	s->key = search_key(x, &s->state, &cost);
}

/* Of few tasks and sites: leaves where moves alone do not lead further.  Ends at the best. */
static void search_shaken(struct gang_search *x, struct start *best)
{
	struct gang_model *m = x->m;
	/* The worst start is not needed any more. */
	struct start *s = &x->best[best == &x->best[GANG_STARTS - 1] ? 0 : GANG_STARTS - 1];
	bool few = m->tasks * m->nsites <= GANG_FEW;

	for (uint32_t i = 0; i < (few ? GANG_SHAKES_FEW : GANG_SHAKES) && !over(x); i++) {
		rules_gang_state_copy(m, &s->state, &best->state);
		if (i % 2)
			scatter(x, s, i);
		else
			shake(x, s, i);
		while (improve_once(x, s) && !over(x))
			;
		if (!gang_better(s->key, best->key))
			continue;
		rules_gang_state_copy(m, &best->state, &s->state);
		best->key = s->key;
	}
}

static void search_run(struct gang_search *x, struct gang_state *best)
{
	uint64_t most = x->m->most_steps;
	uint32_t first = 0;

	/* The best start has half of the steps, the next half of the rest ... */
	for (uint32_t i = 0; i < GANG_STARTS && isfinite(x->best[i].key); i++) {
		x->m->most_steps =
			x->m->steps + (most > x->m->steps ? (most - x->m->steps) / 2 : 0);
		while (improve_once(x, &x->best[i]) && !over(x))
			;
		if (x->best[i].key < x->best[first].key)
			first = i;
	}
	x->m->most_steps = most;
	if (x->m->tasks * x->m->nsites <= GANG_PAIRS && most > 0)
		search_shaken(x, &x->best[first]);
	rules_gang_state_copy(x->m, best, &x->best[first].state);
	rules_gang_state_set(x->m, best);
}

int rules_gang_search(struct gang_model *m, struct gang_state *best, struct rules_gang_plan *plan)
{
	struct gang_search x = {.m = m, .plan = plan};
	int ret = search_init(&x);

	if (ret == 0) {
		if (m->first[m->tasks] <= GANG_EDGES)
			order_tasks(&x);
		if (m->nsites == 0 || !try_all(&x) || !isfinite(x.best[0].key))
			ret = 1;
		else if (m->most_steps > 0)
			try_each(&x);
		if (ret == 0)
			search_run(&x, best);
	}
	search_free(&x);
	return ret;
}
