/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The client's side of a job stream's handshake, against whoever may listen at the target's port:
 * what that one learns, and what the user reads.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "balancer/run/run.h"
#include "balancer/run/run_stream.h"
#include "tests/lib/stage.h"
#include "user/frame.h"

static const char sentence[] = "the job did not start: the program at 10.0.0.2 port 7702 did not "
			       "prove to be node n2, and nothing of the job was sent to it";

/* What the one at the other end does when it has the client's message. */
struct squatter {
	const void *says;
	size_t length;
	bool stays; /* it does not close */
};

static struct run_target target = {
	.address = "10.0.0.2", .port = 7702, .key = "a key of 32 bytes that is right"};

static uint64_t soon(void)
{
	return run_now_ms() + 300;
}

/* Does the handshake with S; what S heard besides the client's first frame is LEFT bytes. */
static int shakes(const struct squatter *s, struct iocom_err *err, size_t *left)
{
	struct stream_hello hello;
	struct records records;
	uint8_t heard[4096];
	int fd[2], rc;
	ssize_t n;

	stage_pair(fd);
	if (s->length)
		assert_int_equal(send(fd[1], s->says, s->length, MSG_NOSIGNAL), s->length);
	if (!s->stays)
		shutdown(fd[1], SHUT_WR);
	stream_hello_fill(&hello, STREAM_KIND_START, "n1-0a-7", "n2", "");
	rc = run_handshake(&target, fd[0], &hello, soon(), &records, err);
	close(fd[0]);
	n = recv(fd[1], heard, sizeof(heard), MSG_WAITALL);
	assert_true(n > FRAME_HEADER && heard[3] == FRAME_HELLO);
	*left = (size_t)n - FRAME_HEADER - ((size_t)heard[6] << 8 | heard[7]);
	close(fd[1]);
	return rc;
}

static void test_squatters(void **state)
{
	static uint8_t welcome[FRAME_HEADER + 100], longest[FRAME_HEADER];
	const struct squatter all[] = {
		{NULL, 0, false},
		{"HTTP/1.0 200 OK\r\n\r\n", 19, true},
		{"ic\2", 3, false},
		{welcome, sizeof(welcome), true},
		{welcome, sizeof(welcome) - 1, false},
		{longest, sizeof(longest), true},
		{"ic\2\5\0\0\0\0", 8, true}, /* FRAME_STARTED */
	};

	(void)state;
	frame_header(welcome, FRAME_WELCOME, 100);
	frame_header(longest, FRAME_WELCOME, 4u << 20);
	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
		struct iocom_err err = {0};
		size_t left;

		assert_true(shakes(&all[i], &err, &left) < 0);
		assert_string_equal(err.text, sentence);
		assert_int_equal(left, 0);
	}
}

static void test_silence(void **state)
{
	const struct squatter silent = {.stays = true}, slow = {"ic\2\17\0\0", 6, true};
	uint64_t before = run_now_ms();
	struct iocom_err err = {0};
	size_t left;

	(void)state;
	assert_true(shakes(&silent, &err, &left) < 0);
	assert_non_null(strstr(err.text, "did not prove to be node n2 in time, and nothing"));
	assert_int_equal(left, 0);
	assert_true(shakes(&slow, &err, &left) < 0);
	assert_non_null(strstr(err.text, "in time"));
	assert_in_range(run_now_ms() - before, 500, 3000);
}

/* What a stranger says cannot do anything to the user's terminal, and is not taken for the job's
 * end.
 */
static void test_refusal(void **state)
{
	static const char text[] = "go\x1b[2J away\n\x9b";
	uint8_t frame[64];
	struct squatter s = {frame, FRAME_HEADER + sizeof(text) - 1, true};
	struct iocom_err err = {0};
	size_t left;

	(void)state;
	frame_header(frame, FRAME_ERROR, sizeof(text) - 1);
	memcpy(frame + FRAME_HEADER, text, sizeof(text) - 1);
	assert_int_equal(shakes(&s, &err, &left), -EACCES);
	assert_string_equal(
		err.text, "the job did not start: the program at 10.0.0.2 port 7702, which has not "
			  "proven to be node n2, says: go?[2J away??");
	assert_int_equal(left, 0);
}

/* An answer of the true node to an earlier question proves nothing now. */
static void test_replay(void **state)
{
	uint8_t hello[STREAM_HELLO_MAX], frame[FRAME_HEADER + STREAM_WELCOME_MAX];
	const struct stream_welcome welcome = {.version = 1, .node = "n2"};
	struct squatter s = {frame, 0, true};
	struct noise client, node;
	struct stream_hello ask;
	struct iocom_err err = {0};
	struct records records;
	size_t length, left;

	(void)state;
	stream_hello_fill(&ask, STREAM_KIND_START, "n1-0a-7", "n2", "");
	assert_int_equal(stream_hello_pack(&client, &ask, target.key, NULL, hello, &length), 0);
	assert_int_equal(stream_hello_open(&node, hello, length, target.key), 0);
	assert_int_equal(
		stream_welcome_pack(&node, &welcome, frame + FRAME_HEADER, &length, &records), 0);
	frame_header(frame, FRAME_WELCOME, (uint32_t)length);
	s.length = FRAME_HEADER + length;
	assert_true(shakes(&s, &err, &left) < 0);
	assert_string_equal(err.text, sentence);
	assert_int_equal(left, 0);
}

/* Nothing of the key is in what leaves the client. */
static void test_key_stays(void **state)
{
	uint8_t hello[STREAM_HELLO_MAX];
	struct noise client;
	struct stream_hello ask;
	size_t length;

	(void)state;
	stream_hello_fill(&ask, STREAM_KIND_ATTACH, "n1-0a-7", "n2", "");
	assert_int_equal(stream_hello_pack(&client, &ask, target.key, NULL, hello, &length), 0);
	assert_null(memmem(hello, length, target.key, 8));
	noise_end(&client);
}

static void test_no_key(void **state)
{
	struct run_target there = {.address = "10.0.0.2"}, here = {.address = ""};
	struct iocom_err err = {0};

	(void)state;
	assert_int_equal(run_target_key(&there, "", &err), -EPROTO);
	assert_int_equal(run_target_key(&there, "00ff", &err), -EPROTO);
	assert_int_equal(run_target_key(&here, "", &err), 0);
	assert_null(run_target_records(&here, NULL));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_squatters), cmocka_unit_test(test_silence),
		cmocka_unit_test(test_refusal),	  cmocka_unit_test(test_replay),
		cmocka_unit_test(test_key_stays), cmocka_unit_test(test_no_key),
	};

	signal(SIGPIPE, SIG_IGN);
	alarm(60);
	return cmocka_run_group_tests_name("run_handshake", tests, NULL, NULL);
}
