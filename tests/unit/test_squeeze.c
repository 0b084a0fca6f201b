/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Whether compressing the images of a job that moves pays, and that it gives back what it got. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "agent/shim/move/squeeze.h"

#define PIECE (64u << 10)

/* Sends N bytes at so many ns a byte, plain or packed; returns the share that went packed. */
static double sends(size_t n, double plain_ns, double packed_ns)
{
	struct squeeze_pace pace = {0};
	size_t packed = 0;
	double now_ns = 1000;

	squeeze_paced(&pace, PIECE, (uint64_t)now_ns);
	for (size_t sent = 0; sent < n; sent += PIECE) {
		packed += pace.packs ? PIECE : 0;
		now_ns += PIECE * (pace.packs ? packed_ns : plain_ns);
		squeeze_paced(&pace, PIECE, (uint64_t)now_ns);
	}
	return (double)packed / (double)n;
}

static void test_pace(void **state)
{
	(void)state;
	assert_true(sends(SQUEEZE_BLOCK / 2, 8, 1) == 0); /* too little to know */
	/* On a fast link one block in eight is tried packed; on a slow one, one in eight plain. */
	assert_true(sends(256u << 20, 1, 3) > 0.08 && sends(256u << 20, 1, 3) < 0.2);
	assert_true(sends(256u << 20, 80, 30) > 0.8 && sends(256u << 20, 80, 30) < 0.92);
}

/* The link becomes slow in between: it is noticed within some blocks. */
static void test_pace_changes(void **state)
{
	struct squeeze_pace pace = {0};
	uint64_t now_ns = 1000;
	unsigned packed = 0;

	(void)state;
	for (size_t sent = 0; sent < 64u * SQUEEZE_BLOCK; sent += PIECE) {
		bool slow = sent > 32u * SQUEEZE_BLOCK;

		now_ns += pace.packs ? PIECE * 3u : PIECE * (slow ? 80u : 1u);
		squeeze_paced(&pace, PIECE, now_ns);
		packed += sent > 48u * SQUEEZE_BLOCK && pace.packs;
	}
	assert_true(packed > 12 * (SQUEEZE_BLOCK / PIECE));
}

static void test_round(void **state)
{
	static uint8_t data[PIECE], packed[PIECE], back[PIECE];
	struct squeeze *squeeze = squeeze_new();
	size_t n;

	(void)state;
	if (!squeeze)
		skip();
	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)(i / 100);
	n = squeeze_pack(squeeze, data, sizeof(data), packed, sizeof(packed));
	assert_true(n > 0 && n < sizeof(data) / 10);
	assert_int_equal(squeeze_unpack(squeeze, packed, n, back, sizeof(back)), sizeof(data));
	assert_memory_equal(data, back, sizeof(data));
	assert_int_equal(squeeze_unpack(squeeze, packed, n, back, sizeof(back) - 1), 0);
	assert_int_equal(squeeze_unpack(squeeze, packed, n - 1, back, sizeof(back)), 0);
	assert_int_equal(squeeze_unpack(squeeze, data, 100, back, sizeof(back)), 0);
	srand(1);
	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)rand();
	assert_int_equal(squeeze_pack(squeeze, data, sizeof(data), packed, sizeof(data)), 0);
	squeeze_free(squeeze);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pace),
		cmocka_unit_test(test_pace_changes),
		cmocka_unit_test(test_round),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
