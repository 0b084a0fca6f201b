/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* The loop's tick on a virtual clock: what it counts, and which delay it shows for how long. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "agent/base/tick.h"
#include "user/clock.h"

#define BEGIN_NS (1000 * CLOCK_NS_PER_S)

struct stand {
	struct loop *loop;
	struct counters counters;
	struct tick tick;
};

static int begin(void **state)
{
	static struct stand s;

	s = (struct stand){0};
	*state = &s;
	assert_int_equal(loop_new_virtual(&s.loop, BEGIN_NS, BEGIN_NS, NULL), 0);
	tick_start(&s.tick, s.loop, &s.counters, 0);
	return 0;
}

static int end(void **state)
{
	struct stand *s = *state;

	loop_free(s->loop);
	return 0;
}

/* Lets the next tick come LATE_MS too late: what a handler does that holds the loop up. */
static void hold(struct stand *s, uint64_t late_ms)
{
	s->tick.timer.due_ns = loop_boot_ns(s->loop) - late_ms * CLOCK_NS_PER_MS;
	loop_advance(s->loop, 0);
}

static void test_two_a_second(void **state)
{
	struct stand *s = *state;

	loop_advance(s->loop, 499 * CLOCK_NS_PER_MS);
	assert_int_equal(s->counters.ticks, 0);
	loop_advance(s->loop, CLOCK_NS_PER_MS);
	assert_int_equal(s->counters.ticks, 1);
	loop_advance(s->loop, 100 * CLOCK_NS_PER_S);
	assert_int_equal(s->counters.ticks, 201);
	assert_int_equal(s->counters.tick_late_ms, 0);
}

/* The first one comes with another moment at which the loop is awake, of which it knows one. */
static void test_with_others(void **state)
{
	static const struct {
		uint64_t with_ms, first_ms;
	} cases[] = {{700, 200}, {500, 500}, {1, 1}, {1000, 500}, {0, 500}};
	struct stand *s = *state;

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		uint64_t now = loop_boot_ns(s->loop);

		loop_cancel(s->loop, &s->tick.timer);
		tick_start(&s->tick, s->loop, &s->counters,
			   cases[i].with_ms ? now + cases[i].with_ms * CLOCK_NS_PER_MS : 0);
		assert_int_equal(s->tick.timer.due_ns - now, cases[i].first_ms * CLOCK_NS_PER_MS);
		loop_advance(s->loop, CLOCK_NS_PER_MS);
	}
}

/* A tick that came 1,700 ms late stands for four, and the next one is due 300 ms later. */
static void test_missed_ticks_are_skipped(void **state)
{
	struct stand *s = *state;

	hold(s, 1700);
	assert_int_equal(s->counters.ticks, 1);
	assert_int_equal(s->counters.tick_late_ms, 1700);
	loop_advance(s->loop, 299 * CLOCK_NS_PER_MS);
	assert_int_equal(s->counters.ticks, 1);
	loop_advance(s->loop, CLOCK_NS_PER_MS);
	assert_int_equal(s->counters.ticks, 2);
	assert_int_equal(s->counters.tick_late_ms, 1700);
}

static void test_the_greatest_delay_of_a_minute(void **state)
{
	struct stand *s = *state;

	hold(s, 300);
	loop_advance(s->loop, 10 * CLOCK_NS_PER_S);
	hold(s, 900);
	loop_advance(s->loop, 10 * CLOCK_NS_PER_S);
	hold(s, 20);
	assert_int_equal(s->counters.tick_late_ms, 900);
	loop_advance(s->loop, 44 * CLOCK_NS_PER_S); /* the 900 ms were 54 s ago */
	assert_int_equal(s->counters.tick_late_ms, 900);
	loop_advance(s->loop, 7 * CLOCK_NS_PER_S); /* 61 s */
	assert_int_equal(s->counters.tick_late_ms, 20);
	loop_advance(s->loop, 10 * CLOCK_NS_PER_S);
	assert_int_equal(s->counters.tick_late_ms, 0);
}

/* After a long sleep of the machine nothing older shows. */
static void test_a_sleep(void **state)
{
	struct stand *s = *state;

	hold(s, 5000);
	s->tick.timer.due_ns += 3600 * CLOCK_NS_PER_S;
	loop_advance(s->loop, 3601 * CLOCK_NS_PER_S);
	assert_int_equal(s->counters.tick_late_ms, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_two_a_second, begin, end),
		cmocka_unit_test_setup_teardown(test_with_others, begin, end),
		cmocka_unit_test_setup_teardown(test_missed_ticks_are_skipped, begin, end),
		cmocka_unit_test_setup_teardown(test_the_greatest_delay_of_a_minute, begin, end),
		cmocka_unit_test_setup_teardown(test_a_sleep, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
