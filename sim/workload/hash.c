/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* SHA-256 by mbed TLS; see hash.h. */
#include "sim/workload/hash.h"

#include <errno.h>
#include <stdio.h>

int hash_begin(struct hash *h)
{
	mbedtls_sha256_init(&h->context);
	return mbedtls_sha256_starts_ret(&h->context, 0) ? -EIO : 0;
}

int hash_add(struct hash *h, const void *data, size_t n)
{
	return mbedtls_sha256_update_ret(&h->context, data, n) ? -EIO : 0;
}

int hash_end(struct hash *h, char text[HASH_TEXT])
{
	unsigned char digest[32];
	int rc = mbedtls_sha256_finish_ret(&h->context, digest);
	size_t at = (size_t)snprintf(text, HASH_TEXT, "sha256:");

	mbedtls_sha256_free(&h->context);
	if (rc)
		return -EIO;
	for (size_t i = 0; i < sizeof(digest); i++)
		at += (size_t)snprintf(text + at, HASH_TEXT - at, "%02x", digest[i]);
	return 0;
}

void hash_drop(struct hash *h)
{
	mbedtls_sha256_free(&h->context);
}
