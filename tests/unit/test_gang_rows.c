/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Lists of jobs in which a gang is one row, whoever told of its parts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "balancer/gang_rows.h"
#include "balancer/listing.h"

static json_t *rows_of(const char *text)
{
	json_t *jobs = json_loads(text, 0, NULL), *rows;

	assert_non_null(jobs);
	rows = gang_rows_fold(jobs);
	assert_non_null(rows);
	json_decref(jobs);
	return rows;
}

static const char *at(const json_t *rows, size_t i, const char *key)
{
	return listing_string(json_array_get(rows, i), key);
}

static void test_parts_go_to_their_gang(void **state)
{
	json_t *rows = rows_of(
		"[{\"job\": \"n1-4f1c09aa-7.10\", \"node\": \"n3\", \"pid\": 5},"
		" {\"job\": \"n1-4f1c09aa-6\", \"node\": \"n2\"},"
		" {\"job\": \"n1-4f1c09aa-7\", \"node\": \"\", \"tasks\": 4, \"parts\": ["
		"  {\"job\": \"n1-4f1c09aa-7.1\", \"node\": \"n2\", \"state\": \"running\"}]},"
		" {\"job\": \"n1-4f1c09aa-7.1\", \"node\": \"n2\", \"state\": \"late\", \"pid\": "
		"4},"
		" {\"job\": \"n1-4f1c09aa-7.0\", \"node\": \"n1\"}]");
	const json_t *parts;
	char nodes[64];

	(void)state;
	assert_int_equal(json_array_size(rows), 2);
	assert_string_equal(at(rows, 0, "job"), "n1-4f1c09aa-6");
	assert_false(gang_rows_is(json_array_get(rows, 0)));
	assert_true(gang_rows_is(json_array_get(rows, 1)));
	parts = json_object_get(json_array_get(rows, 1), "parts");
	assert_int_equal(json_array_size(parts), 3);
	assert_string_equal(at(parts, 0, "job"), "n1-4f1c09aa-7.0");
	assert_string_equal(at(parts, 1, "state"), "running"); /* home's word comes first */
	assert_int_equal((int)listing_number(json_array_get(parts, 1), "pid"), 4);
	assert_string_equal(at(parts, 2, "job"), "n1-4f1c09aa-7.10");
	gang_rows_nodes(json_array_get(rows, 1), nodes, sizeof(nodes));
	assert_string_equal(nodes, "n[1-3]");
	gang_rows_nodes(json_array_get(rows, 0), nodes, sizeof(nodes));
	assert_string_equal(nodes, "n2");
	json_decref(rows);
}

static void test_stopped(void **state)
{
	json_t *rows =
		rows_of("[{\"job\": \"n1-4f1c09aa-7\", \"tasks\": 4, \"state\": \"running\"},"
			" {\"job\": \"n1-4f1c09aa-7.0\", \"state\": \"stopped\"},"
			" {\"job\": \"n1-4f1c09aa-7.1\", \"state\": \"exited\"},"
			" {\"job\": \"n1-4f1c09aa-8\", \"tasks\": 4, \"state\": \"running\"},"
			" {\"job\": \"n1-4f1c09aa-8.0\", \"state\": \"stopped\"},"
			" {\"job\": \"n1-4f1c09aa-8.1\", \"state\": \"running\"}]");

	(void)state;
	assert_string_equal(at(rows, 0, "state"), "stopped");
	assert_string_equal(at(rows, 1, "state"), "running");
	json_decref(rows);
}

static void test_a_part_whose_gang_is_not_heard_of(void **state)
{
	json_t *rows = rows_of(
		"[{\"job\": \"n9-4f1c09aa-7.0\", \"node\": \"n1\", \"tasks\": 2},"
		" {\"job\": \"n8-4f1c09aa-7\", \"node\": \"n1\", \"tasks\": 2, \"parts\": 3}]");
	char nodes[64];

	(void)state;
	assert_int_equal(json_array_size(rows), 2);
	assert_string_equal(at(rows, 0, "job"), "n9-4f1c09aa-7.0");
	assert_false(gang_rows_is(json_array_get(rows, 0)));
	gang_rows_nodes(json_array_get(rows, 1), nodes, sizeof(nodes));
	assert_string_equal(nodes, "n1");
	json_decref(rows);
}

static void test_what_no_list_should_have(void **state)
{
	json_t *rows = rows_of("[{}, 3, null, {\"job\": 7, \"tasks\": \"x\"}, [\"job\"]]");

	(void)state;
	assert_int_equal(json_array_size(rows), 5);
	json_decref(rows);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_parts_go_to_their_gang),
		cmocka_unit_test(test_stopped),
		cmocka_unit_test(test_a_part_whose_gang_is_not_heard_of),
		cmocka_unit_test(test_what_no_list_should_have),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
