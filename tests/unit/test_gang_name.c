// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "user/gang_name.h"

static void test_parts(void **state)
{
	char name[SPEC_JOB_MAX], gang[SPEC_JOB_MAX];
	uint32_t number;

	(void)state;
	assert_int_equal(gang_part_name("n1-4f2a-57", 3, name), 0);
	assert_string_equal(name, "n1-4f2a-57.3");
	assert_true(gang_part_of(name, gang, &number));
	assert_string_equal(gang, "n1-4f2a-57");
	assert_int_equal(number, 3);
	assert_true(gang_part_of("a.b-c.1-4f2a-57.1023", gang, &number));
	assert_string_equal(gang, "a.b-c.1-4f2a-57");
	assert_int_equal(number, 1023);
	assert_true(gang_part_of("n1-4f2a-57.0", NULL, NULL));
}

static void test_no_parts(void **state)
{
	static const char *const names[] = {"n1-4f2a-57",
					    "n.1-4f2a-57",
					    "n1.3",
					    "n1-4f2a-57.",
					    "n1-4f2a-57.x",
					    "n1-4f2a-57.03",
					    "n1-4f2a-57.1024",
					    "n1-4f2a-57.3.4",
					    "n1-4f2a-.3",
					    "n1-4f2a-5x.3",
					    ""};
	char longest[SPEC_JOB_MAX + 8], name[SPEC_JOB_MAX];

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		assert_false(gang_part_of(names[i], NULL, NULL));
	memset(longest, '1', sizeof(longest));
	memcpy(longest, "n-", 2);
	longest[SPEC_JOB_MAX - 1] = '\0';
	assert_int_not_equal(gang_part_name(longest, 3, name), 0);
	memcpy(longest + SPEC_JOB_MAX - 1, ".3", 3);
	assert_false(gang_part_of(longest, NULL, NULL));
}

static void test_has(void **state)
{
	(void)state;
	assert_true(gang_has("n1-4f2a-5", "n1-4f2a-5"));
	assert_true(gang_has("n1-4f2a-5", "n1-4f2a-5.12"));
	assert_false(gang_has("n1-4f2a-5", "n1-4f2a-57"));
	assert_false(gang_has("n1-4f2a-5", "n1-4f2a-57.1"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_parts),
		cmocka_unit_test(test_no_parts),
		cmocka_unit_test(test_has),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
