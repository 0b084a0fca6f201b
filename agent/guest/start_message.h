/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* A FRAME_START: the credential, and the job's spec, whose bytes the credential binds. */
#ifndef IOCOM_START_MESSAGE_H
#define IOCOM_START_MESSAGE_H

#include <stdint.h>

#include "user/spec.h"

struct start_message {
	char *credential; /* NULL: without a credential */
	void *packed;	  /* the spec as received: the credential has its hash */
	uint32_t length;
	struct spec spec; /* job, node and nonce; all of it after start_message_open */
};

/*
 * Copies what it needs of PAYLOAD.  Returns 0; negative errno with the reason in ERR, and nothing
 * to free.
 */
int start_message_unpack(struct start_message *message, const void *payload, uint32_t length,
			 struct iocom_err *err);
/*
 * Makes the message of a spec that came with its submission: gives it the names of JOB's place.
 * Copies; returns as spec_unpack.
 */
int start_message_name(struct start_message *message, const void *spec, uint32_t length,
		       const char *job, const char *node, const char *nonce, struct iocom_err *err);
/* Decodes the whole spec, once its sender is known.  Returns as spec_unpack. */
int start_message_open(struct start_message *message, struct iocom_err *err);
void start_message_free(struct start_message *message);

#endif
