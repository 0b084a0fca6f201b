/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Preemptive migration (MODEL 2.2, 2.4, 2.7, 3.9): which tasks leave an overloaded home, to
 * which nodes, and in which order.
 */
#include <errno.h>

#include "tests/unit/rules_migrate_fixture.h"

/* --- one family after the other ------------------------------------------------------- */

static void a_balanced_home_keeps_its_tasks(void **state)
{
	struct rules_task tasks[] = {task_io(5000, 0.5)};
	struct rules_task other[] = {task_io(5000, 0.5)};
	struct rules_node nodes[] = {node_fc("a"), node_fc("b")};
	struct rules_params p = computation();
	struct outcome out;

	(void)state;
	nodes[1].tasks = other;
	nodes[1].ntasks = 1;
	migrate(RULES_IOCM_PM, &p, nodes, 2, tasks, 1, &out);
	assert_int_equal(out.n, 0);
	assert_true(out.plan.stayed);
	assert_int_equal(out.plan.nreasons, 3); /* I/O, memory, CPU */
	for (int i = 0; i < 3; i++)
		assert_true(out.plan.reasons[i].criterion == RULES_C_STILL_OVERLOADED &&
			    !out.plan.reasons[i].holds);
	migrate(RULES_IOCM_RE, &p, nodes, 2, tasks, 1, &out);
	assert_int_equal(out.n, 0); /* this policy never migrates */
}

/* Derived check of 2.4: 0.1 + 0.032 + 60 * 0.058 = 3.612 s; 2.7 computes CE with it. */
static void cost_and_effectiveness_are_those_of_2_4_and_2_7(void **state)
{
	struct rules_task tasks[] = {task_io(60000, 0.3), task_io(60000, 0.2)};
	struct rules_node nodes[] = {node_fc("a"), node_fc("b")};
	struct rules_params p = computation();
	const struct rules_reason *r;
	struct outcome out;

	(void)state;
	for (int i = 0; i < 2; i++) {
		tasks[i].initial_mb = 50;
		tasks[i].written_mb = 10;
	}
	p.migrations_max = 1;
	migrate(RULES_IO_PM, &p, nodes, 2, tasks, 2, &out);
	assert_int_equal(out.n, 1);
	assert_int_equal(out.moves[0].task, 0); /* this task does more I/O for the same cost */
	assert_int_equal(out.moves[0].to, 1);
	assert_close(out.moves[0].cost_ms, 3612, 1e-9);
	assert_close(out.moves[0].cost_effectiveness, 0.3 / 3612, 1e-15);
	r = assert_reason(&out.plan, RULES_C_STILL_OVERLOADED, 0, true);
	assert_close(r->left, 0.5, 1e-12);
	assert_close(r->right, 0.25, 1e-12);
	r = assert_reason(&out.plan, RULES_C_MIGRANT, 1, true);
	/* Two tasks on one CPU, closed loop of two: 2 t + 2 t lambda E(s). */
	assert_close(r->left, 60000 * 2 + 18000 * 2 * 14.25, 1e-6);
	assert_close(r->right, 60000 + 18000 * 14.25 + 3612, 1e-6);
	tasks[0].initial_mb = 150; /* 0.3 / 9412 < 0.2 / 3612 */
	migrate(RULES_IO_PM, &p, nodes, 2, tasks, 2, &out);
	assert_int_equal(out.moves[0].task, 1);
}

static void remaining_work_decides(void **state)
{
	struct rules_task tasks[] = {task_io(10000, 0.5), task_io(10000, 0.5)};
	struct rules_node nodes[] = {node_fc("a"), node_fc("b")};
	struct rules_params p = computation();
	const struct rules_reason *r;
	struct outcome out;

	(void)state;
	p.migrations_max = 1;
	tasks[0].age_ms = 9999;
	migrate(RULES_IO_PM, &p, nodes, 2, tasks, 2, &out);
	assert_int_equal(out.n, 1);
	assert_int_equal(out.moves[0].task, 1);
	tasks[1].age_ms = 12000; /* the task has run longer than expected, so no time is left */
	migrate(RULES_IO_PM, &p, nodes, 2, tasks, 2, &out);
	assert_int_equal(out.n, 0);
	tasks[0].age_ms = tasks[1].age_ms = 7500;
	migrate(RULES_IO_PM, &p, nodes, 2, tasks, 2, &out);
	r = assert_reason(&out.plan, RULES_C_MIGRANT, 1, true);
	assert_close(r->left, 2500 * 2 + 1250 * 2 * 14.25, 1e-6);
	assert_int_equal(out.moves[0].task, 0); /* equal tasks: the one with the lowest index */
}

static void moves_go_on_until_home_is_not_overloaded(void **state)
{
	struct rules_task tasks[8];
	struct rules_node nodes[] = {node_fc("a"), node_fc("b"), node_fc("c"), node_fc("d")};
	struct rules_params p = computation();
	struct outcome out;
	uint32_t on[4] = {8, 0, 0, 0};

	(void)state;
	for (int i = 0; i < 8; i++)
		tasks[i] = task_io(20000, 0.3);
	migrate(RULES_IO_PM, &p, nodes, 4, tasks, 8, &out);
	assert_int_equal(out.n, 6);
	for (size_t i = 0; i < out.n; i++) {
		on[out.moves[i].to]++;
		on[0]--;
		for (size_t j = 0; j < i; j++)
			assert_int_not_equal(out.moves[i].task, out.moves[j].task);
	}
	for (int k = 0; k < 4; k++)
		assert_int_equal(on[k], 2);
	assert_int_equal(out.plan.node, out.moves[5].to);
	p.migrations_max = 2;
	migrate(RULES_IO_PM, &p, nodes, 4, tasks, 8, &out);
	assert_int_equal(out.n, 2);
	for (int i = 0; i < 6; i++)
		tasks[i].pinned = true;
	p.migrations_max = 0;
	migrate(RULES_IO_PM, &p, nodes, 4, tasks, 8, &out);
	assert_int_equal(out.n, 2);
	assert_true(out.moves[0].task >= 6 && out.moves[1].task >= 6);
}

/* What moves have cost counts, not what the parameters say. */
static void known_paths_count(void **state)
{
	struct rules_task task = task_io(20000, 0.3);
	struct rules_node nodes[] = {node_fc("a"), node_fc("b"), node_fc("c")};
	struct rules_path paths[] = {{1, 9000, 1}, {2, 50, 4}};
	struct rules_params p = computation();
	struct rules *rules = rules_new(RULES_IO_PM, &p, 1);
	struct rules_task tasks[8];
	struct rules_move moves[8];
	struct rules_view *view;
	size_t n;

	(void)state;
	for (int i = 0; i < 8; i++)
		tasks[i] = task;
	nodes[0].tasks = tasks;
	nodes[0].ntasks = 8;
	view = view_of(nodes, 3, p.rates);
	rules_migrate_paths(rules, paths, 2);
	assert_int_equal(rules_migrate(rules, view, 0, tasks, 8, moves, 8, &n, NULL), 0);
	assert_true(n >= 4);
	for (size_t i = 0; i < n; i++)
		assert_close(moves[i].cost_ms, moves[i].to == 1 ? 9000 + 4000 : 50 + 1000, 1e-9);
	paths[0].fixed_ms = paths[1].fixed_ms = 1e9; /* no move is worth that */
	assert_int_equal(rules_migrate(rules, view, 0, tasks, 8, moves, 8, &n, NULL), 0);
	assert_int_equal(n, 0);
	rules_migrate_paths(rules, NULL, 0);
	assert_int_equal(rules_migrate(rules, view, 0, tasks, 8, moves, 8, &n, NULL), 0);
	assert_true(n >= 4 && moves[0].cost_ms < 1000);
	rules_free(rules);
	rules_view_free(view);
}

/* By wall-clock rates a task's requests are no product of its computation and its rate. */
static void requests_of_a_live_task(void **state)
{
	struct rules_task tasks[2];
	struct rules_node nodes[] = {node_fc("a"), node_fc("b")};
	struct rules_params p;
	const struct rules_reason *r;
	struct outcome out;

	(void)state;
	rules_params_default(&p, RULES_RATES_WALL);
	p.migrations_max = 1;
	for (int i = 0; i < 2; i++) {
		tasks[i] = task_io(1000, 0.05);
		tasks[i].requests = 5000;
	}
	tasks[1].age_ms = 500;
	migrate(RULES_IO_PM, &p, nodes, 2, tasks, 2, &out);
	assert_int_equal(out.n, 1);
	r = assert_reason(&out.plan, RULES_C_MIGRANT, 1, true);
	assert_true(r->left > 5000 * 14); /* 50 requests would be 700 ms */
	tasks[0].requests = -1;
	{
		struct rules *rules = rules_new(RULES_IO_PM, &p, 1);
		struct rules_view *view = view_of(nodes, 2, p.rates);
		size_t n;

		assert_int_equal(rules_migrate(rules, view, 0, tasks, 2, out.moves, 2, &n, NULL),
				 -EINVAL);
		rules_free(rules);
		rules_view_free(view);
	}
}

static void room_bounds_the_moves(void **state)
{
	struct rules_task tasks[8];
	struct rules_node nodes[] = {node_fc("a"), node_fc("b")};
	struct rules_params p = computation();
	struct rules *rules = rules_new(RULES_IO_PM, &p, 1);
	struct rules_view *view;
	struct rules_move move;
	size_t n;

	(void)state;
	for (int i = 0; i < 8; i++)
		tasks[i] = task_io(20000, 0.3);
	nodes[0].tasks = tasks;
	nodes[0].ntasks = 8;
	view = view_of(nodes, 2, p.rates);
	assert_int_equal(rules_migrate(rules, view, 0, tasks, 8, &move, 1, &n, NULL), 0);
	assert_int_equal(n, 1);
	assert_int_equal(rules_migrate(rules, view, 0, tasks, 8, NULL, 0, &n, NULL), 0);
	assert_int_equal(n, 0);
	assert_int_equal(rules_migrate(rules, view, 0, NULL, 0, NULL, 0, &n, NULL), 0);
	rules_view_free(view);
	rules_free(rules);
}

/* Closed nodes, nodes without a disk, and (if memory must fit) full ones. */
static void targets_must_be_eligible(void **state)
{
	struct rules_task tasks[] = {task_io(20000, 0.3), task_io(20000, 0.3)};
	struct rules_node nodes[] = {node_fc("a"), node_fc("shut"), node_fc("nodisk"),
				     node_fc("small"), node_fc("good")};
	struct rules_task load = task_cpu(1, 0);
	struct rules_params p = computation();
	struct outcome out;

	(void)state;
	nodes[1].accepts = false;
	nodes[2].disk_mb_per_s = 0;
	nodes[3].ram_mb = 162;
	load.memory_mb = 1;
	nodes[4].tasks = &load;
	nodes[4].ntasks = 1;
	p.require_memory = true;
	p.migrations_max = 1;
	migrate(RULES_IO_PM, &p, nodes, 5, tasks, 2, &out);
	assert_int_equal(out.n, 1);
	assert_int_equal(out.moves[0].to, 4);
	nodes[4].accepts = false;
	migrate(RULES_IO_PM, &p, nodes, 5, tasks, 2, &out);
	assert_int_equal(out.n, 0);
	p.require_memory = false;
	migrate(RULES_IO_PM, &p, nodes, 5, tasks, 2, &out);
	assert_int_equal(out.moves[0].to, 3);
}

/*
 * A task must be older than cost / (n - m): with 6 tasks here, 2 there (the migrant included)
 * and a cost of 140 ms, older than 35 ms.
 */
static void cpu_pm_goes_by_age(void **state)
{
	struct rules_task tasks[6], other = task_cpu(1000, 0);
	struct rules_node nodes[] = {node_fc("a"), node_fc("b")};
	struct rules_params p = computation();
	const struct rules_reason *r;
	struct outcome out;

	(void)state;
	for (int i = 0; i < 6; i++) {
		tasks[i] = task_cpu(1e6, 34);
		tasks[i].memory_mb = 5;
	}
	nodes[1].tasks = &other;
	nodes[1].ntasks = 1;
	migrate(RULES_CPU_PM, &p, nodes, 2, tasks, 6, &out);
	assert_int_equal(out.n, 0);
	r = assert_reason(&out.plan, RULES_C_MIGRANT_AGE, 1, false);
	assert_close(r->left, 34, 0);
	assert_close(r->right, 140 / 4.0, 1e-12);
	tasks[4].age_ms = 36;
	migrate(RULES_CPU_PM, &p, nodes, 2, tasks, 6, &out);
	assert_int_equal(out.n, 1); /* 5 tasks are still above 4, but 140 / (5 - 3) = 70 ms */
	assert_int_equal(out.moves[0].task, 4);
	assert_close(out.moves[0].cost_effectiveness, 1 / 140.0, 1e-12);
	assert_reason(&out.plan, RULES_C_MIGRANT_AGE, 1, true);
	tasks[2].age_ms = 1e5; /* old enough, but it costs no less: task 2 comes first */
	migrate(RULES_CPU_PM, &p, nodes, 2, tasks, 6, &out);
	assert_int_equal(out.n, 1);
	assert_int_equal(out.moves[0].task, 2);
	tasks[3].age_ms = 71;
	migrate(RULES_CPU_PM, &p, nodes, 2, tasks, 6, &out);
	assert_int_equal(out.n, 2);
	/* Without the age criterion the remaining time decides, and 10^6 ms justify every move. */
	p.age_criterion = false;
	for (int i = 0; i < 6; i++)
		tasks[i].age_ms = 0;
	migrate(RULES_CPU_PM, &p, nodes, 2, tasks, 6, &out);
	assert_int_equal(out.n, 2);
	assert_reason(&out.plan, RULES_C_MIGRANT, 1, true);
}

/* The target has as many tasks as home: no age is enough. */
static void cpu_pm_needs_fewer_tasks_at_the_target(void **state)
{
	struct rules_task tasks[6], others[5];
	struct rules_node nodes[] = {node_fc("a"), node_fc("b")};
	struct rules_params p = computation();
	struct outcome out;

	(void)state;
	for (int i = 0; i < 6; i++)
		tasks[i] = task_cpu(1e9, 1e8);
	for (int i = 0; i < 5; i++)
		others[i] = task_cpu(1000, 0);
	nodes[1].tasks = others;
	nodes[1].ntasks = 5;
	migrate(RULES_CPU_PM, &p, nodes, 2, tasks, 6, &out);
	assert_int_equal(out.n, 0);
	for (uint32_t i = 0; i < out.plan.nreasons; i++)
		assert_true(isfinite(out.plan.reasons[i].right));
	nodes[1].ntasks = 4;
	migrate(RULES_CPU_PM, &p, nodes, 2, tasks, 6, &out);
	assert_int_equal(out.n, 1);
}

static void mem_pm_moves_memory(void **state)
{
	struct rules_task tasks[3];
	struct rules_node nodes[] = {node_fc("a"), node_fc("b")};
	struct rules_params p = computation();
	const struct rules_reason *r;
	struct outcome out;

	(void)state;
	for (int i = 0; i < 3; i++) {
		tasks[i] = task_cpu(30000, 0);
		tasks[i].memory_mb = 150 + 50 * i;
	}
	migrate(RULES_MEM_PM, &p, nodes, 2, tasks, 3, &out);
	assert_int_equal(out.n, 1); /* 600 > 480, and one move is enough */
	r = assert_reason(&out.plan, RULES_C_STILL_OVERLOADED, 0, true);
	assert_true(r->left == 600 && r->right == 480);
	/* 250 / (100 + 2000) is more than 150 / (100 + 1200). */
	assert_int_equal(out.moves[0].task, 2);
	assert_close(out.moves[0].cost_effectiveness, 250 / 2100.0, 1e-12);
	p.mem_order_free = true;
	migrate(RULES_MEM_PM, &p, nodes, 2, tasks, 3, &out);
	assert_int_equal(out.n, 1);
	nodes[0].ram_mb = nodes[0].buffer_mb = 0; /* unknown memory never runs short */
	migrate(RULES_MEM_PM, &p, nodes, 2, tasks, 3, &out);
	assert_int_equal(out.n, 0);
}

static void wal_pm_moves_the_weighted_load(void **state)
{
	struct rules_task tasks[4], other = task_cpu(20000, 0);
	struct rules_node nodes[] = {node_fc("a"), node_fc("b"), node_fc("c")};
	struct rules_params p = computation();
	const struct rules_reason *r;
	struct outcome out;

	(void)state;
	for (int i = 0; i < 4; i++)
		tasks[i] = task_io(20000, i == 2 ? 1.5 : 0.5);
	nodes[1].tasks = &other;
	nodes[1].ntasks = 1;
	p.migrations_max = 1;
	migrate(RULES_WAL_PM, &p, nodes, 3, tasks, 4, &out);
	assert_int_equal(out.n, 1);
	assert_int_equal(out.moves[0].task, 2);
	assert_int_equal(out.moves[0].to, 2);
	assert_close(out.moves[0].cost_effectiveness, (0.5 + 0.5 * 1.5) / 132, 1e-12);
	r = assert_reason(&out.plan, RULES_C_STILL_OVERLOADED, 0, true);
	assert_close(r->left, 0.5 * 4 + 0.5 * 3, 1e-12);
	assert_close(r->right, 1.25 * (0.5 * 5 + 0.5 * 3) / 3, 1e-9);
	assert_reason(&out.plan, RULES_C_LOAD_HIGHEST, 0, true);
	p.w_io = 1; /* the one task without I/O on b is no load now: either may be taken */
	migrate(RULES_WAL_PM, &p, nodes, 3, tasks, 4, &out);
	assert_int_equal(out.n, 1);
	assert_int_equal(out.moves[0].to, 2);
	p.w_io = 0.5;
	p.wal_normalise = true; /* over 5/3 tasks and 1 request/ms a node */
	migrate(RULES_WAL_PM, &p, nodes, 3, tasks, 4, &out);
	assert_close(out.moves[0].cost_effectiveness, (0.5 * 0.6 + 0.5 * 1.5) / 132, 1e-9);
	p.overload_ratio = 9;
	migrate(RULES_WAL_PM, &p, nodes, 3, tasks, 4, &out);
	assert_int_equal(out.n, 0);
}

/* IOCM-PM: I/O, else memory, else CPU. */
static void iocm_pm_picks_the_overloaded_resource(void **state)
{
	struct rules_task tasks[6], other = task_io(20000, 2);
	struct rules_node nodes[] = {node_fc("a"), node_fc("b")};
	struct rules_params p = computation();
	struct outcome out;

	(void)state;
	for (int i = 0; i < 6; i++)
		tasks[i] = task_cpu(20000, 0);
	p.migrations_max = 1;
	migrate(RULES_IOCM_PM, &p, nodes, 2, tasks, 6, &out);
	assert_int_equal(out.n, 1);
	assert_int_equal(out.moves[0].task, 0);
	assert_close(out.moves[0].cost_effectiveness, 1 / 132.0, 1e-12);
	tasks[3].memory_mb = 480;
	migrate(RULES_IOCM_PM, &p, nodes, 2, tasks, 6, &out);
	assert_close(out.moves[0].cost_effectiveness, 480 / (100 + 3840.0), 1e-12);
	tasks[4] = task_io(20000, 0.1);
	migrate(RULES_IOCM_PM, &p, nodes, 2, tasks, 6, &out);
	assert_int_equal(out.moves[0].task, 4);
	/* The disk is overloaded but no move pays; memory is tried only with the fallthrough. */
	nodes[0].disk_mb_per_s = 1000;
	nodes[0].disk_fixed_ms = 0;
	nodes[1].tasks = &other;
	nodes[1].ntasks = 1;
	tasks[4].io_per_ms = 300;
	for (int i = 0; i < 6; i++)
		tasks[i].pinned = i != 4 && i != 3;
	migrate(RULES_IOCM_PM, &p, nodes, 2, tasks, 6, &out);
	assert_int_equal(out.n, 1);
	assert_int_equal(out.moves[0].task, 3); /* the task has little I/O, but its move pays */
	tasks[3].age_ms = 20000;
	migrate(RULES_IOCM_PM, &p, nodes, 2, tasks, 6, &out);
	assert_int_equal(out.n, 0);
	for (int i = 0; i < 6; i++)
		tasks[i].pinned = false;
	p.stage_fallthrough = true;
	for (int i = 0; i < 6; i++)
		tasks[i].pinned = i != 4;
	migrate(RULES_IOCM_PM, &p, nodes, 2, tasks, 6, &out);
	assert_int_equal(out.n, 0);
	assert_int_equal(out.plan.reasons[out.plan.nreasons - 1].criterion,
			 RULES_C_STILL_OVERLOADED);
}

/* Only a limited number of the lighter nodes is examined. */
static void migration_examine_bounds_the_search(void **state)
{
	struct rules_task tasks[] = {task_io(20000, 0.3), task_io(20000, 0.3)};
	struct rules_node nodes[] = {node_fc("a"), node_fc("busy"), node_fc("busy"),
				     node_fc("free")};
	struct rules_params p = computation();
	struct outcome out;

	(void)state;
	for (int k = 1; k < 3; k++) { /* a disk that is busy for unknown reasons */
		nodes[k].has_measured = true;
		nodes[k].measured.disk_utilisation = 0.99;
		nodes[k].measured.disk_arrivals_per_ms = 0.99 / 14.25;
		nodes[k].measured.io_tasks = 9;
	}
	nodes[3].has_advertised = true;
	nodes[3].advertised.io_per_ms = nodes[3].advertised.explicit_per_ms = 0.01;
	p.migrations_max = 1;
	migrate(RULES_IO_PM, &p, nodes, 4, tasks, 2, &out);
	assert_int_equal(out.n, 1);
	assert_int_equal(out.moves[0].to, 3);
	assert_int_equal(out.plan.refused[RULES_C_MIGRANT], 2);
	assert_reason(&out.plan, RULES_C_MIGRANT, 1, false);
	p.migration_examine = 2;
	migrate(RULES_IO_PM, &p, nodes, 4, tasks, 2, &out);
	assert_int_equal(out.n, 0);
	p.migration_examine = 3;
	migrate(RULES_IO_PM, &p, nodes, 4, tasks, 2, &out);
	assert_int_equal(out.n, 1);
	p.migration_examine = 0;
	migrate(RULES_IO_PM, &p, nodes, 4, tasks, 2, &out);
	assert_int_equal(out.n, 1);
}

/* --- the errors ------------------------------------------------------------ */

static void bad_calls_are_refused(void **state)
{
	static const double bad[] = {NAN, INFINITY, -1};
	struct rules_task tasks[] = {task_io(5000, 1), task_io(5000, 1)};
	struct rules_node nodes[] = {node_fc("a"), node_fc("b")};
	struct rules_params p = computation();
	struct rules_move moves[2];
	struct rules_view *view;
	size_t n = 7;

	(void)state;
	nodes[0].tasks = tasks;
	nodes[0].ntasks = 2;
	view = view_of(nodes, 2, p.rates);
	for (size_t f = 0; f < sizeof(families) / sizeof(families[0]); f++) {
		struct rules *rules = rules_new(families[f], &p, 1);

		assert_int_equal(rules_migrate(rules, view, 2, tasks, 2, moves, 2, &n, NULL),
				 -EINVAL);
		assert_int_equal(n, 0);
		for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
			struct rules_task worse[] = {tasks[0], tasks[1]};

			worse[1].age_ms = bad[i];
			assert_int_equal(
				rules_migrate(rules, view, 0, worse, 2, moves, 2, &n, NULL),
				-EINVAL);
			worse[1].age_ms = 0;
			worse[1].memory_mb = bad[i];
			assert_int_equal(
				rules_migrate(rules, view, 0, worse, 2, moves, 2, &n, NULL),
				-EINVAL);
		}
		rules_free(rules);
	}
	assert_int_equal(rules_view_keep(view, RULES_NLB, &p), 0);
	for (size_t f = 0; f < sizeof(families) / sizeof(families[0]); f++) {
		struct rules *rules;
		int ret;

		p.cpu_threshold = 0;
		rules = rules_new(families[f], &p, 1);
		ret = rules_migrate(rules, view, 0, tasks, 2, moves, 2, &n, NULL);
		/* With enough memory no index is needed. */
		assert_int_equal(ret, families[f] == RULES_MEM_PM ? 0 : -EINVAL);
		rules_free(rules);
	}
	rules_view_free(view);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_balanced_home_keeps_its_tasks),
		cmocka_unit_test(cost_and_effectiveness_are_those_of_2_4_and_2_7),
		cmocka_unit_test(remaining_work_decides),
		cmocka_unit_test(moves_go_on_until_home_is_not_overloaded),
		cmocka_unit_test(known_paths_count),
		cmocka_unit_test(requests_of_a_live_task),
		cmocka_unit_test(room_bounds_the_moves),
		cmocka_unit_test(targets_must_be_eligible),
		cmocka_unit_test(cpu_pm_goes_by_age),
		cmocka_unit_test(cpu_pm_needs_fewer_tasks_at_the_target),
		cmocka_unit_test(mem_pm_moves_memory),
		cmocka_unit_test(wal_pm_moves_the_weighted_load),
		cmocka_unit_test(iocm_pm_picks_the_overloaded_resource),
		cmocka_unit_test(migration_examine_bounds_the_search),
		cmocka_unit_test(bad_calls_are_refused),
	};

	return cmocka_run_group_tests_name("rules: migration", tests, NULL, NULL);
}
