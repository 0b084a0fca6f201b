/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Output of many nodes by whole lines, and the options of `iocom run -N`. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "balancer/run/multi.h"

/* Compares the sink's complete output with EXPECTED and empties it. */
static void assert_ready(struct multi_sink *sink, const char *expected)
{
	size_t n = strlen(expected);

	assert_int_equal(sink->ready.length, n);
	if (n)
		assert_memory_equal(queue_front(&sink->ready), expected, n);
	queue_free(&sink->ready);
}

static void feed(int fd, const char *text)
{
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
}

static void test_lines_are_whole(void **state)
{
	struct multi_sink sink = {.label = true};
	struct multi_lines lines = {0};
	int end[2];

	(void)state;
	assert_int_equal(pipe(end), 0);
	feed(end[1], "one\ntw");
	assert_int_equal(multi_lines_read(&lines, end[0], "a", &sink, NULL), 1);
	assert_ready(&sink, "a: one\n");
	feed(end[1], "o");
	assert_int_equal(multi_lines_read(&lines, end[0], "a", &sink, NULL), 1);
	assert_ready(&sink, "");
	feed(end[1], "\n\nlast");
	assert_int_equal(multi_lines_read(&lines, end[0], "a", &sink, NULL), 1);
	assert_ready(&sink, "a: two\na: \n");
	close(end[1]);
	assert_int_equal(multi_lines_read(&lines, end[0], "a", &sink, NULL), 0);
	assert_ready(&sink, "a: last\n");
	assert_int_equal(sink.cut, 0);
	close(end[0]);
}

static void test_gathered_lines_go_elsewhere(void **state)
{
	struct multi_sink sink = {.label = true};
	struct multi_lines lines = {0};
	struct queue gathered = {0};
	const char *names[] = {"n2", "n1"};
	int end[2];

	(void)state;
	assert_int_equal(pipe(end), 0);
	feed(end[1], "x\ny");
	close(end[1]);
	assert_int_equal(multi_lines_read(&lines, end[0], "n1", &sink, &gathered), 1);
	assert_int_equal(multi_lines_read(&lines, end[0], "n1", &sink, &gathered), 0);
	assert_ready(&sink, "");
	assert_int_equal(multi_sink_block(&sink, names, 2, &gathered), 0);
	assert_ready(&sink, "---------------\nn[1-2] (2)\n---------------\nx\ny\n");
	sink.label = false;
	assert_int_equal(multi_sink_block(&sink, names, 1, &gathered), 0);
	assert_ready(&sink, "x\ny\n");
	queue_free(&gathered);
	close(end[0]);
}

/* 2.5 MiB without a newline, written by another process: three pieces. */
static void test_a_long_line_is_cut(void **state)
{
	const size_t whole = 5u << 19;
	struct multi_sink sink = {.label = false};
	struct multi_lines lines = {0};
	size_t newlines = 0;
	int end[2], rc;
	pid_t pid;

	(void)state;
	assert_int_equal(pipe(end), 0);
	pid = fork();
	if (pid == 0) {
		static char x[4096];

		memset(x, 'x', sizeof(x));
		for (size_t n = 0; n < whole; n += sizeof(x))
			if (write(end[1], x, sizeof(x)) != sizeof(x))
				_exit(1);
		_exit(0);
	}
	close(end[1]);
	do {
		rc = multi_lines_read(&lines, end[0], "a", &sink, NULL);
		assert_true(lines.length < MULTI_LINE_MAX);
	} while (rc > 0);
	assert_int_equal(rc, 0);
	for (size_t i = 0; i < sink.ready.length; i++)
		newlines += queue_front(&sink.ready)[i] == '\n';
	assert_int_equal(newlines, 3);
	assert_int_equal(sink.cut, 2);
	assert_int_equal(sink.ready.length, whole + newlines);
	queue_free(&sink.ready);
	close(end[0]);
	assert_int_equal(waitpid(pid, &rc, 0), pid);
	assert_int_equal(rc, 0);
}

static void test_options(void **state)
{
	static const struct {
		int option;
		const char *value;
	} bad[] = {
		{MULTI_FANOUT, "0"}, {MULTI_FANOUT, "1001"}, {MULTI_FANOUT, "-1"},
		{MULTI_FANOUT, "x"}, {MULTI_FANOUT, ""},     {MULTI_STDIN, "some"},
	};
	struct multi_options options;
	struct iocom_err err = {0};

	(void)state;
	multi_init(&options);
	assert_true(options.label && options.fanout == 32 && !options.stdin_all);
	assert_int_equal(multi_check(&options, "n1", false, &err), 0);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(multi_take(&options, bad[i].option, bad[i].value, &err), -EINVAL);
	assert_int_equal(multi_take(&options, 'v', NULL, &err), 1);
	multi_init(&options);
	assert_int_equal(multi_take(&options, MULTI_FANOUT, "1000", &err), 0);
	assert_int_equal(multi_check(&options, NULL, false, &err), -EINVAL);
	assert_non_null(strstr(err.text, "--fanout goes with -N"));
	assert_int_equal(multi_take(&options, MULTI_NODES, "n1", &err), 0);
	assert_int_equal(multi_check(&options, NULL, false, &err), 0);
	assert_int_equal(multi_check(&options, "n1", false, &err), -EINVAL);
	assert_int_equal(multi_check(&options, NULL, true, &err), -EINVAL);
	multi_init(&options);
	assert_int_equal(multi_take(&options, MULTI_LABEL, NULL, &err), 0);
	assert_int_equal(multi_check(&options, NULL, true, &err), 0);
	assert_int_equal(multi_check(&options, NULL, false, &err), -EINVAL);
	assert_non_null(strstr(err.text, "--label goes with -N or -n"));
}

static void test_reports(void **state)
{
	struct multi_node node = {.name = "n1", .begun = true};
	static const char placed[] = "{\"job\":\"j-1\",\"state\":\"placed\"}";
	static const char last[] = "{\"job\":\"j-1\",\"state\":\"exited\",\"status\":3}";

	(void)state;
	multi_report_line(&node, "no json", 7);
	assert_null(node.job);
	multi_report_line(&node, placed, sizeof(placed) - 1);
	assert_string_equal(node.job, "j-1");
	assert_null(node.end);
	multi_report_line(&node, last, sizeof(last) - 1);
	multi_report_line(&node, last, sizeof(last) - 1); /* a second one takes its place */
	assert_non_null(node.end);
	json_decref(node.end);
	free(node.job);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lines_are_whole),
		cmocka_unit_test(test_gathered_lines_go_elsewhere),
		cmocka_unit_test(test_a_long_line_is_cut),
		cmocka_unit_test(test_options),
		cmocka_unit_test(test_reports),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
