/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "user/pack.h"

static void fill(msgpack_sbuffer *out)
{
	msgpack_packer pk;

	msgpack_sbuffer_init(out);
	msgpack_packer_init(&pk, out, msgpack_sbuffer_write);
	msgpack_pack_map(&pk, 7);
	pack_str(&pk, "s", "text");
	pack_bin(&pk, "b", "a\0b", 3);
	pack_u64(&pk, "u", UINT64_MAX);
	pack_f64(&pk, "f", 0.25);
	pack_f64(&pk, "nan", NAN);
	pack_bool(&pk, "t", true);
	pack_str(&pk, "nil", NULL);
}

static void test_fields(void **state)
{
	msgpack_sbuffer buffer;
	msgpack_unpacked map;
	char text[5], small[4];
	bool flag = false;
	uint64_t u;
	double f;

	(void)state;
	fill(&buffer);
	assert_int_equal(unpack_map(&map, buffer.data, buffer.size), 0);
	assert_int_equal(unpack_str(&map.data, "s", text, sizeof(text)), 0);
	assert_string_equal(text, "text");
	assert_int_equal(unpack_str(&map.data, "s", small, sizeof(small)), -EBADMSG);
	assert_int_equal(unpack_str(&map.data, "b", text, sizeof(text)), -EBADMSG);
	assert_int_equal(unpack_str(&map.data, "nil", text, sizeof(text)), -ENOENT);
	assert_int_equal(unpack_str(&map.data, "absent", text, sizeof(text)), -ENOENT);
	assert_int_equal(unpack_u64(&map.data, "u", &u), 0);
	assert_true(u == UINT64_MAX);
	assert_int_equal(unpack_u64(&map.data, "f", &u), -EBADMSG);
	assert_int_equal(unpack_f64(&map.data, "f", &f), 0);
	assert_true(f == 0.25);
	assert_int_equal(unpack_f64(&map.data, "u", &f), 0);
	assert_int_equal(unpack_f64(&map.data, "nan", &f), -EBADMSG);
	assert_int_equal(unpack_bool(&map.data, "t", &flag), 0);
	assert_true(flag);
	assert_int_equal(unpack_bool(&map.data, "u", &flag), -EBADMSG);
	msgpack_unpacked_destroy(&map);
	msgpack_sbuffer_destroy(&buffer);
}

static void test_refuses_what_is_not_one_map(void **state)
{
	msgpack_sbuffer buffer;
	msgpack_unpacked map;

	(void)state;
	fill(&buffer);
	for (size_t cut = 0; cut < buffer.size; cut++)
		assert_int_equal(unpack_map(&map, buffer.data, cut), -EBADMSG);
	msgpack_sbuffer_write(&buffer, "\0", 1);
	assert_int_equal(unpack_map(&map, buffer.data, buffer.size), -EBADMSG);
	assert_int_equal(unpack_map(&map, "\x93\1\2\3", 4), -EBADMSG);
	/* A map that claims four thousand million entries in five bytes. */
	assert_int_equal(unpack_map(&map, "\xdf\xff\xff\xff\xff", 5), -EBADMSG);
	msgpack_sbuffer_destroy(&buffer);
}

/* Makes { "k": [ N small numbers ] }: 3 + N values. */
static void many(msgpack_sbuffer *out, uint32_t n)
{
	msgpack_packer pk;

	pack_begin(&pk, out, 1);
	pack_key(&pk, "k");
	msgpack_pack_array(&pk, n);
	for (uint32_t i = 0; i < n; i++)
		msgpack_pack_uint8(&pk, 7);
}

static int map_of(const msgpack_sbuffer *b, size_t values)
{
	msgpack_unpacked map;
	int rc = unpack_map_of(&map, b->data, b->size, values);

	if (!rc)
		msgpack_unpacked_destroy(&map);
	assert_int_equal(unpack_scan(b->data, b->size, values), rc);
	return rc;
}

static void test_refuses_too_many_values(void **state)
{
	msgpack_sbuffer buffer;
	msgpack_unpacked map;

	(void)state;
	many(&buffer, UNPACK_VALUES_MAX - 3);
	assert_int_equal(unpack_map(&map, buffer.data, buffer.size), 0);
	msgpack_unpacked_destroy(&map);
	msgpack_sbuffer_destroy(&buffer);
	many(&buffer, UNPACK_VALUES_MAX - 2);
	assert_int_equal(unpack_map(&map, buffer.data, buffer.size), -E2BIG);
	assert_int_equal(map_of(&buffer, UNPACK_VALUES_MAX + 1), 0);
	assert_int_equal(map_of(&buffer, UNPACK_VALUES_MAX), -E2BIG);
	msgpack_sbuffer_destroy(&buffer);
	many(&buffer, 4u << 20);
	assert_int_equal(map_of(&buffer, 3 + (4u << 20)), 0);
	assert_int_equal(map_of(&buffer, 2 + (4u << 20)), -E2BIG);
	msgpack_sbuffer_destroy(&buffer);
	/* Keys count, and the map itself. */
	fill(&buffer);
	assert_int_equal(map_of(&buffer, 15), 0);
	assert_int_equal(map_of(&buffer, 14), -E2BIG);
	assert_int_equal(map_of(&buffer, 0), -E2BIG);
	msgpack_sbuffer_destroy(&buffer);
}

/* What is in an inner container counts, too, in each way to write a container. */
static void test_counts_inner_values(void **state)
{
	static const char *const bodies[] = {
		"\x92\x01\x92\x02\x03",					/* fixarray: 5 values */
		"\xdc\x00\x02\x01\xdc\x00\x02\x02\x03",			/* array 16 */
		"\xdd\x00\x00\x00\x02\x01\xdd\x00\x00\x00\x02\x02\x03", /* array 32 */
		"\x82\x01\x02\x03\x04",					/* fixmap */
		"\xde\x00\x02\x01\x02\x03\x04",				/* map 16 */
		"\xdf\x00\x00\x00\x02\x01\x02\x03\x04",			/* map 32 */
	};
	static const size_t lengths[] = {5, 9, 13, 5, 7, 9};

	(void)state;
	for (size_t i = 0; i < 6; i++) {
		msgpack_sbuffer buffer;
		msgpack_packer pk;

		pack_begin(&pk, &buffer, 1);
		pack_key(&pk, "k");
		msgpack_sbuffer_write(&buffer, bodies[i], lengths[i]);
		assert_int_equal(map_of(&buffer, 7), 0);
		assert_int_equal(map_of(&buffer, 6), -E2BIG);
		msgpack_sbuffer_destroy(&buffer);
	}
}

static void test_refuses_deep_values(void **state)
{
	(void)state;
	for (unsigned deep = UNPACK_DEPTH_MAX; deep <= UNPACK_DEPTH_MAX + 1; deep++) {
		for (unsigned empty = 0; empty < 2; empty++) {
			msgpack_sbuffer buffer;
			msgpack_packer pk;

			pack_begin(&pk, &buffer, 1);
			pack_key(&pk, "k");
			for (unsigned i = 2; i < deep; i++)
				msgpack_pack_array(&pk, 1);
			msgpack_pack_array(&pk, !empty);
			if (!empty)
				msgpack_pack_nil(&pk);
			assert_int_equal(map_of(&buffer, 100),
					 deep > UNPACK_DEPTH_MAX ? -E2BIG : 0);
			msgpack_sbuffer_destroy(&buffer);
		}
	}
}

static int peek(const msgpack_sbuffer *b, const char *key, char out[5])
{
	memset(out, '#', 5);
	return unpack_peek(b->data, b->size, 100, key, out, 5);
}

/* Finds what unpack_str finds, without decoding. */
static void test_peek(void **state)
{
	msgpack_sbuffer buffer, twice;
	msgpack_packer pk;
	char text[5];

	(void)state;
	fill(&buffer);
	assert_int_equal(peek(&buffer, "s", text), 0);
	assert_string_equal(text, "text");
	assert_int_equal(peek(&buffer, "absent", text), -ENOENT);
	assert_int_equal(peek(&buffer, "u", text), -EBADMSG);
	assert_int_equal(peek(&buffer, "b", text), -EBADMSG);
	assert_int_equal(peek(&buffer, "nil", text), -EBADMSG);
	assert_int_equal(unpack_peek(buffer.data, buffer.size, 100, "s", text, 4), -EBADMSG);
	assert_int_equal(unpack_peek(buffer.data, buffer.size, 14, "s", text, 5), -E2BIG);
	for (size_t cut = 0; cut < buffer.size; cut++)
		assert_true(unpack_peek(buffer.data, cut, 100, "absent", text, 5) < 0);
	assert_int_equal(unpack_peek("\x93\1\2\3", 4, 100, "s", text, 5), -EBADMSG);
	msgpack_sbuffer_destroy(&buffer);
	/* The first of two counts, as in unpack_get, and one in an inner map does not. */
	pack_begin(&pk, &twice, 4);
	pack_key(&pk, "in");
	msgpack_pack_map(&pk, 1);
	pack_str(&pk, "k", "no");
	msgpack_pack_array(&pk, 1);
	msgpack_pack_nil(&pk);
	msgpack_pack_nil(&pk);
	pack_str(&pk, "k", "1st");
	pack_str(&pk, "k", "2nd");
	assert_int_equal(peek(&twice, "k", text), 0);
	assert_string_equal(text, "1st");
	assert_int_equal(peek(&twice, "no", text), -ENOENT);
	msgpack_sbuffer_destroy(&twice);
	/* Long texts have longer heads. */
	for (size_t n = 31; n < 70000; n = n < 300 ? n + 1 : n * 3) {
		char *value = calloc(n + 1, 1), *copy = calloc(n + 1, 1);

		memset(value, 'v', n);
		pack_begin(&pk, &twice, 1);
		pack_str(&pk, "k", value);
		assert_int_equal(unpack_peek(twice.data, twice.size, 3, "k", copy, n + 1), 0);
		assert_string_equal(copy, value);
		assert_int_equal(unpack_peek(twice.data, twice.size, 3, "k", copy, n), -EBADMSG);
		msgpack_sbuffer_destroy(&twice);
		free(value);
		free(copy);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fields),
		cmocka_unit_test(test_refuses_what_is_not_one_map),
		cmocka_unit_test(test_refuses_too_many_values),
		cmocka_unit_test(test_counts_inner_values),
		cmocka_unit_test(test_refuses_deep_values),
		cmocka_unit_test(test_peek),
	};

	return cmocka_run_group_tests_name("pack", tests, NULL, NULL);
}
