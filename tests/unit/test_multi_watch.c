/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Nodes' processes that one decides for: packets, input for one of them, and the end of all. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "balancer/run/multi.h"

#define NODES 3

struct rig {
	struct multi_node *nodes;
	size_t said, ended;
	int status[NODES];
	bool hang;	/* processes do not end by themselves */
	bool concluded; /* with all outputs written */
};

/* In the process of NODE: says its name, waits for the word, then copies its input. */
static int play(void *arg, const char *node, int report_fd)
{
	const struct rig *rig = arg;
	char text[64];
	ssize_t n;

	(void)report_fd;
	send(MULTI_CHANNEL_FD, node, strlen(node), 0);
	if (recv(MULTI_CHANNEL_FD, text, sizeof(text), 0) != 2)
		return 99;
	while (rig->hang)
		pause();
	n = read(0, text, sizeof(text));
	printf("%s read %zd\n", node, n);
	return node[1] - '0';
}

static void begin(void *arg, struct multi_node *nodes)
{
	((struct rig *)arg)->nodes = nodes;
}

static void packet(void *arg, size_t node, const void *data, size_t length)
{
	struct rig *rig = arg;

	assert_int_equal(length, 2);
	assert_memory_equal(data, rig->nodes[node].name, 2);
	if (++rig->said < NODES)
		return;
	for (size_t i = 0; i < NODES; i++)
		assert_int_equal(send(rig->nodes[i].channel, "go", 2, MSG_NOSIGNAL), 2);
}

static void ended(void *arg, size_t node)
{
	struct rig *rig = arg;

	rig->ended++;
	rig->status[node] = rig->nodes[node].status;
}

static void hear_signal(void *arg, int signal)
{
	(void)arg;
	fail_msg("signal %d", signal);
}

static int turn(void *arg)
{
	const struct rig *rig = arg;

	return rig->hang && rig->said == NODES ? MULTI_TURN_KILL : -1;
}

static int conclude(void *arg, bool unread)
{
	struct rig *rig = arg;

	assert_false(unread);
	rig->concluded = true;
	return 42;
}

/* Runs three processes with INPUT for the second; OUT (256 bytes) gets what they print. */
static void run(struct rig *rig, const char *input, char *out)
{
	const struct multi_watch watch = {.reader = 1,
					  .begin = begin,
					  .packet = packet,
					  .ended = ended,
					  .signal = hear_signal,
					  .turn = turn,
					  .conclude = conclude};
	const struct multi_job job = {
		.name = "test", .run = play, .arg = rig, .status_fd = -1, .watch = &watch};
	const struct multi_options options = {.fanout = NODES};
	struct nodelist nodes = {0};
	struct iocom_err err;
	int in[2], printed[2], saved[2] = {dup(0), dup(1)};
	ssize_t n;

	assert_int_equal(nodelist_parse("n[1-3]", &nodes, &err), 0);
	assert_int_equal(pipe(in) || pipe(printed), 0);
	assert_int_equal(write(in[1], input, strlen(input)), strlen(input));
	close(in[1]);
	fflush(stdout);
	dup2(in[0], 0);
	dup2(printed[1], 1);
	assert_int_equal(multi_run(&options, &job, &nodes), 42);
	for (int i = 0; i < 2; i++) {
		dup2(saved[i], i);
		close(saved[i]);
	}
	close(in[0]);
	close(printed[1]);
	n = read(printed[0], out, 255);
	out[n > 0 ? n : 0] = 0;
	close(printed[0]);
	nodelist_fini(&nodes);
	assert_true(rig->concluded);
	assert_int_equal(rig->ended, NODES);
}

static void test_one_job(void **state)
{
	struct rig rig = {0};
	char out[256];

	(void)state;
	run(&rig, "four", out);
	for (int i = 0; i < NODES; i++)
		assert_int_equal(rig.status[i], i + 1);
	assert_non_null(strstr(out, "n1 read 0\n"));
	assert_non_null(strstr(out, "n2 read 4\n"));
	assert_non_null(strstr(out, "n3 read 0\n"));
}

static void test_nobody_is_waited_for(void **state)
{
	struct rig rig = {.hang = true};
	char out[256];

	(void)state;
	run(&rig, "", out);
	for (int i = 0; i < NODES; i++)
		assert_int_equal(rig.status[i], RUN_UNKNOWN);
	assert_string_equal(out, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_job),
		cmocka_unit_test(test_nobody_is_waited_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
