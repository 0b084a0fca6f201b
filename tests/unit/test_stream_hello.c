/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* The handshake of a job stream: both sides, and all that is not one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "user/channel/stream_hello.h"
#include "user/channel/version.h"
#include "user/pack.h"

static const uint8_t key[SECRET_KEY] = "0123456789abcdef0123456789abcde";
static const char ticket[] = "0123456789abcdef0123456789abcdef";

struct sides {
	struct stream_hello asked, heard;
	struct noise client, target;
	uint8_t hello[STREAM_HELLO_MAX], welcome[STREAM_WELCOME_MAX];
	size_t hello_length, welcome_length;
	struct records at_client, at_target;
};

static void ask(struct sides *s, enum stream_kind kind, const char *with)
{
	stream_hello_fill(&s->asked, kind, "n1-0a-7", "n2", with);
	assert_int_equal(
		stream_hello_pack(&s->client, &s->asked, key, NULL, s->hello, &s->hello_length), 0);
}

static int answer(struct sides *s, const char *node, uint64_t version)
{
	struct stream_welcome welcome = {.version = version, .boot_id = 99};

	snprintf(welcome.node, sizeof(welcome.node), "%s", node);
	assert_int_equal(stream_hello_open(&s->target, s->hello, s->hello_length, key), 0);
	assert_int_equal(stream_welcome_pack(&s->target, &welcome, s->welcome, &s->welcome_length,
					     &s->at_target),
			 0);
	return stream_welcome_unpack(&s->client, &s->asked, s->welcome, s->welcome_length, &welcome,
				     &s->at_client);
}

static void test_both_sides(void **state)
{
	struct sides s;

	(void)state;
	ask(&s, STREAM_KIND_ATTACH, ticket);
	assert_int_equal(stream_hello_unpack(&s.heard, s.hello, s.hello_length), 0);
	assert_int_equal(s.heard.kind, STREAM_KIND_ATTACH);
	assert_int_equal(s.heard.least, CHANNEL_VERSION_MIN);
	assert_int_equal(s.heard.most, CHANNEL_VERSION_MAX);
	assert_string_equal(s.heard.job, "n1-0a-7");
	assert_string_equal(s.heard.node, "n2");
	assert_string_equal(s.heard.ticket, ticket);
	assert_int_equal(answer(&s, "n2", CHANNEL_VERSION_MAX), 0);
	assert_memory_equal(&s.at_client.sends, &s.at_target.receives, sizeof(struct noise_key));
	assert_memory_equal(&s.at_client.receives, &s.at_target.sends, sizeof(struct noise_key));
	assert_memory_not_equal(&s.at_client.sends, &s.at_client.receives, NOISE_KEY);
}

/* The same key and names lead to other keys of the stream each time. */
static void test_fresh_keys(void **state)
{
	struct sides one, other;

	(void)state;
	ask(&one, STREAM_KIND_START, "");
	ask(&other, STREAM_KIND_START, "");
	assert_int_equal(answer(&one, "n2", CHANNEL_VERSION_MAX), 0);
	assert_int_equal(answer(&other, "n2", CHANNEL_VERSION_MAX), 0);
	assert_memory_not_equal(one.at_client.sends.key, other.at_client.sends.key, NOISE_KEY);
}

static void test_wrong_answers(void **state)
{
	struct stream_welcome welcome;
	struct sides s;

	(void)state;
	ask(&s, STREAM_KIND_START, "");
	assert_int_equal(answer(&s, "n3", CHANNEL_VERSION_MAX), -EBADMSG); /* another node */
	ask(&s, STREAM_KIND_START, "");
	assert_int_equal(answer(&s, "n2", CHANNEL_VERSION_MAX + 1), -EBADMSG);
	ask(&s, STREAM_KIND_START, "");
	assert_int_equal(answer(&s, "n2", CHANNEL_VERSION_MIN - 1), -EBADMSG);
	ask(&s, STREAM_KIND_START, "");
	assert_int_equal(stream_welcome_unpack(&s.client, &s.asked, s.hello, STREAM_WELCOME_MAX + 1,
					       &welcome, &s.at_client),
			 -EBADMSG);
	for (size_t i = 0; i < 120; i += 3) {
		ask(&s, STREAM_KIND_START, "");
		(void)answer(&s, "n2", CHANNEL_VERSION_MAX);
		ask(&s, STREAM_KIND_START, ""); /* that was the answer to another question */
		assert_int_equal(stream_welcome_unpack(&s.client, &s.asked, s.welcome,
						       i < s.welcome_length ? i : s.welcome_length,
						       &welcome, &s.at_client),
				 -EBADMSG);
	}
}

static void test_wrong_key(void **state)
{
	uint8_t wrong[SECRET_KEY];
	struct noise target;
	struct sides s;

	(void)state;
	ask(&s, STREAM_KIND_START, "");
	for (size_t i = 0; i < SECRET_KEY; i++) {
		memcpy(wrong, key, sizeof(wrong));
		wrong[i] ^= 0x80;
		assert_int_equal(stream_hello_open(&target, s.hello, s.hello_length, wrong),
				 -EBADMSG);
	}
}

/* No byte of the question may change on its way. */
static void test_changed(void **state)
{
	struct noise target;
	struct sides s;

	(void)state;
	ask(&s, STREAM_KIND_ATTACH, ticket);
	for (size_t i = 0; i < s.hello_length; i++) {
		s.hello[i] ^= 1;
		assert_int_equal(stream_hello_open(&target, s.hello, s.hello_length, key),
				 -EBADMSG);
		s.hello[i] ^= 1;
	}
	assert_int_equal(stream_hello_open(&target, s.hello, s.hello_length, key), 0);
	noise_end(&target);
}

static void test_lengths(void **state)
{
	uint8_t data[STREAM_HELLO_MAX + 1] = {0};
	struct noise target;
	struct sides s;

	(void)state;
	ask(&s, STREAM_KIND_START, "");
	memcpy(data, s.hello, s.hello_length);
	for (size_t n = 0; n <= sizeof(data); n++) {
		int expected = n == s.hello_length ? 0 : -EBADMSG;

		assert_int_equal(stream_hello_unpack(&s.heard, data, n), expected);
		assert_int_equal(stream_hello_open(&target, data, n, key), expected);
	}
}

/* Makes a question of a head with LEAST, MOST, KIND, JOB, NODE and TICKET; a NULL is left out. */
static int heads(uint64_t least, uint64_t most, const char *kind, const char *job, const char *node,
		 const char *with)
{
	uint8_t data[STREAM_HELLO_MAX] = {0};
	struct stream_hello hello;
	msgpack_sbuffer head;
	msgpack_packer pk;
	size_t length;
	int rc;

	pack_begin(&pk, &head, 2u + !!kind + !!job + !!node + !!with);
	pack_u64(&pk, "min", least);
	pack_u64(&pk, "max", most);
	if (kind)
		pack_str(&pk, "kind", kind);
	if (job)
		pack_str(&pk, "job", job);
	if (node)
		pack_str(&pk, "node", node);
	if (with)
		pack_str(&pk, "ticket", with);
	data[0] = (uint8_t)(head.size >> 8);
	data[1] = (uint8_t)head.size;
	memcpy(data + 2, head.data, head.size);
	length = 2 + head.size + NOISE_HANDSHAKE;
	msgpack_sbuffer_destroy(&head);
	rc = stream_hello_unpack(&hello, data, length);
	if (rc) /* nothing is left of what was refused */
		assert_string_equal(hello.job, "");
	return rc;
}

static void test_heads(void **state)
{
	static const char longer[] =
		"0123456789012345678901234567890123456789012345678901234567890123";

	(void)state;
	assert_int_equal(heads(1, 1, "start", "n1-0-1", "n2", ""), 0);
	assert_int_equal(heads(0, UINT64_MAX, "attach", "n1-0-1", "n2", ""), 0);
	assert_int_equal(heads(1, 1, "attach", "n1-0-1", "n2", ticket), 0);
	assert_int_equal(heads(2, 1, "start", "n1-0-1", "n2", ""), -EBADMSG);
	assert_int_equal(heads(1, 1, "stop", "n1-0-1", "n2", ""), -EBADMSG);
	assert_int_equal(heads(1, 1, "start", "../x", "n2", ""), -EBADMSG);
	assert_int_equal(heads(1, 1, "start", "", "n2", ""), -EBADMSG);
	assert_int_equal(heads(1, 1, "start", "n1-0-1", "", ""), -EBADMSG);
	assert_int_equal(heads(1, 1, "start", "n1-0-1", longer, ""), -EBADMSG);
	assert_int_equal(heads(1, 1, "start", "n1-0-1", "n2", ticket), -EBADMSG);
	assert_int_equal(heads(1, 1, "attach", "n1-0-1", "n2", "0123"), -EBADMSG);
	assert_int_equal(heads(1, 1, "attach", "n1-0-1", "n2", "0123456789ABCDEF0123456789abcdef"),
			 -EBADMSG);
	assert_int_equal(heads(1, 1, "attach", "n1-0-1", "n2", longer), -EBADMSG);
	assert_int_equal(heads(1, 1, NULL, "n1-0-1", "n2", ""), -EBADMSG);
	assert_int_equal(heads(1, 1, "start", NULL, "n2", ""), -EBADMSG);
	assert_int_equal(heads(1, 1, "start", "n1-0-1", NULL, ""), -EBADMSG);
	assert_int_equal(heads(1, 1, "start", "n1-0-1", "n2", NULL), -EBADMSG);
}

/* The longest names fit. */
static void test_longest(void **state)
{
	char job[SPEC_JOB_MAX], node[IOCOM_NAME_MAX];
	struct sides s;

	(void)state;
	memset(job, 'j', sizeof(job));
	memset(node, 'n', sizeof(node));
	job[sizeof(job) - 1] = node[sizeof(node) - 1] = 0;
	stream_hello_fill(&s.asked, STREAM_KIND_ATTACH, job, node, ticket);
	s.asked.most = UINT64_MAX;
	assert_int_equal(
		stream_hello_pack(&s.client, &s.asked, key, NULL, s.hello, &s.hello_length), 0);
	assert_int_equal(stream_hello_unpack(&s.heard, s.hello, s.hello_length), 0);
	assert_string_equal(s.heard.job, job);
	assert_int_equal(answer(&s, node, UINT64_MAX), 0);
}

static void test_versions_chosen(void **state)
{
	(void)state;
	assert_int_equal(channel_version_choose(CHANNEL_VERSION_MIN, CHANNEL_VERSION_MAX),
			 CHANNEL_VERSION_MAX);
	assert_int_equal(channel_version_choose(0, UINT64_MAX), CHANNEL_VERSION_MAX);
	assert_int_equal(channel_version_choose(CHANNEL_VERSION_MAX + 1, UINT64_MAX), 0);
	assert_int_equal(channel_version_choose(0, CHANNEL_VERSION_MIN - 1), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_both_sides),	cmocka_unit_test(test_fresh_keys),
		cmocka_unit_test(test_wrong_answers),	cmocka_unit_test(test_wrong_key),
		cmocka_unit_test(test_changed),		cmocka_unit_test(test_lengths),
		cmocka_unit_test(test_heads),		cmocka_unit_test(test_longest),
		cmocka_unit_test(test_versions_chosen),
	};

	return cmocka_run_group_tests_name("stream_hello", tests, NULL, NULL);
}
