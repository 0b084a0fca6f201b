/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* SHA-256 of what a workload was made from, for workload_info. */
#ifndef SIM_WORKLOAD_HASH_H
#define SIM_WORKLOAD_HASH_H

#include <sodium.h>
#include <stddef.h>

#define HASH_TEXT 72 /* "sha256:", 64 digits, NUL */

struct hash {
	crypto_hash_sha256_state state;
};

int hash_begin(struct hash *h); /* Returns 0 or -EIO: the library failed */
int hash_add(struct hash *h, const void *data, size_t n);
int hash_end(struct hash *h, char text[HASH_TEXT]); /* writes the hash to TEXT */

#endif
