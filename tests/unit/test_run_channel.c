/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * A worker of a gang's part between its launcher and the client's main process: a child runs the
 * stream, and the test plays shim and main process.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "balancer/run/gang_watch.h"
#include "balancer/run/run.h"

#define PATIENCE_MS 10000

struct rig {
	pid_t pid;
	int stream;  /* the shim's end */
	int channel; /* the main process's end */
};

static _Noreturn void worker(int stream, int channel)
{
	struct run_channel own = {.fd = channel};
	struct attach_ask self = {0};
	const struct run_stream_options options = {
		.stdio = {-1, 1, 2}, .self = &self, .channel = &own};
	struct run_result result;
	int null = open("/dev/null", O_WRONLY);

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	dup2(null, 1);
	_exit(run_stream(&options, stream, &result));
}

static struct rig rig_begin(void)
{
	int stream[2], channel[2];
	struct rig rig;

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, stream), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, channel), 0);
	rig = (struct rig){.pid = fork(), .stream = stream[0], .channel = channel[0]};
	assert_true(rig.pid >= 0);
	if (rig.pid == 0) {
		close(stream[0]);
		close(channel[0]);
		worker(stream[1], channel[1]);
	}
	close(stream[1]);
	close(channel[1]);
	return rig;
}

/* Returns the worker's exit status. */
static int rig_end(struct rig *rig)
{
	int status;

	assert_int_equal(waitpid(rig->pid, &status, 0), rig->pid);
	assert_true(WIFEXITED(status));
	close(rig->stream);
	close(rig->channel);
	return WEXITSTATUS(status);
}

static void started(const struct rig *rig)
{
	const struct attach_state state = {.pid = 7, .input_limit = FRAME_WINDOW};
	void *data;
	size_t length;

	assert_int_equal(attach_state_pack(&state, "n1-4f1c09aa-7.0", "n1", &data, &length), 0);
	assert_int_equal(frame_write(rig->stream, FRAME_STARTED, data, (uint32_t)length), 0);
	free(data);
}

static void ended(const struct rig *rig, uint8_t status)
{
	const uint8_t payload[] = {0, 0, 0, 0, status};

	assert_int_equal(frame_write(rig->stream, FRAME_EXIT, payload, sizeof(payload)), 0);
}

/* The next frame of TYPE that the worker sends; the credit it gives is not looked at. */
static struct frame heard(const struct rig *rig, uint8_t type)
{
	struct frame frame;
	struct iocom_err err;

	for (;;) {
		struct pollfd entry = {.fd = rig->stream, .events = POLLIN};

		assert_int_equal(poll(&entry, 1, PATIENCE_MS), 1);
		assert_int_equal(frame_read(rig->stream, &frame, FRAME_PAYLOAD_MAX, &err), 0);
		if (frame.type == type)
			return frame;
		frame_free(&frame);
	}
}

static void order(const struct rig *rig, enum gang_order order, int value)
{
	const uint8_t packet[GANG_ORDER] = {(uint8_t)order, (uint8_t)value};

	assert_int_equal(send(rig->channel, packet, sizeof(packet), MSG_NOSIGNAL), sizeof(packet));
}

static void test_messages_pass_both_ways(void **state)
{
	struct gang_message message = {.type = GANG_READY, .port = 77};
	uint8_t packed[GANG_MESSAGE_MAX], got[GANG_MESSAGE_MAX + 1];
	size_t length = gang_message_pack(&message, packed);
	struct rig rig = rig_begin();
	struct frame frame;

	(void)state;
	/* What is said before the start waits for it. */
	assert_int_equal(send(rig.channel, packed, length, MSG_NOSIGNAL), length);
	started(&rig);
	frame = heard(&rig, FRAME_GANG);
	assert_int_equal(frame.length, length);
	assert_memory_equal(frame.payload, packed, length);
	frame_free(&frame);
	assert_int_equal(frame_write(rig.stream, FRAME_GANG, packed, (uint32_t)length), 0);
	assert_int_equal(recv(rig.channel, got, sizeof(got), 0), length);
	assert_memory_equal(got, packed, length);
	order(&rig, GANG_ORDER_SIGNAL, SIGTERM);
	frame = heard(&rig, FRAME_SIGNAL);
	assert_int_equal(frame.length, 1);
	assert_int_equal(frame.payload[0], SIGTERM);
	frame_free(&frame);
	ended(&rig, 3);
	assert_int_equal(rig_end(&rig), 3);
}

static void test_a_signal_before_the_start_gives_up(void **state)
{
	struct rig rig = rig_begin();

	(void)state;
	order(&rig, GANG_ORDER_SIGNAL, SIGTERM);
	assert_int_equal(rig_end(&rig), 128 + SIGTERM);
}

static void test_it_is_left(void **state)
{
	struct rig rig = rig_begin();

	(void)state;
	started(&rig);
	order(&rig, GANG_ORDER_LEAVE, 0);
	assert_int_equal(rig_end(&rig), 0);
}

static void test_the_shim_says_too_much(void **state)
{
	static const uint8_t long_message[GANG_MESSAGE_MAX + 1] = {0x80};
	struct rig rig = rig_begin();

	(void)state;
	started(&rig);
	assert_int_equal(frame_write(rig.stream, FRAME_GANG, long_message, sizeof(long_message)),
			 0);
	assert_int_equal(rig_end(&rig), RUN_UNKNOWN);

	/* Before the start there is no launcher that could say anything. */
	rig = rig_begin();
	assert_int_equal(frame_write(rig.stream, FRAME_GANG, long_message, 1), 0);
	assert_int_equal(rig_end(&rig), RUN_UNKNOWN);

	/* Messages that nobody takes are not kept for ever. */
	rig = rig_begin();
	started(&rig);
	for (int i = 0; i < 10000; i++)
		if (frame_write(rig.stream, FRAME_GANG, long_message, GANG_MESSAGE_MAX))
			break;
	assert_int_equal(rig_end(&rig), RUN_UNKNOWN);
}

static void test_the_main_process_is_gone(void **state)
{
	static const uint8_t message[] = {0x80};
	struct rig rig = rig_begin();

	(void)state;
	started(&rig);
	shutdown(rig.channel, SHUT_RDWR);
	assert_int_equal(frame_write(rig.stream, FRAME_GANG, message, sizeof(message)), 0);
	ended(&rig, 0);
	assert_int_equal(rig_end(&rig), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_messages_pass_both_ways),
		cmocka_unit_test(test_a_signal_before_the_start_gives_up),
		cmocka_unit_test(test_it_is_left),
		cmocka_unit_test(test_the_shim_says_too_much),
		cmocka_unit_test(test_the_main_process_is_gone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
