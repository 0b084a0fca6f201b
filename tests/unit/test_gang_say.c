/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* What is said of a gang: on a terminal, while it takes long to begin, and to --status-fd. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "balancer/run/gang.h"
#include "balancer/run/gang_watch.h"

static void ignore(void *arg, uint32_t part, const void *data, size_t length)
{
	(void)arg;
	(void)part;
	(void)data;
	(void)length;
}

/* Tasks 0-1 on n1, 2 on n2. */
static struct gang_answer *gang_new(void)
{
	static const uint32_t nodes[] = {0, 0, 1};
	uint32_t *numbers;
	struct gang_answer *gang = gang_answer_new(nodes, 3, 2, &numbers);

	assert_non_null(gang);
	free(numbers);
	for (uint32_t i = 0; i < gang->nparts; i++)
		snprintf(gang->parts[i].node, sizeof(gang->parts[i].node), "n%u", i + 1);
	return gang;
}

static void say(struct gang_watch *watch, uint32_t part, enum gang_message_type type)
{
	const struct gang_message message = {.type = type};
	uint8_t packed[GANG_MESSAGE_MAX];

	gang_watch_packet(watch, part, packed, gang_message_pack(&message, packed), 1);
}

/* What the terminal was sent since the last call. */
static const char *shown(int terminal)
{
	static char text[1024];
	ssize_t n;

	fflush(stderr);
	n = read(terminal, text, sizeof(text) - 1);
	text[n > 0 ? n : 0] = 0;
	return text;
}

/* Makes standard error a terminal.  Returns its other end. */
static int terminal_new(void)
{
	int terminal = posix_openpt(O_RDWR | O_NOCTTY | O_NONBLOCK), end;

	assert_true(terminal >= 0);
	assert_int_equal(grantpt(terminal) || unlockpt(terminal), 0);
	end = open(ptsname(terminal), O_RDWR | O_NOCTTY);
	assert_true(end >= 0);
	fflush(stderr);
	assert_int_equal(dup2(end, 2), 2);
	close(end);
	return terminal;
}

static void test_progress(void **state)
{
	struct gang_answer *gang = gang_new();
	struct gang_progress progress;
	struct gang_watch watch;
	int saved = dup(2), terminal = terminal_new();

	(void)state;
	assert_int_equal(gang_watch_init(&watch, gang, "", 1000), 0);
	watch.send = ignore;
	gang_progress_begin(&progress, 1000);
	assert_int_equal(gang_progress_show(&progress, "x", &watch, 1500), 1500);
	assert_string_equal(shown(terminal), "");
	say(&watch, 0, GANG_READY);
	gang_progress_show(&progress, "x", &watch, 3000);
	assert_string_equal(shown(terminal), "x: 1 of 2 nodes are ready, waiting for n2");
	gang_progress_show(&progress, "x", &watch, 3100);
	assert_string_equal(shown(terminal), "");
	say(&watch, 1, GANG_READY);
	say(&watch, 1, GANG_BEGUN);
	gang_progress_show(&progress, "x", &watch, 3200);
	assert_non_null(strstr(shown(terminal), "\rx: 1 of 2 nodes have begun, waiting for n1"));
	say(&watch, 0, GANG_BEGUN);
	assert_int_equal(gang_progress_show(&progress, "x", &watch, 3300), -1);
	assert_int_equal(*strrchr(shown(terminal), '\r'), '\r');
	assert_string_equal(progress.shown, "");
	dup2(saved, 2);
	close(saved);
	close(terminal);
	/* Where there is no terminal nothing is said. */
	saved = dup(2);
	terminal = open("/dev/null", O_WRONLY);
	dup2(terminal, 2);
	gang_progress_begin(&progress, 1000);
	assert_int_equal(gang_progress_show(&progress, "x", &watch, 90000), -1);
	dup2(saved, 2);
	close(saved);
	close(terminal);
	gang_watch_fini(&watch);
	gang_answer_free(gang);
}

static void test_the_last_line(void **state)
{
	const struct gang_message failed = {
		.type = GANG_FAILED, .rank = 2, .signalled = true, .value = 9};
	struct gang_answer *gang = gang_new();
	struct multi_node nodes[2] = {
		{.end = json_pack("{s:s,s:i}", "state", "exited", "status", 143)}};
	struct run_report report = {.job = "n1-4f1c09aa-7", .node = ""};
	uint8_t packed[GANG_MESSAGE_MAX];
	struct gang_watch watch;
	char text[2048];
	json_t *line;
	int ends[2];
	ssize_t n;

	(void)state;
	assert_int_equal(pipe(ends), 0);
	report.fd = ends[1];
	assert_int_equal(gang_watch_init(&watch, gang, "", 1000), 0);
	watch.send = ignore;
	gang_watch_packet(&watch, 1, packed, gang_message_pack(&failed, packed), 1);
	gang_report_end(&report, &watch, nodes, 137, "a sentence");
	n = read(ends[0], text, sizeof(text) - 1);
	text[n > 0 ? n : 0] = 0;
	line = json_loads(text, 0, NULL);
	assert_non_null(line);
	json_object_del(line, "time_ns");
	json_decref(nodes[0].end);
	nodes[0].end = json_loads(
		"{\"job\": \"n1-4f1c09aa-7\", \"state\": \"exited\", \"rank\": 2, \"kind\": "
		"\"signalled\", \"value\": 9, \"node\": \"n2\", \"status\": 137, \"text\": "
		"\"a sentence\", \"parts\": [{\"job\": \"\", \"node\": \"n1\", \"ranks\": \"0-1\", "
		"\"state\": \"exited\", \"status\": 143}, {\"job\": \"\", \"node\": \"n2\", "
		"\"ranks\": \"2\"}]}",
		0, NULL);
	assert_true(json_equal(line, nodes[0].end));
	json_decref(line);
	json_decref(nodes[0].end);
	close(ends[0]);
	close(ends[1]);
	gang_watch_fini(&watch);
	gang_answer_free(gang);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_progress),
		cmocka_unit_test(test_the_last_line),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
