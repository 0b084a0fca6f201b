/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Sockets are read at once, or when what came has gathered for a while. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "agent/net/gathering.h"
#include "user/clock.h"

#define SOURCES 100 /* more than are looked at in one go */
#define EVERY	(200 * CLOCK_NS_PER_MS)
#define MS	CLOCK_NS_PER_MS

static struct source {
	struct loop_fd entry;
	int writes;
	unsigned came;
} sources[SOURCES];
static struct loop *loop;
static struct gathering *gathering;
static unsigned rounds;

static void ready(void *arg, uint32_t events)
{
	struct source *s = arg;
	char c;

	(void)events;
	assert_int_equal(read(s->entry.fd, &c, 1), 1);
	s->came++;
}

static void gathered(void *arg)
{
	unsigned *count = arg;

	++*count;
}

static int setup(void **state)
{
	int ends[2];

	(void)state;
	rounds = 0;
	assert_int_equal(loop_new_virtual(&loop, CLOCK_NS_PER_S, CLOCK_NS_PER_S, NULL), 0);
	assert_int_equal(gathering_new(&gathering, loop, gathered, &rounds, NULL), 0);
	for (size_t i = 0; i < SOURCES; i++) {
		assert_int_equal(pipe(ends), 0);
		sources[i] = (struct source){.writes = ends[1]};
		sources[i].entry =
			(struct loop_fd){.fd = ends[0], .ready = ready, .arg = &sources[i]};
		assert_int_equal(loop_add(gathering_loop(gathering), &sources[i].entry, EPOLLIN),
				 0);
	}
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	for (size_t i = 0; i < SOURCES; i++) {
		loop_remove(gathering_loop(gathering), &sources[i].entry);
		close(sources[i].entry.fd);
		close(sources[i].writes);
	}
	gathering_free(gathering);
	loop_free(loop);
	return 0;
}

static void say(size_t i)
{
	assert_int_equal(write(sources[i].writes, "x", 1), 1);
}

static unsigned came(void)
{
	unsigned n = 0;

	for (size_t i = 0; i < SOURCES; i++)
		n += sources[i].came;
	return n;
}

static void test_at_once(void **state)
{
	(void)state;
	loop_advance(loop, MS);
	assert_int_equal(rounds, 0); /* nothing came */
	say(3);
	loop_advance(loop, MS);
	assert_int_equal(sources[3].came, 1);
	assert_int_equal(rounds, 1);
}

static void test_gathers(void **state)
{
	(void)state;
	gathering_set(gathering, EVERY);
	gathering_set(gathering, EVERY); /* again: the time is not counted anew */
	for (size_t i = 0; i < SOURCES; i++)
		say(i);
	loop_advance(loop, EVERY - MS);
	assert_int_equal(came(), 0);
	loop_advance(loop, MS);
	assert_int_equal(came(), SOURCES); /* all, in one round */
	assert_int_equal(rounds, 1);
	loop_advance(loop, 10 * EVERY);
	assert_int_equal(came(), SOURCES);
}

/* Whoever needs it now reads it now, and the next time is a whole one later. */
static void test_now(void **state)
{
	(void)state;
	gathering_set(gathering, EVERY);
	loop_advance(loop, EVERY / 2);
	say(1);
	gathering_read(gathering);
	assert_int_equal(came(), 1);
	say(2);
	loop_advance(loop, EVERY - MS);
	assert_int_equal(came(), 1);
	loop_advance(loop, MS);
	assert_int_equal(came(), 2);
}

/* What has come meanwhile is read at once when the cluster is small again. */
static void test_back(void **state)
{
	(void)state;
	gathering_set(gathering, EVERY);
	say(1);
	loop_advance(loop, MS);
	assert_int_equal(came(), 0);
	gathering_set(gathering, 0);
	loop_advance(loop, MS);
	assert_int_equal(came(), 1);
	say(2);
	loop_advance(loop, MS);
	assert_int_equal(came(), 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_at_once, setup, teardown),
		cmocka_unit_test_setup_teardown(test_gathers, setup, teardown),
		cmocka_unit_test_setup_teardown(test_now, setup, teardown),
		cmocka_unit_test_setup_teardown(test_back, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
