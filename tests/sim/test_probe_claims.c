/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Claims about a probe's executions.  Each is judged on clouds made by hand that meet it and that
 * do not: series "a" and "b", six seeds of 60 executions.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>

#include "sim/experiments/probe_claims.h"
#include "sim/random.h"

#define SEEDS 6
#define N     60

/* Fills one execution: U goes from 0 to 1, NOISE is uniform on (-1, 1). */
typedef void shape(struct probe_row *row, double u, double noise);

static void fill(struct sweep *s, size_t series, shape *draw)
{
	for (uint32_t seed = 0; seed < SEEDS; seed++) {
		struct sweep_result *r = sweep_result(s, 0, series, seed);
		struct sim_random random = sim_random_stream(seed, 1, series);

		r->done = true;
		r->nrows = N;
		r->rows = calloc(N, sizeof(*r->rows));
		assert_non_null(r->rows);
		for (uint32_t i = 0; i < N; i++) {
			double u = sim_random_uniform(&random);

			r->rows[i].v[PROBE_HOUR] = i;
			draw(&r->rows[i], u, 2 * sim_random_uniform(&random) - 1);
		}
	}
}

static enum verdict judge(shape *a, shape *b, struct claim claim)
{
	struct sweep *s = sweep_new("own", "", "");
	struct claim_context context = {.sweep = s};
	struct judgement out = {0};

	assert_non_null(s);
	s->seeds = SEEDS;
	assert_int_equal(sweep_add_point(s, "all", NAN, NULL, NULL), 0);
	assert_int_equal(sweep_add_series(s, "a", "nlb", NULL, NULL), 0);
	assert_int_equal(sweep_add_series(s, "b", "nlb", NULL, NULL), 0);
	assert_int_equal(sweep_results(s), 0);
	if (a)
		fill(s, 0, a);
	fill(s, 1, b ? b : a);
	claim.a = "a";
	claim.b = b ? "b" : NULL;
	claim.x = PROBE_QUEUE;
	claim.y = claim.y ? claim.y : PROBE_LOCAL_S;
	claim.y2 = PROBE_REMOTE_S;
	claim.code(&context, &claim, &out);
	sweep_free(s);
	return out.verdict;
}

#define CLAIM(...)	  ((struct claim){__VA_ARGS__})
#define HOLDS(a, b, ...)  assert_int_equal(judge(a, b, CLAIM(__VA_ARGS__)), VERDICT_HOLDS)
#define FAILS(a, b, ...)  assert_int_equal(judge(a, b, CLAIM(__VA_ARGS__)), VERDICT_CONTRADICTED)
#define OPEN(a, b, ...)	  assert_int_equal(judge(a, b, CLAIM(__VA_ARGS__)), VERDICT_UNDECIDED)
#define CANNOT(a, b, ...) assert_int_equal(judge(a, b, CLAIM(__VA_ARGS__)), VERDICT_NOT_TESTED)

/* --- shapes: queue 10 u; remote 30 unless told -------------------------------------------- */

static void set(struct probe_row *row, double queue, double local, double remote)
{
	row->v[PROBE_QUEUE] = queue;
	row->v[PROBE_LOCAL_S] = local;
	row->v[PROBE_REMOTE_S] = remote;
}

static void rising(struct probe_row *row, double u, double noise)
{
	set(row, 10 * u, 10 + 40 * u + 4 * noise, 30 + noise);
}

static void slowly(struct probe_row *row, double u, double noise)
{
	set(row, 10 * u, 10 + 5 * u + 4 * noise, 30 + 20 * noise);
}

static void falling(struct probe_row *row, double u, double noise)
{
	set(row, 10 * u, 50 - 40 * u + 4 * noise, 30 + noise);
}

static void unrelated(struct probe_row *row, double u, double noise)
{
	set(row, 10 * u, 30 + 10 * noise, 31);
}

/* Home is never faster. */
static void above(struct probe_row *row, double u, double noise)
{
	set(row, 10 * u, 40 + 10 * u + noise, 30 + noise);
}

static void hill(struct probe_row *row, double u, double noise)
{
	set(row, 10 * u, 60 - 200 * (u - 0.5) * (u - 0.5) + noise, 30);
}

static void fanning(struct probe_row *row, double u, double noise)
{
	set(row, 10 * u, 30 + 20 * u * noise, 30 + noise);
}

/* x is 0 in 70 % of the executions, and the response varies widely there. */
static void zeros(struct probe_row *row, double u, double noise)
{
	set(row, u < 0.7 ? 0 : 10 * u, u < 0.7 ? 40 + 30 * noise : 20 + noise, 30);
}

static void few_zeros(struct probe_row *row, double u, double noise)
{
	set(row, u < 0.3 ? 0 : 10 * u, u < 0.3 ? 60 + noise : 30 + 20 * noise, 30);
}

/* Two loads, the second from the noise: remote is faster if local is above 5 and remote below 5. */
static void corner(struct probe_row *row, double u, double noise)
{
	double remote = 5 + 5 * noise;

	set(row, 10 * u, 30, u > 0.5 && remote < 5 ? 20 : 40);
	row->v[PROBE_R_LOAD] = remote;
}

static void by_chance(struct probe_row *row, double u, double noise)
{
	set(row, 10 * u, 30, fmod(1e4 * u, 1) < 0.5 ? 20 : 40);
	row->v[PROBE_R_LOAD] = 5 + 5 * noise;
}

/* --- the claims --------------------------------------------------------------------------- */

static void test_correlations(void **state)
{
	(void)state;
	HOLDS(rising, NULL, .code = claim_correlates, .printed = 0.8);
	FAILS(rising, NULL, .code = claim_correlates, .printed = -0.1);
	FAILS(unrelated, NULL, .code = claim_correlates, .printed = 0.5);
	HOLDS(falling, NULL, .code = claim_correlates, .printed = -0.8);
	HOLDS(rising, NULL, .code = claim_correlation, .printed = 0.9);
	FAILS(rising, NULL, .code = claim_correlation, .printed = 0.6);
	FAILS(falling, NULL, .code = claim_correlation, .printed = 0.9);
	HOLDS(unrelated, NULL, .code = claim_uncorrelated, .printed = 0.3);
	FAILS(falling, NULL, .code = claim_uncorrelated, .printed = 0.3);
	HOLDS(rising, unrelated, .code = claim_correlates_more);
	FAILS(unrelated, rising, .code = claim_correlates_more);
}

static void test_growth_and_spread(void **state)
{
	(void)state;
	HOLDS(rising, slowly, .code = claim_grows_more);
	FAILS(slowly, rising, .code = claim_grows_more);
	HOLDS(fanning, NULL, .code = claim_spread_grows);
	OPEN(unrelated, NULL, .code = claim_spread_grows);
	HOLDS(slowly, NULL, .code = claim_less_spread);
	FAILS(rising, NULL, .code = claim_less_spread);
	HOLDS(rising, NULL, .code = claim_nearly_constant, .y = PROBE_REMOTE_S, .printed = 0.1);
	FAILS(rising, NULL, .code = claim_nearly_constant, .printed = 0.1);
}

static void test_shapes(void **state)
{
	(void)state;
	HOLDS(rising, NULL, .code = claim_crossing);
	FAILS(falling, NULL, .code = claim_crossing);
	FAILS(above, NULL, .code = claim_crossing);
	FAILS(slowly, NULL, .code = claim_crossing);
	HOLDS(hill, NULL, .code = claim_falls_again);
	FAILS(rising, NULL, .code = claim_falls_again);
	HOLDS(falling, NULL, .code = claim_full_at_few, .printed = 0.9);
	FAILS(rising, NULL, .code = claim_full_at_few, .printed = 0.9);
	HOLDS(rising, NULL, .code = claim_mostly_below, .printed = 2, .down = true);
	FAILS(rising, NULL, .code = claim_mostly_below, .printed = 2);
	CANNOT(rising, NULL, .code = claim_mostly_below, .printed = 20);
}

static void test_zeros(void **state)
{
	(void)state;
	HOLDS(zeros, NULL, .code = claim_mostly_zero, .printed = 0.5);
	FAILS(few_zeros, NULL, .code = claim_mostly_zero, .printed = 0.5);
	HOLDS(zeros, NULL, .code = claim_spread_at_zero);
	FAILS(few_zeros, NULL, .code = claim_spread_at_zero);
	HOLDS(zeros, NULL, .code = claim_excellent_at_zero);
	FAILS(few_zeros, NULL, .code = claim_excellent_at_zero);
}

static void test_planes(void **state)
{
	(void)state;
	HOLDS(corner, NULL, .code = claim_rectangle, .y = PROBE_R_LOAD);
	OPEN(by_chance, NULL, .code = claim_rectangle, .y = PROBE_R_LOAD);
	HOLDS(corner, NULL, .code = claim_gain_at_idle_target);
	OPEN(by_chance, NULL, .code = claim_gain_at_idle_target);
}

static void test_best_within(void **state)
{
	struct sweep *s = sweep_new("own", "", "");
	struct claim_context context = {.sweep = s};
	struct claim claim = {.a = "a|b", .measure = M_WIN, .printed = 0.55, .band = 0.88};
	struct judgement out = {0};

	(void)state;
	assert_non_null(s);
	s->seeds = 2;
	for (int i = 0; i < 2; i++) {
		assert_int_equal(sweep_add_point(s, i ? "2" : "1", i, NULL, NULL), 0);
		assert_int_equal(sweep_add_series(s, i ? "b" : "a", "nlb", NULL, NULL), 0);
	}
	assert_int_equal(sweep_results(s), 0);
	for (size_t i = 0; i < 8; i++) {
		s->results[i].done = true;
		s->results[i].values[M_WIN] = (const double[]){0.3, 0.6, 0.8, 0.2}[i / 2];
	}
	claim_best_within(&context, &claim, &out);
	assert_int_equal(out.verdict, VERDICT_HOLDS);
	s->results[2].values[M_WIN] = s->results[3].values[M_WIN] =
		0.5; /* the best series of the first point */
	claim_best_within(&context, &claim, &out);
	assert_int_equal(out.verdict, VERDICT_CONTRADICTED);
	s->results[2].values[M_WIN] = s->results[3].values[M_WIN] = 0.9;
	claim_best_within(&context, &claim, &out);
	assert_int_equal(out.verdict, VERDICT_CONTRADICTED);
	s->results[3].values[M_WIN] = 0.7; /* 0.9 and 0.7: too few seeds to tell */
	claim_best_within(&context, &claim, &out);
	assert_int_equal(out.verdict, VERDICT_UNDECIDED);
	sweep_free(s);
}

/* Without executions (a run by hand, a part of another version) no claim can be judged. */
static void test_no_rows(void **state)
{
	claim_code *const codes[] = {claim_correlates, claim_crossing,	  claim_falls_again,
				     claim_grows_more, claim_mostly_zero, claim_nearly_constant,
				     claim_rectangle};

	(void)state;
	for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++)
		CANNOT(NULL, rising, .code = codes[i], .printed = 0.5);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_correlations), cmocka_unit_test(test_growth_and_spread),
		cmocka_unit_test(test_shapes),	     cmocka_unit_test(test_zeros),
		cmocka_unit_test(test_planes),	     cmocka_unit_test(test_best_within),
		cmocka_unit_test(test_no_rows),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
