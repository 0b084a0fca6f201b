/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* See bulletin_seal.h. */
#include "user/channel/bulletin_seal.h"

#include <errno.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "user/channel/bytes.h"

void bulletin_epoch(struct bulletin_key *key)
{
	if (sodium_init() < 0)
		abort(); /* the kernel has random bytes once it has booted */
	do
		randombytes_buf(&key->epoch, sizeof(key->epoch));
	while (!key->epoch);
	randombytes_buf(key->key, sizeof(key->key));
	key->next = 0;
}

int bulletin_seal(struct bulletin_key *key, const char *name, const msgpack_sbuffer *plain,
		  msgpack_sbuffer *out)
{
	size_t length = strnlen(name, IOCOM_NAME_MAX - 1), head = 4 + length + 16;
	uint8_t *message = malloc(head + plain->size + NOISE_TAG);
	int rc;

	if (!message)
		return -ENOMEM;
	message[0] = 'i';
	message[1] = 'B';
	message[2] = BULLETIN_SEAL_VERSION;
	message[3] = (uint8_t)length;
	memcpy(message + 4, name, length);
	bytes_put_u64(message + 4 + length, key->epoch);
	bytes_put_u64(message + 12 + length, key->next);
	noise_seal_at(key->key, key->next++, message, head, plain->data, plain->size,
		      message + head);
	rc = msgpack_sbuffer_write(out, (char *)message, head + plain->size + NOISE_TAG);
	free(message);
	return rc ? -ENOMEM : 0;
}

int bulletin_head_read(struct bulletin_head *head, const void *message, size_t length)
{
	static const char older[] = "MUNGE:"; /* how they began before there were epochs */
	const uint8_t *at = message;
	size_t name;

	*head = (struct bulletin_head){0};
	if (length > sizeof(older) && !memcmp(at, older, sizeof(older) - 1))
		return -EPROTO;
	if (length < 4 + 16 + NOISE_TAG || at[0] != 'i' || at[1] != 'B')
		return -EBADMSG;
	if (at[2] != BULLETIN_SEAL_VERSION)
		return -EPROTO;
	name = at[3];
	if (!name || name >= IOCOM_NAME_MAX || length < 4 + name + 16 + NOISE_TAG ||
	    memchr(at + 4, 0, name))
		return -EBADMSG;
	memcpy(head->from, at + 4, name);
	head->epoch = bytes_u64(at + 4 + name);
	head->number = bytes_u64(at + 12 + name);
	head->length = 4 + name + 16;
	return 0;
}

int bulletin_open(struct bulletin_key *key, const struct bulletin_head *head, void *message,
		  size_t length, const void **plain, size_t *n)
{
	uint8_t *at = message;

	/* No number comes after the last one, so it would make all others new again. */
	if (head->number == UINT64_MAX ||
	    noise_open_at(key->key, head->number, at, head->length, at + head->length,
			  length - head->length, at + head->length))
		return -EBADMSG;
	if (head->number < key->next)
		return -EALREADY;
	key->next = head->number + 1;
	*plain = at + head->length;
	*n = length - head->length - NOISE_TAG;
	return 0;
}
