/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Where parallel jobs run (MODEL 3.18): the search beside all placements there are. */
#include <errno.h>

#include <iocom/gang.h>

#include "tests/unit/rules_fixture.h"

#define MOST_NODES 128
#define MOST_TASKS 1000
/* Of jobs that are too large to try each placement the search's price is so much above the least.
 */
#define WORST_RATIO 1.6
#define MEAN_RATIO  1.005

struct scene {
	struct rules_node nodes[MOST_NODES];
	struct rules_port ports[MOST_NODES];
	uint32_t count;
	struct rules_request job;
	struct rules_pair *pairs;
	struct rules_gang gang;
	struct rules_view *view;
	struct rules *rules;
};

static void scene_open(struct scene *s, enum rules_policy policy)
{
	struct rules_params p = params_wall();

	s->gang.pairs = s->pairs;
	s->gang.ports = s->ports;
	s->view = view_of(s->nodes, s->count, RULES_RATES_WALL);
	s->rules = rules_new(policy, &p, 7);
	assert_non_null(s->rules);
	assert_int_equal(rules_view_keep(s->view, policy, &p), 0);
}

static void scene_close(struct scene *s)
{
	rules_free(s->rules);
	rules_view_free(s->view);
	free(s->pairs);
	s->pairs = NULL;
}

/* COUNT idle nodes of one processor, with ports of MB_PER_S and SLOTS slots. */
static void scene_idle(struct scene *s, uint32_t count, double mb_per_s, uint32_t slots)
{
	memset(s, 0, sizeof(*s));
	s->count = count;
	for (uint32_t k = 0; k < count; k++) {
		s->nodes[k] = node_live("", 0, 0);
		snprintf(s->nodes[k].name, sizeof(s->nodes[k].name), "n%u", k);
		s->nodes[k].cores = 1;
		s->ports[k] = (struct rules_port){.mb_per_s = mb_per_s, .slots = slots};
	}
}

/* All tasks send BYTES to all others. */
static void scene_all_to_all(struct scene *s, uint32_t tasks, double cpu_ms, double bytes)
{
	s->job = job_cpu(cpu_ms);
	s->job.requests = 0;
	s->job.tasks = tasks;
	s->pairs = calloc((size_t)tasks * tasks, sizeof(*s->pairs));
	for (uint32_t a = 0; a < tasks; a++)
		for (uint32_t b = 0; b < tasks; b++)
			if (a != b)
				s->pairs[s->gang.npairs++] =
					(struct rules_pair){a, b, bytes, bytes / 1e4};
}

static int scene_place(struct scene *s, struct rules_gang_plan *plan, uint32_t *nodes)
{
	return rules_place_gang(s->rules, s->view, 0, &s->job, &s->gang, plan, nodes);
}

static uint32_t used(const struct scene *s, const uint32_t *nodes)
{
	uint32_t n = 0;

	for (uint32_t k = 0; k < s->count; k++)
		for (uint32_t t = 0; t < s->job.tasks; t++)
			if (nodes[t] == k) {
				n++;
				break;
			}
	return n;
}

/* --- known answers ------------------------------------------------------------------- */

static void slow_links_pack(void **state)
{
	struct rules_gang_plan plan;
	uint32_t nodes[4];
	struct scene s;

	(void)state;
	scene_idle(&s, 4, 2.5, 8); /* 20 Mbit/s */
	scene_all_to_all(&s, 4, 1000, 20e6);
	scene_open(&s, RULES_LEAST_DELAY);
	assert_int_equal(scene_place(&s, &plan, nodes), 0);
	/* One a node: 3 x 20 MB at 2.5 MB/s = 24 s.  At one node: 4 x 1 s. */
	assert_int_equal(used(&s, nodes), 1);
	assert_true(plan.searched && plan.has_packed && plan.has_spread);
	assert_close(plan.chosen.work_ms, 4000, 1);
	assert_close(plan.chosen.port_ms, 0, 1e-6);
	assert_close(plan.spread.port_ms, 24000, 1e-3);
	assert_int_equal(plan.spread.nodes, 4);
	assert_int_equal(plan.bound, RULES_BOUND_COM);
	assert_close(plan.com_ms, 24000, 1e-3);
	scene_close(&s);
}

static void fast_links_spread(void **state)
{
	struct rules_gang_plan plan;
	uint32_t nodes[4];
	struct scene s;

	(void)state;
	scene_idle(&s, 4, 125, 8); /* 1 Gbit/s */
	scene_all_to_all(&s, 4, 10000, 1e6);
	scene_open(&s, RULES_LEAST_DELAY);
	assert_int_equal(scene_place(&s, &plan, nodes), 0);
	assert_int_equal(used(&s, nodes), 4);
	assert_int_equal(plan.bound, RULES_BOUND_CPU);
	assert_close(plan.chosen.price_ms, plan.spread.price_ms, 1e-6);
	assert_true(plan.chosen.response_ms < plan.packed.response_ms / 2);
	scene_close(&s);
}

static void talkers_stay_together(void **state)
{
	struct rules_gang_plan plan;
	uint32_t nodes[4];
	struct scene s;

	(void)state;
	scene_idle(&s, 2, 2.5, 2);
	s.job = job_cpu(1000);
	s.job.requests = 0;
	s.job.tasks = 4;
	s.pairs = calloc(2, sizeof(*s.pairs));
	s.pairs[0] = (struct rules_pair){0, 3, 50e6, 10};
	s.pairs[1] = (struct rules_pair){1, 2, 50e6, 10};
	s.gang.npairs = 2;
	scene_open(&s, RULES_LEAST_DELAY);
	assert_int_equal(scene_place(&s, &plan, nodes), 0);
	assert_int_equal(nodes[0], nodes[3]);
	assert_int_equal(nodes[1], nodes[2]);
	assert_int_not_equal(nodes[0], nodes[1]);
	assert_false(plan.has_packed);
	scene_close(&s);
}

static void busy_ports_are_left_out(void **state)
{
	struct rules_gang_plan plan;
	uint32_t nodes[2];
	struct scene s;

	(void)state;
	scene_idle(&s, 4, 2.5, 1);
	scene_all_to_all(&s, 2, 1000, 10e6);
	s.ports[1].busy_mb_per_s = s.ports[3].busy_mb_per_s = 2.4;
	scene_open(&s, RULES_LEAST_DELAY);
	assert_int_equal(scene_place(&s, &plan, nodes), 0);
	for (uint32_t t = 0; t < 2; t++)
		assert_true(nodes[t] == 0 || nodes[t] == 2);
	/* Who shares a port that is full has half of it, and the others have the other half. */
	nodes[0] = 1;
	nodes[1] = 3;
	s.ports[1].busy_mb_per_s = 99;
	assert_int_equal(
		rules_expect_gang(s.rules, s.view, 0, &s.job, &s.gang, nodes, &plan.chosen), 0);
	assert_close(plan.chosen.port_ms, 8000, 1e-6);
	assert_close(plan.chosen.harm_ms, 8000 + 4000 * (1 + 2.4 / 2.5) * 2.4 / 2.5, 1e-6);
	assert_close(plan.chosen.price_ms,
		     plan.chosen.response_ms + params_wall().delay_harm * plan.chosen.harm_ms / 2,
		     1e-6);
	assert_int_equal(plan.chosen.node, 1);
	scene_close(&s);
}

static void messages_cost_round_trips(void **state)
{
	struct rules_gang_cost cost;
	uint32_t nodes[2] = {0, 1};
	struct scene s;

	(void)state;
	scene_idle(&s, 2, 125, 2);
	s.ports[1].round_trip_ms = 20;
	s.job = job_cpu(1000);
	s.job.requests = 0;
	s.job.tasks = 2;
	s.pairs = calloc(2, sizeof(*s.pairs));
	s.pairs[0] = (struct rules_pair){0, 1, 0, 100};
	s.pairs[1] = (struct rules_pair){1, 0, 0, 100};
	s.gang.npairs = 2;
	scene_open(&s, RULES_LEAST_DELAY);
	assert_int_equal(rules_expect_gang(s.rules, s.view, 0, &s.job, &s.gang, nodes, &cost), 0);
	assert_close(cost.message_ms, 2000, 1e-6);
	nodes[1] = 0;
	assert_int_equal(rules_expect_gang(s.rules, s.view, 0, &s.job, &s.gang, nodes, &cost), 0);
	assert_close(cost.message_ms, 0, 0);
	scene_close(&s);
}

/* The master's communication is that of all; MODEL 1.7's check uses what this gives. */
static void com_by_pairs(void **state)
{
	struct rules_pair pairs[] = {
		{1, 0, 30e3, 2}, {0, 2, 10e3, 0}, {3, 0, 15e3, 0}, {2, 2, 9e9, 9}};
	struct rules_gang gang = {.pairs = pairs, .npairs = 4};
	double com[4];

	(void)state;
	assert_int_equal(rules_gang_com_ms(&gang, 4, 1, 5, com), 0);
	assert_close(com[0], 45 + 5, 1e-9);
	assert_close(com[1], 30 + 5, 1e-9);
	assert_close(com[2], 10, 1e-9);
	assert_close(com[3], 15, 1e-9);
	assert_int_equal(rules_gang_com_ms(&gang, 3, 1, 5, com), -EINVAL);
}

static void paper_policies_respect_slots(void **state)
{
	static const enum rules_policy policies[] = {RULES_COM, RULES_CPU_RE, RULES_MEM_RE,
						     RULES_IO_RE, RULES_NLB};

	(void)state;
	for (size_t i = 0; i < sizeof(policies) / sizeof(policies[0]); i++) {
		uint32_t nodes[8], count[4] = {0};
		struct rules_gang_plan plan;
		struct scene s;

		scene_idle(&s, 4, 2.5, 2);
		scene_all_to_all(&s, 8, 1000, 1e6);
		scene_open(&s, policies[i]);
		assert_int_equal(scene_place(&s, &plan, nodes), 0);
		for (uint32_t t = 0; t < 8; t++)
			count[nodes[t]]++;
		for (uint32_t k = 0; k < 4; k++)
			assert_int_equal(count[k], 2);
		assert_false(plan.searched);
		if (policies[i] == RULES_NLB)
			assert_int_equal(plan.moved, 6);
		scene_close(&s);
	}
}

static void com_moves_slaves_off_a_loaded_home(void **state)
{
	struct rules_gang_plan plan;
	uint32_t nodes[4];
	struct scene s;

	(void)state;
	scene_idle(&s, 4, 125, 4);
	scene_all_to_all(&s, 4, 100, 20e6);
	scene_open(&s, RULES_COM);
	assert_int_equal(scene_place(&s, &plan, nodes), 0);
	assert_int_equal(plan.bound, RULES_BOUND_COM);
	assert_non_null(reason_find(&plan.why, RULES_C_COM_FIRST, 0));
	assert_int_equal(nodes[0], 0);
	scene_close(&s);
}

/* --- bad input ----------------------------------------------------------------------------- */

static void bad_input_is_refused(void **state)
{
	struct rules_gang_plan plan;
	uint32_t nodes[4];
	struct scene s;

	(void)state;
	scene_idle(&s, 2, 125, 1);
	scene_all_to_all(&s, 4, 100, 1e6);
	scene_open(&s, RULES_LEAST_DELAY);
	assert_int_equal(scene_place(&s, &plan, nodes), 1); /* 4 tasks, 2 slots */
	assert_int_equal(plan.slots, 2);
	s.ports[0].slots = s.ports[1].slots = 0;
	assert_int_equal(scene_place(&s, &plan, nodes), 1);
	s.ports[0].slots = 4;
	s.pairs[0].to = 4;
	assert_int_equal(scene_place(&s, &plan, nodes), -EINVAL);
	s.pairs[0].to = 1;
	s.pairs[0].bytes = NAN;
	assert_int_equal(scene_place(&s, &plan, nodes), -EINVAL);
	s.pairs[0].bytes = -1;
	assert_int_equal(scene_place(&s, &plan, nodes), -EINVAL);
	s.pairs[0].bytes = 1;
	s.ports[1].round_trip_ms = INFINITY;
	assert_int_equal(scene_place(&s, &plan, nodes), -EINVAL);
	s.ports[1].round_trip_ms = 0;
	assert_int_equal(scene_place(&s, &plan, nodes), 0);
	nodes[2] = 2;
	assert_int_equal(
		rules_expect_gang(s.rules, s.view, 0, &s.job, &s.gang, nodes, &plan.chosen),
		-EINVAL);
	s.job.tasks = RULES_GANG_TASKS_MAX + 1;
	assert_int_equal(scene_place(&s, &plan, nodes), -EINVAL);
	assert_null(rules_gang_bound_name(RULES_BOUNDS));
	scene_close(&s);
}

/* --- beside all placements ------------------------------------------------------------------- */

static void scene_random(struct scene *s, struct draws *d, uint32_t tasks, uint32_t count)
{
	double megabytes = draw(d, 30);

	scene_idle(s, count, 0, 0);
	for (uint32_t k = 0; k < s->count; k++) {
		s->nodes[k] = node_live("", draw_chance(d, 0.5) ? 0 : draw(d, 0.9),
					draw_chance(d, 0.5) ? 0 : draw(d, 4));
		snprintf(s->nodes[k].name, sizeof(s->nodes[k].name), "n%u", k);
		s->nodes[k].cores = 1 + (uint32_t)draw(d, 4);
		s->nodes[k].cpu_mips = 400 + draw(d, 1200);
		s->ports[k] = (struct rules_port){.mb_per_s = draw_chance(d, 0.5) ? 2.5 : 125,
						  .round_trip_ms = draw(d, 2),
						  .slots = 1 + (uint32_t)draw(d, 6)};
		s->ports[k].busy_mb_per_s = draw_chance(d, 0.5) ? 0 : draw(d, 3);
	}
	scene_all_to_all(s, tasks, draw(d, 10000), 0);
	if (draw_chance(d, 0.5))
		s->job.requests = draw(d, 200);
	for (size_t i = 0; i < s->gang.npairs; i++) {
		s->pairs[i].bytes = draw_chance(d, 0.5) ? 0 : draw(d, megabytes) * 1e6;
		s->pairs[i].messages = draw_chance(d, 0.5) ? 0 : draw(d, 1000);
	}
	s->gang.phases = draw_chance(d, 0.5) ? 10 : 0;
}

/* The least price of all placements that the slots allow; INFINITY: none. */
static double least_of_all(struct scene *s)
{
	uint32_t nodes[7] = {0}, n = s->job.tasks, t;
	double least = INFINITY;

	do {
		uint32_t count[4] = {0};
		struct rules_gang_cost cost;
		bool fits = true;

		for (t = 0; t < n; t++)
			fits &= ++count[nodes[t]] <= s->ports[nodes[t]].slots;
		if (fits) {
			assert_int_equal(rules_expect_gang(s->rules, s->view, 0, &s->job, &s->gang,
							   nodes, &cost),
					 0);
			least = cost.price_ms < least ? cost.price_ms : least;
		}
		for (t = 0; t < n && ++nodes[t] == s->count; t++)
			nodes[t] = 0;
	} while (t < n);
	return least;
}

/* What so many cases gave. */
struct ratios {
	uint32_t cases, exact;
	double sum, worst;
};

/* Places one job drawn from SEED; R gets its price over the least of all. */
static void compare(struct ratios *r, uint64_t seed, uint32_t tasks, uint32_t count)
{
	struct draws d = {seed};
	struct rules_gang_plan plan;
	struct rules_gang_cost again;
	uint32_t nodes[7];
	struct scene s;
	double least, ratio;
	int ret;

	scene_random(&s, &d, tasks, count);
	scene_open(&s, RULES_LEAST_DELAY);
	least = least_of_all(&s);
	ret = scene_place(&s, &plan, nodes);
	assert_int_equal(ret, isfinite(least) ? 0 : 1);
	if (ret == 0) {
		ratio = plan.chosen.price_ms / least;
		assert_int_equal(
			rules_expect_gang(s.rules, s.view, 0, &s.job, &s.gang, nodes, &again), 0);
		assert_close(again.price_ms, plan.chosen.price_ms, 1e-6 * again.price_ms);
		assert_int_equal(again.node, plan.chosen.node);
		/* The mean's small weight may decide between almost equal ones. */
		if (plan.has_packed)
			assert_true(plan.chosen.price_ms <= plan.packed.price_ms * 1.002);
		if (plan.has_spread)
			assert_true(plan.chosen.price_ms <= plan.spread.price_ms * 1.002);
		r->cases++;
		r->exact += ratio < 1 + 1e-6;
		r->sum += ratio;
		r->worst = ratio > r->worst ? ratio : r->worst;
	}
	scene_close(&s);
}

static void small_jobs_are_placed_best(void **state)
{
	struct ratios r = {0};

	(void)state;
	for (uint64_t seed = 1; seed <= 2000; seed++)
		compare(&r, seed, 2 + seed % 4, 1 + seed / 4 % 4);
	print_message("%u cases: best in %u, mean ratio %.5f, worst %.4f\n", r.cases, r.exact,
		      r.sum / r.cases, r.worst);
	assert_true(r.cases > 1000);
	assert_true(r.worst <= 1.002);
}

static void larger_jobs_are_near_the_best(void **state)
{
	struct ratios r = {0};

	(void)state;
	for (uint64_t seed = 1; seed <= 400; seed++)
		compare(&r, seed, seed % 2 ? 6 : 7, seed % 2 ? 4 : 3);
	print_message("%u cases: best in %u, mean ratio %.5f, worst %.4f\n", r.cases, r.exact,
		      r.sum / r.cases, r.worst);
	assert_true(r.cases > 200);
	assert_true(r.worst <= WORST_RATIO);
	assert_true(r.sum / r.cases <= MEAN_RATIO);
}

/* --- size ----------------------------------------------------------------------------------------
 */

static void large_jobs_are_bounded(void **state)
{
	static uint32_t nodes[MOST_TASKS];
	struct rules_gang_plan plan;
	struct scene s;

	(void)state;
	scene_idle(&s, 100, 125, 16);
	scene_all_to_all(&s, 1000, 1000, 1e4);
	scene_open(&s, RULES_LEAST_DELAY);
	assert_int_equal(scene_place(&s, &plan, nodes), 0);
	print_message("1000 tasks, 100 nodes: %llu steps\n", (unsigned long long)plan.steps);
	assert_true(plan.chosen.price_ms <= plan.spread.price_ms || !plan.has_spread);
	assert_true(plan.steps < 80000000);
	scene_close(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(slow_links_pack),
		cmocka_unit_test(fast_links_spread),
		cmocka_unit_test(talkers_stay_together),
		cmocka_unit_test(busy_ports_are_left_out),
		cmocka_unit_test(messages_cost_round_trips),
		cmocka_unit_test(com_by_pairs),
		cmocka_unit_test(paper_policies_respect_slots),
		cmocka_unit_test(com_moves_slaves_off_a_loaded_home),
		cmocka_unit_test(bad_input_is_refused),
		cmocka_unit_test(small_jobs_are_placed_best),
		cmocka_unit_test(larger_jobs_are_near_the_best),
		cmocka_unit_test(large_jobs_are_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
