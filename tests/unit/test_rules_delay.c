/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Sharing and the policy least-delay (MODEL 2.10, 3.17), with values computed by hand.  On FC's
 * disk a request of 250 KB takes 14.25 ms; the way to another node costs 100 ms.
 */
#include "tests/unit/rules_fixture.h"

#define HOME	  0
#define THERE	  1
#define SERVICE	  14.25
#define WITHIN_MS 1e-6

static struct rules_request delay_job(double cpu_ms, double requests)
{
	return (struct rules_request){.cpu_ms = cpu_ms,
				      .request_kb = 250,
				      .memory_mb = 4,
				      .requests = requests,
				      .tasks = 1};
}

/* A live node of one processor that tells what its tasks have left. */
static struct rules_node delay_node(const char *name, double cpu, double cpu_left_ms, double disk,
				    double disk_left_ms)
{
	struct rules_node n = node_live(name, 0, 0);

	n.cores = 1;
	n.has_sharers = true;
	n.sharers = (struct rules_sharers){
		.cpu = cpu, .cpu_left_ms = cpu_left_ms, .disk = disk, .disk_left_ms = disk_left_ms};
	return n;
}

static struct rules_expectation expect(const struct rules_node *nodes, uint32_t n, uint32_t node,
				       const struct rules_request *job)
{
	struct rules_view *view = view_of(nodes, n, RULES_RATES_WALL);
	struct rules_params p = params_wall();
	struct rules *rules = rules_new(RULES_LEAST_DELAY, &p, 1);
	struct rules_expectation e;

	assert_non_null(rules);
	assert_int_equal(rules_expect(rules, view, HOME, node, job, &e), 0);
	rules_free(rules);
	rules_view_free(view);
	return e;
}

static double expect_home(const struct rules_node *node, const struct rules_request *job)
{
	return expect(node, 1, HOME, job).home_ms;
}

static void alone_a_job_does_one_thing_after_the_other(void **state)
{
	struct rules_node n = delay_node("n1", 0, 0, 0, 0);
	struct rules_request job = delay_job(1000, 10);

	(void)state;
	assert_close(expect_home(&n, &job), 1000 + 10 * SERVICE, WITHIN_MS);
	n.cpu_mips = 400;
	job = delay_job(1000, 0);
	/* The home's speed is what cpu_ms refers to: a slow home is no slower for its own job. */
	assert_close(expect_home(&n, &job), 1000, WITHIN_MS);
}

/* Under a cap of 0.25 the job waits for the disk while its share of the processor comes back. */
static void under_a_cap_computing_and_the_disk_overlap_in_part(void **state)
{
	struct rules_node nodes[] = {delay_node("n1", 0, 0, 0, 0), delay_node("n2", 0, 0, 0, 0)};
	struct rules_request job = delay_job(1000, 10);
	double least, rest;

	(void)state;
	nodes[THERE].cpu_mips = 200;
	nodes[THERE].burst_mips = 800;
	least = 4000; /* the cap's pauses have room for the disk's 142.5 ms */
	rest = RULES_SEQUENTIAL * (4000 + 10 * SERVICE - least);
	assert_close(expect(nodes, 2, THERE, &job).there_ms, least + rest + 100, WITHIN_MS);
	job.requests = 300;
	least = 1000 + 300 * SERVICE;
	rest = RULES_SEQUENTIAL * (4000 + 300 * SERVICE - least);
	assert_close(expect(nodes, 2, THERE, &job).there_ms, least + rest + 100, WITHIN_MS);
	nodes[THERE].burst_mips = 0;
	assert_close(expect(nodes, 2, THERE, &job).there_ms, 4000 + 300 * SERVICE + 100, WITHIN_MS);
}

/* Two tasks of one resource: the delay is the rest of the other, or this job's own length. */
static void a_task_delays_for_as_long_as_it_stays(void **state)
{
	struct rules_node n = delay_node("n1", 1, 500, 0, 0);
	struct rules_request job = delay_job(1000, 0);

	(void)state;
	assert_close(expect_home(&n, &job), 1500, WITHIN_MS);
	n = delay_node("n1", 1, 5000, 0, 0);
	assert_close(expect_home(&n, &job), 2000, WITHIN_MS);
	n = delay_node("n1", 3, 1500, 0, 0);
	assert_close(expect_home(&n, &job), 2500, WITHIN_MS);
	n = delay_node("n1", 0, 0, 2, 600);
	assert_close(expect_home(&n, &job), 1000, WITHIN_MS);
	job = delay_job(0, 100);
	assert_close(expect_home(&n, &job), 100 * SERVICE + 600, WITHIN_MS);
	/* A job that is at the disk for half of its time meets half as many. */
	job = delay_job(100 * SERVICE, 100);
	assert_close(expect_home(&n, &job), 200 * SERVICE + 300, WITHIN_MS);
}

static void idle_processors_delay_nobody(void **state)
{
	struct rules_node n = delay_node("n1", 3, 30000, 0, 0);
	struct rules_request job = delay_job(1000, 0);

	(void)state;
	n.cores = 4;
	assert_close(expect_home(&n, &job), 1000, WITHIN_MS);
	n.sharers.cpu = 7;
	n.sharers.cpu_left_ms = 70000;
	assert_close(expect_home(&n, &job), 2000, WITHIN_MS);
}

/* A disk that serves three at a time makes nobody wait before the fourth comes. */
static void a_parallel_disk_delays_those_that_are_too_many(void **state)
{
	struct rules_node n = delay_node("n1", 0, 0, 2, 60000);
	struct rules_request job = delay_job(0, 100);

	(void)state;
	assert_close(expect_home(&n, &job), 3 * 100 * SERVICE, WITHIN_MS);
	n.disk_parallel = 1;
	assert_close(expect_home(&n, &job), 3 * 100 * SERVICE, WITHIN_MS);
	n.disk_parallel = 3;
	assert_close(expect_home(&n, &job), 100 * SERVICE, WITHIN_MS);
	n.sharers.disk = 5;
	assert_close(expect_home(&n, &job), 2 * 100 * SERVICE, WITHIN_MS);
	n.disk_parallel = 1.5;
	assert_close(expect_home(&n, &job), 4 * 100 * SERVICE, WITHIN_MS);
}

/* A node that tells only how busy it is: whoever is there stays for as long as the job. */
static void without_knowledge_others_stay(void **state)
{
	struct rules_node n = node_live("n1", 0.5, 2);
	struct rules_request job = delay_job(1000, 0);

	(void)state;
	n.cores = 1;
	assert_close(expect_home(&n, &job), 3000, WITHIN_MS);
	job = delay_job(0, 10);
	assert_close(expect_home(&n, &job), 2 * 10 * SERVICE, WITHIN_MS);
	n.measured.disk_utilisation = 1; /* two tasks use the disk */
	assert_close(expect_home(&n, &job), 3 * 10 * SERVICE, WITHIN_MS);
}

/* Tasks tell the work that they have left themselves. */
static void tasks_have_left_what_they_have_not_done(void **state)
{
	const struct rules_task old = {.cpu_ms = 3000, .age_ms = 2500, .memory_mb = 1};
	struct rules_node n = node_fc("n1");
	struct rules_request job = delay_job(1000, 0);

	(void)state;
	n.ram_mb = n.buffer_mb = 0;
	n.tasks = &old;
	n.ntasks = 1;
	assert_close(expect_home(&n, &job), 1500, WITHIN_MS);
}

/* What was sent there counts until the node tells of itself anew, and goes with the job. */
static void charges_share(void **state)
{
	const struct rules_node n = delay_node("n1", 0, 0, 0, 0);
	struct rules_view *view = view_of(&n, 1, RULES_RATES_WALL);
	struct rules_request job = delay_job(1000, 10), sent = delay_job(400, 0);
	struct rules_params p = params_wall();
	struct rules *rules = rules_new(RULES_LEAST_DELAY, &p, 1);
	struct rules_expectation e;

	(void)state;
	job.requests = 0;
	assert_int_equal(rules_view_charge(view, HOME, &sent), 0);
	assert_int_equal(rules_expect(rules, view, HOME, HOME, &job, &e), 0);
	assert_close(e.home_ms, 1400, WITHIN_MS);
	assert_int_equal(rules_view_discharge(view, HOME, &sent), 0);
	assert_int_equal(rules_expect(rules, view, HOME, HOME, &job, &e), 0);
	assert_close(e.home_ms, 1000, WITHIN_MS);
	rules_free(rules);
	rules_view_free(view);
}

static void decide(const struct rules_node *nodes, uint32_t n, const struct rules_params *p,
		   const struct rules_request *job, struct rules_plan *plan)
{
	struct rules_view *view = view_of(nodes, n, RULES_RATES_WALL);

	place(RULES_LEAST_DELAY, p, view, HOME, job, plan);
	rules_view_free(view);
}

/* P(n1) = 1000 + 2 x 900, P(n2) = 1000 + 2 x 200 + 100. */
static void the_least_price_wins(void **state)
{
	const struct rules_node nodes[] = {delay_node("n1", 1, 900, 0, 0),
					   delay_node("n2", 1, 200, 0, 0),
					   delay_node("n3", 1, 600, 0, 0)};
	struct rules_request job = delay_job(1000, 0);
	struct rules_params p = params_wall();
	const struct rules_reason *r;
	struct rules_plan plan;

	(void)state;
	decide(nodes, 3, &p, &job, &plan);
	assert_int_equal(plan.node, 1);
	assert_int_equal(plan.ncandidates, 2);
	assert_int_equal(plan.candidates[1], 2);
	assert_int_equal(plan.ntied, 1);
	r = assert_reason(&plan, RULES_C_DELAY, 1, true);
	assert_close(r->left, 0.9 * 2800, WITHIN_MS);
	assert_close(r->right, 1500, WITHIN_MS);
}

/* 1000 + 2 x 100 at home, 1100 elsewhere: 8 % less, within the margin. */
static void a_shaky_gain_moves_no_job(void **state)
{
	const struct rules_node nodes[] = {delay_node("n1", 1, 100, 0, 0),
					   delay_node("n2", 0, 0, 0, 0)};
	struct rules_request job = delay_job(1000, 0);
	struct rules_params p = params_wall();
	struct rules_plan plan;

	(void)state;
	decide(nodes, 2, &p, &job, &plan);
	assert_true(plan.stayed);
	assert_reason(&plan, RULES_C_DELAY, THERE, false);
	assert_int_equal(plan.refused[RULES_C_DELAY], 1);
	p.delay_margin = 0.05;
	decide(nodes, 2, &p, &job, &plan);
	assert_int_equal(plan.node, THERE);
}

/*
 * Two tasks of 100 ms each would lose 200 ms in all to the job, as it loses to them: n1 1400, n2
 * 1300.  For the job alone n1 is as good: 1200 against 1200 and the way.
 */
static void harm_to_others_counts(void **state)
{
	struct rules_node nodes[] = {delay_node("n1", 2, 200, 0, 0),
				     delay_node("n2", 1, 100, 0, 0)};
	struct rules_request job = delay_job(1000, 0);
	struct rules_params p = params_wall();
	struct rules_plan plan;

	(void)state;
	p.delay_margin = 0;
	decide(nodes, 2, &p, &job, &plan);
	assert_int_equal(plan.node, THERE);
	p.delay_harm = 0;
	decide(nodes, 2, &p, &job, &plan);
	assert_true(plan.stayed);
}

/* Equal nodes are drawn from: each is chosen, and nothing else is. */
static void equal_nodes_are_drawn(void **state)
{
	struct rules_node nodes[6];
	struct rules_request job = delay_job(1000, 0);
	struct rules_params p = params_wall();
	unsigned int chosen[6] = {0};
	struct rules_view *view;
	struct rules_plan plan;
	char name[8];

	(void)state;
	for (uint32_t i = 0; i < 6; i++) {
		snprintf(name, sizeof(name), "n%u", i);
		nodes[i] = delay_node(name, i == HOME ? 9 : 0, i == HOME ? 9000 : 0, 0, 0);
	}
	nodes[5].cpu_mips = 700; /* more than 5 % slower */
	view = view_of(nodes, 6, RULES_RATES_WALL);
	for (uint64_t seed = 1; seed <= 400; seed++) {
		struct rules *rules = rules_new(RULES_LEAST_DELAY, &p, seed);

		assert_int_equal(rules_place(rules, view, HOME, &job, &plan), 0);
		assert_int_equal(plan.ntied, 4);
		chosen[plan.node]++;
		rules_free(rules);
	}
	rules_view_free(view);
	assert_int_equal(chosen[HOME] + chosen[5], 0);
	for (int i = 1; i < 5; i++)
		assert_in_range(chosen[i], 60, 140);
}

static void who_may_not_have_the_job_is_refused(void **state)
{
	struct rules_node nodes[] = {delay_node("n1", 9, 9000, 0, 0), delay_node("n2", 0, 0, 0, 0),
				     delay_node("n3", 0, 0, 0, 0), delay_node("n4", 0, 0, 0, 0)};
	struct rules_request job = delay_job(1000, 10);
	struct rules_params p = params_wall();
	struct rules_plan plan;

	(void)state;
	nodes[1].accepts = false;
	nodes[2].disk_mb_per_s = 0;
	nodes[3].ram_mb = 1002; /* 1000 are taken */
	decide(nodes, 4, &p, &job, &plan);
	assert_true(plan.stayed);
	assert_reason(&plan, RULES_C_ACCEPTS, 1, false);
	assert_reason(&plan, RULES_C_HAS_DISK, 2, false);
	assert_reason(&plan, RULES_C_MEM_FITS, 3, false);
}

/* A home without memory for the job lets it go even to a busy node. */
static void a_home_without_memory_lets_go(void **state)
{
	struct rules_node nodes[] = {delay_node("n1", 0, 0, 0, 0), delay_node("n2", 3, 9000, 0, 0)};
	struct rules_request job = delay_job(1000, 0);
	struct rules_params p = params_wall();
	struct rules_plan plan;

	(void)state;
	decide(nodes, 2, &p, &job, &plan);
	assert_true(plan.stayed);
	nodes[HOME].ram_mb = 1002;
	decide(nodes, 2, &p, &job, &plan);
	assert_int_equal(plan.node, THERE);
	assert_reason(&plan, RULES_C_MEM_OVERLOADED, HOME, true);
	assert_reason(&plan, RULES_C_MEM_FITS, THERE, true);
}

/* Of a class that never ran nothing is expected, but busy nodes are avoided. */
static void unknown_needs_are_assumed(void **state)
{
	const struct rules_node nodes[] = {delay_node("n1", 0, 0, 4, 40000),
					   delay_node("n2", 0, 0, 0, 0)};
	struct rules_request job = {.memory_mb = 4, .tasks = 1};
	struct rules_params p = params_wall();
	struct rules_plan plan;

	(void)state;
	assert_false(expect(nodes, 2, THERE, &job).known);
	decide(nodes, 2, &p, &job, &plan);
	assert_int_equal(plan.node, THERE);
	p.delay_prior_ms = 0;
	decide(nodes, 2, &p, &job, &plan);
	assert_true(plan.stayed);
}

/* Among many nodes a draw is priced: one idle node of 2,000 is found now and then, never refused.
 */
static void of_many_nodes_some_are_drawn(void **state)
{
	enum { MANY = 2000 };
	static struct rules_node nodes[MANY];
	struct rules_request job = delay_job(1000, 0);
	struct rules_params p = params_wall();
	unsigned int found = 0;
	struct rules_view *view;
	struct rules_plan plan;
	char name[16];

	(void)state;
	for (uint32_t i = 0; i < MANY; i++) {
		snprintf(name, sizeof(name), "n%u", i);
		nodes[i] = delay_node(name, i == 777 ? 0 : 5, i == 777 ? 0 : 50000, 0, 0);
	}
	view = view_of(nodes, MANY, RULES_RATES_WALL);
	for (uint64_t seed = 1; seed <= 100; seed++) {
		struct rules *rules = rules_new(RULES_LEAST_DELAY, &p, seed);

		assert_int_equal(rules_place(rules, view, HOME, &job, &plan), 0);
		assert_true(plan.stayed || plan.node == 777);
		assert_int_equal(plan.refused[RULES_C_DELAY] + plan.ncandidates, 256);
		found += plan.node == 777;
		rules_free(rules);
	}
	assert_in_range(found, 3, 30); /* 12.8 on average */
	p.examine_max = 0;
	place(RULES_LEAST_DELAY, &p, view, HOME, &job, &plan);
	assert_int_equal(plan.node, 777);
	rules_view_free(view);
}

/* Tasks of one job see each other: they spread over idle nodes. */
static void tasks_of_a_job_spread(void **state)
{
	const struct rules_node nodes[] = {
		delay_node("n1", 0, 0, 0, 0), delay_node("n2", 0, 0, 0, 0),
		delay_node("n3", 0, 0, 0, 0), delay_node("n4", 0, 0, 0, 0)};
	struct rules_view *view = view_of(nodes, 4, RULES_RATES_WALL);
	struct rules_request job = delay_job(1000, 0);
	struct rules_params p = params_wall();
	struct rules *rules = rules_new(RULES_LEAST_DELAY, &p, 3);
	uint32_t at[4], seen = 0;
	struct rules_plan plan;

	(void)state;
	job.tasks = 4;
	assert_int_equal(rules_place_job(rules, view, HOME, &job, &plan, at), 0);
	for (int i = 0; i < 4; i++)
		seen |= 1u << at[i];
	assert_int_equal(seen, 0xf);
	rules_free(rules);
	rules_view_free(view);
}

static void absurd_sharers_are_refused(void **state)
{
	static const double absurd[] = {NAN, -1, -INFINITY};
	struct rules_view *view = rules_view_new();
	struct rules_node n;

	(void)state;
	for (size_t i = 0; i < sizeof(absurd) / sizeof(absurd[0]); i++) {
		for (size_t j = 0; j < 4; j++) {
			n = delay_node("n1", 0, 0, 0, 0);
			(&n.sharers.cpu)[j] = absurd[i];
			assert_int_equal(rules_view_set(view, 0, &n), -22);
		}
		n = delay_node("n1", 0, 0, 0, 0);
		n.burst_mips = absurd[i];
		assert_int_equal(rules_view_set(view, 0, &n), -22);
		n.burst_mips = 0;
		n.disk_parallel = absurd[i];
		assert_int_equal(rules_view_set(view, 0, &n), -22);
	}
	n.disk_parallel = 0.9;
	assert_int_equal(rules_view_set(view, 0, &n), -22);
	n.disk_parallel = 0;
	n.burst_mips = 799; /* slower than with its cap */
	assert_int_equal(rules_view_set(view, 0, &n), -22);
	n.burst_mips = 800;
	assert_int_equal(rules_view_set(view, 0, &n), 0);
	rules_view_free(view);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(alone_a_job_does_one_thing_after_the_other),
		cmocka_unit_test(under_a_cap_computing_and_the_disk_overlap_in_part),
		cmocka_unit_test(a_task_delays_for_as_long_as_it_stays),
		cmocka_unit_test(idle_processors_delay_nobody),
		cmocka_unit_test(a_parallel_disk_delays_those_that_are_too_many),
		cmocka_unit_test(without_knowledge_others_stay),
		cmocka_unit_test(tasks_have_left_what_they_have_not_done),
		cmocka_unit_test(charges_share),
		cmocka_unit_test(the_least_price_wins),
		cmocka_unit_test(a_shaky_gain_moves_no_job),
		cmocka_unit_test(harm_to_others_counts),
		cmocka_unit_test(equal_nodes_are_drawn),
		cmocka_unit_test(who_may_not_have_the_job_is_refused),
		cmocka_unit_test(a_home_without_memory_lets_go),
		cmocka_unit_test(unknown_needs_are_assumed),
		cmocka_unit_test(of_many_nodes_some_are_drawn),
		cmocka_unit_test(tasks_of_a_job_spread),
		cmocka_unit_test(absurd_sharers_are_refused),
	};

	return cmocka_run_group_tests_name("rules_delay", tests, NULL, NULL);
}
