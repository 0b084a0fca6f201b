/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Sessions between agents without a network and without munged: what greetings accept, and what a
 * session opens.  Attackers here hold no MUNGE key: they change, repeat, exchange, cut, mix and
 * reflect what honest nodes send.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/cluster/greeting.h"
#include "agent/cluster/sessions.h"
#include "user/channel/version.h"
#include "user/clock.h"
#include "user/pack.h"

static const struct greeting_self self_a = {"red", "a", 11}, self_b = {"red", "b", 22};

/*
 * In place of munged: a credential is the number of what it seals.  That munged keeps its word is
 * tested with munged itself (test_control).
 */
static struct {
	msgpack_sbuffer sealed[64];
	unsigned count;
} vault;

static void vault_empty(void)
{
	while (vault.count)
		msgpack_sbuffer_destroy(&vault.sealed[--vault.count]);
}

static void vault_seal(const msgpack_sbuffer *data, char text[32])
{
	assert_true(vault.count < 64);
	snprintf(text, 32, "cred-%u", vault.count);
	msgpack_sbuffer_init(&vault.sealed[vault.count]);
	msgpack_sbuffer_write(&vault.sealed[vault.count++], data->data, data->size);
}

static const msgpack_sbuffer *vault_open(const char *text, size_t length)
{
	unsigned n = UINT32_MAX;
	char copy[32] = "";

	if (length < sizeof(copy))
		memcpy(copy, text, length);
	return sscanf(copy, "cred-%u", &n) == 1 && n < vault.count ? &vault.sealed[n] : NULL;
}

struct bytes {
	uint8_t at[8192];
	size_t n;
};

static void take(struct bytes *out, msgpack_sbuffer *from)
{
	assert_true(from->size <= sizeof(out->at));
	memcpy(out->at, from->data, from->size);
	out->n = from->size;
	msgpack_sbuffer_destroy(from);
}

static void hello_of(struct greeting *g, const struct greeting_self *self, const char *to,
		     struct bytes *out)
{
	msgpack_sbuffer claim, hello;
	char credential[32];

	msgpack_sbuffer_init(&claim);
	greeting_begin(g, self, to, &claim);
	vault_seal(&claim, credential);
	msgpack_sbuffer_destroy(&claim);
	msgpack_sbuffer_init(&hello);
	assert_int_equal(greeting_hello(g, credential, &hello), 0);
	take(out, &hello);
}

/* The answerer hears HELLO.  Returns greeting_heard's or greeting_accept's result. */
static int welcome_of(struct greeting *g, const struct greeting_self *self,
		      const struct bytes *hello, struct bytes *out, struct iocom_err *err)
{
	const msgpack_sbuffer *opened;
	msgpack_sbuffer claim, welcome;
	struct greeting_head head;
	char credential[32];
	int rc = greeting_heard(&head, hello->at, hello->n, err);

	*g = (struct greeting){0};
	if (rc)
		return rc;
	opened = vault_open(head.credential, head.length);
	if (!opened)
		return -EACCES; /* munged says no */
	msgpack_sbuffer_init(&claim);
	rc = greeting_accept(g, self, channel_version_choose(head.least, head.most), hello->at,
			     hello->n, opened->data, opened->size, &claim, err);
	if (!rc) {
		vault_seal(&claim, credential);
		msgpack_sbuffer_init(&welcome);
		assert_int_equal(greeting_welcome(g, credential, &welcome), 0);
		take(out, &welcome);
	}
	msgpack_sbuffer_destroy(&claim);
	return rc;
}

static int trust_of(struct greeting *g, const struct greeting_self *self,
		    const struct bytes *welcome, struct iocom_err *err)
{
	const msgpack_sbuffer *opened;
	char *text = NULL;
	int rc = greeting_welcomed(g, welcome->at, welcome->n, &text, err);

	if (!rc) {
		opened = vault_open(text, strlen(text));
		rc = opened ? greeting_trust(g, self, opened->data, opened->size, err) : -EACCES;
	}
	free(text);
	return rc;
}

/* --- greetings ------------------------------------------------------------------- */

static void test_greeting(void **state)
{
	struct noise_key a_sends, a_receives, b_sends, b_receives;
	struct iocom_err err = {0};
	struct bytes hello, welcome;
	struct greeting a, b;

	(void)state;
	hello_of(&a, &self_a, "b", &hello);
	assert_int_equal(welcome_of(&b, &self_b, &hello, &welcome, &err), 0);
	assert_string_equal(b.node, "a");
	assert_int_equal(b.boot_id, 11);
	assert_int_equal(trust_of(&a, &self_a, &welcome, &err), 0);
	assert_string_equal(a.node, "b");
	assert_int_equal(a.boot_id, 22);
	assert_int_equal(a.version, CHANNEL_VERSION_MAX);
	noise_split(&a.noise, &a_sends, &a_receives, NULL);
	noise_split(&b.noise, &b_sends, &b_receives, NULL);
	assert_memory_equal(a_sends.key, b_receives.key, NOISE_KEY);
	assert_memory_equal(b_sends.key, a_receives.key, NOISE_KEY);
	vault_empty();
}

static void refused(const struct greeting_self *asks, const char *to,
		    const struct greeting_self *answers, enum peer_cause cause, const char *why)
{
	struct iocom_err err = {0};
	struct bytes hello, welcome;
	struct greeting a, b;

	hello_of(&a, asks, to, &hello);
	assert_int_equal(welcome_of(&b, answers, &hello, &welcome, &err), -EACCES);
	assert_non_null(strstr(err.text, why));
	assert_int_equal(b.cause, cause);
	greeting_end(&a);
	greeting_end(&b);
	vault_empty();
}

static void test_not_for_us(void **state)
{
	static const struct greeting_self blue = {"blue", "c", 3}, none = {"", "c", 3},
					  namesake = {"red", "b", 4};

	(void)state;
	refused(&self_a, "c", &self_b, PEER_C_NONE, "it is for node 'c', this is node 'b'");
	refused(&self_b, "", &self_b, PEER_C_SELF, "two nodes call themselves b");
	refused(&namesake, "", &self_b, PEER_C_SAME_NAME, "two nodes call themselves b");
	refused(&blue, "b", &self_b, PEER_C_CLUSTER,
		"node c belongs to the cluster blue, node b to the cluster red");
	refused(&self_a, "", &none, PEER_C_CLUSTER, "node c to the cluster without a name");
}

/* Any change of a byte of the two messages ends the handshake. */
static void test_changed(void **state)
{
	struct bytes hello, welcome, changed;
	struct iocom_err err = {0};
	struct greeting a, b;

	(void)state;
	hello_of(&a, &self_a, "b", &hello);
	for (size_t i = 0; i < 8 * hello.n; i++) {
		changed = hello;
		changed.at[i / 8] ^= (uint8_t)(1 << (i % 8));
		vault.count = 1; /* the credential of the hello only */
		assert_int_not_equal(welcome_of(&b, &self_b, &changed, &welcome, &err), 0);
		greeting_end(&b);
	}
	for (size_t n = 0; n < hello.n; n++) {
		changed = hello;
		changed.n = n;
		assert_int_not_equal(welcome_of(&b, &self_b, &changed, &welcome, &err), 0);
	}
	assert_int_equal(welcome_of(&b, &self_b, &hello, &welcome, &err), 0);
	for (size_t i = 0; i < 8 * welcome.n; i++) {
		struct greeting copy = a;

		changed = welcome;
		changed.at[i / 8] ^= (uint8_t)(1 << (i % 8));
		assert_int_not_equal(trust_of(&copy, &self_a, &changed, &err), 0);
	}
	for (size_t n = 0; n < welcome.n; n++) {
		struct greeting copy = a;

		changed = welcome;
		changed.n = n;
		assert_int_not_equal(trust_of(&copy, &self_a, &changed, &err), 0);
	}
	assert_int_equal(trust_of(&a, &self_a, &welcome, &err), 0);
	vault_empty();
}

/* The answer to one greeting is none to another, and no message is the answer to itself. */
static void test_exchanged(void **state)
{
	struct bytes hello1, hello2, welcome1, welcome2;
	struct greeting a1, a2, b1, b2, copy;
	struct iocom_err err = {0};

	(void)state;
	hello_of(&a1, &self_a, "b", &hello1);
	hello_of(&a2, &self_a, "b", &hello2);
	assert_int_equal(welcome_of(&b1, &self_b, &hello1, &welcome1, &err), 0);
	assert_int_equal(welcome_of(&b2, &self_b, &hello2, &welcome2, &err), 0);
	copy = a1;
	assert_int_equal(trust_of(&copy, &self_a, &welcome2, &err), -EBADMSG);
	copy = a1;
	assert_int_equal(trust_of(&copy, &self_a, &hello1, &err), -EBADMSG);
	/* The head of one hello with the Noise message of the other. */
	memcpy(hello2.at + hello2.n - NOISE_HANDSHAKE, hello1.at + hello1.n - NOISE_HANDSHAKE,
	       NOISE_HANDSHAKE);
	assert_int_equal(welcome_of(&b2, &self_b, &hello2, &welcome2, &err), -EACCES);
	assert_non_null(strstr(err.text, "not made by who made its credential"));
	assert_int_equal(trust_of(&a1, &self_a, &welcome1, &err), 0);
	vault_empty();
}

/* A node that answers for another, and one that uses a credential for another purpose. */
static void test_claims(void **state)
{
	static const struct greeting_self c = {"red", "c", 33};
	struct bytes hello, welcome;
	struct iocom_err err = {0};
	struct greeting_head head;
	struct greeting a, b;

	(void)state;
	hello_of(&a, &self_a, "", &hello);
	assert_int_equal(welcome_of(&b, &c, &hello, &welcome, &err), 0);
	snprintf(a.node, sizeof(a.node), "b"); /* whom a meant */
	assert_int_equal(trust_of(&a, &self_a, &welcome, &err), -EACCES);
	assert_non_null(strstr(err.text, "node 'c' answers in place of node 'b'"));
	/* The hello's credential as the welcome's. */
	hello_of(&a, &self_a, "b", &hello);
	assert_int_equal(greeting_heard(&head, hello.at, hello.n, &err), 0);
	assert_int_equal(greeting_trust(&a, &self_b, vault_open(head.credential, head.length)->data,
					vault_open(head.credential, head.length)->size, &err),
			 -EACCES);
	greeting_end(&a);
	greeting_end(&b);
	vault_empty();
}

/* A sentence in clear is shown without what could trouble a terminal, and is bounded. */
static void test_refusal(void **state)
{
	struct iocom_err err = {0};
	struct bytes hello, answer;
	msgpack_sbuffer out;
	char long_text[600];
	struct greeting a;

	(void)state;
	hello_of(&a, &self_a, "b", &hello);
	msgpack_sbuffer_init(&out);
	greeting_refuse(PEER_C_CLUSTER, "go \033[31maway\n", &out);
	take(&answer, &out);
	assert_int_equal(trust_of(&a, &self_a, &answer, &err), -EPROTO);
	assert_string_equal(err.text, "go ?[31maway?");
	assert_int_equal(a.cause, PEER_C_CLUSTER);
	/* Without a cause, as before there were any; and one that is no cause. */
	for (char first = 'n'; first; first = first == 'n' ? PEER_CAUSES : 0) {
		const char plain[] = {SESSION_REFUSED, first, 'o'};

		msgpack_sbuffer_init(&out);
		msgpack_sbuffer_write(&out, plain, sizeof(plain));
		take(&answer, &out);
		assert_int_equal(trust_of(&a, &self_a, &answer, &err), -EPROTO);
		assert_string_equal(err.text, first == 'n' ? "no" : "?o");
		assert_int_equal(a.cause, PEER_C_MUTE);
	}
	memset(long_text, 'x', sizeof(long_text) - 1);
	long_text[sizeof(long_text) - 1] = 0;
	msgpack_sbuffer_init(&out);
	greeting_refuse(PEER_C_NONE, long_text, &out);
	take(&answer, &out);
	assert_true(answer.n < 300);
	greeting_end(&a);
	vault_empty();
}

static void test_versions(void **state)
{
	(void)state;
	assert_int_equal(channel_version_choose(CHANNEL_VERSION_MIN, CHANNEL_VERSION_MAX),
			 CHANNEL_VERSION_MAX);
	assert_int_equal(channel_version_choose(CHANNEL_VERSION_MAX, CHANNEL_VERSION_MAX + 1),
			 CHANNEL_VERSION_MAX);
	assert_int_equal(channel_version_choose(CHANNEL_VERSION_MAX + 1, CHANNEL_VERSION_MAX + 2),
			 0);
	assert_int_equal(channel_version_choose(0, CHANNEL_VERSION_MIN - 1), 0);
	assert_int_equal(channel_version_choose(5, 1), 0);
	assert_int_equal(channel_version_choose(0, UINT64_MAX), CHANNEL_VERSION_MAX);
}

/* A HELLO with MIN to MAX; it is refused before munged is asked. */
static void test_other_versions(void **state)
{
	uint8_t message[256] = {SESSION_HELLO};
	struct iocom_err err = {0};
	msgpack_sbuffer head;
	msgpack_packer pk;
	struct greeting_head heard;

	(void)state;
	pack_begin(&pk, &head, 3);
	pack_u64(&pk, "min", CHANNEL_VERSION_MAX + 1);
	pack_u64(&pk, "max", CHANNEL_VERSION_MAX + 3);
	pack_str(&pk, "cred", "MUNGE:x:");
	message[2] = (uint8_t)head.size;
	memcpy(message + 3, head.data, head.size);
	assert_int_equal(greeting_heard(&heard, message, 3 + head.size + NOISE_HANDSHAKE, &err),
			 -EPROTO);
	assert_non_null(strstr(err.text, "install neighbouring versions"));
	msgpack_sbuffer_destroy(&head);
}

/* --- sessions -------------------------------------------------------------------- */

struct ends {
	struct counters counters;
	struct sessions *a, *b;
	const struct session *of_a, *of_b;
	uint64_t now;
};

static void meet(struct ends *e)
{
	struct iocom_err err = {0};
	struct bytes hello, welcome;
	struct greeting a, b;

	hello_of(&a, &self_a, "b", &hello);
	assert_int_equal(welcome_of(&b, &self_b, &hello, &welcome, &err), 0);
	assert_int_equal(trust_of(&a, &self_a, &welcome, &err), 0);
	e->of_b = sessions_add(e->b, &b, "", e->now);
	e->of_a = sessions_add(e->a, &a, "tcp://b:1", e->now);
	assert_non_null(e->of_a);
	assert_non_null(e->of_b);
	assert_int_equal(session_id(e->of_a), session_id(e->of_b));
	vault_empty();
}

static void ends_new(struct ends *e)
{
	*e = (struct ends){.now = 1000 * CLOCK_NS_PER_S};
	e->a = sessions_new(&self_a, &e->counters);
	e->b = sessions_new(&self_b, &e->counters);
	meet(e);
}

static void ends_free(struct ends *e)
{
	sessions_free(e->a);
	sessions_free(e->b);
}

static void say(struct sessions *from, const struct session *in, const char *text,
		struct bytes *out)
{
	out->n = strlen(text) + SESSION_OVERHEAD;
	session_seal(from, in, text, strlen(text), out->at);
}

/* Opens a copy of MESSAGE; TEXT gets what is in it. */
static int hear(struct sessions *to, const struct session *in, const struct bytes *message,
		char text[64])
{
	struct bytes copy = *message;
	const uint8_t *data;
	size_t n;
	int rc = session_open(to, in, copy.at, copy.n, &data, &n);

	if (!rc)
		snprintf(text, 64, "%.*s", (int)n, (const char *)data);
	return rc;
}

static void test_session(void **state)
{
	struct bytes question, answer;
	struct ends e;
	char text[64];

	(void)state;
	ends_new(&e);
	say(e.a, e.of_a, "question", &question);
	assert_ptr_equal(sessions_named(e.b, question.at, question.n, e.now), e.of_b);
	assert_int_equal(hear(e.b, e.of_b, &question, text), 0);
	assert_string_equal(text, "question");
	say(e.b, e.of_b, "answer", &answer);
	assert_int_equal(hear(e.a, e.of_a, &answer, text), 0);
	assert_string_equal(text, "answer");
	assert_int_equal(hear(e.b, e.of_b, &question, text), -EALREADY); /* repeated */
	assert_int_equal(hear(e.a, e.of_a, &question, text), -EBADMSG);	 /* reflected */
	assert_int_equal(hear(e.b, e.of_b, &answer, text), -EBADMSG);
	for (size_t i = 0; i < 8 * question.n; i++) {
		struct bytes changed = question;

		changed.at[i / 8] ^= (uint8_t)(1 << (i % 8));
		if (i / 8 >= 1 && i / 8 <= 8) /* another session's name */
			assert_null(sessions_named(e.b, changed.at, changed.n, e.now));
		assert_int_equal(hear(e.b, e.of_b, &changed, text), -EBADMSG);
	}
	for (size_t n = 0; n < question.n; n++) {
		struct bytes cut = question;

		cut.n = n;
		assert_int_equal(hear(e.b, e.of_b, &cut, text), -EBADMSG);
	}
	ends_free(&e);
}

/* Nothing is sent in a session before the other side has proven that it has its key. */
static void test_confirmed(void **state)
{
	struct bytes question;
	struct ends e;
	char text[64];

	(void)state;
	ends_new(&e);
	assert_true(session_is_confirmed(e.of_a));
	assert_false(session_is_confirmed(e.of_b));
	assert_null(sessions_find(e.b, "a", "", e.now));
	assert_ptr_equal(sessions_find(e.a, "b", "", e.now), e.of_a);
	assert_ptr_equal(sessions_find(e.a, "", "tcp://b:1", e.now), e.of_a);
	assert_null(sessions_find(e.a, "", "tcp://c:1", e.now));
	assert_null(sessions_find(e.a, "c", "tcp://b:1", e.now));
	say(e.a, e.of_a, "x", &question);
	assert_int_equal(hear(e.b, e.of_b, &question, text), 0);
	assert_ptr_equal(sessions_find(e.b, "a", "", e.now), e.of_b);
	ends_free(&e);
}

/* Two sessions do not open each other's messages. */
static void test_two_sessions(void **state)
{
	const struct session *first_a, *first_b;
	struct bytes in_first, in_second;
	struct ends e;
	char text[64];

	(void)state;
	ends_new(&e);
	first_a = e.of_a;
	first_b = e.of_b;
	meet(&e);
	say(e.a, first_a, "first", &in_first);
	say(e.a, e.of_a, "second", &in_second);
	assert_int_equal(hear(e.b, e.of_b, &in_first, text), -EBADMSG);
	memcpy(in_first.at + 1, in_second.at + 1, 8);
	assert_int_equal(hear(e.b, e.of_b, &in_first, text), -EBADMSG);
	assert_int_equal(hear(e.b, first_b, &in_second, text), -EBADMSG);
	assert_int_equal(hear(e.b, e.of_b, &in_second, text), 0);
	assert_ptr_equal(sessions_find(e.a, "b", "", e.now), e.of_a); /* the newer one */
	ends_free(&e);
}

/* Messages may overtake each other within the window; none is opened twice. */
static void test_window(void **state)
{
	enum { COUNT = 3 * SESSION_WINDOW };
	static struct bytes messages[COUNT];
	static bool opened[COUNT];
	unsigned seed = 7;
	uint64_t most = 0;
	struct ends e;
	char text[64], number[16];

	(void)state;
	ends_new(&e);
	for (int i = 0; i < COUNT; i++) {
		snprintf(number, sizeof(number), "%d", i);
		say(e.a, e.of_a, number, &messages[i]);
	}
	for (int i = 0; i < 20 * COUNT; i++) {
		uint64_t k = (uint64_t)rand_r(&seed) % COUNT;
		int rc;

		if (i < COUNT) /* first roughly in order, later from everywhere */
			k = k % 64 + (uint64_t)i < COUNT ? k % 64 + (uint64_t)i : COUNT - 1;
		rc = hear(e.b, e.of_b, &messages[k], text);
		if (opened[k] || (k <= most && most - k >= SESSION_WINDOW - 1)) {
			assert_int_equal(rc, -EALREADY);
		} else {
			assert_int_equal(rc, 0);
			assert_int_equal(atoi(text), (int)k);
			opened[k] = true;
		}
		most = k > most ? k : most;
	}
	ends_free(&e);
}

/* After an hour a new one is due, at most every half minute; after two the old one is void. */
static void test_age(void **state)
{
	const uint64_t s = CLOCK_NS_PER_S;
	struct bytes question;
	struct ends e;

	(void)state;
	ends_new(&e);
	say(e.a, e.of_a, "x", &question);
	assert_false(session_is_stale(e.of_a, e.now + SESSION_FRESH_S * s - 1));
	e.now += SESSION_FRESH_S * s;
	assert_true(session_is_stale(e.of_a, e.now));
	assert_true(session_may_greet(e.a, e.of_a, e.now));
	assert_false(session_may_greet(e.a, e.of_a, e.now + s));
	assert_true(session_may_greet(e.a, e.of_a, e.now + SESSION_RETRY_S * s));
	assert_non_null(sessions_find(e.a, "b", "", e.now));
	e.now += (SESSION_LIFE_S - SESSION_FRESH_S) * s;
	assert_null(sessions_find(e.a, "b", "", e.now));
	assert_null(sessions_named(e.b, question.at, question.n, e.now));
	sessions_expire(e.a, e.now - 1);
	assert_int_equal(sessions_count(e.a), 1);
	sessions_expire(e.a, e.now);
	assert_int_equal(sessions_count(e.a), 0);
	ends_free(&e);
}

/* A node that has started again replaces what was; but only when it has proven that it is there. */
static void test_restart(void **state)
{
	static const struct greeting_self again = {"red", "a", 12};
	struct iocom_err err = {0};
	struct bytes hello, welcome, question;
	const struct session *in;
	struct greeting a, b;
	struct ends e;
	char text[64];

	(void)state;
	ends_new(&e);
	say(e.a, e.of_a, "x", &question);
	assert_int_equal(hear(e.b, e.of_b, &question, text), 0);
	hello_of(&a, &again, "b", &hello);
	assert_int_equal(welcome_of(&b, &self_b, &hello, &welcome, &err), 0);
	in = sessions_add(e.b, &b, "", e.now);
	assert_int_equal(sessions_count(e.b), 2);
	assert_ptr_equal(sessions_find(e.b, "a", "", e.now), e.of_b);
	assert_int_equal(trust_of(&a, &again, &welcome, &err), 0);
	e.of_a = sessions_add(e.a, &a, "tcp://b:1", e.now);
	say(e.a, e.of_a, "y", &question);
	assert_int_equal(hear(e.b, in, &question, text), 0);
	assert_int_equal(sessions_count(e.b), 1);
	assert_ptr_equal(sessions_find(e.b, "a", "", e.now), in);
	ends_free(&e);
	vault_empty();
}

/* What the other side does not know is dropped with what is older; other nodes' stay. */
static void test_drop_until(void **state)
{
	static const struct greeting_self self_c = {"red", "c", 33};
	const struct session *first, *second, *third, *of_c;
	struct iocom_err err = {0};
	struct bytes hello, welcome;
	struct greeting a, c;
	struct ends e;

	(void)state;
	ends_new(&e);
	first = e.of_a;
	hello_of(&a, &self_a, "c", &hello);
	assert_int_equal(welcome_of(&c, &self_c, &hello, &welcome, &err), 0);
	assert_int_equal(trust_of(&a, &self_a, &welcome, &err), 0);
	of_c = sessions_add(e.a, &a, "tcp://c:1", e.now);
	meet(&e);
	second = e.of_a;
	meet(&e);
	third = e.of_a;
	assert_ptr_not_equal(first, second);
	sessions_drop_until(e.a, second);
	assert_int_equal(sessions_count(e.a), 2);
	assert_ptr_equal(sessions_find(e.a, "b", "", e.now), third);
	assert_ptr_equal(sessions_find(e.a, "c", "", e.now), of_c);
	sessions_drop_until(e.a, third);
	assert_null(sessions_find(e.a, "b", "", e.now));
	assert_int_equal(sessions_count(e.a), 1);
	greeting_end(&c);
	ends_free(&e);
	vault_empty();
}

/*
 * What is in doubt, and is older, is not sent in; it still receives, and is good again if the other
 * side goes on in it.
 */
static void test_doubt_until(void **state)
{
	const struct session *first, *of_b;
	struct bytes question;
	struct ends e;
	char text[64];

	(void)state;
	ends_new(&e);
	first = e.of_a;
	of_b = e.of_b;
	say(e.a, e.of_a, "x", &question); /* confirms it at b */
	assert_int_equal(hear(e.b, of_b, &question, text), 0);
	meet(&e);
	sessions_doubt_until(e.a, first);
	assert_ptr_equal(sessions_find(e.a, "b", "", e.now), e.of_a); /* the newer one */
	sessions_doubt_until(e.a, e.of_a);
	assert_null(sessions_find(e.a, "b", "", e.now));
	assert_int_equal(sessions_count(e.a), 2);
	say(e.b, of_b, "here", &question);
	assert_int_equal(hear(e.a, first, &question, text), 0);
	assert_string_equal(text, "here");
	assert_ptr_equal(sessions_find(e.a, "b", "", e.now), first);
	assert_int_equal(sessions_count(e.a), 2);
	ends_free(&e);
	vault_empty();
}

/* A node has few sessions, the table a bound; unproven ones go first. */
static void test_bounds(void **state)
{
	struct greeting_self other = {.cluster = "red"};
	struct iocom_err err = {0};
	struct bytes hello, welcome, question;
	struct greeting a, b;
	struct ends e;
	char text[64];

	(void)state;
	ends_new(&e);
	say(e.a, e.of_a, "x", &question);
	assert_int_equal(hear(e.b, e.of_b, &question, text), 0);
	for (int i = 0; i < 3 * SESSIONS_OF_ONE; i++) { /* hellos only */
		hello_of(&a, &self_a, "b", &hello);
		assert_int_equal(welcome_of(&b, &self_b, &hello, &welcome, &err), 0);
		assert_non_null(sessions_add(e.b, &b, "", e.now));
		greeting_end(&a);
		vault_empty();
	}
	assert_int_equal(sessions_count(e.b), SESSIONS_OF_ONE);
	assert_ptr_equal(sessions_find(e.b, "a", "", e.now), e.of_b);
	for (int i = 0; i < SESSIONS_MAX; i++) {
		snprintf(other.name, sizeof(other.name), "n%d", i);
		hello_of(&a, &other, "b", &hello);
		assert_int_equal(welcome_of(&b, &self_b, &hello, &welcome, &err), 0);
		assert_non_null(sessions_add(e.b, &b, "", e.now));
		greeting_end(&a);
		vault_empty();
	}
	assert_int_equal(sessions_count(e.b), SESSIONS_MAX);
	assert_int_equal(e.counters.sessions_replaced, SESSIONS_OF_ONE);
	assert_ptr_equal(sessions_find(e.b, "a", "", e.now), e.of_b);
	ends_free(&e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_greeting),     cmocka_unit_test(test_not_for_us),
		cmocka_unit_test(test_changed),	     cmocka_unit_test(test_exchanged),
		cmocka_unit_test(test_claims),	     cmocka_unit_test(test_refusal),
		cmocka_unit_test(test_versions),     cmocka_unit_test(test_other_versions),
		cmocka_unit_test(test_session),	     cmocka_unit_test(test_confirmed),
		cmocka_unit_test(test_two_sessions), cmocka_unit_test(test_window),
		cmocka_unit_test(test_age),	     cmocka_unit_test(test_restart),
		cmocka_unit_test(test_drop_until),   cmocka_unit_test(test_bounds),
		cmocka_unit_test(test_doubt_until),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
