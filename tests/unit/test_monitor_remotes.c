/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The slots of remote addresses, in memory of the test: what is reported, when slots are freed,
 * and that a job's rows always add up.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <cmocka.h>

#include "user/monitor/monitor_remotes.h"

#define NAMED 8
#define OTHER 2

struct bench {
	struct remote_slot slots[NAMED + OTHER];
	bool free[NAMED + OTHER];
	uint64_t taken[2];
	unsigned forgotten;
	int release_rc, forget_rc;
	struct remotes *remotes;
	const struct monitor_remote *rows;
	size_t nrows;
};

static int forget(void *arg, const struct remote_key *key)
{
	struct bench *bench = arg;

	assert_true(key->cgid != 0);
	if (!bench->forget_rc)
		bench->forgotten++;
	return bench->forget_rc;
}

static int release(void *arg, unsigned slot, bool other)
{
	struct bench *bench = arg;

	assert_true(other == (slot >= NAMED));
	assert_false(bench->free[slot]);
	bench->free[slot] = true;
	return bench->release_rc;
}

static int up(void **state)
{
	struct bench *bench = calloc(1, sizeof(*bench));
	struct remotes_config config = {.slots = bench->slots,
					.named = NAMED,
					.other = OTHER,
					.taken = bench->taken,
					.idle_ms = REMOTES_IDLE_MS,
					.forget = forget,
					.release = release,
					.arg = bench};

	bench->taken[0] = NAMED; /* so that a test may use any slot */
	bench->taken[1] = OTHER;
	bench->remotes = remotes_new(&config);
	assert_non_null(bench->remotes);
	*state = bench;
	return 0;
}

static int down(void **state)
{
	struct bench *bench = *state;

	remotes_free(bench->remotes);
	free(bench);
	return 0;
}

/* Does what an eBPF program does: takes the slot and counts in it. */
static void fill(struct bench *bench, unsigned slot, uint64_t cgid, uint32_t address,
		 uint64_t bytes)
{
	struct remote_slot *s = &bench->slots[slot];

	bench->free[slot] = false;
	s->cgid = cgid;
	s->family = slot < NAMED ? AF_INET : AF_UNSPEC;
	s->address[0] = slot < NAMED ? address : 0;
	s->sent_bytes += bytes;
	s->sent_messages++;
	s->received_bytes += 2 * bytes;
	s->received_messages += 2;
}

static void read_at(struct bench *bench, uint64_t now_ms)
{
	assert_int_equal(remotes_read(bench->remotes, now_ms, &bench->rows, &bench->nrows), 0);
}

static const struct monitor_remote *row(const struct bench *bench, uint64_t cgid, uint32_t address)
{
	for (size_t i = 0; i < bench->nrows; i++)
		if (bench->rows[i].cgroup_id == cgid &&
		    !memcmp(bench->rows[i].address, &address, sizeof(address)))
			return &bench->rows[i];
	return NULL;
}

static uint64_t sum_sent(const struct bench *bench, uint64_t cgid)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < bench->nrows; i++)
		if (bench->rows[i].cgroup_id == cgid)
			sum += bench->rows[i].counts.sent_bytes;
	return sum;
}

static void test_all_offered(void **state)
{
	struct bench *bench = *state;

	for (unsigned i = 0; i < NAMED + OTHER; i++) {
		assert_true(bench->free[i]);
		/* A socket that never found a slot has generation 0 of slot 0, so slots start at
		 * 1. */
		assert_int_equal(bench->slots[i].generation, 1);
	}
	read_at(bench, 0);
	assert_int_equal(bench->nrows, 0);
}

static void test_rows_and_deltas(void **state)
{
	struct bench *bench = *state;
	const struct monitor_remote *r;

	fill(bench, 3, 7, 0x0a000001, 100);
	read_at(bench, 0);
	assert_int_equal(bench->nrows, 1);
	r = row(bench, 7, 0x0a000001);
	assert_non_null(r);
	assert_int_equal(r->family, AF_INET);
	assert_int_equal(r->counts.sent_bytes, 100);
	assert_int_equal(r->delta.received_bytes, 200);
	fill(bench, 3, 7, 0x0a000001, 11);
	read_at(bench, 1000);
	r = row(bench, 7, 0x0a000001);
	assert_int_equal(r->counts.sent_bytes, 111);
	assert_int_equal(r->delta.sent_bytes, 11);
	assert_int_equal(r->delta.sent_messages, 1);
	assert_int_equal(r->delta.received_messages, 2);
	read_at(bench, 2000);
	assert_int_equal(row(bench, 7, 0x0a000001)->delta.sent_bytes, 0);
}

/* Slots that no program ever took are not looked at; after one round all are. */
static void test_only_those_taken(void **state)
{
	struct bench *bench = *state;

	fill(bench, 1, 7, 0x0a000001, 100);
	fill(bench, 5, 7, 0x0a000002, 100);
	fill(bench, NAMED + 1, 7, 0, 100);
	bench->taken[0] = 2;
	bench->taken[1] = 1;
	read_at(bench, 0);
	assert_int_equal(bench->nrows, 1);
	assert_non_null(row(bench, 7, 0x0a000001));
	bench->taken[0] = 6;
	bench->taken[1] = 2;
	read_at(bench, 0);
	assert_int_equal(bench->nrows, 3);
	bench->taken[0] = bench->taken[1] = UINT64_MAX;
	read_at(bench, 0);
	assert_int_equal(bench->nrows, 3);
	assert_int_equal(sum_sent(bench, 7), 300);
}

static void test_other_row_without_address(void **state)
{
	struct bench *bench = *state;
	const struct monitor_remote *r;

	fill(bench, NAMED, 7, 0, 50);
	fill(bench, NAMED + 1, 8, 0, 60);
	read_at(bench, 0);
	assert_int_equal(bench->nrows, 2);
	r = row(bench, 7, 0);
	assert_int_equal(r->family, AF_UNSPEC);
	assert_int_equal(r->counts.sent_bytes, 50);
	assert_int_equal(r->delta.sent_bytes, 50);
	assert_int_equal(row(bench, 8, 0)->counts.sent_bytes, 60);
}

/* While there is room no address is removed, however idle. */
static void test_no_need_no_leaving(void **state)
{
	struct bench *bench = *state;

	for (unsigned i = 0; i < NAMED / 4 * 3; i++)
		fill(bench, i, 7, 0x0a000001 + i, 10);
	read_at(bench, 0);
	read_at(bench, 1000 * REMOTES_IDLE_MS);
	assert_int_equal(bench->forgotten, 0);
	assert_int_equal(bench->nrows, NAMED / 4 * 3);
}

static void test_longest_idle_leave(void **state)
{
	struct bench *bench = *state;
	uint64_t t = 0;

	for (unsigned i = 0; i < NAMED; i++) {
		fill(bench, i, 7, 0x0a000001 + i, 10);
		read_at(bench, t = 1000 * i);
	}
	/* All slots are used: those idle for long enough are removed, until half are free. */
	read_at(bench, t = REMOTES_IDLE_MS + 2000);
	assert_int_equal(bench->forgotten, 3);
	for (unsigned i = 0; i < NAMED; i++)
		assert_int_equal(bench->slots[i].generation, i < 3 ? 2 : 1);
	assert_int_equal(sum_sent(bench, 7), 10 * NAMED);
	/* A program that was already running still counts. */
	fill(bench, 0, 7, 0x0a000001, 5);
	read_at(bench, t + REMOTES_LEAVE_MS - 1);
	assert_false(bench->free[0]);
	assert_int_equal(sum_sent(bench, 7), 10 * NAMED + 5);
	read_at(bench, t + REMOTES_LEAVE_MS);
	for (unsigned i = 0; i < NAMED; i++)
		assert_true(bench->free[i] == (i < 3));
	assert_int_equal(sum_sent(bench, 7), 10 * NAMED + 5);
	read_at(bench, t + 2 * REMOTES_LEAVE_MS);
	assert_int_equal(sum_sent(bench, 7), 10 * NAMED + 5);
	assert_int_equal(row(bench, 7, 0)->counts.sent_bytes, 35);
	assert_int_equal(row(bench, 7, 0)->counts.received_messages, 8);
	assert_int_equal(row(bench, 7, 0)->delta.sent_bytes, 0);
	assert_null(row(bench, 7, 0x0a000001));
	/* The slot now serves another address. */
	fill(bench, 0, 9, 0x0b000001, 1);
	read_at(bench, t + 3 * REMOTES_LEAVE_MS);
	assert_int_equal(row(bench, 9, 0x0b000001)->counts.sent_bytes, 1);
	assert_int_equal(row(bench, 9, 0x0b000001)->delta.sent_bytes, 1);
}

static void test_index_refuses(void **state)
{
	struct bench *bench = *state;

	for (unsigned i = 0; i < NAMED; i++)
		fill(bench, i, 7, 0x0a000001 + i, 10);
	read_at(bench, 0);
	bench->forget_rc = -EBUSY;
	read_at(bench, REMOTES_IDLE_MS);
	read_at(bench, 2 * REMOTES_IDLE_MS);
	for (unsigned i = 0; i < NAMED; i++) {
		assert_false(bench->free[i]);
		assert_int_equal(bench->slots[i].generation, 1);
	}
	bench->forget_rc = 0;
	read_at(bench, 3 * REMOTES_IDLE_MS);
	assert_int_equal(bench->forgotten, 4);
}

static void test_release_fails(void **state)
{
	struct bench *bench = *state;
	int rc;

	for (unsigned i = 0; i < NAMED; i++)
		fill(bench, i, 7, 0x0a000001 + i, 10);
	read_at(bench, 0);
	read_at(bench, REMOTES_IDLE_MS);
	bench->release_rc = -ENOMEM;
	rc = remotes_read(bench->remotes, 2 * REMOTES_IDLE_MS, &bench->rows, &bench->nrows);
	assert_int_equal(rc, -ENOMEM);
}

/* Many jobs, one after the other: the rows of other remotes are bounded, and drops are counted. */
static void test_other_rows_are_bounded(void **state)
{
	struct bench *bench = *state;
	uint64_t t = 0;

	for (uint64_t job = 1; job <= 5000; job++) {
		unsigned slot = NAMED + job % OTHER;

		if (!bench->free[slot]) {
			read_at(bench, t += REMOTES_IDLE_MS);
			read_at(bench, t += REMOTES_IDLE_MS);
		}
		if (bench->free[slot])
			fill(bench, slot, job, 0, job);
	}
	read_at(bench, t);
	assert_true(remotes_forgotten(bench->remotes) > 0);
	assert_true(bench->nrows <= 4096);
	assert_non_null(row(bench, 5000, 0));
	assert_int_equal(row(bench, 5000, 0)->counts.sent_bytes, 5000);
	assert_null(row(bench, 1, 0));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_all_offered, up, down),
		cmocka_unit_test_setup_teardown(test_rows_and_deltas, up, down),
		cmocka_unit_test_setup_teardown(test_only_those_taken, up, down),
		cmocka_unit_test_setup_teardown(test_other_row_without_address, up, down),
		cmocka_unit_test_setup_teardown(test_no_need_no_leaving, up, down),
		cmocka_unit_test_setup_teardown(test_longest_idle_leave, up, down),
		cmocka_unit_test_setup_teardown(test_index_refuses, up, down),
		cmocka_unit_test_setup_teardown(test_release_fails, up, down),
		cmocka_unit_test_setup_teardown(test_other_rows_are_bounded, up, down),
	};

	return cmocka_run_group_tests_name("monitor_remotes", tests, NULL, NULL);
}
