/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What a decision expects, and the factors that correct it, with values computed by hand
 * (MODEL 2.1): on FC's disk a job of 1000 ms and 10 requests takes 3320.43 ms where two tasks run
 * and 0.05 requests/ms arrive, and 1154.43 ms where it is alone; the way costs 100 ms.
 */
#include <errno.h>

#include "tests/unit/rules_fixture.h"

#define HOME	  0
#define THERE	  1
#define NODES	  2
#define HOME_MS	  3320.434783
#define ALONE_MS  1154.431487
#define THERE_MS  (ALONE_MS + 100)
#define WITHIN_MS 1e-5

static struct rules_params expect_params(void)
{
	struct rules_params p = params_computation();

	p.closed_loop_bound = false;
	return p;
}

static struct rules_request expect_job(void)
{
	return (struct rules_request){.cpu_ms = 1000,
				      .io_per_ms = 0.01,
				      .request_kb = 250,
				      .memory_mb = 4,
				      .requests = -1,
				      .tasks = 1};
}

/* A busy home and an idle node. */
static struct rules_view *expect_view(void)
{
	const struct rules_node nodes[NODES] = {node_advertised("n1", 0.04, 8, 2),
						node_advertised("n2", 0, 0, 0)};

	return view_of(nodes, NODES, RULES_RATES_COMPUTATION);
}

static int expect_at(const struct rules_params *p, uint32_t home, uint32_t node,
		     const struct rules_request *job, struct rules_expectation *out)
{
	struct rules *rules = rules_new(RULES_NLB, p, 1);
	struct rules_view *view = expect_view();
	int rc;

	assert_non_null(rules);
	rc = rules_expect(rules, view, home, node, job, out);
	rules_view_free(view);
	rules_free(rules);
	return rc;
}

static void assert_expected(const struct rules_expectation *e, double there_ms, double home_ms,
			    double there_factor, double home_factor)
{
	assert_true(e->known);
	assert_close(e->there_ms, there_ms, WITHIN_MS);
	assert_close(e->home_ms, home_ms, WITHIN_MS);
	assert_true(e->there_factor == there_factor && e->home_factor == home_factor);
}

static void at_home_and_elsewhere(void **state)
{
	struct rules_params p = expect_params();
	struct rules_request job = expect_job();
	struct rules_expectation e;

	(void)state;
	assert_int_equal(expect_at(&p, HOME, THERE, &job, &e), 0);
	assert_expected(&e, THERE_MS, HOME_MS, 1, 1);
	assert_int_equal(expect_at(&p, HOME, HOME, &job, &e), 0);
	assert_expected(&e, HOME_MS, HOME_MS, 1, 1);
	/* The idle node is the home, and somebody names the busy one. */
	assert_int_equal(expect_at(&p, THERE, HOME, &job, &e), 0);
	assert_expected(&e, HOME_MS + 100, ALONE_MS, 1, 1);
}

/* 25 MB of input cross the network at 125 MB/s and both disks at 40 MB/s: 1450 ms. */
static void the_way_there_is_included_and_not_corrected(void **state)
{
	struct rules_correction doubled = {THERE, 2};
	struct rules_params p = expect_params();
	struct rules_request job = expect_job();
	struct rules_expectation e;

	(void)state;
	job.initial_mb = 25;
	assert_int_equal(expect_at(&p, HOME, THERE, &job, &e), 0);
	assert_expected(&e, THERE_MS + 1450, HOME_MS, 1, 1);
	job.corrections = &doubled;
	job.ncorrections = 1;
	assert_int_equal(expect_at(&p, HOME, THERE, &job, &e), 0);
	assert_expected(&e, 2 * ALONE_MS + 100 + 1450, HOME_MS, 2, 1);
}

/* Every policy but least-delay expects the same, and that is what the criterion compares. */
static void all_policies_expect_what_the_criterion_compares(void **state)
{
	struct rules_request job = expect_job();
	struct rules_params p = expect_params();
	struct rules_view *view = expect_view();
	unsigned int compared = 0;

	(void)state;
	p.cpu_threshold = 1;
	for (int policy = 0; policy < RULES_POLICIES; policy++) {
		struct rules *rules = rules_new((enum rules_policy)policy, &p, 1);
		const struct rules_reason *r;
		struct rules_expectation e;
		struct rules_plan plan;

		assert_non_null(rules);
		assert_int_equal(rules_expect(rules, view, HOME, THERE, &job, &e), 0);
		if (policy != RULES_LEAST_DELAY) /* by 2.10, see test_rules_delay.c */
			assert_expected(&e, THERE_MS, HOME_MS, 1, 1);
		assert_int_equal(rules_place(rules, view, HOME, &job, &plan), 0);
		r = reason_find(&plan, RULES_C_RESPONSE, THERE);
		if (r != NULL) {
			compared++;
			assert_true(r->left == e.home_ms && r->right == e.there_ms);
		}
		rules_free(rules);
	}
	assert_true(compared >= 6);
	rules_view_free(view);
}

static void corrections_change_the_decision(void **state)
{
	const struct rules_correction both[] = {{HOME, 0.5}, {THERE, 2}};
	struct rules_params p = expect_params();
	struct rules_request job = expect_job();
	struct rules_view *view = expect_view();
	struct rules_expectation e;
	struct rules_plan plan;

	(void)state;
	place(RULES_IOCM_RE_HOM, &p, view, HOME, &job, &plan);
	assert_int_equal(plan.node, THERE);
	job.corrections = both;
	job.ncorrections = 2;
	assert_int_equal(expect_at(&p, HOME, THERE, &job, &e), 0);
	assert_expected(&e, 2 * ALONE_MS + 100, HOME_MS / 2, 2, 0.5);
	place(RULES_IOCM_RE_HOM, &p, view, HOME, &job, &plan);
	assert_int_equal(plan.node, HOME);
	assert_reason(&plan, RULES_C_RESPONSE, THERE, false);
	p.prediction_feedback = false;
	assert_int_equal(expect_at(&p, HOME, THERE, &job, &e), 0);
	assert_expected(&e, THERE_MS, HOME_MS, 1, 1);
	place(RULES_IOCM_RE_HOM, &p, view, HOME, &job, &plan);
	assert_int_equal(plan.node, THERE);
	rules_view_free(view);
}

/* A node's own factor counts, and that of all others where it has none. */
static void the_nodes_factor_precedes_the_common_one(void **state)
{
	const struct rules_correction there = {THERE, 4}, unseen = {77, 4};
	struct rules_params p = expect_params();
	struct rules_request job = expect_job();
	struct rules_expectation e;

	(void)state;
	job.correction = 0.5;
	assert_int_equal(expect_at(&p, HOME, THERE, &job, &e), 0);
	assert_expected(&e, ALONE_MS / 2 + 100, HOME_MS / 2, 0.5, 0.5);
	job.corrections = &there;
	job.ncorrections = 1;
	assert_int_equal(expect_at(&p, HOME, THERE, &job, &e), 0);
	assert_expected(&e, 4 * ALONE_MS + 100, HOME_MS / 2, 4, 0.5);
	job.corrections = &unseen;
	assert_int_equal(expect_at(&p, HOME, THERE, &job, &e), 0);
	assert_expected(&e, ALONE_MS / 2 + 100, HOME_MS / 2, 0.5, 0.5);
	job.correction = 1;
	assert_int_equal(expect_at(&p, HOME, THERE, &job, &e), 0);
	assert_expected(&e, THERE_MS, HOME_MS, 1, 1);
}

/* Of two equal nodes the one that kept its promises is taken; alone, the other is not. */
static void a_node_that_disappointed_is_passed_over(void **state)
{
	const struct rules_node nodes[] = {node_advertised("n1", 0.04, 8, 2),
					   node_advertised("n2", 0, 0, 0),
					   node_advertised("n3", 0, 0, 0)};
	struct rules_view *view = view_of(nodes, 3, RULES_RATES_COMPUTATION);
	struct rules_correction late = {.factor = 4};
	struct rules_params p = expect_params();
	struct rules_request job = expect_job();
	struct rules_plan plan;

	(void)state;
	job.corrections = &late;
	job.ncorrections = 1;
	for (late.node = 1; late.node < 3; late.node++) {
		place(RULES_IOCM_RE_HOM, &p, view, HOME, &job, &plan);
		assert_int_equal(plan.node, 3 - late.node);
		assert_int_equal(plan.ncandidates, 1);
	}
	job.correction = 4;
	job.ncorrections = 0;
	place(RULES_IOCM_RE_HOM, &p, view, HOME, &job, &plan);
	/* Home is as late as the others: 13,282 > 4718. */
	assert_true(!plan.stayed && plan.ncandidates == 2);
	rules_view_free(view);
}

/* Memory and data alone say nothing of a time; nor does what no number can hold. */
static void the_unknown(void **state)
{
	struct rules_params p = expect_params();
	struct rules_request job = {.memory_mb = 500, .initial_mb = 10, .requests = -1, .tasks = 1};
	struct rules_expectation e;

	(void)state;
	assert_int_equal(expect_at(&p, HOME, THERE, &job, &e), 0);
	assert_true(!e.known && e.there_ms == 0 && e.home_ms == 0);
	job.cpu_ms = 1e308;
	assert_int_equal(expect_at(&p, HOME, THERE, &job, &e), 0);
	assert_true(!e.known && e.there_ms == 0 && e.home_ms == 0);
	job = (struct rules_request){.request_kb = 250, .requests = 10, .tasks = 1};
	p = params_wall();
	assert_int_equal(expect_at(&p, HOME, THERE, &job, &e), 0);
	assert_true(e.known && e.home_ms > 0);
}

static void assert_refused(const struct rules_request *job)
{
	struct rules_expectation e = {.there_ms = 42};
	struct rules_params p = expect_params();
	struct rules *rules = rules_new(RULES_IOCM_RE, &p, 1);
	struct rules_view *view = expect_view();
	struct rules_plan plan;
	uint32_t node;

	assert_int_equal(rules_expect(rules, view, HOME, THERE, job, &e), -EINVAL);
	assert_true(e.there_ms == 42);
	assert_int_equal(rules_place(rules, view, HOME, job, &plan), -EINVAL);
	assert_int_equal(rules_place_job(rules, view, HOME, job, &plan, &node), -EINVAL);
	assert_int_equal(rules_view_charge(view, HOME, job), -EINVAL);
	rules_view_free(view);
	rules_free(rules);
}

static void absurd_corrections_are_refused(void **state)
{
	static const double absurd[] = {NAN, INFINITY, -INFINITY, -1, 1e-9, 0.2499, 1024.1, 1e300};
	struct rules_correction list[] = {{HOME, 1}, {THERE, 1}};
	struct rules_params p = expect_params();
	struct rules_request job = expect_job();
	struct rules_expectation e;

	(void)state;
	for (size_t i = 0; i < sizeof(absurd) / sizeof(absurd[0]); i++) {
		job.correction = absurd[i];
		assert_refused(&job);
		job.correction = 0;
		list[1].factor = absurd[i];
		job.corrections = list;
		job.ncorrections = 2;
		assert_refused(&job);
		job.ncorrections = 0;
	}
	list[1] = (struct rules_correction){HOME, 1}; /* twice */
	job.ncorrections = 2;
	assert_refused(&job);
	list[0].node = THERE; /* descending */
	assert_refused(&job);
	list[0].factor = 0; /* none is 1, or no entry */
	job.ncorrections = 1;
	assert_refused(&job);
	job.corrections = NULL;
	assert_refused(&job);
	/* The bounds themselves are in range. */
	list[0] = (struct rules_correction){HOME, RULES_CORRECTION_MIN};
	job.corrections = list;
	job.correction = RULES_CORRECTION_MAX;
	assert_int_equal(expect_at(&p, HOME, THERE, &job, &e), 0);
	assert_true(e.there_factor == 1024);
	job.correction = 4;
	assert_int_equal(expect_at(&p, HOME, THERE, &job, &e), 0);
	assert_expected(&e, 4 * ALONE_MS + 100, HOME_MS / 4, 4, 0.25);
}

static void bad_arguments_are_refused(void **state)
{
	struct rules_params p = expect_params();
	struct rules_request job = expect_job();
	struct rules_expectation e = {.there_ms = 42};

	(void)state;
	assert_int_equal(expect_at(&p, NODES, THERE, &job, &e), -EINVAL);
	assert_int_equal(expect_at(&p, HOME, NODES, &job, &e), -EINVAL);
	job.cpu_ms = NAN;
	assert_int_equal(expect_at(&p, HOME, THERE, &job, &e), -EINVAL);
	assert_true(e.there_ms == 42);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(at_home_and_elsewhere),
		cmocka_unit_test(the_way_there_is_included_and_not_corrected),
		cmocka_unit_test(all_policies_expect_what_the_criterion_compares),
		cmocka_unit_test(corrections_change_the_decision),
		cmocka_unit_test(the_nodes_factor_precedes_the_common_one),
		cmocka_unit_test(a_node_that_disappointed_is_passed_over),
		cmocka_unit_test(the_unknown),
		cmocka_unit_test(absurd_corrections_are_refused),
		cmocka_unit_test(bad_arguments_are_refused),
	};

	return cmocka_run_group_tests_name("rules: expectations", tests, NULL, NULL);
}
