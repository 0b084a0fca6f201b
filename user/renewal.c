/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* See renewal.h. */
#include "user/renewal.h"

#include <errno.h>
#include <mbedtls/md.h>
#include <stdlib.h>
#include <string.h>

/* The kind of message is signed too, so that nobody can replay a question as an answer. */
enum { SAYS_ASK = 'q', SAYS_GIVEN_UP = 0, SAYS_RENEWED = 1 };

static void renewal_put_u64(uint8_t at[8], uint64_t value)
{
	for (int i = 0; i < 8; i++)
		at[i] = (uint8_t)(value >> (56 - 8 * i));
}

static uint64_t get_u64(const uint8_t at[8])
{
	uint64_t value = 0;

	for (int i = 0; i < 8; i++)
		value = value << 8 | at[i];
	return value;
}

static void sign(uint8_t mac[RENEWAL_MAC], const uint8_t secret[RENEWAL_SECRET], uint8_t says,
		 const char *job, uint64_t number)
{
	static const char purpose[] = "iocom lease 1";
	uint8_t text[sizeof(purpose) + 1 + 8 + SPEC_JOB_MAX];
	size_t length = strnlen(job, SPEC_JOB_MAX - 1), at = sizeof(purpose);

	memcpy(text, purpose, sizeof(purpose));
	text[at] = says;
	renewal_put_u64(text + at + 1, number);
	memcpy(text + at + 9, job, length);
	if (mbedtls_md_hmac(mbedtls_md_info_from_type(MBEDTLS_MD_SHA256), secret, RENEWAL_SECRET,
			    text, at + 9 + length, mac))
		abort(); /* a few hundred bytes: only without memory */
}

/* Compares in constant time. */
static bool renewal_same(const uint8_t a[RENEWAL_MAC], const uint8_t b[RENEWAL_MAC])
{
	volatile uint8_t different = 0;

	for (size_t i = 0; i < RENEWAL_MAC; i++)
		different |= a[i] ^ b[i];
	return !different;
}

size_t renewal_ask_pack(uint8_t out[RENEWAL_ASK_MAX], const uint8_t secret[RENEWAL_SECRET],
			const char *job, uint64_t number)
{
	size_t length = strnlen(job, SPEC_JOB_MAX - 1);

	renewal_put_u64(out, number);
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
	ask->number = get_u64(at);
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
	return renewal_same(mac, ask->mac);
}

void renewal_answer_pack(uint8_t out[RENEWAL_ANSWER], const uint8_t secret[RENEWAL_SECRET],
			 const char *job, uint64_t number, bool renewed)
{
	out[0] = renewed ? SAYS_RENEWED : SAYS_GIVEN_UP;
	renewal_put_u64(out + 1, number);
	sign(out + 9, secret, out[0], job, number);
}

int renewal_answer_open(const uint8_t secret[RENEWAL_SECRET], const char *job, uint64_t number,
			const void *payload, size_t length, bool *renewed)
{
	const uint8_t *at = payload;
	uint8_t mac[RENEWAL_MAC];

	if (length != RENEWAL_ANSWER || at[0] > SAYS_RENEWED || get_u64(at + 1) != number)
		return -EBADMSG;
	sign(mac, secret, at[0], job, number);
	if (!renewal_same(mac, at + 9))
		return -EBADMSG;
	*renewed = at[0] == SAYS_RENEWED;
	return 0;
}
