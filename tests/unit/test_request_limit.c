/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* How often each user may ask: the bucket, its burst, its table. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "agent/front/request_limit.h"

#define SECOND 1000000000ull

static unsigned taken(struct request_limit *rates, uid_t uid, uint32_t per_s, uint64_t now_ns,
		      unsigned n)
{
	unsigned yes = 0;

	for (unsigned i = 0; i < n; i++)
		yes += request_limit_take(rates, uid, per_s, now_ns);
	return yes;
}

static void test_burst_and_refill(void **state)
{
	struct request_limit rates = {0};

	(void)state;
	assert_int_equal(taken(&rates, 1000, 10, SECOND, 100), 10);
	assert_int_equal(taken(&rates, 1000, 10, SECOND, 100), 0);
	assert_int_equal(taken(&rates, 1000, 10, SECOND + SECOND / 2, 100), 5);
	/* However long the user was silent, there is no more than a second's worth. */
	assert_int_equal(taken(&rates, 1000, 10, 3600 * SECOND, 100), 10);
}

static void test_steady_rate_passes(void **state)
{
	struct request_limit rates = {0};
	unsigned yes = 0;

	(void)state;
	for (uint64_t i = 0; i < 1000; i++) /* 10 a second, 10 allowed */
		yes += request_limit_take(&rates, 1000, 10, SECOND + i * SECOND / 10);
	assert_int_equal(yes, 1000);
	yes = 0;
	for (uint64_t i = 0; i < 1000;
	     i++) /* 20 a second for 50 s: half of them are allowed, and the burst */
		yes += request_limit_take(&rates, 1001, 10, SECOND + i * SECOND / 20);
	assert_in_range(yes, 505, 515);
}

static void test_users_are_apart(void **state)
{
	struct request_limit rates = {0};

	(void)state;
	assert_int_equal(taken(&rates, 1000, 3, SECOND, 9), 3);
	assert_int_equal(taken(&rates, 1001, 3, SECOND, 9), 3);
	assert_int_equal(taken(&rates, 1000, 3, SECOND, 9), 0);
}

#define MS (SECOND / 1000)

/* A user gets a quarter of each second, whatever the requests are. */
static void test_long_answers(void **state)
{
	struct request_limit rates = {0};
	unsigned yes = 0;

	(void)state;
	for (uint64_t i = 0; i < 10000; i++) { /* for 10 s, each request of the user takes 21 ms */
		if (!request_limit_take(&rates, 1000, 5000, SECOND + i * MS))
			continue;
		request_limit_charge(&rates, 1000, 5000, 21 * MS, SECOND + i * MS);
		yes++;
	}
	assert_in_range(yes, 125, 150); /* 12 a second are allowed, and the burst */
	/* Quick requests cost nothing, nor do another user's, nor root's. */
	yes = 0;
	for (uint64_t i = 0; i < 5000; i++) {
		yes += request_limit_take(&rates, 1001, 5000, SECOND + i * MS / 5);
		request_limit_charge(&rates, 1001, 5000, MS, SECOND + i * MS / 5);
		request_limit_charge(&rates, 0, 5000, SECOND, SECOND);
	}
	assert_int_equal(yes, 5000);
	assert_true(request_limit_take(&rates, 0, 5000, SECOND));
	request_limit_charge(&rates, 1002, 0, SECOND, SECOND);
	assert_true(request_limit_take(&rates, 1002, 0, SECOND));
	/* One answer that took very long is forgotten after at most two seconds. */
	request_limit_charge(&rates, 1003, 5000, 60 * SECOND, 20 * SECOND);
	assert_false(request_limit_take(&rates, 1003, 5000, 20 * SECOND + 900 * MS));
	assert_true(request_limit_take(&rates, 1003, 5000, 21 * SECOND + 100 * MS));
}

static void test_no_bound(void **state)
{
	struct request_limit rates = {0};

	(void)state;
	assert_int_equal(taken(&rates, 1000, 0, SECOND, 100000), 100000);
}

static void test_full_table_forgets_the_oldest(void **state)
{
	struct request_limit rates = {0};

	(void)state;
	assert_int_equal(taken(&rates, 5, 2, SECOND, 9), 2);
	for (uid_t uid = 1000; uid < 1000 + REQUEST_LIMIT_USERS - 1; uid++)
		assert_int_equal(taken(&rates, uid, 2, SECOND + uid, 9), 2);
	assert_int_equal(taken(&rates, 5, 2, SECOND + 20000, 9), 0); /* all users are still known */
	assert_int_equal(taken(&rates, 9999, 2, SECOND + 30000, 9), 2);
	assert_int_equal(taken(&rates, 5, 2, SECOND + 40000, 9),
			 0); /* this user asked lately, so the entry is kept */
	assert_int_equal(taken(&rates, 1000, 2, SECOND + 50000, 9),
			 2); /* this user's entry was replaced */
}

static void test_a_clock_that_stands(void **state)
{
	struct request_limit rates = {0};

	(void)state;
	assert_int_equal(taken(&rates, 1, 2, SECOND, 9), 2);
	assert_int_equal(taken(&rates, 1, 2, SECOND / 2, 9), 0);
	/* When the configured bound becomes lower, saved requests are cut. */
	assert_int_equal(taken(&rates, 2, 100, SECOND, 1), 1);
	assert_int_equal(taken(&rates, 2, 4, SECOND, 9), 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_burst_and_refill),
		cmocka_unit_test(test_steady_rate_passes),
		cmocka_unit_test(test_users_are_apart),
		cmocka_unit_test(test_long_answers),
		cmocka_unit_test(test_no_bound),
		cmocka_unit_test(test_full_table_forgets_the_oldest),
		cmocka_unit_test(test_a_clock_that_stands),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
