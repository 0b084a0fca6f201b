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

/* --NAME VALUE, as getopt_long gives it. */
static int take(struct placement_request *r, const char *name, const char *value,
		struct iocom_err *err)
{
	static const struct option own[] = {{"own", no_argument, NULL, 'o'}, {0}};
	const struct option *o = placement_request_options(own);

	while (o->name && strcmp(o->name, name) != 0)
		o++;
	assert_non_null(o->name);
	return placement_request_take(r, o->val, value, err);
}

static void test_options(void **state)
{
	struct iocom_err err;
	struct placement_request r;
	char name[100];

	(void)state;
	placement_request_init(&r);
	assert_int_equal(take(&r, "io-rate", "120.5", &err), 0);
	assert_int_equal(take(&r, "io-size", "0", &err), -EINVAL);
	assert_non_null(strstr(err.text, "--io-size: a request has more than 0 bytes"));
	assert_int_equal(take(&r, "io-size", "64K", &err), 0);
	assert_int_equal(take(&r, "mem", "1.5G", &err), 0);
	assert_true(r.ask.need.value[NEED_IO_PER_S] == 120.5 &&
		    r.ask.need.value[NEED_IO_SIZE_KB] == 64 &&
		    r.ask.need.value[NEED_MEMORY_MB] == 1500 && r.ask.need.value[NEED_CPU_S] == -1);
	assert_int_equal(placement_request_take(&r, 'x', "1", &err), 1);
	assert_int_equal(placement_request_take(&r, ASK_END, "1", &err), 1);
	assert_int_equal(take(&r, "own", "", &err), 1);
	assert_int_equal(take(&r, "requests", "many", &err), -EINVAL);
	assert_non_null(strstr(err.text, "--requests"));
	assert_int_equal(take(&r, "cpu-time", "-1", &err), -EINVAL);
	assert_int_equal(take(&r, "data", "/no/such/file", &err), -EINVAL);
	assert_non_null(strstr(err.text, "/no/such/file"));
	assert_int_equal(take(&r, "data", "3M", &err), 0);
	assert_true(r.ask.need.value[NEED_DATA_MB] == 3);
	assert_int_equal(take(&r, "class", "", &err), -EINVAL);
	memset(name, 'n', sizeof(name));
	name[63] = 0;
	assert_int_equal(take(&r, "node", name, &err), 0);
	assert_string_equal(r.ask.node, name);
	name[63] = 'n';
	name[64] = 0;
	assert_int_equal(take(&r, "node", name, &err), -EINVAL);
	assert_non_null(strstr(err.text, "--node takes a name of 1 to 63 characters"));
	assert_int_equal(take(&r, "node", "", &err), -EINVAL); /* a variable that is not set */
	assert_int_equal(take(&r, "comment", "", &err), 0);
	assert_int_equal(take(&r, "comment", "nightly build \xc3\xa4", &err), 0);
	assert_string_equal(r.ask.comment, "nightly build \xc3\xa4");
	assert_int_equal(take(&r, "comment", "two\nlines", &err), -EINVAL);
	assert_int_equal(take(&r, "comment", "\x1b[2J", &err), -EINVAL);
	assert_int_equal(take(&r, "comment",
			      "\xc2\x9b"
			      "2J",
			      &err),
			 -EINVAL);
	assert_int_equal(take(&r, "comment", "\xff", &err), -EINVAL);
	assert_non_null(strstr(err.text, "--comment takes one line of at most 200 bytes"));
}

static void test_pack_leaves_out_what_was_not_given(void **state)
{
	char *command[] = {"/bin/e\ncho", "a b", NULL};
	const msgpack_object *need;
	msgpack_sbuffer buffer;
	msgpack_unpacked map;
	struct placement_request ask;
	struct iocom_err err;
	char text[64];
	double value;
	bool flag;

	(void)state;
	placement_request_init(&ask);
	ask.ask.need.value[NEED_CPU_S] = 2;
	assert_int_equal(
		placement_request_pack(&ask, true, "/tmp", "/bin/echo", command, &buffer, &err), 0);
	assert_int_equal(unpack_map(&map, buffer.data, buffer.size), 0);
	need = unpack_get(&map.data, "need");
	assert_non_null(need);
	assert_int_equal(need->via.map.size, 1);
	assert_int_equal(unpack_f64(need, "cpu_s", &value), 0);
	assert_int_equal(unpack_str(&map.data, "command", text, sizeof(text)), 0);
	assert_string_equal(text, "/bin/e?cho a b");
	assert_int_equal(unpack_str(&map.data, "class", text, sizeof(text)), 0);
	assert_string_equal(text, "e\ncho");
	assert_int_equal(unpack_bool(&map.data, "run", &flag), 0);
	assert_null(unpack_get(&map.data, "node"));
	assert_null(unpack_get(&map.data, "restarts"));
	assert_null(unpack_get(&map.data, "view"));
	msgpack_unpacked_destroy(&map);
	msgpack_sbuffer_destroy(&buffer);
}

/* Packs a request with these options.  Returns what placement_request_pack does. */
static int packed(struct placement_request *r, double *requests, double *size_kb,
		  struct iocom_err *err)
{
	char *command[] = {"true", NULL};
	const msgpack_object *need;
	msgpack_unpacked map;
	msgpack_sbuffer buffer;
	int rc = placement_request_pack(r, true, "/", "/bin/true", command, &buffer, err);

	if (rc)
		return rc;
	assert_int_equal(unpack_map(&map, buffer.data, buffer.size), 0);
	need = unpack_get(&map.data, "need");
	*requests = *size_kb = -1;
	(void)unpack_f64(need, "requests", requests);
	(void)unpack_f64(need, "io_size_kb", size_kb);
	msgpack_unpacked_destroy(&map);
	msgpack_sbuffer_destroy(&buffer);
	return 0;
}

/* --io is bytes, which a request of the given size, or of the usual one, makes a number. */
static void test_io(void **state)
{
	struct placement_request r;
	double requests, size_kb;
	struct iocom_err err;

	(void)state;
	placement_request_init(&r);
	assert_int_equal(packed(&r, &requests, &size_kb, &err), 0);
	assert_true(requests == -1 && size_kb == -1);
	assert_int_equal(take(&r, "io", "much", &err), -EINVAL);
	assert_non_null(strstr(err.text, "--io takes a size such as 500M or 2Gi, not 'much'"));
	assert_int_equal(take(&r, "io", "64M", &err), 0);
	assert_int_equal(packed(&r, &requests, &size_kb, &err), 0);
	assert_true(requests == 500 && size_kb == 128);
	assert_int_equal(take(&r, "io-size", "64K", &err), 0);
	assert_int_equal(packed(&r, &requests, &size_kb, &err), 0);
	assert_true(requests == 1000 && size_kb == 64);
	assert_int_equal(take(&r, "io", "0", &err), 0); /* no I/O at all */
	assert_int_equal(packed(&r, &requests, &size_kb, &err), 0);
	assert_true(requests == 0);
	assert_int_equal(take(&r, "requests", "7", &err), 0);
	assert_int_equal(packed(&r, &requests, &size_kb, &err), -EINVAL);
	assert_non_null(strstr(err.text, "--io and --requests both say how much I/O"));
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
		cmocka_unit_test(test_io),
		cmocka_unit_test(test_resolve),
	};

	return cmocka_run_group_tests_name("ask", tests, NULL, NULL);
}
