/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * How a shim asks the home node of its job to renew the lease, and what home answers
 * (agent/jobs/leases.h): one frame each on a connection of its own to home's job port.
 *
 *   FRAME_RENEW     number u64 BE | HMAC-SHA256 | the job's name
 *   FRAME_RENEWED   verdict u8 (1 renewed, 0 given up) | number u64 BE | HMAC-SHA256
 *
 * The key is a secret of this one attempt that home made: it proves that the job was
 * placed where the question comes from, and renews this lease, nothing else.  Each number
 * is used once, and larger than those before, so that a question shown again is none; an
 * answer is for its number only.  Nothing in it is secret.
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
	uint8_t mac[RENEWAL_MAC]; /* not looked at yet */
};

/* The payload of FRAME_RENEW for attempt JOB; its length. */
size_t renewal_ask_pack(uint8_t out[RENEWAL_ASK_MAX], const uint8_t secret[RENEWAL_SECRET],
			const char *job, uint64_t number);
/* 0 or -EBADMSG: no question, whoever asks. */
int renewal_ask_unpack(struct renewal_ask *ask, const void *payload, size_t length);
/* Whether who asks knows SECRET. */
bool renewal_ask_true(const struct renewal_ask *ask, const uint8_t secret[RENEWAL_SECRET]);

/* The payload of FRAME_RENEWED. */
void renewal_answer_pack(uint8_t out[RENEWAL_ANSWER], const uint8_t secret[RENEWAL_SECRET],
			 const char *job, uint64_t number, bool renewed);
/* 0; -EBADMSG: not home's answer to question NUMBER. */
int renewal_answer_open(const uint8_t secret[RENEWAL_SECRET], const char *job, uint64_t number,
			const void *payload, size_t length, bool *renewed);

#endif
