/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What a node has of a job's data lowers its cost there (MODEL 2.3), with values computed by hand:
 * on FC's machines 200 MB take 200 (1/125 + 1/40 + 1/40) = 11.6 s on the way, and the way as such
 * 0.1 s.
 */
#include "tests/unit/rules_fixture.h"

#include <errno.h>
#include <math.h>

#define HOME	  0
#define DATA_MB	  200
#define WAY_MS	  11600
#define FIXED_MS  100
#define WITHIN_MS 1e-6

static struct rules_node held_node(const char *name, double cpu_left_ms)
{
	struct rules_node n = node_live(name, 0, 0);

	n.cores = 1;
	n.network_mb_per_s = 125;
	n.disk_mb_per_s = 40;
	n.has_sharers = true;
	n.sharers = (struct rules_sharers){
		.cpu = cpu_left_ms > 0, .cpu_left_ms = cpu_left_ms, .disk = 0, .disk_left_ms = 0};
	return n;
}

/* A job of 10 s at a home where another one has 5 s left. */
static struct rules_request held_job(const struct rules_held *held, size_t n)
{
	return (struct rules_request){.cpu_ms = 10000,
				      .memory_mb = 4,
				      .initial_mb = DATA_MB,
				      .tasks = 1,
				      .held = held,
				      .nheld = n};
}

static double held_there(const struct rules_node *nodes, uint32_t node,
			 const struct rules_request *job)
{
	struct rules_view *view = view_of(nodes, 3, RULES_RATES_WALL);
	struct rules_params p = params_wall();
	struct rules *rules = rules_new(RULES_LEAST_DELAY, &p, 1);
	struct rules_expectation e;

	assert_int_equal(rules_expect(rules, view, HOME, node, job, &e), 0);
	rules_free(rules);
	rules_view_free(view);
	return e.there_ms;
}

static uint32_t held_chosen(const struct rules_node *nodes, enum rules_policy policy,
			    const struct rules_request *job)
{
	struct rules_view *view = view_of(nodes, 3, RULES_RATES_WALL);
	struct rules_params p = params_wall();
	struct rules *rules = rules_new(policy, &p, 1);
	struct rules_plan plan;

	assert_int_equal(rules_place(rules, view, HOME, job, &plan), 0);
	rules_free(rules);
	rules_view_free(view);
	return plan.node;
}

static void what_is_there_is_not_moved(void **state)
{
	const struct rules_node nodes[] = {held_node("n1", 5000), held_node("n2", 0),
					   held_node("n3", 0)};
	const struct rules_held held[] = {{1, 50}, {2, 500}};
	struct rules_request job = held_job(held, 0);

	(void)state;
	assert_close(held_there(nodes, 1, &job), 10000 + FIXED_MS + WAY_MS, WITHIN_MS);
	job = held_job(held, 2);
	assert_close(held_there(nodes, 1, &job), 10000 + FIXED_MS + WAY_MS * 3 / 4, WITHIN_MS);
	assert_close(held_there(nodes, 2, &job), 10000 + FIXED_MS, WITHIN_MS);
}

/* Outputs come home whoever has the input; 50 MB take a quarter of the way of 200. */
static void what_comes_home_is_counted_everywhere(void **state)
{
	const struct rules_node nodes[] = {held_node("n1", 5000), held_node("n2", 0),
					   held_node("n3", 0)};
	const struct rules_held held[] = {{2, DATA_MB}};
	struct rules_request job = held_job(held, 1);

	(void)state;
	job.output_mb = DATA_MB / 4.0;
	assert_close(held_there(nodes, 1, &job), 10000 + FIXED_MS + WAY_MS * 5 / 4.0, WITHIN_MS);
	assert_close(held_there(nodes, 2, &job), 10000 + FIXED_MS + WAY_MS / 4.0, WITHIN_MS);
	assert_int_equal(held_chosen(nodes, RULES_LEAST_DELAY, &job), 2);
	/* Too much of it keeps the job at home, although a node has its input. */
	job.output_mb = DATA_MB;
	assert_int_equal(held_chosen(nodes, RULES_LEAST_DELAY, &job), HOME);
}

/* At home 15 s and 5 of delay, elsewhere 10.1 s and 11.6 s of way: it stays until a node has it. */
static void a_job_stays_until_its_data_is_somewhere(void **state)
{
	const struct rules_node nodes[] = {held_node("n1", 5000), held_node("n2", 0),
					   held_node("n3", 0)};
	const struct rules_held held[] = {{2, DATA_MB}};
	const struct rules_held most[] = {{2, DATA_MB * 3 / 4}};
	struct rules_request job = held_job(NULL, 0);

	(void)state;
	assert_int_equal(held_chosen(nodes, RULES_LEAST_DELAY, &job), HOME);
	job = held_job(held, 1);
	assert_int_equal(held_chosen(nodes, RULES_LEAST_DELAY, &job), 2);
	job = held_job(most, 1);
	assert_int_equal(held_chosen(nodes, RULES_LEAST_DELAY, &job), 2);
}

/* The bound that rules out subtrees must not rule out the one node that has the data. */
static void one_among_many_is_found(void **state)
{
	enum { NODES = 300 };
	struct rules_node nodes[NODES];
	char names[NODES][16];
	struct rules_params p = params_wall();

	(void)state;
	for (uint32_t i = 0; i < NODES; i++) {
		snprintf(names[i], sizeof(names[i]), "n%u", i + 1);
		nodes[i] = held_node(names[i], i ? 0 : 5000);
	}
	for (uint32_t has = 1; has < NODES; has += 37) {
		const struct rules_held held[] = {{has, DATA_MB}};
		struct rules_request job = held_job(held, 1);
		struct rules_view *view = view_of(nodes, NODES, RULES_RATES_WALL);
		struct rules *rules = rules_new(RULES_LEAST_DELAY, &p, 1);
		struct rules_plan plan;

		job.output_mb = has % 2 ? 10 : 0;
		assert_int_equal(rules_place(rules, view, HOME, &job, &plan), 0);
		assert_int_equal(plan.node, has);
		rules_free(rules);
		rules_view_free(view);
	}
}

static void a_list_that_is_none_is_refused(void **state)
{
	const struct rules_node nodes[] = {held_node("n1", 0), held_node("n2", 0),
					   held_node("n3", 0)};
	const struct rules_held twice[] = {{1, 5}, {1, 6}}, less[] = {{1, -1}}, nan[] = {{1, NAN}};
	const struct rules_held *lists[] = {twice, less, nan, NULL};
	struct rules_view *view = view_of(nodes, 3, RULES_RATES_WALL);
	struct rules_params p = params_wall();
	struct rules *rules = rules_new(RULES_LEAST_DELAY, &p, 1);
	struct rules_plan plan;

	(void)state;
	for (size_t i = 0; i < 4; i++) {
		struct rules_request job = held_job(lists[i], i == 0 ? 2 : 1);

		assert_int_equal(rules_place(rules, view, HOME, &job, &plan), -EINVAL);
	}
	for (size_t i = 0; i < 2; i++) {
		struct rules_request job = held_job(NULL, 0);

		job.output_mb = i ? NAN : -1;
		assert_int_equal(rules_place(rules, view, HOME, &job, &plan), -EINVAL);
	}
	rules_free(rules);
	rules_view_free(view);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_there_is_not_moved),
		cmocka_unit_test(what_comes_home_is_counted_everywhere),
		cmocka_unit_test(a_job_stays_until_its_data_is_somewhere),
		cmocka_unit_test(one_among_many_is_found),
		cmocka_unit_test(a_list_that_is_none_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
