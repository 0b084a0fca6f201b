/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Claims: ratios expressed in three ways (MODEL 6.0), means with intervals, and each kind of claim
 * on results made by hand: points "1" "2" "3", series "a" "b" "c", four seeds.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/experiments/code_claims.h"
#include "sim/experiments/experiment.h"

#define SEEDS				   4
#define assert_near(got, expected, within) assert_true(fabs((got) - (expected)) <= (within))

/* --- ratios and intervals ----------------------------------------------------------- */

/* The values that MODEL 6.0 derives; each is printed to three or four digits. */
static void test_ratio_derived(void **state)
{
	static const struct {
		double gain, factor, reduction, precision;
	} derived[] = {
		{2.74, 3.74, 0.733, 0.0005}, {2.82, 3.82, 0.738, 0.0005},
		{2.06, 3.06, 0.673, 0.0005}, {3.15, 4.15, 0.759, 0.005},
		{7.33, 8.33, 0.880, 0.005},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(derived) / sizeof(derived[0]); i++) {
		double by_gain = ratio_to_factor(RATIO_GAIN, derived[i].gain);
		double by_reduction = ratio_to_factor(RATIO_REDUCTION, derived[i].reduction);

		assert_near(by_gain, derived[i].factor, 1e-12);
		assert_near(ratio_from_factor(RATIO_REDUCTION, by_gain), derived[i].reduction,
			    derived[i].precision);
		assert_near(by_reduction, derived[i].factor, 0.01);
		assert_near(ratio_from_factor(RATIO_GAIN, by_reduction), derived[i].gain, 0.01);
	}
	/* SLD-MET and SLD-EX. */
	assert_near(ratio_of(RATIO_FACTOR, 45, 10), 4.5, 1e-12);
	assert_near(ratio_of(RATIO_FACTOR, 25.0, 2.4), 10.4, 0.05);
	assert_near(ratio_of(RATIO_GAIN, 3, 2), 0.5, 1e-12);
	assert_near(ratio_of(RATIO_REDUCTION, 4, 3), 0.25, 1e-12);
	assert_string_equal(ratio_name(RATIO_REDUCTION), "reduction");
}

static void test_mean_student(void **state)
{
	static const double five[] = {1, NAN, 2, 3, 4, INFINITY, 5}, two[] = {1, 3};
	static const double ten[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
	struct interval i = stats_mean(five, 7);

	(void)state;
	/* t(4) 2.776445, t(1) 12.706205, t(9) 2.262157 at 97.5 %. */
	assert_int_equal(i.n, 5);
	assert_near(i.mean, 3, 1e-12);
	assert_near(i.high - 3, 2.776445 * sqrt(0.5), 1e-5);
	assert_near(3 - i.low, 2.776445 * sqrt(0.5), 1e-5);
	i = stats_mean(two, 2);
	assert_near(i.high, 2 + 12.706205, 1e-5);
	i = stats_mean(ten, 10);
	assert_near(i.low, 4.5 - 2.262157 * sqrt(82.5 / 9 / 10), 1e-5);
	i = stats_mean(ten + 7, 1);
	assert_true(i.n == 1 && i.low == 7 && i.mean == 7 && i.high == 7);
	i = stats_mean(five + 1, 1);
	assert_true(i.n == 0 && isnan(i.mean) && isnan(i.low) && isnan(i.high));
	assert_false(stats_above(i, -1) || stats_below(i, 1));
}

static void test_factor_by_seeds(void **state)
{
	static const double base[] = {2, 8, 0, NAN}, new[] = {1, 1, 1, 1};
	struct interval f = stats_factor(base, new, 4), r;
	double half = 12.706205 * log(2); /* the deviation of ln 2, ln 8 over sqrt 2 is ln 2 */

	(void)state;
	assert_int_equal(f.n, 2); /* no logarithm of 0 */
	assert_near(f.mean, 4, 1e-12);
	assert_near(log(f.high / 4), half, 1e-5);
	assert_near(log(4 / f.low), half, 1e-5);
	r = stats_by(RATIO_REDUCTION, f);
	assert_near(r.mean, 0.75, 1e-12);
	assert_true(r.low < r.mean && r.mean < r.high && r.high < 1);
	/* Equal ratios have an interval of no width, however different the seeds are. */
	f = stats_factor((double[]){2, 20}, (double[]){1, 10}, 2);
	assert_near(f.high - f.low, 0, 1e-12);
	assert_true(stats_above(f, 1.99) && !stats_above(f, 2.01) && stats_below(f, 2.01));
}

/* --- results made by hand ----------------------------------------------------------- */

typedef double grid[3][3]; /* series, point */

/* Each series has its own noise, 1 % per seed, which does not change the geometric mean. */
static double noisy(double value, size_t series, uint32_t seed, double noise)
{
	static const int sign[3][SEEDS] = {{1, -1, 1, -1}, {1, 1, -1, -1}, {1, -1, -1, 1}};

	return value * exp(noise * sign[series][seed]);
}

static struct sweep *make(const char *id, uint32_t seeds, double noise, grid values)
{
	static const char *const series[] = {"a", "b", "c"}, *const points[] = {"1", "2", "3"};
	struct sweep *s = sweep_new(id, "", "");

	assert_non_null(s);
	s->seeds = seeds;
	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(sweep_add_point(s, points[i], (double)i, NULL, NULL), 0);
		assert_int_equal(sweep_add_series(s, series[i], "nlb", NULL, NULL), 0);
	}
	assert_int_equal(sweep_results(s), 0);
	for (size_t p = 0; p < 3; p++) {
		for (size_t k = 0; k < 3; k++) {
			for (uint32_t i = 0; i < seeds; i++) {
				struct sweep_result *r = sweep_result(s, p, k, i);

				r->done = true;
				for (int m = 0; m < M_COUNT; m++)
					r->values[m] = NAN;
				r->values[M_SLOWDOWN] = noisy(values[k][p], k, i % SEEDS, noise);
			}
		}
	}
	return s;
}

static enum verdict judge_noisy(grid values, double noise, const struct claim *c,
				struct judgement *j)
{
	struct sweep *s = make("OWN", SEEDS, noise, values);
	const struct sweep *all[] = {s};
	struct claim_context context = {s, all, 1, 0};

	claim_judge(&context, c, j);
	sweep_free(s);
	return j->verdict;
}

static enum verdict judge(grid values, const struct claim *c)
{
	struct judgement j;
	enum verdict v = judge_noisy(values, 0.01, c, &j);

	assert_true(j.measured[0] != '\0' || v == VERDICT_NOT_TESTED);
	return v;
}

#define CLAIM(kind_, ...)     (&(struct claim){.kind = CLAIM_##kind_, .text = "", __VA_ARGS__})
#define HOLDS(grid_, ...)     assert_int_equal(judge(grid_, CLAIM(__VA_ARGS__)), VERDICT_HOLDS)
#define FAILS(grid_, ...)     assert_int_equal(judge(grid_, CLAIM(__VA_ARGS__)), VERDICT_CONTRADICTED)
#define EXCEEDED(grid_, ...)  assert_int_equal(judge(grid_, CLAIM(__VA_ARGS__)), VERDICT_EXCEEDED)
#define UNDECIDED(grid_, ...) assert_int_equal(judge(grid_, CLAIM(__VA_ARGS__)), VERDICT_UNDECIDED)
/* Without noise: a mean alone decides. */
#define EXACTLY(grid_, ...)                                                                        \
	do {                                                                                       \
		struct judgement exact;                                                            \
		assert_int_equal(judge_noisy(grid_, 0, CLAIM(__VA_ARGS__), &exact),                \
				 VERDICT_HOLDS);                                                   \
	} while (0)

/* --- orders and trends -------------------------------------------------------------- */

static void test_below(void **state)
{
	grid clear = {{1, 2, 3}, {2, 4, 6}, {3, 6, 9}};
	grid mixed = {{1, 2, 7}, {2, 4, 6}, {3, 6, 9}}; /* a is above b at one point */
	grid close = {{1, 2, 3}, {1.01, 2.02, 3.03}, {3, 6, 9}};
	struct judgement j;

	(void)state;
	HOLDS(clear, BELOW, .a = "a", .b = "b");
	HOLDS(clear, BELOW, .a = "a|b", .b = "c");
	HOLDS(clear, BELOW, .a = "a", .b = "*"); /* not below itself */
	HOLDS(clear, BELOW, .a = "OWN/a", .b = "own/b");
	FAILS(clear, BELOW, .a = "b", .b = "a");
	FAILS(clear, BELOW, .a = "a|c", .b = "b");
	FAILS(mixed, BELOW, .a = "a", .b = "b");
	HOLDS(mixed, BELOW, .a = "a", .b = "b", .most = true);
	HOLDS(mixed, BELOW, .a = "a", .b = "b", .at = "1..2");
	FAILS(mixed, BELOW, .a = "a", .b = "b", .at = "3");
	FAILS(mixed, BELOW, .a = "b", .b = "a", .most = true);
	/* The values differ by 1 %: four seeds show this with 0.1 % noise, but not with 1 %. */
	UNDECIDED(close, BELOW, .a = "a", .b = "b");
	assert_int_equal(judge_noisy(close, 0.001, CLAIM(BELOW, .a = "a", .b = "b"), &j),
			 VERDICT_HOLDS);
}

static void test_below_tells_the_worst(void **state)
{
	grid values = {{1, 1, 1}, {4, 4, 4}, {2, 2, 2}};
	struct judgement j;

	(void)state;
	judge_noisy(values, 0, CLAIM(BELOW, .a = "a", .b = "b|c"), &j);
	assert_string_equal(j.measured, "c / a = 2 [2, 2]; significantly above 1 at 3 of 3 points, "
					"below 1 at 0");
	judge_noisy(values, 0, CLAIM(BELOW, .a = "c", .b = "b|a"), &j);
	assert_non_null(strstr(j.measured, "a / c = 0.5 "));
}

static void test_equal(void **state)
{
	grid values = {{1, 2, 3}, {1.1, 2.2, 3.3}, {1.2, 2.4, 3.6}};

	(void)state;
	HOLDS(values, EQUAL, .a = "a", .b = "b");
	HOLDS(values, EQUAL, .a = "b", .b = "a");
	FAILS(values, EQUAL, .a = "a", .b = "b|c");
	FAILS(values, EQUAL, .a = "c", .b = "a");
	HOLDS(values, EQUAL, .a = "a", .b = "c", .band = 0.25);
	FAILS(values, EQUAL, .a = "a", .b = "b", .band = 0.05);
}

static void test_trend(void **state)
{
	/* Rises; rises with a step back of 10 %; rises with a step back of 1 %. */
	grid values = {{1, 2, 3}, {1, 3, 2.7}, {1, 3, 2.97}};
	grid falls = {{3, 2, 1}, {1, 1, 1}, {3, 2, 2.5}};

	(void)state;
	HOLDS(values, TREND, .a = "a");
	HOLDS(values, TREND, .a = "a|c");
	FAILS(values, TREND, .a = "b");
	FAILS(values, TREND, .a = "*");
	FAILS(values, TREND, .a = "a", .down = true);
	HOLDS(falls, TREND, .a = "a", .down = true);
	FAILS(falls, TREND, .a = "a");
	FAILS(falls, TREND, .a = "b");
	FAILS(falls, TREND, .a = "b", .down = true);
	FAILS(falls, TREND, .a = "c", .down = true);
	HOLDS(falls, TREND, .a = "c", .down = true, .at = "1..2");
}

static void test_flatter(void **state)
{
	grid values = {{10, 15, 20}, {1, 2, 4}, {1, 2, 2}};

	(void)state;
	HOLDS(values, FLATTER, .a = "a", .b = "b");
	FAILS(values, FLATTER, .a = "b", .b = "a");
	FAILS(values, FLATTER, .a = "a", .b = "b|c"); /* a and c grow by the same factor */
	HOLDS(values, FLATTER, .a = "a", .b = "b|c", .at = "1..2");
}

static void test_minimum_and_valley(void **state)
{
	grid values = {{3, 1, 2}, {1, 1.01, 2}, {3, 2, 1}};

	(void)state;
	HOLDS(values, MINIMUM, .a = "a", .at = "2");
	FAILS(values, MINIMUM, .a = "a", .at = "3");
	HOLDS(values, MINIMUM, .a = "b", .at = "2"); /* 1 % above the least does not count */
	HOLDS(values, VALLEY, .a = "a", .at = "2");
	FAILS(values, VALLEY, .a = "b", .at = "2");
	FAILS(values, VALLEY, .a = "c", .at = "2");
}

/* --- numbers ------------------------------------------------------------------------ */

static void test_ratio_kinds(void **state)
{
	grid values = {{1, 1, 1}, {2, 2, 4}, {3.74, 3.74, 3.74}}; /* b / a: 2, 2, 4 */
	struct judgement j;

	(void)state;
	HOLDS(values, RATIO, .a = "a", .b = "b", .at = "1", .by = RATIO_GAIN, .printed = 1);
	EXCEEDED(values, RATIO, .a = "a", .b = "b", .at = "1", .by = RATIO_GAIN, .printed = 0.5);
	/* O-43: a percentage that may be a gain or a reduction. */
	HOLDS(values, RATIO, .a = "a", .b = "b", .at = "1", .by = RATIO_GAIN, .printed = 0.5,
	      .either = true);
	HOLDS(values, RATIO, .a = "a", .b = "b", .at = "1", .by = RATIO_REDUCTION, .printed = 1,
	      .either = true);
	HOLDS(values, RATIO, .a = "a", .b = "b", .at = "1", .by = RATIO_GAIN, .printed = 0.5,
	      .at_least = true);
	FAILS(values, RATIO, .a = "a", .b = "b", .at = "1", .by = RATIO_GAIN, .printed = 1.5,
	      .at_least = true);
	/* Within 25 % of the printed value, or within the band. */
	HOLDS(values, RATIO, .a = "a", .b = "b", .at = "1", .printed = 2.5);
	/* The mean is inside, by less than the interval is wide. */
	UNDECIDED(values, RATIO, .a = "a", .b = "b", .at = "1", .printed = 2.66);
	FAILS(values, RATIO, .a = "a", .b = "b", .at = "1", .printed = 2.8);
	FAILS(values, RATIO, .a = "a", .b = "b", .at = "1", .printed = 2.6, .band = 0.1);

	judge_noisy(values, 0, CLAIM(RATIO, .a = "a", .b = "c", .by = RATIO_GAIN, .printed = 2.74),
		    &j);
	assert_string_equal(j.measured, "gain 274.0 % [274.0, 274.0] (reduction 73.3 %)");
	assert_int_equal(j.verdict, VERDICT_HOLDS);
}

static void test_ratio_mean_and_up_to(void **state)
{
	grid values = {{1, 1, 1}, {2, 2, 4}, {1, 5, 1}};
	struct judgement j;

	(void)state;
	/* The mean of the factors, as percentages are averaged: (2 + 2 + 4) / 3. */
	EXACTLY(values, RATIO, .a = "a", .b = "b", .printed = 8.0 / 3, .band = 0.001);
	EXACTLY(values, RATIO, .a = "a", .b = "b", .by = RATIO_GAIN, .printed = 5.0 / 3,
		.band = 0.001);
	/* The mean of the reductions: (0.5 + 0.5 + 0.75) / 3. */
	EXACTLY(values, RATIO, .a = "a", .b = "b", .by = RATIO_REDUCTION, .printed = 1.75 / 3,
		.band = 0.001);
	EXACTLY(values, RATIO, .a = "a", .b = "b", .at = "1..2", .printed = 2, .band = 0.001);
	/* The mean over several bases: (2 + 2 + 4 + 1 + 5 + 1) / 6. */
	EXACTLY(values, RATIO, .a = "a", .b = "b|c", .printed = 2.5, .band = 0.001);
	EXACTLY(values, RATIO, .a = "a", .b = "b", .over = OVER_MAX, .printed = 4, .band = 0.001);
	judge_noisy(
		values, 0,
		CLAIM(RATIO, .a = "a", .b = "b|c", .over = OVER_MAX, .printed = 5, .band = 0.001),
		&j);
	assert_int_equal(j.verdict, VERDICT_HOLDS);
	assert_string_equal(j.measured, "factor 5 [5, 5], at 2 over c");
}

static void test_growth_and_value(void **state)
{
	grid values = {{1, 9, 3}, {2, 3, 4}, {1, 1, 223}};

	(void)state;
	EXACTLY(values, GROWTH, .a = "a", .printed = 3, .band = 0.001);
	EXACTLY(values, GROWTH, .a = "a", .by = RATIO_GAIN, .printed = 2, .band = 0.001);
	EXACTLY(values, GROWTH, .a = "a", .at = "1..2", .printed = 9, .band = 0.001);
	HOLDS(values, GROWTH, .a = "c", .printed = 100, .at_least = true);
	EXCEEDED(values, GROWTH, .a = "c", .printed = 100);
	EXCEEDED(values, GROWTH, .a = "a", .by = RATIO_GAIN, .printed = 0.5);
	/* "+3 %" says that it hardly grows. */
	FAILS(values, GROWTH, .a = "a", .by = RATIO_GAIN, .printed = 0.03);
	EXACTLY(values, VALUE, .a = "b", .printed = 3, .band = 0.001);
	EXACTLY(values, VALUE, .a = "b", .at = "3", .printed = 4, .band = 0.001);
	FAILS(values, VALUE, .a = "b", .printed = 4.1);
	FAILS(values, VALUE, .a = "c", .at = "3", .printed = 10);
	HOLDS(values, VALUE, .a = "c", .at = "3", .printed = 10, .at_least = true);
}

/* --- what cannot be told ------------------------------------------------------------ */

static void assert_not_tested(const struct claim_context *context, const struct claim *c,
			      const char *why)
{
	struct judgement j;

	claim_judge(context, c, &j);
	assert_string_equal(j.measured, why);
	assert_int_equal(j.verdict, VERDICT_NOT_TESTED);
}

static void test_not_tested(void **state)
{
	grid values = {{1, 2, 3}, {2, 4, 6}, {3, 6, 9}};
	struct sweep *s = make("OWN", SEEDS, 0.01, values);
	const struct sweep *all[] = {s};
	struct claim_context context = {s, all, 1, 0};

	(void)state;
	assert_not_tested(&context, CLAIM(NOT_TESTED, .why = "real machines"), "");
	assert_not_tested(&context, CLAIM(BELOW, .a = "a", .b = "d"), "not among the results: d");
	assert_not_tested(&context, CLAIM(BELOW, .a = "a|d", .b = "b"),
			  "not among the results: a|d");
	assert_not_tested(&context, CLAIM(RATIO, .a = "a", .b = "GONE/b"),
			  "not among the results: GONE/b");
	assert_not_tested(&context, CLAIM(TREND, .a = "a", .at = "4"), "no such point: 4");
	assert_not_tested(&context, CLAIM(TREND, .a = "a", .at = "3..1"), "no such point: 3..1");
	/* No run has a value of this measure. */
	for (int kind = CLAIM_BELOW; kind < CLAIM_CODE; kind++) {
		struct claim c = {.kind = (enum claim_kind)kind, .a = "a", .b = "b", .at = "1"};
		struct judgement j;

		c.measure = M_HIT_RATE;
		claim_judge(&context, &c, &j);
		assert_int_equal(j.verdict, VERDICT_NOT_TESTED);
		assert_non_null(strstr(j.measured, "fewer than two values were measured"));
	}
	/* One point was not reached; "up to" uses the others. */
	for (uint32_t i = 0; i < SEEDS; i++)
		sweep_result(s, 2, 1, i)->done = false;
	assert_not_tested(&context, CLAIM(BELOW, .a = "a", .b = "b"),
			  "fewer than two values were measured of b");
	assert_not_tested(&context, CLAIM(RATIO, .a = "a", .b = "b"),
			  "fewer than two values were measured");
	sweep_free(s);
}

/* Results of another experiment: with other numbers of seeds, or missing. */
static void test_other_experiments(void **state)
{
	grid values = {{1, 2, 3}, {2, 4, 6}, {3, 6, 9}};
	struct sweep *s = make("OWN", SEEDS, 0.01, values);
	struct sweep *same = make("SAME", SEEDS, 0.01, values);
	struct sweep *more = make("MORE", 40 * SEEDS, 0.01, values);
	const struct sweep *all[] = {s, same, more};
	struct claim_context context = {s, all, 3, 0};
	struct judgement j;

	(void)state;
	assert_ptr_equal(claim_sweep(&context, "same"), same);
	assert_null(claim_sweep(&context, "sam"));
	claim_judge(&context, CLAIM(BELOW, .a = "a", .b = "SAME/b|SAME/c"), &j);
	assert_int_equal(j.verdict, VERDICT_HOLDS);
	claim_judge(&context, CLAIM(BELOW, .a = "SAME/b", .b = "a"), &j);
	assert_int_equal(j.verdict, VERDICT_CONTRADICTED);
	free(s->series[2].label);
	s->series[2].label = strdup("I/O");
	claim_judge(&context, CLAIM(BELOW, .a = "SAME/b", .b = "I/O|OWN/I/O"), &j);
	assert_int_equal(j.verdict, VERDICT_HOLDS);
	assert_not_tested(&context, CLAIM(BELOW, .a = "a", .b = "MORE/b"),
			  "it has other seeds or points: b");
	assert_not_tested(&context, CLAIM(FLATTER, .a = "a", .b = "MORE/b"),
			  "it has other seeds or points: b");
	assert_not_tested(&context, CLAIM(RATIO, .a = "a", .b = "MORE/b"),
			  "fewer than two values were measured");
	sweep_free(s);
	sweep_free(same);
	sweep_free(more);
}

static void own_code(const struct claim_context *context, const struct claim *c,
		     struct judgement *out)
{
	snprintf(out->measured, sizeof(out->measured), "%s of %s", c->a, context->sweep->id);
	out->verdict = VERDICT_HOLDS;
}

static void test_code(void **state)
{
	grid values = {{1, 2, 3}, {2, 4, 6}, {3, 6, 9}};
	struct judgement j;

	(void)state;
	assert_int_equal(judge_noisy(values, 0, CLAIM(CODE, .a = "this", .code = own_code), &j),
			 VERDICT_HOLDS);
	assert_string_equal(j.measured, "this of OWN");
}

/* One value has no interval and decides no claim that code judges. */
static void test_code_needs_seeds(void **state)
{
	static claim_code *const codes[] = {
		claim_linear,
		claim_slower_after,
		claim_feedback_more,
		claim_less_than,
		claim_hardly_grows,
		claim_more_over_nlb,
		claim_near_best,
		claim_best_gain,
		claim_agree,
		claim_least_reduction,
		claim_each_above,
		claim_not_above,
		claim_point_largest,
		claim_slightly_worse,
		claim_least_pair_gain,
		claim_most_pair_gain,
		claim_more_than_a,
		claim_advantage_falls,
		claim_flat,
	};
	grid values = {{1, 2, 3}, {2, 4, 6}, {3, 6, 9}};
	struct sweep *one = make("OWNa", 1, 0.01, values), *few = make("OWNa", SEEDS, 0.01, values);
	const struct sweep *all[] = {few};
	struct claim_context context = {few, all, 1, 0},
			     alone = {one, (const struct sweep *[]){one}, 1, 0};

	(void)state;
	assert_not_tested(&alone, CLAIM(CODE, .a = "a", .code = own_code),
			  "fewer than two values were measured of each: --seeds 2 at least");
	/* At point 2 "b" was measured once. */
	for (uint32_t i = 1; i < SEEDS; i++)
		sweep_result(few, 1, 1, i)->done = false;
	for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++) {
		struct claim c = {.kind = CLAIM_CODE, .a = "a|b", .b = "b", .at = "1..2"};
		struct judgement j;

		c.code = codes[i];
		claim_judge(&context, &c, &j);
		assert_int_equal(j.verdict, VERDICT_NOT_TESTED);
		assert_string_equal(j.measured, "fewer than two values were measured of b");
	}
	/* It decides no other claim either. */
	for (int kind = CLAIM_BELOW; kind < CLAIM_CODE; kind++) {
		struct claim c = {.kind = (enum claim_kind)kind, .a = "a", .b = "b", .at = "2"};
		struct judgement j;

		claim_judge(&alone, &c, &j);
		assert_int_equal(j.verdict, VERDICT_NOT_TESTED);
	}
	sweep_free(one);
	sweep_free(few);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ratio_derived),
		cmocka_unit_test(test_mean_student),
		cmocka_unit_test(test_factor_by_seeds),
		cmocka_unit_test(test_below),
		cmocka_unit_test(test_below_tells_the_worst),
		cmocka_unit_test(test_equal),
		cmocka_unit_test(test_trend),
		cmocka_unit_test(test_flatter),
		cmocka_unit_test(test_minimum_and_valley),
		cmocka_unit_test(test_ratio_kinds),
		cmocka_unit_test(test_ratio_mean_and_up_to),
		cmocka_unit_test(test_growth_and_value),
		cmocka_unit_test(test_not_tested),
		cmocka_unit_test(test_other_experiments),
		cmocka_unit_test(test_code),
		cmocka_unit_test(test_code_needs_seeds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
