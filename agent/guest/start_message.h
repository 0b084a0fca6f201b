/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* A FRAME_START: the credential, and the job's spec that it binds byte by byte. */
#ifndef IOCOM_START_MESSAGE_H
#define IOCOM_START_MESSAGE_H

#include <stdint.h>

#include "user/spec.h"

struct start_message {
	char *credential; /* NULL: there is none */
	void *packed;	  /* as it came: what the credential's hash is of */
	uint32_t length;
	struct spec spec;
};

/* Copies what it needs of PAYLOAD.  0; negative errno with the sentence, nothing to free. */
int start_message_unpack(struct start_message *message, const void *payload, uint32_t length,
			 struct iocom_err *err);
void start_message_free(struct start_message *message);

#endif
