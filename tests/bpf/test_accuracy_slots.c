/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The tables that find threads and connections faster (bpf/talks.bpf.h, bpf/streams.bpf.h) lose
 * nothing: with one place for all, with owners that come and go while readings are made, with a
 * thread whose number changes, with a socket that connects again.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/lib/talk.h"
#include "tests/lib/watch.h"

#define MIB	(1024UL * 1024)
#define BYTES	(4 * MIB + 17)
#define THREADS 6
#define LIVES	40 /* threads that follow each other */
#define LAPS	100
#define MESSAGE 100
#define UNREAD	(MIB / 4) /* so much fits into a connection that nobody reads */

/* Two ends of a connection inside the host. */
static int ends_open(int ends[2])
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t size = sizeof(at);
	int listener = socket(AF_INET, SOCK_STREAM, 0);

	ends[0] = socket(AF_INET, SOCK_STREAM, 0);
	if (listener < 0 || ends[0] < 0 || bind(listener, (struct sockaddr *)&at, size) ||
	    listen(listener, 1) || getsockname(listener, (struct sockaddr *)&at, &size) ||
	    connect(ends[0], (struct sockaddr *)&at, size))
		return -1;
	ends[1] = accept(listener, NULL, NULL);
	close(listener);
	return ends[1] < 0 ? -1 : 0;
}

static void ends_close(const int ends[2])
{
	close(ends[0]);
	close(ends[1]);
}

/* Compares, less what the monitor reported as lost: up to MOST of WHAT with each such event. */
static void compare(const struct watch *watch, const char *name, const char *what, double truth,
		    uint64_t measured, double most)
{
	watch_compare_lost(name, what, truth, (double)measured, watch_missed(watch) * most);
}

/* Returns what BYTES count for inside the host: at both ends, if this kernel shows sends. */
static double inside(const struct watch *watch, double bytes)
{
	return watch_known(watch, "sent_bytes") ? 2 * bytes : bytes;
}

static void watch_again(struct watch *watch, uint32_t slots)
{
	const struct monitor_config config = {.limits = {.slots = slots}};

	monitor_free(watch->monitor);
	watch->monitor = NULL;
	watch_open(watch, &config);
}

/* A thread and a connection of this program have the only places. */
static void test_taken(void **state)
{
	struct watch *watch = *state;
	struct talk what = {
		.netns = {watch->rig.netns[0], watch->rig.netns[1]},
		.address = watch->rig.address[1],
		.bytes = BYTES,
	};
	static const enum talk_receive receives[] = {TALK_READ, TALK_PEEK, TALK_WAITALL,
						     TALK_SPLICE};
	const struct iocom_task *task;
	struct talk_end ends[2];
	int own[2];

	watch_again(watch, 1);
	assert_int_equal(ends_open(own), 0);
	assert_int_equal(talk_give(own[0], 1), 0);
	assert_int_equal(talk_take(own[1], 1), 0);
	for (size_t i = 0; i < sizeof(receives) / sizeof(receives[0]); i++) {
		what.receive = receives[i];
		assert_int_equal(talk_run(&what, ends), 0);
		watch_sample(watch);
		task = watch_task(watch, ends[0].pid);
		assert_non_null(task);
		if (watch_known(watch, "sent_bytes")) {
			compare(watch, "place taken", "sent_bytes", BYTES, task->load.sent_bytes,
				TALK_BLOCK);
			compare(watch, "place taken", "sent_messages", ends[0].calls,
				task->load.sent_messages, 1);
		}
		task = watch_task(watch, ends[1].pid);
		assert_non_null(task);
		compare(watch, "place taken", "received_bytes", BYTES, task->load.received_bytes,
			TALK_BLOCK);
		if (watch_known(watch, "received_messages") && receives[i] != TALK_SPLICE)
			compare(watch, "place taken", "received_messages", ends[1].calls,
				task->load.received_messages, 1);
	}
	assert_true(watch->sample.taken.talks > 0);
	assert_true(watch->sample.taken.streams > 0);
	ends_close(own);
}

static void *lap(void *argument)
{
	char message[MESSAGE] = "";
	int ends[2];

	if (ends_open(ends))
		return NULL;
	for (int i = 0; i < LAPS; i++)
		if (send(ends[0], message, MESSAGE, 0) != MESSAGE ||
		    recv(ends[1], message, MESSAGE, MSG_WAITALL) != MESSAGE)
			return NULL;
	ends_close(ends);
	return argument;
}

static void *lives(void *argument)
{
	pthread_t thread;
	void *done;

	for (int i = 0; i < LIVES; i++)
		if (pthread_create(&thread, NULL, lap, argument) || pthread_join(thread, &done) ||
		    !done)
			return NULL;
	return argument;
}

static int body_lives(void *argument)
{
	pthread_t threads[THREADS];
	int failed = 0;
	void *done;

	for (int i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, lives, argument))
			return 1;
	for (int i = 0; i < THREADS; i++)
		failed |= pthread_join(threads[i], &done) || !done;
	return failed;
}

/* Readings see a process's counts only grow, and in the end all of them. */
static void check_lives(struct watch *watch, const char *name, uint32_t slots)
{
	const double truth = inside(watch, (double)THREADS * LIVES * LAPS * MESSAGE);
	const struct iocom_task *task;
	uint64_t before = 0;
	pid_t pid;
	int status;

	watch_again(watch, slots);
	pid = rig_start(body_lives, watch);
	while (!waitpid(pid, &status, WNOHANG)) {
		struct iocom_err err = {""};

		if (monitor_sample(watch->monitor, &watch->sample, &err))
			fail_msg("%s", err.text);
		task = watch_task(watch, pid);
		if (!task)
			continue;
		assert_true(task->load.local_bytes >= before && task->load.local_bytes <= truth);
		before = task->load.local_bytes;
	}
	assert_int_equal(status, 0);
	watch_sample(watch);
	task = watch_task(watch, pid); /* none: the last reading had its end */
	compare(watch, name, "local_bytes", truth, task ? task->load.local_bytes : before, MESSAGE);
}

static void test_lives(void **state)
{
	check_lives(*state, "threads, one place", 1);
	check_lives(*state, "threads, two places", 2);
	check_lives(*state, "threads, all places", 0);
}

static void *read_and_execute(void *argument)
{
	char byte[1000];
	int *ends = argument;

	if (recv(ends[1], byte, sizeof(byte), MSG_WAITALL) != sizeof(byte))
		_exit(2);
	dup2(ends[1], 0);
	if (!freopen("/dev/null", "w", stdout))
		_exit(2);
	execlp("cat", "cat", NULL);
	_exit(3);
}

static int body_execute(void *argument)
{
	pthread_t thread;
	int ends[2];

	(void)argument;
	if (ends_open(ends) || talk_give(ends[0], UNREAD) || shutdown(ends[0], SHUT_WR) ||
	    pthread_create(&thread, NULL, read_and_execute, ends))
		return 1;
	pthread_join(thread, NULL);
	return 1;
}

/* A thread that executes a program takes the number of its process's first thread. */
static void test_execute(void **state)
{
	struct watch *watch = *state;
	struct iocom_load load;

	watch_again(watch, 0);
	load = watch_run(watch, body_execute, NULL);
	compare(watch, "a thread executes", "local_bytes", inside(watch, UNREAD), load.local_bytes,
		UNREAD);
}

static int body_connect_again(void *argument)
{
	static const size_t bytes[] = {3001, 70001, 5};
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct sockaddr nobody = {.sa_family = AF_UNSPEC};
	int listener = socket(AF_INET, SOCK_STREAM, 0), client = socket(AF_INET, SOCK_STREAM, 0);
	socklen_t size = sizeof(at);

	(void)argument;
	if (bind(listener, (struct sockaddr *)&at, size) || listen(listener, 1) ||
	    getsockname(listener, (struct sockaddr *)&at, &size))
		return 1;
	for (size_t i = 0; i < sizeof(bytes) / sizeof(bytes[0]); i++) {
		int server;

		if (connect(client, (struct sockaddr *)&at, sizeof(at)))
			return 2;
		server = accept(listener, NULL, NULL);
		if (server < 0 || talk_give(server, bytes[i]) || talk_take(client, bytes[i]) ||
		    connect(client, &nobody, sizeof(nobody)))
			return 3;
		close(server);
	}
	return 0;
}

static void test_connect_again(void **state)
{
	struct watch *watch = *state;
	struct iocom_load load;

	watch_again(watch, 0);
	load = watch_run(watch, body_connect_again, NULL);
	compare(watch, "a socket connects again", "local_bytes", inside(watch, 3001 + 70001 + 5),
		load.local_bytes, TALK_BLOCK);
}

static int watch_up(void **state)
{
	struct watch *watch = calloc(1, sizeof(*watch));

	*state = watch;
	watch_rig(watch, 16);
	watch_open(watch, NULL);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_taken),
		cmocka_unit_test(test_lives),
		cmocka_unit_test(test_execute),
		cmocka_unit_test(test_connect_again),
	};

	return cmocka_run_group_tests_name("accuracy_slots", tests, watch_up, watch_down);
}
