/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "balancer/batch/batch.h"

#define WORDS 8

static size_t split(char *line, char **words)
{
	return batch_words(line, words, WORDS);
}

static void test_words(void **state)
{
	char line[] = "  gzip -9\t a.log  b=c ", many[] = "1 2 3 4 5 6 7", *words[WORDS];

	(void)state;
	assert_int_equal(split(line, words), 4);
	assert_string_equal(words[0], "gzip");
	assert_string_equal(words[1], "-9");
	assert_string_equal(words[2], "a.log");
	assert_string_equal(words[3], "b=c");
	assert_null(words[4]);
	assert_int_equal(split(many, words), 7);
}

/* A command that needs a shell is passed to one unchanged. */
static void test_shell(void **state)
{
	static const char *const lines[] = {
		"a | b",
		"a >b",
		"a; b",
		"echo $HOME",
		"echo `x`",
		"echo \"a b\"",
		"ls *.c",
		"ls ?",
		"ls [ab]",
		"a &",
		"A=1 b",
		"cd /tmp",
		"exit 3",
		"ls ~/x",
		"(a)",
		"! a",
		"if a",
		"echo {a,b}",
		"a \\ b",
		"echo 'x'",
		":",
		". x",
		"a <b",
		"umask 077",
		"   ",
		"",
		"a #b",
		"a b\r",
		"1 2 3 4 5 6 7 8",
	};
	char line[64], *words[WORDS];

	(void)state;
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		strcpy(line, lines[i]);
		if (split(line, words) != 0)
			fail_msg("no shell for: %s", lines[i]);
		assert_string_equal(line, lines[i]);
	}
}

static void test_messages(void **state)
{
	struct queue q = {0};
	struct batch_message m;
	uint64_t wall_ns;
	ssize_t n;
	int status;

	(void)state;
	assert_int_equal(batch_put(&q, BATCH_COMMAND, 7, "true", 4), 0);
	assert_int_equal(batch_put_end(&q, 0xfedcba98u, -1, UINT64_MAX - 1), 0);
	for (size_t have = 0; have < BATCH_HEADER + 4; have++)
		assert_int_equal(batch_take(queue_front(&q), have, &m), 0);
	n = batch_take(queue_front(&q), q.length, &m);
	assert_int_equal(n, BATCH_HEADER + 4);
	assert_int_equal(m.kind, BATCH_COMMAND);
	assert_int_equal(m.sequence, 7);
	assert_memory_equal(m.data, "true", 4);
	assert_int_equal(batch_take_end(&m, &status, &wall_ns), -EPROTO);
	queue_drop(&q, (size_t)n);
	assert_int_equal(batch_take(queue_front(&q), q.length, &m), (ssize_t)q.length);
	assert_int_equal(m.sequence, 0xfedcba98u);
	assert_int_equal(batch_take_end(&m, &status, &wall_ns), 0);
	assert_int_equal(status, -1);
	assert_true(wall_ns == UINT64_MAX - 1);
	queue_free(&q);
}

/* Refused before it is complete: no peer makes us wait for 4 GB. */
static void test_garbage(void **state)
{
	static const uint8_t unknown[] = {9}, zero[] = {0};
	static const uint8_t huge[BATCH_HEADER] = {BATCH_OUT, 0, 0, 0, 1, 0xff, 0xff, 0xff, 0xff};
	static const uint8_t line[BATCH_HEADER] = {BATCH_COMMAND, 0, 0, 0, 1, 0, 2, 0, 1};
	static const uint8_t back[BATCH_HEADER] = {BATCH_BACK, 0, 0, 0, 1, 0, 0, 0, 1};
	struct batch_message m;

	(void)state;
	assert_int_equal(batch_take(unknown, 1, &m), -EPROTO);
	assert_int_equal(batch_take(zero, 1, &m), -EPROTO);
	assert_int_equal(batch_take(huge, sizeof(huge), &m), -EPROTO);
	assert_int_equal(batch_take(line, sizeof(line), &m), -EPROTO);
	assert_int_equal(batch_take(back, sizeof(back), &m), -EPROTO);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_words),
		cmocka_unit_test(test_shell),
		cmocka_unit_test(test_messages),
		cmocka_unit_test(test_garbage),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
