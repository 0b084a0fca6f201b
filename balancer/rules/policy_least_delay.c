/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * LEAST-DELAY (MODEL 3.17, ours): the job goes where it, and those it joins, lose the least time.
 * The price of node k is
 *
 *   P(k) = r(k,j) + c_j(i,k) + delay_harm harm(k,j)          2.10; c is 0 at home
 *   K    = { k != i : k is eligible, (1 - delay_margin) P(i) > P(k) }
 *
 * Home if K is empty, else a node of K whose price is at most (1 + delay_tie) times the least: the
 * seed draws it, so that homes that know the same do not all choose the same node.  If home cannot
 * hold the job in memory, all eligible nodes are in K.
 *
 * All nodes are priced, or examine_max that the seed draws if there are more (power of choices).
 */
#include "balancer/rules/rules_private.h"

struct offer {
	double price;
	uint32_t node;
};

/* The cheapest nodes of K, by ascending price. */
struct offers {
	struct offer list[RULES_EXAMINED_MAX];
	uint32_t n;
	bool limited; /* false: the job cannot stay at home, whatever it costs elsewhere */
	double limit; /* the price that others must be below */
};

/* Returns the price of K, which is not home. */
static double price_at(const struct rules_decision *d, uint32_t k)
{
	const struct rules_cell *c = &d->view->cells[k];
	struct rules_delay delay;

	rules_delay_at(d, c, k, &delay);
	return delay.response + d->params->delay_harm * delay.harm + rules_cost_to(d, c, k);
}

/* Returns home's price, and gives its parts as a reason. */
static double price_home(struct rules_decision *d)
{
	struct rules_delay delay;

	rules_delay_at(d, d->at_home, d->home, &delay);
	rules_test_home(d, RULES_C_DELAY_HOME, delay.response, delay.harm);
	return delay.response + d->params->delay_harm * delay.harm;
}

static void offers_add(struct offers *o, uint32_t k, double price)
{
	uint32_t at = o->n;

	if (at == RULES_EXAMINED_MAX && o->list[--at].price <= price)
		return;
	if (o->n < RULES_EXAMINED_MAX)
		o->n++;
	for (; at > 0 && o->list[at - 1].price > price; at--)
		o->list[at] = o->list[at - 1];
	o->list[at] = (struct offer){price, k};
}

static void delay_refuse(struct rules_decision *d, const struct rules_reason *failed)
{
	struct rules_plan *plan = d->plan;

	if (d->brief)
		return;
	plan->refused[failed->criterion]++;
	/* The offers come later and need their room. */
	if (plan->nreasons < RULES_REASONS_MAX - RULES_EXAMINED_MAX - RULES_TESTS_MAX)
		plan->reasons[plan->nreasons++] = *failed;
}

static void delay_examine(struct rules_decision *d, struct offers *o, uint32_t k)
{
	struct rules_tests t;
	double price;

	t.n = 0; /* leave the rest of the large array unset */
	d->examined++;
	if (rules_test_eligible(d, &t, k)) {
		price = price_at(d, k);
		if (!o->limited || rules_test(&t, RULES_C_DELAY, k, o->limit, price)) {
			offers_add(o, k, price);
			return;
		}
	}
	delay_refuse(d, &t.list[t.n - 1]);
}

static uint32_t greatest_common_divisor(uint32_t a, uint32_t b)
{
	while (b != 0) {
		uint32_t rest = a % b;

		a = b;
		b = rest;
	}
	return a;
}

/* Returns whether K has some of the job's data: on its disk, in its cache, or as its server. */
static bool delay_has_data(const struct rules_request *j, uint32_t k)
{
	return rules_held_at(j, k) != NULL || rules_cached_at(j, k) != NULL ||
	       (rules_is_shared(j) && j->shared.served && j->shared.server == k);
}

/* Prices the nodes that have some of the job's data, each once, but home. */
static void delay_examine_data(struct rules_decision *d, struct offers *o, uint32_t most)
{
	const struct rules_request *j = d->request;
	const struct rules_shared *s = &j->shared;
	uint32_t count = d->view->count;

	for (size_t i = 0; i < j->nheld && d->examined < most; i++)
		if (j->held[i].node < count && j->held[i].node != d->home)
			delay_examine(d, o, j->held[i].node);
	for (size_t i = 0; i < s->ncached && d->examined < most; i++) {
		uint32_t k = s->cached[i].node;

		if (k < count && k != d->home && rules_held_at(j, k) == NULL)
			delay_examine(d, o, k);
	}
	if (rules_is_shared(j) && s->served && s->server < count && s->server != d->home &&
	    d->examined < most && rules_held_at(j, s->server) == NULL &&
	    rules_cached_at(j, s->server) == NULL)
		delay_examine(d, o, s->server);
}

/*
 * Prices MOST nodes: those that have some of the job's data, then distinct ones that the salt
 * draws, each step leads to the next of them.
 */
static void delay_examine_drawn(struct rules_decision *d, struct offers *o, uint32_t most)
{
	const struct rules_request *j = d->request;
	uint32_t count = d->view->count, k = (uint32_t)(rules_mix(d->salt) % count);
	uint32_t step = 1 + (uint32_t)(rules_mix(d->salt + 1) % (count - 1));

	while (greatest_common_divisor(count, step) != 1)
		step = step % (count - 1) + 1;
	delay_examine_data(d, o, most);
	for (uint32_t i = 0; i < count && d->examined < most; i++) {
		if (k != d->home && !delay_has_data(j, k))
			delay_examine(d, o, k);
		k = (uint32_t)(((uint64_t)k + step) % count);
	}
}

/* Draws one of the offers that are held equal: without a task of the same job, if there is one. */
static uint32_t delay_draw(struct rules_decision *d, const struct offers *o, uint32_t *ntied)
{
	double most = o->list[0].price * (1 + d->params->delay_tie);
	uint32_t n = 1, first;

	while (n < o->n && o->list[n].price <= most)
		n++;
	*ntied = n;
	first = (uint32_t)(rules_mix(d->salt + 2) % n);
	for (uint32_t i = 0; d->job != NULL && d->params->spread_tasks && i < n; i++)
		if (rules_job_tasks_at(d, o->list[(first + i) % n].node) == 0)
			return (first + i) % n;
	return first;
}

/* Gives the test that made this offer one: of the price, or that the job fits in memory there. */
static void delay_reason(struct rules_decision *d, const struct offers *o, uint32_t at)
{
	struct rules_plan *plan = d->plan;
	struct rules_tests t;

	t.n = 0;
	if (o->limited)
		rules_test(&t, RULES_C_DELAY, o->list[at].node, o->limit, o->list[at].price);
	else
		rules_test_eligible(d, &t, o->list[at].node);
	if (plan->nreasons < RULES_REASONS_MAX)
		plan->reasons[plan->nreasons++] = t.list[t.n - 1];
}

/* Writes the plan: the drawn offer first, then the others by their price. */
static void delay_take(struct rules_decision *d, const struct offers *o)
{
	struct rules_plan *plan = d->plan;
	uint32_t ntied, drawn = delay_draw(d, o, &ntied);

	plan->node = plan->candidates[0] = o->list[drawn].node;
	plan->stayed = false;
	plan->ncandidates = plan->ntied = 1;
	plan->tied[0] = plan->node;
	if (d->brief)
		return;
	delay_reason(d, o, drawn);
	for (uint32_t i = 0; i < o->n; i++) {
		if (i == drawn)
			continue;
		delay_reason(d, o, i);
		plan->candidates[plan->ncandidates++] = o->list[i].node;
	}
	plan->ntied = ntied;
	for (uint32_t i = 1; i < ntied && i < sizeof(plan->tied) / sizeof(plan->tied[0]); i++)
		plan->tied[i] = plan->candidates[i];
}

/* Returns true if the job would make home's memory short. */
static bool lacks_memory(struct rules_decision *d)
{
	const struct rules_cell *c = d->at_home;

	return d->params->require_memory && c->n_mem > 0 &&
	       rules_test_home(d, RULES_C_MEM_OVERLOADED, c->memory + d->request->memory_mb,
			       c->n_mem);
}

int rules_policy_least_delay(struct rules_decision *d)
{
	struct offers o = {
		.limited = !lacks_memory(d),
		.limit = (1 - d->params->delay_margin) * price_home(d),
	};
	double most = d->params->examine_max;
	uint32_t count = d->view->count;

	if (most > 0 && count - 1 > most)
		delay_examine_drawn(d, &o, (uint32_t)most);
	else
		for (uint32_t k = 0; k < count; k++)
			if (k != d->home)
				delay_examine(d, &o, k);
	if (o.n == 0)
		return 0;
	delay_take(d, &o);
	return 1;
}
