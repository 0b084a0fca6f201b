/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The handshake against the published vectors of the pattern (cacophony's collection), and what it
 * refuses: another secret, another prologue, changed, cut and repeated messages, public keys that
 * lead to no secret.  The records: changed, repeated, left out, exchanged, cut, sent back.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "user/channel/noise.h"
#include "user/channel/records.h"
#include "user/channel/secret.h"

#define PROLOGUE "4a6f686e2047616c74"
#define PSK	 "54686973206973206d7920417573747269616e20706572737065637469766521"
#define HASH	 "f4d03dc34495c95729ea6de9e1b59004b59733102488b3e24bc441e0be208eaf"

static const struct {
	const char *payload, *message;
} vectors[] = {
	{"4c756477696720766f6e204d69736573",
	 "ca35def5ae56cec33dc2036731ab14896bc4c75dbb07a61f879f8e3afa4c7944"
	 "79b962b8aff8485742ac32f905ba45369e2465fb59e138a93d67a0d1266b6a54"},
	{"4d757272617920526f746862617264",
	 "95ebc60d2b1fa672c1f46a8aa265ef51bfe38e7ccb39ec5be34069f144808843"
	 "d6062704d5a9c422a8e834423f8c1feada7e8d0d910a1a2cd030fb584221e3"},
	{"462e20412e20486179656b", "e632c3763d7669067383433197a3baddf146e9e70ad4b4e9e59e0f"},
	{"4361726c204d656e676572", "64c6bee32ea91c8474bb4c21d7a700109ad45af77b29764ba5eb1e"},
	{"4a65616e2d426170746973746520536179",
	 "e2fa0bed0603b62d3ccac2ecabbf3fe33f3e86514909b323361626266cb2471cc8"},
	{"457567656e2042f6686d20766f6e2042617765726b",
	 "0c01dc9cec1fe4ddd692e8dd32188aa351088dc91183639a53b57aa4692b5ebdef8b8ca111"},
};

static size_t bytes(uint8_t *out, size_t size, const char *hex)
{
	size_t n = 0;

	assert_int_equal(sodium_hex2bin(out, size, hex, strlen(hex), NULL, &n, NULL), 0);
	return n;
}

static void vector_side(struct noise *noise, bool initiator, const char *ephemeral)
{
	uint8_t psk[NOISE_KEY], prologue[64], secret[NOISE_KEY];
	size_t n = bytes(prologue, sizeof(prologue), PROLOGUE);

	bytes(psk, sizeof(psk), PSK);
	bytes(secret, sizeof(secret), ephemeral);
	noise_begin(noise, initiator, psk, prologue, n);
	noise_set_ephemeral_for_test(noise, secret);
}

static void handshake_step(struct noise *from, struct noise *to, int i)
{
	uint8_t payload[64], message[128], out[128], read[64];
	size_t n = bytes(payload, sizeof(payload), vectors[i].payload);
	size_t length = bytes(message, sizeof(message), vectors[i].message);

	assert_int_equal(length, n + NOISE_HANDSHAKE);
	assert_int_equal(noise_write(from, payload, n, out), 0);
	assert_memory_equal(out, message, length);
	assert_int_equal(noise_read(to, out, length, read), 0);
	assert_memory_equal(read, payload, n);
}

static void transport_step(struct noise_key *sends, struct noise_key *receives, int i)
{
	uint8_t payload[64], message[128], out[128], read[64];
	size_t n = bytes(payload, sizeof(payload), vectors[i].payload);
	size_t length = bytes(message, sizeof(message), vectors[i].message);

	assert_int_equal(length, n + NOISE_TAG);
	assert_int_equal(noise_seal(sends, payload, n, out), 0);
	assert_memory_equal(out, message, length);
	assert_int_equal(noise_open(receives, out, length, read), 0);
	assert_memory_equal(read, payload, n);
}

static void test_vectors(void **state)
{
	struct noise a, b;
	struct noise_key a_sends, a_receives, b_sends, b_receives;
	uint8_t a_hash[NOISE_HASH], b_hash[NOISE_HASH], hash[NOISE_HASH];

	(void)state;
	vector_side(&a, true, "893e28b9dc6ca8d611ab664754b8ceb7bac5117349a4439a6b0569da977c464a");
	vector_side(&b, false, "bbdb4cdbd309f1a1f2e1456967fe288cadd6f712d65dc7b7793d5e63da6b375b");
	handshake_step(&a, &b, 0);
	handshake_step(&b, &a, 1);
	noise_split(&a, &a_sends, &a_receives, a_hash);
	noise_split(&b, &b_sends, &b_receives, b_hash);
	bytes(hash, sizeof(hash), HASH);
	assert_memory_equal(a_hash, hash, sizeof(hash));
	assert_memory_equal(b_hash, hash, sizeof(hash));
	transport_step(&a_sends, &b_receives, 2);
	transport_step(&b_sends, &a_receives, 3);
	transport_step(&a_sends, &b_receives, 4);
	transport_step(&b_sends, &a_receives, 5);
	assert_true(sodium_is_zero((uint8_t *)&a, sizeof(a)));
	assert_true(sodium_is_zero((uint8_t *)&b, sizeof(b)));
}

static const uint8_t secret_of_both[NOISE_KEY] = {7, 7, 7};

static void pair(struct noise *a, struct noise *b)
{
	noise_begin(a, true, secret_of_both, "here", 4);
	noise_begin(b, false, secret_of_both, "here", 4);
}

static void test_other_secret(void **state)
{
	static const uint8_t other[NOISE_KEY] = {7, 7, 8};
	uint8_t message[NOISE_HANDSHAKE];
	struct noise a, b;

	(void)state;
	noise_begin(&a, true, secret_of_both, "", 0);
	noise_begin(&b, false, other, "", 0);
	assert_int_equal(noise_write(&a, NULL, 0, message), 0);
	assert_int_equal(noise_read(&b, message, sizeof(message), NULL), -EBADMSG);
}

static void test_other_prologue(void **state)
{
	uint8_t message[NOISE_HANDSHAKE];
	struct noise a, b;

	(void)state;
	noise_begin(&a, true, secret_of_both, "node a", 6);
	noise_begin(&b, false, secret_of_both, "node b", 6);
	assert_int_equal(noise_write(&a, NULL, 0, message), 0);
	assert_int_equal(noise_read(&b, message, sizeof(message), NULL), -EBADMSG);
}

/* Every bit of both messages counts, and so does every byte of their lengths. */
static void test_changed_handshake(void **state)
{
	uint8_t first[NOISE_HANDSHAKE + 3], second[NOISE_HANDSHAKE + 3], read[3];

	(void)state;
	for (size_t i = 0; i < 8 * sizeof(first); i++) {
		struct noise a, b;

		pair(&a, &b);
		assert_int_equal(noise_write(&a, "abc", 3, first), 0);
		first[i / 8] ^= (uint8_t)(1 << (i % 8));
		/* X25519 ignores the highest bit of a public key; the transcript does not. */
		assert_int_equal(noise_read(&b, first, sizeof(first), read), -EBADMSG);
		pair(&a, &b);
		assert_int_equal(noise_write(&a, "abc", 3, first), 0);
		assert_int_equal(noise_read(&b, first, sizeof(first), read), 0);
		assert_int_equal(noise_write(&b, "def", 3, second), 0);
		second[i / 8] ^= (uint8_t)(1 << (i % 8));
		assert_int_equal(noise_read(&a, second, sizeof(second), read), -EBADMSG);
	}
	for (size_t n = 0; n < sizeof(first); n++) {
		struct noise a, b;

		pair(&a, &b);
		assert_int_equal(noise_write(&a, "abc", 3, first), 0);
		assert_int_equal(noise_read(&b, first, n, read), -EBADMSG);
	}
}

/* Without this, a peer that does not know the other's key could force a known shared secret. */
static void test_low_order_key(void **state)
{
	static const uint8_t one[NOISE_KEY] = {1};
	uint8_t second[NOISE_HANDSHAKE];
	struct noise a, b;

	(void)state;
	pair(&a, &b);
	memcpy(b.peer_public, one, sizeof(one));
	assert_int_equal(noise_write(&b, NULL, 0, second), -EBADMSG);
}

static void test_reflected(void **state)
{
	uint8_t first[NOISE_HANDSHAKE];
	struct noise a, b;

	(void)state;
	pair(&a, &b);
	assert_int_equal(noise_write(&a, NULL, 0, first), 0);
	assert_int_equal(noise_read(&a, first, sizeof(first), NULL), -EBADMSG);
}

static void established(struct records *a, struct records *b)
{
	uint8_t message[NOISE_HANDSHAKE];
	struct noise na, nb;

	pair(&na, &nb);
	assert_int_equal(noise_write(&na, NULL, 0, message), 0);
	assert_int_equal(noise_read(&nb, message, sizeof(message), NULL), 0);
	assert_int_equal(noise_write(&nb, NULL, 0, message), 0);
	assert_int_equal(noise_read(&na, message, sizeof(message), NULL), 0);
	noise_split(&na, &a->sends, &a->receives, NULL);
	noise_split(&nb, &b->sends, &b->receives, NULL);
}

/* The same secret twice, and the same key pair never: no two connections share a key. */
static void test_new_keys_each_time(void **state)
{
	struct records a, b, c, d;

	(void)state;
	established(&a, &b);
	established(&c, &d);
	assert_memory_equal(a.sends.key, b.receives.key, NOISE_KEY);
	assert_memory_equal(b.sends.key, a.receives.key, NOISE_KEY);
	assert_memory_not_equal(a.sends.key, a.receives.key, NOISE_KEY);
	assert_memory_not_equal(a.sends.key, c.sends.key, NOISE_KEY);
	assert_memory_not_equal(a.receives.key, c.receives.key, NOISE_KEY);
}

/* Seals TEXT as one record; returns its size. */
static size_t seal_one(struct records *from, const char *text, uint8_t *out)
{
	const struct iovec piece = {(void *)text, strlen(text)};

	assert_int_equal(records_seal(from, &piece, 1, out), 0);
	return records_size(piece.iov_len);
}

static int open_one(struct records *to, const uint8_t *record, char *text)
{
	uint8_t message[128];
	size_t length;
	int rc = records_length(record, &length);

	if (rc)
		return rc;
	memcpy(message, record + RECORD_HEAD, length);
	rc = records_open(to, message, length);
	if (!rc) {
		memcpy(text, message, length - NOISE_TAG);
		text[length - NOISE_TAG] = 0;
	}
	return rc;
}

static void test_records(void **state)
{
	uint8_t first[64], second[64], changed[64];
	struct records a, b;
	char text[64];
	size_t n;

	(void)state;
	established(&a, &b);
	n = seal_one(&a, "first", first);
	seal_one(&a, "second", second);
	assert_int_equal(open_one(&b, second, text), -EBADMSG); /* one is missing */
	assert_int_equal(open_one(&a, first, text), -EBADMSG);	/* sent back */
	for (size_t i = RECORD_HEAD; i < n; i++) {
		memcpy(changed, first, n);
		changed[i] ^= 1;
		assert_int_equal(open_one(&b, changed, text), -EBADMSG);
	}
	memcpy(changed, first, n);
	changed[1]--;
	assert_int_equal(open_one(&b, changed, text), -EBADMSG); /* cut */
	assert_int_equal(open_one(&b, first, text), 0);
	assert_string_equal(text, "first");
	assert_int_equal(open_one(&b, first, text), -EBADMSG); /* repeated */
	assert_int_equal(open_one(&b, second, text), 0);
	assert_string_equal(text, "second");
	changed[0] = 0;
	changed[1] = NOISE_TAG;
	assert_int_equal(open_one(&b, changed, text), -EBADMSG); /* nothing inside */
}

/* Pieces of every size come out as they went in, over as many records as they need. */
static void test_long(void **state)
{
	const size_t total = 3 * NOISE_PLAINTEXT_MAX + 5;
	const size_t size = records_size(total);
	uint8_t *in = malloc(total), *sealed = malloc(size), *out = malloc(total + NOISE_TAG);
	const struct iovec pieces[] = {
		{in, 1}, {in + 1, 0}, {in + 1, 65535}, {in + 65536, total - 65536}};
	size_t at = 0, have = 0, n = 0;
	struct records a, b;

	(void)state;
	assert_true(in && sealed && out);
	established(&a, &b);
	randombytes_buf(in, total);
	assert_int_equal(size, total + 4 * (RECORD_HEAD + NOISE_TAG));
	assert_int_equal(records_seal(&a, pieces, 4, sealed), 0);
	for (; at < size; n++) {
		size_t length;

		assert_int_equal(records_length(sealed + at, &length), 0);
		assert_int_equal(records_open(&b, sealed + at + RECORD_HEAD, length), 0);
		memcpy(out + have, sealed + at + RECORD_HEAD, length - NOISE_TAG);
		have += length - NOISE_TAG;
		at += RECORD_HEAD + length;
	}
	assert_int_equal(n, 4);
	assert_int_equal(have, total);
	assert_memory_equal(in, out, total);
	free(in);
	free(sealed);
	free(out);
}

/* REKEY as the specification has it: the key's own cipher text of 32 zeros with the last nonce. */
static void test_rekey(void **state)
{
	static const uint8_t zeros[NOISE_KEY],
		nonce[] = {0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
	struct noise_key key = {.n = 7}, before;
	uint8_t wanted[NOISE_KEY + NOISE_TAG];
	struct records a, b;
	uint8_t record[64];
	char text[64];

	(void)state;
	randombytes_buf(key.key, sizeof(key.key));
	before = key;
	crypto_aead_chacha20poly1305_ietf_encrypt(wanted, NULL, zeros, sizeof(zeros), NULL, 0, NULL,
						  nonce, before.key);
	noise_rekey(&key);
	assert_memory_equal(key.key, wanted, NOISE_KEY);
	assert_int_equal(key.n, 7);
	/* A record's key is gone from both ends when it has passed. */
	established(&a, &b);
	before = a.sends;
	seal_one(&a, "x", record);
	assert_memory_not_equal(a.sends.key, before.key, NOISE_KEY);
	assert_int_equal(open_one(&b, record, text), 0);
	assert_memory_equal(a.sends.key, b.receives.key, NOISE_KEY);
	assert_int_equal(a.sends.n, b.receives.n);
}

static void test_used_up(void **state)
{
	uint8_t record[64];
	struct records a, b;
	const struct iovec piece = {(void *)"x", 1};

	(void)state;
	established(&a, &b);
	a.sends.n = UINT64_MAX;
	assert_int_equal(records_seal(&a, &piece, 1, record), -EOVERFLOW);
	b.receives.n = UINT64_MAX;
	assert_int_equal(records_open(&b, record, NOISE_TAG + 1), -EOVERFLOW);
}

static void test_secrets(void **state)
{
	uint8_t secret[SECRET_BYTES], other[SECRET_BYTES], a[SECRET_KEY], b[SECRET_KEY];
	char text[2 * SECRET_KEY + 1], ticket[SECRET_TICKET_MAX];

	(void)state;
	secret_new(secret);
	secret_new(other);
	assert_memory_not_equal(secret, other, SECRET_BYTES);
	secret_derive(a, secret, SECRET_STREAM, "home-1-1", "");
	secret_derive(b, secret, SECRET_STREAM, "home-1-1", "");
	assert_memory_equal(a, b, SECRET_KEY);
	secret_derive(b, secret, SECRET_RENEWAL, "home-1-1", "");
	assert_memory_not_equal(a, b, SECRET_KEY);
	secret_derive(b, secret, SECRET_STREAM, "home-1-2", "");
	assert_memory_not_equal(a, b, SECRET_KEY);
	secret_derive(b, secret, SECRET_STREAM, "home-1-1", "a");
	assert_memory_not_equal(a, b, SECRET_KEY);
	secret_derive(b, other, SECRET_STREAM, "home-1-1", "");
	assert_memory_not_equal(a, b, SECRET_KEY);
	secret_ticket(ticket);
	assert_int_equal(strlen(ticket), SECRET_TICKET_MAX - 1);
	secret_text(text, a);
	assert_int_equal(secret_parse(b, text), 0);
	assert_memory_equal(a, b, SECRET_KEY);
	text[3] = 'g';
	assert_int_equal(secret_parse(b, text), -EBADMSG);
	text[3] = 0;
	assert_int_equal(secret_parse(b, text), -EBADMSG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_vectors),
		cmocka_unit_test(test_other_secret),
		cmocka_unit_test(test_other_prologue),
		cmocka_unit_test(test_changed_handshake),
		cmocka_unit_test(test_low_order_key),
		cmocka_unit_test(test_reflected),
		cmocka_unit_test(test_new_keys_each_time),
		cmocka_unit_test(test_records),
		cmocka_unit_test(test_long),
		cmocka_unit_test(test_rekey),
		cmocka_unit_test(test_used_up),
		cmocka_unit_test(test_secrets),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
