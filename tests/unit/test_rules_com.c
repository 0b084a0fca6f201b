/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * COM-aware (MODEL 3.12, 1.7, 2.6): which resource is balanced, how the slaves of
 * a job spread, and each switch of it.
 */
#include <errno.h>

#include "balancer/rules/rules_private.h"

#include "tests/unit/rules_fixture.h"

#define MOST_TASKS 40

static struct rules_params computation(void)
{
	struct rules_params p;

	rules_params_default(&p, RULES_RATES_COMPUTATION);
	return p;
}

/* A job of P tasks with CPU_MS each, whose slaves communicate for COM_MS. */
static struct rules_request job_com(uint32_t p, double cpu_ms, double com_ms)
{
	static double com[MOST_TASKS];
	struct rules_request j = job_cpu(cpu_ms);

	com[0] = 0;
	for (uint32_t t = 1; t < p; t++)
		com[t] = com_ms;
	j.tasks = p;
	j.com_ms = com;
	return j;
}

/* FC nodes, all idle. */
static void idle_nodes(struct rules_node *nodes, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		char name[16];

		snprintf(name, sizeof(name), "n%u", i);
		nodes[i] = node_fc(name);
	}
}

/* A node that reports loads. */
static struct rules_node told(const char *name, double com_ms, double cpu, double io,
			      double memory_mb)
{
	struct rules_node n = node_fc(name);

	n.has_advertised = true;
	n.advertised.com_ms = com_ms;
	n.advertised.cpu = cpu;
	n.advertised.io_per_ms = n.advertised.explicit_per_ms = io;
	n.advertised.memory_mb = memory_mb;
	return n;
}

static uint32_t moved(const uint32_t *nodes, uint32_t tasks)
{
	uint32_t n = 0;

	for (uint32_t t = 0; t < tasks; t++)
		n += nodes[t] != 0;
	return n;
}

/* Places a whole job from node 0. Returns how many of its tasks went to other nodes. */
static uint32_t place_job(const struct rules_params *p, const struct rules_node *nodes, uint32_t n,
			  const struct rules_request *job, uint64_t seed, struct rules_plan *plan,
			  uint32_t *where)
{
	struct rules_view *view = view_of(nodes, n, p->rates);
	struct rules *rules = rules_new(RULES_COM, p, seed);

	assert_int_equal(rules_view_keep(view, RULES_COM, p), 0);
	assert_int_equal(rules_place_job(rules, view, 0, job, plan, where), 0);
	rules_free(rules);
	rules_view_free(view);
	return moved(where, job->tasks);
}

static bool all_apart(const uint32_t *where, uint32_t tasks)
{
	for (uint32_t t = 0; t < tasks; t++)
		for (uint32_t u = 0; u < t; u++)
			if (where[t] != 0 && where[t] == where[u])
				return false;
	return true;
}

/* --- the network -------------------------------------------------------------------- */

/*
 * 8 tasks need 1 s of CPU and 2 s of communication each; a move costs 132 ms. With q tasks at
 * home the response there is q s, elsewhere 1 + 2 + 0.132 s: so 5 slaves go and 3 tasks stay.
 */
static void slaves_spread_while_it_pays(void **state)
{
	struct rules_node nodes[8];
	struct rules_params p = computation();
	struct rules_request job = job_com(8, 1000, 2000);
	struct rules_plan plan;
	const struct rules_reason *r;
	uint32_t where[8];

	(void)state;
	idle_nodes(nodes, 8);
	assert_int_equal(place_job(&p, nodes, 8, &job, 1, &plan, where), 5);
	assert_int_equal(where[0], 0);
	for (uint32_t t = 1; t < 6; t++)
		assert_int_not_equal(where[t], 0);
	assert_true(all_apart(where, 8));
	/* The plan explains the first slave. */
	assert_int_equal(plan.node, where[1]);
	r = assert_reason(&plan, RULES_C_COM_FIRST, 0, true);
	assert_close(r->left, 7 * 2000, 1e-9);
	assert_close(r->right, 8 * 1000, 1e-9);
	r = assert_reason(&plan, RULES_C_JOB_COM, 0, true);
	assert_true(r->left == 2000 && r->right == 1000);
	r = assert_reason(&plan, RULES_C_COM_DISCREPANCY, plan.node, true);
	assert_close(r->left, 6 * 2000 + 2000, 1e-9); /* (7): all seven at home */
	assert_close(r->right, 2000, 1e-9);
	r = assert_reason(&plan, RULES_C_COM_RESPONSE, plan.node, true);
	assert_close(r->left, 8 * 1000, 1e-9);
	assert_close(r->right, 1000 + 2000 + 100 + 32, 1e-9);
}

/*
 * The same with what earlier jobs taught: where home takes twice as long as expected, the sixth
 * slave gains, too (q = 3: 6 s there, 3.132 s elsewhere), and for the seventh no communication is
 * left at home; where the others take four times, only the first two gain (q = 8, 7: 6.132 s).
 */
static void corrections_count_for_slaves(void **state)
{
	static const struct rules_correction twice = {0, 2};
	struct rules_correction others[7];
	struct rules_node nodes[8];
	struct rules_params p = computation();
	struct rules_request job = job_com(8, 1000, 2000);
	const struct rules_reason *r;
	struct rules_plan plan;
	uint32_t where[8];

	(void)state;
	idle_nodes(nodes, 8);
	job.corrections = &twice;
	job.ncorrections = 1;
	assert_int_equal(place_job(&p, nodes, 8, &job, 1, &plan, where), 6);
	for (uint32_t i = 0; i < 7; i++)
		others[i] = (struct rules_correction){i + 1, 4};
	job.corrections = others;
	job.ncorrections = 7;
	assert_int_equal(place_job(&p, nodes, 8, &job, 1, &plan, where), 2);
	r = assert_reason(&plan, RULES_C_COM_RESPONSE, plan.node, true);
	assert_close(r->left, 8 * 1000, 1e-9);
	assert_close(r->right, 4 * 1000 + 2000 + 132, 1e-9);
}

/*
 * O-17: on the node where a slave starts, only this slave waits, and its communication counts
 * there. With one task there and 5 s of communication of others: 2 + 2 s there against 1 + 2 +
 * 0.132 s.
 */
static void slaves_that_start_apart_leave_busy_nodes_only(void **state)
{
	struct rules_node nodes[5];
	struct rules_params p = computation();
	struct rules_request job = job_com(4, 1000, 2000);
	struct rules_plan plan;
	const struct rules_reason *r;
	uint32_t where[4];

	(void)state;
	p.parallel_start = 1;
	idle_nodes(nodes, 5);
	place_job(&p, nodes, 5, &job, 1, &plan, where);
	for (uint32_t t = 0; t < 4; t++)
		assert_int_equal(where[t], t);
	nodes[1] = told("busy", 5000, 1, 0, 0);
	place_job(&p, nodes, 5, &job, 1, &plan, where);
	assert_in_range(where[1], 2, 4);
	assert_true(all_apart(where, 4));
	r = assert_reason(&plan, RULES_C_COM_DISCREPANCY, where[1], true);
	assert_close(r->left, 5000 + 2000, 1e-9);
	r = assert_reason(&plan, RULES_C_COM_RESPONSE, where[1], true);
	assert_close(r->left, 2 * 1000 + 2000, 1e-9);
	assert_close(r->right, 1000 + 2000 + 100 + 32, 1e-9);
}

/* With fewer nodes than slaves the loads even out. */
static void slaves_share_few_nodes_evenly(void **state)
{
	struct rules_node nodes[4];
	struct rules_params p = computation();
	struct rules_request job = job_com(25, 1000, 1100);
	struct rules_plan plan;
	uint32_t where[25], count[4] = {0};

	(void)state;
	idle_nodes(nodes, 4);
	place_job(&p, nodes, 4, &job, 1, &plan, where);
	for (uint32_t t = 0; t < 25; t++)
		count[where[t]]++;
	for (int k = 1; k < 4; k++)
		assert_in_range(count[k], 5, 8);
	assert_in_range(count[0], 5, 8);
}

/* O-14: printed (7) reads 0 - 0 > 0 on an empty cluster. */
static void literal_5_never_spreads_an_empty_cluster(void **state)
{
	struct rules_node nodes[4];
	struct rules_params p = computation();
	struct rules_request job = job_com(8, 1000, 2000);
	struct rules_plan plan;
	uint32_t where[8];

	(void)state;
	p.com_decision = 1;
	idle_nodes(nodes, 4);
	assert_int_equal(place_job(&p, nodes, 4, &job, 1, &plan, where), 0);
	/* With traffic of other jobs at home it does spread, until the loads are even. */
	nodes[0] = told("home", 3000, 0, 0, 0);
	assert_true(place_job(&p, nodes, 4, &job, 1, &plan, where) > 2);
	assert_reason(&plan, RULES_C_COM_DISCREPANCY, plan.node, true);
	assert_close(reason_find(&plan, RULES_C_COM_DISCREPANCY, plan.node)->left, 3000, 1e-9);
	assert_close(reason_find(&plan, RULES_C_COM_DISCREPANCY, plan.node)->right, 0, 0);
}

static void one_process_a_node_comes_first_when_told(void **state)
{
	struct rules_node nodes[5];
	struct rules_params p = computation();
	struct rules_request job = job_com(4, 1000, 50000); /* (8) never holds */
	struct rules_plan plan;
	uint32_t where[12];

	(void)state;
	idle_nodes(nodes, 5);
	assert_int_equal(place_job(&p, nodes, 5, &job, 1, &plan, where), 0);
	p.com_decision = 2;
	assert_int_equal(place_job(&p, nodes, 5, &job, 1, &plan, where), 3);
	assert_true(all_apart(where, 4));
	assert_reason(&plan, RULES_C_NO_SIBLING, plan.node, true);
	nodes[2].accepts = false;
	job = job_com(12, 1000, 50000); /* three nodes are left, then (7) and (8) decide */
	assert_int_equal(place_job(&p, nodes, 5, &job, 1, &plan, where), 3);
	assert_true(all_apart(where, 12));
	job = job_com(12, 1000, 2000);
	assert_true(place_job(&p, nodes, 5, &job, 1, &plan, where) > 3);
}

/* E-4: as printed, the cost is on the wrong side, so moves are made that do not pay. */
static void printed_cost_moves_more(void **state)
{
	struct rules_node nodes[8];
	struct rules_params p = computation();
	struct rules_request job = job_com(8, 1000, 2000);
	struct rules_plan plan;
	const struct rules_reason *r;
	uint32_t where[8];

	(void)state;
	p.com_printed_cost = true;
	idle_nodes(nodes, 8);
	/* 3 s + 132 ms > 3 s moves one more; then 2 s are left. */
	assert_int_equal(place_job(&p, nodes, 8, &job, 1, &plan, where), 6);
	r = assert_reason(&plan, RULES_C_COM_RESPONSE, plan.node, true);
	assert_close(r->left, 8 * 1000 + 132, 1e-9);
	assert_close(r->right, 3000, 1e-9);
}

/* O-13: communication takes as long as the port is busy. */
static void contention_counts_the_ports_load(void **state)
{
	struct rules_node nodes[] = {told("home", 9000, 0, 0, 0), told("b", 2500, 0, 0, 0),
				     told("c", 2500, 0, 0, 0)};
	struct rules_params p = computation();
	struct rules_request job = job_com(5, 1000, 2000);
	struct rules_plan plan;
	uint32_t where[5];

	(void)state;
	assert_true(place_job(&p, nodes, 3, &job, 1, &plan, where) > 0);
	p.com_port_contention = true;
	assert_int_equal(place_job(&p, nodes, 3, &job, 1, &plan, where), 0);
	for (int k = 1; k < 3; k++)
		nodes[k].advertised.com_ms = 1000;
	assert_true(place_job(&p, nodes, 3, &job, 1, &plan, where) > 0);
	assert_close(reason_find(&plan, RULES_C_COM_RESPONSE, plan.node)->right,
		     1000 + 2000 + 1000 + 132, 1e-9);
}

/* The image is copied over the slower link; initial data also over both disks. */
static void moving_has_its_cost(void **state)
{
	struct rules_node nodes[2];
	struct rules_params p = computation();
	struct rules_request job = job_com(8, 2000, 3000);
	struct rules_plan plan;
	uint32_t where[8];

	(void)state;
	idle_nodes(nodes, 2);
	nodes[1].network_mb_per_s = 10;
	job.memory_mb = 30;
	job.initial_mb = 10;
	assert_true(place_job(&p, nodes, 2, &job, 1, &plan, where) > 0);
	assert_close(reason_find(&plan, RULES_C_COM_RESPONSE, 1)->right,
		     2000 + 3000 + 100 + 3000 + 10 * (100 + 25 + 25), 1e-6);
}

/* A slave that stays for its response time still loads the home node in (7). */
static void slaves_that_stayed_count_at_home(void **state)
{
	static const double com[] = {0, 50000, 1000};
	struct rules_node nodes[3];
	struct rules_params p = computation();
	struct rules_request job = job_com(3, 1000, 0);
	struct rules_plan plan;
	uint32_t where[3];

	(void)state;
	idle_nodes(nodes, 3);
	job.com_ms = com;
	assert_int_equal(place_job(&p, nodes, 3, &job, 1, &plan, where), 1);
	assert_int_not_equal(where[2], 0);
	assert_close(reason_find(&plan, RULES_C_COM_DISCREPANCY, where[2])->left, 51000, 1e-9);
}

/* r(i,t) of (8) counts all four tasks: they compute, use the disk and fill the memory of home. */
static void home_is_judged_with_all_tasks(void **state)
{
	struct rules_node nodes[2];
	struct rules_params p = computation();
	struct rules_request job = job_com(4, 1000, 2000);
	struct rules_plan plan;
	uint32_t where[4];

	(void)state;
	idle_nodes(nodes, 2);
	job.io_per_ms = 0.05;
	job.request_kb = 250;
	job.memory_mb = 200;
	job.faults_per_ms = 0.01;
	p.literal_requests = false;
	assert_int_not_equal(place_job(&p, nodes, 2, &job, 1, &plan, where), 0);
	/* 50 requests and 10 * 800/480 page faults, behind those of three others. */
	assert_close(reason_find(&plan, RULES_C_COM_RESPONSE, 1)->left,
		     4 * 1000 + (50 + 1000 / 60.0) * 4 * 14.25, 1e-6);
}

/* Equal L_COM: fewer tasks, then the seed.  The last slave stays: (7) is strict. */
static void ties_are_broken_in_order(void **state)
{
	struct rules_node nodes[6];
	struct rules_params p = computation();
	struct rules_request job = job_com(3, 1000, 1500);
	struct rules_plan plan;
	uint32_t where[3];
	int taken[6] = {0};

	(void)state;
	idle_nodes(nodes, 6);
	nodes[0] = told("home", 0, 9, 0, 0);
	nodes[4] = told("e", 0, 1, 0, 0);
	nodes[5] = told("f", 1, 0, 0, 0);
	for (uint64_t seed = 0; seed < 300; seed++) {
		assert_int_equal(place_job(&p, nodes, 6, &job, seed, &plan, where), 1);
		taken[where[1]]++;
		assert_int_equal(plan.ntied, 3);
	}
	for (int k = 1; k < 4; k++)
		assert_in_range(taken[k], 70, 130);
}

/*
 * A slave without traffic does not change L_COM: the next slave must still see that the node has
 * a task of the job, and take the busier node.
 */
static void siblings_count_before_tasks(void **state)
{
	static const double com[] = {0, 0, 9000, 9000};
	struct rules_node nodes[] = {told("home", 9000, 20, 0, 0), told("b", 0, 0, 0, 0),
				     told("c", 0, 3, 0, 0)};
	struct rules_params p = computation();
	struct rules_request job = job_com(4, 1000, 0);
	struct rules_plan plan;
	uint32_t where[4];

	(void)state;
	job.com_ms = com;
	nodes[2].cpu_mips = 8000;
	for (int brief = 0; brief < 2; brief++) {
		struct rules_view *view = view_of(nodes, 3, p.rates);
		struct rules *rules = rules_new(RULES_COM, &p, 1);

		rules_brief(rules, brief);
		assert_int_equal(rules_place_job(rules, view, 0, &job, &plan, where), 0);
		assert_int_equal(where[1], 1);
		assert_int_equal(where[2], 2);
		rules_free(rules);
		rules_view_free(view);
	}
}

/* A brief plan leaves out only the reasons. */
static void brief_jobs_go_to_the_same_nodes(void **state)
{
	unsigned int away = 0;

	(void)state;
	for (uint64_t seed = 1; seed <= 300; seed++) {
		struct draws d = {seed};
		uint32_t n = 2 + (uint32_t)draw(&d, 80), p = 2 + (uint32_t)draw(&d, MOST_TASKS - 2);
		struct rules_view *view = rules_view_new();
		struct rules_params params = computation();
		double cpu_ms = draw(&d, 20000), ratio = draw(&d, 2);
		struct rules_request job = job_com(p, cpu_ms, ratio * cpu_ms);
		uint32_t where[2][MOST_TASKS];
		struct rules_plan plan;

		params.try_next = draw_chance(&d, 0.5);
		params.com_decision = (double)(int)draw(&d, 3);
		params.com_printed_cost = draw_chance(&d, 0.3);
		for (uint32_t i = 0; i < n; i++) {
			struct rules_node node = node_random(&d, i);

			node.advertised.com_ms = (double)(int)draw(&d, 10) * 1000;
			assert_int_equal(rules_view_set(view, i, &node), 0);
		}
		for (int brief = 0; brief < 2; brief++) {
			struct rules *rules = rules_new(RULES_COM, &params, seed);

			rules_brief(rules, brief);
			assert_int_equal(rules_place_job(rules, view, 0, &job, &plan, where[brief]),
					 0);
			rules_free(rules);
		}
		for (uint32_t t = 0; t < p; t++) {
			if (where[0][t] != where[1][t]) {
				print_error("seed %llu: task %u\n", (unsigned long long)seed, t);
				fail();
			}
			away += where[0][t] != 0;
		}
		rules_view_free(view);
	}
	assert_true(away > 500);
}

/* --- which resource ------------------------------------------------------------------- */

static void the_master_and_a_single_task_stay_by_the_network_stage(void **state)
{
	struct rules_node nodes[3];
	struct rules_params p = computation();
	struct rules_request job = job_com(2, 100, 5000);
	struct rules_plan plan;
	struct rules_view *view;

	(void)state;
	idle_nodes(nodes, 3);
	view = view_of(nodes, 3, p.rates);
	place(RULES_COM, &p, view, 0, &job, &plan);
	assert_true(plan.stayed);
	assert_reason(&plan, RULES_C_JOB_COM, 0, true);
	assert_reason(&plan, RULES_C_MASTER, 0, true);
	rules_view_free(view);
}

static void stage_is(const struct rules_params *p, const struct rules_node *nodes,
		     const struct rules_request *job, enum rules_criterion has, bool holds)
{
	struct rules_view *view = view_of(nodes, 2, p->rates);
	struct rules_plan plan;

	place(RULES_COM, p, view, 0, job, &plan);
	assert_reason(&plan, has, 0, holds);
	rules_view_free(view);
}

/* The chain of Fig. 3, step by step; O-28, O-29. */
static void the_chain_follows_first_resource_then_job(void **state)
{
	struct rules_node quiet[] = {told("a", 0, 6, 0.01, 0), told("b", 0, 0, 0, 0)};
	struct rules_node talking[] = {told("a", 1e6, 6, 0.01, 0), told("b", 0, 0, 0, 0)};
	struct rules_request cpu = job_cpu(5000), io = job_cpu(100), com = job_com(4, 100, 500);
	struct rules_params p = computation();
	struct rules_plan plan;
	uint32_t where[4];

	(void)state;
	io.io_per_ms = 1;
	io.request_kb = 250;
	stage_is(&p, talking, &cpu, RULES_C_COM_FIRST, true);
	stage_is(&p, talking, &cpu, RULES_C_CPU_OVERLOADED, true);
	stage_is(&p, talking, &io, RULES_C_JOB_IO, true);
	stage_is(&p, quiet, &cpu, RULES_C_COM_FIRST, false);
	stage_is(&p, quiet, &cpu, RULES_C_CPU_OVERLOADED, true);
	stage_is(&p, quiet, &io, RULES_C_JOB_IO, true);
	/* Memory comes before the job's class, but not before the network. */
	cpu.memory_mb = io.memory_mb = 500;
	stage_is(&p, quiet, &io, RULES_C_MEM_OVERLOADED, true);
	stage_is(&p, talking, &io, RULES_C_JOB_IO, true);
	/* O-29: a communication-intensive job, but the network is not the maximum. */
	quiet[0].advertised.cpu = 60;
	assert_true(place_job(&p, quiet, 2, &com, 1, &plan, where) > 0);
	assert_reason(&plan, RULES_C_COM_FIRST, 0, false);
	p.com_always_spread = false;
	assert_int_equal(place_job(&p, quiet, 2, &com, 1, &plan, where), 0);
	assert_reason(&plan, RULES_C_JOB_COM, 0, true);
	assert_int_equal(plan.ncandidates, 0);
}

/* O-28: the maximum alone decides, whatever the job needs. */
static void the_strict_maximum_ignores_the_job(void **state)
{
	struct rules_node nodes[] = {told("a", 0, 6, 0.0001, 0), told("b", 0, 0, 0, 0)};
	struct rules_request io = job_cpu(5000), com = job_com(4, 1000, 1500);
	struct rules_params p = computation();
	struct rules_plan plan;
	uint32_t where[4];

	(void)state;
	p.com_strict_maximum = true;
	io.io_per_ms = 0.08; /* 1.14 of its time on the disk; but home computes */
	io.request_kb = 250;
	stage_is(&p, nodes, &io, RULES_C_DISK_FIRST, false);
	stage_is(&p, nodes, &io, RULES_C_CPU_OVERLOADED, true);
	nodes[0].advertised.io_per_ms = nodes[0].advertised.explicit_per_ms = 1;
	stage_is(&p, nodes, &io, RULES_C_DISK_FIRST, true);
	io.memory_mb = 500;
	stage_is(&p, nodes, &io, RULES_C_MEM_OVERLOADED, true);
	nodes[0].advertised.io_per_ms = nodes[0].advertised.explicit_per_ms = 0;
	nodes[0].advertised.cpu = 90;
	place_job(&p, nodes, 2, &com, 1, &plan, where);
	assert_null(reason_find(&plan, RULES_C_JOB_COM, 0));
	assert_reason(&plan, RULES_C_DISK_FIRST, 0, false);
}

/* O-7: sums of the tasks' times, or the times that loads imply. */
static void loads_are_times(void **state)
{
	struct rules_task tasks[] = {
		{.cpu_ms = 3000, .io_per_ms = 0.02, .request_kb = 250, .com_ms = 700},
		{.cpu_ms = 1500, .io_per_ms = 0.5, .request_kb = 250, .reaccess = 5, .com_ms = 60},
	};
	struct rules_node nodes[] = {node_fc("a"), node_fc("b")};
	struct rules_params p = computation();
	struct rules_request job = job_cpu(2000);
	const struct rules_reason *r;
	struct rules_plan plan;
	struct rules_view *view;

	(void)state;
	p.com_decision = 1; /* the home node without the job */
	nodes[0].tasks = tasks;
	nodes[0].ntasks = 2;
	view = view_of(nodes, 2, p.rates);
	place(RULES_COM, &p, view, 0, &job, &plan);
	r = reason_find(&plan, RULES_C_COM_FIRST, 0);
	assert_close(r->left, 760, 1e-9);
	assert_close(r->right, 4500, 1e-9);
	rules_view_free(view);
	p.com_strict_maximum = true;
	view = view_of(nodes, 2, p.rates);
	place(RULES_COM, &p, view, 0, &job, &plan);
	r = assert_reason(&plan, RULES_C_DISK_FIRST, 0, false);
	assert_close(r->left, 60 * 14.25 + 750 / 6.0 * 14.25, 1e-9);
	p.com_decision = 0; /* the job counts at home */
	place(RULES_COM, &p, view, 0, &job, &plan);
	r = assert_reason(&plan, RULES_C_DISK_FIRST, 0, false);
	assert_close(r->right, 6500, 1e-9);
	rules_view_free(view);
	/* Three tasks like the job, 0.04 requests/ms that take 14.25 ms each. */
	nodes[0] = told("a", 0, 3, 0.04, 0);
	view = view_of(nodes, 2, p.rates);
	p.com_decision = 1;
	place(RULES_COM, &p, view, 0, &job, &plan);
	r = assert_reason(&plan, RULES_C_DISK_FIRST, 0, false);
	assert_close(r->left, 0.04 * 14.25 * 2000, 1e-9);
	assert_close(r->right, 3 * 2000, 1e-9);
	rules_view_free(view);
}

/* Reading 7: buffer hits do not make an I/O-intensive job another one. */
static void the_class_looks_before_buffer_hits(void **state)
{
	struct rules_node nodes[2];
	struct rules_params p = computation();
	struct rules_request job = job_cpu(1000);
	struct rules_plan plan;
	struct rules_view *view;
	const struct rules_reason *r;

	(void)state;
	idle_nodes(nodes, 2);
	job.io_per_ms = 0.1;
	job.request_kb = 250;
	job.reaccess = 5;
	view = view_of(nodes, 2, p.rates);
	place(RULES_COM, &p, view, 0, &job, &plan);
	r = assert_reason(&plan, RULES_C_JOB_IO, 0, true);
	assert_close(r->left, 100 * 14.25, 1e-9);
	assert_close(r->right, 1000, 0);
	rules_view_free(view);
}

/* --- the view ---------------------------------------------------------------------------- */

static void the_view_is_as_it_was(void **state)
{
	struct rules_node nodes[6];
	struct rules_params p = computation();
	struct rules_request job = job_com(20, 1000, 2000);
	struct rules_view *view, *before;
	struct rules_plan plan;
	uint32_t where[20];
	struct rules *rules = rules_new(RULES_COM, &p, 3);

	(void)state;
	idle_nodes(nodes, 6);
	view = view_of(nodes, 6, p.rates);
	before = view_of(nodes, 6, p.rates);
	assert_int_equal(rules_place_job(rules, view, 0, &job, &plan, where), 0);
	assert_true(moved(where, 20) > 5);
	for (int i = 0; i < 6; i++)
		assert_memory_equal(&view->cells[i], &before->cells[i], sizeof(view->cells[i]));
	rules_view_free(view);
	rules_view_free(before);
	rules_free(rules);
}

static void bad_values_are_refused(void **state)
{
	static const double bad[] = {0, -1};
	struct rules_node nodes[2];
	struct rules_params p = computation();
	struct rules_request job = job_com(2, 1000, 2000);
	struct rules *rules = rules_new(RULES_COM, &p, 3);
	struct rules_view *view;
	struct rules_plan plan;
	uint32_t where[2];

	(void)state;
	idle_nodes(nodes, 2);
	view = view_of(nodes, 2, p.rates);
	job.com_ms = bad;
	assert_int_equal(rules_place_job(rules, view, 0, &job, &plan, where), -EINVAL);
	job.com_ms = NULL;
	assert_int_equal(rules_place_job(rules, view, 2, &job, &plan, where), -EINVAL);
	assert_int_equal(rules_place_job(rules, view, 0, &job, &plan, where), 0);
	/* A view that keeps another policy's indexes cannot be used. */
	job = job_com(8, 1000, 2000);
	assert_int_equal(rules_view_keep(view, RULES_NLB, &p), 0);
	assert_int_equal(rules_place_job(rules, view, 0, &job, &plan, where), -EINVAL);
	assert_int_equal(rules_params_set(&p, "com_decision", 3), -EINVAL);
	assert_int_equal(rules_params_set(&p, "com_decision", 0.5), -EINVAL);
	rules_view_free(view);
	rules_free(rules);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(slaves_spread_while_it_pays),
		cmocka_unit_test(corrections_count_for_slaves),
		cmocka_unit_test(slaves_that_start_apart_leave_busy_nodes_only),
		cmocka_unit_test(slaves_share_few_nodes_evenly),
		cmocka_unit_test(literal_5_never_spreads_an_empty_cluster),
		cmocka_unit_test(one_process_a_node_comes_first_when_told),
		cmocka_unit_test(printed_cost_moves_more),
		cmocka_unit_test(contention_counts_the_ports_load),
		cmocka_unit_test(moving_has_its_cost),
		cmocka_unit_test(slaves_that_stayed_count_at_home),
		cmocka_unit_test(home_is_judged_with_all_tasks),
		cmocka_unit_test(ties_are_broken_in_order),
		cmocka_unit_test(brief_jobs_go_to_the_same_nodes),
		cmocka_unit_test(siblings_count_before_tasks),
		cmocka_unit_test(the_master_and_a_single_task_stay_by_the_network_stage),
		cmocka_unit_test(the_chain_follows_first_resource_then_job),
		cmocka_unit_test(the_strict_maximum_ignores_the_job),
		cmocka_unit_test(loads_are_times),
		cmocka_unit_test(the_class_looks_before_buffer_hits),
		cmocka_unit_test(the_view_is_as_it_was),
		cmocka_unit_test(bad_values_are_refused),
	};

	return cmocka_run_group_tests_name("rules: COM-aware", tests, NULL, NULL);
}
