/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* WAL, its weights, and the feedback controllers that move them. */
#include <errno.h>

#include "tests/unit/rules_fixture.h"

/* --- WAL ------------------------------------------------------------------------ */

static void wal_moves_from_the_highest_far_above_the_mean(void **state)
{
	struct rules_node nodes[] = {node_advertised("a", 2, 8, 3), node_advertised("b", 1, 8, 1),
				     node_advertised("c", 2, 8, 1)};
	struct rules_view *view = view_of(nodes, 3, RULES_RATES_COMPUTATION);
	struct rules_params p = params_computation();
	struct rules_request job = job_cpu(5000);
	struct rules_plan plan;
	const struct rules_reason *r;

	(void)state;
	place(RULES_WAL, &p, view, 0, &job, &plan);
	/* (3 + 1 + 2) / 2 = 3 at home, 1 and 1.5 at the other nodes */
	r = assert_reason(&plan, RULES_C_LOAD_RATIO, 0, true);
	assert_close(r->left, 3 / (5.5 / 3), 1e-12);
	r = assert_reason(&plan, RULES_C_LOAD_HIGHEST, 0, true);
	assert_close(r->left, 3, 1e-12);
	assert_close(r->right, 1.5, 1e-12);
	r = assert_reason(&plan, RULES_C_LOAD_DISCREPANCY, 1, true);
	assert_close(r->left, 2, 1e-12);
	assert_close(r->right, 0.5, 1e-12);
	assert_reason(&plan, RULES_C_RESPONSE, 1, true);
	assert_int_equal(plan.node, 1);

	p.overload_ratio = 1.7;
	place(RULES_WAL, &p, view, 0, &job, &plan);
	assert_true(plan.stayed);
	assert_reason(&plan, RULES_C_LOAD_RATIO, 0, false);
	rules_view_free(view);
}

static void wal_stays_unless_home_is_the_highest(void **state)
{
	struct rules_node nodes[] = {node_advertised("a", 0, 8, 9), node_advertised("b", 0, 8, 10),
				     node_advertised("c", 0, 8, 0), node_advertised("d", 0, 8, 0)};
	struct rules_params p = params_computation();
	struct rules_request job = job_cpu(5000);
	struct rules_plan plan;
	struct rules_view *view = view_of(nodes, 4, RULES_RATES_COMPUTATION);

	(void)state;
	place(RULES_WAL, &p, view, 0, &job, &plan); /* home with the job is as high as b */
	assert_reason(&plan, RULES_C_LOAD_HIGHEST, 0, true);
	assert_false(plan.stayed);
	nodes[1].advertised.cpu = 11;
	assert_int_equal(rules_view_set(view, 1, &nodes[1]), 0);
	place(RULES_WAL, &p, view, 0, &job, &plan);
	assert_true(plan.stayed);
	assert_close(assert_reason(&plan, RULES_C_LOAD_HIGHEST, 0, false)->right, 5.5, 1e-12);
	rules_view_free(view);
}

/* With one node, home is the highest and the mean, and no other node can take the job. */
static void wal_alone_stays(void **state)
{
	struct rules_node node = node_advertised("a", 3, 8, 9);
	struct rules_view *view = view_of(&node, 1, RULES_RATES_COMPUTATION);
	struct rules_params p = params_computation();
	struct rules_request job = job_cpu(5000);
	struct rules_plan plan;

	(void)state;
	p.overload_ratio = 0;
	place(RULES_WAL, &p, view, 0, &job, &plan);
	assert_true(plan.stayed);
	assert_reason(&plan, RULES_C_LOAD_HIGHEST, 0, true);
	rules_view_free(view);
}

static void the_weight_decides_which_load_counts(void **state)
{
	struct rules_node nodes[] = {node_advertised("a", 9, 8, 9),
				     node_advertised("tasks", 0, 8, 6),
				     node_advertised("io", 6, 8, 0)};
	struct rules_view *view = view_of(nodes, 3, RULES_RATES_COMPUTATION);
	struct rules_params p = params_computation();
	struct rules_request job = job_cpu(5000);
	struct rules_plan plan;

	(void)state;
	p.w_io = 0;
	place(RULES_WAL, &p, view, 0, &job, &plan);
	assert_int_equal(plan.node, 2);
	p.w_io = 1;
	place(RULES_WAL, &p, view, 0, &job, &plan);
	assert_int_equal(plan.node, 1);
	p.w_io = 0.6;
	place(RULES_WAL, &p, view, 0, &job, &plan);
	assert_int_equal(plan.node, 1);
	rules_view_free(view);
}

/* Counts would outweigh rates in the same sum, so each is divided by its mean. */
static void normalised_loads_have_no_units(void **state)
{
	struct rules_node nodes[] = {node_advertised("a", 0.06, 8, 5),
				     node_advertised("tasks", 0, 8, 3),
				     node_advertised("io", 0.06, 8, 2)};
	struct rules_view *view = view_of(nodes, 3, RULES_RATES_COMPUTATION);
	struct rules_params p = params_computation();
	struct rules_request job = job_cpu(5000);
	struct rules_plan plan;
	const struct rules_reason *r;

	(void)state;
	place(RULES_WAL, &p, view, 0, &job, &plan);
	assert_int_equal(plan.node, 2);
	p.wal_normalise = true;
	place(RULES_WAL, &p, view, 0, &job, &plan);
	assert_int_equal(plan.node, 1);
	r = assert_reason(&plan, RULES_C_LOAD_RATIO, 0, true);
	/* 6 of 11 tasks, 0.06 of 0.12, on 3 nodes; the mean is 1 */
	assert_close(r->left, 0.5 * 6 * 3 / 11 + 0.5 * 1.5, 1e-12);
	/* Without any I/O that half counts 0. */
	for (int i = 0; i < 3; i++) {
		nodes[i].advertised.io_per_ms = nodes[i].advertised.explicit_per_ms = 0;
		assert_int_equal(rules_view_set(view, (uint32_t)i, &nodes[i]), 0);
	}
	place(RULES_WAL, &p, view, 0, &job, &plan);
	assert_int_equal(plan.node, 2);
	rules_view_free(view);
}

/* O-12, O-25: two switches of the discrepancy rule. */
static void the_discrepancy_rule_is_a_switch(void **state)
{
	struct rules_node nodes[] = {node_advertised("a", 0, 8, 5),
				     node_advertised("b", 0, 8, 4.5)};
	struct rules_view *view = view_of(nodes, 2, RULES_RATES_COMPUTATION);
	struct rules_params p = params_computation();
	struct rules_request job = job_cpu(5000);
	struct rules_plan plan;

	(void)state;
	p.overload_ratio = 1;
	p.fixed_cost_ms = 0;
	place(RULES_WAL, &p, view, 0, &job, &plan);
	assert_int_equal(plan.node, 1);
	p.discrepancy_after = false;
	place(RULES_WAL, &p, view, 0, &job, &plan);
	assert_true(plan.stayed);
	assert_reason(&plan, RULES_C_LOAD_DISCREPANCY, 1, false);
	p.wal_discrepancy = false;
	place(RULES_WAL, &p, view, 0, &job, &plan);
	assert_int_equal(plan.node, 1);
	assert_null(reason_find(&plan, RULES_C_LOAD_DISCREPANCY, 1));
	rules_view_free(view);
}

static void wal_weighs_the_transfer_and_tries_the_next(void **state)
{
	struct rules_node nodes[] = {node_advertised("a", 0, 8, 9),
				     node_advertised("slow", 0, 8, 0),
				     node_advertised("c", 0, 8, 1)};
	struct rules_params p = params_computation();
	struct rules_request job = job_cpu(5000);
	struct rules_plan plan;
	struct rules_view *view;

	(void)state;
	nodes[1].cpu_mips = 8;
	view = view_of(nodes, 3, RULES_RATES_COMPUTATION);
	place(RULES_WAL, &p, view, 0, &job, &plan);
	assert_true(plan.stayed);
	assert_reason(&plan, RULES_C_RESPONSE, 1, false);
	p.try_next = true;
	place(RULES_WAL, &p, view, 0, &job, &plan);
	assert_int_equal(plan.node, 2);
	rules_view_free(view);
}

/* "Several lowest: one at random": uniformly, for any weights, also at their limits. */
static void wal_draws_among_equals(void **state)
{
	static const double weights[] = {0, 0.5, 0.77, 1};
	struct rules_node nodes[9];
	struct rules_params p = params_computation();
	struct rules_request job = job_cpu(5000);
	struct rules_plan plan;
	struct rules_view *view;

	(void)state;
	for (int i = 0; i < 9; i++)
		nodes[i] = node_advertised("n", i == 0 ? 5 : i % 2, i, i == 0 ? 9 : i % 2);
	view = view_of(nodes, 9, RULES_RATES_COMPUTATION);
	for (int w = 0; w < 4; w++) {
		int taken[9] = {0};

		p.w_io = weights[w];
		for (uint64_t seed = 0; seed < 400; seed++) {
			struct rules *rules = rules_new(RULES_WAL, &p, seed);

			assert_int_equal(rules_place(rules, view, 0, &job, &plan), 0);
			assert_int_equal(plan.ntied, 4);
			taken[plan.node]++;
			rules_free(rules);
		}
		for (int i = 2; i < 9; i += 2)
			assert_in_range(taken[i], 65, 135);
	}
	rules_view_free(view);
}

/* --- the published controller ------------------------------------------------------ */

static struct rules *controlled(const struct rules_params *p)
{
	struct rules *r = rules_new(RULES_WAL_FC, p, 1);

	assert_non_null(r);
	assert_int_equal(rules_feedback(r, 640, 160), 0);
	return r;
}

static void completes(struct rules *r, double slowdown)
{
	struct rules_outcome o = {.slowdown = slowdown};

	assert_int_equal(rules_done(r, &o), 0);
}

/* MODEL 3.11: S = 2.0, 1.8, 1.9, 1.9. */
static void published_steps_match_derived_values(void **state)
{
	static const double s[] = {2.0, 1.8, 1.9, 1.9};
	static const double w[] = {0.5, 0.55, 0.522222, 0.522222};
	static const double buffer[] = {160, 160.10, 160.05, 160.05};
	struct rules_params p = params_computation();
	struct rules_control c;
	struct rules *r;

	(void)state;
	p.fb_history = 1; /* S_u is the newest slowdown */
	r = controlled(&p);
	for (int i = 0; i < 4; i++) {
		completes(r, s[i]);
		rules_control(r, &c);
		assert_close(c.slowdown, s[i], 1e-12);
		assert_close(c.w_io, w[i], 1e-6);
		assert_close(c.buffer_mb, buffer[i], 1e-9);
	}
	/*
	 * Nothing changed: it keeps the last direction, down; after an improvement it goes on
	 * down.
	 */
	completes(r, 1.8);
	rules_control(r, &c);
	assert_close(c.w_io, 0.522222 - 0.5 * (1 - 1.8 / 1.9), 1e-6);
	assert_close(c.buffer_mb, 160.00, 1e-9);
	assert_int_equal(c.outcomes, 5);
	assert_int_equal(c.saturated, 0);
	rules_free(r);
}

static void the_history_is_a_mean_of_fifty(void **state)
{
	struct rules_params p = params_computation();
	struct rules_control c;
	struct rules *r = controlled(&p);

	(void)state;
	rules_control(r, &c);
	assert_true(c.active && c.slowdown == 0 && c.outcomes == 0);
	for (int i = 0; i < 50; i++)
		completes(r, i < 25 ? 1 : 3);
	rules_control(r, &c);
	assert_close(c.slowdown, 2, 1e-12);
	for (int i = 0; i < 25; i++)
		completes(r, 3);
	rules_control(r, &c);
	assert_close(c.slowdown, 3, 1e-12);
	/* The sum is exact: it does not drift, however many values come and go. */
	for (int i = 0; i < 100000; i++)
		completes(r, 0.1 * (i % 7) + 1e6 * (i % 3));
	for (int i = 0; i < 50; i++)
		completes(r, 2.5);
	rules_control(r, &c);
	assert_true(c.slowdown == 2.5);
	rules_free(r);
}

static void steps_stop_at_the_ends_and_turn(void **state)
{
	struct rules_params p = params_computation();
	struct rules_control c;
	struct rules *r;

	(void)state;
	p.fb_history = 1;
	p.fb_gain_w = 10;
	p.fb_gain_b = 1;
	p.fb_buffer_unit_mb = 1000;
	r = controlled(&p);
	completes(r, 4);
	completes(r, 2); /* up by 5 and by 2000 MB */
	rules_control(r, &c);
	assert_close(c.w_io, 1, 0);
	assert_close(c.buffer_mb, 639, 0);
	assert_int_equal(c.saturated, 2);
	completes(r, 1.9); /* better, but the direction had been reversed: down */
	rules_control(r, &c);
	assert_close(c.w_io, 1 - 10 * (1 - 1.9 / 2), 1e-9);
	assert_close(c.buffer_mb, 639 - 100, 1e-9);
	completes(r, 1);
	rules_control(r, &c);
	assert_close(c.w_io, 0, 0);
	assert_close(c.buffer_mb, 1, 0);
	rules_free(r);
}

static void first_direction_and_gains_are_parameters(void **state)
{
	struct rules_params p = params_computation();
	struct rules_control c;
	struct rules *r;

	(void)state;
	p.fb_history = 1;
	p.fb_sign_w = p.fb_sign_b = 0;
	p.fb_gain_w = 0.1;
	p.fb_gain_b = 2;
	p.fb_buffer_unit_mb = 3;
	p.w_io = 0.8;
	r = controlled(&p);
	completes(r, 2);
	completes(r, 1);
	rules_control(r, &c);
	assert_close(c.w_io, 0.8 - 0.1 * 0.5, 1e-12);
	assert_close(c.buffer_mb, 160 - 2 * 3, 1e-12);
	rules_free(r);
}

/* The slowdown before was 0: there is no ratio, so the weight stays. */
static void a_slowdown_of_zero_moves_no_weight(void **state)
{
	struct rules_params p = params_computation();
	struct rules_control c;
	struct rules *r;

	(void)state;
	p.fb_history = 1;
	r = controlled(&p);
	completes(r, 0);
	completes(r, 2);
	rules_control(r, &c);
	assert_true(c.w_io == 0.5);
	assert_close(c.buffer_mb, 159, 1e-12);
	rules_free(r);
}

/* --- which policies it changes --------------------------------------------------------- */

static void the_controller_turns_wal(void **state)
{
	struct rules_node nodes[] = {node_advertised("a", 9, 8, 9),
				     node_advertised("tasks", 0, 8, 6),
				     node_advertised("io", 6, 8, 0)};
	struct rules_view *view = view_of(nodes, 3, RULES_RATES_COMPUTATION);
	struct rules_params p = params_computation();
	struct rules_request job = job_cpu(5000);
	struct rules_plan plan;
	struct rules *r;

	(void)state;
	p.fb_history = 1;
	p.fb_gain_w = 1;
	p.w_io = 0.45;
	r = controlled(&p);
	assert_int_equal(rules_place(r, view, 0, &job, &plan), 0);
	assert_int_equal(plan.node, 2);
	completes(r, 4);
	completes(r, 3); /* W_IO 0.7 */
	assert_int_equal(rules_place(r, view, 0, &job, &plan), 0);
	assert_int_equal(plan.node, 1);
	rules_free(r);
	rules_view_free(view);
}

static void any_policy_can_have_it(void **state)
{
	struct rules_params p = params_computation();
	struct rules_outcome o = {.slowdown = 3};
	struct rules_control c;
	struct rules *r = rules_new(RULES_NLB, &p, 1);

	(void)state;
	completes(r, 3); /* without a controller there is nothing to learn from */
	rules_control(r, &c);
	assert_false(c.active);
	assert_true(c.outcomes == 0 && c.w_io == 0.5 && c.buffer_mb == 0);
	assert_int_equal(rules_feedback(r, 0, 0), -EINVAL);
	assert_int_equal(rules_feedback(r, NAN, 10), -EINVAL);
	assert_int_equal(rules_feedback(r, INFINITY, 10), -EINVAL);
	assert_int_equal(rules_feedback(r, 640, -1), -EINVAL);
	assert_int_equal(rules_feedback(r, 640, NAN), -EINVAL);
	assert_int_equal(rules_feedback(r, 640, 640), -EINVAL);
	assert_int_equal(rules_feedback(r, 640, 160), 0);
	completes(r, 3);
	o.slowdown = 2;
	assert_int_equal(rules_done(r, &o), 0);
	rules_control(r, &c);
	assert_true(c.active && c.outcomes == 2);
	assert_close(c.buffer_mb, 160.25, 1e-12); /* mean 3, then 2.5 */
	rules_free(r);
}

/* WAL-FC has its weights from the start, but its buffer only after it is told the first size. */
static void wal_fc_waits_for_the_buffer(void **state)
{
	struct rules_params p = params_computation();
	struct rules_control c;
	struct rules *r = rules_new(RULES_WAL_FC, &p, 1);

	(void)state;
	completes(r, 2);
	completes(r, 1);
	rules_control(r, &c);
	assert_true(c.active && c.buffer_mb == 0 && c.w_io > 0.5);
	rules_free(r);
}

static void bad_outcomes_are_refused(void **state)
{
	struct rules_params p = params_computation();
	struct rules_outcome o, good = {.slowdown = 1, .cpu_utilisation = 1};
	struct rules *r = controlled(&p);
	struct rules_control c;

	(void)state;
	o = good, o.slowdown = NAN;
	assert_int_equal(rules_done(r, &o), -EINVAL);
	o = good, o.slowdown = -1;
	assert_int_equal(rules_done(r, &o), -EINVAL);
	o = good, o.slowdown = INFINITY;
	assert_int_equal(rules_done(r, &o), -EINVAL);
	o = good, o.cpu_utilisation = 1.1;
	assert_int_equal(rules_done(r, &o), -EINVAL);
	o = good, o.disk_utilisation = NAN;
	assert_int_equal(rules_done(r, &o), -EINVAL);
	o = good, o.implicit_share = -0.1;
	assert_int_equal(rules_done(r, &o), -EINVAL);
	o = good, o.hit_rate = 2;
	assert_int_equal(rules_done(r, &o), -EINVAL);
	rules_control(r, &c);
	assert_int_equal(c.outcomes, 0);
	rules_free(r);
}

static void names_say_what_is_attached(void **state)
{
	enum rules_policy policy;
	bool feedback;

	(void)state;
	assert_int_equal(rules_policy_parse_feedback("FEEDBACK+nlb", &policy, &feedback), 0);
	assert_true(policy == RULES_NLB && feedback);
	assert_int_equal(rules_policy_parse_feedback("io", &policy, &feedback), 0);
	assert_true(policy == RULES_IO && !feedback);
	assert_int_equal(rules_policy_parse_feedback("wal-fc", &policy, &feedback), 0);
	assert_true(policy == RULES_WAL_FC && feedback);
	assert_int_equal(rules_policy_parse_feedback("feedback+", &policy, &feedback), -EINVAL);
	assert_int_equal(rules_policy_parse_feedback("feedback", &policy, &feedback), -EINVAL);
	for (int c = 0; c < RULES_CONTROLLERS; c++)
		assert_non_null(rules_controller_name(c));
	assert_null(rules_controller_name(RULES_CONTROLLERS));
}

/* --- our own ----------------------------------------------------------------------------- */

static void smoothed_ignores_noise(void **state)
{
	struct rules_params p = params_computation();
	struct rules_control c;
	struct rules *r;

	(void)state;
	p.fb_controller = RULES_CONTROLLER_SMOOTHED;
	r = controlled(&p);
	for (int i = 0; i < 100; i++)
		completes(r, 2 + 0.03 * (i % 2));
	rules_control(r, &c);
	assert_true(c.w_io == 0.5 && c.buffer_mb == 160);
	/* A lasting change counts: the smoothed slowdown leaves the band several times. */
	for (int i = 0; i < 100; i++)
		completes(r, 1.5);
	rules_control(r, &c);
	assert_true(c.w_io > 0.5 && c.buffer_mb > 160);
	rules_free(r);
}

static void smoothed_steps_by_hand(void **state)
{
	struct rules_params p = params_computation();
	struct rules_control c;
	struct rules *r;

	(void)state;
	p.fb_controller = RULES_CONTROLLER_SMOOTHED;
	p.fb_filter = 0.5;
	p.fb_dead_band = 0.1;
	r = controlled(&p);
	completes(r, 2);
	completes(r, 1.7); /* smoothed 1.85: 7.5 % */
	rules_control(r, &c);
	assert_true(c.w_io == 0.5);
	completes(r, 1.55); /* 1.7: 15 % */
	rules_control(r, &c);
	assert_close(c.w_io, 0.5 + 0.5 * 0.15, 1e-12);
	assert_close(c.buffer_mb, 160 + 0.5 * 0.3, 1e-12);
	completes(r, 2.1); /* 1.9: 12 % worse, back */
	rules_control(r, &c);
	assert_close(c.w_io, 0.575 - 0.5 * 0.2 / 1.7, 1e-12);
	rules_free(r);
}

static void gradient_follows_the_busier_resource(void **state)
{
	struct rules_params p = params_computation();
	struct rules_outcome disk = {
		.slowdown = 2, .cpu_utilisation = 0.2, .disk_utilisation = 0.8};
	struct rules_outcome even = {
		.slowdown = 2, .cpu_utilisation = 0.5, .disk_utilisation = 0.495};
	struct rules_control c;
	struct rules *r;

	(void)state;
	p.fb_controller = RULES_CONTROLLER_GRADIENT;
	r = controlled(&p);
	assert_int_equal(rules_done(r, &disk), 0);
	rules_control(r, &c);
	assert_close(c.w_io, 0.5 + 0.5 * 0.1 * 0.3, 1e-12);
	for (int i = 0; i < 300; i++)
		assert_int_equal(rules_done(r, &disk), 0);
	rules_control(r, &c);
	assert_close(c.w_io, 0.8, 1e-6);
	for (int i = 0; i < 600; i++)
		assert_int_equal(rules_done(r, &even), 0);
	rules_control(r, &c);
	assert_close(c.w_io, 0.5, 1e-6); /* within the dead band: both weigh one half */
	rules_free(r);
}

static void gradient_balances_savings_and_faults(void **state)
{
	struct rules_params p = params_computation();
	struct rules_outcome hits = {.slowdown = 2, .hit_rate = 0.4};
	struct rules_outcome pages = {.slowdown = 2, .hit_rate = 0.4, .implicit_share = 0.9};
	struct rules_control c;
	struct rules *r;

	(void)state;
	p.fb_controller = RULES_CONTROLLER_GRADIENT;
	p.fb_buffer_unit_mb = 10;
	r = controlled(&p);
	for (int i = 0; i < 10; i++)
		assert_int_equal(rules_done(r, &hits), 0);
	rules_control(r, &c);
	assert_close(c.buffer_mb, 160 + 10 * 0.5 * 10, 1e-9);
	for (int i = 0; i < 200; i++)
		assert_int_equal(rules_done(r, &pages), 0);
	rules_control(r, &c);
	/* Within the dead band it stays where (1 - p) h / ((1 - h) B) = p / (RAM - B): B = 640 /
	 * 14.5 */
	assert_close(c.buffer_mb, 640 / (1 + 0.9 * 0.6 / (0.1 * 0.4)), 2);
	rules_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(wal_moves_from_the_highest_far_above_the_mean),
		cmocka_unit_test(wal_stays_unless_home_is_the_highest),
		cmocka_unit_test(wal_alone_stays),
		cmocka_unit_test(the_weight_decides_which_load_counts),
		cmocka_unit_test(normalised_loads_have_no_units),
		cmocka_unit_test(the_discrepancy_rule_is_a_switch),
		cmocka_unit_test(wal_weighs_the_transfer_and_tries_the_next),
		cmocka_unit_test(wal_draws_among_equals),
		cmocka_unit_test(published_steps_match_derived_values),
		cmocka_unit_test(the_history_is_a_mean_of_fifty),
		cmocka_unit_test(steps_stop_at_the_ends_and_turn),
		cmocka_unit_test(first_direction_and_gains_are_parameters),
		cmocka_unit_test(a_slowdown_of_zero_moves_no_weight),
		cmocka_unit_test(the_controller_turns_wal),
		cmocka_unit_test(any_policy_can_have_it),
		cmocka_unit_test(wal_fc_waits_for_the_buffer),
		cmocka_unit_test(bad_outcomes_are_refused),
		cmocka_unit_test(names_say_what_is_attached),
		cmocka_unit_test(smoothed_ignores_noise),
		cmocka_unit_test(smoothed_steps_by_hand),
		cmocka_unit_test(gradient_follows_the_busier_resource),
		cmocka_unit_test(gradient_balances_savings_and_faults),
	};

	return cmocka_run_group_tests_name("rules: weighted load, feedback", tests, NULL, NULL);
}
