/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* A user's request for another node: packed, unpacked, and refused where it is not one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "user/pack.h"
#include "user/user_ask.h"

#define NONCE "00112233445566778899aabbccddeeff"

static struct iocom_err err;

static void test_same_again(void **state)
{
	struct user_ask ask = {.node = "n2",
			       .nonce = NONCE,
			       .boot_id = UINT64_MAX,
			       .at_s = 7,
			       .request = "what",
			       .length = 4},
			back;
	void *packed;
	size_t length;

	(void)state;
	assert_int_equal(user_ask_pack(&ask, &packed, &length), 0);
	assert_true(length <= USER_ASK_MAX);
	assert_int_equal(user_ask_unpack(&back, packed, length, &err), 0);
	assert_string_equal(back.node, "n2");
	assert_string_equal(back.nonce, NONCE);
	assert_true(back.boot_id == UINT64_MAX && back.at_s == 7);
	assert_int_equal(back.length, 4);
	assert_memory_equal(back.request, "what", 4);
	/* the request is borrowed from the packed bytes, of which each prefix is none */
	assert_true((char *)back.request > (char *)packed &&
		    (char *)back.request < (char *)packed + length);
	for (size_t n = 0; n < length; n++)
		assert_int_equal(user_ask_unpack(&back, packed, n, &err), -EBADMSG);
	free(packed);
}

static void test_bounds(void **state)
{
	static char request[USER_ASK_REQUEST_MAX + 1];
	struct user_ask ask = {.node = "n2",
			       .nonce = NONCE,
			       .boot_id = UINT64_MAX,
			       .at_s = UINT64_MAX,
			       .request = request},
			back;
	void *packed;
	size_t length;

	(void)state;
	memset(ask.node, 'n', sizeof(ask.node) - 1);
	ask.length = sizeof(request);
	assert_int_equal(user_ask_pack(&ask, &packed, &length), -E2BIG);
	ask.length--;
	assert_int_equal(user_ask_pack(&ask, &packed, &length), 0);
	assert_true(length <= USER_ASK_MAX);
	assert_int_equal(user_ask_unpack(&back, packed, length, &err), 0);
	free(packed);
}

/* Each field but one is right. */
static int unpacks(uint64_t version, const char *node, const char *nonce, size_t length)
{
	static const char request[USER_ASK_REQUEST_MAX + 1];
	struct user_ask back;
	msgpack_sbuffer b;
	msgpack_packer pk;
	int rc;

	pack_begin(&pk, &b, 6);
	pack_u64(&pk, "v", version);
	pack_str(&pk, "node", node);
	pack_str(&pk, "nonce", nonce);
	pack_u64(&pk, "boot_id", 0);
	pack_u64(&pk, "at_s", 7);
	pack_bin(&pk, "request", request, length);
	rc = user_ask_unpack(&back, b.data, b.size, &err);
	msgpack_sbuffer_destroy(&b);
	return rc;
}

static void test_refused(void **state)
{
	char node[65] = "";

	(void)state;
	assert_int_equal(unpacks(2, "n2", NONCE, 1), 0);
	assert_int_equal(unpacks(1, "n2", NONCE, 1), -EPROTO);
	assert_non_null(strstr(err.text, "another version"));
	assert_int_equal(unpacks(2, "", NONCE, 1), -EBADMSG);
	memset(node, 'n', 64);
	assert_int_equal(unpacks(2, node, NONCE, 1), -EBADMSG);
	assert_int_equal(unpacks(2, "n2", NONCE "0", 1), -EBADMSG);
	assert_int_equal(unpacks(2, "n2", "0011", 1), -EBADMSG);
	assert_int_equal(unpacks(2, "n2", "0011223344556677 899aabbccddeeff", 1), -EBADMSG);
	assert_int_equal(unpacks(2, "n2", NONCE, 0), -EBADMSG);
	assert_int_equal(unpacks(2, "n2", NONCE, USER_ASK_REQUEST_MAX), 0);
	assert_int_equal(unpacks(2, "n2", NONCE, USER_ASK_REQUEST_MAX + 1), -EBADMSG);
	assert_string_equal(err.text, "the user's request is malformed");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_same_again),
		cmocka_unit_test(test_bounds),
		cmocka_unit_test(test_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
