/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Users and groups that every Debian has, and some that do not exist. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "user/account.h"

#define NOBODY_HAS 4242424242u

static void test_users(void **state)
{
	struct account a;

	(void)state;
	assert_int_equal(account_find(0, &a), 0);
	assert_string_equal(a.name, "root");
	assert_int_equal(a.gid, 0);
	assert_true(account_has_group(&a, 0));
	assert_false(account_has_group(&a, NOBODY_HAS));
	account_free(&a);
	assert_null(a.name);
	assert_int_equal(account_find(1, &a), 0);
	assert_string_equal(a.name, "daemon");
	assert_true(account_has_group(&a, a.gid));
	account_free(&a);
	assert_int_equal(account_find(NOBODY_HAS, &a), -ENOENT);
	assert_null(a.name);
	assert_null(a.groups);
}

static void test_groups(void **state)
{
	struct account_group group;

	(void)state;
	assert_int_equal(account_group("daemon", &group), 0);
	assert_int_equal(group.gid, 1);
	account_group_free(&group);
	assert_int_equal(account_group("no-such-group", &group), -ENOENT);
	assert_int_equal(account_group("", &group), -ENOENT);
	assert_null(group.members);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_users),
		cmocka_unit_test(test_groups),
	};

	return cmocka_run_group_tests_name("account", tests, NULL, NULL);
}
