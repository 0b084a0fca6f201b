/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Axes of figures: which scale, which range, which labels. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <string.h>

#include "sim/report/axis.h"

/* Fits an axis to N series of three values each. */
static struct axis fitted(const double (*value)[3], size_t n, bool log)
{
	struct axis_values v;
	struct axis a;

	axis_values_init(&v);
	for (size_t k = 0; k < n; k++)
		axis_values_add(&v, value[k], NULL, 3);
	axis_fit(&a, &v, log);
	return a;
}

/* All values lie inside, and at least two labels do. */
static void assert_shows(const struct axis *a, double least, double most)
{
	assert_true(axis_at(a, least) >= 0 && axis_at(a, most) <= 1);
	assert_in_range(a->ntics, 2, AXIS_TICS);
	for (size_t i = 0; i < a->ntics; i++) {
		assert_true(axis_at(a, a->tic[i]) >= -1e-6 && axis_at(a, a->tic[i]) <= 1 + 1e-6);
		assert_true(!i || a->tic[i] > a->tic[i - 1]);
	}
}

/* ACM-3: without balancing slowdown is hundreds of times that of the policies. */
static void test_hidden_lines_get_log(void **state)
{
	static const double far[][3] = {{900, 1000, 1100}, {1.8, 1.9, 2.0}, {1.5, 1.6, 1.6}};
	static const double near[][3] = {{9, 10, 11}, {2, 3, 4}};
	/* Most of a line lies at the bottom although its end does not. */
	static const double late[][3] = {{900, 1000, 1100}, {1, 2, 500}};
	struct axis a = fitted(far, 3, false);

	(void)state;
	assert_true(a.log);
	assert_shows(&a, 1.5, 1100);
	/* The two low lines are as far apart as a reader can see. */
	assert_true(axis_at(&a, 1.9) - axis_at(&a, 1.6) > 0.02);
	a = fitted(near, 2, false);
	assert_false(a.log);
	assert_true(a.low <= 0);
	assert_shows(&a, 2, 11);
	a = fitted(late, 2, false);
	assert_true(a.log);
}

/* COM-10a: values within a factor of two on a logarithmic axis had one label. */
static void test_narrow_values_get_labels(void **state)
{
	static const double narrow[][3] = {{1.7, 2.2, 2.6}, {1.5, 1.6, 1.7}};
	struct axis a = fitted(narrow, 2, true);

	(void)state;
	assert_false(a.log);
	assert_shows(&a, 1.5, 2.6);
}

static void test_every_range_has_labels(void **state)
{
	(void)state;
	for (double low = 1e-6; low < 1e6; low *= 3.7) {
		for (double factor = 1; factor < 1e12; factor *= 1.7) {
			const double value[][3] = {{low, low, low * factor}};
			struct axis a = fitted(value, 1, true);

			assert_shows(&a, low, low * factor);
			a = fitted(value, 1, false);
			assert_shows(&a, low, low * factor);
		}
	}
}

/* A bar that ends at the lower end of its axis cannot be seen. */
static void test_least_value_is_visible(void **state)
{
	static const double value[][3] = {{1, 1, 1}, {5000, 6000, 7000}};
	struct axis a = fitted(value, 2, true);

	(void)state;
	assert_true(a.log);
	assert_true(axis_at(&a, 1) > 0.02);
}

static void test_zero_negative_nothing(void **state)
{
	static const double zero[][3] = {{0, 5, 5000}, {0, 0, 1}}, less[][3] = {{-3, 0, 4}};
	static const double none[][3] = {{NAN, NAN, NAN}}, one[][3] = {{0, 0, 0}};
	struct axis a = fitted(zero, 2, true);

	(void)state;
	assert_false(a.log); /* no logarithm of 0 */
	assert_shows(&a, 0, 5000);
	a = fitted(less, 1, true);
	assert_false(a.log);
	assert_shows(&a, -3, 4);
	a = fitted(none, 1, true);
	assert_shows(&a, 0, 1);
	a = fitted(one, 1, false);
	assert_shows(&a, 0, 0);
}

/* An interval may leave the figure, a value may not. */
static void test_wide_intervals_do_not_squeeze(void **state)
{
	static const double value[] = {10, 12, 11}, high[] = {4000, 13, NAN};
	struct axis_values v;
	struct axis a;

	(void)state;
	axis_values_init(&v);
	axis_values_add(&v, value, high, 3);
	axis_fit(&a, &v, false);
	assert_false(a.log);
	assert_shows(&a, 10, 20);
	assert_true(a.high < 40);
}

static void test_between(void **state)
{
	struct axis a;

	(void)state;
	axis_fit_between(&a, 160.2, 166, 4);
	assert_shows(&a, 160.2, 166);
	assert_true(a.low >= 150 && a.high <= 175 && a.ntics <= 6);
	axis_fit_between(&a, INFINITY, -INFINITY, 4);
	assert_shows(&a, 0, 1);
}

/* COM-4: 2 to 32 tasks, of which the first three stood on each other. */
static void test_points(void **state)
{
	static const double tasks[] = {2, 4, 8, 16, 32}, rates[] = {0.45, 0.5, 0.6, 0.7, 0.8};
	static const double one[] = {3};
	struct axis a;

	(void)state;
	axis_fit_points(&a, tasks, 5);
	assert_true(a.log);
	for (int i = 1; i < 5; i++)
		assert_true(axis_at(&a, tasks[i]) - axis_at(&a, tasks[i - 1]) > 0.2);
	assert_true(axis_at(&a, 2) > 0.01 && axis_at(&a, 32) < 0.99);
	assert_true(fabs(axis_value(&a, axis_at(&a, 8)) - 8) < 1e-9);
	axis_fit_points(&a, rates, 5);
	assert_false(a.log);
	assert_true(axis_at(&a, 0.45) > 0.01 && axis_at(&a, 0.8) < 0.99);
	assert_true(fabs(axis_value(&a, axis_at(&a, 0.6)) - 0.6) < 1e-9);
	axis_fit_points(&a, one, 1);
	assert_true(a.low < 3 && a.high > 3);
}

static void test_labels_fit(void **state)
{
	static const char *const label[] = {"60", "110", "160", "210", "260", "310"};
	static const double at[] = {0.04, 0.22, 0.4, 0.6, 0.78, 0.96};
	double end = -INFINITY;
	size_t shown = 0;
	bool fits[6];

	(void)state;
	axis_labels_fit(at, label, 6, 500, fits);
	for (int i = 0; i < 6; i++)
		assert_true(fits[i]);
	axis_labels_fit(at, label, 6, 120, fits);
	assert_true(fits[0] && fits[5]);
	for (int i = 0; i < 6; i++) {
		if (!fits[i])
			continue;
		shown++;
		assert_true(at[i] * 120 - axis_text_width(label[i]) / 2 > end);
		end = at[i] * 120 + axis_text_width(label[i]) / 2;
	}
	assert_in_range(shown, 2, 4);
	axis_labels_fit(at, label, 0, 120, fits);
}

static void test_label_text(void **state)
{
	static const struct {
		double value;
		const char *text;
	} labels[] = {{0, "0"},		{0.5, "0.5"},	{2000, "2000"}, {100000, "1e5"},
		      {2.5e6, "2.5e6"}, {1e-4, "1e-4"}, {-20, "-20"},	{0.001, "0.001"}};

	(void)state;
	for (size_t i = 0; i < sizeof(labels) / sizeof(labels[0]); i++) {
		char text[AXIS_LABEL];

		axis_label(labels[i].value, text);
		assert_string_equal(text, labels[i].text);
	}
	assert_true(axis_text_width("µs") == axis_text_width("us"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_hidden_lines_get_log),
		cmocka_unit_test(test_narrow_values_get_labels),
		cmocka_unit_test(test_every_range_has_labels),
		cmocka_unit_test(test_least_value_is_visible),
		cmocka_unit_test(test_zero_negative_nothing),
		cmocka_unit_test(test_wide_intervals_do_not_squeeze),
		cmocka_unit_test(test_between),
		cmocka_unit_test(test_points),
		cmocka_unit_test(test_labels_fit),
		cmocka_unit_test(test_label_text),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
