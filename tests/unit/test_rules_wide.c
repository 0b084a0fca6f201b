/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Jobs with more tasks than there are nodes.  Brief plans of them skip nodes that have a task
 * already (unheld.c); full plans judge them all, so both must choose the same nodes.
 */
#include "balancer/rules/rules_private.h"

#include "tests/unit/rules_fixture.h"

#define NODES 200u
#define TASKS 700u
#define SEEDS 8

/* Nodes of few kinds and few loads, so that many are equal. */
static struct rules_view *alike_view(struct draws *d, enum rules_rates rates)
{
	struct rules_node *nodes = calloc(NODES, sizeof(*nodes));
	uint32_t levels = 1 + (uint32_t)draw(d, 4);
	struct rules_view *view;

	assert_non_null(nodes);
	for (uint32_t i = 0; i < NODES; i++) {
		double io = 0.01 * (double)(int)draw(d, levels);
		double memory = 8 + 100 * (double)(int)draw(d, levels);
		char name[16];

		snprintf(name, sizeof(name), "n%u", i);
		nodes[i] = node_advertised(name, io, memory, (double)(int)draw(d, levels));
		nodes[i].ram_mb = draw_chance(d, 0.2) ? 2000 : 8000;
		nodes[i].accepts = draw_chance(d, 0.95);
	}
	view = view_of(nodes, NODES, rates);
	free(nodes);
	return view;
}

static struct rules_params wide_params(struct draws *d)
{
	struct rules_params p;

	rules_params_default(&p, draw_chance(d, 0.5) ? RULES_RATES_WALL : RULES_RATES_COMPUTATION);
	p.try_next = draw_chance(d, 0.5);
	p.cpu_cost_test = draw_chance(d, 0.5);
	p.io_cost_test = draw_chance(d, 0.5);
	p.io_useful_test = draw_chance(d, 0.5);
	p.io_order_share = draw_chance(d, 0.3);
	p.mem_order_free = draw_chance(d, 0.3);
	p.stage_fallthrough = draw_chance(d, 0.5);
	p.require_memory = draw_chance(d, 0.3);
	p.spread_tasks = draw_chance(d, 0.9);
	p.parallel_start = draw_chance(d, 0.3);
	p.cpu_threshold = draw(d, 3);
	p.fixed_cost_ms = draw_chance(d, 0.5) ? 0 : 100;
	return p;
}

static struct rules_request wide_job(struct draws *d, double *com_ms)
{
	struct rules_request job = draw_chance(d, 0.5) ? job_io(20000, 300) : job_cpu(20000);

	job.memory_mb = draw_chance(d, 0.5) ? 0 : 20;
	job.tasks = 1 + (uint32_t)draw(d, TASKS);
	for (uint32_t t = 0; t < job.tasks; t++)
		com_ms[t] = 50;
	job.com_ms = draw_chance(d, 0.5) ? com_ms : NULL;
	return job;
}

static void wide_place(enum rules_policy policy, const struct rules_params *p,
		       struct rules_view *view, const struct rules_request *job, bool brief,
		       uint32_t *nodes)
{
	struct rules *rules = rules_new(policy, p, 7);
	struct rules_plan plan;

	assert_non_null(rules);
	rules_brief(rules, brief);
	/* The second time nothing of the first may be left. */
	for (int i = 0; i < 2; i++)
		assert_int_equal(rules_place_job(rules, view, 3, job, &plan, nodes), 0);
	assert_null(rules->unheld.first);
	rules_free(rules);
}

static void brief_plans_of_wide_jobs_choose_the_same_nodes(void **state)
{
	static uint32_t brief[TASKS], full[TASKS];
	static double com_ms[TASKS];

	(void)state;
	for (uint64_t seed = 1; seed <= SEEDS; seed++)
		for (int policy = 0; policy < RULES_POLICIES; policy++) {
			struct draws d = {seed * 100 + (uint64_t)policy};
			struct rules_params p = wide_params(&d);
			struct rules_view *view = alike_view(&d, p.rates);
			struct rules_request job = wide_job(&d, com_ms);

			wide_place((enum rules_policy)policy, &p, view, &job, true, brief);
			wide_place((enum rules_policy)policy, &p, view, &job, false, full);
			for (uint32_t t = 0; t < job.tasks; t++)
				if (brief[t] != full[t])
					fail_msg("seed %llu, %s: task %u of %u goes to %u, not %u",
						 (unsigned long long)seed,
						 rules_policy_name((enum rules_policy)policy), t,
						 job.tasks, brief[t], full[t]);
			rules_view_free(view);
		}
}

/* L_IO of the nodes stays as it is, so those with a task and those without stay equal. */
static void equal_nodes_without_a_task_are_found_among_those_with_one(void **state)
{
	static uint32_t brief[TASKS], full[TASKS];

	(void)state;
	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		struct rules_params p = params_computation();
		struct rules_request job = job_cpu(20000);
		struct draws d = {seed};
		struct rules_view *view = alike_view(&d, p.rates);
		uint32_t fit = 0, used = 0;
		bool held[NODES] = {false};

		for (uint32_t i = 0; i < NODES; i++) {
			struct rules_node n = node_advertised("n", i == 3 ? 0.05 : 0, 8, 1);

			n.accepts = i % 7 != 0;
			fit += n.accepts && i != 3;
			assert_int_equal(rules_view_set(view, i, &n), 0);
		}
		p.io_useful_test = false;
		p.cpu_cost_test = p.io_cost_test = false;
		job.memory_mb = 0;
		job.tasks = fit;
		wide_place(RULES_IO, &p, view, &job, true, brief);
		wide_place(RULES_IO, &p, view, &job, false, full);
		for (uint32_t t = 0; t < fit; t++) {
			assert_int_equal(brief[t], full[t]);
			used += !held[brief[t]];
			held[brief[t]] = true;
		}
		assert_int_equal(used, fit);
		rules_view_free(view);
	}
}

/* --- the tree ---------------------------------------------------------------------- */

/* A decision about task 1 of a job whose task 0 is on node 0. */
struct asked {
	struct rules *rules;
	struct rules_view *view;
	struct rules_job job;
	struct rules_decision d;
	bool held[NODES];
};

static void asked_init(struct asked *a, uint64_t seed)
{
	struct rules_params p = params_computation();
	struct draws d = {seed};

	memset(a, 0, sizeof(*a));
	a->rules = rules_new(RULES_CPU_RE, &p, 1);
	assert_non_null(a->rules);
	a->view = alike_view(&d, p.rates);
	a->d = (struct rules_decision){.rules = a->rules, .view = a->view, .job = &a->job};
}

static void asked_free(struct asked *a)
{
	rules_unheld_free(&a->rules->unheld);
	rules_view_free(a->view);
	rules_free(a->rules);
}

static bool scan_after(const struct asked *a, uint32_t at, const struct rules_least *choice)
{
	const struct rules_view *v = a->view;

	for (uint32_t i = 0; i < v->count; i++) {
		const struct rules_least *l = &v->least[RULES_ORDER_CPU][v->capacity + i];
		uint32_t above = v->capacity + i;

		while (above > at)
			above /= 2;
		if (above == at && !a->held[i] &&
		    (l->key < choice->key || (l->key == choice->key && l->tie <= choice->tie)))
			return false;
	}
	return true;
}

static void the_tree_is_built_once_it_pays(void **state)
{
	struct asked a;
	uint32_t looks = 0;

	(void)state;
	asked_init(&a, 1);
	while (!rules_unheld_look(&a.rules->unheld, &a.d, RULES_ORDER_CPU))
		looks++;
	assert_int_equal(looks, 64);
	assert_true(rules_unheld_look(&a.rules->unheld, &a.d, RULES_ORDER_CPU));
	/* Another order needs a tree of its own, which has to pay again. */
	assert_false(rules_unheld_look(&a.rules->unheld, &a.d, RULES_ORDER_MEM));
	assert_null(a.rules->unheld.first);
	for (looks = 1; !rules_unheld_look(&a.rules->unheld, &a.d, RULES_ORDER_MEM);)
		looks++;
	assert_int_equal(looks, 64);
	asked_free(&a);
}

static void the_tree_answers_as_a_scan(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 3; seed++) {
		struct draws d = {seed + 50};
		struct asked a;

		asked_init(&a, seed);
		while (!rules_unheld_look(&a.rules->unheld, &a.d, RULES_ORDER_CPU))
			;
		for (uint32_t n = 0; n < 2 * NODES; n++) {
			uint32_t node = (uint32_t)draw(&d, NODES), from = (uint32_t)draw(&d, NODES);
			struct rules_least *least = a.view->least[RULES_ORDER_CPU];

			a.held[node] = true;
			rules_unheld_remove(&a.rules->unheld, node);
			for (uint32_t at = 1; at < 2 * a.view->capacity; at++) {
				const struct rules_least *choice = &least[a.view->capacity + from];

				assert_int_equal(rules_unheld_after(&a.rules->unheld, at, choice),
						 scan_after(&a, at, choice));
				at += at > 64 ? 1 + (uint32_t)draw(&d, 40) : 0;
			}
		}
		asked_free(&a);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(brief_plans_of_wide_jobs_choose_the_same_nodes),
		cmocka_unit_test(equal_nodes_without_a_task_are_found_among_those_with_one),
		cmocka_unit_test(the_tree_is_built_once_it_pays),
		cmocka_unit_test(the_tree_answers_as_a_scan),
	};

	return cmocka_run_group_tests_name("rules: wide jobs", tests, NULL, NULL);
}
