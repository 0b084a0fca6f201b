/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* A private munged for a test, with its own key and socket; munged_stop removes it. */
#ifndef TEST_MUNGED_H
#define TEST_MUNGED_H

#include <sys/types.h>

#include "user/attach.h"
#include "user/spec.h"

struct munged {
	char dir[64];
	char socket[96];
	pid_t pid;
};

/* Starts one with KEY_OF's key, whose clock (libfaketime) is SHIFT_S s off; returns as
 * munged_start. */
const char *munged_start_shifted(struct munged *munged, const struct munged *key_of, int shift_s);
/* Returns NULL if it runs, else why it cannot (for a skip). */
const char *munged_start(struct munged *munged);
void munged_stop(struct munged *munged);

/* Does what a target does with a credential: asks MUNGED's socket and checks what it binds. */
int munged_start_of(const char *socket, const char *text, const struct spec *spec,
		    const void *packed, size_t length, const char *node, struct credential *who,
		    struct iocom_err *err);
int munged_attach_of(const char *socket, const char *text, const struct attach_ask *ask,
		     const void *packed, size_t length, const char *node, struct credential *who,
		     struct iocom_err *err);

#endif
