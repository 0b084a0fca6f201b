/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Whatever the network part writes to its log, root's log has plain lines that are named as its. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/gate/net_log.h"
#include "user/clock.h"

static struct loop *loop;
static struct logger logger;
static struct net_log net_log;
static int saved;
static FILE *written;

/* The log's lines go into a file. */
static int setup(void **state)
{
	(void)state;
	log_init(&logger, "iocomd");
	logger.systemd = true;
	saved = dup(STDERR_FILENO);
	written = tmpfile();
	if (!written || dup2(fileno(written), STDERR_FILENO) < 0)
		return -1;
	if (loop_new_virtual(&loop, CLOCK_NS_PER_S, CLOCK_NS_PER_S, NULL))
		return -1;
	return net_log_open(&net_log, loop, &logger, NULL);
}

static int teardown(void **state)
{
	(void)state;
	net_log_close(&net_log);
	loop_free(loop);
	dup2(saved, STDERR_FILENO);
	close(saved);
	fclose(written);
	return 0;
}

static void says(const char *bytes, size_t n)
{
	assert_int_equal(write(net_log.writer, bytes, n), (ssize_t)n);
	loop_advance(loop, 100 * CLOCK_NS_PER_MS);
}

static char *logged(void)
{
	static char text[1 << 20];
	size_t n;

	rewind(written);
	n = fread(text, 1, sizeof(text) - 1, written);
	text[n] = 0;
	return text;
}

static void test_lines(void **state)
{
	static const char lines[] = "<3>one\n<6>two\niocom-net: three\n<9>four\n<4>f";

	(void)state;
	says(lines, strlen(lines));
	assert_string_equal(logged(), "<3>iocom-net: one\n<6>iocom-net: two\n<4>iocom-net: three\n"
				      "<4>iocom-net: <9>four\n");
	says("ive\n", 4);
	assert_non_null(strstr(logged(), "\n<4>iocom-net: five\n"));
}

/* Nothing of it poses as root's, moves a terminal's cursor, or goes on without an end. */
static void test_hostile(void **state)
{
	static const char bytes[] = "<3>\n\n<4>\033[2Jwiped\r\0\n<0>2026 iocomd: job granted\n";
	char longest[5000];

	(void)state;
	says(bytes, sizeof(bytes) - 1);
	assert_string_equal(logged(), "<3>iocom-net: \n<4>iocom-net: ?[2Jwiped??\n"
				      "<4>iocom-net: <0>2026 iocomd: job granted\n");
	memset(longest, 'x', sizeof(longest));
	says(longest, sizeof(longest));
	says("\nafter\n", 7);
	assert_non_null(strstr(logged(), "xxx\n<4>iocom-net: after\n"));
	assert_true(strlen(logged()) < 2 * NET_LOG_LINE);
}

/* A flood is read slowly, and few of its lines are logged. */
static void test_flood(void **state)
{
	static char lines[1 << 16];
	size_t left;
	ssize_t n;

	(void)state;
	for (size_t i = 0; i + 2 <= sizeof(lines); i += 2)
		memcpy(lines + i, "x\n", 2);
	while ((n = write(net_log.writer, lines, sizeof(lines))) > 0)
		;
	assert_int_equal(n, -1); /* who writes does not wait */
	loop_advance(loop, NET_LOG_REST_NS);
	assert_true(logger.suppressed > 0);
	left = logger.suppressed;
	assert_true(left <= 2 * NET_LOG_BYTES / 2);
	loop_advance(loop, 100 * (uint64_t)NET_LOG_REST_NS);
	assert_true(logger.suppressed > left);
	assert_true(strlen(logged()) < 20000);
}

/* The last words of one that was killed are no part of the next one's. */
static void test_flush(void **state)
{
	(void)state;
	says("<3>unfini", 9);
	net_log_flush(&net_log);
	says("<6>begins\n", 10);
	assert_string_equal(logged(), "<3>iocom-net: unfini\n<6>iocom-net: begins\n");
}

#define with(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {with(test_lines), with(test_hostile), with(test_flood),
					   with(test_flush)};

	return cmocka_run_group_tests_name("net_log", tests, NULL, NULL);
}
