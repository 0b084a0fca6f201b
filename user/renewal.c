/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* See renewal.h. */
#include "user/renewal.h"

#include <errno.h>
#include <sodium.h>
#include <string.h>

#include "user/channel/bytes.h"

/* The kind of message is signed too, so that nobody can replay a question as an answer. */
enum { SAYS_ASK = 'q', SAYS_GIVEN_UP = 0, SAYS_RENEWED = 1 };

static void sign(uint8_t mac[RENEWAL_MAC], const uint8_t secret[RENEWAL_SECRET], uint8_t says,
		 const char *job, uint64_t number)
{
	static const char purpose[] = "iocom lease 1";
	uint8_t text[sizeof(purpose) + 1 + 8 + SPEC_JOB_MAX];
	size_t length = strnlen(job, SPEC_JOB_MAX - 1), at = sizeof(purpose);

	memcpy(text, purpose, sizeof(purpose));
	text[at] = says;
	bytes_put_u64(text + at + 1, number);
	memcpy(text + at + 9, job, length);
	crypto_auth_hmacsha256(mac, text, at + 9 + length, secret);
}

size_t renewal_ask_pack(uint8_t out[RENEWAL_ASK_MAX], const uint8_t secret[RENEWAL_SECRET],
			const char *job, uint64_t number)
{
	size_t length = strnlen(job, SPEC_JOB_MAX - 1);

	bytes_put_u64(out, number);
	sign(out + 8, secret, SAYS_ASK, job, number);
	memcpy(out + 8 + RENEWAL_MAC, job, length);
	return 8 + RENEWAL_MAC + length;
}

int renewal_ask_unpack(struct renewal_ask *ask, const void *payload, size_t length)
{
	const uint8_t *at = payload;
	size_t name = length - 8 - RENEWAL_MAC;

	*ask = (struct renewal_ask){0};
	if (length <= 8 + RENEWAL_MAC || length > RENEWAL_ASK_MAX)
		return -EBADMSG;
	ask->number = bytes_u64(at);
	memcpy(ask->mac, at + 8, RENEWAL_MAC);
	memcpy(ask->job, at + 8 + RENEWAL_MAC, name);
	if (strlen(ask->job) == name && spec_job_valid(ask->job) && ask->number <= INT64_MAX)
		return 0;
	*ask = (struct renewal_ask){0};
	return -EBADMSG;
}

bool renewal_ask_true(const struct renewal_ask *ask, const uint8_t secret[RENEWAL_SECRET])
{
	uint8_t mac[RENEWAL_MAC];

	sign(mac, secret, SAYS_ASK, ask->job, ask->number);
	return !sodium_memcmp(mac, ask->mac, RENEWAL_MAC);
}

void renewal_answer_pack(uint8_t out[RENEWAL_ANSWER], const uint8_t secret[RENEWAL_SECRET],
			 const char *job, uint64_t number, bool renewed)
{
	out[0] = renewed ? SAYS_RENEWED : SAYS_GIVEN_UP;
	bytes_put_u64(out + 1, number);
	sign(out + 9, secret, out[0], job, number);
}

int renewal_answer_open(const uint8_t secret[RENEWAL_SECRET], const char *job, uint64_t number,
			const void *payload, size_t length, bool *renewed)
{
	const uint8_t *at = payload;
	uint8_t mac[RENEWAL_MAC];

	if (length != RENEWAL_ANSWER || at[0] > SAYS_RENEWED || bytes_u64(at + 1) != number)
		return -EBADMSG;
	sign(mac, secret, at[0], job, number);
	if (sodium_memcmp(mac, at + 9, RENEWAL_MAC))
		return -EBADMSG;
	*renewed = at[0] == SAYS_RENEWED;
	return 0;
}
