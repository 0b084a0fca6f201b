/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Noise_NNpsk0_25519_ChaChaPoly_SHA256, as the Noise Protocol Framework (revision 34) defines it,
 * on libsodium's primitives:
 *
 *   -> psk, e      the initiator's message
 *   <- e, ee       the responder's message
 *
 * Both know a secret of 32 bytes before.  Each message carries a payload.  After the two, each
 * direction has a key of its own, which nobody can find who learns the secret later.  The first
 * payload is protected by the secret alone: anybody who learns it later can read that payload, and
 * whoever recorded the message can send it again.  So nothing is sent in it that must stay secret.
 *
 * tests/unit/test_noise.c holds this against published vectors.
 */
#ifndef IOCOM_NOISE_H
#define IOCOM_NOISE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NOISE_NAME	    "Noise_NNpsk0_25519_ChaChaPoly_SHA256"
#define NOISE_KEY	    32
#define NOISE_HASH	    32
#define NOISE_TAG	    16
#define NOISE_HANDSHAKE	    (NOISE_KEY + NOISE_TAG) /* a handshake message without its payload */
#define NOISE_MESSAGE_MAX   65535
#define NOISE_PLAINTEXT_MAX (NOISE_MESSAGE_MAX - NOISE_TAG)

struct noise {
	bool initiator;
	uint8_t ck[NOISE_HASH], h[NOISE_HASH], k[NOISE_KEY];
	uint64_t n;
	uint8_t psk[NOISE_KEY];
	uint8_t own[NOISE_KEY], own_public[NOISE_KEY], peer_public[NOISE_KEY];
};

/* A key of one direction, and the number of messages that it has protected. */
struct noise_key {
	uint8_t key[NOISE_KEY];
	uint64_t n;
};

/*
 * A key pair made before it is needed, while there is time.  It serves one handshake:
 * noise_use_pair erases it.
 */
struct noise_pair {
	bool ready;
	uint8_t secret[NOISE_KEY], public[NOISE_KEY];
};
void noise_pair_new(struct noise_pair *pair);
/* After noise_begin: takes PAIR in place of NOISE's own, if it is ready; NULL is fine. */
void noise_use_pair(struct noise *noise, struct noise_pair *pair);

/*
 * Begins a handshake with a fresh key pair.  Both sides must give the same PROLOGUE, of LENGTH
 * bytes, or the first message does not open: it is what both agree on before.
 */
void noise_begin(struct noise *noise, bool initiator, const uint8_t psk[NOISE_KEY],
		 const void *prologue, size_t length);
/*
 * Writes this side's message with a PAYLOAD of LENGTH bytes into OUT, which has room for
 * NOISE_HANDSHAKE + LENGTH.  The initiator writes first, the responder after noise_read.  Returns
 * 0, or -EBADMSG: the peer's public key is one of the few that lead to no secret.
 */
int noise_write(struct noise *noise, const void *payload, size_t length, uint8_t *out);
/*
 * Opens the peer's MESSAGE of LENGTH bytes and writes its payload, of LENGTH - NOISE_HANDSHAKE
 * bytes, to PAYLOAD.  Returns 0, or -EBADMSG: it is not a message of a peer that knows the secret
 * and agrees on the prologue; the handshake is over then.
 */
int noise_read(struct noise *noise, const void *message, size_t length, uint8_t *payload);
/*
 * After both messages: fills the key for what this side SENDS, the one for what it RECEIVES, and
 * HASH (may be NULL), which names this handshake for both sides.  Erases NOISE.
 */
void noise_split(struct noise *noise, struct noise_key *sends, struct noise_key *receives,
		 uint8_t hash[NOISE_HASH]);
/* Erases NOISE. */
void noise_end(struct noise *noise);

/*
 * Seal and open a message under KEY with nonce N; AD, of AD_LENGTH bytes, is authenticated with it.
 * OUT of noise_seal_at has room for LENGTH + NOISE_TAG bytes; OUT of noise_open_at has room for
 * LENGTH - NOISE_TAG, and may be DATA itself.  noise_open_at returns 0 or -EBADMSG.  Never seal two
 * messages with the same key and nonce.
 */
void noise_seal_at(const uint8_t key[NOISE_KEY], uint64_t n, const void *ad, size_t ad_length,
		   const void *data, size_t length, uint8_t *out);
int noise_open_at(const uint8_t key[NOISE_KEY], uint64_t n, const void *ad, size_t ad_length,
		  const void *data, size_t length, uint8_t *out);
/*
 * The same with the key's next nonce, without AD.  -EOVERFLOW: the key is used up, which takes
 * 2^64 - 1 messages.  A message that does not open does not change KEY.
 */
int noise_seal(struct noise_key *key, const void *data, size_t length, uint8_t *out);
int noise_open(struct noise_key *key, const void *data, size_t length, uint8_t *out);

/* Section 4.2: puts a new key in place of KEY, from which nobody finds the old one. */
void noise_rekey(struct noise_key *key);

/*
 * Sets the ephemeral key pair in place of the random one.  For the published vectors only: a key
 * pair that is used twice gives the secret away.
 */
void noise_set_ephemeral_for_test(struct noise *noise, const uint8_t secret[NOISE_KEY]);

#endif
