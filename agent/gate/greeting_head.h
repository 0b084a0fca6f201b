/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What of a HELLO (greeting.h) is read before anybody has proven anything: the network part does
 * that.  That the head is the one that was sent, the handshake proves later.
 */
#ifndef IOCOM_GREETING_HEAD_H
#define IOCOM_GREETING_HEAD_H

#include <stddef.h>
#include <stdint.h>

#include "iocom/err.h"
#include "user/channel/noise.h"

/* The first byte of every message of control. */
enum session_kind {
	SESSION_HELLO = 1,
	SESSION_WELCOME,
	SESSION_REFUSED,
	SESSION_SEALED,	 /* sessions.h */
	SESSION_UNKNOWN, /* sessions.h */
};

#define GREETING_HEAD_MAX    4096
#define GREETING_HELLO_MAX   (3 + GREETING_HEAD_MAX + NOISE_HANDSHAKE)
#define GREETING_WELCOME_MAX (1 + NOISE_HANDSHAKE + GREETING_HEAD_MAX)

struct greeting_head {
	uint64_t least, most;	/* versions that the asker speaks */
	const char *credential; /* points into the message */
	size_t length;
};

/* Finds the parts of a HELLO, which point into MESSAGE.  Returns 0 or -EBADMSG. */
int greeting_parts(const void *message, size_t length, const uint8_t **head, size_t *head_length,
		   const uint8_t **noise);
/*
 * Reads the head of a HELLO.  Returns 0; -EPROTO (no common version) or -EBADMSG, with the reason
 * in ERR.
 */
int greeting_heard(struct greeting_head *head, const void *message, size_t length,
		   struct iocom_err *err);

#endif
