/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* The loop's turns: endless posts must not keep timers or descriptors from their turn. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "user/clock.h"
#include "agent/base/loop.h"

#define POSTS_ENOUGH 100000 /* a loop that only runs posts is stopped after this number */
#define MANY	     1000

struct stand {
	struct loop *loop;
	struct loop_post post;
	struct loop_timer timer;
	struct loop_fd entry;
	unsigned posts, fired, readable;
};

static void post_again(void *arg)
{
	struct stand *s = arg;

	if (++s->posts < POSTS_ENOUGH)
		loop_post(s->loop, &s->post);
	else
		loop_stop(s->loop);
}

static void fire(void *arg)
{
	struct stand *s = arg;

	s->fired++;
	if (s->readable)
		loop_stop(s->loop);
	else
		loop_start(s->loop, &s->timer, 0);
}

static void ready(void *arg, uint32_t events)
{
	struct stand *s = arg;

	(void)events;
	s->readable++;
	loop_remove(s->loop, &s->entry);
}

/* Like junk from a peer: handling one message posts the next. */
static void test_posts_without_end(void **state)
{
	struct stand s = {0};
	int ends[2];

	(void)state;
	assert_int_equal(loop_new(&s.loop, NULL), 0);
	assert_int_equal(pipe(ends), 0);
	assert_int_equal(write(ends[1], "x", 1), 1);
	s.post = (struct loop_post){.run = post_again, .arg = &s};
	s.timer = (struct loop_timer){.fire = fire, .arg = &s};
	s.entry = (struct loop_fd){.fd = ends[0], .ready = ready, .arg = &s};
	assert_int_equal(loop_add(s.loop, &s.entry, EPOLLIN), 0);
	loop_post(s.loop, &s.post);
	loop_start(s.loop, &s.timer, 0);
	assert_int_equal(loop_run(s.loop), 0);
	assert_true(s.fired >= 1);
	assert_int_equal(s.readable, 1);
	assert_true(s.posts < MANY);
	loop_unpost(s.loop, &s.post);
	loop_free(s.loop);
	close(ends[0]);
	close(ends[1]);
}

static unsigned ran;
static struct loop *counting;

static void count(void *arg)
{
	(void)arg;
	if (++ran == MANY)
		loop_stop(counting);
}

static void *post_all(void *arg)
{
	struct loop_post *posts = arg;

	for (int i = 0; i < MANY; i++)
		loop_post(counting, &posts[i]);
	return NULL;
}

/* Another thread makes more posts than one turn takes: each runs once. */
static void test_all_posts_run(void **state)
{
	static struct loop_post posts[MANY];
	pthread_t thread;

	(void)state;
	ran = 0;
	assert_int_equal(loop_new(&counting, NULL), 0);
	for (int i = 0; i < MANY; i++)
		posts[i] = (struct loop_post){.run = count};
	assert_int_equal(pthread_create(&thread, NULL, post_all, posts), 0);
	assert_int_equal(loop_run(counting), 0);
	pthread_join(thread, NULL);
	assert_int_equal(ran, MANY);
	for (int i = 0; i < MANY; i++)
		assert_false(posts[i].queued);
	loop_free(counting);
}

static void never(void *arg)
{
	(void)arg;
	fail();
}

static void stop_now(void *arg)
{
	loop_stop(arg);
}

/* A removed post does not run, wherever in the queue it was. */
static void test_unpost(void **state)
{
	struct loop_post out[3], last;
	struct loop *loop = NULL;

	(void)state;
	assert_int_equal(loop_new(&loop, NULL), 0);
	last = (struct loop_post){.run = stop_now, .arg = loop};
	for (int i = 0; i < 3; i++) {
		out[i] = (struct loop_post){.run = never};
		loop_post(loop, &out[i]);
	}
	loop_unpost(loop, &out[1]);
	loop_unpost(loop, &out[2]);
	loop_unpost(loop, &out[0]);
	loop_unpost(loop, &out[0]);
	loop_post(loop, &last);
	assert_int_equal(loop_run(loop), 0);
	assert_false(last.queued);
	loop_free(loop);
}

static void note_time(void *arg)
{
	*(uint64_t *)arg = clock_boot_ns();
}

/* A lax timer waits for the next wake-up, but not for longer than it may. */
static void test_lax(void **state)
{
	uint64_t lax_ns = 0, alone_ns = 0;
	struct loop_timer lax = {.fire = note_time, .arg = &lax_ns, .lax_ns = CLOCK_NS_PER_S};
	struct loop_timer alone = {.fire = note_time, .arg = &alone_ns};
	struct loop_timer strict, last;
	struct loop *loop;

	(void)state;
	alone.lax_ns = 20 * CLOCK_NS_PER_MS;
	assert_int_equal(loop_new(&loop, NULL), 0);
	strict = (struct loop_timer){.fire = stop_now, .arg = loop};
	last = strict;
	loop_start(loop, &lax, CLOCK_NS_PER_MS);
	loop_start(loop, &strict, 60 * CLOCK_NS_PER_MS);
	assert_int_equal(loop_run(loop), 0);
	assert_true(lax_ns >= strict.due_ns); /* though it was due 59 ms earlier */
	loop_start(loop, &alone, CLOCK_NS_PER_MS);
	loop_start(loop, &last, 60 * CLOCK_NS_PER_S);
	lax.fire = stop_now;
	lax.arg = loop;
	lax.lax_ns = 0;
	loop_start(loop, &lax, 200 * CLOCK_NS_PER_MS);
	assert_int_equal(loop_run(loop), 0);
	assert_true(alone_ns >= alone.due_ns + alone.lax_ns && alone_ns < lax.due_ns);
	loop_cancel(loop, &last);
	loop_free(loop);
}

/* One that is not due yet comes along when the loop is awake, if an eighth of its laxness is left.
 */
static void test_early(void **state)
{
	uint64_t early_ns = 0, later_ns = 0, often_ns = 0;
	struct loop_timer early = {.fire = note_time, .arg = &early_ns, .lax_ns = CLOCK_NS_PER_S};
	struct loop_timer later = {.fire = note_time, .arg = &later_ns, .lax_ns = CLOCK_NS_PER_S};
	struct loop_timer often = {.fire = note_time, .arg = &often_ns, .lax_ns = CLOCK_NS_PER_S};
	struct loop_timer strict;
	struct loop *loop;

	(void)state;
	assert_int_equal(loop_new(&loop, NULL), 0);
	strict = (struct loop_timer){.fire = stop_now, .arg = loop};
	loop_start(loop, &strict, 20 * CLOCK_NS_PER_MS);
	loop_start(loop, &early, 20 * CLOCK_NS_PER_S);
	loop_start(loop, &later, 20 * CLOCK_NS_PER_S);
	loop_start(loop, &often, 0);
	assert_int_equal(often.early_ns, 0); /* one that is restarted at once never comes early */
	assert_in_range(early.early_ns, 1, CLOCK_NS_PER_S / 8);
	/* As if the times were near. */
	early.due_ns = strict.due_ns + early.early_ns;
	later.due_ns = strict.due_ns + 60 * CLOCK_NS_PER_S;
	assert_int_equal(loop_run(loop), 0);
	assert_true(often_ns > 0);
	assert_true(early_ns > 0);
	assert_int_equal(later_ns, 0);
	assert_true(later.active);
	loop_cancel(loop, &early);
	loop_cancel(loop, &later);
	loop_free(loop);
}

struct late_stand {
	struct loop *loop;
	struct loop_timer timer, before;
	uint64_t late_ns, fired_ns;
};

static void note_late(void *arg)
{
	struct late_stand *s = arg;

	s->late_ns = loop_late_ns(s->loop, &s->timer);
	s->fired_ns = clock_boot_ns();
	loop_stop(s->loop);
}

static void hold_up(void *arg)
{
	uint64_t until = clock_boot_ns() + 30 * CLOCK_NS_PER_MS;

	(void)arg;
	while (clock_boot_ns() < until)
		;
}

/* What the loop sleeps for a lax timer's sake is no delay; what a handler takes is one. */
static void test_late(void **state)
{
	struct late_stand s = {0};
	uint64_t lax_ns = 40 * CLOCK_NS_PER_MS;

	(void)state;
	assert_int_equal(loop_new(&s.loop, NULL), 0);
	s.timer = (struct loop_timer){.fire = note_late, .arg = &s, .lax_ns = lax_ns};
	s.before = (struct loop_timer){.fire = hold_up};
	loop_start(s.loop, &s.timer, CLOCK_NS_PER_MS);
	assert_int_equal(loop_run(s.loop), 0);
	assert_true(s.fired_ns >= s.timer.due_ns + lax_ns);
	assert_true(s.late_ns <= s.fired_ns - s.timer.due_ns - lax_ns);
	loop_start(s.loop, &s.before, CLOCK_NS_PER_MS);
	loop_start(s.loop, &s.timer, 2 * CLOCK_NS_PER_MS);
	assert_int_equal(loop_run(s.loop), 0);
	assert_true(s.late_ns >= 20 * CLOCK_NS_PER_MS);
	loop_free(s.loop);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_posts_without_end),
		cmocka_unit_test(test_all_posts_run),
		cmocka_unit_test(test_unpost),
		cmocka_unit_test(test_lax),
		cmocka_unit_test(test_early),
		cmocka_unit_test(test_late),
	};

	return cmocka_run_group_tests_name("loop", tests, NULL, NULL);
}
