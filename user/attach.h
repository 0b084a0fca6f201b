/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Attaching to a job that was started before: FRAME_ATTACH has the client's request,
 * FRAME_STARTED the supervisor's answer.
 *
 * FRAME_ATTACH's payload: map { "cred": str or nil (local socket), "ask": bin }. The MUNGE
 * payload: map { "type": "attach", "job", "node", "nonce", "hash": bin }.
 */
#ifndef IOCOM_ATTACH_H
#define IOCOM_ATTACH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "user/frame.h"
#include "iocom/err.h"
#include "user/spec.h"

#define ATTACH_ASK_MAX 2048	  /* fits into a message of the leash (leash_wire.h) */
#define ATTACH_FIRST   UINT64_MAX /* start at the first byte that is kept */

struct attach_ask {
	char job[SPEC_JOB_MAX], node[64];
	char nonce[SPEC_NONCE_MAX]; /* 16 random bytes of the client, in hex */
	/*
	 * A client that lost its connection gives that connection's nonce. "" means another
	 * client, which takes the job over.
	 */
	char resume[SPEC_NONCE_MAX];
	uint64_t from[FRAME_STREAMS];  /* [1], [2]: offset to start from, or ATTACH_FIRST */
	uint64_t taken[FRAME_STREAMS]; /* bytes that the client wrote out; at most `from` */
	bool gaps;		       /* the client understands offsets that skip bytes not kept */
	bool take;   /* take the job from another client, even if it is not detached */
	bool recent; /* for a running job's terminal ATTACH_FIRST means its recent output */
};

/* The answer: how far both sides are. */
struct attach_state {
	uint64_t pid;
	uint64_t input, input_limit;  /* bytes of input that arrived; limit of what may be sent */
	uint64_t from[FRAME_STREAMS]; /* [1], [2]: offset of the first byte to come */
	uint64_t lost[FRAME_STREAMS]; /* [1], [2]: bytes not kept so far */
	bool detached;
	bool tty; /* the job has a terminal that is still open */
};

/* Fills NONCE with a new random nonce. */
void attach_nonce(char nonce[SPEC_NONCE_MAX]);
/* Packs into a malloc'ed buffer. Returns 0 or -ENOMEM. */
int attach_pack(const struct attach_ask *ask, void **data, size_t *length);
/* Returns 0, -EPROTO (another version) or -EBADMSG. */
int attach_unpack(struct attach_ask *ask, const void *data, size_t length, struct iocom_err *err);
/* Packs FRAME_STARTED's payload. Older programs send only job and pid. */
int attach_state_pack(const struct attach_state *state, const char *job, const char *node,
		      void **data, size_t *length);
void attach_state_unpack(struct attach_state *state, const void *data, size_t length);

/* Tells a client that another one took the job. */
#define ATTACH_ELSEWHERE "the job was attached to from elsewhere"

#define ATTACH_END_MAX	 512
/* Writes the message for a job whose output is not kept, from the job's end (record.h). */
void attach_end_text(char out[ATTACH_END_MAX], const char *job, int kind, int value,
		     const char *text);

/* These work as spec_seal and spec_bound (seal.c). */
int attach_seal(const struct attach_ask *ask, const void *packed, size_t length,
		const char *munge_socket, char **credential, struct iocom_err *err);
int attach_bound(const struct attach_ask *ask, const void *packed, size_t length,
		 const struct credential *credential, const char *node, struct iocom_err *err);

#endif
