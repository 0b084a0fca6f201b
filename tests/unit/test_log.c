/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Log lines: how many per second, and that lines which strangers cause hide no others. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "user/log.h"

#define FLOOD 1000

/* Sends standard error into a file from here on. Returns the old one. */
static int capture(FILE **file)
{
	int before = dup(STDERR_FILENO);

	*file = tmpfile();
	assert_non_null(*file);
	assert_true(before >= 0);
	assert_int_equal(dup2(fileno(*file), STDERR_FILENO), STDERR_FILENO);
	return before;
}

static void release(int before)
{
	fflush(stderr);
	dup2(before, STDERR_FILENO);
	close(before);
}

static unsigned lines_with(FILE *file, const char *text)
{
	char line[2048];
	unsigned n = 0;

	rewind(file);
	while (fgets(line, sizeof(line), file))
		n += strstr(line, text) != NULL;
	return n;
}

static time_t second(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return now.tv_sec;
}

static void flood(struct logger *logger, bool provoked)
{
	for (int i = 0; i < FLOOD; i++)
		if (provoked)
			log_provoked(logger, LOG_L_WARNING, "of a stranger %d", i);
		else
			log_write(logger, LOG_L_WARNING, "of a stranger %d", i);
}

/*
 * Logs many lines within one second, or repeats that.  Standard error stays as capture() leaves it.
 */
static int flood_of_one_second(struct logger *logger, FILE **file, bool provoked)
{
	for (;;) {
		time_t began = second();
		int before = capture(file);

		log_init(logger, "test");
		flood(logger, provoked);
		if (second() == began)
			return before;
		release(before);
		fclose(*file);
	}
}

static void test_strangers_hide_nothing(void **state)
{
	struct logger logger;
	FILE *file;
	int before;

	(void)state;
	before = flood_of_one_second(&logger, &file, true);
	for (int i = 0; i < 20; i++)
		log_write(&logger, LOG_L_ERROR, "of ours %d", i);
	release(before);
	assert_int_equal(lines_with(file, "of ours"), 20);
	assert_true(lines_with(file, "of a stranger 0\n") == 1);
	assert_true(lines_with(file, "of a stranger") < FLOOD / 2);
	/* Each line is written or counted as lost. */
	assert_int_equal(lines_with(file, "of a stranger") + logger.suppressed, FLOOD);
	fclose(file);
}

/* The counterpart: without a share of their own such lines would hide the others. */
static void test_all_have_a_bound(void **state)
{
	struct logger logger;
	FILE *file;
	int before;

	(void)state;
	before = flood_of_one_second(&logger, &file, false);
	release(before);
	assert_true(lines_with(file, "of a stranger") < FLOOD / 2);
	assert_int_equal(lines_with(file, "of a stranger") + logger.suppressed, FLOOD);
	fclose(file);
}

static void test_what_was_lost_is_said_once(void **state)
{
	struct logger logger;
	uint64_t lost;
	FILE *file;
	int before;
	char said[64];

	(void)state;
	before = flood_of_one_second(&logger, &file, true);
	lost = logger.suppressed;
	while (logger.lost) { /* the next second, or the one after it */
		usleep(50000);
		log_write(&logger, LOG_L_INFO, "of ours");
	}
	release(before);
	snprintf(said, sizeof(said), "%llu log lines suppressed", (unsigned long long)lost);
	assert_int_equal(lines_with(file, said), 1);
	assert_int_equal(lines_with(file, "lines suppressed"), 1);
	fclose(file);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_strangers_hide_nothing),
		cmocka_unit_test(test_all_have_a_bound),
		cmocka_unit_test(test_what_was_lost_is_said_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
