/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Properties that hold for every cluster and every policy, drawn from seeds; prints the failing
 * seed.
 */
#include <errno.h>

#include "tests/unit/rules_scan.h"

#define SEEDS 1500

static void same_input_gives_the_same_plan(void **state)
{
	static struct cluster c, again;
	struct rules_plan first, second;

	(void)state;
	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		struct rules_node filler = node_live("filler", 0.7, 3);

		cluster_draw(&c, seed);
		cluster_draw(&again, seed);
		cluster_place(&c, &first);
		/*
		 * A view must not depend on its history, such as nodes that were popped or set
		 * twice.
		 */
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
		REQUIRE(&c, same_plan(&first, &second));
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
		staged = c.params.stage_fallthrough;
		cluster_place(&c, &plan);
		REQUIRE(&c, plan.node < c.n && plan.stayed == (plan.node == c.home));
		REQUIRE(&c, plan.stayed == (plan.ncandidates == 0));
		REQUIRE(&c, plan.stayed || plan.candidates[0] == plan.node);
		/* IO has no test of home itself. */
		REQUIRE(&c, plan.nreasons >= (c.policy != RULES_IO || c.n > 1));
		REQUIRE(&c, plan.nreasons <= RULES_REASONS_MAX);
		REQUIRE(&c, plan.ntied >= 1 && plan.tied[0] == plan.node);
		for (uint32_t i = 0; i < plan.nreasons; i++) {
			const struct rules_reason *r = &plan.reasons[i];

			REQUIRE(&c, r->node < c.n);
			REQUIRE(&c, !isnan(r->left) && !isnan(r->right));
			/* Only a later stage may choose a node that an earlier stage refused. */
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
		/* Each stage that ran refuses a node at most once. */
		REQUIRE(&c, refused <= 3 * (c.n - 1));
		rules_view_free(c.view);
	}
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
		c.params.discrepancy_after = true;
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

/* Sums of the tree stay exact after many changes. */
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
	assert_memory_equal(&view->totals, &fresh->totals, sizeof(fresh->totals));
	rules_view_free(view);
	rules_view_free(fresh);
}

/* There are far more nodes than are examined one by one: the bounds must not lose the best node. */
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
	assert_true(plan.stayed); /* both nodes have more than their share */
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
		cmocka_unit_test(discrepancy_equals_its_after_form),
		cmocka_unit_test(sums_do_not_drift),
		cmocka_unit_test(large_clusters_find_the_lightest_acceptable),
		cmocka_unit_test(bad_numbers_are_refused),
		cmocka_unit_test(bad_requests_are_refused),
	};

	return cmocka_run_group_tests_name("rules: properties", tests, NULL, NULL);
}
