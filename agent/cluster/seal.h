/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Seals: agents prove to each other that they are root of a cluster machine by MUNGE credentials
 * that carry the message.  Only credentials made by uid 0 are accepted, and only uid 0 may open
 * them.  A call to munged is given up after SEAL_WAIT_MS, and no other is made until munged has
 * answered it.
 */
#ifndef IOCOM_SEAL_H
#define IOCOM_SEAL_H

#include <stdbool.h>
#include <stddef.h>

#include "iocom/err.h"
#include "user/spec.h"

#define SEAL_MESSAGE_MAX (1u << 20) /* MUNGE's bound for a payload */

struct seal;

#define SEAL_TTL_S 60 /* credentials are valid this long before and after: clocks may differ */

/*
 * How long munged may take (it needs a tenth of a millisecond), normally and at the agent's start.
 */
#define SEAL_WAIT_MS	   500
#define SEAL_FIRST_WAIT_MS 5000

/* Why a seal was refused; seal_open_message returns it. */
enum seal_refusal {
	SEAL_E_GARBAGE = 1, /* no credential at all */
	SEAL_E_FORGED,	    /* damaged, made with another key, or not by uid 0 */
	SEAL_E_SKEW,	    /* expired, or from the future: clocks differ */
	SEAL_E_REPLAYED,
	SEAL_E_REFUSALS
};

/*
 * SOCKET: munged's, "" = the default.  Returns 0; -EHOSTDOWN munged does not answer, with the
 * reason in ERR.
 */
int seal_new(struct seal **seal, const char *socket, struct iocom_err *err);
/* Returns true if munged did not answer the last call. */
bool seal_down(const struct seal *seal);
void seal_free(struct seal *seal);
/*
 * Returns how many seconds the sender's clock was ahead in the last SEAL_E_SKEW (negative: behind).
 */
long long seal_ahead_s(const struct seal *seal);
/* Seals DATA.  CREDENTIAL: a string that the caller frees.  Returns 0, -EHOSTDOWN, -EMSGSIZE. */
int seal_message(struct seal *seal, const void *data, size_t length, char **credential,
		 struct iocom_err *err);
/*
 * Opens CREDENTIAL, LENGTH bytes as received.  DATA: malloc'ed, the caller's.  REPLAYED_OK: for
 * bulletins only, where (boot id, sequence) detects replays.  Returns 0; enum seal_refusal with the
 * reason in ERR; -EHOSTDOWN; -ENOMEM.  With SEAL_E_SKEW, DATA is set too if root made it (else
 * NULL): it only tells which node's clock differs.
 */
int seal_open_message(struct seal *seal, const void *credential, size_t length, int replayed_ok,
		      void **data, size_t *data_length, struct iocom_err *err);
/* Calls credential_open (spec.h) for a job's start or attach; the caller frees the credential. */
int seal_open_credential(struct seal *seal, struct credential *credential, const char *text,
			 struct iocom_err *err);

#endif
