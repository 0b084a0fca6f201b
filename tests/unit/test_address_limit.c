/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* How many places each address has, and which one is lost when all are taken. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <arpa/inet.h>
#include <cmocka.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include "agent/base/address_limit.h"

static int enter(struct address_limit *sources, const char *text)
{
	struct sockaddr_in6 six = {.sin6_family = AF_INET6};
	struct sockaddr_in four = {.sin_family = AF_INET};

	if (inet_pton(AF_INET, text, &four.sin_addr) == 1)
		return address_limit_enter(sources, (struct sockaddr *)&four);
	assert_int_equal(inet_pton(AF_INET6, text, &six.sin6_addr), 1);
	return address_limit_enter(sources, (struct sockaddr *)&six);
}

static void test_most(void **state)
{
	static struct address_limit sources;
	int one, many;

	(void)state;
	assert_int_equal(address_limit_most(&sources), -1);
	one = enter(&sources, "10.0.0.1");
	assert_int_equal(address_limit_most(&sources), one);
	many = enter(&sources, "10.0.0.2");
	assert_int_not_equal(many, one);
	assert_int_equal(enter(&sources, "10.0.0.2"), many);
	assert_int_equal(address_limit_most(&sources), many);
	address_limit_leave(&sources, many);
	address_limit_leave(&sources, many);
	assert_int_equal(address_limit_most(&sources), one);
	address_limit_leave(&sources, one);
	assert_int_equal(address_limit_most(&sources), -1);
}

static void test_addresses(void **state)
{
	static struct address_limit sources;
	int four, six;

	(void)state;
	four = enter(&sources, "10.0.0.1");
	assert_int_equal(enter(&sources, "::ffff:10.0.0.1"), four);
	six = enter(&sources, "2001:db8:0:1::1");
	assert_int_equal(enter(&sources, "2001:db8:0:1:ffff::2"), six);
	assert_int_not_equal(enter(&sources, "2001:db8:0:2::1"), six);
}

static void test_full(void **state)
{
	static struct address_limit sources;
	char text[32];

	(void)state;
	for (int i = 0; i < ADDRESS_LIMIT_MAX; i++) {
		snprintf(text, sizeof(text), "10.1.%d.%d", i / 250, i % 250);
		assert_true(enter(&sources, text) >= 0);
	}
	assert_int_equal(enter(&sources, "10.2.0.0"), -1);
	assert_true(enter(&sources, "10.1.0.7") >= 0);
	address_limit_leave(&sources, 3);
	assert_int_equal(enter(&sources, "10.2.0.0"), 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_most),
		cmocka_unit_test(test_addresses),
		cmocka_unit_test(test_full),
	};

	return cmocka_run_group_tests_name("sources", tests, NULL, NULL);
}
