/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* SHA-256 by libsodium; see hash.h. */
#include "sim/workload/hash.h"

#include <errno.h>
#include <stdio.h>

int hash_begin(struct hash *h)
{
	return crypto_hash_sha256_init(&h->state) ? -EIO : 0;
}

int hash_add(struct hash *h, const void *data, size_t n)
{
	return crypto_hash_sha256_update(&h->state, data, n) ? -EIO : 0;
}

int hash_end(struct hash *h, char text[HASH_TEXT])
{
	unsigned char digest[crypto_hash_sha256_BYTES];
	size_t at = (size_t)snprintf(text, HASH_TEXT, "sha256:");

	if (crypto_hash_sha256_final(&h->state, digest))
		return -EIO;
	for (size_t i = 0; i < sizeof(digest); i++)
		at += (size_t)snprintf(text + at, HASH_TEXT - at, "%02x", digest[i]);
	return 0;
}
