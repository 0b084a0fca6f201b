/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Packs and unpacks a part's rows; see exchange.h.
 *
 *   version, flags, rows, tasks, rest (5 numbers), disk_us, then each row: the connection (8
 * bytes), its rank and kind in one number, 4 numbers; then each task: 4 numbers.
 *
 * Numbers have 7 bits a byte, the least first; the high bit says that more follow.
 */
#include "user/exchange/exchange.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define EXCHANGE_VERSION 1
#define LATE		 1
#define NUMBER_ROOM	 10
#define HEAD_ROOM	 (2 + 8 * NUMBER_ROOM)
#define ROW_ROOM	 (8 + 5 * NUMBER_ROOM)
#define TASK_ROOM	 (4 * NUMBER_ROOM)

/* --- names of connections ------------------------------------------------------------- */

struct end {
	uint8_t address[16];
	uint8_t port[2];
};

static struct end exchange_end_of(int family, const uint8_t address[16], uint16_t port)
{
	struct end e = {.port = {(uint8_t)(port >> 8), (uint8_t)port}};

	memcpy(e.address, address, family == AF_INET6 ? 16 : 4);
	return e;
}

static uint64_t exchange_stir(uint64_t state, uint64_t word)
{
	state ^= word + 0x9e3779b97f4a7c15ull + (state << 6) + (state >> 2);
	state = (state ^ (state >> 30)) * 0xbf58476d1ce4e5b9ull;
	state = (state ^ (state >> 27)) * 0x94d049bb133111ebull;
	return state ^ (state >> 31);
}

static uint64_t exchange_stir_end(uint64_t state, const struct end *e)
{
	for (size_t i = 0; i < sizeof(*e); i++)
		state = exchange_stir(state, ((const uint8_t *)e)[i]);
	return state;
}

uint64_t exchange_connection(int family, const uint8_t local[16], uint16_t local_port,
			     const uint8_t remote[16], uint16_t remote_port, bool *second)
{
	struct end a = exchange_end_of(family, local, local_port),
		   b = exchange_end_of(family, remote, remote_port);

	*second = memcmp(&a, &b, sizeof(a)) > 0;
	return *second ? exchange_stir_end(exchange_stir_end((uint64_t)family, &b), &a)
		       : exchange_stir_end(exchange_stir_end((uint64_t)family, &a), &b);
}

uint64_t exchange_add(uint64_t a, uint64_t b)
{
	uint64_t sum;

	return __builtin_add_overflow(a, b, &sum) || sum > EXCHANGE_SUM_MAX ? EXCHANGE_SUM_MAX
									    : sum;
}

void exchange_sum_add(struct exchange_sum *into, const struct exchange_sum *from)
{
	into->sent_bytes = exchange_add(into->sent_bytes, from->sent_bytes);
	into->received_bytes = exchange_add(into->received_bytes, from->received_bytes);
	into->sent_messages = exchange_add(into->sent_messages, from->sent_messages);
	into->received_messages = exchange_add(into->received_messages, from->received_messages);
}

/* --- packing ---------------------------------------------------------------------------- */

static uint8_t *exchange_put(uint8_t *at, uint64_t value)
{
	if (value > EXCHANGE_COUNT_MAX)
		value = EXCHANGE_COUNT_MAX;
	for (; value > 127; value >>= 7)
		*at++ = (uint8_t)(value | 128);
	*at++ = (uint8_t)value;
	return at;
}

static uint8_t *exchange_put_sum(uint8_t *at, const struct exchange_sum *sum)
{
	at = exchange_put(at, sum->sent_bytes);
	at = exchange_put(at, sum->received_bytes);
	at = exchange_put(at, sum->sent_messages);
	return exchange_put(at, sum->received_messages);
}

static uint8_t *exchange_put_row(uint8_t *at, const struct exchange_row *row)
{
	for (int i = 0; i < 8; i++)
		*at++ = (uint8_t)(row->connection >> 8 * i);
	at = exchange_put(at, (uint64_t)(row->rank + 1) << 2 | (row->second ? 2 : 0) | row->inside);
	return exchange_put_sum(at, &row->sum);
}

static int most_bytes_first(const void *a, const void *b)
{
	const struct exchange_row *x = a, *y = b;
	uint64_t xs = x->sum.sent_bytes + x->sum.received_bytes;
	uint64_t ys = y->sum.sent_bytes + y->sum.received_bytes;

	if (xs != ys)
		return xs > ys ? -1 : 1;
	if (x->connection != y->connection)
		return x->connection < y->connection ? -1 : 1;
	return x->second - y->second;
}

int exchange_pack(struct exchange *x, void **data, size_t *length)
{
	size_t nrows = x->nrows < EXCHANGE_ROWS_MAX ? x->nrows : EXCHANGE_ROWS_MAX;
	size_t ntasks = x->ntasks < EXCHANGE_TASKS_MAX ? x->ntasks : EXCHANGE_TASKS_MAX;
	struct exchange_sum rest = x->rest;
	uint64_t rest_rows = x->rest_rows;
	uint8_t *out, *at, *rows, *end;

	_Static_assert(HEAD_ROOM + TASK_ROOM * EXCHANGE_TASKS_MAX < EXCHANGE_PACKED_MAX / 2,
		       "half is the rows'");
	out = malloc(EXCHANGE_PACKED_MAX);
	rows = malloc(EXCHANGE_PACKED_MAX);
	if (!out || !rows) {
		free(out);
		free(rows);
		return -ENOMEM;
	}
	if (x->nrows)
		qsort(x->rows, x->nrows, sizeof(*x->rows), most_bytes_first);
	end = rows + EXCHANGE_PACKED_MAX - HEAD_ROOM - TASK_ROOM * ntasks;
	at = rows;
	for (size_t i = 0; i < nrows; i++) {
		if ((size_t)(end - at) < ROW_ROOM)
			nrows = i;
		else
			at = exchange_put_row(at, &x->rows[i]);
	}
	for (size_t i = nrows; i < x->nrows; i++, rest_rows++)
		exchange_sum_add(&rest, &x->rows[i].sum);
	end = at;
	at = out;
	*at++ = EXCHANGE_VERSION;
	*at++ = x->late ? LATE : 0;
	at = exchange_put(exchange_put(at, nrows), ntasks);
	at = exchange_put(exchange_put_sum(at, &rest), rest_rows);
	at = exchange_put(at, x->disk_us);
	memcpy(at, rows, (size_t)(end - rows));
	at += end - rows;
	free(rows);
	for (size_t i = 0; i < ntasks; i++) {
		at = exchange_put(exchange_put(at, (uint64_t)x->tasks[i].rank), x->tasks[i].cpu_us);
		at = exchange_put(exchange_put(at, x->tasks[i].bursts), x->tasks[i].burst_us);
	}
	*data = out;
	*length = (size_t)(at - out);
	return 0;
}

/* --- unpacking: whatever another node says ------------------------------------------------ */

struct reading {
	const uint8_t *at, *end;
	bool bad;
};

static uint64_t exchange_get(struct reading *r)
{
	uint64_t value = 0;

	for (int shift = 0; shift < 56 && r->at < r->end; shift += 7) {
		uint8_t byte = *r->at++;

		value |= (uint64_t)(byte & 127) << shift;
		if (byte & 128)
			continue;
		if (value > EXCHANGE_COUNT_MAX)
			break;
		return value;
	}
	r->bad = true;
	return 0;
}

static void exchange_get_sum(struct reading *r, struct exchange_sum *sum)
{
	sum->sent_bytes = exchange_get(r);
	sum->received_bytes = exchange_get(r);
	sum->sent_messages = exchange_get(r);
	sum->received_messages = exchange_get(r);
}

static void exchange_get_row(struct reading *r, struct exchange_row *row)
{
	uint64_t kind;

	*row = (struct exchange_row){0};
	if (r->end - r->at < 8) {
		r->bad = true;
		return;
	}
	for (int i = 0; i < 8; i++)
		row->connection |= (uint64_t)*r->at++ << 8 * i;
	kind = exchange_get(r);
	if (kind >> 2 > EXCHANGE_RANKS_MAX)
		r->bad = true;
	row->rank = r->bad ? -1 : (int32_t)(kind >> 2) - 1;
	row->second = kind & 2;
	row->inside = kind & 1;
	exchange_get_sum(r, &row->sum);
}

static void exchange_get_task(struct reading *r, struct exchange_task *task)
{
	uint64_t rank = exchange_get(r);

	if (rank >= EXCHANGE_RANKS_MAX)
		r->bad = true;
	task->rank = r->bad ? 0 : (int32_t)rank;
	task->cpu_us = exchange_get(r);
	task->bursts = exchange_get(r);
	task->burst_us = exchange_get(r);
}

int exchange_unpack(struct exchange *x, const void *data, size_t length)
{
	struct reading r = {data, (const uint8_t *)data + length, false};

	*x = (struct exchange){0};
	if (length < 2 || length > EXCHANGE_PACKED_MAX || r.at[0] != EXCHANGE_VERSION ||
	    r.at[1] > LATE)
		return -EBADMSG;
	x->late = r.at[1] == LATE;
	r.at += 2;
	x->nrows = exchange_get(&r);
	x->ntasks = exchange_get(&r);
	exchange_get_sum(&r, &x->rest);
	x->rest_rows = exchange_get(&r);
	x->disk_us = exchange_get(&r);
	if (r.bad || x->nrows > EXCHANGE_ROWS_MAX || x->ntasks > EXCHANGE_TASKS_MAX) {
		*x = (struct exchange){0};
		return -EBADMSG;
	}
	x->rows = calloc(x->nrows + 1, sizeof(*x->rows));
	x->tasks = calloc(x->ntasks + 1, sizeof(*x->tasks));
	if (!x->rows || !x->tasks) {
		exchange_fini(x);
		return -ENOMEM;
	}
	for (size_t i = 0; i < x->nrows && !r.bad; i++)
		exchange_get_row(&r, &x->rows[i]);
	for (size_t i = 0; i < x->ntasks && !r.bad; i++)
		exchange_get_task(&r, &x->tasks[i]);
	if (!r.bad && r.at == r.end)
		return 0;
	exchange_fini(x);
	return -EBADMSG;
}

void exchange_fini(struct exchange *x)
{
	free(x->rows);
	free(x->tasks);
	*x = (struct exchange){0};
}
