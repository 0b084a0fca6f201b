/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* The shim's order: the limits of the user, which an older agent does not send. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "agent/shim/order.h"
#include "user/pack.h"

static char *words[] = {(char *)"true", NULL};

static void put_spec(msgpack_packer *pk)
{
	const struct spec spec = {
		.job = "a-1-1",
		.node = "here",
		.nonce = "0",
		.class_name = "test",
		.executable = (char *)"true",
		.cwd = (char *)"/",
		.argv = words,
		.env = words,
	};
	size_t length;
	void *packed;

	assert_int_equal(spec_pack(&spec, &packed, &length, NULL), 0);
	pack_bin(pk, "spec", packed, length);
	free(packed);
}

/* Reads an order in which the first N limits have these values. */
static int read_with(const uint64_t *limits, unsigned n, struct order *order, struct iocom_err *err)
{
	static const char *const names[] = {"user_tasks", "user_memory_bytes", "user_swap_bytes"};
	static const char *const texts[] = {"jobs_dir", "run_dir", "scope", "pam"};
	int fd = memfd_create("order", MFD_CLOEXEC), rc;
	msgpack_sbuffer buffer;
	msgpack_packer pk;

	pack_begin(&pk, &buffer, 10 + n);
	pack_u64(&pk, "v", SHIM_VERSION);
	pack_u64(&pk, "uid", 7);
	pack_u64(&pk, "gid", 7);
	pack_bool(&pk, "allow_root", false);
	for (size_t i = 0; i < 4; i++)
		pack_str(&pk, texts[i], "x");
	pack_u64(&pk, "spool_max", 0);
	put_spec(&pk);
	for (unsigned i = 0; i < n; i++)
		pack_u64(&pk, names[i], limits[i]);
	assert_int_equal(write(fd, buffer.data, buffer.size), buffer.size);
	msgpack_sbuffer_destroy(&buffer);
	rc = order_read(fd, order, err);
	close(fd);
	return rc;
}

static void test_limits(void **state)
{
	static const uint64_t limits[] = {50, 1 << 26, 1 << 20}, none[3],
			      huge[] = {50, UINT64_MAX, 0}, much[] = {50, 1, UINT64_MAX};
	struct iocom_err err;
	struct order order;

	(void)state;
	assert_int_equal(read_with(limits, 0, &order, &err), 0);
	assert_false(order.by_user);
	order_deinit(&order);
	assert_int_equal(read_with(limits, 3, &order, &err), 0);
	assert_true(order.by_user);
	assert_int_equal(order.user_limits.tasks, 50);
	assert_int_equal(order.user_limits.memory_bytes, 1 << 26);
	assert_int_equal(order.user_limits.swap_bytes, 1 << 20);
	order_deinit(&order);
	assert_int_equal(read_with(none, 3, &order, &err), 0);
	assert_true(order.by_user);
	assert_int_equal(order.user_limits.tasks, 0);
	order_deinit(&order);
	/* A part, or a sum that would wrap around, is an error and not a limit of nothing. */
	for (unsigned n = 1; n < 3; n++) {
		assert_int_equal(read_with(limits, n, &order, &err), -EBADMSG);
		assert_string_equal(err.text, "the agent's order is malformed");
		order_deinit(&order);
	}
	assert_int_equal(read_with(huge, 3, &order, &err), -EBADMSG);
	order_deinit(&order);
	assert_int_equal(read_with(much, 3, &order, &err), -EBADMSG);
	order_deinit(&order);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_limits)};

	return cmocka_run_group_tests_name("shim_order", tests, NULL, NULL);
}
