/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* See secret.h. */
#include "user/channel/secret.h"

#include <errno.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

/* Each ends with its NUL, so that no label with its job is the beginning of another. */
static const char *const secret_labels[SECRET_LABELS] = {
	[SECRET_STREAM] = "iocom stream",
	[SECRET_ATTACH] = "iocom attach",
	[SECRET_RENEWAL] = "iocom renewal",
};

void secret_new(uint8_t secret[SECRET_BYTES])
{
	if (sodium_init() < 0)
		abort(); /* the kernel has random bytes once it has booted */
	randombytes_buf(secret, SECRET_BYTES);
}

static void secret_add(crypto_auth_hmacsha256_state *state, const char *text)
{
	crypto_auth_hmacsha256_update(state, (const uint8_t *)text, strlen(text) + 1);
}

void secret_derive(uint8_t key[SECRET_KEY], const uint8_t secret[SECRET_BYTES],
		   enum secret_label label, const char *job, const char *ticket)
{
	crypto_auth_hmacsha256_state state;

	crypto_auth_hmacsha256_init(&state, secret, SECRET_BYTES);
	secret_add(&state, secret_labels[label]);
	secret_add(&state, job);
	secret_add(&state, ticket);
	crypto_auth_hmacsha256_final(&state, key);
	sodium_memzero(&state, sizeof(state));
}

void secret_ticket(char ticket[SECRET_TICKET_MAX])
{
	uint8_t bytes[(SECRET_TICKET_MAX - 1) / 2];

	if (sodium_init() < 0)
		abort();
	randombytes_buf(bytes, sizeof(bytes));
	sodium_bin2hex(ticket, SECRET_TICKET_MAX, bytes, sizeof(bytes));
}

void secret_text(char out[2 * SECRET_KEY + 1], const uint8_t key[SECRET_KEY])
{
	sodium_bin2hex(out, 2 * SECRET_KEY + 1, key, SECRET_KEY);
}

int secret_parse(uint8_t key[SECRET_KEY], const char *text)
{
	size_t length;
	const char *end;

	if (strlen(text) != (size_t)(2 * SECRET_KEY) ||
	    sodium_hex2bin(key, SECRET_KEY, text, 2 * SECRET_KEY, NULL, &length, &end) ||
	    length != SECRET_KEY || *end)
		return -EBADMSG;
	return 0;
}
