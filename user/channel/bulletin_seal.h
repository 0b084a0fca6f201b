/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Bulletins go from one to many, so a session of two does not protect them: each sender has a key
 * of its own for an hour, its epoch, and gives it to whoever subscribes.
 *
 *   'i' 'B' | version u8 | length u8 | sender's name | epoch u64 BE | number u64 BE | sealed
 *
 * ChaCha20-Poly1305 with the number as nonce; all before it is authenticated, too.  The numbers of
 * an epoch only grow, and a receiver takes none a second time.  Whoever has the key could seal a
 * bulletin in the sender's name: that is every agent of the cluster, and each of them could pose as
 * any other anyway, because all hold the MUNGE key.
 */
#ifndef IOCOM_BULLETIN_SEAL_H
#define IOCOM_BULLETIN_SEAL_H

#include <msgpack.h>
#include <stdbool.h>
#include <stdint.h>

#include "iocom/vector.h"
#include "user/channel/noise.h"

#define BULLETIN_EPOCH_S      3600
#define BULLETIN_SEAL_VERSION 1
#define BULLETIN_HEAD_MAX     (4 + IOCOM_NAME_MAX + 16)

/* The key of an epoch. */
struct bulletin_key {
	uint64_t epoch; /* random, never 0; 0: none */
	uint64_t next;	/* the least number that has not been used (received) yet */
	uint8_t key[NOISE_KEY];
};

/* Begins a new epoch. */
void bulletin_epoch(struct bulletin_key *key);
/* Adds the bulletin PLAIN of node NAME to OUT.  Returns 0 or -ENOMEM. */
int bulletin_seal(struct bulletin_key *key, const char *name, const msgpack_sbuffer *plain,
		  msgpack_sbuffer *out);

struct bulletin_head {
	char from[IOCOM_NAME_MAX];
	uint64_t epoch, number;
	size_t length;
};
/* Returns 0; -EBADMSG: not a bulletin; -EPROTO: of another version (an older one had none). */
int bulletin_head_read(struct bulletin_head *head, const void *message, size_t length);
/*
 * Opens MESSAGE in place.  Returns 0: *PLAIN, of *N bytes, is in it; -EBADMSG: not made with this
 * key; -EALREADY: its number was here before.  KEY is of its epoch.
 */
int bulletin_open(struct bulletin_key *key, const struct bulletin_head *head, void *message,
		  size_t length, const void **plain, size_t *n);

#endif
