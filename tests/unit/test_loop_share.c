/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * How much of the loop's time a user gets, on a virtual clock: the bucket alone, and local clients
 * whose requests take time.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "agent/base/loop_share.h"
#include "agent/front/clients.h"
#include "user/clock.h"
#include "user/frame.h"
#include "user/pack.h"

#define BEGIN_NS (1000 * CLOCK_NS_PER_S)
#define MS	 CLOCK_NS_PER_MS
#define ANNA	 1000
#define BERT	 1001
#define CROWD	 8 /* connections of one user */

struct stand {
	struct settings set;
	struct logger log;
	struct counters counters;
	struct base base;
	struct loop_share share;
	struct clients *clients;
	struct clients_watch watch;
	char dir[40];
	uint64_t cost_ns;		    /* what each request takes */
	uint64_t root_ns, anna_ns, bert_ns; /* what they took */
};

static void handle(void *arg, struct client *client, const msgpack_object *request)
{
	struct stand *s = arg;
	uid_t uid = client_who(client)->uid;

	(void)request;
	loop_spend(s->base.loop, s->cost_ns);
	*(!uid ? &s->root_ns : uid == ANNA ? &s->anna_ns : &s->bert_ns) += s->cost_ns;
	client_json(client, json_object());
}

/* A job's start that takes long and is refused. */
static int start(void *arg, int fd, const void *payload, uint32_t length, const struct ucred *local,
		 struct iocom_err *err)
{
	struct stand *s = arg;

	(void)fd;
	(void)payload;
	(void)length;
	(void)local;
	loop_spend(s->base.loop, s->cost_ns);
	return iocom_err_set(err, -EACCES, "no");
}

static void closed(void *arg, struct client *client)
{
	struct stand *s = arg;

	(void)client;
	loop_spend(s->base.loop, s->cost_ns);
}

static int begin(void **state)
{
	static struct stand s;
	const struct clients_config config = {.base = &s.base,
					      .request = handle,
					      .request_arg = &s,
					      .start = start,
					      .attach = start,
					      .stream_arg = &s};

	s = (struct stand){.base = {.log = &s.log, .counters = &s.counters, .set = &s.set}};
	*state = &s;
	log_init(&s.log, "test");
	strcpy(s.dir, "/tmp/iocom-share-XXXXXX");
	assert_non_null(mkdtemp(s.dir));
	strcpy(s.set.run_dir, s.dir);
	assert_int_equal(loop_new_virtual(&s.base.loop, BEGIN_NS, BEGIN_NS, NULL), 0);
	loop_share_init(&s.share, s.base.loop);
	s.base.shares = &s.share;
	assert_int_equal(clients_new(&s.clients, &config, NULL), 0);
	return 0;
}

static int end(void **state)
{
	struct stand *s = *state;

	s->cost_ns = 0;
	clients_free(s->clients);
	loop_free(s->base.loop);
	rmdir(s->dir);
	return 0;
}

/* --- the bucket ---------------------------------------------------------------------- */

static void work(struct stand *s, uid_t uid, uint64_t span_ns)
{
	uid_t before = loop_share_enter(&s->share, uid);

	loop_spend(s->base.loop, span_ns);
	loop_share_leave(&s->share, before);
}

static void test_half(void **state)
{
	struct stand *s = *state;
	uint64_t worked = 0, until = BEGIN_NS + 100 * CLOCK_NS_PER_S;

	while (loop_boot_ns(s->base.loop) < until) {
		if (loop_share_spent(&s->share, ANNA)) {
			loop_spend(s->base.loop, loop_share_wait_ns(&s->share, ANNA));
			assert_false(loop_share_spent(&s->share, ANNA));
			continue;
		}
		work(s, ANNA, MS);
		worked += MS;
	}
	assert_in_range(worked, 50 * CLOCK_NS_PER_S,
			50 * CLOCK_NS_PER_S + LOOP_SHARE_BURST_NS + 10 * MS);
}

static void test_free_of_charge(void **state)
{
	struct stand *s = *state;

	work(s, 0, 60 * CLOCK_NS_PER_S);
	assert_false(loop_share_spent(&s->share, 0));
	assert_int_equal(loop_share_wait_ns(&s->share, 0), 0);
	work(s, LOOP_SHARE_NOBODY, 60 * CLOCK_NS_PER_S);
	assert_false(loop_share_spent(&s->share, LOOP_SHARE_NOBODY));
	/* What is done for nobody in between is nobody's, too. */
	loop_spend(s->base.loop, 60 * CLOCK_NS_PER_S);
	work(s, ANNA, MS);
	assert_false(loop_share_spent(&s->share, ANNA));
	assert_int_equal(loop_share_enter(NULL, ANNA), LOOP_SHARE_NOBODY);
	loop_share_leave(NULL, LOOP_SHARE_NOBODY);
	assert_false(loop_share_spent(NULL, ANNA));
	assert_int_equal(loop_share_wait_ns(NULL, ANNA), 0);
}

static int64_t left(const struct stand *s, uid_t uid)
{
	for (size_t i = 0; i < LOOP_SHARE_USERS; i++)
		if (s->share.users[i].used && s->share.users[i].uid == uid)
			return s->share.users[i].left_ns;
	return INT64_MIN;
}

/* An answer to one user may be made while the loop works for another: each pays its own. */
static void test_one_within_the_other(void **state)
{
	struct stand *s = *state;
	uid_t none = loop_share_enter(&s->share, ANNA), anna;

	assert_int_equal(none, LOOP_SHARE_NOBODY);
	loop_spend(s->base.loop, 100 * MS);
	anna = loop_share_enter(&s->share, BERT);
	assert_int_equal(anna, ANNA);
	loop_spend(s->base.loop, 20 * MS);
	loop_share_leave(&s->share, anna);
	assert_int_equal(loop_share_enter(&s->share, ANNA), ANNA);
	loop_share_leave(&s->share, ANNA);
	loop_spend(s->base.loop, 30 * MS);
	loop_share_leave(&s->share, none);
	assert_int_equal(left(s, BERT), LOOP_SHARE_BURST_NS - 20 * (int64_t)MS);
	/* 100 and 30 were taken; 25 of the 50 after the first 100 came back. */
	assert_int_equal(left(s, ANNA), LOOP_SHARE_BURST_NS - 105 * (int64_t)MS);
}

static void test_debt_is_bounded(void **state)
{
	struct stand *s = *state;

	work(s, ANNA, 60 * CLOCK_NS_PER_S);
	assert_int_equal(left(s, ANNA), -LOOP_SHARE_DEBT_NS);
	assert_int_equal(loop_share_wait_ns(&s->share, ANNA),
			 LOOP_SHARE_PART * (LOOP_SHARE_DEBT_NS + LOOP_SHARE_RESUME_NS));
	loop_spend(s->base.loop, LOOP_SHARE_PART * LOOP_SHARE_DEBT_NS);
	assert_true(loop_share_spent(&s->share, ANNA));
	loop_spend(s->base.loop, 10 * MS);
	assert_false(loop_share_spent(&s->share, ANNA));
	/* Whoever waits longer gets no more than the burst. */
	loop_spend(s->base.loop, 3600 * CLOCK_NS_PER_S);
	work(s, ANNA, LOOP_SHARE_BURST_NS - 1);
	assert_false(loop_share_spent(&s->share, ANNA));
	work(s, ANNA, 2);
	assert_true(loop_share_spent(&s->share, ANNA));
}

static void test_full_table(void **state)
{
	struct stand *s = *state;

	for (uid_t uid = 1; uid <= LOOP_SHARE_USERS; uid++)
		work(s, uid, MS);
	assert_true(left(s, 1) > 0);
	work(s, LOOP_SHARE_USERS + 1, MS); /* in the place of the first */
	assert_true(left(s, 1) == INT64_MIN);
	assert_true(left(s, 2) > 0);
}

/* --- clients -------------------------------------------------------------------------- */

static int joins(struct stand *s, uid_t uid)
{
	const struct ucred who = {.pid = 1, .uid = uid, .gid = uid};
	int ends[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends),
			 0);
	assert_non_null(clients_adopt(s->clients, ends[1], &who));
	return ends[0];
}

static void asks(int fd)
{
	msgpack_sbuffer map;
	msgpack_packer pk;

	pack_begin(&pk, &map, 1);
	pack_str(&pk, "op", "x");
	assert_int_equal(frame_write(fd, FRAME_REQUEST, map.data, (uint32_t)map.size), 0);
	msgpack_sbuffer_destroy(&map);
}

static bool answered(int fd)
{
	char text[256];

	return recv(fd, text, sizeof(text), 0) > 0;
}

/* CROWD connections of UID, each of which asks again as soon as it has its answer. */
static void crowd_asks(const int fds[CROWD])
{
	for (size_t i = 0; i < CROWD; i++)
		if (answered(fds[i]))
			asks(fds[i]);
}

/* Ten seconds of a user that asks without end, and of one that asks ten times a second. */
static uint64_t ten_seconds(struct stand *s, uid_t uid)
{
	uint64_t until, asked = 0, most_ns = 0, next;
	int fds[CROWD], bert = joins(s, BERT);
	bool waits = false;

	s->cost_ns = MS;
	for (size_t i = 0; i < CROWD; i++) {
		fds[i] = joins(s, uid);
		asks(fds[i]);
	}
	next = loop_boot_ns(s->base.loop);
	until = next + 10 * CLOCK_NS_PER_S;
	while (loop_boot_ns(s->base.loop) < until) {
		uint64_t now = loop_boot_ns(s->base.loop);

		if (!waits && now >= next) {
			asks(bert);
			asked = now;
			waits = true;
			next += 100 * MS;
		}
		loop_advance(s->base.loop, MS);
		crowd_asks(fds);
		if (waits && answered(bert)) {
			waits = false;
			now = loop_boot_ns(s->base.loop);
			if (now - asked > most_ns)
				most_ns = now - asked;
		}
	}
	/* The loop serves all that wait, one after the other. */
	assert_true(most_ns <= (CROWD + 2) * MS);
	assert_true(s->bert_ns >= 99 * MS);
	for (size_t i = 0; i < CROWD; i++)
		close(fds[i]);
	close(bert);
	return uid ? s->anna_ns : s->root_ns;
}

static void test_clients_get_half(void **state)
{
	struct stand *s = *state;
	uint64_t took = ten_seconds(s, ANNA);

	assert_in_range(took, 4900 * MS, 5000 * MS + LOOP_SHARE_BURST_NS + CROWD * MS);
	assert_true(s->counters.requests_delayed > 0);
	assert_int_equal(s->counters.clients_dropped, 0);
	assert_int_equal(s->counters.requests_refused_rate, 0);
}

static void test_root_gets_all(void **state)
{
	struct stand *s = *state;

	assert_true(ten_seconds(s, 0) > 8500 * MS);
	assert_int_equal(s->counters.requests_delayed, 0);
}

/* Not only requests: the start of a job, and the end of a connection. */
static void test_what_is_charged(void **state)
{
	struct stand *s = *state;
	int fd = joins(s, ANNA);

	s->watch = (struct clients_watch){.closed = closed, .arg = s};
	clients_watch(s->clients, &s->watch);
	s->cost_ns = 200 * MS;
	assert_int_equal(frame_write(fd, FRAME_START, "\x80", 1), 0);
	loop_advance(s->base.loop, 0);
	assert_int_equal(left(s, ANNA), LOOP_SHARE_BURST_NS - 200 * (int64_t)MS);
	assert_int_equal(frame_write(fd, FRAME_ATTACH, "\x80", 1), 0);
	loop_advance(s->base.loop, 0);
	assert_int_equal(left(s, ANNA), LOOP_SHARE_BURST_NS - 300 * (int64_t)MS);
	asks(fd);
	loop_advance(s->base.loop, 0);
	assert_int_equal(left(s, ANNA), LOOP_SHARE_BURST_NS - 400 * (int64_t)MS);
	close(fd);
	loop_advance(s->base.loop, 0);
	assert_int_equal(left(s, ANNA), LOOP_SHARE_BURST_NS - 500 * (int64_t)MS);
}

/* A client that waits is not forgotten: it is dropped when it leaves, and not for being slow. */
static void test_waiting_clients(void **state)
{
	struct stand *s = *state;
	int one = joins(s, ANNA), other = joins(s, ANNA);

	s->cost_ns = 1500 * MS;
	asks(one);
	loop_advance(s->base.loop, 0);
	assert_true(answered(one));
	asks(other);
	loop_advance(s->base.loop, 0);
	assert_int_equal(s->anna_ns, 1500 * MS);
	assert_int_equal(s->counters.requests_delayed, 1);
	close(one);
	loop_advance(s->base.loop, MS);
	assert_int_equal(clients_count(s->clients), 1);
	assert_false(answered(other));
	loop_advance(s->base.loop, 1900 * MS);
	assert_false(answered(other));
	loop_advance(s->base.loop, 120 * MS);
	assert_true(answered(other));
	assert_int_equal(s->anna_ns, 3000 * MS);
	close(other);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(test_half),
		CASE(test_free_of_charge),
		CASE(test_one_within_the_other),
		CASE(test_debt_is_bounded),
		CASE(test_full_table),
		CASE(test_clients_get_half),
		CASE(test_root_gets_all),
		CASE(test_what_is_charged),
		CASE(test_waiting_clients),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
