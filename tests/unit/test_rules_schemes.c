/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* CM, IO, IOCM-RE for equal nodes, and the switches of the others, decided by hand. */
#include <errno.h>

#include "tests/unit/rules_fixture.h"

/* --- CM ------------------------------------------------------------------------- */

static void cm_balances_memory_first(void **state)
{
	struct rules_node nodes[] = {node_advertised("a", 0, 470, 9),
				     node_advertised("b", 0, 300, 0),
				     node_advertised("c", 0, 100, 20)};
	struct rules_view *view = view_of(nodes, 3, RULES_RATES_COMPUTATION);
	struct rules_params p = params_computation();
	struct rules_request job = job_cpu(5000);
	struct rules_plan plan;

	(void)state;
	p.cpu_cost_test = false;
	job.memory_mb = 20; /* 490 > 480 */
	place(RULES_CM, &p, view, 0, &job, &plan);
	assert_reason(&plan, RULES_C_MEM_OVERLOADED, 0, true);
	assert_int_equal(plan.node, 2);
	p.cpu_cost_test = true; /* 21 tasks there, 10 at home */
	place(RULES_CM, &p, view, 0, &job, &plan);
	assert_true(plan.stayed);
	assert_reason(&plan, RULES_C_RESPONSE, 2, false);
	rules_view_free(view);
}

static void cm_balances_tasks_above_the_mean(void **state)
{
	struct rules_node nodes[] = {node_advertised("a", 0, 8, 3), node_advertised("b", 0, 8, 2),
				     node_advertised("c", 0, 8, 3)};
	struct rules_params p = params_computation();
	struct rules_request job = job_cpu(5000);
	struct rules_plan plan;
	struct rules_view *view = view_of(nodes, 3, RULES_RATES_COMPUTATION);
	const struct rules_reason *r;

	(void)state;
	place(RULES_CM, &p, view, 0, &job, &plan);
	r = assert_reason(&plan, RULES_C_CPU_IMBALANCED, 0, true);
	assert_close(r->left, 4 / (9.0 / 3), 1e-12); /* 4 tasks, 3 on average */
	assert_close(r->right, 1.25, 0);
	assert_int_equal(plan.node, 1);
	p.overload_ratio = 1.4;
	place(RULES_CM, &p, view, 0, &job, &plan);
	assert_true(plan.stayed);
	assert_reason(&plan, RULES_C_CPU_IMBALANCED, 0, false);
	rules_view_free(view);
}

static void cm_memory_by_ratio(void **state)
{
	struct rules_node nodes[] = {node_advertised("a", 0, 190, 0),
				     node_advertised("b", 0, 90, 0)};
	struct rules_view *view = view_of(nodes, 2, RULES_RATES_COMPUTATION);
	struct rules_params p = params_computation();
	struct rules_request job = job_cpu(5000);
	struct rules_plan plan;
	const struct rules_reason *r;

	(void)state;
	job.memory_mb = 20;
	p.cpu_cost_test = false;
	p.cm_memory_ratio = true;
	place(RULES_CM, &p, view, 0, &job, &plan);
	r = assert_reason(&plan, RULES_C_MEM_IMBALANCED, 0, true);
	assert_close(r->left, 210 / 150.0, 1e-12);
	assert_int_equal(plan.node, 1);
	p.cm_memory_ratio = false; /* 210 MB of 480: memory is not needed, and each has one task */
	place(RULES_CM, &p, view, 0, &job, &plan);
	assert_reason(&plan, RULES_C_MEM_OVERLOADED, 0, false);
	rules_view_free(view);
}

/* Home itself may have the most free memory. */
static void cm_stays_where_home_is_lightest(void **state)
{
	struct rules_node nodes[] = {node_advertised("a", 0, 470, 0),
				     node_advertised("b", 0, 475, 0)};
	struct rules_view *view = view_of(nodes, 2, RULES_RATES_COMPUTATION);
	struct rules_params p = params_computation();
	struct rules_request job = job_cpu(5000);
	struct rules_plan plan;

	(void)state;
	job.memory_mb = 20;
	p.cpu_cost_test = false;
	place(RULES_CM, &p, view, 0, &job, &plan);
	assert_true(plan.stayed);
	assert_reason(&plan, RULES_C_MEM_RATIO, 1, false);
	rules_view_free(view);
}

/* FC draws among the lightest; ACM takes the one with less memory in use. */
static void fc_draws_among_equals_acm_looks_at_memory(void **state)
{
	struct rules_node nodes[] = {node_advertised("a", 0, 8, 9), node_advertised("b", 0, 10, 0),
				     node_advertised("c", 0, 20, 0)};
	struct rules_view *view = view_of(nodes, 3, RULES_RATES_COMPUTATION);
	struct rules_params p = params_computation();
	struct rules_request job = job_cpu(5000);
	struct rules_plan plan;
	int taken[3] = {0};

	(void)state;
	for (uint64_t seed = 0; seed < 200; seed++) {
		struct rules *rules = rules_new(RULES_CM, &p, seed);

		assert_int_equal(rules_place(rules, view, 0, &job, &plan), 0);
		assert_int_equal(plan.ntied, 2);
		taken[plan.node]++;
		rules_free(rules);
	}
	assert_in_range(taken[1], 70, 130);
	assert_int_equal(taken[0], 0);
	place(RULES_CPU_RE, &p, view, 0, &job, &plan);
	assert_int_equal(plan.node, 1);
	assert_int_equal(plan.ntied, 1);
	rules_view_free(view);
}

/* --- IO ------------------------------------------------------------------------- */

static void io_looks_at_explicit_load_alone(void **state)
{
	struct rules_node nodes[] = {node_advertised("a", 0.04, 8, 1),
				     node_advertised("b", 0.03, 8, 1),
				     node_advertised("c", 0.05, 8, 1)};
	struct rules_params p = params_computation();
	struct rules_request job = job_cpu(1000);
	struct rules_plan plan;
	struct rules_view *view;
	const struct rules_reason *r;

	(void)state;
	nodes[2].advertised.explicit_per_ms = 0.01; /* the rest is paging */
	job.io_per_ms = 0.02;
	job.request_kb = 250;
	p.io_useful_test = false;
	view = view_of(nodes, 3, RULES_RATES_COMPUTATION);
	place(RULES_IO, &p, view, 0, &job, &plan);
	assert_int_equal(plan.node, 2);
	r = assert_reason(&plan, RULES_C_EXPLICIT_DISCREPANCY, 2, true);
	assert_close(r->left, 0.04 + 0.02 - 0.01, 1e-12);
	assert_close(r->right, 0.02, 1e-12);
	/* No trigger: home need not be overloaded, only not the lightest. */
	assert_null(reason_find(&plan, RULES_C_IO_OVERLOADED, 0));
	place(RULES_IO, &p, view, 2, &job, &plan);
	assert_true(plan.stayed);
	rules_view_free(view);
}

static void io_may_ask_whether_it_is_useful(void **state)
{
	struct rules_node nodes[] = {node_advertised("a", 0.04, 8, 1),
				     node_advertised("b", 0, 8, 1)};
	struct rules_view *view = view_of(nodes, 2, RULES_RATES_COMPUTATION);
	struct rules_params p = params_computation();
	struct rules_request job = job_cpu(1000);
	struct rules_plan plan;

	(void)state;
	job.io_per_ms = 0.02;
	job.request_kb = 250;
	p.fixed_cost_ms = 1e6;
	place(RULES_IO, &p, view, 0, &job, &plan);
	assert_true(plan.stayed);
	assert_reason(&plan, RULES_C_RESPONSE, 1, false);
	p.io_useful_test = false;
	place(RULES_IO, &p, view, 0, &job, &plan);
	assert_int_equal(plan.node, 1);
	assert_null(reason_find(&plan, RULES_C_RESPONSE, 1));
	rules_view_free(view);
}

static void io_tries_the_next_only_when_told(void **state)
{
	struct rules_node nodes[] = {node_advertised("a", 0.05, 8, 1),
				     node_advertised("b", 0, 8, 1),
				     node_advertised("c", 0.01, 8, 0)};
	struct rules_params p = params_computation();
	struct rules_request job = job_cpu(1000);
	struct rules_plan plan;
	struct rules_view *view;

	(void)state;
	nodes[1].cpu_mips = 8;
	job.io_per_ms = 0.02;
	job.request_kb = 250;
	view = view_of(nodes, 3, RULES_RATES_COMPUTATION);
	place(RULES_IO, &p, view, 0, &job, &plan);
	assert_true(plan.stayed);
	p.try_next = true;
	place(RULES_IO, &p, view, 0, &job, &plan);
	assert_int_equal(plan.node, 2);
	rules_view_free(view);
}

/* --- IOCM-RE, equal nodes ------------------------------------------------------------ */

static void hom_takes_the_lightest_disk_that_pays(void **state)
{
	struct rules_node nodes[] = {
		node_advertised("a", 0.06, 8, 1), node_advertised("b", 0.01, 9, 9),
		node_advertised("c", 0.02, 8, 0), node_advertised("d", 0.02, 7, 0)};
	struct rules_view *view = view_of(nodes, 4, RULES_RATES_COMPUTATION);
	struct rules_params p = params_computation();
	struct rules_request job = job_cpu(2000);
	struct rules_plan plan;

	(void)state;
	job.io_per_ms = 0.01;
	job.request_kb = 250;
	place(RULES_IOCM_RE_HOM, &p, view, 0, &job, &plan);
	assert_reason(&plan, RULES_C_IO_PRESENT, 0, true);
	assert_reason(&plan, RULES_C_RESPONSE, 1, false); /* that node has ten tasks */
	assert_int_equal(plan.node, 3); /* this node is as light as c, with less memory in use */
	assert_reason(&plan, RULES_C_IO_DISCREPANCY, 3, true);
	/* The threshold of the cluster's load is not tested. */
	assert_null(reason_find(&plan, RULES_C_IO_OVERLOADED, 0));
	rules_view_free(view);
}

static void hom_picks_its_stage(void **state)
{
	struct rules_node nodes[] = {node_advertised("a", 0, 100, 6),
				     node_advertised("b", 0, 90, 0), node_advertised("c", 0, 8, 5)};
	struct rules_view *view = view_of(nodes, 3, RULES_RATES_COMPUTATION);
	struct rules_params p = params_computation();
	struct rules_request job = job_cpu(5000);
	struct rules_plan plan;

	(void)state;
	place(RULES_IOCM_RE_HOM, &p, view, 0, &job, &plan);
	assert_reason(&plan, RULES_C_IO_PRESENT, 0, false);
	assert_reason(&plan, RULES_C_MEM_OVERLOADED, 0, false);
	assert_reason(&plan, RULES_C_CPU_OVERLOADED, 0, true);
	assert_int_equal(plan.node, 1);
	assert_null(reason_find(&plan, RULES_C_CPU_DISCREPANCY, 1)); /* O-23: response alone */

	job.memory_mb = 390;
	place(RULES_IOCM_RE_HOM, &p, view, 0, &job, &plan);
	assert_reason(&plan, RULES_C_MEM_OVERLOADED, 0, true);
	assert_int_equal(plan.node, 2);
	assert_null(reason_find(&plan, RULES_C_MEM_RATIO, 2));

	p.cpu_threshold = 10;
	job.memory_mb = 4;
	place(RULES_IOCM_RE_HOM, &p, view, 0, &job, &plan);
	assert_true(plan.stayed);
	assert_reason(&plan, RULES_C_CPU_OVERLOADED, 0, false);
	rules_view_free(view);
}

/* O-22: paging alone keeps 3.7 in its first stage; in 3.8's reading, memory is next. */
static void hom_first_stage_may_ask_for_explicit_load(void **state)
{
	struct rules_node nodes[] = {node_advertised("a", 0.01, 600, 1),
				     node_advertised("b", 0, 8, 0)};
	struct rules_params p = params_computation();
	struct rules_request job = job_cpu(5000);
	struct rules_plan plan;
	struct rules_view *view;

	(void)state;
	nodes[0].advertised.explicit_per_ms = 0;
	view = view_of(nodes, 2, RULES_RATES_COMPUTATION);
	place(RULES_IOCM_RE_HOM, &p, view, 0, &job, &plan);
	assert_reason(&plan, RULES_C_IO_PRESENT, 0, true);
	assert_null(reason_find(&plan, RULES_C_MEM_OVERLOADED, 0));
	p.hom_stage_explicit = true;
	place(RULES_IOCM_RE_HOM, &p, view, 0, &job, &plan);
	assert_reason(&plan, RULES_C_IO_PRESENT, 0, false);
	assert_reason(&plan, RULES_C_MEM_OVERLOADED, 0, true);
	p.hom_stage_explicit = false;
	p.io_significance = 0.02; /* the same happens if the load counts as insignificant */
	place(RULES_IOCM_RE_HOM, &p, view, 0, &job, &plan);
	assert_reason(&plan, RULES_C_IO_PRESENT, 0, false);
	rules_view_free(view);
}

/* 3.9 places as 3.7 where nodes are equal: paging alone brings the first stage. */
static void pm_places_by_either_form(void **state)
{
	struct rules_node nodes[] = {node_advertised("a", 0.01, 600, 1),
				     node_advertised("b", 0, 8, 0)};
	struct rules_params p = params_computation();
	struct rules_request job = job_cpu(5000);
	struct rules_plan plan;
	struct rules_view *view;

	(void)state;
	nodes[0].advertised.explicit_per_ms = 0;
	view = view_of(nodes, 2, RULES_RATES_COMPUTATION);
	place(RULES_IOCM_PM, &p, view, 0, &job, &plan);
	assert_reason(&plan, RULES_C_IO_PRESENT, 0, false);
	assert_reason(&plan, RULES_C_MEM_OVERLOADED, 0, true);
	p.hom_pm = true;
	p.io_order_share = true;
	assert_int_equal(rules_view_keep(view, RULES_IOCM_PM, &p), 0);
	place(RULES_IOCM_PM, &p, view, 0, &job, &plan);
	assert_reason(&plan, RULES_C_IO_PRESENT, 0, true);
	assert_null(reason_find(&plan, RULES_C_MEM_OVERLOADED, 0));
	rules_view_free(view);
}

static void hom_falls_through_when_told(void **state)
{
	struct rules_node nodes[] = {node_live("a", 0.2, 20), node_live("b", 0.2, 0)};
	struct rules_view *view = view_of(nodes, 2, RULES_RATES_WALL);
	struct rules_params p = params_wall();
	struct rules_request job = job_cpu(5000);
	struct rules_plan plan;

	(void)state;
	place(RULES_IOCM_RE_HOM, &p, view, 0, &job, &plan);
	assert_reason(&plan, RULES_C_IO_DISCREPANCY, 1, false);
	assert_reason(&plan, RULES_C_CPU_OVERLOADED, 0, true);
	assert_int_equal(plan.node, 1);
	p.stage_fallthrough = false;
	place(RULES_IOCM_RE_HOM, &p, view, 0, &job, &plan);
	assert_true(plan.stayed);
	rules_view_free(view);
}

/* --- switches of the older ones --------------------------------------------------------- */

/* O-12: if home's load does not include the job, the difference must be twice the job's load. */
static void discrepancy_may_leave_the_job_out(void **state)
{
	struct rules_node nodes[] = {node_advertised("a", 0.05, 8, 1),
				     node_advertised("b", 0.04, 8, 1)};
	struct rules_view *view = view_of(nodes, 2, RULES_RATES_COMPUTATION);
	static const enum rules_policy policies[] = {RULES_IO_RE, RULES_IOCM_RE_HOM, RULES_IO};
	struct rules_params p = params_computation();
	struct rules_request job = job_cpu(1000);
	struct rules_plan plan;

	(void)state;
	p.fixed_cost_ms = 0;
	p.closed_loop_bound = false;
	job.io_per_ms = 0.02;
	job.request_kb = 250;
	for (int i = 0; i < 3; i++) {
		enum rules_criterion c = policies[i] == RULES_IO ? RULES_C_EXPLICIT_DISCREPANCY
								 : RULES_C_IO_DISCREPANCY;

		p.discrepancy_after = true;
		place(policies[i], &p, view, 0, &job, &plan);
		assert_reason(&plan, c, 1, true);
		p.discrepancy_after = false;
		place(policies[i], &p, view, 0, &job, &plan);
		assert_true(plan.stayed);
		assert_close(assert_reason(&plan, c, 1, false)->left, 0.01, 1e-12);
	}
	rules_view_free(view);
}

/* O-8(d): two tasks doing I/O wait for each other, not for a queue of hundreds. */
static void closed_loop_bound_is_a_switch(void **state)
{
	struct rules_node nodes[] = {node_live("a", 0.98, 1), node_live("b", 0, 1)};
	struct rules_view *view = view_of(nodes, 2, RULES_RATES_WALL);
	struct rules_params p = params_wall();
	struct rules_request job = job_io(100, 200);
	struct rules_plan plan;
	double open = 14.25 + 0.98 / 14.25 * 204.625 / (2 * (1 - 0.98));

	(void)state;
	place(RULES_IO_RE, &p, view, 0, &job, &plan);
	assert_close(assert_reason(&plan, RULES_C_RESPONSE, 1, true)->left, 100 + 200 * 3 * 14.25,
		     1e-6);
	p.closed_loop_bound = false;
	place(RULES_IO_RE, &p, view, 0, &job, &plan);
	assert_close(assert_reason(&plan, RULES_C_RESPONSE, 1, true)->left, 100 + 200 * open, 1e-6);
	rules_view_free(view);
}

static void memory_stage_by_free_memory(void **state)
{
	struct rules_node nodes[] = {node_advertised("a", 0, 470, 0),
				     node_advertised("small", 0, 40, 0),
				     node_advertised("large", 0, 400, 0)};
	struct rules_params p = params_computation();
	struct rules_request job = job_cpu(5000);
	struct rules_plan plan;
	struct rules_view *view;

	(void)state;
	nodes[1].ram_mb = 160 + 400;  /* 10 % full, 360 MB free */
	nodes[2].ram_mb = 160 + 1600; /* 25 % full, 1200 MB free */
	job.memory_mb = 20;
	p.cpu_cost_test = false;
	view = view_of(nodes, 3, RULES_RATES_COMPUTATION);
	place(RULES_MEM_RE, &p, view, 0, &job, &plan);
	assert_int_equal(plan.node, 1);
	p.mem_order_free = true;
	place(RULES_MEM_RE, &p, view, 0, &job, &plan);
	assert_int_equal(plan.node, 2);
	rules_view_free(view);
}

static void memory_stage_without_the_ratio_test(void **state)
{
	struct rules_node nodes[] = {node_advertised("a", 0, 470, 6),
				     node_advertised("b", 0, 478, 0)};
	struct rules_view *view = view_of(nodes, 2, RULES_RATES_COMPUTATION);
	struct rules_params p = params_computation();
	struct rules_request job = job_cpu(5000);
	struct rules_plan plan;

	(void)state;
	job.memory_mb = 20;
	place(RULES_MEM_RE, &p, view, 0, &job, &plan);
	assert_true(plan.stayed);
	assert_reason(&plan, RULES_C_MEM_RATIO, 1, false);
	p.mem_ratio_test = false;
	place(RULES_MEM_RE, &p, view, 0, &job, &plan);
	assert_int_equal(plan.node, 1);
	assert_null(reason_find(&plan, RULES_C_MEM_RATIO, 1));
	rules_view_free(view);
}

/* O-21: the lightest disk is not the one with the most capacity left. */
static void io_re_by_share_of_the_threshold(void **state)
{
	struct rules_node nodes[] = {node_advertised("a", 0.06, 8, 1),
				     node_advertised("slow", 0.003, 8, 1),
				     node_advertised("fast", 0.012, 8, 1)};
	struct rules_params p = params_computation();
	struct rules_request job = job_cpu(1000);
	struct rules_plan plan;
	struct rules_view *view;

	(void)state;
	nodes[2].disk_fixed_ms = 1;
	nodes[2].disk_mb_per_s = 400;
	p.io_cost_test = false;
	view = view_of(nodes, 3, RULES_RATES_COMPUTATION);
	place(RULES_IO_RE, &p, view, 0, &job, &plan);
	assert_int_equal(plan.node, 1);
	p.io_order_share = true;
	place(RULES_IO_RE, &p, view, 0, &job, &plan);
	assert_int_equal(plan.node, 2);
	rules_view_free(view);
}

/* 3.2: the lightest node that may have the job is tried; closed nodes do not end the search. */
static void closed_nodes_do_not_end_the_search(void **state)
{
	struct rules_node nodes[] = {node_advertised("a", 0, 470, 0),
				     node_advertised("closed", 0, 0, 0),
				     node_advertised("c", 0, 300, 0)};
	struct rules_params p = params_computation();
	struct rules_request job = job_cpu(5000);
	struct rules_plan plan;
	struct rules_view *view;

	(void)state;
	nodes[1].accepts = false;
	nodes[1].ram_mb = 160 + 10; /* empty, but too small: it fails the ratio as well */
	job.memory_mb = 20;
	p.cpu_cost_test = false;
	view = view_of(nodes, 3, RULES_RATES_COMPUTATION);
	place(RULES_MEM_RE, &p, view, 0, &job, &plan);
	assert_int_equal(plan.node, 2);
	rules_view_free(view);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cm_balances_memory_first),
		cmocka_unit_test(cm_balances_tasks_above_the_mean),
		cmocka_unit_test(cm_memory_by_ratio),
		cmocka_unit_test(cm_stays_where_home_is_lightest),
		cmocka_unit_test(fc_draws_among_equals_acm_looks_at_memory),
		cmocka_unit_test(io_looks_at_explicit_load_alone),
		cmocka_unit_test(io_may_ask_whether_it_is_useful),
		cmocka_unit_test(io_tries_the_next_only_when_told),
		cmocka_unit_test(hom_takes_the_lightest_disk_that_pays),
		cmocka_unit_test(hom_picks_its_stage),
		cmocka_unit_test(hom_first_stage_may_ask_for_explicit_load),
		cmocka_unit_test(pm_places_by_either_form),
		cmocka_unit_test(hom_falls_through_when_told),
		cmocka_unit_test(discrepancy_may_leave_the_job_out),
		cmocka_unit_test(closed_loop_bound_is_a_switch),
		cmocka_unit_test(memory_stage_by_free_memory),
		cmocka_unit_test(memory_stage_without_the_ratio_test),
		cmocka_unit_test(io_re_by_share_of_the_threshold),
		cmocka_unit_test(closed_nodes_do_not_end_the_search),
	};

	return cmocka_run_group_tests_name("rules: schemes", tests, NULL, NULL);
}
