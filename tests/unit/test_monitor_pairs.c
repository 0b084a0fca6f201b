/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The connections of gangs in tables of the test: what changed, when elements are removed, and what
 * a part keeps of them for its report.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <cmocka.h>

#include "agent/guest/part_talk.h"
#include "user/exchange/exchange.h"
#include "user/monitor/monitor_pairs.h"

#define MOST 8
#define GANG 77

struct tables {
	struct pair_key keys[64];
	struct pair_value values[64];
	size_t n, at;
	struct gang_task_key task_keys[64];
	struct gang_task_value task_values[64];
	size_t ntasks, task_at;
	unsigned reads;
	struct pairs *pairs;
	struct monitor_pairs out;
};

static int read_some(void *arg, bool first, struct pair_key *keys, struct pair_value *values,
		     size_t room)
{
	struct tables *t = arg;
	size_t n = 0;

	t->reads++;
	if (first)
		t->at = 0;
	for (; t->at < t->n && n < room && n < 3; n++, t->at++) {
		keys[n] = t->keys[t->at];
		values[n] = t->values[t->at];
	}
	return (int)n;
}

static int read_tasks(void *arg, bool first, struct gang_task_key *keys,
		      struct gang_task_value *values, size_t room)
{
	struct tables *t = arg;
	size_t n = 0;

	if (first)
		t->task_at = 0;
	for (; t->task_at < t->ntasks && n < room; n++, t->task_at++) {
		keys[n] = t->task_keys[t->task_at];
		values[n] = t->task_values[t->task_at];
	}
	return (int)n;
}

static void remove_one(void *arg, const struct pair_key *key)
{
	struct tables *t = arg;

	for (size_t i = 0; i < t->n; i++)
		if (!memcmp(&t->keys[i], key, sizeof(*key))) {
			t->keys[i] = t->keys[--t->n];
			t->values[i] = t->values[t->n];
			return;
		}
	fail_msg("removed what is not there");
}

static void remove_task(void *arg, const struct gang_task_key *key)
{
	struct tables *t = arg;

	for (size_t i = 0; i < t->ntasks; i++)
		if (!memcmp(&t->task_keys[i], key, sizeof(*key))) {
			t->task_keys[i] = t->task_keys[--t->ntasks];
			t->task_values[i] = t->task_values[t->ntasks];
			return;
		}
	fail_msg("removed a task that is not there");
}

static int up(void **state)
{
	struct tables *t = calloc(1, sizeof(*t));
	const struct pairs_config config = {.read = read_some,
					    .read_tasks = read_tasks,
					    .remove = remove_one,
					    .remove_task = remove_task,
					    .arg = t,
					    .most = MOST};

	t->pairs = pairs_new(&config);
	*state = t;
	return t->pairs ? 0 : -1;
}

static int down(void **state)
{
	struct tables *t = *state;

	pairs_free(t->pairs);
	free(t);
	return 0;
}

/* Process TGID, which started at 1000 + TGID, sends BYTES by connection COOKIE. */
static void sends(struct tables *t, uint64_t cookie, uint32_t tgid, uint64_t bytes)
{
	struct pair_key key = {.cookie = cookie, .cgid = GANG, .tgid = tgid};
	size_t i = 0;

	while (i < t->n && memcmp(&t->keys[i], &key, sizeof(key)) != 0)
		i++;
	if (i == t->n) {
		t->keys[t->n++] = key;
		t->values[i] = (struct pair_value){.start = 1000 + tgid, .family = AF_INET};
		t->values[i].local.address[0] = 0x0100000a;
		t->values[i].local.port = (uint32_t)cookie;
		t->values[i].remote.address[0] = 0x0200000a;
		t->values[i].remote.port = 99;
	}
	t->values[i].sent_bytes += bytes;
	t->values[i].sent_messages++;
}

static void has_rank(struct tables *t, uint32_t tgid, int64_t rank)
{
	t->task_keys[t->ntasks] =
		(struct gang_task_key){.cgid = GANG, .start = 1000 + tgid, .tgid = tgid};
	t->task_values[t->ntasks++] = (struct gang_task_value){rank, 1, 4, 2000};
}

static void look(struct tables *t, uint64_t now_ms)
{
	assert_int_equal(pairs_read(t->pairs, now_ms, &t->out), 0);
}

static const struct monitor_pair *seen(const struct tables *t, uint64_t cookie)
{
	for (size_t i = 0; i < t->out.n; i++)
		if (t->out.list[i].local_port == cookie)
			return &t->out.list[i];
	return NULL;
}

static void test_nothing_is_read_without_gangs(void **state)
{
	struct tables *t = *state;

	sends(t, 1, 10, 100);
	look(t, 1000);
	assert_int_equal(t->reads, 0);
	assert_int_equal(t->out.n, 0);
	assert_int_equal(pairs_add_gang(t->pairs, GANG), 0);
	assert_int_equal(pairs_add_gang(t->pairs, GANG), 0);
	assert_int_equal(pairs_gangs(t->pairs), 1);
	look(t, 2000);
	assert_int_equal(t->out.n, 1);
	pairs_drop_gang(t->pairs, GANG);
	pairs_drop_gang(t->pairs, GANG);
	assert_int_equal(pairs_gangs(t->pairs), 0);
	/* What is left of it is still read, until it was idle for long. */
	look(t, 3000);
	assert_int_equal(t->out.n, 1);
	look(t, 2000 + PAIRS_IDLE_MS);
	assert_int_equal(t->n, 0);
	look(t, 2001 + PAIRS_IDLE_MS);
	t->reads = 0;
	look(t, 2002 + PAIRS_IDLE_MS);
	assert_int_equal(t->reads, 0);
}

static void test_differences(void **state)
{
	struct tables *t = *state;

	pairs_add_gang(t->pairs, GANG);
	for (uint64_t c = 7; c > 0; c--)
		sends(t, c, 10, 100 * c);
	has_rank(t, 10, 3);
	look(t, 1000);
	assert_int_equal(t->out.n, 7);
	assert_int_equal(seen(t, 5)->delta.sent_bytes, 500);
	assert_int_equal(seen(t, 5)->rank, 3);
	assert_int_equal(t->out.tasks[0].bursts, 4);
	sends(t, 5, 10, 11);
	sends(t, 9, 10, 1);
	look(t, 2000);
	assert_int_equal(t->out.n, 8);
	assert_int_equal(seen(t, 5)->delta.sent_bytes, 11);
	assert_int_equal(seen(t, 5)->counts.sent_bytes, 511);
	assert_int_equal(seen(t, 5)->delta.sent_messages, 1);
	assert_int_equal(seen(t, 4)->delta.sent_bytes, 0);
	assert_int_equal(seen(t, 9)->delta.sent_bytes, 1);
	assert_int_equal(t->out.tasks[0].bursts, 0);
	/* An element that was removed and made again. */
	remove_one(t, &(struct pair_key){.cookie = 5, .cgid = GANG, .tgid = 10});
	sends(t, 5, 10, 13);
	look(t, 3000);
	assert_int_equal(seen(t, 5)->delta.sent_bytes, 13);
}

/* The same process number with another start is another process. */
static void test_ranks_are_of_processes(void **state)
{
	struct tables *t = *state;

	pairs_add_gang(t->pairs, GANG);
	sends(t, 1, 10, 1);
	sends(t, 2, 11, 1);
	has_rank(t, 10, 3);
	has_rank(t, 11, -1);
	t->task_keys[0].start++;
	look(t, 1000);
	assert_int_equal(seen(t, 1)->rank, -1);
	t->task_keys[0].start--;
	look(t, 2000);
	assert_int_equal(seen(t, 1)->rank, 3);
	assert_int_equal(seen(t, 2)->rank, -1);
}

static void test_idle_elements_go(void **state)
{
	struct tables *t = *state;

	pairs_add_gang(t->pairs, GANG);
	sends(t, 1, 10, 1);
	has_rank(t, 10, 0);
	look(t, 1000);
	look(t, 1000 + PAIRS_IDLE_MS);
	assert_int_equal(t->n, 1);
	look(t, 1000 + PAIRS_OLD_MS);
	assert_int_equal(t->n, 0);
	assert_int_equal(t->ntasks, 0);
	/* More than half full: sooner, but none that is used. */
	for (uint64_t c = 0; c < 6; c++)
		sends(t, c, 10, 1);
	look(t, 100000);
	sends(t, 3, 10, 1);
	look(t, 100000 + PAIRS_IDLE_MS);
	assert_int_equal(t->n, 1);
	assert_int_equal(t->keys[0].cookie, 3);
}

static void test_many_gangs(void **state)
{
	struct tables *t = *state;

	for (uint64_t i = 0; i < GANGS_MAX; i++)
		assert_int_equal(pairs_add_gang(t->pairs, GANGS_MAX - i), 0);
	assert_int_equal(pairs_add_gang(t->pairs, GANGS_MAX + 1), -ENOSPC);
	for (uint64_t i = 0; i < GANGS_MAX; i += 2)
		pairs_drop_gang(t->pairs, i);
	assert_int_equal(pairs_gangs(t->pairs), GANGS_MAX / 2 + 1);
}

/* --- what a part keeps --------------------------------------------------------------------- */

static void told(const struct part_talk *talk, struct exchange *x)
{
	size_t length;
	void *data;

	assert_int_equal(part_talk_pack(talk, 7.5, &data, &length), 0);
	assert_int_equal(exchange_unpack(x, data, length), 0);
	free(data);
}

static void test_part(void **state)
{
	struct tables *t = *state;
	struct part_talk *talk = part_talk_new(false);
	struct iocom_task tasks[2] = {
		{.pid = 10, .start_ns = 1010, .cgroup_id = GANG, .load.cpu_ns = 5000000},
		{.pid = 11, .start_ns = 1, .cgroup_id = GANG, .load.cpu_ns = 9000000},
	};
	struct monitor_sample sample = {.tasks = tasks, .ntasks = 2};
	struct exchange x;
	size_t length;
	void *data;

	assert_int_equal(part_talk_pack(talk, 7.5, &data, &length), -ENODATA);
	pairs_add_gang(t->pairs, GANG);
	sends(t, 1, 10, 100);
	has_rank(t, 10, -1); /* not known yet */
	for (int i = 0; i < 3; i++) {
		look(t, 1000 * (uint64_t)i);
		sample.pairs = t->out;
		part_talk_take(talk, GANG, &sample);
		part_talk_take(talk, GANG + 1, &sample); /* another job: nothing */
		sends(t, 1, 10, 10);
		sends(t, 2, 11, 1);
		if (!i)
			has_rank(t, 11, 4);
		t->task_values[0].rank = 4;
	}
	told(talk, &x);
	/* Both processes have rank 4; what the first did before it was known counts, too. */
	assert_int_equal(x.nrows, 2);
	assert_int_equal(x.rows[0].rank, 4);
	assert_int_equal(x.rows[0].sum.sent_bytes, 120);
	assert_int_equal(x.rows[0].sum.sent_messages, 3);
	assert_int_equal(x.rows[1].sum.sent_bytes, 2);
	assert_int_equal(x.ntasks, 1);
	assert_int_equal(x.tasks[0].cpu_us, 5000);
	assert_int_equal(x.tasks[0].bursts, 8);
	assert_false(x.late);
	assert_int_equal(x.disk_us, 7500);
	exchange_fini(&x);
	part_talk_free(talk);
}

static void test_part_is_bounded(void **state)
{
	struct part_talk *talk = part_talk_new(true);
	size_t n = PART_ROWS_MAX + 100;
	struct monitor_pair *pairs = calloc(n, sizeof(*pairs));
	struct monitor_sample sample = {.pairs = {.list = pairs, .n = n}};
	struct exchange x;
	uint64_t sum = 0;

	(void)state;
	for (size_t i = 0; i < n; i++)
		pairs[i] = (struct monitor_pair){
			.cgroup_id = GANG,
			.tgid = 1 + (uint32_t)(i % 3000),
			.rank = (int32_t)(i % 3000),
			.family = AF_INET,
			.local_port = (uint16_t)i,
			.remote_port = 1,
			.delta = {.sent_bytes = 10, .sent_messages = 1},
		};
	part_talk_take(talk, GANG, &sample);
	part_talk_take(talk, GANG, &sample);
	told(talk, &x);
	for (size_t i = 0; i < x.nrows; i++)
		sum += x.rows[i].sum.sent_bytes;
	assert_true(x.nrows <= EXCHANGE_ROWS_MAX);
	assert_int_equal(sum + x.rest.sent_bytes, 20 * n);
	assert_true(x.late);
	exchange_fini(&x);
	part_talk_free(talk);
	free(pairs);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_nothing_is_read_without_gangs, up, down),
		cmocka_unit_test_setup_teardown(test_differences, up, down),
		cmocka_unit_test_setup_teardown(test_ranks_are_of_processes, up, down),
		cmocka_unit_test_setup_teardown(test_idle_elements_go, up, down),
		cmocka_unit_test_setup_teardown(test_many_gangs, up, down),
		cmocka_unit_test_setup_teardown(test_part, up, down),
		cmocka_unit_test(test_part_is_bounded),
	};

	return cmocka_run_group_tests_name("monitor_pairs", tests, NULL, NULL);
}
