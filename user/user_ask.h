/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What a user asks another node's agent, through the own one: the user's client packs it and makes
 * a credential that binds it.  Neither agent can change it, use it for another node, or ask
 * something that the user did not.
 *
 *   map { "v", "node", "nonce", "boot_id", "at_s", "request": bin }
 *                                                 the request as a local client sends it
 *
 * The MUNGE payload: map { "type": "ask", "job": "", "node", "nonce", "hash": bin }; it lives
 * SPEC_CREDENTIAL_TTL_S, and only root may open it.
 */
#ifndef IOCOM_USER_ASK_H
#define IOCOM_USER_ASK_H

#include <stddef.h>
#include <stdint.h>

#include "iocom/err.h"
#include "user/spec.h"

#define USER_ASK_MAX		4096  /* packed */
#define USER_ASK_REQUEST_MAX	3072  /* of that, the request */
#define USER_ASK_CREDENTIAL_MAX 16384 /* a credential's text; they have less than 1000 bytes */

struct user_ask {
	char node[64];		    /* the node that is asked */
	char nonce[SPEC_NONCE_MAX]; /* 16 random bytes in hex; attach_nonce makes them */
	uint64_t boot_id;	    /* the start of its agent that is asked; 0: any */
	uint64_t at_s;		    /* CLOCK_REALTIME */
	const void *request;	    /* borrowed */
	size_t length;
};

/* Packs into a malloc'ed buffer.  Returns 0, -E2BIG or -ENOMEM. */
int user_ask_pack(const struct user_ask *ask, void **data, size_t *length);
/*
 * Unpacks; the request is borrowed from DATA.  Returns 0, -EPROTO (another version) or -EBADMSG,
 * with the reason in ERR.
 */
int user_ask_unpack(struct user_ask *ask, const void *data, size_t length, struct iocom_err *err);

/* These work as spec_seal and spec_bound (seal.c). */
int user_ask_seal(const struct user_ask *ask, const void *packed, size_t length,
		  const char *munge_socket, char **credential, struct iocom_err *err);
int user_ask_bound(const struct user_ask *ask, const void *packed, size_t length,
		   const struct credential *credential, const char *node, struct iocom_err *err);

#endif
