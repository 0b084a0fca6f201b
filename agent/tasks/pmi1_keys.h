/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* What the ranks of a gang have put: keys and values, and those of them that others lack. */
#ifndef IOCOM_PMI1_KEYS_H
#define IOCOM_PMI1_KEYS_H

#include <stddef.h>

#include "user/wire.h"

#define PMI1_KEYS_MAX  (1u << 20)  /* in a gang */
#define PMI1_FRESH_MAX (32u << 20) /* bytes of keys and values between two barriers of a part */

struct pmi1_keys {
	void *tree; /* tsearch(3) */
	size_t count;
	struct queue fresh; /* "key=value\n" for each that was put here since the last barrier */
};

void pmi1_keys_free(struct pmi1_keys *keys);
/*
 * Sets KEY to VALUE; HERE: others have to learn it.  Returns 0; -EINVAL: one is too long, empty, or
 * has characters that no line may have; -ENOSPC; -ENOMEM.
 */
int pmi1_keys_put(struct pmi1_keys *keys, const char *key, const char *value, int here);
/* Returns the value, or NULL. */
const char *pmi1_keys_get(const struct pmi1_keys *keys, const char *key);
/* Takes what another launcher has sent.  Returns 0; -EBADMSG; or as put. */
int pmi1_keys_learn(struct pmi1_keys *keys, const char *data, size_t length);

#endif
