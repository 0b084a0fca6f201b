/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Wires whose bytes are in records: what comes through, and what must not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/lib/stage.h"
#include "user/wire.h"

#define ROUNDS 400

/* Two wires with one stream; [0] and [1] have the other's keys. */
static void wire_pair(struct wire wires[2])
{
	struct records keys[2] = {0};
	int fd[2];

	memset(keys[0].sends.key, 1, NOISE_KEY);
	memset(keys[0].receives.key, 2, NOISE_KEY);
	keys[0].sends.n = 7; /* an earlier process has sent some */
	keys[1] = (struct records){.sends = keys[0].receives, .receives = keys[0].sends};
	stage_pair(fd);
	for (int i = 0; i < 2; i++)
		assert_int_equal(wire_init(&wires[i], fd[i], &keys[i]), 0);
}

static void wires_close(struct wire wires[2])
{
	wire_deinit(&wires[0]);
	wire_deinit(&wires[1]);
}

/* A socket to play the peer of a wire by hand, and the peer's keys. */
static int wire_and_hand(struct wire *wire, struct records *hand)
{
	struct records keys = {0};
	int fd[2];

	memset(keys.sends.key, 1, NOISE_KEY);
	memset(keys.receives.key, 2, NOISE_KEY);
	*hand = (struct records){.sends = keys.receives, .receives = keys.sends};
	stage_pair(fd);
	assert_int_equal(wire_init(wire, fd[0], &keys), 0);
	return fd[1];
}

/* The next frame of WIRE; returns as wire_next or wire_fill. */
static int wire_await(struct wire *wire, uint8_t *type, const uint8_t **payload, uint32_t *length)
{
	int rc = wire_next(wire, type, payload, length);

	for (int i = 0; rc == FRAME_E_MORE && i < 2000; i++) {
		int got = wire_fill(wire);

		if (got < 0)
			return got;
		if (!got)
			usleep(1000);
		rc = wire_next(wire, type, payload, length);
	}
	return rc;
}

static uint8_t byte_at(unsigned seed, size_t i)
{
	return (uint8_t)(seed * 31 + i * 7 + (i >> 8));
}

/* Frames of all sizes come through whole, in order, both ways, though the queue fills. */
static void test_all_sizes(void **state)
{
	static uint8_t data[FRAME_DATA_MAX];
	struct wire wires[2];
	unsigned sent = 0, got = 0;

	(void)state;
	wire_pair(wires);
	srand(1);
	while (got < ROUNDS) {
		const uint8_t *payload;
		uint32_t length;
		uint8_t type;
		int rc;

		while (sent < ROUNDS && sent < got + 30) {
			size_t n = sent % 5 == 0 ? FRAME_DATA_MAX
						 : (size_t)rand() % (FRAME_DATA_MAX + 1);

			for (size_t i = 0; i < n; i++)
				data[i] = byte_at(sent, i);
			assert_int_equal(wire_data(&wires[0], 1, sent, data, n), 0);
			sent++;
		}
		assert_int_equal(wire_flush(&wires[0]), 0);
		rc = wire_next(&wires[1], &type, &payload, &length);
		if (rc == FRAME_E_MORE) {
			assert_true(wire_fill(&wires[1]) >= 0);
			continue;
		}
		assert_int_equal(rc, 0);
		assert_int_equal(type, FRAME_DATA);
		assert_int_equal(wire_u64(payload + 1), got);
		for (uint32_t i = FRAME_DATA_HEAD; i < length; i++)
			if (payload[i] != byte_at(got, i - FRAME_DATA_HEAD))
				fail_msg("frame %u differs at byte %u", got, i);
		got++;
	}
	wires_close(wires);
}

static void test_both_ways(void **state)
{
	struct wire wires[2];
	const uint8_t *payload;
	uint32_t length;
	uint8_t type;

	(void)state;
	wire_pair(wires);
	for (int i = 0; i < 100; i++) {
		struct wire *from = &wires[i % 2], *to = &wires[1 - i % 2];

		assert_int_equal(wire_exit(from, 3, (uint32_t)i, "why"), 0);
		assert_int_equal(wire_await(to, &type, &payload, &length), 0);
		assert_int_equal(type, FRAME_EXIT);
		assert_int_equal(wire_u32(payload + 1), i);
		assert_memory_equal(payload + 5, "why", 3);
	}
	/* The end without FRAME_EXIT is for its users to judge. */
	wire_deinit(&wires[0]);
	assert_int_equal(wire_await(&wires[1], &type, &payload, &length), -EPIPE);
	wire_deinit(&wires[1]);
}

/* What leaves the machine has nothing in it that is readable. */
static void test_nothing_in_clear(void **state)
{
	static const char text[] = "a sentence that nobody on the way may read";
	struct records hand;
	struct wire wire;
	char bytes[512];
	int fd = wire_and_hand(&wire, &hand);
	ssize_t n;

	(void)state;
	assert_int_equal(wire_error(&wire, text), 0);
	n = recv(fd, bytes, sizeof(bytes), 0);
	assert_int_equal(n, records_size(FRAME_HEADER + strlen(text)));
	assert_null(memmem(bytes, (size_t)n, "sentence", 8));
	assert_null(memmem(bytes, (size_t)n, "ic", 2));
	wire_deinit(&wire);
	close(fd);
}

static void test_too_long(void **state)
{
	static uint8_t data[FRAME_DATA_MAX + 1];
	struct wire wires[2];

	(void)state;
	wire_pair(wires);
	assert_int_equal(wire_data(&wires[0], 1, 0, data, sizeof(data)), -EMSGSIZE);
	assert_true(wire_idle(&wires[0]));
	wires_close(wires);
}

/* Seals one FRAME_SIGNAL; returns the bytes of the record. */
static size_t sealed_signal(struct records *hand, uint8_t signal, uint8_t *out)
{
	uint8_t frame[FRAME_HEADER + 1];
	const struct iovec piece = {frame, sizeof(frame)};

	frame_header(frame, FRAME_SIGNAL, 1);
	frame[FRAME_HEADER] = signal;
	assert_int_equal(records_seal(hand, &piece, 1, out), 0);
	return records_size(sizeof(frame));
}

static void puts_bytes(int fd, const void *data, size_t n)
{
	assert_int_equal(send(fd, data, n, MSG_NOSIGNAL), n);
}

static int heard_signal(struct wire *wire)
{
	const uint8_t *payload;
	uint32_t length;
	uint8_t type;
	int rc = wire_await(wire, &type, &payload, &length);

	if (rc)
		return rc;
	assert_int_equal(type, FRAME_SIGNAL);
	return payload[0];
}

/* Records that come a second time, in another order, are left out, or come back to their sender. */
static void test_wrong_order(void **state)
{
	uint8_t one[64], two[64], three[64];
	struct records hand;
	struct wire wire;
	size_t n;
	int fd;

	(void)state;
	for (int how = 0; how < 4; how++) {
		fd = wire_and_hand(&wire, &hand);
		n = sealed_signal(&hand, 1, one);
		(void)sealed_signal(&hand, 2, two);
		(void)sealed_signal(&hand, 3, three);
		puts_bytes(fd, one, n);
		assert_int_equal(heard_signal(&wire), 1);
		if (how == 0)
			puts_bytes(fd, one, n); /* again */
		else if (how == 1)
			puts_bytes(fd, three, n); /* the second is left out */
		else if (how == 2) {		  /* its own */
			assert_int_equal(wire_signal(&wire, 9), 0);
			assert_int_equal(recv(fd, two, n, MSG_WAITALL), n);
			puts_bytes(fd, two, n);
		} else {
			static const char clear[] = "ic\2\10\0\0\0\1\11 and more that is in clear";

			puts_bytes(fd, clear, sizeof(clear));
			shutdown(fd, SHUT_WR);
		}
		assert_true(heard_signal(&wire) == (how == 3 ? -EPIPE : -EBADMSG));
		wire_deinit(&wire);
		close(fd);
	}
}

/* Not one bit may change, in the length or behind it. */
static void test_changed_bits(void **state)
{
	uint8_t record[64];
	struct records hand;
	struct wire wire;
	size_t n = 27;

	(void)state;
	for (size_t bit = 0; bit < 8 * n; bit += 3) {
		int fd = wire_and_hand(&wire, &hand), rc;

		assert_int_equal(sealed_signal(&hand, 1, record), n);
		record[bit / 8] ^= (uint8_t)(1 << bit % 8);
		puts_bytes(fd, record, n);
		shutdown(fd, SHUT_WR);
		rc = heard_signal(&wire); /* a greater length: the rest never comes */
		if (rc != -EBADMSG && rc != -EPIPE)
			fail_msg("bit %zu: %d", bit, rc);
		wire_deinit(&wire);
		close(fd);
	}
}

/* A record that is cut off is no frame, and one that comes byte by byte is. */
static void test_slowly(void **state)
{
	uint8_t record[64];
	struct records hand;
	struct wire wire;
	int fd = wire_and_hand(&wire, &hand);
	size_t n = sealed_signal(&hand, 5, record);
	const uint8_t *payload;
	uint32_t length;
	uint8_t type;

	(void)state;
	for (size_t i = 0; i < n; i++) {
		assert_int_equal(wire_next(&wire, &type, &payload, &length), FRAME_E_MORE);
		puts_bytes(fd, record + i, 1);
		while (!wire_fill(&wire))
			usleep(100);
	}
	assert_int_equal(heard_signal(&wire), 5);
	n = sealed_signal(&hand, 6, record);
	puts_bytes(fd, record, n - 1);
	close(fd);
	assert_int_equal(heard_signal(&wire), -EPIPE);
	wire_deinit(&wire);
}

/* What has arrived is dropped, and the stream goes on behind it. */
static void test_discard(void **state)
{
	uint8_t record[64];
	struct records hand;
	struct wire wire;
	int fd = wire_and_hand(&wire, &hand);
	size_t n = sealed_signal(&hand, 5, record);

	(void)state;
	puts_bytes(fd, record, n);
	n = sealed_signal(&hand, 6, record);
	puts_bytes(fd, record, 10);
	while (!wire.in_length || wire.sealed < 10)
		assert_true(wire_fill(&wire) >= 0);
	wire_discard(&wire);
	puts_bytes(fd, record + 10, n - 10);
	assert_int_equal(heard_signal(&wire), 6);
	wire_deinit(&wire);
	close(fd);
}

/* Another process goes on with the keys and the counters. */
static void test_handed_over(void **state)
{
	uint8_t packed[RECORDS_PACKED];
	struct records keys;
	struct wire wires[2], next;
	int fd;

	(void)state;
	wire_pair(wires);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(wire_signal(&wires[0], 1), 0);
		assert_int_equal(heard_signal(&wires[1]), 1);
		assert_int_equal(wire_signal(&wires[1], 2), 0);
		assert_int_equal(heard_signal(&wires[0]), 2);
	}
	records_pack(wire_records(&wires[0]), packed);
	assert_int_equal(records_unpack(&keys, packed, sizeof(packed)), 0);
	assert_int_equal(records_unpack(&keys, packed, sizeof(packed) - 1), -EBADMSG);
	fd = dup(wires[0].fd);
	wire_deinit(&wires[0]);
	assert_int_equal(wire_init(&next, fd, &keys), 0);
	assert_int_equal(wire_signal(&next, 3), 0);
	assert_int_equal(heard_signal(&wires[1]), 3);
	assert_int_equal(wire_signal(&wires[1], 4), 0);
	assert_int_equal(heard_signal(&next), 4);
	wire_deinit(&next);
	wire_deinit(&wires[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_sizes),	 cmocka_unit_test(test_both_ways),
		cmocka_unit_test(test_nothing_in_clear), cmocka_unit_test(test_too_long),
		cmocka_unit_test(test_wrong_order),	 cmocka_unit_test(test_changed_bits),
		cmocka_unit_test(test_slowly),		 cmocka_unit_test(test_discard),
		cmocka_unit_test(test_handed_over),
	};

	alarm(60);
	return cmocka_run_group_tests_name("wire_sealed", tests, NULL, NULL);
}
