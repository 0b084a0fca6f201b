/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* See stream_hello.h. */
#include "user/channel/stream_hello.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "user/channel/version.h"
#include "user/pack.h"

#define HEAD_LENGTH 2  /* bytes of the head's length */
#define HEAD_VALUES 32 /* it has 13; a later version may have more */

_Static_assert(STREAM_WELCOME_MAX > NOISE_HANDSHAKE + IOCOM_NAME_MAX + 64, "a welcome has room");

static const char *const stream_kinds[] = {
	[STREAM_KIND_START] = "start",
	[STREAM_KIND_ATTACH] = "attach",
};

void stream_hello_fill(struct stream_hello *hello, enum stream_kind kind, const char *job,
		       const char *node, const char *ticket)
{
	*hello = (struct stream_hello){
		.least = CHANNEL_VERSION_MIN, .most = CHANNEL_VERSION_MAX, .kind = kind};
	snprintf(hello->job, sizeof(hello->job), "%s", job);
	snprintf(hello->node, sizeof(hello->node), "%s", node);
	snprintf(hello->ticket, sizeof(hello->ticket), "%s", ticket);
}

/* Begins NOISE; both sides come here with the head's bytes as they were sent. */
static void stream_hello_begin(struct noise *noise, bool initiator, const uint8_t key[SECRET_KEY],
			       const void *head, size_t length)
{
	uint8_t prologue[sizeof(STREAM_PROLOGUE) + STREAM_HELLO_MAX];

	memcpy(prologue, STREAM_PROLOGUE, sizeof(STREAM_PROLOGUE));
	memcpy(prologue + sizeof(STREAM_PROLOGUE), head, length);
	noise_begin(noise, initiator, key, prologue, sizeof(STREAM_PROLOGUE) + length);
}

int stream_hello_pack(struct noise *noise, const struct stream_hello *hello,
		      const uint8_t key[SECRET_KEY], struct noise_pair *pair,
		      uint8_t out[STREAM_HELLO_MAX], size_t *length)
{
	msgpack_sbuffer head;
	msgpack_packer pk;
	int rc = -EMSGSIZE;

	pack_begin(&pk, &head, 6);
	pack_u64(&pk, "min", hello->least);
	pack_u64(&pk, "max", hello->most);
	pack_str(&pk, "kind", stream_kinds[hello->kind]);
	pack_str(&pk, "job", hello->job);
	pack_str(&pk, "node", hello->node);
	pack_str(&pk, "ticket", hello->ticket);
	*length = HEAD_LENGTH + head.size + NOISE_HANDSHAKE;
	if (*length <= STREAM_HELLO_MAX) {
		out[0] = (uint8_t)(head.size >> 8);
		out[1] = (uint8_t)head.size;
		memcpy(out + HEAD_LENGTH, head.data, head.size);
		stream_hello_begin(noise, true, key, head.data, head.size);
		noise_use_pair(noise, pair);
		rc = noise_write(noise, NULL, 0, out + HEAD_LENGTH + head.size);
	}
	msgpack_sbuffer_destroy(&head);
	return rc;
}

/* Returns 0 and the HEAD with its length N, or -EBADMSG. */
static int stream_hello_head(const void *payload, size_t length, const uint8_t **head, size_t *n)
{
	const uint8_t *at = payload;

	if (length < HEAD_LENGTH + NOISE_HANDSHAKE || length > STREAM_HELLO_MAX)
		return -EBADMSG;
	*n = (size_t)at[0] << 8 | at[1];
	*head = at + HEAD_LENGTH;
	return *n == length - HEAD_LENGTH - NOISE_HANDSHAKE ? 0 : -EBADMSG;
}

static int stream_hello_take_kind(const msgpack_object *map, enum stream_kind *kind)
{
	char name[16];

	if (unpack_str(map, "kind", name, sizeof(name)))
		return -EBADMSG;
	for (int i = 0; i < 2; i++)
		if (!strcmp(name, stream_kinds[i])) {
			*kind = (enum stream_kind)i;
			return 0;
		}
	return -EBADMSG;
}

static bool stream_hello_ticket_valid(const struct stream_hello *hello)
{
	size_t n = strlen(hello->ticket);

	if (!n)
		return true;
	return hello->kind == STREAM_KIND_ATTACH && n == SECRET_TICKET_MAX - 1 &&
	       strspn(hello->ticket, "0123456789abcdef") == n;
}

static int stream_hello_take(struct stream_hello *hello, const msgpack_object *map)
{
	if (unpack_u64(map, "min", &hello->least) || unpack_u64(map, "max", &hello->most) ||
	    hello->least > hello->most || stream_hello_take_kind(map, &hello->kind) ||
	    unpack_str(map, "job", hello->job, sizeof(hello->job)) || !spec_job_valid(hello->job) ||
	    unpack_str(map, "node", hello->node, sizeof(hello->node)) || !hello->node[0] ||
	    unpack_str(map, "ticket", hello->ticket, sizeof(hello->ticket)) ||
	    !stream_hello_ticket_valid(hello))
		return -EBADMSG;
	return 0;
}

int stream_hello_unpack(struct stream_hello *hello, const void *payload, size_t length)
{
	msgpack_unpacked map;
	const uint8_t *head;
	size_t n;
	int rc = stream_hello_head(payload, length, &head, &n);

	*hello = (struct stream_hello){0};
	if (rc || unpack_map_of(&map, head, n, HEAD_VALUES))
		return -EBADMSG;
	rc = stream_hello_take(hello, &map.data);
	msgpack_unpacked_destroy(&map);
	if (rc)
		*hello = (struct stream_hello){0};
	return rc;
}

int stream_hello_open(struct noise *noise, const void *payload, size_t length,
		      const uint8_t key[SECRET_KEY])
{
	const uint8_t *head;
	uint8_t nothing;
	size_t n;
	int rc = stream_hello_head(payload, length, &head, &n);

	if (rc)
		return rc;
	stream_hello_begin(noise, false, key, head, n);
	return noise_read(noise, head + n, NOISE_HANDSHAKE, &nothing);
}

int stream_welcome_pack(struct noise *noise, const struct stream_welcome *welcome,
			uint8_t out[STREAM_WELCOME_MAX], size_t *length, struct records *records)
{
	msgpack_sbuffer map;
	msgpack_packer pk;
	int rc = -EMSGSIZE;

	pack_begin(&pk, &map, 3);
	pack_u64(&pk, "v", welcome->version);
	pack_str(&pk, "node", welcome->node);
	pack_u64(&pk, "boot_id", welcome->boot_id);
	*length = NOISE_HANDSHAKE + map.size;
	if (*length <= STREAM_WELCOME_MAX)
		rc = noise_write(noise, map.data, map.size, out);
	msgpack_sbuffer_destroy(&map);
	if (rc)
		noise_end(noise);
	else
		noise_split(noise, &records->sends, &records->receives, NULL);
	return rc;
}

static int stream_welcome_take(struct stream_welcome *welcome, const struct stream_hello *hello,
			       const void *data, size_t length)
{
	msgpack_unpacked map;
	int rc = 0;

	if (unpack_map_of(&map, data, length, HEAD_VALUES))
		return -EBADMSG;
	if (unpack_u64(&map.data, "v", &welcome->version) || welcome->version < hello->least ||
	    welcome->version > hello->most ||
	    unpack_str(&map.data, "node", welcome->node, sizeof(welcome->node)) ||
	    strcmp(welcome->node, hello->node) != 0 ||
	    unpack_u64(&map.data, "boot_id", &welcome->boot_id))
		rc = -EBADMSG;
	msgpack_unpacked_destroy(&map);
	return rc;
}

int stream_welcome_unpack(struct noise *noise, const struct stream_hello *hello,
			  const void *payload, size_t length, struct stream_welcome *welcome,
			  struct records *records)
{
	uint8_t map[STREAM_WELCOME_MAX];
	int rc = length > STREAM_WELCOME_MAX ? -EBADMSG : noise_read(noise, payload, length, map);

	*welcome = (struct stream_welcome){0};
	if (!rc)
		rc = stream_welcome_take(welcome, hello, map, length - NOISE_HANDSHAKE);
	if (rc)
		noise_end(noise);
	else
		noise_split(noise, &records->sends, &records->receives, NULL);
	return rc;
}
