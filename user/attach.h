/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Attaching to a job that was started before: what a client asks in
 * FRAME_ATTACH, and what the job's supervisor answers in FRAME_STARTED.
 *
 * FRAME_ATTACH's payload: map { "cred": str or nil (local socket), "ask": bin }.
 * The MUNGE payload: map { "type": "attach", "job", "node", "nonce", "hash": bin }.
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

#define ATTACH_ASK_MAX 2048	  /* it fits a message of the leash (leash_wire.h) */
#define ATTACH_FIRST   UINT64_MAX /* from the first byte that is kept */

struct attach_ask {
	char job[SPEC_JOB_MAX], node[64];
	char nonce[SPEC_NONCE_MAX]; /* 16 random bytes of the client's, in hex */
	/* The nonce of the connection that was lost, whose client this is; "": another
	 * client, which takes the job over. */
	char resume[SPEC_NONCE_MAX];
	uint64_t from[FRAME_STREAMS];  /* [1], [2]: offsets of the outputs, or ATTACH_FIRST */
	uint64_t taken[FRAME_STREAMS]; /* what left it for good; at most `from` */
	bool gaps;   /* it understands an offset that leaves out what is not kept */
	bool take;   /* also from another client, where the job is no detached one */
	bool recent; /* of a running job's terminal ATTACH_FIRST is what was shown of late */
};

/* The answer: how far both sides are. */
struct attach_state {
	uint64_t pid;
	uint64_t input, input_limit;  /* came there; may be sent */
	uint64_t from[FRAME_STREAMS]; /* [1], [2]: the first byte that comes */
	uint64_t lost[FRAME_STREAMS]; /* [1], [2]: bytes that are not kept, so far */
	bool detached;
	bool tty; /* it has a terminal, which lives */
};

/* Fills `nonce`. */
void attach_nonce(char nonce[SPEC_NONCE_MAX]);
/* Packs into a malloc'ed buffer.  0 or -ENOMEM. */
int attach_pack(const struct attach_ask *ask, void **data, size_t *length);
/* 0, -EPROTO (version), -EBADMSG. */
int attach_unpack(struct attach_ask *ask, const void *data, size_t length, struct iocom_err *err);
/* FRAME_STARTED's payload; older ones, of jobs just started, have JOB and PID only. */
int attach_state_pack(const struct attach_state *state, const char *job, const char *node,
		      void **data, size_t *length);
void attach_state_unpack(struct attach_state *state, const void *data, size_t length);

/* What a client is told that another one took the job from. */
#define ATTACH_ELSEWHERE "the job was attached to from elsewhere"

#define ATTACH_END_MAX	 512
/* What is said of a job that ended so (record.h), and of whose output nothing is kept. */
void attach_end_text(char out[ATTACH_END_MAX], const char *job, int kind, int value,
		     const char *text);

/* As spec_seal and spec_bound (seal.c). */
int attach_seal(const struct attach_ask *ask, const void *packed, size_t length,
		const char *munge_socket, char **credential, struct iocom_err *err);
int attach_bound(const struct attach_ask *ask, const void *packed, size_t length,
		 const struct credential *credential, const char *node, struct iocom_err *err);

#endif
