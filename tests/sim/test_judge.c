/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Verdicts with uncertainty, on results that trip a judge that looks at means: values are given
 * seed by seed, so that every interval is known.
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
#include "sim/experiments/judge.h"
#include "sim/random.h"
#include "sim/report/report.h"

#define POINTS 12

/* --- results made by hand ----------------------------------------------------------- */

static struct sweep *sheet(uint32_t seeds, size_t points, size_t series)
{
	struct sweep *s = sweep_new("OWN", "", "");

	assert_non_null(s);
	s->seeds = seeds;
	for (size_t p = 0; p < points; p++) {
		char label[24];

		snprintf(label, sizeof(label), "%zu", p + 1);
		assert_int_equal(sweep_add_point(s, label, (double)p, NULL, NULL), 0);
	}
	for (size_t k = 0; k < series; k++) {
		char label[2] = {(char)('a' + k), '\0'};

		assert_int_equal(sweep_add_series(s, label, "nlb", NULL, NULL), 0);
	}
	assert_int_equal(sweep_results(s), 0);
	return s;
}

static void put(struct sweep *s, size_t point, size_t series, uint32_t seed, double value)
{
	struct sweep_result *r = sweep_result(s, point, series, seed);

	for (int m = 0; m < M_COUNT; m++)
		r->values[m] = NAN;
	r->values[M_SLOWDOWN] = value;
	r->done = true;
}

/* Gives SERIES the MEANS along the points, with NOISE that differs by seed, point and series but
 * leaves their geometric means alone if seeds are a multiple of 8: a row of Hadamard's matrix. */
static void put_means(struct sweep *s, size_t series, const double *means, double noise)
{
	for (size_t p = 0; p < s->npoints; p++) {
		unsigned int row = (unsigned int)(p + series) % 7 + 1;

		for (uint32_t i = 0; i < s->seeds; i++) {
			int sign = __builtin_parity(row & i) ? -1 : 1;

			put(s, p, series, i, means[p] * exp(noise * sign));
		}
	}
}

/* Judges C, by default on "a" and, if there is one, "b", and frees S. */
static struct judgement judged(struct sweep *s, const struct claim *c)
{
	const struct sweep *all[] = {s};
	struct claim_context context = {s, all, 1, 0};
	struct claim claim = *c;
	struct judgement j;

	claim.a = c->a ? c->a : "a";
	claim.b = c->b || s->nseries < 2 ? c->b : "b";
	claim_judge(&context, &claim, &j);
	sweep_free(s);
	return j;
}

/* One point: "a" is 1 in every seed, "b" has the VALUES, so that b / a is known. */
static struct sweep *ratios(const double *values, uint32_t seeds)
{
	struct sweep *s = sheet(seeds, 1, 2);

	for (uint32_t i = 0; i < seeds; i++) {
		put(s, 0, 0, i, 1);
		put(s, 0, 1, i, values[i]);
	}
	return s;
}

#define RATIOS(...)                                                                                \
	ratios((const double[]){__VA_ARGS__}, sizeof((double[]){__VA_ARGS__}) / sizeof(double))
#define CLAIM(kind_, ...) (&(struct claim){.kind = CLAIM_##kind_, .text = "", __VA_ARGS__})
#define VERDICT(sweep, expected, ...)                                                              \
	assert_int_equal(judged(sweep, CLAIM(__VA_ARGS__)).verdict, VERDICT_##expected)

/* --- means and intervals ------------------------------------------------------------ */

/* SLD-EX: three seeds, a factor of 10.2 [0.002, 47,700], "more than 10". */
static void test_wide_interval_is_undecided(void **state)
{
	struct judgement j =
		judged(RATIOS(0.3, 10, 354), CLAIM(RATIO, .printed = 10, .at_least = true));

	(void)state;
	assert_int_equal(j.verdict, VERDICT_UNDECIDED);
	assert_true(j.interval.mean > 10 && j.interval.low < 0.01 && j.interval.high > 10000);
	assert_true(j.low > 9.99 && j.low < 10.01 && isinf(j.high));
	assert_string_equal(j.unit, "factor");
	assert_true(j.more_seeds > 100);
	/* The same mean with seeds that agree decides. */
	VERDICT(RATIOS(10.15, 10.2, 10.25), HOLDS, RATIO, .printed = 10, .at_least = true);
	VERDICT(RATIOS(0.3, 10, 354), UNDECIDED, RATIO, .printed = 10);
	VERDICT(RATIOS(0.3, 10, 354), UNDECIDED, RATIO, .printed = 100, .at_least = true);
	VERDICT(RATIOS(0.3, 10, 354), UNDECIDED, VALUE, .a = "b", .printed = 121);
}

/* ACM-2: 6.26 [0.6, 65] is no order, and none refuted. */
static void test_order_may_be_undecided(void **state)
{
	struct judgement j = judged(RATIOS(1.4, 10, 3, 36), CLAIM(BELOW));

	(void)state;
	assert_int_equal(j.verdict, VERDICT_UNDECIDED);
	assert_true(j.interval.low < 1 && j.interval.mean > 6);
	assert_in_range(j.more_seeds, 1, 4);
	VERDICT(RATIOS(0.7, 1.1, 0.6, 0.9), UNDECIDED, BELOW);
	VERDICT(RATIOS(0.70, 0.71, 0.6, 0.6), CONTRADICTED, BELOW);
	VERDICT(RATIOS(1, 1, 1, 1), CONTRADICTED, BELOW);
	VERDICT(RATIOS(1.2, 0.9, 1.1, 1.3), UNDECIDED, EQUAL);
	VERDICT(RATIOS(1.3, 1.31, 1.3, 1.32), CONTRADICTED, EQUAL);
	VERDICT(RATIOS(1.1, 1.11, 1.1, 1.12), HOLDS, EQUAL);
}

/* ACM-12, ACM-22: "more than 53 %" began at 0.75 times 53 %. */
static void test_more_than_begins_at_the_number(void **state)
{
	(void)state;
	/* b / a = 1.724: a reduction of 42 %. */
	VERDICT(RATIOS(1.72, 1.725, 1.724), CONTRADICTED, RATIO, .by = RATIO_REDUCTION,
		.printed = 0.53, .at_least = true);
	/* ... and a gain of 72 %. */
	VERDICT(RATIOS(1.72, 1.725, 1.724), HOLDS, RATIO, .by = RATIO_REDUCTION, .printed = 0.53,
		.either = true, .at_least = true);
	VERDICT(RATIOS(1.42, 1.425, 1.424), CONTRADICTED, RATIO, .by = RATIO_GAIN, .printed = 0.53,
		.at_least = true);
	VERDICT(RATIOS(1.42, 1.425, 1.424), CONTRADICTED, GROWTH, .a = "b", .by = RATIO_GAIN,
		.printed = 0.53, .at_least = true);
	VERDICT(RATIOS(1.42, 1.425, 1.424), CONTRADICTED, CODE, .by = RATIO_GAIN, .printed = 0.53,
		.code = claim_least_pair_gain);
	VERDICT(RATIOS(1.72, 1.725, 1.724), CONTRADICTED, CODE, .printed = 0.53,
		.code = claim_least_reduction);
	VERDICT(RATIOS(2.72, 2.725, 2.724), HOLDS, CODE, .printed = 0.53,
		.code = claim_least_reduction);
	VERDICT(RATIOS(42, 42.5, 42.4), CONTRADICTED, VALUE, .a = "b", .printed = 53,
		.at_least = true);
}

/* --- words --------------------------------------------------------------------------- */

static void test_exceeded(void **state)
{
	struct judgement j;

	(void)state;
	/* 13.2 where 5 was printed; 3.7 for 3 is within 25 %, and 3.76 straddles. */
	j = judged(RATIOS(13.2, 13.1, 13.3), CLAIM(RATIO, .printed = 5));
	assert_int_equal(j.verdict, VERDICT_EXCEEDED);
	assert_int_equal(j.more_seeds, 0);
	VERDICT(RATIOS(3.70, 3.71, 3.69), HOLDS, RATIO, .printed = 3);
	VERDICT(RATIOS(3.76, 3.70, 3.82), UNDECIDED, RATIO, .printed = 3);
	/* A loss that is larger than printed, a value and an order exceed nothing. */
	VERDICT(RATIOS(0.2, 0.21, 0.2), CONTRADICTED, RATIO, .printed = 0.5);
	VERDICT(RATIOS(13.2, 13.1, 13.3), CONTRADICTED, VALUE, .a = "b", .printed = 5);
	VERDICT(RATIOS(0.2, 0.21, 0.2), CONTRADICTED, RATIO, .printed = 5);
	VERDICT(RATIOS(13.2, 13.1, 13.3), HOLDS, RATIO, .printed = 5, .at_least = true);
	/* A gain of 70 % is more than 50 %, as a reduction (41 %) it matches; 62 % matches both
	 * readings only together; 1.8 lies between 37.5..62.5 as a gain and as a reduction. */
	VERDICT(RATIOS(1.70, 1.71, 1.69), EXCEEDED, RATIO, .by = RATIO_GAIN, .printed = 0.5);
	VERDICT(RATIOS(1.70, 1.71, 1.69), HOLDS, RATIO, .by = RATIO_GAIN, .printed = 0.5,
		.either = true);
	VERDICT(RATIOS(1.61, 1.65, 1.58), HOLDS, RATIO, .by = RATIO_GAIN, .printed = 0.5,
		.either = true);
	VERDICT(RATIOS(3.8, 3.81, 3.79), EXCEEDED, RATIO, .by = RATIO_GAIN, .printed = 0.5,
		.either = true);
	/* 88 %: a factor of 1.66..2.1 as a gain, of 2.9 and more as a reduction. */
	VERDICT(RATIOS(2.5, 2.51, 2.49), CONTRADICTED, RATIO, .by = RATIO_REDUCTION,
		.printed = 0.88, .either = true);
	VERDICT(RATIOS(2.0, 2.01, 1.99), HOLDS, RATIO, .by = RATIO_REDUCTION, .printed = 0.88,
		.either = true);
	VERDICT(RATIOS(2.0, 2.2, 2.1), UNDECIDED, RATIO, .by = RATIO_REDUCTION, .printed = 0.88,
		.either = true);
	j = judged(RATIOS(1.55, 1.5, 1.6),
		   CLAIM(RATIO, .by = RATIO_REDUCTION, .printed = 0.245, .either = true));
	assert_string_equal(j.unit, "reduction");
	assert_true(j.low > 0.15 && j.low < 0.19 && j.high > 0.30 && j.high < 0.31);
}

static void test_words(void **state)
{
	static const char *const names[VERDICTS] = {"holds", "exceeded", "contradicted",
						    "undecided", "not tested"};
	struct judgement j = {.verdict = VERDICT_UNDECIDED, .more_seeds = 1};
	char text[80];

	(void)state;
	for (int v = 0; v < VERDICTS; v++)
		assert_string_equal(verdict_name((enum verdict)v), names[v]);
	verdict_more(&j, text, sizeof(text));
	assert_string_equal(text, "about 1 more seed would decide it");
	j.more_seeds = 14;
	verdict_more(&j, text, sizeof(text));
	assert_string_equal(text, "about 14 more seeds would decide it");
	j.more_seeds = VERDICT_SEEDS_MAX;
	verdict_more(&j, text, sizeof(text));
	assert_string_equal(text, "10000 more seeds would not decide it");
	j.more_seeds = 0;
	verdict_more(&j, text, sizeof(text));
	assert_string_equal(text, "more seeds do not decide it");
	j.verdict = VERDICT_HOLDS;
	verdict_more(&j, text, sizeof(text));
	assert_string_equal(text, "");
}

/* --- trends --------------------------------------------------------------------------- */

static enum verdict trend(const double *means, size_t points, double noise, bool down, double band)
{
	struct sweep *s = sheet(8, points, 1);

	put_means(s, 0, means, noise);
	return judged(s, CLAIM(TREND, .down = down, .band = band)).verdict;
}

static void test_trend_looks_at_every_step(void **state)
{
	static const double rises[] = {84, 86, 91, 88, 92}, valley[] = {100, 84, 86, 91, 88, 92};
	static const double creeps[] = {100, 84, 85.5, 87, 88.6, 90.3};
	static const double falls[] = {100, 91, 88, 86, 84};

	(void)state;
	assert_int_equal(trend(rises, 5, 0.002, true, 0), VERDICT_CONTRADICTED);
	assert_int_equal(trend(valley, 6, 0.002, true, 0), VERDICT_CONTRADICTED);
	/* No step of it is significant, or goes back by more than 2 %, but together they do. */
	assert_int_equal(trend(valley, 6, 0.06, true, 0), VERDICT_UNDECIDED);
	assert_int_equal(trend(creeps, 6, 0.002, true, 0), VERDICT_CONTRADICTED);
	assert_int_equal(trend(falls, 5, 0.002, true, 0), VERDICT_HOLDS);
	assert_int_equal(trend(falls, 5, 0.002, false, 0), VERDICT_CONTRADICTED);
	/* 91, 88 goes back by 3.3 %. */
	assert_int_equal(trend(rises, 5, 0.0005, false, 0), VERDICT_CONTRADICTED);
	assert_int_equal(trend(rises, 5, 0.02, false, 0), VERDICT_UNDECIDED);
}

/* +2 % was "sensitive" and +8 % "hardly": now one number parts them. */
static void test_sensitive_or_hardly(void **state)
{
	static const double little[] = {100, 101, 102}, some[] = {100, 104, 108};
	static const double much[] = {100, 110, 120};
	const double *const all[] = {little, some, much};
	double limit = 0.10;

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		struct sweep *s = sheet(8, 3, 1);
		enum verdict hardly, sensitive = trend(all[i], 3, 0.001, false, limit);

		put_means(s, 0, all[i], 0.001);
		hardly = judged(s, CLAIM(CODE, .printed = 1 + limit, .code = claim_hardly_grows))
				 .verdict;
		assert_int_equal(sensitive, i == 2 ? VERDICT_HOLDS : VERDICT_CONTRADICTED);
		assert_int_equal(hardly, i == 2 ? VERDICT_CONTRADICTED : VERDICT_HOLDS);
	}
	/* A rise by 2 % is none. */
	assert_int_equal(trend(little, 3, 0.001, false, 0), VERDICT_CONTRADICTED);
	assert_int_equal(trend(some, 3, 0.001, false, 0), VERDICT_HOLDS);
}

/* --- the cause that is shown ---------------------------------------------------------- */

/* b grows 5 % more than a in every seed; c by far more, in the mean. */
static void test_flatter_shows_the_pair_that_fails(void **state)
{
	struct sweep *s = sheet(4, 2, 3);
	static const double wild[] = {0.2, 9, 0.5, 30};
	struct judgement j;

	(void)state;
	for (uint32_t i = 0; i < 4; i++) {
		put(s, 0, 0, i, 1);
		put(s, 1, 0, i, 2);
		put(s, 0, 1, i, 1);
		put(s, 1, 1, i, 2.1);
		put(s, 0, 2, i, 1);
		put(s, 1, 2, i, 2 * wild[i]);
	}
	j = judged(s, CLAIM(FLATTER, .b = "b|c"));
	assert_int_equal(j.verdict, VERDICT_UNDECIDED);
	assert_non_null(strstr(j.measured, "growth of c / growth of a"));
}

static void test_equal_shows_the_pair_that_fails(void **state)
{
	struct sweep *s = sheet(4, 1, 3);
	static const double wild[] = {0.8, 1.25, 0.7, 1.4};
	struct judgement j;

	(void)state;
	for (uint32_t i = 0; i < 4; i++) {
		put(s, 0, 0, i, 1);
		put(s, 0, 1, i, 1.13);
		put(s, 0, 2, i, wild[i]);
	}
	j = judged(s, CLAIM(EQUAL, .b = "b|c"));
	assert_int_equal(j.verdict, VERDICT_UNDECIDED);
	assert_non_null(strstr(j.measured, "c / a = "));
	assert_int_equal(j.comparisons, 2);
	/* The interval that is shown explains the verdict. */
	assert_true(j.interval.low < j.low && j.interval.high > j.high);
}

/* --- several comparisons --------------------------------------------------------------- */

/* Nothing differs: N points with noise of 20 %, judged again and again. */
static void count_nulls(size_t points, unsigned int count[VERDICTS])
{
	memset(count, 0, VERDICTS * sizeof(*count));
	for (uint64_t trial = 0; trial < 400; trial++) {
		struct sim_random random = sim_random_stream(trial, 7, (uint64_t)points);
		struct sweep *s = sheet(10, points, 2);

		for (size_t p = 0; p < points; p++)
			for (size_t k = 0; k < 2; k++)
				for (uint32_t i = 0; i < 10; i++) {
					double u = sim_random_uniform(&random) +
						   sim_random_uniform(&random) +
						   sim_random_uniform(&random) - 1.5;

					put(s, p, k, i, exp(0.4 * u));
				}
		count[judged(s, CLAIM(BELOW)).verdict]++;
	}
}

/* However many points an order has, chance contradicts it in 5 % of the cases at most. */
static void test_points_do_not_add_errors(void **state)
{
	static const size_t sizes[] = {1, 4, POINTS};

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		unsigned int count[VERDICTS];

		count_nulls(sizes[i], count);
		assert_true(count[VERDICT_HOLDS] <= 20);
		assert_true(count[VERDICT_CONTRADICTED] <= 26);
		assert_true(count[VERDICT_UNDECIDED] >= 354);
	}
}

/* "Up to": of 12 equal points some mean is large by chance; it counts only if it stays so. */
static void test_up_to_is_corrected(void **state)
{
	struct sweep *s = sheet(10, POINTS, 2);
	struct sim_random random = sim_random_stream(3, 7, 1);
	struct judgement j;

	(void)state;
	for (size_t p = 0; p < POINTS; p++)
		for (uint32_t i = 0; i < 10; i++) {
			put(s, p, 0, i, 1);
			put(s, p, 1, i, exp(0.6 * (sim_random_uniform(&random) - 0.5)));
		}
	j = judged(s, CLAIM(RATIO, .over = OVER_MAX, .by = RATIO_GAIN, .printed = 0.10,
			    .at_least = true));
	assert_int_equal(j.verdict, VERDICT_UNDECIDED);
	assert_int_equal(j.comparisons, POINTS);
	assert_true(j.interval.mean > 0.05 && j.interval.low < 0.10);
	/* One point of 12 that is above in every seed decides. */
	s = sheet(4, POINTS, 2);
	for (size_t p = 0; p < POINTS; p++)
		for (uint32_t i = 0; i < 4; i++) {
			put(s, p, 0, i, 1);
			put(s, p, 1, i, p == 5 ? 1.30 + 0.001 * i : 1.01 + 0.001 * i);
		}
	j = judged(s, CLAIM(RATIO, .over = OVER_MAX, .by = RATIO_GAIN, .printed = 0.30));
	assert_int_equal(j.verdict, VERDICT_HOLDS);
	assert_non_null(strstr(j.measured, "at 6 over b"));
}

/* --- more seeds ------------------------------------------------------------------------- */

/* SEEDS values with the same mean and nearly the same deviation. */
static struct judgement with_seeds(uint32_t seeds)
{
	struct sweep *s = sheet(seeds, 1, 2);
	static const double one[] = {1};
	static const double two[] = {1.2};

	put_means(s, 0, one, 0.2);
	put_means(s, 1, two, 0.2);
	return judged(s, CLAIM(BELOW));
}

static void test_more_seeds_decide(void **state)
{
	struct judgement j = with_seeds(8);
	uint32_t more = j.more_seeds;

	(void)state;
	assert_int_equal(j.verdict, VERDICT_UNDECIDED);
	assert_in_range(more, 4, 40);
	assert_int_equal(with_seeds((8 + more + 7) / 4 * 4).verdict, VERDICT_HOLDS);
	assert_int_equal(with_seeds((8 + more / 2) / 4 * 4).verdict, VERDICT_UNDECIDED);
}

/* A mean on the bound is never decided. */
static void test_no_seeds_decide(void **state)
{
	struct judgement j = judged(RATIOS(0.5, 2, 0.5, 2), CLAIM(BELOW));

	(void)state;
	assert_int_equal(j.verdict, VERDICT_UNDECIDED);
	assert_int_equal(j.more_seeds, VERDICT_SEEDS_MAX);
}

/* A stricter level takes the verdict back. */
static void test_level(void **state)
{
	struct sweep *s = RATIOS(1.4, 1.9, 2.2, 1.6);
	const struct sweep *all[] = {s};
	struct claim_context context = {s, all, 1, 0.05};
	struct judgement j;

	(void)state;
	claim_judge(&context, CLAIM(BELOW, .a = "a", .b = "b"), &j);
	assert_int_equal(j.verdict, VERDICT_HOLDS);
	context.alpha = 0.001;
	claim_judge(&context, CLAIM(BELOW, .a = "a", .b = "b"), &j);
	assert_int_equal(j.verdict, VERDICT_UNDECIDED);
	sweep_free(s);
}

/* --- statistics of means ------------------------------------------------------------------ */

static void test_jackknife(void **state)
{
	static const double x[] = {1, 4, 2, 9, 5};
	double without[5], sum = 21;
	struct interval of_mean = stats_mean(x, 5), i;

	(void)state;
	for (size_t k = 0; k < 5; k++)
		without[k] = (sum - x[k]) / 4;
	i = stats_jackknife(sum / 5, without, 5);
	assert_true(fabs(i.mean - of_mean.mean) < 1e-12 && fabs(i.low - of_mean.low) < 1e-9);
	i = stats_at(of_mean, 0.05);
	assert_true(fabs(i.low - of_mean.low) < 1e-12 && fabs(i.high - of_mean.high) < 1e-12);
	i = stats_at(of_mean, 0.01);
	assert_true(fabs(i.high - i.mean - 4.604095 * of_mean.sd / sqrt(5)) < 1e-5);
}

/* A correlation of means that single seeds could overturn does not hold. */
static void test_linear_has_an_interval(void **state)
{
	static const double line[] = {1, 2, 3, 4}, bent[] = {1, 3, 2, 4};
	struct sweep *s = sheet(8, 4, 1);

	(void)state;
	put_means(s, 0, line, 0.01);
	VERDICT(s, HOLDS, CODE, .printed = 0.97, .code = claim_linear);
	s = sheet(8, 4, 1);
	put_means(s, 0, bent, 0.01);
	VERDICT(s, CONTRADICTED, CODE, .printed = 0.97, .code = claim_linear);
	s = sheet(8, 4, 1);
	put_means(s, 0, line, 1.5);
	VERDICT(s, UNDECIDED, CODE, .printed = 0.97, .code = claim_linear);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_wide_interval_is_undecided),
		cmocka_unit_test(test_order_may_be_undecided),
		cmocka_unit_test(test_more_than_begins_at_the_number),
		cmocka_unit_test(test_exceeded),
		cmocka_unit_test(test_words),
		cmocka_unit_test(test_trend_looks_at_every_step),
		cmocka_unit_test(test_sensitive_or_hardly),
		cmocka_unit_test(test_flatter_shows_the_pair_that_fails),
		cmocka_unit_test(test_equal_shows_the_pair_that_fails),
		cmocka_unit_test(test_points_do_not_add_errors),
		cmocka_unit_test(test_up_to_is_corrected),
		cmocka_unit_test(test_more_seeds_decide),
		cmocka_unit_test(test_no_seeds_decide),
		cmocka_unit_test(test_level),
		cmocka_unit_test(test_jackknife),
		cmocka_unit_test(test_linear_has_an_interval),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
