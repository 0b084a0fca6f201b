/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Means, spreads, lines and confidences, by hand-computed values. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "balancer/profile/estimate.h"

#define NEAR(a, b) assert_true(fabs((double)(a) - (double)(b)) < 1e-9 * (1 + fabs((double)(b))))

static const double unknown[16] = {-1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1};

static void test_mean(void **state)
{
	struct estimate e;

	(void)state;
	estimate_make((const double[]){0}, unknown, 0, -1, &e);
	assert_int_equal(e.runs, 0);
	NEAR(e.confidence, 0);
	estimate_make((const double[]){40}, unknown, 1, -1, &e);
	NEAR(e.value, 40);
	NEAR(e.spread, 0);
	NEAR(e.confidence, 0.5);
	/* w = 1, 0.7; m = (20 + 0.7 * 10) / 1.7 */
	estimate_make((const double[]){20, 10}, unknown, 2, -1, &e);
	NEAR(e.value, 27 / 1.7);
	/* W = 1.7, sum w^2 = 1.49, k = 2.89 / 1.49; the sum of squares is 100 * 0.7 / 1.7 */
	NEAR(e.spread, sqrt(70 / 1.7 / 1.7 * (2.89 / 1.49) / (2.89 / 1.49 - 1)));
	assert_int_equal(e.runs, 2);
	assert_false(e.line);
	/* The newest counts most. */
	estimate_make((const double[]){10, 20}, unknown, 2, -1, &e);
	NEAR(e.value, 24 / 1.7);
}

static void test_confidence(void **state)
{
	double same[16], other[16];
	struct estimate e, w;
	double before = 0;

	(void)state;
	for (size_t n = 1; n <= 16; n++) {
		for (size_t i = 0; i < n; i++) {
			same[i] = 7;
			other[i] = i % 2 ? 1 : 13;
		}
		estimate_make(same, unknown, n, -1, &e);
		NEAR(e.value, 7);
		NEAR(e.spread, 0);
		assert_true(e.confidence > before && e.confidence < 1);
		before = e.confidence;
		estimate_make(other, unknown, n, -1, &w);
		assert_true(n == 1 || w.confidence < e.confidence);
	}
	assert_string_equal(estimate_confidence_word(0), "none");
	assert_string_equal(estimate_confidence_word(0.5), "low");
	assert_string_equal(estimate_confidence_word(0.7), "fair");
	assert_string_equal(estimate_confidence_word(before), "high");
	/* A need of 0 in all runs is known, too. */
	estimate_make((const double[]){0, 0, 0}, unknown, 3, -1, &e);
	NEAR(e.value, 0);
	assert_true(e.confidence > 0.6);
}

/* need = 5 + 2 * size, told for a size that no run had. */
static void test_line(void **state)
{
	const double size[] = {10, 20, 40, 80}, need[] = {25, 45, 85, 165};
	struct estimate e;

	(void)state;
	estimate_make(need, size, 4, 100, &e);
	assert_true(e.line);
	NEAR(e.base, 5);
	NEAR(e.per_mb, 2);
	NEAR(e.value, 205);
	assert_int_equal(e.runs, 4);
	assert_true(e.spread < 1e-6);
	/* Of a run whose size is not known nothing is told by it, and none teaches the line. */
	estimate_make(need, size, 4, -1, &e);
	assert_false(e.line);
	estimate_make((const double[]){1e6, 25, 45, 85}, (const double[]){-1, 10, 20, 40}, 4, 100,
		      &e);
	assert_true(e.line);
	NEAR(e.value, 205);
	assert_int_equal(e.runs, 3);
	/* Far beyond what was seen, and below nothing. */
	estimate_make(need, size, 4, 1e9, &e);
	NEAR(e.value, 5 + 2 * 8000);
	estimate_make((const double[]){10, 30, 70}, (const double[]){10, 20, 40}, 3, 0, &e);
	assert_true(e.line);
	NEAR(e.base, -10);
	NEAR(e.value, 0);
}

/* What two sizes, or no connection, or less for more of input, say is not used. */
static void test_no_line(void **state)
{
	struct estimate e;

	(void)state;
	estimate_make((const double[]){25, 45, 45, 25}, (const double[]){10, 20, 20, 10}, 4, 30,
		      &e);
	assert_false(e.line);
	estimate_make((const double[]){7, 9, 8, 7}, (const double[]){10, 20, 40, 80}, 4, 30, &e);
	assert_false(e.line);
	estimate_make((const double[]){80, 40, 20, 10}, (const double[]){10, 20, 30, 40}, 4, 30,
		      &e);
	assert_false(e.line);
	/* Sizes that are all the same but one: leaving that one out leaves no line. */
	estimate_make((const double[]){5, 5, 50}, (const double[]){1, 1, 9}, 3, 30, &e);
	assert_false(e.line);
	/* Two of three runs say nothing against chance: the middle one is off. */
	estimate_make((const double[]){10, 90, 30}, (const double[]){10, 20, 30}, 3, 25, &e);
	assert_false(e.line);
}

/* Noise of a tenth leaves the line within a tenth of the truth. */
static void test_noise(void **state)
{
	const double off[] = {1.1, 0.9, 1.05, 0.95, 1, 1.08, 0.93, 1.02};
	double size[8], need[8];
	struct estimate e;

	(void)state;
	for (size_t i = 0; i < 8; i++) {
		size[i] = 50.0 * (double)(i + 1);
		need[i] = (100 + 3 * size[i]) * off[i];
	}
	estimate_make(need, size, 8, 300, &e);
	assert_true(e.line);
	assert_true(fabs(e.value - 1000) < 100);
	assert_true(e.spread > 10 && e.spread < 200);
	assert_true(e.confidence > 0.8);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_mean),  cmocka_unit_test(test_confidence),
		cmocka_unit_test(test_line),  cmocka_unit_test(test_no_line),
		cmocka_unit_test(test_noise),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
