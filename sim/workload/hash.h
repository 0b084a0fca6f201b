/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* SHA-256 of what a workload was made from, as workload_info tells it. */
#ifndef SIM_WORKLOAD_HASH_H
#define SIM_WORKLOAD_HASH_H

#include <mbedtls/sha256.h>
#include <stddef.h>

#define HASH_TEXT 72 /* "sha256:", 64 digits, NUL */

struct hash {
	mbedtls_sha256_context context;
};

int hash_begin(struct hash *h); /* 0 or -EIO: the library failed */
int hash_add(struct hash *h, const void *data, size_t n);
/* Ends H, which is then free. */
int hash_end(struct hash *h, char text[HASH_TEXT]);
void hash_drop(struct hash *h); /* ends without a result */

#endif
