/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* A frequent message is logged at once, and then once in each interval. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "agent/base/seldom.h"

static void test_once_in_an_interval(void **state)
{
	uint64_t said = 0, other = 0;
	unsigned lines = 0;

	(void)state;
	assert_true(seldom_again(&said, 5, 10)); /* the first one, however early */
	assert_int_equal(said, 5);
	assert_false(seldom_again(&said, 5, 10));
	assert_false(seldom_again(&said, 14, 10));
	assert_int_equal(said, 5); /* what is not logged puts nothing off */
	assert_true(seldom_again(&said, 15, 10));
	assert_true(seldom_again(&said, 1000, 10));
	assert_true(seldom_again(&other, 1000, 10)); /* each message has its own time */
	for (uint64_t now = 1; now <= 1000; now++) {
		if (now == 1)
			said = 0;
		lines += seldom_again(&said, now, 100);
	}
	assert_int_equal(lines, 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_once_in_an_interval)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
