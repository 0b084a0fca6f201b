/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <math.h>
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fields),
		cmocka_unit_test(test_refuses_what_is_not_one_map),
	};

	return cmocka_run_group_tests_name("pack", tests, NULL, NULL);
}
