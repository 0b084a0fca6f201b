/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Steps of the date and suspends: spans stay the same and are never negative. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "user/monitor/monitor_clock.h"

#define S    1000000000ULL
#define DATE (1700000000ULL * S)

static struct monitor_clock began = {.real_ns = DATE, .boot_ns = 500 * S, .monotonic_ns = 400 * S};

static struct monitor_clock after(uint64_t awake_s, uint64_t asleep_s, int64_t step_s)
{
	struct monitor_clock now = began;

	now.monotonic_ns += awake_s * S;
	now.boot_ns += (awake_s + asleep_s) * S;
	now.real_ns += (awake_s + asleep_s) * S + (uint64_t)(step_s * (int64_t)S);
	return now;
}

static void test_plain(void **state)
{
	struct monitor_clock now = after(7, 0, 0);

	(void)state;
	assert_int_equal(monitor_clock_elapsed(&began, &now), 7 * S);
	assert_int_equal(monitor_clock_suspended(&began, &now), 0);
	assert_int_equal(monitor_clock_date(&began, &now), DATE);
}

/* An hour back, a year forward: elapsed time does not change, the start moves along. */
static void test_steps(void **state)
{
	static const int64_t steps[] = {-3600, 3600, -31536000, 31536000};

	(void)state;
	for (size_t i = 0; i < sizeof(steps) / sizeof(*steps); i++) {
		struct monitor_clock now = after(7, 0, steps[i]);

		assert_int_equal(monitor_clock_elapsed(&began, &now), 7 * S);
		assert_int_equal(monitor_clock_suspended(&began, &now), 0);
		assert_int_equal(now.real_ns - monitor_clock_date(&began, &now), 7 * S);
	}
}

static void test_suspend(void **state)
{
	struct monitor_clock now = after(7, 1000, 0);

	(void)state;
	assert_int_equal(monitor_clock_elapsed(&began, &now), 7 * S);
	assert_int_equal(monitor_clock_suspended(&began, &now), 1000 * S);
	assert_int_equal(now.real_ns - monitor_clock_date(&began, &now), 1007 * S);
	now.boot_ns = began.boot_ns + 7 * S + 900; /* read a little later */
	assert_int_equal(monitor_clock_suspended(&began, &now), 0);
}

/* Nothing underflows: readings in the wrong order, a date near 1970. */
static void test_bounds(void **state)
{
	struct monitor_clock now = after(7, 0, 0), early = after(7, 0, 0);

	(void)state;
	assert_int_equal(monitor_clock_elapsed(&now, &began), 0);
	assert_int_equal(monitor_clock_suspended(&now, &began), 0);
	assert_int_equal(monitor_clock_date(&now, &began), DATE);
	early.real_ns = 3 * S;
	assert_int_equal(monitor_clock_date(&began, &early), 0);
}

static void test_read(void **state)
{
	struct monitor_clock first, second;

	(void)state;
	monitor_clock_read(&first);
	monitor_clock_read(&second);
	assert_true(first.real_ns > 0 && first.boot_ns > 0);
	assert_true(second.monotonic_ns >= first.monotonic_ns);
	assert_true(second.boot_ns >= first.boot_ns);
	assert_true(first.boot_ns + S > first.monotonic_ns);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_plain),	cmocka_unit_test(test_steps),
		cmocka_unit_test(test_suspend), cmocka_unit_test(test_bounds),
		cmocka_unit_test(test_read),
	};

	return cmocka_run_group_tests_name("monitor_clock", tests, NULL, NULL);
}
