/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What parts of a gang report of their connections: packed and unpacked, joined into a matrix, and
 * what a hostile node may say.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <cmocka.h>

#include "user/exchange/exchange.h"
#include "user/exchange/join.h"

#define MB_PER_S 125.0

/* A part as a test fills it. */
struct said {
	struct exchange x;
	struct exchange_row rows[64];
	struct exchange_task tasks[64];
};

static void says(struct said *s, int32_t rank, uint64_t connection, bool second, uint64_t sent,
		 uint64_t received)
{
	s->x.rows = s->rows;
	s->x.tasks = s->tasks;
	s->rows[s->x.nrows++] = (struct exchange_row){
		.connection = connection,
		.rank = rank,
		.second = second,
		.sum = {sent, received, sent ? 1 : 0, received ? 1 : 0},
	};
}

static const struct pattern_cell *cell(const struct join *j, uint32_t from, uint32_t to)
{
	for (size_t i = 0; i < j->ncells; i++)
		if (j->cells[i].from == from && j->cells[i].to == to)
			return &j->cells[i];
	return NULL;
}

static void join(struct join *j, struct said *parts, size_t n, uint32_t tasks, const int32_t *owner)
{
	struct join_part list[8];

	for (size_t i = 0; i < n; i++)
		list[i] = (struct join_part){parts[i].x.rows || parts[i].x.rest_rows ? &parts[i].x
										     : NULL};
	assert_int_equal(join_parts(j, list, n, tasks, owner, MB_PER_S), 0);
}

/* --- names -------------------------------------------------------------------------------- */

static void test_both_ends_name_it_alike(void **state)
{
	uint8_t a[16] = {10, 0, 0, 1}, b[16] = {10, 0, 0, 2};
	bool first, second;
	uint64_t name = exchange_connection(AF_INET, a, 1000, b, 2000, &first);

	(void)state;
	assert_int_equal(exchange_connection(AF_INET, b, 2000, a, 1000, &second), name);
	assert_true(first != second);
	assert_int_not_equal(exchange_connection(AF_INET, a, 2000, b, 1000, &first), name);
	assert_int_not_equal(exchange_connection(AF_INET6, a, 1000, b, 2000, &first), name);
	/* What is behind an IPv4 address does not count. */
	b[9] = 1;
	assert_int_equal(exchange_connection(AF_INET, a, 1000, b, 2000, &first), name);
	assert_int_not_equal(exchange_connection(AF_INET6, a, 1000, b, 2000, &first), name);
	/* One address, two ports. */
	name = exchange_connection(AF_INET, a, 1, a, 2, &first);
	assert_int_equal(exchange_connection(AF_INET, a, 2, a, 1, &second), name);
	assert_true(first != second);
}

/* --- packing ------------------------------------------------------------------------------ */

static void test_round_trip(void **state)
{
	struct said s = {.x = {.rest = {1, 2, 3, 4}, .rest_rows = 5, .late = true}};
	struct exchange out;
	void *data;
	size_t length;

	(void)state;
	says(&s, 3, 0xfedcba9876543210ull, true, 1000000, 7);
	says(&s, -1, 17, false, 127, 128);
	says(&s, 4095, 18, false, EXCHANGE_COUNT_MAX, EXCHANGE_COUNT_MAX + 9);
	s.rows[1].inside = true;
	s.tasks[s.x.ntasks++] = (struct exchange_task){3, 123456, 44, 5555};
	assert_int_equal(exchange_pack(&s.x, &data, &length), 0);
	assert_int_equal(exchange_unpack(&out, data, length), 0);
	assert_int_equal(out.nrows, 3);
	assert_int_equal(out.rows[0].rank, 4095);
	assert_int_equal(out.rows[0].sum.received_bytes, EXCHANGE_COUNT_MAX);
	assert_int_equal(out.rows[1].connection, 0xfedcba9876543210ull);
	assert_true(out.rows[1].second);
	assert_false(out.rows[1].inside);
	assert_int_equal(out.rows[2].rank, -1);
	assert_true(out.rows[2].inside);
	assert_int_equal(out.rows[2].sum.sent_bytes, 127);
	assert_int_equal(out.rows[2].sum.received_bytes, 128);
	assert_int_equal(out.ntasks, 1);
	assert_int_equal(out.tasks[0].burst_us, 5555);
	assert_int_equal(out.rest.received_messages, 4);
	assert_int_equal(out.rest_rows, 5);
	assert_true(out.late);
	exchange_fini(&out);
	/* Each shorter one is refused, and one with more behind it. */
	for (size_t n = 0; n < length; n++)
		assert_int_equal(exchange_unpack(&out, data, n), -EBADMSG);
	data = realloc(data, length + 1);
	((uint8_t *)data)[length] = 0;
	assert_int_equal(exchange_unpack(&out, data, length + 1), -EBADMSG);
	free(data);
}

/* Those with most bytes have rows; all others are in the rest, so that sums stay. */
static void test_too_many(void **state)
{
	size_t n = EXCHANGE_ROWS_MAX + 500;
	struct exchange x = {.rows = calloc(n, sizeof(*x.rows)), .nrows = n}, out;
	uint64_t sent = 0, all = 0, least = UINT64_MAX;
	size_t length;
	void *data;

	(void)state;
	for (size_t i = 0; i < n; i++) {
		x.rows[i] = (struct exchange_row){
			.connection = i * 0x123456789abcull,
			.rank = (int32_t)(i % 4096),
			.sum = {EXCHANGE_COUNT_MAX / 4096 + i, i, i, i},
		};
		all += x.rows[i].sum.sent_bytes;
	}
	assert_int_equal(exchange_pack(&x, &data, &length), 0);
	assert_true(length <= EXCHANGE_PACKED_MAX);
	assert_int_equal(exchange_unpack(&out, data, length), 0);
	assert_int_equal(out.nrows + out.rest_rows, n);
	assert_true(out.nrows > 1000);
	for (size_t i = 0; i < out.nrows; i++) {
		sent += out.rows[i].sum.sent_bytes;
		if (out.rows[i].sum.sent_bytes < least)
			least = out.rows[i].sum.sent_bytes;
	}
	assert_int_equal(sent + out.rest.sent_bytes, all);
	assert_int_equal(least, EXCHANGE_COUNT_MAX / 4096 + n - out.nrows);
	exchange_fini(&out);
	free(data);
	free(x.rows);
}

static void test_forged_bytes(void **state)
{
	/* version, flags, rows, tasks, rest: 4 sums and connections, the disk */
	static const uint8_t none[] = {1, 0, 0, 0, 0, 0, 0, 0, 0, 0};
	uint8_t bytes[sizeof(none)];
	struct exchange out;
	uint8_t row[64] = {1, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8};

	(void)state;
	assert_int_equal(exchange_unpack(&out, none, sizeof(none)), 0);
	assert_int_equal(out.nrows, 0);
	exchange_fini(&out);
	for (size_t i = 0; i < 2; i++) {
		memcpy(bytes, none, sizeof(none));
		bytes[i] = 9;
		assert_int_equal(exchange_unpack(&out, bytes, sizeof(bytes)), -EBADMSG);
	}
	/* It promises rows that are not there, or more than there may be. */
	memcpy(bytes, none, sizeof(none));
	bytes[2] = 100;
	assert_int_equal(exchange_unpack(&out, bytes, sizeof(bytes)), -EBADMSG);
	memset(bytes + 2, 255, 5);
	assert_int_equal(exchange_unpack(&out, bytes, sizeof(bytes)), -EBADMSG);
	/* A rank beyond the last: (4096 + 1) << 2 is 16388. */
	row[18] = 0x84;
	row[19] = 0x80;
	row[20] = 1;
	assert_int_equal(exchange_unpack(&out, row, 25), -EBADMSG);
	row[18] = 0x80; /* the last one */
	assert_int_equal(exchange_unpack(&out, row, 25), 0);
	assert_int_equal(out.rows[0].rank, 4095);
	exchange_fini(&out);
	/* One whose number is no int: 2^31 << 2. */
	memset(row + 18, 0x80, 4);
	row[22] = 0x20;
	assert_int_equal(exchange_unpack(&out, row, 30), -EBADMSG);
	assert_int_equal(exchange_unpack(&out, row, EXCHANGE_PACKED_MAX + 1), -EBADMSG);
}

/* --- joining ------------------------------------------------------------------------------ */

static void test_join(void **state)
{
	struct said parts[3] = {0};
	struct join j;

	(void)state;
	/* 0 and 1 at the first part, 2 at the second; 0 and 2 twice. */
	says(&parts[0], 0, 10, false, 1000, 30);
	says(&parts[1], 2, 10, true, 30, 1000);
	says(&parts[0], 0, 11, true, 500, 0);
	says(&parts[1], 2, 11, false, 0, 500);
	says(&parts[0], 0, 12, false, 7, 8);
	says(&parts[0], 1, 12, true, 8, 7);
	says(&parts[1], 2, 13, false, 99, 1); /* nobody has the other end */
	says(&parts[0], 1, 14, false, 5, 6);  /* a launcher has it */
	says(&parts[1], -1, 14, true, 6, 5);
	join(&j, parts, 3, 0, NULL);
	assert_int_equal(j.tasks, 3);
	assert_int_equal(cell(&j, 0, 2)->bytes, 1500);
	assert_int_equal(cell(&j, 0, 2)->messages, 2);
	assert_false(cell(&j, 0, 2)->inside);
	assert_int_equal(cell(&j, 2, 0)->bytes, 30);
	assert_int_equal(cell(&j, 0, 1)->bytes, 7);
	assert_true(cell(&j, 0, 1)->inside);
	assert_int_equal(cell(&j, 1, 0)->bytes, 8);
	assert_null(cell(&j, 1, 2));
	assert_int_equal(j.ranks[0].part, 0);
	assert_int_equal(j.ranks[2].part, 1);
	assert_int_equal(j.ranks[0].link.sent_bytes, 1500);
	assert_int_equal(j.ranks[0].link.received_bytes, 30);
	assert_int_equal(j.ranks[0].inside.sent_bytes, 7);
	assert_int_equal(j.ranks[2].outside.sent_bytes, 99);
	assert_int_equal(j.ranks[1].unranked.received_bytes, 6);
	assert_int_equal(j.no_rank.sent_bytes, 6);
	assert_int_equal(j.refused_rows, 0);
	join_fini(&j);
	/* Without the second part all that went there is outside. */
	parts[1] = (struct said){0};
	join(&j, parts, 3, 0, NULL);
	assert_int_equal(j.ranks[0].outside.sent_bytes, 1500);
	assert_int_equal(j.ranks[0].inside.sent_bytes, 7);
	join_fini(&j);
}

/* The numbers of MODEL 1.7: 30, 10, 15 ms of three slaves; 0 and 1 on A, 2 and 3 on B. */
static void test_communication_load(void **state)
{
	const uint64_t ms = (uint64_t)(MB_PER_S * 1e3);
	struct said parts[2] = {0};
	struct join j;

	(void)state;
	says(&parts[0], 0, 1, false, 30 * ms, 0); /* with 1, on its node: loads no link */
	says(&parts[0], 1, 1, true, 0, 30 * ms);
	says(&parts[0], 0, 2, false, 4 * ms, 6 * ms);
	says(&parts[1], 2, 2, true, 6 * ms, 4 * ms);
	says(&parts[0], 0, 3, false, 15 * ms, 0);
	says(&parts[1], 3, 3, true, 0, 15 * ms);
	join(&j, parts, 2, 0, NULL);
	assert_int_equal(j.pattern.kind, PATTERN_MASTER);
	assert_int_equal(j.master, 0);
	assert_true(j.ranks[1].l_com_ms == 0);
	assert_true(j.ranks[2].l_com_ms == 10);
	assert_true(j.ranks[3].l_com_ms == 15);
	assert_true(j.ranks[0].l_com_ms == 25);
	assert_true(j.part_com_ms[0] == 25);
	assert_true(j.part_com_ms[1] == 25);
	join_fini(&j);
}

/* A node says what it likes, but only of its own ranks and connections. */
static void test_hostile_node(void **state)
{
	const int32_t owner[] = {0, 1, 1};
	struct said parts[2] = {0};
	struct join j;

	(void)state;
	says(&parts[0], 0, 10, false, 1000, 0);
	says(&parts[1], 1, 10, true, 0, 1000);
	/* The second part claims rank 0, a rank that is not, and the first one's end. */
	says(&parts[1], 0, 20, false, 77, 77);
	says(&parts[1], 3, 21, false, 77, 77);
	says(&parts[1], 4095, 22, false, 77, 77);
	says(&parts[1], 2, 10, false, 1u << 30, 1u << 30);
	parts[1].tasks[parts[1].x.ntasks++] = (struct exchange_task){0, 1u << 30, 9, 9};
	join(&j, parts, 2, 3, owner);
	assert_int_equal(j.tasks, 3);
	assert_int_equal(j.ranks[0].cpu_us, 0);
	/* Three rows and a task of wrong ranks, and both rows of the end that two parts claim. */
	assert_int_equal(j.refused_rows, 6);
	assert_int_equal(j.ncells, 0);
	assert_int_equal(j.ranks[1].outside.received_bytes, 1000);
	assert_int_equal(j.ranks[0].outside.sent_bytes + j.ranks[0].link.sent_bytes, 0);
	join_fini(&j);
	/* Without a plan, the first part that has a rank keeps it. */
	join(&j, parts, 2, 0, NULL);
	assert_int_equal(j.ranks[0].part, 0);
	assert_int_equal(j.ranks[0].cpu_us, 0);
	assert_int_equal(j.ranks[3].part, 1);
	join_fini(&j);
}

/* Three ranks with 10 and 20 phases; the disk's time of a part is its ranks' alike. */
static void test_phases(void **state)
{
	const uint64_t ms = (uint64_t)(MB_PER_S * 1e3);
	struct said parts[2] = {0};
	struct join j;

	(void)state;
	says(&parts[0], 0, 1, false, 30 * ms, 0);
	says(&parts[1], 1, 1, true, 0, 30 * ms);
	says(&parts[1], 2, 2, true, 0, 10 * ms); /* outside the job: no T_COM of the link */
	parts[0].tasks[parts[0].x.ntasks++] = (struct exchange_task){0, 100000, 10, 5000};
	parts[1].tasks[parts[1].x.ntasks++] = (struct exchange_task){1, 40000, 10, 5000};
	parts[1].tasks[parts[1].x.ntasks++] = (struct exchange_task){2, 40000, 20, 20000};
	parts[1].x.disk_us = 80000;
	join(&j, parts, 2, 0, NULL);
	assert_true(j.ranks[0].disk_ms == 0 && j.ranks[1].disk_ms == 40);
	/* of a phase: rank 0 has 10 + 3 + 0 ms, rank 1 has 4 + 3 + 4, rank 2 has 2 + 0 + 2 */
	assert_float_equal(j.phases.number, 40 / 3.0, 1e-6);
	assert_float_equal(j.phases.cpu_ms, 16 / 3.0, 1e-6);
	assert_float_equal(j.phases.com_ms, 2, 1e-6);
	assert_float_equal(j.phases.disk_ms, 2, 1e-6);
	assert_float_equal(j.phases.slowest_ms, 13, 1e-6);
	assert_float_equal(j.phases.burst_ms, 2 / 3.0, 1e-6);
	join_fini(&j);
}

/* Whatever nodes claim, no sum wraps. */
static void test_sums_end(void **state)
{
	struct said parts[2] = {0};
	struct join j;

	(void)state;
	for (int i = 0; i < 60; i++) {
		says(&parts[0], 0, (uint64_t)i, false, EXCHANGE_COUNT_MAX, 0);
		says(&parts[1], 1, (uint64_t)i, true, 0, EXCHANGE_COUNT_MAX);
	}
	parts[0].x.rest.sent_bytes = EXCHANGE_SUM_MAX;
	parts[1].x.rest = parts[0].x.rest;
	join(&j, parts, 2, 0, NULL);
	assert_int_equal(cell(&j, 0, 1)->bytes, 60 * EXCHANGE_COUNT_MAX);
	assert_int_equal(j.rest.sent_bytes, EXCHANGE_SUM_MAX);
	join_fini(&j);
	assert_int_equal(exchange_add(UINT64_MAX, 2), EXCHANGE_SUM_MAX);
	assert_int_equal(exchange_add(3, 2), 5);
}

/* Several processes may use one end: the rank is that of the one that sends most. */
static void test_shared_ends(void **state)
{
	struct said parts[2] = {0};
	struct join j;

	(void)state;
	says(&parts[0], -1, 10, false, 3, 3);
	says(&parts[0], 0, 10, false, 100, 0);
	says(&parts[0], 1, 10, false, 50, 0);
	says(&parts[1], 2, 10, true, 3, 153);
	join(&j, parts, 2, 0, NULL);
	assert_int_equal(cell(&j, 0, 2)->bytes, 100);
	assert_int_equal(cell(&j, 1, 2)->bytes, 50);
	assert_int_equal(cell(&j, 2, 0)->bytes, 3);
	assert_null(cell(&j, 2, 1));
	join_fini(&j);
	memset(parts, 0, sizeof(parts));
	join(&j, parts, 2, 0, NULL); /* nothing was said */
	assert_int_equal(j.tasks, 0);
	assert_int_equal(j.pattern.kind, PATTERN_NONE);
	join_fini(&j);
}

/* --- patterns ----------------------------------------------------------------------------- */

#define RANKS 16
struct drawn {
	struct pattern_cell cells[RANKS * RANKS];
	size_t n;
	int32_t part[RANKS];
	struct pattern found;
};

/* Draws both directions; what both ranks of one part send each other is not SEEN. */
static void draw(struct drawn *d, uint32_t a, uint32_t b, uint64_t bytes, bool seen)
{
	if (d->part[a] == d->part[b] && !seen)
		return;
	d->cells[d->n++] = (struct pattern_cell){a, b, d->part[a] == d->part[b], bytes, 1};
	d->cells[d->n++] = (struct pattern_cell){b, a, d->part[a] == d->part[b], bytes / 2, 1};
}

static struct drawn drawn(uint32_t tasks, uint32_t a_node)
{
	struct drawn d = {0};

	for (uint32_t r = 0; r < tasks; r++)
		d.part[r] = (int32_t)(r / a_node);
	return d;
}

static enum pattern_kind kind(struct drawn *d, uint32_t tasks)
{
	assert_int_equal(pattern_find(&d->found, tasks, d->part, d->cells, d->n), 0);
	return d->found.kind;
}

static void test_patterns(void **state)
{
	(void)state;
	for (uint32_t a_node = 1; a_node <= 4; a_node *= 2) {
		struct drawn d = drawn(8, a_node);

		for (uint32_t r = 0; r < 8; r++)
			draw(&d, r, (r + 1) % 8, 1000 + r, false);
		assert_int_equal(kind(&d, 8), PATTERN_RING);
		assert_true(d.found.share == 1 && d.found.coverage == 1);
		d = drawn(8, a_node);
		for (uint32_t r = 0; r < 7; r++)
			draw(&d, r, r + 1, 1000, false);
		assert_int_equal(kind(&d, 8), PATTERN_CHAIN);
		d = drawn(8, a_node);
		for (uint32_t r = 0; r < 8; r++)
			if (r != 5)
				draw(&d, 5, r, 1000, false);
		assert_int_equal(kind(&d, 8), PATTERN_MASTER);
		assert_int_equal(d.found.master, 5);
		d = drawn(8, a_node);
		for (uint32_t r = 0; r < 8; r++)
			for (uint32_t k = r + 1; k < 8; k++)
				draw(&d, r, k, 1000, true);
		assert_int_equal(kind(&d, 8), PATTERN_ALL);
	}
}

static void test_grids(void **state)
{
	(void)state;
	for (int wraps = 0; wraps < 2; wraps++) {
		struct drawn d = drawn(16, 1);

		for (uint32_t r = 0; r < 16; r++) {
			if (wraps || r % 4 != 3)
				draw(&d, r, r / 4 * 4 + (r + 1) % 4, 1000, true);
			if (wraps || r < 12)
				draw(&d, r, (r + 4) % 16, 900, true);
		}
		assert_int_equal(kind(&d, 16), PATTERN_GRID);
		assert_int_equal(d.found.rows, 4);
		assert_int_equal(d.found.columns, 4);
	}
}

static void test_no_named_pattern(void **state)
{
	struct drawn d = drawn(8, 1);

	(void)state;
	assert_int_equal(kind(&d, 8), PATTERN_NONE);
	draw(&d, 0, 1, 10, true);
	assert_int_equal(kind(&d, 2), PATTERN_PAIR);
	draw(&d, 2, 7, 1000, true);
	draw(&d, 1, 4, 900, true);
	draw(&d, 3, 6, 800, true);
	assert_int_equal(kind(&d, 8), PATTERN_IRREGULAR);
	/* Noise of a library does not hide a ring. */
	d = drawn(8, 1);
	for (uint32_t r = 0; r < 8; r++)
		draw(&d, r, (r + 1) % 8, 1000, true);
	for (uint32_t r = 1; r < 8; r++)
		draw(&d, 0, r, 20, true);
	assert_int_equal(kind(&d, 8), PATTERN_RING);
	assert_true(d.found.share < 1 && d.found.share > 0.9);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_both_ends_name_it_alike),
		cmocka_unit_test(test_round_trip),
		cmocka_unit_test(test_too_many),
		cmocka_unit_test(test_forged_bytes),
		cmocka_unit_test(test_join),
		cmocka_unit_test(test_communication_load),
		cmocka_unit_test(test_phases),
		cmocka_unit_test(test_sums_end),
		cmocka_unit_test(test_hostile_node),
		cmocka_unit_test(test_shared_ends),
		cmocka_unit_test(test_patterns),
		cmocka_unit_test(test_grids),
		cmocka_unit_test(test_no_named_pattern),
	};

	return cmocka_run_group_tests_name("exchange", tests, NULL, NULL);
}
