/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What comes through the gate is a message in every byte or is refused: of each type one message
 * is right, and each way to make it wrong is found.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/peer_cause.h"
#include "agent/base/seal_refusal.h"
#include "agent/gate/gate_message.h"

#define BODY_AT GATE_HEAD

static uint8_t packet[GATE_PACKET_MAX + 1];
static size_t length;

static void put_vector(struct iocom_vector *v)
{
	*v = (struct iocom_vector){.address = "10.0.0.1",
				   .port = 7700,
				   .boot_id = 7,
				   .sequence = 1,
				   .time_ns = 1,
				   .period_ms = 1000,
				   .cores = 2,
				   .cpu_speed = 1,
				   .cpu_burst = 1};
	strcpy(v->name, "n1");
}

/* What TYPE's message says at the least; *TAIL and *NFDS come with it. */
static struct gate_message good(enum gate_type type, const char **tail, size_t *nfds)
{
	struct gate_message m = {.type = type};

	*tail = "";
	*nfds = 0;
	switch (type) {
	case GATE_SETUP:
		strcpy(m.setup.name, "n1");
		m.setup.streams = m.setup.networked = true;
		*nfds = 1;
		break;
	case GATE_PUBLISH:
		put_vector(&m.publish);
		break;
	case GATE_VECTOR:
		put_vector(&m.vector.vector);
		break;
	case GATE_SKEWED:
		strcpy(m.skewed.node, "n1");
		break;
	case GATE_TROUBLE:
		strcpy(m.trouble.at.address, "10.0.0.1");
		m.trouble.cause = PEER_C_REFUSED;
		*tail = "nothing listens there";
		break;
	case GATE_ANSWERED:
		m.answered.rc = -ETIMEDOUT;
		break;
	case GATE_READY:
		m.ready.rc = -EADDRINUSE;
		*tail = "the port is in use";
		break;
	case GATE_ASK:
	case GATE_RENEWED:
	case GATE_HELLO:
	case GATE_QUESTION:
	case GATE_RENEW:
		*tail = "x";
		break;
	case GATE_STREAM:
		*tail = "x";
		*nfds = 1;
		break;
	case GATE_PAGE:
		*nfds = 1;
		break;
	default:
		break;
	}
	return m;
}

static void pack_tail(const struct gate_message *m, const void *tail, size_t n)
{
	uint32_t type = m->type, tail_length = (uint32_t)n;
	size_t size = gate_body_size(m->type);

	memcpy(packet, &type, sizeof(type));
	memcpy(packet + sizeof(type), &tail_length, sizeof(tail_length));
	memcpy(packet + BODY_AT, &m->setup, size);
	memcpy(packet + BODY_AT + size, tail, n);
	length = BODY_AT + size + n;
}

static void pack(const struct gate_message *m, const char *tail)
{
	pack_tail(m, tail, strlen(tail));
}

static int read_as(enum gate_side side, size_t nfds)
{
	struct gate_message m;
	const uint8_t *tail;
	const char *why = NULL;
	size_t n;
	int rc = gate_message_read(&m, side, packet, length, nfds, &tail, &n, &why);

	if (!rc)
		assert_int_equal(gate_fds_of(&m), nfds);
	else
		assert_true(rc == -EBADMSG && why && *why);
	return rc;
}

static enum gate_side side_of(enum gate_type type)
{
	return type < GATE_READY ? GATE_TO_NET : GATE_TO_ROOT;
}

/* Each type goes one way, with its own length and number of descriptors. */
static void test_each_type(void **state)
{
	unsigned types = 0;

	(void)state;
	for (unsigned t = 0; t < GATE_TYPES; t++) {
		enum gate_type type = (enum gate_type)t;
		enum gate_side side = side_of(type);
		struct gate_message m;
		const char *tail;
		size_t nfds;

		if (!gate_body_size(type))
			continue;
		types++;
		m = good(type, &tail, &nfds);
		pack(&m, tail);
		if (read_as(side, nfds))
			fail_msg("%s", gate_type_name(t));
		assert_int_equal(read_as(side == GATE_TO_NET ? GATE_TO_ROOT : GATE_TO_NET, nfds),
				 -EBADMSG);
		assert_int_equal(read_as(side, nfds + 1), -EBADMSG);
		if (nfds)
			assert_int_equal(read_as(side, nfds - 1), -EBADMSG);
		for (size_t n = 0; n < length; n++) { /* cut anywhere */
			size_t whole = length;

			length = n;
			assert_int_equal(read_as(side, nfds), -EBADMSG);
			length = whole;
		}
		length++;
		assert_int_equal(read_as(side, nfds), -EBADMSG);
		/* A body that is too short for its type, and a tail that makes up for it. */
		length--;
		packet[sizeof(uint32_t)]++;
		assert_int_equal(read_as(side, nfds), -EBADMSG);
	}
	assert_int_equal(types, 14 + 13);
}

static void test_no_such_type(void **state)
{
	static const uint32_t others[] = {0, GATE_PING + 1, GATE_READY - 1, GATE_TYPES, 0xffffffff};

	(void)state;
	memset(packet, 0, sizeof(packet));
	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++) {
		memcpy(packet, &others[i], sizeof(others[i]));
		for (length = 0; length < 600; length++) {
			assert_int_equal(read_as(GATE_TO_ROOT, 0), -EBADMSG);
			assert_int_equal(read_as(GATE_TO_NET, 0), -EBADMSG);
		}
		assert_string_equal(gate_type_name(others[i]), "unknown");
		assert_int_equal(gate_body_size((enum gate_type)others[i]), 0);
	}
}

#define AT(member)                                                                                 \
	(packet + BODY_AT + offsetof(struct gate_message, member) -                                \
	 offsetof(struct gate_message, setup))

/* Packs TYPE's good message; then BYTES of N at AT make it wrong. */
#define wrong(type, member, bytes, n)                                                              \
	do {                                                                                       \
		const char *with;                                                                  \
		size_t with_fds;                                                                   \
		struct gate_message is = good(type, &with, &with_fds);                             \
                                                                                                   \
		pack(&is, with);                                                                   \
		memcpy(AT(member), bytes, n);                                                      \
		assert_int_equal(read_as(side_of(type), with_fds), -EBADMSG);                      \
	} while (0)

#define endless(type, member)                                                                      \
	do {                                                                                       \
		static const char no_end[sizeof(((struct gate_message *)0)->member)] = {0};        \
		char filled[sizeof(no_end)];                                                       \
                                                                                                   \
		memset(filled, 'a', sizeof(filled));                                               \
		wrong(type, member, filled, sizeof(filled));                                       \
		wrong(type, member, "\033[2J", 5);                                                 \
		wrong(type, member, "a\nb", 4);                                                    \
		wrong(type, member, "\x7f", 2);                                                    \
	} while (0)

/* Strings end, and have no control characters, which could reach a terminal through the log. */
static void test_strings(void **state)
{
	(void)state;
	endless(GATE_SETUP, setup.name);
	endless(GATE_SETUP, setup.listen);
	endless(GATE_PEER, place.address);
	endless(GATE_DIAL, place.address);
	endless(GATE_ASK_KEY, place.address);
	endless(GATE_PUBLISHER_KEY, publisher.at.address);
	endless(GATE_PUBLISHER_KEY, publisher.node);
	endless(GATE_ASK, ask.at.address);
	endless(GATE_SKEWED, skewed.node);
	endless(GATE_STREAM, stream.from);
	endless(GATE_STREAM, stream.hello.job);
	endless(GATE_STREAM, stream.hello.node);
	endless(GATE_STREAM, stream.hello.ticket);
	endless(GATE_RENEW, renew.from);
	endless(GATE_VECTOR, vector.vector.name);
	endless(GATE_VECTOR, vector.vector.address);
	endless(GATE_VECTOR, vector.at.address);
	endless(GATE_TROUBLE, trouble.at.address);
	endless(GATE_HELLO, hello.from);
	endless(GATE_QUESTION, question.from);
}

static void test_bools(void **state)
{
	(void)state;
	for (unsigned byte = 2; byte < 256; byte += 127) {
		const uint8_t b = (uint8_t)byte;

		wrong(GATE_SETUP, setup.systemd, &b, 1);
		wrong(GATE_SETUP, setup.networked, &b, 1);
		wrong(GATE_SETUP, setup.streams, &b, 1);
		wrong(GATE_SETUP, setup.http, &b, 1);
		wrong(GATE_PUBLISHER_KEY, publisher.given, &b, 1);
		wrong(GATE_REPLY, reply.judged, &b, 1);
		wrong(GATE_REPLY, reply.last, &b, 1);
		wrong(GATE_STREAM_OVER, stream_over.taken, &b, 1);
		wrong(GATE_RENEWED, renewed.answered, &b, 1);
		wrong(GATE_VECTOR, vector.direct, &b, 1);
		wrong(GATE_ANSWERED, answered.connected, &b, 1);
		wrong(GATE_ANSWERED, answered.cut, &b, 1);
		wrong(GATE_QUESTION, question.proven, &b, 1);
	}
}

static void wrong_int(enum gate_type type, size_t offset, int64_t value, size_t n)
{
	const char *tail;
	size_t nfds;
	struct gate_message m = good(type, &tail, &nfds);

	pack(&m, tail);
	memcpy(packet + BODY_AT + offset, &value, n); /* little-endian, as this machine is */
	assert_int_equal(read_as(side_of(type), nfds), -EBADMSG);
}

#define OFFSET(member)                                                                             \
	(offsetof(struct gate_message, member) - offsetof(struct gate_message, setup))

static void test_numbers(void **state)
{
	(void)state;
	wrong_int(GATE_READY, OFFSET(ready.rc), 1, 4);
	wrong_int(GATE_READY, OFFSET(ready.rc), -4096, 4);
	wrong_int(GATE_ANSWERED, OFFSET(answered.rc), 1, 4);
	wrong_int(GATE_ANSWERED, OFFSET(answered.rc), INT32_MIN, 4);
	wrong_int(GATE_ANSWERED, OFFSET(answered.rc), 0, 4); /* an answer, which is empty */
	wrong_int(GATE_REPLY, OFFSET(reply.verdict), -2, 4);
	wrong_int(GATE_REPLY, OFFSET(reply.verdict), SEAL_E_REFUSALS, 4);
	wrong_int(GATE_STREAM, OFFSET(stream.hello.kind), 2, 4);
	wrong_int(GATE_STREAM, OFFSET(stream.hello.kind), -1, 4);
	wrong_int(GATE_SKEWED, OFFSET(skewed.node), 0, 1);
	wrong_int(GATE_TROUBLE, OFFSET(trouble.at.address), 0, 1);
	wrong_int(GATE_TROUBLE, OFFSET(trouble.cause), PEER_CAUSES, 4);
	wrong_int(GATE_TROUBLE, OFFSET(trouble.cause), -1, 4);
	/* The credential is in the tail, also where the sum of the two numbers overflows. */
	wrong_int(GATE_HELLO, OFFSET(hello.credential), 2, 4);
	wrong_int(GATE_HELLO, OFFSET(hello.credential_length), 2, 4);
	wrong_int(GATE_HELLO, OFFSET(hello.credential_length), 0xffffffff, 4);
	wrong_int(GATE_HELLO, OFFSET(hello.credential), 0xffffffff, 4);
}

/* A vector from the gate is as good as one that was decoded. */
static void test_vectors(void **state)
{
	static const double bad[] = {NAN, INFINITY, -1};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		wrong(GATE_VECTOR, vector.vector.cpu_speed, &bad[i], sizeof(bad[i]));
		wrong(GATE_VECTOR, vector.vector.memory_mb, &bad[i], sizeof(bad[i]));
		wrong(GATE_PUBLISH, publish.explicit_per_ms, &bad[i], sizeof(bad[i]));
	}
	wrong(GATE_VECTOR, vector.vector.name, "", 1);
	wrong(GATE_VECTOR, vector.vector.name, "../../etc", 10);
}

/* More vectors follow the first in the tail, each whole and each as good as the first must be. */
static void test_more_vectors(void **state)
{
	static struct gate_vector more[GATE_VECTORS];
	const size_t size = sizeof(*more);
	const char *tail;
	size_t nfds;
	struct gate_message m = good(GATE_VECTOR, &tail, &nfds);
	const uint8_t flag = 2;

	(void)state;
	for (size_t i = 0; i < GATE_VECTORS; i++)
		more[i] = m.vector;
	for (size_t n = 0; n < GATE_VECTORS; n++) {
		pack_tail(&m, (char *)more, n * size);
		assert_int_equal(read_as(GATE_TO_ROOT, 0), 0);
	}
	pack_tail(&m, (char *)more, GATE_VECTORS * size);
	assert_int_equal(read_as(GATE_TO_ROOT, 0), -EBADMSG);
	pack_tail(&m, (char *)more, 3 * size - 1);
	assert_int_equal(read_as(GATE_TO_ROOT, 0), -EBADMSG);
	pack_tail(&m, (char *)more, 3 * size + 1);
	assert_int_equal(read_as(GATE_TO_ROOT, 0), -EBADMSG);
	for (size_t i = 0; i < 3; i++) {
		const struct gate_vector was = more[i];

		memset(more[i].at.address, 'a', sizeof(more[i].at.address));
		pack_tail(&m, (char *)more, 3 * size);
		assert_int_equal(read_as(GATE_TO_ROOT, 0), -EBADMSG);
		more[i] = was;
		memcpy(&more[i].direct, &flag, 1);
		pack_tail(&m, (char *)more, 3 * size);
		assert_int_equal(read_as(GATE_TO_ROOT, 0), -EBADMSG);
		more[i] = was;
		more[i].vector.name[0] = 0;
		pack_tail(&m, (char *)more, 3 * size);
		assert_int_equal(read_as(GATE_TO_ROOT, 0), -EBADMSG);
		more[i] = was;
	}
}

/* Sentences are text, and short; answers may be anything. */
static void test_tails(void **state)
{
	static char longest[GATE_CONTROL_MAX + 1];
	struct gate_message m = {.type = GATE_ANSWERED};

	(void)state;
	memset(longest, 'x', sizeof(longest));
	pack_tail(&m, "\0\1\2", 3);
	assert_int_equal(read_as(GATE_TO_ROOT, 0), 0);
	pack_tail(&m, longest, GATE_CONTROL_MAX);
	assert_int_equal(read_as(GATE_TO_ROOT, 0), 0);
	pack_tail(&m, longest, GATE_CONTROL_MAX + 1);
	assert_int_equal(read_as(GATE_TO_ROOT, 0), -EBADMSG);
	m.answered.rc = -EIO;
	pack_tail(&m, longest, GATE_SENTENCE_MAX);
	assert_int_equal(read_as(GATE_TO_ROOT, 0), 0);
	pack_tail(&m, longest, GATE_SENTENCE_MAX + 1);
	assert_int_equal(read_as(GATE_TO_ROOT, 0), -EBADMSG);
	pack_tail(&m, "a\0b", 3);
	assert_int_equal(read_as(GATE_TO_ROOT, 0), -EBADMSG);
	pack_tail(&m, "a\033b", 3);
	assert_int_equal(read_as(GATE_TO_ROOT, 0), -EBADMSG);
	m = (struct gate_message){.type = GATE_STREAM};
	pack_tail(&m, longest, STREAM_HELLO_MAX);
	assert_int_equal(read_as(GATE_TO_ROOT, 1), 0);
	pack_tail(&m, longest, STREAM_HELLO_MAX + 1);
	assert_int_equal(read_as(GATE_TO_ROOT, 1), -EBADMSG);
	m = (struct gate_message){.type = GATE_RENEWED, .renewed = {.answered = true}};
	pack_tail(&m, "\0\1", 2);
	assert_int_equal(read_as(GATE_TO_NET, 0), 0);
	m.renewed.answered = false;
	pack_tail(&m, "\0\1", 2);
	assert_int_equal(read_as(GATE_TO_NET, 0), -EBADMSG);
}

/* Of a set-up the two flags say how many descriptors come with it. */
static void test_setup(void **state)
{
	struct gate_message m = {.type = GATE_SETUP};

	(void)state;
	for (size_t i = 0; i < 4; i++) {
		m.setup.streams = i & 1;
		m.setup.http = i >> 1;
		pack(&m, "");
		for (size_t n = 0; n < 4; n++)
			assert_int_equal(read_as(GATE_TO_NET, n),
					 n == (i & 1) + (i >> 1) ? 0 : -EBADMSG);
	}
}

static void test_places(void **state)
{
	const struct gate_place place = {.address = "10.0.0.1", .port = 7700};

	(void)state;
	assert_true(gate_place_is(&place, "10.0.0.1", 7700));
	assert_false(gate_place_is(&place, "10.0.0.1", 7701));
	assert_false(gate_place_is(&place, "10.0.0.10", 7700));
	assert_false(gate_place_is(&place, "10.0.0.", 7700));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_type),    cmocka_unit_test(test_no_such_type),
		cmocka_unit_test(test_strings),	     cmocka_unit_test(test_bools),
		cmocka_unit_test(test_numbers),	     cmocka_unit_test(test_vectors),
		cmocka_unit_test(test_more_vectors), cmocka_unit_test(test_tails),
		cmocka_unit_test(test_setup),	     cmocka_unit_test(test_places),
	};

	return cmocka_run_group_tests_name("gate_message", tests, NULL, NULL);
}
