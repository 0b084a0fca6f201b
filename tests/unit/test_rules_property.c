/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What must hold for every cluster: drawn from seeds, the failing seed printed.
 * The indexed search is held against a plain scan over the same nodes that
 * computes each side of each test on its own.
 */
#include <errno.h>

#include "rules_private.h"

#include "rules_fixture.h"

#define SEEDS	  1500
#define MOST_HERE 120

struct cluster {
	uint32_t n, home;
	struct rules_node nodes[MOST_HERE];
	struct rules_request job;
	struct rules_params params;
	enum rules_policy policy;
	struct rules_view *view;
	uint64_t seed;
};

static void cluster_draw(struct cluster *c, uint64_t seed)
{
	struct draws d = {seed};

	c->seed = seed;
	c->n = 1 + (uint32_t)draw(&d, draw_chance(&d, 0.5) ? 8 : MOST_HERE);
	c->home = (uint32_t)draw(&d, c->n);
	c->policy = (enum rules_policy)draw(&d, RULES_POLICIES);
	rules_params_default(&c->params,
			     draw_chance(&d, 0.5) ? RULES_RATES_WALL : RULES_RATES_COMPUTATION);
	c->params.try_next = draw_chance(&d, 0.5);
	c->params.literal_requests = draw_chance(&d, 0.5);
	c->params.measured_state = draw_chance(&d, 0.8);
	c->params.require_memory = draw_chance(&d, 0.5);
	c->params.cpu_cost_test = draw_chance(&d, 0.7);
	c->params.io_cost_test = draw_chance(&d, 0.7);
	c->params.cpu_speed_weighted = draw_chance(&d, 0.3);
	c->params.cpu_threshold = draw(&d, 3);
	for (uint32_t i = 0; i < c->n; i++)
		c->nodes[i] = node_random(&d, i);
	c->job = job_random(&d);
	c->view = view_of(c->nodes, c->n, c->params.rates);
}

static void cluster_place(const struct cluster *c, struct rules_plan *plan)
{
	struct rules *rules = rules_new(c->policy, &c->params, c->seed);

	assert_int_equal(rules_place(rules, c->view, c->home, &c->job, plan), 0);
	rules_free(rules);
}

#define REQUIRE(c, what)                                                                           \
	do {                                                                                       \
		if (!(what)) {                                                                     \
			print_error("seed %llu (%s): %s\n", (unsigned long long)(c)->seed,         \
				    rules_policy_name((c)->policy), #what);                        \
			fail();                                                                    \
		}                                                                                  \
	} while (0)

static void same_input_gives_the_same_plan(void **state)
{
	static struct cluster c, again;
	struct rules_plan first, second;

	(void)state;
	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		struct rules_node filler = node_live("filler", 0.7, 3);

		memset(&first, 0, sizeof(first));
		memset(&second, 0, sizeof(second));
		cluster_draw(&c, seed);
		cluster_draw(&again, seed);
		cluster_place(&c, &first);
		/* The way there must not matter: a larger tree, popped; nodes set and reset. */
		for (uint32_t i = c.n; i < 200; i++)
			assert_int_equal(rules_view_set(again.view, i, &filler), 0);
		for (uint32_t i = c.n; i < 200; i++)
			assert_int_equal(rules_view_pop(again.view), 0);
		for (uint32_t i = 0; i < c.n; i++) {
			assert_int_equal(rules_view_set(again.view, i, &filler), 0);
			assert_int_equal(rules_view_charge(again.view, i, &c.job), 0);
			assert_int_equal(rules_view_set(again.view, i, &c.nodes[i]), 0);
		}
		cluster_place(&again, &second);
		REQUIRE(&c, memcmp(&first, &second, sizeof(first)) == 0);
		rules_view_free(c.view);
		rules_view_free(again.view);
	}
}

static void plans_agree_with_their_reasons(void **state)
{
	static struct cluster c;
	struct rules_plan plan;

	(void)state;
	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		uint32_t refused = 0;
		bool staged;

		cluster_draw(&c, seed);
		staged = c.policy == RULES_IOCM_RE && c.params.stage_fallthrough;
		cluster_place(&c, &plan);
		REQUIRE(&c, plan.node < c.n && plan.stayed == (plan.node == c.home));
		REQUIRE(&c, plan.stayed == (plan.ncandidates == 0));
		REQUIRE(&c, plan.stayed || plan.candidates[0] == plan.node);
		REQUIRE(&c, plan.nreasons >= 1 && plan.nreasons <= RULES_REASONS_MAX);
		REQUIRE(&c, plan.ntied >= 1 && plan.tied[0] == plan.node);
		for (uint32_t i = 0; i < plan.nreasons; i++) {
			const struct rules_reason *r = &plan.reasons[i];

			REQUIRE(&c, r->node < c.n);
			REQUIRE(&c, !isnan(r->left) && !isnan(r->right));
			/* Only a later stage may take what an earlier one refused. */
			if (r->node == plan.node && r->node != c.home && !staged)
				REQUIRE(&c, r->holds);
		}
		for (uint32_t i = 0; i < plan.ncandidates; i++) {
			const struct rules_node *k = &c.nodes[plan.candidates[i]];

			REQUIRE(&c, plan.candidates[i] != c.home);
			REQUIRE(&c, k->accepts);
			REQUIRE(&c, c.job.io_per_ms == 0 || k->disk_mb_per_s > 0);
			for (uint32_t j = 0; j < i; j++)
				REQUIRE(&c, plan.candidates[i] != plan.candidates[j]);
		}
		for (int r = 0; r < RULES_CRITERIA; r++)
			refused += plan.refused[r];
		/* All stages that were run each refuse a node once. */
		REQUIRE(&c, refused <= 3 * (c.n - 1));
		rules_view_free(c.view);
	}
}

/* --- the plain scan ---------------------------------------------------------- */

static double scan_disk(const struct cluster *c, const struct rules_cell *k, double kb)
{
	bool measured = c->params.measured_state && k->measured;
	double own = k->fixed_ms + kb / k->disk_mb_per_s;
	double es = k->service, es2 = k->service2, arrivals, rho;
	struct rules_added added = rules_cell_added(k, &c->job, c->params.rates);

	if (!(k->disk_mb_per_s > 0))
		return 0;
	if (measured && k->seen_service > 0) {
		es = k->seen_service;
		es2 = fmax(k->seen_service2, es * es);
	}
	arrivals = measured ? k->arrivals : k->io + added.explicit_io + added.implicit_io;
	rho = fmin(measured ? k->utilisation : arrivals * es, c->params.rho_max);
	return fmin(own + arrivals * es2 / (2 * (1 - rho)), (k->io_tasks + 1) * fmax(es, own));
}

static double scan_response(const struct cluster *c, uint32_t index)
{
	const struct rules_cell *k = &c->view->cells[index];
	const struct rules_request *j = &c->job;
	bool is_wall = c->params.rates == RULES_RATES_WALL;
	double requests = is_wall ? j->requests : j->cpu_ms * j->io_per_ms;
	double kb_per_ms = k->kb_per_ms + j->io_per_ms * j->request_kb;
	double t = j->cpu_ms * (c->view->cells[c->home].mips / k->mips);
	double faults = 0;

	if (!c->params.literal_requests) {
		if (!is_wall)
			requests *= 1 - rules_hit_rate(j->reaccess, k->buffer_kb, j->io_per_ms,
						       j->request_kb, j->cpu_ms, kb_per_ms);
		faults = j->cpu_ms *
			 rules_implicit(j->faults_per_ms, k->memory + j->memory_mb, k->n_mem);
	}
	return t * fmax(1, (k->queue + 1) / k->cores) + requests * scan_disk(c, k, j->request_kb) +
	       faults * scan_disk(c, k, RULES_PAGE_KB);
}

static bool scan_worthwhile(const struct cluster *c, uint32_t index)
{
	const struct rules_cell *i = &c->view->cells[c->home], *k = &c->view->cells[index];
	double from = i->network > 0 ? i->network : c->params.network_mb_per_s;
	double to = k->network > 0 ? k->network : c->params.network_mb_per_s;
	double cost = rules_transfer_cost_ms(c->params.fixed_cost_ms, c->job.initial_mb,
					     fmin(from, to), i->disk_mb_per_s, k->disk_mb_per_s);

	return scan_response(c, c->home) > scan_response(c, index) + cost;
}

static bool scan_eligible(const struct cluster *c, uint32_t index)
{
	const struct rules_cell *k = &c->view->cells[index];
	const struct rules_request *j = &c->job;

	if (!k->accepts || ((j->io_per_ms > 0 || j->requests > 0) && !(k->disk_mb_per_s > 0)))
		return false;
	return !c->params.require_memory || k->memory + j->memory_mb <= k->n_mem;
}

static double scan_count(const struct cluster *c, uint32_t index, double tasks)
{
	const struct rules_cell *k = &c->view->cells[index];

	if (!c->params.cpu_speed_weighted)
		return tasks;
	return tasks / (k->cores * (k->mips / c->view->cells[c->home].mips));
}

/* The policy's own tests of node K, without eligibility and cost. */
static bool scan_lighter(const struct cluster *c, uint32_t index)
{
	const struct rules_cell *i = &c->view->cells[c->home], *k = &c->view->cells[index];
	struct rules_added added = rules_cell_added(i, &c->job, c->params.rates);
	double own = added.explicit_io + added.implicit_io, total = own, power = 0;

	if (c->policy == RULES_CPU_RE)
		return scan_count(c, c->home, i->cpu + 1) > scan_count(c, index, k->cpu + 1);
	if (c->policy == RULES_MEM_RE)
		return (k->memory + c->job.memory_mb) / k->n_mem <
		       (i->memory + c->job.memory_mb) / i->n_mem;
	for (uint32_t n = 0; n < c->n; n++) {
		total += c->view->cells[n].io;
		power += c->view->cells[n].performance;
	}
	/* A sum in another order: leave a rounding's room. */
	return k->io < i->io && k->io <= total * k->performance / power * (1 + 1e-12);
}

static double scan_key(const struct cluster *c, uint32_t index)
{
	const struct rules_cell *k = &c->view->cells[index];

	if (c->policy == RULES_IO_RE)
		return k->io;
	if (c->policy == RULES_MEM_RE)
		return k->memory / k->n_mem;
	return c->params.cpu_speed_weighted ? k->cpu / (k->cores * k->mips) : k->cpu;
}

static bool scan_starts(const struct cluster *c)
{
	const struct rules_cell *i = &c->view->cells[c->home];
	double cores = c->params.cpu_speed_weighted ? 1 : i->cores;
	struct rules_added added = rules_cell_added(i, &c->job, c->params.rates);
	double own = added.explicit_io + added.implicit_io, total = own, power = 0;

	if (c->policy == RULES_CPU_RE)
		return scan_count(c, c->home, i->cpu + 1) > c->params.cpu_threshold * cores;
	if (c->policy == RULES_MEM_RE)
		return i->memory + c->job.memory_mb > i->n_mem;
	for (uint32_t n = 0; n < c->n; n++) {
		total += c->view->cells[n].io;
		power += c->view->cells[n].performance;
	}
	return i->io + own >= (power > 0 ? total * i->performance / power : 0) * (1 - 1e-12);
}

/* Whether A comes before B in the policy's order; equal nodes before neither. */
static bool scan_before(const struct cluster *c, uint32_t a, uint32_t b)
{
	double ka = scan_key(c, a), kb = scan_key(c, b);

	return ka != kb ? ka < kb : c->view->cells[a].memory < c->view->cells[b].memory;
}

/*
 * The acceptable nodes by scan: COUNT of them, and the plan's candidates must be
 * the lightest ones in an order that the keys allow.
 */
static void compare_with_scan(const struct cluster *c, const struct rules_plan *plan)
{
	bool cost = c->policy == RULES_IO_RE ? c->params.io_cost_test : c->params.cpu_cost_test;
	bool acceptable[MOST_HERE] = {false};
	uint32_t count = 0;

	for (uint32_t k = 0; k < c->n; k++) {
		acceptable[k] = k != c->home && scan_lighter(c, k) && scan_eligible(c, k) &&
				(!cost || scan_worthwhile(c, k));
		count += acceptable[k];
	}
	if (count > RULES_EXAMINED_MAX)
		count = RULES_EXAMINED_MAX;
	REQUIRE(c, plan->ncandidates == count);
	for (uint32_t i = 0; i < count; i++) {
		REQUIRE(c, acceptable[plan->candidates[i]]);
		acceptable[plan->candidates[i]] = false;
		REQUIRE(c, i == 0 || !scan_before(c, plan->candidates[i], plan->candidates[i - 1]));
	}
	for (uint32_t k = 0; k < c->n && count > 0; k++)
		REQUIRE(c, !acceptable[k] || !scan_before(c, k, plan->candidates[count - 1]));
}

static void search_equals_a_scan(void **state)
{
	static struct cluster c;
	struct rules_plan plan;
	unsigned int compared = 0;

	(void)state;
	for (uint64_t seed = 1; seed <= 4 * SEEDS; seed++) {
		cluster_draw(&c, seed);
		if (c.policy != RULES_NLB && c.policy != RULES_IOCM_RE) {
			/* Only the argmin is tried otherwise; a policy test covers that. */
			c.params.try_next = true;
			cluster_place(&c, &plan);
			if (scan_starts(&c)) {
				compare_with_scan(&c, &plan);
				compared += plan.ncandidates > 0;
			} else if (c.policy != RULES_MEM_RE) {
				REQUIRE(&c, plan.stayed);
			}
		}
		rules_view_free(c.view);
	}
	assert_true(compared > SEEDS / 4);
}

/* After-form (O-12): the candidate with the job ends below the old home. */
static void discrepancy_equals_its_after_form(void **state)
{
	static struct cluster c;
	struct rules_plan plan;

	(void)state;
	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		cluster_draw(&c, seed);
		c.policy = RULES_IO_RE;
		cluster_place(&c, &plan);
		for (uint32_t i = 0; i < plan.nreasons; i++) {
			const struct rules_reason *r = &plan.reasons[i];
			double home = c.view->cells[c.home].io + r->right;
			double k = c.view->cells[r->node].io;

			if (r->criterion != RULES_C_IO_DISCREPANCY)
				continue;
			if (fabs(k + r->right - home) > 1e-12)
				REQUIRE(&c, r->holds == (k + r->right < home));
			else
				REQUIRE(&c, r->holds == (k < c.view->cells[c.home].io));
		}
		rules_view_free(c.view);
	}
}

/* Sums of the tree: as exact after many changes as at first. */
static void sums_do_not_drift(void **state)
{
	struct draws d = {5};
	struct rules_node nodes[50];
	struct rules_view *view, *fresh;

	(void)state;
	for (uint32_t i = 0; i < 50; i++)
		nodes[i] = node_random(&d, i);
	view = view_of(nodes, 50, RULES_RATES_WALL);
	for (int round = 0; round < 20000; round++) {
		uint32_t i = (uint32_t)draw(&d, 50);

		nodes[i] = node_random(&d, i);
		nodes[i].advertised.io_per_ms *= draw_chance(&d, 0.1) ? 1e6 : 1;
		assert_int_equal(rules_view_set(view, i, &nodes[i]), 0);
	}
	fresh = view_of(nodes, 50, RULES_RATES_WALL);
	assert_memory_equal(&view->sums[1], &fresh->sums[1], sizeof(fresh->sums[1]));
	rules_view_free(view);
	rules_view_free(fresh);
}

/* Far more nodes than are looked at one by one: bounds may not lose the best. */
static void large_clusters_find_the_lightest_acceptable(void **state)
{
	struct rules_view *view = rules_view_new();
	struct rules_params p;
	struct rules_request job = job_io(100, 1000);
	struct rules_plan plan;

	(void)state;
	rules_params_default(&p, RULES_RATES_COMPUTATION);
	for (uint32_t i = 0; i < 3000; i++) {
		struct rules_node n = node_live("n", 0.1 + 0.0002 * i, 1);

		n.accepts = i == 0 || i == 2500 || i == 2700;
		if (i == 0)
			n.advertised.io_per_ms = 1;
		assert_int_equal(rules_view_set(view, i, &n), 0);
	}
	p.io_cost_test = false;
	place(RULES_IO_RE, &p, view, 0, &job, &plan);
	assert_true(plan.stayed); /* both carry more than their share */
	assert_int_equal(plan.refused[RULES_C_ACCEPTS] + plan.refused[RULES_C_IO_UNDERLOADED] +
				 plan.refused[RULES_C_IO_DISCREPANCY],
			 2999);
	for (uint32_t i = 1000; i <= 1001; i++) {
		struct rules_node n = node_live("n", 0.1 + 0.0002 * (2001 - i), 1);

		assert_int_equal(rules_view_set(view, i, &n), 0);
	}
	place(RULES_IO_RE, &p, view, 0, &job, &plan);
	assert_int_equal(plan.node, 1001);
	assert_int_equal(plan.candidates[1], 1000);
	rules_view_free(view);
}

static void set_refused(struct rules_view *view, const struct rules_node *node)
{
	assert_int_equal(rules_view_set(view, 0, node), -EINVAL);
}

static void bad_numbers_are_refused(void **state)
{
	static const double bad[] = {NAN, -1, INFINITY, -INFINITY};
	struct rules_view *view = rules_view_new();
	struct rules_task task = {.cpu_ms = 1};
	struct rules_node good = node_live("a", 0.5, 1), n;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		n = good, n.ram_mb = bad[i], set_refused(view, &n);
		n = good, n.cpu_mips = bad[i], set_refused(view, &n);
		n = good, n.disk_fixed_ms = bad[i], set_refused(view, &n);
		n = good, n.age_ms = bad[i], set_refused(view, &n);
		n = good, n.measured.service_ms2 = bad[i], set_refused(view, &n);
		n = good, n.advertised.com_ms = bad[i], set_refused(view, &n);
		n = good, n.tasks = &task, n.ntasks = 1, task.com_ms = bad[i];
		set_refused(view, &n);
		task.com_ms = 0;
	}
	n = good, n.cpu_mips = 0, set_refused(view, &n);
	n = good, n.cores = 0.5, set_refused(view, &n);
	n = good, n.buffer_mb = n.ram_mb, set_refused(view, &n);
	n = good, memset(n.name, 'x', sizeof(n.name)), set_refused(view, &n);
	task.memory_mb = 1e308;
	n = good, n.has_advertised = false, n.ntasks = 2;
	n.tasks = (struct rules_task[]){task, task};
	set_refused(view, &n);
	assert_int_equal(rules_view_count(view), 0);
	assert_int_equal(rules_view_set(view, 1, &good), -EINVAL);
	assert_int_equal(rules_view_pop(view), -EINVAL);
	assert_null(rules_view_name(view, 0));
	rules_view_free(view);
}

static void bad_requests_are_refused(void **state)
{
	struct rules_node node = node_live("a", 0.5, 1);
	struct rules_view *view = view_of(&node, 1, RULES_RATES_WALL);
	struct rules_view *empty = rules_view_new();
	struct rules_params p;
	struct rules_plan plan;
	struct rules_request good = job_io(1, 1), bad;
	struct rules *rules;

	(void)state;
	rules_params_default(&p, RULES_RATES_WALL);
	rules = rules_new(RULES_IOCM_RE, &p, 1);
	assert_int_equal(rules_place(rules, view, 0, &good, &plan), 0);
	assert_string_equal(rules_view_name(view, 0), "a");
	assert_int_equal(rules_place(rules, view, 1, &good, &plan), -EINVAL);
	assert_int_equal(rules_place(rules, empty, 0, &good, &plan), -EINVAL);
	bad = good, bad.cpu_ms = NAN;
	assert_int_equal(rules_place(rules, view, 0, &bad, &plan), -EINVAL);
	bad = good, bad.memory_mb = -1;
	assert_int_equal(rules_place(rules, view, 0, &bad, &plan), -EINVAL);
	assert_int_equal(rules_view_charge(view, 0, &bad), -EINVAL);
	bad = good, bad.requests = INFINITY;
	assert_int_equal(rules_place(rules, view, 0, &bad, &plan), -EINVAL);
	bad = good, bad.tasks = 0;
	assert_int_equal(rules_place(rules, view, 0, &bad, &plan), -EINVAL);
	rules_free(rules);
	rules_free(NULL);
	rules_view_free(view);
	rules_view_free(empty);
	rules_view_free(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(same_input_gives_the_same_plan),
		cmocka_unit_test(plans_agree_with_their_reasons),
		cmocka_unit_test(search_equals_a_scan),
		cmocka_unit_test(discrepancy_equals_its_after_form),
		cmocka_unit_test(sums_do_not_drift),
		cmocka_unit_test(large_clusters_find_the_lightest_acceptable),
		cmocka_unit_test(bad_numbers_are_refused),
		cmocka_unit_test(bad_requests_are_refused),
	};

	return cmocka_run_group_tests_name("rules: properties", tests, NULL, NULL);
}
