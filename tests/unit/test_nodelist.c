/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "balancer/run/nodelist.h"

/* Compares the names of TEXT, separated by blanks. */
static void assert_names(const char *text, const char *expected)
{
	char joined[4096] = "";
	struct iocom_err err;
	struct nodelist list;

	assert_int_equal(nodelist_parse(text, &list, &err), 0);
	for (size_t i = 0; i < list.count; i++) {
		if (i)
			strcat(joined, " ");
		strcat(joined, list.names[i]);
	}
	assert_string_equal(joined, expected);
	nodelist_fini(&list);
}

static void test_lists(void **state)
{
	(void)state;
	assert_names("n1", "n1");
	assert_names("n2,n1", "n2 n1");
	assert_names("n[1-4,7]", "n1 n2 n3 n4 n7");
	assert_names("n[08-11]", "n08 n09 n10 n11");
	assert_names("a,n[1,3]-ib,b", "a n1-ib n3-ib b");
	assert_names("r[1-2]n[1-2]", "r1n1 r1n2 r2n1 r2n2");
	assert_names("n[5-5]", "n5");
}

static void test_bad_lists(void **state)
{
	static const struct {
		const char *text, *says;
	} bad[] = {
		{"", "empty"},
		{",", "empty"},
		{"n1,", "empty"},
		{"n1,,n2", "empty"},
		{"n[]", "bad range"},
		{"n[1-]", "bad range"},
		{"n[-2]", "bad range"},
		{"n[a-b]", "bad range"},
		{"n[1,]", "bad range"},
		{"n[1;2]", "bad range"},
		{"n[1-2-3]", "bad range"},
		{"n[4-1]", "backwards"},
		{"n[1", "without its ']'"},
		{"n1]", "without its '['"},
		{"n[[1]]", "bad range"},
		{"n 1", "character"},
		{"n1,n2,n1", "n1 is named twice"},
		{"n[1-3],n2", "n2 is named twice"},
		{"n[1-3,3]", "n3 is named twice"},
		{"n[1-999999999]", "too many"},
		{"n[1-200][1-200]", "too many"},
		{"n[1-9999999999]", "bad range"},
		{"x123456789012345678901234567890123456789012345678901234567890123456789", "too "
											   "long"},
		{"x12345678901234567890123456789012345678901234567890123456789012[10-12]", "too "
											   "long"},
	};
	struct iocom_err err;
	struct nodelist list;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		err.text[0] = 0;
		assert_int_equal(nodelist_parse(bad[i].text, &list, &err), -EINVAL);
		if (!strstr(err.text, bad[i].says))
			fail_msg("'%s': %s", bad[i].text, err.text);
	}
}

static void assert_fold(const char *text, const char *expected)
{
	struct iocom_err err;
	struct nodelist list;
	char *folded;

	assert_int_equal(nodelist_parse(text, &list, &err), 0);
	folded = nodelist_fold((const char *const *)list.names, list.count);
	assert_non_null(folded);
	assert_string_equal(folded, expected);
	free(folded);
	nodelist_fini(&list);
}

static void test_folding(void **state)
{
	(void)state;
	assert_fold("n1", "n1");
	assert_fold("n3,n1,n2,n7", "n[1-3,7]");
	assert_fold("n10,n9,n8", "n[8-10]");
	assert_fold("n08,n09,n10,n11", "n[08-11]");
	assert_fold("db,n2,n1", "db,n[1-2]");
	assert_fold("n1-ib,n2-ib,n1", "n1,n[1-2]-ib");
	assert_fold("n1,n01,n001", "n1,n01,n001");
	assert_fold("n,n1,n2x,n0", "n,n[0-1],n2x");
	assert_fold("x1234567890,x1", "x1,x1234567890");
	assert_fold("r1n1,r1n2,r2n1", "r1n[1-2],r2n1");
	assert_fold("7,8,9", "[7-9]");
}

static int by_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* For any names the short form means exactly the same names. */
static void test_folding_is_undone_by_parsing(void **state)
{
	static const char *const shapes[] = {"n%u", "n%02u", "n%03u", "r%u-ib", "a%ub%u", "%u"};

	(void)state;
	for (unsigned seed = 1; seed <= 300; seed++) {
		struct nodelist in = {0}, out;
		struct iocom_err err = {0};
		unsigned next = seed;
		char *folded;

		for (unsigned i = 0; i < 40; i++) {
			char name[64];
			bool seen = false;

			next = next * 1103515245u + 12345u;
			snprintf(name, sizeof(name), shapes[(next >> 16) % 6], (next >> 20) % 120,
				 (next >> 10) % 7);
			for (size_t k = 0; k < in.count; k++)
				seen |= !strcmp(in.names[k], name);
			if (!seen)
				assert_int_equal(nodelist_add(&in, name), 0);
		}
		folded = nodelist_fold((const char *const *)in.names, in.count);
		assert_non_null(folded);
		if (nodelist_parse(folded, &out, &err))
			fail_msg("seed %u: %s: %s", seed, folded, err.text);
		assert_int_equal(out.count, in.count);
		qsort(in.names, in.count, sizeof(*in.names), by_text);
		qsort(out.names, out.count, sizeof(*out.names), by_text);
		for (size_t i = 0; i < in.count; i++)
			if (strcmp(in.names[i], out.names[i]))
				fail_msg("seed %u: %s", seed, folded);
		free(folded);
		nodelist_fini(&in);
		nodelist_fini(&out);
	}
}

static void test_sorting(void **state)
{
	struct iocom_err err;
	struct nodelist list;

	(void)state;
	assert_int_equal(nodelist_parse("n10,n9,db,n1", &list, &err), 0);
	nodelist_sort(&list);
	assert_string_equal(list.names[0], "db");
	assert_string_equal(list.names[1], "n1");
	assert_string_equal(list.names[3], "n10");
	nodelist_fini(&list);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lists),	cmocka_unit_test(test_bad_lists),
		cmocka_unit_test(test_folding), cmocka_unit_test(test_folding_is_undone_by_parsing),
		cmocka_unit_test(test_sorting),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
