/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * See noise.h.  The steps have the names of the Noise specification: mix_hash, mix_key,
 * mix_key_and_hash, encrypt_and_hash, decrypt_and_hash (sections 5.1 and 5.2).
 */
#include "user/channel/noise.h"

#include <errno.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

_Static_assert(crypto_hash_sha256_BYTES == NOISE_HASH, "SHA-256");
_Static_assert(crypto_scalarmult_curve25519_BYTES == NOISE_KEY, "X25519");
_Static_assert(crypto_aead_chacha20poly1305_ietf_ABYTES == NOISE_TAG, "Poly1305");
_Static_assert(sizeof(NOISE_NAME) - 1 > NOISE_HASH, "the name is hashed");

/* Section 12: 32 zero bits, then N in little-endian. */
static void noise_nonce(uint8_t out[crypto_aead_chacha20poly1305_ietf_NPUBBYTES], uint64_t n)
{
	memset(out, 0, 4);
	for (int i = 0; i < 8; i++)
		out[4 + i] = (uint8_t)(n >> (8 * i));
}

void noise_seal_at(const uint8_t key[NOISE_KEY], uint64_t n, const void *ad, size_t ad_length,
		   const void *data, size_t length, uint8_t *out)
{
	uint8_t nonce[crypto_aead_chacha20poly1305_ietf_NPUBBYTES];

	noise_nonce(nonce, n);
	crypto_aead_chacha20poly1305_ietf_encrypt(out, NULL, data, length, ad, ad_length, NULL,
						  nonce, key);
}

int noise_open_at(const uint8_t key[NOISE_KEY], uint64_t n, const void *ad, size_t ad_length,
		  const void *data, size_t length, uint8_t *out)
{
	uint8_t nonce[crypto_aead_chacha20poly1305_ietf_NPUBBYTES];

	if (length < NOISE_TAG)
		return -EBADMSG;
	noise_nonce(nonce, n);
	return crypto_aead_chacha20poly1305_ietf_decrypt(out, NULL, NULL, data, length, ad,
							 ad_length, nonce, key)
		       ? -EBADMSG
		       : 0;
}

int noise_seal(struct noise_key *key, const void *data, size_t length, uint8_t *out)
{
	if (key->n == UINT64_MAX)
		return -EOVERFLOW;
	noise_seal_at(key->key, key->n++, NULL, 0, data, length, out);
	return 0;
}

int noise_open(struct noise_key *key, const void *data, size_t length, uint8_t *out)
{
	int rc = key->n == UINT64_MAX ? -EOVERFLOW
				      : noise_open_at(key->key, key->n, NULL, 0, data, length, out);

	key->n += rc == 0;
	return rc;
}

void noise_rekey(struct noise_key *key)
{
	static const uint8_t zeros[NOISE_KEY];
	uint8_t out[NOISE_KEY + NOISE_TAG];

	noise_seal_at(key->key, UINT64_MAX, NULL, 0, zeros, sizeof(zeros), out);
	memcpy(key->key, out, sizeof(key->key));
	sodium_memzero(out, sizeof(out));
}

/* One output of noise_hkdf: TEXT under the key whose first half of the work is in KEYED. */
static void noise_hkdf_out(const crypto_auth_hmacsha256_state *keyed, const uint8_t *text,
			   size_t length, uint8_t out[NOISE_HASH])
{
	crypto_auth_hmacsha256_state state = *keyed;

	crypto_auth_hmacsha256_update(&state, text, length);
	crypto_auth_hmacsha256_final(&state, out);
}

/* Section 4.3: HKDF with two or three outputs. */
static void noise_hkdf(const uint8_t ck[NOISE_HASH], const uint8_t *input, size_t length,
		       uint8_t *out1, uint8_t *out2, uint8_t *out3)
{
	uint8_t temp[NOISE_HASH], text[NOISE_HASH + 1] = {1};
	crypto_auth_hmacsha256_state keyed;

	_Static_assert(crypto_auth_hmacsha256_KEYBYTES == NOISE_HASH, "HMAC-SHA-256");
	crypto_auth_hmacsha256(temp, input, length, ck);
	crypto_auth_hmacsha256_init(&keyed, temp, sizeof(temp));
	noise_hkdf_out(&keyed, text, 1, out1);
	memcpy(text, out1, NOISE_HASH);
	text[NOISE_HASH] = 2;
	noise_hkdf_out(&keyed, text, sizeof(text), out2);
	if (out3) {
		memcpy(text, out2, NOISE_HASH);
		text[NOISE_HASH] = 3;
		noise_hkdf_out(&keyed, text, sizeof(text), out3);
	}
	sodium_memzero(&keyed, sizeof(keyed));
	sodium_memzero(temp, sizeof(temp));
	sodium_memzero(text, sizeof(text));
}

static void mix_hash(struct noise *noise, const void *data, size_t length)
{
	crypto_hash_sha256_state state;

	crypto_hash_sha256_init(&state);
	crypto_hash_sha256_update(&state, noise->h, sizeof(noise->h));
	crypto_hash_sha256_update(&state, data, length);
	crypto_hash_sha256_final(&state, noise->h);
}

static void mix_key(struct noise *noise, const uint8_t input[NOISE_KEY])
{
	uint8_t ck[NOISE_HASH];

	memcpy(ck, noise->ck, sizeof(ck));
	noise_hkdf(ck, input, NOISE_KEY, noise->ck, noise->k, NULL);
	noise->n = 0;
	sodium_memzero(ck, sizeof(ck));
}

static void mix_key_and_hash(struct noise *noise, const uint8_t input[NOISE_KEY])
{
	uint8_t ck[NOISE_HASH], hash[NOISE_HASH];

	memcpy(ck, noise->ck, sizeof(ck));
	noise_hkdf(ck, input, NOISE_KEY, noise->ck, hash, noise->k);
	mix_hash(noise, hash, sizeof(hash));
	noise->n = 0;
	sodium_memzero(ck, sizeof(ck));
	sodium_memzero(hash, sizeof(hash));
}

static void encrypt_and_hash(struct noise *noise, const void *data, size_t length, uint8_t *out)
{
	noise_seal_at(noise->k, noise->n++, noise->h, sizeof(noise->h), data, length, out);
	mix_hash(noise, out, length + NOISE_TAG);
}

static int decrypt_and_hash(struct noise *noise, const uint8_t *data, size_t length, uint8_t *out)
{
	uint8_t before[NOISE_HASH];

	memcpy(before, noise->h, sizeof(before));
	mix_hash(noise, data, length); /* first: OUT may be DATA */
	return noise_open_at(noise->k, noise->n++, before, sizeof(before), data, length, out);
}

void noise_set_ephemeral_for_test(struct noise *noise, const uint8_t secret[NOISE_KEY])
{
	memcpy(noise->own, secret, sizeof(noise->own));
	crypto_scalarmult_curve25519_base(noise->own_public, noise->own);
}

void noise_begin(struct noise *noise, bool initiator, const uint8_t psk[NOISE_KEY],
		 const void *prologue, size_t length)
{
	if (sodium_init() < 0)
		abort(); /* the kernel has random bytes once it has booted */
	*noise = (struct noise){.initiator = initiator};
	memcpy(noise->psk, psk, sizeof(noise->psk));
	crypto_hash_sha256(noise->h, (const uint8_t *)NOISE_NAME, sizeof(NOISE_NAME) - 1);
	memcpy(noise->ck, noise->h, sizeof(noise->ck));
	mix_hash(noise, prologue, length);
	randombytes_buf(noise->own, sizeof(noise->own));
}

void noise_pair_new(struct noise_pair *pair)
{
	if (sodium_init() < 0)
		abort(); /* the kernel has random bytes once it has booted */
	randombytes_buf(pair->secret, sizeof(pair->secret));
	crypto_scalarmult_curve25519_base(pair->public, pair->secret);
	pair->ready = true;
}

void noise_use_pair(struct noise *noise, struct noise_pair *pair)
{
	if (!pair || !pair->ready)
		return;
	memcpy(noise->own, pair->secret, sizeof(noise->own));
	memcpy(noise->own_public, pair->public, sizeof(noise->own_public));
	sodium_memzero(pair, sizeof(*pair));
}

/* The token "e" of this side's message; with a secret in the pattern it is mixed into the key. */
static void write_ephemeral(struct noise *noise, uint8_t *out)
{
	if (sodium_is_zero(noise->own_public, sizeof(noise->own_public)))
		crypto_scalarmult_curve25519_base(noise->own_public, noise->own);
	memcpy(out, noise->own_public, NOISE_KEY);
	mix_hash(noise, out, NOISE_KEY);
	mix_key(noise, noise->own_public);
}

static void read_ephemeral(struct noise *noise, const uint8_t *message)
{
	memcpy(noise->peer_public, message, NOISE_KEY);
	mix_hash(noise, message, NOISE_KEY);
	mix_key(noise, noise->peer_public);
}

/* The token "ee". */
static int mix_both(struct noise *noise)
{
	uint8_t shared[NOISE_KEY];
	int rc = crypto_scalarmult_curve25519(shared, noise->own, noise->peer_public);

	if (!rc)
		mix_key(noise, shared);
	sodium_memzero(shared, sizeof(shared));
	return rc ? -EBADMSG : 0;
}

int noise_write(struct noise *noise, const void *payload, size_t length, uint8_t *out)
{
	int rc = 0;

	if (noise->initiator)
		mix_key_and_hash(noise, noise->psk);
	write_ephemeral(noise, out);
	if (!noise->initiator)
		rc = mix_both(noise);
	if (!rc)
		encrypt_and_hash(noise, payload, length, out + NOISE_KEY);
	return rc;
}

int noise_read(struct noise *noise, const void *message, size_t length, uint8_t *payload)
{
	const uint8_t *at = message;
	int rc = length < NOISE_HANDSHAKE ? -EBADMSG : 0;

	if (!rc) {
		if (!noise->initiator)
			mix_key_and_hash(noise, noise->psk);
		read_ephemeral(noise, at);
	}
	if (!rc && noise->initiator)
		rc = mix_both(noise);
	if (!rc)
		rc = decrypt_and_hash(noise, at + NOISE_KEY, length - NOISE_KEY, payload);
	if (rc)
		noise_end(noise);
	return rc;
}

void noise_split(struct noise *noise, struct noise_key *sends, struct noise_key *receives,
		 uint8_t hash[NOISE_HASH])
{
	struct noise_key *first = noise->initiator ? sends : receives;
	struct noise_key *second = noise->initiator ? receives : sends;

	noise_hkdf(noise->ck, NULL, 0, first->key, second->key, NULL);
	first->n = second->n = 0;
	if (hash)
		memcpy(hash, noise->h, NOISE_HASH);
	noise_end(noise);
}

void noise_end(struct noise *noise)
{
	sodium_memzero(noise, sizeof(*noise));
}
