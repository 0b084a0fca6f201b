/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "user/frame.h"

static void pair(int fd[2])
{
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd), 0);
}

static void test_round_trip(void **state)
{
	struct iocom_err err;
	struct frame frame;
	int fd[2];

	(void)state;
	pair(fd);
	assert_int_equal(frame_write2(fd[0], FRAME_DATA, "\1", 1, "hello", 5), 0);
	assert_int_equal(frame_write(fd[0], FRAME_JSON, NULL, 0), 0);
	assert_int_equal(frame_read(fd[1], &frame, 100, &err), 0);
	assert_int_equal(frame.type, FRAME_DATA);
	assert_int_equal(frame.length, 6);
	assert_memory_equal(frame.payload, "\1hello", 7);
	frame_free(&frame);
	assert_int_equal(frame_read(fd[1], &frame, 100, &err), 0);
	assert_int_equal(frame.length, 0);
	frame_free(&frame);
	close(fd[0]);
	assert_int_equal(frame_read(fd[1], &frame, 100, &err), FRAME_E_EOF);
	close(fd[1]);
}

/* Bytes that are no frame, and the condition that each must give. */
static void test_bad_peers(void **state)
{
	static const struct {
		const char *bytes;
		size_t length;
		int condition;
	} peers[] = {
		{"GET / HTTP/1.1\r\n", 16, FRAME_E_GARBAGE},
		{"ic\2\1\0\0\0\0", 8, FRAME_E_VERSION},
		{"ic\1\1\0\0\0\145", 8, FRAME_E_GARBAGE}, /* 101 bytes, bound 100 */
		{"ic\1\1\377\377\377\377", 8, FRAME_E_GARBAGE},
		{"ic\1", 3, FRAME_E_CUT},
		{"ic\1\1\0\0\0\5abc", 11, FRAME_E_CUT},
		{"x", 1, FRAME_E_GARBAGE},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(peers) / sizeof(peers[0]); i++) {
		struct iocom_err err = {0};
		struct frame frame;
		int fd[2];

		pair(fd);
		assert_int_equal(write(fd[0], peers[i].bytes, peers[i].length), peers[i].length);
		close(fd[0]);
		assert_int_equal(frame_read(fd[1], &frame, 100, &err), peers[i].condition);
		assert_true(err.text[0]);
		assert_null(frame.payload);
		close(fd[1]);
	}
}

static void test_parse_every_cut(void **state)
{
	uint8_t buffer[FRAME_HEADER + 5];
	const uint8_t *payload;
	uint32_t length;
	size_t consumed;
	uint8_t type;

	(void)state;
	frame_header(buffer, FRAME_SIGNAL, 5);
	memcpy(buffer + FRAME_HEADER, "abcde", 5);
	for (size_t have = 0; have < sizeof(buffer); have++)
		assert_int_equal(
			frame_parse(buffer, have, 100, &type, &payload, &length, &consumed),
			FRAME_E_MORE);
	assert_int_equal(
		frame_parse(buffer, sizeof(buffer), 100, &type, &payload, &length, &consumed), 0);
	assert_int_equal(type, FRAME_SIGNAL);
	assert_int_equal(length, 5);
	assert_int_equal(consumed, sizeof(buffer));
	assert_int_equal(
		frame_parse(buffer, sizeof(buffer), 4, &type, &payload, &length, &consumed),
		FRAME_E_GARBAGE);
}

static void test_write_refuses_oversize(void **state)
{
	(void)state;
	assert_int_equal(frame_write(-1, FRAME_REQUEST, "", FRAME_PAYLOAD_MAX + 1), -EMSGSIZE);
	assert_int_equal(frame_write(-1, FRAME_JSON, "", FRAME_DOCUMENT_MAX + 1), -EMSGSIZE);
	assert_int_equal(frame_write(-1, FRAME_JSON, "x", 1), -EBADF);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_round_trip),
		cmocka_unit_test(test_bad_peers),
		cmocka_unit_test(test_parse_every_cut),
		cmocka_unit_test(test_write_refuses_oversize),
	};

	return cmocka_run_group_tests_name("frame", tests, NULL, NULL);
}
