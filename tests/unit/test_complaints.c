/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Repeated complaints: each is logged at once, then with growing intervals; the table is bounded.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/complaints.h"

#define S   1000000000ull
#define MIN (60 * S)

static struct complaints table;

static int table_empty(void **state)
{
	(void)state;
	memset(&table, 0, sizeof(table));
	return 0;
}

/* One that comes each second for a day is logged at 0, 1, 3, 7 ... minutes, then each hour. */
static void test_growing_interval(void **state)
{
	static const unsigned minutes[] = {0, 1, 3, 7, 15, 31, 63, 123, 183, 243};
	uint64_t more, all = 0, lines = 0;

	(void)state;
	for (uint64_t s = 0; s < 24 * 3600; s++) {
		char text[64];

		snprintf(text, sizeof(text), "made %llu s ago", (unsigned long long)s);
		if (!complaints_take(&table, "n2", text, (1000 + s) * S, &more))
			continue;
		if (lines < sizeof(minutes) / sizeof(*minutes))
			assert_int_equal(s, minutes[lines] * 60);
		lines++;
		all += more + 1;
		if (lines == 2)
			assert_int_equal(more, 59);
	}
	assert_int_equal(lines, 7 + (24 * 60 - 63 - 1) / 60);
	assert_true(all <= 24 * 3600 && all > 23 * 3600); /* all were counted until the last line */
	assert_int_equal(table.count, 1);
}

static void test_sender_and_cause(void **state)
{
	uint64_t more;

	(void)state;
	assert_true(complaints_take(&table, "n2", "another key", S, &more));
	assert_false(complaints_take(&table, "n2", "another key", 2 * S, &more));
	assert_true(complaints_take(&table, "n3", "another key", 2 * S, &more));
	assert_true(complaints_take(&table, "n2", "another cluster", 2 * S, &more));
	assert_int_equal(table.count, 3);
	/* n2 was heard meanwhile: what comes then is new, for n2 only. */
	complaints_settle(&table, "n2");
	assert_int_equal(table.count, 1);
	assert_true(complaints_take(&table, "n2", "another key", 3 * S, &more));
	assert_int_equal(more, 0);
	assert_false(complaints_take(&table, "n3", "another key", 3 * S, &more));
}

static void test_forgotten(void **state)
{
	uint64_t more;

	(void)state;
	assert_true(complaints_take(&table, "n2", "another key", S, &more));
	assert_false(complaints_take(&table, "n2", "another key", 2 * S, &more));
	/* None for an hour: it is new, and its interval is short again. */
	assert_true(complaints_take(&table, "n2", "another key", 2 * S + 60 * MIN, &more));
	assert_int_equal(more, 0);
	assert_true(complaints_take(&table, "n2", "another key", 2 * S + 61 * MIN, &more));
}

static void test_bounded(void **state)
{
	char sender[16];
	uint64_t more;

	(void)state;
	for (unsigned i = 0; i < 1000 * COMPLAINTS_MAX; i++) {
		snprintf(sender, sizeof(sender), "n%u", i);
		assert_true(
			complaints_take(&table, sender, "another key", (1 + i) * 1000ull, &more));
	}
	assert_int_equal(table.count, COMPLAINTS_MAX);
	assert_int_equal(table.replaced, 999 * COMPLAINTS_MAX);
	/* The last ones are there still. */
	assert_false(complaints_take(&table, sender, "another key", S, &more));
	/* One that goes on is not the one that gives way. */
	for (unsigned i = 0; i < 10 * COMPLAINTS_MAX; i++) {
		assert_false(complaints_take(&table, sender, "another key", S + 2 * i, &more));
		char other[16];

		snprintf(other, sizeof(other), "m%u", i);
		complaints_take(&table, other, "another key", S + 2 * i + 1, &more);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_growing_interval, table_empty),
		cmocka_unit_test_setup(test_sender_and_cause, table_empty),
		cmocka_unit_test_setup(test_forgotten, table_empty),
		cmocka_unit_test_setup(test_bounded, table_empty),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
