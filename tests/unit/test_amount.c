/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Amounts in three digits, in the unit that suits, without exponents. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "balancer/view/amount.h"

static void test_units(void **state)
{
	static const struct {
		double mb;
		const char *text;
	} rows[] = {
		{0, "0 MB"},	     {-1, "0 MB"},	   {1e-9, "0 MB"},
		{1e-6, "1 B"},	     {0.0009, "900 B"},	   {0.0009994, "999 B"},
		{0.0009996, "1 KB"}, {0.004096, "4.1 KB"}, {0.9995, "1 MB"},
		{1, "1 MB"},	     {41.943, "41.9 MB"},  {999.4, "999 MB"},
		{999.997, "1 GB"},   {4000, "4 GB"},	   {24105.6, "24.1 GB"},
		{5e6, "5 TB"},	     {999.4e6, "999 TB"},  {5e10, "50000 TB"},
	};
	char text[32];

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		amount_of_mb(text, sizeof(text), rows[i].mb);
		assert_string_equal(text, rows[i].text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_units)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
