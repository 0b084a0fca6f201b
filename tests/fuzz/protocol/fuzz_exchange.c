/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What nodes report of a gang's connections: what is understood means the same when packed again,
 * and whatever two parts say joins into a matrix that has no more than was said.
 */
#include "tests/fuzz/protocol/fuzz_protocol.h"

#include "user/exchange/join.h"

bool sample(int n, FILE *out)
{
	struct exchange_row rows[4] = {
		{.connection = 7, .rank = 0, .sum = {1000, 20, 3, 1}},
		{.connection = 7, .rank = 1, .second = true, .sum = {20, 1000, 1, 3}},
		{.connection = 9, .rank = -1, .inside = true, .sum = {1u << 20, 0, 1, 0}},
		{.connection = 1ull << 60, .rank = 4095, .sum = {EXCHANGE_COUNT_MAX, 1, 1, 1}},
	};
	struct exchange_task tasks[2] = {{0, 1000, 20, 3000}, {4095, 1, 1, 1}};
	struct exchange x = {.rows = rows, .nrows = (size_t)n, .tasks = tasks, .ntasks = n > 1};
	size_t length;
	void *data;

	x.ntasks += n > 3;
	x.late = n > 2;
	if (!exchange_pack(&x, &data, &length)) {
		fwrite(data, 1, length, out);
		free(data);
	}
	return n < 4;
}

FUZZ_SAMPLES

static void packs_again(struct exchange *x)
{
	struct exchange again;
	size_t length;
	void *data;

	must(!exchange_pack(x, &data, &length));
	must(length <= EXCHANGE_PACKED_MAX);
	must(!exchange_unpack(&again, data, length));
	must(again.nrows + again.rest_rows >= x->nrows && again.ntasks == x->ntasks);
	for (size_t i = 0; i < again.nrows; i++) {
		must(again.rows[i].connection == x->rows[i].connection);
		must(again.rows[i].rank == x->rows[i].rank);
		must(again.rows[i].sum.sent_bytes == x->rows[i].sum.sent_bytes);
	}
	exchange_fini(&again);
	free(data);
}

static void joins(const struct exchange *a, const struct exchange *b)
{
	const struct join_part parts[2] = {{a}, {b}};
	struct join j;

	if (!join_parts(&j, parts, 2, 0, NULL, 125)) {
		must(j.tasks <= EXCHANGE_RANKS_MAX);
		must(j.ncells <= a->nrows + b->nrows);
		for (size_t i = 0; i < j.ncells; i++)
			must(j.cells[i].from < j.tasks && j.cells[i].to < j.tasks);
		must(j.pattern.kind < PATTERNS);
	}
	join_fini(&j);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	size_t half = size ? data[0] * (size - 1) / 255 : 0;
	struct exchange whole, a, b;

	if (!exchange_unpack(&whole, data, size)) {
		packs_again(&whole);
		joins(&whole, &whole);
		exchange_fini(&whole);
	}
	if (!size || exchange_unpack(&a, data + 1, half))
		return 0;
	if (!exchange_unpack(&b, data + 1 + half, size - 1 - half)) {
		joins(&a, &b);
		exchange_fini(&b);
	}
	exchange_fini(&a);
	return 0;
}
