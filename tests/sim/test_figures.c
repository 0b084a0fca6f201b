/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* How figures are drawn: series can be told apart, values are inside; and the page's headlines. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/experiments/headlines.h"
#include "sim/report/html.h"
#include "sim/report/svg.h"

#define POINTS 4

/* A figure of the policies NAMES; all values of series K are VALUE[K]. */
static struct report make(const char *const *names, const double *value, size_t n)
{
	struct sweep *s = sweep_new("X", "a title", "x");
	struct report r = {.sweep = s, .plot = PLOT_LINES, .y = M_SLOWDOWN};

	assert_non_null(s);
	s->seeds = 2;
	for (size_t p = 0; p < POINTS; p++)
		assert_int_equal(sweep_add_point(s, "p", (double)p, NULL, NULL), 0);
	for (size_t k = 0; k < n; k++)
		assert_int_equal(sweep_add_series(s, names[k], names[k], NULL, NULL), 0);
	assert_int_equal(sweep_results(s), 0);
	for (size_t p = 0; p < POINTS; p++)
		for (size_t k = 0; k < n; k++)
			for (uint32_t i = 0; i < 2; i++) {
				sweep_result(s, p, k, i)->done = true;
				for (unsigned int m = 0; m < M_COUNT; m++)
					sweep_result(s, p, k, i)->values[m] =
						value ? value[k] * (1 + 0.01 * (double)p) : NAN;
			}
	return r;
}

static const char *const policies[] = {"nlb",	  "cpu-re", "mem-re", "io-re",	"iocm-re-hom",
				       "iocm-pm", "wal",    "wal-fc", "cpu-pm", "io-pm"};
#define ALL (sizeof(policies) / sizeof(policies[0]))

static void test_marks_differ(void **state)
{
	struct report r = make(policies, NULL, ALL);
	struct look look[ALL];

	(void)state;
	svg_looks(&r, look);
	for (size_t a = 0; a < ALL; a++)
		for (size_t b = 0; b < a; b++)
			if (look[a].mark == look[b].mark)
				fail_msg("%s and %s have the same mark", policies[a], policies[b]);
	sweep_free(r.sweep);
}

/* COM-4c: three lines on each other were one. */
static void test_lines_on_another(void **state)
{
	static const double value[] = {3, 3.001, 3, 1};
	struct report r = make(policies, value, 4);
	struct look look[4];
	struct axis y;

	(void)state;
	svg_looks(&r, look);
	svg_y_fit(&r, 1, &y);
	svg_tell_apart(&r, &y, look);
	for (int a = 0; a < 3; a++)
		for (int b = 0; b < a; b++)
			assert_int_not_equal(look[a].dash, look[b].dash);
	assert_int_equal(look[3].dash, 1); /* it is apart, and solid */
	sweep_free(r.sweep);
}

/* Whatever the values: all of them are inside. */
static void test_values_are_inside(void **state)
{
	uint64_t random = 12345;

	(void)state;
	for (int run = 0; run < 2000; run++) {
		double value[4];
		struct report r;
		struct axis y;

		for (int k = 0; k < 4; k++) {
			random = random * 6364136223846793005ULL + 1442695040888963407ULL;
			value[k] = exp((double)(random >> 33) / (1u << 31) * 20 - 5);
		}
		r = make(policies, value, 4);
		r.log_y = run % 2;
		svg_y_fit(&r, 1, &y);
		for (size_t k = 0; k < 4; k++) {
			for (size_t p = 0; p < POINTS; p++) {
				double at = axis_at(&y, sweep_mean(r.sweep, p, k, r.y).mean);

				if (!(at >= 0 && at <= 1))
					fail_msg("run %d: a value at %g", run, at);
			}
		}
		sweep_free(r.sweep);
	}
}

/* One sixth of these lines cannot be read on a linear axis. */
static void test_scale_by_values(void **state)
{
	static const double far[] = {900, 2, 1.5, 1.4}, near[] = {9, 8, 7, 6};
	struct report r = make(policies, far, 4);
	struct axis y;

	(void)state;
	svg_y_fit(&r, 1, &y);
	assert_true(y.log);
	sweep_free(r.sweep);
	r = make(policies, near, 4);
	svg_y_fit(&r, 1, &y);
	assert_false(y.log);
	sweep_free(r.sweep);
	r = make(policies, NULL, 4);
	svg_y_fit(&r, 1, &y);
	assert_true(y.ntics >= 2);
	sweep_free(r.sweep);
}

static char *written(void (*write)(FILE *, const char *), const char *text)
{
	char *out = NULL;
	size_t size;
	FILE *f = open_memstream(&out, &size);

	assert_non_null(f);
	write(f, text);
	fclose(f);
	return out;
}

static void test_escaped(void **state)
{
	char *out = written(html_escaped, "a<b>&\"c\" \x01\n");

	(void)state;
	assert_string_equal(out, "a&lt;b&gt;&amp;&quot;c&quot;   ");
	free(out);
	/* The hash of the empty text, as in every description of SHA-256. */
	out = written(html_allowed, "");
	assert_string_equal(out, "'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU='");
	free(out);
}

/* A headline whose claim was renamed would silently leave the page. */
static void test_headlines_are_claims(void **state)
{
	const struct headline *h;
	size_t n = 0;

	(void)state;
	for (; (h = headline_at(n)); n++) {
		const struct experiment *e = experiment_find(h->id);

		assert_non_null(e);
		if (headline_find(h, e) < 0)
			fail_msg("%s has no claim '%s'", h->id, h->claim);
		assert_true(h->says && *h->says);
	}
	assert_in_range(n, 10, 30);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_marks_differ),
		cmocka_unit_test(test_lines_on_another),
		cmocka_unit_test(test_values_are_inside),
		cmocka_unit_test(test_scale_by_values),
		cmocka_unit_test(test_escaped),
		cmocka_unit_test(test_headlines_are_claims),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
