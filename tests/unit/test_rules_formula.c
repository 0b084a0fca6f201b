/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Compares the formulas with the values derived in MODEL sections 1 and 2; parameters; names. */
#include <errno.h>

#include "tests/unit/rules_fixture.h"

static void hit_rate_matches_derived_values(void **state)
{
	(void)state;
	assert_close(rules_hit_rate(5, 160000, 2, 250, 1000, 500), 5.0 / 6, 1e-12);
	assert_close(rules_hit_rate(5, 160000, 2, 250, 2000, 1000), 0.4, 1e-12);
	assert_close(rules_hit_rate(5, 160000, 2, 250, 2000, 2000), 0.2, 1e-12);
}

static void hit_rate_is_guarded_and_continuous(void **state)
{
	double t = 6.0 * 160000 / 500; /* buffer share = data: both branches */

	(void)state;
	assert_true(rules_hit_rate(5, 160000, 0, 250, 1000, 500) == 0);
	assert_true(rules_hit_rate(5, 0, 2, 250, 1000, 500) == 0);
	assert_true(rules_hit_rate(0, 160000, 2, 250, 1000, 500) == 0);
	assert_close(rules_hit_rate(5, 160000, 2, 0, 1000, 0), 5.0 / 6, 1e-12);
	assert_close(rules_hit_rate(5, 160000, 2, 250, t, 500), 5.0 / 6, 1e-12);
	assert_close(rules_hit_rate(5, 160000, 2, 250, t * (1 + 1e-9), 500), 5.0 / 6, 1e-8);
}

static void implicit_load_jumps_behind_full_memory(void **state)
{
	(void)state;
	assert_true(rules_implicit(8, 480, 480) == 0);
	assert_close(rules_implicit(8, 480 + 1e-9, 480), 8, 1e-6);
	assert_close(rules_implicit(8, 960, 480), 16, 1e-12);
	assert_true(rules_implicit(8, 960, 0) == 0);
}

static void service_time_matches_derived_values(void **state)
{
	double es = rules_service_ms(8, 250, 40), es2 = rules_service_ms2(8, 250, 50, 40);

	(void)state;
	assert_close(es, 14.25, 1e-12);
	assert_close(es2, 204.625, 1e-9);
	assert_close(sqrt(es2 - es * es), 1.25, 1e-9);
	assert_close(rules_service_ms(5.4 + 3, 256, 31), 16.658, 5e-4);
	assert_close(rules_disk_response_ms(es, es2, 0.3 / es, 0.3, 0.99), 17.3271, 1e-4);
	assert_close(rules_disk_response_ms(es, es2, 0.5 / es, 0.5, 0.99), 21.4298, 1e-4);
	assert_close(rules_disk_response_ms(es, es2, 0.9 / es, 0.9, 0.99), 78.8684, 1e-4);
	assert_true(isfinite(rules_disk_response_ms(es, es2, 2.8, 39.9, 0.99)));
}

static void response_time_matches_derived_values(void **state)
{
	double es = rules_service_ms(8, 250, 40), es2 = rules_service_ms2(8, 250, 50, 40);
	double busy = rules_disk_response_ms(es, es2, 0.05, 0.05 * es, 0.99);
	double idle = rules_disk_response_ms(es, es2, 0.01, 0.01 * es, 0.99);

	(void)state;
	assert_close(rules_response_ms(1000, 3, 10, busy), 3320.43, 5e-3);
	assert_close(rules_response_ms(1000, 1, 10, idle), 1154.43, 5e-3);
}

static void costs_match_derived_values(void **state)
{
	(void)state;
	assert_close(rules_transfer_cost_ms(100, 50, 125, 40, 40), 3000, 1e-9);
	assert_close(rules_transfer_cost_ms(0, 50, 12.5, 20, 20), 9000, 1e-9);
	assert_close(rules_migration_cost_ms(100, 4, 60, 125, 40, 40), 3612, 1e-9);
	assert_true(rules_transfer_cost_ms(100, 0, 0, 0, 0) == 100);
	assert_close(rules_transfer_cost_ms(0, 50, 125, 0, 40), 1650, 1e-9);
}

/* W_i = values / greatest, 2.8. */
static double level(const double *values, size_t n)
{
	double weights[8], most = 0;

	for (size_t i = 0; i < n; i++)
		most = fmax(most, values[i]);
	for (size_t i = 0; i < n; i++)
		weights[i] = values[i] / most;
	return rules_heterogeneity(weights, n);
}

static void heterogeneity_matches_table_vi(void **state)
{
	(void)state;
	assert_close(level((double[]){100, 150, 150, 50, 100, 50}, 6), 0.272, 5e-4);
	assert_close(level((double[]){480, 640, 640, 320, 480, 320}, 6), 0.204, 5e-4);
	assert_close(level((double[]){50, 200, 200, 50, 50, 50}, 6), 0.354, 5e-4);
	assert_close(level((double[]){320, 800, 800, 320, 320, 320}, 6), 0.283, 5e-4);
	assert_close(level((double[]){10.2, 20, 20, 10.2, 20, 10.2}, 6), 0.245, 5e-4);
	assert_close(level((double[]){10.2, 20, 20, 14.3, 14.3, 10.2}, 6), 0.201, 5e-4);
	assert_close(level((double[]){5.21, 14.3, 20, 5.21, 7.29, 3.72}, 6), 0.294, 5e-4);
	assert_true(level((double[]){3, 3, 3}, 3) == 0);
	assert_true(rules_heterogeneity(NULL, 0) == 0);
}

/* The aged disks of ACM Table IV: age 1 to 6. */
static double aged(int age, double request_kb)
{
	static const double seek[] = {5.3, 5.89, 6.54, 7.27, 8.08, 8.98};
	static const double rotation[] = {3, 3.33, 3.69, 4.11, 4.56, 5.07};
	static const double bandwidth[] = {20, 14.3, 10.2, 7.29, 5.21, 3.72};

	return rules_disk_performance(seek[age - 1] + rotation[age - 1], request_kb,
				      bandwidth[age - 1]);
}

static double aged_level(const int *ages, double request_kb)
{
	double d[6];

	for (int i = 0; i < 6; i++)
		d[i] = aged(ages[i], request_kb);
	return level(d, 6);
}

static void disk_performance_matches_derived_values(void **state)
{
	const int c[] = {3, 1, 1, 3, 1, 3}, d[] = {3, 1, 1, 2, 2, 3}, e[] = {5, 2, 1, 5, 4, 6};

	(void)state;
	assert_close(1 / aged(1, 256), 21.10, 1e-9);
	assert_close(1 / aged(1, 1000), 58.30, 1e-9);
	assert_close(aged_level(c, 256), 0.201, 1e-3);
	assert_close(aged_level(d, 256), 0.165, 1e-3);
	assert_close(aged_level(e, 256), 0.269, 1e-3);
	assert_close(aged_level(c, 1000), 0.231, 1e-3);
	assert_close(aged_level(d, 1000), 0.189, 1e-3);
	assert_close(aged_level(e, 1000), 0.287, 1e-3);
	assert_true(rules_disk_performance(8, 250, 0) == 0);
}

static void threshold_matches_derived_values(void **state)
{
	(void)state;
	assert_close(rules_io_threshold(12, 1, 2.5), 4.8, 1e-12);
	assert_close(rules_io_threshold(12, 0.5, 2.5), 2.4, 1e-12);
	assert_true(rules_io_threshold(12, 0, 0) == 0);
	assert_close(rules_weighted_load(0.5, 4, 2), 3, 1e-12);
}

static void communication_load_matches_derived_values(void **state)
{
	const double com[] = {0, 30, 10, 15};
	const uint32_t node[] = {0, 0, 1, 1};

	(void)state;
	assert_close(rules_com_load(com, node, 4, 0), 25, 1e-12);
	assert_close(rules_com_load(com, node, 4, 1), 0, 1e-12);
	assert_close(rules_com_load(com, node, 4, 2), 10, 1e-12);
	assert_close(rules_com_load(com, node, 4, 3), 15, 1e-12);
	assert_true(rules_com_load(com, node, 4, 4) == 0);
}

static void parameters_are_set_by_name(void **state)
{
	struct rules_params p;

	(void)state;
	rules_params_default(&p, RULES_RATES_COMPUTATION);
	assert_true(p.literal_requests && p.io_significance == 0 && !p.require_memory);
	assert_int_equal(rules_params_set(&p, "fixed_cost_ms", 250), 0);
	assert_true(p.fixed_cost_ms == 250);
	assert_int_equal(rules_params_set(&p, "io_cost_test", 0), 0);
	assert_false(p.io_cost_test);
	assert_int_equal(rules_params_set(&p, "w_io", 0.25), 0);
	rules_params_default(&p, RULES_RATES_WALL);
	assert_false(p.literal_requests);
	assert_true(p.io_significance == 0.05 && p.require_memory && p.stage_fallthrough);
}

static void wrong_parameters_are_refused(void **state)
{
	struct rules_params p;

	(void)state;
	rules_params_default(&p, RULES_RATES_COMPUTATION);
	assert_int_equal(rules_params_set(&p, "no_such", 1), -ENOENT);
	assert_int_equal(rules_params_set(&p, "rates", 1), -ENOENT);
	assert_int_equal(rules_params_set(&p, "fixed_cost_ms", NAN), -EINVAL);
	assert_int_equal(rules_params_set(&p, "fixed_cost_ms", -1), -EINVAL);
	assert_int_equal(rules_params_set(&p, "fixed_cost_ms", INFINITY), -EINVAL);
	assert_int_equal(rules_params_set(&p, "rho_max", 1), -EINVAL);
	assert_int_equal(rules_params_set(&p, "network_mb_per_s", 0), -EINVAL);
	assert_int_equal(rules_params_set(&p, "io_cost_test", 2), -EINVAL);
	assert_int_equal(rules_params_set(&p, "com_decision", 1.5), -EINVAL);
	assert_int_equal(rules_params_set(&p, "fb_history", 0), -EINVAL);
	assert_int_equal(rules_params_set(&p, "fb_controller", RULES_CONTROLLERS), -EINVAL);
	assert_int_equal(rules_params_set(&p, "parallel_start", 2), -EINVAL);
	assert_true(p.fixed_cost_ms == 100);
	p.rho_max = NAN;
	assert_null(rules_new(RULES_NLB, &p, 1));
	rules_params_default(&p, RULES_RATES_COMPUTATION);
	assert_null(rules_new(RULES_POLICIES, &p, 1));
}

static void names_are_complete_and_parse_back(void **state)
{
	enum rules_policy policy;

	(void)state;
	for (int p = 0; p < RULES_POLICIES; p++) {
		size_t n = strlen(rules_policy_name(p));

		assert_int_equal(rules_policy_parse(rules_policy_name(p), &policy), 0);
		assert_int_equal(policy, p);
		assert_true(strlen(rules_policy_summary(p)) > 20);
		assert_true(rules_policy_migrates(p) ==
			    (n > 3 && strcmp(rules_policy_name(p) + n - 3, "-pm") == 0));
	}
	assert_int_equal(rules_policy_parse("IOCM-RE", &policy), 0);
	assert_int_equal(policy, RULES_IOCM_RE);
	assert_int_equal(rules_policy_parse("best", &policy), -EINVAL);
	assert_null(rules_policy_name(RULES_POLICIES));
	assert_null(rules_policy_summary(RULES_POLICIES));
	assert_false(rules_policy_migrates(RULES_POLICIES));
	for (int c = 0; c < RULES_CRITERIA; c++) {
		assert_non_null(rules_criterion_name(c));
		assert_non_null(rules_criterion_source(c));
		assert_non_null(rules_criterion_unit(c, RULES_RATES_COMPUTATION));
		assert_non_null(rules_criterion_unit(c, RULES_RATES_WALL));
		assert_non_null(rules_criterion_relation(c));
		assert_true(strlen(rules_criterion_text(c)) > 20);
	}
	assert_null(rules_criterion_text(RULES_CRITERIA));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hit_rate_matches_derived_values),
		cmocka_unit_test(hit_rate_is_guarded_and_continuous),
		cmocka_unit_test(implicit_load_jumps_behind_full_memory),
		cmocka_unit_test(service_time_matches_derived_values),
		cmocka_unit_test(response_time_matches_derived_values),
		cmocka_unit_test(costs_match_derived_values),
		cmocka_unit_test(heterogeneity_matches_table_vi),
		cmocka_unit_test(disk_performance_matches_derived_values),
		cmocka_unit_test(threshold_matches_derived_values),
		cmocka_unit_test(communication_load_matches_derived_values),
		cmocka_unit_test(parameters_are_set_by_name),
		cmocka_unit_test(wrong_parameters_are_refused),
		cmocka_unit_test(names_are_complete_and_parse_back),
	};

	return cmocka_run_group_tests_name("rules: formulas", tests, NULL, NULL);
}
