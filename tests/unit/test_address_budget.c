/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* What addresses pay for messages whose seals fail, and when they have it back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "agent/net/address_budget.h"

#define NOW  (1000 * CLOCK_NS_PER_S)
#define UNIT ADDRESS_BUDGET_UNIT_NS

static struct address_budget budget;

static int setup(void **state)
{
	(void)state;
	memset(&budget, 0, sizeof(budget));
	return 0;
}

static const uint8_t *key(unsigned number)
{
	static uint8_t out[ADDRESS_LIMIT_KEY];

	memset(out, 0, sizeof(out));
	memcpy(out, &number, sizeof(number));
	return out;
}

static void pay(unsigned number, unsigned units, uint64_t now)
{
	for (unsigned i = 0; i < units; i++)
		address_budget_pay(&budget, key(number), UNIT, now);
}

static void test_spent_and_back(void **state)
{
	(void)state;
	assert_true(address_budget_has(&budget, key(1), NOW));
	pay(1, ADDRESS_BUDGET_FREE - 1, NOW);
	assert_true(address_budget_has(&budget, key(1), NOW));
	pay(1, 1, NOW);
	assert_false(address_budget_has(&budget, key(1), NOW));
	assert_true(address_budget_has(&budget, key(2), NOW));
	assert_int_equal(address_budget_count(&budget, NOW), 1);
	/* One a second comes back, and can be spent. */
	assert_false(address_budget_has(&budget, key(1), NOW + UNIT - 1));
	assert_true(address_budget_has(&budget, key(1), NOW + UNIT));
	pay(1, 1, NOW + UNIT);
	assert_false(address_budget_has(&budget, key(1), NOW + UNIT));
	/* Then all of it. */
	assert_int_equal(address_budget_count(&budget, NOW + 33 * UNIT - 1), 1);
	assert_int_equal(address_budget_count(&budget, NOW + 33 * UNIT), 0);
	pay(1, ADDRESS_BUDGET_FREE - 1, NOW + 40 * UNIT);
	assert_true(address_budget_has(&budget, key(1), NOW + 40 * UNIT));
}

/* However much junk came, an address is let in a second after the last of it. */
static void test_bounded_debt(void **state)
{
	(void)state;
	pay(1, 100000, NOW);
	assert_false(address_budget_has(&budget, key(1), NOW));
	assert_true(address_budget_has(&budget, key(1), NOW + UNIT));
}

/* A machine that sends junk, and honest nodes behind the same address: these earn their way in. */
static void test_earned(void **state)
{
	unsigned let_in = 0;

	(void)state;
	address_budget_earn(&budget, key(1), NOW); /* nothing is saved up */
	pay(1, ADDRESS_BUDGET_FREE, NOW);
	assert_false(address_budget_has(&budget, key(1), NOW));
	address_budget_earn(&budget, key(1), NOW);
	assert_true(address_budget_has(&budget, key(1), NOW));
	/* Ten sealed messages a second, and a hundred pieces of junk, in turn. */
	for (unsigned i = 0; i < 1000; i++) {
		uint64_t now = NOW + i * UNIT / 100;

		if (i % 10 == 0) {
			address_budget_earn(&budget, key(1), now);
			let_in += address_budget_has(&budget, key(1), now);
		}
		pay(1, 1, now);
	}
	assert_int_equal(let_in, 100);
	for (unsigned i = 0; i < ADDRESS_BUDGET_FREE; i++)
		address_budget_earn(&budget, key(1), NOW + 10 * UNIT);
	assert_int_equal(address_budget_count(&budget, NOW + 10 * UNIT), 0);
	address_budget_earn(&budget, key(2), NOW);
	assert_int_equal(address_budget_count(&budget, NOW), 1);
}

/* A node whose clock differs sends a few refused bulletins a second: it goes on being let in. */
static void test_stale(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 600 * 8; i++) {
		uint64_t now = NOW + i * UNIT / 8;

		address_budget_pay(&budget, key(1), ADDRESS_BUDGET_STALE_NS, now);
		assert_true(address_budget_has(&budget, key(1), now));
	}
	for (unsigned i = 0; i < ADDRESS_BUDGET_FREE * 8; i++)
		address_budget_pay(&budget, key(1), ADDRESS_BUDGET_STALE_NS, NOW + 600 * UNIT);
	assert_false(address_budget_has(&budget, key(1), NOW + 600 * UNIT));
}

/* When all places are taken, the address with least to pay loses its place. */
static void test_full(void **state)
{
	(void)state;
	for (unsigned i = 0; i < ADDRESS_BUDGETS_MAX; i++)
		pay(i, i == 7 ? 1 : 2, NOW);
	assert_int_equal(address_budget_count(&budget, NOW), ADDRESS_BUDGETS_MAX);
	pay(1000, ADDRESS_BUDGET_FREE, NOW);
	assert_int_equal(address_budget_count(&budget, NOW), ADDRESS_BUDGETS_MAX);
	assert_false(address_budget_has(&budget, key(1000), NOW));
	/* The 7th begins anew, in a place of another; those with more to pay keep theirs. */
	pay(7, ADDRESS_BUDGET_FREE - 1, NOW);
	assert_true(address_budget_has(&budget, key(7), NOW));
	assert_false(address_budget_has(&budget, key(1000), NOW));
	/* Places come back with time. */
	assert_int_equal(address_budget_count(&budget, NOW + 2 * UNIT), 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_spent_and_back, setup),
		cmocka_unit_test_setup(test_bounded_debt, setup),
		cmocka_unit_test_setup(test_earned, setup),
		cmocka_unit_test_setup(test_stale, setup),
		cmocka_unit_test_setup(test_full, setup),
	};

	return cmocka_run_group_tests_name("address_budget", tests, NULL, NULL);
}
