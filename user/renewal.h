/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * A shim asks the home node of its job to renew the lease (agent/jobs/leases.h). Question and
 * answer are one frame each, on a connection of its own to home's job port.
 *
 *   FRAME_RENEW     number u64 BE | HMAC-SHA256 | the job's name
 *   FRAME_RENEWED   verdict u8 (1 renewed, 0 given up) | number u64 BE | HMAC-SHA256
 *
 * The key is a secret that home made for this one attempt: it proves that the question comes
 * from where the job was placed, and can only renew this lease. Each number is larger than those
 * before it, so that home ignores a replayed question; an answer counts only for its number.
 * Nothing in the messages is secret.
 */
#ifndef IOCOM_RENEWAL_H
#define IOCOM_RENEWAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "user/spec.h"

#define RENEWAL_SECRET	32
#define RENEWAL_MAC	32
#define RENEWAL_ASK_MAX (8 + RENEWAL_MAC + SPEC_JOB_MAX - 1)
#define RENEWAL_ANSWER	(1 + 8 + RENEWAL_MAC)

struct renewal_ask {
	uint64_t number;
	char job[SPEC_JOB_MAX];
	uint8_t mac[RENEWAL_MAC]; /* not checked yet */
};

/* Packs the payload of FRAME_RENEW for attempt JOB. Returns its length. */
size_t renewal_ask_pack(uint8_t out[RENEWAL_ASK_MAX], const uint8_t secret[RENEWAL_SECRET],
			const char *job, uint64_t number);
/* Returns 0, or -EBADMSG if the payload is malformed. */
int renewal_ask_unpack(struct renewal_ask *ask, const void *payload, size_t length);
/* Returns true if the sender knows SECRET. */
bool renewal_ask_true(const struct renewal_ask *ask, const uint8_t secret[RENEWAL_SECRET]);

/* Packs the payload of FRAME_RENEWED. */
void renewal_answer_pack(uint8_t out[RENEWAL_ANSWER], const uint8_t secret[RENEWAL_SECRET],
			 const char *job, uint64_t number, bool renewed);
/* Returns 0, or -EBADMSG if this is not home's answer to question NUMBER. */
int renewal_answer_open(const uint8_t secret[RENEWAL_SECRET], const char *job, uint64_t number,
			const void *payload, size_t length, bool *renewed);

#endif
