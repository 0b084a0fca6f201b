/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Each policy on clusters small enough to decide by hand. */
#include <errno.h>

#include "tests/unit/rules_fixture.h"

static void nlb_stays(void **state)
{
	struct rules_node nodes[] = {node_live("a", 1, 40), node_live("b", 0, 0)};
	struct rules_view *view = view_of(nodes, 2, RULES_RATES_WALL);
	struct rules_params p = params_wall();
	struct rules_request job = job_io(1000, 1000);
	struct rules_plan plan;

	(void)state;
	place(RULES_NLB, &p, view, 0, &job, &plan);
	assert_true(plan.stayed && plan.node == 0 && plan.ncandidates == 0);
	assert_reason(&plan, RULES_C_HOME, 0, true);
	rules_view_free(view);
}

static void cpu_re_moves_only_above_the_threshold(void **state)
{
	struct rules_node nodes[] = {node_advertised("a", 0, 8, 3), node_advertised("b", 0, 8, 1),
				     node_advertised("c", 0, 8, 0)};
	struct rules_view *view = view_of(nodes, 3, RULES_RATES_COMPUTATION);
	struct rules_params p = params_computation();
	struct rules_request job = job_cpu(5000);
	struct rules_plan plan;
	const struct rules_reason *r;

	(void)state;
	place(RULES_CPU_RE, &p, view, 0, &job, &plan);
	assert_true(plan.stayed); /* 3 + 1 is not above 4 */
	assert_reason(&plan, RULES_C_CPU_OVERLOADED, 0, false);

	nodes[0].advertised.cpu = 4;
	assert_int_equal(rules_view_set(view, 0, &nodes[0]), 0);
	place(RULES_CPU_RE, &p, view, 0, &job, &plan);
	assert_int_equal(plan.node, 2);
	assert_int_equal(plan.ncandidates, 2);
	assert_int_equal(plan.candidates[1], 1);
	r = assert_reason(&plan, RULES_C_RESPONSE, 2, true);
	assert_close(r->left, 5 * 5000, 1e-6);
	assert_close(r->right, 5000 + 100, 1e-6);
	rules_view_free(view);
}

static void cpu_threshold_is_per_core(void **state)
{
	struct rules_node nodes[] = {node_live("a", 0, 15), node_live("b", 0, 0)};
	struct rules_view *view = view_of(nodes, 2, RULES_RATES_WALL);
	struct rules_params p = params_wall();
	struct rules_request job = job_cpu(5000);
	struct rules_plan plan;

	(void)state;
	place(RULES_CPU_RE, &p, view, 0, &job, &plan);
	assert_true(plan.stayed); /* 16 = 4 * 4 cores */
	nodes[0].advertised.cpu = 16;
	assert_int_equal(rules_view_set(view, 0, &nodes[0]), 0);
	place(RULES_CPU_RE, &p, view, 0, &job, &plan);
	assert_int_equal(plan.node, 1);
	rules_view_free(view);
}

/* 3.2 tries only the argmin; try_next also tries a faster one. */
static void cpu_re_tries_the_next_only_when_told(void **state)
{
	struct rules_node nodes[] = {node_advertised("a", 0, 8, 6),
				     node_advertised("slow", 0, 8, 0),
				     node_advertised("c", 0, 8, 1)};
	struct rules_params p = params_computation();
	struct rules_request job = job_cpu(5000);
	struct rules_plan plan;
	struct rules_view *view;

	(void)state;
	nodes[1].cpu_mips = 80;
	view = view_of(nodes, 3, RULES_RATES_COMPUTATION);
	place(RULES_CPU_RE, &p, view, 0, &job, &plan);
	assert_true(plan.stayed);
	assert_reason(&plan, RULES_C_RESPONSE, 1, false);
	assert_int_equal(plan.refused[RULES_C_RESPONSE], 1);
	p.try_next = true;
	place(RULES_CPU_RE, &p, view, 0, &job, &plan);
	assert_int_equal(plan.node, 2);
	p.cpu_cost_test = false;
	place(RULES_CPU_RE, &p, view, 0, &job, &plan);
	assert_int_equal(plan.node, 1);
	p.cpu_speed_weighted = true; /* 6 tasks at 800 MIPS against 0 + 1 at 80 */
	place(RULES_CPU_RE, &p, view, 0, &job, &plan);
	assert_int_equal(plan.node, 2);
	rules_view_free(view);
}

static void mem_re_balances_memory_then_cpu(void **state)
{
	struct rules_node nodes[] = {node_advertised("a", 0, 470, 4),
				     node_advertised("b", 0, 300, 0),
				     node_advertised("c", 0, 100, 2)};
	struct rules_view *view = view_of(nodes, 3, RULES_RATES_COMPUTATION);
	struct rules_params p = params_computation();
	struct rules_request job = job_cpu(5000);
	struct rules_plan plan;
	const struct rules_reason *r;

	(void)state;
	job.memory_mb = 20; /* 490 > 480 */
	place(RULES_MEM_RE, &p, view, 0, &job, &plan);
	assert_int_equal(plan.node, 2);
	r = assert_reason(&plan, RULES_C_MEM_RATIO, 2, true);
	assert_close(r->left, 490.0 / 480, 1e-12);
	assert_close(r->right, 120.0 / 480, 1e-12);
	job.memory_mb = 10; /* exactly full is not overloaded: CPU decides */
	place(RULES_MEM_RE, &p, view, 0, &job, &plan);
	assert_reason(&plan, RULES_C_MEM_OVERLOADED, 0, false);
	assert_int_equal(plan.node, 1);
	rules_view_free(view);
}

/* The example of 2.9: loads 6, 3, 3 and D 1, 1, 0.5: nodes 0 and 2 are overloaded. */
static void io_re_uses_the_threshold_of_16(void **state)
{
	struct rules_node nodes[3];
	struct rules_params p = params_computation();
	struct rules_request job = job_cpu(0);
	struct rules_plan plan;
	struct rules_view *view;
	const struct rules_reason *r;

	(void)state;
	for (int i = 0; i < 3; i++) {
		nodes[i] = node_advertised("n", i == 0 ? 6 : 3, 0, 0);
		nodes[i].disk_fixed_ms = i == 2 ? 1.75 : 0.75;
		nodes[i].request_kb = 10;
	}
	p.io_cost_test = false;
	view = view_of(nodes, 3, RULES_RATES_COMPUTATION);
	place(RULES_IO_RE, &p, view, 0, &job, &plan);
	assert_int_equal(plan.node, 1);
	r = assert_reason(&plan, RULES_C_IO_OVERLOADED, 0, true);
	assert_close(r->right, 4.8, 1e-12);
	r = assert_reason(&plan, RULES_C_IO_UNDERLOADED, 2, false);
	assert_close(r->left, 3, 0);
	assert_close(r->right, 2.4, 1e-12);
	place(RULES_IO_RE, &p, view, 1, &job, &plan);
	assert_true(plan.stayed);
	assert_reason(&plan, RULES_C_IO_OVERLOADED, 1, false);
	rules_view_free(view);
}

static void io_re_weighs_the_transfer(void **state)
{
	struct rules_node nodes[] = {node_live("a", 0.9, 1), node_live("b", 0, 1)};
	struct rules_view *view = view_of(nodes, 2, RULES_RATES_WALL);
	struct rules_params p = params_wall();
	struct rules_request job = job_io(100, 200);
	struct rules_plan plan;
	const struct rules_reason *r;

	(void)state;
	place(RULES_IO_RE, &p, view, 0, &job, &plan);
	assert_int_equal(plan.node, 1);
	r = assert_reason(&plan, RULES_C_RESPONSE, 1, true);
	assert_close(r->left, 100 + 200 * 3 * 14.25, 1e-6); /* closed loop: 2 tasks and this one */
	assert_close(r->right, 100 + 200 * 14.25 + 100, 1e-6);
	job.initial_mb = 200; /* moving takes 11.6 s */
	place(RULES_IO_RE, &p, view, 0, &job, &plan);
	assert_true(plan.stayed);
	r = assert_reason(&plan, RULES_C_RESPONSE, 1, false);
	assert_close(r->right, 100 + 200 * 14.25 + 100 + 11600, 1e-6);
	rules_view_free(view);
}

static void equal_nodes_exchange_nothing(void **state)
{
	struct rules_node nodes[] = {node_live("a", 0.3, 1), node_live("b", 0.3, 1)};
	struct rules_view *view = view_of(nodes, 2, RULES_RATES_WALL);
	struct rules_params p = params_wall();
	struct rules_request job = job_io(100, 200);
	struct rules_plan plan;

	(void)state;
	p.io_cost_test = false;
	for (int i = 1; i <= 50; i++) {
		job.io_per_ms = 0.001 * i;
		place(RULES_IO_RE, &p, view, 0, &job, &plan);
		assert_true(plan.stayed);
		assert_reason(&plan, RULES_C_IO_DISCREPANCY, 1, false);
	}
	rules_view_free(view);
}

static void closed_and_diskless_nodes_are_refused(void **state)
{
	struct rules_node nodes[] = {node_live("a", 0.9, 1), node_live("shut", 0, 0),
				     node_live("nodisk", 0, 0), node_live("full", 0, 0),
				     node_live("good", 0.1, 1)};
	struct rules_params p = params_wall();
	struct rules_request job = job_io(100, 1000);
	struct rules_plan plan;
	struct rules_view *view;

	(void)state;
	nodes[1].accepts = false;
	nodes[2].disk_mb_per_s = 0;
	nodes[3].advertised.memory_mb = 15999;
	view = view_of(nodes, 5, RULES_RATES_WALL);
	place(RULES_IOCM_RE, &p, view, 0, &job, &plan);
	assert_int_equal(plan.node, 4);
	assert_int_equal(plan.ncandidates, 1);
	assert_reason(&plan, RULES_C_ACCEPTS, 1, false);
	assert_reason(&plan, RULES_C_HAS_DISK, 2, false);
	assert_reason(&plan, RULES_C_MEM_FITS, 3, false);
	assert_reason(&plan, RULES_C_HAS_DISK, 4, true);
	assert_reason(&plan, RULES_C_MEM_FITS, 4, true);
	rules_view_free(view);
}

static void iocm_re_picks_its_stage(void **state)
{
	struct rules_node nodes[] = {node_advertised("a", 0, 100, 6),
				     node_advertised("b", 0, 8, 0)};
	struct rules_params p = params_computation();
	struct rules_request job = job_cpu(5000);
	struct rules_plan plan;
	struct rules_view *view = view_of(nodes, 2, RULES_RATES_COMPUTATION);

	(void)state;
	place(RULES_IOCM_RE, &p, view, 0, &job, &plan);
	assert_reason(&plan, RULES_C_IO_PRESENT, 0, false);
	assert_reason(&plan, RULES_C_IMPLICIT_PRESENT, 0, false);
	assert_reason(&plan, RULES_C_CPU_OVERLOADED, 0, true);
	assert_int_equal(plan.node, 1);

	job.memory_mb = 400; /* memory is short with the job */
	place(RULES_IOCM_RE, &p, view, 0, &job, &plan);
	assert_reason(&plan, RULES_C_MEM_OVERLOADED, 0, true);
	assert_int_equal(plan.node, 1);

	nodes[0].advertised.explicit_per_ms = nodes[0].advertised.io_per_ms = 0.01;
	assert_int_equal(rules_view_set(view, 0, &nodes[0]), 0);
	place(RULES_IOCM_RE, &p, view, 0, &job, &plan);
	assert_reason(&plan, RULES_C_IO_PRESENT, 0, true);
	assert_reason(&plan, RULES_C_IO_OVERLOADED, 0, true);
	assert_null(reason_find(&plan, RULES_C_MEM_OVERLOADED, 0));
	rules_view_free(view);
}

/* Little I/O at home, and a job without any: the CPU stage must still be reached. */
static void fallthrough_reaches_the_cpu_stage(void **state)
{
	struct rules_node nodes[] = {node_live("a", 0.2, 20), node_live("b", 0.2, 0)};
	struct rules_view *view = view_of(nodes, 2, RULES_RATES_WALL);
	struct rules_params p = params_wall();
	struct rules_request job = job_cpu(5000);
	struct rules_plan plan;

	(void)state;
	place(RULES_IOCM_RE, &p, view, 0, &job, &plan);
	assert_reason(&plan, RULES_C_IO_PRESENT, 0, true);
	assert_reason(&plan, RULES_C_CPU_OVERLOADED, 0, true);
	assert_int_equal(plan.node, 1);
	p.stage_fallthrough = false;
	place(RULES_IOCM_RE, &p, view, 0, &job, &plan);
	assert_true(plan.stayed);
	rules_view_free(view);
}

static void live_significance_is_a_utilisation(void **state)
{
	struct rules_node nodes[] = {node_live("a", 0.08, 1), node_live("b", 0, 0)};
	struct rules_view *view = view_of(nodes, 2, RULES_RATES_WALL);
	struct rules_params p = params_wall();
	struct rules_request job = job_io(100, 100);
	struct rules_plan plan;
	const struct rules_reason *r;

	(void)state;
	place(RULES_IOCM_RE, &p, view, 0, &job, &plan);
	r = assert_reason(&plan, RULES_C_IO_PRESENT, 0, true);
	assert_close(r->left, 0.08, 1e-12);
	assert_close(r->right, 0.05, 1e-12);
	nodes[0].advertised.explicit_per_ms /= 2; /* half of it is paging */
	assert_int_equal(rules_view_set(view, 0, &nodes[0]), 0);
	place(RULES_IOCM_RE, &p, view, 0, &job, &plan);
	r = assert_reason(&plan, RULES_C_IO_PRESENT, 0, false);
	assert_close(r->left, 0.04, 1e-12);
	r = assert_reason(&plan, RULES_C_IMPLICIT_PRESENT, 0, false);
	assert_close(r->left, 0.04, 1e-12);
	rules_view_free(view);
}

/* 239 requests a second were admitted a moment ago; no sample has shown one of them. */
static void announced_load_counts_before_it_is_measured(void **state)
{
	struct rules_node nodes[] = {node_live("a", 0, 1), node_live("b", 0, 0)};
	struct rules_params p = params_wall();
	struct rules_request job = job_io(100, 100);
	const struct rules_reason *r;
	struct rules_view *view;
	struct rules_plan plan;

	(void)state;
	nodes[0].disk_fixed_ms = 0.1;
	nodes[0].disk_mb_per_s = 500;
	nodes[0].request_kb = 128;
	nodes[0].advertised.io_per_ms = nodes[0].advertised.explicit_per_ms = 0.239;
	view = view_of(nodes, 2, RULES_RATES_WALL);
	place(RULES_IOCM_RE, &p, view, 0, &job, &plan);
	r = assert_reason(&plan, RULES_C_IO_PRESENT, 0, true);
	assert_close(r->left, 0.239 * (0.1 + 128 / 500.0), 1e-12);
	place(RULES_IOCM_RE_HOM, &p, view, 0, &job, &plan);
	assert_reason(&plan, RULES_C_IO_PRESENT, 0, true);
	/* Its weight: half of it, and the measured utilisation alone. */
	p.significance_demand = 0.5;
	place(RULES_IOCM_RE, &p, view, 0, &job, &plan);
	r = assert_reason(&plan, RULES_C_IO_PRESENT, 0, false);
	assert_close(r->left, 0.239 * (0.1 + 128 / 500.0) / 2, 1e-12);
	p.significance_demand = 0;
	place(RULES_IOCM_RE, &p, view, 0, &job, &plan);
	r = assert_reason(&plan, RULES_C_IO_PRESENT, 0, false);
	assert_close(r->left, 0, 1e-12);
	/* What is measured counts where it is more; a disk is at most fully busy. */
	p.significance_demand = 1;
	nodes[0].measured.disk_utilisation = 0.7;
	assert_int_equal(rules_view_set(view, 0, &nodes[0]), 0);
	place(RULES_IOCM_RE, &p, view, 0, &job, &plan);
	r = assert_reason(&plan, RULES_C_IO_PRESENT, 0, true);
	assert_close(r->left, 0.7, 1e-12);
	nodes[0].advertised.io_per_ms = nodes[0].advertised.explicit_per_ms = 10;
	assert_int_equal(rules_view_set(view, 0, &nodes[0]), 0);
	place(RULES_IOCM_RE, &p, view, 0, &job, &plan);
	r = assert_reason(&plan, RULES_C_IO_PRESENT, 0, true);
	assert_close(r->left, 1, 1e-12);
	rules_view_free(view);
}

/* Page faults that a job makes anywhere: a charge adds them to the implicit load. */
static void live_implicit_part_stays_apart(void **state)
{
	struct rules_node nodes[] = {node_live("a", 0.5, 1), node_live("b", 0, 0)};
	struct rules_view *view = view_of(nodes, 2, RULES_RATES_WALL);
	struct rules_params p = params_wall();
	struct rules_request job = job_io(100, 800), mapped;
	struct rules_plan plan, other;
	const double io = 0.5 / 14.25 + 0.4; /* with the charge */
	const struct rules_reason *r;

	(void)state;
	job.io_per_ms = 0.4;
	mapped = job;
	mapped.implicit_share = 0.75;
	/* The time is the same, wherever the requests come from. */
	place(RULES_IO_RE, &p, view, 0, &job, &plan);
	place(RULES_IO_RE, &p, view, 0, &mapped, &other);
	assert_int_equal(plan.node, other.node);
	assert_close(assert_reason(&other, RULES_C_RESPONSE, 1, true)->left,
		     assert_reason(&plan, RULES_C_RESPONSE, 1, true)->left, 1e-12);
	assert_int_equal(rules_view_charge(view, 0, &mapped), 0);
	p.significance_demand = 0;
	p.measured_state = false;
	p.io_significance = 0.95;
	place(RULES_IOCM_RE, &p, view, 0, &job, &plan);
	r = assert_reason(&plan, RULES_C_IO_PRESENT, 0, false);
	assert_close(r->left, (0.5 / 14.25 + 0.1) / io, 1e-12); /* of a disk that is full */
	r = assert_reason(&plan, RULES_C_IMPLICIT_PRESENT, 0, false);
	assert_close(r->left, 0.3 / io, 1e-12);
	assert_int_equal(rules_view_discharge(view, 0, &mapped), 0);
	mapped.implicit_share = 1.5;
	assert_int_equal(rules_view_charge(view, 0, &mapped), -EINVAL);
	rules_view_free(view);
}

/* Loads follow from tasks: 1.2 to 1.6, with the hit rates of the derived checks. */
static void load_indices_follow_from_tasks(void **state)
{
	struct rules_task task = {.cpu_ms = 2000,
				  .io_per_ms = 2,
				  .request_kb = 250,
				  .reaccess = 5,
				  .memory_mb = 300,
				  .faults_per_ms = 0.1};
	struct rules_task tasks[] = {task, task};
	struct rules_node nodes[] = {node_fc("a"), node_fc("b")};
	struct rules_params p = params_computation();
	struct rules_request job = job_cpu(1000);
	struct rules_plan plan;
	struct rules_view *view;
	const struct rules_reason *r;

	(void)state;
	nodes[0].tasks = tasks;
	nodes[0].ntasks = 2;
	view = view_of(nodes, 2, RULES_RATES_COMPUTATION);
	place(RULES_IO_RE, &p, view, 0, &job, &plan);
	r = assert_reason(&plan, RULES_C_IO_OVERLOADED, 0, true);
	/* explicit 2 * 2 (1 - 0.4), implicit 2 * 0.1 * 600/480 */
	assert_close(r->left, 2.4 + 0.25, 1e-12);
	place(RULES_CPU_RE, &p, view, 0, &job, &plan);
	r = assert_reason(&plan, RULES_C_CPU_OVERLOADED, 0, false);
	assert_close(r->left, 3, 0);
	/* In wall rates the same tasks' rates are disk requests: no hits, no modelled faults. */
	rules_view_rates(view, RULES_RATES_WALL);
	assert_int_equal(rules_view_set(view, 0, &nodes[0]), 0);
	p = params_wall();
	place(RULES_IO_RE, &p, view, 0, &job, &plan);
	r = assert_reason(&plan, RULES_C_IO_OVERLOADED, 0, true);
	assert_close(r->left, 4, 1e-12);
	rules_view_free(view);
}

/* The job's own buffer share counts the job: (5.4) with it on the node. */
static void candidate_load_uses_its_hit_rate(void **state)
{
	struct rules_node nodes[] = {node_fc("a"), node_fc("b")};
	struct rules_view *view = view_of(nodes, 2, RULES_RATES_COMPUTATION);
	struct rules_params p = params_computation();
	struct rules_request job = job_cpu(1000);
	struct rules_plan plan;
	const struct rules_reason *r;

	(void)state;
	job.io_per_ms = 2;
	job.request_kb = 250;
	job.reaccess = 5;
	place(RULES_IO_RE, &p, view, 0, &job, &plan);
	r = assert_reason(&plan, RULES_C_IO_OVERLOADED, 0, true);
	assert_close(r->left, 2.0 / 6, 1e-12);
	r = assert_reason(&plan, RULES_C_IO_DISCREPANCY, 1, false);
	assert_close(r->right, 2.0 / 6, 1e-12);
	rules_view_free(view);
}

static void predicted_faults_count_in_the_response(void **state)
{
	struct rules_node nodes[] = {node_live("a", 0, 20), node_live("b", 0, 0)};
	struct rules_params p = params_wall();
	struct rules_request job = job_cpu(1000);
	struct rules_plan plan;
	struct rules_view *view;
	const struct rules_reason *r;

	(void)state;
	nodes[0].advertised.memory_mb = 15000;
	job.memory_mb = 5000;
	job.faults_per_ms = 0.02;
	view = view_of(nodes, 2, RULES_RATES_WALL);
	place(RULES_MEM_RE, &p, view, 0, &job, &plan);
	r = assert_reason(&plan, RULES_C_RESPONSE, 1, true);
	/* 21 tasks on 4 cores; 0.02 * 20/16 * 1000 faults of 8.1 ms */
	assert_close(r->left, 1000 * 21 / 4.0 + 25 * 8.1, 1e-6);
	rules_view_free(view);
}

static void own_request_size_scales_the_service(void **state)
{
	struct rules_node nodes[] = {node_live("a", 0.5, 1), node_live("b", 0, 1)};
	struct rules_view *view = view_of(nodes, 2, RULES_RATES_WALL);
	struct rules_params p = params_wall();
	struct rules_request job = job_io(0, 100);
	struct rules_plan plan;
	const struct rules_reason *r;

	(void)state;
	job.request_kb = 4;
	place(RULES_IO_RE, &p, view, 0, &job, &plan);
	r = assert_reason(&plan, RULES_C_RESPONSE, 1, true);
	assert_close(r->left, 100 * (8.1 + 7.1798), 1e-2);
	assert_close(r->right, 100 * 8.1 + 100, 1e-6);
	rules_view_free(view);
}

static void charge_counts_until_the_next_set(void **state)
{
	struct rules_node nodes[] = {node_live("a", 0.9, 1), node_live("b", 0, 0),
				     node_live("c", 0.1, 0)};
	struct rules_view *view = view_of(nodes, 3, RULES_RATES_WALL);
	struct rules_params p = params_wall();
	struct rules_request job = job_io(100, 1000);
	struct rules_plan plan;

	(void)state;
	place(RULES_IO_RE, &p, view, 0, &job, &plan);
	assert_int_equal(plan.node, 1);
	assert_int_equal(rules_view_charge(view, 1, &job), 0);
	place(RULES_IO_RE, &p, view, 0, &job, &plan);
	assert_int_equal(plan.node, 2);
	assert_int_equal(rules_view_set(view, 1, &nodes[1]), 0);
	place(RULES_IO_RE, &p, view, 0, &job, &plan);
	assert_int_equal(plan.node, 1);
	assert_int_equal(rules_view_charge(view, 3, &job), -EINVAL);
	rules_view_free(view);
}

static void ties_go_to_less_memory_then_to_the_seed(void **state)
{
	struct rules_node nodes[] = {node_live("a", 0.9, 1), node_live("b", 0, 0),
				     node_live("c", 0, 0), node_live("d", 0, 0)};
	struct rules_params p = params_wall();
	struct rules_request job = job_io(100, 1000);
	struct rules_view *view = view_of(nodes, 4, RULES_RATES_WALL);
	struct rules_plan plan;
	int taken[4] = {0};

	(void)state;
	for (uint64_t seed = 0; seed < 300; seed++) {
		struct rules *rules = rules_new(RULES_IO_RE, &p, seed);

		assert_int_equal(rules_place(rules, view, 0, &job, &plan), 0);
		assert_int_equal(plan.ntied, 3);
		assert_int_equal(plan.tied[0], plan.node);
		taken[plan.node]++;
		rules_free(rules);
	}
	for (int i = 1; i < 4; i++)
		assert_in_range(taken[i], 70, 130);
	nodes[2].advertised.memory_mb = 999;
	assert_int_equal(rules_view_set(view, 2, &nodes[2]), 0);
	place(RULES_IO_RE, &p, view, 0, &job, &plan);
	assert_int_equal(plan.node, 2);
	assert_int_equal(plan.ntied, 1);
	rules_view_free(view);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nlb_stays),
		cmocka_unit_test(cpu_re_moves_only_above_the_threshold),
		cmocka_unit_test(cpu_threshold_is_per_core),
		cmocka_unit_test(cpu_re_tries_the_next_only_when_told),
		cmocka_unit_test(mem_re_balances_memory_then_cpu),
		cmocka_unit_test(io_re_uses_the_threshold_of_16),
		cmocka_unit_test(io_re_weighs_the_transfer),
		cmocka_unit_test(equal_nodes_exchange_nothing),
		cmocka_unit_test(closed_and_diskless_nodes_are_refused),
		cmocka_unit_test(iocm_re_picks_its_stage),
		cmocka_unit_test(fallthrough_reaches_the_cpu_stage),
		cmocka_unit_test(live_significance_is_a_utilisation),
		cmocka_unit_test(announced_load_counts_before_it_is_measured),
		cmocka_unit_test(live_implicit_part_stays_apart),
		cmocka_unit_test(load_indices_follow_from_tasks),
		cmocka_unit_test(candidate_load_uses_its_hit_rate),
		cmocka_unit_test(predicted_faults_count_in_the_response),
		cmocka_unit_test(own_request_size_scales_the_service),
		cmocka_unit_test(charge_counts_until_the_next_set),
		cmocka_unit_test(ties_go_to_less_memory_then_to_the_seed),
	};

	return cmocka_run_group_tests_name("rules: policies", tests, NULL, NULL);
}
