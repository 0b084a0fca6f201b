/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "balancer/placement_request.h"
#include "user/pack.h"

static void test_sizes(void **state)
{
	static const struct {
		const char *text;
		double bytes;
	} good[] = {
		{"0", 0},	  {"1234", 1234},  {"64K", 64e3},
		{"64Ki", 65536},  {"1.5G", 1.5e9}, {"10MiB", 10485760},
		{"250kb", 250e3}, {"7b", 7},	   {"2T", 2e12},
	};
	static const char *const bad[] = {"",	 "x",	 "-1",	"1X",	 "nan", "inf",
					  "1KK", "1e99", "5 M", "1e12T", "0x",	"Ki"};
	double bytes;

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		assert_int_equal(placement_request_size(good[i].text, 1, &bytes), 0);
		assert_true(bytes == good[i].bytes);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(placement_request_size(bad[i], 1, &bytes), -EINVAL);
}

static void test_options(void **state)
{
	struct iocom_err err;
	struct placement_request ask;

	(void)state;
	placement_request_init(&ask);
	assert_int_equal(placement_request_take(&ask, ASK_IO_RATE, "120.5", &err), 0);
	assert_int_equal(placement_request_take(&ask, ASK_IO_SIZE, "64K", &err), 0);
	assert_int_equal(placement_request_take(&ask, ASK_MEM, "1.5G", &err), 0);
	assert_true(ask.io_per_s == 120.5 && ask.io_size_kb == 64 && ask.memory_mb == 1500);
	assert_int_equal(placement_request_take(&ask, 'x', "1", &err), 1);
	assert_int_equal(placement_request_take(&ask, ASK_REQUESTS, "many", &err), -EINVAL);
	assert_non_null(strstr(err.text, "--requests"));
	assert_int_equal(placement_request_take(&ask, ASK_CPU_TIME, "-1", &err), -EINVAL);
	assert_int_equal(placement_request_take(&ask, ASK_DATA, "/no/such/file", &err), -EINVAL);
	assert_non_null(strstr(err.text, "/no/such/file"));
	assert_int_equal(placement_request_take(&ask, ASK_DATA, "3M", &err), 0);
	assert_true(ask.data_mb == 3);
	assert_int_equal(placement_request_take(&ask, ASK_CLASS, "", &err), -EINVAL);
}

static void test_pack_leaves_out_what_was_not_given(void **state)
{
	char *command[] = {"/bin/e\ncho", "a b", NULL};
	const msgpack_object *need;
	msgpack_sbuffer buffer;
	msgpack_unpacked map;
	struct placement_request ask;
	char text[64];
	double value;

	(void)state;
	placement_request_init(&ask);
	ask.cpu_s = 2;
	placement_request_pack(&ask, true, "/tmp", "/bin/echo", command, &buffer);
	assert_int_equal(unpack_map(&map, buffer.data, buffer.size), 0);
	need = unpack_get(&map.data, "need");
	assert_non_null(need);
	assert_int_equal(need->via.map.size, 1);
	assert_int_equal(unpack_f64(need, "cpu_s", &value), 0);
	assert_int_equal(unpack_str(&map.data, "command", text, sizeof(text)), 0);
	assert_string_equal(text, "/bin/e?cho a b");
	assert_int_equal(unpack_str(&map.data, "class", text, sizeof(text)), 0);
	assert_string_equal(text, "e\ncho");
	msgpack_unpacked_destroy(&map);
	msgpack_sbuffer_destroy(&buffer);
}

static void test_resolve(void **state)
{
	char directory[] = "/tmp/iocom-ask-XXXXXX";
	char path[64], both[128];
	char *found;

	(void)state;
	assert_non_null(mkdtemp(directory));
	snprintf(path, sizeof(path), "%s/tool", directory);
	assert_int_equal(close(creat(path, 0755)), 0);
	snprintf(both, sizeof(both), "/no/such:%s", directory);
	found = placement_request_resolve("tool", "/", both);
	assert_string_equal(found, path);
	free(found);
	found = placement_request_resolve("./tool", "/home", both);
	assert_string_equal(found, "/home/./tool");
	free(found);
	chmod(path, 0644);
	found = placement_request_resolve("tool", "/", both);
	assert_string_equal(found, "tool");
	free(found);
	assert_true(placement_request_denied("tool", both));
	assert_false(placement_request_denied("other", both));
	assert_false(placement_request_denied("tool", "/no/such"));
	assert_false(placement_request_denied("etc", "/")); /* a directory is not a command */
	assert_false(placement_request_denied("tool", NULL));
	found = placement_request_resolve("/x/y", "/", NULL);
	assert_string_equal(found, "/x/y");
	free(found);
	unlink(path);
	rmdir(directory);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sizes),
		cmocka_unit_test(test_options),
		cmocka_unit_test(test_pack_leaves_out_what_was_not_given),
		cmocka_unit_test(test_resolve),
	};

	return cmocka_run_group_tests_name("ask", tests, NULL, NULL);
}
