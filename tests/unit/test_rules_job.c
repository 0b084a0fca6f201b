/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Parallel jobs, the batch system, and the three schemes of Eager et al. */
#include <errno.h>

#include "balancer/rules/rules_private.h"

#include "tests/unit/rules_fixture.h"

#define NODES 8

/* NODES idle nodes a, b, ... */
static void idle_nodes(struct rules_node *nodes)
{
	for (int i = 0; i < NODES; i++)
		nodes[i] = node_advertised((char[]){(char)('a' + i), '\0'}, 0, 8, 0);
}

static struct rules_view *idle_view(void)
{
	struct rules_node nodes[NODES];

	idle_nodes(nodes);
	return view_of(nodes, NODES, RULES_RATES_COMPUTATION);
}

static void place_job(enum rules_policy policy, const struct rules_params *p,
		      struct rules_view *view, uint32_t home, const struct rules_request *job,
		      struct rules_plan *plan, uint32_t *nodes)
{
	struct rules *rules = rules_new(policy, p, 7);

	assert_non_null(rules);
	assert_int_equal(rules_place_job(rules, view, home, job, plan, nodes), 0);
	rules_free(rules);
}

static void count_tasks(const uint32_t *nodes, uint32_t tasks, int *per_node)
{
	memset(per_node, 0, NODES * sizeof(*per_node));
	for (uint32_t t = 0; t < tasks; t++)
		per_node[nodes[t]]++;
}

/* --- parallel jobs ------------------------------------------------------------------ */

static void tasks_see_the_tasks_before_them(void **state)
{
	struct rules_view *view = idle_view();
	struct rules_params p = params_computation();
	struct rules_request job = job_cpu(5000);
	struct rules_cell before[NODES];
	struct rules_plan plan;
	uint32_t nodes[12];
	int per_node[NODES];

	(void)state;
	memcpy(before, view->cells, sizeof(before));
	job.tasks = 12;
	p.cpu_threshold = 1;
	place_job(RULES_CPU_RE, &p, view, 0, &job, &plan, nodes);
	count_tasks(nodes, 12, per_node);
	assert_int_equal(nodes[0], 0); /* one task does not overload home */
	for (int i = 0; i < NODES; i++)
		assert_in_range(per_node[i], 1, 2);
	assert_true(plan.stayed && plan.node == 0); /* the plan explains the first task */
	assert_reason(&plan, RULES_C_CPU_OVERLOADED, 0, false);
	assert_memory_equal(before, view->cells, sizeof(before));
	rules_view_free(view);
}

/* O-17: tasks start at home, or round-robin from home. */
static void tasks_start_at_home_or_round_robin(void **state)
{
	struct rules_node nodes[NODES];
	struct rules_params p = params_computation();
	struct rules_request job = job_cpu(5000);
	struct rules_plan plan;
	struct rules_view *view;
	uint32_t placed[10];

	(void)state;
	job.tasks = 10;
	idle_nodes(nodes);
	nodes[3].accepts = false;
	view = view_of(nodes, NODES, RULES_RATES_COMPUTATION);
	place_job(RULES_NLB, &p, view, 2, &job, &plan, placed);
	for (int t = 0; t < 10; t++)
		assert_int_equal(placed[t], 2);
	assert_null(reason_find(&plan, RULES_C_ROUND_ROBIN, 4));
	p.parallel_start = 1;
	place_job(RULES_NLB, &p, view, 2, &job, &plan, placed);
	for (int t = 0; t < 10; t++) {
		static const uint32_t wanted[] = {2, 4, 5, 6, 7, 0, 1, 2, 4, 5};

		assert_int_equal(placed[t], wanted[t]);
	}
	assert_reason(&plan, RULES_C_ROUND_ROBIN, 4, true);
	rules_view_free(view);
}

static void round_robin_needs_somewhere_to_go(void **state)
{
	struct rules_node nodes[NODES];
	struct rules_params p = params_computation();
	struct rules_request job = job_io(5000, 100);
	struct rules_plan plan;
	struct rules_view *view;
	uint32_t placed[3];

	(void)state;
	job.tasks = 3;
	p.parallel_start = 1;
	idle_nodes(nodes);
	for (int i = 0; i < NODES; i++)
		nodes[i].disk_mb_per_s = 0;
	view = view_of(nodes, NODES, RULES_RATES_COMPUTATION);
	place_job(RULES_NLB, &p, view, 1, &job, &plan, placed);
	for (int t = 0; t < 3; t++)
		assert_int_equal(placed[t], 1);
	rules_view_free(view);
}

/* The job's own home measures its CPU time, wherever a task starts. */
static void round_robin_measures_at_home(void **state)
{
	struct rules_node nodes[2] = {node_advertised("a", 0, 8, 0),
				      node_advertised("slow", 0, 8, 9)};
	struct rules_params p = params_computation();
	struct rules_request job = job_cpu(1000);
	struct rules_plan plan;
	struct rules_view *view;
	uint32_t placed[2];

	(void)state;
	job.tasks = 2;
	p.parallel_start = 1;
	p.fixed_cost_ms = 12000; /* 10 tasks of 2 s at half the speed, 2 of 1 s at home */
	nodes[1].cpu_mips = 400;
	view = view_of(nodes, 2, RULES_RATES_COMPUTATION);
	place_job(RULES_CPU_RE, &p, view, 0, &job, &plan, placed);
	assert_int_equal(placed[1], 0);
	rules_view_free(view);
}

/* O-16: nothing distinguishes these nodes, because a job without I/O does not change IO's index. */
static void ties_go_to_nodes_without_a_task_of_the_job(void **state)
{
	struct rules_params p = params_computation();
	struct rules_request job = job_cpu(5000);
	bool shared = false;

	(void)state;
	job.tasks = NODES - 1;
	job.memory_mb = 0;
	p.io_useful_test = false;
	for (uint64_t seed = 0; seed < 50; seed++) {
		struct rules_node nodes[NODES];
		struct rules_view *view;
		struct rules *rules = rules_new(RULES_IO, &p, seed);
		struct rules_plan plan;
		uint32_t placed[NODES];
		int per_node[NODES];

		idle_nodes(nodes);
		nodes[0] = node_advertised("a", 0.05, 8, 1);
		view = view_of(nodes, NODES, RULES_RATES_COMPUTATION);
		rules_brief(rules, seed % 2);
		assert_int_equal(rules_place_job(rules, view, 0, &job, &plan, placed), 0);
		count_tasks(placed, job.tasks, per_node);
		for (int i = 1; i < NODES; i++)
			assert_int_equal(per_node[i], 1);
		rules_free(rules);
		p.spread_tasks = false;
		rules = rules_new(RULES_IO, &p, seed);
		p.spread_tasks = true;
		assert_int_equal(rules_place_job(rules, view, 0, &job, &plan, placed), 0);
		count_tasks(placed, job.tasks, per_node);
		for (int i = 1; i < NODES; i++)
			shared |= per_node[i] > 1;
		rules_free(rules);
		rules_view_free(view);
	}
	assert_true(shared);
}

static void one_task_is_placed_as_ever(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 500; seed++) {
		struct draws d = {seed};
		enum rules_policy policy = (enum rules_policy)draw(&d, RULES_POLICIES);
		struct rules_params p = params_wall();
		struct rules_node nodes[20];
		struct rules_plan one, job_plan;
		struct rules_request job;
		struct rules_view *view;
		uint32_t node;

		for (uint32_t i = 0; i < 20; i++)
			nodes[i] = node_random(&d, i);
		job = job_random(&d);
		view = view_of(nodes, 20, RULES_RATES_WALL);
		place(policy, &p, view, 0, &job, &one);
		node = UINT32_MAX;
		place_job(policy, &p, view, 0, &job, &job_plan, &node);
		assert_true(same_plan(&one, &job_plan));
		assert_int_equal(node, one.queued ? UINT32_MAX : one.node);
		rules_view_free(view);
	}
}

/* Inside the caller's own mark: each rollback undoes only its part. */
static void jobs_are_placed_under_a_mark(void **state)
{
	struct rules_view *view = idle_view();
	struct rules_params p = params_computation();
	struct rules_request job = job_cpu(5000);
	struct rules_cell before[NODES], marked[NODES];
	struct rules_plan plan;
	uint32_t nodes[12];

	(void)state;
	job.tasks = 12;
	p.cpu_threshold = 1;
	memcpy(before, view->cells, sizeof(before));
	assert_int_equal(rules_view_mark(view), 0);
	assert_int_equal(rules_view_charge(view, 3, &job), 0);
	memcpy(marked, view->cells, sizeof(marked));
	place_job(RULES_CPU_RE, &p, view, 0, &job, &plan, nodes);
	assert_memory_equal(marked, view->cells, sizeof(marked));
	rules_view_rollback(view);
	assert_memory_equal(before, view->cells, sizeof(before));
	rules_view_free(view);
}

static void bad_jobs_are_refused(void **state)
{
	struct rules_view *view = idle_view();
	struct rules_params p = params_computation();
	struct rules_request job = job_cpu(5000);
	struct rules *rules = rules_new(RULES_CPU_RE, &p, 1);
	struct rules_plan plan;
	uint32_t nodes[4];

	(void)state;
	assert_int_equal(rules_place_job(rules, view, NODES, &job, &plan, nodes), -EINVAL);
	job.tasks = 0;
	assert_int_equal(rules_place_job(rules, view, 0, &job, &plan, nodes), -EINVAL);
	job.tasks = 2;
	job.com_ms = (const double[]){0, -1};
	assert_int_equal(rules_place_job(rules, view, 0, &job, &plan, nodes), -EINVAL);
	/* Memory overflows with the second task: nothing of the first remains. */
	job.com_ms = NULL;
	job.memory_mb = 1.5e308;
	job.tasks = 4;
	assert_int_equal(rules_place_job(rules, view, 0, &job, &plan, nodes), -EINVAL);
	assert_true(view->cells[0].memory == 8);
	assert_false(view->journal.open);
	rules_free(rules);
	rules_view_free(view);
}

/* --- the batch system ---------------------------------------------------------------- */

static void bs_gives_each_task_a_free_node(void **state)
{
	struct rules_node nodes[NODES];
	struct rules_params p = params_computation();
	struct rules_request job = job_cpu(5000);
	struct rules_plan plan;
	struct rules_view *view;
	uint32_t placed[NODES] = {99, 99, 99, 99, 99};
	int per_node[NODES];
	const struct rules_reason *r;

	(void)state;
	idle_nodes(nodes);
	nodes[1].advertised.cpu = 1;
	nodes[2].accepts = false;
	nodes[5].advertised.cpu = 2;
	view = view_of(nodes, NODES, RULES_RATES_COMPUTATION);
	job.tasks = 5;
	place_job(RULES_BS, &p, view, 0, &job, &plan, placed);
	assert_false(plan.queued);
	assert_int_equal(placed[0], 0); /* home is free, so its task stays */
	assert_true(plan.stayed);
	count_tasks(placed, 5, per_node);
	for (int i = 0; i < NODES; i++)
		assert_int_equal(per_node[i], i != 1 && i != 2 && i != 5);
	r = assert_reason(&plan, RULES_C_FREE_NODES, 0, true);
	assert_close(r->left, 5, 0);
	assert_close(r->right, 5, 0);
	assert_reason(&plan, RULES_C_IDLE, 0, true);

	job.tasks = 6;
	memset(placed, 0xff, sizeof(placed));
	place_job(RULES_BS, &p, view, 0, &job, &plan, placed);
	assert_true(plan.queued && plan.stayed);
	assert_reason(&plan, RULES_C_FREE_NODES, 0, false);
	assert_int_equal(placed[0], UINT32_MAX); /* unchanged */
	rules_view_free(view);
}

static void bs_from_a_busy_or_closed_home(void **state)
{
	struct rules_node nodes[NODES];
	struct rules_params p = params_computation();
	struct rules_request job = job_cpu(5000);
	struct rules_plan plan;
	struct rules_view *view;

	(void)state;
	idle_nodes(nodes);
	for (int i = 0; i < NODES; i++)
		nodes[i].advertised.cpu = i != 4;
	view = view_of(nodes, NODES, RULES_RATES_COMPUTATION);
	place(RULES_BS, &p, view, 0, &job, &plan);
	assert_true(!plan.queued && !plan.stayed);
	assert_int_equal(plan.node, 4);
	assert_int_equal(plan.candidates[0], 4);
	assert_reason(&plan, RULES_C_ACCEPTS, 4, true);
	job.tasks = 2; /* the request is for the first task alone, but the job needs two nodes */
	place(RULES_BS, &p, view, 0, &job, &plan);
	assert_true(plan.queued);
	/* A node lets in the jobs of its own home. */
	nodes[4].accepts = false;
	job.tasks = 1;
	assert_int_equal(rules_view_set(view, 4, &nodes[4]), 0);
	place(RULES_BS, &p, view, 4, &job, &plan);
	assert_true(!plan.queued && plan.stayed);
	place(RULES_BS, &p, view, 3, &job, &plan);
	assert_true(plan.queued);
	rules_view_free(view);
}

static void bs_asks_for_a_disk_and_for_memory(void **state)
{
	struct rules_node nodes[NODES];
	struct rules_params p = params_computation();
	struct rules_request job = job_io(5000, 100);
	struct rules_plan plan;
	struct rules_view *view;
	uint32_t placed[NODES];
	const struct rules_reason *r;

	(void)state;
	idle_nodes(nodes);
	nodes[1].disk_mb_per_s = 0;
	nodes[2].advertised.memory_mb = 480;
	view = view_of(nodes, NODES, RULES_RATES_COMPUTATION);
	job.tasks = NODES - 1;
	place_job(RULES_BS, &p, view, 0, &job, &plan, placed);
	assert_false(plan.queued);
	p.require_memory = true;
	memset(placed, 0xff, sizeof(placed));
	place_job(RULES_BS, &p, view, 0, &job, &plan, placed);
	assert_true(plan.queued);
	assert_int_equal(placed[0], UINT32_MAX);
	r = assert_reason(&plan, RULES_C_FREE_NODES, 0, false);
	assert_close(r->left, NODES - 2, 0);
	job.tasks = NODES - 2;
	place_job(RULES_BS, &p, view, 0, &job, &plan, placed);
	assert_false(plan.queued);
	rules_view_free(view);
}

/* --- Eager et al. ------------------------------------------------------------------------ */

/* Home has 4 tasks, the others 0, 1, ... 6. */
static struct rules_view *eager_view(void)
{
	struct rules_node nodes[NODES];

	idle_nodes(nodes);
	for (int i = 0; i < NODES; i++)
		nodes[i].advertised.cpu = i == 0 ? 4 : i - 1;
	return view_of(nodes, NODES, RULES_RATES_COMPUTATION);
}

static void eager_try_only_when_home_is_busy(void **state)
{
	static const enum rules_policy policies[] = {RULES_RANDOM, RULES_THRESHOLD, RULES_SHORTEST};
	struct rules_view *view = eager_view();
	struct rules_params p = params_computation();
	struct rules_request job = job_cpu(5000);
	struct rules_plan plan;

	(void)state;
	for (int i = 0; i < 3; i++) {
		p.eager_threshold = 5;
		place(policies[i], &p, view, 0, &job, &plan);
		assert_true(plan.stayed);
		assert_reason(&plan, RULES_C_CPU_OVERLOADED, 0, false);
		p.eager_threshold = 4;
		place(policies[i], &p, view, 0, &job, &plan);
		assert_reason(&plan, RULES_C_CPU_OVERLOADED, 0, true);
		assert_false(plan.stayed);
	}
	rules_view_free(view);
}

/* Counts how often each node is chosen over many seeds. */
static void tally(enum rules_policy policy, const struct rules_params *p,
		  const struct rules_view *view, int *taken)
{
	struct rules_request job = job_cpu(5000);
	struct rules *rules = rules_new(policy, p, 0);
	struct rules_plan plan;

	memset(taken, 0, NODES * sizeof(*taken));
	for (uint64_t seed = 0; seed < 700; seed++) {
		rules_reseed(rules, seed);
		assert_int_equal(rules_place(rules, view, 0, &job, &plan), 0);
		taken[plan.node]++;
	}
	rules_free(rules);
}

static void random_is_uniform_and_blind(void **state)
{
	struct rules_view *view = eager_view();
	struct rules_params p = params_computation();
	struct rules_node closed = node_advertised("closed", 0, 8, 0);
	int taken[NODES];

	(void)state;
	tally(RULES_RANDOM, &p, view, taken);
	assert_int_equal(taken[0], 0);
	for (int i = 1; i < NODES; i++)
		assert_in_range(taken[i], 70, 130);
	closed.accepts = false;
	assert_int_equal(rules_view_set(view, 3, &closed), 0);
	tally(RULES_RANDOM, &p, view, taken);
	assert_int_equal(taken[3], 0);
	for (int i = 1; i < NODES; i++)
		assert_true(i == 3 || (taken[i] >= 85 && taken[i] <= 150));
	rules_view_free(view);
}

/* Nodes 1 to 4 have fewer than 4 tasks: three probes among seven miss them all once in 35 cases. */
static void threshold_takes_the_first_below(void **state)
{
	struct rules_view *view = eager_view();
	struct rules_params p = params_computation();
	int taken[NODES];

	(void)state;
	tally(RULES_THRESHOLD, &p, view, taken);
	assert_in_range(taken[0], 6, 40);
	for (int i = 1; i < NODES; i++)
		assert_true(i <= 4 ? taken[i] >= 130 && taken[i] <= 210 : taken[i] == 0);
	p.eager_probes = 0;
	tally(RULES_THRESHOLD, &p, view, taken);
	assert_int_equal(taken[0], 0);
	rules_view_free(view);
}

/* The best of three among seven: the k-th lightest wins in C(7-k, 2) of 35 cases. */
static void shortest_takes_the_best_of_those_asked(void **state)
{
	struct rules_view *view = eager_view();
	struct rules_params p = params_computation();
	struct rules_request job = job_cpu(5000);
	struct rules_plan plan;
	int taken[NODES];
	const struct rules_reason *r;

	(void)state;
	tally(RULES_SHORTEST, &p, view, taken);
	assert_in_range(taken[1], 250, 350); /* 15 of 35 */
	assert_in_range(taken[2], 150, 250); /* 10 of 35 */
	assert_in_range(taken[4], 35, 90);   /* 3 of 35 */
	assert_in_range(taken[0], 5, 40);    /* 1 of 35: all three have as many tasks as home */
	p.eager_probes = 0;
	tally(RULES_SHORTEST, &p, view, taken);
	assert_int_equal(taken[1], 700);
	place(RULES_SHORTEST, &p, view, 0, &job, &plan);
	r = assert_reason(&plan, RULES_C_QUEUE_SHORTER, 1, true);
	assert_true(r->left == 0 && r->right == 4);
	rules_view_free(view);
}

/* One light node among a thousand: asking all finds it without a look at each. */
static void asking_all_finds_the_only_one(void **state)
{
	static const enum rules_policy policies[] = {RULES_THRESHOLD, RULES_SHORTEST};
	struct rules_view *view = rules_view_new();
	struct rules_params p = params_computation();
	struct rules_request job = job_cpu(5000);
	struct rules_plan plan;

	(void)state;
	for (uint32_t i = 0; i < 1000; i++) {
		struct rules_node n = node_advertised("n", 0, 8, i == 617 ? 3 : 9);

		assert_int_equal(rules_view_set(view, i, &n), 0);
	}
	p.eager_probes = 0;
	for (int i = 0; i < 2; i++) {
		place(policies[i], &p, view, 0, &job, &plan);
		assert_int_equal(plan.node, 617);
	}
	p.eager_threshold = 3; /* no node has fewer tasks */
	place(RULES_THRESHOLD, &p, view, 0, &job, &plan);
	assert_true(plan.stayed);
	rules_view_free(view);
}

static void nobody_to_ask(void **state)
{
	static const enum rules_policy policies[] = {RULES_RANDOM, RULES_THRESHOLD, RULES_SHORTEST};
	struct rules_node node = node_advertised("a", 0, 8, 9);
	struct rules_view *view = view_of(&node, 1, RULES_RATES_COMPUTATION);
	struct rules_params p = params_computation();
	struct rules_request job = job_cpu(5000);
	struct rules_plan plan;

	(void)state;
	for (int i = 0; i < 3; i++) {
		place(policies[i], &p, view, 0, &job, &plan);
		assert_true(plan.stayed);
	}
	/* If there is only one other node, there is no choice. */
	p.eager_threshold = 9;
	node.advertised.cpu = 0;
	assert_int_equal(rules_view_set(view, 1, &node), 0);
	for (int i = 0; i < 3; i++) {
		place(policies[i], &p, view, 0, &job, &plan);
		assert_int_equal(plan.node, 1);
	}
	node.accepts = false;
	for (uint32_t i = 1; i < 200; i++)
		assert_int_equal(rules_view_set(view, i, &node), 0);
	for (int i = 0; i < 3; i++) {
		place(policies[i], &p, view, 0, &job, &plan);
		assert_true(plan.stayed);
	}
	rules_view_free(view);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tasks_see_the_tasks_before_them),
		cmocka_unit_test(tasks_start_at_home_or_round_robin),
		cmocka_unit_test(round_robin_needs_somewhere_to_go),
		cmocka_unit_test(round_robin_measures_at_home),
		cmocka_unit_test(ties_go_to_nodes_without_a_task_of_the_job),
		cmocka_unit_test(one_task_is_placed_as_ever),
		cmocka_unit_test(jobs_are_placed_under_a_mark),
		cmocka_unit_test(bad_jobs_are_refused),
		cmocka_unit_test(bs_gives_each_task_a_free_node),
		cmocka_unit_test(bs_from_a_busy_or_closed_home),
		cmocka_unit_test(bs_asks_for_a_disk_and_for_memory),
		cmocka_unit_test(eager_try_only_when_home_is_busy),
		cmocka_unit_test(random_is_uniform_and_blind),
		cmocka_unit_test(threshold_takes_the_first_below),
		cmocka_unit_test(shortest_takes_the_best_of_those_asked),
		cmocka_unit_test(asking_all_finds_the_only_one),
		cmocka_unit_test(nobody_to_ask),
	};

	return cmocka_run_group_tests_name("rules: jobs", tests, NULL, NULL);
}
